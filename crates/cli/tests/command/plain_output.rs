//! No command prints a character that acts on a terminal or hides, and no name of others makes a line that looks like ours:
//! every command, with such signs in its arguments, in names of files and folders, in outputs, settings and variables.

use std::fs;

use serde_json::json;

use crate::injection::shows_all;
use crate::world::{Said, World};

/// Signs that act or hide: a title for the window, a change of direction, no width, C1, a tag, and a line that looks like ours.
const ODD: &str = "x\u{1b}]0;t\u{7}y\u{202e}z\u{200b}\u{9b}31m\u{e0041}\u{7f}\u{2066}\u{feff}q\rw\nFORGED line\n  FORGED too";

/// A machine on which everything that can have a name has an odd one.
fn odd_world() -> World {
    let name = ODD.replace('/', "_");
    let failed = json!({ "event": "after", "session": ODD, "call_id": ODD, "tool": ODD, "agent": ODD, "cwd": format!("/{ODD}"),
        "input": { "command": ODD, ODD: ODD }, "exit_code": 1, "stderr": format!("error: {ODD}") });
    let alert = json!(ODD.replace(['\u{e0041}', '\u{7f}'], "")).to_string();
    let settings = format!(
        "[[alert]]\nname = {alert}\nwhen = \"failures\"\nmore-than = 0\nwithin = \"24h\"\ncommand = [\"false\"]\n"
    );
    let world = World::empty()
        .with("config/unstuck/config.toml", settings)
        .with(&format!("app/{name}"), "a\n")
        .with("app/a.txt", "a\n")
        .with(&format!("{name}/b.txt"), "b\n")
        .with("failures.jsonl", format!("{}\n", json!({ "command": ODD, "exit_code": 1, "stderr": ODD })));
    let shell = json!({ "event": "after", "session": "s", "call_id": "c", "tool": "Bash", "cwd": "/nowhere",
        "input": { "command": format!("cat '{ODD}'") }, "exit_code": 1, "stderr": format!("cat: {ODD}: No such file or directory") });
    let payloads = format!("{failed}\n{shell}\nno JSON {ODD}\n{}\n", json!({ "event": ODD, "session": ODD }));
    checked(&world.run(&["hook", "generic"], payloads), "hook generic");
    world
}

/// Fails where anything was printed that acts, hides, or forges a line.
#[track_caller]
fn checked(said: &Said, door: &str) {
    for text in [said.stdout(), said.stderr()] {
        shows_all(text, door);
        let forged = text.lines().find(|line| line.trim_start().starts_with("FORGED"));
        assert_eq!(forged, None, "{door}\n{said}");
    }
}

/// Every command, with `ODD` wherever a word of somebody else can stand.
const COMMANDS: [&[&str]; 122] = [
    &["run", "--retries", "0", "--", ODD],
    &["run", "--json", "--retries", "0", "--", ODD],
    &["run", "--action", ODD, "--", "true"],
    &["run", "--verify", ODD, "--", "true"],
    &["run", "--expect-file", ODD, "--", "true"],
    &["run", "--expect-output", ODD, "--", "true"],
    &["run", "--expect-json", ODD, "--", "echo", "{}"],
    &["run", "--protect", ODD, "--", "true"],
    &["run", "--timeout", ODD, "--", "true"],
    &["run", "--cwd", ODD, "--", "true"],
    &["diagnose", "--", ODD],
    &["diagnose", "--json", "--", ODD],
    &["diagnose", "--command", ODD, "--exit-code", "1"],
    &["diagnose", "--jsonl", "failures.jsonl"],
    &["diagnose", ODD],
    &["agent", ODD, "--", "x"],
    &["agent", "claude", "--session", ODD, "--", "x"],
    &["alerts"],
    &["alerts", "--json"],
    &["alerts", "test"],
    &["alerts", "test", "--json"],
    &["alerts", ODD],
    &["allow", ODD],
    &["config", "show"],
    &["config", "--json"],
    &["config", "explain", ODD],
    &["config", "set", ODD, "x"],
    &["--set", "a=x\u{202e}\nFORGED", "status"],
    &["--set", "store.keep-events=x\u{202e}\nFORGED", "status"],
    &["diff", ODD],
    &["doctor"],
    &["doctor", "--json"],
    &["snapshot", "app", "--note", ODD],
    &["snapshot", "app", "--note", ODD, "--json"],
    &["snapshot", ODD],
    &["snapshot", "app"],
    &["snapshots"],
    &["snapshots", "--json"],
    &["snapshots", "show", "s1"],
    &["snapshots", "show", "s1", "--json"],
    &["snapshots", "files", "s1"],
    &["snapshots", "files", "s1", "--json"],
    &["snapshots", "pin", ODD],
    &["snapshots", "cat", "s1", ODD],
    &["snapshots", "check"],
    &["snapshots", "check", "--json"],
    &["snapshots", ODD],
    &["rm", "app"],
    &["diff", "s1"],
    &["diff", "s1", "--json"],
    &["undo"],
    &["redo"],
    &["undo", "--json"],
    &["redo", "--json"],
    &["restore", "s1"],
    &["restore", "s1", "--json"],
    &["restore", "s1", ODD],
    &["restore", ODD],
    &["undo", ODD],
    &["git-snapshot"],
    &["git-snapshot", ODD],
    &["rm", ODD],
    &["rm", "--json", "app"],
    &["hook", ODD],
    &["http", "GET", ODD],
    &["http", ODD, ODD],
    &["http", "GET", "http://127.0.0.1:1/", "--header", ODD],
    &["http", "GET", "http://127.0.0.1:1/x\u{202e}\nFORGED"],
    &["install", ODD],
    &["uninstall", ODD],
    &["lessons"],
    &["lessons", "--json"],
    &["lessons", "show", ODD],
    &["lessons", "import", ODD],
    &["lessons", "import", "failures.jsonl"],
    &["lessons", "approve", ODD],
    &["lessons", "export", "--markdown"],
    &["log", "--last", "100"],
    &["log", "--json"],
    &["log", "--session", ODD],
    &["log", "--server", ODD],
    &["log", "--since", ODD],
    &["mcp", "--name", ODD, "--", ODD],
    &["mcp", "--", ODD],
    &["mcp-server", ODD],
    &["pause", ODD],
    &["problems", "--all"],
    &["problems", "--json"],
    &["problems", "resolve", ODD],
    &["record", "--action", ODD, "--exit-code", "1"],
    &["record", "--json", "--action", ODD, "--exit-code", "1"],
    &["record", ODD],
    &["recover"],
    &["recover", "--json"],
    &["recover", ODD],
    &["replay", ODD],
    &["replay", "failures.jsonl"],
    &["rules"],
    &["rules", "show", ODD],
    &["rules", "test", ODD],
    &["scan", ODD],
    &["scan", "failures.jsonl"],
    &["show", "1"],
    &["show", "1", "--json"],
    &["show", "2"],
    &["show", "2", "--json"],
    &["show", ODD],
    &["show", " x\r\nFORGED line\n"],
    &["stats"],
    &["stats", "--by", "tool"],
    &["stats", "--by", "tool", "--json"],
    &["stats", "--by", ODD],
    &["status"],
    &["status", "--json"],
    &["export"],
    &["export", "--jsonl"],
    &["export", ODD],
    &["gc"],
    &["heartbeat"],
    &["heartbeat", "--json"],
    &["purge", "--session", ODD, "--yes"],
    &[ODD],
];

#[test]
fn no_command_prints_what_acts_or_hides_or_looks_like_a_line_of_ours() {
    let world = odd_world();
    for args in COMMANDS {
        checked(&world.run(args, format!("error: {ODD}\n")), &args.join(" "));
    }
    // Every command is in the table but those that only ask a terminal, stay, or print nothing of others.
    let help = world.run(&["--help"], "");
    let names = help.stdout().lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    for name in names.filter(|name| name.starts_with(|sign: char| sign.is_ascii_lowercase())) {
        let is_known =
            COMMANDS.iter().any(|args| args[0] == name) || ["demo", "resume", "help"].contains(&name);
        assert!(is_known, "{name} is not in the table");
    }
}

#[test]
fn odd_folders_variables_and_rules_are_shown_plain() {
    let world = odd_world();
    let name = ODD.replace('/', "_");
    for args in [
        &["status"][..],
        &["status", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["config", "show"],
        &["snapshot"],
        &["snapshots"],
    ] {
        checked(&world.run_in(&name, args), &format!("{args:?} in an odd folder"));
        for variable in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "UNSTUCK_STORE_KEEP_EVENTS", "EDITOR", "LANG"] {
            let value = format!("{}/{name}", world.path("").display());
            let child =
                world.command(args).env(variable, value).stdin(std::process::Stdio::null()).spawn().unwrap();
            checked(&Said::by(child), &format!("{args:?} with {variable}"));
        }
    }
    fs::create_dir_all(world.path("config/unstuck/rules")).unwrap();
    fs::write(world.path(&format!("config/unstuck/rules/{name}.toml")), "[[rule]]\nid = \"own.\u{202e}\"\n")
        .unwrap();
    for args in [&["rules"][..], &["doctor"], &["diagnose", "--exit-code", "1"]] {
        checked(&world.run(args, "x"), &format!("{args:?} with odd rules"));
    }
    fs::write(world.path("config/unstuck/config.toml"), "\"k\u{202e}\\nFORGED\" = 1\n").unwrap();
    for args in [&["status"][..], &["config", "show"], &["doctor", "--json"]] {
        checked(&world.run(args, ""), &format!("{args:?} with odd settings"));
    }
}

#[test]
fn at_a_terminal_progress_is_plain_and_what_a_command_prints_comes_as_it_is() {
    let printed = "a\u{202e}b\u{1b}[31mc\u{9b}\u{e0041}\n";
    let world = World::empty().with("printed", printed);
    let said = world.run(&["run", "--", "cat", "printed"], "");
    assert_eq!(said.stdout(), printed);
    // With its attempts and waits, there is no sign but those of our own progress line.
    let odd = "x\u{202e}y\u{200b}\u{9b}z";
    let args = [
        "run",
        "--retries",
        "1",
        "--delay",
        "10ms",
        "--action",
        odd,
        "--",
        "sh",
        "-c",
        "echo 503 Service Unavailable >&2; exit 1",
    ];
    if let Some(said) = world.at_terminal(&args) {
        let shown = said.stdout().replace("\u{1b}[K", "").replace('\r', "");
        shows_all(&shown, "a terminal");
    }
}
