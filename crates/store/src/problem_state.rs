//! Whether a recurring problem is new, known, resolved or back: one answer, for those who show it and for the one who writes.
//!
//! Pure: the writer asks it with the times from before a failure, and what was `resolved` then has regressed.

use std::time::Duration;

use unstuck_judge::vocabulary;

vocabulary! {
    /// Where a problem stands. The order is the one in which they deserve a look.
    ProblemState {
        /// It was resolved, and it is back.
        Regressed = "regressed",
        /// It was met for the first time a short while ago.
        New = "new",
        /// It is met now and then.
        Known = "known",
        /// A person said that it is, or it was not met for a long time.
        Resolved = "resolved",
    }
}

/// When a problem was met and judged, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProblemTimes {
    /// When it was met for the first time.
    pub first_at: u64,
    /// When it was met last.
    pub last_at: u64,
    /// When a person said that it is resolved.
    pub resolved_at: Option<u64>,
    /// When it came back.
    pub regressed_at: Option<u64>,
}

/// How long what counts as new, and how long a silence settles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProblemAges {
    /// A problem is new for this long.
    pub new_for: Duration,
    /// A problem not met for longer than this is taken for resolved.
    pub resolved_after: Duration,
}

impl Default for ProblemAges {
    fn default() -> ProblemAges {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        ProblemAges { new_for: DAY, resolved_after: DAY.saturating_mul(14) }
    }
}

impl ProblemState {
    /// Where a problem stands at `now`. A clock that was set back makes nothing older than it is.
    pub fn of(times: &ProblemTimes, now: u64, ages: &ProblemAges) -> ProblemState {
        let passed = |since: u64| Duration::from_millis(now.saturating_sub(since));
        // It came back at or after the moment of its resolution, so an equal time means that it came back.
        let settled = match (times.resolved_at, times.regressed_at) {
            (Some(resolved), Some(regressed)) => resolved > regressed,
            (Some(_), None) => true,
            (None, Some(_) | None) => false,
        };
        if settled || passed(times.last_at) > ages.resolved_after {
            ProblemState::Resolved
        } else if times.regressed_at.is_some() {
            ProblemState::Regressed
        } else if passed(times.first_at) < ages.new_for {
            ProblemState::New
        } else {
            ProblemState::Known
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    const DAY: u64 = 24 * HOUR;
    const NOW: u64 = 100 * DAY;

    /// Times are given as how long ago they were.
    #[track_caller]
    fn check(first: u64, last: u64, resolved: Option<u64>, regressed: Option<u64>, expected: ProblemState) {
        let ago = |span: u64| NOW - span;
        let times = ProblemTimes {
            first_at: ago(first),
            last_at: ago(last),
            resolved_at: resolved.map(ago),
            regressed_at: regressed.map(ago),
        };
        assert_eq!(ProblemState::of(&times, NOW, &ProblemAges::default()), expected, "{times:?}");
    }

    #[test]
    fn a_problem_is_new_for_a_day_and_then_known() {
        check(0, 0, None, None, ProblemState::New);
        check(DAY - 1, 0, None, None, ProblemState::New);
        check(DAY, 0, None, None, ProblemState::Known);
    }

    #[test]
    fn a_long_silence_resolves_whatever_it_was() {
        check(90 * DAY, 14 * DAY, None, None, ProblemState::Known);
        check(90 * DAY, 14 * DAY + 1, None, None, ProblemState::Resolved);
        check(90 * DAY, 15 * DAY, Some(30 * DAY), Some(20 * DAY), ProblemState::Resolved);
    }

    #[test]
    fn a_person_resolves_even_what_is_new() {
        check(HOUR, HOUR, Some(1), None, ProblemState::Resolved);
        check(HOUR, HOUR, Some(1), Some(2), ProblemState::Resolved);
    }

    #[test]
    fn what_comes_back_stays_regressed_until_it_is_resolved_again() {
        check(90 * DAY, 0, Some(2 * DAY), Some(DAY), ProblemState::Regressed);
        check(90 * DAY, 0, Some(DAY), Some(DAY), ProblemState::Regressed);
        check(90 * DAY, 0, None, Some(9 * DAY), ProblemState::Regressed);
        check(HOUR, 0, None, Some(0), ProblemState::Regressed);
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nothing_old() {
        let times =
            ProblemTimes { first_at: NOW + DAY, last_at: NOW + DAY, resolved_at: None, regressed_at: None };
        assert_eq!(ProblemState::of(&times, NOW, &ProblemAges::default()), ProblemState::New);
    }
}
