//! The wait before another attempt: announced, shown on a terminal while it lasts, and ended by Ctrl-C.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use unstuck_exec::Watch;
use unstuck_judge::Lang;
use unstuck_judge::retry::{LimitFactor, Seen};
use unstuck_wire::report::Report;

use super::{Aloud, spoken};
use crate::plain;
use crate::ui::Ui;

/// How often the line on a terminal is written anew.
const STEP: Duration = Duration::from_millis(100);

/// An attempt that is to come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    pub(super) wait: Duration,
    /// Which one it will be, counted from 1.
    pub(super) attempt: u32,
    /// How many there are at most.
    pub(super) of: u32,
    pub(super) limit_factor: LimitFactor,
    /// What was seen of past retries, where the wait follows from that.
    pub(super) seen: Option<Seen>,
}

pub(super) struct Pause {
    aloud: Aloud,
    lang: Lang,
    /// Made before the first wait and not earlier: a signal that our caller made us ignore has to stay ignored in what we
    /// start first.
    watch: Option<Watch>,
}

impl Pause {
    pub(super) fn new(aloud: Aloud, lang: Lang) -> Pause {
        Pause { aloud, lang, watch: None }
    }

    /// Waits before another attempt. A signal that ends the wait is handed back.
    pub(super) fn before(&mut self, ui: &mut Ui, report: &Report, planned: &Planned) -> Result<(), i32> {
        if self.watch.is_none() {
            // Where it cannot be made, a signal has its usual effect.
            self.watch = Watch::start().ok();
        }
        if self.aloud == Aloud::Lines {
            ui.aside(&spoken::retry_line(report, planned, self.lang));
        }
        let until = Instant::now() + planned.wait;
        let is_watched = self.aloud == Aloud::Lines && io::stderr().is_terminal();
        let told = loop {
            let left = until.saturating_duration_since(Instant::now());
            if is_watched {
                let line = spoken::live_line(report, planned, left, self.lang);
                let _nobody_left_to_tell = write!(io::stderr().lock(), "\r\x1b[K{}", plain::line(&line));
            }
            let step = if is_watched { left.min(STEP) } else { left };
            let told = self.wait(step);
            if told.is_some() || left <= step {
                break told;
            }
        };
        if is_watched {
            let _nobody_left_to_tell = write!(io::stderr().lock(), "\r\x1b[K");
        }
        told.map_or(Ok(()), Err)
    }

    /// Did a signal reach us since the last wait? What we ran has got it too.
    pub(super) fn was_told_to_end(&mut self) -> bool {
        self.watch.as_mut().is_some_and(|watch| watch.wait(Duration::ZERO).is_some())
    }

    fn wait(&mut self, time: Duration) -> Option<i32> {
        match &mut self.watch {
            Some(watch) => watch.wait(time),
            None => {
                std::thread::sleep(time);
                None
            }
        }
    }
}
