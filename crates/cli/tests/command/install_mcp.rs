//! `unstuck install mcp` and `uninstall mcp`: servers go through us, and come back as they were.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{Said, World};

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

/// What is said of each server of a file.
fn fates(told: &Value) -> Vec<String> {
    let fate = |server: &Value| {
        let why = server["why"].as_str().map(|why| format!(" {why}")).unwrap_or_default();
        format!("{} {}{why}", server["server"].as_str().unwrap(), server["status"].as_str().unwrap())
    };
    told["servers"].as_array().unwrap().iter().map(fate).collect()
}

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
    check(
        &["install", "mcp", "claud"],
        &["there are claude, codex, gemini, qwen, opencode, copilot, cursor, cline"],
    );
    check(&["install", "mcp"], &["nobody said for which agent", "unstuck install mcp claude"]);
    assert!(!world.text(CLAUDE).contains("unstuck"));
}

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

/// Waits until the file holds us, then puts this in its place; so many times.
fn write_back(world: &World, content: &str, times: u32) {
    let begun = Instant::now();
    let mut written = 0;
    while written < times && begun.elapsed() < Duration::from_secs(10) {
        if fs::read_to_string(world.path(CLAUDE)).is_ok_and(|text| text.contains("--name")) {
            fs::write(world.path(CLAUDE), content).unwrap();
            written += 1;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(written, times);
}

#[test]
fn an_agent_that_writes_its_old_copy_back_is_noticed() {
    let world = World::empty().with(CLAUDE, r#"{"mcpServers": {"x": {"command": "a"}}}"#);
    let child = world.installer(&["install", "mcp", "claude", "--json"]).spawn().unwrap();
    let newer = r#"{"mcpServers": {"x": {"command": "a"}}, "b": 2}"#;
    write_back(&world, newer, 1);
    let told = Said::by(child).json();
    assert!(told["notes"].as_array().unwrap().iter().any(|note| note["note"] == "wrote_again"), "{told}");
    assert!(world.text(CLAUDE).contains("--name"));
    world.installs(&["uninstall", "mcp"]);
    assert_eq!(world.text(CLAUDE), newer, "what the agent added is kept");
    let child = world.installer(&["install", "mcp", "claude"]).spawn().unwrap();
    write_back(&world, newer, 2);
    Said::by(child).complains(125, &["has written its own copy of", "close the agent"]);
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

#[test]
fn the_variable_of_a_header_is_not_taken_for_a_setting() {
    for header in ["AUTHORIZATION", "X_API_KEY", "CHECK", "MODE"] {
        let world = World::empty();
        let mut command = world.command(&["config", "show"]);
        let said = Said::by(command.env(format!("UNSTUCK_HEADER_{header}"), "Bearer s").spawn().unwrap());
        assert_eq!((said.exit, said.stderr()), (0, ""), "{said}");
    }
}
