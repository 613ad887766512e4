//! Arguments that cannot be right are answered at once; whatever may be right is the server's to judge.

use serde_json::{Value, json};

use super::client::{Client, seen_calls};
use crate::world::World;

#[test]
fn clear_violations_are_answered_and_the_server_never_sees_them() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let mut check = |tool: &str, arguments: Value, words: &[&str]| {
        let before = seen_calls(&world, tool).len();
        let envelope = client.fails(tool, arguments.clone());
        assert_eq!(envelope["ok"], json!(false));
        assert_eq!(envelope["errorType"], "validation", "{envelope}");
        let said = envelope.to_string();
        words.iter().for_each(|word| assert!(said.contains(word), "{word} is not in {envelope}"));
        assert_eq!(seen_calls(&world, tool).len(), before, "{arguments}");
    };
    check("typed", json!({ "count": 1 }), &["name"]);
    check("typed", json!({ "name": "a", "count": "many" }), &["count", "whole number"]);
    check("typed", json!({ "nmae": "a", "count": 1 }), &["name", "nmae"]);
    check("typed", json!({ "name": "a", "count": 1, "place": { "prt": "Kiel" } }), &["place", "port"]);
    check("typed", json!({ "name": "a", "count": 1, "tags": [1, 2] }), &["tags"]);
    check("echo", json!({ "text": { "deep": 1 } }), &["text", "an object"]);
    check("ehco", json!({ "text": "a" }), &["echo"]);
    check("fail_strukt", json!({}), &["fail_struct"]);
    check("nothing_like_any_other", json!({}), &["nothing_like_any_other"]);
}

#[test]
fn what_may_be_right_passes_as_it_is() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    for arguments in [
        json!({ "name": "a", "count": 3 }),
        json!({ "name": "a", "count": 3, "unknown": [1] }),
        json!({ "name": "", "count": -1, "tags": [] }),
        json!({ "name": "a", "count": 3.0 }),
    ] {
        assert_eq!(client.works("typed", arguments.clone()), format!("typed {arguments}"));
    }
    client.works("untyped", json!({ "anything": { "at": ["all"] } }));
    let id = client.send("tools/call", json!({ "name": "meta" }));
    assert_eq!(client.answer(id)["result"]["content"][0]["text"], r#"{"name":"meta"}"#);
}

#[test]
fn nothing_is_checked_where_somebody_says_so() {
    let world = World::empty();
    let mut client = Client::ready(&world, &["--no-check"], &[]);
    assert_eq!(client.works("typed", json!({ "count": "many" })), r#"typed {"count":"many"}"#);
    assert_eq!(client.works("echo", json!({})), "");
}

#[test]
fn nothing_is_checked_before_the_list_of_tools_is_whole() {
    let world = World::empty();
    let mut client = Client::of_peer(&world, &[], &["--page", "5"]);
    client.introduce("tester");
    // Nobody has asked for any list yet.
    assert_eq!(client.works("typed", json!({})), "typed {}");
    assert!(client.fails("unheard_of", json!({})).to_string().contains("Unknown tool"));
    let mut cursor = None;
    let mut names = Vec::new();
    loop {
        let params = cursor.as_ref().map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let page = client.ask("tools/list", params);
        names.extend(page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()));
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
        // The first pages alone say nothing about tools on the others.
        client.works("untyped", json!({ "page": names.len() }));
    }
    assert!(names.len() > 30, "{names:?}");
    let before = seen_calls(&world, "typed").len();
    client.fails("typed", json!({}));
    client.fails("echo", json!({}));
    assert_eq!(seen_calls(&world, "typed").len(), before);
}

#[test]
fn a_tool_that_came_later_is_called_before_anybody_lists_it() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    client.works("grow", json!({}));
    assert!(client.aside.iter().any(|frame| frame["method"] == "notifications/tools/list_changed"));
    assert_eq!(client.works("grown_1", json!({})), "grown");
}

#[test]
fn a_schema_that_nobody_can_read_checks_nothing_and_spoils_no_other() {
    let list = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [
        { "name": "odd", "inputSchema": { "type": "object", "properties": { "a": { "pattern": "(" } }, "required": 7 } },
        { "name": "no object", "inputSchema": 5 },
        { "name": "even", "inputSchema": { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] } },
        { "name": "even", "inputSchema": { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] } },
    ] } });
    let world = World::empty().with("list", format!("{list}\n"));
    // It answers the list, and every call with the same words.
    let server = r#"while IFS= read -r line; do case "$line" in
        *tools/list*) cat list;;
        *) id=${line#*'"id":'}; printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"came"}]}}\n' "${id%%,*}";;
    esac; done"#;
    let mut client = Client::start(&world, &[], &["sh", "-c", server]);
    client.ask("tools/list", json!({}));
    assert_eq!(client.works("odd", json!({ "a": 1 })), "came");
    assert_eq!(client.works("no object", json!({ "a": 1 })), "came");
    assert_eq!(client.works("even", json!({ "a": "b" })), "came");
    client.fails("even", json!({}));
}
