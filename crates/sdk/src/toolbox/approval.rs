//! Calls that wait for a person.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::carry::{self, Journey};
use super::observed::Event;
use super::{Inner, now};
use crate::call::{CallId, CallInfo, Session};
use crate::result::CallResult;

/// How many calls wait at most; of more, the one that has waited for longest is denied.
const WAITING_MAX: usize = 1024;

/// A call that waits for a person.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PendingCall {
    /// The call.
    pub call: Arc<CallInfo>,
    /// What the person is asked.
    pub question: String,
    /// Since when, in milliseconds since 1970.
    pub since: u64,
}

/// The calls that wait.
#[derive(Default)]
pub(crate) struct Pending(Mutex<HashMap<(Session, CallId), Waiting>>);

struct Waiting {
    journey: Journey,
    question: String,
    since: u64,
}

impl Pending {
    pub(super) fn all(&self) -> Vec<PendingCall> {
        let waiting = self.lock();
        let shown = |waiting: &Waiting| PendingCall {
            call: Arc::clone(&waiting.journey.opening.call),
            question: waiting.question.clone(),
            since: waiting.since,
        };
        let mut all: Vec<PendingCall> = waiting.values().map(shown).collect();
        all.sort_by(|one, other| (one.since, one.call.id()).cmp(&(other.since, other.call.id())));
        all
    }

    /// Lets a call wait; gives back the one that has waited for longest where there are too many.
    pub(super) fn put(&self, journey: Journey, question: String) -> Option<Journey> {
        let mut all = self.lock();
        let oldest = all.iter().min_by_key(|(_, waiting)| waiting.since).map(|(key, _)| key.clone());
        let dropped = oldest.filter(|_| all.len() >= WAITING_MAX).and_then(|key| all.remove(&key));
        let call = &journey.opening.call;
        all.insert((call.session.clone(), call.id.clone()), Waiting { journey, question, since: now() });
        dropped.map(|waiting| waiting.journey)
    }

    fn take(&self, call: &CallInfo) -> Option<Journey> {
        self.lock().remove(&(call.session.clone(), call.id.clone())).map(|waiting| waiting.journey)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(Session, CallId), Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A person allows it: it goes on where it stopped.
pub(super) async fn approve(inner: &Arc<Inner>, call: &CallInfo) -> Option<CallResult> {
    let _running = inner.running.token();
    let mut journey = inner.pending.take(call)?;
    // What the person took to decide is not the call's.
    journey.begun = Instant::now();
    inner.ledger.approved(&journey.opening, now());
    Some(carry::on(inner, journey).await)
}

/// A person does not.
pub(super) async fn deny(inner: &Arc<Inner>, call: &CallInfo, why: String) -> Option<CallResult> {
    let _running = inner.running.token();
    let mut journey = inner.pending.take(call)?;
    journey.begun = Instant::now();
    Some(carry::without_running(inner, journey, Event::Denied(why)).await)
}
