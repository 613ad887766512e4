//! Agents that go on with what cannot work. Somebody says so in time.

use serde_json::{Value, json};

use super::{Ran, edit, judged, sh, tool};
use crate::ladder::Rung;

/// With the call number `by` of a run, counted from 1, at the latest it is said that a repeat does not help.
fn check(what: &str, by: usize, run: &[Ran]) {
    let steps_in =
        judged(run).iter().position(|judged| judged.before.rung.max(judged.after.rung) > Rung::Note);
    assert!(steps_in.is_some_and(|at| at < by), "{what}: first word with call {steps_in:?}");
}

fn again(count: usize, ran: Ran) -> Vec<Ran> {
    vec![ran; count]
}

fn codex(line: &str, code: i32, output: &str) -> Ran {
    Ran { code: Some(code), ..tool("shell", json!({ "command": ["bash", "-lc", line] }), code == 0, output) }
}

fn failed(name: &str, input: Value, output: &str) -> Ran {
    tool(name, input, false, output)
}

#[test]
fn what_is_missing_stays_missing() {
    let missing = "bash: line 1: cmake: command not found";
    check(
        "a program, in other words",
        2,
        &[codex("cmake ..", 127, missing), codex("cmake .. 2>&1 | tail -5", 127, missing)],
    );
    let module = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'django'";
    let migrate = failed("run_shell_command", json!({ "command": "python manage.py migrate" }), module);
    check("a module", 2, &again(3, migrate));
    check(
        "a program that another agent missed",
        2,
        &[
            sh("terraform plan", 127, "terraform: command not found"),
            sh("terraform init", 127, "terraform: command not found").by("sub"),
        ],
    );
    let unknown = |query: &str| {
        failed("web_search", json!({ "query": query }), "Error: No such tool available: web_search")
    };
    check("a tool that nobody has", 2, &[unknown("a"), unknown("b")]);
    let pip = |line: &str| {
        sh(
            line,
            1,
            "ERROR: Could not find a version that satisfies the requirement tensorflow-gpuu (from versions: none)\nERROR: No matching distribution found for tensorflow-gpuu",
        )
    };
    check(
        "a package that does not exist",
        3,
        &[
            pip("pip install tensorflow-gpuu"),
            pip("pip install tensorflow-gpuu --no-cache-dir"),
            pip("pip install -q tensorflow-gpuu"),
        ],
    );
    let fetch = |prompt: &str| {
        failed(
            "WebFetch",
            json!({ "url": "https://example.com/x", "prompt": prompt }),
            "Request failed with status code 404",
        )
    };
    check("a page, whatever is asked about it", 2, &[fetch("What?"), fetch("Who?"), fetch("Why?")]);
}

#[test]
fn what_is_refused_stays_refused() {
    let create = failed(
        "mcp__jira__create_issue",
        json!({ "project": "X", "summary": "s" }),
        "MCP error -32602: Invalid arguments: issuetype is required",
    );
    check("an argument that is required", 2, &again(3, create));
    let edit = failed(
        "search_replace",
        json!({ "file_path": "/w/a.ts", "old_string": "foo", "new_string": "bar" }),
        "The string to replace was not found in the file.",
    );
    check("a text that is not there", 2, &again(3, edit));
    let click = failed(
        "mcp__playwright__browser_click",
        json!({ "ref": "e99", "element": "Save" }),
        "Error: Ref e99 not found in the current page snapshot. Try capturing new snapshot.",
    );
    check("a button that is gone", 2, &again(4, click));
    let push = "To github.com:a/b.git\n ! [rejected]        main -> main (non-fast-forward)\nerror: failed to push some refs";
    check("a push behind the others", 2, &again(3, sh("git push origin main", 1, push)));
    let rebase =
        "a.rs: needs merge\nYou must edit all merge conflicts and then\nmark them as resolved using git add";
    check("a rebase with open conflicts", 2, &again(3, sh("git rebase --continue", 1, rebase)));
    let sudo = |line: &str| {
        sh(line, 1, "sudo: a terminal is required to read the password; either use the -S option")
    };
    check("sudo without a terminal", 2, &[sudo("sudo apt-get update"), sudo("sudo systemctl restart nginx")]);
    let psql = "psql: error: connection to server at \"db\", port 5432 failed: FATAL:  password authentication failed for user \"app\"";
    check("a password that is wrong", 2, &again(3, sh("psql -h db -U app -c 'select 1'", 2, psql)));
    let install = |line: &str| {
        sh(line, 1, "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree")
    };
    check(
        "versions that exclude each other",
        3,
        &[install("npm install"), install("npm install --loglevel verbose"), install("npm  install 2>&1")],
    );
    let up = "Error response from daemon: driver failed programming external connectivity: Bind for 0.0.0.0:5432 failed: port is already allocated";
    check("a port that is taken", 3, &again(4, sh("docker compose up -d", 1, up)));
    let lock = "Error: Error acquiring the state lock\n\nLock Info:\n  ID:        9db590f1-b6fe-c5f2\n  Who:       ci@runner-7";
    check("a lock, without patience", 3, &again(4, sh("terraform apply -auto-approve", 1, lock)));
}

#[test]
fn what_was_answered_stays_answered() {
    let read =
        tool("read_file", json!({ "path": "/w/a.rs" }), true, "fn main() {\n    println!(\"hello\");\n}");
    check("one file, over and over", 3, &again(4, read.clone()));
    let search = tool("grep_search", json!({ "query": "main" }), true, "src/a.rs:1:fn main() {");
    check(
        "two looks in turn",
        5,
        &[read.clone(), search.clone(), read.clone(), search.clone(), read, search],
    );
    let pods = |age: u32| {
        sh(
            "kubectl get pods",
            0,
            &format!(
                "NAME    READY   STATUS             RESTARTS   AGE\nweb-1   0/1     ImagePullBackOff   0          {age}m"
            ),
        )
    };
    check("a pod that waits for an image nobody has", 4, &(1..6).map(pods).collect::<Vec<_>>());
}

#[test]
fn what_has_no_effect_has_no_effect() {
    let test = sh("node test.js", 1, "AssertionError: expected 3 to equal 4\n    at test.js:10");
    let laps: Vec<Ran> =
        (0..8).flat_map(|lap| [test.clone(), edit("/w/dist/a.js", &lap.to_string())]).collect();
    check("edits of a file that is not loaded", 13, &laps);
    let dead = ["make", "ls", "pwd", "ls -la", "echo hi"].map(|line| sh(line, 1, ""));
    check("a shell whose directory is gone", 4, &dead);
    let opaque =
        |value: u32| failed("run_query", json!({ "spec": value }), "'NoneType' object is not iterable");
    check("a tool that fails inside, whatever it is given", 3, &[opaque(1), opaque(2), opaque(3), opaque(4)]);
}
