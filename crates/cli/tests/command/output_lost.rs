//! Output that cannot be written: never a success, at any command.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::world::{Said, World};

/// Takes nothing that is written to it.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

const NO_ROOM: &str = "No space left on device";

/// What the commands below read, and a line of ours for it.
const FAILED: &str = r#"{"event":"after","session":"s","call_id":"c","tool":"Bash","input":{"command":"npm ci"},"exit_code":127,"stderr":"npm: command not found"}"#;

/// A home in which every command has something to print.
fn lived_in() -> World {
    let world = World::empty().with("one", "1").with("two", "2").with("failures.jsonl", FAILED);
    assert_eq!(world.run(&["run", "-q", "--", "ls", "nothere"], "").exit, 2);
    for args in [&["snapshot", "one"][..], &["rm", "two"]] {
        assert_eq!(world.run(args, "").exit, 0, "{args:?}");
    }
    let git = "git init -q app && cd app && touch one && git add one && git -c user.name=a -c user.email=a@b.example commit -qm one";
    let made = Command::new("sh").args(["-c", git]).current_dir(world.path("")).status().unwrap();
    assert!(made.success());
    fs::write(world.path("one"), "2").unwrap();
    world
}

/// One line each, in an order in which each has something to say.
const ALL: &str = "
    --help
    --version
    run --help
    alerts
    alerts --json
    alerts test
    allow --help
    agent --help
    config show
    config explain ladder.mode
    config path
    demo --help
    diagnose --exit-code 1
    diagnose --jsonl
    diagnose --json -- echo hi
    diagnose -- echo hi
    diff s1
    doctor
    doctor --json
    export --jsonl
    gc
    git-snapshot app
    heartbeat
    http --help
    install claude --yes
    uninstall claude
    lessons --help
    log
    log --json
    mcp-server
    mcp -- cat
    pause --yes
    status
    status --json
    resume
    problems
    problems --json
    purge --help
    recover --dry-run
    record --action npm --exit-code 1 --duration-ms 1
    replay failures.jsonl
    rules list
    rules show errno.no-space
    rules risky
    run -- echo hi
    run --json -- echo hi
    run --quiet -- echo hi
    run --retries 3 --idempotent -- echo hi
    scan failures.jsonl
    show 1
    show s1
    snapshot one
    snapshots
    snapshots check
    snapshots files s1
    snapshots cat s1 one
    snapshots pin s1
    stats
    stats --json
    undo
    redo
    restore s1
    rm one
";

#[test]
fn what_cannot_be_printed_is_said_and_never_a_success() {
    let world = lived_in();
    // A server answers it; `cat` says it back.
    let asks = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\
        \"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}\n";
    fs::write(world.path("asks"), asks).unwrap();
    let mut silent = Vec::new();
    for line in ALL.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let args: Vec<&str> = line.split(' ').collect();
        let input = if args[0].starts_with("mcp") { "asks" } else { "failures.jsonl" };
        let mut command = world.command(&args);
        let child = command.stdin(File::open(world.path(input)).unwrap()).stdout(full()).spawn().unwrap();
        let said = Said::by(child);
        if said.exit != 125 || !said.stderr().contains(NO_ROOM) {
            silent.push(format!("{line}: {said}"));
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn every_command_is_looked_at() {
    let help = World::empty().run(&["--help"], "");
    let listed = help.stdout().split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    let looked_at = |name: &str| ALL.lines().any(|line| line.split_whitespace().next() == Some(name));
    // A hook exits with 0 whatever happens.
    let missing: Vec<&str> = names.filter(|name| *name != "hook" && !looked_at(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_cut_output_is_a_failure_in_the_story_and_in_the_record() {
    let world = World::empty();
    for (script, output, retries) in [
        ("seq 1 100000", "standard output", "0"),
        ("seq 1 100000", "standard output", "3"),
        ("echo lost >&2", "standard error", "3"),
    ] {
        let args = ["run", "--json", "--idempotent", "--retries", retries, "--", "sh", "-c", script];
        let mut command = world.command(&args);
        match output {
            "standard output" => command.stdout(full()),
            _ => command.stderr(full()),
        };
        let said = Said::by(command.stdin(Stdio::null()).spawn().unwrap());
        assert_eq!(said.exit, 125, "{said}");
        if output == "standard output" {
            let story: Value = serde_json::from_str(said.stderr().lines().last().unwrap()).unwrap();
            assert_eq!(
                (&story["ok"], &story["kind"]),
                (&false.into(), &"out_of_resources".into()),
                "{story}"
            );
            assert_eq!((&story["exit_code"], &story["retries"]), (&125.into(), &0.into()), "{story}");
            assert_eq!(story["stopped"], "output_lost", "{story}");
        }
    }
    let log = world.run(&["log"], "");
    let told = |words: &str| log.stdout().lines().filter(|line| line.contains(words)).count();
    assert_eq!((told("failed in"), told("completed")), (3, 0), "{log}");
    let lessons = world.run(&["lessons", "--json", "--all"], "");
    assert_eq!(lessons.stdout(), "", "{lessons}");
}

#[test]
fn our_own_lines_beside_a_success_are_not_lost_in_silence() {
    let world = World::empty();
    let exit = |args: &[&str]| {
        Said::by(world.command(args).stdin(Stdio::null()).stderr(full()).spawn().unwrap()).exit
    };
    assert_eq!(exit(&["run", "--", "true"]), 125);
    assert_eq!(exit(&["run", "--json", "--", "true"]), 125);
    assert_eq!(exit(&["run", "--quiet", "--", "true"]), 0);
    assert_eq!(exit(&["run", "--", "sh", "-c", "exit 7"]), 7);
}

#[test]
fn a_closed_pipe_is_no_failure_of_ours() {
    let world = lived_in();
    let shell = |line: &str| {
        let line = line.replace("unstuck", env!("CARGO_BIN_EXE_unstuck"));
        let mut command = world.command(&[]);
        let mut sh = Command::new("bash");
        sh.args(["-c", &format!("{line}; echo ${{PIPESTATUS[0]}}")]).current_dir(world.path("")).env_clear();
        sh.envs(command.env_remove("X").get_envs().filter_map(|(name, value)| Some((name, value?))));
        String::from_utf8(sh.output().unwrap().stdout).unwrap()
    };
    assert_eq!(shell("unstuck run -q -- seq 1 100000 | head -1"), "1\n141\n");
    assert_eq!(shell("unstuck rules list | head -c 0"), "0\n");
    assert_eq!(shell("unstuck run -- true 2>&1 >/dev/null | true"), "0\n");
    // Whoever stops listening to what we say does not stop what was asked for.
    assert_eq!(
        shell("unstuck run --quiet -- sh -c 'sleep 0.1; echo e >&2; exit 3' 2>&1 >/dev/null | true"),
        "3\n"
    );
}
