//! The sessions of agents behind tools: how such a tool is told to go on with one, and where it says which one it began.

use serde_json::Value;

use super::extract::READ_MAX;

/// The words for it, without signs between them.
const NAMES: [&str; 4] = ["sessionid", "threadid", "conversationid", "chatid"];
/// The longest name of a field that is looked at.
const NAME_MAX: usize = 40;
/// The longest name of a session.
const LONGEST: usize = 200;

/// The field of a tool's arguments that says which session is to go on.
pub fn session_field(schema: &Value) -> Option<&str> {
    let fields = schema.get("properties")?.as_object()?;
    fields.keys().find(|name| is_session(name)).map(String::as_str)
}

/// The session that a result tells of under the name of this field: in its structure, or in its words, as JSON or as
/// `SESSION_ID: abc`.
pub fn session_in(words: &str, field: &str) -> Option<String> {
    let json = (words.len() <= READ_MAX).then(|| serde_json::from_str::<Value>(words).ok()).flatten();
    match json {
        Some(json) => in_value(&json, field),
        None => words.lines().find_map(|line| in_line(line, field)),
    }
}

fn in_value(value: &Value, field: &str) -> Option<String> {
    match value {
        Value::Object(fields) => {
            let named = fields.iter().find(|(name, _)| is_same(name, field));
            let here = named.and_then(|(_, value)| value.as_str()).and_then(accepted);
            here.or_else(|| fields.values().find_map(|value| in_value(value, field)))
        }
        Value::Array(list) => list.iter().find_map(|value| in_value(value, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn in_line(line: &str, field: &str) -> Option<String> {
    let (name, value) = line.split_once([':', '='])?;
    is_same(name, field).then_some(())?;
    let value = value.trim().trim_start_matches(['"', '\'', '`']);
    let end = value.find(|sign: char| !is_sign(sign)).unwrap_or(value.len());
    accepted(&value[..end])
}

fn accepted(name: &str) -> Option<String> {
    let is_name = !name.is_empty() && name.len() <= LONGEST && name.chars().all(is_sign);
    is_name.then(|| name.to_owned())
}

fn is_sign(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "-_.:".contains(sign)
}

fn is_session(name: &str) -> bool {
    name.len() <= NAME_MAX && NAMES.contains(&&*plain(name))
}

fn is_same(name: &str, field: &str) -> bool {
    name.len() <= NAME_MAX && plain(name) == plain(field)
}

/// A name in small letters, and without signs between them.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|sign| sign.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_is_found_where_results_tell_of_it() {
        let check = |words: &str, expected: Option<&str>| {
            assert_eq!(session_in(words, "SESSION_ID").as_deref(), expected, "{words}")
        };
        check(r#"{"success":false,"SESSION_ID":"abc-1","error":"timeout"}"#, Some("abc-1"));
        check(r#"{"result":{"sessionId":"t_9"}}"#, Some("t_9"));
        check(r#"{"result":{"threadId":"t_9"}}"#, None);
        check("upstream timed out\nSESSION_ID: 019a-77\n", Some("019a-77"));
        check("- session id = \"s.1\", try again", Some("s.1"));
        check("the session expired: log in", None);
        check("session_id: ", None);
        check(r#"{"session_id":"rm -rf /"}"#, None);
        check("no words at all", None);
    }

    #[test]
    fn a_tool_goes_on_with_a_session_where_it_has_a_field_for_it() {
        let check = |schema: Value, expected: Option<&str>| assert_eq!(session_field(&schema), expected);
        check(json!({ "properties": { "PROMPT": {}, "SESSION_ID": {} } }), Some("SESSION_ID"));
        check(json!({ "properties": { "conversationId": {} } }), Some("conversationId"));
        check(json!({ "properties": { "prompt": {} } }), None);
        check(json!(true), None);
    }
}
