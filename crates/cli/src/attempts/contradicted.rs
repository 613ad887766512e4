//! A success that a check denies: it says that all went well, and it did not. That is a failure of its own, with a cause of
//! its own.

use unstuck_judge::rules::Stream;
use unstuck_judge::{Diagnosis, Effect, FixBy, Found, Kind, Stage};

use super::work::{CheckResult, Tried};

/// The name under which such failures are counted.
const RULE: &str = "check.failed";
/// What a person has to do about it, by its key.
const ADVICE: &str = "fix-test";

/// Turns a success that a check denies into the failure that it is.
pub(super) fn look(tried: &mut Tried) {
    let failed = tried.checks.iter().find_map(|checked| match &checked.result {
        CheckResult::Held => None,
        CheckResult::Failed { found } => Some(format!("{}: {found}", checked.check)),
    });
    let Some(text) = failed.filter(|_| tried.claims_success()) else { return };
    tried.diagnosis = Diagnosis {
        kind: Kind::TestFailure,
        stage: Some(Stage::Reported),
        confidence: 0.99,
        rule: RULE.to_owned(),
        evidence: Some(Found { text, line: 1, stream: Stream::Merged }),
        subject: None,
        transient: false,
        fix_by: FixBy::Model,
        effect: Some(Effect::Applied),
        hint: None,
        advice: vec![ADVICE.to_owned()],
    };
    if tried.code == 0 {
        tried.code = 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use unstuck_judge::{Call, Observation, Outcome, Rules};

    use super::super::work::Checked;
    use super::*;

    /// A command that ended with this code and these checks: what it is taken for, and the code that is passed on.
    fn check(code: i32, checks: &[Result<(), &str>], expected: &str) {
        let observation = Observation {
            call: Call::shell("make"),
            outcome: Outcome::Exited { code },
            http_status: None,
            stdout: Vec::new(),
            stderr: Vec::new(),
            merged: Vec::new(),
        };
        let checked = |held: &Result<(), &str>| Checked {
            check: "test -s app".to_owned(),
            result: match held {
                Ok(()) => CheckResult::Held,
                Err(found) => CheckResult::Failed { found: (*found).to_owned() },
            },
            took: Duration::ZERO,
        };
        let mut tried = Tried {
            diagnosis: Rules::built_in().diagnose(&observation),
            observation,
            took: Duration::ZERO,
            code: code as u8,
            checks: checks.iter().map(checked).collect(),
            hindrance: None,
        };
        look(&mut tried);
        let shown = tried.diagnosis.evidence.as_ref().map_or("", |found| &*found.text);
        assert_eq!(format!("{} {} {shown}", tried.code, tried.diagnosis.kind).trim_end(), expected);
    }

    #[test]
    fn a_success_that_a_check_denies_is_a_failure_with_its_own_words() {
        check(0, &[], "0 not_an_error");
        check(0, &[Ok(())], "0 not_an_error");
        check(0, &[Ok(()), Err("exit 1"), Err("exit 2")], "1 test_failure test -s app: exit 1");
    }

    #[test]
    fn a_failure_keeps_its_own_cause_whatever_the_checks_say() {
        check(2, &[Err("exit 1")], "2 logical");
    }
}
