//! Puts calls that happened long ago into the timeline, as if they happened again in the same order, many in one transaction.

use std::collections::HashMap;
use std::path::Path;

use unstuck_judge::ladder::{Round, Rung};
use unstuck_judge::{Kind, Outcome, Rules, nature};
use unstuck_store::{Bounds, Entry, Hears, NAME_MAX, Said, Scanned, Source, Who};
use unstuck_wire::clean::{Clean, Cleaner};
use unstuck_wire::recorded::RecordedCall;

use crate::cellar::{self, Cellar};
use crate::desk::{self, Desk};
use crate::exit::CommandError;
use crate::whereabouts;

/// Earlier than this, a record counts from its own beginning and not from 1970.
const FIRST_REAL_MOMENT: u64 = 100_000_000_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A longer pause between two calls is a person's, not the call's.
pub(crate) const LONGEST_CALL_MS: u64 = 30 * 60 * 1000;

/// So many calls are written at once. Hooks wait for the lock meanwhile, and not for long.
const AT_ONCE: usize = 128;

/// What is kept of the beginning and of the end of outputs that hardly anybody will look at any more.
const SHORT: (usize, usize) = (1024, 2048);

/// A call that was recorded, as far as a reader of the record wants to know.
pub(crate) struct RecordedNow {
    pub(crate) session: String,
    /// What was tried, in a word or two.
    pub(crate) approach: String,
    pub(crate) at: Option<u64>,
    pub(crate) kind: Kind,
    /// The fingerprint of the cause.
    pub(crate) cause: String,
    /// The line that shows the cause.
    pub(crate) line: String,
    /// What would have been said before it ran.
    pub(crate) before: Rung,
    /// Was it not there already?
    pub(crate) is_new: bool,
}

/// Records the calls of any number of runs.
pub(crate) struct Recorder<'a> {
    desk: Desk<'a>,
    cleaner: &'a Cleaner,
    home: Option<&'a Path>,
    host: &'static str,
    begun: u64,
    /// The last call of each run, until the next one tells how long it can have taken.
    waiting: HashMap<String, RecordedCall>,
    /// Two for each call: that it was asked for, and how it ended.
    entries: Vec<Entry>,
    judged: Vec<RecordedNow>,
}

impl<'a> Recorder<'a> {
    /// Records in the name of `host`.
    pub(crate) fn new(cellar: &'a Cellar, cleaner: &'a Cleaner, host: &'static str) -> Recorder<'a> {
        Recorder {
            desk: cellar.desk_for_the_past(cleaner),
            cleaner,
            home: cellar.home(),
            host,
            begun: cellar::now(),
            waiting: HashMap::new(),
            entries: Vec::new(),
            judged: Vec::new(),
        }
    }

    /// Keeps only little of each output.
    pub(crate) fn briefly(mut self) -> Recorder<'a> {
        let Bounds { input, head, tail } = self.desk.bounds;
        self.desk.bounds = Bounds { input, head: head.min(SHORT.0), tail: tail.min(SHORT.1) };
        self
    }

    /// Takes the next call. Where the record says nothing else, the time until the next one of its run belongs to it: it ran,
    /// and the model read its result.
    pub(crate) fn take(&mut self, rules: &Rules, call: RecordedCall) {
        if call.took_ms.is_some() || call.at.is_none() {
            if let Some(last) = self.waiting.remove(&call.trace) {
                self.judge(rules, &until(last, call.at));
            }
            self.judge(rules, &call);
            return;
        }
        let at = call.at;
        if let Some(last) = self.waiting.insert(call.trace.clone(), call) {
            self.judge(rules, &until(last, at));
        }
    }

    /// Judges what still waits for the next call of its run.
    pub(crate) fn take_all(&mut self, rules: &Rules) {
        let mut left: Vec<RecordedCall> = self.waiting.drain().map(|(_, call)| call).collect();
        left.sort_by(|one, other| one.trace.cmp(&other.trace));
        left.iter().for_each(|call| self.judge(rules, call));
    }

    /// Does no call wait for the next of its run?
    pub(crate) fn is_at_rest(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Is it time to write?
    pub(crate) fn is_full(&self) -> bool {
        self.judged.len() >= AT_ONCE
    }

    fn judge(&mut self, rules: &Rules, call: &RecordedCall) {
        let asked_at = self.moment(call.at);
        let key = match call.id.is_empty() {
            true => format!("#{}", call.index),
            false => call.id.clone(),
        };
        let who = self.who(call, asked_at);
        let session = who.session.to_string();
        let asked = self.desk.asked(who, &key, &call.observation.call, call.new_user_turn);
        let mut answered = asked.clone();
        answered.who.at = asked_at.saturating_add(call.took_ms.unwrap_or(0));
        answered.user_spoke = false;
        let result = desk::Result {
            key: &key,
            observation: &call.observation,
            folder: "",
            from_hook: None,
            ours: None,
            said_ok: call.said_ok,
            took_ms: call.took_ms,
            user_spoke: false,
            attended: false,
            can_retry: None,
        };
        let (ended, report) = self.desk.ended(rules, answered, &result);
        let [_, _, cause] = &report.prints;
        let kind = match ended.finding {
            // What somebody refused never ran, and so it did not fail.
            Some(_) if call.observation.outcome != Outcome::Denied => report.diagnosis.kind,
            Some(_) | None => Kind::NotAnError,
        };
        self.judged.push(RecordedNow {
            session,
            approach: self.cleaner.line(&nature::approach(&call.observation.call), NAME_MAX).into_string(),
            at: call.at,
            kind,
            cause: cause.to_string(),
            line: report.diagnosis.evidence.map(|found| found.text).unwrap_or_default(),
            before: Rung::Observe,
            is_new: false,
        });
        self.entries.push(Entry::Asked(Box::new(asked)));
        self.entries.push(Entry::Ended(Box::new(ended)));
    }

    /// Writes what was taken, and how far the files were read that it comes from: all of it, or nothing.
    pub(crate) fn write(&mut self, read: &[(String, Scanned)]) -> Result<Vec<RecordedNow>, CommandError> {
        if self.entries.is_empty() && read.is_empty() {
            return Ok(Vec::new());
        }
        let said = self.desk.keeper.keep_all(&self.entries, read, cellar::now())?;
        self.entries.clear();
        let mut judged = std::mem::take(&mut self.judged);
        for (call, said) in judged.iter_mut().zip(said.chunks_exact(2)) {
            let [before, after] = said else { continue };
            call.before = rung(before);
            // What was there already brings nothing new, and so no event.
            call.is_new = after.bookmark.is_some();
        }
        Ok(judged)
    }

    /// When it was. What says nothing of the calendar is laid into the last day.
    fn moment(&self, at: Option<u64>) -> u64 {
        match at {
            Some(at) if at >= FIRST_REAL_MOMENT => cellar::sensible(Some(at), self.begun),
            Some(passed) => (self.begun - DAY_MS.min(self.begun)).saturating_add(passed).min(self.begun),
            None => self.begun,
        }
    }

    fn who(&self, call: &RecordedCall, at: u64) -> Who {
        let session = if call.trace.is_empty() { self.host } else { &call.trace };
        Who {
            host: Clean::from(self.host),
            hook: Clean::default(),
            session: self.cleaner.name(session, NAME_MAX),
            agent: self.cleaner.name(&call.agent, NAME_MAX),
            cwd: self.cleaner.line(&call.cwd, 1024),
            place: whereabouts::place(&call.cwd, self.home, self.cleaner),
            owner: Clean::default(),
            source: Source::File,
            hears: Hears::Nothing,
            round: call.round.map_or(Round::Unsaid, Round::Numbered),
            at,
        }
    }
}

/// A call, with the time until the next one.
fn until(mut last: RecordedCall, next: Option<u64>) -> RecordedCall {
    if let (None, Some(then), Some(now)) = (last.took_ms, last.at, next) {
        last.took_ms = Some(now.saturating_sub(then).min(LONGEST_CALL_MS)).filter(|took| *took > 0);
    }
    last
}

fn rung(said: &Said) -> Rung {
    said.decision.as_ref().map_or(Rung::Observe, |decision| decision.rung)
}
