//! Real sessions of the real clients, driven by a scripted model, read back into calls.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::fmt::Write;

use unstuck_wire::recorded::RecordedCall;
use unstuck_wire::transcript::{Format, Reader, sniff};

/// Reads a whole run and shows one line per call, then what became of the lines.
fn show(format: Format, run: &str) -> String {
    let lines = || run.lines().map(str::as_bytes);
    assert_eq!(sniff(lines().take(5)), Some(format));
    let mut reader = Reader::new(format);
    let mut calls = Vec::new();
    for line in lines() {
        // Broken lines are counted in the tally.
        let _ = reader.read(line);
        calls.append(&mut reader.take());
    }
    let (mut rest, tally) = reader.finish();
    calls.append(&mut rest);
    let mut shown: String = calls.iter().map(show_call).collect();
    write!(shown, "{} lines, {} broken, {} ignored", tally.lines, tally.broken, tally.ignored).unwrap();
    shown
}

fn show_call(call: &RecordedCall) -> String {
    let seen = &call.observation;
    let cut = |text: String| match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    };
    let said = match call.said_ok {
        Some(true) => "ok",
        Some(false) => "failed",
        None => "?",
    };
    let output: String =
        [&seen.stdout, &seen.stderr, &seen.merged].map(|bytes| String::from_utf8_lossy(bytes)).join("");
    format!(
        "{}{} r{} {} {} => {:?} ({said}) {:?}\n",
        call.index,
        if call.new_user_turn { "*" } else { "" },
        call.round.unwrap(),
        if call.agent == "main" { "main" } else { "sub" },
        cut(format!("{}{}", seen.call.tool, seen.call.input)),
        seen.outcome,
        cut(output),
    )
}

#[test]
fn claude_shell_results_are_told_apart() {
    insta::assert_snapshot!(show(Format::Claude, include_str!("data/claude-bash.jsonl")));
}

#[test]
fn claude_refusals_of_its_file_tools_never_ran() {
    insta::assert_snapshot!(show(Format::Claude, include_str!("data/claude-files.jsonl")));
}

#[test]
fn claude_background_notices_are_no_user_turns() {
    insta::assert_snapshot!(show(Format::Claude, include_str!("data/claude-subagent.jsonl")));
}

#[test]
fn claude_sub_agents_have_names_of_their_own() {
    insta::assert_snapshot!(show(Format::Claude, include_str!("data/claude-subagent-own-file.jsonl")));
}

#[test]
fn claude_calls_stopped_by_a_person_are_interrupted_not_denied() {
    insta::assert_snapshot!(show(Format::Claude, include_str!("data/claude-interrupt.jsonl")));
}

#[test]
fn claude_compaction_is_no_user_turn() {
    insta::assert_snapshot!(show(Format::Claude, include_str!("data/claude-compact.jsonl")));
}

#[test]
fn claude_denials_by_a_hook_are_denials() {
    insta::assert_snapshot!(show(Format::Claude, include_str!("data/claude-denied.jsonl")));
}

#[test]
fn claude_parallel_calls_share_a_round_and_keep_their_order() {
    insta::assert_snapshot!(show(Format::Claude, include_str!("data/claude-parallel.jsonl")));
}

#[test]
fn claude_timeouts_outrank_their_exit_code() {
    insta::assert_snapshot!(show(Format::Claude, include_str!("data/claude-timeout.jsonl")));
}

#[test]
fn codex_shell_results_carry_their_exit_codes() {
    insta::assert_snapshot!(show(Format::Codex, include_str!("data/codex-shell.jsonl")));
}

#[test]
fn codex_refusals_and_running_commands_are_told_apart() {
    insta::assert_snapshot!(show(Format::Codex, include_str!("data/codex-misc.jsonl")));
}

#[test]
fn codex_tool_servers_fail_in_events_only() {
    insta::assert_snapshot!(show(Format::Codex, include_str!("data/codex-mcp.jsonl")));
}

// What no scripted session produced, written by hand.

#[test]
fn a_repeated_past_is_read_once_and_a_cut_line_is_counted() {
    let call = r#"{"type":"assistant","uuid":"u1","sessionId":"s","isSidechain":false,"message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}"#;
    let result = r#"{"type":"user","uuid":"u2","sessionId":"s","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#;
    // A fork writes its past again, sometimes under new line ids.
    let again = call.replace("u1", "u3");
    let run = [call, result, &again, result, &call[..40], "{\"type\":\"summary\",\"summary\":\"x\"}", "[]"]
        .join("\n");
    insta::assert_snapshot!(show(Format::Claude, &run));
}

#[test]
fn a_call_without_a_result_is_interrupted_when_a_person_speaks_and_unknown_at_the_end() {
    let user = |uuid: &str, text: &str| {
        format!(r#"{{"type":"user","uuid":"{uuid}","sessionId":"s","message":{{"content":"{text}"}}}}"#)
    };
    let call = |id: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"a{id}","sessionId":"s","message":{{"id":"m{id}","content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{}}}}]}}}}"#
        )
    };
    let run = [user("1", "go"), call("t1"), user("2", "<task-notification>x"), user("3", "stop"), call("t2")]
        .join("\n");
    insta::assert_snapshot!(show(Format::Claude, &run));
}

#[test]
fn older_rollouts_without_envelopes_are_read() {
    let run = r#"{"id":"s","timestamp":"2025-06-01T10:00:00Z","instructions":"x"}
{"record_type":"state"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"fix it"}]}
{"type":"function_call","id":"f","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"false\"]}","call_id":"c1"}
{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"boom\\n\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.1}}"}
{"type":"local_shell_call","id":"l","call_id":"c2","status":"completed","action":{"type":"exec","command":["ls"]}}
{"type":"function_call_output","call_id":"c2","output":{"content":"aborted by user after 2.1s","success":false}}
{"type":"function_call","name":"shell","arguments":"not json","call_id":"c3"}
{"type":"function_call_output","call_id":"c3","output":"Exit code: 124\nWall time: 10 seconds\nOutput:\ncommand timed out after 10000 milliseconds\npart"}"#;
    insta::assert_snapshot!(show(Format::Codex, run));
}

#[test]
fn gemini_calls_stand_in_their_messages_and_end_as_the_report_of_the_shell_says() {
    insta::assert_snapshot!(show(Format::Gemini, include_str!("data/gemini-shell.jsonl")));
}

#[test]
fn gemini_calls_end_as_they_did_whatever_hooks_said_of_them() {
    insta::assert_snapshot!(show(Format::Gemini, include_str!("data/gemini-hooks.jsonl")));
}

#[test]
fn qwen_calls_end_as_the_client_knows_whatever_the_model_was_told() {
    insta::assert_snapshot!(show(Format::Qwen, include_str!("data/qwen-shell.jsonl")));
}

#[test]
fn a_result_that_never_comes_does_not_keep_all_that_follows_in_memory() {
    let made = |id: &str| {
        format!(
            r#"{{"type":"assistant","sessionId":"s","message":{{"content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{}}}}]}}}}"#
        )
    };
    let said = |id: &str, text: &str| {
        format!(
            r#"{{"type":"user","sessionId":"s","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{text}"}}]}}}}"#
        )
    };
    let check = |answers: usize, size: usize| {
        let mut reader = Reader::new(Format::Claude);
        reader.read(made("never").as_bytes()).unwrap();
        let (text, mut most, mut waiting, mut taken) = ("x".repeat(size), 0, 0, 0);
        for number in 0..answers {
            let id = number.to_string();
            reader.read(made(&id).as_bytes()).unwrap();
            reader.read(said(&id, &text).as_bytes()).unwrap();
            let calls = reader.take().len();
            waiting = if calls == 0 { waiting + 1 } else { 0 };
            (most, taken) = (most.max(waiting * size), taken + calls);
        }
        assert!(most <= 64 << 20, "{most} bytes wait");
        assert_eq!(taken, answers + 1);
        assert!(reader.is_at_rest());
    };
    check(70, 1 << 20);
    check(3000, 10);
}
