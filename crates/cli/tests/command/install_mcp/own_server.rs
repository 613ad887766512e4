//! `unstuck install mcp-server`: our own server is one among the others.

use std::thread;

use super::{CLAUDE, CODEX, GEMINI, OPENCODE, fates};
use crate::world::World;

#[test]
fn our_own_server_is_added_once_and_taken_out_again() {
    let check = |agent: &str, file: &str, before: Option<&str>, words: &str| {
        let world = match before {
            Some(before) => World::empty().with(file, before),
            None => World::empty(),
        };
        let files = world.files("");
        let said = world.installs(&["install", "mcp-server", agent]);
        assert!(said.exit == 0 && world.shown(file).contains(words), "{said}\n{}", world.shown(file));
        let said = world.installs(&["install", "mcp-server", agent, "--json"]);
        assert_eq!(fates(&said.json()), ["unstuck already"]);
        let said = world.installs(&["install", "mcp", agent]);
        assert!(!world.shown(file).contains("--name"), "{said}");
        let said = world.installs(&["uninstall", "mcp-server", agent]);
        assert_eq!(said.exit, 0, "{said}");
        match before {
            Some(before) => assert_eq!(world.text(file), before, "{said}"),
            None => assert_eq!(world.files(""), files, "{said}"),
        }
    };
    thread::scope(|scope| {
        let usual = "\"unstuck\": {";
        scope.spawn(|| check("claude", CLAUDE, Some("{\n  \"a\": 1\n}\n"), usual));
        scope.spawn(|| check("gemini", GEMINI, None, usual));
        scope.spawn(|| {
            check("opencode", OPENCODE, Some("{\"mcp\": {}, // none\n}\n"), "\"UNSTUCK\", \"mcp-server\"")
        });
        scope.spawn(|| {
            check(
                "codex",
                CODEX,
                Some("[mcp_servers.x]\nurl = \"https://h.example\"\n\n[tui]\n"),
                "[mcp_servers.unstuck]\ncommand = \"UNSTUCK\"\nargs = [\"mcp-server\"]\n",
            )
        });
        scope.spawn(|| check("codex", CODEX, None, "[mcp_servers.unstuck]\ncommand = \"UNSTUCK\"\n"));
        scope.spawn(|| check("cursor", ".cursor/mcp.json", None, usual));
    });
    let taken = World::empty().with(CLAUDE, r#"{"mcpServers": {"unstuck": {"command": "theirs"}}}"#);
    let said = taken.installs(&["install", "mcp-server", "claude"]);
    assert!(said.exit == 1 && said.stdout().contains("another server has this name"), "{said}");
}
