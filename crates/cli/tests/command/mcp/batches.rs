//! Several messages in one frame: each request has one answer, whichever side puts them together and whatever becomes of it.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, LIMIT, envelope, text, wait_for};
use crate::world::World;

/// A server that answers every request in a list of its own, among other things, but for tools of these names: `mute` never,
/// `die` by its end.
const IN_LISTS: &str = r#"while IFS= read -r line; do
  printf '%s\n' "$line" >> seen
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *'"method":"notifications'*|*'"name":"mute"'*) continue;;
    *'"name":"die"'*) exit 9;;
    '['*) continue;;
  esac
  printf '[5,{"jsonrpc":"2.0","method":"notifications/tide"},{"jsonrpc":"2.0","id":"nobody","result":{}},[],{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"in a list"}],"capabilities":{}}}]\n' "$id"
done"#;

#[test]
fn what_a_server_answers_in_a_list_comes_alone_to_a_client_that_asked_alone() {
    let world = World::empty();
    let mut client = Client::start(&world, &["--timeout", "1s", "--retries", "0"], &["sh", "-c", IN_LISTS]);
    client.introduce("tester");
    assert_eq!(client.works("any", json!({})), "in a list");
    assert_eq!(client.ask("vendor/new", json!({}))["content"][0]["text"], "in a list");
    let told = client.aside.drain(..).all(|frame| frame["method"] == "notifications/tide");
    assert!(told, "only what it tells comes beside");
    // And one that does not come is missed.
    assert_eq!(client.fails("mute", json!({}))["kind"], "timeout");
    assert_eq!(client.fails("die", json!({}))["ok"], json!(false));
    assert_eq!(client.works("any", json!({})), "in a list");
}

#[test]
fn a_failure_in_a_list_is_explained_like_any_other() {
    let world = World::empty();
    let script = IN_LISTS.replace(r#""capabilities":{}"#, r#""capabilities":{},"isError":true"#);
    let mut client = Client::start(&world, &[], &["sh", "-c", &script]);
    client.introduce("tester");
    let result = client.call("any", json!({}));
    assert_eq!(text(&result, 0), "in a list");
    envelope(&result);
}

/// Requests in a list, the names of all that have to be answered, and what is said on the same line.
#[track_caller]
fn check(script: &str, args: &[&str], said: &str, expected: &[&str]) {
    let world = World::empty();
    let mut client = Client::start(&world, args, &["sh", "-c", script]);
    client.introduce("tester");
    client.say(said);
    let mut names: Vec<String> = Vec::new();
    while names.len() < expected.len() {
        match client.hear() {
            Value::Array(parts) => names.extend(parts.iter().map(|part| part["id"].to_string())),
            frame if frame.get("method").is_some() || frame["id"] == 1 => {}
            frame => names.push(frame["id"].to_string()),
        }
    }
    names.sort();
    assert_eq!(names, expected, "{said}");
    client.hears_nothing_for(Duration::from_millis(100));
    client.ask("vendor/alive", json!({}));
}

#[test]
fn each_request_of_a_list_is_answered_in_time() {
    let late = &["--timeout", "500ms"];
    let call = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"x"}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let tide = r#"{"jsonrpc":"2.0","method":"notifications/tide"}"#;
    check(IN_LISTS, late, &format!("[{call},{tide},{ping}]"), &["\"c\"", "7"]);
    // The same name twice asks for two answers.
    check(IN_LISTS, late, &format!("[{ping},{ping}]"), &["7", "7"]);
    // What is no message among them is no reason to forget the others.
    check(IN_LISTS, late, &format!("[5,null,{ping},[],[{call}],\"x\",{{}}]"), &["7"]);
    // Not even a list, but for somebody who reads between the lines.
    check(IN_LISTS, late, &format!("[{ping},{call}"), &["\"c\"", "7"]);
    check(IN_LISTS, late, r#"[{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":NaN}}]"#, &["7"]);
}

#[test]
fn each_request_of_a_list_is_told_when_the_server_dies() {
    let script = IN_LISTS.replace("'['*) continue;;", "'['*) exit 3;;");
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let call = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"x"}}"#;
    check(&script, &[], &format!("[{ping},4,{call}]"), &["\"c\"", "7"]);
    check(&script, &[], &format!("[{ping},{call}"), &["\"c\"", "7"]);
}

#[test]
fn an_answer_that_comes_too_late_is_not_heard_twice() {
    let world = World::empty();
    let script = IN_LISTS.replace(
        "'['*) continue;;",
        r#"'['*) sleep 1; printf '[{"jsonrpc":"2.0","id":7,"result":{}},{"jsonrpc":"2.0","id":8,"result":{}}]\n'; continue;;"#,
    );
    let mut client = Client::start(&world, &["--timeout", "300ms"], &["sh", "-c", &script]);
    client.introduce("tester");
    client.say(r#"[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]"#);
    let mut told = [client.hear(), client.hear()].map(|frame| {
        assert!(frame["error"]["message"].as_str().unwrap().contains("0.3 s"), "{frame}");
        frame["id"].as_u64().unwrap()
    });
    told.sort();
    assert_eq!(told, [7, 8]);
    wait_for("the server hears that nobody waits", || {
        world.text("seen").matches("notifications/cancelled").count() == 2
    });
    client.ask("vendor/alive", json!({}));
    assert!(client.aside.iter().all(|frame| frame.get("method").is_some()), "{:?}", client.aside);
    client.close();
    assert_eq!(client.exit_within(LIMIT), 0);
}
