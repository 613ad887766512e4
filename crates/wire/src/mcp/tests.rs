#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;

fn raw(json: &str) -> Box<RawValue> {
    serde_json::from_str(json).unwrap()
}

#[test]
fn lines_are_frames_however_the_pieces_fall() {
    let check = |pieces: &[&str], expected: &[&str]| {
        let mut framer = Framer::new(10);
        let mut seen = Vec::new();
        let shown = |piece| match piece {
            Piece::Frame(frame) => String::from_utf8(frame).unwrap(),
            Piece::TooLong(begins) => format!("too long: {}", String::from_utf8(begins).unwrap()),
            Piece::Within(glimpse) => format!("{:?} {:?}", glimpse.sort, glimpse.id),
        };
        for piece in pieces {
            framer.feed(piece.as_bytes(), |piece| seen.push(shown(piece)));
        }
        framer.finish(|piece| seen.push(format!("rest: {}", shown(piece))));
        assert_eq!(seen, expected, "{pieces:?}");
    };
    check(&[], &[]);
    check(&["{}\n"], &["{}"]);
    check(&["{", "}", "\n{\"a\"", ":1}\n{}"], &["{}", "{\"a\":1}", "rest: {}"]);
    check(&["\n \n\r\n{}\r\n"], &["{}\r"]);
    check(&["0123456789\n"], &["0123456789"]);
    check(&["01234567890\n{}\n"], &["too long: 01234567890", "Unsaid None", "{}"]);
    check(&["01234", "56789", "0", "1234\n", "{}\n"], &["too long: 01234567890", "Unsaid None", "{}"]);
    check(&["0123456789", "01234"], &["too long: 012345678901234", "rest: Unsaid None"]);
    check(
        &["{\"error\":[", "],\"id\":", "7}\n{\"id\":1,\"method", "\":1"],
        &[
            "too long: {\"error\":[],\"id\":",
            "Answer Some(Id(\"7\"))",
            "too long: {\"id\":1,\"method",
            "Question Some(Id(\"1\"))",
        ],
    );
}

#[test]
fn depth_is_counted_outside_of_strings() {
    let check = |json: &str, expected| assert_eq!(depth(json.as_bytes()), expected, "{json}");
    check("", 0);
    check("{}", 1);
    check(r#"{"a":[{"b":[]}]}"#, 4);
    check(r#"{"a":"[[[[\"[[["}"#, 1);
    check(r#"["\\",[]]"#, 2);
    check("]]]][", 1);
    check("\"[[[", 0);
}

#[test]
fn a_message_is_known_by_its_fields() {
    let check = |frame: &str, expected: &str| {
        let shown = match read(frame.as_bytes()) {
            Message::Request { id, method, params } => format!("request {id} {method} {}", params.is_some()),
            Message::Notification { method, .. } => format!("notification {method}"),
            Message::Answer { id, came } => {
                let id = id.map_or("nobody".to_owned(), |id| id.to_string());
                format!("answer {id} {}", if came.is_ok() { "ok" } else { "error" })
            }
            Message::Batch(parts) => format!("{parts:?}"),
            Message::Other => "other".to_owned(),
            Message::Broken => "broken".to_owned(),
        };
        assert_eq!(shown, expected, "{frame}");
    };
    check(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, "request 1 tools/call true");
    check(r#" {"method":"ping","id":"a\"b","jsonrpc":"2.0"} "#, r#"request "a\"b" ping false"#);
    check(r#"{"id":1,"method":"a","method":"t\u006fols/call"}"#, "request 1 tools/call false");
    check(r#"{"method":"notifications/initialized"}"#, "notification notifications/initialized");
    check(r#"{"id":null,"method":"x"}"#, "notification x");
    check(r#"{"id":7,"result":{}}"#, "answer 7 ok");
    check(r#"{"id":7.5,"result":null}"#, "answer 7.5 ok");
    check(r#"{"id":null,"error":{}}"#, "answer nobody error");
    check(
        r#"[{"id":1,"method":"x"},{"id":2,"result":1},{"method":"y"}]"#,
        r#"[Request(Id("1")), Answer(Id("2")), Other]"#,
    );
    check("{}", "other");
    check(r#"{"id":[1],"method":5}"#, "other");
    check("[1]", "[Other]");
    check(r#"[{"id":1,"method":"x"},[{"id":2,"method":"x"}],7]"#, r#"[Request(Id("1")), Other, Other]"#);
    check("[]", "[]");
    check(r#"[{"id":1,"method":"x"}"#, "broken");
    check("17", "other");
    check("Server listening on stdio", "broken");
    check(r#"{"id":1,"method":"x""#, "broken");
    check("", "broken");
    assert!(matches!(read(b"{\"a\":\"\xff\"}"), Message::Broken));
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert!(matches!(read(format!("{{\"params\":{deep}}}").as_bytes()), Message::Other | Message::Broken));
}

#[test]
fn a_frame_under_another_name_is_otherwise_the_same() {
    let check = |frame: &str, expected: Option<&str>| {
        let renamed =
            renamed(frame.as_bytes(), &Id::text("n")).map(|frame| String::from_utf8(frame).unwrap());
        assert_eq!(renamed.as_deref(), expected, "{frame}");
    };
    check(r#"{ "x" : 1, "id" : 5 , "id2":5}"#, Some(r#"{ "x" : 1, "id" : "n" , "id2":5}"#));
    check(r#"{"params":{"id":5},"id":"é"}"#, Some(r#"{"params":{"id":5},"id":"n"}"#));
    check("{}", None);
    let call = r#"{"id":1,"params":{"name":"x", "arguments" : {"a":1}, "z":2}}"#;
    let with = |name| String::from_utf8(with_argument(call.as_bytes(), name, &json!("x")).unwrap()).unwrap();
    assert_eq!(with("a"), r#"{"id":1,"params":{"name":"x", "arguments" : {"a":"x"}, "z":2}}"#);
    assert_eq!(with("b"), r#"{"id":1,"params":{"name":"x", "arguments" : {"a":1,"b":"x"}, "z":2}}"#);
    assert_eq!(with_argument(br#"{"id":1,"params":{"arguments":7}}"#, "b", &json!("x")), None);
}

#[test]
fn the_result_of_a_call_is_read_for_its_words() {
    let check = |result: Value, expected: (bool, bool, bool, &str)| {
        let text = raw(&result.to_string());
        let read = ToolResult::of(&text);
        assert_eq!((read.is_complete, read.is_error, read.has_structure, &*read.words), expected, "{result}");
    };
    check(json!({ "content": [{ "type": "text", "text": "fine" }] }), (true, false, false, "fine"));
    check(
        json!({ "content": [{ "type": "text", "text": "a\nb" }, { "type": "image", "data": "x" }, { "type": "text", "text": "c" }], "isError": true }),
        (true, true, false, "a\nb\nc"),
    );
    check(json!({ "content": [], "structuredContent": { "a": 1 } }), (true, false, true, "{\"a\":1}"));
    check(json!({ "content": [], "structuredContent": [1] }), (true, false, false, "[1]"));
    check(json!({ "resultType": "input_required", "isError": true }), (false, true, false, ""));
    check(json!({ "resultType": "complete", "content": [] }), (true, false, false, ""));
    check(
        json!({ "content": [{ "type": "resource", "resource": { "text": "r" } }] }),
        (true, false, false, "r"),
    );
    check(json!("odd"), (true, false, false, "\"odd\""));
}

#[test]
fn what_is_added_to_a_result_leaves_the_rest_as_it_came() {
    let check = |result: &str, structured: bool, expected: &str| {
        let structured = structured.then(|| ("unstuck", json!({ "ok": false })));
        let mut frame = format!(r#"{{"id":1, "result":{result} }}"#).into_bytes();
        assert!(add(&mut frame, &Id::text("n"), &Addition { text: "why".to_owned(), structured }));
        assert_eq!(String::from_utf8(frame).unwrap(), format!(r#"{{"id":"n", "result":{expected} }}"#));
    };
    let block = r#"{"type":"text","text":"why"}"#;
    check(r#"{"content":[],"isError":true}"#, false, &format!(r#"{{"content":[{block}],"isError":true}}"#));
    check(
        r#"{ "vendor" : 1.0 , "content":[ {"type":"text","text":"x","y":1e3} ], "structuredContent":{"a" : 1} }"#,
        true,
        &format!(
            r#"{{ "vendor" : 1.0 , "content":[ {{"type":"text","text":"x","y":1e3}},{block}], "structuredContent":{{"a" : 1,"unstuck":{{"ok":false}}}} }}"#
        ),
    );
    check(r#"{"isError":true}"#, true, &format!(r#"{{"isError":true,"content":[{block}]}}"#));
    check("{}", false, &format!(r#"{{"content":[{block}]}}"#));
    check(
        r#"{"structuredContent":{},"content":[]}"#,
        true,
        &format!(r#"{{"structuredContent":{{"unstuck":{{"ok":false}}}},"content":[{block}]}}"#),
    );
}

#[test]
fn tools_are_told_apart_by_what_is_said_of_them() {
    let list = |json: &str| ToolList::of(&raw(json)).unwrap();
    let one = list(
        r#"{"tools":[{"name":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"outputSchema":{}},{"no":"name"}],"nextCursor":"2"}"#,
    );
    assert_eq!(one.next.as_deref(), Some("2"));
    let [tool] = &one.tools[..] else { panic!("one tool has a name") };
    assert_eq!((&*tool.name, tool.has_output_schema, tool.hints.read_only), ("a", true, Some(true)));
    let digests = |json: &str| list(json).tools[0].digest.clone();
    let same = digests(r#"{"tools":[{ "description":"x","name":"a"}]}"#);
    assert_eq!(same, digests(r#"{"tools":[{"name":"a","description":"x"}]}"#));
    assert_ne!(same, digests(r#"{"tools":[{"name":"a","description":"y"}]}"#));
    let with = |more: &str| digests(&format!(r#"{{"tools":[{{"name":"a","description":"x"{more}}}]}}"#));
    assert_eq!(same, with(r#","_meta":{"build":7}"#));
    for more in [
        r#","annotations":{"readOnlyHint":true}"#,
        r#","outputSchema":{}"#,
        r#","inputSchema":{"required":["p"]}"#,
    ] {
        assert_ne!(same, with(more), "{more}");
    }
    assert_ne!(with(r#","inputSchema":["p","q"]"#), with(r#","inputSchema":["q","p"]"#));
    assert!(ToolList::of(&raw("{}")).is_none());
}

#[test]
fn only_failures_of_a_call_are_told_as_one() {
    let check = |code: i64, expected| {
        let error = RpcError::of(&raw(&json!({ "code": code, "message": "m", "data": 1 }).to_string()));
        assert_eq!(error.is_plain_failure(), expected, "{code}");
    };
    [-32603, -32602, -32000, -32001, -32019, 1, 500, -1].into_iter().for_each(|code| check(code, true));
    [-32700, -32600, -32601, -32020, -32021, -32022, -32042].into_iter().for_each(|code| check(code, false));
}

#[test]
fn both_sides_are_known_by_how_they_introduce_themselves() {
    let greeting = Greeting::of(&raw(
        r#"{"protocolVersion":"2025-06-18","clientInfo":{"name":"codex-mcp-client","version":"1"}}"#,
    ));
    assert_eq!(
        greeting,
        Greeting { version: Some("2025-06-18".into()), client: Some("codex-mcp-client".into()) }
    );
    let each = Greeting::of_request(&raw(
        r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"copilot"}}}"#,
    ));
    assert_eq!(each, Some(Greeting { version: Some("2026-07-28".into()), client: Some("copilot".into()) }));
    assert_eq!(Greeting::of_request(&raw("{}")), None);
    let welcome = Welcome::of(&raw(r#"{"protocolVersion":"2025-06-18","serverInfo":{"name":"s"}}"#));
    assert_eq!(welcome, Welcome { version: Some("2025-06-18".into()), server: Some("s".into()) });
}

#[test]
fn a_name_is_the_same_in_other_signs() {
    let check = |one: &str, other: &str, expected: bool| {
        let (one, other) = (Id::of(one).unwrap(), Id::of(other).unwrap());
        assert_eq!(one == other, expected, "{one} {other}");
        if expected {
            let names = std::collections::HashSet::from([one]);
            assert!(names.contains(&other), "{other}");
        }
    };
    check("1", "1", true);
    check("1", "\"1\"", false);
    check("1", "2", false);
    check("1", "1.0", true);
    check("1e2", "100", true);
    check("0", "-0", true);
    check("-1", "1", false);
    check("9007199254740993", "9007199254740992", true);
    check("123456789012345678901234567890", "1.2345678901234568e+29", true);
    check("18446744073709551615", "1.8446744073709552e19", true);
    check(r#""a/b""#, r#""\u0061\/b""#, true);
    check(r#""a\"b""#, r#""a\u0022b""#, true);
    check(r#""a""#, r#""b""#, false);
    assert_eq!(Id::of(r#""a\"b""#), Some(Id::text("a\"b")));
    assert_eq!(Id::of("\"a\""), Some(Id::text("a")));
}

#[test]
fn a_part_of_a_message_tells_its_name_or_nothing() {
    let check = |begins: &str, expected: Option<&str>| {
        let found = Glimpse::all(begins.as_bytes());
        let named = found.first().and_then(|glimpse| glimpse.id.as_ref());
        assert_eq!(named.map(Id::json), expected, "{begins}");
    };
    check(r#"{"jsonrpc":"2.0","id":5,"result":{"con"#, Some("5"));
    check(r#"{"jsonrpc":"2.0", "id" : "a,b" , "result""#, Some(r#""a,b""#));
    check(r#"{"jsonrpc":"2.0","id":5"#, None);
    check(r#"{"jsonrpc":"2.0","id":"a"#, None);
    check(r#"{"result":{"id":5,"content":["#, None);
    check(r#"{"result":{"a":1},"id":5,"x"#, Some("5"));
    check(r#"{"method":"id","params":{"id":1}"#, None);
    check(r#"[{"id":5,"#, Some("5"));
    check("\"id\":5,", None);
}
