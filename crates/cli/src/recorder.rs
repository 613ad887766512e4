//! Puts calls that happened long ago into the timeline, as if they happened again in the same order.

use unstuck_judge::Rules;
use unstuck_judge::ladder::Round;
use unstuck_store::{Answer, Kept, NAME_MAX, Who};
use unstuck_wire::clean::{Clean, Cleaner};
use unstuck_wire::recorded::RecordedCall;

use crate::cellar::{self, Cellar};
use crate::desk::{self, Desk};
use crate::exit::{CommandError, ExitStatus};
use crate::ui::Ui;

/// Earlier than this, a record counts from its own beginning and not from 1970.
const FIRST_REAL_MOMENT: u64 = 100_000_000_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Records the calls of any number of runs.
pub(crate) struct Recorder<'a> {
    desk: Desk<'a>,
    cleaner: &'a Cleaner,
    begun: u64,
    recorded: u64,
    spooled: u64,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(cellar: &'a Cellar, cleaner: &'a Cleaner) -> Recorder<'a> {
        let desk = cellar.desk_for_the_past(cleaner);
        Recorder { desk, cleaner, begun: cellar::now(), recorded: 0, spooled: 0 }
    }

    /// Records one call. Unlike an agent, whoever asked for this wants to hear that it did not work.
    pub(crate) fn record(&mut self, rules: &Rules, call: &RecordedCall) -> Result<(), CommandError> {
        let asked_at = self.moment(call.at);
        let key = match call.id.is_empty() {
            true => format!("#{}", call.index),
            false => call.id.clone(),
        };
        let now = cellar::now();
        let who = self.who(call, asked_at);
        let answer = self.desk.before(who, &key, &call.observation.call, call.new_user_turn, now);
        self.check(&answer)?;
        let result = desk::Result {
            key: &key,
            observation: &call.observation,
            said_ok: call.said_ok,
            took_ms: call.took_ms,
            user_spoke: false,
            can_retry: None,
        };
        let who = self.who(call, asked_at.saturating_add(call.took_ms.unwrap_or(0)));
        let (answer, _) = self.desk.after(rules, who, &result, now);
        self.check(&answer)?;
        self.recorded += 1;
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
            Some(at) if at >= FIRST_REAL_MOMENT => at,
            Some(passed) => (self.begun - DAY_MS.min(self.begun)).saturating_add(passed).min(self.begun),
            None => self.begun,
        }
    }

    fn who(&self, call: &RecordedCall, at: u64) -> Who {
        let session = if call.trace.is_empty() { "replay" } else { &call.trace };
        Who {
            host: Clean::from("replay"),
            session: self.cleaner.name(session, NAME_MAX),
            agent: self.cleaner.name(&call.agent, NAME_MAX),
            cwd: Clean::default(),
            owner: Clean::default(),
            round: call.round.map_or(Round::Unsaid, Round::Numbered),
            at,
        }
    }

    /// Says how much was recorded.
    pub(crate) fn finish(self, ui: &mut Ui) -> Result<ExitStatus, CommandError> {
        let waiting = match self.spooled {
            0 => String::new(),
            spooled => format!(" ({spooled} entries wait in the spool)"),
        };
        ui.remark(&format!("recorded: {} calls{waiting}\n", self.recorded))?;
        Ok(ExitStatus::Success)
    }
}
