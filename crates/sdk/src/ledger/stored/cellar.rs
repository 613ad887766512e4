//! The thread that owns the open store. SQLite blocks, so no task of the caller's runtime ever touches it: requests come in
//! order, and whoever waits for an answer goes away when it takes too long. It must never end a request unanswered for another
//! reason than its own death.

use std::collections::{HashMap, VecDeque};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use unstuck_exec::alive;
use unstuck_judge::ladder::{Reason, Rung};
use unstuck_store::{
    Advocate, Answer, Bench, Bookmark, Checked, Entry, Failed, FileMark, Keeper, Kept, Mode, Patience, Said,
    Sealed, Sender, StoreError, StoredEvent, Surroundings, Wanted, Who,
};

use super::quiet::Quiet;
use super::scribe::{Handed, Scribe};
use crate::call::{CallInfo, unique};
use crate::ledger::looked::{self, Where};
use crate::store::{Store, Unseen};
use crate::toolbox::now;

/// How often the timeline is looked at for what other processes wrote.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long others are waited for while the store could not be used the last time: everybody has waited once already.
const IMPATIENT: Duration = Duration::from_millis(5);

/// Hears of what is new in the timeline.
pub(crate) trait Tail: Send {
    /// Of every event, in order, and of which call of this process it is.
    fn hear(&self, event: StoredEvent, call: Option<Arc<CallInfo>>);

    /// Nobody needs to hear of what is new up to a place.
    fn does_without(&self, up_to: Bookmark) -> bool {
        let _ = up_to;
        false
    }
}

/// What is asked of the cellar.
pub(super) enum Request {
    /// Keep an entry, and answer.
    Keep(Box<Entry>, Arc<CallInfo>, oneshot::Sender<Answer>),
    /// Keep an entry. Nobody waits.
    Note(Box<Entry>),
    /// Write down what happened to a call, and keep it. Nobody waits.
    Hand(Handed, Arc<CallInfo>),
    /// Keep what is written down of calls. Nobody waits.
    Written(Vec<Written>),
    /// Seal what was in flight in processes that are gone.
    Resume(Box<Who>, oneshot::Sender<Result<Vec<Sealed>, String>>),
    /// Say when everything before this is done.
    Flush(oneshot::Sender<()>),
    /// Look whether the timeline is still to be followed.
    Look,
    /// Everything before this is done, and nothing comes after it.
    Close(oneshot::Sender<()>),
}

/// A request, and its place in the bounded queue; that is free again when it is done.
pub(super) type Queued = (Request, Place);

/// A place in the queue, where the request has one.
pub(super) type Place = Option<OwnedSemaphorePermit>;

/// What happened to a call, as it is kept.
pub(super) struct Written {
    pub(super) entry: Entry,
    pub(super) call: Arc<CallInfo>,
    pub(super) place: Place,
}

/// How many entries are kept in one transaction, at most: whoever waits for the last of them waits for all.
pub(super) const TOGETHER: usize = 512;

/// Whom an entry comes from.
enum Giver {
    /// Somebody who waits for the answer.
    Waits(Arc<CallInfo>, oneshot::Sender<Answer>),
    /// A call that went on without waiting.
    Unheard(Arc<CallInfo>),
    /// Nobody wants to know.
    Nobody,
}

impl Giver {
    fn call(&self) -> Option<&Arc<CallInfo>> {
        match self {
            Giver::Waits(call, _) | Giver::Unheard(call) => Some(call),
            Giver::Nobody => None,
        }
    }
}

/// Entries that are kept together.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    from: Vec<Giver>,
    /// Their places in the queue, which are free again when they are kept.
    places: Vec<Place>,
}

impl Batch {
    /// Takes what is to be kept, and gives back what is something else.
    fn take(&mut self, (request, place): Queued) -> Option<Queued> {
        match request {
            Request::Keep(mut entry, call, reply) => {
                if let (Entry::Asked(asked), true) = (&mut *entry, reply.is_closed()) {
                    // Nobody heard an answer, so it ran: there is nothing to refuse any more.
                    asked.sender = Sender::Runner;
                }
                self.add(*entry, Giver::Waits(call, reply), place);
            }
            Request::Note(entry) => self.add(*entry, Giver::Nobody, place),
            Request::Written(all) => {
                for Written { entry, call, place } in all {
                    self.add(entry, Giver::Unheard(call), place);
                }
            }
            other @ (Request::Hand(..)
            | Request::Resume(..)
            | Request::Flush(_)
            | Request::Look
            | Request::Close(_)) => return Some((other, place)),
        }
        None
    }

    fn add(&mut self, entry: Entry, from: Giver, place: Place) {
        self.entries.push(entry);
        self.from.push(from);
        self.places.push(place);
    }
}

/// Looks whether the cause of a failure still holds. Somebody may know more of what a call depends on.
struct Witness {
    call: Arc<CallInfo>,
    unseen: Option<Unseen>,
    home: Option<PathBuf>,
    works: Where,
}

impl Advocate for Witness {
    fn check(&self, reason: &Reason, failed: Failed) -> Checked {
        let since = SystemTime::UNIX_EPOCH + Duration::from_millis(failed.ended_at);
        // Whoever panics has seen nothing.
        let moved = |unseen: &Unseen| {
            panic::catch_unwind(AssertUnwindSafe(|| unseen(&self.call, since))).unwrap_or(true)
        };
        match self.unseen.as_ref().is_some_and(moved) {
            true => Checked::Moved,
            false => looked::check(self.call.input(), reason, self.works, self.home.as_deref(), since),
        }
    }
}

/// What the thread needs.
pub(super) struct Cellar {
    pub(super) store: Store,
    pub(super) bench: Bench,
    pub(super) scribe: Arc<Scribe>,
    /// Which sessions need not wait for us.
    pub(super) quiet: Arc<Quiet>,
    /// This process, as calls name it.
    pub(super) owner: String,
    /// Is the timeline to be followed although nothing is asked?
    pub(super) follows: Arc<AtomicBool>,
    /// Did somebody go away unanswered since the last answer?
    pub(super) is_stuck: Arc<AtomicBool>,
    /// How often something was kept.
    pub(super) kept: Arc<AtomicU64>,
    pub(super) tail: Box<dyn Tail>,
    /// How far the timeline was known before the first request.
    pub(super) known: Bookmark,
}

/// The last calls of this process, by the numbers that the store gave them.
#[derive(Default)]
struct Calls {
    known: HashMap<i64, Arc<CallInfo>>,
    order: VecDeque<i64>,
}

impl Calls {
    /// How many are known. Events come at once; only those of paused calls come late.
    const KNOWN: usize = 1024;

    fn note(&mut self, number: i64, call: Arc<CallInfo>) {
        if self.known.insert(number, call).is_none() {
            self.order.push_back(number);
        }
        if self.order.len() > Calls::KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// How far the timeline was handed on.
struct Seen {
    place: Bookmark,
    file: Option<FileMark>,
}

impl Cellar {
    /// Works until nobody can ask any more.
    pub(super) fn work(self, requests: &Receiver<Queued>) {
        // Half of the patience is for others; the rest is for the way there, and for the spool.
        let half = self.store.patience / 2;
        let patience = Patience { before: half, after: half };
        let impatient = patience.at_most(IMPATIENT);
        let is_alive = |owner: &str| owner == self.owner || alive::is_alive(owner);
        let mut keeper = Keeper::new(Surroundings {
            root: &self.store.path,
            believed: None,
            bench: self.bench.clone(),
            patience,
            is_alive: &is_alive,
            cleaner: &self.scribe.cleaner,
            dice: unique(),
        });
        let mut seen = None;
        let mut calls = Calls::default();
        let mut next = None;
        loop {
            let follows = self.follows.load(Ordering::Relaxed);
            let came = match (next.take(), follows) {
                (Some(next), _) => Ok(next),
                (None, true) => requests.recv_timeout(LOOK_EVERY),
                (None, false) => requests.recv().map_err(RecvTimeoutError::from),
            };
            let (request, place) = match came {
                Ok(came) => came,
                Err(RecvTimeoutError::Timeout) => (Request::Look, None),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // What stood in the timeline before is replayed, not handed on as new.
            if seen.is_none() {
                seen = Seen::now(&mut keeper, self.known);
                if seen.is_none() {
                    keeper.wait_at_most(impatient);
                }
            }
            match request {
                Request::Keep(..) | Request::Note(_) | Request::Written(..) => {
                    let mut batch = Batch::default();
                    next = batch.take((request, place));
                    while next.is_none() && batch.entries.len() < TOGETHER {
                        let Ok(came) = requests.try_recv() else { break };
                        next = batch.take(came);
                    }
                    let witnesses = self.witnesses(&batch);
                    let advocates: Vec<Option<&dyn Advocate>> =
                        witnesses.iter().map(|one| one.as_ref().map(|one| one as &dyn Advocate)).collect();
                    let answers = keeper.keep_together(&batch.entries, &advocates, now());
                    drop(witnesses);
                    let is_well = answers.iter().all(|answer| answer.kept.is_in_database());
                    keeper.wait_at_most(if is_well { patience } else { impatient });
                    for (answer, from) in answers.iter().zip(&batch.from) {
                        if let (Some(number), Some(call)) = (answer.said.call, from.call()) {
                            calls.note(number, Arc::clone(call));
                        }
                    }
                    // Whoever hears the answer finds its events on the bus already.
                    self.hand_on(&mut keeper, &mut seen, &calls);
                    self.is_stuck.store(false, Ordering::Relaxed);
                    self.kept.fetch_add(1, Ordering::Relaxed);
                    for (answer, from) in answers.into_iter().zip(batch.from) {
                        self.answer(&keeper, answer, from);
                    }
                }
                // It is written down on its way here.
                Request::Hand(..) => {}
                Request::Resume(who, reply) => {
                    // Where nobody can tell whether a process runs, only this one is known to.
                    let is_alive =
                        |owner: &str| owner == self.owner || owner.contains(':') && alive::is_alive(owner);
                    let sealed = keeper.resume(&who, now(), &is_alive);
                    self.hand_on(&mut keeper, &mut seen, &calls);
                    let _whoever_asked_may_be_gone = reply.send(sealed.map_err(|error| error.to_string()));
                }
                Request::Flush(reply) => {
                    let _whoever_asked_may_be_gone = reply.send(());
                }
                Request::Look => self.hand_on(&mut keeper, &mut seen, &calls),
                Request::Close(reply) => {
                    let _whoever_asked_may_be_gone = reply.send(());
                    return;
                }
            }
        }
    }

    /// Who speaks for each call that is asked for, where anybody does.
    fn witnesses(&self, batch: &Batch) -> Vec<Option<Witness>> {
        let asks = |entry: &Entry| matches!(entry, Entry::Asked(_));
        let pairs = batch.entries.iter().zip(&batch.from);
        let calls = pairs.map(|(entry, from)| from.call().filter(|_| asks(entry)));
        let witness = |call: &Arc<CallInfo>| Witness {
            call: Arc::clone(call),
            unseen: self.store.unseen.clone(),
            home: self.store.home.clone(),
            works: if self.bench.ladder.sees_a_part() { Where::Elsewhere } else { Where::Here },
        };
        calls.map(|call| call.map(witness)).collect()
    }

    /// Tells whoever waits what is said, and notes what that means for those who need not wait.
    fn answer(&self, keeper: &Keeper<'_>, answer: Answer, from: Giver) {
        let is_well = answer.kept.is_in_database();
        let said = &answer.said;
        let is_silent = said.text.is_none()
            && said.sealed.is_empty()
            && !said.stance.refuses()
            && said.decision.as_ref().is_none_or(|decision| decision.rung == Rung::Observe);
        match from {
            Giver::Nobody => {}
            Giver::Unheard(call) => {
                self.quiet.note_health(is_well);
                if !is_silent && said.mode > Mode::Shadow {
                    self.quiet.leave_word(&call.session, said.text.clone());
                }
            }
            Giver::Waits(call, reply) => {
                if !self.store.waits && is_well {
                    self.quiet.note_health(true);
                    match is_silent && !keeper.knows_failures(&self.scribe.session(&call.session)) {
                        true => self.quiet.settle(&call.session),
                        false => self.quiet.stir(&call.session),
                    }
                }
                let _whoever_asked_may_be_gone = reply.send(answer);
            }
        }
    }

    /// Hands on what is new. What cannot be read now is read the next time.
    fn hand_on(&self, keeper: &mut Keeper<'_>, seen: &mut Option<Seen>, calls: &Calls) {
        let Some(seen) = seen else { return };
        let Ok(store) = keeper.store(now()) else { return };
        if store.file_mark() != seen.file {
            // Another database stands there: all that is in it is new.
            *seen = Seen { place: Bookmark::default(), file: store.file_mark() };
        }
        let _read_again_later = store.newest().and_then(|newest| {
            if !self.follows.load(Ordering::Relaxed) && self.tail.does_without(newest) {
                seen.place = newest;
                return Ok(());
            }
            store.events(&Wanted::default(), seen.place, newest, |event| {
                seen.place = event.seq;
                let call = event.call.and_then(|number| calls.known.get(&number).cloned());
                self.tail.hear(event, call);
                Ok::<(), StoreError>(())
            })
        });
    }
}

impl Seen {
    /// Where the timeline was known to end, or where it ends now, if that is before; nothing where nobody can tell yet.
    fn now(keeper: &mut Keeper<'_>, known: Bookmark) -> Option<Seen> {
        match keeper.store(now()) {
            Ok(store) => Some(Seen { place: store.newest().ok()?.min(known), file: store.file_mark() }),
            // It will be set aside, and all that is in the one that takes its place is new.
            Err(StoreError::Damaged { .. }) => Some(Seen { place: Bookmark::default(), file: None }),
            Err(_) => None,
        }
    }
}

/// What is answered where nothing can be remembered.
pub(super) fn nothing_said(why: String) -> Answer {
    Answer { said: Said::default(), kept: Kept::Lost { why } }
}
