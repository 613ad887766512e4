//! How far a long piece of work is, for a person who waits: one line on standard error that is written over, only on a
//! terminal and only when it takes longer than a second.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::plain;

const SILENT_FOR: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(200);

pub(crate) struct Progress {
    is_watched: bool,
    next: Instant,
    has_shown: bool,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress {
            is_watched: io::stderr().is_terminal(),
            next: Instant::now() + SILENT_FOR,
            has_shown: false,
        }
    }

    pub(crate) fn show(&mut self, text: impl FnOnce() -> String) {
        if self.is_watched && Instant::now() >= self.next {
            let _nobody_left_to_tell = write!(io::stderr().lock(), "\r\x1b[K{}", plain::line(&text()));
            self.next = Instant::now() + STEP;
            self.has_shown = true;
        }
    }

    /// Takes the line away again.
    pub(crate) fn end(&mut self) {
        if self.has_shown {
            let _nobody_left_to_tell = write!(io::stderr().lock(), "\r\x1b[K");
            self.has_shown = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
