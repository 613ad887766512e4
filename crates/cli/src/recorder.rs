//! Puts calls that happened long ago into the timeline, as if they happened again in the same order.

use std::collections::HashMap;

use unstuck_judge::ladder::Round;
use unstuck_judge::{Lang, Rules};
use unstuck_store::{Answer, Hears, Kept, NAME_MAX, Who};
use unstuck_wire::clean::{Clean, Cleaner};
use unstuck_wire::recorded::RecordedCall;

use crate::cellar::{self, Cellar};
use crate::desk::{self, Desk};
use crate::exit::{CommandError, ExitStatus};
use crate::ui::Ui;

/// Earlier than this, a record counts from its own beginning and not from 1970.
const FIRST_REAL_MOMENT: u64 = 100_000_000_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A longer pause between two calls is a person's, not the call's.
const LONGEST_CALL_MS: u64 = 30 * 60 * 1000;

/// Records the calls of any number of runs.
pub(crate) struct Recorder<'a> {
    desk: Desk<'a>,
    cleaner: &'a Cleaner,
    begun: u64,
    /// The last call of each run, until the next one tells how long it can have taken.
    waiting: HashMap<String, RecordedCall>,
    recorded: u64,
    known: u64,
    spooled: u64,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(cellar: &'a Cellar, cleaner: &'a Cleaner) -> Recorder<'a> {
        Recorder {
            desk: cellar.desk_for_the_past(cleaner),
            cleaner,
            begun: cellar::now(),
            waiting: HashMap::new(),
            recorded: 0,
            known: 0,
            spooled: 0,
        }
    }

    /// Takes the next call. The time until the next one of its run belongs to it, where the record says nothing else: it ran,
    /// and the model read its result.
    pub(crate) fn take(&mut self, rules: &Rules, call: RecordedCall) -> Result<(), CommandError> {
        let (trace, at) = (call.trace.clone(), call.at);
        let Some(mut last) = self.waiting.insert(trace, call) else { return Ok(()) };
        if let (None, Some(then), Some(now)) = (last.took_ms, last.at, at) {
            last.took_ms = Some(now.saturating_sub(then).min(LONGEST_CALL_MS)).filter(|took| *took > 0);
        }
        self.record(rules, &last)
    }

    /// Records one call. Unlike an agent, whoever asked for this wants to hear that it did not work.
    fn record(&mut self, rules: &Rules, call: &RecordedCall) -> Result<(), CommandError> {
        let asked_at = self.moment(call.at);
        let key = match call.id.is_empty() {
            true => format!("#{}", call.index),
            false => call.id.clone(),
        };
        let now = cellar::now();
        let who = self.who(call, asked_at);
        let asked = self.desk.asked(who, &key, &call.observation.call, call.new_user_turn);
        let answer = self.desk.before(asked, now, None);
        self.check(&answer)?;
        let result = desk::Result {
            key: &key,
            observation: &call.observation,
            folder: "",
            from_hook: None,
            ours: None,
            said_ok: call.said_ok,
            took_ms: call.took_ms,
            user_spoke: false,
            can_retry: None,
        };
        let who = self.who(call, asked_at.saturating_add(call.took_ms.unwrap_or(0)));
        let (answer, _) = self.desk.after(rules, who, &result, now);
        self.check(&answer)?;
        // What was there already brings nothing new, and so no event.
        match (&answer.kept, answer.said.bookmark) {
            (Kept::Stored, None) => self.known += 1,
            (Kept::Stored, Some(_)) | (Kept::Spooled { .. } | Kept::Lost { .. }, _) => self.recorded += 1,
        }
        Ok(())
    }

    fn check(&mut self, answer: &Answer) -> Result<(), CommandError> {
        match &answer.kept {
            Kept::Stored => Ok(()),
            Kept::Spooled { .. } => {
                self.spooled += 1;
                Ok(())
            }
            Kept::Lost { why } => Err(CommandError::NotKept { why: why.clone() }),
        }
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
        let session = if call.trace.is_empty() { "replay" } else { &call.trace };
        Who {
            host: Clean::from("replay"),
            hook: Clean::default(),
            session: self.cleaner.name(session, NAME_MAX),
            agent: self.cleaner.name(&call.agent, NAME_MAX),
            cwd: Clean::default(),
            owner: Clean::default(),
            hears: Hears::Nothing,
            round: call.round.map_or(Round::Unsaid, Round::Numbered),
            at,
        }
    }

    /// Records what still waits, and says how much was recorded.
    pub(crate) fn finish(mut self, ui: &mut Ui, rules: &Rules) -> Result<ExitStatus, CommandError> {
        let mut left: Vec<RecordedCall> = self.waiting.drain().map(|(_, call)| call).collect();
        left.sort_by(|one, other| one.trace.cmp(&other.trace));
        left.iter().try_for_each(|call| self.record(rules, call))?;
        let Recorder { recorded, known, spooled, .. } = self;
        let mut text = match ui.lang() {
            Lang::En => format!("recorded: {recorded} calls"),
            Lang::Zh => format!("已记录 {recorded} 次调用"),
        };
        if known > 0 {
            text += &match ui.lang() {
                Lang::En => format!(", {known} were there already"),
                Lang::Zh => format!("，{known} 次已有记录"),
            };
        }
        if spooled > 0 {
            text += &match ui.lang() {
                Lang::En => format!(" ({spooled} entries wait in the spool)"),
                Lang::Zh => format!("（{spooled} 条在暂存区等待）"),
            };
        }
        ui.remark(&(text + "\n"))?;
        Ok(ExitStatus::Success)
    }
}
