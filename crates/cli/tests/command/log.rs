//! `unstuck log`: the timeline from any bookmark on, without a gap and without a repetition.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::agent::{FINE, MISSING, MORNING, Work, hook, work};
use crate::world::{Said, World};

/// A morning of two sessions.
fn morning() -> World {
    let world = World::empty();
    work(
        &world,
        &[
            Work { session: "alpha-one", key: "c1", at: Some(MORNING), ..FINE },
            Work { session: "alpha-two", key: "c1", at: Some(MORNING + 5_000), ..MISSING },
            Work { session: "alpha-two", key: "c2", at: Some(MORNING + 9_000), ..MISSING },
        ],
    );
    world
}

/// The bookmarks of what `log --json` prints.
#[track_caller]
fn places(world: &World, args: &[&str]) -> Vec<u64> {
    let all = world.run(&[&["log", "--json"], args].concat(), "").json_lines();
    all.iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

#[test]
fn every_command_says_that_nothing_is_recorded_yet() {
    for args in [&["log"][..], &["log", "--follow"], &["show", "1"], &["problems"], &["stats"]] {
        World::empty()
            .run(args, "")
            .complains(1, &["nothing is recorded in ", "hint: `unstuck replay --record"]);
    }
}

#[test]
fn the_log_tells_each_event_in_a_line_that_begins_with_its_bookmark() {
    insta::assert_snapshot!(morning().run(&["log"], ""), @r#"
    --- stdout
         1  2026-01-21 15:30:16Z  alpha-one       #1 ▶ start     true
         2  2026-01-21 15:30:16Z  alpha-one       #1 ✓ end       completed in 100 ms
         3  2026-01-21 15:30:21Z  alpha-two       #2 ▶ start     npm ci
         4  2026-01-21 15:30:21Z  alpha-two       #2 ✗ failed    npm ci: command_not_found: bash: npm: command not found
         5  2026-01-21 15:30:21Z  alpha-two       #2 ✗ error     error: command_not_found: bash: npm: command not found
         6  2026-01-21 15:30:21Z  alpha-two       #2 ★ new       command_not_found (e1:2u6jamtmsy): bash: npm: command not found
         7  2026-01-21 15:30:21Z  alpha-two       #2 ✗ end       failed in 100 ms
         8  2026-01-21 15:30:21Z  alpha-two       #2 ! advice    note: This failed, and nothing in the result suggests that the same call would end differently: bash: npm: command not found (shell.command-not-found)
         9  2026-01-21 15:30:25Z  alpha-two       #3 ⊘ denied    npm ci: Blocked by unstuck: Not run: it failed with this cause (count: 1), and nothing relevant has changed since: bash: npm: command not found (shell.command-not-found). It may run again after a chan…
    --- stderr
    resume with --since 9
    --- exit 0
    "#);
}

#[test]
fn the_log_speaks_chinese() {
    let said = morning().run(&["log", "--last", "1", "--lang", "zh"], "");
    assert!(said.stdout().contains("⊘ 拒绝"), "{said}");
    assert!(said.stderr().starts_with("用 --since "), "{said}");
}

#[test]
fn every_bookmark_resumes_right_after_itself() {
    let world = morning();
    let all = places(&world, &[]);
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());
    for bookmark in 0..=all.len() {
        assert_eq!(places(&world, &["--since", &bookmark.to_string()]), all[bookmark..]);
    }
    assert_eq!(places(&world, &["--since", "18446744073709551615"]), [0; 0]);
    let said = world.run(&["log", "--since", "4"], "");
    assert!(said.stderr().ends_with(&format!("resume with --since {}\n", all.len())), "{said}");
}

#[test]
fn the_log_can_be_narrowed() {
    let world = morning();
    let all = places(&world, &[]);
    let of = |args: &[&str]| places(&world, args);
    assert_eq!(of(&["--last", "2"]), all[all.len() - 2..]);
    assert_eq!(of(&["--last", "0"]), [0; 0]);
    assert_eq!(of(&["--last", "3", "--since", &(all.len() - 1).to_string()]), all[all.len() - 1..]);
    assert_eq!(of(&["--session", "alpha-one"]), [1, 2]);
    assert_eq!(of(&["--session", "alpha-t"]), all[2..]);
    let parts = ["progress", "monitor", "control"].map(|channel| of(&["--channel", channel]));
    assert!(!parts[0].is_empty() && !parts[1].is_empty(), "{parts:?}");
    let mut together = parts.concat();
    together.sort_unstable();
    assert_eq!(together, all);
}

#[test]
fn a_session_or_a_channel_that_does_not_exist_is_refused_with_a_hint() {
    let world = morning();
    let check = |args: &[&str], exit, words: &[&str]| world.run(args, "").complains(exit, words);
    check(
        &["log", "--session", "alpha-ome"],
        1,
        &["no session is called alpha-ome", "did you mean alpha-one?"],
    );
    check(&["log", "--session", ""], 1, &["no session is called"]);
    check(&["log", "--session", "alpha"], 2, &["alpha may mean one of several:", "alpha-one", "alpha-two"]);
    check(&["log", "--channel", "telepathy"], 2, &["progress", "monitor", "control"]);
    check(&["log", "--since", "yesterday"], 2, &["invalid"]);
}

#[test]
fn an_event_as_json_holds_its_bookmark_its_time_twice_and_its_body() {
    let world = morning();
    let first = &world.run(&["log", "--json", "--last", "99"], "").json_lines()[0];
    assert_eq!(first["seq"], 1);
    assert_eq!(first["at"], "2026-01-21T15:30:16.000Z");
    assert_eq!(first["at_ms"], MORNING);
    assert_eq!((&first["channel"], &first["event"]), (&Value::from("progress"), &Value::from("tool:start")));
    assert_eq!((&first["session"], &first["call"]), (&Value::from("alpha-one"), &Value::from(1)));
    assert_eq!(first["body"]["label"], "true");
}

#[test]
fn a_follower_sees_everything_once_and_in_order_while_others_write() {
    let world = World::empty();
    work(&world, &[FINE]);
    let mut child = world.command(&["log", "--follow", "--json"]).stdin(Stdio::null()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (writers, calls) = (4, 25);
    let seen = thread::scope(|scope| {
        for writer in 0..writers {
            let world = &world;
            scope.spawn(move || {
                let session = format!("writer-{writer}");
                for number in 0..calls {
                    let key = format!("c{number}");
                    hook(world, &Work { session: &session, key: &key, ..FINE }.lines());
                }
            });
        }
        let ends = |line: &Value| line["event"] == "tool:end";
        let mut seen: Vec<Value> = Vec::new();
        for line in output.lines() {
            seen.push(serde_json::from_str(&line.unwrap()).unwrap());
            if seen.iter().filter(|line| ends(line)).count() == 1 + writers * calls {
                break;
            }
        }
        seen
    });
    // The pipe is closed by now, and nothing more is written: the follower has to notice by itself.
    let said = ends_soon(child);
    assert_eq!((said.stderr(), said.exit), ("", 0), "{said}");
    let places: Vec<u64> = seen.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(places, (1..=places.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_follower_goes_on_with_the_store_that_takes_the_place_of_another() {
    let world = morning();
    let args = ["log", "--follow", "--json", "--session", "alpha-one"];
    let mut child = world.command(&args).stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((next()["seq"].clone(), next()["seq"].clone()), (Value::from(1), Value::from(2)));
    for part in ["timeline.db", "timeline.db-wal", "timeline.db-shm"] {
        let part = world.path(".local/state/unstuck").join(part);
        std::fs::rename(&part, part.with_extension("aside")).unwrap();
    }
    work(&world, &[FINE, Work { session: "alpha-one", command: "echo back", ..FINE }]);
    let event = next();
    assert_eq!((&event["seq"], &event["body"]["label"]), (&Value::from(3), &Value::from("echo back")));
    drop(lines);
    assert_eq!(ends_soon(child).exit, 0);
}

#[test]
fn a_follower_ends_quietly_on_ctrl_c() {
    let world = morning();
    let mut child = world.command(&["log", "--follow"]).stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("     1  2026-01-21 15:30:16Z  alpha-one"));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().all(|line| line.contains("alpha-")), "{rest:?}");
    let said = ends_soon(child);
    assert_eq!((said.stderr(), said.exit), ("", 130), "{said}");
}

/// Waits for a process that should be about to end.
#[track_caller]
fn ends_soon(mut child: std::process::Child) -> Said {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(10) {
            child.kill().unwrap();
            panic!("still running:\n{}", Said::by(child));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Said::by(child)
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let world = World::empty();
    hook(
        &world,
        &(0..400).map(|number| Work { key: &format!("c{number}"), ..FINE }.lines()).collect::<String>(),
    );
    let mut child = world.command(&["log", "--json"]).stdin(Stdio::null()).spawn().unwrap();
    let mut first = String::new();
    BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let said = ends_soon(child);
    assert_eq!((said.stderr(), said.exit), ("", 0), "{said}");
}

#[test]
fn nothing_that_a_terminal_would_obey_is_printed() {
    let world = World::empty();
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}gnp.exe\r\0 command not found\nnext";
    work(&world, &[Work { session: hostile, key: hostile, command: hostile, stderr: hostile, ..MISSING }]);
    let cause = world.run(&["problems", "--json"], "").json()["cause"].as_str().unwrap().to_owned();
    for args in [
        &["log"][..],
        &["show", "1"],
        &["show", &cause],
        &["problems"],
        &["stats"],
        &["stats", "--by", "session"],
    ] {
        let said = world.run(args, "");
        let safe = |sign: char| sign == '\n' || !(sign.is_control() || sign == '\u{202e}');
        assert!(said.exit == 0 && said.stdout().chars().all(safe), "{args:?}\n{:?}", said.stdout());
    }
}
