//! A clock that is wrong for a moment: nothing goes because of it.

use serde_json::json;

use crate::clock::clock;
use crate::kept::failure;
use crate::world::{Said, World};

/// As many seconds ahead as a variable says.
const AHEAD: &str =
    r#"static long ahead(void) { const char *by = getenv("CLOCK_AHEAD"); return by ? atol(by) : 0; }"#;

const DAY: i64 = 24 * 60 * 60;

/// A world in which something was recorded and snapshots were taken, by hand and before as many calls as are kept anyway.
fn world() -> World {
    let world = World::with_failures();
    for number in 0..3 {
        std::fs::write(world.path("file"), format!("content {number}")).unwrap();
        assert_eq!(world.run(&["snapshot", "file"], "").exit, 0);
        let removal = json!({"session_id": "s", "cwd": world.path(""), "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_use_id": format!("t{number}"), "tool_input": {"command": "rm -rf file"}});
        assert_eq!(world.run(&["hook", "claude"], removal.to_string()).exit, 0);
    }
    clock(&world.path(""), AHEAD);
    world
}

fn with_clock(world: &World, ahead: i64, args: &[&str]) -> Said {
    let mut command = world.command(args);
    command.env("LD_PRELOAD", world.path("clock.so")).env("CLOCK_AHEAD", ahead.to_string());
    Said::by(command.stdin(std::process::Stdio::null()).spawn().unwrap())
}

fn count(world: &World, args: &[&str]) -> usize {
    let said = world.run(args, "");
    assert_eq!(said.exit, 0, "{said}");
    said.stdout().lines().count()
}

/// All snapshots, and all that is recorded but what says of itself that it was recorded later.
fn kept(world: &World) -> (Vec<String>, usize, usize) {
    let listed = world.run(&["snapshots", "--json"], "");
    assert_eq!(listed.exit, 0, "{listed}");
    let ids = listed.stdout().split("\"id\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let calls = count(world, &["export", "--jsonl", "--only", "calls"]);
    (ids.map(str::to_owned).collect(), calls, count(world, &["log", "--json"]))
}

/// Checks that commands under a wrong clock take nothing away.
#[track_caller]
fn check(ahead: i64, commands: &[&[&str]]) {
    let world = world();
    let (ids, calls, events) = kept(&world);
    assert!(ids.len() == 6 && calls >= 3 && events > 10, "{ids:?} {calls} {events}");
    for command in commands {
        let said = with_clock(&world, ahead, command);
        assert_eq!(said.exit, 0, "{command:?} {said}");
    }
    let (ids_after, calls_after, events_after) = kept(&world);
    let gone: Vec<_> = ids.iter().filter(|id| !ids_after.contains(id)).collect();
    assert!(gone.is_empty(), "a clock {ahead} s ahead and {commands:?} took {gone:?} of {ids:?}");
    assert!(
        calls_after >= calls && events_after >= events,
        "{calls_after} of {calls}, {events_after} of {events}"
    );
    // The clock is right again.
    world.record(&failure("later", "c9", "npm ci", "npm error code ENOENT"));
    assert_eq!(world.run(&["gc"], "").exit, 0);
    let (ids_at_last, calls_at_last, _) = kept(&world);
    assert!(ids.iter().all(|id| ids_at_last.contains(id)) && calls_at_last > calls, "{ids_at_last:?}");
}

#[test]
fn a_clock_one_day_ahead_for_a_moment_removes_nothing() {
    check(DAY, &[&["snapshot", "file"]]);
    check(DAY + 3600, &[&["gc"], &["heartbeat"]]);
}

#[test]
fn a_clock_eight_years_ahead_empties_nothing() {
    check(8 * 365 * DAY, &[&["gc"]]);
    check(8 * 365 * DAY, &[&["snapshot", "file"], &["heartbeat"], &["gc"]]);
}

#[test]
fn a_clock_that_jumps_back_removes_nothing() {
    check(-DAY, &[&["gc"], &["snapshot", "file"]]);
    check(-8 * 365 * DAY, &[&["snapshot", "file"], &["heartbeat"], &["gc"]]);
}
