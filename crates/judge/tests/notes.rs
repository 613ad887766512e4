//! What is noted beside a failed result does not contradict the advice that stands with it.

use unstuck_judge::ladder::{Decision, Reason, Rung, Track};
use unstuck_judge::{Condition, Kind, Lang};

fn check(kind: Kind, passes: bool, condition: Condition, may_pass: bool) {
    let reason = Reason {
        track: Track::Repeat,
        count: 1,
        kind,
        rule: String::new(),
        line: String::new(),
        condition: condition.clone(),
        passes,
    };
    let text = Decision { rung: Rung::Note, reason: Some(reason) }.text(Lang::En).unwrap_or_default();
    assert_eq!(text.contains("may pass by itself"), may_pass, "{kind}, {condition:?}: {text}");
}

#[test]
fn only_a_cause_that_passes_is_said_to_pass() {
    check(Kind::Network, true, Condition::Unseen, true);
    check(Kind::ServerError, true, Condition::Unseen, true);
    // The same limit ends the same way.
    check(Kind::Timeout, false, Condition::Unseen, false);
    check(Kind::Network, true, Condition::PortClosed(5432), false);
    check(Kind::ResourceBusy, false, Condition::PortTaken(3000), false);
}
