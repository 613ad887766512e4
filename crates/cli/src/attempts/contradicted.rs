//! A success that a check denies: it says that all went well, and it did not. That is a failure of its own. Its cause is its
//! own as well, unless what was fetched from elsewhere tells another one: an answer that was cut off, or the apology of a
//! server that is busy. JSON that was asked for and cannot be read is whole the next time, or never: it is asked for once more.

use unstuck_judge::rules::{Shape, Stream};
use unstuck_judge::{
    DENIED_BY_CHECK, Diagnosis, Effect, FixBy, Found, Kind, Observation, Outcome, Proof, Rules, Stage,
    suspicion,
};

use super::work::{CheckResult, Tried};
use crate::checks::EXPECT_JSON;

/// What a person has to do about it, by its key.
const ADVICE: &str = "do-not-believe";

/// Turns a success that a check denies into the failure that it is.
pub(crate) fn look(tried: &mut Tried, rules: &Rules) {
    let failed = tried.checks.iter().find_map(|checked| Some((checked, checked.result.found()?)));
    let is_claimed = tried.claims_success() || tried.denied_by_check();
    let Some((checked, found)) = failed.filter(|_| is_claimed) else { return };
    let evidence = Found { text: format!("{}: {found}", checked.check), line: 1, stream: Stream::Merged };
    let own = Diagnosis {
        kind: Kind::CheckFailed,
        stage: Some(Stage::Reported),
        confidence: 0.99,
        rule: DENIED_BY_CHECK.to_owned(),
        evidence: Some(evidence),
        subject: None,
        shape: Shape::Name,
        transient: false,
        fix_by: FixBy::Model,
        effect: Some(Effect::Applied),
        hint: None,
        advice: vec![ADVICE.to_owned()],
        proof: Proof::Proven,
        is_elsewhere: false,
    };
    let is_asked_for = checked.check.starts_with(EXPECT_JSON);
    let is_cut_off = matches!(checked.result, CheckResult::CutOff { .. }) && !is_asked_for;
    tried.diagnosis = match passing(&tried.observation, is_cut_off, rules) {
        Some(passing) => Diagnosis { rule: own.rule, evidence: own.evidence, ..passing },
        None if is_asked_for && checked.is_unread() => {
            Diagnosis { kind: Kind::ParseError, transient: true, fix_by: FixBy::Wait, effect: None, ..own }
        }
        None => own,
    };
    if tried.code == 0 {
        tried.code = 1;
    }
}

/// Why an answer that was fetched from elsewhere may be another one the next time.
fn passing(seen: &Observation, is_cut_off: bool, rules: &Rules) -> Option<Diagnosis> {
    if !suspicion::is_fetched(&seen.call) {
        return None;
    }
    let told = rules.diagnose(&Observation { outcome: Outcome::Exited { code: 1 }, ..seen.clone() });
    let cut_off = || Diagnosis {
        kind: Kind::Network,
        stage: Some(Stage::Reported),
        confidence: 0.8,
        transient: true,
        fix_by: FixBy::Wait,
        effect: None,
        advice: Vec::new(),
        ..told.clone()
    };
    match told.transient {
        true => Some(told),
        false => is_cut_off.then(cut_off),
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
        let checked = |held: &Result<(), &str>| match held {
            Ok(()) => CheckResult::Held,
            Err(found) => CheckResult::Failed { found: (*found).to_owned() },
        };
        check_call("make", "", code, checks.iter().map(checked).collect(), expected);
    }

    fn check_call(line: &str, printed: &str, code: i32, results: Vec<CheckResult>, expected: &str) {
        check_named("test -s app", line, printed, code, results, expected);
    }

    fn check_named(
        name: &str,
        line: &str,
        printed: &str,
        code: i32,
        results: Vec<CheckResult>,
        expected: &str,
    ) {
        let observation = Observation {
            call: Call::shell(line),
            outcome: Outcome::Exited { code },
            http_status: None,
            stdout: printed.as_bytes().to_vec(),
            stderr: Vec::new(),
            merged: Vec::new(),
        };
        let checked = |result| Checked { check: name.to_owned(), result, took: Duration::ZERO };
        let mut tried = Tried {
            diagnosis: Rules::built_in().diagnose(&observation),
            observation,
            took: Duration::ZERO,
            code: code as u8,
            checks: results.into_iter().map(checked).collect(),
            hindrance: None,
        };
        look(&mut tried, &Rules::built_in());
        let shown = tried.diagnosis.evidence.as_ref().map_or("", |found| &*found.text);
        assert_eq!(format!("{} {} {shown}", tried.code, tried.diagnosis.kind).trim_end(), expected);
    }

    #[test]
    fn a_success_that_a_check_denies_is_a_failure_with_its_own_words() {
        check(0, &[], "0 not_an_error");
        check(0, &[Ok(())], "0 not_an_error");
        check(0, &[Ok(()), Err("exit 1"), Err("exit 2")], "1 check_failed test -s app: exit 1");
    }

    #[test]
    fn an_answer_that_was_cut_off_or_tells_of_a_busy_server_may_be_another_one_the_next_time() {
        let check = |line: &str, printed: &str, is_cut: bool, expected: &str| {
            let found = "not so".to_owned();
            let result = if is_cut { CheckResult::CutOff { found } } else { CheckResult::Failed { found } };
            let expected = format!("1 {expected} test -s app: not so");
            check_call(line, printed, 0, vec![result], &expected);
        };
        let (fetch, busy) = ("curl -s https://a.example/x", "<title>503 Service Unavailable</title>");
        check(fetch, "[1,", true, "network");
        check(fetch, busy, false, "server_error");
        check(fetch, "{\"message\":\"API rate limit exceeded\"}", false, "rate_limited");
        check(fetch, "[]", false, "check_failed");
        check("cat page.html", busy, false, "check_failed");
        check("./tool", "[1,", true, "check_failed");
    }

    #[test]
    fn json_that_was_asked_for_and_cannot_be_read_is_malformed() {
        let check = |line: &str, printed: &str, result: CheckResult, expected: &str| {
            let expected = format!("1 {expected} expect-json: not so");
            check_named("expect-json", line, printed, 0, vec![result], &expected);
        };
        let found = || "not so".to_owned();
        let fetch = "curl -s https://a.example/x";
        check("cat a.json", "[1,", CheckResult::CutOff { found: found() }, "parse_error");
        check("cat a.json", "no", CheckResult::Unread { found: found() }, "parse_error");
        check(fetch, "[1,", CheckResult::CutOff { found: found() }, "parse_error");
        check("cat a.json", "[]", CheckResult::Failed { found: found() }, "check_failed");
        let busy = "<title>503 Service Unavailable</title>";
        check(fetch, busy, CheckResult::Unread { found: found() }, "server_error");
    }

    #[test]
    fn a_failure_keeps_its_own_cause_whatever_the_checks_say() {
        check(2, &[Err("exit 1")], "2 logical");
    }
}
