//! What follows from a failure: who can fix it, what may have been done, may the same call run again, and the older words.

use unstuck_judge::{Again, Aliases, Call, Observation, Outcome, Rules, Verdict, nature};

/// Diagnoses what `command` printed and says all that follows in one line.
fn judged(command: &str, code: i32, stderr: &str) -> String {
    let observation = Observation {
        call: Call::shell(command),
        outcome: Outcome::Exited { code },
        http_status: None,
        stdout: Vec::new(),
        stderr: stderr.as_bytes().to_vec(),
        merged: Vec::new(),
    };
    let diagnosis = Rules::built_in().diagnose(&observation);
    let verdict = Verdict::of(&diagnosis, nature::of(&observation.call));
    let aliases = Aliases::of(&diagnosis, &verdict);
    let wait = match verdict.again {
        Again::After(wait) => format!(" {} s", wait.as_secs()),
        Again::Now | Again::IfChanged | Again::Never => String::new(),
    };
    let word = |word: Option<&'static str>| word.unwrap_or("-");
    format!(
        "{}: {}, {}, {}{wait} ({:?}) | {} {} {} {:?}",
        diagnosis.kind,
        verdict.fix_by,
        verdict.effect,
        verdict.again.word(),
        verdict.may_repeat(&diagnosis),
        word(aliases.error_type),
        word(aliases.category),
        aliases.tag,
        aliases.retryable,
    )
}

fn check(command: &str, code: i32, stderr: &str, expected: &str) {
    assert_eq!(judged(command, code, stderr), expected, "{command}: {stderr}");
}

#[test]
fn what_heals_by_itself_and_is_harmless_to_repeat_may_run_again_after_a_wait() {
    check(
        "curl -sS https://api.example.com/items",
        6,
        "curl: (6) Could not resolve host: api.example.com",
        "network: wait, nothing, after 3 s (Yes) | runtime temporary network_err Some(true)",
    );
    check(
        "curl -sSf https://api.example.com/items",
        22,
        "curl: (22) The requested URL returned error: 429\nRetry-After: 17",
        "rate_limited: wait, nothing, after 17 s (After(17s)) | runtime temporary rate_limited Some(true)",
    );
}

#[test]
fn what_may_have_happened_once_is_not_sent_twice() {
    check(
        "curl -sS -X POST -d @order.json https://shop.example.com/orders",
        56,
        "curl: (56) Recv failure: Connection reset by peer",
        "network: model, maybe, if_changed (Uncertain) | runtime temporary network_err Some(false)",
    );
}

#[test]
fn what_only_a_change_can_heal_is_not_repeated_before() {
    check(
        "cargo build",
        127,
        "bash: line 1: cargo: command not found",
        "command_not_found: environment, nothing, if_changed (IfChanged) | runtime environment exec_failed Some(false)",
    );
    check(
        "curl -sS http://localhost:8080/health",
        7,
        "curl: (7) Failed to connect to localhost port 8080: Connection refused",
        "network: environment, nothing, if_changed (IfChanged) | runtime environment network_err Some(false)",
    );
}

#[test]
fn a_call_that_is_wrong_in_itself_never_works() {
    check(
        "tar --frobnicate",
        64,
        "tar: unrecognized option '--frobnicate'",
        "validation: model, nothing, never (Never) | validation code exec_failed Some(false)",
    );
}

#[test]
fn an_unknown_cause_stays_unknown_in_every_vocabulary() {
    check(
        "./frobnicate",
        9,
        "flux",
        "unknown: model, maybe, if_changed (IfChanged) | exception - exec_failed None",
    );
}

#[test]
fn nothing_is_wrong_where_a_code_only_suggests_it() {
    check(
        "grep -q TODO main.rs",
        1,
        "",
        "not_an_error: nobody, nothing, never (Never) | - - success Some(false)",
    );
}

#[test]
fn what_nobody_here_can_retry_into_success_is_unrecoverable_in_the_older_words() {
    check(
        "python3 ask.py",
        1,
        "openai.RateLimitError: Error code: 429 - {'error': {'type': 'insufficient_quota'}}",
        "out_of_resources: person, maybe, if_changed (IfChanged) | runtime unrecoverable exec_failed Some(false)",
    );
    check(
        "./task run",
        1,
        "Error: invalid API key",
        "auth: person, nothing, if_changed (IfChanged) | runtime unrecoverable api_err Some(false)",
    );
    check(
        "./task run",
        1,
        "Error: this account has been suspended",
        "auth: person, nothing, if_changed (IfChanged) | runtime unrecoverable api_err Some(false)",
    );
    // A folder that may not be written, or a disk that is full, is a matter of these surroundings.
    check(
        "cp a /srv/a",
        1,
        "cp: cannot create regular file '/srv/a': Permission denied",
        "permission: person, maybe, if_changed (IfChanged) | runtime environment permission_err Some(false)",
    );
    check(
        "cp a /srv/a",
        1,
        "cp: error writing '/srv/a': No space left on device",
        "out_of_resources: environment, maybe, if_changed (IfChanged) | runtime environment exec_failed Some(false)",
    );
}
