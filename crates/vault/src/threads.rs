//! Several threads that share a piece of work.

use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// How many threads share the work.
pub(crate) fn threads() -> usize {
    // The system reads several files to tell.
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| thread::available_parallelism().map_or(2, usize::from).clamp(2, 8))
}

/// What several threads did at once. Whoever asks only waits: a thread that begins beside one that works on may not get a
/// processor of its own for milliseconds. One that broke down takes the whole with it: nothing may look done that is not.
pub(crate) fn at_once<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    if threads == 1 {
        return vec![work()];
    }
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        all.into_iter().map(|one| one.join().unwrap_or_else(|broken| resume_unwind(broken))).collect()
    })
}

/// What several threads share, for as long as one of them needs it. A thread that broke down takes the whole with it anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
