//! The shapes of events as JSON: all that is known of them stands here and in `docs/events.md`.

use serde_json::{Map, Value, json};
use unstuck_store::{EventType, Severity};

use super::event::{Body, Event, EventKind};
use crate::call::CallInfo;

/// The version of the shapes. Within one, fields are only added.
const VERSION: u32 = 1;

pub(super) fn to_json(event: &Event) -> Value {
    let channel = match event.event_kind() {
        EventKind::Known(kind) => kind.channel().word(),
        EventKind::Foreign { channel, .. } => channel,
    };
    let mut fields = Map::new();
    fields.insert("v".into(), VERSION.into());
    fields.insert("channel".into(), channel.into());
    fields.insert("type".into(), event.kind().into());
    fields.insert("bookmark".into(), event.bookmark().map(|bookmark| bookmark.0).into());
    fields.insert("at".into(), event.at().into());
    fields.insert("session".into(), event.session().into());
    let mut body = body(event);
    if let Some(call) = call(event, body.shift_remove("call")) {
        fields.insert("call".into(), call);
    }
    if let EventKind::Known(EventType::Error) = event.event_kind() {
        fill_detail(&mut body);
    }
    for (key, value) in body {
        // What every event has is never overwritten by what one says of itself.
        fields.entry(key).or_insert(value);
    }
    Value::Object(fields)
}

/// The body of the `error` event of a part of the bus itself.
pub(super) fn own_error(phase: &str, message: &str, detail: Value) -> Body {
    let severity = Severity::Error.word();
    Body::Json(json!({ "severity": severity, "phase": phase, "message": message, "detail": detail }))
}

fn body(event: &Event) -> Map<String, Value> {
    let body = match event.body() {
        Body::Started { attempt } => {
            json!({ "tool": event.call().map(CallInfo::tool), "attempt": attempt })
        }
        Body::Ended { ok, state, took_ms } => {
            json!({ "ok": ok, "state": state.word(), "took_ms": took_ms })
        }
        Body::Json(body) => body.clone(),
        Body::Stored { text, .. } => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_ref()))
        }
    };
    match body {
        Value::Object(body) => body,
        // Its writer was not sane. What it wrote is not lost.
        odd => Map::from_iter([("body".to_owned(), odd)]),
    }
}

/// What is known of the call, with what the event itself says of it.
fn call(event: &Event, said: Option<Value>) -> Option<Value> {
    let mut call = match (event.call(), event.body()) {
        (Some(call), body) => {
            let key = call.id().as_str();
            let number =
                if let Body::Stored { call: Some(number), .. } = body { Some(*number) } else { None };
            let id = number.map_or(Value::from(key), Value::from);
            json!({ "id": id, "key": key, "tool": call.recorded_as(), "agent": call.agent() })
        }
        (None, Body::Stored { call: Some(number), .. }) => json!({ "id": number }),
        (
            None,
            Body::Stored { call: None, .. } | Body::Started { .. } | Body::Ended { .. } | Body::Json(_),
        ) => {
            return said;
        }
    };
    match said {
        Some(Value::Object(said)) => {
            // Without a store it has no number.
            let known = said.into_iter().filter(|(key, value)| key != "id" || !value.is_null());
            known.for_each(|(key, value)| call[key] = value);
        }
        Some(odd) => return Some(odd),
        None => {}
    }
    Some(call)
}

/// What an `error` says beside its severity, phase and message, in one place as well.
fn fill_detail(body: &mut Map<String, Value>) {
    if body.get("detail").is_none_or(Value::is_null) {
        let rest =
            body.iter().filter(|(key, _)| !matches!(&***key, "severity" | "phase" | "message" | "detail"));
        let rest: Map<String, Value> = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
        body.insert("detail".into(), Value::Object(rest));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use unstuck_store::{Bookmark, CallState, Channel, StoredEvent};

    use super::*;
    use crate::call::Session;

    fn call() -> Arc<CallInfo> {
        Arc::new(CallInfo {
            id: "toolu_01".into(),
            session: Session::from("s-1"),
            agent: "main".into(),
            call: Arc::new(unstuck_judge::Call::new("shell", json!({ "command": "ls" }))),
            prefix: 0,
            round: None,
            annotations: Arc::default(),
        })
    }

    #[test]
    fn events_made_here_have_the_shapes_of_those_in_the_store() {
        #[track_caller]
        fn check(kind: EventType, body: Body, expected: Value) {
            let event = Event::new(kind, 17, None, Some(call()), body);
            assert_eq!(event.call().map(CallInfo::tool), Some("shell"));
            let mut expected_json = json!({
                "v": 1, "channel": kind.channel().word(), "type": kind.word(), "bookmark": 9, "at": 17, "session": "s-1",
                "call": { "id": "toolu_01", "key": "toolu_01", "tool": "shell", "agent": "main" },
            });
            for (key, value) in expected.as_object().unwrap() {
                expected_json[key] = value.clone();
            }
            assert_eq!(event.at_place(Some(Bookmark(9))).to_json(), expected_json);
        }
        check(EventType::ToolStart, Body::Started { attempt: 2 }, json!({ "tool": "shell", "attempt": 2 }));
        check(
            EventType::ToolEnd,
            Body::Ended { ok: true, state: CallState::Completed, took_ms: 3 },
            json!({ "ok": true, "state": "completed", "took_ms": 3 }),
        );
        check(
            EventType::ToolError,
            Body::Json(json!({ "call": { "state": "failed" }, "error": "no", "v": 7, "type": "x" })),
            json!({
                "call": { "id": "toolu_01", "key": "toolu_01", "tool": "shell", "agent": "main", "state": "failed" },
                "error": "no",
            }),
        );
        check(
            EventType::Error,
            Body::Json(json!({ "severity": "warn", "phase": "tool", "message": "no", "kind": "network" })),
            json!({
                "severity": "warn", "phase": "tool", "message": "no", "kind": "network", "detail": { "kind": "network" },
            }),
        );
    }

    #[test]
    fn what_only_a_newer_version_knows_is_handed_on_whole() {
        let stored = StoredEvent {
            seq: Bookmark(3),
            at: 17,
            channel: "gossip".into(),
            kind: "tool:sang".into(),
            session: None,
            call: Some(4),
            body: "[1]".into(),
            link: None,
        };
        let event = Event::stored(stored, None);
        assert_eq!((event.kind(), event.channel(), event.session()), ("tool:sang", Channel::Monitor, None));
        let expected = json!({
            "v": 1, "channel": "gossip", "type": "tool:sang", "bookmark": 3, "at": 17, "session": null,
            "call": { "id": 4 }, "body": [1],
        });
        assert_eq!(event.to_json(), expected);
    }

    /// The page of events is true: for each type it has a section with its channel, its fields, and an example that comes out of
    /// the bus as it stands there.
    #[test]
    fn the_page_of_events_has_every_type_as_it_is() {
        let page = include_str!("../../../../docs/events.md");
        for kind in EventType::ALL {
            let (word, channel) = (kind.word(), kind.channel().word());
            let heading = format!("\n### `{word}` · {channel}\n");
            let (_, section) = page.split_once(&heading).unwrap_or_else(|| panic!("no section:{heading}"));
            let section = section.split("\n### ").next().unwrap_or_default();
            let (text, example) =
                section.split_once("```json\n").unwrap_or_else(|| panic!("no example: {word}"));
            let example = example.split("```").next().unwrap_or_default();
            let example: Value =
                serde_json::from_str(example).unwrap_or_else(|error| panic!("{word}: {error}"));
            let mut body: Map<String, Value> = example.as_object().unwrap().clone();
            let mut common = |key: &str| body.remove(key).unwrap_or_else(|| panic!("{word} has no {key}"));
            let stored = StoredEvent {
                seq: Bookmark(common("bookmark").as_u64().unwrap()),
                at: common("at").as_u64().unwrap(),
                channel: common("channel").as_str().unwrap().to_owned(),
                kind: common("type").as_str().unwrap().to_owned(),
                session: common("session").as_str().map(str::to_owned),
                call: example["call"]["id"].as_i64(),
                body: String::new(),
                link: None,
            };
            assert_eq!(common("v"), json!(1));
            for key in body.keys().filter(|key| *key != "call" || *kind == EventType::ToolError) {
                assert!(text.contains(&format!("`{key}`")), "the section of {word} says nothing of `{key}`");
            }
            // Everything that `detail` repeats is in the body already.
            body.remove("detail");
            let event = Event::stored(StoredEvent { body: Value::Object(body).to_string(), ..stored }, None);
            assert_eq!(event.to_json(), example, "{word}");
        }
    }
}
