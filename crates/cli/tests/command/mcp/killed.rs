//! A proxy that is killed takes its server along, and what it wrote down by then is whole and true.

use serde_json::{Value, json};

use super::client::{Client, LIMIT, peer, seen_calls, wait_for};
use crate::world::World;

/// The scripted server, whose number is written down.
fn server(pid: &str) -> String {
    format!("echo $$ > {pid}; exec {} --log peer.log --state peer.state", peer())
}

fn started(world: &World, pid: &str) -> Client {
    let mut client = Client::start(world, &["--name", "peer"], &["sh", "-c", &server(pid)]);
    client.introduce("tester");
    client.ask("tools/list", json!({}));
    client
}

fn events(world: &World, named: &str) -> Vec<Value> {
    let all = world.run(&["log", "--json"], "").json_lines();
    all.into_iter().filter(|event| event["event"] == named).collect()
}

fn is_there(world: &World, pid: &str) -> bool {
    let pid = std::fs::read_to_string(world.path(pid)).unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

/// What the record says became of each call of a tool.
fn states(world: &World, tool: &str) -> Vec<String> {
    let calls = world.run(&["export", "--jsonl", "--only", "calls"], "").json_lines();
    let named = format!("mcp__peer__{tool}");
    calls
        .iter()
        .filter(|call| call["tool"] == *named)
        .map(|call| call["state"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_was_answered_is_kept_and_what_was_not_is_called_unfinished() {
    let world = World::empty();
    let mut client = started(&world, "pid");
    for number in 0..60 {
        client.works("echo", json!({ "text": number.to_string() }));
    }
    client.fails("fail", json!({}));
    let under_way = [("slow", json!({ "ms": 60_000, "steps": 1 })), ("mute", json!({}))];
    for (tool, arguments) in &under_way {
        client.send_call(tool, arguments.clone());
        wait_for("the call does not arrive", || seen_calls(&world, tool).len() == 1);
    }
    // It is written behind the calls, but not far behind.
    let written = || (events(&world, "tool:end").len(), events(&world, "tool:start").len());
    wait_for("it is not written down while it runs", || written() == (61, 63));
    client.signal("KILL");
    assert_eq!(client.exit_within(LIMIT), 128 + 9);
    wait_for("the server is still there", || !is_there(&world, "pid"));
    check_sound(&world);
    assert_eq!(states(&world, "echo"), vec!["completed"; 60]);
    assert_eq!(states(&world, "fail"), ["failed"]);
    for (tool, _) in &under_way {
        assert_eq!(states(&world, tool), ["executing"], "{tool}");
    }
    // The next one goes on where nothing was left behind, and says that nobody knows how they ended.
    let mut client = started(&world, "next");
    assert_eq!(client.works("echo", json!({ "text": "again" })), "again");
    assert_eq!(client.end().0, 0);
    assert_eq!(states(&world, "echo"), vec!["completed"; 61]);
    for (tool, _) in &under_way {
        assert_eq!(states(&world, tool), ["sealed"], "{tool}");
    }
    let log = world.run(&["log", "--last", "200"], "");
    let told: Vec<&str> = log.stdout().lines().filter(|line| line.contains("sealed")).collect();
    assert_eq!(told.len(), 2, "{log}");
    assert!(told.iter().all(|line| line.contains("was running: check for side effects")), "{told:?}");
    check_sound(&world);
}

#[test]
fn killed_in_the_middle_of_anything_it_leaves_a_sound_record_and_no_server() {
    let world = World::empty();
    for round in 0..4 {
        let pid = format!("pid{round}");
        let mut client = started(&world, &pid);
        for number in 0..150 {
            client.send_call("echo", json!({ "text": format!("{round} {number}") }));
        }
        // Some are answered, some are under way, and some nobody has read yet.
        for _ in 0..round * 30 + 1 {
            client.hear();
        }
        client.signal("KILL");
        assert_eq!(client.exit_within(LIMIT), 128 + 9);
        wait_for("the server is still there", || !is_there(&world, &pid));
        check_sound(&world);
    }
    let mut client = started(&world, "last");
    assert_eq!(client.works("echo", json!({ "text": "again" })), "again");
    assert_eq!(client.end().0, 0);
    assert_eq!(world.run(&["heartbeat"], "").exit, 0);
    let states = states(&world, "echo");
    assert!(states.iter().all(|state| state == "completed" || state == "sealed"), "{states:?}");
    assert!(states.len() <= 601 && states.last().is_some_and(|last| last == "completed"), "{states:?}");
    check_sound(&world);
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_that_hangs_goes_too() {
    let world = World::empty();
    let mut client = started(&world, "pid");
    client.send_call("hang", json!({}));
    wait_for("the call does not arrive", || seen_calls(&world, "hang").len() == 1);
    client.signal("KILL");
    wait_for("the server is still there", || !is_there(&world, "pid"));
}

#[test]
fn a_server_behind_another_program_goes_too() {
    // As with `npx`, whoever was started only starts another one and waits for it.
    let world = World::empty();
    let server = format!("sh -c 'echo $$ > pid; exec {} --log peer.log'; true", peer());
    let mut client = Client::start(&world, &[], &["sh", "-c", &server]);
    client.introduce("tester");
    client.send_call("mute", json!({}));
    wait_for("the call does not arrive", || seen_calls(&world, "mute").len() == 1);
    client.signal("KILL");
    wait_for("the server is still there", || !is_there(&world, "pid"));
}

/// Fails unless the database is in order.
#[track_caller]
fn check_sound(world: &World) {
    let path = world.path(".local/state/unstuck/timeline.db");
    let database = rusqlite::Connection::open(path).unwrap();
    let said: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(said, "ok");
}
