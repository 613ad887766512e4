//! The signals we pass on, and news of the child, as one descriptor to wait on.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::child_side::ignored_among;
use nix::sys::signal::Signal;
use signal_hook::SigId;
use signal_hook::{flag, low_level};

/// What ends a command when a person or a supervisor asks us to end, and what programs agree upon among themselves.
const FORWARDED: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// What is news of the terminal: its size changed, or we go on after a stop. Nobody ends by these.
const TERMINAL: [Signal; 2] = [Signal::SIGWINCH, Signal::SIGCONT];

/// How many jobs listen right now.
static LISTENERS: AtomicUsize = AtomicUsize::new(0);

/// Descriptors for the signals, made before anything is started.
pub(super) struct Prepared {
    wake: UnixStream,
    /// One write end for each signal.
    bells: Vec<(Signal, UnixStream)>,
    passes_on: bool,
}

/// Signals are being received; dropping it gives them back.
pub(super) struct Signals {
    wake: UnixStream,
    seen: Vec<(Signal, Arc<AtomicBool>)>,
    registered: Vec<SigId>,
    passes_on: bool,
}

impl Signals {
    /// Makes the descriptors. Who passes nothing on hears only of children, and changes nothing for anybody else.
    pub(super) fn prepare(passes_on: bool) -> io::Result<Prepared> {
        ignored();
        let (wake, bell) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        let bells = FORWARDED
            .into_iter()
            .chain(TERMINAL)
            .filter(|_| passes_on)
            .chain([Signal::SIGCHLD])
            .map(|signal| Ok((signal, bell.try_clone()?)))
            .collect::<io::Result<_>>()?;
        Ok(Prepared { wake, bells, passes_on })
    }

    /// The descriptor that becomes readable when a signal arrives.
    pub(super) fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Takes the signals that arrived since the last time, each at most once.
    pub(super) fn take(&mut self) -> Vec<Signal> {
        let mut sink = [0; 64];
        // The bytes only wake us. The flags are read after them, so that a signal in between wakes us again.
        while matches!(self.wake.read(&mut sink), Ok(read) if read > 0) {}
        self.seen
            .iter()
            .filter(|(_, seen)| seen.swap(false, Ordering::SeqCst))
            .map(|(signal, _)| *signal)
            .collect()
    }
}

impl Prepared {
    /// Starts to receive. A signal that the system does not let us catch keeps its usual effect.
    pub(super) fn listen(self) -> Signals {
        if self.passes_on {
            LISTENERS.fetch_add(1, Ordering::SeqCst);
            idle().store(false, Ordering::SeqCst);
        }
        let passes_on = self.passes_on;
        let mut signals = Signals { wake: self.wake, seen: Vec::new(), registered: Vec::new(), passes_on };
        for (signal, bell) in self.bells {
            if signal != Signal::SIGCHLD {
                let seen = Arc::new(AtomicBool::new(false));
                signals.registered.extend(flag::register(signal as i32, Arc::clone(&seen)));
                signals.seen.push((signal, seen));
            }
            signals.registered.extend(low_level::pipe::register(signal as i32, bell));
        }
        signals
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            low_level::unregister(id);
        }
        if self.passes_on && LISTENERS.fetch_sub(1, Ordering::SeqCst) == 1 {
            idle().store(true, Ordering::SeqCst);
        }
    }
}

/// What our caller made us ignore, as it was before we first listened.
pub(super) fn ignored() -> &'static [i32] {
    static IGNORED: OnceLock<Vec<i32>> = OnceLock::new();
    IGNORED.get_or_init(|| ignored_among(&FORWARDED.map(|signal| signal as i32)))
}

/// Whether no job listens. While it is set, a forwarded signal has its usual effect on us: a handler once installed
/// stays installed, and without this Ctrl-C would do nothing for the rest of our life.
fn idle() -> &'static AtomicBool {
    static IDLE: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    IDLE.get_or_init(|| {
        let idle = Arc::new(AtomicBool::new(false));
        for signal in FORWARDED {
            // Where it cannot be registered, nothing of ours changed what the signal does.
            drop(flag::register_conditional_default(signal as i32, Arc::clone(&idle)));
        }
        idle
    })
}
