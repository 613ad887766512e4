//! What Claude Code says in place of a result, and in a person's place. Its transcripts and its hooks say it in the same
//! words; what they say it around stays in their own files.

use unstuck_judge::Outcome;

/// What the host calls a failure, by how it begins to say so. First match wins.
const WORDINGS: &[(&str, Outcome)] = &[
    ("<tool_use_error>", Outcome::Rejected),
    ("InputValidationError", Outcome::Rejected),
    ("[Request interrupted by user", Outcome::Interrupted),
    ("The user doesn't want to", Outcome::Denied),
    ("Permission to use ", Outcome::Denied),
    ("Claude requested permissions ", Outcome::Denied),
    ("PreToolUse:", Outcome::Denied),
];

/// What begins a message that the client writes in the person's name.
const CLIENT: [&str; 8] = [
    "<task-notification>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "<ide_",
];

/// How a call ended that the host calls an error, and what of the text the tool itself said.
pub(crate) fn failure(text: &str) -> (Outcome, &str) {
    match exit_line(text) {
        Some((_, rest)) if rest.starts_with("Command timed out after ") => (Outcome::TimedOut, rest),
        Some((code, rest)) => (Outcome::Exited { code }, rest),
        None => (instead(text).unwrap_or(Outcome::ReportedFailure), text),
    }
}

/// What the host did instead of running the call, where the text begins to say so.
pub(crate) fn instead(text: &str) -> Option<Outcome> {
    WORDINGS.iter().find(|(words, _)| text.starts_with(words)).map(|(_, outcome)| *outcome)
}

/// Splits `Exit code 3\n…` into the code and what the command printed.
pub(crate) fn exit_line(text: &str) -> Option<(i32, &str)> {
    let text = text.strip_prefix("Error: ").unwrap_or(text).strip_prefix("Exit code ")?;
    let (code, rest) = text.split_once('\n').unwrap_or((text, ""));
    Some((code.trim().parse().ok()?, rest))
}

/// Whether the client wrote this in the person's name.
pub(crate) fn is_from_client(text: &str) -> bool {
    let text = text.trim_start();
    CLIENT.iter().any(|words| text.starts_with(words))
}
