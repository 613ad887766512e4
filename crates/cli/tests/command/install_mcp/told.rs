//! What is said: of each server, of wrong names, and before anything is done.

use serde_json::Value;

use super::{CLAUDE, CODEX, GEMINI, OPENCODE, fates};
use crate::world::{Said, World};

const SEVERAL: &str = r#"{"mcpServers": {
  "plain": {"command": "npx"},
  "login": {"type": "http", "url": "https://login.example/mcp"},
  "secret": {"type": "http", "url": "https://me:pw@h.example/mcp?key=1", "headers": {"A": "b"}},
  "events": {"type": "sse", "url": "https://h.example/sse", "headers": {"A": "b"}},
  "helped": {"type": "http", "url": "https://h.example/mcp", "headersHelper": "/bin/h"},
  "hand": {"command": "unstuck", "args": ["mcp", "--", "npx"]},
  "unstuck": {"command": "/usr/bin/unstuck", "args": ["mcp-server"]},
  "odd": {"type": "sdk"}
}}"#;

#[test]
fn what_cannot_be_wrapped_is_left_and_said_so() {
    let world = World::empty().with(CLAUDE, SEVERAL);
    let said = world.installs(&["install", "mcp", "claude", "--json"]);
    let expected = [
        "plain wrapped",
        "login left login",
        "secret left address",
        "events left sse",
        "helped left headers_helper",
        "hand by_hand",
        "unstuck left own",
        "odd left unknown",
    ];
    assert_eq!(fates(&said.json()), expected);
    let again = world.installs(&["install", "mcp", "claude", "plain", "login", "secret", "--json"]);
    assert_eq!(fates(&again.json()), ["plain already", "login wrapped login", "secret wrapped address"]);
    let refused = world.installs(&["install", "mcp", "claude", "events"]);
    let words = "events (user, sse): left as it is: it speaks the older transport by server-sent events";
    assert!(refused.exit == 1 && refused.stdout().contains(words), "{refused}");
    let said = world.installs(&["uninstall", "mcp", "claude"]);
    assert!(
        said.exit == 1 && said.stdout().contains("hand (user, stdio): wrapped by hand, so it was left alone"),
        "{said}"
    );
    assert_eq!(world.text(CLAUDE), SEVERAL, "{said}");
}

#[test]
fn every_server_is_listed_with_what_it_is_and_without_secrets() {
    let world = World::empty()
        .with(CLAUDE, SEVERAL)
        .with(".mcp.json", r#"{"mcpServers": {"shared": {"command": "a"}}}"#);
    world.installs(&["install", "mcp", "claude", "plain"]);
    let said = world.installs(&["install", "mcp", "claude", "--list", "--json"]);
    let line = |server: &Value| {
        let word = |key: &str| server[key].as_str().unwrap().to_owned();
        format!(
            "{} {} {} {} {}",
            word("server"),
            word("scope"),
            word("transport"),
            word("status"),
            word("target")
        )
    };
    let expected = [
        "plain user stdio wrapped npx",
        "login user http on_request https://login.example/mcp",
        "secret user http on_request https://h.example/mcp",
        "events user sse never https://h.example/sse",
        "helped user http never https://h.example/mcp",
        "hand user stdio by_hand npx",
        "unstuck user stdio never /usr/bin/unstuck",
        "odd user unknown never ",
        "shared project stdio open a",
    ];
    assert_eq!(said.json_lines().iter().map(line).collect::<Vec<_>>(), expected);
    let said = world.installs(&["install", "mcp", "--list"]);
    assert!(
        said.stdout().contains("  plain (user, stdio, npx): wrapped\n") && !said.stdout().contains("pw@"),
        "{said}"
    );
    let said = world.installs(&["install", "mcp", "--list", "--lang", "zh"]);
    assert!(said.stdout().contains("  plain（user，stdio，npx）：已包装\n"), "{said}");
    let said = World::empty().installs(&["install", "mcp", "--list"]);
    assert_eq!((said.exit, said.stderr()), (0, "no server is configured\n"));
}

#[test]
fn a_wrong_name_says_what_may_have_been_meant() {
    let world = World::empty()
        .with(CLAUDE, r#"{"mcpServers": {"github": {"command": "a"}}}"#)
        .with(".mcp.json", r#"{"mcpServers": {"shared": {"command": "a"}}}"#);
    let check = |args: &[&str], words: &[&str]| world.installs(args).complains(2, words);
    check(
        &["install", "mcp", "claude", "githb"],
        &["Claude Code has no server that is called githb", "did you mean github?"],
    );
    check(&["uninstall", "mcp", "claude", "githb"], &["did you mean github?"]);
    check(&["install", "mcp", "claude", "shared"], &["it stands in ", ".mcp.json; add --project"]);
    check(
        &["install", "mcp", "claude", "githb", "--lang", "zh"],
        &["Claude Code 没有名为 githb 的服务器", "您指的是 github 吗？"],
    );
    check(&["install", "mcp", "cluade"], &["did you mean claude? there are claude, codex,"]);
    check(&["uninstall", "mcp-server", "cursr"], &["did you mean cursor?"]);
    check(&["install", "cluade"], &["did you mean claude? there are claude, codex,"]);
    check(
        &["install", "mcp", "xyz"],
        &["': there are claude, codex, gemini, qwen, opencode, copilot, cursor, cline"],
    );
    check(&["install", "mcp"], &["nobody said for which agent", "unstuck install mcp claude"]);
    assert!(!world.text(CLAUDE).contains("unstuck"));
}

#[test]
fn a_dry_run_prints_a_diff_and_touches_nothing() {
    let before = "{\"mcpServers\": {\n  \"x\": {\"command\": \"a\"}\n}}\n";
    let world = World::empty().with(CLAUDE, before);
    let said = world.installs(&["install", "mcp", "claude", "--dry-run"]);
    assert!(
        said.stdout().starts_with("--- ") && said.stdout().contains("\n+  \"x\": {\"command\": \""),
        "{said}"
    );
    assert!(said.exit == 0 && said.stderr().contains("  x (user, stdio): would be wrapped\n"), "{said}");
    assert_eq!((world.text(CLAUDE).as_str(), world.path(".local").exists()), (before, false));
    world.installs(&["install", "mcp", "--yes"]);
    let said = world.installs(&["uninstall", "mcp", "--dry-run"]);
    assert!(said.stdout().contains("\n+  \"x\": {\"command\": \"a\"}\n"), "{said}");
    assert!(world.text(CLAUDE).contains("--name"));
}

#[test]
fn whoever_takes_out_the_hooks_is_told_of_the_servers() {
    let world = World::empty().with(CLAUDE, r#"{"mcpServers": {"x": {"command": "a"}}}"#);
    world.installs(&["install", "mcp", "claude"]);
    let said = world.installs(&["uninstall"]);
    assert_eq!((said.exit, said.stdout()), (0, ""), "{said}");
    assert_eq!(
        said.stderr(),
        "MCP servers still go through unstuck; `unstuck uninstall mcp` puts them back\n"
    );
    assert_eq!(
        world.installs(&["uninstall", "gemini"]).stderr(),
        "Gemini CLI: nothing of ours is installed\n"
    );
    world.installs(&["uninstall", "mcp"]);
    assert_eq!(world.installs(&["uninstall"]).stderr(), "");
}

#[test]
fn whoever_takes_out_the_hooks_is_told_of_our_own_server_by_its_own_command() {
    let world = World::empty().with(CLAUDE, r#"{"mcpServers": {"x": {"command": "a"}}}"#);
    let own = "unstuck's own MCP server is still configured; `unstuck uninstall mcp-server` takes it out\n";
    let wrapped = "MCP servers still go through unstuck; `unstuck uninstall mcp` puts them back\n";
    world.installs(&["install", "mcp-server", "claude"]);
    assert_eq!(world.installs(&["uninstall"]).stderr(), own);
    world.installs(&["install", "mcp", "claude"]);
    assert_eq!(world.installs(&["uninstall"]).stderr(), [wrapped, own].concat());
    world.installs(&["uninstall", "mcp-server"]);
    assert_eq!(world.installs(&["uninstall"]).stderr(), wrapped);
    world.installs(&["uninstall", "mcp"]);
    assert_eq!(world.installs(&["uninstall"]).stderr(), "");
}

#[test]
fn a_file_with_nothing_in_it_has_no_server() {
    let files = [
        ("claude", CLAUDE),
        ("gemini", GEMINI),
        ("codex", CODEX),
        ("cursor", ".cursor/mcp.json"),
        ("opencode", OPENCODE),
    ];
    for (agent, file) in files {
        for nothing in ["", " \n"] {
            let world = World::empty().with(file, nothing);
            let said = world.installs(&["install", "mcp", agent]);
            assert_eq!((said.exit, said.stdout()), (0, ""), "{file}\n{said}");
            assert!(said.stderr().contains(": no server is configured there; "), "{file}\n{said}");
            assert_eq!(world.text(file), nothing);
        }
    }
}

#[test]
fn the_variable_of_a_header_is_not_taken_for_a_setting() {
    for header in ["AUTHORIZATION", "X_API_KEY", "CHECK", "MODE"] {
        let world = World::empty();
        let mut command = world.command(&["config", "show"]);
        let said = Said::by(command.env(format!("UNSTUCK_HEADER_{header}"), "Bearer s").spawn().unwrap());
        assert_eq!((said.exit, said.stderr()), (0, ""), "{said}");
    }
}
