//! Remembers in the store that all doors share. Whoever calls waits for it as long as its patience lasts and no longer: what
//! comes too late, or never, is answered by the judge without memory.

mod cellar;
mod quiet;
mod scribe;
#[cfg(test)]
mod tests;
mod timeline;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use unstuck_exec::alive;
use unstuck_judge::{Kind, Lang, Outcome};
use unstuck_store::{
    Answer, Bench, Bookmark, CallState, Ended, Entry, HookFault, Kept, LifeStep, Mode, NAME_MAX, ProblemAges,
    Retry, Retrying, Ruling, Sealed, StoreError, StoredCall, Which, retry_without_memory,
};
use unstuck_wire::clean::Clean;
use unstuck_wire::time;

pub(crate) use self::cellar::Tail;
use self::cellar::{Cellar, Place, Queued, Request, nothing_said};
use self::quiet::Quiet;
use self::scribe::{Close, Handed, Scribe};
pub(crate) use self::timeline::Timeline;
use super::{Advice, After, Before, Closing, Opening, Printed, has_failed, text_after};
use crate::call::{CallId, CallInfo, Session, unique};
use crate::policy::Policy;
use crate::record::{CallRecord, RecordStep};
use crate::store::Store;
use crate::toolbox::now;

/// How many requests wait at once, or fewer large ones. Each is bounded, so this bounds them all.
const QUEUE: usize = 8192;

/// A request takes another place for each so many bytes that were printed.
const PLACE: usize = 16 * 1024;
/// How long a call waits for a cellar that has left somebody unanswered, until it answers again.
const STUCK: Duration = Duration::from_millis(20);
/// How long a call that comes too early is held instead of refused.
const HOLD_MAX: Duration = Duration::from_secs(10);
/// After how long a call that nobody heard of again is taken for dead.
const SEAL_AFTER_MS: u64 = 6 * 60 * 60 * 1000;
/// How many records are read at once.
const RECORDS: u32 = 10_000;
/// The longest line about a fault, and the longest name of a folder.
const LINE_MAX: usize = 1024;

const TOO_MUCH: &str = "too much waits to be written";

/// What became of something that was to be remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Remembered {
    /// It stands in the store.
    Recorded,
    /// It waits in a file beside it, and is taken in later.
    Spooled { why: String },
    /// Nobody waited any longer; it may still be written.
    Unanswered,
    /// It is lost.
    Lost { why: String },
}

impl Remembered {
    /// What is wrong with the store; nothing where all is well.
    pub(crate) fn fault(&self) -> Option<String> {
        match self {
            Remembered::Recorded => None,
            Remembered::Spooled { why } => Some(format!("what happened waits in the spool: {why}")),
            Remembered::Unanswered => Some("the store did not answer in time".to_owned()),
            Remembered::Lost { why } => Some(format!("what happened is not recorded: {why}")),
        }
    }
}

impl From<Kept> for Remembered {
    fn from(kept: Kept) -> Remembered {
        match kept {
            Kept::Stored | Kept::Recorded => Remembered::Recorded,
            Kept::Spooled { why } => Remembered::Spooled { why },
            Kept::Lost { why } => Remembered::Lost { why },
        }
    }
}

/// A call whose process is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Orphan {
    pub(crate) call: CallId,
    /// Which attempt at it was under way, counted from 1.
    pub(crate) attempt: u32,
    pub(crate) tool: String,
    /// The call in one short line.
    pub(crate) label: String,
    /// Where it stood.
    pub(crate) state: CallState,
    /// What is true of it, for the model.
    pub(crate) text: String,
}

impl Orphan {
    fn new(sealed: &Sealed, lang: Lang) -> Orphan {
        let (call, attempt) = call_of(&sealed.key);
        Orphan {
            call: call.into(),
            attempt,
            tool: sealed.tool.clone(),
            label: sealed.label.clone(),
            state: sealed.from,
            text: sealed.text(lang),
        }
    }
}

/// The way to the cellar.
struct Way {
    requests: mpsc::Sender<Queued>,
    /// Lets what nobody waits for lie for a while, where there is somebody who does.
    scribe: Option<Thread>,
}

/// Remembers in a store.
pub(crate) struct Stored {
    store: Store,
    bench: Bench,
    scribe: Arc<Scribe>,
    quiet: Arc<Quiet>,
    /// This process, as calls name it.
    owner: String,
    places: Arc<Semaphore>,
    /// Places for what nobody can wait with, where all others are taken.
    spare: Arc<Semaphore>,
    follows: Arc<AtomicBool>,
    is_stuck: Arc<AtomicBool>,
    /// How often something was kept.
    kept: Arc<AtomicU64>,
    /// The way to the cellar, which is opened with the first request.
    way: OnceLock<Result<Way, String>>,
    /// How far the timeline was known before the first request.
    known: Bookmark,
    /// Taken by the cellar when it is opened.
    tail: std::sync::Mutex<Option<Box<dyn Tail>>>,
}

impl Stored {
    /// Remembers in `store` on the terms of `policy`; `tail` hears of every event after `known`.
    pub(crate) fn new(store: Store, policy: &Policy, known: Bookmark, tail: Box<dyn Tail>) -> Stored {
        let owner = match alive::owner(std::process::id()) {
            // Where nobody can tell whether a process runs, this one is at least known to itself.
            unknown if unknown.is_empty() => format!("unknown-{:016x}", unique()),
            owner => owner,
        };
        Stored {
            bench: Bench {
                ladder: policy.ladder_settings(),
                modes: policy.modes.clone(),
                retry: Cow::Owned(policy.retry.clone()),
                lang: policy.lang,
                hold_max: HOLD_MAX,
                seal_after: SEAL_AFTER_MS,
                problems: ProblemAges::default(),
            },
            known,
            scribe: Arc::new(Scribe::new(&store, &owner, policy)),
            quiet: Arc::default(),
            owner,
            places: Arc::new(Semaphore::new(QUEUE)),
            spare: Arc::new(Semaphore::new(QUEUE)),
            follows: Arc::default(),
            is_stuck: Arc::default(),
            kept: Arc::default(),
            way: OnceLock::new(),
            tail: std::sync::Mutex::new(Some(tail)),
            store,
        }
    }

    /// A call is asked for, or sent again.
    pub(crate) async fn before(&self, opening: &Opening) -> (Before, Remembered) {
        let session = &opening.call.session;
        // Whoever has not heard a word yet hears it before anything is refused for it.
        let unheard = self.quiet.unheard(session);
        if unheard.is_some() || self.needs_no_answer(session) {
            let remembered = self.hand(Handed::Began(opening.clone()), &opening.call).await;
            return (Before { text: unheard, ..Before::default() }, remembered);
        }
        let entry = Entry::Asked(Box::new(self.scribe.asked(opening, opening.at)));
        let (Answer { said, .. }, remembered) = Box::pin(self.keep(entry, &opening.call)).await;
        let text = said.text.filter(|_| said.mode > Mode::Shadow);
        (Before { stance: said.stance, text, table: said.table, sealed: said.sealed }, remembered)
    }

    /// An attempt ended.
    pub(crate) async fn after(&self, closing: Closing) -> (After, Remembered) {
        let resend = Some(closing.resend());
        let Closing { opening, printed, advice, took, at, .. } = closing;
        let (call, outcome) = (Arc::clone(&opening.call), printed.outcome);
        let (observation, diagnosis) = self.scribe.looked_at(&opening, printed);
        // Other words behind a success may still be those of a failure.
        let is_fine = outcome.said_ok() == Some(true)
            && matches!(diagnosis.kind, Kind::NotAnError | Kind::Unknown)
            && self.needs_no_answer(&call.session);
        let close = Close { opening, observation, diagnosis, resend, advice, took, at };
        if is_fine {
            return (After::default(), self.hand(Handed::Ended(Box::new(close)), &call).await);
        }
        let (ended, report) = self.scribe.judged(self.scribe.asked(&close.opening, at), close);
        let failed = has_failed(&ended, &report, outcome);
        if failed {
            self.quiet.stir(&call.session);
        }
        let without_memory = self.without_memory(&ended);
        let (Answer { said, .. }, remembered) =
            Box::pin(self.keep(Entry::Ended(Box::new(ended)), &call)).await;
        let retry = match &remembered {
            Remembered::Recorded => said.retry,
            // What waits in the queue will still be decided, and told of.
            Remembered::Unanswered => without_memory.map(|(retry, _)| retry),
            Remembered::Spooled { .. } | Remembered::Lost { .. } => {
                without_memory.map(|(retry, announced)| {
                    announced.into_iter().for_each(|retrying| self.send_off(Entry::Retrying(retrying)));
                    retry
                })
            }
        };
        let text = text_after(&said, &report.diagnosis);
        (After { failed, report: failed.then_some(report), retry, text }, remembered)
    }

    /// Is it certain that nothing would be answered to what happens in this session?
    fn needs_no_answer(&self, session: &Session) -> bool {
        !self.store.waits && !self.is_stuck.load(Ordering::Relaxed) && self.quiet.is(session)
    }

    /// Nobody waits for a call any more.
    pub(crate) fn interrupted(&self, opening: &Opening, at: u64) {
        let took = Duration::from_millis(at.saturating_sub(opening.at));
        let (observation, diagnosis) = self.scribe.looked_at(opening, Printed::nothing(Outcome::Interrupted));
        let (opening, resend, advice) = (opening.clone(), None, Advice::default());
        let asked = self.scribe.asked(&opening, at);
        let close = Close { opening, observation, diagnosis, resend, advice, took, at };
        self.send_off(Entry::Ended(Box::new(self.scribe.judged(asked, close).0)));
    }

    /// A person or a hook decided about a call that was asked for, or has to.
    pub(crate) fn ruled(&self, opening: &Opening, ruling: Ruling, by: &'static str, note: &str, at: u64) {
        let call = &opening.call;
        self.send_off(Entry::Ruled {
            who: self.scribe.who(&call.session, &call.agent, call.round, at),
            which: Which::Key(self.scribe.key(opening)),
            ruling,
            by: Clean::from(by),
            note: self.scribe.cleaner.line(note, LINE_MAX),
        });
    }

    /// The user said something: what was refused may be tried again.
    pub(crate) fn user_spoke(&self, session: &Session, at: u64) {
        self.send_off(Entry::UserSpoke(self.scribe.who(session, "main", None, at)));
    }

    /// A hook of the user's failed.
    pub(crate) fn fault(&self, call: &CallInfo, phase: &str, what: &str, at: u64) {
        let line = |text| self.scribe.cleaner.line(text, LINE_MAX);
        self.send_off(Entry::HookFault(Box::new(HookFault {
            who: self.scribe.who(&call.session, &call.agent, call.round, at),
            key: self.scribe.cleaner.name(call.id.as_str(), NAME_MAX),
            tool: line(call.recorded_as()),
            phase: line(phase),
            what: line(what),
        })));
    }

    /// The records of a session, oldest first; of very many the newest.
    pub(crate) async fn records(&self, session: &Session) -> Result<Vec<CallRecord>, String> {
        let _as_much_as_there_is = self.flush(self.store.patience).await;
        let session = self.scribe.cleaner.name(session.as_str(), NAME_MAX);
        let timeline = Timeline(self.store.clone());
        let read = move || {
            let Some(store) = timeline.open()? else { return Ok(Vec::new()) };
            let calls = store.calls_of_session(&session, RECORDS)?;
            calls.into_iter().map(|call| Ok(record(&store.call_text(call.id)?.life, call))).collect()
        };
        let records = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
        records.map_err(|error: StoreError| error.to_string())
    }

    /// The session goes on in this process: what was in flight in processes that are gone is sealed and told of, once.
    pub(crate) async fn resume(&self, session: &Session) -> Result<Vec<Orphan>, String> {
        let who = self.scribe.who(session, "main", None, now());
        let ask = |reply| Request::Resume(Box::new(who), reply);
        let sealed = self.answered(ask, self.store.patience).await??;
        Ok(sealed.iter().map(|sealed| Orphan::new(sealed, self.bench.lang)).collect())
    }

    /// Why nothing could be read.
    pub(crate) fn unreadable(&self, why: String) -> crate::StoreError {
        crate::StoreError { path: self.store.path.clone(), why }
    }

    /// Waits until everything is written that was asked for before, and says whether it is.
    pub(crate) async fn flush(&self, patience: Duration) -> bool {
        self.settled(Request::Flush, patience).await
    }

    /// The same, and nothing is remembered after it.
    pub(crate) async fn close(&self, patience: Duration) -> bool {
        self.settled(Request::Close, patience).await
    }

    /// Follows the timeline also while nothing is asked: other processes write to it too.
    pub(crate) fn follow(&self) {
        if !self.follows.swap(true, Ordering::Relaxed) {
            // A cellar that is gone follows nothing.
            let _gone =
                self.way().and_then(|way| way.requests.send((Request::Look, None)).map_err(|_| gone()));
        }
    }

    /// Whether a call is sent again where nothing is remembered, and how the timeline would tell of it.
    fn without_memory(&self, ended: &Ended) -> Option<(Retry, Option<Retrying>)> {
        let retry = retry_without_memory(&self.bench.retry, ended, ended.retry.as_ref()?)?;
        let announced = match retry {
            Retry::Again { wait, attempt, of, .. } => ended.finding.as_ref().map(|finding| Retrying {
                who: ended.asked.who.clone(),
                key: ended.asked.key.clone(),
                attempt,
                of: Some(of),
                wait_ms: time::span_ms(wait),
                because: finding.kind(),
            }),
            Retry::Stop { .. } => None,
        };
        Some((retry, announced))
    }

    /// Keeps an entry, and waits for what is said to it.
    async fn keep(&self, entry: Entry, call: &Arc<CallInfo>) -> (Answer, Remembered) {
        let patience = match self.is_stuck.load(Ordering::Relaxed) {
            true => self.store.patience.min(STUCK),
            false => self.store.patience,
        };
        let (reply, answer) = oneshot::channel();
        let mut is_queued = false;
        let asked = async {
            self.send(Request::Keep(Box::new(entry), Arc::clone(call), reply)).await?;
            is_queued = true;
            answer.await.map_err(|_| gone())
        };
        match tokio::time::timeout(patience, asked).await {
            Ok(Ok(answer)) => {
                let remembered = answer.kept.clone().into();
                (answer, remembered)
            }
            Ok(Err(why)) => (nothing_said(why.clone()), Remembered::Lost { why }),
            Err(_) => {
                self.is_stuck.store(true, Ordering::Relaxed);
                let remembered = match is_queued {
                    true => Remembered::Unanswered,
                    false => Remembered::Lost { why: TOO_MUCH.to_owned() },
                };
                (nothing_said(String::new()), remembered)
            }
        }
    }

    /// Hands something down that nobody waits for, as soon as there is a place for it: however long the queue is, nothing is
    /// dropped while it moves on.
    async fn hand(&self, handed: Handed, call: &Arc<CallInfo>) -> Remembered {
        let places = handed.places();
        let place = match Arc::clone(&self.places).try_acquire_many_owned(places) {
            Ok(place) => Some(place),
            Err(_) => match Box::pin(self.places_that_become_free(places)).await {
                Ok(place) => place,
                Err(lost) => return lost,
            },
        };
        let request = Request::Hand(handed, Arc::clone(call));
        match self.way().and_then(|way| way.requests.send((request, place)).map_err(|_| gone())) {
            Ok(()) => Remembered::Recorded,
            Err(why) => Remembered::Lost { why },
        }
    }

    /// Waits for so many places as long as the queue moves on.
    async fn places_that_become_free(&self, places: u32) -> Result<Place, Remembered> {
        loop {
            let kept = self.kept.load(Ordering::Relaxed);
            let place = Arc::clone(&self.places).acquire_many_owned(places);
            match tokio::time::timeout(self.store.patience, place).await {
                Ok(place) => return Ok(place.ok()),
                Err(_) if self.kept.load(Ordering::Relaxed) != kept => {}
                Err(_) => {
                    self.is_stuck.store(true, Ordering::Relaxed);
                    return Err(Remembered::Lost { why: TOO_MUCH.to_owned() });
                }
            }
        }
    }

    /// Hands an entry down that nobody can wait with. Where the queue is full twice over it is lost: somebody is told of that by
    /// what is waited for.
    fn send_off(&self, entry: Entry) {
        let place = [&self.places, &self.spare]
            .into_iter()
            .find_map(|places| Arc::clone(places).try_acquire_owned().ok());
        if let (Some(place), Ok(way)) = (place, self.way()) {
            let _gone = way.requests.send((Request::Note(Box::new(entry)), Some(place)));
        }
    }

    async fn settled(
        &self,
        request: impl FnOnce(oneshot::Sender<()>) -> Request,
        patience: Duration,
    ) -> bool {
        if self.way.get().is_none() {
            return true;
        }
        self.answered(request, patience).await.is_ok()
    }

    /// Asks, and waits for the answer.
    async fn answered<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
        patience: Duration,
    ) -> Result<T, String> {
        let (reply, answer) = oneshot::channel();
        let asked = async {
            self.send(request(reply)).await?;
            answer.await.map_err(|_| gone())
        };
        let late = |_| Err("the store did not answer in time".to_owned());
        tokio::time::timeout(patience, asked).await.unwrap_or_else(late)
    }

    /// Puts a request that is waited for into the queue, when there is a place in it.
    async fn send(&self, request: Request) -> Result<(), String> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| gone())?;
        let way = self.way()?;
        way.requests.send((request, Some(place))).map_err(|_| gone())?;
        way.scribe.iter().for_each(Thread::unpark);
        Ok(())
    }

    /// The way to the cellar, which is opened where it is not.
    fn way(&self) -> Result<&Way, String> {
        self.way.get_or_init(|| self.open()).as_ref().map_err(Clone::clone)
    }

    fn open(&self) -> Result<Way, String> {
        let tail = self.tail.lock().ok().and_then(|mut tail| tail.take()).ok_or_else(gone)?;
        let cellar = Cellar {
            store: self.store.clone(),
            bench: self.bench.clone(),
            scribe: Arc::clone(&self.scribe),
            quiet: Arc::clone(&self.quiet),
            owner: self.owner.clone(),
            follows: Arc::clone(&self.follows),
            is_stuck: Arc::clone(&self.is_stuck),
            kept: Arc::clone(&self.kept),
            tail,
            known: self.known,
        };
        let (way, requests) = mpsc::channel();
        started("unstuck-cellar", move || cellar.work(&requests))?;
        if self.store.waits {
            return Ok(Way { requests: way, scribe: None });
        }
        let (first, requests) = mpsc::channel();
        let scribe = Arc::clone(&self.scribe);
        let scribe = started("unstuck-scribe", move || scribe.work(&requests, &way))?;
        Ok(Way { requests: first, scribe: Some(scribe) })
    }
}

/// Starts a thread.
fn started(name: &str, work: impl FnOnce() + Send + 'static) -> Result<Thread, String> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map(|handle| handle.thread().clone()).map_err(|error| error.to_string())
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stored").field("store", &self.store).finish_non_exhaustive()
    }
}

fn gone() -> String {
    "the thread that writes it is gone".to_owned()
}

/// A call of the store as a record.
fn record(life: &str, call: StoredCall) -> CallRecord {
    // A state that only a newer version knows is not one that this one may invent.
    let state = |word: &str| word.parse().unwrap_or(CallState::Pending);
    let steps = LifeStep::all(life).into_iter();
    CallRecord {
        id: call.key.into(),
        tool: call.tool,
        state: state(&call.state),
        trail: steps
            .map(|step| RecordStep {
                at: step.at.unwrap_or(call.asked_at),
                state: state(&step.state),
                note: step.note,
            })
            .collect(),
    }
}

/// The call behind the name of an attempt, and which attempt it is.
fn call_of(key: &str) -> (&str, u32) {
    let numbered = key.rsplit_once('#').and_then(|(call, number)| Some((call, number.parse().ok()?)));
    numbered.filter(|(_, number)| *number > 1).unwrap_or((key, 1))
}
