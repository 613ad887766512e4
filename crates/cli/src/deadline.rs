//! An agent waits for its hooks, so a hook that cannot answer in time falls silent and ends, but for its last word. What it
//! had not recorded yet waits in the spool for the next one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use unstuck_store::{Entry, OwnFault};
use unstuck_wire::clean::Clean;
use unstuck_wire::time;

use crate::breaker::Breaker;
use crate::cellar;
use crate::last_word::LastWord;

/// When this process has to end, and what must not be lost then.
pub(crate) struct Deadline {
    begun: Instant,
    /// In microseconds after the beginning, pauses left out.
    limit: AtomicU64,
    /// How long it paused, in microseconds.
    paused: AtomicU64,
    folder: Option<PathBuf>,
    unrecorded: Mutex<Option<Entry>>,
    last_word: Arc<LastWord>,
}

impl Deadline {
    /// Begins to watch over this process.
    pub(crate) fn watch(
        begun: Instant,
        limit: Duration,
        folder: Option<PathBuf>,
        last_word: Arc<LastWord>,
    ) -> Arc<Deadline> {
        let deadline = Arc::new(Deadline {
            begun,
            limit: AtomicU64::new(micros(limit)),
            paused: AtomicU64::new(0),
            folder,
            unrecorded: Mutex::default(),
            last_word,
        });
        let watched = Arc::clone(&deadline);
        // Without a thread for it there is no deadline, which is no reason to have no answer.
        let _unwatched = thread::Builder::new().stack_size(256 * 1024).spawn(move || watched.wait());
        deadline
    }

    /// How long this process has run, pauses left out.
    pub(crate) fn elapsed(&self) -> Duration {
        let paused = Duration::from_micros(self.paused.load(Ordering::Relaxed));
        self.begun.elapsed().saturating_sub(paused)
    }

    /// How long whoever started this process has waited for it.
    pub(crate) fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Sets when it has to end, counted from its beginning.
    pub(crate) fn set(&self, limit: Duration) {
        self.limit.store(micros(limit), Ordering::Relaxed);
    }

    /// Lets time pass that does not count.
    pub(crate) fn pause(&self, wait: Duration) {
        self.paused.fetch_add(micros(wait), Ordering::Relaxed);
        thread::sleep(wait);
    }

    /// Sets it so that there is so much time from now on.
    pub(crate) fn grant(&self, time: Duration) {
        self.set(self.elapsed().saturating_add(time));
    }

    /// Does something that the agent waits for, but that says nothing of how fast a hook is.
    pub(crate) fn uncounted<T>(&self, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = work();
        self.paused.fetch_add(micros(begun.elapsed()), Ordering::Relaxed);
        done
    }

    /// Something is about to be recorded.
    pub(crate) fn hold(&self, entry: &Entry) {
        *self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(entry.clone());
    }

    /// It was.
    pub(crate) fn let_go(&self) {
        *self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn wait(&self) {
        loop {
            let limit = Duration::from_micros(self.limit.load(Ordering::Relaxed));
            match limit.checked_sub(self.elapsed()) {
                // It may come nearer meanwhile.
                Some(left) if !left.is_zero() => thread::sleep(left.min(Duration::from_millis(20))),
                Some(_) | None => self.end(),
            }
        }
    }

    /// Ends this process without a word to the agent, but for the last one.
    fn end(&self) {
        let spoken = self.last_word.speak();
        if let Some(folder) = &self.folder {
            let now = cellar::now();
            let what = format!("a hook had no answer after {} ms", self.elapsed().as_millis());
            let fault = OwnFault { at: now, part: Clean::from("hook"), what: Clean::stored(what) };
            let unrecorded = self.unrecorded.try_lock().ok().and_then(|mut entry| entry.take());
            // What was said may be what was about to be recorded.
            let said = spoken.entry.clone().filter(|said| unrecorded.as_ref() != Some(said));
            let left: Vec<Entry> =
                unrecorded.into_iter().chain(said).chain([Entry::OwnFault(fault)]).collect();
            unstuck_store::leave_word(folder, now, &left);
            Breaker::at(Some(folder)).fault(now);
        }
        #[allow(clippy::exit, reason = "an agent takes any other end for a failure of its hook")]
        std::process::exit(0)
    }
}

fn micros(span: Duration) -> u64 {
    time::span_ms(span).saturating_mul(1000)
}
