//! Every sign with output that has it and with output that looks like it and is fine.

use super::row::ROWS;
use super::{Stream, Watch};
use crate::Call;

/// What a line and what it printed is suspected of; `-` where it is nothing. The output goes to one of the streams, whole and
/// in small pieces, which must not matter.
fn suspected(line: &str, output: &str) -> &'static str {
    let call = Call::shell(line);
    let found = |stream: Stream, step: usize| {
        let mut watch = Watch::of(&call);
        output.as_bytes().chunks(step).for_each(|piece| watch.feed(stream, piece));
        watch.conclude()
    };
    let whole = found(Stream::Stdout, output.len().max(1));
    assert_eq!(found(Stream::Stdout, 7), whole, "{line} in pieces");
    if let Some(found) = &whole {
        assert!(!found.evidence.is_empty() && !found.why(crate::Lang::Zh).is_ascii(), "{found:?}");
    }
    whole.map_or("-", |found| found.id())
}

const GATEWAY: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body></html>\r\n";
const CHALLENGE: &str =
    "<!DOCTYPE html><html lang=\"en-US\"><head><title>Just a moment...</title></head><body></body></html>";
const HOME_PAGE: &str = "<!doctype html><html><head><title>Example Domain</title></head><body><h1>404 ways to cook</h1></body></html>";
const NOTHING_RAN: &str = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 12 filtered out; finished in 0.00s\n";
const SOME_RAN: &str =
    "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";

/// A line, what it printed, and the sign.
const CASES: &[(&str, &str, &str)] = &[
    ("curl -s https://api.a.example/items", GATEWAY, "error-page"),
    ("timeout 9 curl https://a.example", CHALLENGE, "error-page"),
    (
        "wget -qO- https://a.example",
        "\n<!DOCTYPE HTML><html><head><title>Error 503</title></head></html>",
        "error-page",
    ),
    ("http GET a.example", "<html><body><h1>Service Unavailable</h1></body></html>", "error-page"),
    ("curl https://a.example", "<html><head><title>404 ways to cook</title></head></html>", "-"),
    ("curl https://a.example", "<html><head><title>Errors and how to read them</title></head></html>", "-"),
    ("cat error.html", GATEWAY, "-"),
    ("curl -s https://a.example | grep title", GATEWAY, "-"),
    ("curl -s https://a.example", "see <html><title>502 Bad Gateway</title>", "-"),
    ("curl -s https://a.example/items", "{\"items\":[{\"id\":1},{\"id\":", "cut-json"),
    ("gh api repos/a/b", "[1,2", "cut-json"),
    ("curl -s https://a.example/items", "{\"items\":[]}", "-"),
    ("curl -s https://a.example/items", "[INFO] nothing", "-"),
    ("curl -s https://a.example/items | head -c 10", "{\"items\":[", "-"),
    ("curl -r 0-9 https://a.example/items", "{\"items\":[", "-"),
    ("head -c 10 items.json", "{\"items\":[", "-"),
    ("curl -s https://a.example/items; echo", "{\"items\":[\n", "-"),
    ("curl -so items.json https://a.example/items", "", "-"),
    ("cargo test my_tset", NOTHING_RAN, "no-tests.cargo"),
    ("cd app && cargo test --workspace", NOTHING_RAN, "no-tests.cargo"),
    ("cargo test 2>&1 | tail -4", NOTHING_RAN, "-"),
    ("cargo build", NOTHING_RAN, "-"),
    (
        "cargo test -- --ignored",
        "test result: ok. 0 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out",
        "-",
    ),
    ("go test ./...", "?   \ta.example/m\t[no test files]\n", "no-tests.go"),
    ("go test -run Typo ./...", "ok  \ta.example/m\t0.002s [no tests to run]\n", "no-tests.go"),
    ("go test ./...", "?   \ta.example/m\t[no test files]\nok  \ta.example/m/x\t0.12s\n", "-"),
    ("go test ./...", "ok  \ta.example/m/x\t(cached)\tcoverage: 80.0% of statements\n", "-"),
    ("python3.12 -m unittest", "\n----\nRan 0 tests in 0.000s\n\nOK\n", "no-tests.python"),
    ("pytest -q tests || true", "\nno tests ran in 0.01s\n", "no-tests.python"),
    ("uv run pytest", "===== no tests ran in 0.01s =====\n", "no-tests.python"),
    ("python -m unittest", "Ran 3 tests in 0.000s\n\nOK\n", "-"),
    ("pytest", "==== 2 passed, 1 warning in 0.01s ====\n", "-"),
    ("npx jest typo", "No tests found, exiting with code 0\n", "no-tests.javascript"),
    ("npm test", "\n> mocha\n\n\n  0 passing (1ms)\n", "no-tests.javascript"),
    ("node --test", "\u{1b}[34mℹ tests 0\u{1b}[39m\nℹ pass 0\n", "no-tests.javascript"),
    ("jest --passWithNoTests", "No tests found, exiting with code 0\n", "-"),
    ("npm test", "\n  4 passing (1ms)\n  1 pending\n", "-"),
    ("npm run build", "vite v5 building\n✓ built in 1s\n", "-"),
    ("bundle exec rspec", "Finished in 0.0002 seconds\n0 examples, 0 failures\n", "no-tests.ruby"),
    ("rspec", "10 examples, 0 failures\n", "-"),
    (
        "dotnet test --filter Typo",
        "No test matches the given testcase filter `Typo` in /a/b.dll\n",
        "no-tests.dotnet",
    ),
    (
        "dotnet test",
        "No test is available in /a.dll. Make sure\nPassed!  - Failed: 0, Passed: 3, Skipped: 0, Total: 3\n",
        "-",
    ),
    ("vendor/bin/phpunit", "PHPUnit 9\n\nNo tests executed!\n", "no-tests.php"),
    ("phpunit", "OK (12 tests, 30 assertions)\n", "-"),
    ("mvn -q test", "[INFO] No tests to run.\n", "no-tests.maven"),
    ("mvn test", "[INFO] No tests to run.\n[INFO] Tests run: 4, Failures: 0, Errors: 0, Skipped: 0\n", "-"),
    ("mvn package", "[INFO] No tests to run.\n", "-"),
    ("ctest", "Test project /b\nNo tests were found!!!\n", "no-tests.ctest"),
    ("ctest", "100% tests passed, 0 tests failed out of 3\n", "-"),
    (
        "swift test",
        "\t Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.000) seconds\n",
        "no-tests.swift",
    ),
    (
        "swift test",
        "Executed 0 tests, with 0 failures\n✔ Test run with 4 tests passed after 0.001 seconds.\n",
        "-",
    ),
    ("deno test", "\nok | 0 passed | 0 failed (1ms)\n", "no-tests.deno"),
    ("deno test", "\nok | 3 passed (2 steps) | 0 failed (1ms)\n", "-"),
    (
        "psql -f up.sql app",
        "CREATE TABLE\npsql:up.sql:3: ERROR:  relation \"a\" already exists\n",
        "errors.psql",
    ),
    ("psql -c 'select 1'", " ERROR:  is a column\n CREATE TABLE\n", "-"),
    (
        "sqlcmd -i up.sql",
        "Msg 208, Level 16, State 1, Server a, Line 1\nInvalid object name 'x'.\n",
        "errors.sqlcmd",
    ),
    ("sqlcmd -i up.sql", "Msg 0, Level 0, State 1\n(1 rows affected)\n", "-"),
    ("sqlplus u @up.sql", "ORA-00942: table or view does not exist\n", "errors.sqlplus"),
    ("sqlplus u @up.sql", "Table created.\n", "-"),
    ("redis-cli SETT a 1", "ERR unknown command 'SETT'\n", "errors.redis"),
    ("redis-cli GET a", "\"ERR is what I stored\"\n", "-"),
    (
        "sudo apt-get update",
        "Err:1 http://a.example x\nW: Some index files failed to download. They have been ignored, or old ones used instead.\n",
        "errors.apt-update",
    ),
    ("apt-get update", "Reading package lists...\n", "-"),
    (
        "adb install a.apk",
        "Performing Streamed Install\nFailure [INSTALL_FAILED_OLDER_SDK]\n",
        "errors.adb-install",
    ),
    ("adb install a.apk", "Performing Streamed Install\nSuccess\n", "-"),
    ("launchctl load a.plist", "Load failed: 5: Input/output error\n", "errors.launchctl"),
    ("launchctl load a.plist", "", "-"),
    ("echo '0 passing'", "  0 passing (1ms)\n", "-"),
];

#[test]
fn a_success_is_doubted_only_where_its_output_says_so() {
    for (line, output, expected) in CASES {
        assert_eq!(suspected(line, output), *expected, "{line}\n{output}");
    }
    assert_eq!(suspected("curl https://a.example", HOME_PAGE), "-");
    // Of several suites, one that ran is enough, whichever it is.
    for output in [[NOTHING_RAN, SOME_RAN].concat(), [SOME_RAN, NOTHING_RAN].concat()] {
        assert_eq!(suspected("cargo test", &output), "-");
    }
}

#[test]
fn every_sign_is_shown_to_speak_and_to_be_silent() {
    for row in ROWS {
        assert!(CASES.iter().any(|(_, _, id)| *id == row.id), "{} is never met", row.id);
        let is_about = |line: &str| {
            let script = crate::shell::Script::parse(line);
            script.commands().iter().any(|command| row.is_about(command))
        };
        let is_silent = CASES.iter().any(|(line, _, id)| *id == "-" && is_about(line));
        assert!(is_silent, "{} is never silent", row.id);
        if let super::Sign::Lines { bad, good, .. } = &row.sign {
            for pattern in [Some(*bad), *good].into_iter().flatten() {
                assert!(regex_lite::Regex::new(pattern).is_ok(), "{}: {pattern}", row.id);
            }
        }
    }
}

#[test]
fn what_ordinary_programs_print_is_never_doubted() {
    let ordinary = "error: something\nERROR:  x\n0 passing\nNo tests found\n{\"a\":\nno tests ran in 1s\n";
    for line in
        ["cat log", "make", "git status", "npm ci", "cargo build", "grep -r error .", "ls", "docker ps"]
    {
        assert_eq!(suspected(line, ordinary), "-", "{line}");
    }
}
