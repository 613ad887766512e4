//! What is said of a call whose exit code nobody shows: a failure only where a program's own words prove it.

use unstuck_judge::{Call, Observation, Outcome, Rules};

/// `failed` where the words prove it, `fine` or `nothing said` where they do not.
fn check(command: &str, printed: &str, expected: &str) {
    let observation = Observation {
        call: Call::shell(command),
        outcome: Outcome::Exited { code: 0 },
        http_status: None,
        stdout: Vec::new(),
        stderr: Vec::new(),
        merged: printed.as_bytes().to_vec(),
    };
    let found = Rules::built_in().diagnose(&observation);
    let said = match found.ok() {
        Some(false) => "failed",
        Some(true) => "fine",
        None => "nothing said",
    };
    assert_eq!(said, expected, "{command}: {} by {:?}", found.kind, found.rule);
}

#[test]
fn a_question_failed_where_its_output_begins_with_the_program_s_own_complaint() {
    let refused =
        "The connection to the server localhost:8080 was refused - did you specify the right host or port?\n";
    check("kubectl get pods 2>&1 | head -2", refused, "failed");
    check("docker ps 2>&1 | head -2", "Cannot connect to the Docker daemon at unix:///a.sock.\n", "failed");
    // What was chosen to be printed may be anything.
    check("docker inspect -f '{{.State.Error}}' web | head -1", "port is already allocated\n", "fine");
    check("gh pr list --json title -q '.[].title' | head -2", "Fix: HTTP 401 after expiry\n", "fine");
    check("docker exec web cat err | head -2", "Cannot connect to the Docker daemon at unix:///a\n", "fine");
    // The end of an answer is no beginning.
    let event = "1m  Warning  Failed  pod/web  Failed to pull image \"a:9\": not found\n";
    check("kubectl get events | tail -1", event, "fine");
}

#[test]
fn a_check_failed_with_each_of_its_findings() {
    check("mypy src | tail -2", "a.py:3: error: Incompatible types\nFound 1 error in 1 file\n", "failed");
    check("npx eslint . | tail -3", "\n✖ 1 problem (1 error, 0 warnings)\n", "failed");
    check("npx eslint . | tail -3", "\n✖ 1 problem (0 errors, 1 warning)\n", "fine");
    check("clang-tidy a.c -- | tail -2", "a.c:3:7: warning: Call to 'strcpy' is insecure\n", "fine");
}

#[test]
fn an_exception_that_is_not_the_last_word_was_caught() {
    let raised = "  File \"/srv/job.py\", line 9, in run\n    fetch()\nConnectionResetError: [Errno 104] Connection reset by peer\n";
    check("python3 job.py 2>&1 | tail -4", raised, "failed");
    check(
        "python3 job.py 2>&1 | tail -4",
        &format!("{raised}fetched again, job 7 is done\n"),
        "nothing said",
    );
}

#[test]
fn nothing_failed_after_a_second_way_that_worked() {
    let missing = "npm error code EUSAGE\nnpm error The `npm ci` command can only install with an existing package-lock.json or\n";
    check("npm ci || npm install", &format!("{missing}added 2 packages\n"), "fine");
    check("npm ci || true", missing, "failed");
    check("npm ci || npm install 2>&1 | tail -3", &format!("{missing}added 2 packages\n"), "nothing said");
    let absent = "bash: line 1: pytest: command not found\n";
    check("pytest -q 2>&1 | tail -3", absent, "failed");
    check("pytest -q 2>&1 | tail -1 || echo missing", absent, "nothing said");
}

#[test]
fn a_head_that_the_client_was_told_to_show_is_the_answer_s_and_other_text_is_content() {
    let limited = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 120\r\n\r\n";
    check("curl -si https://api.example.com/x", limited, "failed");
    check("xh -h https://api.example.com/x", limited, "failed");
    check("curl -s https://example.com/limits.md", limited, "fine");
    check("curl -si https://api.example.com/x", "HTTP/2 200 \r\nretry-after: 120\r\n\r\nok\n", "fine");
    check("wget -qO- https://example.com/errors.txt | head -1", "E503 service unavailable\n", "nothing said");
}
