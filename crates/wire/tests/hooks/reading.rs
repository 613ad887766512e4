//! Every payload that is kept, in one line of what was understood; and what the judge makes of it.

use std::fmt::Write;
use std::sync::LazyLock;

use unstuck_judge::ladder::{Upshot, see};
use unstuck_judge::{Call, Outcome, Rules};
use unstuck_wire::hook::{self, Attended, Finished, Happened, Host, Letter, codex};

use super::{hosts, payload, payloads};

static RULES: LazyLock<Rules> = LazyLock::new(Rules::built_in);

fn cut(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn show_call(call: &Call) -> String {
    cut(&format!("{}{}", call.tool, call.input), 60)
}

/// What the judge would see in a result.
fn judged(finished: &Finished) -> String {
    let seen = &finished.observation;
    let diagnosis = RULES.diagnose(seen);
    let ending = see::ending(&see::sight(&seen.call), seen, &diagnosis, finished.said_ok);
    match ending.upshot {
        Upshot::Fine => "fine".to_owned(),
        Upshot::OurDenial => "our denial".to_owned(),
        Upshot::Failed(_) => format!("failed: {}", diagnosis.kind),
    }
}

fn show_event(event: &Happened) -> String {
    match event {
        Happened::Before { key, call, new_user_turn } => {
            assert!(!new_user_turn);
            format!("before {key} {}", show_call(call))
        }
        Happened::After(finished) => {
            let seen = &finished.observation;
            let text: String = [&seen.stdout, &seen.stderr, &seen.merged]
                .map(|bytes| String::from_utf8_lossy(bytes))
                .join("");
            format!(
                "after {} {} {:?}{}{} {:?} => {}",
                finished.key,
                show_call(&seen.call),
                seen.outcome,
                finished.took_ms.map(|took| format!(" {took}ms")).unwrap_or_default(),
                if finished.can_retry { " may be sent again" } else { "" },
                cut(&text, 50),
                judged(finished),
            )
        }
        Happened::Ask { key, call } => {
            format!("ask {key} {}", call.as_ref().map(show_call).unwrap_or_default())
        }
        Happened::Approved { key } => format!("approved {key}"),
        Happened::Denied { key } => format!("denied {key}"),
        Happened::Later { key, outcome, text } => format!("later {key} {outcome:?} {text:?}"),
        Happened::User => "user".to_owned(),
        Happened::Began(beginning) => format!("began {beginning:?}"),
        Happened::AgentDone => "agent done".to_owned(),
        Happened::End => "end".to_owned(),
    }
}

fn show(name: &str, door: Host, letter: &Letter) -> String {
    let mut line = format!("{name}: ");
    if letter.host != door {
        write!(line, "from {} ", letter.host).unwrap();
    }
    if letter.agent != "main" {
        write!(line, "agent {} ", letter.agent).unwrap();
    }
    match letter.attended {
        Attended::Yes => line += "attended ",
        Attended::No => line += "alone ",
        Attended::Unsaid => {}
    }
    let events: Vec<String> = letter.events.iter().map(show_event).collect();
    line + &if events.is_empty() { "—".to_owned() } else { events.join("\n    ") } + "\n"
}

/// All payloads of an agent, through its own door.
fn all(host: Host) -> String {
    let read = |(name, bytes): (String, Vec<u8>)| {
        let letter = hook::read(host, &bytes).unwrap();
        assert_eq!(letter.host, host, "{name}");
        assert!(!letter.session.is_empty() && letter.session != "default", "{name}");
        show(&name, host, &letter)
    };
    payloads(host).into_iter().map(read).collect()
}

#[test]
fn what_claude_code_sends_is_understood() {
    insta::assert_snapshot!(all(Host::Claude));
}

#[test]
fn what_codex_sends_is_understood() {
    insta::assert_snapshot!(all(Host::Codex));
}

#[test]
fn what_gemini_cli_sends_is_understood() {
    insta::assert_snapshot!(all(Host::Gemini));
}

#[test]
fn what_qwen_code_sends_is_understood() {
    insta::assert_snapshot!(all(Host::Qwen));
}

#[test]
fn what_our_plugin_for_opencode_sends_is_understood() {
    insta::assert_snapshot!(all(Host::Opencode));
}

#[test]
fn what_copilot_sends_is_understood_in_both_styles() {
    insta::assert_snapshot!(all(Host::Copilot));
}

#[test]
fn what_cursor_is_said_to_send_is_understood() {
    insta::assert_snapshot!(all(Host::Cursor));
}

#[test]
fn those_who_run_the_hooks_of_claude_code_are_known_for_who_they_are() {
    for host in hosts().filter(|host| !matches!(host, Host::Claude | Host::Opencode)) {
        for (name, bytes) in payloads(host) {
            // All events of those who read its settings; of the others what has to do with one call.
            let is_told = match host {
                Host::Cursor => true,
                Host::Copilot => !name.ends_with("Stop"),
                _ => ["PreToolUse", "PostToolUse", "PostToolUseFailure", "BeforeTool", "AfterTool"]
                    .iter()
                    .any(|event| name.ends_with(event)),
            };
            if is_told {
                let letter = hook::read(Host::Claude, &bytes).unwrap();
                assert_eq!(letter.host, host, "{host} {name}");
                assert_eq!(letter, hook::read(host, &bytes).unwrap(), "{host} {name}");
            }
        }
    }
    for (name, bytes) in payloads(Host::Claude) {
        assert_eq!(hook::read(Host::Claude, &bytes).unwrap().host, Host::Claude, "{name}");
    }
}

#[test]
fn a_name_that_an_event_never_had_is_met_with_silence() {
    for host in hosts() {
        let bytes = br#"{"hook_event_name":"SomethingNew","session_id":"s","sessionID":"s","tool_name":7}"#;
        let letter = hook::read(host, bytes).unwrap();
        assert_eq!((letter.events.len(), letter.session.as_str()), (0, "s"), "{host}");
        assert_eq!(letter.honours(), hook::Honours::default(), "{host}");
    }
}

#[test]
fn useful_fields_of_a_wrong_type_lose_nothing() {
    let bytes = br#"{"hook_event_name":"PostToolUseFailure","session_id":7,"cwd":null,"transcript_path":[],"tool_name":"Bash",
        "tool_input":"{\"command\":\"ls\"}","tool_use_id":3,"error":["Exit code 2"],"is_interrupt":"no","duration_ms":"soon",
        "permission_mode":{},"agent_id":""}"#;
    let letter = hook::read(Host::Claude, bytes).unwrap();
    assert_eq!(
        show("odd", Host::Claude, &letter),
        "odd: after 3 Bash{\"command\":\"ls\"} ReportedFailure \"[\\\"Exit code 2\\\"]\" => failed: unknown\n"
    );
    assert_eq!((letter.session.as_str(), letter.cwd.as_str()), ("7", ""));
}

#[test]
fn what_is_missing_is_named() {
    let check = |door, payload: &str, expected: &str| {
        assert_eq!(hook::read(door, payload.as_bytes()).unwrap_err().to_string(), expected, "{payload}");
    };
    check(Host::Claude, "{}", "hook_event_name: is missing");
    check(Host::Claude, r#"{"hook_event_name":"PreToolUse"}"#, "tool_name: is missing");
    check(Host::Codex, r#"{"hook_event_name":"PreToolUse","tool_name":""}"#, "tool_name: is missing");
    check(Host::Opencode, r#"{"hook_event_name":"tool.execute.before"}"#, "tool: is missing");
    check(Host::Copilot, r#"{"sessionId":"s","toolName":""}"#, "toolName: is missing");
    check(Host::Claude, "", "not JSON: the line is empty");
    check(Host::Gemini, r#"{"hook_event_name":"Bef"#, "not JSON: EOF while parsing a string at column 23");
    check(Host::Qwen, "[]", "expected a JSON object, found a list");
}

#[test]
fn versions_that_say_everything_twice_are_heard_once() {
    let old = hook::read(Host::Claude, &payload(Host::Claude, "old-2.1.50.PostToolUseFailure.Bash")).unwrap();
    let new =
        hook::read(Host::Claude, &payload(Host::Claude, "old-2.1.150.PostToolUseFailure.Bash")).unwrap();
    let text = |letter: &Letter| match &letter.events[..] {
        [Happened::After(finished)] => String::from_utf8(finished.observation.merged.clone()).unwrap(),
        _ => String::new(),
    };
    assert_eq!(text(&old), "fail-one");
    assert_eq!(text(&old), text(&new));
}

#[test]
fn a_batch_with_broken_calls_in_it_tells_the_others() {
    let bytes = br#"{"hook_event_name":"PostToolBatch","session_id":"s","tool_calls":[7,{"tool_name":""},null,
        {"tool_name":"Edit","tool_input":{},"tool_use_id":"t","tool_response":"<tool_use_error>no</tool_use_error>"}]}"#;
    let letter = hook::read(Host::Claude, bytes).unwrap();
    assert_eq!(letter.events.len(), 1);
}

#[test]
fn our_own_denial_is_known_however_claude_code_repeats_it() {
    for shown in [
        "PreToolUse:Bash hook error: Blocked by unstuck: no",
        "Blocked by unstuck: no",
        "Blocked by unstuck: no\nmore",
    ] {
        let bytes = serde_json::json!({
            "hook_event_name": "PostToolBatch",
            "tool_calls": [{ "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_use_id": "t", "tool_response": shown }],
        });
        let letter = hook::read(Host::Claude, bytes.to_string().as_bytes()).unwrap();
        let [Happened::After(finished)] = &letter.events[..] else { panic!("{letter:?}") };
        assert_eq!(judged(finished), "our denial", "{shown}");
    }
}

/// What the judge sees in a success that Claude Code reports of a command line.
#[track_caller]
fn check_success(command: &str, printed: &str, expected: &str) {
    let bytes = serde_json::json!({
        "hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "t",
        "tool_input": { "command": command }, "tool_response": { "stdout": printed, "stderr": "", "interrupted": false },
    });
    let letter = hook::read(Host::Claude, bytes.to_string().as_bytes()).unwrap();
    let [Happened::After(finished)] = &letter.events[..] else { panic!("{letter:?}") };
    assert_eq!(judged(finished), expected, "{command}");
}

#[test]
fn a_code_that_the_command_line_hides_is_not_believed() {
    let missing = "/bin/bash: line 1: cargo-nope: command not found";
    for command in
        ["cargo-nope build 2>&1 | tail -5", "cargo-nope build || true", "cargo-nope build; echo done"]
    {
        check_success(command, missing, "failed: command_not_found");
    }
    check_success(
        "npm install foo 2>&1 | tail -5",
        "npm error code E404\nnpm error 404 Not Found",
        "failed: missing_dependency",
    );
    let traceback = "Traceback (most recent call last):\n  File \"x.py\", line 3, in <module>\n    1 / 0\nZeroDivisionError: division by zero\n1";
    check_success("python3 x.py; echo $?", traceback, "failed: code_error");
    // What goes on after an exception has caught it.
    check_success("python3 x.py; true", &format!("{traceback}\ngoing on"), "fine");
}

#[test]
fn what_is_only_shown_is_no_failure() {
    let error = "curl: (7) Failed to connect: Connection refused";
    for command in [
        "cat build.log | tail -3",
        "grep -n refused *.log; ls",
        "git log --oneline | head -5",
        "cat build.log",
    ] {
        check_success(command, error, "fine");
    }
    check_success("pytest | tail -1", "12 passed in 0.1s", "fine");
}

/// The one result in a letter.
fn finished(letter: &Letter) -> &Finished {
    let [Happened::After(finished)] = &letter.events[..] else { panic!("{letter:?}") };
    finished
}

/// How a tool of Gemini CLI or Qwen Code ended, by each event that tells what it said.
#[track_caller]
fn check_said(tool: &str, said: &str, expected: Outcome) {
    let input = serde_json::json!({ "command": "ls", "file_path": "a.log" });
    let shown = serde_json::json!({ "llmContent": said });
    let part = serde_json::json!({ "functionResponse": { "response": { "output": said } } });
    let batched = serde_json::json!({ "tool_name": tool, "tool_input": input, "tool_call_id": "c", "status": "success",
        "tool_response": { "response_parts": [part] } });
    for (host, sent) in [
        (
            Host::Gemini,
            serde_json::json!({ "hook_event_name": "AfterTool", "tool_name": tool, "tool_input": input, "tool_response": shown }),
        ),
        (
            Host::Qwen,
            serde_json::json!({ "hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": input, "tool_response": shown }),
        ),
        (Host::Qwen, serde_json::json!({ "hook_event_name": "PostToolBatch", "tool_calls": [batched] })),
    ] {
        let letter = hook::read(host, sent.to_string().as_bytes()).unwrap();
        assert_eq!(finished(&letter).observation.outcome, expected, "{host} {} {tool}: {said}", letter.hook);
    }
}

#[test]
fn only_a_shell_reports_like_a_shell() {
    for (said, ended) in [
        ("Command timed out after 5ms before it could complete.", Outcome::TimedOut),
        ("Command was cancelled by user before it could complete.", Outcome::Interrupted),
        ("Output: x\nExit Code: 3", Outcome::Exited { code: 3 }),
    ] {
        check_said("run_shell_command", said, ended);
        check_said("read_file", said, Outcome::Succeeded);
        check_said("mcp__logs__tail", said, Outcome::Succeeded);
    }
}

#[test]
fn what_qwen_code_calls_a_failure_of_another_tool_is_no_report_of_a_shell() {
    let sent = serde_json::json!({ "hook_event_name": "PostToolUseFailure", "tool_name": "read_file",
        "tool_input": { "file_path": "a.log" }, "error": "Command timed out: no such file" });
    let letter = hook::read(Host::Qwen, sent.to_string().as_bytes()).unwrap();
    assert_eq!(finished(&letter).observation.outcome, Outcome::ReportedFailure);
}

#[test]
fn what_opencode_says_of_a_silent_command_is_no_output_of_it() {
    let read = |said: &str| {
        let sent = serde_json::json!({ "hook_event_name": "tool.execute.after", "tool": "bash", "output": said,
            "args": { "command": "test -f setup.cfg" }, "metadata": { "exit": 1 } });
        let letter = hook::read(Host::Opencode, sent.to_string().as_bytes()).unwrap();
        (
            String::from_utf8_lossy(&finished(&letter).observation.merged).into_owned(),
            judged(finished(&letter)),
        )
    };
    assert_eq!(read("(no output)"), (String::new(), "fine".to_owned()));
    assert_eq!(read("so it is (no output)").0, "so it is (no output)");
}

#[test]
fn a_sub_agent_without_a_name_does_not_end_the_main_agent() {
    for host in [Host::Claude, Host::Codex, Host::Qwen, Host::Copilot, Host::Cursor] {
        for (agent, expected) in [
            (serde_json::json!("sub-1"), vec![Happened::AgentDone]),
            (serde_json::json!(""), Vec::new()),
            (serde_json::Value::Null, Vec::new()),
        ] {
            let mut sent = serde_json::json!({ "hook_event_name": "SubagentStop", "session_id": "s", "agent_type": "general" });
            sent["agent_id"] = agent.clone();
            let letter = hook::read(host, sent.to_string().as_bytes()).unwrap();
            assert_eq!((letter.host, letter.events), (host, expected), "{host} {agent}");
        }
    }
}

/// What Claude Code says of a command that goes on in the background.
fn launched(task: &str, timed_out_after: Option<u64>) -> Finished {
    let sent = serde_json::json!({
        "hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "t",
        "tool_input": { "command": "npm run dev", "run_in_background": true },
        "tool_response": { "stdout": "", "stderr": "", "interrupted": false, "backgroundTaskId": task, "timedOutAfterMs": timed_out_after },
    });
    finished(&hook::read(Host::Claude, sent.to_string().as_bytes()).unwrap()).clone()
}

#[test]
fn two_tasks_in_the_background_are_two_answers_and_one_that_ran_out_of_time_is_still_that() {
    let ending = |ended: &Finished| {
        let seen = &ended.observation;
        see::ending(&see::sight(&seen.call), seen, &RULES.diagnose(seen), ended.said_ok)
    };
    let (first, second) = (launched("bdhnixu1u", None), launched("bokgsyxdz", None));
    assert_eq!((judged(&first), first.observation.outcome), ("fine".to_owned(), Outcome::Succeeded));
    assert_ne!(ending(&first).bytes, ending(&second).bytes);
    assert_ne!(ending(&first).masked, ending(&second).masked);
    assert_eq!(ending(&first).bytes, ending(&launched("bdhnixu1u", None)).bytes);
    let (first, second) = (launched("bdhnixu1u", Some(1500)), launched("bokgsyxdz", Some(1500)));
    assert_eq!(
        (judged(&first), first.observation.outcome),
        ("failed: timeout".to_owned(), Outcome::TimedOut)
    );
    // The same command that runs out of time twice fails by the same cause.
    assert_eq!(ending(&first).upshot, ending(&second).upshot);
}

#[test]
fn codex_keeps_the_exit_code_in_its_transcript() {
    let run = include_str!("../data/codex-shell.jsonl");
    let letter = hook::read(Host::Codex, &payload(Host::Codex, "hook_effects.004-PostToolUse")).unwrap();
    let mut ended = finished(&letter).clone();
    let (path, call) = codex::wanted(&letter, finished(&letter)).unwrap();
    assert!(path.ends_with(".jsonl"), "{path}");
    let line = |id: &str, code: &str| {
        let item = format!(r#"{{"type":"CommandExecution","id":"{id}","exit_code":{code}}}"#);
        format!(r#"{{"type":"event_msg","payload":{{"type":"item_completed","item":{item}}}}}"#)
    };
    // The tail of a transcript begins anywhere in a line, and other calls stand in it, too.
    let other = line("other", "9");
    let tail = format!("{}{other}\n{}\n{{\"x\": \"{call} exit_code\"}}\n", &run[40..], line(call, "3"));
    assert_eq!(codex::exit_code(tail.as_bytes(), call), Some(3));
    assert_eq!(codex::exit_code(line(call, "\"137\"").as_bytes(), call), Some(137));
    for (tail, call) in
        [("", "c"), ("\n\n", "c"), (&*line("c", "null"), "c"), (&*line("c", "1"), ""), (run, "call")]
    {
        assert_eq!(codex::exit_code(tail.as_bytes(), call), None, "{call}");
    }
    codex::tell(&mut ended, 3);
    assert_eq!((ended.observation.outcome, ended.said_ok), (Outcome::Exited { code: 3 }, Some(false)));
    assert_eq!(codex::wanted(&letter, &ended), None);
    let ephemeral = hook::read(Host::Codex, &payload(Host::Codex, "shell_fail-eph.004-PostToolUse")).unwrap();
    assert_eq!(codex::wanted(&ephemeral, finished(&ephemeral)), None);
}

#[test]
fn the_code_of_a_pager_is_none_of_what_it_shows() {
    let sent = String::from_utf8(payload(Host::Codex, "hook_effects.004-PostToolUse")).unwrap();
    let sent = sent.replace("echo A-plain; exit 3", "make | tail");
    let mut ended = finished(&hook::read(Host::Codex, sent.as_bytes()).unwrap()).clone();
    codex::tell(&mut ended, 0);
    assert_eq!((ended.observation.outcome, ended.said_ok), (Outcome::Exited { code: 0 }, Some(true)));
    codex::tell(&mut ended, 141);
    assert_eq!(ended.observation.outcome, Outcome::Exited { code: 141 });
}

#[test]
fn codex_exit_codes_are_found_in_a_real_transcript() {
    let run = include_str!("../data/codex-shell.jsonl");
    let codes: Vec<i32> = run
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|line| line.pointer("/payload/call_id")?.as_str().map(str::to_owned))
        .collect::<std::collections::BTreeSet<_>>()
        .iter()
        .filter_map(|call| codex::exit_code(run.as_bytes(), call))
        .collect();
    assert!(codes.contains(&0) && codes.iter().any(|code| *code != 0), "{codes:?}");
}
