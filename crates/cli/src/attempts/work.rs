//! What can be sent, and sent again: a command, a request, an agent. Each knows how to make one attempt; none of them decides
//! whether there is another.

use std::time::Duration;

use unstuck_judge::{Call, Diagnosis, Kind, Observation, Outcome};
use unstuck_wire::report::Report;

use crate::exit::CommandError;

/// A piece of work.
pub(crate) trait Work {
    /// The call, as the judge sees it.
    fn call(&self) -> Call;

    /// What it is called in lines for people, in a few words.
    fn action(&self) -> String;

    /// Does what has to be done once before everything else, under the name that the first attempt has in the record. Where
    /// that fails, nothing is sent.
    fn prepare(&mut self, _first: &str) -> Result<(), CommandError> {
        Ok(())
    }

    /// Makes one attempt. It stands in the record by now.
    fn attempt(&mut self, turn: &Turn<'_>) -> Tried;

    /// Makes one attempt, and has it noted that it begins: before, or at once when it has. To note it twice does no harm.
    fn attempt_noted(&mut self, turn: &Turn<'_>, note: &mut dyn FnMut()) -> Tried {
        note();
        self.attempt(turn)
    }
}

/// What an attempt has to know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn<'a> {
    /// Which one it is, counted from 1.
    pub(crate) number: u32,
    /// The session that all attempts share.
    pub(crate) session: &'a str,
    /// How long it may take.
    pub(crate) limit: Option<Duration>,
    /// What became of the one before.
    pub(crate) last: Option<&'a Report>,
}

/// What came of an attempt.
#[derive(Debug)]
pub(crate) struct Tried {
    /// How it ended, with as much of what it printed as is kept.
    pub(crate) observation: Observation,
    /// What is found in all that it printed.
    pub(crate) diagnosis: Diagnosis,
    pub(crate) took: Duration,
    /// The exit code that whoever asked for it gets, should it be the last.
    pub(crate) code: u8,
    /// What was looked at to see whether a success is one. A check that failed makes it a failure.
    pub(crate) checks: Vec<Checked>,
    /// Why it cannot be sent again, whatever came of it.
    pub(crate) hindrance: Option<Hindrance>,
}

impl Tried {
    /// Did it say that all went well?
    pub(crate) fn claims_success(&self) -> bool {
        self.diagnosis.ok() == Some(true)
    }

    /// The older word for the failure, where more is known of it here than its kind tells; `of_kind` is that of its kind.
    pub(super) fn tag(&self, of_kind: &'static str) -> &'static str {
        let is_unwelcome = self.observation.outcome == Outcome::ReportedFailure
            || self.checks.iter().any(|checked| checked.has_failed() && checked.check.starts_with("expect "));
        // What the other side asks to wait for keeps the word by which it is waited for.
        let waits = matches!(self.diagnosis.kind, Kind::RateLimited | Kind::Timeout | Kind::ParseError);
        match (self.observation.http_status, waits) {
            (Some(_), false) if is_unwelcome => "api_err",
            (Some(_) | None, _) => of_kind,
        }
    }

    /// Did it end as if all was well, and a check says otherwise?
    pub(crate) fn denied_by_check(&self) -> bool {
        self.observation.outcome.said_ok() == Some(true) && self.checks.iter().any(Checked::has_failed)
    }
}

/// Why something cannot be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hindrance {
    /// It has read what was piped in, and that is gone.
    InputUsed,
    /// A person ended it.
    Ended,
    /// A part of its output has been passed on, and would come twice.
    PassedOn,
    /// It has begun, and there is no session in which it could go on: it would have to start over.
    NoSession,
    /// Our own output could not take what it printed.
    OutputLost,
}

/// One look at whether a success is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checked {
    /// The check, as the person wrote it, or the name of a suspicion.
    pub(crate) check: String,
    pub(crate) result: CheckResult,
    pub(crate) took: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckResult {
    Held,
    /// It did not hold; what was found instead.
    Failed {
        found: String,
    },
    /// What came ends in the middle; where.
    CutOff {
        found: String,
    },
    /// What came is of another form; why.
    Unread {
        found: String,
    },
}

impl CheckResult {
    /// What was found instead, where it did not hold.
    pub(crate) fn found(&self) -> Option<&str> {
        match self {
            CheckResult::Held => None,
            CheckResult::Failed { found } | CheckResult::CutOff { found } | CheckResult::Unread { found } => {
                Some(found)
            }
        }
    }
}

impl Checked {
    /// Could what came not be read at all?
    pub(crate) fn is_unread(&self) -> bool {
        matches!(self.result, CheckResult::CutOff { .. } | CheckResult::Unread { .. })
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.result.found().is_some()
    }
}
