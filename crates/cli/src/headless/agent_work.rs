//! An agent program as work that can be sent, and sent again: every attempt but the first takes up the session of the one
//! before. What has begun is never begun anew behind anybody's back.

use std::time::Duration;

use serde_json::json;
use unstuck_exec::{Ending, Job, Run, Stream};
use unstuck_judge::rules::Stream as From;
use unstuck_judge::{Call, Diagnosis, FixBy, Kind, Lang, Observation, Outcome, Rules};
use unstuck_wire::report::Report;

use super::lap::{Began, Lap};
use super::listener::{Listener, Told};
use super::message;
use super::program::{Program, Reach, Start};
use crate::attempts::{
    ATTEMPT_VARIABLE, CheckResult, Checked, Hindrance, SESSION_VARIABLE, Tried, Turn, Work,
};
use crate::cellar;

/// Signals, and exit codes, by which a person or the system ends a program.
const ENDED_BY_SIGNAL: [i32; 4] = [1, 2, 3, 15];

/// How long an agent may be silent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) idle: Duration,
}

/// A task for an agent.
pub(crate) struct AgentWork<'r> {
    rules: &'r Rules,
    program: Program,
    patience: Patience,
    /// The language in which the model is spoken to.
    lang: Lang,
    task: String,
    /// What it is to be told next.
    message: String,
    /// Has the model received the message?
    has_arrived: bool,
    session: Option<String>,
    laps: Vec<Lap>,
}

impl<'r> AgentWork<'r> {
    /// A task, in a new session or in one that is there already.
    pub(crate) fn new(
        rules: &'r Rules,
        program: Program,
        patience: Patience,
        lang: Lang,
        task: String,
        session: Option<String>,
    ) -> AgentWork<'r> {
        let message = task.clone();
        AgentWork {
            rules,
            program,
            patience,
            lang,
            task,
            message,
            has_arrived: false,
            session,
            laps: Vec::new(),
        }
    }

    /// The session that the agent works in, as far as it told.
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// All attempts, the first one first.
    pub(crate) fn laps(&self) -> &[Lap] {
        &self.laps
    }

    /// Gives the agent the chance to mend what failed: `true` where it can. Only a model that answered can mend anything, and
    /// only in its session.
    pub(crate) fn ask_to_repair(&mut self, tried: &Tried) -> bool {
        let report = Report::new(tried.diagnosis.clone(), &self.call(), self.lang);
        let failed_checks: Vec<String> = tried.checks.iter().filter_map(failed).collect();
        let is_the_models =
            !failed_checks.is_empty() || (!tried.claims_success() && report.verdict.fix_by == FixBy::Model);
        let answered = self.laps.last().is_some_and(|lap| lap.has_moved);
        let can = is_the_models
            && answered
            && tried.hindrance.is_none()
            && tried.observation.outcome != Outcome::TimedOut
            && self.session.is_some()
            && self.program.can_resume();
        if can {
            self.message = message::repair(&report, &failed_checks, self.lang);
            self.has_arrived = false;
        }
        can
    }

    /// What is started for this turn, and how it begins.
    fn start(&self, turn: &Turn<'_>) -> (Start, Began) {
        let message = match self.has_arrived {
            true => message::go_on(turn.last, self.lang),
            false => self.message.clone(),
        };
        let resumed = self.session.as_ref().and_then(|session| self.program.resume(session, &message));
        match resumed {
            Some(start) => (start, Began::Resumed),
            None => (self.program.begin(&message), Began::Anew),
        }
    }

    fn job(&self, start: &Start, turn: &Turn<'_>) -> Job {
        let job = Job::new(&start.executable, &start.args)
            .with_input(start.input.as_bytes())
            .capture_only()
            .idle_timeout(self.patience.idle)
            .with_variable(ATTEMPT_VARIABLE, turn.number.to_string())
            .with_variable(SESSION_VARIABLE, turn.session);
        match turn.limit {
            Some(limit) => job.timeout(limit),
            None => job,
        }
    }

    /// Why it cannot be sent again, where it cannot.
    fn hindrance(&self, run: &Run, listener: &Listener<'_>) -> Option<Hindrance> {
        let ended = match &run.ending {
            Ending::Signalled(signal) => ENDED_BY_SIGNAL.contains(signal),
            Ending::Exited(code) => ENDED_BY_SIGNAL.iter().any(|signal| *code == 128 + signal),
            Ending::TimedOut | Ending::NotFound | Ending::NotExecutable(_) => false,
        };
        let did_not_run = matches!(run.ending, Ending::NotFound | Ending::NotExecutable(_));
        // A program that tells nothing of itself may have done anything.
        let is_dark = !self.program.tongue.tells_its_end() && self.program.reach == Reach::MayWrite;
        let may_have_begun = !did_not_run && (listener.has_moved || self.has_arrived || is_dark);
        let can_resume = self.session.is_some() && self.program.can_resume();
        if ended {
            Some(Hindrance::Ended)
        } else {
            (may_have_begun && !can_resume).then_some(Hindrance::NoSession)
        }
    }
}

impl Work for AgentWork<'_> {
    fn call(&self) -> Call {
        let may_write = self.program.reach == Reach::MayWrite;
        Call::new("agent", json!({ "agent": self.program.name, "prompt": self.task, "may_write": may_write }))
    }

    fn action(&self) -> String {
        self.program.name.clone()
    }

    fn attempt(&mut self, turn: &Turn<'_>) -> Tried {
        let (start, began) = self.start(turn);
        let tongue = self.program.tongue.clone();
        let mut listener = Listener::new(&tongue);
        let run = self.job(&start, turn).run(|stream, bytes| match stream {
            Stream::Stdout | Stream::Merged => listener.hear(bytes),
            Stream::Stderr => listener.hear_error(bytes),
        });
        listener.close();
        self.session = listener.session.clone().or_else(|| self.session.take());
        let hindrance = self.hindrance(&run, &listener);
        self.has_arrived |= listener.has_moved;
        let (outcome, code) = self.outcome(&run, &start, turn, &mut listener);
        let (diagnosis, said) = self.diagnose(outcome, &mut listener);
        let checks = self.check(outcome, listener.told);
        let code = if code == 0 && checks.iter().any(Checked::has_failed) { 1 } else { code };
        self.laps.push(Lap {
            began,
            has_moved: listener.has_moved,
            last: listener.last.text(),
            answer: listener.answer,
        });
        let observation = Observation {
            call: self.call(),
            outcome,
            http_status: None,
            stdout: Vec::new(),
            stderr: said,
            merged: Vec::new(),
        };
        Tried { observation, diagnosis, took: run.took, code, checks, hindrance }
    }
}

impl AgentWork<'_> {
    /// How it ended for the judge, and the exit code that follows.
    fn outcome(
        &self,
        run: &Run,
        start: &Start,
        turn: &Turn<'_>,
        listener: &mut Listener<'_>,
    ) -> (Outcome, u8) {
        let program = &start.executable;
        match &run.ending {
            Ending::Exited(0) if listener.told == Told::Badly => (Outcome::ReportedFailure, 1),
            Ending::Exited(code) => (Outcome::Exited { code: *code }, *code as u8),
            Ending::Signalled(signal) => (Outcome::Signalled { signal: *signal }, 128 + *signal as u8),
            Ending::TimedOut => {
                if turn.limit.is_none_or(|limit| run.took < limit) {
                    let idle = self.patience.idle.as_secs();
                    listener.trouble.push_line(&format!("unstuck: {program} printed nothing for {idle} s"));
                }
                (Outcome::TimedOut, 124)
            }
            Ending::NotFound => {
                listener.trouble.push_line(&format!("unstuck: {program}: command not found"));
                (Outcome::Exited { code: 127 }, 127)
            }
            Ending::NotExecutable(why) => {
                listener.trouble.push_line(&format!("unstuck: {program}: {why}"));
                (Outcome::Exited { code: 126 }, 126)
            }
        }
    }

    /// The cause, and the text it was found in. What an agent complains of on its way to a success proves nothing, and what it
    /// says of its own end proves more than what it wrote beside that.
    fn diagnose(&self, outcome: Outcome, listener: &mut Listener<'_>) -> (Diagnosis, Vec<u8>) {
        if outcome.said_ok() == Some(true) {
            return (self.conclude(outcome, b""), Vec::new());
        }
        // A program that only prints text says there what went wrong.
        let mut said = match self.program.tongue.tells_its_end() {
            true => Vec::new(),
            false => listener.answer.clone().into_bytes(),
        };
        said.extend_from_slice(listener.trouble.bytes());
        let by_words = self.conclude(outcome, &said);
        said.extend_from_slice(listener.murmur.bytes());
        match by_words.kind == Kind::Unknown {
            true => (self.conclude(outcome, &said), said),
            false => (by_words, said),
        }
    }

    fn conclude(&self, outcome: Outcome, text: &[u8]) -> Diagnosis {
        let mut reading = self.rules.read().at(cellar::now());
        reading.feed(From::Stderr, text);
        self.rules.conclude(reading, &self.call(), outcome, None)
    }

    /// A program that tells its end and ended without a word of it has not finished, whatever its exit code says.
    fn check(&self, outcome: Outcome, told: Told) -> Vec<Checked> {
        let is_due = self.program.tongue.tells_its_end() && outcome.said_ok() == Some(true);
        let result = match told {
            Told::Well => CheckResult::Held,
            Told::Nothing | Told::Badly => {
                CheckResult::Failed { found: "it ended without a result".to_owned() }
            }
        };
        let checked = Checked { check: "result".to_owned(), result, took: Duration::ZERO };
        is_due.then_some(checked).into_iter().collect()
    }
}

/// A check that failed, in words.
fn failed(checked: &Checked) -> Option<String> {
    checked.result.found().map(|found| format!("{}: {found}", checked.check))
}

#[cfg(test)]
mod tests;
