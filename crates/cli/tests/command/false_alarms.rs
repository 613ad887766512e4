//! Words that only look like errors, and calls that fail although they say that all is well.

use serde_json::{Value, json};

use crate::world::World;

/// A command line, its exit code, what it printed, and the kind that it is.
type Row = (&'static str, i32, &'static str, &'static str);

#[track_caller]
fn check(rows: &[Row]) {
    let line = |(command, exit, text, _): &Row| {
        json!({"command": command, "exit_code": exit, "text": text}).to_string() + "\n"
    };
    let lines: String = rows.iter().map(line).collect();
    let answers = World::empty().run(&["diagnose", "--jsonl"], lines).json_lines();
    assert_eq!(answers.len(), rows.len());
    let wrong: Vec<(&Row, &Value)> =
        rows.iter().zip(&answers).filter(|((.., kind), answer)| answer["kind"] != *kind).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn words_that_only_look_like_errors_are_none() {
    check(&[
        ("npm run lint", 0, "0 errors, 0 warnings\n", "not_an_error"),
        ("cargo build", 0, "warning: unused variable: `error`\n    Finished dev profile\n", "not_an_error"),
        ("make", 0, "Build succeeded.\n    0 Warning(s)\n    0 Error(s)\n", "not_an_error"),
        ("ls /var/log", 0, "access.log\nerror.log\nfatal.log\n", "not_an_error"),
        ("cat app.js", 0, "try { go() } catch (error) { console.error(error) }\n", "not_an_error"),
        ("git log --oneline", 0, "1a2b3c4 fix: connection refused on startup\n", "not_an_error"),
        ("git diff", 0, "+    raise PermissionError(\"permission denied\")\n", "not_an_error"),
        ("pytest -v", 0, "tests/test_net.py::test_timeout PASSED\n1 passed in 0.1s\n", "not_an_error"),
        (
            "cargo test",
            0,
            "test a_connection_refused_is_network ... ok\n\ntest result: ok. 1 passed; 0 failed\n",
            "not_an_error",
        ),
        ("go test ./...", 0, "ok  \texample.com/timeout\t0.003s\n", "not_an_error"),
        ("grep -rn 'No such file' src", 0, "src/a.rs:3:    \"No such file or directory\",\n", "not_an_error"),
        ("grep -rn 'command not found' . | head", 0, "./a.sh:1:echo command not found\n", "not_an_error"),
        ("echo 'error: nothing really'", 0, "error: nothing really\n", "not_an_error"),
    ]);
}

#[test]
fn an_exit_code_that_is_an_answer_is_no_error() {
    check(&[
        ("grep needle hay.txt", 1, "", "not_an_error"),
        ("rg needle", 1, "", "not_an_error"),
        ("cat hay.txt | grep needle", 1, "", "not_an_error"),
        ("diff a b", 1, "1c1\n< error\n---\n> no error\n", "not_an_error"),
        ("test -f x", 1, "", "not_an_error"),
        ("[ -d src ]", 1, "", "not_an_error"),
    ]);
}

#[test]
fn the_same_programs_can_fail() {
    check(&[
        ("grep needle gone.txt", 2, "grep: gone.txt: No such file or directory\n", "path_not_found"),
        ("diff a gone", 2, "diff: gone: No such file or directory\n", "path_not_found"),
    ]);
}

#[test]
fn a_failure_that_exits_with_0_is_one() {
    let page = "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n";
    check(&[
        (
            "cargo build 2>&1 | tail -n 5",
            0,
            "error[E0308]: mismatched types\nerror: could not compile `x` (lib) due to 1 previous error\n",
            "code_error",
        ),
        (
            "pytest 2>&1 | tail -3",
            0,
            "FAILED tests/test_a.py::test_b - assert 1 == 2\n1 failed, 2 passed in 0.1s\n",
            "test_failure",
        ),
        (
            "npm install 2>&1 | tail",
            0,
            "npm ERR! code ENOTFOUND\nnpm ERR! network request to https://r.example failed, reason: getaddrinfo ENOTFOUND r.example\n",
            "network",
        ),
        ("curl -s -H 'Accept: application/json' https://api.example/v1/items", 0, page, "server_error"),
    ]);
}
