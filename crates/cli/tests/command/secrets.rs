//! No secret is kept or told, whichever way it comes in: each way gets one of its own, and every file, print and answer is
//! searched for all of them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::kept::failure;
use crate::world::{Said, World};

/// A token of a shape that is known, and one that only its label gives away, made for one way in.
fn token(way: usize) -> String {
    format!("ghp_{}", value(way + 1000, 36))
}

/// Letters and digits that stand nowhere else.
fn value(way: usize, length: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut state = (way as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut letter = || {
        state =
            (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(0x94d0_49bb_1331_11eb);
        char::from(LETTERS[(state >> 33) as usize % LETTERS.len()])
    };
    let made: String = (0..length - 3).map(|_| letter()).collect();
    // A generator of passwords gives all three.
    format!("{made}Kq7")
}

/// All secrets that were planted, and where one of them was seen.
#[derive(Default)]
struct Search {
    planted: Vec<String>,
    seen: Vec<String>,
    bytes: usize,
}

impl Search {
    fn token(&mut self) -> String {
        self.planted.push(token(self.planted.len()));
        self.planted[self.planted.len() - 1].clone()
    }

    fn value(&mut self) -> String {
        self.planted.push(value(self.planted.len(), 20));
        self.planted[self.planted.len() - 1].clone()
    }

    fn look(&mut self, place: &str, bytes: &[u8]) {
        self.bytes += bytes.len();
        for secret in &self.planted {
            // A part of it is as bad as the whole.
            let parts = secret.as_bytes().windows(10).filter(|part| !part.starts_with(b"ghp_"));
            for part in parts.step_by(3) {
                if let Some(at) = bytes.windows(part.len()).position(|window| window == part) {
                    let near = &bytes[at.saturating_sub(60)..bytes.len().min(at + 30)];
                    self.seen.push(format!("{place}: {}", String::from_utf8_lossy(near).escape_debug()));
                    break;
                }
            }
        }
    }

    fn said(&mut self, place: &str, said: &Said) {
        self.look(place, &said.stdout);
        self.look(&format!("stderr of {place}"), &said.stderr);
    }

    fn folder(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => self.folder(&path),
                false => self.look(&path.display().to_string(), &fs::read(&path).unwrap()),
            }
        }
    }
}

fn speak(mut command: Command, stdin: &str) -> Said {
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).ok();
    Said::by(child)
}

#[test]
fn no_way_in_keeps_or_tells_a_secret() {
    let world = World::empty().with("work/a.txt", "a\n").with("work/src/b.txt", "b\n");
    let mut search = Search::default();

    // Hooks: commands, outputs, arguments of MCP tools in any language, and fields that name another.
    let (label, shape) = (search.value(), search.token());
    let said = world.run(
        &["hook", "generic"],
        failure(
            "s",
            "c1",
            &format!("psql -c \"ALTER USER a PASSWORD '{label}'\""),
            &format!("fatal: {shape} was refused"),
        ),
    );
    search.said("hook generic", &said);
    for number in 0..3 {
        let (one, two) = (search.value(), search.token());
        let output = format!(
            "Cloning into 'x'...\nfatal: Authentication failed for 'https://{two}@github.example/a/b'\npassword is {one}"
        );
        let said =
            world.run(&["hook", "generic"], failure("t", &format!("f{number}"), "git clone x", &output));
        search.said("hook generic, the same again", &said);
        let payload = json!({ "session_id": "u", "transcript_path": "/nowhere", "cwd": world.path("work"),
            "permission_mode": "default", "hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
            "tool_input": { "command": "git fetch" }, "tool_use_id": format!("g{number}"),
            "error": format!("Exit code 128\n{output}") });
        search.said("hook claude", &world.run(&["hook", "claude"], payload.to_string()));
    }
    for arguments in [
        json!({ "密码": search.value(), "otp": search.value() }),
        json!({ "field": "password", "text": search.value() }),
        json!({ "headers": [{ "name": "X-Api-Key", "value": search.value() }], "url": format!("https://{}@h.example", search.value()) }),
    ] {
        let payload = json!({ "event": "after", "session": "v", "call_id": search.planted.len().to_string(),
            "tool": "mcp__browser__fill", "input": arguments, "exit_code": 1, "stderr": format!("Error: bad {arguments}") });
        search.said("hook generic with arguments", &world.run(&["hook", "generic"], payload.to_string()));
    }

    // The spool.
    let (one, two) = (search.value(), search.token());
    let mut hook = world.command(&["hook", "generic"]);
    hook.env("UNSTUCK_STORE_FILESYSTEM", "network");
    let said = speak(hook, &failure("w", "c1", &format!("mysql -uroot -p{one}"), &format!("ERROR {two}")));
    assert!(said.stdout().contains("\"kept\":\"spooled\""), "{said}");
    search.said("hook generic into the spool", &said);
    search.folder(&world.path(".local/state/unstuck"));
    world.run(&["heartbeat"], "");

    // What never was a payload.
    let one = search.value();
    search.said(
        "a broken payload",
        &world.run(&["hook", "generic"], format!("{{\"password\":\"{one}\", nonsense")),
    );
    let one = search.token();
    search.said(
        "a word that is no command",
        &world.run(&["diagnose", "--jsonl"], format!("{{\"token\":\"{one}\",")),
    );

    // Commands that run something. What a program prints goes on as it is; what is said of it does not.
    let (one, two) = (search.value(), search.token());
    let script = format!("true --password={one}; echo 'fatal: bad token {two}' >&2; exit 3");
    let said = world.run(&["run", "--", "sh", "-c", &script], "");
    assert_eq!(said.exit, 3, "{said}");
    let told: Vec<&str> = said.stderr().lines().filter(|line| line.starts_with("unstuck")).collect();
    search.look("run", told.join("\n").as_bytes());
    let said = world
        .run(&["record", "--exit", "3", "--", "curl", "-u", &format!("ada:{one}"), "https://h.example"], "");
    search.said("record", &said);
    let (one, two) = (search.value(), search.value());
    let url = format!("http://127.0.0.1:1/?access_token={one}");
    let header = format!("Authorization: Bearer {two}");
    let said = world.run(&["http", "GET", &url, "-H", &header, "--retries", "0"], "");
    search.said("http", &said);
    let one = search.token();
    search.said("diagnose", &world.run(&["diagnose"], format!("error: token {one} expired\n")));

    // What was typed or set wrong is quoted without it.
    let mistakes: [&[&str]; 8] = [
        &["§"],
        &["log", "--§"],
        &["undo", "§"],
        &["allow", "§"],
        &["--set", "store.keep-events=§", "status"],
        &["--set", "§=1", "status"],
        &["http", "GET", "nonsense://§"],
        &["run", "--", "/nowhere/§"],
    ];
    for args in mistakes {
        let one = search.token();
        let args: Vec<String> = args.iter().map(|arg| arg.replace('§', &one)).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let said = world.run(&args, "");
        assert_ne!(said.exit, 0, "{said}");
        search.said(&format!("a mistake: {}", args[0]), &said);
    }
    let one = search.token();
    let mut status = world.command(&["status"]);
    status.env("UNSTUCK_STORE_KEEP_EVENTS", &one);
    search.said("a mistake in a variable", &speak(status, ""));
    let one = search.token();
    fs::create_dir_all(world.path(".config/unstuck")).unwrap();
    let settings = world.path(".config/unstuck/config.toml");
    fs::write(&settings, format!("[store]\nkeep-events = \"{one}\"\n")).unwrap();
    search.said("doctor on a mistake", &world.run(&["doctor"], ""));
    fs::remove_file(settings).unwrap();

    // The change of a file that holds keys of servers.
    let (one, two) = (search.value(), search.token());
    let servers = json!({ "mcpServers": { "x": { "command": "srv", "args": ["--token", one], "env": { "API_KEY": two } } } });
    fs::write(world.path(".claude.json"), servers.to_string()).unwrap();
    let said = world.run(&["install", "mcp", "claude", "--dry-run"], "");
    assert!(said.stdout().contains("+++"), "{said}");
    search.said("install mcp --dry-run", &said);
    fs::remove_file(world.path(".claude.json")).unwrap();

    // Notes and labels of snapshots.
    let (one, two) = (search.token(), search.value());
    for note in [format!("token {one}"), format!("before password={two}")] {
        let mut command = world.command(&["snapshot", "a.txt", "--note", &note]);
        let said = Said::by(command.current_dir(world.path("work")).spawn().unwrap());
        assert_eq!(said.exit, 0, "{said}");
        search.said("snapshot", &said);
    }
    let one = search.value();
    let payload = json!({ "event": "before", "session": "x", "call_id": "r1", "tool": "Bash", "cwd": world.path("work"),
        "input": { "command": format!("API_TOKEN={one} rm -rf src") } });
    search.said("a risky call", &world.run(&["hook", "generic"], payload.to_string()));

    // Lessons: a fix that holds a secret.
    let (one, two) = (search.value(), search.token());
    let header = "a.c:1:10: fatal error: openssl/ssl.h: No such file or directory";
    for (id, command, exit, stderr) in [
        ("l1", "make".to_owned(), 2, header),
        ("l2", format!("DB_PASSWORD={one} apt-get install -y libssl-dev --token {two}"), 0, ""),
        ("l3", "make".to_owned(), 0, ""),
    ] {
        let mut payload = json!({ "event": "before", "session": "y", "call_id": id, "tool": "Bash",
            "input": { "command": command } });
        let before = payload.to_string();
        payload["event"] = json!("after");
        payload["exit_code"] = json!(exit);
        payload["stderr"] = json!(stderr);
        search.said("a lesson", &world.run(&["hook", "generic"], format!("{before}\n{payload}\n")));
    }

    // The tools of the server for agents.
    let (one, two) = (search.value(), search.token());
    let frame = |id: u32, method: &str, params: serde_json::Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let frames = [
        frame(
            1,
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }),
        ),
        frame(
            2,
            "tools/call",
            json!({ "name": "diagnose", "arguments": { "command": format!("mysql -p{one}"), "exit_code": 1, "stderr": format!("fatal: bad token {two}") } }),
        ),
        frame(
            3,
            "tools/call",
            json!({ "name": "snapshot", "arguments": { "paths": ["a.txt"], "note": format!("password={one}") } }),
        ),
        frame(4, "tools/call", json!({ "name": "log", "arguments": {} })),
        frame(5, "tools/call", json!({ "name": "lessons", "arguments": {} })),
    ];
    let mut server = world.command(&["mcp-server"]);
    server.current_dir(world.path("work"));
    search.said("mcp-server", &speak(server, &format!("{}\n", frames.join("\n"))));

    // All that is read again.
    let prints: [&[&str]; 11] = [
        &["log"],
        &["log", "--json"],
        &["problems"],
        &["problems", "--json"],
        &["export", "--jsonl"],
        &["stats"],
        &["lessons"],
        &["lessons", "--json"],
        &["snapshots", "--json"],
        &["doctor"],
        &["status"],
    ];
    for args in prints {
        let said = world.run(args, "");
        assert!(!said.stdout.is_empty(), "{args:?} prints nothing: {said}");
        search.said(&args.join(" "), &said);
    }
    // A page of its own for each snapshot and problem.
    search.folder(&world.path(".local/state/unstuck"));

    // A database that is set aside holds none either, and says none on its way.
    let state = world.path(".local/state/unstuck");
    let database = state.join("timeline.db");
    for ending in ["-wal", "-shm"] {
        fs::remove_file(state.join(format!("timeline.db{ending}"))).ok();
    }
    let mut bytes = fs::read(&database).unwrap();
    bytes[..100].fill(0x55);
    fs::write(&database, bytes).unwrap();
    let one = search.value();
    let said = world.run(&["hook", "generic"], failure("z", "c1", "true", &format!("password={one}")));
    search.said("a hook on a broken database", &said);
    search.said("doctor on a broken database", &world.run(&["doctor"], ""));
    search.folder(&state);

    assert!(
        search.planted.len() >= 30 && search.bytes > 100_000,
        "{} in {}",
        search.planted.len(),
        search.bytes
    );
    assert!(search.seen.is_empty(), "{}", search.seen.join("\n"));
}
