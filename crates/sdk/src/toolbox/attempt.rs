//! One attempt at a call: whatever the tool does, the one who waits for it gets an answer in time.
//!
//! The tool runs in a task of its own, so that a panic ends there, and so that nobody has to wait for one that does not yield.
//! A tool that was seen to block its thread gets a thread of its own from then on.

use std::any::Any;
use std::future::Future;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Inner;
use super::installed::Installed;
use super::spared::Spared;
use crate::context::ToolContext;
use crate::failure::Failure;
use crate::hook::Attempted;
use crate::tool::Answer;

/// Whoever keeps the thread for longer at once blocks it.
const BLOCKING: Duration = Duration::from_millis(100);

tokio::task_local! {
    /// The toolbox whose tool we are inside of. One that calls it again has a place already, and would wait for its own.
    static INSIDE: usize;
}

/// Are we inside of a tool of this toolbox?
pub(super) fn is_inside_of(inner: &Inner) -> bool {
    INSIDE.try_with(|toolbox| *toolbox == name_of(inner)).unwrap_or(false)
}

/// What tells a toolbox from others as long as it lives.
fn name_of(inner: &Inner) -> usize {
    ptr::from_ref(inner).addr()
}

/// Makes one attempt.
pub(crate) async fn make(
    inner: &Inner,
    installed: &Arc<Installed>,
    context: ToolContext,
    limit: Duration,
) -> Attempted {
    let cancellation = context.cancellation.clone();
    let watch = Arc::new(Watch::new(Arc::clone(installed)));
    let work = Arc::clone(&installed.tool).answer(context);
    let answer: Answer = Box::pin(INSIDE.scope(name_of(inner), work));
    let mut task =
        Task::start(inner, Watched { answer, watch: Gone(Arc::clone(&watch)) }, watch, cancellation);
    let came = tokio::select! {
        biased;
        joined = &mut task.handle => return task.ended(joined),
        () = sleep(limit) => Failure::timed_out(format!("timed out after {} s", limit.as_secs_f64())),
        () = inner.shutdown.cancelled() => shut_down(),
    };
    task.cancellation.cancel();
    // What it says now comes too late, but it may put things in order first.
    task.is_over = timeout(inner.policy.cancel_grace, &mut task.handle).await.is_ok();
    Err(came)
}

/// Everything is being ended.
pub(super) fn shut_down() -> Failure {
    Failure::interrupted("interrupted: the toolbox is being shut down")
}

/// The task of a tool. Whoever does not wait for it any more ends it.
struct Task {
    handle: JoinHandle<Attempted>,
    watch: Arc<Watch>,
    cancellation: CancellationToken,
    is_over: bool,
}

impl Task {
    fn start(inner: &Inner, watched: Watched, watch: Arc<Watch>, cancellation: CancellationToken) -> Task {
        // Threads of our own, because the caller's runtime would wait for those that never end when it is dropped.
        let threads = if watch.installed.blocks() { inner.backstage.threads() } else { None };
        let handle = match threads {
            None => tokio::spawn(Spared::new(inner, cancellation.clone(), watched)),
            Some(threads) => {
                let (here, over, grace) =
                    (Handle::current(), cancellation.clone(), inner.policy.cancel_grace);
                let until_given_up = async move {
                    tokio::select! {
                        biased;
                        answer = watched => answer,
                        () = given_up(over, grace) => Err(shut_down()),
                    }
                };
                threads.spawn_blocking(move || here.block_on(until_given_up))
            }
        };
        Task { handle, watch, cancellation, is_over: false }
    }

    fn ended(&mut self, joined: Result<Attempted, JoinError>) -> Attempted {
        self.is_over = true;
        match joined {
            Ok(attempted) => attempted,
            Err(error) => match error.try_into_panic() {
                Ok(payload) => Err(Failure::panicked(&words_of(payload))),
                // Only the end of its runtime ends a task that we did not end.
                Err(_) => Err(shut_down()),
            },
        }
    }
}

/// A thread that is waited on cannot be ended from outside, so what runs there ends itself, a little later than it was asked to.
pub(super) async fn given_up(over: CancellationToken, grace: Duration) {
    over.cancelled().await;
    sleep(grace).await;
}

impl Drop for Task {
    fn drop(&mut self) {
        if !self.is_over {
            self.cancellation.cancel();
            self.handle.abort();
            self.watch.give_up();
        }
    }
}

/// What a panic said. The thing it was thrown with may itself panic when it is dropped.
pub(super) fn words_of(payload: Box<dyn Any + Send>) -> String {
    let words = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(words), _) => (*words).to_owned(),
        (None, Some(words)) => words.clone(),
        (None, None) => "without a word".to_owned(),
    };
    if let Err(another) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(another);
    }
    words
}

/// The work of a tool, with somebody looking at how long it keeps its thread.
struct Watched {
    answer: Answer,
    // Dropped after the work itself: only then it is gone.
    watch: Gone,
}

impl Future for Watched {
    type Output = Attempted;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Attempted> {
        let watch = Arc::clone(&self.watch.0);
        watch.is_inside.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        let answer = self.answer.as_mut().poll(context);
        watch.is_inside.store(false, Ordering::Relaxed);
        if begun.elapsed() > BLOCKING {
            watch.installed.note_blocking();
        }
        answer
    }
}

/// Where the work of a tool stands.
struct Watch {
    installed: Arc<Installed>,
    /// It has the thread.
    is_inside: AtomicBool,
    life: AtomicU8,
}

const RUNS: u8 = 0;
const ENDED: u8 = 1;
const GIVEN_UP: u8 = 2;

impl Watch {
    fn new(installed: Arc<Installed>) -> Watch {
        Watch { installed, is_inside: AtomicBool::new(false), life: AtomicU8::new(RUNS) }
    }

    /// Nobody waits for it any more.
    fn give_up(&self) {
        if self.is_inside.load(Ordering::Relaxed) {
            self.installed.note_blocking();
        }
        // Counted before it is said, so that nobody counts it back before.
        self.installed.note_left();
        if self.life.compare_exchange(RUNS, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire).is_err() {
            self.installed.note_back();
        }
    }
}

/// Says that the work is gone when it is dropped.
struct Gone(Arc<Watch>);

impl Drop for Gone {
    fn drop(&mut self) {
        if self.0.life.swap(ENDED, Ordering::AcqRel) == GIVEN_UP {
            self.0.installed.note_back();
        }
    }
}
