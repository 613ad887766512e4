//! `unstuck export`: everything that is recorded, for other programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;

use crate::kept::failure;
use crate::world::{World, repository};

/// How many lines there are of each type, and the bookmark.
fn counted(lines: &[Value]) -> (String, u64) {
    let count = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    let kinds = ["session", "call", "event", "problem"].map(|kind| format!("{} {kind}", count(kind)));
    let last = lines.last().unwrap();
    assert_eq!(last["type"], "bookmark");
    (kinds.join(", "), last["bookmark"].as_u64().unwrap())
}

fn export(world: &World, args: &[&str]) -> Vec<Value> {
    world.run(&[&["export", "--jsonl"], args].concat(), "").json_lines()
}

#[test]
fn everything_is_there_and_the_bookmark_goes_on_from_it() {
    let world = World::with_failures();
    let (all, bookmark) = counted(&export(&world, &[]));
    assert!(all.starts_with("1 session, 2 call, ") && all.ends_with(" event, 2 problem"), "{all}");
    let since = bookmark.to_string();
    assert_eq!(
        counted(&export(&world, &["--since", &since])),
        ("0 session, 0 call, 0 event, 0 problem".to_owned(), bookmark)
    );
    world.record(&failure("two", "c3", "npm ci", "npm error code ENOENT"));
    let later = export(&world, &["--since", &since]);
    let (some, next) = counted(&later);
    assert!(some.starts_with("1 session, 1 call, ") && next > bookmark, "{some}");
    let seqs: Vec<u64> = later.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert_eq!(seqs, (bookmark + 1..=next).collect::<Vec<_>>());
}

#[test]
fn a_part_can_be_asked_for() {
    let world = World::with_failures();
    world.record(&failure("two", "c3", "make", "make: *** No rule to make target"));
    let check =
        |args: &[&str], expected: &str| assert_eq!(counted(&export(&world, args)).0, expected, "{args:?}");
    check(&["--only", "calls"], "0 session, 3 call, 0 event, 0 problem");
    check(&["--only", "calls,sessions", "--session", "two"], "1 session, 1 call, 0 event, 0 problem");
    check(&["--only", "problems", "--session", "one"], "0 session, 0 call, 0 event, 2 problem");
    check(&["--only", "calls", "--since", "1h"], "0 session, 3 call, 0 event, 0 problem");
    check(&["--only", "calls", "--since", "2100-01-01"], "0 session, 0 call, 0 event, 0 problem");
    let call = &export(&world, &["--only", "calls", "--session", "two"])[0];
    assert_eq!(
        (&call["session"], &call["call_id"], &call["state"], &call["code"], &call["took_ms"]),
        (&"two".into(), &"c3".into(), &"failed".into(), &1.into(), &900.into())
    );
    assert!(call["verdict"].is_object() && call["life"].is_array(), "{call}");
    assert!(call["ended_at"].as_str().unwrap().ends_with('Z') && call["ended_at_ms"].is_u64());
}

#[test]
fn a_thing_looks_the_same_wherever_it_is_printed() {
    let world = World::with_failures();
    let exported = export(&world, &[]);
    let first = |kind: &str| exported.iter().find(|line| line["type"] == kind).unwrap();
    let shown = |what: &Value, beside: &[&str]| {
        let what = what.as_str().map_or(what.to_string(), str::to_owned);
        let mut shown = world.run(&["show", "--json", &what], "").json();
        beside.iter().for_each(|key| assert!(shown.as_object_mut().unwrap().remove(*key).is_some(), "{key}"));
        shown
    };
    let (call, problem) = (first("call"), first("problem"));
    assert_eq!(&shown(&call["call"], &["attempts", "events", "snapshot"]), call);
    let beside = ["state", "trend", "sessions", "calls", "remedies"];
    assert_eq!(&shown(&problem["cause"], &beside), problem);
    assert_eq!(&world.run(&["log", "--json"], "").json_lines()[0], first("event"));
}

#[test]
fn a_recorded_run_comes_out_whole() {
    let world = World::empty();
    let traces = repository("traces/scenarios/calls.jsonl");
    let recorded = world.run(&["replay", "--record", traces.to_str().unwrap()], "");
    assert_eq!(recorded.exit, 0, "{recorded}");
    let calls = export(&world, &["--only", "calls"]).len() - 1;
    assert_eq!(calls, fs::read_to_string(traces).unwrap().lines().count());
    // What was recorded just now is not swept away for its age, however long ago it happened.
    world.run(&["heartbeat"], "");
    world.run(&["gc"], "");
    assert_eq!(export(&world, &["--only", "calls"]).len() - 1, calls);
}

#[test]
fn a_reader_that_has_seen_enough_is_fine() {
    let world = World::with_failures();
    let mut child = world.command(&["export", "--jsonl"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let said = child.wait_with_output().unwrap();
    assert_eq!((said.status.code(), said.stderr), (Some(0), Vec::new()));
}

#[test]
fn the_failures_of_a_session_are_written_where_other_tools_look() {
    let world = World::empty();
    let session = "../../evil\u{1b}[31m/名";
    for id in ["c1", "c2"] {
        world.record(&failure(session, id, "npm ci", "npm error code ENOENT"));
    }
    let name = export(&world, &["--only", "sessions"])[0]["name"].as_str().unwrap().to_owned();
    let said = world.run(&["export", "--tool-errors", &name], "");
    let path = said.stdout().trim_end();
    let folder = world.path(".local/state/unstuck/sessions");
    assert!(path.starts_with(folder.to_str().unwrap()) && path.ends_with("/tool-errors.json"), "{said}");
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    let entries: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(entries.as_array().unwrap().len(), 1);
    let entry = &entries[0];
    assert_eq!((&entry["tool_name"], &entry["count"]), (&"Bash".into(), &2.into()));
    assert!(entry["error"].as_str().unwrap().contains("ENOENT") && entry["input_hash"].is_string());
    assert!(entry["first_at"].as_str() <= entry["last_at"].as_str());
}

#[test]
fn a_setting_keeps_that_file_current() {
    let world = World::empty().with("config/unstuck/config.toml", "[store]\ntool-errors = true\n");
    let file = world.path(".local/state/unstuck/sessions/one/tool-errors.json");
    for (id, count) in [("c1", 1), ("c2", 2)] {
        world.record(&failure("one", id, "npm ci", "npm error code ENOENT"));
        let entries: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(entries[0]["count"], count);
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let world = World::with_failures();
    world.run(&["export"], "").complains(2, &["--jsonl", "--tool-errors"]);
    world.run(&["export", "--jsonl", "--since", "soon"], "").complains(2, &["30d", "a bookmark is a number"]);
    world.run(&["export", "--jsonl", "--only", "secrets"], "").complains(2, &["calls"]);
    world
        .run(&["export", "--jsonl", "--session", "onne"], "")
        .complains(1, &["no session is called onne", "did you mean one?"]);
    World::empty().run(&["export", "--jsonl"], "").complains(1, &["nothing is recorded in"]);
}
