//! What is still said when a hook comes to no end: it panics, or its time is over. Silence would let a call run, and a call
//! that puts files at risk does not run unprotected in silence.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use unstuck_store::Entry;

/// The last word of this process; there is none unless a risky call is being protected.
#[derive(Default)]
pub(crate) struct LastWord {
    word: Mutex<Option<Word>>,
}

/// An answer, and what it means for the timeline.
pub(crate) struct Word {
    /// One JSON object, as the agent reads it.
    pub(crate) answer: String,
    /// Nothing where it is recorded already.
    pub(crate) entry: Option<Entry>,
}

impl LastWord {
    /// The one of this process.
    pub(crate) fn of_this_process() -> Arc<LastWord> {
        Arc::clone(CURRENT.get_or_init(Arc::default))
    }

    /// From now on this is said if it comes to no end.
    pub(crate) fn prepare(&self, word: Word) {
        *self.lock() = Some(word);
    }

    /// It is no longer to be said. Where another thread is saying it, this waits for the end of the process.
    pub(crate) fn withdraw(&self) {
        *self.lock() = None;
    }

    /// Says it, and hands over what is still to be recorded. Whoever calls this ends the process; until then nobody else gets
    /// a word in.
    pub(crate) fn speak(&self) -> Spoken<'_> {
        let mut held = self.lock();
        let word = held.take();
        if let Some(word) = &word {
            let _nobody_is_left_to_tell = print(&word.answer);
        }
        Spoken { entry: word.and_then(|word| word.entry), _held: held }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Word>> {
        self.word.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last word was said, if there was one.
pub(crate) struct Spoken<'a> {
    /// What it means for the timeline.
    pub(crate) entry: Option<Entry>,
    /// Held to the end, so that no other answer follows.
    _held: MutexGuard<'a, Option<Word>>,
}

/// The last word of this process, where somebody without memory finds it.
static CURRENT: OnceLock<Arc<LastWord>> = OnceLock::new();

/// Says the last word, if there is one and nobody is changing it. Nothing is recorded of it, and nothing is allocated.
pub(crate) fn speak_without_memory() {
    let word = CURRENT.get().and_then(|current| current.word.try_lock().ok());
    if let Some(word) = word.as_deref().and_then(Option::as_ref) {
        let _nobody_is_left_to_tell = print(&word.answer);
    }
}

/// Prints beside the one that usually does, who holds the lock of standard output.
#[cfg(unix)]
fn print(answer: &str) -> io::Result<()> {
    use std::os::fd::AsFd;
    std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?).write_all(answer.as_bytes())
}

#[cfg(windows)]
fn print(answer: &str) -> io::Result<()> {
    use std::os::windows::io::AsHandle;
    std::fs::File::from(io::stdout().as_handle().try_clone_to_owned()?).write_all(answer.as_bytes())
}
