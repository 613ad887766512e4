//! What goes wrong: broken and huge files, agents that write their own copy back, a program that has moved.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CLAUDE, CODEX, EXE, OPENCODE};
use crate::install_incidents::write_back;
use crate::world::{Said, World};

#[test]
fn a_broken_file_is_left_alone() {
    let check = |agent: &str, file: &str, content: &str, words: &[&str]| {
        let world = World::empty().with(file, content);
        let before = world.files("");
        world.installs(&["install", "mcp", agent]).complains(125, words);
        world.installs(&["install", "mcp", agent, "x"]).complains(125, words);
        let listed = world.installs(&["install", "mcp", agent, "--list"]);
        listed.complains(125, &words[..1]);
        assert_eq!((world.text(file).as_str(), world.files("")), (content, before));
    };
    check("claude", CLAUDE, "{\"mcpServers\": {", &[".claude.json:1:", "nothing was changed"]);
    check("claude", CLAUDE, "{\"mcpServers\": {}, \"mcpServers\": {}}", &["mcpServers stands here twice"]);
    check("codex", CODEX, "[mcp_servers.x]\ncommand = \n", &["config.toml:2:", "nothing was changed"]);
    check("codex", CODEX, "a = 1\r\nb = 2\n", &["its lines do not all end alike"]);
    check("claude", CLAUDE, "{\"mcpServers\": []}", &["mcpServers is not an object"]);
    check("codex", CODEX, "mcp_servers = 5\n", &["mcp_servers is not an object"]);
    check("opencode", OPENCODE, "{\"mcp\": {\"x\": }", &["opencode.jsonc:1:"]);
}

#[test]
fn a_path_that_is_not_ours_any_more_is_mended() {
    let check = |agent: &str, file: &str, before: &str| {
        let world = World::empty().with(file, before);
        world.installs(&["install", "mcp", agent]);
        let there = world.text(file);
        fs::write(world.path(file), there.replace(EXE, "/gone/unstuck")).unwrap();
        let said = world.installs(&["install", "mcp", agent]);
        assert!(said.stdout().contains("the path of unstuck was mended"), "{said}");
        assert_eq!(world.text(file), there);
        world.installs(&["uninstall", "mcp", agent]);
        assert_eq!(world.text(file), before);
    };
    thread::scope(|scope| {
        scope.spawn(|| check("claude", CLAUDE, r#"{"mcpServers": {"x": {"command": "a"}}}"#));
        scope.spawn(|| check("opencode", OPENCODE, r#"{"mcp": {"x": {"type": "local", "command": ["a"]}}}"#));
        scope.spawn(|| check("codex", CODEX, "[mcp_servers.x]\ncommand = \"a\"\nargs = [\"b\"]\n"));
    });
}

#[test]
fn an_agent_that_writes_its_old_copy_back_is_noticed() {
    let world = World::empty().with(CLAUDE, r#"{"mcpServers": {"x": {"command": "a"}}}"#);
    let child = world.installer(&["install", "mcp", "claude", "--json"]).spawn().unwrap();
    let newer = r#"{"mcpServers": {"x": {"command": "a"}}, "b": 2}"#;
    assert_eq!(write_back(&world, CLAUDE, "--name", newer, 1), 1);
    let told = Said::by(child).json();
    assert!(told["notes"].as_array().unwrap().iter().any(|note| note["note"] == "wrote_again"), "{told}");
    assert!(world.text(CLAUDE).contains("--name"));
    world.installs(&["uninstall", "mcp"]);
    assert_eq!(world.text(CLAUDE), newer, "what the agent added is kept");
    let child = world.installer(&["install", "mcp", "claude"]).spawn().unwrap();
    assert_eq!(write_back(&world, CLAUDE, "--name", newer, 2), 2);
    Said::by(child).complains(125, &["has written its own copy of", "close the agent"]);
}

#[test]
fn a_huge_file_with_many_folders_is_done_in_no_time() {
    let servers = |name: &str| json!({name: {"command": "npx", "args": ["-y"]}});
    let project = |number: u32| {
        (format!("/p/{number}"), json!({"history": ["x".repeat(4000)], "mcpServers": servers("far")}))
    };
    let projects: serde_json::Map<String, Value> = (0..400).map(project).collect();
    let before =
        serde_json::to_string_pretty(&json!({"mcpServers": servers("x"), "projects": projects})).unwrap();
    let world = World::empty().with(CLAUDE, &before);
    let begun = Instant::now();
    world.installs(&["install", "mcp", "claude"]);
    world.installs(&["uninstall", "mcp", "claude"]);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(world.text(CLAUDE), before);
}
