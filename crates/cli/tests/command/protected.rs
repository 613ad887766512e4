//! Risky calls through the hooks of every agent: their files are saved before they run, and none runs unprotected in silence.
//! The commands are real and run in a real folder.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::world::{Said, World};

const AGENTS: [&str; 8] = ["claude", "codex", "gemini", "qwen", "opencode", "copilot", "cursor", "generic"];

/// A project with sources, on a machine on which a busy moment is no reason to fall silent.
fn project(settings: &str) -> World {
    let settings = format!(
        "[hook]\ndeadline-before = \"10s\"\ndeadline-after = \"60s\"\n[store]\nwait-before = \"10s\"\n{settings}"
    );
    World::empty()
        .with("config/unstuck/config.toml", settings)
        .with("work/src/main.rs", "fn main() {}\n")
        .with("work/src/deep/tide.rs", "pub fn tide() {}\n")
        .with("work/keep.txt", "kept\n")
}

/// What an agent sends before and after a call of its shell.
fn payload(world: &World, agent: &str, is_over: bool, id: &str, command: &str) -> Value {
    let cwd = world.path("work");
    let input = json!({ "command": command });
    let event = |before: &str, after: &str| if is_over { after.to_owned() } else { before.to_owned() };
    let mut payload = match agent {
        "claude" => json!({
            "session_id": "s", "transcript_path": "/nowhere", "cwd": cwd, "permission_mode": "default",
            "hook_event_name": event("PreToolUse", "PostToolUse"), "tool_name": "Bash", "tool_input": input,
            "tool_use_id": id,
        }),
        "codex" => json!({
            "session_id": "s", "turn_id": "t", "transcript_path": null, "cwd": cwd, "model": "m",
            "permission_mode": "bypassPermissions", "hook_event_name": event("PreToolUse", "PostToolUse"),
            "tool_name": "Bash", "tool_input": input, "tool_use_id": id,
        }),
        "gemini" => json!({
            "session_id": "s", "cwd": cwd, "hook_event_name": event("BeforeTool", "AfterTool"),
            "tool_name": "run_shell_command", "tool_input": input,
        }),
        "qwen" => json!({
            "session_id": "s", "cwd": cwd, "permission_mode": "yolo", "tool_name": "run_shell_command",
            "hook_event_name": event("PreToolUse", "PostToolUse"), "tool_input": input, "tool_use_id": id,
            "tool_call_id": id,
        }),
        "opencode" => json!({
            "hook_event_name": event("tool.execute.before", "tool.execute.after"), "sessionID": "s", "cwd": cwd,
            "callID": id, "tool": "bash", "args": input,
        }),
        "copilot" => json!({
            "hook_event_name": event("PreToolUse", "PostToolUse"), "session_id": "s", "cwd": cwd,
            "tool_name": "Bash", "tool_input": input, "timestamp": now_iso(world),
        }),
        "cursor" => json!({
            "conversation_id": "s", "generation_id": "g", "session_id": "s", "cursor_version": "2026.09.18",
            "workspace_roots": [cwd], "hook_event_name": event("preToolUse", "postToolUse"), "cwd": cwd,
            "tool_name": "Shell", "tool_input": { "command": command, "working_directory": cwd }, "tool_use_id": id,
        }),
        "generic" => json!({
            "event": event("before", "after"), "session": "s", "call_id": id, "tool": "Bash", "input": input,
            "cwd": cwd,
        }),
        other => panic!("{other}"),
    };
    if is_over {
        let (field, result) = match agent {
            "claude" => ("tool_response", json!({ "stdout": "", "stderr": "", "interrupted": false })),
            "codex" => ("tool_response", json!("Exit code: 0\nWall time: 0 seconds\nOutput:\n")),
            "gemini" | "qwen" => {
                ("tool_response", json!({ "llmContent": "Output: (empty)", "returnDisplay": "" }))
            }
            "opencode" => ("metadata", json!({ "output": "", "exit": 0 })),
            "copilot" => (
                "tool_result",
                json!({ "result_type": "success", "text_result_for_llm": "<exited with exit code 0>" }),
            ),
            "cursor" => ("tool_output", json!("{\"output\":\"\",\"exitCode\":0}")),
            _ => ("exit_code", json!(0)),
        };
        payload[field] = result;
    }
    payload
}

/// The clock as the machine has it.
fn now_iso(_world: &World) -> String {
    let date = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%S.000Z"]).output().unwrap();
    String::from_utf8(date.stdout).unwrap().trim().to_owned()
}

/// Asks whether a call may run, under some settings; says what was answered.
fn before(world: &World, agent: &str, set: &[&str], id: &str, command: &str) -> Said {
    let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
    let said = world
        .run(&[&set[..], &["hook", agent]].concat(), payload(world, agent, false, id, command).to_string());
    assert_eq!((said.stderr(), said.exit), ("", 0), "{said}");
    said
}

fn is_refused(said: &Said) -> bool {
    said.stdout().contains("Blocked by unstuck") && said.stdout().contains("deny")
}

/// Makes a call as an agent does: asks, runs it if nothing is said against it, and tells of its end.
fn call(world: &World, agent: &str, set: &[&str], id: &str, command: &str) -> Said {
    let said = before(world, agent, set, id, command);
    if !is_refused(&said) {
        Command::new("sh").args(["-c", command]).current_dir(world.path("work")).status().unwrap();
        let over = world.run(&["hook", agent], payload(world, agent, true, id, command).to_string());
        assert_eq!((over.stderr(), over.exit), ("", 0), "{over}");
    }
    said
}

/// A file or a folder: its name, its mode, when it was changed, what is in it.
type Found = (Vec<u8>, u32, (i64, i64), Vec<u8>);

/// Everything below the project.
fn tree(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    let mut folders = vec![world.path("work")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            let content = match about.is_dir() {
                true => {
                    folders.push(path.clone());
                    Vec::new()
                }
                false => fs::read(&path).unwrap_or_default(),
            };
            let name = path.as_os_str().as_bytes().to_vec();
            found.push((name, about.mode(), (about.mtime(), about.mtime_nsec()), content));
        }
    }
    found.sort();
    found
}

/// The files of it. What a folder above a target tells of its own time is not part of what was saved.
fn files(world: &World) -> Vec<Found> {
    tree(world).into_iter().filter(|(_, mode, _, _)| mode & 0o170_000 != 0o040_000).collect()
}

fn snapshots(world: &World) -> Vec<Value> {
    world.run(&["snapshots", "--json"], "").json_lines()
}

fn events(world: &World, kind: &str) -> Vec<Value> {
    let log = world.run(&["log", "--json", "--since", "0"], "").json_lines();
    log.into_iter().filter(|event| event["event"] == kind).collect()
}

#[track_caller]
fn undo(world: &World, args: &[&str]) -> Said {
    let mut command = world.command(&[&["undo"], args].concat());
    let said = Said::by(command.current_dir(world.path("work")).spawn().unwrap());
    assert_eq!(said.exit, 0, "{said}");
    said
}

#[test]
fn what_a_risky_call_deletes_can_be_brought_back_whichever_agent_made_it() {
    for agent in AGENTS {
        let world = project("");
        let stood = tree(&world);
        let said = call(&world, agent, &[], "a", "rm -rf src");
        assert!(!is_refused(&said), "{agent}: {said}");
        assert!(!world.path("work/src").exists(), "{agent}");
        let [taken] = &events(&world, "snapshot:taken")[..] else { panic!("{agent}") };
        assert_eq!(taken["call"], 1, "{agent}: {taken}");
        undo(&world, &[]);
        assert_eq!(tree(&world), stood, "{agent}");
        assert!(!world.run(&["log"], "").stdout().contains("own_fault"), "{agent}");
    }
}

#[test]
fn a_harmless_call_takes_nothing_and_opens_no_safe() {
    let world = project("");
    for (id, command) in [("a", "ls -la"), ("b", "cat keep.txt | grep k"), ("c", "cargo test --workspace")] {
        assert_eq!(before(&world, "claude", &[], id, command).stdout(), "");
        world.run(&["hook", "claude"], payload(&world, "claude", true, id, command).to_string());
    }
    assert!(!world.path(".local/state/unstuck/vault").exists());
    assert_eq!(events(&world, "snapshot:taken"), [Value::Null; 0]);
}

#[test]
fn the_settings_say_what_is_protected() {
    let edit = |world: &World, set: &[&str]| {
        let mut payload = payload(world, "claude", false, "e", "");
        payload["tool_name"] = json!("Edit");
        let file = world.path("work/keep.txt");
        payload["tool_input"] = json!({ "file_path": file, "old_string": "kept", "new_string": "x" });
        let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
        world.run(&[&set[..], &["hook", "claude"]].concat(), payload.to_string());
        events(world, "snapshot:taken").len()
    };
    let world = project("");
    call(&world, "claude", &["vault.protect=off"], "a", "rm -rf src/deep");
    assert_eq!(events(&world, "snapshot:taken").len(), 0);
    assert_eq!(edit(&world, &[]), 0, "one edit is no risk");
    let world = project("");
    assert_eq!(edit(&world, &["vault.protect=edits"]), 1);
    let world = project("");
    call(&world, "claude", &["ladder.mode=shadow"], "a", "rm -rf src");
    assert_eq!(events(&world, "snapshot:taken").len(), 1, "protecting costs nothing in shadow either");
    let world = project("");
    assert_eq!(world.run(&["pause", "1h", "--yes"], "").exit, 0);
    call(&world, "claude", &[], "a", "rm -rf src");
    assert!(!world.path(".local/state/unstuck/vault").exists());
}

/// More than the safe may hold, and nothing in it repeats.
fn with_too_much(settings: &str) -> World {
    let world = project(&format!("[vault]\nmax-size = \"16MB\"\n{settings}"));
    let mut noise = Vec::new();
    let mut state = 1_u64;
    while noise.len() < 20 << 20 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend_from_slice(&state.to_le_bytes());
    }
    world.with("work/data/noise.bin", noise)
}

#[test]
fn what_does_not_fit_into_the_safe_is_not_deleted() {
    for agent in AGENTS {
        let world = with_too_much("");
        let said = call(&world, agent, &[], "a", "rm -rf data");
        assert!(is_refused(&said), "{agent}: {said}");
        for words in ["vault.max-size", "unstuck gc", "unstuck allow "] {
            assert!(said.stdout().contains(words), "{agent}: {words}: {said}");
        }
        assert!(world.path("work/data/noise.bin").exists(), "{agent}");
        let [failed] = &events(&world, "snapshot:failed")[..] else { panic!("{agent}") };
        assert_eq!((&failed["body"]["instead"], &failed["call"]), (&json!("denied"), &json!(1)), "{failed}");
        let shown = world.run(&["show", "1", "--json"], "").json();
        assert_eq!(shown["state"], "denied", "{shown}");
        // Whoever asks for the same call again is told the same again.
        assert!(is_refused(&before(&world, agent, &[], "b", "rm -rf data")), "{agent}");
    }
}

#[test]
fn what_takes_too_long_is_refused_and_says_so() {
    let world = project("");
    for number in 0..20_000 {
        let folder = world.path(&format!("work/many/{}", number % 200));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(number.to_string()), number.to_string()).unwrap();
    }
    let said = call(&world, "claude", &["vault.deadline=10ms"], "a", "rm -rf many");
    assert!(is_refused(&said), "{said}");
    for words in ["it was not done within 10 ms", "vault.deadline", "unstuck snapshot PATH"] {
        assert!(said.stdout().contains(words), "{words}: {said}");
    }
    assert!(world.path("work/many/7").exists());
    assert_eq!(snapshots(&world), [Value::Null; 0], "half a snapshot is none");
}

#[test]
fn a_person_who_is_there_is_asked() {
    let world = with_too_much("");
    let mut command = world.command(&["hook", "claude"]);
    let mut child = command.env("CLAUDE_CODE_SESSION_ATTENDED", "1").spawn().unwrap();
    let text = payload(&world, "claude", false, "a", "rm -rf data").to_string();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let said = Said::by(child);
    let answer: Value = serde_json::from_str(said.stdout()).unwrap();
    let output = &answer["hookSpecificOutput"];
    assert_eq!(output["permissionDecision"], "ask", "{answer}");
    assert!(output["permissionDecisionReason"].as_str().unwrap().contains("it cannot be undone"), "{answer}");
    assert_eq!(world.run(&["show", "1", "--json"], "").json()["state"], "approval_required");
    // The person said yes.
    let over = payload(&world, "claude", true, "a", "rm -rf data").to_string();
    assert_eq!(world.run(&["hook", "claude"], over).exit, 0);
    assert_eq!(world.run(&["show", "1", "--json"], "").json()["state"], "completed");
}

#[test]
fn what_a_person_allowed_runs_unprotected_and_the_model_is_told() {
    let world = with_too_much("");
    let refused = before(&world, "claude", &[], "a", "rm -rf data");
    assert!(is_refused(&refused), "{refused}");
    let key = said_key(&events(&world, "tool:denied")[0]);
    let allowed = world.run(&["allow", &key, "--yes"], "");
    assert_eq!(allowed.exit, 0, "{allowed}");
    let said = call(&world, "claude", &[], "b", "rm -rf data");
    assert!(said.stdout().contains("could not be saved before it"), "{said}");
    assert!(!world.path("work/data").exists());
    let instead: Vec<Value> =
        events(&world, "snapshot:failed").iter().map(|event| event["body"]["instead"].clone()).collect();
    assert_eq!(instead, ["denied", "told"]);
}

#[test]
fn how_far_we_may_go_holds_for_protection_too() {
    for (mode, told, instead) in [("shadow", false, "recorded"), ("advise", true, "told")] {
        let world = with_too_much("");
        let set = format!("ladder.mode={mode}");
        let said = call(&world, "claude", &[&set], "a", "rm -rf data");
        assert_eq!(said.stdout().contains("could not be saved"), told, "{mode}: {said}");
        assert!(!is_refused(&said) && !world.path("work/data").exists(), "{mode}");
        assert_eq!(events(&world, "snapshot:failed")[0]["body"]["instead"], instead);
    }
    // One that cannot be told before a call is told with its result.
    let world = with_too_much("");
    let silent = before(&world, "qwen", &["ladder.mode=advise"], "a", "rm -rf data");
    assert_eq!(silent.stdout(), "", "{silent}");
    let over = payload(&world, "qwen", true, "a", "rm -rf data").to_string();
    let told = world.run(&["--set", "ladder.mode=advise", "hook", "qwen"], over);
    assert!(told.stdout().contains("could not be saved before it"), "{told}");
}

#[test]
fn a_safe_that_is_damaged_is_our_fault_and_stops_nobody() {
    let world = project("").with(".local/state/unstuck/vault", "a file where the folder should be");
    fs::set_permissions(world.path(".local/state/unstuck"), fs::Permissions::from_mode(0o700)).unwrap();
    let said = call(&world, "claude", &[], "a", "rm -rf src");
    assert!(!said.stdout().is_empty(), "not in silence: {said}");
    let log = world.run(&["log", "--json", "--since", "0"], "");
    assert!(log.stdout().contains("snapshot:failed"), "{log}");
}

/// What can stand where the state folder belongs.
const UNUSABLE: [&str; 6] = ["a link", "a link to nothing", "of another", "a file", "read-only", "nowhere"];

/// Makes the state folder unusable; `false` where this machine cannot.
fn spoil(world: &World, how: &str) -> bool {
    let state = world.path(".local/state/unstuck");
    fs::create_dir_all(state.parent().unwrap()).unwrap();
    match how {
        "a link" => {
            fs::create_dir(world.path("elsewhere")).unwrap();
            std::os::unix::fs::symlink(world.path("elsewhere"), &state).unwrap();
        }
        "a link to nothing" => std::os::unix::fs::symlink(world.path("nothing"), &state).unwrap(),
        "a file" => fs::write(&state, "").unwrap(),
        "of another" => {
            fs::create_dir(&state).unwrap();
            return std::os::unix::fs::chown(&state, Some(65534), None).is_ok();
        }
        "read-only" => {
            fs::create_dir(&state).unwrap();
            fs::set_permissions(&state, fs::Permissions::from_mode(0o500)).unwrap();
        }
        _ => {}
    }
    true
}

#[test]
fn where_nothing_can_be_recorded_a_risky_call_is_refused_or_the_model_is_told_at_once() {
    for agent in AGENTS {
        for how in UNUSABLE {
            for mode in ["enforce", "advise"] {
                let world = project("");
                if !spoil(&world, how) {
                    continue;
                }
                let payload = payload(&world, agent, false, "a", "rm -rf src").to_string();
                let set = format!("ladder.mode={mode}");
                let args = ["--set", &set, "hook", agent];
                let said = match how {
                    "read-only" => world.of_nobody(&args, payload),
                    _ => {
                        let mut command = world.command(&args);
                        if how == "nowhere" {
                            command.env_remove("HOME");
                        }
                        let mut child = command.spawn().unwrap();
                        child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
                        Said::by(child)
                    }
                };
                assert_eq!((said.stderr(), said.exit), ("", 0), "{agent}, {how}: {said}");
                assert!(said.stdout().contains("could not be saved"), "{agent}, {how}, {mode}: {said}");
                if mode == "enforce" && ["a link", "a link to nothing", "of another", "a file"].contains(&how)
                {
                    assert!(is_refused(&said), "{agent}, {how}: {said}");
                }
            }
        }
    }
}

#[test]
fn while_another_process_holds_the_safe_a_risky_call_is_refused_for_now() {
    let world = project("");
    call(&world, "claude", &[], "a", "rm -rf src/deep");
    let lock = fs::File::open(world.path(".local/state/unstuck/vault/lock")).unwrap();
    lock.lock().unwrap();
    let said = before(&world, "claude", &["vault.deadline=200ms"], "b", "rm -rf src");
    assert!(is_refused(&said) && said.stdout().contains("another process is at work in the safe"), "{said}");
    drop(lock);
    assert_eq!(before(&world, "claude", &["vault.deadline=10s"], "c", "rm -rf src").stdout(), "");
}

#[test]
fn a_hook_that_comes_to_no_end_refuses_a_risky_call_and_falls_silent_about_others() {
    let world = project("");
    before(&world, "claude", &[], "a", "ls");
    let database = rusqlite::Connection::open(world.path(".local/state/unstuck/timeline.db")).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    // It waits for the database for longer than it has.
    let set = ["vault.deadline=10ms", "hook.deadline-before=500ms"];
    let said = before(&world, "claude", &set, "b", "rm -rf src");
    assert!(is_refused(&said) && said.stdout().contains("it came to no end"), "{said}");
    assert_eq!(before(&world, "claude", &set, "c", "ls -la").stdout(), "");
    let said = before(&world, "generic", &["store.wait-before=1s"], "d", "rm -rf src");
    assert_eq!(said.json()["decision"], "allow", "it waits no longer than it may: {said}");
    database.execute_batch("ROLLBACK").unwrap();
    // What it had no time to record is recorded by the next.
    before(&world, "claude", &[], "e", "ls");
    let denied: Vec<Value> =
        events(&world, "tool:denied").iter().map(|event| event["call"].clone()).collect();
    assert_eq!(denied, [2], "{denied:?}");
    let key = said_key(&events(&world, "tool:denied")[0]);
    assert_eq!(world.run(&["allow", &key, "--yes"], "").exit, 0);
}

#[test]
fn a_refusal_is_said_even_if_there_is_no_time_left_to_record_it() {
    let world = project("");
    call(&world, "claude", &[], "a", "rm -rf src");
    let world = world.with("work/src/main.rs", "fn main() {}\n");
    let lock = fs::File::open(world.path(".local/state/unstuck/vault/lock")).unwrap();
    lock.lock().unwrap();
    let set = ["vault.deadline=2s", "store.wait-before=5s", "store.wait-after=5s"];
    let said = std::thread::scope(|scope| {
        let hook = scope.spawn(|| before(&world, "claude", &set, "b", "rm -rf src"));
        // By now it waits for the safe; from now on, the store can be had by nobody either.
        std::thread::sleep(std::time::Duration::from_secs(1));
        let database = rusqlite::Connection::open(world.path(".local/state/unstuck/timeline.db")).unwrap();
        database.execute_batch("BEGIN IMMEDIATE").unwrap();
        hook.join().unwrap()
    });
    drop(lock);
    assert!(is_refused(&said) && said.stdout().contains("another process is at work in the safe"), "{said}");
    let is_one_answer = serde_json::from_str::<Value>(said.stdout()).is_ok();
    assert!(is_one_answer, "{said}");
    before(&world, "claude", &[], "c", "ls");
    assert_eq!(events(&world, "snapshot:failed").len(), 1, "{:?}", events(&world, "snapshot:failed"));
}

/// The name of a refused call, as the refusal gives it.
fn said_key(event: &Value) -> String {
    let text = event["body"]["text"].as_str().unwrap();
    text.split("unstuck allow ").nth(1).unwrap().chars().take_while(char::is_ascii_alphanumeric).collect()
}

#[test]
fn a_store_that_is_busy_costs_a_call_neither_its_snapshot_nor_its_end() {
    let world = project("");
    before(&world, "claude", &[], "a", "ls");
    let database = rusqlite::Connection::open(world.path(".local/state/unstuck/timeline.db")).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let said =
        before(&world, "claude", &["store.wait-before=10ms", "store.wait-after=10ms"], "b", "rm -rf src");
    assert_eq!(said.stdout(), "", "{said}");
    database.execute_batch("ROLLBACK").unwrap();
    let stood = tree(&world);
    fs::remove_dir_all(world.path("work/src")).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let set = ["--set", "store.wait-before=10ms", "--set", "store.wait-after=10ms", "hook", "claude"];
    world.run(&set, payload(&world, "claude", true, "b", "rm -rf src").to_string());
    database.execute_batch("ROLLBACK").unwrap();
    let [taken] = &snapshots(&world)[..] else { panic!("{:?}", snapshots(&world)) };
    assert_eq!(taken["concluded"], true, "{taken}");
    undo(&world, &["b"]);
    assert_eq!(tree(&world), stood);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let world = project("").with("work/src/locked.txt", "locked\n");
    fs::set_permissions(world.path("work/src/locked.txt"), fs::Permissions::from_mode(0o000)).unwrap();
    let said =
        world.of_nobody(&["hook", "claude"], payload(&world, "claude", false, "a", "rm -rf src").to_string());
    if said.exit == 126 {
        writeln!(std::io::stderr(), "SKIPPED: nobody may not reach the program that is tested").unwrap();
        return;
    }
    let answer: Value = serde_json::from_str(said.stdout()).unwrap_or_else(|_| panic!("{said}"));
    let told = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(told.contains("could not be read: ") && told.contains("src/locked.txt"), "{told}");
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], Value::Null, "{answer}");
    let [taken] = &events(&world, "snapshot:taken")[..] else { panic!() };
    assert_eq!(taken["body"]["partial"], true, "{taken}");
    assert_eq!(events(&world, "snapshot:failed")[0]["body"]["instead"], "told");
}

#[test]
fn what_lies_where_we_may_not_look_is_named_too() {
    let world = project("").with("work/locked/x/y", "locked\n");
    fs::set_permissions(world.path("work/locked"), fs::Permissions::from_mode(0o000)).unwrap();
    let line = "sudo rm -rf locked/x src";
    let said = world.of_nobody(&["hook", "claude"], payload(&world, "claude", false, "a", line).to_string());
    let cd = "sudo sh -c 'cd locked/x && rm y'";
    let also = world.of_nobody(&["hook", "claude"], payload(&world, "claude", false, "b", cd).to_string());
    fs::set_permissions(world.path("work/locked"), fs::Permissions::from_mode(0o755)).unwrap();
    if said.exit == 126 {
        writeln!(std::io::stderr(), "SKIPPED: nobody may not reach the program that is tested").unwrap();
        return;
    }
    for said in [&said, &also] {
        assert!(
            said.stdout().contains("could not be read: ") && said.stdout().contains("work/locked"),
            "{said}"
        );
    }
    let [taken, _] = &events(&world, "snapshot:taken")[..] else { panic!("{said}") };
    assert_eq!(
        (&taken["body"]["partial"], &taken["body"]["why"]),
        (&json!(true), &json!("files.remove-tree"))
    );
    fs::remove_dir_all(world.path("work/src")).unwrap();
    world.run_in("work", &["restore", "s1"]);
    assert!(world.path("work/src/main.rs").exists(), "the rest was saved");
}

#[test]
fn a_commit_is_taken_back_without_a_copy_of_all_commits() {
    let world = project("");
    let git = |args: &[&str]| {
        let fixed = ["-c", "user.name=x", "-c", "user.email=x@a.example"];
        let done =
            Command::new("git").args(fixed).args(args).current_dir(world.path("work")).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "first"]);
    let stood = git(&["log", "--format=%s %H", "--all"]);
    let line =
        "git -c user.name=x -c user.email=x@a.example commit -q --allow-empty -m second && git tag -f v1";
    call(&world, "claude", &[], "a", line);
    assert_eq!(git(&["log", "--format=%s"]), "second\nfirst\n");
    assert_eq!(snapshots(&world)[0]["partial"], false);
    undo(&world, &["a"]);
    assert_eq!(git(&["log", "--format=%s %H", "--all"]), stood);
    assert_eq!(git(&["tag"]), "");
    git(&["fsck", "--strict"]);
    let held = world.run(&["snapshots", "--json"], "").stdout().to_owned();
    assert!(held.contains(".git/objects"), "it says what is not in it: {held}");
}

#[test]
fn what_happened_long_ago_is_not_protected_now() {
    let world = project("");
    let mut old = payload(&world, "generic", false, "a", "rm -rf src");
    old["at"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(world.run(&["hook", "generic"], old.to_string()).json()["decision"], "allow");
    assert!(!world.path(".local/state/unstuck/vault").exists());
}

#[test]
fn a_call_that_is_told_of_twice_is_saved_once() {
    let world = project("");
    before(&world, "claude", &[], "a", "rm -rf src");
    before(&world, "claude", &[], "a", "rm -rf src");
    assert_eq!(snapshots(&world).len(), 1);
}

#[test]
fn an_agent_that_gives_the_same_name_to_every_call_has_each_of_them_saved() {
    let world = project("").with("work/docs/a.md", "a\n");
    call(&world, "claude", &[], "call_0", "rm -rf src");
    call(&world, "claude", &[], "call_0", "rm -rf docs");
    call(&world, "claude", &[], "call_0", "rm -rf docs src");
    let world = world.with("work/docs/b.md", "b\n");
    call(&world, "claude", &[], "call_0", "rm -rf docs");
    let all = snapshots(&world);
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(all.iter().all(|each| each["concluded"] == true), "{all:?}");
}

#[test]
fn an_open_call_whose_name_is_given_to_another_one_protects_only_itself() {
    let world = project("").with("work/docs/a.md", "a\n");
    before(&world, "claude", &[], "call_0", "rm -rf src");
    before(&world, "claude", &[], "call_0", "rm -rf docs");
    assert_eq!(snapshots(&world).len(), 2);
}

#[test]
fn calls_at_the_same_time_and_those_of_sub_agents_are_all_saved() {
    let world = project("").with("work/one/a", "1").with("work/two/a", "2").with("work/three/a", "3");
    let stood = files(&world);
    let calls = [("a", "one", Value::Null), ("b", "two", json!("helper")), ("c", "three", json!("other"))];
    std::thread::scope(|scope| {
        for (id, folder, agent) in &calls {
            let world = &world;
            scope.spawn(move || {
                let command = format!("rm -rf {folder}");
                let mut asked = payload(world, "claude", false, id, &command);
                asked["agent_id"] = agent.clone();
                assert_eq!(world.run(&["hook", "claude"], asked.to_string()).stdout(), "");
            });
        }
    });
    for (id, folder, agent) in &calls {
        fs::remove_dir_all(world.path("work").join(folder)).unwrap();
        let mut over = payload(&world, "claude", true, id, &format!("rm -rf {folder}"));
        over["agent_id"] = agent.clone();
        world.run(&["hook", "claude"], over.to_string());
    }
    let taken = snapshots(&world);
    assert_eq!(taken.len(), 3, "{taken:#?}");
    for id in ["a", "b", "c"] {
        undo(&world, &[id]);
    }
    assert_eq!(files(&world), stood);
}

#[test]
fn names_of_any_bytes_are_brought_back() {
    let world = project("");
    let odd = world.path("work/src").join(OsStr::from_bytes(b"odd-\xff\n-name"));
    fs::write(&odd, "odd\n").unwrap();
    let stood = tree(&world);
    call(&world, "claude", &[], "a", "rm -rf src");
    undo(&world, &[]);
    assert_eq!(tree(&world), stood);
}

#[test]
fn a_call_is_protected_where_it_really_acts() {
    let world = project("");
    let stood = files(&world);
    call(&world, "claude", &[], "a", "cd src && rm -rf deep");
    assert!(!world.path("work/src/deep").exists());
    undo(&world, &[]);
    assert_eq!(files(&world), stood);
    // Nothing is there that could be lost.
    let mut nowhere = payload(&world, "claude", false, "b", "rm -rf src");
    nowhere["cwd"] = json!(world.path("gone"));
    assert_eq!(world.run(&["hook", "claude"], nowhere.to_string()).stdout(), "");
    // Nobody says where: it is where the hook is.
    let mut unsaid = payload(&world, "generic", false, "c", "rm -rf src");
    unsaid.as_object_mut().unwrap().remove("cwd");
    let mut command = world.command(&["hook", "generic"]);
    let mut child = command.current_dir(world.path("work")).spawn().unwrap();
    child.stdin.take().unwrap().write_all(unsaid.to_string().as_bytes()).unwrap();
    assert_eq!(Said::by(child).json()["decision"], "allow");
    let taken = events(&world, "snapshot:taken");
    assert_eq!(taken.len(), 2, "{taken:#?}");
}

#[test]
fn what_is_far_too_much_is_refused_and_never_taken() {
    let world = project("");
    for (id, command) in [("a", "rm -rf ~"), ("b", "rm -rf /"), ("c", "chmod -R 777 /")] {
        let said = before(&world, "claude", &[], id, command);
        assert!(is_refused(&said), "{command}: {said}");
        assert!(said.stdout().contains("too much to be saved as a whole"), "{command}: {said}");
    }
}

#[test]
fn what_was_moved_hidden_or_made_beside_is_as_it_was_after_an_undo() {
    let calls = [
        "mv src src2",
        "mv src/* .",
        "rm -f .env*",
        "sed -i.bak s/kept/lost/ keep.txt",
        "gzip keep.txt",
        "rm keep.txt; mkdir -p new/deep && echo x > new/deep/file",
    ];
    for command in calls {
        let world = project("").with("work/.env", "A=1\n").with("work/.env.local", "B=2\n");
        let stood = files(&world);
        call(&world, "claude", &[], "a", command);
        assert_ne!(files(&world), stood, "{command}");
        undo(&world, &[]);
        assert_eq!(files(&world), stood, "{command}");
        assert!(!world.path("work/new").exists(), "{command}");
    }
}

#[test]
fn the_index_of_git_is_as_it_was_after_an_undo() {
    for command in ["git checkout HEAD~1 -- keep.txt", "git rm -qf keep.txt", "git reset -q -- keep.txt"] {
        let world = project("");
        let git = |args: &str| {
            let line =
                format!("GIT_CONFIG_GLOBAL=/dev/null git -c user.name=x -c user.email=x@a.example {args}");
            let said =
                Command::new("sh").args(["-c", &line]).current_dir(world.path("work")).output().unwrap();
            String::from_utf8(said.stdout).unwrap()
        };
        git("init -q && git add -A");
        git("commit -qm first");
        fs::write(world.path("work/keep.txt"), "second\n").unwrap();
        git("commit -qam second");
        fs::write(world.path("work/keep.txt"), "staged\n").unwrap();
        git("add keep.txt");
        fs::write(world.path("work/keep.txt"), "neither\n").unwrap();
        let stood = (git("diff"), git("diff --cached"));
        assert!(stood.0.contains("+neither") && stood.1.contains("+staged"), "{stood:?}");
        call(&world, "claude", &[], "a", command);
        assert_ne!((git("diff"), git("diff --cached")), stood, "{command}");
        undo(&world, &[]);
        assert_eq!((git("diff"), git("diff --cached")), stood, "{command}");
    }
}

#[test]
fn what_unstuck_itself_has_saved_is_not_given_away() {
    let world = project("");
    call(&world, "claude", &[], "a", "rm -rf src/deep");
    let calls = [("b", "rm -rf ~/.local"), ("c", "mv ~/.local/state/unstuck/vault away")];
    for (id, command) in calls {
        let said = before(&world, "claude", &[], id, command);
        assert!(is_refused(&said), "{command}: {said}");
        assert!(said.stdout().contains("destroy what unstuck itself has saved"), "{command}: {said}");
    }
    assert_eq!(before(&world, "claude", &[], "d", "ls -R ~/.local").stdout(), "");
}

#[test]
fn no_edit_of_an_agent_changes_what_unstuck_keeps() {
    let world = project("");
    call(&world, "claude", &[], "a", "rm -rf src/deep");
    let ours = world.path(".local/state/unstuck");
    let mut number = 0;
    let mut said = |tool: &str, input: Value| {
        number += 1;
        let mut payload = payload(&world, "claude", false, &format!("n{number}"), "");
        payload["tool_name"] = json!(tool);
        payload["tool_input"] = input;
        world.run(&["hook", "claude"], payload.to_string())
    };
    for line in [
        "echo 99999999999999 > ~/.local/state/unstuck/paused-until",
        "date +%s000 | tee ~/.local/state/unstuck/paused-until",
        "printf 9 >> $HOME/.local/state/unstuck/paused-until",
        "cd ~/.local/state/unstuck && echo 9 > paused-until",
        "sh -c 'echo 9 > ~/.local/state/unstuck/paused-until'",
        "echo '{}' > ../.local/state/unstuck/installed.json",
        "cp keep.txt ~/.local/state/unstuck/paused-until",
        "mv keep.txt ~/.local/state/unstuck/",
    ] {
        let said = said("Bash", json!({ "command": line }));
        assert!(is_refused(&said), "{line}: {said}");
    }
    for (tool, file) in [("Write", "paused-until"), ("Write", "timeline.db"), ("Edit", "timeline.db")] {
        let path = ours.join(file);
        let said =
            said(tool, json!({ "file_path": path, "content": "9", "old_string": "a", "new_string": "b" }));
        assert!(is_refused(&said), "{tool} {file}: {said}");
    }
    // Words about us, and folders that are only called like ours, are not ours.
    for (tool, input) in [
        ("Bash", json!({ "command": "echo unstuck > notes.txt" })),
        ("Bash", json!({ "command": "mkdir -p unstuck && echo 1 > unstuck/paused-until" })),
        ("Bash", json!({ "command": "cat ~/.local/state/unstuck/paused-until > copy.txt" })),
        ("Write", json!({ "file_path": world.path("work/unstuck.md"), "content": "unstuck" })),
        (
            "Edit",
            json!({ "file_path": world.path("work/keep.txt"), "old_string": "kept", "new_string": "unstuck" }),
        ),
    ] {
        let said = said(tool, input.clone());
        assert_eq!(said.stdout(), "", "{input}");
    }
    assert_eq!(snapshots(&world).len(), 1);
}

#[test]
fn a_call_that_is_refused_anyway_takes_no_snapshot() {
    let world = project("");
    let missing = "Exit code 127\n/bin/bash: line 1: frobber: command not found";
    let command = "frobber && rm -rf src";
    for id in ["a", "b"] {
        before(&world, "claude", &[], id, command);
        let mut failed = payload(&world, "claude", true, id, command);
        failed["hook_event_name"] = json!("PostToolUseFailure");
        failed["error"] = json!(missing);
        failed["duration_ms"] = json!(12);
        world.run(&["hook", "claude"], failed.to_string());
    }
    let taken = events(&world, "snapshot:taken").len();
    let refused = before(&world, "claude", &[], "c", command);
    assert!(is_refused(&refused), "{refused}");
    assert_eq!(events(&world, "snapshot:taken").len(), taken);
}

#[test]
fn a_call_and_its_snapshot_know_each_other() {
    let world = project("");
    call(&world, "claude", &[], "toolu_1", "rm -rf src/deep");
    let [taken] = &snapshots(&world)[..] else { panic!() };
    assert_eq!((&taken["call"], &taken["concluded"]), (&json!(1), &json!(true)), "{taken}");
    let shown = world.run(&["show", "1", "--json"], "").json();
    let saved: Vec<&Value> =
        shown["life"].as_array().unwrap().iter().filter_map(|step| step.get("snapshot")).collect();
    assert_eq!(saved, [&taken["id"]], "{shown}");
    let page = world.run(&["show", "1"], "");
    assert!(page.stdout().contains(&format!("snapshot {}", taken["id"].as_str().unwrap())), "{page}");
}

#[test]
fn what_somebody_changed_after_the_call_is_kept_by_an_undo() {
    let world = project("");
    call(&world, "claude", &[], "a", "rm -rf src");
    fs::create_dir(world.path("work/src")).unwrap();
    fs::write(world.path("work/src/main.rs"), "mine\n").unwrap();
    let mut command = world.command(&["undo"]);
    let said = Said::by(command.current_dir(world.path("work")).spawn().unwrap());
    assert_eq!(fs::read_to_string(world.path("work/src/main.rs")).unwrap(), "mine\n", "{said}");
    assert!(said.stdout().contains("main.rs"), "{said}");
}

#[test]
fn a_call_that_nobody_heard_of_again_is_not_concluded() {
    let world = project("");
    before(&world, "claude", &[], "a", "rm -rf src");
    let [taken] = &snapshots(&world)[..] else { panic!() };
    assert_eq!(taken["concluded"], false, "{taken}");
}

#[test]
fn a_task_in_the_background_is_looked_at_again_when_it_ends() {
    let world = project("");
    let command = "rm -rf src/deep; rm -f src/main.rs";
    before(&world, "claude", &[], "toolu_bg", command);
    let mut launched = payload(&world, "claude", true, "toolu_bg", command);
    launched["tool_response"]["backgroundTaskId"] = json!("b1");
    world.run(&["hook", "claude"], launched.to_string());
    // Until then nobody knows what it changes, and what was done before it is not taken back in its place.
    let [taken] = &snapshots(&world)[..] else { panic!() };
    assert_eq!((&taken["concluded"], &taken["changed"]), (&json!(false), &Value::Null), "{taken}");
    let early = world.run_in("work", &["undo"]);
    early.complains(1, &["how the call behind s1 left things was not recorded", "it may still be running"]);
    let stood = files(&world);
    Command::new("sh").args(["-c", command]).current_dir(world.path("work")).status().unwrap();
    let notice = "<task-notification><task-id>b1</task-id><tool-use-id>toolu_bg</tool-use-id>\
                  <status>completed</status><summary>done (exit code 0)</summary></task-notification>";
    let told = json!({ "session_id": "s", "cwd": world.path("work"), "hook_event_name": "UserPromptSubmit", "prompt": notice });
    world.run(&["hook", "claude"], told.to_string());
    undo(&world, &["toolu_bg"]);
    assert_eq!(files(&world), stood);
}

#[test]
fn the_label_of_a_snapshot_holds_no_secret() {
    let world = project("");
    call(&world, "claude", &[], "a", "rm -rf src && export TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345");
    let text = world.run(&["snapshots", "--json"], "");
    assert!(!text.stdout().contains("ghp_0123456789"), "{text}");
    assert!(snaps_are_private(&world.path(".local/state/unstuck/vault")));
}

fn snaps_are_private(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|about| about.mode() & 0o777 == 0o700)
}

/// What a call says before and after may be longer than what is kept of it, or take longer to clean than a hook has.
#[test]
fn a_risky_command_is_protected_however_long_the_line_around_it_is() {
    let words = "echo hello there\n".repeat(3_000);
    let long = [
        format!("{words}rm -r src\n{words}"),
        format!("cat > notes <<'END'\n{words}END\nrm -r src\ncat > more <<'END'\n{words}END\n"),
        format!("echo {}; rm -r src; echo {}", "a".repeat(20_000), "b".repeat(50_000)),
        format!("rm -r src; echo {}", "Ab3".repeat(7_000)),
    ];
    for (number, command) in long.iter().enumerate() {
        for agent in AGENTS.iter().filter(|agent| number == 0 || **agent == "claude") {
            let world = project("").with(
                "config/unstuck/config.toml",
                "[hook]\ndeadline-before = \"400ms\"\ndeadline-after = \"60s\"\n[store]\nwait-before = \"10s\"\n",
            );
            let said = world.run(&["hook", agent], payload(&world, agent, false, "t1", command).to_string());
            assert_eq!(said.exit, 0, "{agent} {number}: {said}");
            let kept = world.run(&["snapshots", "--json"], "");
            let is_saved = kept.stdout().contains("src");
            assert!(is_saved || said.stdout().contains("could not be"), "{agent} {number}: {said} {kept}");
        }
    }
}
