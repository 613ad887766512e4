//! What came of all attempts together: for a person, and as JSON.

use std::time::Duration;

use serde::Serialize;
use unstuck_judge::retry::{Seen, StopReason};
use unstuck_judge::{Again, Lang, Outcome};
use unstuck_wire::report::{Report, WireReport};
use unstuck_wire::time;

use super::spoken;
use super::work::{Checked, Hindrance, Tried};
use crate::explain;

/// One attempt, and how long was waited before it.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) tried: Tried,
    pub(crate) waited: Duration,
    /// All that follows from what was found.
    pub(crate) report: Report,
    /// What helped against it before.
    pub(crate) remembered: Option<String>,
}

/// All attempts, the first one first.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) session: String,
    pub(crate) attempts: Vec<Attempt>,
    /// Why there is no further one.
    pub(crate) end: End,
    pub(crate) took: Duration,
    /// The names of the snapshots that were taken before it.
    pub(crate) snapshots: Vec<String>,
    /// Was everything put back as it was? Nothing where there was nothing to put back.
    pub(crate) rolled_back: Option<bool>,
}

/// Why there is no further attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The last one went well.
    Succeeded,
    /// The policy says so.
    Stopped {
        why: StopReason,
        /// After how long it is worth trying again, where waiting helps.
        come_back_after: Option<Duration>,
        /// What was seen of past retries, where it follows from that.
        seen: Option<Seen>,
    },
    /// It cannot be sent again.
    Hindered(Hindrance),
    /// This signal ended the wait for the next one.
    GivenUp { signal: i32 },
    /// It did not go well, and nobody says that it failed.
    Unjudged,
}

impl End {
    /// The word for it in JSON; nothing where all went well.
    fn word(self) -> Option<&'static str> {
        match self {
            End::Succeeded => None,
            End::Stopped { why, .. } => Some(why.word()),
            End::Hindered(Hindrance::InputUsed) => Some("input_used"),
            End::Hindered(Hindrance::Ended) => Some("ended"),
            End::Hindered(Hindrance::PassedOn) => Some("passed_on"),
            End::Hindered(Hindrance::NoSession) => Some("no_session"),
            End::Hindered(Hindrance::OutputLost) => Some("output_lost"),
            End::GivenUp { .. } => Some("given_up"),
            End::Unjudged => Some("unjudged"),
        }
    }
}

impl Story {
    /// The last attempt: what it came to.
    pub(crate) fn last(&self) -> Option<&Tried> {
        self.attempts.last().map(|attempt| &attempt.tried)
    }

    /// This one, and what came after it: how that ended is how all of it ended.
    pub(crate) fn followed_by(self, mut next: Story) -> Story {
        next.attempts.splice(0..0, self.attempts);
        next.took += self.took;
        next
    }

    /// The exit code for whoever asked for it.
    pub(crate) fn code(&self) -> u8 {
        match self.end {
            End::GivenUp { signal } => 128 | u8::try_from(signal).unwrap_or(0),
            End::Succeeded | End::Stopped { .. } | End::Hindered(_) | End::Unjudged => {
                self.last().map_or(0, |tried| tried.code)
            }
        }
    }

    /// After how long the same call could work, where waiting helps: what ran out of time does so again.
    fn come_back_after(&self) -> Option<Duration> {
        let heals = |last: &Attempt| match last.report.verdict.again {
            Again::Now | Again::After(_) => true,
            Again::IfChanged | Again::Never => false,
        };
        match self.end {
            End::Stopped { come_back_after, .. } => {
                come_back_after.filter(|_| self.attempts.last().is_some_and(heals))
            }
            End::Succeeded | End::Hindered(_) | End::GivenUp { .. } | End::Unjudged => None,
        }
    }

    /// Says how the last attempt failed and why there is no further one; nothing where it went well.
    pub(crate) fn in_words(&self, command: Option<&str>, lang: Lang) -> String {
        let Some(last) = self.attempts.last().filter(|last| !last.tried.claims_success()) else {
            return String::new();
        };
        let [stop, memory] = match lang {
            Lang::En => ["stop  ", "memory"],
            Lang::Zh => ["停止", "记忆"],
        };
        let stopped =
            spoken::stopped(&self.end, self.come_back_after(), lang).map(|why| format!("  {stop}  {why}\n"));
        let remembered = last.remembered.as_deref().map(|text| format!("  {memory}  {text}\n"));
        let said = [stopped, remembered].into_iter().flatten();
        said.fold(explain::diagnosis(&last.report, command, lang), |all, line| all + &line)
    }

    /// The story in the shape in which it leaves the house; nothing where nothing was ever tried.
    pub(crate) fn to_wire(&self) -> Option<WireStory<'_>> {
        let last = self.attempts.last()?;
        let verified = match &last.tried.checks[..] {
            [] => None,
            checks => Some(!checks.iter().any(Checked::has_failed)),
        };
        Some(WireStory {
            report: last.report.to_wire(None),
            session: &self.session,
            exit_code: self.code(),
            duration_ms: time::span_ms(self.took),
            attempts: self.attempts.iter().zip(1..).map(WireAttempt::from).collect(),
            retries: self.attempts.len() - 1,
            waits_ms: self.attempts.iter().skip(1).map(|attempt| time::span_ms(attempt.waited)).collect(),
            stopped: self.end.word(),
            come_back_after_ms: self.come_back_after().map(time::span_ms),
            verified,
            snapshots: &self.snapshots,
            rolled_back: self.rolled_back,
            remembered: last.remembered.as_deref(),
        })
    }
}

/// A story exactly as it is printed: the last diagnosis, and how it came to that.
#[derive(Debug, Serialize)]
pub(crate) struct WireStory<'a> {
    #[serde(flatten)]
    report: WireReport<'a>,
    session: &'a str,
    exit_code: u8,
    duration_ms: u64,
    attempts: Vec<WireAttempt<'a>>,
    retries: usize,
    waits_ms: Vec<u64>,
    stopped: Option<&'static str>,
    come_back_after_ms: Option<u64>,
    verified: Option<bool>,
    snapshots: &'a [String],
    rolled_back: Option<bool>,
    remembered: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct WireAttempt<'a> {
    number: u32,
    ok: Option<bool>,
    kind: &'static str,
    tag: &'static str,
    exit_code: Option<i32>,
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    duration_ms: u64,
    waited_ms: u64,
    checks: Vec<WireCheck<'a>>,
}

impl<'a> From<(&'a Attempt, u32)> for WireAttempt<'a> {
    fn from((attempt, number): (&'a Attempt, u32)) -> WireAttempt<'a> {
        let Attempt { tried, waited, report, remembered: _ } = attempt;
        let outcome = tried.observation.outcome;
        let (exit_code, signal) = match outcome {
            Outcome::Exited { code } => (Some(code), None),
            Outcome::Signalled { signal } => (None, Some(signal)),
            Outcome::Succeeded
            | Outcome::TimedOut
            | Outcome::Interrupted
            | Outcome::Rejected
            | Outcome::Threw
            | Outcome::ReportedFailure
            | Outcome::Denied
            | Outcome::NoExitCode => (None, None),
        };
        WireAttempt {
            number,
            ok: report.diagnosis.ok(),
            kind: report.diagnosis.kind.word(),
            tag: report.aliases.tag,
            exit_code,
            signal,
            http_status: tried.observation.http_status,
            duration_ms: time::span_ms(tried.took),
            waited_ms: time::span_ms(*waited),
            checks: tried.checks.iter().map(WireCheck::from).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct WireCheck<'a> {
    check: &'a str,
    ok: bool,
    found: Option<&'a str>,
    duration_ms: u64,
}

impl<'a> From<&'a Checked> for WireCheck<'a> {
    fn from(checked: &'a Checked) -> WireCheck<'a> {
        WireCheck {
            check: &checked.check,
            ok: !checked.has_failed(),
            found: checked.result.found(),
            duration_ms: time::span_ms(checked.took),
        }
    }
}
