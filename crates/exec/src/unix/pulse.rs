//! When a command printed last: the pump says so, and the keeper ends what has been silent for too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::job::{Job, Limit};

/// Shared by those two.
#[derive(Clone)]
pub(super) struct Pulse {
    started: Instant,
    idle: Limit,
    /// In milliseconds since the start.
    last: Arc<AtomicU64>,
}

impl Pulse {
    pub(super) fn new(job: &Job, started: Instant) -> Pulse {
        Pulse { started, idle: job.idle, last: Arc::default() }
    }

    /// Something was printed.
    pub(super) fn beat(&self) {
        if let Limit::After(_) = self.idle {
            let passed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.last.store(passed, Ordering::Relaxed);
        }
    }

    /// When time is up: by `until`, or by a silence that lasts too long.
    pub(super) fn due(&self, until: Option<Instant>) -> Option<Instant> {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        let silent = match self.idle {
            Limit::None => None,
            Limit::After(idle) => last.checked_add(idle).and_then(|silent| self.started.checked_add(silent)),
        };
        match (until, silent) {
            (Some(until), Some(silent)) => Some(until.min(silent)),
            (until, silent) => until.or(silent),
        }
    }
}
