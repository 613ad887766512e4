//! The thread that owns the open store. SQLite blocks, so no task of the caller's runtime ever touches it: requests come in
//! order, and whoever waits for an answer goes away when it takes too long. It must never end a request unanswered for another
//! reason than its own death.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use unstuck_exec::alive;
use unstuck_store::{
    Answer, Bench, Bookmark, Entry, FileMark, Keeper, Kept, Patience, Said, Sealed, Sender, StoreError,
    StoredEvent, Surroundings, Wanted, Who,
};
use unstuck_wire::clean::Cleaner;

use crate::call::{CallInfo, unique};
use crate::store::Store;
use crate::toolbox::now;

/// How often the timeline is looked at for what other processes wrote.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long others are waited for while the store could not be used the last time: everybody has waited once already.
const IMPATIENT: Duration = Duration::from_millis(5);

/// Hears of every event that is new in the timeline, in order, and of which call of this process it is.
pub(crate) type Tail = Box<dyn Fn(StoredEvent, Option<Arc<CallInfo>>) + Send>;

/// What is asked of the cellar.
pub(super) enum Request {
    /// Keep an entry, and answer.
    Keep(Box<Entry>, Arc<CallInfo>, oneshot::Sender<Answer>),
    /// Keep an entry. Nobody waits.
    Note(Box<Entry>),
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
pub(super) type Queued = (Request, Option<OwnedSemaphorePermit>);

/// What the thread needs.
pub(super) struct Cellar {
    pub(super) store: Store,
    pub(super) bench: Bench,
    pub(super) cleaner: Arc<Cleaner>,
    /// This process, as calls name it.
    pub(super) owner: String,
    /// Is the timeline to be followed although nothing is asked?
    pub(super) follows: Arc<AtomicBool>,
    /// Did somebody go away unanswered since the last answer?
    pub(super) is_stuck: Arc<AtomicBool>,
    pub(super) tail: Tail,
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
        let impatient = Patience { before: half.min(IMPATIENT), after: half.min(IMPATIENT) };
        let is_alive = |owner: &str| owner == self.owner || alive::is_alive(owner);
        let mut keeper = Keeper::new(Surroundings {
            root: &self.store.path,
            believed: None,
            bench: self.bench.clone(),
            patience,
            is_alive: &is_alive,
            cleaner: &self.cleaner,
            dice: unique(),
        });
        let mut seen = None;
        let mut calls = Calls::default();
        loop {
            let follows = self.follows.load(Ordering::Relaxed);
            let next = match follows {
                true => requests.recv_timeout(LOOK_EVERY),
                false => requests.recv().map_err(RecvTimeoutError::from),
            };
            let (request, _place) = match next {
                Ok(next) => next,
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
            // Whoever hears the answer finds its events on the bus already.
            let mut keep = |entry: &Entry, call: Option<Arc<CallInfo>>| {
                let answer = keeper.keep(entry, now());
                keeper.wait_at_most(match answer.kept {
                    Kept::Stored => patience,
                    Kept::Spooled { .. } | Kept::Lost { .. } => impatient,
                });
                if let (Some(number), Some(call)) = (answer.said.call, call) {
                    calls.note(number, call);
                }
                self.hand_on(&mut keeper, &mut seen, &calls);
                answer
            };
            match request {
                Request::Keep(mut entry, call, reply) => {
                    if let (Entry::Asked(asked), true) = (&mut *entry, reply.is_closed()) {
                        // Nobody heard an answer, so it ran: there is nothing to refuse any more.
                        asked.sender = Sender::Runner;
                    }
                    let answer = keep(&entry, Some(call));
                    self.is_stuck.store(false, Ordering::Relaxed);
                    let _whoever_asked_may_be_gone = reply.send(answer);
                }
                Request::Note(entry) => {
                    let _kept_or_spooled = keep(&entry, None);
                    self.is_stuck.store(false, Ordering::Relaxed);
                }
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

    /// Hands on what is new. What cannot be read now is read the next time.
    fn hand_on(&self, keeper: &mut Keeper<'_>, seen: &mut Option<Seen>, calls: &Calls) {
        let Some(seen) = seen else { return };
        let Ok(store) = keeper.store(now()) else { return };
        if store.file_mark() != seen.file {
            // Another database stands there: all that is in it is new.
            *seen = Seen { place: Bookmark::default(), file: store.file_mark() };
        }
        let _read_again_later = store.newest().and_then(|newest| {
            store.events(&Wanted::default(), seen.place, newest, |event| {
                seen.place = event.seq;
                let call = event.call.and_then(|number| calls.known.get(&number).cloned());
                (self.tail)(event, call);
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
