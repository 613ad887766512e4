//! What is said beside a frame, for those on the way that do not read it: its version, its method, whom it is about, and
//! those arguments of a tool that its server wants to see there. Newer versions of the protocol demand it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use serde_json::value::RawValue;
use unstuck_wire::mcp::Fields;

use super::reading::Said;

/// The session that a server gave us.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The version that is spoken.
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// After which event a stream is to go on.
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// How a schema marks an argument that is said in a header, too.
const MARK: &str = "x-mcp-header";
/// Whole numbers beyond this are not the same everywhere.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// The arguments of tools that are said in headers.
#[derive(Debug, Default)]
pub(super) struct Marked(HashMap<String, Vec<Mark>>);

/// One argument that is said in a header.
#[derive(Debug)]
struct Mark {
    /// The names that lead to it.
    path: Vec<String>,
    header: HeaderName,
}

/// A tool that must not be called, since its marks break the rules.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unusable {
    pub(super) tool: String,
    pub(super) why: &'static str,
}

impl Marked {
    /// Learns from the answer to `tools/list`. Takes those tools out of it that must not be called, and tells which.
    pub(super) fn learn(&mut self, answer: &mut String) -> Vec<Unusable> {
        if !answer.contains(MARK) && self.0.is_empty() {
            return Vec::new();
        }
        let result = Fields::read(answer).and_then(|answer| answer.within("result"));
        let Some(list) = result.and_then(|result| result.get("tools")) else { return Vec::new() };
        let Ok(tools) = serde_json::from_str::<Vec<&RawValue>>(list.get()) else { return Vec::new() };
        let (mut kept, mut unusable) = (Vec::new(), Vec::new());
        for raw in tools {
            match self.learn_tool(raw) {
                Ok(()) => kept.push(raw.get()),
                Err(one) => unusable.push(one),
            }
        }
        if !unusable.is_empty() {
            // The list is a part of the answer itself, so where it stands is known.
            let begins = list.get().as_ptr().addr() - answer.as_ptr().addr();
            let (place, kept) = (begins..begins + list.get().len(), format!("[{}]", kept.join(",")));
            answer.replace_range(place, &kept);
        }
        unusable
    }

    fn learn_tool(&mut self, raw: &RawValue) -> Result<(), Unusable> {
        let Some(tool) = Fields::of(raw) else { return Ok(()) };
        let Some(name) = tool.text("name").map(Cow::into_owned) else { return Ok(()) };
        self.0.remove(&name);
        let Some(schema) = tool.get("inputSchema").filter(|schema| schema.get().contains(MARK)) else {
            return Ok(());
        };
        // What is nested too deeply to be read has no marks that anybody could follow.
        let Ok(schema) = serde_json::from_str::<Value>(schema.get()) else { return Ok(()) };
        match Search::through(&schema) {
            Ok(marks) if marks.is_empty() => {}
            Ok(marks) => drop(self.0.insert(name, marks)),
            Err(why) => return Err(Unusable { tool: name, why }),
        }
        Ok(())
    }

    /// What is to be said beside the call of a tool.
    fn say(&self, tool: &str, frame: &[u8], headers: &mut HeaderMap) {
        let Some(marks) = self.0.get(tool) else { return };
        let call = str::from_utf8(frame).ok().and_then(Fields::read);
        let arguments = call.and_then(|call| call.within("params")?.get("arguments"));
        let Some(arguments) = arguments.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok()) else {
            return;
        };
        for mark in marks {
            let value = mark.path.iter().try_fold(&arguments, |value, name| value.get(name));
            let text = match value {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Bool(answer)) => answer.to_string(),
                Some(Value::Number(number)) => match number.as_i64() {
                    Some(number) if number.unsigned_abs() <= NUMBER_MAX => number.to_string(),
                    Some(_) | None => continue,
                },
                Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => continue,
            };
            if let Some(value) = encoded(&text) {
                headers.insert(mark.header.clone(), value);
            }
        }
    }
}

/// Finds the marks in a schema.
#[derive(Default)]
struct Search {
    path: Vec<String>,
    marks: Vec<Mark>,
}

impl Search {
    /// All marks, or how one of them breaks the rules.
    fn through(schema: &Value) -> Result<Vec<Mark>, &'static str> {
        let mut search = Search::default();
        search.reachable(schema)?;
        let mut seen = HashSet::new();
        match search.marks.iter().all(|mark| seen.insert(&mark.header)) {
            true => Ok(search.marks),
            false => Err("two arguments want the same header"),
        }
    }

    /// A schema to which nothing but names of properties leads.
    fn reachable(&mut self, schema: &Value) -> Result<(), &'static str> {
        let Value::Object(fields) = schema else { return Ok(()) };
        for (keyword, value) in fields {
            match (keyword.as_str(), value) {
                (MARK, mark) => self.mark(mark, fields.get("type"))?,
                ("properties", Value::Object(properties)) => {
                    for (name, schema) in properties {
                        self.path.push(name.clone());
                        self.reachable(schema)?;
                        self.path.pop();
                    }
                }
                (keyword, value) if SUBSCHEMAS.contains(&keyword) && is_marked(value) => {
                    return Err("the argument is not always at the same place");
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn mark(&mut self, mark: &Value, kind: Option<&Value>) -> Result<(), &'static str> {
        let primitive = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
        let fits = match kind {
            Some(Value::Array(kinds)) => {
                kinds.iter().any(primitive) && kinds.iter().all(|kind| primitive(kind) || kind == "null")
            }
            Some(kind) => primitive(kind),
            None => false,
        };
        if !fits || self.path.is_empty() {
            return Err("only strings, integers and booleans can be said in a header");
        }
        let name = mark.as_str().filter(|name| !name.is_empty());
        let header = name.and_then(|name| format!("mcp-param-{name}").parse().ok());
        let header = header.ok_or("the name of the header is none")?;
        self.marks.push(Mark { path: self.path.clone(), header });
        Ok(())
    }
}

/// Keywords that hold schemas, to which more leads than the name of a property.
const SUBSCHEMAS: [&str; 21] = [
    "$defs",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "definitions",
    "dependentSchemas",
    "dependencies",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Is something marked anywhere below? What only shows values, like `default`, is not looked at.
fn is_marked(schemas: &Value) -> bool {
    match schemas {
        Value::Array(schemas) => schemas.iter().any(is_marked),
        Value::Object(fields) => fields.iter().any(|(name, value)| match name.as_str() {
            MARK => value.is_string(),
            "const" | "default" | "enum" | "examples" => false,
            _ => is_marked(value),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Says beside a frame what newer versions want to be said.
pub(super) fn say(said: &Said, frame: &[u8], marked: &Marked, headers: &mut HeaderMap) {
    if let Some(method) = said.method.as_deref().and_then(encoded) {
        headers.insert(METHOD, method);
    }
    if let Some(name) = said.name.as_deref().and_then(encoded) {
        headers.insert(NAME, name);
    }
    if let (Some("tools/call"), Some(tool)) = (said.method.as_deref(), said.name.as_deref()) {
        marked.say(tool, frame, headers);
    }
}

/// A text as it may stand in a header: as it is, or in base64 with marks around it.
fn encoded(text: &str) -> Option<HeaderValue> {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    let padded = text.trim_matches([' ', '\t']).len() != text.len();
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    match plain && !padded && !looks_encoded {
        true => HeaderValue::from_str(text).ok(),
        false => HeaderValue::from_str(&format!("=?base64?{}?=", STANDARD.encode(text))).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_stand_in_a_header_is_encoded() {
        let check = |text: &str, expected: &str| assert_eq!(encoded(text).unwrap(), expected, "{text:?}");
        check("us-west1", "us-west1");
        check("", "");
        check("a b\tc", "a b\tc");
        check("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?=");
        check(" padded ", "=?base64?IHBhZGRlZCA=?=");
        check("line1\nline2", "=?base64?bGluZTEKbGluZTI=?=");
        check("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
    }

    fn listed(schema: &str) -> String {
        format!(r#"{{"id":1,"result":{{"tools":[{{"name":"t","inputSchema":{{"properties":{schema}}}}}]}}}}"#)
    }

    /// What is said beside a call of the tool `t` with some schema and some arguments.
    #[track_caller]
    fn check(schema: &str, arguments: &str, expected: &[(&str, &str)]) {
        let mut marked = Marked::default();
        assert_eq!(marked.learn(&mut listed(schema)), []);
        let frame = format!(r#"{{"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#);
        let mut headers = HeaderMap::new();
        say(&Said::read(frame.as_bytes()), frame.as_bytes(), &marked, &mut headers);
        let mut all = vec![("mcp-method", "tools/call"), ("mcp-name", "t")];
        all.extend(expected);
        let said: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(said, all, "{schema} {arguments}");
    }

    #[test]
    fn marked_arguments_are_said_in_headers() {
        let region = r#"{"region":{"type":"string","x-mcp-header":"Region"},"q":{"type":"string"}}"#;
        check(region, r#"{"region":"us-west1","q":"x"}"#, &[("mcp-param-region", "us-west1")]);
        check(region, r#"{"region":null}"#, &[]);
        check(region, "{}", &[]);
        check(region, "7", &[]);
        let deep = r#"{"a":{"type":"object","properties":{"b":{"type":"integer","x-mcp-header":"B"}}},
            "c":{"type":"boolean","x-mcp-header":"C"}}"#;
        check(deep, r#"{"a":{"b":-7},"c":true}"#, &[("mcp-param-b", "-7"), ("mcp-param-c", "true")]);
    }

    #[test]
    fn a_tool_whose_marks_break_the_rules_is_taken_out() {
        for (schema, why) in [
            (r#"{"a":{"type":"number","x-mcp-header":"A"}}"#, "only strings"),
            (r#"{"a":{"x-mcp-header":"A"}}"#, "only strings"),
            (r#"{"a":{"type":"string","x-mcp-header":""}}"#, "the name of"),
            (r#"{"a":{"type":"string","x-mcp-header":"a b"}}"#, "the name of"),
            (r#"{"a":{"type":"string","x-mcp-header":"a\r\nb: c"}}"#, "the name of"),
            (r#"{"a":{"type":"string","x-mcp-header":7}}"#, "the name of"),
            (
                r#"{"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}}"#,
                "two arguments",
            ),
            (r#"{"a":{"items":{"type":"string","x-mcp-header":"X"}}}"#, "the argument is not"),
            (
                r#"{"a":{"anyOf":[{"properties":{"b":{"type":"string","x-mcp-header":"X"}}}]}}"#,
                "the argument is",
            ),
        ] {
            let mut answer = listed(schema);
            let unusable = Marked::default().learn(&mut answer);
            assert!(unusable.len() == 1 && unusable[0].why.starts_with(why), "{schema} {unusable:?}");
            assert_eq!(answer, r#"{"id":1,"result":{"tools":[]}}"#);
        }
    }

    #[test]
    fn what_only_looks_like_a_mark_is_none() {
        for schema in [
            r#"{"x-mcp-header":{"type":"string"}}"#,
            r#"{"a":{"items":{"type":"string","default":{"x-mcp-header":"X"}}}}"#,
            r#"{"a":{"type":"string","description":"x-mcp-header"}}"#,
        ] {
            let mut answer = listed(schema);
            assert_eq!(Marked::default().learn(&mut answer), []);
            assert_eq!(answer, listed(schema));
        }
    }

    #[test]
    fn the_other_tools_stay_as_they_are() {
        let good = r#"{"name" : "a", "inputSchema":{"properties":{"r":{"type":["string","null"],"x-mcp-header":"R"}}}}"#;
        let bad = r#"{"name":"b","inputSchema":{"properties":{"r":{"type":"null","x-mcp-header":"R"}}}}"#;
        let mut answer = format!(r#"{{"id":1, "result":{{"tools":[ {good}, {bad} ,7], "ttlMs":0}} }}"#);
        let unusable = Marked::default().learn(&mut answer);
        assert_eq!(unusable[0].tool, "b");
        assert_eq!(answer, format!(r#"{{"id":1, "result":{{"tools":[{good},7], "ttlMs":0}} }}"#));
    }
}
