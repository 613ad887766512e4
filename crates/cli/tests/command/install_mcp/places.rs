//! Where servers stand: in several files, behind links, in files that hold our hooks as well.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use serde_json::json;

use super::{CLAUDE, GEMINI, fates};
use crate::world::{Said, World};

#[test]
fn claude_keeps_servers_in_three_places() {
    let world = World::empty().with("work/.git/HEAD", "x").with("work/a/b", "x");
    let root = world.path("work").canonicalize().unwrap();
    let servers = |name: &str| json!({name: {"type": "stdio", "command": "npx", "args": [], "env": {}}});
    let settings = json!({
        "mcpServers": servers("mine"),
        "projects": {
            root.to_str().unwrap(): {"mcpServers": servers("local")},
            "/elsewhere": {"mcpServers": servers("foreign")},
        },
    });
    let settings = serde_json::to_string_pretty(&settings).unwrap();
    let shared = serde_json::to_string_pretty(&json!({"mcpServers": servers("shared")})).unwrap();
    let world = world.with(CLAUDE, &settings).with("work/a/.mcp.json", &shared);
    let run = |args: &[&str]| {
        let mut command = world.installer(args);
        Said::by(command.current_dir(root.join("a")).spawn().unwrap())
    };
    let said = run(&["install", "mcp", "claude", "--json"]);
    assert_eq!(fates(&said.json()), ["mine wrapped", "local wrapped"]);
    assert_eq!(said.json()["servers"][1]["scope"], "local");
    let said = run(&["install", "mcp", "claude", "--project"]);
    assert!(said.stdout().contains("shared (project, stdio): wrapped"), "{said}");
    assert!(said.stdout().contains("keep it out of version control"), "{said}");
    assert!(!world.text(CLAUDE).contains("\"foreign\",\n"), "{}", world.text(CLAUDE));
    // They are known from anywhere.
    let said = world.installs(&["uninstall", "mcp", "claude", "local", "shared"]);
    assert!(said.exit == 0 && said.stdout().contains("local (local, stdio): put back"), "{said}");
    assert_eq!(world.text("work/a/.mcp.json"), shared, "{said}");
    assert_eq!(world.installs(&["uninstall", "mcp"]).exit, 0);
    assert_eq!(world.text(CLAUDE), settings);
}

#[test]
fn another_folder_of_the_agent_is_found_by_its_variable() {
    let check = |agent: &str, variable: &str, file: &str, content: &str| {
        let world = World::empty().with(file, content);
        let said = Said::by(
            world.installer(&["install", "mcp", agent]).env(variable, world.path("else")).spawn().unwrap(),
        );
        assert!(said.exit == 0 && world.text(file).contains("--name"), "{said}");
        let said = world.installs(&["uninstall", "mcp"]);
        assert_eq!((world.text(file).as_str(), said.exit), (content, 0), "{said}");
    };
    let json = r#"{"mcpServers": {"x": {"command": "a"}}}"#;
    thread::scope(|scope| {
        scope.spawn(|| check("claude", "CLAUDE_CONFIG_DIR", "else/.claude.json", json));
        scope
            .spawn(|| check("codex", "CODEX_HOME", "else/config.toml", "[mcp_servers.x]\ncommand = \"a\"\n"));
        scope.spawn(|| check("gemini", "GEMINI_CLI_HOME", "else/.gemini/settings.json", json));
        scope.spawn(|| check("copilot", "COPILOT_HOME", "else/mcp-config.json", json));
    });
}

#[test]
fn hooks_and_servers_in_one_file_do_not_get_in_each_others_way() {
    let before = "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"npx\"\n    }\n  }\n}\n";
    let orders: [[&[&str]; 4]; 4] = [
        [
            &["install", "gemini"],
            &["install", "mcp", "gemini"],
            &["uninstall", "gemini"],
            &["uninstall", "mcp", "gemini"],
        ],
        [
            &["install", "gemini"],
            &["install", "mcp", "gemini"],
            &["uninstall", "mcp", "gemini"],
            &["uninstall", "gemini"],
        ],
        [
            &["install", "mcp", "gemini"],
            &["install", "gemini"],
            &["uninstall", "gemini"],
            &["uninstall", "mcp", "gemini"],
        ],
        [
            &["install", "mcp", "gemini"],
            &["install", "gemini"],
            &["uninstall", "mcp", "gemini"],
            &["uninstall", "gemini"],
        ],
    ];
    thread::scope(|scope| {
        for order in orders {
            scope.spawn(move || {
                let world = World::empty().with(GEMINI, before);
                for args in order {
                    let said = world.installs(args);
                    assert_eq!(said.exit, 0, "{said}");
                }
                assert_eq!(world.text(GEMINI), before, "{order:?}");
            });
        }
    });
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let before = r#"{"mcpServers": {"x": {"command": "a"}}}"#;
    let world = World::empty().with("dotfiles/claude.json", before);
    symlink("dotfiles/claude.json", world.path(CLAUDE)).unwrap();
    assert_eq!(world.installs(&["install", "mcp", "claude"]).exit, 0);
    assert!(world.text("dotfiles/claude.json").contains("--name"));
    assert!(fs::symlink_metadata(world.path(CLAUDE)).unwrap().is_symlink());
    assert_eq!(world.installs(&["uninstall", "mcp", "claude"]).exit, 0);
    assert_eq!(world.text("dotfiles/claude.json"), before);
}
