//! Which sessions are quiet: nothing is known to fail in them and nothing was to be said, so their calls need not wait for the
//! store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::call::Session;

/// Of more sessions it is forgotten: they wait once and are known again.
const SESSIONS: usize = 4096;

/// The sessions of this process, as far as they were asked about.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    sessions: Mutex<HashMap<Session, Mood>>,
    /// What nobody waited for could not be kept as it should: somebody has to hear of that.
    is_unwell: AtomicBool,
}

/// How a session is.
#[derive(Debug, Default)]
struct Mood {
    is_quiet: bool,
    /// What was said and nobody waited to hear.
    unheard: Option<String>,
}

impl Quiet {
    /// Is it certain that nothing is to be said in this session?
    pub(super) fn is(&self, session: &Session) -> bool {
        !self.is_unwell.load(Ordering::Relaxed)
            && self.lock().get(session).is_some_and(|mood| mood.is_quiet && mood.unheard.is_none())
    }

    /// Something failed, or something is to be said.
    pub(super) fn stir(&self, session: &Session) {
        self.mood(session, |mood| mood.is_quiet = false);
    }

    /// Nothing is known to fail in it.
    pub(super) fn settle(&self, session: &Session) {
        self.mood(session, |mood| mood.is_quiet = true);
    }

    /// Something was said, and nobody waited for it.
    pub(super) fn leave_word(&self, session: &Session, text: Option<String>) {
        self.mood(session, |mood| {
            mood.is_quiet = false;
            mood.unheard = text.or(mood.unheard.take());
        });
    }

    /// What was said before and nobody heard.
    pub(super) fn unheard(&self, session: &Session) -> Option<String> {
        self.lock().get_mut(session).and_then(|mood| mood.unheard.take())
    }

    /// What nobody waited for was kept, or not.
    pub(super) fn note_health(&self, is_well: bool) {
        self.is_unwell.store(!is_well, Ordering::Relaxed);
    }

    fn mood(&self, session: &Session, change: impl FnOnce(&mut Mood)) {
        let mut sessions = self.lock();
        if sessions.len() >= SESSIONS && !sessions.contains_key(session) {
            sessions.clear();
        }
        change(sessions.entry(session.clone()).or_default());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Session, Mood>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
