//! What this way of transport has to know of a message: who is asked for what, in which version, and whom it answers. All
//! else in a message is passed over where it lies.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use unstuck_wire::mcp::Id;

/// In newer versions each request says its version, here.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

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
        let Some([method, params]) = pick(text, ["method", "params"]) else { return Said::default() };
        let method = method.and_then(text_of);
        let params =
            params.and_then(|params| pick(params.get(), ["_meta", "name", "uri", "taskId", "requestId"]));
        let [meta, name, uri, task, request] = params.unwrap_or_default();
        let version = meta.and_then(|meta| pick(meta.get(), [VERSION])).and_then(|[version]| version);
        let name = match method.as_deref() {
            Some("tools/call" | "prompts/get") => name,
            Some("resources/read") => uri,
            Some("tasks/get" | "tasks/update" | "tasks/cancel") => task,
            _ => None,
        };
        let cancels = (method.as_deref() == Some("notifications/cancelled")).then_some(request).flatten();
        Said {
            version: version.and_then(text_of),
            name: name.and_then(text_of),
            cancels: cancels.and_then(|id| Id::of(id.get())).map(|id| same(&id)),
            method,
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
    match pick(text, ["id", "method", "result", "error"]) {
        None | Some([_, None, None, None]) => Came::Nonsense,
        Some([_, Some(_), _, _]) => Came::Other,
        Some([id, None, _, _]) => match id.and_then(|id| Id::of(id.get())) {
            Some(id) => Came::Answer(same(&id)),
            None => Came::Complaint,
        },
    }
}

/// A name in one spelling, since strings can be written in several ways and servers write them anew.
pub(super) fn same(id: &Id) -> Id {
    match id.json().contains('\\') {
        true => serde_json::from_str::<String>(id.json()).map_or_else(|_| id.clone(), |name| Id::text(&name)),
        false => id.clone(),
    }
}

/// The version that a server chose in its answer to `initialize`.
pub(super) fn chosen_version(answer: &str) -> Option<String> {
    let [result] = pick(answer, ["result"])?;
    let [version] = pick(result?.get(), ["protocolVersion"])?;
    text_of(version?)
}

/// The code and the words of an error.
pub(super) fn error(answer: &str) -> Option<(Option<i64>, String)> {
    let [error] = pick(answer, ["error"])?;
    let [code, message] = pick(error?.get(), ["code", "message"])?;
    Some((code.and_then(|code| code.get().parse().ok()), text_of(message?)?))
}

/// The text of a JSON string.
pub(super) fn text_of(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// Some fields of an object; nothing where it is none. A field that stands there twice counts as it stands last.
pub(super) fn pick<'a, const N: usize>(json: &'a str, names: [&str; N]) -> Option<[Option<&'a RawValue>; N]> {
    struct Pick<'n, const N: usize>([&'n str; N]);

    impl<'de, const N: usize> Visitor<'de> for Pick<'_, N> {
        type Value = [Option<&'de RawValue>; N];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut picked = [None; N];
            while let Some(key) = map.next_key::<String>()? {
                match self.0.iter().position(|name| *name == key) {
                    Some(at) => picked[at] = Some(map.next_value()?),
                    None => drop(map.next_value::<IgnoredAny>()?),
                }
            }
            Ok(picked)
        }
    }

    let mut reader = serde_json::Deserializer::from_str(json);
    let picked = reader.deserialize_map(Pick(names)).ok()?;
    reader.end().ok()?;
    Some(picked)
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
