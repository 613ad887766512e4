//! Entries as people write them: what they are, and that wrapping is undone by unwrapping alone, without any copy.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::client::Client;
use super::super::place::Scope;
use super::*;
use crate::editing::{Sheet, Syntax};

const PROGRAM: &str = "/opt/bin/unstuck";

/// What is thought of an entry, in words.
#[track_caller]
fn check_state(client: &str, name: &str, entry: Value, expected: &str) {
    let form = &Client::named(client).unwrap().form;
    let server = Server::new(form, Scope::User, vec!["mcpServers".to_owned(), name.to_owned()], entry, None);
    let state = match &server.state {
        State::Open => "open".to_owned(),
        State::OnRequest(why) => format!("on request: {}", why.word()),
        State::Wrapped { by: Wrapper::Us, program } => format!("wrapped as {}", program.display()),
        State::Wrapped { by: Wrapper::Hand, .. } => "by hand".to_owned(),
        State::Never(why) => format!("never: {}", why.word()),
    };
    assert_eq!(format!("{} {state}", server.reach.word()), expected, "{client}: {}", server.entry);
}

#[test]
fn an_entry_is_known_for_what_it_is() {
    let url = "https://h.example/mcp";
    let header = json!({"A": "b"});
    check_state("claude", "x", json!({"command": "npx"}), "stdio open");
    check_state("claude", "x", json!({"command": "npx", "disabled": true}), "stdio open");
    check_state("claude", "x", json!({"type": "http", "url": url, "headers": header}), "http open");
    check_state(
        "claude",
        "x",
        json!({"type": "streamable-http", "url": url, "headers": header}),
        "http open",
    );
    check_state("claude", "x", json!({"type": "http", "url": url, "headers": {}}), "http on request: login");
    check_state(
        "claude",
        "x",
        json!({"type": "http", "url": url, "headers": header, "oauth": {}}),
        "http on request: login",
    );
    check_state("claude", "x", json!({"type": "sse", "url": url, "headers": header}), "sse never: sse");
    check_state("claude", "x", json!({"type": "ws", "url": url}), "unknown never: unknown");
    check_state("claude", "x", json!({"url": url}), "unknown never: unknown");
    check_state("claude", "x", json!("npx"), "unknown never: unknown");
    check_state("claude", "x", json!({"command": ["npx"]}), "unknown never: unknown");
    check_state("gemini", "x", json!({"httpUrl": url, "headers": header}), "http open");
    check_state("gemini", "x", json!({"url": url, "headers": header}), "http open");
    check_state("gemini", "x", json!({"url": "https://h.example/sse", "headers": header}), "sse never: sse");
    check_state(
        "gemini",
        "x",
        json!({"url": "https://h.example/sse", "type": "http", "headers": header}),
        "http open",
    );
    check_state("qwen", "x", json!({"url": url, "headers": header}), "sse never: sse");
    check_state("opencode", "x", json!({"type": "local", "command": ["npx"]}), "stdio open");
    check_state("opencode", "x", json!({"type": "remote", "url": url, "headers": header}), "http open");
    check_state(
        "opencode",
        "x",
        json!({"type": "remote", "url": url, "headers": header, "oauth": false}),
        "http open",
    );
    check_state("codex", "x", json!({"url": url, "bearer_token_env_var": "T"}), "http open");
    check_state("codex", "x", json!({"url": url, "env_http_headers": {"A": "B"}}), "http open");
    check_state("codex", "x", json!({"url": url}), "http on request: login");
    check_state("cline", "x", json!({"type": "streamableHttp", "url": url, "headers": header}), "http open");
    check_state(
        "cursor",
        "x",
        json!({"url": "https://u:p@h.example/mcp", "headers": header}),
        "http on request: address",
    );
    check_state(
        "cursor",
        "x",
        json!({"url": "https://h.example/mcp?key=s", "headers": header}),
        "http on request: address",
    );
}

#[test]
fn what_goes_through_us_is_known_with_any_path_and_told_from_what_only_looks_like_it() {
    let entry = |command: &str, args: &[&str]| json!({"command": command, "args": args});
    let ours = ["mcp", "--name", "x", "--", "npx"];
    check_state("claude", "x", entry(PROGRAM, &ours), "stdio wrapped as /opt/bin/unstuck");
    check_state("claude", "x", entry("/gone/unstuck", &ours), "stdio wrapped as /gone/unstuck");
    check_state(
        "claude",
        "x",
        entry(PROGRAM, &["mcp", "--name", "x", "--url", "u"]),
        "http wrapped as /opt/bin/unstuck",
    );
    let with_options = ["mcp", "--name", "x", "--no-check", "--", "npx", "--", "y"];
    check_state("claude", "x", entry(PROGRAM, &with_options), "stdio wrapped as /opt/bin/unstuck");
    check_state("claude", "y", entry(PROGRAM, &ours), "stdio by hand");
    check_state("claude", "x", entry("unstuck", &ours), "stdio by hand");
    check_state("claude", "x", entry(PROGRAM, &["mcp", "--", "npx"]), "stdio by hand");
    check_state("claude", "x", entry(PROGRAM, &["mcp-server"]), "stdio never: own");
    check_state("claude", "x", entry(PROGRAM, &["run", "--", "npx"]), "stdio open");
    check_state(
        "claude",
        "x",
        entry("/opt/bin/unstuck-0.1.0", &ours),
        "stdio wrapped as /opt/bin/unstuck-0.1.0",
    );
    // What has the very form may be ours under another name: it is not wrapped again, and it is not taken out either.
    check_state("claude", "x", entry("/opt/bin/theirs", &ours), "stdio by hand");
    check_state("claude", "x", entry("/opt/bin/theirs", &["mcp", "--name", "x"]), "stdio open");
    check_state("claude", "y", entry("/opt/bin/theirs", &ours), "stdio open");
    check_state("claude", "unstuck", entry("/opt/bin/theirs", &["mcp-server"]), "stdio never: own");
    check_state("claude", "x", entry("/opt/bin/theirs", &["mcp-server"]), "stdio open");
    let own = std::env::current_exe().unwrap();
    let wrapped = format!("stdio wrapped as {}", own.display());
    check_state("claude", "x", entry(own.to_str().unwrap(), &ours), &wrapped);
    check_state("claude", "x", entry(own.to_str().unwrap(), &["mcp-server"]), "stdio never: own");
}

#[test]
fn what_a_launcher_leads_to_us_is_not_wrapped_again() {
    let check = |words: &[&str], expected: &str| {
        check_state("claude", "x", json!({"command": words[0], "args": words[1..]}), expected);
    };
    check(&["npx", "-y", "unstuck", "mcp", "--", "npx", "x"], "stdio by hand");
    check(&["env", "A=b", "/opt/unstuck-1.2/unstuck", "--lang", "zh", "mcp", "--", "x"], "stdio by hand");
    check(&["sh", "-c", "exec 'unstuck' mcp -- npx x"], "stdio by hand");
    check(&["env", "unstuck", "mcp-server"], "stdio by hand");
    check(&["unstuck", "--set", "a=b", "mcp", "--", "x"], "stdio by hand");
    check(&["npx", "files", "/home/me/unstuck", "src", "mcp"], "stdio open");
    check(&["npx", "mcp", "unstuck"], "stdio open");
}

/// Wraps every server of a text and unwraps it again by nothing but its entries.
#[track_caller]
fn check_back(client: &str, text: &str) {
    let client = Client::named(client).unwrap();
    let read = |bytes: &[u8]| Sheet::read(Path::new("/settings"), client.syntax(), Some(bytes)).unwrap();
    let sheet = read(text.as_bytes());
    let holder = vec![client.holder.to_owned()];
    let entries = sheet.value_at(&holder).unwrap().unwrap();
    let mut wrapped = sheet.clone();
    for (name, entry) in entries.as_object().unwrap() {
        let place = [&holder[..], std::slice::from_ref(name)].concat();
        wrapped = wrapped.edit(&place, &client.form.wrap(PROGRAM, name, entry)).unwrap();
    }
    // The whole text must be one that the agent can read.
    let mut back = read(&wrapped.bytes());
    for (name, before) in entries.as_object().unwrap() {
        let place = [&holder[..], std::slice::from_ref(name)].concat();
        let entry = back.value_at(&place).unwrap().unwrap();
        let (_, state) = client.form.look(name, &entry, false);
        assert!(matches!(state, State::Wrapped { by: Wrapper::Us, .. }), "{entry}");
        back = back.edit(&place, &client.form.unwrap(&entry, Some(before))).unwrap();
    }
    let (back, there) =
        (String::from_utf8(back.bytes()).unwrap(), String::from_utf8(wrapped.bytes()).unwrap());
    assert_eq!(back, text, "{there}");
}

#[test]
fn unwrapping_undoes_wrapping_in_every_hand() {
    let entries = json!({
        "none": {"command": "npx"},
        "empty": {"command": "npx", "args": [], "env": {}},
        "last": {"args": ["-y", "x"], "env": {"K": "v"}, "command": "C:\\npx \"q\""},
        "--": {"command": "--", "args": ["--", "--name", "mcp"]},
        "工具": {"type": "stdio", "command": "cmd", "args": ["/c", "npx"], "timeout": 5},
    });
    let servers = json!({"a": 1, "mcpServers": entries, "z": []});
    let pretty = serde_json::to_string_pretty(&servers).unwrap();
    let compact = servers.to_string();
    let spaced = compact.replace("\":", "\": ").replace(",\"", ", \"");
    for text in [pretty.clone(), pretty.replace("  ", "\t"), pretty.replace('\n', "\r\n"), compact, spaced] {
        check_back("claude", &text);
        check_back("gemini", &text);
    }
    let together =
        json!({"mcp": {"x": {"type": "local", "command": ["npx", "-y"]}, "y": {"command": ["a"]}}});
    check_back("opencode", &serde_json::to_string_pretty(&together).unwrap());
    check_back("opencode", &together.to_string());
    check_back("opencode", "{\"mcp\": {\"x\": {\"command\": [\n \"a\", // one\n \"b\", // two\n],},},}");
    check_back("gemini", "{\"mcpServers\": {\"x\": {\"command\": \"a\" /* c */, \"args\": [ // none\n ]}}}");
    for text in [
        "[mcp_servers.x]\ncommand = \"a\"\n",
        "[mcp_servers.x]\nargs = [ 'b' ] # c\ncommand = \"a\" # d\n\n[other]\n",
        "[mcp_servers]\n# c\nx = { command = \"a\", args = [\"b\"] } # d\n\n[mcp_servers.y]\ncommand = \"a\"\nargs = [\n    # first\n    \"b\",\n]\n",
        "mcp_servers.x.command = \"a\"\nmcp_servers.x.args = []\n",
        "[mcp_servers.x]\r\ncommand = \"a\"\r\nargs = [\r\n\t\"b\"\r\n]\r\n",
        "\u{feff}[mcp_servers.x]\ncommand = \"a\"\nargs = [\"b\",\"c\"]",
    ] {
        check_back("codex", text);
    }
}

#[test]
fn no_two_headers_share_a_variable_and_nobody_elses_is_taken() {
    let form = &Client::named("claude").unwrap().form;
    let entry = json!({"type": "http", "url": "https://h.example", "headers": {"X-A": "1", "X_A": "2"},
        "env": {"UNSTUCK_HEADER_X_A": "theirs"}});
    let edits = form.wrap(PROGRAM, "x", &entry);
    let env =
        json!({"UNSTUCK_HEADER_X_A": "theirs", "UNSTUCK_HEADER_X_A_2": "1", "UNSTUCK_HEADER_X_A_3": "2"});
    assert!(edits.contains(&Edit::Put("env", env)), "{edits:?}");
    let in_arguments = edits
        .iter()
        .any(|edit| matches!(edit, Edit::Put("args", args) if args.to_string().contains("\"1\"")));
    assert!(!in_arguments, "{edits:?}");
}

/// Words as people and programs write them.
fn word() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z-]{1,8}", "--", "\\PC{0,12}"]
}

/// One server as TOML.
fn toml_text(name: &str, entry: &Value) -> String {
    let text = format!("[mcp_servers.{}]\n", Value::from(name));
    let mut sheet = Sheet::read(Path::new("/settings"), Syntax::Toml, Some(text.as_bytes())).unwrap();
    let place = ["mcp_servers".to_owned(), name.to_owned()];
    for key in ["url", "http_headers", "command", "args", "timeout"] {
        if let Some(value) = entry.get(key) {
            sheet = sheet.edit(&place, &[Edit::Put(key, value.clone())]).unwrap();
        }
    }
    String::from_utf8(sheet.bytes()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_entry_comes_back_as_it_was(
        client in prop::sample::select(vec!["claude", "codex", "gemini", "copilot"]),
        name in "[a-zA-Z0-9 ._-]{1,12}",
        program in "[a-zA-Z/._ -]{1,12}",
        args in prop::option::of(prop::collection::vec(word(), 0..4)),
        headers in prop::collection::btree_map("[A-Za-z][A-Za-z_-]{0,6}", word(), 1..4),
        is_remote in any::<bool>(),
    ) {
        let client = Client::named(client).unwrap();
        let form = &client.form;
        let entry = match is_remote {
            true => json!({form.addresses[0]: "https://h.example/mcp", form.headers: headers, "timeout": 5}),
            false => match &args {
                Some(args) => json!({"command": program, "args": args, "timeout": 5}),
                None => json!({"command": program, "timeout": 5}),
            },
        };
        let holder = json!({client.holder: {&name: entry}});
        let text = match client.holder {
            "mcp_servers" => toml_text(&name, &entry),
            _ => holder.to_string(),
        };
        let place = [client.holder.to_owned(), name.clone()];
        let sheet = Sheet::read(Path::new("/settings"), client.syntax(), Some(text.as_bytes())).unwrap();
        let wrapped = sheet.edit(&place, &form.wrap("/opt/unstuck", &name, &entry)).unwrap();
        let there = wrapped.value_at(&place).unwrap().unwrap();
        let words = form.words(&there);
        let ours = [vec!["/opt/unstuck".to_owned(), "mcp".to_owned()], named(&name)].concat();
        prop_assert!(words.starts_with(&ours), "{:?}", words);
        let back = wrapped.edit(&place, &form.unwrap(&there, Some(&entry))).unwrap();
        prop_assert_eq!(back.value_at(&place).unwrap().unwrap(), entry);
        if !is_remote {
            prop_assert_eq!(String::from_utf8(back.bytes()).unwrap(), text);
        }
    }
}
