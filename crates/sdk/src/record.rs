//! The audit record of calls: where each stands, and how it came there.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use unstuck_store::CallState;

use crate::call::{CallId, CallInfo, Session};

/// How many records are kept where there is no store.
const KEPT: usize = 10_000;

/// One step in the life of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordStep {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Where it stood from then on.
    pub state: CallState,
    /// What is said of it; often nothing.
    pub note: String,
}

/// The record of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallRecord {
    /// Its name; with `#2`, `#3` … where it is another attempt at one.
    pub id: CallId,
    /// The tool.
    pub tool: String,
    /// Where it stands.
    pub state: CallState,
    /// How it came there.
    pub trail: Vec<RecordStep>,
}

impl CallRecord {
    /// The record as JSON.
    pub fn to_json(&self) -> Value {
        let trail = self
            .trail
            .iter()
            .map(|step| serde_json::json!({ "at": step.at, "state": step.state.word(), "note": step.note }));
        serde_json::json!({
            "id": self.id.as_str(), "tool": self.tool, "state": self.state.word(),
            "trail": trail.collect::<Value>(),
        })
    }
}

/// The records of a toolbox without a store, the newest of them.
#[derive(Debug, Default)]
pub(crate) struct Records(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The number of the oldest one that is kept.
    first: u64,
    all: VecDeque<Line>,
    open: HashMap<Name, u64>,
}

#[derive(Debug)]
struct Line {
    name: Name,
    tool: String,
    trail: Trail,
}

/// What tells one attempt from all others. Without the arguments: they may be large, and nobody asks for them here.
type Name = (Session, CallId, u32);

/// Most calls have three steps and no note: asked for, running, done.
#[derive(Debug)]
struct Trail {
    asked_at: u64,
    began_at: Option<u64>,
    more: Vec<RecordStep>,
    ended: Option<(u64, CallState)>,
}

impl Records {
    /// A call is asked for.
    pub(crate) fn asked(&self, call: &CallInfo, attempt: u32, at: u64) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.all.len() == KEPT {
            if let Some(oldest) = kept.all.pop_front() {
                kept.open.remove(&oldest.name);
            }
            kept.first += 1;
        }
        let number = kept.first + kept.all.len() as u64;
        let name = (call.session.clone(), call.id.clone(), attempt);
        kept.open.insert(name.clone(), number);
        let trail = Trail { asked_at: at, began_at: None, more: Vec::new(), ended: None };
        kept.all.push_back(Line { name, tool: call.recorded_as().to_owned(), trail });
    }

    /// It goes on to another state.
    pub(crate) fn moved(&self, call: &CallInfo, attempt: u32, at: u64, state: CallState, note: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (call.session.clone(), call.id.clone(), attempt);
        let number = match state.is_final() {
            true => kept.open.remove(&key),
            false => kept.open.get(&key).copied(),
        };
        let Some(number) = number.and_then(|number| number.checked_sub(kept.first)) else { return };
        let Some(record) = usize::try_from(number).ok().and_then(|number| kept.all.get_mut(number)) else {
            return;
        };
        match (state, note) {
            (CallState::Executing, "") if record.trail.more.is_empty() => record.trail.began_at = Some(at),
            (state, "") if state.is_final() => record.trail.ended = Some((at, state)),
            (state, note) => record.trail.more.push(RecordStep { at, state, note: note.to_owned() }),
        }
    }

    /// The records of a session, oldest first.
    pub(crate) fn of(&self, session: &Session) -> Vec<CallRecord> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.all.iter().filter(|record| record.name.0 == *session).map(Line::shown).collect()
    }
}

impl Line {
    fn shown(&self) -> CallRecord {
        let plain = |at, state| RecordStep { at, state, note: String::new() };
        let mut trail = vec![plain(self.trail.asked_at, CallState::Pending)];
        trail.extend(self.trail.began_at.map(|at| plain(at, CallState::Executing)));
        trail.extend(self.trail.more.iter().cloned());
        trail.extend(self.trail.ended.map(|(at, state)| plain(at, state)));
        CallRecord {
            id: attempt_id(&self.name.1, self.name.2),
            tool: self.tool.clone(),
            state: trail.last().map_or(CallState::Pending, |step| step.state),
            trail,
        }
    }
}

/// The name of an attempt in the record: the first is the call itself.
pub(crate) fn attempt_id(call: &CallId, attempt: u32) -> CallId {
    match attempt {
        1 => call.clone(),
        attempt => CallId::from(format!("{call}#{attempt}")),
    }
}
