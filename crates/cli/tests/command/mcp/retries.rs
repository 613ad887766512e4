//! A call is sent again where that is safe, and only there.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, seen, seen_calls, text, wait_for};
use crate::world::World;

#[test]
fn what_may_be_called_twice_heals_and_the_client_sees_only_that() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    for tool in ["flaky_read", "flaky_idempotent"] {
        let result = client.call(tool, json!({ "key": "a", "times": 1 }));
        assert_eq!(result, json!({ "content": [{ "type": "text", "text": "worked at attempt 2" }] }));
        let calls = seen_calls(&world, tool);
        assert_eq!(calls.len(), 2, "{calls:?}");
        assert_ne!(calls[0]["id"], calls[1]["id"], "each attempt has a name of its own");
        assert_eq!(calls[0]["arguments"], calls[1]["arguments"]);
    }
}

#[test]
fn what_may_not_be_called_twice_is_not() {
    let check = |args: &[&str], tool: &str, expected: usize| {
        let world = World::empty();
        let mut client = Client::ready(&world, args, &[]);
        client.fails(tool, json!({ "times": 99 }));
        assert_eq!(seen_calls(&world, tool).len(), expected, "{args:?} {tool}");
    };
    check(&[], "flaky", 1);
    check(&[], "flaky_destructive", 1);
    check(&["--retries", "0"], "flaky_read", 1);
    check(&["--retries", "1"], "flaky_read", 2);
    check(&["--distrust-hints"], "flaky_read", 1);
    check(&["--distrust-hints"], "flaky_idempotent", 1);
    check(&["--deadline", "1ms"], "flaky_read", 1);
}

#[test]
fn whoever_asked_for_progress_hears_why_it_takes_longer_and_only_forward() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let call = json!({ "name": "flaky_read", "arguments": { "times": 2 }, "_meta": { "progressToken": 77 } });
    let id = client.send("tools/call", call);
    assert_eq!(text(&client.answer(id)["result"], 0), "worked at attempt 3");
    let told: Vec<Value> = client.aside.drain(..).map(|frame| frame["params"].clone()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|params| params["progressToken"] == 77), "{told:?}");
    let (first, second) = (told[0]["progress"].as_f64().unwrap(), told[1]["progress"].as_f64().unwrap());
    assert!(0.0 < first && first < second, "{told:?}");
    let words = told[0]["message"].as_str().unwrap();
    assert!(words.starts_with("retry 1 of ") && words.contains(" s: "), "{words}");
    // Nobody asked, nobody is told.
    client.call("flaky_read", json!({ "key": "b", "times": 1 }));
    assert_eq!(client.aside, Vec::<Value>::new());
}

/// A server that tells how far it is, fails the first time, and begins again.
const STEPWISE: &str = r#"n=0
progress() { printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":%s}}\n' "$1"; }
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *tools/list*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}\n' "$id";;
    *tools/call*) n=$((n+1)); progress 1; progress 2
      if [ $n = 1 ]; then printf '{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"content":[{"type":"text","text":"503 Service Unavailable"}]}}\n' "$id"
      else progress 3; printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id"; fi;;
  esac
done"#;

#[test]
fn progress_goes_only_forward_also_where_the_server_begins_again() {
    let world = World::empty();
    let mut client = Client::start(&world, &[], &["sh", "-c", STEPWISE]);
    client.ask("tools/list", json!({}));
    let id = client.send("tools/call", json!({ "name": "t", "_meta": { "progressToken": "p" } }));
    client.answer(id);
    let told: Vec<f64> =
        client.aside.drain(..).map(|frame| frame["params"]["progress"].as_f64().unwrap()).collect();
    assert!(told.len() >= 4 && told.windows(2).all(|pair| pair[0] < pair[1]), "{told:?}");
    assert_eq!((told[0], told[1], *told.last().unwrap()), (1.0, 2.0, 3.0), "{told:?}");
}

#[test]
fn cancelling_while_waiting_ends_it_at_once_and_nothing_more_is_sent() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let call = json!({ "name": "rate_limited", "arguments": { "times": 9, "seconds": 2 }, "_meta": { "progressToken": 1 } });
    let id = client.send("tools/call", call);
    assert_eq!(client.hear()["method"], "notifications/progress");
    client.say(&cancelled(&json!(id)));
    client.hears_nothing_for(Duration::from_millis(2500));
    assert_eq!(seen_calls(&world, "rate_limited").len(), 1);
    client.works("echo", json!({ "text": "still here" }));
}

#[test]
fn cancelling_reaches_the_server_under_the_name_it_knows() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    // The first attempt.
    let id = client.send_call("slow", json!({ "ms": 20_000, "steps": 400 }));
    wait_for("the call does not arrive", || seen_calls(&world, "slow").len() == 1);
    client.say(&cancelled(&json!(id)));
    wait_for("it does not stop", || seen(&world).iter().any(|line| line["stopped"] == id));
    // One that the server knows by another name, since its own is taken.
    for _ in 0..2 {
        let call = json!({ "name": "slow", "arguments": { "ms": 20_000, "steps": 400 } });
        let call = json!({ "jsonrpc": "2.0", "id": "twin", "method": "tools/call", "params": call });
        client.say(&call.to_string());
    }
    wait_for("the calls do not arrive", || seen_calls(&world, "slow").len() == 3);
    let name = seen_calls(&world, "slow")[2]["id"].clone();
    assert_ne!(name, "twin");
    client.say(&cancelled(&json!("twin")));
    wait_for("it does not stop", || seen(&world).iter().any(|line| line["stopped"] == name));
    // What is over, what nobody knows, and what names nothing.
    let answered = client.send("vendor/anything", json!({}));
    client.answer(answered);
    client.say(&cancelled(&json!(answered)));
    client.say(&cancelled(&json!("never heard of")));
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#);
    let cancels = || -> Vec<Value> {
        let seen = seen(&world).into_iter();
        seen.filter(|line| line["notification"] == "notifications/cancelled").collect()
    };
    wait_for("the server does not hear all of it", || cancels().len() == 5);
    let words = |id: Value| json!({ "requestId": id, "reason": "enough" });
    let expected = [words(json!(id)), words(name), words(json!(answered)), words(json!("never heard of"))];
    let cancels = cancels();
    let heard: Vec<&Value> = cancels.iter().map(|line| &line["params"]).collect();
    assert_eq!(heard, [&expected[0], &expected[1], &expected[2], &expected[3], &Value::Null]);
}

#[test]
fn an_attempt_that_takes_too_long_is_taken_back_and_told_of() {
    let world = World::empty();
    let mut client = Client::ready(&world, &["--timeout", "300ms", "--retries", "1"], &[]);
    let began = Instant::now();
    let envelope = client.fails("mute", json!({}));
    assert_eq!(envelope["kind"], "timeout", "{envelope}");
    assert!(began.elapsed() < Duration::from_secs(20));
    let calls = seen_calls(&world, "mute");
    for call in &calls {
        wait_for("it is not taken back", || {
            let taken = |line: &Value| line["params"]["requestId"] == call["id"];
            seen(&world).iter().any(|line| line["notification"] == "notifications/cancelled" && taken(line))
        });
    }
    client.works("echo", json!({ "text": "still here" }));
}

#[test]
fn agents_behind_tools_are_sent_again_as_often_as_is_wise_and_in_their_session() {
    let check = |args: &[&str], tool: &str, expected: usize| {
        let world = World::empty();
        let mut client = Client::ready(&world, args, &[]);
        let result = client.call(tool, json!({ "PROMPT": "when is low water?", "cd": "/srv" }));
        let calls = seen_calls(&world, tool);
        assert_eq!(calls.len(), expected, "{args:?} {tool}: {result}");
        assert_eq!(result["isError"] == json!(true), expected == 1, "{result}");
        if let [first, second] = &calls[..] {
            let session = format!("{tool}-session-0001");
            assert_eq!(first["arguments"].get("SESSION_ID"), None);
            assert_eq!(
                second["arguments"],
                json!({ "PROMPT": "when is low water?", "cd": "/srv", "SESSION_ID": session })
            );
        }
    };
    check(&[], "codex", 2);
    check(&[], "gemini", 2);
    check(&[], "coder", 1);
    check(&["--agent", "codex=0"], "codex", 1);
    check(&["--agent", "coder=1"], "coder", 2);
    check(&["--retries", "0"], "gemini", 1);
    check(&["--retries", "3"], "coder", 1);
    check(&["--retries", "0", "--agent", "codex=1"], "codex", 2);
}

#[test]
fn arguments_that_have_no_room_for_a_session_are_sent_again_as_they_are() {
    let world = World::empty();
    let mut client = Client::ready(&world, &["--no-check"], &[]);
    for arguments in [json!([]), json!("low water"), json!(7)] {
        client.call("codex", arguments);
    }
    client.works("echo", json!({ "text": "still here" }));
}

fn cancelled(id: &Value) -> String {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "enough" } })
        .to_string()
}
