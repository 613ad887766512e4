//! Failures of a call that is made again and again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::claude::{Claude, Ends, Turn, machine, signs};
use crate::world::World;

const CLASSIC: &str = "[ladder]\npreset = \"classic\"\n";
const ADAPTIVE: &str = "";
const NO_HOST: Ends<'_> = Ends::Exit(6, "curl: (6) Could not resolve host: x.example");

/// The same call as often as said, really run.
#[track_caller]
fn again(claude: &Claude<'_>, command: &str, times: usize) -> Vec<Turn> {
    (0..times).map(|_| claude.bash(command)).collect()
}

/// The same call as often as said, with these endings in turn.
#[track_caller]
fn in_turn(claude: &Claude<'_>, command: &str, endings: &[Ends<'_>], times: usize) -> Vec<Turn> {
    (0..times).map(|number| claude.plays(command, endings[number % endings.len()])).collect()
}

/// What stands in the timeline of one type of event.
fn events(world: &World, event: &str) -> Vec<Value> {
    let log = world.run(&["log", "--json"], "").json_lines();
    log.into_iter().filter(|line| line["event"] == event).collect()
}

/// A program that only the hooks of a session find, whatever is installed here.
fn program(world: &World, path: &str, script: &str) {
    let file = world.path(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn r0_01_every_failure_is_noticed_however_it_is_told() {
    let world = machine(ADAPTIVE);
    let claude = Claude::new(&world, "s");
    // By an event of its own, by the batch alone, and as a success whose exit code a pipe hides.
    claude.bash("cargo-nope build");
    let missing = "<tool_use_error>InputValidationError: Read failed due to the following issue:\nThe required parameter `file_path` is missing</tool_use_error>";
    claude.batch("Read", &json!({ "limit": 3 }), missing);
    let hidden = "error[E0425]: cannot find value `x` in this scope\n --> src/main.rs:2:5";
    claude.plays("cargo build 2>&1 | tail -5", Ends::Well(hidden));
    let kinds: Vec<Value> =
        events(&world, "tool:error").iter().map(|event| event["body"]["kind"].clone()).collect();
    assert_eq!(kinds, ["command_not_found", "validation", "code_error"]);
}

#[test]
fn r0_02_the_same_call_failing_with_errors_in_turn_is_a_loop() {
    let pairs = [
        ["zork: a blurb", "quux: b flarp"],
        ["FAILED t::a - expected 3, found 4", "FAILED t::b - expected 1, found 2"],
    ];
    for preset in [CLASSIC, ADAPTIVE] {
        for pair in pairs {
            let world = machine(preset);
            let claude = Claude::new(&world, "s");
            let endings = pair.map(|line| Ends::Exit(1, line));
            let said = signs(&in_turn(&claude, "./deploy.sh", &endings, 60));
            let refused = said.chars().filter(|sign| *sign == 'D').count();
            assert!(said[..6].contains('h'), "{preset} {pair:?}: {said}");
            // A busy machine may not get done with a look in time; then the call runs.
            assert!(refused >= 15, "{preset} {pair:?}: {said}");
        }
    }
    // Three and four errors in turn are the same loop.
    let lines = ["zork: a", "quux: b", "frob: c", "blip: d"].map(|line| Ends::Exit(1, line));
    for number in [3, 4] {
        let world = machine(ADAPTIVE);
        let claude = Claude::new(&world, "s");
        let said = signs(&in_turn(&claude, "./deploy.sh", &lines[..number], 40));
        assert!(said.contains('D'), "{number}: {said}");
    }
    // A new error each time is progress.
    let world = machine(ADAPTIVE);
    let claude = Claude::new(&world, "s");
    let words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"];
    for word in words {
        let turn = claude.plays("./deploy.sh", Ends::Exit(1, &format!("zork: {word} is not set up")));
        assert!(turn.ran, "{word}: {turn}");
    }
}

#[test]
fn r0_03_the_first_two_failures_are_only_recorded() {
    let world = machine("[ladder]\npreset = \"classic\"\n[hook]\nhold-max = \"0s\"\n");
    let claude = Claude::new(&world, "s");
    assert_eq!(signs(&again(&claude, "cargo-nope build", 2)), "..");
    // What passes by itself and is sent again too early runs all the same.
    let early = in_turn(&claude, "curl https://x.example", &[NO_HOST], 2);
    assert!(early.iter().all(|turn| turn.ran), "{}", signs(&early));
    assert_eq!(events(&world, "tool:error").len(), 4);
}

#[test]
fn r0_04_the_third_and_fourth_failure_are_hinted_at() {
    let world = machine(CLASSIC);
    let claude = Claude::new(&world, "s");
    let turns = again(&claude, "cargo-nope build", 4);
    assert_eq!(signs(&turns), "..hh");
    for (turn, count) in turns.iter().zip(1..).skip(2) {
        turn.says(&[&count.to_string(), "cargo-nope: command not found"]);
        // With the failed result itself, and so before the next try.
        assert!(turn.after["hookSpecificOutput"]["additionalContext"].is_string(), "{turn}");
    }
}

#[test]
fn r0_05_five_failures_force_another_way() {
    let world = machine(CLASSIC);
    let claude = Claude::new(&world, "s");
    let turns = again(&claude, "cargo-nope build", 7);
    assert_eq!(signs(&turns), "..hh.DD");
    for turn in &turns[5..] {
        turn.says(&["cargo-nope: command not found", "`cargo-nope build` ×5", "unstuck allow "]);
    }
}

#[test]
fn r0_06_hints_are_in_the_language_that_is_set_and_about_this_failure() {
    let world = machine("[ladder]\npreset = \"classic\"\n[language]\nmodel = \"zh\"\n");
    let claude = Claude::new(&world, "s");
    let turns = again(&claude, "cargo-nope build", 6);
    turns[2].says(&["第 3 次", "cargo-nope: command not found"]);
    turns[5].says(&["cargo-nope: command not found", "刚刚查看过", "unstuck allow "]);
}

#[test]
fn r0_07_what_is_said_of_several_errors_names_them() {
    let endings = ["zork: a blurb", "quux: b flarp"].map(|line| Ends::Exit(1, line));
    for preset in [CLASSIC, ADAPTIVE] {
        let world = machine(preset);
        let claude = Claude::new(&world, "s");
        let turns = in_turn(&claude, "./deploy.sh", &endings, 40);
        let refused = turns.iter().find(|turn| turn.sign() == 'D').unwrap();
        refused.says(&["⟦zork: a blurb⟧", "⟦quux: b flarp⟧"]);
        turns[3].says(&["⟦zork: a blurb⟧", "⟦quux: b flarp⟧"]);
    }
}

#[test]
fn r0_08_only_the_call_itself_and_what_needs_the_same_is_refused() {
    let world = machine(CLASSIC);
    let claude = Claude::new(&world, "s");
    again(&claude, "cargo-nope build", 5);
    assert_eq!(signs(&[claude.bash("ls"), claude.bash("cargo-nope build"), claude.bash("pwd")]), ".D.");
    let world = machine(ADAPTIVE);
    let claude = Claude::new(&world, "s");
    again(&claude, "cargo-nope build", 2);
    let turns = [claude.bash("cargo-nope test"), claude.bash("ls"), claude.bash("echo cargo-nope")];
    assert_eq!(signs(&turns), "D..");
}

#[test]
fn r0_09_calls_in_alternation_are_counted_each_for_itself() {
    let world = machine(CLASSIC);
    let claude = Claude::new(&world, "s");
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        a.push(claude.bash("nope-a run"));
        b.push(claude.bash("nope-b run"));
    }
    assert_eq!((signs(&a), signs(&b)), ("..hh.D".to_owned(), "..hh.D".to_owned()));
    a[5].says(&["nope-a"]);
    b[5].says(&["nope-b"]);
}

#[test]
fn r0_10_two_calls_are_the_same_by_their_whole_input() {
    let world = machine(CLASSIC);
    let claude = Claude::new(&world, "s");
    let long = format!("cargo-nope {}", "--quiet ".repeat(40));
    again(&claude, &format!("{long} one"), 5);
    let other = claude.bash(&format!("{long} two"));
    assert!(other.ran, "{other}");
    // The order of the fields and the words that say why are no part of it.
    let same = json!({ "description": "once more", "command": format!("{long} one") });
    assert_eq!(claude.calls("Bash", &same, Ends::Well("")).sign(), 'D');
}

#[test]
fn r0_11_a_success_begins_the_count_anew() {
    let world = machine(CLASSIC);
    let claude = Claude::new(&world, "s");
    let fails = || claude.plays("./flaky", Ends::Exit(1, "zork: a blurb"));
    let before: Vec<Turn> = (0..4).map(|_| fails()).collect();
    claude.plays("./flaky", Ends::Well("done"));
    let after: Vec<Turn> = (0..4).map(|_| fails()).collect();
    assert_eq!((signs(&before), signs(&after)), ("..hh".to_owned(), "..hh".to_owned()));
}

#[test]
fn r0_12_the_state_of_a_session_is_a_file_for_other_tools() {
    let world = machine("[store]\ntool-errors = true\n[ladder]\npreset = \"classic\"\n");
    let claude = Claude::new(&world, "s1");
    let read = || -> Value {
        let path = world.path(".local/state/unstuck/sessions/s1/tool-errors.json");
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let fails = |line: &str| claude.plays("./flaky", Ends::Exit(1, line));
    fails("zork: a blurb");
    fails("quux: b flarp");
    claude.bash("cargo-nope build");
    let errors = read();
    let [first, other] = &errors.as_array().unwrap()[..] else { panic!("{errors}") };
    assert_eq!(
        (&first["tool_name"], &first["count"], &first["error"]),
        (&json!("Bash"), &json!(2), &json!("quux: b flarp"))
    );
    for field in ["input_hash", "first_at", "last_at"] {
        assert!(first[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {first}");
    }
    assert_ne!(first["input_hash"], other["input_hash"]);
    // Consecutive: a success removes the entry, and the count begins anew.
    claude.plays("./flaky", Ends::Well("done"));
    let commands = |errors: &Value| errors.as_array().unwrap().len();
    assert_eq!(commands(&read()), 1, "{}", read());
    fails("zork: a blurb");
    let entry =
        read().as_array().unwrap().iter().find(|entry| entry["error"] == "zork: a blurb").cloned().unwrap();
    assert_eq!(entry["count"], 1);
    // Where it is not kept current, it can be asked for.
    let said = world.run(&["export", "--tool-errors", "s1"], "");
    assert!(said.exit == 0 && said.stdout().contains("tool-errors.json"), "{said}");
}

#[test]
fn r0_13_failures_at_the_same_time_are_all_counted() {
    let world =
        machine("[ladder]\nmode = \"shadow\"\n[store]\nwait-before = \"10s\"\nwait-after = \"60s\"\n");
    let claude = Claude::new(&world, "s");
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                claude.plays("./flaky", Ends::Exit(1, "zork: a blurb"));
                claude.plays("./flaky", Ends::Exit(1, "zork: a blurb"));
            });
        }
    });
    let stats = world.run(&["stats", "--json"], "").json_lines();
    assert_eq!((&stats[0]["calls"], &stats[0]["failed"]), (&json!(40), &json!(40)), "{stats:?}");
}

#[test]
fn r0_14_the_name_of_a_session_leads_nowhere_else() {
    let world = machine("[store]\ntool-errors = true\n");
    let claude = Claude::new(&world, "../../../../x/evil");
    claude.bash("cargo-nope build");
    let folders = fs::read_dir(world.path(".local/state/unstuck/sessions")).unwrap().flatten();
    let names: Vec<String> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    let [name] = &names[..] else { panic!("{names:?}") };
    assert!(!name.contains('/') && !name.contains('.'), "{name}");
    assert!(world.path(".local/state/unstuck/sessions").join(name).join("tool-errors.json").exists());
    assert!(!world.path("x").exists() && !world.path(".local/x").exists());
}

#[test]
fn r0_15_a_hook_never_breaks_its_host() {
    let world = machine(ADAPTIVE);
    let payload = Claude::new(&world, "s").payload("PreToolUse").to_string();
    let huge = format!("{{\"session_id\":\"{}", "x".repeat(3_000_000));
    let cases: [&[u8]; 8] =
        [b"", b"{", b"null", b"[]", b"\xff\xfe\x00\x01", b"{}", huge.as_bytes(), payload.as_bytes()];
    let unwritable = World::empty().with(".local/state/unstuck", "a file stands here");
    for world in [&world, &unwritable] {
        for case in cases {
            let said = world.run(&["hook", "claude"], case);
            assert_eq!(
                (said.stderr(), said.exit),
                ("", 0),
                "{:?}",
                String::from_utf8_lossy(&case[..case.len().min(40)])
            );
        }
    }
    // Without a store it still says what it finds.
    let claude = Claude::new(&unwritable, "s").in_folder("");
    assert!(claude.bash("cargo-nope build").ran);
}

#[test]
fn r0_16_a_call_that_can_be_put_right_is_rewritten_and_that_is_said() {
    let world = machine("[rewrite]\nmode = \"auto\"\n");
    program(&world, "bin/python3", "");
    let claude = Claude::new(&world, "s").with("PATH", world.path("bin").to_str().unwrap());
    let command = "cd sub && python train.py --epochs 3";
    claude.plays("ls", Ends::Well(""));
    let missing = Ends::Exit(127, "/bin/bash: line 1: python: command not found");
    claude.plays(command, missing);
    let input = json!({ "command": command, "timeout": 60_000 });
    let (_, answer) = claude.ask("Bash", &input);
    let output = &answer["hookSpecificOutput"];
    // The whole input with one word of it changed, and the model and the person are told.
    let expected = json!({ "command": "cd sub && python3 train.py --epochs 3", "timeout": 60_000 });
    assert_eq!(output["updatedInput"], expected, "{answer}");
    for words in [&output["additionalContext"], &answer["systemMessage"]] {
        assert!(words.as_str().is_some_and(|words| words.contains("python3")), "{answer}");
    }
}

#[test]
fn r0_17_answers_have_the_shape_that_the_client_reads() {
    let world = machine(ADAPTIVE);
    let claude = Claude::new(&world, "s");
    let turns = again(&claude, "cargo-nope build", 2);
    let told = &turns[0].after["hookSpecificOutput"];
    assert_eq!(told["hookEventName"], "PostToolUseFailure", "{}", turns[0]);
    assert!(told["additionalContext"].is_string(), "{}", turns[0]);
    let refused = &turns[1].before["hookSpecificOutput"];
    assert_eq!(
        (&refused["hookEventName"], &refused["permissionDecision"]),
        (&json!("PreToolUse"), &json!("deny"))
    );
    assert!(refused["permissionDecisionReason"].is_string(), "{}", turns[1]);
}

#[test]
fn r0_18_the_first_failure_is_diagnosed() {
    // A call, its failure, the quoted line and a word of the remedy.
    let cases: [(&str, i32, &str, &str, &str); 8] = [
        (
            "cargo-nope build",
            127,
            "/bin/bash: line 1: cargo-nope: command not found",
            "cargo-nope: command not found",
            "install",
        ),
        (
            "cat notes/plan.md",
            1,
            "cat: notes/plan.md: No such file or directory",
            "No such file or directory",
            "list",
        ),
        (
            "curl -sf http://localhost:18333/health",
            7,
            "curl: (7) Failed to connect to localhost port 18333 after 0 ms: Couldn't connect to server",
            "Couldn't connect to server",
            "start",
        ),
        (
            "python3 app.py",
            1,
            "Traceback (most recent call last):\n  File \"app.py\", line 1, in <module>\n    import yaml\nModuleNotFoundError: No module named 'yaml'",
            "No module named 'yaml'",
            "install",
        ),
        (
            "git push origin main",
            128,
            "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            "Permission denied (publickey)",
            "key",
        ),
        ("npm run biuld", 1, "npm error Missing script: \"biuld\"", "Missing script", "npm run"),
        ("./run.sh", 126, "bash: ./run.sh: Permission denied", "Permission denied", "chmod"),
        (
            "cp big.iso /mnt",
            1,
            "cp: error writing '/mnt/big.iso': No space left on device",
            "No space left on device",
            "space",
        ),
    ];
    for (command, code, output, quoted, remedy) in cases {
        let world = machine(ADAPTIVE);
        let turn = Claude::new(&world, "s").plays(command, Ends::Exit(code, output));
        let said = turn.said();
        assert!(said.contains('⟦') && said.contains(quoted), "{command}: {said}");
        assert!(said.to_lowercase().contains(remedy), "{command}: {said}");
    }
}

#[test]
fn r0_19_the_second_attempt_is_to_be_another_method() {
    let world = machine(ADAPTIVE);
    let claude = Claude::new(&world, "s");
    assert_eq!(signs(&again(&claude, "cargo-nope build", 2)), "hD");
    let not_found = Ends::Exit(
        1,
        "npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/left-padd - Not found",
    );
    claude.plays("npm install left-padd", not_found);
    let other_words = claude.plays("npm install left-padd --verbose", not_found);
    other_words.says(&["the same command in other words", "another method or tool"]);
    let other_tool = claude.plays(
        "yarn add left-padd",
        Ends::Exit(1, "error Couldn't find package \"left-padd\" on the \"npm\" registry."),
    );
    assert!(other_tool.ran && !other_tool.said().contains("other words"), "{other_tool}");
}

#[test]
fn r0_20_the_third_attempt_is_to_question_the_assumptions() {
    for (language, words) in [
        ("en", ["question them", "search for what others found", "update the plan", "ask the person"]),
        ("zh", ["质疑这些假设", "搜索他人的发现", "更新计划", "询问用户"]),
    ] {
        let world = machine(&format!("[language]\nmodel = \"{language}\"\n"));
        let claude = Claude::new(&world, "s");
        let turns = in_turn(&claude, "./odd.sh", &[Ends::Exit(1, "zork: a blurb")], 6);
        for number in [2, 5] {
            turns[number].says(&words);
        }
    }
}

#[test]
fn r0_21_after_three_approaches_a_person_sees_what_was_tried() {
    let world = machine(ADAPTIVE);
    let claude = Claude::new(&world, "s").attended();
    let turns = [
        claude.plays(
            "curl -sf https://h.example/a",
            Ends::Exit(6, "curl: (6) Could not resolve host: h.example"),
        ),
        claude.plays(
            "wget https://h.example/a",
            Ends::Exit(4, "wget: unable to resolve host address 'h.example'"),
        ),
        claude.plays(
            "git clone https://h.example/a.git",
            Ends::Exit(
                128,
                "fatal: unable to access 'https://h.example/a.git/': Could not resolve host: h.example",
            ),
        ),
        claude.plays(
            "nc -vz h.example 443",
            Ends::Exit(1, "nc: getaddrinfo for host \"h.example\" port 443: Name or service not known"),
        ),
    ];
    let shown = turns.iter().map(Turn::shown).find(|shown| !shown.is_empty());
    let shown = shown.unwrap_or_else(|| panic!("nobody is told: {} {}", signs(&turns), turns[3]));
    for words in ["unstuck", "curl -sf https://h.example/a", "wget https://h.example/a", "git clone"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // The same where the approaches fail with one missing thing.
    let world = machine(ADAPTIVE);
    let claude = Claude::new(&world, "s").attended();
    let turns = in_turn(&claude, "./odd.sh", &[Ends::Exit(1, "zork: a blurb")], 3);
    assert!(turns[2].shown().contains("./odd.sh"), "{}", turns[2]);
}

#[test]
fn r0_22_the_table_for_a_person_is_filled_current_and_readable() {
    let rows = |shown: &str| shown.matches("Attempt: ").count();
    // Failures: what long ago failed otherwise and was mended is not in it.
    let world = machine(ADAPTIVE);
    let claude = Claude::new(&world, "s").attended();
    claude.bash("old-nope build");
    for number in 0..40 {
        claude.bash(&format!("echo {number}"));
    }
    let turns = again(&claude, "cargo-nope build", 8);
    let asked = turns.iter().find(|turn| turn.sign() == 'A').unwrap_or_else(|| panic!("{}", signs(&turns)));
    let shown = asked.shown();
    for words in
        ["unstuck", "Error: ", "cargo-nope: command not found", "Attempt: `cargo-nope build`", "Resolution: "]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("old-nope") && !shown.contains(" | "), "{shown}");
    assert_eq!(rows(&shown), 1, "{shown}");
    // A loop of looks has its attempts as well, and nothing failed.
    let world = machine(ADAPTIVE).with("app/a.txt", "a\n");
    let claude = Claude::new(&world, "s").attended();
    let turns = again(&claude, "cat a.txt", 20);
    let asked = turns.iter().find(|turn| turn.sign() == 'A').unwrap_or_else(|| panic!("{}", signs(&turns)));
    let shown = asked.shown();
    assert!(shown.contains("Attempt: `cat a.txt`") && !shown.contains("failure"), "{shown}");
}

#[test]
fn r0_23_what_failed_is_not_done_again_as_it_is() {
    let world = machine(ADAPTIVE);
    let claude = Claude::new(&world, "s");
    let turns = again(&claude, "cargo-nope build", 5);
    assert_eq!(signs(&turns), "hDDDD");
    assert_eq!(turns.iter().filter(|turn| turn.ran).count(), 1);
}

/// Words that failures of more than thirty tools have.
const PATTERNS: [&str; 32] = [
    "error: something is wrong",
    "Error: something is wrong",
    "ERROR: something is wrong",
    "error[E0425]: cannot find value `x` in this scope",
    "fatal: not a git repository (or any of the parent directories): .git",
    "FATAL: password authentication failed for user \"app\"",
    "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: bad",
    "panic: runtime error: index out of range [3] with length 2",
    "thread 'main' panicked at src/main.rs:3:5:",
    "Segmentation fault (core dumped)",
    "command not found: frob",
    "cat: nope: No such file or directory",
    "bash: ./x: Permission denied",
    "connect ECONNREFUSED 127.0.0.1:5432",
    "getaddrinfo ENOTFOUND registry.example",
    "ENOENT: no such file or directory, open 'nope.json'",
    "EACCES: permission denied, open '/etc/shadow'",
    "read ECONNRESET",
    "ETIMEDOUT: connection timed out",
    "ModuleNotFoundError: No module named 'yaml'",
    "ImportError: cannot import name 'x' from 'y'",
    "SyntaxError: invalid syntax",
    "TypeError: Cannot read properties of undefined (reading 'x')",
    "ReferenceError: x is not defined",
    "Exception in thread \"main\" java.lang.NullPointerException",
    "Unhandled rejection Error: nope",
    "npm ERR! code ERESOLVE",
    "pnpm ERR! ERR_PNPM_NO_MATCHING_VERSION",
    "Build failed with 1 error",
    "FAILED tests/test_a.py::test_b - assert 1 == 2",
    "make: *** [Makefile:2: all] Error 1",
    "undefined reference to `frob'",
];

#[test]
fn r0_24_more_than_thirty_patterns_of_errors_are_noticed() {
    let world = machine("[ladder]\nmode = \"advise\"\n");
    let claude = Claude::new(&world, "s");
    for (number, pattern) in PATTERNS.iter().enumerate() {
        claude.plays(&format!("./step-{number}.sh"), Ends::Exit(1, pattern));
    }
    let noticed = events(&world, "tool:error");
    assert_eq!(noticed.len(), PATTERNS.len());
    // Behind a pipe, where nobody is told the exit code, the tool's own unmistakable words are believed.
    let hidden = [
        ("python3 app.py 2>&1 | tail -3", PATTERNS[6]),
        ("cargo build 2>&1 | tail -5", PATTERNS[3]),
        (
            "node app.js 2>&1 | tail",
            "node:internal/modules/cjs/loader:1143\n  throw err;\n  ^\n\nError: Cannot find module './x'",
        ),
    ];
    for (number, (command, output)) in hidden.into_iter().enumerate() {
        let claude = Claude::new(&world, &format!("piped-{number}"));
        let turn = claude.plays(command, Ends::Well(output));
        assert_eq!(turn.sign(), 'h', "{command}: {turn}");
    }
}

#[test]
fn r0_25_words_that_only_look_like_errors_are_none() {
    let shown = [
        "console.error('x')",
        "} catch (error) {",
        "tail -f error.log",
        "logger.error(\"unreachable\")",
        "0 errors, 0 warnings",
        "test error_handling::works ... ok",
        "def handle_error(self):",
        "  - Fix TypeError when the list is empty",
        "errors.append(message)",
        "raise ValueError('bad')",
        "http_req_failed: 0.00%",
        "12 passed, 0 failed",
    ];
    let world = machine(ADAPTIVE);
    for (number, line) in shown.into_iter().enumerate() {
        for command in
            ["cat src/app.js", "grep -rn error src", "npm run build", "npm run build 2>&1 | tail -5"]
        {
            let claude = Claude::new(&world, &format!("s{number}"));
            let turn = claude.plays(command, Ends::Well(line));
            assert_eq!(turn.sign(), '.', "{command}: {line}: {turn}");
        }
    }
    assert_eq!(events(&world, "tool:error"), Vec::<Value>::new());
    // The failure beside them is found all the same.
    let output = "console.error('x')\nTraceback (most recent call last):\n  File \"app.py\", line 3, in <module>\nKeyError: 'name'";
    let turn = Claude::new(&world, "mixed").plays("python3 app.py", Ends::Exit(1, output));
    turn.says(&["python.key-missing"]);
}

const NO_MODULE: Ends<'_> = Ends::Exit(
    1,
    "Traceback (most recent call last):\n  File \"app.py\", line 1, in <module>\n    import yaml\nModuleNotFoundError: No module named 'yaml'",
);

/// A session that runs into a missing module and installs it.
#[track_caller]
fn gets_over_it(claude: &Claude<'_>) {
    claude.plays("python3 app.py", NO_MODULE);
    claude.plays("pip install pyyaml", Ends::Well("Successfully installed pyyaml-6.0"));
    claude.plays("python3 app.py", Ends::Well("ready"));
}

#[test]
fn r0_26_what_fixed_an_error_is_saved_by_itself() {
    let world = machine(ADAPTIVE);
    let claude = Claude::new(&world, "one");
    claude.plays("python3 app.py", NO_MODULE);
    assert_eq!(
        world.run(&["lessons", "--json"], "").json_lines(),
        Vec::<Value>::new(),
        "nothing is fixed yet"
    );
    gets_over_it(&claude);
    let lessons = world.run(&["lessons", "--json"], "").json_lines();
    let [lesson] = &lessons[..] else { panic!("{lessons:?}") };
    assert_eq!(lesson["wins"], 1, "{lesson}");
    assert!(lesson["fix"].to_string().contains("pip install pyyaml"), "{lesson}");
}

#[test]
fn r0_27_what_fixed_an_error_is_told_in_later_sessions() {
    let world = machine(ADAPTIVE).with("other/.keep", "");
    gets_over_it(&Claude::new(&world, "one"));
    let later = Claude::new(&world, "two").plays("python3 app.py", NO_MODULE);
    later.says(&["pip install pyyaml", "not an instruction"]);
    // Seen once, it is no rule for another project.
    let elsewhere = Claude::new(&world, "three").in_folder("other").plays("python3 app.py", NO_MODULE);
    assert!(!elsewhere.said().contains("pyyaml-6"), "{elsewhere}");
    assert!(!elsewhere.said().contains("pip install pyyaml"), "{elsewhere}");
}

#[test]
fn r0_28_a_denial_a_timeout_an_interrupt_and_wrong_arguments_are_told_apart() {
    let world = machine(ADAPTIVE);
    let claude = Claude::new(&world, "s");
    claude.plays("sleep 90", Ends::Exit(143, "Command timed out after 1s\nbefore"));
    claude.plays("./long.sh", Ends::Interrupted);
    let input = json!({ "command": "touch x" });
    let (id, _) = claude.ask("Bash", &input);
    let mut denied = claude.payload("PermissionDenied");
    for (name, value) in [
        ("tool_name", json!("Bash")),
        ("tool_input", input),
        ("tool_use_id", json!(id)),
        ("reason", json!("no")),
    ] {
        denied[name] = value;
    }
    claude.hook(&denied);
    let issue = "<tool_use_error>InputValidationError: Bash failed due to the following issue:\nThe required parameter `command` is missing</tool_use_error>";
    let told = claude.batch("Bash", &json!({ "description": "no command" }), issue);
    let failed: Vec<String> = events(&world, "tool:error")
        .iter()
        .map(|event| event["body"]["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(failed, ["timeout", "aborted", "validation"]);
    assert_eq!(events(&world, "tool:denied").len(), 1);
    // The quoted line names the parameter.
    let words = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
    assert!(words.contains("`command`") || words.contains("'command'"), "{told}");
}

#[test]
fn r0_29_honest_repeats_are_not_punished() {
    for preset in [CLASSIC, ADAPTIVE] {
        // Edit and test, over and over.
        let world =
            machine(preset).with("app/test.sh", "cat value; echo 'FAILED t::a - expected 9'; exit 1\n");
        let claude = Claude::new(&world, "s");
        for number in 0..8 {
            claude.writes("value", &format!("{number}\n"));
            let turn = claude.bash("sh test.sh");
            assert!(turn.ran, "{preset}, test {number}: {turn}");
        }
        // Polling something that is on its way.
        for number in 0..8 {
            let turn =
                claude.plays("kubectl get pod web", Ends::Well("NAME  READY  STATUS\nweb   0/1    Pending"));
            assert!(turn.ran, "{preset}, look {number}: {turn}");
        }
    }
    // A refused call may run again as soon as what it missed is there, and where a file that it names was edited.
    let world = machine(ADAPTIVE);
    let claude = Claude::new(&world, "s");
    assert_eq!(signs(&again(&claude, "./made.sh", 3)), "hDD");
    program(&world, "app/made.sh", "echo here");
    assert_eq!(signs(&again(&claude, "./made.sh", 1)), ".");
    fs::write(world.path("app/run.py"), "import nosuchmodule_x\n").unwrap();
    let refused = again(&claude, "python3 run.py", 12);
    assert!(signs(&refused).contains('D'), "{}", signs(&refused));
    thread::sleep(Duration::from_millis(30));
    claude.writes("run.py", "print(42)\n");
    let turn = claude.bash("python3 run.py");
    assert!(turn.ran && turn.exit == Some(0), "{turn}");
}
