//! Real commands, looked at as a run looks at them.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Parser;
use unstuck_exec::{Ending, Job};
use unstuck_judge::rules::Stream;
use unstuck_judge::{Call, Lang};

use super::{CheckArgs, Checks, Seen};
use crate::attempts::{CheckResult, Checked};

#[derive(Parser)]
struct Only {
    #[command(flatten)]
    checks: CheckArgs,
}

fn args(words: &[&str]) -> CheckArgs {
    Only::try_parse_from([&["run"], words].concat()).unwrap().checks
}

/// Runs a line and looks at it.
fn looked_at(line: &str, words: &[&str]) -> Vec<Checked> {
    let checks = Checks::new(&args(words), Lang::En).unwrap();
    let baseline = checks.before();
    let mut heard = checks.listen(&Call::shell(line));
    let job = Job::new("sh", ["-c", line]).without_input().capture_only();
    let run = job.run(|stream, bytes| match stream == unstuck_exec::Stream::Stderr {
        true => heard.feed(Stream::Stderr, bytes),
        false => heard.feed(Stream::Stdout, bytes),
    });
    let exit_code = match run.ending {
        Ending::Exited(code) => Some(code),
        Ending::Signalled(_)
        | Ending::TimedOut
        | Ending::NotFound
        | Ending::NotExecutable(_)
        | Ending::NotTried(_) => None,
    };
    let variables = [(OsString::from("UNSTUCK_ATTEMPT"), OsString::from("2"))];
    checks.look(&baseline, Seen { exit_code, heard, variables: &variables, until: None })
}

/// What was found, a line for each check: `-` where it holds.
fn said(line: &str, words: &[&str]) -> String {
    let told = looked_at(line, words);
    let told =
        told.iter().map(|checked| format!("{}: {}", checked.check, checked.result.found().unwrap_or("-")));
    told.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(line: &str, words: &[&str], expected: &str) {
    assert_eq!(said(line, words), expected, "{line} {words:?}");
}

#[test]
fn nothing_is_looked_at_where_nobody_asks() {
    check("echo hello", &[], "");
    check("false", &["--verify", "true", "--expect-json"], "");
}

#[test]
fn an_exit_code_is_expected_or_not() {
    check("exit 3", &["--expect-exit", "0,3"], "expect-exit 0,3: -");
    check("exit 4", &["--expect-exit", "0,3"], "expect-exit 0,3: it exited with 4");
    check("true", &["--expect-exit", "1"], "expect-exit 1: it exited with 0");
    check("kill -9 $$", &["--expect-exit", "1"], "expect-exit 1: it did not exit by itself");
    // Of a code that is none of them nothing more is asked.
    check("exit 4", &["--expect-exit", "3", "--verify", "false"], "expect-exit 3: it exited with 4");
    check(
        "exit 3",
        &["--expect-exit", "3", "--verify", "false"],
        "expect-exit 3: -\nverify false: it exited with 1",
    );
}

#[test]
fn an_answer_must_be_json() {
    check("echo '{\"a\":[1]}'", &["--expect-json"], "expect-json: -");
    check("true", &["--expect-json"], "expect-json: standard output is empty");
    check("printf '{\"a\":[1'", &["--expect-json"], "expect-json: the JSON ends too early");
    check(
        "echo '<html>'; echo '{}' >&2",
        &["--expect-json"],
        "expect-json: standard output is no JSON: expected a value at byte 0",
    );
    check("echo '{\"a\":[1]}'", &["--expect-json", ".a|length > 0"], "expect-json .a|length > 0: -");
    check("echo '{\"a\":[]}'", &["--expect-json", ".a|length > 0"], "expect-json .a|length > 0: it is 0");
    check("printf '{\"a\":1}\\n{\"a\":2}\\n'", &["--expect-json=.a > 1"], "expect-json .a > 1: it is 1");
    check(
        "echo '{\"ok\":true}'",
        &["--expect-json", ".ok", "--expect-json", ".id", "--expect-json"],
        "expect-json .ok: -\nexpect-json .id: it is null\nexpect-json: -",
    );
}

#[test]
fn long_json_is_followed_without_being_kept() {
    let long = "i=0; printf '[\"'; head -c 20000000 /dev/zero | tr '\\0' a; printf '\"]'";
    check(long, &["--expect-json"], "expect-json: -");
    let told = said(long, &["--expect-json", ".[0]"]);
    assert!(told.contains("longer than 8192 KB: what is in it was not looked at"), "{told}");
    check(&long.replace("\"]'", "'"), &["--expect-json"], "expect-json: the JSON ends too early");
}

#[test]
fn a_line_of_the_output_must_match() {
    check(
        "echo built in 12 ms >&2",
        &["--expect-output", r"built in \d+ ms"],
        r"expect-output built in \d+ ms: -",
    );
    check(
        "printf 'a\\r\\nlast'",
        &["--expect-output", "^a$", "--expect-output", "^last$"],
        "expect-output ^a$: -\nexpect-output ^last$: -",
    );
    check("echo done", &["--expect-output", "^Done"], "expect-output ^Done: no line of the output matches");
    let long = "head -c 300000 /dev/zero | tr '\\0' a; echo needle";
    check(long, &["--expect-output", "aneedle$"], "expect-output aneedle$: -");
}

#[test]
fn files_must_be_there_and_must_have_changed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let [full, empty, missing, dir] = ["full", "empty", "missing", "dir"].map(at);
    fs::write(&full, "x").unwrap();
    fs::write(&empty, "").unwrap();
    fs::create_dir(&dir).unwrap();
    let check_file = |path: &str, found: &str| {
        check("true", &["--expect-file", path], &format!("expect-file {path}: {found}"));
    };
    check_file(&full, "-");
    check_file(&empty, "it is empty");
    check_file(&missing, "it is not there");
    check_file(&dir, "the folder is empty");
    let check_changed = |line: String, path: &str, found: &str| {
        check(&line, &["--expect-changed", path], &format!("expect-changed {path}: {found}"));
    };
    check_changed(format!("cat {full}"), &full, "it is as it was before");
    check_changed(format!("echo y > {full}"), &full, "-");
    check_changed(format!("echo y > {dir}/new"), &dir, "-");
    check_changed(format!("rm {full}"), &full, "-");
    check_changed(format!("rm -f {full}"), &full, "it is as it was before");
}

#[test]
fn a_verify_command_has_the_last_word_and_a_limit_of_its_own() {
    check("true", &["--verify", "true"], "verify true: -");
    check(
        "true",
        &["--verify", "echo no; echo why >&2; exit 3"],
        "verify echo no; echo why >&2; exit 3: it exited with 3: no / why",
    );
    check("true", &["--verify", "test \"$UNSTUCK_ATTEMPT\" = 2"], "verify test \"$UNSTUCK_ATTEMPT\" = 2: -");
    check("true", &["--verify", "kill -9 $$"], "verify kill -9 $$: signal 9 ended it");
    // One that hangs, with what it started, is ended and fails; the next is not asked.
    let begun = Instant::now();
    check(
        "true",
        &["--verify", "sleep 60 & sleep 60", "--verify", "true", "--verify-timeout", "200ms"],
        "verify sleep 60 & sleep 60: it was not done within 200 ms",
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
    // It reads nothing, and its output is nobody's.
    check("true", &["--verify", "! read line"], "verify ! read line: -");
}

#[test]
fn a_success_that_says_otherwise_is_doubted() {
    let fetch = "curl() { printf '{\"items\":['; }; curl -s https://a.example";
    let told = looked_at("printf '{'", &[]);
    assert_eq!(told, []);
    let checks = Checks::new(&args(&[]), Lang::Zh).unwrap();
    let mut heard = checks.listen(&Call::shell("cargo test typo"));
    let output =
        b"running 0 tests\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out\n";
    heard.feed(Stream::Stdout, output);
    let seen = Seen { exit_code: Some(0), heard, variables: &[], until: None };
    let [doubt] = &checks.look(&checks.before(), seen)[..] else { panic!("one doubt") };
    assert_eq!(doubt.check, "suspicion no-tests.cargo");
    let CheckResult::Failed { found } = &doubt.result else { panic!("{doubt:?}") };
    assert!(found.starts_with("没有运行任何测试：test result: ok. 0 passed"), "{found}");
    // Whoever trusts it says so.
    for words in [&["--no-suspicion"][..], &["--expect-exit", "0"]] {
        let checks = Checks::new(&args(words), Lang::En).unwrap();
        let mut heard = checks.listen(&Call::shell("cargo test typo"));
        heard.feed(Stream::Stdout, output);
        let seen = Seen { exit_code: Some(0), heard, variables: &[], until: None };
        assert!(checks.look(&checks.before(), seen).iter().all(|checked| !checked.has_failed()));
    }
    assert_eq!(looked_at(fetch, &[]), []);
}

#[test]
fn what_makes_no_sense_is_told_before_anything_runs() {
    let error = |words: &[&str], lang: Lang| Checks::new(&args(words), lang).unwrap_err().in_words(lang);
    assert_eq!(
        error(&["--expect-json", ".a = 1"], Lang::En),
        "`.a = 1` is no test of JSON: a single `=` is not supported at character 4"
    );
    assert!(error(&["--expect-output", "("], Lang::En).starts_with("`(` is no pattern: "));
    assert_eq!(error(&["--verify", " "], Lang::Zh), "--verify 需要一条命令");
    for words in [["--verify-timeout", "0s"], ["--verify-timeout", "soon"], ["--expect-exit", "256"]] {
        assert!(Only::try_parse_from([&["run"], &words[..]].concat()).is_err(), "{words:?}");
    }
}

#[test]
fn a_check_is_asked_for_only_by_somebody() {
    let is_asked_for = |words: &[&str]| Checks::new(&args(words), Lang::En).unwrap().is_asked_for();
    assert!(!is_asked_for(&[]) && !is_asked_for(&["--verify-timeout", "1s"]));
    assert!(is_asked_for(&["--expect-json"]) && is_asked_for(&["--verify", "true"]));
    assert_eq!(args(&["--expect-json", "--expect-file", "a"]).expect_file, [PathBuf::from("a")]);
}
