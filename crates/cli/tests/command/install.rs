//! `unstuck install` and `uninstall`: what a person sees, and what is in the files afterwards.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::agent_files::{SETTINGS, commands};
use crate::world::{Said, World, repository};

const MINE: &str = "{\n    \"model\": \"opus\",\n    \"permissions\": {\"allow\": [\"Bash(ls:*)\"]}\n}";

#[test]
fn it_is_installed_shown_and_gone_again() {
    let world = World::with_claude(MINE);
    let said = world.installs(&["install", "claude"]);
    assert_eq!((said.exit, said.stderr()), (0, ""), "{said}");
    assert!(said.stdout().starts_with("Claude Code 2.1.325: installed\n  "), "{said}");
    assert!(said.stdout().contains("PreToolUse, PostToolUse, PostToolUseFailure, PostToolBatch, "), "{said}");
    assert!(
        said.stdout().contains("what was there before: ") && said.stdout().contains("build folder"),
        "{said}"
    );
    let after = world.text(SETTINGS);
    assert!(after.starts_with(MINE.trim_end_matches("\n}")), "{after}");
    let line = &commands(&world.parsed(SETTINGS), "PreToolUse")[0];
    assert_eq!(*line, format!("'{}' hook claude 2>/dev/null || :", env!("CARGO_BIN_EXE_unstuck")));
    let again = world.installs(&["install", "claude"]);
    assert!(again.stdout().starts_with("Claude Code 2.1.325: installed already\n"), "{again}");
    assert_eq!(world.text(SETTINGS), after);
    let said = world.installs(&["uninstall", "claude"]);
    assert!(said.exit == 0 && said.stdout().starts_with("Claude Code: taken out of "), "{said}");
    assert_eq!(world.text(SETTINGS), MINE);
    let said = world.installs(&["uninstall", "claude"]);
    assert_eq!((said.exit, said.stderr()), (0, "Claude Code: nothing of ours is installed\n"), "{said}");
}

#[test]
fn a_dry_run_prints_a_diff_that_can_be_applied_and_touches_nothing() {
    let world = World::with_claude(MINE);
    let said = world.installs(&["install", "claude", "--dry-run"]);
    assert!(
        said.exit == 0 && said.stdout().starts_with("--- ") && said.stdout().contains("\n+++ "),
        "{said}"
    );
    assert!(said.stderr().starts_with("Claude Code 2.1.325: would be installed\n"), "{said}");
    assert_eq!((world.text(SETTINGS).as_str(), world.path(".local").exists()), (MINE, false));
    world.installs(&["install", "claude"]);
    let there = world.text(SETTINGS);
    let back = world.installs(&["uninstall", "--dry-run"]);
    assert!(back.stdout().contains("\n-        \"PreToolUse\": [\n"), "{back}");
    assert_eq!(world.text(SETTINGS), there);
    if let Ok(mut patch) = Command::new("patch")
        .args(["-s", "-p0", &world.path("copy").display().to_string()])
        .stdin(Stdio::piped())
        .spawn()
    {
        fs::write(world.path("copy"), MINE).unwrap();
        patch.stdin.take().unwrap().write_all(&said.stdout).unwrap();
        assert!(patch.wait().unwrap().success());
        assert_eq!(world.text("copy"), there);
    }
}

#[test]
fn every_agent_gets_its_file_and_loses_it_again() {
    let world = World::empty().with_program("claude", "2.1.325").with_program("codex", "codex-cli 0.166.0");
    let agents = ["claude", "codex", "gemini", "qwen", "opencode", "copilot", "cursor"];
    let said = world.installs(&[&["install", "--json"], &agents[..]].concat());
    let told = said.json_lines();
    let seen: Vec<&str> = told.iter().map(|line| line["agent"].as_str().unwrap()).collect();
    assert_eq!(seen, agents);
    for line in &told {
        assert_eq!((&line["status"], &line["scope"]), (&json!("installed"), &json!("user")), "{line}");
    }
    let expected = [
        ".claude",
        ".claude/settings.json",
        ".codex",
        ".codex/hooks.json",
        ".copilot",
        ".copilot/hooks",
        ".copilot/hooks/unstuck.json",
        ".cursor",
        ".cursor/hooks.json",
        ".gemini",
        ".gemini/settings.json",
        ".qwen",
        ".qwen/settings.json",
        "config",
        "config/opencode",
        "config/opencode/plugins",
        "config/opencode/plugins/unstuck.js",
    ];
    assert_eq!(world.files(""), expected);
    let bare = |agent: &str| format!("'{}' hook {agent} 2>/dev/null || :", env!("CARGO_BIN_EXE_unstuck"));
    let gemini = &world.parsed(".gemini/settings.json")["hooks"]["BeforeTool"];
    let entry = json!({"type": "command", "name": "unstuck", "command": bare("gemini"), "timeout": 30_000});
    assert_eq!(*gemini, json!([{"matcher": "*", "hooks": [entry]}]));
    let gemini = &world.parsed(".gemini/settings.json")["hooks"]["AfterTool"];
    assert_eq!(gemini[0]["hooks"][0]["timeout"], 40_000);
    let qwen = &world.parsed(".qwen/settings.json")["hooks"]["PostToolBatch"];
    let entry = json!({"type": "command", "name": "unstuck", "command": bare("qwen"), "timeout": 5});
    assert_eq!(*qwen, json!([{"hooks": [entry]}]));
    let copilot = world.parsed(".copilot/hooks/unstuck.json");
    assert_eq!(copilot["version"], 1);
    let entry = json!({"type": "command", "bash": bare("copilot"), "timeoutSec": 30});
    assert_eq!(copilot["hooks"]["preToolUse"], json!([entry]));
    let cursor = world.parsed(".cursor/hooks.json");
    assert_eq!(cursor["hooks"]["preToolUse"], json!([{"command": bare("cursor"), "timeout": 30}]));
    let codex = world.parsed(".codex/hooks.json");
    assert_eq!(codex["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"], 2);
    let said = world.installs(&["uninstall", "--json"]);
    assert_eq!(said.json_lines().len(), agents.len());
    assert_eq!(world.files(""), ["config"; 0], "{said}");
}

#[test]
fn why_a_version_is_not_known_is_said_in_the_language_of_the_reader() {
    let check = |script: Option<&str>, en: &str, zh: &str| {
        for (lang, expected) in [("en", en), ("zh", zh)] {
            let mut world = World::empty();
            if let Some(script) = script {
                world =
                    world.with_program("claude", "x").with("bin/claude", format!("#!/bin/sh\n{script}\n"));
            }
            let said = world.installs(&["install", "claude", "--dry-run", "--lang", lang]);
            assert!(said.stderr().contains(expected), "{expected} is not in\n{said}");
        }
    };
    check(None, "not known (there is no such program)", "的版本（没有这个程序）");
    check(Some("echo hello"), "not known (it said no version)", "的版本（它没有说出版本）");
    check(Some("exit 3"), "not known (exit code 3)", "的版本（退出码 3）");
    check(Some("kill -9 $$"), "not known (signal 9)", "的版本（信号 9）");
}

#[test]
fn a_project_gets_files_of_its_own() {
    let world =
        World::empty().with_program("claude", "2.1.325").with("work/.git/HEAD", "x").with("work/a/b", "x");
    let run =
        |args: &[&str]| Said::by(world.installer(args).current_dir(world.path("work/a")).spawn().unwrap());
    let said = run(&["install", "--project", "claude", "gemini"]);
    assert_eq!(said.exit, 0, "{said}");
    let expected =
        [".claude/settings.local.json", ".gemini/settings.json"].map(|file| format!("work/{file}"));
    expected.iter().for_each(|file| assert!(world.path(file).exists(), "{file}\n{said}"));
    assert!(said.stdout().contains("keep it out of version control"), "{said}");
    assert!(said.stdout().contains("say that you trust the folder"), "{said}");
    // It is known from anywhere.
    world.installs(&["uninstall"]);
    expected.iter().for_each(|file| assert!(!world.path(file).exists(), "{file}"));
}

#[test]
fn the_step_that_is_left_to_the_person_is_told() {
    let world = World::empty().with_program("codex", "codex-cli 0.166.0");
    let said = world.installs(&["install", "codex"]);
    assert!(said.stdout().contains("type /hooks and trust the entries of unstuck"), "{said}");
    let world = World::empty().with_program("codex", "codex-cli 0.166.0");
    let said = world.installs(&["install", "codex", "--lang", "zh"]);
    assert!(
        said.stdout().contains("Codex CLI 0.166.0：已安装") && said.stdout().contains("还差您一步"),
        "{said}"
    );
    let said = World::empty().installs(&["install", "cursor", "--json"]).json();
    assert!(said["notes"].as_array().unwrap().iter().any(|note| note["note"] == "unverified"), "{said}");
}

/// The events of a fresh installation for Claude Code.
#[track_caller]
fn check_version(program: Option<&str>, has: &[&str], has_not: &[&str], note: Option<&str>) {
    let world = match program {
        Some(version) => World::empty().with_program("claude", version),
        None => World::empty(),
    };
    let said = world.installs(&["install", "claude", "--json"]).json();
    let hooks = &world.parsed(SETTINGS)["hooks"];
    has.iter().for_each(|event| assert!(hooks[*event].is_array(), "{event} {hooks}"));
    has_not.iter().for_each(|event| assert!(hooks[*event].is_null(), "{event} {hooks}"));
    let notes: Vec<&str> =
        said["notes"].as_array().unwrap().iter().map(|note| note["note"].as_str().unwrap()).collect();
    assert_eq!(notes.iter().find(|note| note.starts_with("version")).copied(), note, "{said}");
}

#[test]
fn the_version_decides_which_events_are_written() {
    let always =
        ["PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "SubagentStop", "SessionEnd"];
    thread::scope(|scope| {
        scope.spawn(|| {
            check_version(
                Some("2.0.50 (Claude Code)"),
                &always,
                &["PostToolUseFailure", "PostToolBatch"],
                Some("version_old"),
            )
        });
        scope.spawn(|| {
            check_version(Some("2.1.100"), &["PostToolUseFailure"], &["PostToolBatch"], Some("version_old"))
        });
        scope.spawn(|| {
            check_version(
                Some("2.1.118"),
                &["PostToolUseFailure", "PostToolBatch", "PermissionRequest"],
                &[],
                None,
            )
        });
        scope.spawn(|| {
            check_version(None, &always, &["PostToolUseFailure", "PostToolBatch"], Some("version_unknown"))
        });
        scope
            .spawn(|| check_version(Some("no number"), &always, &["PostToolBatch"], Some("version_unknown")));
    });
}

#[test]
fn events_stay_where_the_version_cannot_be_asked_any_more_and_go_where_it_is_too_old() {
    let world = World::with_claude("{}");
    world.installs(&["install", "claude"]);
    fs::remove_file(world.path("bin/claude")).unwrap();
    let said = world.installs(&["install", "claude", "--json"]).json();
    assert_eq!(said["status"], "unchanged", "{said}");
    assert!(world.parsed(SETTINGS)["hooks"]["PostToolBatch"].is_array());
    let world = world.with_program("claude", "2.0.50");
    world.installs(&["install", "claude"]);
    assert!(world.parsed(SETTINGS)["hooks"]["PostToolBatch"].is_null());
    world.installs(&["uninstall"]);
    assert_eq!(world.text(SETTINGS), "{}");
}

#[test]
fn the_line_says_nothing_and_succeeds_where_the_program_is_gone() {
    let world = World::with_claude("{}");
    world.installs(&["install", "claude"]);
    let line = commands(&world.parsed(SETTINGS), "PreToolUse").remove(0);
    for line in [line.clone(), line.replace("/unstuck'", "/gone/unstuck'")] {
        let mut child = Command::new("/bin/sh");
        child.args(["-c", &line]).env_clear().env("HOME", world.path(""));
        child.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let said = Said::by(child.spawn().unwrap());
        assert_eq!((said.exit, said.stdout(), said.stderr()), (0, "", ""), "{line}\n{said}");
    }
}

#[test]
fn the_plugin_and_the_installer_tell_of_the_same_events() {
    let read = |path: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(repository(path)).unwrap()).unwrap()
    };
    let world = World::with_claude("{}");
    world.installs(&["install", "claude"]);
    let line = commands(&world.parsed(SETTINGS), "PreToolUse").remove(0);
    let from_path = "unstuck hook claude 2>/dev/null || :";
    let installed = world.parsed(SETTINGS)["hooks"].to_string().replace(&line, from_path);
    let mut hooks = read("plugin/hooks/hooks.json")["hooks"].clone();
    let missing = hooks["SessionStart"].as_array_mut().unwrap().remove(1);
    assert_eq!(hooks.to_string(), installed);
    // Where the program is missing, the person is told so.
    let line = missing["hooks"][0]["command"].as_str().unwrap();
    let told = |path: &Path| -> String {
        let said = Command::new("/bin/sh").args(["-c", line]).env("PATH", path).output().unwrap();
        String::from_utf8(said.stdout).unwrap()
    };
    let said: Value = serde_json::from_str(&told(&world.path("nowhere"))).unwrap();
    assert!(said["systemMessage"].as_str().unwrap().contains("unstuck install claude"), "{said}");
    let ours = Path::new(env!("CARGO_BIN_EXE_unstuck")).parent().unwrap();
    assert_eq!(told(ours), "");
    let plugin = read("plugin/.claude-plugin/plugin.json");
    let market = read(".claude-plugin/marketplace.json");
    assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (&market["plugins"][0]["name"], &market["plugins"][0]["source"]),
        (&plugin["name"], &json!("./plugin"))
    );
}

#[test]
fn with_the_plugin_active_nothing_is_written() {
    let settings = r#"{"enabledPlugins": {"unstuck@unstuck": true}}"#;
    let world = World::with_claude(settings);
    let ours = Path::new(env!("CARGO_BIN_EXE_unstuck")).parent().unwrap();
    let path = format!("{}:{}:/usr/bin:/bin", ours.display(), world.path("bin").display());
    let said = Said::by(world.installer(&["install", "claude"]).env("PATH", path).spawn().unwrap());
    assert!(said.exit == 0 && said.stdout().contains("the plugin is active already"), "{said}");
    assert_eq!(world.text(SETTINGS), settings);
    // A plugin that finds no program does nothing: then the entries are written, and that is said.
    let said = world.installs(&["install", "claude", "--json"]).json();
    assert_eq!(said["status"], "installed", "{said}");
    assert!(said["notes"].as_array().unwrap().iter().any(|note| note["note"] == "plugin_idle"), "{said}");
    for inactive in [
        r#"{"enabledPlugins": {"unstuck@unstuck": false}}"#,
        r#"{"enabledPlugins": {"not-unstuck@x": true}}"#,
    ] {
        let said = World::with_claude(inactive).installs(&["install", "claude", "--json"]).json();
        assert_eq!(said["status"], "installed", "{said}");
    }
}

#[test]
fn a_switch_that_keeps_hooks_from_running_is_told() {
    #[track_caller]
    fn check(agent: &str, file: &str, content: &str, key: &str) {
        let world = World::empty().with(file, content);
        let said = world.installs(&["install", agent, "--json"]).json();
        let told = said["notes"].as_array().unwrap().iter().find(|note| note["note"] == "switched_off");
        assert!(told.is_some_and(|note| note["text"].as_str().unwrap().contains(key)), "{said}");
    }
    thread::scope(|scope| {
        scope.spawn(|| check("claude", SETTINGS, r#"{"disableAllHooks": true}"#, "disableAllHooks"));
        scope.spawn(|| {
            check(
                "gemini",
                ".gemini/settings.json",
                "{\"hooksConfig\": {\"enabled\": false} /* off */}",
                "hooksConfig.enabled",
            )
        });
        scope.spawn(|| {
            check("qwen", ".qwen/settings.json", r#"{"disableAllHooks": true}"#, "disableAllHooks")
        });
        scope.spawn(|| check("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks"));
    });
}

#[test]
fn without_a_name_nothing_is_done_before_somebody_agrees() {
    World::empty()
        .installs(&["install"])
        .complains(1, &["no agent is found on this machine", "unstuck install claude"]);
    let world = World::with_claude(MINE).with(".gemini/x", "");
    world.installs(&["install"]).complains(2, &["nobody agreed to install for claude, gemini", "--yes"]);
    world.installs(&["install", "--json"]).complains(2, &["--yes"]);
    assert_eq!(world.text(SETTINGS), MINE);
    let said = world.installs(&["install", "--yes"]);
    assert!(said.stdout().contains("Claude Code") && said.stdout().contains("Gemini CLI"), "{said}");
    assert!(!said.stdout().contains("Codex"), "{said}");
    world.installs(&["uninstall"]);
    assert_eq!((world.text(SETTINGS).as_str(), world.path(".gemini/settings.json").exists()), (MINE, false));
}

#[test]
fn a_wrong_name_says_which_there_are() {
    World::empty().installs(&["install", "claud"]).complains(2, &["there are claude, codex, gemini, qwen,"]);
    World::empty().installs(&["uninstall", "generic"]).complains(2, &["there are claude"]);
    World::empty()
        .installs(&["install", "claude", "--user", "--project"])
        .complains(2, &["cannot be used with"]);
}

#[test]
fn another_folder_of_the_agent_is_found_by_its_variable() {
    let check = |agent: &str, variable: &str, file: &str| {
        let world = World::empty();
        let run = |verb| {
            Said::by(world.installer(&[verb, agent]).env(variable, world.path("else")).spawn().unwrap())
        };
        assert_eq!(run("install").exit, 0);
        assert!(world.path(file).exists(), "{file}");
        assert_eq!(run("uninstall").exit, 0);
        assert!(!world.path("else").exists(), "{agent}");
    };
    thread::scope(|scope| {
        for (agent, variable, file) in [
            ("claude", "CLAUDE_CONFIG_DIR", "else/settings.json"),
            ("codex", "CODEX_HOME", "else/hooks.json"),
            ("gemini", "GEMINI_CLI_HOME", "else/.gemini/settings.json"),
            ("copilot", "COPILOT_HOME", "else/hooks/unstuck.json"),
        ] {
            scope.spawn(move || check(agent, variable, file));
        }
    });
}

#[test]
fn a_line_that_is_only_like_ours_is_left_and_told() {
    let world = World::with_claude("{}");
    world.installs(&["install", "claude"]);
    let changed = world.text(SETTINGS).replacen("\"'", "\"time '", 1);
    fs::write(world.path(SETTINGS), &changed).unwrap();
    let said = world.installs(&["uninstall", "claude"]);
    assert!(said.exit == 1 && said.stdout().contains("left alone: time '"), "{said}");
    let left = world.parsed(SETTINGS);
    assert_eq!(left["hooks"].as_object().unwrap().len(), 1, "{left}");
}
