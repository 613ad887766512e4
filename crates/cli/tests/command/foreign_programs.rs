//! Files of a repository name programs in every way they can; looking after ourselves starts none of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::{Said, World};

const EXE: &str = env!("CARGO_BIN_EXE_unstuck");

/// The agents that hold entries in files of a project: the word, the file, and an event with the shape of its entries.
const FILES: [(&str, &str, &str); 6] = [
    ("claude", ".claude/settings.local.json", "PreToolUse"),
    ("codex", ".codex/hooks.json", "PreToolUse"),
    ("gemini", ".gemini/settings.json", "BeforeTool"),
    ("qwen", ".qwen/settings.json", "PreToolUse"),
    ("copilot", ".github/hooks/unstuck.json", "preToolUse"),
    ("cursor", ".cursor/hooks.json", "preToolUse"),
];

/// A repository in a home, and a program in it that leaves a mark when it is started.
struct Trap {
    world: World,
}

impl Trap {
    fn new() -> Trap {
        let trap = Trap { world: World::empty() };
        fs::create_dir_all(trap.world.path("repo/.git")).unwrap();
        trap
    }

    fn mark(&self) -> std::path::PathBuf {
        self.world.path("mark")
    }

    /// Puts the program somewhere, and returns its path.
    fn program(&self, path: &str) -> String {
        let path = self.world.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\necho 2.1.325\n", self.mark().display()))
            .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn write(&self, path: &str, value: &Value) {
        let path = self.world.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, serde_json::to_vec_pretty(value).unwrap()).unwrap();
    }

    /// Writes the line of a program into the file of every agent.
    fn hooks(&self, folder: &str, program: &str) {
        for (agent, file, event) in FILES {
            let line = format!("'{program}' hook {agent} 2>/dev/null || :");
            let entry = match agent {
                "copilot" => json!({"type": "command", "bash": line}),
                "cursor" => json!({"command": line}),
                _ => json!({"matcher": "*", "hooks": [{"type": "command", "command": line}]}),
            };
            self.write(&format!("{folder}/{file}"), &json!({"version": 1, "hooks": {event: [entry]}}));
        }
    }

    fn run(&self, args: &[&str]) -> Said {
        let mut command = self.world.command(args);
        command.current_dir(self.world.path("repo")).stdin(Stdio::null());
        let folders = [self.world.path("repo/node_modules/.bin"), self.world.path("bin")];
        let path = std::env::var("PATH").unwrap();
        let path = format!(".:{}:{}:{path}:", folders[0].display(), folders[1].display());
        Said::by(command.env("PATH", path).spawn().unwrap())
    }

    /// Looks after ourselves in every way there is.
    #[track_caller]
    fn nothing_is_started(&self) {
        let all = ["claude", "codex", "gemini", "qwen", "opencode", "copilot", "cursor"];
        let commands: [&[&str]; 14] = [
            &["doctor"],
            &[&["doctor", "--json"], &all[..]].concat(),
            &["status"],
            &["install", "--dry-run"],
            &["install", "mcp", "--dry-run"],
            &["install", "--project"],
            &["install", "mcp"],
            &["doctor", "--lang", "zh"],
            &["config"],
            &["stats"],
            &["uninstall", "mcp"],
            &["uninstall", "--project"],
            &["uninstall"],
            &["doctor"],
        ];
        for command in commands {
            let said = self.run(command);
            let mark = fs::read_to_string(self.mark()).unwrap_or_default();
            assert_eq!(mark, "", "{command:?} started it\n{said}");
        }
    }
}

#[test]
fn a_program_that_a_repository_names_as_ours_is_never_started() {
    for name in ["unstuck", "unstuck-0.1.0", "tool", "o'neil/unstuck"] {
        let trap = Trap::new();
        let program = trap.program(&format!("repo/{name}"));
        trap.hooks("repo", &program.replace('\'', r"'\''"));
        trap.nothing_is_started();
    }
}

#[test]
fn nor_is_it_behind_a_link_or_in_the_files_of_the_user() {
    let trap = Trap::new();
    trap.program("repo/evil");
    symlink("evil", trap.world.path("repo/unstuck")).unwrap();
    let program = trap.world.path("repo/unstuck");
    trap.hooks("repo", program.to_str().unwrap());
    trap.nothing_is_started();
    let trap = Trap::new();
    let program = trap.program("repo/unstuck");
    trap.hooks("", &program);
    trap.nothing_is_started();
}

#[test]
fn nor_is_what_the_plugins_servers_and_settings_of_a_repository_name() {
    let trap = Trap::new();
    let program = trap.program("repo/unstuck");
    trap.program("repo/node_modules/.bin/unstuck");
    for agent in ["claude", "codex", "gemini", "qwen", "opencode", "copilot", "cursor-agent", "git", "sh"] {
        trap.program(&format!("repo/node_modules/.bin/{agent}"));
        trap.program(&format!("repo/{agent}"));
    }
    trap.write("repo/.claude/settings.json", &json!({"enabledPlugins": {"unstuck@unstuck": true}}));
    let server = json!({"command": program, "args": ["mcp", "--name", "a", "--", program]});
    let servers =
        json!({"mcpServers": {"a": server, "unstuck": {"command": program, "args": ["mcp-server"]}}});
    trap.write("repo/.mcp.json", &servers);
    trap.write("repo/.cursor/mcp.json", &servers);
    trap.write("repo/package.json", &json!({"scripts": {"preinstall": program, "postinstall": program}}));
    let config =
        format!("[core]\n\tfsmonitor = {program}\n\tpager = {program}\n[diff]\n\texternal = {program}\n");
    fs::write(trap.world.path("repo/.git/config"), config).unwrap();
    let settings = format!(
        "[[alerts]]\nname = \"x\"\ncommand = ['{program}']\n[agents.claude]\nprogram = '{program}'\n"
    );
    fs::write(trap.world.path("repo/.unstuck.toml"), settings).unwrap();
    trap.nothing_is_started();
}

#[test]
fn no_folder_of_path_that_depends_on_where_one_stands_gives_a_program() {
    let trap = Trap::new();
    for name in ["claude", "codex", "gemini", "vi", "ed-it", "git", "unstuck"] {
        trap.program(&format!("repo/{name}"));
        trap.program(&format!("repo/bin/{name}"));
    }
    for path in ["", ".", "bin", "./bin", "../repo/bin", "bin/../bin", "../../home/repo"] {
        for (args, editor) in [
            (&["agent", "claude", "--", "hi"][..], ""),
            (&["agent", "codex", "--retries", "0", "--", "hi"], ""),
            (&["agent", "gemini", "--", "hi"], ""),
            (&["config", "edit"], ""),
            (&["config", "edit"], "ed-it --wait"),
            (&["doctor"], ""),
            (&["install", "--yes", "--dry-run"], ""),
        ] {
            let mut command = trap.world.command(args);
            command.current_dir(trap.world.path("repo")).env("PATH", format!("{path}:/nowhere"));
            let mut child = command.env("EDITOR", editor).stdin(Stdio::null()).spawn().unwrap();
            drop(child.stdin.take());
            let said = Said::by(child);
            assert!(!trap.mark().exists(), "PATH={path}: {args:?} {editor}\n{said}");
        }
    }
}

#[test]
fn a_plugin_file_that_is_ours_but_for_its_program_is_not_run() {
    let trap = Trap::new();
    let said = trap.world.run(&["install", "opencode"], "");
    assert_eq!(said.exit, 0, "{said}");
    let written = fs::read_to_string(trap.world.path("config/opencode/plugins/unstuck.js")).unwrap();
    let program = trap.program("repo/unstuck");
    let path = trap.world.path("repo/.opencode/plugins/unstuck.js");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, written.replace(EXE, &program)).unwrap();
    trap.nothing_is_started();
}

#[test]
fn the_report_names_what_was_not_run() {
    let trap = Trap::new();
    let program = trap.program("repo/unstuck");
    trap.hooks("repo", &program);
    for (agent, file, _) in FILES {
        let said = trap.run(&["doctor", "--json", agent]);
        let visit: Value = serde_json::from_str(said.stdout()).unwrap();
        let all = visit["findings"].as_array().unwrap();
        let mine: Vec<&Value> =
            all.iter().filter(|each| each["about"] == agent && each["check"] == "self_test").collect();
        let [only] = mine[..] else { panic!("{agent}: {visit}") };
        let what = only["what"].as_str().unwrap();
        assert_eq!((only["severity"].as_str(), said.exit), (Some("warning"), 6), "{visit}");
        assert!(what.contains(file) && what.contains(&program) && what.contains("was not run"), "{what}");
    }
}

#[test]
fn another_program_that_the_ledger_names_is_tried_and_a_forged_ledger_is_not_believed() {
    let trap = Trap::new();
    let other = trap.world.path("bin/unstuck-old");
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    fs::copy(EXE, &other).unwrap();
    let run = |program: &Path, args: &[&str]| {
        let mut command = std::process::Command::new(program);
        let ours = trap.world.command(&[]);
        command.args(args).env_clear().envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(trap.world.path("repo")).stdin(Stdio::null());
        Said::by(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    let said = run(&other, &["install", "claude"]);
    assert_eq!(said.exit, 0, "{said}");
    let self_test = |said: &Said| {
        let visit: Value = serde_json::from_str(said.stdout()).unwrap();
        let all = visit["findings"].as_array().unwrap().clone();
        let mine = all.into_iter().find(|each| each["about"] == "claude" && each["check"] == "self_test");
        mine.unwrap_or_default()
    };
    let visit = || run(Path::new(EXE), &["doctor", "--json", "claude"]);
    assert_eq!(self_test(&visit())["severity"], "ok");
    // A folder that is a link may be anybody's.
    let state = trap.world.path(".local/state/unstuck");
    fs::rename(&state, trap.world.path("repo/state")).unwrap();
    symlink(trap.world.path("repo/state"), &state).unwrap();
    let said = visit();
    assert!(self_test(&said)["what"].as_str().unwrap().contains("was not run"), "{said}");
}
