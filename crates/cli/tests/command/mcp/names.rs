//! Requests are known by names that each side gives as it likes: one that is used again, or by both sides, means what it meant to
//! whoever used it.

use serde_json::{Value, json};

use super::client::{Client, LIMIT, text, wait_for, with_setting};
use crate::world::World;

/// A server that hears of nothing being taken back. It answers nothing that says `first`, and with what says `second` all of these
/// at once, the late ones before it.
const LATE: &str = r#"sleep "$1"; late=
say() { printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$1" "$2"; }
while IFS= read -r line; do
  printf '%s\n' "$line" >> seen
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *'"method":"notifications'*) continue;;
    *first*) late="$late $id";;
    *second*) for one in $late; do say "$one" late; done; late=; say "$id" mine;;
    *) say "$id" other;;
  esac
done"#;

#[test]
fn a_late_answer_never_answers_another_request_of_the_same_name() {
    let request = |method: &str, words: &str| {
        let params = match method {
            "tools/call" => json!({ "name": "any", "arguments": { "text": words } }),
            _ => json!({ "text": words }),
        };
        json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string()
    };
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    let check = |first: &str, second: &str, times: usize, waits: bool, start: &str| {
        let world = World::empty();
        let mut client = Client::start(&world, &[], &["sh", "-c", LATE, "sh", start]);
        let mut said = String::new();
        for time in 1..=times {
            said += &format!("{}\n", request(first, &format!("first {time}")));
            if waits {
                client.write(std::mem::take(&mut said).into_bytes());
                let is_there = || {
                    let seen = std::fs::read_to_string(world.path("seen")).unwrap_or_default();
                    seen.contains(&format!("first {time}"))
                };
                wait_for("the request does not arrive", is_there);
            }
            said += &format!("{cancelled}\n");
        }
        said += &format!("{}\n", request(second, "second"));
        client.write(said.into_bytes());
        let case = format!("{first} {second} {times} {waits} {start}");
        let heard = client.hear();
        assert_eq!((&heard["id"], text(&heard["result"], 0)), (&json!(7), "mine".to_owned()), "{case}");
        // All that was late has been said by now, and none of it comes.
        let id = client.send("vendor/anything", json!({}));
        assert_eq!(client.answer(id)["result"]["content"][0]["text"], "other", "{case}");
        assert_eq!(client.aside, Vec::<Value>::new(), "{case}");
    };
    for first in ["tools/call", "vendor/anything", "resources/read"] {
        for second in ["tools/call", "vendor/anything"] {
            check(first, second, 1, true, "0");
            check(first, second, 3, true, "0");
            check(first, second, 2, false, "0");
            // Before the server is there at all.
            check(first, second, 2, false, "0.2");
        }
    }
}

/// A server that says what lies ready, and then answers.
const SAYS: &str = r#"while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in *'"method":"notifications'*) continue;; esac
  [ -f "say$id" ] && cat "say$id"
  printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"mine"}]}}\n' "$id"
done"#;

/// Asks request 1, to which the server says something before it answers. Returns what the client hears of that name.
fn heard_of_one(method: &str, said: &str) -> (Value, Vec<Value>) {
    let world = with_setting(World::empty(), "max-message", "1MB").with("say1", format!("{said}\n"));
    let mut client = Client::start(&world, &["--retries", "0"], &["sh", "-c", SAYS]);
    let id = client.send(method, json!({ "name": "any" }));
    assert_eq!(id, 1);
    let answer = client.answer(id);
    let id = client.send("vendor/anything", json!({}));
    client.answer(id);
    (answer, std::mem::take(&mut client.aside))
}

fn long() -> String {
    "x".repeat(1_300_000)
}

#[test]
fn a_request_of_the_server_that_is_too_long_or_too_deep_refuses_nothing_of_the_same_name() {
    let long = long();
    let deep = format!("{}{}", "[".repeat(600), "]".repeat(600));
    let check = |said: &str| {
        for method in ["tools/call", "vendor/anything"] {
            let (answer, aside) = heard_of_one(method, said);
            let case = format!("{method}: {:.80} ... {}", said, &said[said.len() - 40..]);
            assert_eq!(answer["result"]["content"][0]["text"], "mine", "{case}: {answer}");
            assert_eq!(aside, Vec::<Value>::new(), "{case}");
        }
    };
    check(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{{"a":{deep}}}}}"#
    ));
    check(&format!(
        r#"{{"method":"sampling/createMessage","params":{{"a":{deep}}},"id":1,"jsonrpc":"2.0"}}"#
    ));
    check(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{{"a":"{long}"}}}}"#
    ));
    check(&format!(
        r#"{{"jsonrpc":"2.0","method":"sampling/createMessage","id":1,"params":{{"a":"{long}"}}}}"#
    ));
    check(&format!(
        r#"{{"jsonrpc":"2.0","method":"sampling/createMessage","params":{{"a":"{long}"}},"id":1}}"#
    ));
    check(&format!(
        r#"{{"jsonrpc":"2.0","params":{{"a":"{long}"}},"method":"sampling/createMessage","id":1}}"#
    ));
    check(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"params":{{"a":"{long}"}},"method":"sampling/createMessage"}}"#
    ));
    check(&format!(
        r#"{{"jsonrpc":"2.0","params":{{"a":"{long}"}},"id":1,"method":"sampling/createMessage"}}"#
    ));
}

#[test]
fn an_answer_that_is_too_long_is_known_by_its_name_wherever_that_stands() {
    let long = long();
    let check = |said: &str| {
        for method in ["tools/call", "vendor/anything"] {
            let (answer, aside) = heard_of_one(method, said);
            assert!(answer.to_string().contains("longer than 1 MB"), "{method}: {:.80}: {answer}", said);
            assert_eq!(aside, Vec::<Value>::new(), "{method}: {:.80}", said);
        }
    };
    check(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{long}"}}]}}}}"#
    ));
    check(&format!(
        r#"{{"jsonrpc":"2.0","result":{{"content":[{{"type":"text","text":"{long}"}}]}},"id":1}}"#
    ));
    // What it says of itself is not taken for what it is.
    check(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"structuredContent":{{"method":"GET"}},"content":"{long}"}}}}"#
    ));
    check(&format!(
        r#"{{"jsonrpc":"2.0","result":{{"params":{{"method":"GET"}},"content":"{long}"}},"id":1}}"#
    ));
}

#[test]
fn an_answer_of_the_client_that_is_too_long_refuses_nothing_of_the_same_name() {
    let long = long();
    for said in [
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":"{long}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","result":{{"a":"{long}"}},"id":1}}"#),
        format!(r#"{{"jsonrpc":"2.0","error":{{"code":1,"message":"{long}"}},"id":1}}"#),
    ] {
        let world = with_setting(World::empty(), "max-message", "1MB");
        let mut client = Client::of_peer(&world, &[], &[]);
        let id = client.send_call("slow", json!({ "ms": 500, "steps": 1 }));
        assert_eq!(id, 1);
        client.say(&said);
        assert_eq!(client.answer(id)["result"]["content"][0]["text"], "done in 1 steps", "{:.40}", said);
        assert_eq!(client.aside, Vec::<Value>::new(), "{:.40}", said);
        client.close();
        assert_eq!(client.exit_within(LIMIT), 0);
    }
}

#[test]
fn a_batch_that_uses_the_name_of_a_call_takes_no_answer_from_it() {
    let world = World::empty();
    // The call is answered last, and alone.
    let script = r#"while IFS= read -r line; do case "$line" in
        *'"name":"any"'*) id=$(printf '%s' "$line" | sed 's/.*"id":\([^,]*\),.*/\1/');;
        '['*) echo '[{"jsonrpc":"2.0","id":7,"result":{"of":"the batch"}}]'
              echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"of the call\"}]}}";;
        esac; done"#;
    let mut client = Client::start(&world, &[], &["sh", "-c", script]);
    client.say(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"any"}}"#);
    client.say(r#"[{"jsonrpc":"2.0","id":7,"method":"vendor/new"}]"#);
    assert_eq!(client.hear()[0]["result"]["of"], "the batch");
    let answer = client.hear();
    assert_eq!((&answer["id"], text(&answer["result"], 0)), (&json!(7), "of the call".to_owned()));
    assert_eq!(client.end().0, 0);
}
