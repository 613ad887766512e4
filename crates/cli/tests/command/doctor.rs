//! `unstuck doctor`: what is alive is called alive, and everything that can be dead is found dead.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::kept::failure;
use crate::world::{Said, World};

const STATE: &str = ".local/state/unstuck";

/// A program of an agent that can only tell its version.
fn with_program(world: &World, name: &str, version: &str) {
    let path = world.path(&format!(".local/bin/{name}"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\necho '{version}'\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A world in which an agent was told to call us.
fn connected(agent: &str, program: &str, version: &str) -> World {
    let world = World::empty();
    with_program(&world, program, version);
    let said = world.run(&["install", agent], "");
    assert_eq!(said.exit, 0, "{said}");
    world
}

fn claude() -> World {
    connected("claude", "claude", "2.1.325 (Claude Code)")
}

/// What the doctor says, with its exit code.
fn visit(world: &World, args: &[&str]) -> (Value, i32) {
    let said = world.run(&[&["doctor", "--json"], args].concat(), "");
    assert_eq!(said.stderr(), "", "{said}");
    (serde_json::from_str(said.stdout()).unwrap(), said.exit)
}

/// The findings of one check about one thing, as `severity what → todo`.
#[track_caller]
fn findings(world: &World, args: &[&str], about: &str, check: &str) -> Vec<String> {
    let (visit, exit) = visit(world, args);
    let all = visit["findings"].as_array().unwrap();
    let is_bad = all.iter().any(|found| found["severity"] == "warning" || found["severity"] == "error");
    assert_eq!((exit, &visit["sound"]), (if is_bad { 6 } else { 0 }, &(!is_bad).into()), "{visit}");
    let mine = all.iter().filter(|found| found["about"] == about && found["check"] == check);
    let text = |found: &Value, key: &str| found[key].as_str().unwrap_or("-").to_owned();
    mine.map(|found| format!("{} {} → {}", text(found, "severity"), text(found, "what"), text(found, "todo")))
        .collect()
}

/// Fails unless exactly one finding of this check begins like this and holds all of these words.
#[track_caller]
fn check(world: &World, args: &[&str], about: &str, what: &str, severity: &str, words: &[&str]) {
    let found = findings(world, args, about, what);
    let [only] = &found[..] else { panic!("expected one finding of {about}/{what}: {found:?}") };
    assert!(only.starts_with(&format!("{severity} ")), "{only}");
    words.iter().for_each(|words| assert!(only.contains(words), "{words} is not in {only}"));
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, serde_json::to_vec_pretty(&value).unwrap()).unwrap();
}

fn settings(world: &World) -> std::path::PathBuf {
    world.path(".claude/settings.json")
}

#[test]
fn a_machine_without_agents_is_well_and_nothing_is_made_on_it() {
    let world = World::empty();
    let said = world.run(&["doctor"], "");
    assert_eq!((said.exit, said.stderr()), (0, ""), "{said}");
    assert!(
        said.stdout().ends_with("\nall is well\n") && said.stdout().contains("nothing is recorded in"),
        "{said}"
    );
    assert_eq!(fs::read_dir(world.path("")).unwrap().count(), 0);
    assert_eq!(world.run(&["doctor", "--quiet"], "").stdout(), "all is well\n");
    assert!(world.run(&["doctor", "--lang", "zh"], "").stdout().ends_with("\n一切正常\n"));
    world.run(&["doctor", "emacs"], "").complains(2, &["there are claude, codex"]);
}

#[test]
fn every_agent_that_was_installed_for_is_alive_through_its_own_line() {
    for (agent, program, version) in [
        ("claude", "claude", "2.1.325 (Claude Code)"),
        ("codex", "codex", "codex-cli 0.166.0"),
        ("gemini", "gemini", "0.61.0"),
        ("qwen", "qwen", "0.24.4"),
        ("opencode", "opencode", "1.18.33"),
        ("copilot", "copilot", "1.0.102"),
        ("cursor", "cursor-agent", "2026.09.18-abc"),
    ] {
        let world = connected(agent, program, version);
        check(&world, &[agent], agent, "self_test", "ok", &["alive: a call and its result"]);
        // What was tried out is in nobody's timeline.
        assert!(!world.path(STATE).join("timeline.db").exists(), "{agent}");
    }
}

#[test]
fn entries_as_the_installer_writes_them_are_well() {
    let world = claude();
    check(&world, &["claude"], "claude", "entries", "ok", &["9 entries in ", ".claude/settings.json"]);
    check(&world, &["claude"], "claude", "heard", "note", &["nothing was heard from it yet"]);
    check(&world, &["claude"], "claude", "program", "ok", &["Claude Code 2.1.325, "]);
    let (visit, exit) = visit(&world, &[]);
    assert_eq!((&visit["sound"], exit), (&true.into(), 0), "{visit}");
}

#[test]
fn entries_that_are_missing_gone_or_foreign_to_a_version_are_found() {
    let world = claude();
    edit(&settings(&world), |value| drop(value["hooks"].as_object_mut().unwrap().remove("PostToolBatch")));
    check(
        &world,
        &["claude"],
        "claude",
        "entries",
        "warning",
        &["no entry of ours for PostToolBatch", "`unstuck install claude`"],
    );
    let world = claude();
    fs::write(settings(&world), "{}").unwrap();
    check(&world, &["claude"], "claude", "entries", "error", &["have vanished", "`unstuck install claude`"]);
    let world = claude();
    with_program(&world, "claude", "2.0.50 (Claude Code)");
    check(
        &world,
        &["claude"],
        "claude",
        "entries",
        "error",
        &["version 2.0.50 does not know PostToolUseFailure, PostToolBatch"],
    );
    let world = World::empty().with(".claude/settings.json", "{}");
    check(
        &world,
        &["claude"],
        "claude",
        "entries",
        "note",
        &["it does not call unstuck", "`unstuck install claude`"],
    );
    let world = World::empty().with(".claude/settings.json", "{\"hooks\": ");
    check(&world, &["claude"], "claude", "file", "error", &["settings.json:1:"]);
}

#[test]
fn entries_that_somebody_changed_are_found() {
    let world = claude();
    edit(&settings(&world), |value| value["hooks"]["PreToolUse"][0]["matcher"] = json!("Bash"));
    check(
        &world,
        &["claude"],
        "claude",
        "matchers",
        "note",
        &["some tools only (PreToolUse: Bash)", "then `unstuck install claude`"],
    );
    let world = claude();
    edit(&settings(&world), |value| {
        let list = value["hooks"]["PreToolUse"].as_array_mut().unwrap();
        list.push(list[0].clone());
    });
    check(&world, &["claude"], "claude", "entries", "warning", &["are not as `install` would write them"]);
    let said = world.run(&["doctor", "claude", "--quiet", "--lang", "zh"], "");
    assert!(
        said.stdout().starts_with("警告     claude    ") && said.stdout().ends_with("\n有 1 处需要修复\n"),
        "{said}"
    );
}

#[test]
fn a_line_whose_program_is_gone_is_found_dead() {
    let world = claude();
    let gone = world.path("gone/unstuck");
    fs::create_dir_all(gone.parent().unwrap()).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_unstuck"), &gone).unwrap();
    let mut installing = std::process::Command::new(&gone);
    installing
        .args(["install", "claude"])
        .env_clear()
        .env("HOME", world.path(""))
        .current_dir(world.path(""));
    assert!(installing.output().unwrap().status.success());
    fs::remove_file(&gone).unwrap();
    check(&world, &["claude"], "claude", "called", "error", &["gone/unstuck, which is gone"]);
    check(
        &world,
        &["claude"],
        "claude",
        "self_test",
        "error",
        &["it stays silent and records nothing", "run `unstuck install claude` again"],
    );
    // A line that somebody else wrote is not run, whatever it names.
    let text = fs::read_to_string(settings(&world)).unwrap();
    fs::write(settings(&world), text.replace(gone.to_str().unwrap(), "/nowhere/unstuck")).unwrap();
    check(&world, &["claude"], "claude", "called", "error", &["/nowhere/unstuck, which is gone"]);
    assert_eq!(findings(&world, &["claude"], "claude", "self_test"), [""; 0]);
}

#[test]
fn time_limits_that_do_not_fit_are_found() {
    let world = claude();
    edit(&settings(&world), |value| value["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] = json!(1));
    check(
        &world,
        &["claude"],
        "claude",
        "limits",
        "warning",
        &["PreToolUse: 1 s", "`unstuck uninstall claude`, then `unstuck install claude`"],
    );
    let world = claude();
    edit(&settings(&world), |value| {
        value["hooks"]["SessionEnd"][0]["hooks"][0].as_object_mut().unwrap().remove("timeout");
    });
    check(&world, &["claude"], "claude", "limits", "warning", &["SessionEnd: –"]);
    // From this event a call may be sent again, after a wait.
    let world = connected("gemini", "gemini", "0.61.0");
    assert_eq!(findings(&world, &["gemini"], "gemini", "limits"), [""; 0]);
    edit(&world.path(".gemini/settings.json"), |value| {
        value["hooks"]["AfterTool"][0]["hooks"][0]["timeout"] = json!(5000);
    });
    let wrong = &["AfterTool: 5 s < 32 s)", "`unstuck uninstall gemini`, then `unstuck install gemini`"];
    check(&world, &["gemini"], "gemini", "limits", "warning", wrong);
}

#[test]
fn an_installation_from_before_there_were_snapshots_is_found_to_be_too_hurried() {
    let world = claude();
    edit(&settings(&world), |value| {
        value["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] = json!(10);
        value["hooks"]["PostToolUse"][0]["hooks"][0]["timeout"] = json!(5);
    });
    let words = &["PreToolUse: 10 s < 29 s, PostToolUse: 5 s < 24 s", "`unstuck uninstall claude`, then"];
    check(&world, &["claude"], "claude", "limits", "warning", words);
    let world = connected("opencode", "opencode", "1.18.33");
    assert_eq!(findings(&world, &["opencode"], "opencode", "limits"), [""; 0]);
    let file = world.path("config/opencode/plugins/unstuck.js");
    let hurried = fs::read_to_string(&file).unwrap().replace(r#"before":30000"#, r#"before":10000"#);
    fs::write(&file, &hurried).unwrap();
    edit(&world.path(STATE).join("installed.json"), |ledger| {
        ledger["written"][0]["left"] = json!(blake3::hash(hurried.as_bytes()).to_hex().to_string());
    });
    check(&world, &["opencode"], "opencode", "limits", "warning", &["tool.execute.before: 10 s < 29 s"]);
}

#[test]
fn settings_that_ask_for_more_time_than_an_agent_gives_are_found() {
    let world = claude();
    let asking = |set: &'static str| ["claude", "--set", set];
    let too_much = |set: &'static str, expected: &str| {
        let words = &[expected, "shorten `vault.deadline`, `hook."];
        check(&world, &asking(set), "claude", "limits", "warning", words);
    };
    too_much("hook.hold-max=10s", "(PreToolUse: 30 s < 34 s)");
    too_much("hook.deadline-after=6s", "PostToolBatch: 5 s < 6 s");
    too_much("vault.deadline=40s", "PreToolUse: 30 s < 49 s, PostToolUse: 30 s < 44 s");
    for fits in ["hook.deadline-after=5s", "vault.deadline=21s"] {
        assert_eq!(findings(&world, &asking(fits), "claude", "limits"), [""; 0]);
    }
    // Where nothing is protected, no time is needed for it.
    let off = ["claude", "--set", "vault.protect=off", "--set", "vault.deadline=40s"];
    assert_eq!(findings(&world, &off, "claude", "limits"), [""; 0]);
}

#[test]
fn a_plugin_that_only_bears_our_name_is_not_taken_for_ours() {
    let theirs = "const PROGRAM = \"/usr/bin/unstuck\"\nexport const Mine = async () => ({})\n";
    let world = World::empty().with("config/opencode/plugins/unstuck.js", theirs);
    check(&world, &["opencode"], "opencode", "entries", "note", &["it does not call unstuck"]);
    assert_eq!(findings(&world, &["opencode"], "opencode", "self_test"), [""; 0]);
    // One that an older version of ours wrote is known by what was noted then.
    let world = connected("opencode", "opencode", "1.18.33");
    let file = world.path("config/opencode/plugins/unstuck.js");
    let older = fs::read_to_string(&file).unwrap() + "// as it was\n";
    fs::write(&file, &older).unwrap();
    check(&world, &["opencode"], "opencode", "entries", "error", &["have vanished"]);
    edit(&world.path(STATE).join("installed.json"), |ledger| {
        ledger["written"][0]["left"] = json!(blake3::hash(older.as_bytes()).to_hex().to_string());
    });
    check(&world, &["opencode"], "opencode", "self_test", "ok", &["alive"]);
    check(&world, &["opencode"], "opencode", "entries", "warning", &["are not as `install` would write"]);
}

#[test]
fn what_is_set_against_us_is_found() {
    let world = claude();
    edit(&settings(&world), |value| value["disableAllHooks"] = json!(true));
    check(&world, &["claude"], "claude", "switched_off", "error", &["disableAllHooks in "]);
    let world = claude();
    edit(&settings(&world), |value| value["enabledPlugins"] = json!({"unstuck@unstuck": true}));
    check(
        &world,
        &["claude"],
        "claude",
        "plugin",
        "warning",
        &["finds no `unstuck` on PATH", "put `unstuck` on PATH"],
    );
    let ours = Path::new(env!("CARGO_BIN_EXE_unstuck")).parent().unwrap();
    let mut command = world.command(&["doctor", "--json", "claude"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", ours.display()));
    let said = Said::by(command.spawn().unwrap());
    for words in ["every event is told twice", "`unstuck uninstall claude`"] {
        assert!(said.stdout().contains(words), "{words}: {said}");
    }
}

#[test]
fn codex_skips_what_nobody_trusts() {
    let world = connected("codex", "codex", "codex-cli 0.166.0");
    check(&world, &["codex"], "codex", "trust", "error", &["PreToolUse", "open `/hooks`"]);
    let hooks = world.path(".codex/hooks.json").canonicalize().unwrap();
    let value: Value = serde_json::from_slice(&fs::read(&hooks).unwrap()).unwrap();
    let names = [
        "pre_tool_use",
        "permission_request",
        "post_tool_use",
        "user_prompt_submit",
        "session_start",
        "subagent_stop",
        "session_end",
    ];
    assert_eq!(value["hooks"].as_object().unwrap().len(), names.len());
    let state = |name: &str| {
        format!("[hooks.state.\"{}:{name}:0:0\"]\ntrusted_hash = \"sha256:0\"\n", hooks.display())
    };
    fs::write(world.path(".codex/config.toml"), names.map(state).concat()).unwrap();
    check(&world, &["codex"], "codex", "trust", "ok", &["agreed"]);
}

/// A call as Claude Code tells of it.
fn told(world: &World, event: &str, number: usize) {
    let payload = json!({"session_id": "s", "transcript_path": "", "cwd": "/", "permission_mode": "default",
        "hook_event_name": event, "tool_name": "Bash", "tool_input": {"command": format!("echo {number}")},
        "tool_use_id": format!("t{number}"), "tool_response": {"stdout": "ok", "stderr": "", "interrupted": false}});
    assert_eq!(world.run(&["hook", "claude"], payload.to_string()).exit, 0);
}

#[test]
fn an_event_that_never_comes_is_found() {
    let world = claude();
    (0..10).for_each(|number| told(&world, "PreToolUse", number));
    check(&world, &["claude"], "claude", "heard", "ok", &["10 calls asked for, 0 results told"]);
    check(
        &world,
        &["claude"],
        "claude",
        "silent",
        "warning",
        &["10 calls were asked for, but no result was ever heard; silent: PostToolUse, "],
    );
    told(&world, "PostToolUse", 0);
    assert_eq!(findings(&world, &["claude"], "claude", "silent"), [""; 0]);
    let world = claude();
    (0..10).for_each(|number| told(&world, "PostToolUse", number));
    check(
        &world,
        &["claude"],
        "claude",
        "silent",
        "warning",
        &["so nothing can be refused; silent: PreToolUse"],
    );
    check(&world, &["claude"], "unstuck", "latency", "ok", &["our hooks take "]);
}

/// What became of all calls of an answer, as Claude Code tells it.
fn summed_up(world: &World, number: usize) {
    let call = json!({"tool_name": "Bash", "tool_input": {"command": format!("echo {number}")},
        "tool_use_id": format!("t{number}"), "tool_response": "ok"});
    let payload = json!({"session_id": "s", "transcript_path": "", "cwd": "/", "permission_mode": "default",
        "hook_event_name": "PostToolBatch", "tool_calls": [call]});
    assert_eq!(world.run(&["hook", "claude"], payload.to_string()).exit, 0);
}

#[test]
fn an_event_that_sums_calls_up_and_never_comes_is_found_by_itself() {
    let world = claude();
    let call = |number| {
        told(&world, "PreToolUse", number);
        told(&world, "PostToolUse", number);
    };
    (0..19).for_each(call);
    assert_eq!(findings(&world, &["claude"], "claude", "silent"), [""; 0]);
    assert_eq!(findings(&world, &["claude"], "claude", "person"), [""; 0]);
    call(19);
    let silent = &["20 calls were heard, but never PostToolBatch", "restart the agent"];
    check(&world, &["claude"], "claude", "silent", "warning", silent);
    check(&world, &["claude"], "claude", "person", "note", &["never UserPromptSubmit"]);
    // Once it comes, even for a call that was told already, it is not silent.
    summed_up(&world, 19);
    assert_eq!(findings(&world, &["claude"], "claude", "silent"), [""; 0]);
    let prompt = json!({"session_id": "s", "transcript_path": "", "cwd": "/", "permission_mode": "default",
        "hook_event_name": "UserPromptSubmit", "prompt": "go on"});
    world.run(&["hook", "claude"], prompt.to_string());
    assert_eq!(findings(&world, &["claude"], "claude", "person"), [""; 0]);
}

#[test]
fn an_event_that_is_not_registered_or_had_no_occasion_yet_is_not_called_silent() {
    let world = claude();
    (0..20).for_each(|number| {
        told(&world, "PreToolUse", number);
        told(&world, "PostToolUse", number);
    });
    check(&world, &["claude"], "claude", "silent", "warning", &["never PostToolBatch"]);
    let text = fs::read_to_string(settings(&world)).unwrap();
    edit(&settings(&world), |value| drop(value["hooks"].as_object_mut().unwrap().remove("PostToolBatch")));
    assert_eq!(findings(&world, &["claude"], "claude", "silent"), [""; 0]);
    // Written anew after the last call: the next one decides.
    fs::write(settings(&world), text).unwrap();
    assert_eq!(world.run(&["uninstall", "claude"], "").exit, 0);
    assert_eq!(world.run(&["install", "claude"], "").exit, 0);
    assert_eq!(findings(&world, &["claude"], "claude", "silent"), [""; 0]);
    told(&world, "PreToolUse", 20);
    check(&world, &["claude"], "claude", "silent", "warning", &["never PostToolBatch"]);
}

#[test]
fn mistakes_and_faults_of_our_own_are_told_and_stop_nothing() {
    let world = World::empty()
        .with("config/unstuck/config.toml", "[ladder]\nmode = \"hard\"\n[store]\nwait-before = \"1s\"\n");
    let found = findings(&world, &[], "unstuck", "settings");
    assert!(
        found[0].starts_with("warning ") && found[0].contains("config.toml:2:1: ladder.mode must be one of"),
        "{found:?}"
    );
    assert!(found[1].contains("store.wait-before is longer than hook.deadline-before"), "{found:?}");
    check(&world, &[], "unstuck", "self_test", "ok", &["alive"]);
    let world = World::empty();
    world.run(&["hook", "generic"], "{not json}");
    world.run(&["hook", "generic"], "{not json}");
    check(&world, &[], "store", "faults", "warning", &["hook generic: not JSON", "(2×, last "]);
    let world = World::empty().with("config/unstuck/rules/mine.toml", "[[rule]]\nid = 5\n");
    assert!(findings(&world, &[], "unstuck", "rules")[0].starts_with("warning "));
    check(&world, &[], "unstuck", "self_test", "ok", &["alive"]);
}

#[test]
fn a_store_that_cannot_be_used_is_found() {
    let world = World::with_failures();
    check(&world, &[], "store", "database", "ok", &["is sound ("]);
    fs::write(
        world.path(STATE).join("timeline.db"),
        "this is no database, and it is long enough to be looked at",
    )
    .unwrap();
    let (after, _) = visit(&world, &[]);
    let all = after["findings"].as_array().unwrap();
    assert!(all.iter().any(|found| found["about"] == "store" && found["check"] == "damaged"), "{after}");
    let linked = World::with_failures();
    fs::rename(linked.path(STATE), linked.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(linked.path("elsewhere"), linked.path(STATE)).unwrap();
    check(&linked, &[], "store", "folder", "error", &["symbolic link", "store.state-dir"]);
    // No snapshot could be taken there, so it is told before there is one.
    let linked = World::with_failures();
    fs::create_dir(linked.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(linked.path("elsewhere"), linked.path(STATE).join("vault")).unwrap();
    check(&linked, &[], "safe", "snapshots", "error", &["symbolic link"]);
}

#[test]
fn a_clock_that_was_ahead_is_found() {
    let world = World::empty();
    let ahead = std::time::SystemTime::now() + std::time::Duration::from_secs(6 * 3600);
    let at = ahead.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let payload = failure("s", "c1", "npm ci", "npm error code ENOENT")
        .replace("\"event\"", &format!("\"at\":{at},\"event\""));
    world.record(&payload);
    check(&world, &[], "store", "clock", "warning", &["in the future", "set the clock"]);
}

#[test]
fn a_pause_and_a_variable_are_told() {
    let world = World::empty();
    world.run(&["pause", "--yes"], "");
    check(&world, &[], "unstuck", "switch", "note", &["paused until", "`unstuck resume`"]);
    check(&world, &[], "unstuck", "self_test", "ok", &["alive"]);
    let said = Said::by(world.command(&["doctor"]).env("UNSTUCK_DISABLE", "1").spawn().unwrap());
    assert!(said.exit == 6 && said.stdout().contains("UNSTUCK_DISABLE is set here"), "{said}");
    assert!(said.stdout().ends_with("\n1 thing should be mended\n"), "{said}");
}

#[test]
fn servers_that_go_through_us_are_looked_at() {
    let file = ".cursor/mcp.json";
    let before = r#"{"mcpServers": {"x": {"command": "npx"}, "y": {"command": "npx"}}}"#;
    let world = World::empty().with(file, before);
    let said = world.run(&["install", "mcp", "cursor"], "");
    assert_eq!(said.exit, 0, "{said}");
    let there = fs::read_to_string(world.path(file)).unwrap();
    let words = ["these servers in ", "mcp.json go through unstuck: x, y"];
    check(&world, &["cursor"], "cursor", "servers", "ok", &words);
    let moved = there.replace(env!("CARGO_BIN_EXE_unstuck"), "/gone/unstuck");
    fs::write(world.path(file), moved).unwrap();
    let words = ["starts /gone/unstuck, which is not there, for x, y", "→ `unstuck install mcp cursor`"];
    check(&world, &["cursor"], "cursor", "servers", "error", &words);
    fs::write(world.path(file), before.replace("\"y\"", "\"z\"")).unwrap();
    let found = findings(&world, &[], "cursor", "servers");
    assert!(
        found[0].starts_with("warning x in ") && found[0].contains("no longer goes through unstuck"),
        "{found:?}"
    );
    assert!(found[1].starts_with("note y, which went through unstuck, is no longer in "), "{found:?}");
    fs::write(world.path(file), &there[1..]).unwrap();
    check(&world, &[], "cursor", "servers", "error", &["mcp.json:1:"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_a_finding() {
    let before =
        r#"{"event":"before","session":"s","call_id":"c","tool":"Bash","input":{"command":"npm ci"}}"#;
    let check = |spoiled: &str, records: bool| {
        let world = World::empty();
        if records {
            assert_eq!(world.of_nobody(&["hook", "generic"], before).exit, 0);
        } else {
            fs::create_dir_all(world.path(spoiled)).unwrap();
        }
        let mode = |mode| fs::set_permissions(world.path(spoiled), fs::Permissions::from_mode(mode)).unwrap();
        mode(0o500);
        let said = world.of_nobody(&["doctor"], "");
        mode(0o700);
        assert_eq!(said.exit, 6, "{spoiled}: {said}");
        assert!(said.stdout().contains("could not write"), "{spoiled}: {said}");
    };
    check(".local/state/unstuck", true);
    check(".local", false);
    let world = World::empty();
    world.run(&["hook", "generic"], before);
    let said = world.run(&["doctor"], "");
    assert!(said.stdout().contains("a probe was written there"), "{said}");
}
