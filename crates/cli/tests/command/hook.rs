//! The generic door: a payload in, an answer out, and nothing of ours in the agent's way.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::{Said, World, repository};

fn before(key: &str, command: &str) -> Value {
    json!({
        "event": "before", "session": "s", "call_id": key, "tool": "Bash", "input": { "command": command }, "cwd": "/nowhere",
    })
}

fn after(key: &str, command: &str, code: i32, stderr: &str) -> Value {
    let mut payload = before(key, command);
    payload["event"] = json!("after");
    payload["exit_code"] = json!(code);
    payload["stderr"] = json!(stderr);
    payload
}

/// One process for one payload.
#[track_caller]
fn tell(world: &World, payload: &Value) -> Value {
    world.run(&["hook", "generic"], payload.to_string()).json()
}

/// What an answer says, in short.
fn short(answer: &Value) -> String {
    let word = |field: &str| answer[field].as_str().unwrap_or("-").to_owned();
    format!("{} {} {}", word("decision"), word("rung"), word("kept"))
}

const MISSING: &str = "bash: frob: command not found";

#[test]
fn a_failure_is_explained_and_its_repeat_is_refused_by_another_process() {
    let world = World::empty();
    assert_eq!(short(&tell(&world, &before("a", "frob"))), "allow observe recorded");
    let answer = tell(&world, &after("a", "frob", 127, MISSING));
    assert_eq!(short(&answer), "allow note recorded");
    assert_eq!(answer["diagnosis"]["kind"], "command_not_found");
    let answer = tell(&world, &before("b", "frob"));
    assert_eq!(short(&answer), "deny deny recorded");
    assert!(answer["say"].as_str().unwrap().starts_with("Blocked by unstuck: "), "{answer}");
}

#[test]
fn an_agent_that_goes_on_all_the_same_is_halted_with_a_table() {
    let world = World::empty();
    tell(&world, &before("a", "frob"));
    tell(&world, &after("a", "frob", 127, MISSING));
    let answers: Vec<String> = (0..6)
        .map(|number| tell(&world, &before(&format!("b{number}"), "frob"))["decision"].to_string())
        .collect();
    assert!(answers.contains(&"\"halt\"".to_owned()), "{answers:?}");
    let halted = tell(&world, &before("z", "frob"));
    let table = halted["table"].as_str().unwrap();
    assert!(table.contains("frob: command not found⟧\nAttempt: `frob`"), "{halted}");
}

#[test]
fn several_payloads_of_one_process_are_answered_in_turn() {
    let world = World::empty();
    let lines = format!("{}\n\n{}\n", before("a", "ls"), after("a", "ls", 0, ""));
    let answers = world.run(&["hook", "generic"], lines).json_lines();
    assert_eq!(answers.iter().map(|answer| &answer["event"]).collect::<Vec<_>>(), ["before", "after"]);
}

#[test]
fn a_payload_may_be_laid_out_over_several_lines() {
    let world = World::empty();
    let pretty = serde_json::to_string_pretty(&before("a", "ls")).unwrap();
    assert_eq!(short(&world.run(&["hook", "generic"], pretty).json()), "allow observe recorded");
}

#[test]
fn one_broken_line_costs_one_answer_and_not_the_rest() {
    let world = World::empty();
    let lines = format!("{}\n{{\"event\": \n{}\n", before("a", "ls"), after("a", "ls", 0, ""));
    let answers = world.run(&["hook", "generic"], lines).json_lines();
    let events: Vec<&Value> = answers.iter().map(|answer| &answer["event"]).collect();
    assert_eq!(events, ["before", "unreadable", "after"]);
}

#[test]
fn a_word_about_a_call_that_nobody_knows_is_told_as_a_fault() {
    let world = World::empty();
    let answer = tell(&world, &json!({ "event": "approved", "session": "s", "call_id": "nope" }));
    assert_eq!(answer["fault"], "no call of this session is known by this call_id");
}

#[test]
fn whatever_comes_in_the_agent_goes_on_and_hears_no_error() {
    let cases: [&[u8]; 12] = [
        b"",
        b"\n\n",
        b"{",
        b"not json",
        b"[1,2]",
        b"{}",
        b"{\"event\":\"before\"}",
        b"{\"event\":\"nope\"}",
        b"\xff\xfe\x00",
        b"{\"event\":\"after\",\"tool\":\"x\",\"exit_code\":\"many\"}",
        b"{\"event\":\"before\",\"tool\":7,\"input\":[[[[]]]],\"pid\":-4}",
        b"{\"event\":\"user\",\"at\":99999999999999999999}",
    ];
    for case in cases {
        let world = World::empty();
        let said = world.run(&["hook", "generic"], case);
        assert_eq!((said.stderr(), said.exit), ("", 0), "{:?}", String::from_utf8_lossy(case));
        for answer in said.json_lines() {
            assert_eq!(answer["decision"], "allow", "{answer}");
        }
    }
}

#[test]
fn a_payload_that_cannot_be_read_is_told_to_operations() {
    let world = World::empty();
    let answer = world.run(&["hook", "generic"], "{\"event\":\"before\"}").json();
    assert_eq!(answer["fault"], "tool: is missing");
    let log = world.run(&["log", "--json", "--channel", "monitor"], "");
    assert!(log.stdout().contains("own_fault"), "{log}");
}

#[test]
fn a_door_that_does_not_exist_blocks_nothing() {
    let world = World::empty();
    for args in [
        &["hook"][..],
        &["hook", "nope"],
        &["hook", "generic", "--nonsense"],
        &["--set", "ladder.mode=bogus", "hook", "generic"],
        &["--lang", "xx", "hook", "generic"],
        &["hook", "generic", "--set"],
    ] {
        let said = world.run(args, before("a", "ls").to_string());
        assert_eq!((said.stderr(), said.exit), ("", 0), "{args:?} {said}");
    }
}

#[test]
fn broken_settings_are_left_out_and_told() {
    let world = World::empty().with("config/unstuck/config.toml", "[ladder]\nmode = \"fierce\"\n[hook\n");
    assert_eq!(short(&tell(&world, &before("a", "ls"))), "allow observe recorded");
    let log = world.run(&["--set", "hook.enabled=true", "config", "path"], "");
    assert_eq!(log.exit, 0, "{log}");
    let export = world.with("config/unstuck/config.toml", "").run(&["log", "--json"], "");
    assert!(export.stdout().contains("\"settings\""), "{export}");
}

#[test]
fn a_state_folder_that_cannot_be_used_costs_the_record_and_nothing_else() {
    let world = World::empty().with(".local/state/unstuck", "a file stands here");
    let answer = tell(&world, &after("a", "frob", 127, MISSING));
    assert_eq!(short(&answer), "allow observe lost");
    assert_eq!(answer["diagnosis"]["kind"], "command_not_found");
    assert!(answer["fault"].as_str().unwrap().contains("unstuck"), "{answer}");
}

#[test]
fn nothing_is_recorded_and_nothing_said_where_the_hook_is_switched_off() {
    let world = World::empty().with("config/unstuck/config.toml", "[hook]\nenabled = false\n");
    let said = world.run(&["hook", "generic"], before("a", "ls").to_string());
    assert_eq!(said, Said { stdout: vec![], stderr: vec![], exit: 0 });
    assert!(!world.path(".local/state/unstuck").exists());
}

#[test]
fn a_setting_of_one_run_counts_wherever_it_stands() {
    for args in [
        ["--set", "hook.enabled=false", "hook", "generic"],
        ["hook", "generic", "--set", "hook.enabled=false"],
    ] {
        let said = World::empty().run(&args, before("a", "ls").to_string());
        assert_eq!(said, Said { stdout: vec![], stderr: vec![], exit: 0 }, "{args:?}");
    }
}

#[test]
fn an_observer_records_what_it_would_have_said() {
    let world = World::empty().with("config/unstuck/config.toml", "[ladder]\nmode = \"shadow\"\n");
    tell(&world, &after("a", "frob", 127, MISSING));
    let answer = tell(&world, &before("b", "frob"));
    assert_eq!(short(&answer), "allow deny recorded");
    assert_eq!(answer["say"], Value::Null);
}

#[test]
fn an_adviser_speaks_and_refuses_nothing() {
    let world = World::empty().with("config/unstuck/config.toml", "[ladder]\nmode = \"advise\"\n");
    tell(&world, &after("a", "frob", 127, MISSING));
    let answer = tell(&world, &before("b", "frob"));
    assert_eq!(short(&answer), "allow deny recorded");
    assert!(answer["say"].is_string(), "{answer}");
}

#[test]
fn whoever_would_send_a_call_again_is_told_when_and_how_often() {
    let world = World::empty();
    let ask = |key: &str| {
        let mut payload =
            after(key, "curl https://x.example", 6, "curl: (6) Could not resolve host: x.example");
        payload["can_retry"] = json!(true);
        tell(&world, &payload)["retry"].clone()
    };
    let first = ask("a");
    assert_eq!(
        (&first["again"], &first["attempt"], &first["of"]),
        (&json!(true), &json!(2), &json!(3)),
        "{first}"
    );
    assert!((3000..=4000).contains(&first["wait_ms"].as_u64().unwrap()), "{first}");
    ask("b");
    let last = ask("c");
    assert_eq!((&last["again"], &last["why"]), (&json!(false), &json!("tries_used")), "{last}");
    let log = world.run(&["log", "--json"], "");
    assert!(log.stdout().contains("attempt 2 of 3, waiting 3"), "{log}");
}

#[test]
fn hostile_names_make_no_path_and_reach_no_terminal_raw() {
    let world = World::empty();
    let hostile = "../../etc/\u{1b}[2J\u{202e}\u{0}x\r\n";
    let mut payload = after(hostile, "frob", 127, "\u{1b}]0;owned\u{7}bash: frob: command not found\u{200b}");
    for field in ["session", "agent", "tool", "cwd"] {
        payload[field] = json!(hostile);
    }
    let answer = tell(&world, &payload);
    assert_eq!(answer["kept"], "recorded", "{answer}");
    let files: Vec<_> = fs::read_dir(world.path(".local/state/unstuck")).unwrap().flatten().collect();
    assert!(files.iter().all(|file| file.file_name().to_string_lossy().is_ascii()), "{files:?}");
    for args in [&["log"][..], &["log", "--json"], &["show", "1"], &["problems"], &["stats", "--by", "tool"]]
    {
        let said = world.run(args, "");
        assert_eq!(said.exit, 0, "{said}");
        let raw = |sign: char| sign.is_control() && sign != '\n' || matches!(sign, '\u{200b}' | '\u{202e}');
        assert!(!said.stdout().contains(raw), "{args:?} {:?}", said.stdout());
    }
}

#[test]
fn a_huge_output_is_stored_bounded() {
    let world = World::empty();
    let mut payload = after("a", "cat big", 1, "");
    payload["stdout"] = json!("x".repeat(10_000_000));
    assert_eq!(tell(&world, &payload)["kept"], "recorded");
    let size = fs::metadata(world.path(".local/state/unstuck/timeline.db")).unwrap().len()
        + fs::metadata(world.path(".local/state/unstuck/timeline.db-wal")).unwrap().len();
    assert!(size < 600_000, "{size}");
}

#[test]
fn ten_failures_at_once_are_ten() {
    let world = World::empty();
    let children: Vec<_> = (0..10)
        .map(|number| {
            let mut child = world.command(&["hook", "generic"]).stdout(Stdio::null()).spawn().unwrap();
            let payload = after(&format!("c{number}"), "frob", 127, MISSING).to_string();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
            child
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let stats = world.run(&["stats", "--json"], "");
    assert!(stats.stdout().contains("\"failed\":10"), "{stats}");
}

#[test]
fn a_recorded_run_is_judged_alike_whether_its_standing_is_stored_or_not() {
    let world = World::empty();
    let calls = repository("traces/scenarios/calls.jsonl");
    let decided = world.run(&["replay", "--record", "--jsonl", calls.to_str().unwrap()], "");
    assert!(decided.stderr().starts_with("recorded: "), "{decided}");
    let heard = |word: &Value| match word.as_str().unwrap() {
        "allow" | "none" => "observe".to_owned(),
        word => word.to_owned(),
    };
    let expected: Vec<(String, String, String, String)> = decided
        .stdout()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| {
            let trace = line["trace"].as_str().unwrap().to_owned();
            (trace, format!("#{}", line["i"]), heard(&line["before"]), heard(&line["after"]))
        })
        .collect();
    let stored: Vec<Value> =
        world.run(&["export", "--jsonl", "--only", "calls"], "").json_lines().into_iter().collect();
    let text = |line: &Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
    let mut found: Vec<(String, String, String, String)> = stored
        .iter()
        .filter(|line| line["type"] == "call")
        .map(|line| {
            (
                text(line, "session"),
                text(line, "call_id"),
                text(line, "rung_before"),
                text(line, "rung_after"),
            )
        })
        .collect();
    let mut expected = expected;
    expected.sort();
    found.sort();
    assert_eq!(found.len(), expected.len());
    assert_eq!(found, expected);
    // Recorded once more, nothing is there twice.
    world.run(&["replay", "--record", "--jsonl", calls.to_str().unwrap()], "");
    let again = world.run(&["export", "--jsonl", "--only", "calls"], "").json_lines();
    assert_eq!(again.len(), stored.len());
}

#[test]
fn a_store_that_fails_hooks_in_a_row_is_left_alone_for_a_while_and_nothing_is_lost() {
    let world = World::empty().with("src/a", "x");
    let args = ["--set", "store.wait-before=300ms", "--set", "store.wait-after=300ms", "hook", "generic"];
    let cwd = world.path("");
    let tell = |key: &str, command: &str| {
        let begun = std::time::Instant::now();
        let mut payload = before(key, command);
        payload["cwd"] = json!(cwd);
        (world.run(&args, payload.to_string()).json(), begun.elapsed())
    };
    tell("first", "ls");
    let database = rusqlite::Connection::open(world.path(".local/state/unstuck/timeline.db")).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    for number in 0..3 {
        let (answer, took) = tell(&format!("held-{number}"), "ls");
        assert_eq!(answer["kept"], "spooled", "{answer}");
        assert!(took.as_millis() >= 300, "{took:?}");
    }
    // It does not wait: with the store held for good, only a rest explains an answer in less than the patience.
    let fastest = (0..5).map(|number| tell(&format!("rests-{number}"), "ls").1).min().unwrap();
    assert!(fastest.as_millis() < 300, "{fastest:?}");
    // A risky call is protected all the same.
    let (answer, _) = tell("risky", "rm -rf src");
    assert_eq!((&answer["decision"], &answer["kept"]), (&json!("allow"), &json!("spooled")), "{answer}");
    let said = world.run(&["snapshots"], "");
    assert!(said.stdout().contains("rm -rf src"), "{said}");
    database.execute_batch("ROLLBACK").unwrap();
    // Still resting, although nobody holds it any more; doctor says so.
    assert_eq!(tell("later", "ls").0["kept"], "spooled");
    let doctor = world.run(&["doctor"], "");
    assert!(doctor.exit == 6 && doctor.stdout().contains("hooks leave the store alone for"), "{doctor}");
    assert_eq!(world.run(&["heartbeat"], "").exit, 0);
    assert_eq!(tell("after", "ls").0["kept"], "recorded");
    let log = world.run(&["log"], "");
    assert_eq!(log.stdout().matches("▶ start").count(), 12, "{log}");
}

#[test]
fn a_rest_ends_by_itself_with_the_first_hook_that_reaches_the_store() {
    let world = World::empty();
    tell(&world, &before("a", "ls"));
    let rests = world.path(".local/state/unstuck/store-rests");
    fs::write(&rests, "7 1000").unwrap();
    assert_eq!(tell(&world, &before("b", "ls"))["kept"], "recorded");
    assert!(!rests.exists());
}
