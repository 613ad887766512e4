//! Honest work that looks like a loop: waiting, paging, stepping, repairing. Nobody steps in.

use serde_json::json;

use super::{Ran, edit, judged, sh, tool};
use crate::ladder::Rung;

/// Nothing of a run is refused, and nothing is said but explanations of failures.
fn check(what: &str, run: &[Ran]) {
    let spoken: Vec<String> = judged(run)
        .iter()
        .enumerate()
        .filter(|(_, judged)| judged.before.rung.max(judged.after.rung) > Rung::Note)
        .map(|(at, judged)| format!("call {at}: {:?} then {:?}", judged.before, judged.after))
        .collect();
    assert!(spoken.is_empty(), "{what}\n{}", spoken.join("\n"));
}

/// Calls that alternate with changes to one file.
fn with_edits(file: &str, calls: impl IntoIterator<Item = Ran>) -> Vec<Ran> {
    let lap = |(number, call): (usize, Ran)| [call, edit(file, &format!("version {number}"))];
    calls.into_iter().enumerate().flat_map(lap).collect()
}

fn times(count: usize, ran: &Ran) -> Vec<Ran> {
    vec![ran.clone(); count]
}

fn codex(line: &str, code: i32, output: &str) -> Ran {
    Ran { code: Some(code), ..tool("shell", json!({ "command": ["bash", "-lc", line] }), code == 0, output) }
}

fn codex_in(dir: &str, line: &str, code: i32, output: &str) -> Ran {
    let input = json!({ "command": ["bash", "-lc", line], "workdir": dir });
    Ran { code: Some(code), ..tool("shell", input, code == 0, output) }
}

fn gemini(line: &str, code: i32, output: &str) -> Ran {
    let input = json!({ "command": line, "description": format!("Runs {line}") });
    Ran { code: Some(code), ..tool("run_shell_command", input, code == 0, output) }
}

fn cursor(line: &str, code: i32, output: &str) -> Ran {
    let input = json!({ "command": line, "is_background": false, "explanation": "next step" });
    Ran { code: Some(code), ..tool("run_terminal_cmd", input, code == 0, output) }
}

#[test]
fn waiting_for_something_that_moves_is_work() {
    let rollout = |ready: u32| {
        let said = format!(
            "Waiting for deployment \"web\" rollout to finish: {ready} of 4 updated replicas are available...\nerror: timed out waiting for the condition"
        );
        sh("kubectl rollout status deploy/web --timeout=30s", 1, &said)
    };
    check("a rollout that comes along", &(0..4).map(rollout).collect::<Vec<_>>());

    let locked = "Error: Error acquiring the state lock\n\nLock Info:\n  ID:        9db590f1-b6fe-c5f2\n  Who:       ci@runner-7";
    let apply = sh("terraform apply -auto-approve", 1, locked);
    let wait = sh("sleep 30", 0, "");
    let applied = sh("terraform apply -auto-approve", 0, "Apply complete! Resources: 2 added");
    check(
        "a state lock that is waited for",
        &[apply.clone(), wait.clone(), apply.clone(), wait.clone(), apply, wait, applied],
    );

    let health = |code: i32, said: &str| sh("sleep 5 && curl -sf localhost:8080/health", code, said);
    let run = [
        sh("docker compose up -d", 0, "Container web-1  Started"),
        health(7, ""),
        sh("docker compose logs --tail 5 web", 0, "web-1 | compiling 10%"),
        health(7, ""),
        sh("docker compose logs --tail 5 web", 0, "web-1 | compiling 60%"),
        health(7, ""),
        sh("docker compose logs --tail 5 web", 0, "web-1 | listening on 8080"),
        health(0, "ok"),
    ];
    check("a service that compiles before it listens", &run);

    let starting = sh("docker compose ps web", 0, "web-1   web   Up 4 seconds (health: starting)");
    check("a container that is starting", &times(6, &starting));

    let stack = sh(
        "aws cloudformation describe-stacks --stack-name app --query 'Stacks[0].StackStatus'",
        0,
        "\"CREATE_IN_PROGRESS\"",
    );
    check("a stack in progress", &times(8, &stack));

    let shell_output = tool("BashOutput", json!({ "bash_id": "b1" }), true, "<status>running</status>");
    check("a background shell that has nothing new", &times(7, &shell_output));

    let lock =
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)";
    let install = gemini("sleep 20; apt-get install -y jq", 100, lock);
    let done = gemini("sleep 20; apt-get install -y jq", 0, "Setting up jq");
    check("a package manager that is busy", &[install.clone(), install.clone(), install, done]);

    let boot = sh("ssh vm uptime", 255, "ssh: connect to host vm port 22: Connection refused");
    let run = [boot.clone(), sh("sleep 10", 0, ""), boot.clone(), sh("sleep 20", 0, ""), boot.clone()];
    check("a machine that boots", &run);

    let limited = sh(
        "curl -s https://api.example.com/v1/items",
        0,
        "{\"error\":\"rate limit exceeded\",\"retry_after\":30}",
    );
    let answer = sh("curl -s https://api.example.com/v1/items", 0, "{\"items\":[]}");
    check(
        "a limit that passes",
        &[limited.clone(), sh("sleep 30", 0, ""), limited, sh("sleep 60", 0, ""), answer],
    );

    let job = |step: u32| {
        tool(
            "mcp__ci__get_job",
            json!({ "job_id": "42" }),
            true,
            &format!("{{\"state\":\"running\",\"step\":{step}}}"),
        )
    };
    check("a job seen through a server", &(0..6).map(job).collect::<Vec<_>>());
}

#[test]
fn what_heals_by_itself_may_be_tried_again() {
    let reset = codex("npm ci", 1, "npm error code ECONNRESET\nnpm error network aborted");
    check(
        "a connection that breaks twice",
        &[reset.clone(), reset, codex("npm ci", 0, "added 812 packages")],
    );

    let flaky = |failed: &str| {
        sh("npx playwright test --retries=2", 1, &format!("  1) {failed}\n\n  1 failed\n  41 passed"))
    };
    let passed = sh("npx playwright test --retries=2", 0, "  42 passed");
    check(
        "a suite in which each time another test fails",
        &[flaky("login.spec.ts › signs in"), flaky("cart.spec.ts › adds"), passed],
    );

    let (passes, fails) =
        (sh("node bin/flaky.js", 0, "all answered in time"), sh("node bin/flaky.js", 1, "too late"));
    let [first, second, third] = [passes.clone(), passes.clone(), passes.clone()];
    check("answers with a failure in between", &[fails.clone(), first, second, fails, third, passes]);

    let test = cursor(
        "go test ./queue -run TestDrain -count=1",
        1,
        "--- FAIL: TestDrain (0.21s)\n    queue_test.go:40: drained 9 of 10\nFAIL",
    );
    check(
        "one look whether a test is flaky",
        &[
            test,
            cursor(
                "go test ./queue -run TestDrain -count=20",
                1,
                "--- FAIL: TestDrain (0.19s)\n    queue_test.go:40: drained 8 of 10\nFAIL",
            ),
        ],
    );
}

#[test]
fn repairing_and_trying_again_is_work() {
    let moved = |line: u32| {
        sh(
            "pytest tests/test_a.py",
            1,
            &format!("tests/test_a.py:{line}: AssertionError: assert 3 == 4\n1 failed in 0.{line}s"),
        )
    };
    check("only the line moves", &with_edits("/w/a.py", (10..20).map(moved)));

    let resolve = |name: &str| {
        gemini("npm install", 1, &format!("npm error code ERESOLVE\nnpm error While resolving: {name}@1.0.0"))
    };
    check(
        "an install after each edit of its manifest",
        &with_edits("/w/package.json", ["app", "app", "ui", "ui"].map(resolve)),
    );

    let make = sh(
        "make",
        2,
        "In file included from a.c:1:\ninclude/a.h:10:5: error: unknown type name 'size_tt'\nmake: *** [a.o] Error 1",
    );
    check("a build after each edit of a header", &with_edits("/w/include/a.h", times(5, &make)));

    let rebase = |sha: &str, file: &str| {
        let said =
            format!("CONFLICT (content): Merge conflict in {file}\nerror: could not apply {sha}... work");
        [
            sh("git rebase --continue", 1, &said),
            edit(&format!("/w/{file}"), sha),
            sh(&format!("git add {file}"), 0, ""),
        ]
    };
    let run: Vec<Ran> = [("a1b2c3d", "a.rs"), ("b2c3d4e", "a.rs"), ("c3d4e5f", "a.rs"), ("d4e5f60", "b.rs")]
        .into_iter()
        .flat_map(|(sha, file)| rebase(sha, file))
        .collect();
    check("a rebase with a conflict in each commit", &run);

    let green =
        sh("cargo test -q", 0, "running 12 tests\n............\ntest result: ok. 12 passed; 0 failed");
    check("a refactoring that stays green", &with_edits("/w/src/a.rs", times(12, &green)));
    let silent = cursor("npx tsc --noEmit", 0, "");
    check("a type check that has nothing to say", &with_edits("/w/src/a.ts", times(12, &silent)));

    let build = |step: u32| {
        sh(
            "docker build -t app .",
            1,
            &format!(
                "ERROR: failed to solve: process \"/bin/sh -c step-{step}\" did not complete successfully: exit code: 1"
            ),
        )
    };
    check("an image that gets further each time", &with_edits("/w/Dockerfile", (0..5).map(build)));

    let dir = |dir: &str| sh(&format!("cd {dir} && npm test"), 1, "npm error Missing script: \"test\"");
    check("one command in several packages", &["a", "b", "c", "d"].map(dir));
    let dir = |dir: &str| {
        codex_in(dir, "cargo build", 101, "error: could not find `Cargo.toml` in any parent directory")
    };
    check("one command with several working directories", &["/w/a", "/w/b", "/w/c", "/w/d"].map(dir));

    let asked = |ran: &Ran| ran.clone().when_asked();
    let deploy = sh("./deploy.sh staging", 1, "deploy: gate is closed");
    check("the user opened the gate meanwhile", &[deploy.clone(), asked(&deploy)]);

    let missing =
        |name: &str| sh("python app.py", 1, &format!("ModuleNotFoundError: No module named '{name}'"));
    let pip = |name: &str| sh(&format!("pip install {name}"), 0, &format!("Successfully installed {name}"));
    check(
        "one missing module after another",
        &[missing("a1"), pip("a1"), missing("b1"), pip("b1"), missing("c1"), pip("c1")],
    );
}

#[test]
fn looking_around_is_work() {
    let page = |offset: u32| {
        tool(
            "read_file",
            json!({ "path": "/w/big.log", "offset": offset, "limit": 200 }),
            true,
            &format!("lines from {offset}"),
        )
    };
    check(
        "a file read page by page",
        &(0..12).map(|page_number| page(page_number * 200)).collect::<Vec<_>>(),
    );
    let page =
        |from: u32| sh(&format!("sed -n '{from},{}p' big.log", from + 99), 0, &format!("lines from {from}"));
    check("the same with sed", &(0..12).map(|number| page(number * 100)).collect::<Vec<_>>());

    let dirs = ["src", "tests", "docs", "crates", "tools", "scripts"];
    check(
        "one pattern in several places, found nowhere",
        &dirs.map(|dir| sh(&format!("grep -rn needle {dir}"), 1, "")),
    );
    let search =
        |dir: &str| tool("Grep", json!({ "pattern": "needle", "path": dir }), true, "No matches found");
    check("the same with a tool", &dirs.map(search));
    let words = ["alpha", "beta", "gamma", "delta", "omega"];
    check("several patterns, found nowhere", &words.map(|word| codex(&format!("rg -n {word}"), 1, "")));

    let fetch = |page: &str| {
        tool(
            "WebFetch",
            json!({ "url": format!("https://docs.example.com/{page}"), "prompt": "How?" }),
            false,
            "Request failed with status code 404",
        )
    };
    check("a page that is looked for under several addresses", &words.map(fetch));
    let curl = |page: &str| {
        sh(
            &format!("curl -fsS https://api.example.com/{page}"),
            22,
            "curl: (22) The requested URL returned error: 404",
        )
    };
    check("the same with curl", &words.map(curl));

    let status = sh("git status --short", 0, " M src/a.rs");
    let run: Vec<Ran> =
        (0..6).flat_map(|lap| [edit("/w/src/a.rs", &lap.to_string()), status.clone()]).collect();
    check("a status after each edit", &run);

    let query = |column: &str| {
        tool(
            "mcp__pg__query",
            json!({ "sql": format!("select {column} from users") }),
            false,
            &format!("column \"{column}\" does not exist"),
        )
    };
    check("columns that are guessed", &["mail", "email_address", "contact"].map(query));

    let which = |name: &str| sh(&format!("which {name}"), 1, "");
    check("programs that are looked for", &["node", "deno", "bun", "tsx", "ts-node"].map(which));
    let test = |name: &str| {
        gemini(
            &format!("pytest -k {name}"),
            1,
            &format!("FAILED tests/test_{name}.py - assert False\n1 failed"),
        )
    };
    check("several tests, one by one", &words.map(test));
}

#[test]
fn stepping_and_pressing_is_work() {
    let step = |line: u32| {
        tool(
            "debugger_send",
            json!({ "cmd": "next" }),
            true,
            &format!("> loop.py({line})<module>()\n-> total += values[index]"),
        )
    };
    check("a debugger in a loop of two lines", &[4, 5, 4, 5, 4, 5, 4, 5].map(step));
    let run: Vec<Ran> = (0..6)
        .flat_map(|turn| {
            [step(4), tool("debugger_send", json!({ "cmd": "p total" }), true, &turn.to_string())]
        })
        .collect();
    check("a step and a look at a value", &run);
    let keys = |keys: &str| sh(&format!("tmux send-keys -t dbg {keys} Enter"), 0, "");
    check("a debugger in a terminal", &times(8, &keys("n")));
    let pane = |line: u32| sh("tmux capture-pane -p -t dbg", 0, &format!("(gdb) n\n{line}\t  x = f(x);"));
    check("a debugger that is watched", &(0..6).flat_map(|line| [keys("n"), pane(line)]).collect::<Vec<_>>());

    let press =
        |key: &str| tool("mcp__playwright__browser_press_key", json!({ "key": key }), true, "Pressed");
    check("two keys in turn", &["Tab", "Enter", "Tab", "Enter", "Tab", "Enter", "Tab", "Enter"].map(press));
    let more = |count: u32| {
        tool(
            "browser_click",
            json!({ "ref": "e42", "element": "Load more" }),
            true,
            &format!("- list of {count} items"),
        )
    };
    check("a list that grows", &(1..9).map(more).collect::<Vec<_>>());
    let scroll = tool("browser_scroll", json!({ "direction": "down", "pixels": 500 }), true, "Scrolled down");
    let shot = |at: u32| tool("browser_take_screenshot", json!({}), true, &format!("image {at}"));
    check(
        "scrolling with a look each time",
        &(0..6).flat_map(|at| [scroll.clone(), shot(at)]).collect::<Vec<_>>(),
    );

    let cell = |out: u32| tool("execute_code", json!({ "code": "next(rows)" }), true, &format!("Row({out})"));
    check("a generator in a notebook", &(0..8).map(cell).collect::<Vec<_>>());
}

#[test]
fn many_small_changes_are_work() {
    let replace = |from: u32| {
        let input = json!({ "file_path": "/w/a.ts", "old_string": format!("old{from}"), "new_string": format!("new{from}") });
        tool("search_replace", input, true, "The file /w/a.ts has been updated.")
    };
    check("a batch of edits in one file", &(0..9).map(replace).collect::<Vec<_>>());
    let patch = |line: u32| {
        let input = json!({ "input": format!("*** Begin Patch\n*** Update File: src/a.rs\n@@\n-{line}\n+x\n*** End Patch") });
        tool("apply_patch", input, true, "Success. Updated the following files:\nM src/a.rs")
    };
    check("a batch of patches", &(0..9).map(patch).collect::<Vec<_>>());
    let missed = |text: &str| {
        tool(
            "Edit",
            json!({ "file_path": "/w/a.rs", "old_string": text, "new_string": "x" }),
            false,
            "String to replace not found in file.",
        )
    };
    let read = tool("Read", json!({ "file_path": "/w/a.rs" }), true, "fn a() {}");
    check(
        "an edit that misses, and a look each time",
        &[missed("fn  a"), read.clone(), missed("fn a ()"), read, edit("/w/a.rs", "b")],
    );
    let todo = |done: u32| {
        tool(
            "TodoWrite",
            json!({ "todos": [{ "content": "a", "status": done }] }),
            true,
            "Todos have been modified successfully",
        )
    };
    check("a list of tasks that is kept", &(0..7).map(todo).collect::<Vec<_>>());
    let think =
        |thought: &str| tool("think", json!({ "thought": thought }), true, "Your thought has been logged.");
    check("thinking aloud", &["first", "second", "third", "fourth", "fifth"].map(think));
    let label = |issue: u32| {
        tool(
            "mcp__github__add_label",
            json!({ "issue_number": issue, "label": "bug" }),
            true,
            "{\"ok\":true,\"message\":\"label was added to the issue\"}",
        )
    };
    check("one label on many issues", &(1..9).map(label).collect::<Vec<_>>());
}

#[test]
fn several_agents_may_look_at_the_same() {
    let read = tool("Read", json!({ "file_path": "/w/README.md" }), true, "# A long story about the project");
    check(
        "each agent reads for itself",
        &["main", "one", "two", "three"].map(|agent| read.clone().by(agent)),
    );
    let test = sh("cargo test", 101, "test a::b ... FAILED\n1 failed");
    check(
        "each agent sees the failing test",
        &["main", "one", "two", "three"].map(|agent| test.clone().by(agent)),
    );
    let task = |prompt: &str| {
        tool(
            "Task",
            json!({ "description": "Look", "prompt": prompt }),
            true,
            "The agent has finished its work without findings.",
        )
    };
    check("several agents are sent out", &["a", "b", "c", "d", "e"].map(task));
    let twin = sh("cargo build", 101, "error[E0425]: cannot find value `x`").in_round(4);
    check("twins in one message", &times(3, &twin));
}

#[test]
fn asking_differently_is_work() {
    let error = "error[E0308]: mismatched types\n --> src/a.rs:4:5";
    check(
        "a failing build is looked at from another side",
        &[sh("cargo build", 101, error), sh("cargo check --all-targets", 101, error)],
    );
    let test = "FAILED tests/test_a.py::test_b - assert 1 == 2\n1 failed";
    check(
        "a failing test is asked for more",
        &[
            sh("pytest tests/test_a.py", 1, test),
            sh("pytest tests/test_a.py -vv --tb=long", 1, &format!("def test_b():\n{test}")),
        ],
    );
    let missing = "error: pathspec 'feature' did not match any file(s) known to git";
    check(
        "a branch is fetched first",
        &[
            codex("git checkout feature", 1, missing),
            codex("git fetch origin", 0, "From github.com:a/b"),
            codex("git checkout feature", 1, missing),
        ],
    );
    let help = |sub: &str| gemini(&format!("mytool {sub} --help"), 2, "error: unrecognized subcommand");
    check("subcommands are guessed", &["init", "new", "create"].map(help));
    let import = |module: &str| {
        cursor(
            &format!("python -c 'import {module}'"),
            1,
            &format!("ModuleNotFoundError: No module named '{module}'"),
        )
    };
    check("several modules are tried", &["numpy", "scipy", "pandas", "torch"].map(import));
    let ls = |dir: &str| {
        sh(&format!("ls {dir}"), 2, &format!("ls: cannot access '{dir}': No such file or directory"))
    };
    check("several directories are tried", &["/opt/a", "/srv/a", "/usr/local/a", "/home/a"].map(ls));
    let read = |file: &str| tool("Read", json!({ "file_path": file }), false, "File does not exist.");
    check(
        "several files are tried",
        &["/w/a.ts", "/w/a.tsx", "/w/src/a.ts", "/w/src/a.tsx", "/w/lib/a.ts"].map(read),
    );
    let port = |port: u32| {
        sh(&format!("python -m http.server {port}"), 1, "OSError: [Errno 98] Address already in use")
    };
    check("several ports are tried", &[8000, 8001, 8080].map(port));
    let booked = |flight: &str| {
        tool("book_flight", json!({ "flight": flight }), false, &format!("Error: flight {flight} is full"))
    };
    check("several flights are tried", &["A1", "B2", "C3", "D4"].map(booked));
    let paid = |card: &str| tool("pay", json!({ "card": card }), false, "Error: not enough credit");
    check("several cards are tried", &["visa_1", "visa_2", "gift_1", "gift_2", "gift_3"].map(paid));
    let code =
        |code: &str| tool("python", json!({ "code": code }), false, "IndexError: list index out of range");
    check("several pieces of code with one mistake", &["a[1]", "b[1]", "c[1]", "d[1]", "e[1]"].map(code));
}

#[test]
fn running_again_what_ran_well_is_work() {
    let bench = |time: u32| sh("cargo bench", 0, &format!("bench: {time} ns/iter"));
    check("a measurement is repeated", &[120, 118, 121, 119, 122].map(bench));
    let roll = |value: u32| codex("python roll.py", 0, &value.to_string());
    check("a die is rolled", &[3, 5, 3, 1, 6, 2].map(roll));
    let migrate = sh("python manage.py migrate", 0, "No migrations to apply.");
    check("a migration after each new model", &with_edits("/w/models.py", times(5, &migrate)));
    let commit =
        |number: u32| sh("git commit -am wip", 0, &format!("[main {number:07x}] wip\n 1 file changed"));
    check("many small commits", &(0..6).map(commit).collect::<Vec<_>>());
    let build = sh("npm run build", 0, "vite v5 building for production...\nbuilt in dist/");
    check(
        "a build before each deployment",
        &(0..5).flat_map(|_| [edit("/w/src/a.ts", "x"), build.clone()]).collect::<Vec<_>>(),
    );
    let restart = sh("systemctl restart app", 0, "");
    let logs = |line: u32| sh("journalctl -u app -n 3", 0, &format!("line {line}"));
    check(
        "a service that is restarted and watched",
        &(0..5).flat_map(|line| [restart.clone(), logs(line)]).collect::<Vec<_>>(),
    );
}

#[test]
fn answers_before_and_after_a_failure_are_not_the_same_one_over_and_over() {
    let green = "Test Files  2 passed (2)\nTests  8 passed (8)\nall of them in a long enough answer";
    let passes = sh("npx vitest run race", 0, green);
    let fails = sh(
        "npx vitest run race",
        1,
        "FAIL src/race.test.ts\nAssertionError: expected 'pending' to be 'done'",
    );
    let run: Vec<Ran> = (0..3).flat_map(|_| [passes.clone(), fails.clone()]).collect();
    let spoken = judged(&run).iter().any(|judged| {
        judged.after.reason.as_ref().is_some_and(|reason| reason.track.asks())
            && judged.after.rung > Rung::Note
    });
    assert!(!spoken);
}
