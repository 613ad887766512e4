//! Sessions that are halted: nothing of them runs until the user has said something.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::call::{CallInfo, Session};
use crate::result::{CallResult, Status};

/// How many are remembered; one that is forgotten is halted again by its next repeat.
const REMEMBERED: usize = 1024;

/// The halted sessions, with what was said.
#[derive(Default)]
pub(crate) struct Halted(Mutex<HashMap<Session, Said>>);

struct Said {
    error: String,
    table: Option<String>,
}

impl Halted {
    /// What a call is told whose session is halted.
    pub(crate) fn answer(&self, call: &Arc<CallInfo>, begun: Instant) -> Option<CallResult> {
        let halted = self.lock();
        let said = halted.get(&call.session)?;
        let (error, table) = (said.error.clone(), said.table.clone());
        let took = begun.elapsed();
        Some(CallResult { error, table, took, ..CallResult::new(Arc::clone(call), Status::Halted) })
    }

    /// Remembers the session of a call that was halted.
    pub(crate) fn note(&self, result: &CallResult) {
        if result.status() != Status::Halted {
            return;
        }
        let mut halted = self.lock();
        if halted.len() >= REMEMBERED {
            halted.clear();
        }
        let said = Said { error: result.error.clone(), table: result.table.clone() };
        halted.insert(result.call.session.clone(), said);
    }

    /// The user has said something.
    pub(crate) fn lift(&self, session: &Session) {
        self.lock().remove(session);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Session, Said>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
