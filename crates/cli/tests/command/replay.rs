//! `unstuck replay`: what would have been done on a recorded run.

use std::fs;

use serde_json::{Value, json};

use crate::world::{World, repository};

/// One recorded call of a run.
fn call(trace: &str, i: u64, command: &str, exit_code: i32, output: &str) -> Value {
    let input = json!({ "command": command });
    json!({"trace": trace, "i": i, "tool": "Bash", "input": input, "ok": exit_code == 0, "exit_code": exit_code, "output": output})
}

fn lines(calls: &[Value]) -> String {
    calls.iter().map(|call| format!("{call}\n")).collect()
}

/// The same call, failing for good `times` times.
fn missing_program(trace: &str, times: u64) -> Vec<Value> {
    (0..times)
        .map(|i| call(trace, i, "frobnicate --all", 127, "bash: frobnicate: command not found"))
        .collect()
}

/// What was decided before and after each call.
#[track_caller]
fn check(flags: &[&str], calls: &[Value], expected: &[&str]) {
    let decisions = World::empty().run(&[&["replay", "--jsonl"], flags].concat(), lines(calls)).json_lines();
    let word = |decision: &Value, key: &str| decision[key].as_str().unwrap().to_owned();
    let said: Vec<String> =
        decisions.iter().map(|it| format!("{} {}", word(it, "before"), word(it, "after"))).collect();
    assert_eq!(said, expected);
}

#[test]
fn a_decision_has_these_keys_in_this_order_and_no_others() {
    let said = World::empty().run(&["replay", "--jsonl"], lines(&missing_program("t", 2)));
    insta::assert_snapshot!(said, @r#"
    --- stdout
    {"trace":"t","i":0,"before":"allow","after":"note","key":"exact","count":1,"kind":"command_not_found","rule":"shell.command-not-found"}
    {"trace":"t","i":1,"before":"deny","after":"hint","key":"exact","count":1,"kind":"command_not_found","rule":"shell.command-not-found"}
    --- exit 0
    "#);
}

#[test]
fn what_cannot_work_is_explained_once_and_then_refused() {
    check(&[], &missing_program("t", 3), &["allow note", "deny hint", "deny hint"]);
}

#[test]
fn the_classic_preset_hints_at_three_and_denies_at_five() {
    let expected = ["allow none", "allow none", "allow hint", "allow insist", "allow none", "deny insist"];
    check(&["--preset", "classic"], &missing_program("t", 6), &expected);
    World::empty().run(&["replay", "--preset", "nervous"], "").complains(2, &["adaptive, classic"]);
}

#[test]
fn runs_do_not_know_of_each_other() {
    let calls = [missing_program("one", 1), missing_program("two", 1)].concat();
    check(&[], &calls, &["allow note", "allow note"]);
}

#[test]
fn a_broken_line_is_named_and_the_rest_goes_on() {
    let good = call("t", 0, "ls", 0, "src");
    let said = World::empty().run(&["replay", "--jsonl"], format!("oops\n{good}\n{{\"i\":1}}\n\n{good}"));
    let shown: Vec<String> = said.json_lines().iter().map(|line| line["line"].to_string()).collect();
    assert_eq!(shown, ["1", "null", "3", "null"], "{said}");
}

#[test]
fn mutates_is_never_needed() {
    let recorded = fs::read_to_string(repository("traces/scenarios/calls.jsonl")).unwrap();
    let without: String = recorded
        .lines()
        .map(|line| {
            let mut call: Value = serde_json::from_str(line).unwrap();
            call.as_object_mut().unwrap().shift_remove("mutates").unwrap();
            format!("{call}\n")
        })
        .collect();
    let world = World::empty();
    let with = world.run(&["replay", "--jsonl"], &recorded);
    assert_eq!(with.json_lines().len(), recorded.lines().count());
    assert!(world.run(&["replay", "--jsonl"], without) == with, "the decisions differ");
}

#[test]
fn transcripts_of_claude_code_and_rollouts_of_codex_are_read_as_they_are() {
    let check = |file: &str, calls: usize, kinds: &[&str]| {
        let path = repository("crates/wire/tests/data").join(file);
        let named = World::empty().run(&["replay", "--jsonl", path.to_str().unwrap()], "");
        let decisions = named.json_lines();
        let seen: Vec<&str> = decisions.iter().filter_map(|it| it["kind"].as_str()).collect();
        assert_eq!(seen.len(), calls, "{named}");
        kinds.iter().for_each(|kind| assert!(seen.contains(kind), "no {kind} in {file}: {seen:?}"));
        let piped = World::empty().run(&["replay", "--jsonl"], fs::read(path).unwrap());
        assert_eq!(named, piped, "{file} is read otherwise when it is piped in");
    };
    check("claude-bash.jsonl", 18, &["command_not_found", "not_an_error"]);
    check("claude-timeout.jsonl", 2, &["timeout"]);
    check("codex-shell.jsonl", 4, &["command_not_found", "path_not_found", "not_an_error"]);
}

#[test]
fn a_folder_stands_for_all_transcripts_in_it() {
    let data = |file: &str| fs::read(repository("crates/wire/tests/data").join(file)).unwrap();
    let world = World::empty()
        .with("runs/a.jsonl", lines(&missing_program("a", 3)))
        .with("runs/deep/claude.jsonl", data("claude-bash.jsonl"))
        .with("runs/deep/codex.jsonl", data("codex-shell.jsonl"))
        .with("runs/notes.txt", "not a transcript");
    let traces: Vec<Value> = world
        .run(&["replay", "--jsonl", "runs"], "")
        .json_lines()
        .iter()
        .map(|it| it["trace"].clone())
        .collect();
    assert_eq!(traces.iter().filter(|trace| *trace == "a").count(), 3);
    let mut different = traces.clone();
    different.dedup();
    assert_eq!(different.len(), 3);
    world.run(&["replay", "nowhere"], "").complains(125, &["nowhere", "hint: "]);
}

#[test]
fn a_person_reads_what_failed_what_would_have_been_stopped_and_the_time_it_took() {
    let mut calls = [missing_program("t", 3), vec![call("t", 3, "ls", 0, "src")]].concat();
    calls.iter_mut().zip([0, 10, 100, 130]).for_each(|(call, second)| call["ts"] = json!(second));
    let said = World::empty().run(&["replay"], format!("{}oops\n", lines(&calls)));
    insta::assert_snapshot!(said, @r"
    --- stdout
    runs: 1, calls: 4, failed: 3 (75 %)
          3  command_not_found  the program does not exist here
    unstuck would have said
          1  explanations of a failure with its first result
          0  hints that a call was repeating itself
          2  refusals of a call before it ran again
          2  of these failed once more in the recording
          0  stops of a run for a person to decide
    this assumes that nothing else changed between the calls: a live refusal looks first at what the failure named
    time: 2 min of 2 min went into calls that would have been refused
    failed most often
          3  frobnicate                                                   command_not_found
    lines that could not be read: 1
    --- exit 0
    ");
}

#[test]
fn what_was_refused_in_the_recording_did_not_fail() {
    let refused =
        "Blocked by unstuck: the program does not exist here: ⟦bash: frobnicate: command not found⟧.";
    let calls = [missing_program("t", 1), vec![call("t", 1, "frobnicate --all", 1, refused)]].concat();
    let said = World::empty().run(&["replay"], lines(&calls));
    assert!(
        said.stdout().starts_with(
            "runs: 1, calls: 2, failed: 1 (50 %)\nrefused in the recording, so they did not run: 1\n"
        ),
        "{said}"
    );
    assert!(said.stdout().contains("      0  of these failed once more in the recording"), "{said}");
}

#[test]
fn the_summary_speaks_chinese_too() {
    let said = World::empty().run(&["replay", "--lang", "zh"], lines(&missing_program("t", 3)));
    assert!(said.stdout().starts_with("1 次运行，3 次调用，3 次失败（100 %）\n"), "{said}");
}

#[test]
fn nothing_recorded_is_no_error() {
    assert_eq!(World::empty().run(&["replay", "--jsonl"], "").to_string(), "--- exit 0");
    assert!(World::empty().run(&["replay"], "").stdout().starts_with("runs: 0, calls: 0, failed: 0 (0 %)\n"));
}

#[test]
fn a_users_own_rules_hold_in_a_replay() {
    let world = World::empty().with(
        "config/unstuck/rules/flux.toml",
        "[[rule]]\nid = \"my.flux\"\nkind = \"auth\"\nany = [\"flux is low\"]\n",
    );
    let said = world.run(&["replay", "--jsonl"], lines(&[call("t", 0, "drive", 1, "flux is low")]));
    assert_eq!(said.json()["rule"], "my.flux");
}
