//! `unstuck log`: the timeline from any bookmark on, without a gap and without a repetition.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unstuck_judge::ladder::Round;
use unstuck_store::{Entry, Hears, ServerNote, ServerWhat, Source, Who};
use unstuck_wire::clean::{Clean, Cleaner};

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
            .complains(1, &["nothing is recorded in ", "hint: `unstuck install` connects an agent"]);
    }
}

#[test]
fn the_log_tells_each_event_in_a_line_that_begins_with_its_bookmark() {
    // Where there is an npm after all, it is said where.
    let said = morning().run(&["log"], "").to_string();
    let said = said.replace("`npm` is not on PATH,…", "Check how the program…");
    insta::assert_snapshot!(said, @r#"
    --- stdout
         1  2026-01-21 15:30:16Z  alpha-one       #1 ▶ start     true
         2  2026-01-21 15:30:16Z  alpha-one       #1 ✓ end       completed in 100 ms
         3  2026-01-21 15:30:21Z  alpha-two       #2 ▶ start     frob ci
         4  2026-01-21 15:30:21Z  alpha-two       #2 ✗ failed    frob ci: command_not_found: bash: frob: command not found
         5  2026-01-21 15:30:21Z  alpha-two       #2 ✗ error     error: command_not_found: bash: frob: command not found
         6  2026-01-21 15:30:21Z  alpha-two       #2 ★ new       command_not_found (e1:cxzc2kxcle): bash: frob: command not found
         7  2026-01-21 15:30:21Z  alpha-two       #2 ✗ end       failed in 100 ms
         8  2026-01-21 15:30:21Z  alpha-two       #2 ! advice    note: This failed, and nothing in the result suggests that the same call would end differently: output, quoted as data: ⟦bash: frob: command not found⟧ (shell.command-not-found). Check how the program…
         9  2026-01-21 15:30:25Z  alpha-two       #3 ⊘ denied    frob ci: Blocked by unstuck: the program does not exist here: ⟦bash: frob: command not found⟧. Looked just now: there is still no `frob` on PATH. It may run again once that changes; other calls are no…
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
    check(
        &["log", "--session", "alpha"],
        2,
        &["alpha may mean one of several:", "alpha-one", "alpha-two", "hint: write more of it\n"],
    );
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
    let args = ["log", "--follow", "--json", "--since", "0"];
    let mut child = world.command(&args).stdin(Stdio::null()).spawn().unwrap();
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
fn of_many_sessions_that_may_be_meant_ten_are_named_and_the_others_counted() {
    let world = World::empty();
    let lines: String =
        (0..13).map(|number| Work { session: &format!("agent/{number}"), ..FINE }.lines()).collect();
    hook(&world, &lines);
    let said = world.run(&["log", "--session", "agent/"], "");
    said.complains(2, &["agent/ may mean one of several:", "\n  and 3 more\nhint: write more of it\n"]);
    assert_eq!(said.stderr().matches("agent/").count(), 11, "{said}");
}

#[test]
fn a_bookmark_that_no_event_has_reached_is_told() {
    let world = morning();
    for args in [&["log", "--since", "500"][..], &["log", "--json", "--since", "18446744073709551615"]] {
        let said = world.run(args, "");
        assert_eq!((said.stdout(), said.exit), ("", 0), "{said}");
        assert!(said.stderr().contains("lies beyond the newest event, 9"), "{said}");
    }
    let said = world.run(&["log", "--since", "500"], "");
    assert!(said.stderr().ends_with("no events; resume with --since 9\n"), "{said}");
    let said = world.run(&["log", "--since", "500", "--lang", "zh"], "");
    assert!(said.stderr().contains("超出了最新的事件 9"), "{said}");
    // Where somebody has seen everything, nothing is wrong.
    assert_eq!(world.run(&["log", "--json", "--since", "9"], "").stderr(), "");
}

#[test]
fn a_session_is_found_by_the_name_its_host_gives_it_however_it_is_stored() {
    let long = "s".repeat(300);
    for name in [&*long, "night\u{202e}shift", "two\nlines"] {
        let world = World::empty();
        work(&world, &[Work { session: name, ..FINE }, Work { session: "other", ..FINE }]);
        let stored = world.run(&["export", "--jsonl", "--only", "sessions"], "").json_lines();
        assert!(stored.iter().all(|session| session["name"] != name), "{name:?} was stored as it is");
        assert_eq!(places(&world, &["--session", name]), [1, 2], "{name:?}");
        assert_eq!(world.run(&["stats", "--json", "--session", name], "").json()["calls"], 1);
        let exported = world.run(&["export", "--jsonl", "--only", "calls", "--session", name], "");
        assert_eq!(exported.json_lines().len(), 2, "{name:?}");
        let purged = world.run(&["purge", "--json", "--session", name], "").json();
        assert_eq!(purged["removed"]["calls"], 1, "{name:?}");
        assert_eq!(world.run(&["stats", "--json"], "").json()["calls"], 1);
    }
}

/// Follows, and returns the bookmarks of the first so many lines.
#[track_caller]
fn followed(world: &World, args: &[&str], lines: usize) -> Vec<u64> {
    let args = [&["log", "--follow", "--json"], args].concat();
    let mut child = world.command(&args).stdin(Stdio::null()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let seq = |line: String| serde_json::from_str::<Value>(&line).unwrap()["seq"].as_u64().unwrap();
    let seen = output.lines().take(lines).map(|line| seq(line.unwrap())).collect();
    ends_soon(child);
    seen
}

#[test]
fn a_follower_begins_with_the_last_ten_events_unless_asked_for_others() {
    let world = World::empty();
    hook(
        &world,
        &(0..20).map(|number| Work { key: &format!("c{number}"), ..FINE }.lines()).collect::<String>(),
    );
    let all = places(&world, &[]);
    assert!(all.len() >= 40, "{all:?}");
    assert_eq!(followed(&world, &[], 10), all[all.len() - 10..]);
    assert_eq!(followed(&world, &["--last", "3"], 3), all[all.len() - 3..]);
    assert_eq!(followed(&world, &["--since", "0"], all.len()), all);
}

#[test]
fn a_follower_waits_for_a_session_that_has_not_begun() {
    let world = morning();
    let args = ["log", "--follow", "--json", "--session", "alpha-three"];
    let mut child = world.command(&args).stdin(Stdio::null()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    let waits = "waiting for a session called alpha-three to begin; did you mean alpha-one?";
    assert_eq!(told.next().unwrap().unwrap(), waits);
    work(&world, &[FINE, Work { session: "alpha-three", command: "echo hello", ..FINE }, FINE]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let (first, second) = (next(), next());
    assert_eq!((&first["session"], &first["body"]["label"]), (&"alpha-three".into(), &"echo hello".into()));
    assert_eq!((&second["session"], &second["event"]), (&"alpha-three".into(), &"tool:end".into()));
    work(&world, &[FINE, Work { session: "alpha-three", command: "echo bye", ..FINE }]);
    assert_eq!(next()["body"]["label"], "echo bye");
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

#[test]
fn one_server_is_shown_with_its_calls_and_all_that_it_said() {
    let world = morning();
    for (key, tool) in [("m1", "mcp__files__read"), ("m2", "mcp__web__read")] {
        let mut payload = json!({ "event": "before", "session": "alpha-one", "call_id": key, "tool": tool,
            "input": { "path": "a" }, "at": MORNING + 20_000 });
        assert_eq!(hook(&world, &payload.to_string()).json()["kept"], "recorded");
        payload["event"] = json!("after");
        payload["ok"] = json!(true);
        payload["duration_ms"] = json!(100);
        assert_eq!(hook(&world, &payload.to_string()).json()["kept"], "recorded");
    }
    let cleaner = Cleaner::new(None, []);
    let who = Who {
        host: Clean::from("mcp"),
        hook: Clean::default(),
        source: Source::Ran,
        session: Clean::from("alpha-one"),
        agent: Clean::from("main"),
        cwd: Clean::default(),
        place: Clean::default(),
        owner: Clean::default(),
        hears: Hears::Nothing,
        round: Round::Unsaid,
        at: MORNING + 30_000,
    };
    let note = |server, what| Entry::Server(ServerNote::new(&cleaner, who.clone(), server, what));
    let exited =
        ServerWhat::exited(&cleaner, "ended with exit code 3", Some(3), b"at line 7\nTypeError: x\n");
    unstuck_store::leave_word(
        &world.path(".local/state/unstuck"),
        MORNING,
        &[
            note("files", ServerWhat::started(&cleaner, Some(7), "npx files")),
            note("web", ServerWhat::Recovered),
            note("files", exited),
        ],
    );
    insta::assert_snapshot!(world.run(&["log", "--server", "files"], ""), @r#"
    --- stdout
        10  2026-01-21 15:30:36Z  alpha-one       #4 ▶ start     mcp__files__read a
        11  2026-01-21 15:30:36Z  alpha-one       #4 ✓ end       completed in 100 ms
        14  2026-01-21 15:30:46Z  alpha-one       ⏵ server    files: started as process 7: npx files
        16  2026-01-21 15:30:46Z  alpha-one       ⏹ server    files: ended with exit code 3; it last said: TypeError: x
            │ at line 7
            │ TypeError: x
    --- stderr
    resume with --since 16
    --- exit 0
    "#);
    let kinds = |args: &[&str]| -> Vec<String> {
        let all = world.run(&[&["log", "--json"], args].concat(), "").json_lines();
        all.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&["--server", "web"]), ["tool:start", "tool:end", "server:recovered"]);
    assert_eq!(kinds(&["--server", "files", "--channel", "monitor"]), ["server:started", "server:exited"]);
    assert_eq!(kinds(&["--server", "nobody"]), [""; 0]);
    let chinese = world.run(&["log", "--server", "files", "--lang", "zh"], "");
    assert!(
        chinese.stdout().contains("⏹ 服务器    files：ended with exit code 3；最后的输出：TypeError: x"),
        "{chinese}"
    );
    let check = |args: &[&str], expected: &str| {
        let said = world.run(&[&["log", "--server"], args].concat(), "");
        assert_eq!((said.exit, said.stdout(), said.stderr()), (0, "", expected), "{args:?}");
    };
    check(
        &["flies"],
        "no server called flies was ever heard of; did you mean files?\nno events; resume with --since 16\n",
    );
    check(&["qq"], "no server called qq was ever heard of\nno events; resume with --since 16\n");
    check(
        &["flies", "--lang", "zh"],
        "从未见过名为 flies 的服务器；您指的是 files 吗？\n没有事件；用 --since 16 继续\n",
    );
    // One that is known has nothing to show here, which is no slip of the pen.
    check(&["files", "--since", "16"], "no events; resume with --since 16\n");
}
