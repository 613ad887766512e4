//! What is remembered of calls while an agent works, and what follows from it: the ladder, the brakes of retries, events and
//! the record. In memory, or in the store that all doors share.

mod looked;
mod memory;
mod stored;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use unstuck_judge::ladder::Rung;
use unstuck_judge::nature::Nature;
use unstuck_judge::retry::{Dice, Draw};
use unstuck_judge::{Call, Diagnosis, Effect, Kind, Lang, Observation, Outcome, Rules};
use unstuck_store::{
    Asked, Bookmark, Bounds, CallState, Ended, EventType, Mode, OwnAttempts, Resend, Retry, Ruling, Said,
    Sealed, Sender, Series, Severity, Stance, StoredEvent, Who,
};
use unstuck_wire::clean::Cleaner;
use unstuck_wire::report::Report;
use unstuck_wire::time;

use crate::bus::{Body, Event, EventBus};
use crate::call::{CallInfo, Session};
use crate::policy::Policy;
use crate::record::{CallRecord, attempt_id};
use crate::store::{Store, StoreError};
use crate::toolbox::now;
use memory::Memory;
pub(crate) use stored::Orphan;
use stored::{Remembered, Stored, Tail, Timeline};

/// A call that is asked for, or the next attempt at one that was let pass.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    /// The call as everybody knows it.
    pub(crate) call: Arc<CallInfo>,
    /// What the ladder compares: the same, or what the tool says makes two calls the same.
    pub(crate) compared: Arc<Call>,
    /// What the tool says it can do to the world; without that the judge reads it from the call.
    pub(crate) nature: Option<Nature>,
    /// May its answers change by themselves? Nothing where nobody says so.
    pub(crate) polls: Option<bool>,
    /// It runs at once. Of any other call a person has to decide first, or somebody has decided that it does not run.
    pub(crate) runs: bool,
    /// Which attempt it is, counted from 1. Only the first is the agent's; of the others nothing is asked, they are noted.
    pub(crate) attempt: u32,
    /// When, in milliseconds since 1970.
    pub(crate) at: u64,
}

impl Opening {
    /// The same as it is kept and judged.
    fn asked(&self, cleaner: &Cleaner, bounds: &Bounds, who: Who) -> Asked {
        let key = attempt_id(&self.call.id, self.attempt);
        let mut asked = Asked::new(cleaner, bounds, who, key.as_str(), &self.call.call);
        if !Arc::ptr_eq(&self.call.call, &self.compared) {
            asked = asked.compared_as(&self.compared);
        }
        if let Some(nature) = self.nature {
            asked = asked.known_to_be(nature);
        }
        match self.polls {
            Some(false) => {}
            Some(true) => asked = asked.known_to_poll(true),
            None => asked = asked.known_to_poll(false),
        }
        // The program that made the toolbox decides what a halt means.
        asked.attended = true;
        asked.runs = self.runs;
        asked.sender = if self.attempt > 1 { Sender::Runner } else { Sender::Agent };
        asked
    }
}

/// What is said to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Before {
    /// May it run?
    pub(crate) stance: Stance,
    /// What the model is told.
    pub(crate) text: Option<String>,
    /// What was tried, for the person who has to decide about a run that is halted.
    pub(crate) table: Option<String>,
    /// Calls that were found dead.
    pub(crate) sealed: Vec<Sealed>,
}

/// An attempt that ended.
#[derive(Debug)]
pub(crate) struct Closing {
    pub(crate) opening: Opening,
    pub(crate) printed: Printed,
    /// What the tool itself recommends.
    pub(crate) advice: Advice,
    pub(crate) took: Duration,
    /// How far the attempts at it are.
    pub(crate) series: Series,
    /// It ran into its time limit, and the next one would be longer.
    pub(crate) gets_more_time: bool,
    /// It must not be sent again, whatever came of it.
    pub(crate) is_hindered: bool,
    pub(crate) draw: Draw,
    /// When it ended, in milliseconds since 1970.
    pub(crate) at: u64,
}

impl Closing {
    /// What speaks for and against sending it again.
    pub(crate) fn resend(&self) -> Resend {
        let &Closing { series, gets_more_time, is_hindered, draw, .. } = self;
        let ours =
            OwnAttempts { tries_unknown: false, tries_guesses: false, gets_more_time, is_hindered, series };
        Resend { draw, from_hook: None, ours: Some(ours) }
    }
}

/// What is recommended with a failure by whoever knows more of it than its words tell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Advice {
    pub(crate) sentences: Vec<String>,
    /// The rules have nothing to add.
    pub(crate) is_all: bool,
}

impl Advice {
    /// Adds it to what ended; `report` is what the rules say.
    fn go_with(&self, ended: &mut Ended, report: &mut Report, cleaner: &Cleaner) {
        if self.is_all {
            report.recommendations.clear();
        }
        ended.advise(cleaner, &self.sentences, &report.recommendations);
    }
}

/// What a call does that was cut off and may have done its work, where nobody has annotated its tool: until somebody has looked, it
/// counts as one that must not be done twice.
fn nature_of(nature: Option<Nature>, diagnosis: &Diagnosis) -> Option<Nature> {
    let is_cut_off = matches!(
        diagnosis.kind,
        Kind::Network | Kind::Timeout | Kind::ServerError | Kind::Aborted | Kind::Crash
    );
    match nature {
        Some(Nature::Unknown) if is_cut_off => Some(Nature::Writes),
        other => other,
    }
}

/// What is said after an attempt. Of a failure that the same limit brings about again nobody says that it may pass.
fn text_after(said: &Said, diagnosis: &Diagnosis) -> Option<String> {
    let is_note = said.decision.as_ref().is_some_and(|decision| decision.rung == Rung::Note);
    let stays = matches!(diagnosis.kind, Kind::Timeout | Kind::Aborted) && !diagnosis.transient;
    match (said.mode > Mode::Shadow, is_note && stays) {
        (false, _) => None,
        (true, true) => said.remembered.clone(),
        (true, false) => said.text.clone(),
    }
}

/// Is a cause only a guess, from words that nobody knows? Then one repeat tells more.
fn is_guess(diagnosis: &Diagnosis) -> bool {
    matches!(diagnosis.kind, Kind::Unknown | Kind::Logical | Kind::Crash) && diagnosis.confidence < 0.5
}

/// What is wrong with a call, as far as that can be found in what it printed.
fn diagnosed(rules: &Rules, observation: &Observation, known: Known) -> Diagnosis {
    let mut diagnosis = rules.diagnose(observation);
    if diagnosis.ok() != Some(true) {
        diagnosis.transient |= known.comes_back;
        match known.effect {
            // What does not pass by itself is sent again by nobody, and the words of the rules may stand.
            Some(Effect::Maybe) if !diagnosis.transient => {}
            Some(effect) => diagnosis.effect = Some(effect),
            None => {}
        }
    }
    diagnosis
}

/// What the tool itself knows of a failure.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    comes_back: bool,
    effect: Option<Effect>,
}

/// Did it fail? A command that exits with 0 may have, and one that exits with 1 may not: `grep` without a match.
fn has_failed(ended: &Ended, report: &Report, outcome: Outcome) -> bool {
    let says_so = outcome.said_ok() == Some(false);
    ended.finding.is_some() || says_so && report.diagnosis.ok() != Some(true)
}

/// How an attempt ended and what it printed.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) outcome: Outcome,
    pub(crate) http_status: Option<u16>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) merged: Vec<u8>,
    /// The tool itself says that it passes.
    pub(crate) comes_back: bool,
    /// What the tool itself says of what was done.
    pub(crate) effect: Option<Effect>,
}

impl Printed {
    /// It ended, and nothing was printed.
    pub(crate) fn nothing(outcome: Outcome) -> Printed {
        Printed {
            outcome,
            http_status: None,
            stdout: Vec::new(),
            stderr: Vec::new(),
            merged: Vec::new(),
            comes_back: false,
            effect: None,
        }
    }

    /// What the tool itself knows.
    fn known(&self) -> Known {
        Known { comes_back: self.comes_back, effect: self.effect }
    }

    /// The same as the judge wants to hear it.
    pub(crate) fn of(self, call: &Call) -> Observation {
        Observation {
            call: call.clone(),
            outcome: self.outcome,
            http_status: self.http_status,
            stdout: self.stdout,
            stderr: self.stderr,
            merged: self.merged,
        }
    }
}

/// What follows from it.
#[derive(Debug, Default)]
pub(crate) struct After {
    /// Did it fail? Not always what the tool says of it.
    pub(crate) failed: bool,
    /// What it was found to be; nothing where it went well.
    pub(crate) report: Option<Report>,
    /// Whether it is sent again; nothing where it went well.
    pub(crate) retry: Option<Retry>,
    /// What the model is told, with the last attempt.
    pub(crate) text: Option<String>,
}

impl After {
    /// The line that shows what is wrong, or what it is called; nothing where it went well.
    pub(crate) fn line(&self, lang: Lang) -> Option<String> {
        let diagnosis = &self.report.as_ref()?.diagnosis;
        let line = diagnosis.evidence.as_ref().map(|found| found.text.clone());
        Some(line.unwrap_or_else(|| diagnosis.kind.title(lang).to_owned()))
    }
}

/// What remembers, and tells of it on the bus.
pub(crate) struct Ledger {
    keeps: Keeps,
    bus: EventBus,
    lang: Lang,
    /// The store could not be used the last time.
    is_broken: AtomicBool,
}

enum Keeps {
    /// As long as the toolbox lives.
    Memory(Box<Memory>),
    /// In the store that all doors share.
    Store(Box<Stored>),
}

impl Ledger {
    /// The ledger of a toolbox, and the bus that it tells.
    pub(crate) fn new(policy: &Arc<Policy>, store: Option<Store>, events: usize) -> (Ledger, EventBus) {
        let (keeps, bus) = match store {
            None => {
                let bus = EventBus::new(events);
                (Keeps::Memory(Box::new(Memory::new(Arc::clone(policy), bus.clone()))), bus)
            }
            Some(store) => {
                let timeline = Timeline(store.clone());
                let newest = timeline.newest();
                let bus = EventBus::with_archive(events, Arc::new(timeline), newest);
                let tail = Box::new(Told { bus: bus.clone(), keeps_none: events == 0 });
                (Keeps::Store(Box::new(Stored::new(store, policy, newest, tail))), bus)
            }
        };
        let ledger = Ledger { keeps, bus: bus.clone(), lang: policy.lang, is_broken: AtomicBool::new(false) };
        (ledger, bus)
    }

    /// A call is asked for, or another attempt at it begins.
    pub(crate) async fn before(&self, opening: &Opening) -> Before {
        match &self.keeps {
            Keeps::Memory(memory) => memory.before(opening),
            Keeps::Store(stored) => {
                let (before, remembered) = stored.before(opening).await;
                if self.is_lost(&opening.call, &remembered) {
                    self.tell_loosely(
                        opening,
                        EventType::ToolStart,
                        Body::Started { attempt: opening.attempt },
                        opening.at,
                    );
                }
                before
            }
        }
    }

    /// An attempt ended.
    pub(crate) async fn after(&self, closing: Closing) -> After {
        match &self.keeps {
            Keeps::Memory(memory) => memory.after(closing),
            Keeps::Store(stored) => {
                let (opening, took, at) = (closing.opening.clone(), closing.took, closing.at);
                let (after, remembered) = stored.after(closing).await;
                if self.is_lost(&opening.call, &remembered) {
                    let state = if after.failed { CallState::Failed } else { CallState::Completed };
                    if let Some(report) = &after.report {
                        let body = Body::Json(unrecorded(&opening, report, self.lang));
                        self.tell_loosely(&opening, EventType::ToolError, body, at);
                    }
                    let (ok, took_ms) = (state == CallState::Completed, time::span_ms(took));
                    self.tell_loosely(&opening, EventType::ToolEnd, Body::Ended { ok, state, took_ms }, at);
                }
                after
            }
        }
    }

    /// Somebody listens to the bus: what other processes write to the store is told there too from now on.
    pub(crate) fn listened(&self) {
        match &self.keeps {
            Keeps::Memory(_) => {}
            Keeps::Store(stored) => stored.follow(),
        }
    }

    /// The user said something.
    pub(crate) fn user_spoke(&self, session: &Session, at: u64) {
        match &self.keeps {
            Keeps::Memory(memory) => memory.user_spoke(session),
            Keeps::Store(stored) => stored.user_spoke(session, at),
        }
    }

    /// A hook wants a person to decide about a call.
    pub(crate) fn asks(&self, opening: &Opening, question: &str, at: u64) {
        match &self.keeps {
            Keeps::Memory(memory) => memory.ruled(opening, CallState::ApprovalRequired, question, at),
            Keeps::Store(stored) => stored.ruled(opening, Ruling::Required, "hook", question, at),
        }
    }

    /// A person lets a call run.
    pub(crate) fn approved(&self, opening: &Opening, at: u64) {
        match &self.keeps {
            Keeps::Memory(memory) => {
                memory.ruled(opening, CallState::Approved, "", at);
                memory.ruled(opening, CallState::Executing, "", at);
            }
            Keeps::Store(stored) => {
                stored.ruled(opening, Ruling::Approved, "person", "", at);
                stored.ruled(opening, Ruling::Begun, "person", "", at);
            }
        }
    }

    /// Nobody waits for a call any more.
    pub(crate) fn interrupted(&self, opening: &Opening, at: u64) {
        match &self.keeps {
            Keeps::Memory(memory) => memory.interrupted(opening, at),
            Keeps::Store(stored) => stored.interrupted(opening, at),
        }
    }

    /// Something beside the tool went wrong. It is told of, and changes nothing.
    pub(crate) fn fault(&self, call: &Arc<CallInfo>, phase: &str, message: &str, at: u64) {
        let body = json!({
            "severity": Severity::Warn.word(), "phase": phase, "message": message, "detail": { "tool": call.recorded_as() },
        });
        let event = Event::new(EventType::Error, at, None, Some(Arc::clone(call)), Body::Json(body));
        match &self.keeps {
            Keeps::Memory(_) => drop(self.bus.publish(event)),
            Keeps::Store(stored) => {
                // What is written is told of from there, with its bookmark.
                if self.is_broken.load(Ordering::Relaxed) {
                    self.bus.publish_unnumbered(event);
                }
                stored.fault(call, phase, message, at);
            }
        }
    }

    /// The records of a session, oldest first.
    pub(crate) async fn records(&self, session: &Session) -> Result<Vec<CallRecord>, StoreError> {
        match &self.keeps {
            Keeps::Memory(memory) => Ok(memory.records(session)),
            Keeps::Store(stored) => stored.records(session).await.map_err(|why| stored.unreadable(why)),
        }
    }

    /// Calls of a session whose process is gone.
    pub(crate) async fn resume(&self, session: &Session) -> Result<Vec<Orphan>, StoreError> {
        match &self.keeps {
            Keeps::Memory(_) => Ok(Vec::new()),
            Keeps::Store(stored) => stored.resume(session).await.map_err(|why| stored.unreadable(why)),
        }
    }

    /// Waits until everything is written.
    pub(crate) async fn close(&self, patience: Duration) {
        match &self.keeps {
            Keeps::Memory(_) => {}
            Keeps::Store(stored) => {
                let _as_much_as_there_was_time_for = stored.close(patience).await;
            }
        }
    }

    /// Looks what became of something, tells once where the store fails and where it works again, and whether nobody else will
    /// ever tell of it.
    fn is_lost(&self, call: &Arc<CallInfo>, remembered: &Remembered) -> bool {
        let fault = remembered.fault();
        if self.is_broken.swap(fault.is_some(), Ordering::Relaxed) != fault.is_some() {
            let (severity, message) = match fault {
                Some(fault) => (Severity::Error, fault),
                None => (Severity::Info, "the store can be used again".to_owned()),
            };
            let body =
                json!({ "severity": severity.word(), "phase": "store", "message": message, "detail": {} });
            let event = Event::new(EventType::Error, now(), None, Some(Arc::clone(call)), Body::Json(body));
            self.bus.publish_unnumbered(event);
        }
        matches!(remembered, Remembered::Lost { .. })
    }

    fn tell_loosely(&self, opening: &Opening, kind: EventType, body: Body, at: u64) {
        self.bus.publish_unnumbered(Event::new(kind, at, None, Some(Arc::clone(&opening.call)), body));
    }
}

/// Tells on the bus what is new in the store.
struct Told {
    bus: EventBus,
    /// No event is kept for those who come late.
    keeps_none: bool,
}

impl Tail for Told {
    fn hear(&self, event: StoredEvent, call: Option<Arc<CallInfo>>) {
        self.bus.publish_numbered(Event::stored(event, call));
    }

    fn does_without(&self, up_to: Bookmark) -> bool {
        self.keeps_none && self.bus.leave_to_archive(up_to)
    }
}

/// A failure that the store could not take, as the body of its event.
fn unrecorded(opening: &Opening, report: &Report, lang: Lang) -> Value {
    let diagnosis = &report.diagnosis;
    let line = diagnosis.evidence.as_ref().map(|found| &*found.text);
    json!({
        "call": {
            "id": null, "key": opening.call.id.as_str(), "tool": opening.call.recorded_as(), "agent": opening.call.agent(),
            "state": CallState::Failed.word(),
        },
        "error": line.unwrap_or(diagnosis.kind.title(lang)),
        "kind": diagnosis.kind.word(),
        "errorType": report.aliases.error_type,
        "retryable": report.aliases.retryable,
    })
}

/// A throw of the dice.
pub(crate) fn roll() -> Draw {
    Dice::seeded(crate::call::unique()).roll()
}
