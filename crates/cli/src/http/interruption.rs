//! A signal while an attempt is made: it ends at once, and is written down as what it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use unstuck_exec::Watch;

/// How long a signal may go unnoticed.
const STEP: Duration = Duration::from_millis(50);
/// How long an attempt may take to end after that. A connection that is only being made cannot be closed.
const GRACE: Duration = Duration::from_millis(500);

/// Listens while it is there.
pub(super) struct Interruption {
    signal: Arc<AtomicI32>,
    /// Whoever listens hears that this is gone.
    _is_over: Sender<()>,
}

impl Interruption {
    /// Begins to listen; `hang_up` closes all connections.
    pub(super) fn listen(hang_up: impl FnOnce() + Send + 'static) -> Interruption {
        let signal = Arc::new(AtomicI32::new(0));
        let (sender, receiver) = mpsc::channel();
        // Where nobody can listen, a signal has its usual effect.
        if let Ok(watch) = Watch::start() {
            let told = Arc::clone(&signal);
            thread::spawn(move || wait(watch, &receiver, &told, hang_up));
        }
        Interruption { signal, _is_over: sender }
    }

    /// The signal that came, if one did.
    pub(super) fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}

fn wait(mut watch: Watch, is_over: &Receiver<()>, told: &AtomicI32, hang_up: impl FnOnce()) {
    let goes_on = |time| is_over.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    while goes_on(Duration::ZERO) {
        if let Some(signal) = watch.wait(STEP) {
            told.store(signal, Ordering::SeqCst);
            hang_up();
            if goes_on(GRACE) {
                end_by(signal);
            }
            return;
        }
    }
}

/// Ends this process as the signal would have.
#[cfg(unix)]
fn end_by(signal: i32) {
    let _nothing_else_can_be_done = signal_hook::low_level::emulate_default_handler(signal);
}

#[cfg(not(unix))]
fn end_by(_signal: i32) {}
