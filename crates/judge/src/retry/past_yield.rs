//! What past retries achieved, and what follows for the next one. The counts come from the caller; nothing is stored here.

use std::time::Duration;

use super::backoff::Draw;
use super::file::MOST_RETRIES;

/// The upper ends, inclusive, of the waits that are told apart, in seconds. A longer wait counts with the last.
/// They are laid so that no step of the default schedule is split by its jitter.
const EDGES: [u64; 5] = [2, 5, 12, 30, 180];

/// The quantile of the normal distribution for a one-sided bound of 95 %.
const Z: f64 = 1.645;

/// From this many on, old counts are halved, so that what happened lately weighs more.
const FULL: u32 = 200;

/// The numbers by which past yield is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YieldRules {
    /// Fewer tries than this prove nothing.
    pub least_tries: u32,
    /// A retry that surely succeeds less often than this is not made.
    pub give_up_percent: u8,
    /// A shorter wait that surely succeeds more often than this is preferred.
    pub good_enough_percent: u8,
}

/// How many retries were made, and how many of them went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Retries made.
    pub tried: u32,
    /// Retries that went well; never more than `tried`.
    pub worked: u32,
}

impl Tally {
    fn plus(self, other: Tally) -> Tally {
        Tally {
            tried: self.tried.saturating_add(other.tried),
            worked: self.worked.saturating_add(other.worked),
        }
    }

    fn halved(self) -> Tally {
        Tally { tried: self.tried / 2, worked: self.worked / 2 }
    }

    /// Returns the Wilson bounds of the success rate: unlike the plain rate they stay honest for few tries and at both ends.
    fn bounds(self) -> (f64, f64) {
        let tried = f64::from(self.tried.max(1));
        let rate = f64::from(self.worked.min(self.tried)) / tried;
        let square = Z * Z;
        let middle = rate + square / (2.0 * tried);
        let reach = Z * (rate * (1.0 - rate) / tried + square / (4.0 * tried * tried)).sqrt();
        let scale = 1.0 + square / tried;
        ((middle - reach) / scale, (middle + reach) / scale)
    }
}

/// The yield of retries for one cause and host: one row per retry, one column per range of waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PastYield {
    /// The counts, by retry from 0 and by wait from the shortest.
    pub tallies: [[Tally; EDGES.len()]; MOST_RETRIES as usize],
}

/// What past yield says about a planned retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// There is nothing against the plan, or too little evidence.
    AsPlanned,
    /// Another wait was surely better, or surely good enough and shorter.
    WaitBetween(Duration, Duration),
    /// It has surely been in vain.
    Stop,
}

impl PastYield {
    /// Nothing is known.
    pub const NONE: PastYield =
        PastYield { tallies: [[Tally { tried: 0, worked: 0 }; EDGES.len()]; MOST_RETRIES as usize] };

    /// Counts one retry: the `n`th, from 0, made after `wait`.
    #[must_use]
    pub fn with(mut self, n: u8, wait: Duration, worked: bool) -> PastYield {
        let tally = &mut self.tallies[row(n)][column(wait)];
        if tally.tried >= FULL {
            *tally = tally.halved();
        }
        *tally = tally.plus(Tally { tried: 1, worked: worked.into() });
        self
    }

    /// Halves all counts. Whoever keeps them does so now and then, since retries that were stopped bring no new evidence.
    #[must_use]
    pub fn faded(self) -> PastYield {
        PastYield { tallies: self.tallies.map(|row| row.map(Tally::halved)) }
    }

    /// Says what the past means for retry `n` after the `planned` wait.
    pub fn advice(&self, n: u8, planned: Duration, rules: &YieldRules) -> Advice {
        let tallies = &self.tallies[row(n)];
        let here = column(planned);
        let proven = |column: &usize| tallies[*column].tried >= rules.least_tries;
        let good_enough = f64::from(rules.good_enough_percent) / 100.0;
        let give_up = f64::from(rules.give_up_percent) / 100.0;

        let shorter = (0..here).filter(proven).find(|column| tallies[*column].bounds().0 >= good_enough);
        let longer = || {
            let (_, planned_high) = Some(here).filter(proven).map(|here| tallies[here].bounds())?;
            (here + 1..EDGES.len()).filter(proven).find(|column| tallies[*column].bounds().0 > planned_high)
        };
        if let Some(column) = shorter.or_else(longer) {
            let from = column.checked_sub(1).map_or(0, |before| EDGES[before]);
            return Advice::WaitBetween(Duration::from_secs(from), Duration::from_secs(EDGES[column]));
        }
        let all = tallies.iter().copied().fold(Tally::default(), Tally::plus);
        match all.tried >= rules.least_tries && all.bounds().1 < give_up {
            true => Advice::Stop,
            false => Advice::AsPlanned,
        }
    }
}

impl Advice {
    /// Returns the wait to make of a `planned` one, or `None` where no retry is to be made.
    pub(super) fn apply(self, planned: Duration, draw: Draw) -> Option<Duration> {
        match self {
            Advice::AsPlanned => Some(planned),
            Advice::WaitBetween(from, to) => Some(from + draw.of(to.saturating_sub(from))),
            Advice::Stop => None,
        }
    }
}

fn row(n: u8) -> usize {
    usize::from(n.min(MOST_RETRIES - 1))
}

fn column(wait: Duration) -> usize {
    EDGES.iter().position(|edge| wait <= Duration::from_secs(*edge)).unwrap_or(EDGES.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: YieldRules = YieldRules { least_tries: 20, give_up_percent: 10, good_enough_percent: 70 };

    /// Checks what `(seconds, tried, worked)` on the first retry say about a planned wait of 10 s.
    #[track_caller]
    fn check(past: &[(u64, u32, u32)], expected: Advice) {
        let mut known = PastYield::NONE;
        for (wait, tried, worked) in past {
            known.tallies[0][column(Duration::from_secs(*wait))] = Tally { tried: *tried, worked: *worked };
        }
        assert_eq!(known.advice(0, Duration::from_secs(10), &RULES), expected, "{past:?}");
        assert_eq!(
            known.advice(1, Duration::from_secs(10), &RULES),
            Advice::AsPlanned,
            "another retry's row"
        );
    }

    fn between(from: u64, to: u64) -> Advice {
        Advice::WaitBetween(Duration::from_secs(from), Duration::from_secs(to))
    }

    #[test]
    fn little_evidence_changes_nothing() {
        check(&[], Advice::AsPlanned);
        check(&[(10, 19, 0)], Advice::AsPlanned);
        check(&[(1, 19, 19)], Advice::AsPlanned);
    }

    #[test]
    fn retries_that_are_surely_in_vain_stop() {
        check(&[(10, 24, 0)], Advice::AsPlanned);
        check(&[(10, 25, 0)], Advice::Stop);
        check(&[(1, 15, 0), (10, 15, 0)], Advice::Stop);
        check(&[(10, 100, 20)], Advice::AsPlanned);
    }

    #[test]
    fn a_shorter_wait_that_is_good_enough_is_taken() {
        check(&[(1, 20, 20)], between(0, 2));
        check(&[(3, 40, 36), (10, 40, 40)], between(2, 5));
        check(&[(1, 40, 20)], Advice::AsPlanned);
    }

    #[test]
    fn a_longer_wait_is_taken_where_it_was_surely_better() {
        check(&[(10, 30, 2), (30, 30, 20)], between(12, 30));
        check(&[(10, 30, 12), (30, 30, 16)], Advice::AsPlanned);
        check(&[(30, 30, 30)], Advice::AsPlanned);
    }

    #[test]
    fn what_fades_is_tried_again() {
        let mut known = PastYield::NONE;
        known.tallies[0][2] = Tally { tried: 30, worked: 0 };
        let wait = Duration::from_secs(10);
        assert_eq!(known.advice(0, wait, &RULES), Advice::Stop);
        assert_eq!(known.faded().advice(0, wait, &RULES), Advice::AsPlanned);
    }

    #[test]
    fn counts_stay_bounded() {
        let known =
            (0..10_000).fold(PastYield::NONE, |known, n| known.with(9, Duration::from_secs(999), n % 2 == 0));
        let Tally { tried, worked } = known.tallies[4][4];
        assert!(tried <= FULL && worked <= tried && worked * 3 > tried, "{worked} of {tried}");
    }
}
