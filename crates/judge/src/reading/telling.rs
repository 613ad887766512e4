//! Picks the line that tells most of a failure whose words no rule knows: the innermost one that says something.

/// So many lines before the end are looked at.
const LINES: usize = 60;
/// A line with fewer letters shows nothing: `2`, `r`, `}`.
const LETTERS: usize = 4;
/// How lines begin that only repeat that something failed, or where.
const REPEATS: [&str; 26] = [
    "at ",
    "caused by: process",
    "command failed with exit code",
    "elifecycle",
    "error command failed with exit code",
    "error: process completed with exit code",
    "error: recipe ",
    "error: script ",
    "exception group traceback",
    "exit status ",
    "file \"",
    "for more information",
    "in file included from",
    "info visit ",
    "lifecycle script ",
    "node.js v",
    "note: ",
    "npm err!",
    "npm error",
    "npm warn",
    "process completed with exit code",
    "stack trace",
    "task: failed to run task",
    "traceback (most recent call last)",
    "try --help",
    "usage: ",
];
/// What a line says that complains.
const COMPLAINTS: [&str; 17] = [
    "abort",
    "assert",
    "cannot",
    "can't",
    "could not",
    "denied",
    "error",
    "exception",
    "expected",
    "fail",
    "fatal",
    "invalid",
    "missing",
    "mismatch",
    "not found",
    "refus",
    "unable",
];

/// Returns the line that tells most, counted from the first: the last one that complains, else the last one that says anything.
pub fn telling_line(text: &str) -> Option<(usize, &str)> {
    let lines: Vec<(usize, &str)> = text.lines().enumerate().collect();
    let end = lines[lines.len().saturating_sub(LINES)..].iter().rev();
    let telling = || end.clone().filter(|(_, line)| says_something(line));
    let complaint = telling().find(|(_, line)| complains(line));
    complaint.or_else(|| telling().next()).map(|(number, line)| (*number, line.trim()))
}

/// Does the line say what is wrong?
pub(crate) fn complains(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    COMPLAINTS.iter().any(|word| lower.contains(word))
}

/// Does the line say anything but that something failed, or where?
pub(crate) fn says_something(line: &str) -> bool {
    // What was written over itself shows only its last state.
    let shown = line.rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or_default();
    let lower = shown.trim().to_ascii_lowercase();
    let lower = lower.trim_start_matches(['[', '>', '#', '*', '+', ' ']);
    let is_make = lower.starts_with("make") && lower.contains("***") && lower.contains("error ");
    let is_place = lower.starts_with("--> ")
        || lower.starts_with('^')
        || lower.starts_with('~')
        || lower.starts_with('|');
    shown.chars().filter(|sign| sign.is_alphabetic()).count() >= LETTERS
        && !is_make
        && !is_place
        && !REPEATS.iter().any(|start| lower.starts_with(start))
        && !lower.starts_with("ninja: build stopped")
        && !lower.starts_with("generatedmessage: ")
}

#[cfg(test)]
mod tests {
    use super::telling_line;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(telling_line(text).map(|(_, line)| line), expected, "{text}");
    }

    #[test]
    fn the_innermost_line_that_complains_is_quoted() {
        check(
            "cc -o t t.c\n./t\nFAIL 2*3: expected 6, got 5\nmake: *** [Makefile:6: test] Error 1\n",
            Some("FAIL 2*3: expected 6, got 5"),
        );
        check("checking 3 files\nmissing: a\n{\n  ok: false\n}\n\nNode.js v20.11.0\n", Some("missing: a"));
        check(
            "Error: boom\n    at f (/app/a.js:1:7)\n    at node:internal/main:23:47\n\nNode.js v20\n",
            Some("Error: boom"),
        );
        check("config.yml: key port is missing\n2\n", Some("config.yml: key port is missing"));
        check("deploy: version mismatch\ndone in 3 s\n", Some("deploy: version mismatch"));
    }

    #[test]
    fn where_nothing_complains_the_last_words_are_quoted_and_what_shows_nothing_is_not() {
        check("first step\nsecond step\n", Some("second step"));
        check("counted\n2\n", Some("counted"));
        check("2\n", None);
        check("r\n", None);
        check("", None);
    }
}
