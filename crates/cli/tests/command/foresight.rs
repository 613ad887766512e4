//! What one session ran into on this machine, the next is told before it does: with the real machine looked at, through the
//! door of an agent program.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::agent::watched;
use crate::world::{Said, World};

const MISSING: &str = "Exit code 127\n/bin/bash: line 1: frob: command not found";
const NO_FLAG: &str = "Exit code 128\nfatal: unrecognized argument: --frob";

/// A machine on which a busy moment is no reason to fall silent, and whose PATH is one folder.
fn world(ladder: &str) -> World {
    let patient =
        "[hook]\ndeadline-before = \"10s\"\ndeadline-after = \"60s\"\n[store]\nwait-before = \"10s\"\n";
    let world = World::empty().with("config/unstuck/config.toml", format!("{patient}{ladder}"));
    fs::create_dir_all(world.path("app")).unwrap();
    program(&world, "bin/git");
    world
}

fn program(world: &World, path: &str) {
    let file = world.path(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// One payload of Claude Code; what is answered.
#[track_caller]
fn tell(world: &World, event: &str, session: &str, command: &str, error: &str) -> Value {
    let mut payload = json!({
        "session_id": session, "transcript_path": "/nowhere", "cwd": world.path("app"), "permission_mode": "default",
        "hook_event_name": event, "tool_name": "Bash", "tool_input": { "command": command },
        "tool_use_id": format!("{session}-{command}"),
    });
    match event {
        "PostToolUseFailure" => payload["error"] = json!(error),
        _ => payload["tool_response"] = json!({ "stdout": "", "stderr": "", "interrupted": false }),
    }
    let mut child = world.command(&["hook", "claude"]).env("PATH", world.path("bin")).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let said = Said::by(child);
    assert_eq!((said.stderr(), said.exit), ("", 0), "{said}");
    serde_json::from_str(said.stdout()).unwrap_or(Value::Null)
}

fn fails(world: &World, session: &str, command: &str, error: &str) {
    tell(world, "PreToolUse", session, command, "");
    tell(world, "PostToolUseFailure", session, command, error);
}

/// What is answered to a call before it runs: the word for it, and what is said.
#[track_caller]
fn asks(world: &World, session: &str, command: &str) -> (&'static str, String) {
    let answer = tell(world, "PreToolUse", session, command, "");
    let output = &answer["hookSpecificOutput"];
    let text = |name: &str| output[name].as_str().unwrap_or_default().to_owned();
    match (output["permissionDecision"].as_str(), output["updatedInput"]["command"].as_str()) {
        (Some("deny"), _) => ("refused", text("permissionDecisionReason")),
        (_, Some(command)) => ("rewritten", command.to_owned()),
        _ if answer.is_null() => ("silent", String::new()),
        _ => ("told", text("additionalContext")),
    }
}

#[test]
fn a_program_that_is_still_missing_is_told_of_once_in_a_new_session_and_nothing_is_refused() {
    let world = world("");
    fails(&world, "one", "frob x", MISSING);
    let (what, text) = asks(&world, "two", "frob --all y");
    assert_eq!(what, "told", "{text}");
    assert!(text.contains("a look just now") && text.contains("frob: command not found"), "{text}");
    assert_eq!(asks(&world, "two", "frob --all z").0, "silent");
    for line in ["command -v frob", "which frob", "frob --version || ./install frob"] {
        assert_eq!(asks(&world, "three", line).0, "silent", "{line}");
    }
}

#[test]
fn a_program_that_came_since_is_not_missed() {
    for (path, expected) in [("bin/frob", "silent"), (".local/bin/frob", "told"), ("bin/other", "told")] {
        let world = world("");
        fails(&world, "one", "frob x", MISSING);
        program(&world, path);
        assert_eq!(asks(&world, "two", "frob y").0, expected, "{path}");
    }
}

#[test]
fn how_far_it_goes_is_for_the_person_to_say() {
    for (mode, expected) in [("shadow", "silent"), ("advise", "told"), ("enforce", "told")] {
        let world = world(&format!("[ladder]\nmode = \"{mode}\"\n"));
        fails(&world, "one", "frob x", MISSING);
        assert_eq!(asks(&world, "two", "frob y").0, expected, "{mode}");
    }
}

#[test]
fn a_flag_is_told_of_until_its_program_is_another() {
    let world = world("");
    fails(&world, "one", "git log --frob", NO_FLAG);
    let (what, text) = asks(&world, "two", "git log --frob main");
    assert_eq!(what, "told");
    assert!(text.contains("unrecognized argument: --frob"), "{text}");
    std::thread::sleep(std::time::Duration::from_millis(50));
    program(&world, "bin/git");
    assert_eq!(asks(&world, "three", "git log --frob main").0, "silent");
}

#[test]
fn a_change_that_worked_twice_is_suggested_and_runs_by_itself_only_when_it_was_approved() {
    let world = world("");
    for session in ["one", "two"] {
        fails(&world, session, "git log --frob", NO_FLAG);
        tell(&world, "PreToolUse", session, "git log --all", "");
        tell(&world, "PostToolUse", session, "git log --all", "");
    }
    watched(&world);
    program(&world, "bin/git");
    let (what, text) = asks(&world, "three", "git log --frob");
    assert_eq!(what, "told");
    assert!(text.contains("`git log --all` instead of `git log --frob`"), "{text}");
    // With the result it is not told once more.
    let after = tell(&world, "PostToolUseFailure", "three", "git log --frob", NO_FLAG);
    assert!(!after.to_string().contains("git log --all"), "{after}");
    let approved = world.run(&["lessons", "approve", "L1", "--yes"], "");
    assert_eq!(approved.exit, 0, "{approved}");
    assert_eq!(asks(&world, "four", "git log --frob"), ("rewritten", "git log --all".to_owned()));
    // Only the very words that were approved are exchanged.
    assert_eq!(asks(&world, "five", "cd sub && git log --frob").0, "told");
}
