//! Limits of the system that unstuck itself runs into: hooks stay silent, commands say what is missing and exit with 125.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use crate::world::{Said, World};

const BEFORE: &str =
    r#"{"event":"before","session":"s","call_id":"c","tool":"Bash","input":{"command":"npm ci"},"cwd":"/x"}"#;
const CLAUDE: &str = r#"{"session_id":"s","cwd":"/x","hook_event_name":"PostToolUseFailure","tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"npm ci"},"error":"npm: command not found"}"#;

/// Runs it under limits, in words of `prlimit`. Its input is a file: a pipe would need the limits of whoever fills it.
fn under(world: &World, limits: &str, args: &[&str], input: &str) -> Said {
    fs::write(world.path("input"), input).unwrap();
    let ours = world.command(args);
    let mut command = Command::new("prlimit");
    command.arg(limits).arg(ours.get_program()).args(args).current_dir(world.path("")).env_clear();
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let input = File::open(world.path("input")).unwrap();
    Said::by(command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Only where the limits can be set there is something to see.
fn has_prlimit() -> bool {
    Command::new("prlimit").arg("--version").output().is_ok_and(|said| said.status.success())
}

fn is_silent(said: &Said, words: &str) {
    assert_eq!((said.stderr(), said.exit), ("", 0), "{words}: {said}");
    for line in said.stdout().lines() {
        serde_json::from_str::<serde_json::Value>(line)
            .unwrap_or_else(|error| panic!("{words}: {error}: {said}"));
    }
}

#[test]
fn a_file_that_may_not_grow_ends_nobody() {
    if !has_prlimit() {
        return;
    }
    for limit in ["--fsize=0", "--fsize=1000", "--fsize=65536"] {
        let world = World::empty();
        is_silent(&under(&world, limit, &["hook", "generic"], BEFORE), limit);
        is_silent(&under(&world, limit, &["hook", "claude"], CLAUDE), limit);
        let ours = env!("CARGO_BIN_EXE_unstuck");
        let line = format!("prlimit {limit} {ours} run -q -- seq 1 100000 > dump");
        let mut shell = world.command(&[]);
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(world.path("")).env_clear();
        command.envs(shell.env_remove("X").get_envs().filter_map(|(name, value)| Some((name, value?))));
        let said = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        Said::by(said).complains(125, &["could not write standard output", "File too large"]);
    }
    // What we start dies of the signal as it would without us.
    let said =
        under(&World::empty(), "--fsize=0", &["run", "-q", "--", "sh", "-c", "seq 1 100000 > own"], "");
    assert_ne!(said.exit, 125, "{said}");
    assert_ne!(said.exit, 0, "{said}");
}

/// As it happens to a page of a mapped file on a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_page_that_a_full_disk_has_no_room_for_ends_a_hook_in_silence_and_a_command_in_words() {
    let struck = |args: &[&str]| {
        let world = World::empty();
        let mut command = world.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It reads its input by then, and that does not come.
        let is_up =
            || fs::read_to_string(format!("/proc/{}/wchan", child.id())).is_ok_and(|at| at.contains("read"));
        let begun = std::time::Instant::now();
        while !is_up() && begun.elapsed().as_millis() < 500 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let input = child.stdin.take();
        let killed = Command::new("kill").args(["-BUS", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let said = Said::by(child);
        drop(input);
        said
    };
    is_silent(&struck(&["hook", "claude"]), "hook claude");
    is_silent(&struck(&["hook", "generic"]), "hook generic");
    struck(&["diagnose"]).complains(125, &["its disk is full or fails"]);
}

#[test]
fn a_command_that_was_not_even_tried_is_our_failure_and_not_its_own() {
    if !has_prlimit() {
        return;
    }
    for limit in ["--nofile=8", "--nofile=14", "--nofile=20"] {
        let world = World::empty();
        for door in ["run", "diagnose"] {
            let said = under(&world, limit, &[door, "--", "echo", "hi"], "");
            said.complains(125, &["echo: could not be tried: Too many open files"]);
        }
        is_silent(&under(&world, limit, &["hook", "generic"], BEFORE), limit);
        is_silent(&under(&world, limit, &["hook", "claude"], CLAUDE), limit);
    }
}

#[test]
fn where_no_thread_can_be_started_it_is_said_in_words() {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root || !has_prlimit() {
        return;
    }
    // A user of its own, so that nobody else's processes count.
    let user = 64_000 + std::process::id() % 1000;
    let world = World::empty().with("input", BEFORE);
    assert!(
        Command::new("chown").args(["-R", &user.to_string()]).arg(world.path("")).status().unwrap().success()
    );
    let run = |args: &[&str]| {
        let ours = world.command(args);
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={user}"), format!("--regid={user}")]).arg("--clear-groups");
        command.args(["prlimit", "--nproc=1"]).arg(ours.get_program()).args(args).current_dir(world.path(""));
        command.env_clear().envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let input = File::open(world.path("input")).unwrap();
        Said::by(command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    for args in [
        &["run", "--retries", "0", "--", "echo", "hi"][..],
        &["diagnose", "--", "echo", "hi"],
        &["http", "--retries", "0", "GET", "http://127.0.0.1:9/"],
        &["mcp-server"],
        &["snapshot", "input"],
    ] {
        let said = run(args);
        assert_eq!(said.exit, 125, "{args:?}: {said}");
        assert!(!said.stderr().is_empty() && !said.stderr().contains("panicked"), "{args:?}: {said}");
        assert!(!said.stderr().contains("/rustc/"), "{args:?}: {said}");
    }
    is_silent(&run(&["hook", "generic"]), "hook generic");
    is_silent(&run(&["hook", "claude"]), "hook claude");
}

/// About the least memory that the program starts with.
fn least_memory() -> u64 {
    let starts = |size: &u64| under(&World::empty(), &format!("--as={size}"), &["--version"], "").exit == 0;
    (2..).map(|step| step * 4_000_000).find(starts).unwrap()
}

/// Memory may run out at any moment: before the payload is read, while it is read, or while files are saved.
#[test]
fn without_memory_no_risky_command_runs_unprotected_in_silence() {
    if !has_prlimit() {
        return;
    }
    let size = least_memory();
    let fill = "x".repeat(24_000_000);
    let payload = |agent: &str, world: &World| {
        let cwd = world.path("").display().to_string();
        let (before, shell) = match agent {
            "gemini" => ("BeforeTool", "run_shell_command"),
            "qwen" => ("PreToolUse", "run_shell_command"),
            "opencode" => ("tool.execute.before", "bash"),
            "cursor" => ("preToolUse", "Shell"),
            _ => ("PreToolUse", "Bash"),
        };
        let command = r#"{"command":"rm -r src"}"#;
        format!(
            r#"{{"session_id":"s","conversation_id":"s","sessionID":"s","cwd":"{cwd}","hook_event_name":"{before}","tool_name":"{shell}","tool":"{shell}","tool_use_id":"t","callID":"t","fill":"{fill}","tool_input":{command},"args":{command}}}"#
        )
    };
    for agent in ["claude", "codex", "copilot", "gemini", "qwen", "opencode", "cursor"] {
        let mut answered = 0;
        for step in 0..12 {
            // Two threads share what memory there is, in an order of their own: very rarely a run is silent, and never twice.
            let silent = (0..2).take_while(|_| {
                let world = World::empty().with("src/main.rs", "fn main() {}");
                let limit = format!("--as={}", size + step * 5_000_000);
                // Such a payload takes a busy machine longer than a hook has.
                let hook = ["--set", "hook.deadline-before=10s", "hook", agent];
                let said = under(&world, &limit, &hook, &payload(agent, &world));
                if said.exit == 139 || said.exit == 127 {
                    return false;
                }
                is_silent(&said, &limit);
                let is_saved = world.run(&["snapshots"], "").stdout().contains("s1");
                answered += usize::from(!is_saved && !said.stdout().is_empty());
                !is_saved && said.stdout().is_empty()
            });
            assert!(silent.count() < 2, "{agent}, step {step}");
        }
        assert!(answered > 0, "{agent}");
    }
}

#[test]
fn without_memory_a_hook_is_silent_and_a_command_says_so() {
    if !has_prlimit() {
        return;
    }
    let world = World::empty();
    // Below some size the system's loader fails, before anything of ours runs.
    let never_ran =
        |said: &Said| said.exit == 139 || (said.exit == 127 && said.stderr().contains("shared libraries"));
    let size = least_memory() - 4_000_000;
    let mut exits = Vec::new();
    for step in 0..40 {
        let limit = format!("--as={}", size + step * 500_000);
        for (door, payload) in [("generic", BEFORE), ("claude", CLAUDE)] {
            let said = under(&world, &limit, &["hook", door], payload);
            if !never_ran(&said) {
                is_silent(&said, &limit);
            }
        }
        let said = under(&world, &limit, &["run", "--retries", "0", "--", "true"], "");
        if !never_ran(&said) {
            assert!([0, 125].contains(&said.exit), "{limit}: {said}");
            exits.push(said.exit);
        }
    }
    assert_eq!(exits.last(), Some(&0), "{exits:?}");
}
