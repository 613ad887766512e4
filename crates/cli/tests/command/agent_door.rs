//! `unstuck agent` with programs that print what Claude Code, Codex and Gemini CLI print, as real processes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::{Said, World};

const SESSION: &str = r#"{"type":"system","subtype":"init","session_id":"5f0c-1"}"#;
const ANSWER: &str = r#"{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"All done"}]},"session_id":"5f0c-1"}"#;
const WELL: &str =
    r#"{"type":"result","subtype":"success","is_error":false,"result":"All done","session_id":"5f0c-1"}"#;

/// A machine with a program on its path that runs this script.
fn with_program(name: &str, script: &str) -> World {
    let world = World::empty().with(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(world.path(&format!("bin/{name}")), fs::Permissions::from_mode(0o755)).unwrap();
    world
}

fn run(world: &World, args: &[&str]) -> Said {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", world.path("bin").display());
    Said::by(world.command(args).env("PATH", path).stdin(Stdio::null()).spawn().unwrap())
}

/// The result, whatever the exit code.
#[track_caller]
fn result(said: &Said) -> Value {
    serde_json::from_str(said.stdout()).unwrap_or_else(|error| panic!("{error}:\n{said}"))
}

/// A script that says these lines.
fn says(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("echo '{line}'\n")).collect()
}

#[test]
fn the_result_is_one_line_with_session_answer_and_attempts() {
    let world = with_program("claude", &format!("cat > prompt\n{}", says(&[SESSION, ANSWER, WELL])));
    let said = run(&world, &["agent", "claude", "--", "--model", "opus", "What now?"]);
    assert_eq!(said.exit, 0, "{said}");
    let result = result(&said);
    assert_eq!(
        (&result["agent"], &result["session_id"], &result["result"], &result["exit_code"], &result["ok"]),
        (&json!("claude"), &json!("5f0c-1"), &json!("All done"), &json!(0), &json!(true))
    );
    assert_eq!(result["began"], json!(["new"]));
    assert_eq!(result["last_lines"].as_array().map(Vec::len), Some(3));
    assert_eq!(fs::read_to_string(world.path("prompt")).unwrap(), "What now?");
}

#[test]
fn the_bare_answer_can_be_had_and_the_prompt_piped_in() {
    let world = with_program("claude", &format!("cat > prompt\n{}", says(&[SESSION, ANSWER, WELL])));
    let path = format!("{}:/usr/bin:/bin", world.path("bin").display());
    let mut child =
        world.command(&["agent", "claude", "--text", "--", "-"]).env("PATH", path).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"--dash\nfirst").unwrap();
    let said = Said::by(child);
    assert_eq!((said.stdout(), said.exit), ("All done\n", 0), "{said}");
    assert_eq!(fs::read_to_string(world.path("prompt")).unwrap(), "--dash\nfirst");
}

#[test]
fn a_session_of_before_is_taken_up() {
    let world = with_program("claude", &format!("echo \"$*\" > words\n{}", says(&[SESSION, ANSWER, WELL])));
    let said = run(&world, &["agent", "claude", "--session", "5f0c-1", "--", "And now?"]);
    assert_eq!(result(&said)["began"], json!(["resumed"]), "{said}");
    assert!(fs::read_to_string(world.path("words")).unwrap().contains("--resume 5f0c-1"));
}

#[test]
fn a_failure_that_the_model_can_mend_is_told_to_it_in_its_session() {
    let wrong = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"5f0c-1","errors":["error[E0425]: cannot find value tide in this scope"]}"#;
    let script = format!(
        "echo \"$*\" >> words\ncat >> prompts\nif [ -e once ]; then\n{}exit 0; fi\ntouch once\n{}exit 1",
        says(&[SESSION, ANSWER, WELL]),
        says(&[SESSION, ANSWER, wrong])
    );
    let world = with_program("claude", &script);
    let said = run(&world, &["agent", "claude", "--may-write", "--", "Build it. "]);
    let result = result(&said);
    assert_eq!((said.exit, &result["repairs"], &result["retries"]), (0, &json!(1), &json!(1)), "{said}");
    assert_eq!(result["attempts"].as_array().map(Vec::len), Some(2));
    let prompts = fs::read_to_string(world.path("prompts")).unwrap();
    assert!(prompts.starts_with("Build it. Your last run did not end well"), "{prompts}");
    assert!(prompts.contains("cannot find value tide"), "{prompts}");
    let words = fs::read_to_string(world.path("words")).unwrap();
    assert!(words.lines().nth(1).is_some_and(|line| line.contains("--resume 5f0c-1")), "{words}");
}

#[test]
fn a_model_that_cannot_mend_it_is_asked_three_times_and_no_more() {
    let wrong = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"5f0c-1","errors":["error[E0425]: cannot find value tide in this scope"]}"#;
    let script = format!("echo x >> starts\n{}exit 1", says(&[SESSION, ANSWER, wrong]));
    let world = with_program("claude", &script);
    let said = run(&world, &["agent", "claude", "--", "Build it."]);
    assert_eq!((said.exit, &result(&said)["repairs"]), (1, &json!(3)), "{said}");
    assert_eq!(fs::read_to_string(world.path("starts")).unwrap().lines().count(), 4);
    said.complains(1, &["code_error", "3 of 3"]);
}

#[test]
fn a_success_that_a_check_denies_is_told_to_the_model_in_its_session() {
    // It says that it is done each time, and it is only the second time.
    let script = format!(
        "echo \"$*\" >> words\ncat >> prompts\nif [ -e once ]; then echo built > app; fi\ntouch once\n{}",
        says(&[SESSION, ANSWER, WELL])
    );
    let world = with_program("claude", &script);
    let verify = "test -s app || { echo no app yet; exit 7; }";
    let said = run(&world, &["agent", "claude", "--may-write", "--verify", verify, "--", "Build it. "]);
    let result = result(&said);
    assert_eq!(
        (said.exit, &result["repairs"], &result["began"], &result["verified"]),
        (0, &json!(1), &json!(["new", "resumed"]), &json!(true)),
        "{said}"
    );
    let first = &result["attempts"][0];
    assert_eq!((&first["ok"], &first["kind"]), (&json!(false), &json!("check_failed")), "{said}");
    let prompts = fs::read_to_string(world.path("prompts")).unwrap();
    assert!(prompts.starts_with("Build it. Your last run said that all went well, but"), "{prompts}");
    assert!(prompts.contains("it exited with 7: no app yet"), "{prompts}");
}

#[test]
fn a_success_that_checks_keep_denying_is_a_failure_in_the_end() {
    let script = format!("echo x >> starts\n{}", says(&[SESSION, ANSWER, WELL]));
    let world = with_program("claude", &script);
    for (check, repairs) in [
        (&["--expect-file", "app"][..], "3"),
        (&["--expect-changed", "bin", "--max-repairs", "1"], "1"),
        (&["--expect-output", "^Nothing", "--max-repairs", "0"], "0"),
        (&["--expect-json", ".ok", "--max-repairs", "0"], "0"),
        (&["--expect-exit", "3", "--max-repairs", "0"], "0"),
    ] {
        let said = run(&world, &[&["agent", "claude"], check, &["--", "Build it."]].concat());
        let result = result(&said);
        assert_eq!(
            (said.exit, &result["rule"], &result["verified"], result["repairs"].to_string().as_str()),
            (1, &json!("check.failed"), &json!(false), repairs),
            "{check:?}\n{said}"
        );
    }
    let stats = world.run(&["stats"], "");
    assert!(stats.stdout().contains("claimed success, check failed: 10"), "{stats}");
    run(&world, &["agent", "claude", "--expect-output", "^All", "--", "x"]).complains(0, &["status=success"]);
}

#[test]
fn an_agent_that_may_write_is_not_started_over_even_where_it_said_nothing() {
    let refused =
        r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 529 Overloaded."}"#;
    let world = with_program("claude", &format!("echo x >> starts\n{}exit 1", says(&[refused])));
    let said = run(&world, &["agent", "claude", "--may-write", "--", "Build it."]);
    assert_eq!((said.exit, &result(&said)["stopped"]), (1, &json!("no_session")), "{said}");
    let said = run(&world, &["agent", "claude", "--read-only", "--", "Look at it."]);
    assert_eq!(result(&said)["began"], json!(["new", "new"]), "{said}");
    said.complains(1, &["attempt 2 began in a new session"]);
    assert_eq!(fs::read_to_string(world.path("starts")).unwrap().lines().count(), 3);
}

#[test]
fn what_has_begun_without_a_session_is_stopped_with_its_cause() {
    let nameless =
        r#"{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"half"}]}}"#;
    let refused =
        r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 529 Overloaded."}"#;
    let script = format!("echo x >> starts\n{}exit 1", says(&[nameless, refused]));
    let world = with_program("claude", &script);
    let said = run(&world, &["agent", "claude", "--", "Build it."]);
    let result = result(&said);
    assert_eq!(
        (said.exit, &result["kind"], &result["session_id"]),
        (1, &json!("server_error"), &Value::Null),
        "{said}"
    );
    assert_eq!(fs::read_to_string(world.path("starts")).unwrap().lines().count(), 1);
    assert_eq!(result["stopped"], "no_session");
    said.complains(1, &["there is no session in which it could go on"]);
}

#[test]
fn an_overloaded_model_is_waited_for_and_the_same_session_goes_on() {
    let refused = r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 529 Overloaded.","session_id":"5f0c-1"}"#;
    let script = format!(
        "echo \"$*\" >> words\ncat >> prompts\nif [ -e once ]; then\n{}exit 0; fi\ntouch once\n{}exit 1",
        says(&[SESSION, ANSWER, WELL]),
        says(&[SESSION, ANSWER, refused])
    );
    let world = with_program("claude", &script);
    let said = run(&world, &["agent", "claude", "--may-write", "--", "Build it. "]);
    let result = result(&said);
    assert_eq!(
        (said.exit, &result["began"], &result["repairs"]),
        (0, &json!(["new", "resumed"]), &json!(0)),
        "{said}"
    );
    let prompts = fs::read_to_string(world.path("prompts")).unwrap();
    assert!(prompts.starts_with("Build it. Your last run was cut off"), "{prompts}");
    said.complains(
        0,
        &["verify action=claude status=failed", "retry 1 of 1 in", "verify action=claude status=success"],
    );
    let log = world.run(&["log", "--json", "--since", "0"], "");
    assert!(log.stdout().contains("\"agent\""), "{log}");
}

#[test]
fn a_limit_that_ends_soon_is_waited_for_and_one_that_does_not_is_told() {
    let refused = |until: &str| {
        format!(
            r#"echo "{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"result\":\"{until}\",\"session_id\":\"5f0c-1\"}}""#
        )
    };
    let soon = refused("Claude AI usage limit reached|$(($(date +%s) + 3))");
    let script = format!(
        "if [ -e once ]; then\n{}exit 0; fi\ntouch once\n{}{soon}\nexit 1",
        says(&[SESSION, ANSWER, WELL]),
        says(&[SESSION, ANSWER])
    );
    let said = run(&with_program("claude", &script), &["agent", "claude", "--", "x"]);
    let told = result(&said);
    assert_eq!((said.exit, &told["began"]), (0, &json!(["new", "resumed"])), "{said}");
    let waited = told["waits_ms"][0].as_u64().unwrap_or(0);
    assert!((1500..5000).contains(&waited), "{said}");

    let late = refused("You've hit your weekly limit · resets Dec 31, 2099 at 3pm");
    let world = with_program("claude", &format!("{}{late}\nexit 1", says(&[SESSION, ANSWER])));
    let said = run(&world, &["agent", "claude", "--", "x"]);
    let told = result(&said);
    assert_eq!(
        (&told["kind"], &told["stopped"], &told["come_back_after_ms"], &told["began"]),
        (&json!("rate_limited"), &json!("hint_too_long"), &json!(2_764_800_000_u64), &json!(["new"])),
        "{said}"
    );
    said.complains(1, &["it could work in"]);
}

#[test]
fn a_time_that_is_told_without_a_zone_is_one_of_the_clocks_here() {
    let later = "$(date -d '+4 hours' +%H:%M 2>/dev/null || date -v+4H +%H:%M)";
    let failed = format!(
        r#"echo "{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"You’ve hit your usage limit. Try again at {later}.\"}}}}""#
    );
    let world = with_program("codex", &format!("{failed}\nexit 1"));
    let path = format!("{}:/usr/bin:/bin", world.path("bin").display());
    for zone in ["UTC0", "HERE-05:30", "THERE+09"] {
        let mut command = world.command(&["agent", "codex", "--", "x"]);
        let said = Said::by(command.env("PATH", &path).env("TZ", zone).stdin(Stdio::null()).spawn().unwrap());
        let minutes = result(&said)["come_back_after_ms"].as_u64().unwrap_or(0) / 60_000;
        assert!((238..=240).contains(&minutes), "{zone}: {minutes}\n{said}");
    }
}

#[test]
fn an_agent_is_started_again_as_often_as_was_said() {
    let refused = r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 529 Overloaded.","session_id":"5f0c-1"}"#;
    let world = with_program("claude", &format!("{}exit 1", says(&[SESSION, refused])));
    let said = run(&world, &["agent", "claude", "--retries", "0", "--", "x"]);
    assert_eq!((said.exit, &result(&said)["began"]), (1, &json!(["new"])), "{said}");
    let said = run(&world, &["agent", "claude", "--retries", "2", "--", "x"]);
    assert_eq!((said.exit, &result(&said)["began"]), (1, &json!(["new", "resumed", "resumed"])), "{said}");
}

#[test]
fn a_program_of_ones_own_is_run_as_the_settings_say() {
    let settings = r#"
[agent.mine]
program = "my-agent"
args = ["run", "{prompt}"]
session = "session={session};"
resume = ["resume", "{session}", "{prompt}"]
may-write = false
idle-timeout = "5s"
"#;
    let world = with_program("my-agent", "echo \"$*\"; echo 'session=ab-1;'")
        .with("config/unstuck/config.toml", settings);
    let said = run(&world, &["agent", "mine", "--", "-v", "Do it"]);
    let first = result(&said);
    assert_eq!(
        (&first["session_id"], &first["result"]),
        (&json!("ab-1"), &json!("-v run Do it\nsession=ab-1;")),
        "{said}"
    );
    let said = run(&world, &["agent", "mine", "--session", "ab-1", "--", "More"]);
    assert_eq!(result(&said)["result"], "resume ab-1 More\nsession=ab-1;", "{said}");
}

#[test]
fn a_silent_agent_is_ended_and_so_is_one_without_end() {
    let silent =
        with_program("codex", "echo '{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}'; exec sleep 30");
    let said = run(&silent, &["agent", "codex", "--retries", "0", "--idle-timeout", "1s", "--", "Do it"]);
    assert_eq!((said.exit, &result(&said)["session_id"]), (124, &json!("t-1")), "{said}");
    let endless = with_program("codex", "while :; do echo; sleep 0.1; done");
    let said = run(&endless, &["agent", "codex", "--retries", "0", "--timeout", "1s", "--", "Do it"]);
    assert_eq!((said.exit, &result(&said)["kind"]), (124, &json!("timeout")), "{said}");
}

#[test]
fn what_cannot_be_run_is_said_with_what_to_do() {
    let world = World::empty();
    run(&world, &["agent", "cluade", "--", "x"]).complains(125, &["cluade", "claude"]);
    run(&world, &["agent", "claude", "--session=--evil", "--", "x"])
        .complains(125, &["--evil", "session_id"]);
    run(&world, &["agent", "claude", "--session", "a b", "--", "x"]).complains(125, &["a b", "session_id"]);
    run(&world, &["agent", "codex", "--read-only", "--", "--yolo", "x"])
        .complains(125, &["--yolo", "--read-only"]);
    run(&world, &["agent", "claude"]).complains(125, &["PROMPT"]);
    let said = Said::by(
        world
            .command(&["agent", "gemini", "--", "x"])
            .env("PATH", "/nowhere")
            .stdin(Stdio::null())
            .spawn()
            .unwrap(),
    );
    assert_eq!((said.exit, &result(&said)["kind"]), (127, &json!("command_not_found")), "{said}");
    let world = World::empty().with("config/unstuck/config.toml", "[agent.mine]\nprogramm = \"x\"\n");
    run(&world, &["agent", "mine", "--", "x"]).complains(125, &["programm", "did you mean program?"]);
    let world = World::empty().with("config/unstuck/config.toml", "[agent.mine]\nretries = 1\n");
    run(&world, &["agent", "mine", "--", "x"]).complains(125, &["mine", "needs `program`"]);
    let world = World::empty().with(".unstuck.toml", "[agent.claude]\nprogram = \"evil\"\n");
    run(&world, &["agent", "claude", "--", "x"]).complains(125, &["agent", "project"]);
}
