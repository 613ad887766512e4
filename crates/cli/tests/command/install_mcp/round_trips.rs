//! A file comes back to the byte, whoever wrote it, and however.

use std::fs;
use std::thread;

use serde_json::{Value, json};

use super::{CLAUDE, CODEX, EXE, GEMINI, OPENCODE, check, check_changed};
use crate::world::World;

#[test]
fn a_server_of_every_agent_goes_through_us_and_comes_back() {
    let usual = |file: &'static str, agent: &'static str| {
        move || {
            check(
                agent,
                &[],
                file,
                "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"npx\",\n      \"args\": [\n        \"-y\",\n        \"x\"\n      ],\n      \
                 \"env\": {\"K\": \"v\"},\n      \"timeout\": 5\n    }\n  }\n}",
                "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"UNSTUCK\",\n      \"args\": [\n        \"mcp\",\n        \
                 \"--name\",\n        \"x\",\n        \"--\",\n        \"npx\",\n        \"-y\",\n        \"x\"\n      ],\n      \
                 \"env\": {\"K\": \"v\"},\n      \"timeout\": 5\n    }\n  }\n}",
            );
        }
    };
    thread::scope(|scope| {
        for (file, agent) in [
            (CLAUDE, "claude"),
            (GEMINI, "gemini"),
            (".qwen/settings.json", "qwen"),
            (".copilot/mcp-config.json", "copilot"),
            (".cursor/mcp.json", "cursor"),
            (".cline/data/settings/cline_mcp_settings.json", "cline"),
        ] {
            scope.spawn(usual(file, agent));
        }
        scope.spawn(|| {
            check(
                "opencode",
                &[],
                OPENCODE,
                "{\n  // mine\n  \"mcp\": {\n    \"x\": {\"type\": \"local\", \"command\": [\"npx\", \"-y\"], \"enabled\": false,}, // off\n  },\n}\n",
                "{\n  // mine\n  \"mcp\": {\n    \"x\": {\"type\": \"local\", \"command\": [\"UNSTUCK\", \"mcp\", \"--name\", \"x\", \"--\", \
                 \"npx\", \"-y\"], \"enabled\": false,}, // off\n  },\n}\n",
            );
        });
        scope.spawn(|| {
            check(
                "codex",
                &[],
                CODEX,
                "model = \"o\" # mine\n\n[mcp_servers.x] # first\ncommand = \"npx\" # by node\nargs = [\n  \"-y\", # yes\n  'x',\n]\n\n\
                 [mcp_servers.x.env]\nK = \"v\"\n\n[mcp_servers.\"y z\"]\ncommand = 'cmd'\nenabled = false\n\n[tui]\n",
                "model = \"o\" # mine\n\n[mcp_servers.x] # first\ncommand = \"UNSTUCK\" # by node\nargs = [\n  \"mcp\",\n  \"--name\",\n  \
                 \"x\",\n  \"--\",\n  \"npx\",\n  \"-y\", # yes\n  'x',\n]\n\n[mcp_servers.x.env]\nK = \"v\"\n\n[mcp_servers.\"y z\"]\n\
                 command = \"UNSTUCK\"\nenabled = false\nargs = [\"mcp\", \"--name\", \"y z\", \"--\", \"cmd\"]\n\n[tui]\n",
            );
        });
    });
}

#[test]
fn the_ways_people_write_come_back_to_the_byte() {
    let rows: &[(&str, &str, &str, &str)] = &[
        (
            "claude",
            CLAUDE,
            "{\"mcpServers\":{\"x\":{\"args\":[],\"command\":\"a\"}}}",
            "{\"mcpServers\":{\"x\":{\"args\":[\"mcp\",\"--name\",\"x\",\"--\",\"a\"],\"command\":\"UNSTUCK\"}}}",
        ),
        (
            "claude",
            CLAUDE,
            "{\"mcpServers\": {\"x\": {\"command\": \"a\"}}}",
            "{\"mcpServers\": {\"x\": {\"command\": \"UNSTUCK\", \"args\": [\"mcp\", \"--name\", \"x\", \"--\", \"a\"]}}}",
        ),
        (
            "claude",
            CLAUDE,
            "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"工具\": {\"command\": \"cmd\", \"args\": [ \"/c\", \"npx\" ]}\r\n\t}\r\n}\r\n",
            "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"工具\": {\"command\": \"UNSTUCK\", \"args\": [ \"mcp\", \"--name\", \"工具\", \"--\", \
             \"cmd\", \"/c\", \"npx\" ]}\r\n\t}\r\n}\r\n",
        ),
        (
            "gemini",
            GEMINI,
            "{\"mcpServers\": {\"x\": {\"command\": \"a\", \"args\": [/* one */ \"b\" /* two */]}}} // end",
            "{\"mcpServers\": {\"x\": {\"command\": \"UNSTUCK\", \"args\": [/* one */ \"mcp\", \"--name\", \"x\", \"--\", \"a\", \"b\" /* two \
             */]}}} // end",
        ),
        (
            "codex",
            CODEX,
            "mcp_servers = { x = { command = \"a\" } }\r\n",
            "mcp_servers = { x = { command = \"UNSTUCK\" , args = [\"mcp\", \"--name\", \"x\", \"--\", \"a\"] } }\r\n",
        ),
        (
            "codex",
            CODEX,
            "# mine\n[mcp_servers.x]\ncommand = 'C:\\npx' # node\nargs = [ ] # none",
            "# mine\n[mcp_servers.x]\ncommand = \"UNSTUCK\" # node\nargs = [\"mcp\", \"--name\", \"x\", \"--\", 'C:\\npx' ] # none",
        ),
        (
            "codex",
            CODEX,
            "mcp_servers.x.command = \"a\"\nmcp_servers.x.args = [ ]\n",
            "mcp_servers.x.command = \"UNSTUCK\"\nmcp_servers.x.args = [\"mcp\", \"--name\", \"x\", \"--\", \"a\" ]\n",
        ),
    ];
    thread::scope(|scope| {
        for (agent, file, before, after) in rows {
            scope.spawn(move || check(agent, &[], file, before, after));
        }
    });
}

#[test]
fn what_others_change_meanwhile_stays() {
    let json = "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"npx\",\n      \"args\": [\n        \"-y\"\n      ]\n    }\n  }\n}\n";
    let toml = "[mcp_servers.x]\ncommand = \"npx\" # node\nargs = [\"-y\", \"x\"]\n";
    thread::scope(|scope| {
        scope.spawn(|| check_changed("claude", &[], CLAUDE, json, [("\"a\": 1", "\"a\": 2"), ("", "")]));
        scope.spawn(|| {
            let edits =
                [("\"-y\"", "\"-y\",\n        \"more\""), ("      ]\n", "      ],\n      \"timeout\": 9\n")];
            check_changed("claude", &[], CLAUDE, json, edits);
        });
        scope.spawn(|| {
            check_changed("gemini", &[], GEMINI, json, [("\"a\": 1", "\"a\": 1 /* one */"), ("", "")])
        });
        scope.spawn(|| {
            let edits = [("\"-y\"", "\"-y\", \"-q\""), ("# node", "# mine")];
            check_changed("codex", &[], CODEX, toml, edits);
        });
        scope.spawn(|| {
            let before = "{\"mcp\": {\"x\": {\"type\": \"local\", \"command\": [\"a\"]}}}";
            let edits = [("\"type\"", "\"enabled\": true, \"type\""), ("", "")];
            check_changed("opencode", &[], OPENCODE, before, edits);
        });
    });
}

#[test]
fn a_server_with_an_address_keeps_its_headers_out_of_the_arguments() {
    thread::scope(|scope| {
        scope.spawn(|| {
            check(
                "claude",
                &[],
                CLAUDE,
                "{\"mcpServers\": {\"r\": {\"type\": \"http\", \"url\": \"https://h.example/mcp\", \"headers\": {\"Authorization\": \"Bearer s\", \
                 \"X-Key\": \"k\"}, \"timeout\": 5}}}",
                "{\"mcpServers\": {\"r\": {\"type\": \"stdio\", \"timeout\": 5, \"command\": \"UNSTUCK\", \"args\": [\"mcp\", \"--name\", \"r\", \
                 \"--url\", \"https://h.example/mcp\", \"--header-env\", \"Authorization=UNSTUCK_HEADER_AUTHORIZATION\", \
                 \"--header-env\", \"X-Key=UNSTUCK_HEADER_X_KEY\"], \"env\": {\"UNSTUCK_HEADER_AUTHORIZATION\": \"Bearer s\", \
                 \"UNSTUCK_HEADER_X_KEY\": \"k\"}}}}",
            );
        });
        scope.spawn(|| {
            check(
                "qwen",
                &[],
                ".qwen/settings.json",
                "{\"mcpServers\": {\"r\": {\"httpUrl\": \"https://h.example/mcp\", \"headers\": {\"A\": \"s\"}}}}",
                "{\"mcpServers\": {\"r\": {\"command\": \"UNSTUCK\", \"args\": [\"mcp\", \"--name\", \"r\", \"--url\", \"https://h.example/mcp\", \
                 \"--header-env\", \"A=UNSTUCK_HEADER_A\"], \"env\": {\"UNSTUCK_HEADER_A\": \"s\"}}}}",
            );
        });
        scope.spawn(|| {
            check(
                "opencode",
                &[],
                OPENCODE,
                "{\"mcp\": {\"r\": {\"type\": \"remote\", \"url\": \"https://h.example/mcp\", \"headers\": {\"A\": \"s\"}}}}",
                "{\"mcp\": {\"r\": {\"type\": \"local\", \"command\": [\"UNSTUCK\", \"mcp\", \"--name\", \"r\", \"--url\", \
                 \"https://h.example/mcp\", \"--header-env\", \"A=UNSTUCK_HEADER_A\"], \"environment\": {\"UNSTUCK_HEADER_A\": \"s\"}}}}",
            );
        });
        scope.spawn(|| {
            check(
                "codex",
                &[],
                CODEX,
                "[mcp_servers.r] # far\nurl = \"https://h.example/mcp\"\nbearer_token_env_var = \"TOKEN\"\nenv_http_headers = { X = \"VAR\" }\n\
                 tool_timeout_sec = 9\n\n[mcp_servers.r.http_headers]\nA = \"s\"\n",
                "[mcp_servers.r] # far\ntool_timeout_sec = 9\ncommand = \"UNSTUCK\"\nargs = [\"mcp\", \"--name\", \"r\", \"--url\", \
                 \"https://h.example/mcp\", \"--header-env\", \"A=UNSTUCK_HEADER_A\", \"--header-env\", \"X=VAR\", \"--bearer-env\", \
                 \"TOKEN\"]\nenv = { UNSTUCK_HEADER_A = \"s\" }\nenv_vars = [\"VAR\", \"TOKEN\"]\n",
            );
        });
    });
}

#[test]
fn an_address_comes_back_with_what_others_changed() {
    let check = |agent: &str, file: &str, before: &str, change: (&str, &str), expected: &Value| {
        let world = World::empty().with(file, before);
        world.installs(&["install", "mcp", agent]);
        let there = world.text(file);
        assert!(there.contains("UNSTUCK_HEADER_A"), "{there}");
        fs::write(world.path(file), there.replacen(change.0, change.1, 1)).unwrap();
        let said = world.installs(&["uninstall", "mcp", agent]);
        assert_eq!(said.exit, 0, "{said}");
        let left: Value = match agent {
            "codex" => toml_value(&world.text(file)),
            _ => world.parsed(file),
        };
        assert_eq!(left, *expected, "{said}");
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let before = r#"{"mcpServers": {"r": {"type": "streamable-http", "url": "https://h.example/mcp", "headers": {"A": "old"}}}}"#;
            let entry = json!({"type": "streamable-http", "url": "https://h.example/mcp", "headers": {"A": "new"}});
            check("claude", CLAUDE, before, ("\"old\"", "\"new\""), &json!({"mcpServers": {"r": entry}}));
        });
        scope.spawn(|| {
            let before = "[mcp_servers.r]\nurl = \"https://h.example/mcp\"\nenv_http_headers = { B = \"VAR\" }\n\n[mcp_servers.r.http_headers]\nA = \"old\"\n";
            let entry = json!({"url": "https://h.example/v2", "env_http_headers": {"B": "VAR"}, "http_headers": {"A": "old"}});
            check("codex", CODEX, before, ("/mcp\"", "/v2\""), &json!({"mcp_servers": {"r": entry}}));
        });
    });
}

/// A TOML text as a plain value.
fn toml_value(text: &str) -> Value {
    let table: toml_edit::DocumentMut = text.parse().unwrap();
    plain(table.as_item())
}

fn plain(item: &toml_edit::Item) -> Value {
    match item.as_table_like() {
        Some(table) => Value::Object(table.iter().map(|(key, item)| (key.to_owned(), plain(item))).collect()),
        None => item.as_str().map(Value::from).unwrap(),
    }
}

#[test]
fn only_the_named_server_comes_back_and_the_last_one_brings_the_file() {
    let before = "{\"mcpServers\": {\n  \"a\": {\"command\": \"npx\"},\n  \"b\": {\"command\": \"npx\", \"args\": []}\n}}\n";
    let world = World::empty().with(CLAUDE, before);
    world.installs(&["install", "mcp", "claude", "b"]);
    world.installs(&["install", "mcp", "claude", "a"]);
    let said = world.installs(&["uninstall", "mcp", "claude", "a"]);
    assert!(
        said.stdout().contains("  a (user, stdio): put back\n") && !said.stdout().contains("  b "),
        "{said}"
    );
    assert_eq!(world.parsed(CLAUDE)["mcpServers"]["a"], json!({"command": "npx"}));
    assert_eq!(world.parsed(CLAUDE)["mcpServers"]["b"]["command"], EXE);
    world.installs(&["uninstall", "mcp"]);
    assert_eq!(world.text(CLAUDE), before);
    let said = world.installs(&["uninstall", "mcp", "claude"]);
    assert_eq!((said.exit, said.stderr()), (0, "Claude Code: nothing of ours is installed\n"), "{said}");
}
