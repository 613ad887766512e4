//! A binary under another name, moved or upgraded: it installs once, and finds everything again.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::world::{Said, World};

const EXE: &str = env!("CARGO_BIN_EXE_unstuck");
const AGENTS: [&str; 7] = ["claude", "codex", "gemini", "qwen", "opencode", "copilot", "cursor"];
const SERVER: &str =
    r#"{"mcpServers": {"x": {"command": "npx", "args": ["-y", "x"]}, "y": {"command": "b", "args": []}}}"#;
/// The agents that have servers, with a file that names some.
const SERVERS: [(&str, &str, &str); 8] = [
    ("claude", ".claude.json", SERVER),
    (
        "codex",
        ".codex/config.toml",
        "[mcp_servers.x]\ncommand = \"npx\"\nargs = [\"-y\"]\n\n[mcp_servers.y]\ncommand = \"b\"\nargs = []\n",
    ),
    ("gemini", ".gemini/settings.json", SERVER),
    ("qwen", ".qwen/settings.json", SERVER),
    (
        "opencode",
        "config/opencode/opencode.json",
        r#"{"mcp": {"x": {"type": "local", "command": ["npx", "-y"]}, "y": {"type": "local", "command": ["b"]}}}"#,
    ),
    ("copilot", ".copilot/mcp-config.json", SERVER),
    ("cursor", ".cursor/mcp.json", SERVER),
    ("cline", ".cline/data/settings/cline_mcp_settings.json", SERVER),
];

/// A home with our program under some name.
struct Machine {
    world: World,
    program: PathBuf,
}

impl Machine {
    fn with(name: &str) -> Machine {
        let world = World::empty();
        let program = world.path(name);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::copy(EXE, &program).unwrap();
        for (_, file, text) in SERVERS {
            let file = world.path(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Machine { world, program }
    }

    /// The same program is now elsewhere.
    fn moved(self, name: &str) -> Machine {
        let program = self.world.path(name);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::rename(&self.program, &program).unwrap();
        Machine { program, ..self }
    }

    /// Another version takes its place, under another name.
    fn upgraded(self, name: &str) -> Machine {
        let program = self.world.path(name);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::copy(&self.program, &program).unwrap();
        fs::remove_file(&self.program).unwrap();
        Machine { program, ..self }
    }

    fn forgotten(self) -> Machine {
        fs::remove_dir_all(self.world.path(".local/state/unstuck")).unwrap();
        self
    }

    fn run(&self, args: &[&str]) -> Said {
        let ours = self.world.installer(args);
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().current_dir(self.world.path("")).stdin(Stdio::null());
        command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Said::by(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    #[track_caller]
    fn does(&self, args: &[&str]) -> Said {
        let said = self.run(args);
        assert_eq!(said.exit, 0, "{args:?}\n{said}");
        said
    }

    fn install(self) -> Machine {
        self.does(&[&["install"], &AGENTS[..]].concat());
        self.does(&["install", "mcp", "--yes"]);
        for agent in ["claude", "opencode"] {
            self.does(&["install", "mcp-server", agent]);
        }
        self
    }

    /// How often the files speak of programs of ours.
    fn count(&self, words: &str) -> usize {
        let files = SERVERS.iter().map(|(_, file, _)| self.world.path(file));
        files.map(|file| fs::read_to_string(file).unwrap().matches(words).count()).sum()
    }

    /// Everything stands once, is alive, and calls this program.
    #[track_caller]
    fn is_sound(&self) {
        let path = self.program.to_str().unwrap();
        assert_eq!(self.count("\"--name\""), 16, "wrapped once each: {}", self.program.display());
        assert_eq!(self.count(&format!("\"{path}\"")), 18);
        let said = self.run(&["doctor", "--json"]);
        let visit: Value = serde_json::from_str(said.stdout()).unwrap();
        for agent in AGENTS {
            let of = |check: &str| {
                let all = visit["findings"].as_array().unwrap().iter();
                let mine = all.filter(|each| each["about"] == agent && each["check"] == check);
                mine.map(|each| each["severity"].as_str().unwrap_or_default()).collect::<Vec<_>>()
            };
            assert_eq!((of("self_test"), of("servers")), (vec!["ok"], vec!["ok"]), "{agent}: {visit}");
            // Codex runs none of them before its user agrees, which is told instead.
            let entries = if agent == "codex" { vec![] } else { vec!["ok"] };
            assert_eq!((of("entries"), of("called")), (entries, vec![]), "{agent}: {visit}");
        }
    }

    /// Nothing of ours is left anywhere, and what was there before is there again.
    #[track_caller]
    fn is_gone_after_uninstall(&self) {
        self.does(&["uninstall"]);
        self.does(&["uninstall", "mcp"]);
        self.does(&["uninstall", "mcp-server"]);
        for (agent, file, text) in SERVERS {
            let now = fs::read_to_string(self.world.path(file)).unwrap();
            let holds = |text: &str| match text.parse::<toml::Table>() {
                Ok(table) => serde_json::to_value(table).unwrap(),
                Err(_) => serde_json::from_str::<Value>(text).unwrap(),
            };
            assert_eq!(holds(&now), holds(text), "{agent}");
        }
        let mut left = Vec::new();
        find(&self.world.path(""), self.program.to_str().unwrap(), &mut left);
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Files of agents that hold some words.
fn find(folder: &Path, words: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.file_name() != ".local") {
        match entry.file_type().unwrap().is_dir() {
            true => find(&entry.path(), words, found),
            false if fs::metadata(entry.path()).is_ok_and(|found| found.len() < 1_000_000) => {
                let text = fs::read(entry.path()).unwrap();
                if String::from_utf8_lossy(&text).contains(words) {
                    found.push(entry.path());
                }
            }
            false => {}
        }
    }
}

#[test]
fn a_program_of_any_name_installs_once_and_takes_everything_out_again() {
    for name in ["opt/unstuck-0.1.0", "o p't/工具"] {
        let machine = Machine::with(name).install();
        machine.is_sound();
        let machine = machine.install();
        machine.is_sound();
        machine.is_gone_after_uninstall();
    }
}

#[test]
fn a_link_to_the_program_is_the_program() {
    let machine = Machine::with("opt/u");
    symlink(&machine.program, machine.world.path("opt/link")).unwrap();
    let through = Machine { program: machine.world.path("opt/link"), world: machine.world };
    let through = through.install();
    assert_eq!(through.count("\"--name\""), 16);
    through.install().is_gone_after_uninstall();
}

#[test]
fn a_program_that_was_renamed_or_moved_finds_what_it_wrote() {
    Machine::with("opt/u").install().moved("bin/other").is_gone_after_uninstall();
    let machine = Machine::with("opt/unstuck").install().moved("opt/u").install();
    machine.is_sound();
    machine.is_gone_after_uninstall();
}

#[test]
fn another_version_finds_what_the_one_before_it_wrote() {
    Machine::with("opt/unstuck-1").install().upgraded("opt/us").is_gone_after_uninstall();
    let machine = Machine::with("opt/u-1/u").install().upgraded("opt/u-2/u").install();
    machine.is_sound();
    machine.is_gone_after_uninstall();
}

#[test]
fn without_the_ledger_a_program_still_finds_itself_and_programs_of_our_name() {
    Machine::with("opt/u").install().forgotten().is_gone_after_uninstall();
    Machine::with("opt/unstuck-1").install().forgotten().upgraded("opt/unstuck-2").is_gone_after_uninstall();
    let machine = Machine::with("opt/unstuck-1").install().forgotten().install();
    machine.is_sound();
}

#[test]
fn what_another_program_wraps_in_our_form_is_neither_wrapped_again_nor_taken_out() {
    let machine = Machine::with("opt/u").install().forgotten().upgraded("opt/v");
    let before: Vec<String> =
        SERVERS.iter().map(|(_, file, _)| fs::read_to_string(machine.world.path(file)).unwrap()).collect();
    let said = machine.run(&["install", "mcp", "--yes"]);
    assert!(said.exit == 0 && said.stdout().matches("by hand").count() == 16, "{said}");
    assert_eq!(machine.count("\"--name\""), 16);
    machine.run(&["uninstall", "mcp"]);
    for ((agent, file, _), before) in SERVERS.iter().zip(before) {
        assert_eq!(fs::read_to_string(machine.world.path(file)).unwrap(), before, "{agent}");
    }
}
