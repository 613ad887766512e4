//! Every key that `--json` prints, and everything an event says, stands in the page that describes it.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::agent::{FINE, MISSING, Work, hook, work};
use crate::kept::failure;
use crate::snapshot::project;
use crate::world::{Said, World, repository};

/// What is below these is not ours to describe: words of other vocabularies, or shapes of other pages.
const FOREIGN: [&str; 9] =
    ["body", "input", "verdict", "kinds", "errorTypes", "value", "events", "attempts", "calls"];

fn page(name: &str) -> String {
    fs::read_to_string(repository("docs").join(name)).unwrap()
}

/// The keys of a value and of all that is below it.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, below) in fields {
                found.insert(name.clone());
                if !FOREIGN.contains(&name.as_str()) {
                    keys(below, found);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|each| keys(each, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Fails unless a page names every key of what was printed. Times are named once, and once more with `_ms`.
#[track_caller]
fn check(world: &World, args: &[&str], pages: &[&str]) {
    let said = world.run(args, "");
    let lines: Vec<Value> = said.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines.is_empty(), "{args:?}\n{said}");
    let mut found = BTreeSet::new();
    lines.iter().for_each(|line| keys(line, &mut found));
    let text: String = pages.iter().map(|name| page(name)).collect();
    let is_named = |name: &str| text.contains(&format!("`{name}`"));
    for key in found {
        let as_time = key.strip_suffix("_ms").filter(|base| base.ends_with("at"));
        assert!(is_named(&key) || as_time.is_some_and(is_named), "{args:?}: {key} is not in {pages:?}");
    }
}

#[test]
fn every_key_of_every_command_is_documented() {
    let rule = "[[alert]]\nname = \"any\"\nwhen = \"failures\"\nmore-than = 0\nwithin = \"24h\"\ncommand = [\"false\"]\n";
    let world = World::with_failures().with("config/unstuck/config.toml", rule);
    check(&world, &["heartbeat", "--json"], &["alerts.md", "keeping.md"]);
    check(&world, &["alerts", "--json"], &["alerts.md"]);
    check(&world, &["alerts", "test", "--json"], &["alerts.md"]);
    check(&world, &["log", "--json"], &["timeline.md"]);
    check(&world, &["show", "--json", "1"], &["timeline.md"]);
    check(&world, &["problems", "--json"], &["timeline.md"]);
    let cause = world.run(&["problems", "--json"], "").json_lines()[0]["cause"].as_str().unwrap().to_owned();
    check(&world, &["show", "--json", &cause], &["timeline.md"]);
    check(&world, &["problems", "resolve", "--json", &cause], &["timeline.md"]);
    check(&world, &["stats", "--json", "--by", "tool"], &["timeline.md"]);
    check(&world, &["stats", "--json"], &["timeline.md"]);
    let taught = crate::lessons::world();
    check(&taught, &["lessons", "--json"], &["lessons.md"]);
    check(&taught, &["lessons", "show", "L1", "--json"], &["lessons.md"]);
    check(&taught, &["lessons", "export", "--json"], &["lessons.md"]);
    check(&taught, &["lessons", "approve", "L1", "--yes", "--json"], &["lessons.md"]);
    check(&taught.with("l", ""), &["lessons", "import", "l", "--json"], &["lessons.md"]);
    check(&world, &["config", "--json"], &["config.md"]);
    check(&world, &["config", "explain", "--json", "store.keep-events"], &["config.md"]);
    check(&world, &["config", "path", "--json"], &["config.md"]);
    check(&world, &["gc", "--json"], &["keeping.md"]);
    check(&world, &["doctor", "--json"], &["doctor.md"]);
    let served = World::empty()
        .with(".cursor/mcp.json", r#"{"mcpServers": {"x": {"type": "sse", "url": "https://h.example"}}}"#);
    check(&served, &["install", "mcp", "--list", "--json"], &["mcp-install.md"]);
    check(&served, &["install", "mcp", "--yes", "--json"], &["mcp-install.md", "install.md"]);
    check(&world, &["status", "--json"], &["control.md"]);
    check(&world, &["pause", "--json", "--yes"], &["control.md"]);
    check(&world, &["resume", "--json"], &["control.md"]);
    check(&World::empty(), &["demo", "--json"], &["demo.md"]);
    check(&world, &["purge", "--json", "--session", "one"], &["keeping.md"]);
    check(&world, &["install", "codex", "--dry-run", "--json"], &["install.md"]);
    let transcripts = repository("crates/wire/tests/data");
    check(
        &world.with("no.jsonl", "{}"),
        &["scan", "--json", "no.jsonl", transcripts.to_str().unwrap()],
        &["scan.md"],
    );
}

#[test]
fn every_key_of_what_is_said_of_snapshots_is_documented() {
    let world =
        project().with("config/unstuck/config.toml", "vault.never = \"**/*.env\"\n").with("app/.env", "x");
    let remove = |world: &World| fs::remove_file(world.path("app/src/main.rs")).unwrap();
    check(&world, &["snapshot", "app", "--json"], &["snapshots.md"]);
    world.protected("a", "app", remove);
    check(&world, &["diff", "s1", "--json"], &["snapshots.md"]);
    fs::write(world.path("app/src/deep/note.txt"), "mine").unwrap();
    check(&world, &["undo", "s2", "--json"], &["snapshots.md"]);
    check(&world, &["restore", "s1", "--json"], &["snapshots.md"]);
    let redone = world.run_in("app", &["redo", "--json"]).json();
    assert_eq!(redone["type"], "redo");
    check(&world, &["snapshots", "--json"], &["snapshots.md"]);
    check(&world, &["snapshots", "pin", "s1", "--json"], &["snapshots.md"]);
    check(&world, &["show", "s1", "--json"], &["snapshots.md"]);
    check(&world, &["snapshots", "files", "s1", "--json"], &["snapshots.md"]);
    check(&world, &["snapshots", "check", "--json"], &["snapshots.md"]);
    check(&world, &["snapshots", "drop", "s1", "--json"], &["snapshots.md"]);
    let world = world.with("app/old/a", "a");
    check(&world, &["rm", "-f", "app/old", "none", "--json"], &["verify.md"]);
    check(&world, &["git-snapshot", "app", "--json"], &["snapshots.md"]);
    check(&world, &["status", "--json"], &["control.md"]);
    check(&world, &["gc", "--json"], &["keeping.md"]);
    check(&world, &["purge", "--session", "sitting", "--json"], &["keeping.md"]);
}

/// Runs a hook that may only watch.
fn watch(world: &World, payloads: &str) {
    let mut command = world.command(&["hook", "generic"]);
    let mut child = command.env("UNSTUCK_LADDER_MODE", "shadow").spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), payloads.as_bytes()).unwrap();
    let said = Said::by(child);
    assert_eq!(said.exit, 0, "{said}");
}

#[test]
fn everything_an_event_says_is_documented() {
    let world = World::empty();
    work(&world, &[FINE, MISSING, MISSING]);
    for number in 0..12 {
        watch(&world, &failure("watched", &format!("w{number}"), "frob ci", "bash: frob: command not found"));
        hook(&world, &Work { session: "loop", key: &format!("l{number}"), ..MISSING }.lines());
    }
    let world = world.with("app/a", "a");
    world.run_in("app", &["snapshot", "a"]);
    fs::write(world.path("app/a"), "b").unwrap();
    world.run_in("app", &["snapshot", "a", "--set", "vault.min-free=1TB"]);
    world.run_in("app", &["restore", "s1"]);
    world.run_in("app", &["snapshots", "drop", "s1"]);
    let text = page("timeline.md");
    let mut types = BTreeSet::new();
    for event in world.run(&["log", "--json"], "").json_lines() {
        let kind = event["event"].as_str().unwrap().to_owned();
        let names =
            |line: &&str| line.split('|').nth(1).is_some_and(|cell| cell.contains(&format!("`{kind}`")));
        let row = text.lines().find(names);
        let row = row.unwrap_or_else(|| panic!("{kind} is not documented"));
        for key in event["body"].as_object().unwrap().keys() {
            assert!(row.contains(&format!("`{key}`")), "{kind}: {key} is not in {row}");
        }
        types.insert(kind);
    }
    let snapshots = ["snapshot:taken", "snapshot:failed", "snapshot:restored", "snapshot:removed"];
    for kind in ["tool:start", "tool:error", "tool:end", "tool:advice", "tool:denied", "error", "problem:new"]
        .into_iter()
        .chain(snapshots)
    {
        assert!(types.contains(kind), "{kind} was not met: {types:?}");
    }
}

#[test]
fn what_was_only_thought_is_not_told_as_said() {
    let world = World::empty();
    for number in 1..=3 {
        watch(&world, &failure("s", &format!("c{number}"), "frob ci", "bash: frob: command not found"));
    }
    let log = world.run(&["log", "--session", "s"], "");
    assert!(log.stdout().contains("! advice    would have said: "), "{log}");
    let shown = world.run(&["show", "c2"], "");
    assert!(shown.stdout().contains("before: would have said: "), "{shown}");
    let shown = world.run(&["show", "c2", "--lang", "zh"], "");
    assert!(shown.stdout().contains("before: 本应说: "), "{shown}");
    work(&world, &[Work { session: "t", ..MISSING }]);
    let log = world.run(&["log", "--session", "t"], "");
    assert!(log.stdout().contains("! advice    note: ") && !log.stdout().contains("would have"), "{log}");
}
