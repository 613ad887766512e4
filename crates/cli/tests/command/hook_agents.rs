//! The doors of the agent programs: payloads as they send them, answers as they heed them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{Said, World};

/// A machine on which a busy moment is no reason to fall silent.
fn patient() -> World {
    World::empty().with(
        "config/unstuck/config.toml",
        "[hook]\ndeadline-before = \"10s\"\ndeadline-after = \"60s\"\n[store]\nwait-before = \"10s\"\n",
    )
}

fn hook(world: &World, agent: &str, payload: &Value) -> Said {
    world.run(&["hook", agent], payload.to_string())
}

/// The answer; null where nothing was said.
#[track_caller]
fn answer(world: &World, agent: &str, payload: &Value) -> Value {
    let said = hook(world, agent, payload);
    assert_eq!((said.stderr(), said.exit), ("", 0), "{said}");
    match said.stdout() {
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap(),
    }
}

/// What Claude Code says of a call.
fn claude(event: &str, id: &str, command: &str) -> Value {
    json!({
        "session_id": "s", "transcript_path": "/nowhere", "cwd": "/src", "permission_mode": "default",
        "hook_event_name": event, "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": id,
    })
}

fn failed(id: &str, command: &str, error: &str) -> Value {
    let mut payload = claude("PostToolUseFailure", id, command);
    payload["error"] = json!(error);
    payload["is_interrupt"] = json!(false);
    payload["duration_ms"] = json!(12);
    payload
}

/// Runs a command that fails, as far as it is allowed to; says what was said before and after it.
fn attempt(world: &World, id: &str, command: &str, error: &str) -> [Value; 2] {
    let before = answer(world, "claude", &claude("PreToolUse", id, command));
    match before["hookSpecificOutput"]["permissionDecision"].is_null() {
        true => [before, answer(world, "claude", &failed(id, command, error))],
        false => [before, Value::Null],
    }
}

fn context(answer: &Value) -> &str {
    answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default()
}

fn reason(answer: &Value) -> &str {
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap()
}

const MISSING: &str = "Exit code 127\n/bin/bash: line 1: frob: command not found";
const UNHAPPY: &str = "Exit code 1\nerror: the frobnicator is unhappy";

#[test]
fn a_failure_is_explained_then_hinted_at_then_refused_with_a_way_out() {
    let world = patient();
    let [silent, noted] = attempt(&world, "a", "./build", UNHAPPY);
    assert_eq!(silent, Value::Null);
    assert!(context(&noted).contains("⟦error: the frobnicator is unhappy⟧"), "{noted}");
    let [_, hinted] = attempt(&world, "b", "./build", UNHAPPY);
    assert!(context(&hinted).starts_with("This is failure number 2"), "{hinted}");
    assert!(context(&hinted).chars().count() <= 600);
    attempt(&world, "c", "frob x", MISSING);
    let [refused, _] = attempt(&world, "d", "frob x", MISSING);
    let reason = reason(&refused);
    assert!(reason.starts_with("Blocked by unstuck: the program does not exist here: ⟦"), "{reason}");
    for words in
        ["Looked just now: there is still no `frob` on PATH.", "Tried so far: `frob x`", "unstuck allow "]
    {
        assert!(reason.contains(words), "{words}: {reason}");
    }
    // What is refused here is still refused when it is asked for again under the same name, and counted once.
    assert_eq!(answer(&world, "claude", &claude("PreToolUse", "d", "frob x")), refused);
    let [changed, _] = attempt(&world, "e", "./build --verbose-log other.log", UNHAPPY);
    assert_eq!(changed["hookSpecificOutput"]["permissionDecision"], Value::Null, "{changed}");
}

#[test]
fn an_unattended_run_that_goes_on_is_only_refused_and_in_an_attended_one_the_person_is_asked() {
    for attended in ["0", "1"] {
        let world = patient();
        attempt(&world, "a", "frob x", MISSING);
        let mut last = Value::Null;
        for id in ["c", "d", "e", "f", "g", "h"] {
            last = seen_by(&world, attended, &claude("PreToolUse", id, "frob x"));
        }
        assert_eq!((&last["continue"], &last["stopReason"]), (&Value::Null, &Value::Null), "{last}");
        let output = &last["hookSpecificOutput"];
        let decision = if attended == "1" { "ask" } else { "deny" };
        assert_eq!(output["permissionDecision"], decision, "{last}");
        let shown = output["permissionDecisionReason"].as_str().unwrap();
        assert_eq!(shown.contains("Attempt: `frob x`"), attended == "1", "{last}");
    }
}

/// The answer in a session that a person attends, or does not.
fn seen_by(world: &World, attended: &str, payload: &Value) -> Value {
    let mut command = world.command(&["hook", "claude"]);
    let mut child = command.env("CLAUDE_CODE_SESSION_ATTENDED", attended).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.to_string().as_bytes()).unwrap();
    serde_json::from_str(Said::by(child).stdout()).unwrap_or(Value::Null)
}

fn prompt(text: &str) -> Value {
    json!({ "session_id": "s", "cwd": "/src", "hook_event_name": "UserPromptSubmit", "prompt": text })
}

#[test]
fn a_message_typed_while_a_call_runs_says_nothing_of_it() {
    let world = patient();
    answer(&world, "claude", &claude("PreToolUse", "a", "sleep 5"));
    assert_eq!(answer(&world, "claude", &prompt("again")), Value::Null);
    let mut ended = claude("PostToolUse", "a", "sleep 5");
    ended["tool_response"] = json!({ "stdout": "", "stderr": "", "interrupted": false });
    assert_eq!(answer(&world, "claude", &ended), Value::Null);
    assert!(!world.run(&["log", "--json"], "").stdout().contains("sealed"));
}

#[test]
fn a_call_that_a_person_rejected_is_not_spoken_of_again() {
    // In one mode it is told that a person is asked, in another it is not.
    for is_told in [true, false] {
        let world = patient();
        answer(&world, "claude", &claude("PreToolUse", "a", "touch made.txt"));
        if is_told {
            let mut asked = claude("PermissionRequest", "a", "touch made.txt");
            asked.as_object_mut().unwrap().remove("tool_use_id");
            answer(&world, "claude", &asked);
        }
        assert_eq!(answer(&world, "claude", &prompt("go on")), Value::Null);
        assert_eq!(answer(&world, "claude", &claude("PreToolUse", "b", "ls")), Value::Null);
        let began = json!({ "session_id": "s", "cwd": "/src", "hook_event_name": "SessionStart", "source": "resume" });
        let told = answer(&world, "claude", &began);
        assert!(!told.to_string().contains("made.txt"), "{told}");
    }
}

#[test]
fn what_the_proxy_explained_is_not_explained_again() {
    let world = patient();
    let account = r#"{"ok":false,"error":"no such file x","errorType":"runtime","retryable":false,"recommendations":[],"kind":"path_not_found"}"#;
    for (shown, is_told) in
        [(format!("ENOENT: no such file x\n{account}"), false), ("ENOENT: no such file x".to_owned(), true)]
    {
        let mut payload = failed("a", "", &shown);
        payload["tool_name"] = json!("mcp__files__read");
        payload["tool_input"] = json!({ "path": "x" });
        payload["tool_use_id"] = json!(is_told.to_string());
        let told = answer(&world, "claude", &payload);
        assert_eq!(!context(&told).is_empty(), is_told, "{told}");
        let log = world.run(&["log", "--json"], "");
        assert!(log.stdout().contains("ENOENT") && !log.stdout().contains("errorType\\\""), "{log}");
    }
}

#[test]
fn a_wrong_path_is_answered_with_where_the_file_is() {
    let world = patient().with("src/app/core.py", "x\n").with("src/.git/HEAD", "");
    let mut payload =
        failed("a", "cat lib/core.py", "Exit code 1\ncat: lib/core.py: No such file or directory");
    payload["cwd"] = json!(world.path("src"));
    let told = answer(&world, "claude", &payload);
    assert!(context(&told).ends_with("`core.py` is at `app/core.py`."), "{told}");
}

#[test]
fn a_risky_call_is_spoken_of_where_nothing_can_be_written() {
    let world = patient().with("src/a.txt", "precious\n");
    let settings = world.path("config/unstuck/config.toml");
    let before = fs::read_to_string(&settings).unwrap();
    fs::write(settings, before.replace("[store]", "[store]\nstate-dir = \"/proc/unstuck\"")).unwrap();
    let mut payload = claude("PreToolUse", "a", "rm -rf src");
    payload["cwd"] = json!(world.path(""));
    let told = answer(&world, "claude", &payload);
    assert!(context(&told).contains("could not be saved before it"), "{told}");
}

#[test]
fn a_call_that_comes_too_early_is_held_for_as_long_as_it_takes() {
    let world = patient();
    let busy = "Exit code 22\ncurl: (22) The requested URL returned error: 429\nRetry-After: 1";
    let [_, told] = attempt(&world, "a", "curl -f https://api.example/x", busy);
    assert!(context(&told).contains("The same call may work again in 1 s."), "{told}");
    let begun = Instant::now();
    let [held, _] = attempt(&world, "b", "curl -f https://api.example/x", busy);
    assert_eq!(held, Value::Null);
    assert!(begun.elapsed() > Duration::from_millis(200), "{:?}", begun.elapsed());
    let log = world.run(&["log", "--json"], "");
    assert!(log.stdout().contains("\"tool:retry\""), "{log}");
}

#[test]
fn what_only_a_batch_tells_is_counted_too() {
    let world = patient();
    let batch = |id: &str| {
        json!({
            "session_id": "s", "cwd": "/src", "hook_event_name": "PostToolBatch", "permission_mode": "default",
            "tool_calls": [{
                "tool_name": "Edit", "tool_use_id": id,
                "tool_input": { "file_path": "/src/a.rs", "old_string": "x", "new_string": "y" },
                "tool_response": "<tool_use_error>String to replace not found in file.\nString: x</tool_use_error>",
            }],
        })
    };
    let told: Vec<String> =
        ["a", "b", "c"].map(|id| context(&answer(&world, "claude", &batch(id))).to_owned()).to_vec();
    assert!(told[2].contains("failure number 3"), "{told:#?}");
    // It goes on all the same, and cannot be refused: the run is stopped, and all of the batch is on record.
    for id in ["d", "e"] {
        seen_by(&world, "1", &batch(id));
    }
    let mut last = batch("f");
    let other = json!({ "tool_name": "Read", "tool_use_id": "g", "tool_input": { "file_path": "/src/b" }, "tool_response": "b" });
    last["tool_calls"].as_array_mut().unwrap().push(other);
    let stopped = seen_by(&world, "1", &last);
    assert_eq!(stopped["decision"], "block", "{stopped}");
    assert!(stopped["systemMessage"].as_str().unwrap().contains("Attempt: "), "{stopped}");
    let log = world.run(&["log", "--json"], "");
    assert!(log.stdout().contains("\"key\":\"f\"") && log.stdout().contains("\"call\":7"), "{log}");
    // The same batch, told by two settings files, is heard once.
    assert_eq!(answer(&world, "claude", &batch("c")), Value::Null);
}

/// A machine whose only Python is called `python3`.
fn with_python3_only(rewrites: &str) -> (World, String) {
    let world = patient().with("bin/python3", "#!/bin/sh\n");
    let program = world.path("bin/python3");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/nowhere", world.path("bin").display());
    let settings = world.path("config/unstuck/config.toml");
    let before = fs::read_to_string(&settings).unwrap();
    fs::write(settings, format!("{before}[rewrite]\nmode = \"{rewrites}\"\n")).unwrap();
    (world, path)
}

#[test]
fn a_repeat_that_can_be_put_right_is_rewritten_only_where_the_person_wants_it() {
    let missing = "Exit code 127\n/bin/bash: line 1: python: command not found";
    for (mode, path_has_it) in [("auto", true), ("auto", false), ("suggest", true), ("off", true)] {
        let (world, path) = with_python3_only(mode);
        let path = if path_has_it { path } else { "/nowhere".to_owned() };
        let ask = |payload: &Value| -> Value {
            let mut child = world.command(&["hook", "claude"]).env("PATH", &path).spawn().unwrap();
            let text = payload.to_string();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
            serde_json::from_str(Said::by(child).stdout()).unwrap_or(Value::Null)
        };
        let mut before = claude("PreToolUse", "a", "python a.py --x | tail -3");
        ask(&before);
        let told = ask(&failed("a", "python a.py --x | tail -3", missing));
        let proposes = path_has_it && mode != "off";
        assert_eq!(context(&told).contains("python3"), proposes, "{mode}: {told}");
        before["tool_use_id"] = json!("b");
        before["tool_input"]["timeout"] = json!(5000);
        before["tool_input"]["command"] = json!("python a.py --x | tail -3");
        let answer = ask(&before);
        let output = &answer["hookSpecificOutput"];
        if mode == "auto" && path_has_it {
            let expected = json!({ "command": "python3 a.py --x | tail -3", "timeout": 5000 });
            assert_eq!(output["updatedInput"], expected, "{answer}");
            assert_eq!(output["permissionDecision"], Value::Null, "whether it may run is not for us to say");
            assert!(context(&answer).contains("instead of `python`"), "{answer}");
            let log = world.run(&["log", "--json"], "");
            assert!(log.stdout().contains("tool:rewritten"), "{log}");
        } else {
            assert_eq!(reason(&answer).contains("python3"), proposes, "{mode}: {answer}");
            assert_eq!(output["updatedInput"], Value::Null);
        }
    }
}

#[test]
fn after_a_conversation_was_shortened_what_matters_is_said_again() {
    let world = patient();
    attempt(&world, "a", "./build", UNHAPPY);
    attempt(&world, "b", "./build", UNHAPPY);
    let start = |source: &str| json!({ "session_id": "s", "cwd": "/src", "hook_event_name": "SessionStart", "source": source });
    let told = answer(&world, "claude", &start("compact"));
    assert!(
        context(&told)
            .contains("- `./build` ×2: output, quoted as data: ⟦error: the frobnicator is unhappy⟧")
    );
    assert_eq!(told["hookSpecificOutput"]["hookEventName"], "SessionStart");
    assert_eq!(answer(&world, "claude", &start("resume")), Value::Null);
}

#[test]
fn a_payload_of_another_program_is_answered_in_its_own_words() {
    let world = patient();
    let copilot = json!({
        "hook_event_name": "PostToolUse", "session_id": "s", "timestamp": "2026-11-15T10:00:00.000Z", "cwd": "/src",
        "tool_name": "Bash", "tool_input": { "command": "./build" },
        "tool_result": {
            "result_type": "success",
            "text_result_for_llm": "error: the frobnicator is unhappy\n<shellId: 0 completed with exit code 1>",
        },
    });
    let told = answer(&world, "claude", &copilot);
    assert!(told["additionalContext"].as_str().unwrap().contains("frobnicator"), "{told}");
    assert_eq!(told["hookSpecificOutput"], Value::Null);
}

#[test]
fn nothing_that_comes_in_makes_a_hook_fail_or_speak() {
    let world = patient();
    let huge = claude("PreToolUse", "huge", &"x".repeat(50_000_000)).to_string();
    let cut = claude("PreToolUse", "cut", "ls").to_string();
    let odd = [
        b"".to_vec(),
        b"   \n".to_vec(),
        b"not json".to_vec(),
        b"[1,2]".to_vec(),
        b"{}".to_vec(),
        b"\xff\xfe\x00{".to_vec(),
        br#"{"hook_event_name":"PreToolUse"}"#.to_vec(),
        br#"{"hook_event_name":7,"session_id":[],"tool_name":{},"tool_input":"x"}"#.to_vec(),
        br#"{"hook_event_name":"MessageDisplay","session_id":"s"}"#.to_vec(),
        br#"{"hook_event_name":"InventedLater","session_id":"s","tool_name":"Bash"}"#.to_vec(),
        cut.as_bytes()[..cut.len() / 2].to_vec(),
        huge.into_bytes(),
    ];
    for agent in ["claude", "codex", "gemini", "qwen", "opencode", "copilot", "cursor", "nobody", ""] {
        for payload in &odd {
            let said = world.run(&["hook", agent], payload);
            let shown = String::from_utf8_lossy(&payload[..payload.len().min(60)]);
            assert_eq!((said.stdout(), said.stderr(), said.exit), ("", "", 0), "{agent}: {shown}");
        }
    }
    let log = world.run(&["log", "--json"], "");
    assert!(log.stdout().contains("a payload cannot be read"), "what cannot be read is counted");
    assert!(log.stdout().contains("no door is called nobody"));
}

#[test]
fn a_store_that_cannot_be_used_is_not_noticed_by_the_agent() {
    let world = World::empty().with(".local/state/unstuck", "a file where the folder should be");
    let said = hook(&world, "claude", &claude("PreToolUse", "a", "ls"));
    assert_eq!((said.stdout(), said.stderr(), said.exit), ("", "", 0));
}

#[test]
fn a_hook_that_has_no_answer_in_time_ends_without_a_word() {
    let world = patient();
    answer(&world, "claude", &claude("PreToolUse", "a", "ls"));
    // The payload never comes to its end.
    let mut child = world.command(&["--set", "hook.deadline-after=300ms", "hook", "claude"]).spawn().unwrap();
    let mut open = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut open, b"{\"session_id\":").unwrap();
    let said = Said::by(child);
    assert_eq!((said.stdout(), said.stderr(), said.exit), ("", "", 0));
    drop(open);
    let log = world.run(&["log", "--json"], "");
    assert!(log.stdout().contains("a hook had no answer after 3"), "{log}");
}

#[test]
fn where_a_hook_can_send_a_call_again_it_does_so_once() {
    let world = patient();
    let gemini = |event: &str| {
        json!({
            "session_id": "s", "cwd": "/src", "hook_event_name": event, "timestamp": "2026-11-15T15:00:00.000Z",
            "tool_name": "run_shell_command", "tool_input": { "command": "curl -sf https://api.example/x" },
        })
    };
    answer(&world, "gemini", &gemini("BeforeTool"));
    let mut after = gemini("AfterTool");
    after["tool_response"] = json!({
        "llmContent": "Output: HTTP/1.1 503 Service Unavailable\nRetry-After: 1\nExit Code: 22", "returnDisplay": "",
    });
    let again = answer(&world, "gemini", &after);
    let request = &again["hookSpecificOutput"]["tailToolCallRequest"];
    assert_eq!(*request, json!({ "name": "run_shell_command", "args": after["tool_input"] }), "{again}");
    after["original_request_name"] = json!("run_shell_command");
    let told = answer(&world, "gemini", &after);
    assert_eq!(told["hookSpecificOutput"]["tailToolCallRequest"], Value::Null);
    assert!(context(&told).contains("503"), "{told}");
    // What may have done something is never sent again by us.
    let mut post = gemini("AfterTool");
    post["tool_input"]["command"] = json!("curl -sf -X POST https://api.example/orders");
    post["tool_response"] = after["tool_response"].clone();
    let told = answer(&world, "gemini", &post);
    assert_eq!(told["hookSpecificOutput"]["tailToolCallRequest"], Value::Null, "{told}");
    // Nor is what nobody knows.
    let mut withdraw = post;
    withdraw["tool_name"] = json!("mcp_bank_withdraw");
    withdraw["tool_input"] = json!({ "amount": 100 });
    withdraw["tool_response"] = json!({
        "llmContent": "", "returnDisplay": "",
        "error": { "message": "MCP error -32001: Request timed out", "type": "mcp_tool_error" },
    });
    let told = answer(&world, "gemini", &withdraw);
    assert_eq!(told["hookSpecificOutput"]["tailToolCallRequest"], Value::Null, "{told}");
}

#[test]
fn a_program_that_runs_the_hooks_of_another_beside_its_own_is_heard_once() {
    let world = patient();
    world.run(&["install", "copilot", "--user"], "").complains(0, &[]);
    let through_claude = json!({
        "hook_event_name": "PostToolUse", "session_id": "s", "timestamp": "2026-11-15T10:00:00.000Z", "cwd": "/src",
        "tool_name": "Bash", "tool_input": { "command": "./build" },
        "tool_result": { "result_type": "success", "text_result_for_llm": "error: no\n<exited with exit code 1>" },
    });
    assert_eq!(answer(&world, "claude", &through_claude), Value::Null);
    assert_ne!(answer(&world, "copilot", &through_claude), Value::Null);
}

#[test]
fn a_change_that_no_hook_saw_lifts_a_refusal() {
    for (command, error, file) in [
        ("gcc a.c", "Exit code 1\na.c:1:1: error: unknown type name 'itn'", "src/a.c"),
        ("frobber x", "Exit code 127\nbash: line 1: frobber: command not found", "bin/frobber"),
    ] {
        let world = patient().with("src/a.c", "itn main() {}\n").with("bin/other", "");
        let ask = |payload: &mut Value| -> Value {
            payload["cwd"] = json!(world.path("src"));
            let path = format!("{}:/usr/bin:/bin", world.path("bin").display());
            let mut child = world.command(&["hook", "claude"]).env("PATH", path).spawn().unwrap();
            let text = payload.to_string();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
            serde_json::from_str(Said::by(child).stdout()).unwrap_or(Value::Null)
        };
        for id in ["a", "b"] {
            if ask(&mut claude("PreToolUse", id, command)).is_null() {
                ask(&mut failed(id, command, error));
            }
        }
        let refused = ask(&mut claude("PreToolUse", "c", command));
        assert!(reason(&refused).contains("Looked just now:"), "{refused}");
        std::thread::sleep(Duration::from_millis(50));
        fs::write(world.path(file), "int main() {}\n").unwrap();
        fs::set_permissions(world.path(file), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(ask(&mut claude("PreToolUse", "d", command)), Value::Null, "{command}");
        // It still fails: now it is known again. What was missing and is there is no reason any more.
        ask(&mut failed("d", command, error));
        let again = ask(&mut claude("PreToolUse", "e", command));
        let expected = if command == "gcc a.c" { json!("deny") } else { Value::Null };
        assert_eq!(again["hookSpecificOutput"]["permissionDecision"], expected, "{again}");
    }
}

#[test]
fn what_an_earlier_session_missed_is_told_with_the_result_where_nothing_is_heard_before() {
    let world = patient();
    let play = |session: &str| {
        let gemini = |event: &str| {
            json!({
                "session_id": session, "cwd": "/src", "hook_event_name": event,
                "tool_name": "run_shell_command", "tool_input": { "command": "frob x" },
            })
        };
        let before = answer(&world, "gemini", &gemini("BeforeTool"));
        let mut after = gemini("AfterTool");
        let printed = "Output: bash: line 1: frob: command not found\nExit Code: 127";
        after["tool_response"] = json!({ "llmContent": printed, "returnDisplay": "" });
        (before, answer(&world, "gemini", &after))
    };
    let remembered = "Remembered from earlier sessions on this machine";
    let (_, first) = play("one");
    assert!(!context(&first).contains(remembered), "{first}");
    let (before, second) = play("two");
    assert_eq!(before, Value::Null);
    assert!(context(&second).contains(remembered), "{second}");
}
