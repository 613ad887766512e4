//! Every reply to every event of every agent, as the JSON that is printed.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Value, json};
use unstuck_wire::hook::{self, Happened, Honours, Host, Letter, Reply};

use super::schema::accepts;
use super::{hosts, payload, payloads};

/// One reply of each kind.
fn replies() -> [(&'static str, Reply); 7] {
    [
        ("silent", Reply::Silent),
        ("tell", Reply::tell("FACTS".to_owned())),
        ("deny", Reply::Deny { reason: "WHY".to_owned() }),
        ("ask", Reply::Ask { reason: "WHY".to_owned() }),
        ("halt", Reply::Halt { reason: "WHY".to_owned(), table: "TABLE".to_owned() }),
        (
            "rewrite",
            Reply::Rewrite { input: json!({ "command": "ls", "timeout": 5 }), text: "CHANGED".to_owned() },
        ),
        ("again", Reply::Again { tool: "t".to_owned(), input: json!({ "a": 1 }), text: "AGAIN".to_owned() }),
    ]
}

fn show_honours(honours: Honours) -> String {
    let Honours { tell, deny, ask, halt, rewrite, again } = honours;
    let names = [
        (tell, "tell"),
        (deny, "deny"),
        (ask, "ask"),
        (halt, "halt"),
        (rewrite, "rewrite"),
        (again, "again"),
    ];
    let names: Vec<&str> = names.iter().filter(|(yes, _)| *yes).map(|(_, name)| *name).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// All replies to one payload.
fn all(door: Host, bytes: &[u8]) -> String {
    let letter = hook::read(door, bytes).unwrap();
    let mut shown = format!("heeds {}\n", show_honours(letter.honours()));
    for (name, reply) in replies() {
        match letter.answer(&reply) {
            Some(answer) => {
                accepts(letter.host, &answer).unwrap_or_else(|error| panic!("{answer}: {error}"));
                writeln!(shown, "  {name}: {answer}").unwrap();
            }
            None => writeln!(shown, "  {name}: —").unwrap(),
        }
    }
    shown
}

/// All replies to one payload of each kind.
fn table(host: Host, names: &[&str]) -> String {
    names.iter().map(|name| format!("{name} {}", all(host, &payload(host, name)))).collect()
}

#[test]
fn claude_code_is_answered_in_its_own_words() {
    insta::assert_snapshot!(table(
        Host::Claude,
        &[
            "PreToolUse.Bash",
            "PermissionRequest",
            "PostToolUse.Bash",
            "PostToolUseFailure.Bash.exit3",
            "PostToolBatch.Edit-not-found",
            "UserPromptSubmit",
            "SessionStart.compact",
            "PermissionDenied",
            "SubagentStop",
            "SessionEnd.other",
            "Stop",
        ]
    ));
}

#[test]
fn codex_is_told_nothing_that_it_does_not_know() {
    insta::assert_snapshot!(table(
        Host::Codex,
        &[
            "hook_effects.003-PreToolUse",
            "hook_effects.004-PostToolUse",
            "shell_fail.002-UserPromptSubmit",
            "shell_fail.001-SessionStart",
            "shell_fail.012-SessionEnd",
            "shell_fail.011-Stop",
        ]
    ));
}

#[test]
fn gemini_cli_is_told_an_error_again_where_it_would_drop_our_words() {
    insta::assert_snapshot!(table(
        Host::Gemini,
        &[
            "shell_fail-nocfg.005-BeforeTool",
            "shell_fail-nocfg.006-AfterTool",
            "gemini_errctx.012-AfterTool",
            "gemini_errctx.010-AfterTool",
            "shell_fail-nocfg.002-BeforeAgent",
            "shell_fail-nocfg.001-SessionStart",
            "shell_fail-nocfg.012-SessionEnd",
        ]
    ));
}

#[test]
fn qwen_code_is_told_after_a_call_and_refused_before_it() {
    insta::assert_snapshot!(table(
        Host::Qwen,
        &[
            "shell_fail.007-PreToolUse",
            "shell_fail.004-PostToolUse",
            "shell_fail.008-PostToolUseFailure",
            "shell_fail.009-PostToolBatch",
            "shell_fail.002-UserPromptSubmit",
            "shell_fail.001-SessionStart",
        ]
    ));
}

#[test]
fn our_plugin_for_opencode_is_answered_in_its_three_words() {
    insta::assert_snapshot!(table(
        Host::Opencode,
        &[
            "shell_fail.004-tool.execute.before",
            "shell_fail.005-tool.execute.after",
            "mcp_fail.005-event.message.part.updated",
            "plugin.chat.message",
        ]
    ));
}

#[test]
fn copilot_is_answered_in_the_style_it_asked_in() {
    insta::assert_snapshot!(table(
        Host::Copilot,
        &[
            "hook_effects.003-preToolUse",
            "hook_effects.005-postToolUse",
            "copilot_misc.010-postToolUseFailure",
            "mcp_fail-modern.004-permissionRequest",
            "shell_fail-pascal.006-PreToolUse",
            "shell_fail-claudecfg.002-PostToolUse",
            "copilot_misc-pascal.006-PostToolUseFailure",
            "shell_fail-pascal.001-SessionStart",
        ]
    ));
}

#[test]
fn cursor_is_answered_as_its_documentation_wants_it() {
    insta::assert_snapshot!(table(
        Host::Cursor,
        &["preToolUse", "postToolUse.exit0", "postToolUseFailure.exit", "sessionStart", "sessionEnd"]
    ));
}

#[test]
fn every_answer_to_every_payload_is_one_that_its_sender_accepts() {
    let mut told = BTreeSet::new();
    for host in hosts() {
        for (name, bytes) in payloads(host) {
            let letter = hook::read(host, &bytes).unwrap();
            let honours = letter.honours();
            for (kind, reply) in replies() {
                let answer = letter.answer(&reply);
                if let Some(answer) = &answer {
                    accepts(host, answer)
                        .unwrap_or_else(|error| panic!("{host} {name} {kind}: {answer}: {error}"));
                    assert!(!answer.contains("allow"), "{host} {name} {kind}");
                    told.insert((host, kind));
                }
                let is_heeded = match &reply {
                    Reply::Silent => false,
                    Reply::Tell { .. } => honours.tell,
                    Reply::Deny { .. } => honours.deny,
                    Reply::Ask { .. } => honours.ask,
                    Reply::Halt { .. } => honours.halt,
                    Reply::Rewrite { .. } => honours.rewrite,
                    Reply::Again { .. } => honours.again,
                };
                assert!(answer.is_some() || !is_heeded, "{host} {name} heeds {kind} and is told nothing");
            }
        }
    }
    // A table in which nothing is said would hold all of the above.
    assert!(hosts().all(|host| told.contains(&(host, "deny")) && told.contains(&(host, "tell"))), "{told:?}");
}

#[test]
fn a_rewrite_hands_on_the_whole_input_and_says_nothing_of_permission() {
    let input =
        json!({ "command": "python3 x.py", "timeout": 9, "description": "d", "nested": { "a": [1, null] } });
    let reply = Reply::Rewrite { input: input.clone(), text: "python is python3 here".to_owned() };
    let sent = |host, name: &str, pointer: &str| {
        let answer = hook::read(host, &payload(host, name)).unwrap().answer(&reply).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer.pointer(pointer), Some(&input), "{host}");
        let output = &answer["hookSpecificOutput"];
        assert!(
            output.get("permissionDecision").is_none() && answer.get("permissionDecision").is_none(),
            "{host}"
        );
    };
    sent(Host::Claude, "PreToolUse.Bash", "/hookSpecificOutput/updatedInput");
    sent(Host::Gemini, "shell_fail-nocfg.005-BeforeTool", "/hookSpecificOutput/tool_input");
    sent(Host::Opencode, "shell_fail.004-tool.execute.before", "/args");
    sent(Host::Copilot, "hook_effects.003-preToolUse", "/modifiedArgs");
    sent(Host::Copilot, "shell_fail-pascal.006-PreToolUse", "/hookSpecificOutput/updatedInput");
}

/// A call whose input is too large to be kept whole.
fn huge(host: Host, name: &str, field: &str) -> Letter {
    let mut sent: Value = serde_json::from_slice(&payload(host, name)).unwrap();
    sent[field]["command"] = Value::String("x ".repeat(100_000));
    hook::read(host, sent.to_string().as_bytes()).unwrap()
}

#[test]
fn an_input_that_was_not_kept_whole_is_never_sent_on() {
    for letter in [
        huge(Host::Claude, "PreToolUse.Bash", "tool_input"),
        huge(Host::Gemini, "shell_fail-nocfg.006-AfterTool", "tool_input"),
        huge(Host::Opencode, "shell_fail.004-tool.execute.before", "args"),
        huge(Host::Copilot, "hook_effects.003-preToolUse", "toolArgs"),
    ] {
        let honours = letter.honours();
        assert!(!honours.rewrite && !honours.again, "{}", letter.host);
        let cut = match &letter.events[..] {
            [Happened::Before { call, .. }] => call.clone(),
            [Happened::After(finished)] => finished.observation.call.clone(),
            other => panic!("{other:?}"),
        };
        for reply in [
            Reply::Rewrite { input: cut.input.clone(), text: "t".to_owned() },
            Reply::Again { tool: cut.tool.clone(), input: cut.input.clone(), text: "t".to_owned() },
        ] {
            let answer = letter.answer(&reply).unwrap_or_default();
            assert!(!answer.contains("command"), "{}: {answer}", letter.host);
        }
    }
}

#[test]
fn an_input_that_is_no_object_is_never_sent_on() {
    for host in hosts() {
        for (name, bytes) in payloads(host) {
            let letter = hook::read(host, &bytes).unwrap();
            for reply in [
                Reply::Rewrite { input: json!("ls"), text: "t".to_owned() },
                Reply::Again { tool: "t".to_owned(), input: json!([1]), text: "t".to_owned() },
            ] {
                let Some(answer) = letter.answer(&reply) else { continue };
                accepts(host, &answer).unwrap_or_else(|error| panic!("{host} {name}: {answer}: {error}"));
            }
        }
    }
}

#[test]
fn a_refusal_without_words_is_still_one_and_nothing_is_changed_without_words() {
    for (host, name) in [
        (Host::Claude, "PreToolUse.Bash"),
        (Host::Codex, "hook_effects.003-PreToolUse"),
        (Host::Gemini, "shell_fail-nocfg.005-BeforeTool"),
        (Host::Qwen, "shell_fail.007-PreToolUse"),
        (Host::Opencode, "shell_fail.004-tool.execute.before"),
        (Host::Copilot, "hook_effects.003-preToolUse"),
        (Host::Copilot, "shell_fail-pascal.006-PreToolUse"),
        (Host::Cursor, "preToolUse"),
    ] {
        let letter = hook::read(host, &payload(host, name)).unwrap();
        let halt = Reply::Halt { reason: " ".to_owned(), table: String::new() };
        for reply in [Reply::Deny { reason: String::new() }, halt] {
            let answer = letter.answer(&reply).unwrap();
            assert!(answer.contains("deny") && answer.contains("Blocked by unstuck"), "{host}: {answer}");
        }
        let rewrite = Reply::Rewrite { input: json!({ "command": "ls" }), text: " ".to_owned() };
        assert_eq!(letter.answer(&rewrite), None, "{host}");
        assert_eq!(letter.answer(&Reply::tell("\n".to_owned())), None, "{host}");
    }
}

#[test]
fn a_run_is_said_to_end_exactly_where_the_answer_ends_it() {
    let halt = Reply::Halt { reason: "WHY".to_owned(), table: "TABLE".to_owned() };
    let mut ending = BTreeSet::new();
    for host in hosts() {
        for (name, bytes) in payloads(host) {
            let letter = hook::read(host, &bytes).unwrap();
            let answer = letter.answer(&halt).unwrap_or_default();
            let json: Value = serde_json::from_str(&answer).unwrap_or_default();
            // The two ways that end a run: by this word, and by a block after a batch of Claude Code.
            let ends = json["continue"] == Value::Bool(false)
                || letter.hook == "PostToolBatch" && json["decision"] == "block" && json["reason"] == "WHY";
            assert_eq!(letter.honours().halt, ends, "{host} {name}: {answer}");
            // Who is to know what was tried knows it: the person where the run ends, else the model.
            let is_told = letter.honours().tell || letter.honours().deny;
            let is_answered = letter.hook == "PermissionRequest" || answer.contains("TABLE");
            assert!(!is_told || is_answered, "{host} {name}: {answer}");
            if ends {
                ending.insert((host, letter.hook));
            }
        }
    }
    let ending: Vec<_> = ending.iter().map(|(host, hook)| format!("{host} {hook}")).collect();
    assert_eq!(
        ending,
        [
            "claude PostToolBatch",
            "claude PostToolUse",
            "claude PreToolUse",
            "gemini AfterTool",
            "gemini BeforeTool"
        ]
    );
}

#[test]
fn a_call_sent_again_from_a_hook_is_not_sent_again_from_the_hook() {
    let first = hook::read(Host::Gemini, &payload(Host::Gemini, "gemini_errctx.008-AfterTool")).unwrap();
    let second = hook::read(Host::Gemini, &payload(Host::Gemini, "gemini_errctx.010-AfterTool")).unwrap();
    let again = Reply::Again { tool: "t".to_owned(), input: json!({}), text: "x".to_owned() };
    let retried = |letter: &Letter| letter.answer(&again).unwrap().contains("tailToolCallRequest");
    assert!(first.honours().again && retried(&first));
    assert!(!second.honours().again && !retried(&second));
}

#[test]
fn the_documentation_says_what_each_event_heeds() {
    let page = include_str!("../../../../docs/agents.md");
    let rows: Vec<Vec<&str>> =
        page.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    let mut wanted = BTreeSet::new();
    for host in hosts() {
        let agent = match host {
            Host::Claude => "Claude Code",
            Host::Codex => "Codex",
            Host::Gemini => "Gemini CLI",
            Host::Qwen => "Qwen Code",
            Host::Opencode => "opencode",
            Host::Copilot => "Copilot",
            Host::Cursor => "Cursor",
            Host::Generic => continue,
        };
        for (name, bytes) in payloads(host) {
            let sent: Value = serde_json::from_slice(&bytes).unwrap();
            let event = sent["hook_event_name"].as_str().or_else(|| name.rsplit('-').next()).unwrap();
            let honours = hook::read(host, &bytes).unwrap().honours();
            // A call that was sent from the hook is not sent again; that is said in words.
            let honours = Honours { again: honours.again || event == "AfterTool", ..honours };
            if honours != Honours::default() && !name.starts_with("claude-settings") {
                wanted.insert((agent, event.to_owned(), show_honours(honours)));
            }
        }
    }
    let names = |cell: &str, event: &str| cell.split(", ").any(|name| name.trim_matches('`') == event);
    for (agent, event, heeds) in &wanted {
        let is_said = |row: &Vec<&str>| matches!(row[..], [who, cell, what] if who == *agent && what == heeds && names(cell, event));
        assert!(rows.iter().any(is_said), "docs/agents.md lacks: | {agent} | `{event}` | {heeds} |");
    }
    for row in &rows {
        if let [who, cell, what] = row[..]
            && cell.starts_with('`')
            && wanted.iter().any(|(agent, ..)| *agent == who)
        {
            let is_true = |(agent, event, heeds): &(&str, String, String)| {
                *agent == who && heeds == what && names(cell, event)
            };
            assert!(wanted.iter().any(is_true), "docs/agents.md says what is not so: {row:?}");
        }
    }
}
