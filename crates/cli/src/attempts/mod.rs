//! Sends a call, looks at what came of it, and sends it again where that may help: the loop of every door that runs things
//! itself. What may be sent again, how often and when is the judge's to say, with what the store remembers; a door only makes
//! single attempts. Our own faults never keep anything from running.

pub(crate) mod clock;
pub(crate) mod contradicted;
mod edges;
mod logbook;
mod pause;
mod spoken;
mod story;
mod work;

use std::env;
use std::time::{Duration, Instant};

use unstuck_judge::{Outcome, Rules};
use unstuck_store::{Retry, Series};

pub(crate) use edges::Edges;
pub(crate) use logbook::{Logbook, first_attempt};
pub(crate) use spoken::verify_line;
pub(crate) use story::{Attempt, End, Story, WireStory};
pub(crate) use work::{CheckResult, Checked, Hindrance, Tried, Turn, Work};

use crate::cellar::{self, Cellar};
use crate::exit::CommandError;
use crate::moment;
use crate::ui::Ui;
use pause::Pause;

/// The variable that hands the session on to whatever is started.
pub(crate) const SESSION_VARIABLE: &str = "UNSTUCK_SESSION_ID";
/// The variable that says which attempt it is.
pub(crate) const ATTEMPT_VARIABLE: &str = "UNSTUCK_ATTEMPT";

/// On what terms something is sent.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// The door: `run`, `http`, `agent`.
    pub(crate) door: &'static str,
    /// Whose policy counts: the name of an agent program, or `main`.
    pub(crate) agent: String,
    /// The session that all attempts share.
    pub(crate) session: String,
    /// How many retries at most, where the person said so.
    pub(crate) retries: Option<u8>,
    /// Whether a person asked for retries: then what is only a guess, and a check that did not hold, is tried as well.
    pub(crate) tries_guesses: bool,
    /// The time that all attempts and waits share, where the person said so.
    pub(crate) deadline: Option<Duration>,
    /// How long the first attempt may take.
    pub(crate) limit: Option<Duration>,
    /// The person says that it does no harm to send it twice.
    pub(crate) idempotent: bool,
    /// What is said while it goes on.
    pub(crate) aloud: Aloud,
}

/// What is said on standard error while attempts are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aloud {
    /// A line for each attempt and each retry, and on a terminal how long it still waits.
    Lines,
    /// Nothing.
    Nothing,
}

/// The session that a person named, or that whoever started us is in, or a new one.
pub(crate) fn session(door: &str, named: Option<&str>) -> String {
    let inherited = || env::var(SESSION_VARIABLE).ok();
    let named = named.map(str::to_owned).or_else(inherited).filter(|name| !name.trim().is_empty());
    named.unwrap_or_else(|| format!("{door}-{:016x}", cellar::random()))
}

/// Reads a time limit: a span such as `90s` or `2m`, or a number of seconds that can pass.
pub(crate) fn time_limit(text: &str) -> Result<Duration, String> {
    let seconds = || text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let limit = moment::parse_span(text).ok().or_else(seconds);
    limit
        .filter(|limit| !limit.is_zero())
        .ok_or_else(|| "expected a time above 0, such as 90s, 2m or a number of seconds".to_owned())
}

/// Sends it, and again where that may help.
pub(crate) fn carry_out(
    ui: &mut Ui,
    cellar: &Cellar,
    rules: &Rules,
    terms: &Terms,
    work: &mut dyn Work,
) -> Result<Story, CommandError> {
    let cleaner = cellar.cleaner();
    let mut logbook = Logbook::new(cellar, &cleaner, terms, ui.lang());
    work.prepare(&logbook.key(1))?;
    let begun = Instant::now();
    let mut pause = Pause::new(terms.aloud, ui.lang());
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut waited = Duration::ZERO;
    let mut limit = terms.limit;
    let end = loop {
        let number = u32::try_from(attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
        let (call, mut begins) = (work.call(), Some(cellar::now()));
        let left = terms.deadline.map(|deadline| deadline.saturating_sub(begun.elapsed()));
        let allowed = [limit, left].into_iter().flatten().min();
        let last = attempts.last();
        let turn = Turn {
            number,
            session: &terms.session,
            limit: allowed,
            last: last.map(|attempt| &attempt.report),
        };
        let mut note = || {
            if let Some(at) = begins.take() {
                logbook.asked(number, &call, at);
            }
        };
        let mut tried = work.attempt_noted(&turn, &mut note);
        // What could not even be tried is noted as well.
        note();
        contradicted::look(&mut tried, rules);
        if pause.was_told_to_end() {
            tried.hindrance = Some(Hindrance::Ended);
        }
        let series = Series {
            retries_made: u8::try_from(attempts.len()).unwrap_or(u8::MAX),
            waited,
            failed_before: last.map(|attempt| attempt.tried.diagnosis.kind),
            elapsed: begun.elapsed(),
            retries: terms.retries,
            deadline: terms.deadline,
        };
        let gets_more_time =
            tried.observation.outcome == Outcome::TimedOut && limit.is_some() && allowed == limit;
        let written = logbook.ended(rules, number, &tried, Some((series, gets_more_time)), cellar::now());
        if terms.aloud == Aloud::Lines {
            let line = verify_line(&work.action(), &tried, &written.report);
            ui.aside(&line);
        }
        let attempt = Attempt { tried, waited, report: written.report, remembered: written.remembered };
        let end = match follow(&attempt, written.retry) {
            Next::End(end) => Some(end),
            Next::Again(planned) => {
                waited = planned.wait;
                limit = terms.limit.map(|first| planned.limit_factor.of(first));
                let told = pause.before(ui, &attempt.report, &planned).err();
                told.map(|signal| End::GivenUp { signal })
            }
        };
        attempts.push(attempt);
        if let Some(end) = end {
            break end;
        }
    };
    Ok(Story {
        session: terms.session.clone(),
        attempts,
        end,
        took: begun.elapsed(),
        snapshots: Vec::new(),
        rolled_back: None,
    })
}

/// What follows an attempt.
enum Next {
    Again(pause::Planned),
    End(End),
}

fn follow(attempt: &Attempt, retry: Option<Retry>) -> Next {
    match (attempt.tried.claims_success(), attempt.tried.hindrance, retry) {
        (true, _, _) => Next::End(End::Succeeded),
        (false, Some(hindrance), _) => Next::End(End::Hindered(hindrance)),
        (false, None, Some(Retry::Again { wait, attempt, of, limit_factor, seen })) => {
            Next::Again(pause::Planned { wait, attempt, of, limit_factor, seen })
        }
        (false, None, Some(Retry::Stop { why, come_back_after, seen })) => {
            Next::End(End::Stopped { why, come_back_after, seen })
        }
        // The record does not take it for a failure: nothing follows from it.
        (false, None, None) => Next::End(End::Unjudged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_is_a_span_or_a_number_of_seconds() {
        let check = |text: &str, ms| assert_eq!(time_limit(text), Ok(Duration::from_millis(ms)), "{text}");
        check("90s", 90_000);
        check("2m", 120_000);
        check("250ms", 250);
        check("0.5", 500);
        check("30", 30_000);
    }
}
