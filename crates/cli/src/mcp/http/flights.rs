//! The requests that are under way. Each ends once: with its answer, with the news that there is none, or by being taken
//! back; whatever comes for it later is heard by nobody.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;
use unstuck_wire::mcp::Id;

use super::client::Left;

/// All requests under way.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<Id, Flight>>);

/// One request under way.
#[derive(Debug)]
pub(super) struct Flight {
    /// Tells it from another one of the same name.
    pub(super) number: u64,
    pub(super) waits_for: Awaited,
    /// Does it need no session, so that to hang up is to take it back?
    pub(super) stateless: bool,
    pub(super) left: Left,
    pub(super) task: Option<AbortHandle>,
    /// Is it a call of a tool? Whatever else was asked in a session that is over is asked again by whoever waits for it.
    pub(super) is_call: bool,
    pub(super) stage: Stage,
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The server has said nothing to it yet.
    Open,
    /// The answer has begun.
    Taken,
    /// The server did not take it, because the session is over.
    Untaken,
}

/// What is to be learned from an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// Which version is spoken.
    Version,
    /// Which arguments are said in headers.
    Tools,
    Nothing,
}

impl Flights {
    fn table(&self) -> MutexGuard<'_, HashMap<Id, Flight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request sets out. One of the same name that is still under way is given back.
    pub(super) fn begin(&self, id: Id, flight: Flight) -> Option<Flight> {
        self.table().insert(id, flight)
    }

    /// Its task is known only once it runs.
    pub(super) fn carried_by(&self, id: &Id, number: u64, task: AbortHandle) {
        if let Some(flight) = self.table().get_mut(id).filter(|flight| flight.number == number) {
            flight.task = Some(task);
        }
    }

    /// It has come so far.
    pub(super) fn set(&self, id: &Id, number: u64, stage: Stage) {
        if let Some(flight) = self.table().get_mut(id).filter(|flight| flight.number == number) {
            flight.stage = stage;
        }
    }

    /// Does any wait for the first word of the server?
    pub(super) fn are_open(&self) -> bool {
        self.table().values().any(|flight| flight.stage == Stage::Open && flight.left.has_left())
    }

    /// Ends the calls that the server certainly did not take.
    pub(super) fn end_untaken(&self) -> Vec<Id> {
        let is_untaken = |flight: &mut Flight| {
            flight.is_call
                && match flight.stage {
                    Stage::Open => !flight.left.has_left(),
                    Stage::Taken => false,
                    Stage::Untaken => true,
                }
        };
        self.table().extract_if(|_, flight| is_untaken(flight)).map(|(id, _)| id).collect()
    }

    /// Is it still under way?
    pub(super) fn has(&self, id: &Id, number: u64) -> bool {
        self.table().get(id).is_some_and(|flight| flight.number == number)
    }

    /// It ends, by whatever name an answer calls it.
    pub(super) fn end(&self, id: &Id) -> Option<Flight> {
        self.table().remove(id)
    }

    /// This very one ends. `false` where it had ended before.
    pub(super) fn end_own(&self, id: &Id, number: u64) -> bool {
        let mut table = self.table();
        let own = table.get(id).is_some_and(|flight| flight.number == number);
        if own {
            table.remove(id);
        }
        own
    }
}
