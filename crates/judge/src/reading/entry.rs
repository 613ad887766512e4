//! Tells a line that is only shown (a commit, a row, a passed test, a routine log line) from what a program says of itself.

/// What stands before the name of a test that passed.
const PASSED_BEFORE: [&str; 8] = ["✓ ", "✔ ", "√ ", "✅", "ok ", "--- PASS", "--- SKIP", "PASS "];
/// What stands after it.
const PASSED_AFTER: [&str; 5] = [" ... ok", " PASSED", "..Passed", "..Skipped", " ... ignored"];
/// How the subject of a commit begins where it follows a convention.
const SUBJECT_WORDS: [&str; 9] =
    ["chore", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "Revert \""];
/// Levels of log lines that tell of no failure of the program that writes them.
const QUIET_LEVELS: [&str; 8] = ["DEBUG", "INFO", "NOTICE", "TRACE", "WARN", "WARNING", "debug", "info"];

/// Is the line an entry of something that is shown, so that its words prove nothing where no exit code vouches for them?
pub(super) fn is_entry(line: &str) -> bool {
    let line =
        line.trim_start_matches(|sign: char| sign.is_whitespace() || matches!(sign, '*' | '|' | '/' | '\\'));
    is_commit(line) || is_row(line) || is_passed_test(line) || is_routine_log(line)
}

/// Words that make what follows them a complaint.
const COMPLAINTS: [&str; 14] = [
    "hunk",
    "reject",
    "abort",
    "cannot",
    "could",
    "denied",
    "err!",
    "error",
    "exception",
    "fail",
    "fatal",
    "invalid",
    "unable",
    "refus",
];

/// Does a line that begins like this go on with a complaint? A program names itself, a place or an error first and then says
/// what is wrong; a sentence comes to it in its course.
pub(super) fn opens_complaint(before: &str) -> bool {
    let lower = before.to_ascii_lowercase();
    let is_prefix = || lower.split_whitespace().count() <= 4;
    is_prefix()
        || lower.contains(':')
        || lower.trim_end().ends_with("...")
        || COMPLAINTS.iter().any(|word| lower.contains(word))
}

/// `109d8a5 fix: …`, `[main 109d8a5] …`, `fix(api)!: …`, `Revert "…"`.
fn is_commit(line: &str) -> bool {
    let first = |text: &str| text.split([' ', ']']).next().is_some_and(is_hash);
    let summary = || {
        let inside = line.strip_prefix('[')?.split(']').next()?;
        Some(is_hash(inside.rsplit(' ').next()?))
    };
    let subject = || {
        let found = SUBJECT_WORDS.iter().find_map(|word| line.strip_prefix(word));
        found.is_some_and(|rest| {
            let after_scope = match rest.strip_prefix('(').and_then(|scope| scope.split_once(')')) {
                Some((_, after)) => after,
                None => rest,
            };
            line.starts_with("Revert \"") || after_scope.trim_start_matches('!').starts_with(": ")
        })
    };
    first(line) || summary().unwrap_or(false) || subject()
}

/// A short or whole name of a commit: hexadecimal with a digit in it.
fn is_hash(word: &str) -> bool {
    (7..=40).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// A numbered entry or a row of a table: `#31<tab>OPEN<tab>…`, `12 | …`, `3|…`, `1) "…"`, `- Fixed …`.
fn is_row(line: &str) -> bool {
    let number = line.trim_start_matches(['#', '!']);
    let after = number.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let numbered = after.len() < number.len();
    let is_reference = number.len() < line.len();
    line.bytes().filter(|byte| *byte == b'\t').count() >= 3
        || (numbered
            && (after.starts_with(['\t', '|']) || after.starts_with(" | ") || after.starts_with(") \"")))
        || (numbered && is_reference && after.starts_with([' ', '\t']))
        || line
            .strip_prefix("- ")
            .is_some_and(|rest| rest.starts_with(|sign: char| sign.is_ascii_uppercase()))
}

fn is_passed_test(line: &str) -> bool {
    let end = line.trim_end();
    PASSED_BEFORE.iter().any(|mark| line.starts_with(mark))
        || PASSED_AFTER.iter().any(|mark| end.ends_with(mark))
        || end.contains(" PASSED ")
}

/// A log line of a level that tells of no failure, or a line of the system's journal.
fn is_routine_log(line: &str) -> bool {
    let is_time = |word: &str| {
        word.bytes().filter(u8::is_ascii_digit).count() >= 4
            && word.bytes().all(|byte| byte.is_ascii_digit() || b":.,-/TZ[]+".contains(&byte))
    };
    let words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let mut after_time = words.skip_while(|word| is_time(word));
    let level = after_time.next().unwrap_or_default();
    // Tools write `WARNING: ` of what they go on to fail with; a log has a time before it, or no colon.
    if matches!(level, "WARNING:" | "WARN:") && line.starts_with(level) {
        return false;
    }
    let level = level.trim_matches(['[', ']', ':', '|', '(', ')']);
    QUIET_LEVELS.contains(&level) || is_journal(line)
}

/// `Jan 02 10:00:00 host node[812]: …`
fn is_journal(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let month = words.next().is_some_and(|word| {
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"].contains(&word)
    });
    let day =
        words.next().is_some_and(|word| word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit()));
    let time = words
        .next()
        .is_some_and(|word| word.len() == 8 && word.bytes().filter(|byte| *byte == b':').count() == 2);
    month && day && time
}

#[cfg(test)]
mod tests {
    use super::is_entry;

    #[test]
    fn what_is_only_shown_is_an_entry() {
        for line in [
            "109d8a5 fix: connection refused when the database is down",
            "* 0c3310e Resolve merge conflict in src/a.js",
            "| * 0c3310e Handle ENOENT",
            "[main 109d8a5] Fix error: not found",
            "[main (root-commit) 109d8a5] fatal: x",
            "fix(api)!: 429 too many requests",
            "fix: npm ERR! code E404",
            "Revert \"fatal: not a git repository is handled\"",
            "#31\tOPEN\tTypeError: x is not a function\tbug",
            "!12\tdev/web!12\tFix 401 Unauthorized\t(main)",
            "completed\tfailure\tHandle ENOENT: no such file\tCI\tmain",
            "  2 | FATAL:  password authentication failed",
            "3|disk I/O error",
            "1045\tAccess denied for user",
            "1) \"NOAUTH Authentication required.\"",
            "- Fixed: 429 Too Many Requests is retried",
            "  ✓ fails with ENOENT: no such file or directory (1 ms)",
            "test errors::connection_refused ... ok",
            "tests/test_net.py::test_refused PASSED [ 50%]",
            "trim trailing whitespace.......Passed",
            "--- PASS: TestNotFound (0.00s)",
            "INFO  fetched https://example.com: connection refused once",
            "2026-01-02 10:00:00,123 WARNING retrying after ReadTimeout",
            "[INFO] Chart.yaml: icon is recommended",
            "Jan 02 10:00:00 h node[812]: Error: connect ECONNREFUSED 127.0.0.1:5432",
        ] {
            assert!(is_entry(line), "{line}");
        }
    }

    #[test]
    fn what_a_program_says_of_itself_is_none() {
        for line in [
            "error: pathspec 'nope' did not match any file(s) known to git",
            "fatal: not a git repository (or any of the parent directories): .git",
            "src/main.c:1:19: error: expected ';'",
            "npm error code E404",
            "Error: connect ECONNREFUSED 127.0.0.1:5432",
            "FAILED tests/test_a.py::test_a - assert 1 == 2",
            "CONFLICT (content): Merge conflict in a",
            "[ERROR] Failed to execute goal",
            "2026/01/02 10:00:00 dial tcp 127.0.0.1:1: connect: connection refused",
            "test tests::adds ... FAILED",
            "E   assert 1 == 2",
            "  1:7  error  'x' is assigned a value but never used  no-unused-vars",
            "fixture 'db' not found",
            "(error) NOAUTH Authentication required.",
            "not ok 3 - adds",
            "deadbeef",
        ] {
            assert!(!is_entry(line), "{line}");
        }
    }
}
