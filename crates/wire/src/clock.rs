//! How far a clock is believed. It may jump for a moment, by a day or by years, and what is removed for its age because of that is
//! gone for good. Pure: no clock is read here.

use std::time::Duration;

use crate::time::span_ms;

/// A silence this long is nothing unusual, whatever is asked about: a night, or a clock that was set by a few hours.
const USUAL_SILENCE_MS: u64 = 6 * 60 * 60 * 1000;

/// The moment against which ages are measured where things are kept for `limit`: `now` itself, unless the clock is far ahead of
/// everything that was recorded. `times` are moments at which something was recorded, in any order.
///
/// A silence of up to a quarter of the limit (and of six hours in any case) is believed. After a longer one only half of that
/// counts at first, because it may be a clock that jumped. All of it counts once things have been recorded for as long as a
/// quarter of the limit since then. What was recorded later than `now` was recorded under a wrong clock, and tells nothing.
pub fn credible(now: u64, times: &[u64], limit: Duration) -> u64 {
    let step = (span_ms(limit) / 4).max(USUAL_SILENCE_MS);
    let mut times: Vec<u64> = times.iter().copied().filter(|time| *time <= now).chain([now]).collect();
    times.sort_unstable();
    let mut run = Run { began: times[0], counted: times[0] };
    for pair in times.windows(2) {
        let [before, time] = [pair[0], pair[1]];
        if time - before > step {
            run = Run { began: time, counted: run.at(before, step) + step / 2 };
        }
    }
    run.at(now, step)
}

/// Things recorded one after the other, without a long silence between them.
struct Run {
    /// When it began, by its clock.
    began: u64,
    /// And the moment that counts for it.
    counted: u64,
}

impl Run {
    /// The moment that counts for one within the run.
    fn at(&self, time: u64, step: u64) -> u64 {
        let since = time - self.began;
        if since >= step { time } else { self.counted + since }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 60 * 60 * 1000;
    const DAY: u64 = 24 * HOUR;
    const YEARS: u64 = 8 * 365 * DAY;
    /// Some moment, long after 1970.
    const T: u64 = 20_000 * DAY;

    /// Checks how much older than `now` the moment is that counts. All is in hours; `times` are counted from the same moment.
    #[track_caller]
    fn check(limit: u64, times: &[u64], now: u64, behind: u64) {
        let times: Vec<u64> = times.iter().map(|hours| T + hours * HOUR).collect();
        let now = T + now * HOUR;
        assert_eq!((now - credible(now, &times, Duration::from_millis(limit * HOUR))) / HOUR, behind);
    }

    #[test]
    fn an_ordinary_clock_is_believed() {
        check(24, &[], 0, 0);
        check(24, &[0], 6, 0);
        check(24, &[0, 5, 9, 14, 20, 26], 30, 0);
        // A weekend and a vacation, for what is kept for a month.
        check(30 * 24, &[0, 8, 72, 80], 7 * 24, 0);
    }

    #[test]
    fn a_clock_that_jumps_ahead_for_a_moment_makes_nothing_old() {
        check(24, &[0, 1, 2], 26, 21);
        check(24, &[0, 1, 2], 2 + YEARS / HOUR, YEARS / HOUR - 3);
        // Several things are recorded while it is ahead, and a second jump lies a day behind the first.
        check(24, &[0, 1, 2, 26, 26], 26, 21);
        check(24, &[0, 1, 2, 26], 50, 42);
        check(30 * 24, &[0, 1, 2], 2 + YEARS / HOUR, YEARS / HOUR - 90);
        // The first jump ends, and what it recorded lies in the future.
        check(24, &[0, 1, 2, 26, YEARS / HOUR], 3, 0);
    }

    #[test]
    fn after_a_long_silence_a_clock_is_believed_again_once_it_has_gone_on_for_a_while() {
        check(24, &[0, 40 * 24], 40 * 24 + 5, 40 * 24 - 3);
        check(24, &[0, 40 * 24, 40 * 24 + 4], 40 * 24 + 6, 0);
        check(24, &[0, 40 * 24, 40 * 24 + 4, 40 * 24 + 8], 40 * 24 + 30, 22 - 3);
        // One thing a day: every day counts as three hours, and in the end all that is old goes.
        check(24, &[0, 24, 48, 72], 96, 96 - 12);
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nothing_old() {
        check(24, &[100, 101, 102], 3, 0);
    }

    #[test]
    fn a_short_limit_of_a_person_holds() {
        check(0, &[0], 5, 0);
        check(1, &[0], 24, 21);
    }

    #[test]
    fn it_never_runs_ahead_of_the_clock() {
        assert_eq!(credible(0, &[], Duration::ZERO), 0);
        assert!(credible(u64::MAX, &[0, u64::MAX], Duration::MAX) > u64::MAX / 16);
        assert!(credible(u64::MAX, &[1], Duration::from_secs(1)) < u64::MAX);
    }
}
