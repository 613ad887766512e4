//! Failures that pass by themselves, and waits that fit them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::claude::{Claude, Ends, machine};
use crate::client::{Client, seen_calls};
use crate::misbehaving::{Deed, Server, answers};
use crate::world::{Said, World};

/// The table of waits, a hundred times as fast.
const SWIFT: &str = r#"
[retry]
spread = "10ms"
[retry.kinds]
network.first_wait = "10ms"
timeout.first_wait = "10ms"
rate_limited.first_wait = "10ms"
server_error.first_wait = "10ms"
resource_busy.first_wait = "10ms"
aborted.first_wait = "10ms"
"#;

/// Fails with the words of its second argument until it has been called as often as its first one says.
const FLAKY: &str = r#"
n=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $n > count
echo "$* ${UNSTUCK_SESSION_ID:-none} ${UNSTUCK_ATTEMPT:-none}" >> calls
[ $n -ge $1 ] || { echo "$2" >&2; exit 1; }
echo done
"#;

const UNAVAILABLE: &str = "503 Service Unavailable";

fn swift() -> World {
    World::empty().with("config/unstuck/config.toml", SWIFT).with("flaky.sh", FLAKY)
}

/// Runs the script that fails until it was called so often, and returns what was said and how often it was called.
#[track_caller]
fn flaky(world: &World, flags: &[&str], until: &str, words: &str) -> (Said, Value, usize) {
    let tail = ["--json", "--", "sh", "flaky.sh", until, words];
    let said = world.run(&[&["run", "--idempotent"], flags, &tail].concat(), "");
    let story = story(&said);
    let calls = fs::read_to_string(world.path("calls")).unwrap_or_default().lines().count();
    (said, story, calls)
}

/// The JSON that comes last on standard error.
#[track_caller]
fn story(said: &Said) -> Value {
    let last = said.stderr().lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}:\n{said}"))
}

/// What is found in a failure of a command.
fn diagnosed(command: &str, exit: i32, stderr: &str) -> Value {
    let failure = json!({ "tool": "Bash", "command": command, "exit_code": exit, "stderr": stderr });
    World::empty().answer(&failure)
}

/// What a hook says to an agent that would send its failed call again, each time a call fails: attempt by attempt, later and later.
fn asked(world: &World, agent: &str, stderr: &str, times: u64) -> Vec<Value> {
    let ask = |number: u64| {
        let at = 1_769_009_416_000 + number * 20_000;
        let call = json!({ "session": format!("{agent}-s"), "call_id": format!("c{number}"), "agent": agent, "tool": "Bash",
            "input": { "command": "curl https://x.example/items" } });
        let mut before = call.clone();
        before["event"] = json!("before");
        before["at"] = json!(at - 100);
        let mut after = call;
        for (name, value) in [
            ("event", json!("after")),
            ("exit_code", json!(22)),
            ("stderr", json!(stderr)),
            ("can_retry", json!(true)),
            ("at", json!(at)),
        ] {
            after[name] = value;
        }
        world.run(&["hook", "generic"], format!("{before}\n{after}\n")).json_lines()[1]["retry"].clone()
    };
    (1..=times).map(ask).collect()
}

/// How often an agent is told to send its call again.
fn retries(world: &World, agent: &str) -> usize {
    let told = asked(world, agent, UNAVAILABLE, 7);
    told.iter().take_while(|retry| retry["again"] == true).count()
}

/// A program on the path that runs this script.
fn with_program(world: World, name: &str, script: &str) -> World {
    let world = world.with(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(world.path(&format!("bin/{name}")), fs::Permissions::from_mode(0o755)).unwrap();
    world
}

/// Runs it with that path.
fn run_with_programs(world: &World, args: &[&str]) -> Said {
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
    Said::by(world.command(args).env("PATH", path).stdin(Stdio::null()).spawn().unwrap())
}

fn unavailable() -> Deed {
    answers("503 Service Unavailable", &[], "come back later")
}

#[test]
fn r1_01_a_failure_is_temporary_or_one_of_code_environment_or_without_remedy() {
    let cases = [
        ("temporary", "curl https://x.example", 28, "curl: (28) Operation timed out after 3000 milliseconds"),
        ("temporary", "curl https://x.example", 22, "curl: (22) The requested URL returned error: 503"),
        (
            "code",
            "python3 app.py",
            1,
            "  File \"app.py\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax",
        ),
        ("code", "node app.js", 1, "TypeError: Cannot read properties of undefined (reading 'x')"),
        ("environment", "frob --all", 127, "bash: line 1: frob: command not found"),
        ("environment", "python3 app.py", 1, "ModuleNotFoundError: No module named 'yaml'"),
        (
            "unrecoverable",
            "claude -p hi",
            1,
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
        ),
        (
            "unrecoverable",
            "python3 ask.py",
            1,
            "openai.AuthenticationError: Error code: 401 - {'error': {'message': 'Incorrect API key provided: sk-nope.', 'code': 'invalid_api_key'}}",
        ),
        (
            "unrecoverable",
            "python3 ask.py",
            1,
            "openai.RateLimitError: Error code: 429 - {'error': {'message': 'You exceeded your current quota, please check your plan and billing details.', 'code': 'insufficient_quota'}}",
        ),
    ];
    let found = |command: &str, exit: i32, words: &str| diagnosed(command, exit, words)["category"].clone();
    let wrong: Vec<String> = cases
        .iter()
        .map(|(category, command, exit, words)| (*category, found(command, *exit, words), words))
        .filter(|(category, found, _)| found != category)
        .map(|(category, found, words)| format!("{words}: {found}, not {category}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn r1_02_the_bare_words_for_what_passes_are_understood_and_retried() {
    let mut wrong = Vec::new();
    for words in [
        "network_timeout",
        "Error: network_timeout",
        "network timeout",
        "Error: timeout",
        "request timeout",
        "HTTP 429",
        "HTTP 503",
        "server busy",
    ] {
        let (said, story, calls) = flaky(&swift(), &[], "2", words);
        if calls != 2 || said.exit != 0 {
            wrong.push(format!("{words}: {} {}", story["attempts"][0]["kind"], story["stopped"]));
        }
    }
    // As the kind of error that an agent behind a tool names.
    let world = machine("");
    let claude = Claude::new(&world, "s");
    let answer =
        json!({ "success": false, "error_kind": "network_timeout", "error": "network_timeout" }).to_string();
    let turn = claude.calls("mcp__ccg__gemini", &json!({ "PROMPT": "x" }), Ends::Error(&answer));
    if !turn.said().contains("may pass by itself") {
        wrong.push(format!("as error_kind: {turn}"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn r1_03_other_words_for_what_passes_are_understood_and_look_alikes_are_not() {
    for (words, category) in [
        ("read ETIMEDOUT", "temporary"),
        ("connect ECONNREFUSED 10.1.2.3:5432", "temporary"),
        ("read ECONNRESET", "temporary"),
        ("503 Service Unavailable", "temporary"),
        (
            "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
            "temporary",
        ),
        ("Error: rate limit exceeded, please slow down", "temporary"),
        ("OSError: [Errno 16] Device or resource busy: '/mnt/x'", "temporary"),
    ] {
        assert_eq!(diagnosed("./fetch", 1, words)["category"], category, "{words}");
    }
    for (command, words) in [
        ("pytest", "FAILED tests/test_a.py::test_timeout_busy - assert 1 == 2"),
        ("cargo build", "error[E0308]: mismatched types\n --> src/main.rs:429:5"),
        ("./x", "busybox: applet not found"),
    ] {
        assert_ne!(diagnosed(command, 1, words)["category"], "temporary", "{words}");
    }
    // A port of this machine on which nobody listens is waited for by nobody: the service has to be started.
    let refused = diagnosed("psql", 2, "connect ECONNREFUSED 127.0.0.1:5432");
    assert_ne!(refused["retry"]["same_call"], "now", "{refused}");
    assert!(
        refused["recommendations"][0].as_str().is_some_and(|text| text.to_lowercase().contains("start")),
        "{refused}"
    );
}

#[test]
fn r1_04_only_what_passes_by_itself_is_sent_again() {
    for words in [
        "SyntaxError: invalid syntax",
        "ModuleNotFoundError: No module named 'yaml'",
        "curl: (22) The requested URL returned error: 401",
        "error: You exceeded your current quota, please check your plan and billing details",
    ] {
        let world = swift();
        let (said, story, calls) = flaky(&world, &["--retries", "5"], "9", words);
        assert_eq!((calls, said.exit), (1, 1), "{words}: {said}");
        assert!(
            matches!(story["stopped"].as_str(), Some("nothing_changed" | "not_retryable")),
            "{words}: {story}"
        );
        assert!(story["recommendations"][0].is_string(), "{words}: {story}");
    }
    let said = World::empty().run(&["run", "--retries", "5", "--idempotent", "--", "nope-tool"], "");
    assert_eq!((said.exit, said.stderr().contains("will retry")), (127, false), "{said}");
}

#[test]
fn r1_05_there_are_three_to_five_retries_where_they_are_asked_for() {
    // By kind, where nobody asks.
    assert_eq!(flaky(&swift(), &[], "99", UNAVAILABLE).2, 4);
    assert_eq!(flaky(&swift(), &[], "99", "curl: (6) Could not resolve host: x.example").2, 3);
    for (number, calls) in [("3", 4), ("5", 6), ("9", 10)] {
        let (said, story, found) = flaky(&swift(), &["--retries", number], "99", UNAVAILABLE);
        assert_eq!((found, &story["stopped"]), (calls, &json!("tries_used")), "--retries {number}: {said}");
    }
    // Asked for once and for all.
    let settings = format!("{SWIFT}server_error.retries = 5\n");
    let world = World::empty().with("config/unstuck/config.toml", settings).with("flaky.sh", FLAKY);
    assert_eq!(flaky(&world, &[], "99", UNAVAILABLE).2, 6);
}

/// The waits before each retry of an agent that was promised five, in milliseconds.
fn five_waits(world: &World) -> Vec<u64> {
    let told = asked(world, "main", UNAVAILABLE, 6);
    let waits =
        told.iter().take(5).map(|retry| retry["wait_ms"].as_u64().unwrap_or_else(|| panic!("{told:?}")));
    let waits = waits.collect();
    assert_eq!((&told[5]["again"], &told[5]["why"]), (&json!(false), &json!("tries_used")), "{told:?}");
    waits
}

/// The table of waits, in milliseconds.
const TABLE: [(u64, u64); 5] =
    [(1_000, 2_000), (2_000, 3_000), (4_000, 5_000), (8_000, 9_000), (16_000, 17_000)];

const FIVE: &str = "[retry.kinds]\nserver_error.retries = 5\n";

#[test]
fn r1_06_waits_double_and_are_spread_by_up_to_a_second() {
    let series: Vec<Vec<u64>> = (0..6).map(|_| five_waits(&machine(FIVE))).collect();
    for waits in &series {
        for (number, wait) in waits.iter().enumerate() {
            let base = 1_000 << number;
            assert!((base..=base + 1_000).contains(wait), "retry {number}: {wait}");
        }
    }
    // Chance spreads them: callers who failed together do not come back together.
    assert!(series.iter().any(|waits| waits[0] != series[0][0]), "{series:?}");
}

#[test]
fn r1_07_the_first_four_rows_of_the_table_of_waits_hold() {
    for ((from, to), wait) in TABLE.iter().zip(five_waits(&machine(FIVE))).take(4) {
        assert!((*from..=*to).contains(&wait), "{wait} is not between {from} and {to}");
    }
    // And are really waited, where a door waits itself.
    let world = World::empty().with("flaky.sh", FLAKY);
    let begun = Instant::now();
    let (said, story, _) = flaky(&world, &[], "2", UNAVAILABLE);
    let waited = story["waits_ms"][0].as_u64().unwrap_or_else(|| panic!("{said}"));
    assert!((1_000..=2_000).contains(&waited) && begun.elapsed() >= Duration::from_millis(waited), "{said}");
}

#[test]
fn r1_08_the_fifth_row_is_reached_in_every_door_that_is_asked_for_five() {
    let waits = five_waits(&machine(FIVE));
    assert!((16_000..=17_000).contains(&waits[4]), "{waits:?}");
    // The other doors, a hundred times as fast: `run`, by any kind that passes.
    for words in [
        UNAVAILABLE,
        "HTTP/1.1 429 Too Many Requests",
        "OSError: [Errno 16] Device or resource busy: '/mnt/x'",
        "read ETIMEDOUT",
    ] {
        let (said, story, calls) = flaky(&swift(), &["--retries", "5"], "99", words);
        assert_eq!((calls, story["waits_ms"].as_array().map(Vec::len)), (6, Some(5)), "{words}: {said}");
    }
    let (_, story, _) = flaky(&swift(), &["--retries", "5"], "99", UNAVAILABLE);
    let last = story["waits_ms"][4].as_u64().unwrap();
    assert!((160..=170).contains(&last), "{story}");
    // `http`.
    let server = Server::that((0..6).map(|_| unavailable()).collect());
    let said = swift().run(&["http", "GET", &server.at("/"), "--retries", "5", "--json"], "");
    assert_eq!(server.asked().len(), 6, "{said}");
    // `agent`.
    let settings = format!(
        "{SWIFT}[agent.coder]\nprogram = \"coder\"\nsession = \"session={{session}};\"\nresume = [\"{{session}}\"]\n"
    );
    let world = World::empty().with("config/unstuck/config.toml", settings);
    let script =
        format!("echo x >> \"$HOME/starts\"; echo 'session=ab-1;'; echo '{UNAVAILABLE}' >&2; exit 1");
    let world = with_program(world, "coder", &script);
    let said = run_with_programs(&world, &["agent", "coder", "--retries", "5", "--", "x"]);
    let starts = fs::read_to_string(world.path("starts")).unwrap_or_default();
    assert_eq!(starts.lines().count(), 6, "{said}");
    // `mcp`.
    let world = swift();
    let mut client = Client::ready(&world, &["--retries", "5"], &[]);
    client.fails("flaky_read", json!({ "times": 99 }));
    assert_eq!(seen_calls(&world, "flaky_read").len(), 6);
}

#[test]
fn r1_09_a_call_that_times_out_twice_and_then_works_is_a_success() {
    let world = World::empty().with("flaky.sh", FLAKY);
    let (said, story, calls) = flaky(&world, &[], "3", "Error: read ETIMEDOUT");
    assert_eq!((said.exit, calls, &story["ok"]), (0, 3, &json!(true)), "{said}");
    let waits: Vec<u64> = story["waits_ms"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert!(waits.len() == 2 && waits[1] > waits[0], "{waits:?}");
    assert_eq!(said.stdout(), "done\n");
}

#[test]
fn r1_10_retries_spare_what_they_use() {
    let get = |deeds: Vec<Deed>, flags: &[&str]| {
        let server = Server::that(deeds);
        let begun = Instant::now();
        let said = World::empty().run(&[&["http", "GET", &server.at("/"), "--json"], flags].concat(), "");
        (story(&said), begun.elapsed(), server.asked().len())
    };
    // The wait that the server asks for is kept.
    let (told, _, asked) = get(
        vec![answers("503 Service Unavailable", &["retry-after: 1"], ""), answers("200 OK", &[], "{}")],
        &[],
    );
    let waited = told["waits_ms"][0].as_u64().unwrap_or_default();
    assert!(asked == 2 && (1_000..=2_100).contains(&waited), "{told}");
    // One that is too long is told and not slept through.
    let long = || answers("429 Too Many Requests", &["retry-after: 900"], "");
    let (told, took, asked) = get(vec![long()], &[]);
    assert_eq!((asked, &told["stopped"]), (1, &json!("hint_too_long")), "{told}");
    assert!(told["come_back_after_ms"].as_u64() >= Some(890_000) && took < Duration::from_secs(20), "{told}");
    // One deadline spans all attempts: what could not begin before it is not waited for.
    let (told, took, asked) =
        get(vec![answers("503 Service Unavailable", &["retry-after: 30"], "")], &["--deadline", "5s"]);
    assert_eq!((asked, &told["stopped"]), (1, &json!("deadline")), "{told}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn r1_11_an_error_in_the_code_is_not_retried_and_comes_with_a_fix() {
    let world = World::empty().with("broken.py", "def f(:\n    pass\n");
    let said =
        world.run(&["run", "--retries", "5", "--idempotent", "--json", "--", "python3", "broken.py"], "");
    let story = story(&said);
    assert_eq!(
        (said.exit, &story["retries"], &story["category"], &story["stopped"]),
        (1, &json!(0), &json!("code"), &json!("nothing_changed")),
        "{said}"
    );
    assert!(story["recommendations"][0].is_string(), "{story}");
}

#[test]
fn r1_12_an_error_of_the_environment_is_not_retried_until_it_changes() {
    let world = swift();
    let (_, story, calls) =
        flaky(&world, &["--retries", "5"], "9", "ModuleNotFoundError: No module named 'yaml'");
    assert_eq!(
        (calls, &story["category"], &story["stopped"]),
        (1, &json!("environment"), &json!("nothing_changed"))
    );
    assert!(
        story["recommendations"][0].as_str().is_some_and(|text| text.to_lowercase().contains("install")),
        "{story}"
    );
    // The same call is refused to an agent until the surroundings have changed, and runs then.
    let world = machine("");
    let claude = Claude::new(&world, "s");
    let turns = [claude.bash("./made.sh"), claude.bash("./made.sh")];
    assert_eq!((turns[0].exit, turns[1].ran), (Some(127), false), "{}", turns[1]);
    fs::write(world.path("app/made.sh"), "#!/bin/sh\necho here\n").unwrap();
    fs::set_permissions(world.path("app/made.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(claude.bash("./made.sh").exit, Some(0));
}

#[test]
fn r1_13_what_nobody_here_can_mend_stops_and_says_who_can() {
    for words in [
        "git@github.com: Permission denied (publickey).",
        "Error: Your credit balance is too low to access the Anthropic API.",
    ] {
        let (said, story, calls) = flaky(&swift(), &["--retries", "5"], "9", words);
        assert_eq!((calls, said.exit), (1, 1), "{words}: {said}");
        assert_eq!(story["fix_by"], "person", "{words}: {story}");
    }
}

#[test]
fn r1_14_coder_has_no_retries_and_codex_and_gemini_have_one() {
    for (agent, expected) in [("coder", 0), ("codex", 1), ("gemini", 1)] {
        assert_eq!(retries(&machine(""), agent), expected, "{agent}");
    }
    // The same for agents that are started, and for agents behind tools.
    let world = with_program(
        swift(),
        "codex",
        &format!(
            "echo x >> \"$HOME/starts\"; echo '{}'; echo '{}'; exit 1",
            r#"{"type":"thread.started","thread_id":"t-1"}"#,
            r#"{"type":"turn.failed","error":{"message":"unexpected status 503 Service Unavailable"}}"#
        ),
    );
    let said = run_with_programs(&world, &["agent", "codex", "--", "x"]);
    assert_eq!(fs::read_to_string(world.path("starts")).unwrap_or_default().lines().count(), 2, "{said}");
    let world = swift();
    let mut client = Client::ready(&world, &[], &[]);
    for (tool, calls) in [("coder", 1), ("codex", 2)] {
        client.call(tool, json!({ "PROMPT": "x" }));
        assert_eq!(seen_calls(&world, tool).len(), calls, "{tool}");
    }
}

#[test]
fn r1_15_the_number_of_retries_can_be_set_for_agents_and_for_kinds() {
    // For an agent, at every door.
    let coder = "[agent.coder]\nretries = 2\n";
    assert_eq!(retries(&machine(coder), "coder"), 2);
    assert_eq!(retries(&machine(coder), "codex"), 1);
    let world = swift();
    let mut client = Client::ready(&world, &["--agent", "coder=2"], &[]);
    client.call("coder", json!({ "PROMPT": "x" }));
    assert!(seen_calls(&world, "coder").len() >= 2);
    // For a kind: in a file, with a flag, and for hooks as for commands.
    assert_eq!(retries(&machine("[retry.kinds]\nserver_error.retries = 4\n"), "main"), 4);
    assert_eq!(retries(&machine("[retry.agents]\ncoder = 3\n"), "coder"), 3);
    let (_, story, calls) =
        flaky(&swift(), &["--set", "retry.kinds.server_error.retries=1"], "99", UNAVAILABLE);
    assert_eq!((calls, &story["stopped"]), (2, &json!("tries_used")), "{story}");
    let (_, _, calls) =
        flaky(&swift(), &["--set", "retry.kinds.network.first_wait=1ms"], "99", "read ECONNRESET");
    assert_eq!(calls, 3);
    let world =
        World::empty().with("config/unstuck/config.toml", format!("{SWIFT}server_error.retries = 1\n"));
    let mut client = Client::ready(&world, &[], &[]);
    client.fails("flaky_read", json!({ "times": 99 }));
    assert_eq!(seen_calls(&world, "flaky_read").len(), 2);
    // What is set is shown with where it comes from, and a mistake is told with its place.
    let shown = world.run(&["config", "explain", "retry.kinds.server_error.retries"], "");
    assert!(shown.exit == 0 && shown.stdout().contains("config.toml:"), "{shown}");
    let wrong =
        World::empty().with("config/unstuck/config.toml", "[retry.kinds]\nserver_error.retries = 6\n");
    wrong
        .run(&["config"], "")
        .complains(2, &["config.toml:2:", "retry.kinds.server_error.retries", "between 0 and 5"]);
    let unknown = World::empty().run(&["--set", "retry.kinds.nope.retries=1", "config"], "");
    unknown.complains(2, &["retry.kinds.nope.retries", "is not a kind"]);
    let project = World::empty().with(".unstuck.toml", "[retry.kinds]\nnetwork.retries = 0\n");
    project.run(&["config"], "").complains(2, &[".unstuck.toml:1:", "may not be set by a project"]);
}

#[test]
fn r1_16_of_kind_and_agent_the_smaller_number_holds() {
    assert_eq!(retries(&machine(""), "main"), 3);
    assert_eq!(retries(&machine(""), "codex"), 1);
    let last = asked(&machine(""), "coder", UNAVAILABLE, 1);
    assert_eq!((&last[0]["again"], &last[0]["why"]), (&json!(false), &json!("agent_writes")), "{last:?}");
    assert_eq!(retries(&machine("[agent.codex]\nretries = 5\n"), "codex"), 3);
}

#[test]
fn r1_17_a_retry_goes_on_in_the_same_session() {
    // Ours.
    let world = swift();
    let (_, story, _) = flaky(&world, &[], "3", UNAVAILABLE);
    let calls = fs::read_to_string(world.path("calls")).unwrap();
    let ends: Vec<String> =
        calls.lines().map(|line| line.rsplitn(3, ' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    let session = story["session"].as_str().unwrap();
    assert_eq!(ends, [format!("1 {session}"), format!("2 {session}"), format!("3 {session}")]);
    // That of an agent that was cut off; it is told so.
    let lost = r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 529 Overloaded.","session_id":"5f0c-1"}"#;
    let begun = r#"{"type":"system","subtype":"init","session_id":"5f0c-1"}"#;
    let well =
        r#"{"type":"result","subtype":"success","is_error":false,"result":"All done","session_id":"5f0c-1"}"#;
    let answer = r#"{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"Half done"}]},"session_id":"5f0c-1"}"#;
    let script = format!(
        "echo \"$*\" >> \"$HOME/words\"; cat >> \"$HOME/prompts\"\nif [ -e \"$HOME/once\" ]; then echo '{well}'; exit 0; fi\ntouch \"$HOME/once\"; echo '{begun}'; echo '{answer}'; echo '{lost}'; exit 1"
    );
    let world = with_program(swift(), "claude", &script);
    let said = run_with_programs(&world, &["agent", "claude", "--", "Build it. "]);
    let result: Value = serde_json::from_str(said.stdout()).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!((said.exit, &result["began"]), (0, &json!(["new", "resumed"])), "{said}");
    assert!(fs::read_to_string(world.path("words")).unwrap().contains("--resume 5f0c-1"));
    assert!(fs::read_to_string(world.path("prompts")).unwrap().contains("was cut off"));
    // That of an agent behind a tool, named by its failed answer.
    let world = swift();
    let mut client = Client::ready(&world, &[], &[]);
    client.works("codex", json!({ "PROMPT": "x" }));
    let calls = seen_calls(&world, "codex");
    assert_eq!(calls[1]["arguments"]["SESSION_ID"], "codex-session-0001", "{calls:?}");
}

#[test]
fn r1_18_a_retry_has_the_same_arguments_and_surroundings() {
    let world = swift();
    flaky(&world, &[], "3", UNAVAILABLE);
    let calls = fs::read_to_string(world.path("calls")).unwrap();
    let given: Vec<&str> = calls.lines().map(|line| line.rsplitn(3, ' ').last().unwrap()).collect();
    assert_eq!(given, ["3 503 Service Unavailable"; 3]);
    let world = swift();
    let mut client = Client::ready(&world, &[], &[]);
    client.works("flaky_read", json!({ "key": "a", "times": 2, "extra": { "n": 1.50 } }));
    let calls = seen_calls(&world, "flaky_read");
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call["arguments"] == calls[0]["arguments"]), "{calls:?}");
}

#[test]
fn r1_19_each_retry_is_told_before_its_wait_with_count_wait_and_reason() {
    let told = |lang: &str| {
        let world = swift();
        let said =
            world.run(&["--lang", lang, "run", "--idempotent", "--", "sh", "flaky.sh", "3", UNAVAILABLE], "");
        assert_eq!(said.exit, 0, "{said}");
        let lines = said.stderr().lines().filter(|line| line.contains("self-correct: "));
        lines.map(|line| line[11..].to_owned()).collect::<Vec<_>>()
    };
    let [first, second] = &told("en")[..] else { panic!() };
    for (line, number) in [(first, 1), (second, 2)] {
        assert!(
            line.contains(&format!("retry {number} of 3 in 0.0 s")) && line.contains(UNAVAILABLE),
            "{line}"
        );
    }
    let chinese = told("zh");
    assert!(chinese[0].contains("第 1/3 次重试") && chinese[0].contains(UNAVAILABLE), "{chinese:?}");
    // A client of a tool hears it as progress.
    let world = swift();
    let mut client = Client::ready(&world, &[], &[]);
    let call = json!({ "name": "flaky_read", "arguments": { "times": 2 }, "_meta": { "progressToken": 7 } });
    let id = client.send("tools/call", call);
    client.answer(id);
    let messages: Vec<&str> =
        client.aside.iter().filter_map(|frame| frame["params"]["message"].as_str()).collect();
    assert!(messages.len() == 2 && messages[0].starts_with("retry 1 of 3"), "{messages:?}");
    // And it stands in the timeline.
    let log = world.run(&["log", "--json"], "").json_lines();
    assert_eq!(log.iter().filter(|line| line["event"] == "tool:retry").count(), 2);
}

#[test]
fn r1_20_at_the_limit_it_stops_and_reports() {
    let (said, story, calls) = flaky(&swift(), &[], "99", UNAVAILABLE);
    assert_eq!(
        (said.exit, calls, &story["stopped"], &story["kind"]),
        (1, 4, &json!("tries_used"), &json!("server_error")),
        "{said}"
    );
    assert!(story["come_back_after_ms"].as_u64() > Some(0), "{story}");
    assert!(story["evidence"].as_str().is_some_and(|line| line.contains(UNAVAILABLE)), "{story}");
}

#[test]
fn r1_21_the_decision_follows_class_then_limit() {
    // Not temporary: stop with a fix. Temporary and below the limit: again. Temporary and at the limit: stop and report.
    let cases = [
        ("9", "SyntaxError: invalid syntax", 1, json!("nothing_changed")),
        ("3", UNAVAILABLE, 3, Value::Null),
        ("99", UNAVAILABLE, 4, json!("tries_used")),
    ];
    for (until, words, expected, stopped) in cases {
        let (said, story, calls) = flaky(&swift(), &[], until, words);
        assert_eq!((calls, &story["stopped"]), (expected, &stopped), "{words}: {said}");
    }
}

#[test]
fn r1_22_what_may_have_taken_effect_is_not_sent_twice() {
    let server = Server::that(vec![unavailable(), unavailable()]);
    let said = swift()
        .run(&["http", "POST", &server.at("/orders"), "--json-data", "{}", "--retries", "5", "--json"], "");
    assert_eq!((server.asked().len(), &story(&said)["stopped"]), (1, &json!("effect_uncertain")), "{said}");
    let world = swift();
    let said = world.run(&["run", "--retries", "5", "--json", "--", "sh", "flaky.sh", "9", UNAVAILABLE], "");
    assert_eq!(story(&said)["stopped"], "effect_uncertain", "{said}");
    let mut client = Client::ready(&world, &["--retries", "5"], &[]);
    client.fails("flaky", json!({ "times": 99 }));
    assert_eq!(seen_calls(&world, "flaky").len(), 1);
}
