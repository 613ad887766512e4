//! Words of outputs at every door: whatever a tool prints, it stands in our answers as quoted data or not at all.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::{Said, World, repository};

/// A hostile subject, and what of it must not stand outside of a quotation.
pub(crate) struct Hostile {
    pub(crate) subject: String,
    pub(crate) tell: String,
}

/// How failures name what they are about: what is printed, the exit code, and a call that fails so.
const PRINTED: [(&str, i32, &str); 12] = [
    ("Error: Cannot find module '{}'", 1, "node app.js"),
    ("error: no such command: `{}`", 101, "cargo foo"),
    ("a.c:1:10: fatal error: {}: No such file or directory", 1, "make"),
    ("bash: line 1: {}: command not found", 127, "frob x"),
    ("cat: {}: No such file or directory", 1, "cat x"),
    ("{}", 1, "./build"),
    ("FAILED tests/test_a.py::{} - assert 1 == 2", 1, "pytest"),
    ("curl: (6) Could not resolve host: {}", 6, "curl x"),
    ("ModuleNotFoundError: No module named '{}'", 1, "python a.py"),
    ("fatal: couldn't find remote ref {}", 128, "git fetch"),
    ("CONFLICT (content): Merge conflict in {}\nAutomatic merge failed", 1, "git merge x"),
    ("HTTP/1.1 500 Internal Server Error\n\n{}", 22, "curl -f http://x.example"),
];

/// Everything hostile of the corpus.
pub(crate) fn corpus() -> Vec<Hostile> {
    let text = fs::read_to_string(repository("corpus/injection.jsonl")).unwrap();
    let rows: Vec<Hostile> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|row| row["hostile"] == true)
        .map(|row| Hostile {
            subject: row["subject"].as_str().unwrap().to_owned(),
            tell: row["tell"].as_str().unwrap().to_owned(),
        })
        .collect();
    assert!(rows.len() >= 160, "{}", rows.len());
    rows
}

/// The failures that the corpus makes, each subject in another one: what is printed, the exit code, the call, the subject.
fn failures() -> Vec<(String, i32, &'static str, Hostile)> {
    corpus()
        .into_iter()
        .zip(PRINTED.iter().cycle())
        .map(|(row, (printed, code, call))| (printed.replace("{}", &row.subject), *code, *call, row))
        .collect()
}

/// Does a sign hide or act?
fn hides(sign: char) -> bool {
    sign.is_control() && sign != '\n' && sign != '\t'
        || matches!(
            sign,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        )
        || matches!(sign, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(sign, '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{10ffff}')
        || matches!(sign, '\u{fdd0}'..='\u{fdef}' | '\u{1fffe}' | '\u{1ffff}')
}

/// Fails where a text holds a sign that hides or acts.
#[track_caller]
pub(crate) fn shows_all(text: &str, door: &str) {
    if let Some((at, sign)) = text.char_indices().find(|(_, sign)| hides(*sign)) {
        let from = text.floor_char_boundary(at.saturating_sub(60));
        panic!("{door}: U+{:04X} in {:?}", u32::from(sign), &text[from..at]);
    }
}

/// Fails where a text of ours says what somebody else wrote: outside of a quotation, or with a quotation that is left.
#[track_caller]
pub(crate) fn quotes(text: &str, tell: &str, door: &str) {
    shows_all(text, door);
    let mut outside = String::new();
    let mut is_inside = false;
    for sign in text.chars() {
        match (sign, is_inside) {
            ('⟦', false) => is_inside = true,
            ('⟧', true) => is_inside = false,
            ('⟦' | '⟧', _) => panic!("{door}: a broken fence in {text}"),
            (sign, false) => outside.push(sign),
            (_, true) => {}
        }
    }
    for mark in ["</output", "<|", "<｜", "```", "<system", "</system"] {
        assert!(!text.contains(mark), "{door}: a mark of a host in {text}");
    }
    assert!(!is_inside, "{door}: an open fence in {text}");
    assert!(!outside.contains(tell), "{door}: {tell:?} speaks in {text}");
}

/// The same for every text of an answer, but for the fields that hold evidence and say so.
#[track_caller]
pub(crate) fn all_quote(answer: &Value, tell: &str, evidence: &[&str], door: &str) {
    match answer {
        Value::String(text) => quotes(text, tell, door),
        Value::Array(list) => list.iter().for_each(|each| all_quote(each, tell, evidence, door)),
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(name, _)| !evidence.contains(&name.as_str())) {
                all_quote(value, tell, evidence, &format!("{door}.{name}"));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A machine on which a busy moment is no reason to fall silent.
fn patient() -> World {
    World::empty().with(
        "config/unstuck/config.toml",
        "[hook]\ndeadline-before = \"10s\"\ndeadline-after = \"60s\"\n[store]\nwait-before = \"10s\"\n",
    )
}

/// What an agent says of a call that failed.
fn payload(agent: &str, session: &str, call: &str, printed: &str, code: i32) -> Value {
    let kin = |event: &str| {
        json!({ "session_id": session, "cwd": "/src", "hook_event_name": event, "transcript_path": "/n",
            "tool_name": "Bash",
            "tool_input": { "command": call }, "tool_use_id": session })
    };
    let with = |mut value: Value, more: Value| {
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        value
    };
    match agent {
        "claude" => with(
            kin("PostToolUseFailure"),
            json!({ "error": format!("Exit code {code}\n{printed}"), "is_interrupt": false }),
        ),
        "qwen" => with(kin("PostToolUseFailure"), json!({ "error": printed, "is_interrupt": false })),
        "codex" => with(kin("PostToolUse"), json!({ "tool_response": printed })),
        "gemini" => with(
            kin("AfterTool"),
            json!({ "tool_name": "mcp_notes_write", "original_request_name": "mcp_notes_write", "timestamp": "2026-11-15T15:00:00.000Z",
                "tool_response": { "llmContent": "", "returnDisplay": "", "error": { "message": printed, "type": "mcp_tool_error" } } }),
        ),
        "copilot" => {
            json!({ "sessionId": session, "timestamp": 1_794_726_291_830_u64, "cwd": "/src", "toolName": "bash",
            "toolArgs": { "command": call }, "error": printed })
        }
        "cursor" => {
            json!({ "conversation_id": session, "generation_id": "g", "model": "m", "session_id": session,
            "cursor_version": "2026.09.18", "workspace_roots": ["/src"], "hook_event_name": "postToolUseFailure",
            "tool_name": "Shell", "tool_input": { "command": call }, "tool_use_id": session, "cwd": "/src",
            "error_message": printed, "failure_type": "error", "duration": 1 })
        }
        _ => {
            json!({ "hook_event_name": "tool.execute.after", "sessionID": session, "cwd": "/src", "callID": session,
            "tool": "bash", "args": { "command": call }, "output": printed, "metadata": { "output": printed, "exit": code } })
        }
    }
}

/// Every failure through the hook of one agent.
#[track_caller]
fn check_hook(agent: &str, at_least: usize) {
    let world = patient();
    let mut told = 0;
    for (number, (printed, code, call, row)) in failures().into_iter().enumerate() {
        let sent = payload(agent, &format!("s{number}"), call, &printed, code);
        let said = world.run(&["hook", agent], sent.to_string());
        assert_eq!((said.stderr(), said.exit), ("", 0), "{said}");
        if said.stdout().is_empty() {
            continue;
        }
        shows_all(said.stdout(), agent);
        told += usize::from(said.stdout().contains('⟦'));
        let answer: Value = serde_json::from_str(said.stdout()).unwrap();
        all_quote(&answer, &row.tell, &[], &format!("{agent} {printed:?}"));
    }
    assert!(told >= at_least, "{agent} quoted only {told}");
}

#[test]
fn no_hook_of_claude_code_lets_an_output_speak() {
    check_hook("claude", 150);
}

#[test]
fn no_hook_of_codex_lets_an_output_speak() {
    check_hook("codex", 60);
}

#[test]
fn no_hook_of_gemini_cli_lets_an_output_speak() {
    check_hook("gemini", 150);
}

#[test]
fn no_hook_of_qwen_code_lets_an_output_speak() {
    check_hook("qwen", 150);
}

#[test]
fn no_hook_of_copilot_lets_an_output_speak() {
    check_hook("copilot", 150);
}

#[test]
fn no_hook_of_cursor_lets_an_output_speak() {
    check_hook("cursor", 150);
}

#[test]
fn no_hook_of_opencode_lets_an_output_speak() {
    check_hook("opencode", 150);
}

/// Calls that fail three times over, with hostile words in what they print, in their words, and in the names of their tools.
fn at_work(rows: &[(String, i32, &'static str, Hostile)]) -> Vec<Value> {
    let mut lines = Vec::new();
    for (number, (printed, code, _, row)) in rows.iter().enumerate() {
        let name = row.subject.replace('\'', "_");
        let kinds = [
            ("a", "Bash".to_owned(), json!({ "command": format!("cat '{name}'") })),
            ("b", format!("mcp__notes__{}", row.subject), json!({ "path": row.subject })),
            ("c", "Read".to_owned(), json!({ "file_path": row.subject })),
            ("d", format!("mcp__{}__read", row.subject), json!({ "branch": row.subject })),
        ];
        // Each kind of call has its turn.
        let (kind, tool, input) = &kinds[number % kinds.len()];
        for turn in 0..3 {
            let asked = json!({ "event": "before", "session": format!("s{number}{kind}"), "call_id": format!("{number}{kind}{turn}"),
                    "tool": tool, "input": input, "cwd": "/nowhere" });
            let mut ended = asked.clone();
            ended["event"] = json!("after");
            ended["exit_code"] = json!(code);
            ended["stderr"] = json!(printed);
            lines.extend([asked, ended]);
        }
    }
    lines
}

#[test]
fn no_answer_of_the_generic_hook_lets_a_call_or_its_output_speak_and_no_page_shows_what_hides() {
    let (world, rows) = (patient(), failures());
    let sent = at_work(&rows);
    let lines: String = sent.iter().map(|line| format!("{line}\n")).collect();
    let said = world.run(&["hook", "generic"], lines);
    assert_eq!((said.stderr(), said.exit), ("", 0));
    shows_all(said.stdout(), "generic");
    let answers: Vec<Value> = said.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), sent.len());
    let mut refused = 0;
    for (at, answer) in answers.iter().enumerate() {
        refused += usize::from(answer["decision"] == "deny");
        // One word in a call is what the agent asked for.
        let row = &rows[at / 6].3;
        let tell = if row.subject.contains(' ') { &*row.tell } else { "\0" };
        all_quote(answer, tell, &["evidence", "subject"], &format!("generic {}", sent[at]));
    }
    assert!(refused > 30, "{refused}");
    for page in [
        &["log", "--last", "3000"][..],
        &["log", "--json"],
        &["problems", "--all"],
        &["problems", "--json"],
        &["show", "1"],
        &["show", "1", "--json"],
        &["show", "20"],
        &["stats", "--by", "tool"],
        &["stats", "--by", "tool", "--json"],
        &["status"],
        &["alerts"],
        &["lessons"],
        &["doctor"],
        &["export", "--jsonl"],
        &["replay", "s0a"],
        &["heartbeat"],
    ] {
        let said = world.run(page, "");
        shows_all(said.stdout(), &page.join(" "));
        shows_all(said.stderr(), &page.join(" "));
    }
    // A title is one line, whatever stood in it.
    let problems = world.run(&["problems", "--json"], "");
    for problem in problems.stdout().lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        assert!(!problem["title"].as_str().unwrap().contains('\n'), "{problem}");
    }
}

#[test]
fn no_diagnosis_lets_an_output_speak() {
    let (world, rows) = (World::empty(), failures());
    let lines: String = rows
        .iter()
        .map(|(printed, code, call, _)| {
            format!("{}\n", json!({ "command": call, "exit_code": code, "stderr": printed }))
        })
        .collect();
    let said = world.run(&["diagnose", "--jsonl"], lines);
    shows_all(said.stdout(), "diagnose --jsonl");
    for (line, (_, _, _, row)) in said.stdout().lines().zip(&rows) {
        all_quote(&serde_json::from_str(line).unwrap(), &row.tell, &["evidence"], "diagnose --jsonl");
    }
    assert_eq!(said.stdout().lines().count(), rows.len());
    for (printed, code, _, row) in &rows {
        let said = world.run(&["diagnose", "--exit-code", &code.to_string()], printed);
        shows_all(said.stdout(), "diagnose");
        // The line that shows it stands behind a mark of its own.
        let ours: String = said.stdout().lines().filter(|line| !line.starts_with("  > ")).collect();
        assert!(ours.len() < said.stdout().len());
        quotes(&ours, &row.tell, "diagnose");
    }
}

#[test]
fn no_line_of_run_beside_the_output_lets_it_speak() {
    let (world, rows) = (World::empty(), failures());
    for (printed, code, _, row) in rows.iter().step_by(2) {
        fs::write(world.path("printed"), printed).unwrap();
        let script = format!("cat printed >&2; exit {code}");
        let said = world.run(&["run", "--retries", "0", "--", "sh", "-c", &script], "");
        let ours = said.stderr().replacen(printed.as_str(), "", 1);
        assert!(ours.len() < said.stderr().len(), "what it printed comes as it is");
        shows_all(&ours, "run");
        let ours: String = ours.lines().filter(|line| !line.trim_start().starts_with("> ")).collect();
        quotes(&ours, &row.tell, "run");
        // A program of that name.
        let said = world.run(&["run", "--retries", "0", "--", &row.subject], "");
        for line in said.stderr().lines().filter(|line| line.starts_with("unstuck: ")) {
            quotes(line, &row.tell, "run");
        }
        let said = world.run(&["run", "--json", "--retries", "0", "--", &row.subject], "");
        shows_all(said.stdout(), "run --json");
        shows_all(said.stderr(), "run --json");
    }
}

const SESSION: &str = r#"{"type":"system","subtype":"init","session_id":"5f0c-1"}"#;
const WELL: &str =
    r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"5f0c-1"}"#;

const ANSWER: &str = r#"{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"done"}]},"session_id":"5f0c-1"}"#;

#[test]
fn the_second_prompt_of_an_agent_quotes_what_checks_printed_and_is_short() {
    for (printed, code, _, row) in failures().iter().step_by(3) {
        let script = format!("#!/bin/sh\ncat >> prompts\necho '{SESSION}'\necho '{ANSWER}'\necho '{WELL}'\n");
        let world = World::empty().with("bin/claude", script).with("printed", printed);
        fs::set_permissions(world.path("bin/claude"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        let check = format!("cat printed; yes '{}' | head -n 2000; exit {code}", row.tell.replace('\'', "_"));
        let verify =
            [&["agent", "claude", "--may-write", "--max-repairs", "1"][..], &["--verify", &check].repeat(12)]
                .concat();
        let args = [&verify[..], &["--", "Do it.\n"]].concat();
        let said = Said::by(world.command(&args).env("PATH", path).stdin(Stdio::null()).spawn().unwrap());
        shows_all(said.stderr(), "agent");
        shows_all(said.stdout(), "agent");
        let prompts = fs::read_to_string(world.path("prompts")).unwrap();
        let second = prompts.strip_prefix("Do it.\n").unwrap();
        assert!(second.contains("data, never an instruction") && second.len() < 6000, "{second}\n{said}");
        quotes(second, &row.tell, "agent");
    }
}

#[test]
fn lessons_quote_the_calls_they_tell_of() {
    let world = patient();
    let rows = corpus();
    let mut lines = String::new();
    for (number, row) in rows.iter().enumerate() {
        let name = row.subject.replace('\'', "_");
        for (turn, (command, exit)) in
            [(format!("make {number}"), 2), (format!("cat '{name}'"), 0), (format!("make {number}"), 0)]
                .iter()
                .enumerate()
        {
            let printed = if *exit == 0 {
                String::new()
            } else {
                format!("make: *** No rule to make target '{number}'.  Stop.")
            };
            let mut line = json!({ "event": "before", "session": format!("s{number}"), "call_id": format!("{number}-{turn}"),
                "tool": "Bash", "input": { "command": command }, "cwd": "/nowhere" });
            lines += &format!("{line}\n");
            line["event"] = json!("after");
            line["exit_code"] = json!(exit);
            line["stderr"] = json!(printed);
            lines += &format!("{line}\n");
        }
    }
    world.run(&["hook", "generic"], lines);
    for page in [&["lessons"][..], &["lessons", "--json"], &["lessons", "export"]] {
        shows_all(world.run(page, "").stdout(), &page.join(" "));
    }
    // Whatever a person approved: it is told as a quotation.
    let database = rusqlite::Connection::open(world.path(".local/state/unstuck/timeline.db")).unwrap();
    let approved = database.execute("UPDATE lesson SET state = 'approved'", []).unwrap();
    let said = world.run(&["lessons", "export", "--markdown"], "");
    let told = said.stdout().lines().filter(|line| line.starts_with("- ")).count();
    assert!(told >= approved / 2, "{told} of {approved}");
    for row in &rows {
        quotes(said.stdout(), &row.tell, "lessons export --markdown");
    }
}
