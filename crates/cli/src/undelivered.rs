//! A command whose output we could not write: that is a failure of its own, whatever the command's exit code says.

use unstuck_exec::Undelivered;
use unstuck_judge::rules::Stream;
use unstuck_judge::{Call, Diagnosis, Outcome, Rules};

/// The exit code of what we could not do.
pub(crate) const CODE: u8 = 125;
/// The outcome that goes with it.
pub(crate) const OUTCOME: Outcome = Outcome::Exited { code: CODE as i32 };

/// Returns what went wrong, in a line.
pub(crate) fn complaint(lost: &Undelivered) -> String {
    let output = match lost.stream {
        unstuck_exec::Stream::Stdout | unstuck_exec::Stream::Merged => "standard output",
        unstuck_exec::Stream::Stderr => "standard error",
    };
    format!("unstuck: could not write {output}: {}", lost.why)
}

/// Judges it by that line alone: what the command printed says nothing of it.
pub(crate) fn diagnosis(rules: &Rules, call: &Call, complaint: &str) -> Diagnosis {
    let mut reading = rules.read();
    reading.feed(Stream::Stderr, complaint.as_bytes());
    rules.conclude(reading, call, OUTCOME, None)
}
