//! What this way of transport has to know of a message: who is asked for what, in which version, and whom it answers. All
//! else in a message is passed over where it lies.

use std::borrow::Cow;

use serde_json::value::RawValue;
use unstuck_wire::mcp::{Fields, Id, VERSION_KEY};

/// What goes to the server.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) method: Option<String>,
    /// The version that it says itself: the server knows no sessions.
    pub(super) version: Option<String>,
    /// Whom or what it is about.
    pub(super) name: Option<String>,
    /// The request that it takes back.
    pub(super) cancels: Option<Id>,
}

impl Said {
    /// Reads a frame. Of what is no message nothing is known.
    pub(super) fn read(frame: &[u8]) -> Said {
        let Ok(text) = str::from_utf8(frame) else { return Said::default() };
        let Some(fields) = Fields::read(text) else { return Said::default() };
        let method = fields.text("method");
        let params = fields.within("params");
        let param = |name: &str| Some(params.as_ref()?.text(name)?.into_owned());
        let name = match method.as_deref() {
            Some("tools/call" | "prompts/get") => param("name"),
            Some("resources/read") => param("uri"),
            Some("tasks/get" | "tasks/update" | "tasks/cancel") => param("taskId"),
            _ => None,
        };
        let cancels = match method.as_deref() {
            Some("notifications/cancelled") => params.as_ref().and_then(|params| params.get("requestId")),
            _ => None,
        };
        let meta = params.as_ref().and_then(|params| params.within("_meta"));
        Said {
            version: meta.and_then(|meta| Some(meta.text(VERSION_KEY)?.into_owned())),
            name,
            cancels: cancels.and_then(|id| Id::of(id.get())),
            method: method.map(Cow::into_owned),
        }
    }
}

/// What came from the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// An answer to a request of ours.
    Answer(Id),
    /// An error that says of no request that it answers it.
    Complaint,
    /// Several messages in one.
    Several(Vec<String>),
    /// A message that answers nothing: it asks or tells something.
    Other,
    /// No message at all.
    Nonsense,
}

/// Reads whom a message answers.
pub(super) fn came(text: &str) -> Came {
    if text.trim_start().starts_with('[') {
        let parts: Option<Vec<&RawValue>> = serde_json::from_str(text).ok();
        return match parts {
            Some(parts) => Came::Several(parts.into_iter().map(|part| part.get().to_owned()).collect()),
            None => Came::Nonsense,
        };
    }
    let Some(fields) = Fields::read(text) else { return Came::Nonsense };
    let has = |name: &str| fields.get(name).is_some();
    match (has("method"), has("result") || has("error")) {
        (true, _) => Came::Other,
        (false, false) => Came::Nonsense,
        (false, true) => {
            fields.get("id").and_then(|id| Id::of(id.get())).map_or(Came::Complaint, Came::Answer)
        }
    }
}

/// The version that a server chose in its answer to `initialize`.
pub(super) fn chosen_version(answer: &str) -> Option<String> {
    Some(Fields::read(answer)?.within("result")?.text("protocolVersion")?.into_owned())
}

/// The code and the words of an error.
pub(super) fn error(answer: &str) -> Option<(Option<i64>, String)> {
    let error = Fields::read(answer)?.within("error")?;
    let code = error.get("code").and_then(|code| code.get().parse().ok());
    Some((code, error.text("message")?.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_its_version_and_whom_it_is_about() {
        let check = |frame: &str, expected: &str| {
            let said = Said::read(frame.as_bytes());
            let told = [said.method, said.version, said.name, said.cancels.map(|id| id.to_string())];
            assert_eq!(told.map(Option::unwrap_or_default).join("|"), expected, "{frame}");
        };
        let modern = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        check(r#"{"method":"tools/call","params":{"name":"a"}}"#, "tools/call||a|");
        check(
            &format!(r#"{{"method":"tools/call","params":{{"name":"\u00fc",{modern}}}}}"#),
            "tools/call|2026-07-28|ü|",
        );
        check(r#"{"method":"resources/read","params":{"name":"a","uri":"f:x"}}"#, "resources/read||f:x|");
        check(r#"{"method":"tasks/get","params":{"taskId":"t"}}"#, "tasks/get||t|");
        check(r#"{"method":"tools/list","params":{"name":"a"}}"#, "tools/list|||");
        check(
            r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#,
            "notifications/cancelled|||7",
        );
        let again = Said::read(br#"{"method":"notifications/cancelled","params":{"requestId":"\u0061"}}"#);
        assert_eq!(again.cancels, Some(Id::text("a")));
        check(r#"{"method":"ping","params":[1]}"#, "ping|||");
        check(r#"{"method":7}"#, "|||");
        check("nonsense", "|||");
        check("[]", "|||");
    }

    #[test]
    fn an_answer_names_its_request() {
        let check = |text: &str, expected: Came| assert_eq!(came(text), expected, "{text}");
        let answer = |id| Came::Answer(Id::of(id).unwrap());
        check(r#"{"id":1,"result":{}}"#, answer("1"));
        check(r#"{"id":"a","error":{}}"#, answer("\"a\""));
        check(r#"{"id":"\u0061","result":{}}"#, answer("\"a\""));
        check(r#"{"id":1,"id":2,"result":{}}"#, answer("2"));
        check(r#"{"id":null,"error":{}}"#, Came::Complaint);
        check(r#"{"error":{}}"#, Came::Complaint);
        check(r#"{"id":1,"method":"ping"}"#, Came::Other);
        check(r#"{"id":1,"method":"ping","result":1}"#, Came::Other);
        check("{}", Came::Nonsense);
        check("{} {}", Came::Nonsense);
        check("<html>", Came::Nonsense);
        check(r#" [{"id": 1},{}]"#, Came::Several(vec![r#"{"id": 1}"#.to_owned(), "{}".to_owned()]));
        check("[1", Came::Nonsense);
        check(&"[".repeat(100_000), Came::Nonsense);
        check(&format!(r#"{{"id":1,"result":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000)), answer("1"));
    }
}
