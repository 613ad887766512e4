//! Waiting without a command, with an ear for signals.

use std::io;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::Signal;

use super::keeper::patience;
use super::signals::Signals;

/// What ends us, where nobody listens.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// While it is there, a signal that would end us is only noticed: it ends a wait, and whoever waits decides.
pub struct Watch {
    signals: Signals,
}

impl Watch {
    /// Starts to listen.
    pub fn start() -> io::Result<Watch> {
        Ok(Watch { signals: Signals::prepare(true)?.listen() })
    }

    /// Waits this long, or until a signal comes; returns the number of that signal. One that came before counts too.
    pub fn wait(&mut self, time: Duration) -> Option<i32> {
        let until = Instant::now() + time;
        loop {
            let ending = |signal: &Signal| ENDING.contains(signal);
            if let Some(signal) = self.signals.take().into_iter().find(ending) {
                return Some(signal as i32);
            }
            if Instant::now() >= until {
                return None;
            }
            // An interrupted wait is only a short one; the clock is looked at again.
            let _ = poll(&mut [PollFd::new(self.signals.wake(), PollFlags::POLLIN)], patience(Some(until)));
        }
    }
}
