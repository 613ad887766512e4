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
