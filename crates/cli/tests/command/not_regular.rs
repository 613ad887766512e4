//! Pipes, devices and endless files where a command expects a file of settings or rules: refused, and never waited for.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::world::{Said, World};

/// Runs it with its input from a file, and fails where it comes to no end.
#[track_caller]
fn ends(world: &World, args: &[&str], input: &str) -> Said {
    fs::write(world.path("input"), input).unwrap();
    let mut command = world.command(args);
    let mut child = command.stdin(fs::File::open(world.path("input")).unwrap()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{args:?} waits for ever");
        }
        thread::sleep(Duration::from_millis(20));
    }
    Said::by(child)
}

fn fifo(world: &World, path: &str) {
    let path = world.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

const REFUSED: &str = "not a regular file";

const AFTER: &str = r#"{"event":"after","session":"s","call_id":"c","tool":"Bash","input":{"command":"npm ci"},"exit_code":127,"stderr":"npm: command not found"}"#;
const CLAUDE: &str = r#"{"session_id":"s","cwd":"/x","hook_event_name":"PostToolUseFailure","tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"npm ci"},"error":"npm: command not found"}"#;

#[test]
fn no_file_of_rules_is_waited_for() {
    for device in [false, true] {
        let world = World::empty();
        match device {
            false => fifo(&world, "config/unstuck/rules/x.toml"),
            true => {
                fs::create_dir_all(world.path("config/unstuck/rules")).unwrap();
                symlink("/dev/zero", world.path("config/unstuck/rules/x.toml")).unwrap();
            }
        }
        let says = |said: &Said| said.stderr().contains(REFUSED) || said.stdout().contains(REFUSED);
        for (args, input, exit) in [
            (&["run", "--", "echo", "hi"][..], "", 0),
            (&["diagnose", "--exit-code", "1"], "npm: command not found", 0),
            (&["diagnose", "--", "true"], "", 0),
            (&["record", "--action", "a", "--exit-code", "1", "--duration-ms", "1"], "", 0),
            (&["http", "GET", "http://127.0.0.1:9/"], "", 1),
            (&["doctor"], "", 6),
        ] {
            let said = ends(&world, args, input);
            assert!(says(&said), "{args:?}: {said}");
            assert_eq!(said.exit, exit, "{args:?}: {said}");
        }
        let said = ends(&world, &["hook", "generic"], AFTER);
        assert!(said.json()["diagnosis"]["kind"] == "command_not_found", "{said}");
        let said = ends(&world, &["hook", "claude"], CLAUDE);
        assert!(said.stdout().contains("additionalContext"), "{said}");
        let log = ends(&world, &["log"], "");
        assert!(log.stdout().contains(REFUSED) && log.stdout().contains("npm ci"), "{log}");
    }
}

#[test]
fn no_file_that_is_named_for_rules_and_none_without_an_end_is_waited_for() {
    let world = World::empty();
    fifo(&world, "x.toml");
    ends(&world, &["rules", "test", "x.toml"], "").complains(125, &[REFUSED]);
    ends(&world, &["diagnose", "--rules", "x.toml", "--exit-code", "1"], "").complains(125, &[REFUSED]);
    let large = fs::File::create(world.path("large.toml")).unwrap();
    large.set_len(1 << 33).unwrap();
    ends(&world, &["rules", "test", "large.toml"], "").complains(125, &["it is longer than"]);
}

#[test]
fn no_file_of_an_agent_or_of_ours_is_waited_for() {
    for path in [
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".codex/hooks.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".qwen/settings.json",
        ".cursor/hooks.json",
        ".claude.json",
        ".mcp.json",
        "config/unstuck/config.toml",
        ".unstuck.toml",
        ".local/state/unstuck/installed.json",
        ".local/state/unstuck/installed-mcp.json",
        ".local/state/unstuck/hook-times",
        ".local/state/unstuck/paused.json",
        ".local/state/unstuck/spool/spool.jsonl",
        ".claude/projects/p/t.jsonl",
        ".git",
        ".git/commondir",
        ".git/HEAD",
    ] {
        let world = World::empty();
        assert_eq!(ends(&world, &["hook", "generic"], AFTER).exit, 0);
        fs::remove_file(world.path(path)).ok();
        fifo(&world, path);
        for args in [
            &["doctor"][..],
            &["status"],
            &["scan"],
            &["hook", "generic"],
            &["hook", "claude"],
            &["config", "show"],
        ] {
            let input = if args.ends_with(&["generic"]) { AFTER } else { CLAUDE };
            ends(&world, args, input);
        }
        let risky = CLAUDE
            .replace("PostToolUseFailure", "PreToolUse")
            .replace("npm ci", "rm -rf src; git checkout .");
        ends(&world, &["hook", "claude"], &risky);
    }
}

#[test]
fn no_transcript_that_a_payload_names_is_waited_for() {
    let world = World::empty();
    fifo(&world, "t.jsonl");
    let payload = serde_json::json!({
        "session_id": "s", "turn_id": "t", "transcript_path": world.path("t.jsonl"), "cwd": world.path(""),
        "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": { "command": "npm ci" },
        "tool_use_id": "c", "tool_response": "npm: command not found",
    });
    ends(&world, &["hook", "codex"], &payload.to_string());
    let log = ends(&world, &["log"], "");
    assert!(log.stdout().contains("end "), "{log}");
}
