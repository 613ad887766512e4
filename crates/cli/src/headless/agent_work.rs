//! An agent program as work that can be sent, and sent again: every attempt but the first takes up the session of the one
//! before. What has begun is never begun anew behind anybody's back.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use unstuck_exec::{Ending, Job, Run, Stream};
use unstuck_judge::rules::Stream as From;
use unstuck_judge::{Call, Diagnosis, FixBy, Kind, Lang, Observation, Outcome, Rules};
use unstuck_wire::report::Report;

use super::lap::{Began, Lap};
use super::listener::{Listener, Told};
use super::message;
use super::program::{Program, Reach, Session, Start};
use crate::attempts::{
    ATTEMPT_VARIABLE, CheckResult, Checked, Hindrance, SESSION_VARIABLE, Tried, Turn, Work, clock,
};
use crate::checks::{self, Baseline, Checks, Seen};
use crate::plain;
use crate::program_file::on_path;

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
    /// Has a model ever answered in that session?
    has_answered: bool,
    checks: Checks,
    /// How things were before the first attempt.
    baseline: Baseline,
    laps: Vec<Lap>,
}

impl<'r> AgentWork<'r> {
    /// A task, in a new session or in one that is there already, and what proves that it was done.
    pub(crate) fn new(
        rules: &'r Rules,
        program: Program,
        patience: Patience,
        lang: Lang,
        task: String,
        session: Option<String>,
        checks: Checks,
    ) -> AgentWork<'r> {
        let (message, baseline) = (task.clone(), checks.before());
        AgentWork {
            rules,
            program,
            patience,
            lang,
            task,
            message,
            has_arrived: false,
            has_answered: session.is_some(),
            session,
            checks,
            baseline,
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
        let passes = tried.diagnosis.transient;
        let is_the_models = !failed_checks.is_empty()
            || (!tried.claims_success() && !passes && report.verdict.fix_by == FixBy::Model);
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
        match self.resumed(&message) {
            Some(start) => (start, Began::Resumed),
            None => (self.program.begin(&message), Began::Anew),
        }
    }

    /// How its session is taken up, where there is one that can be.
    fn resumed(&self, message: &str) -> Option<Start> {
        let name = self.session.as_deref()?;
        self.program.resume(Session { name, is_empty: !self.has_answered }, message)
    }

    fn job(&self, start: &Start, turn: &Turn<'_>) -> Job {
        // What only a folder of PATH has that depends on where one stands is not found: a repository could have put it there.
        let file = on_path(&start.executable).unwrap_or_else(|| Path::new("/").join(&start.executable));
        let job = Job::new(file, &start.args)
            .with_input(start.input.as_bytes())
            .capture_only()
            .idle_timeout(self.patience.idle);
        let job = variables(turn).into_iter().fold(job, |job, (name, value)| job.with_variable(name, value));
        match turn.limit {
            Some(limit) => job.timeout(limit),
            None => job,
        }
    }

    /// Why it cannot be sent again, where it cannot.
    fn hindrance(&self, run: &Run) -> Option<Hindrance> {
        let was_ended = match &run.ending {
            Ending::Signalled(signal) => ENDED_BY_SIGNAL.contains(signal),
            Ending::Exited(code) => ENDED_BY_SIGNAL.iter().any(|signal| *code == 128 + signal),
            Ending::TimedOut | Ending::NotFound | Ending::NotExecutable(_) | Ending::NotTried(_) => false,
        };
        let did_not_run =
            matches!(run.ending, Ending::NotFound | Ending::NotExecutable(_) | Ending::NotTried(_));
        // What may write is never started over, however little it told of itself.
        let may_write = self.program.reach == Reach::MayWrite;
        let may_have_begun = !did_not_run && (self.has_arrived || may_write);
        let can_resume = self.resumed("").is_some();
        if was_ended || run.asked_to_end {
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
        self.has_arrived |= listener.has_moved;
        self.has_answered |= listener.has_moved;
        let hindrance = self.hindrance(&run);
        let (outcome, code) = self.outcome(&run, &start, turn, &mut listener);
        let (diagnosis, said) = self.diagnose(outcome, &mut listener);
        let checks = self.check(outcome, &listener, turn);
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
        let program = plain::line(&start.executable);
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
            Ending::NotTried(why) => {
                listener.trouble.push_line(&format!("unstuck: {program}: could not be tried: {why}"));
                (Outcome::Exited { code: 125 }, 125)
            }
        }
    }

    /// The cause, and the text it was found in. What an agent complains of on its way to a success proves nothing, and what it
    /// says of its own end proves more than what it wrote beside that.
    fn diagnose(&self, outcome: Outcome, listener: &mut Listener<'_>) -> (Diagnosis, Vec<u8>) {
        let is_expected = exit_code(outcome).is_some_and(|code| code != 0 && self.checks.accepts(code));
        if is_expected && listener.told != Told::Badly {
            return (checks::as_expected(), Vec::new());
        }
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
        let mut reading = self.rules.read().at(clock::here());
        reading.feed(From::Stderr, text);
        self.rules.conclude(reading, &self.call(), outcome, None)
    }

    /// A program that tells its end and ended without a word of it has not finished, whatever its exit code says. Of one that
    /// has, its answer is looked at, and what it left behind.
    fn check(&self, outcome: Outcome, listener: &Listener<'_>, turn: &Turn<'_>) -> Vec<Checked> {
        if listener.told == Told::Badly {
            return Vec::new();
        }
        let mut all = Vec::new();
        if self.program.tongue.tells_its_end() && outcome.said_ok() == Some(true) {
            let found = match self.lang {
                Lang::En => "it ended without a result",
                Lang::Zh => "它没有给出结果就结束了",
            };
            let result = match listener.told {
                Told::Well => CheckResult::Held,
                Told::Nothing | Told::Badly => CheckResult::Failed { found: found.to_owned() },
            };
            all.push(Checked { check: "result".to_owned(), result, took: Duration::ZERO });
        }
        if !all.iter().any(Checked::has_failed) {
            let mut heard = self.checks.listen(&self.call());
            heard.feed(From::Stdout, listener.answer.as_bytes());
            let seen =
                Seen { exit_code: exit_code(outcome), heard, variables: &variables(turn), until: None };
            all.extend(self.checks.look(&self.baseline, seen));
        }
        all
    }
}

/// The exit code, where it has one.
fn exit_code(outcome: Outcome) -> Option<i32> {
    match outcome {
        Outcome::Exited { code } => Some(code),
        Outcome::Succeeded
        | Outcome::Signalled { .. }
        | Outcome::TimedOut
        | Outcome::Interrupted
        | Outcome::Rejected
        | Outcome::Threw
        | Outcome::ReportedFailure
        | Outcome::Denied
        | Outcome::NoExitCode => None,
    }
}

/// What an attempt, and all that looks at it, finds in its environment.
fn variables(turn: &Turn<'_>) -> [(OsString, OsString); 2] {
    [(ATTEMPT_VARIABLE, turn.number.to_string()), (SESSION_VARIABLE, turn.session.to_owned())]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)))
}

/// A check that failed, in words.
fn failed(checked: &Checked) -> Option<String> {
    checked.result.found().map(|found| format!("{}: {found}", checked.check))
}

#[cfg(test)]
mod tests;
