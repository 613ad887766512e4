//! `unstuck install mcp` and `uninstall mcp`: servers go through us, and come back as they were.

mod incidents;
mod own_server;
mod places;
mod round_trips;
mod told;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::world::World;

const EXE: &str = env!("CARGO_BIN_EXE_unstuck");
const CLAUDE: &str = ".claude.json";
const CODEX: &str = ".codex/config.toml";
const GEMINI: &str = ".gemini/settings.json";
const OPENCODE: &str = "config/opencode/opencode.jsonc";

impl World {
    /// The same as [`World::text`], with a word for the path of our program.
    fn shown(&self, file: &str) -> String {
        self.text(file).replace(EXE, "UNSTUCK")
    }

    fn mode(&self, file: &str) -> u32 {
        fs::metadata(self.path(file)).unwrap().permissions().mode() & 0o7777
    }
}

/// Installs, looks, uninstalls: the file is the same to the byte, with the same rights.
#[track_caller]
fn check(agent: &str, named: &[&str], file: &str, before: &str, after: &str) {
    let world = World::empty().with(file, before);
    fs::set_permissions(world.path(file), fs::Permissions::from_mode(0o600)).unwrap();
    let said = world.installs(&[&["install", "mcp", agent], named].concat());
    assert_eq!((said.exit, said.stderr()), (0, ""), "{said}");
    assert_eq!(world.shown(file), after, "{said}");
    assert_eq!(world.mode(file), 0o600);
    let said = world.installs(&["uninstall", "mcp", agent]);
    assert_eq!((said.exit, said.stderr()), (0, ""), "{said}");
    assert_eq!((world.text(file).as_str(), world.mode(file)), (before, 0o600), "{said}");
    let ledger = world.parsed(".local/state/unstuck/installed-mcp.json");
    assert_eq!(ledger["written"], json!([]));
}

/// The same, while somebody else changes the file in between: the change is all that is left.
#[track_caller]
fn check_changed(agent: &str, named: &[&str], file: &str, before: &str, change: [(&str, &str); 2]) {
    let world = World::empty().with(file, before);
    let said = world.installs(&[&["install", "mcp", agent], named].concat());
    assert_eq!(said.exit, 0, "{said}");
    let apply =
        |text: &str| change.iter().fold(text.to_owned(), |text, (old, new)| text.replacen(old, new, 1));
    let (there, expected) = (world.text(file), apply(before));
    assert_ne!(there, apply(&there), "nothing was changed");
    fs::write(world.path(file), apply(&there)).unwrap();
    let said = world.installs(&["uninstall", "mcp", agent]);
    assert_eq!(said.exit, 0, "{said}");
    assert_eq!(world.text(file), expected, "{said}");
}

/// What is said of each server of a file.
fn fates(told: &Value) -> Vec<String> {
    let fate = |server: &Value| {
        let why = server["why"].as_str().map(|why| format!(" {why}")).unwrap_or_default();
        format!("{} {}{why}", server["server"].as_str().unwrap(), server["status"].as_str().unwrap())
    };
    told["servers"].as_array().unwrap().iter().map(fate).collect()
}
