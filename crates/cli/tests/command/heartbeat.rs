//! `unstuck heartbeat`: all that should be done now and then.

use std::process::Command;

use serde_json::json;

use crate::kept::failure;
use crate::world::{Said, World};

#[test]
fn what_waits_in_the_spool_is_taken_in_once() {
    let world = World::with_failures();
    let mut hook = world.command(&["hook", "generic"]);
    hook.env("UNSTUCK_STORE_FILESYSTEM", "network");
    let mut child = hook.spawn().unwrap();
    let payload = failure("two", "c9", "make", "make: *** No rule to make target");
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
    let said = Said::by(child);
    assert!(said.stdout().contains("\"kept\":\"spooled\""), "{said}");
    assert_eq!(world.run(&["heartbeat"], "").stdout(), "took in 2 waiting entries\n");
    assert_eq!(world.run(&["heartbeat"], "").stdout(), "nothing to do\n");
    let calls = world.run(&["export", "--jsonl", "--only", "calls", "--session", "two"], "").json_lines();
    assert_eq!((calls.len(), &calls[0]["call_id"], &calls[0]["state"]), (2, &"c9".into(), &"failed".into()));
}

#[test]
fn a_call_whose_process_is_gone_is_sealed() {
    let world = World::empty();
    let mut agent = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = agent.id();
    let payload = json!({"event": "before", "session": "s", "call_id": "c1", "tool": "Bash", "pid": std::process::id(),
                         "input": {"command": "sleep 9"}});
    world.record(&payload.to_string());
    assert_eq!(world.run(&["heartbeat"], "").stdout(), "nothing to do\n", "we live");
    let payload = json!({"event": "before", "session": "t", "call_id": "c2", "tool": "Bash", "pid": pid,
                         "input": {"command": "sleep 9"}});
    world.record(&payload.to_string());
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(world.run(&["heartbeat"], "").stdout(), "sealed 1 dead call\n");
    let calls = world.run(&["export", "--jsonl", "--only", "calls", "--session", "t"], "").json_lines();
    assert_eq!(calls[0]["state"], "sealed");
}

#[test]
fn where_nothing_is_recorded_yet_it_says_so_and_makes_nothing() {
    let world = World::empty();
    world.run(&["heartbeat"], "").complains(1, &["nothing is recorded in"]);
    let quiet = world.run(&["heartbeat", "--quiet"], "");
    assert_eq!((quiet.stdout(), quiet.stderr(), quiet.exit), ("", "", 0));
    assert!(!world.path(".local/state/unstuck").exists());
}

#[test]
fn quiet_says_nothing_and_chinese_is_spoken() {
    let world = World::with_failures();
    let quiet = world.run(&["heartbeat", "--quiet"], "");
    assert_eq!((quiet.stdout(), quiet.stderr(), quiet.exit), ("", "", 0));
    assert_eq!(world.run(&["--lang", "zh", "heartbeat"], "").stdout(), "无事可做\n");
}
