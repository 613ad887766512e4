//! Calls through the proxy climb the same ladder, are remembered in the same way, and are written down without their secrets.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, LIMIT, at, peer, seen_calls};
use crate::world::World;

const MISSING: &str = "ENOENT: no such file or directory, open '/srv/tide.db'";

#[test]
fn the_same_failing_call_is_hinted_at_and_then_not_sent_any_more() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let first = client.fails("fail", json!({ "text": MISSING }));
    assert!(first["note"].as_str().is_some_and(|note| !note.is_empty()), "{first}");
    assert_eq!(first["kind"], "path_not_found", "{first}");
    let mut refused = 0;
    for _ in 0..4 {
        let told = client.fails("fail", json!({ "text": MISSING }));
        refused += usize::from(told["status"] == "denied");
    }
    assert!(refused >= 2, "{refused}");
    assert_eq!(seen_calls(&world, "fail").len(), 5 - refused, "what is refused does not bother the server");
}

#[test]
fn a_later_process_recalls_what_helped() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    client.fails("flaky", json!({ "key": "a", "times": 1, "text": MISSING }));
    client.works("typed", json!({ "name": "make tide.db", "count": 1 }));
    client.works("flaky", json!({ "key": "a", "times": 1, "text": MISSING }));
    assert_eq!(client.end().0, 0);
    let mut client = Client::ready(&world, &[], &[]);
    let told = client.fails("flaky", json!({ "key": "b", "times": 1, "text": MISSING }));
    assert!(!told.to_string().contains("Remembered"), "nobody knows what the tool does: {told}");
    assert_eq!(client.end().0, 0);
    assert_eq!(world.run(&["lessons", "approve", "L1", "--yes"], "").exit, 0);
    let mut client = Client::ready(&world, &[], &[]);
    let told = client.fails("flaky", json!({ "key": "c", "times": 1, "text": MISSING }));
    let note = told["note"].as_str().unwrap();
    assert!(note.contains("Remembered") && note.contains("typed"), "{told}");
}

#[test]
fn each_call_is_one_record_whatever_became_of_it() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    client.works("echo", json!({ "text": "a" }));
    client.fails("fail", json!({}));
    client.fails("typed", json!({}));
    client.works("flaky_read", json!({ "times": 1 }));
    client.fails("crash", json!({}));
    let id = client.send(
        "tools/call",
        json!({ "name": "slow", "arguments": { "ms": 9000, "steps": 100 }, "_meta": { "progressToken": 1 } }),
    );
    assert_eq!(client.hear()["method"], "notifications/progress");
    client.say(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
            .to_string(),
    );
    assert_eq!(client.end().0, 0);
    let events = world.run(&["log", "--json"], "").json_lines();
    let mut calls: Vec<(i64, String)> = events
        .iter()
        .filter(|event| event["event"] == "tool:start" || event["event"] == "tool:denied")
        .filter(|event| event["body"]["attempt"].as_u64().is_none_or(|attempt| attempt == 1))
        .filter_map(|event| Some((event["call"].as_i64()?, event["body"]["tool"].as_str()?.to_owned())))
        .collect();
    calls.dedup();
    let tools: Vec<&str> = calls.iter().map(|(_, tool)| &**tool).collect();
    for tool in ["echo", "fail", "typed", "flaky_read", "crash", "slow"] {
        let named = format!("mcp__peer__{tool}");
        assert_eq!(tools.iter().filter(|tool| **tool == named).count(), 1, "{tool} in {calls:?}");
    }
    let ends: Vec<&Value> = events.iter().filter(|event| event["event"] == "tool:end").collect();
    // Each attempt has a record of its own.
    assert_eq!(ends.len(), 7, "{ends:?}");
    let stats = world.run(&["stats", "--by", "server"], "");
    assert!(stats.stdout().contains("peer"), "{stats}");
}

#[test]
fn a_secret_of_the_environment_is_kept_nowhere() {
    const SECRET: &str = "zq7-Tide-4242-abcd-9911-wxyz";
    let world = World::empty();
    let (log, peer) = (at(&world, "peer.log"), peer());
    let server = [&*peer, "--log", &log];
    let mut client =
        Client::with_variables(&world, &["--name", "peer"], &server, &[("TIDE_API_TOKEN", SECRET)]);
    client.introduce("tester");
    client.ask("tools/list", json!({}));
    client.works("echo", json!({ "text": SECRET }));
    client.fails("fail", json!({ "text": format!("401 Unauthorized: token {SECRET} was not accepted") }));
    client.fails("rpc_error", json!({ "message": format!("bad key {SECRET}") }));
    client.works("remark", json!({ "text": format!("using {SECRET}") }));
    client.works("noise", json!({ "kind": "log" }));
    client.fails("crash", json!({ "text": format!("fatal: {SECRET}") }));
    client.close();
    assert_eq!(client.exit_within(LIMIT), 0);
    assert!(fs::read_to_string(&log).unwrap().contains(SECRET), "the server itself has it");
    fs::remove_file(&log).unwrap();
    check_folder(&world.path(""), SECRET.as_bytes());
}

/// Fails if any file holds these bytes.
#[track_caller]
pub(super) fn check_folder(folder: &Path, bytes: &[u8]) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => check_folder(&path, bytes),
            false => {
                let held = fs::read(&path).unwrap();
                assert!(!held.windows(bytes.len()).any(|part| part == bytes), "{} holds it", path.display());
            }
        }
    }
}
