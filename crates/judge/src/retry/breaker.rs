//! A circuit breaker with a window small enough for agents, who make tens of calls and not thousands.
//!
//! It is a plain value: the caller keeps one for each session, tool and host, and tells it the time.

use std::time::Duration;

/// The numbers a breaker lives by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerRules {
    /// How many calls it looks back, at most 16.
    pub window: u8,
    /// How many calls it must have seen before it may open.
    pub least_calls: u8,
    /// It opens when at least this share of the window failed.
    pub trip_percent: u8,
    /// How long it stays open the first time.
    pub open: Duration,
    /// How long it stays open at most.
    pub longest_open: Duration,
}

/// How the last calls went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recent {
    /// One bit per call, the newest lowest; set where the call failed.
    pub failed: u16,
    /// How many bits have been written.
    pub seen: u8,
}

impl Recent {
    fn with(self, failed: bool, rules: &BreakerRules) -> Recent {
        let window = rules.window.clamp(1, 16);
        let mask = u16::MAX >> (16 - window);
        let seen = self.seen.saturating_add(1).min(window);
        Recent { failed: ((self.failed << 1) | u16::from(failed)) & mask, seen }
    }

    fn trips(self, rules: &BreakerRules) -> bool {
        let failures = self.failed.count_ones();
        self.seen >= rules.least_calls.min(rules.window)
            && failures > 0
            && failures * 100 >= u32::from(rules.trip_percent) * u32::from(self.seen)
    }
}

/// Where a breaker stands. Times are milliseconds of the caller's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breaker {
    /// Calls pass.
    Closed {
        /// How the last of them went.
        recent: Recent,
    },
    /// Calls are held back.
    Open {
        /// When it opened.
        since: u64,
        /// How often in a row it opened.
        trips: u8,
    },
    /// One call is on its way to find out.
    HalfOpen {
        /// When the probe was let through.
        since: u64,
        /// How often in a row it opened.
        trips: u8,
    },
}

/// What a breaker is told. Only failures that say something about the far side are [`BreakerEvent::Failed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerEvent {
    /// A call is about to be made, after [`Breaker::gate`] let it through.
    Asked,
    /// A call went well.
    Passed,
    /// A call failed.
    Failed,
}

/// What a breaker answers to a call that wants to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It may be made.
    Pass,
    /// It may be made, and its end decides for those after it.
    Probe,
    /// It may not be made before this time has passed.
    Shut(Duration),
}

impl Breaker {
    /// A breaker that has seen nothing.
    pub const NEW: Breaker = Breaker::Closed { recent: Recent { failed: 0, seen: 0 } };

    /// The word for where it stands.
    pub const fn word(self) -> &'static str {
        match self {
            Breaker::Closed { .. } => "closed",
            Breaker::Open { .. } => "open",
            Breaker::HalfOpen { .. } => "half_open",
        }
    }

    /// Says whether a call may be made at `now`.
    pub fn gate(self, now: u64, rules: &BreakerRules) -> Gate {
        match self {
            Breaker::Closed { .. } => Gate::Pass,
            // A probe whose end nobody reported is given up after the time that an open breaker would stay open.
            Breaker::Open { since, trips } | Breaker::HalfOpen { since, trips } => {
                match rest(since, now, trips, rules) {
                    Duration::ZERO => Gate::Probe,
                    rest => Gate::Shut(rest),
                }
            }
        }
    }

    /// Moves on by one event.
    #[must_use]
    pub fn step(self, event: BreakerEvent, now: u64, rules: &BreakerRules) -> Breaker {
        match (self, event) {
            (Breaker::Closed { .. }, BreakerEvent::Asked) => self,
            (Breaker::Closed { recent }, BreakerEvent::Passed) => {
                Breaker::Closed { recent: recent.with(false, rules) }
            }
            (Breaker::Closed { recent }, BreakerEvent::Failed) => {
                let recent = recent.with(true, rules);
                match recent.trips(rules) {
                    true => Breaker::Open { since: now, trips: 1 },
                    false => Breaker::Closed { recent },
                }
            }
            (Breaker::Open { trips, .. } | Breaker::HalfOpen { trips, .. }, BreakerEvent::Asked) => {
                match self.gate(now, rules) {
                    Gate::Probe => Breaker::HalfOpen { since: now, trips },
                    Gate::Pass | Gate::Shut(_) => self,
                }
            }
            // The end of a call that began before the breaker opened is old news.
            (Breaker::Open { .. }, BreakerEvent::Passed | BreakerEvent::Failed) => self,
            (Breaker::HalfOpen { .. }, BreakerEvent::Passed) => Breaker::NEW,
            (Breaker::HalfOpen { trips, .. }, BreakerEvent::Failed) => {
                Breaker::Open { since: now, trips: trips.saturating_add(1) }
            }
        }
    }
}

/// Returns how long it stays shut. After a clock that went back, not at all: a probe costs less than a jam.
fn rest(since: u64, now: u64, trips: u8, rules: &BreakerRules) -> Duration {
    let doublings = u32::from(trips.saturating_sub(1));
    let open = rules.open.saturating_mul(2_u32.saturating_pow(doublings)).min(rules.longest_open);
    now.checked_sub(since).map_or(Duration::ZERO, |passed| open.saturating_sub(Duration::from_millis(passed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: BreakerRules = BreakerRules {
        window: 8,
        least_calls: 5,
        trip_percent: 60,
        open: Duration::from_secs(30),
        longest_open: Duration::from_secs(100),
    };

    /// Plays `p` (passed), `f` (failed) and `a` (asked), one second apart, or a jump of `+` = 30 s, and names the end.
    fn play(script: &str) -> String {
        let mut now = 0;
        let mut breaker = Breaker::NEW;
        for letter in script.chars() {
            now += 1_000;
            breaker = match letter {
                'p' => breaker.step(BreakerEvent::Passed, now, &RULES),
                'f' => breaker.step(BreakerEvent::Failed, now, &RULES),
                'a' => breaker.step(BreakerEvent::Asked, now, &RULES),
                _ => {
                    now += 29_000;
                    breaker
                }
            };
        }
        let name = match breaker {
            Breaker::Closed { .. } => "closed",
            Breaker::Open { .. } => "open",
            Breaker::HalfOpen { .. } => "half-open",
        };
        match breaker.gate(now, &RULES) {
            Gate::Pass => name.to_owned(),
            Gate::Probe => format!("{name}, probe"),
            Gate::Shut(rest) => format!("{name}, {}s", rest.as_secs()),
        }
    }

    #[test]
    fn a_small_window_opens_probes_and_closes() {
        for (script, end) in [
            ("ffff", "closed"),
            ("fffff", "open, 30s"),
            ("pfpff", "open, 30s"),
            ("pfpfpfpfpf", "closed"),
            ("fffffa", "open, 29s"),
            ("fffffpf", "open, 28s"),
            ("fffff+", "open, probe"),
            ("fffff+a", "half-open, 30s"),
            ("fffff+ap", "closed"),
            ("fffff+apffff", "closed"),
            ("fffff+af", "open, 60s"),
            ("fffff+af++af", "open, 100s"),
            ("fffff+a+", "half-open, probe"),
        ] {
            assert_eq!(play(script), end, "{script}");
        }
    }

    #[test]
    fn a_clock_that_went_back_does_not_jam_it() {
        let open = Breaker::Open { since: 1_000_000, trips: 1 };
        assert_eq!(open.gate(5, &RULES), Gate::Probe);
    }
}
