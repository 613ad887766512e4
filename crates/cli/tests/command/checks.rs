//! Checks of `unstuck run`: a success that is none is a failure of its own, and what the command prints stays its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{Said, World};

fn run(world: &World, words: &[&str], line: &str) -> Said {
    world.run(&[&["run"], words, &["--", "sh", "-c", line]].concat(), "")
}

/// The JSON that comes last on standard error.
#[track_caller]
fn story(said: &Said) -> Value {
    serde_json::from_str(said.stderr().lines().last().unwrap())
        .unwrap_or_else(|error| panic!("{error}:\n{said}"))
}

#[test]
fn a_success_whose_check_fails_exits_with_1_and_says_why() {
    let world = World::empty();
    let said = run(&world, &["--verify", "test -s out"], "echo made it");
    assert_eq!((said.stdout(), said.exit), ("made it\n", 1), "{said}");
    assert!(said.stderr().contains("verify test -s out: it exited with 1"), "{said}");
    assert!(said.stderr().contains("status=failed"), "{said}");
    let said = run(&world, &["--verify", "test -s out", "--expect-changed", "out"], "echo x > out");
    assert_eq!((said.stdout(), said.exit), ("", 0), "{said}");
    assert!(said.stderr().contains("status=success"), "{said}");
}

#[test]
fn every_check_stands_in_the_story() {
    let world = World::empty().with("out", "x");
    let words =
        ["--json", "--expect-json", ".items|length > 0", "--expect-file", "out", "--expect-output", "items"];
    let said = run(&world, &words, "echo '{\"items\":[]}'");
    let told = story(&said);
    assert_eq!((said.exit, &told["verified"], &told["exit_code"]), (1, &json!(false), &json!(1)), "{said}");
    let checks = told["attempts"][0]["checks"].as_array().unwrap();
    let shown: Vec<(&str, bool)> = checks
        .iter()
        .map(|check| (check["check"].as_str().unwrap(), check["ok"].as_bool().unwrap()))
        .collect();
    assert_eq!(
        shown,
        [("expect-json .items|length > 0", false), ("expect-file out", true), ("expect-output items", true)]
    );
    assert_eq!(checks[0]["found"], "it is 0");
    let said = run(&world, &words, "echo '{\"items\":[1]}'");
    assert_eq!((said.exit, &story(&said)["verified"]), (0, &json!(true)), "{said}");
    assert_eq!(said.stdout(), "{\"items\":[1]}\n");
}

#[test]
fn an_exit_code_that_is_expected_is_a_success() {
    let world = World::empty();
    let said = run(&world, &["--json", "--expect-exit", "0,3"], "exit 3");
    let told = story(&said);
    assert_eq!((said.exit, &told["ok"], &told["verified"]), (3, &json!(true), &json!(true)), "{said}");
    let said = run(&world, &["--json", "--expect-exit", "3"], "true");
    assert_eq!((said.exit, &story(&said)["ok"]), (1, &json!(false)), "{said}");
    let said = run(&world, &["--json", "--expect-exit", "3"], "exit 4");
    assert_eq!((said.exit, story(&said)["ok"] == json!(true)), (4, false), "{said}");
}

#[test]
fn a_verify_command_that_hangs_is_ended() {
    let begun = Instant::now();
    let said = run(&World::empty(), &["--verify", "sleep 60", "--verify-timeout", "300ms"], "true");
    said.complains(1, &["verify sleep 60: it was not done within 300 ms"]);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_verify_command_ends_with_the_deadline_of_all_of_it() {
    let begun = Instant::now();
    let said = run(&World::empty(), &["--verify", "sleep 60", "--deadline", "1s"], "true");
    said.complains(1, &["verify sleep 60: it was not done before the deadline"]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{said}");
    let in_time = ["--verify", "sleep 0.1", "--deadline", "60s"];
    assert_eq!(run(&World::empty(), &in_time, "true").exit, 0);
}

#[test]
fn a_verify_command_knows_the_attempt_and_its_session() {
    let world = World::empty();
    let words = ["--session", "mine", "--verify", "test \"$UNSTUCK_ATTEMPT $UNSTUCK_SESSION_ID\" = '1 mine'"];
    assert_eq!(run(&world, &words, "true").exit, 0);
}

#[test]
fn a_check_that_makes_no_sense_stops_before_anything_runs() {
    let world = World::empty();
    let said = run(&world, &["--expect-json", ".a = 1"], "touch ran");
    said.complains(125, &["`.a = 1` is no test of JSON", "hint: such as"]);
    run(&world, &["--expect-output", "("], "touch ran").complains(125, &["`(` is no pattern"]);
    assert!(!world.path("ran").exists());
}

#[test]
fn a_runner_that_ran_no_tests_is_not_believed() {
    let world = World::empty().with(
        "bin/cargo",
        "#!/bin/sh\necho 'running 0 tests'\necho 'test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out'\n",
    );
    fs::set_permissions(world.path("bin/cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
    let run = |words: &[&str]| {
        let mut command = world.command(&[&["run"], words, &["--", "cargo", "test", "typo"]].concat());
        Said::by(command.env("PATH", &path).stdin(Stdio::null()).spawn().unwrap())
    };
    run(&[]).complains(1, &["suspicion no-tests.cargo: no tests were run: test result: ok. 0 passed"]);
    assert_eq!(run(&["--no-suspicion"]).exit, 0);
}

#[test]
fn what_was_claimed_and_denied_is_in_the_timeline() {
    let world = World::empty();
    run(&world, &["--session", "s", "--verify", "false"], "true");
    let events = world.run(&["log", "--session", "s", "--json"], "").json_lines();
    let failed =
        events.iter().find(|event| event["event"] == "tool:error").unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(failed["body"]["error"], "verify false: it exited with 1");
    assert_eq!(
        (&failed["body"]["kind"], &failed["body"]["retryable"]),
        (&json!("check_failed"), &json!(false))
    );
}

#[test]
fn claims_of_success_that_a_check_denied_are_counted_apart() {
    let world = World::empty().with("bin/curl", "#!/bin/sh\nprintf '[1,'\n");
    fs::set_permissions(world.path("bin/curl"), fs::Permissions::from_mode(0o755)).unwrap();
    let lies = ["--session", "s", "--verify", "false"];
    run(&world, &lies, "echo one");
    run(&world, &lies, "echo two");
    run(&world, &["--session", "s"], "exit 3");
    run(&world, &["--session", "s", "--verify", "true"], "true");
    // What was fetched and came in half is a failure of the network, and a claim all the same.
    let half = ["run", "--session", "s", "--retries", "0", "--", "curl", "-s", "https://api.example/items"];
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
    Said::by(world.command(&half).env("PATH", path).stdin(Stdio::null()).spawn().unwrap())
        .complains(1, &["✗ network", "cut-json"]);
    let stats = world.run(&["stats", "--json"], "").json();
    let counts = ["calls", "completed", "failed", "check_failed"].map(|name| stats[name].as_u64().unwrap());
    assert_eq!((counts, &stats["kinds"]["check_failed"]), ([5, 1, 4, 3], &json!(2)));
    let told = world.run(&["stats"], "");
    assert!(told.stdout().contains("\nclaimed success, check failed: 3 (60 %)\n"), "{told}");
    let told = world.run(&["stats", "--lang", "zh"], "");
    assert!(told.stdout().contains("\n声称成功但检查未通过：3（60 %）\n"), "{told}");
    let told = world.run(&["log"], "");
    assert!(
        told.stdout().contains("claimed success: check_failed: verify false: it exited with 1"),
        "{told}"
    );
    assert!(told.stdout().contains("claimed success: network: suspicion cut-json"), "{told}");
}
