//! What past retries achieved, by how long after the first attempt they were sent. The counts come from the caller; nothing is
//! stored here, and nothing is concluded: that is [`Experience`](super::Experience)'s.

use std::ops::RangeInclusive;
use std::time::Duration;

/// How many spans of time are told apart.
pub const SPANS: usize = 18;

/// Their upper ends, inclusive, in milliseconds from the beginning of the first attempt. Each is a third or a half longer than
/// the one before: fine enough to aim at, coarse enough to gather evidence. What comes later than the last is no retry any
/// more, but somebody who came back.
const EDGES: [u64; SPANS] = [
    1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000, 16_000, 24_000, 32_000, 48_000, 64_000, 96_000,
    128_000, 192_000, 256_000, 384_000,
];

/// The quantile of the normal distribution for a one-sided bound of 95 %.
const Z: f64 = 1.645;

/// From this many on, old counts are halved, so that what happened lately weighs more.
const FULL: u32 = 200;

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

    /// Those of a whole that are not among a part of it, as far as both fade alike.
    pub(super) fn without(self, part: Tally) -> Tally {
        let tried = self.tried.saturating_sub(part.tried);
        Tally { tried, worked: self.worked.saturating_sub(part.worked).min(tried) }
    }

    fn halved(self) -> Tally {
        Tally { tried: self.tried / 2, worked: self.worked / 2 }
    }

    /// The rate that follows from what was believed before, which counts as much as `weight` retries.
    pub(super) fn rate(self, believed: f64, weight: f64) -> f64 {
        (f64::from(self.worked) + weight * believed) / (f64::from(self.tried) + weight)
    }

    /// Returns the Wilson bounds of the success rate: unlike the plain rate they stay honest for few tries and at both ends.
    pub(super) fn bounds(self) -> (f64, f64) {
        let tried = f64::from(self.tried.max(1));
        let rate = f64::from(self.worked.min(self.tried)) / tried;
        let square = Z * Z;
        let middle = rate + square / (2.0 * tried);
        let reach = Z * (rate * (1.0 - rate) / tried + square / (4.0 * tried * tried)).sqrt();
        let scale = 1.0 + square / tried;
        ((middle - reach) / scale, (middle + reach) / scale)
    }
}

/// The yield of retries, span by span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastYield {
    /// The counts, from the shortest span on.
    pub tallies: [Tally; SPANS],
    /// When the last retry was counted, in milliseconds of the caller's clock.
    pub at: u64,
}

impl PastYield {
    /// Nothing is known.
    pub const NONE: PastYield = PastYield { tallies: [Tally { tried: 0, worked: 0 }; SPANS], at: 0 };

    /// Counts a retry that was sent `after` the beginning of the first attempt and ended `at`.
    #[must_use]
    pub fn with(mut self, after: Duration, worked: bool, at: u64) -> PastYield {
        let Some(span) = span(after) else { return self };
        let tally = &mut self.tallies[span];
        if tally.tried >= FULL {
            *tally = tally.halved();
        }
        *tally = tally.plus(Tally { tried: 1, worked: worked.into() });
        PastYield { at, ..self }
    }

    /// Halves all counts. Whoever keeps them does so now and then: what lies long back counts less.
    #[must_use]
    pub fn faded(self) -> PastYield {
        PastYield { tallies: self.tallies.map(Tally::halved), ..self }
    }

    pub(super) fn tally(&self, spans: RangeInclusive<usize>) -> Tally {
        self.tallies[spans].iter().copied().fold(Tally::default(), Tally::plus)
    }
}

/// The span in which a time lies; `None` past the last.
pub(super) fn span(after: Duration) -> Option<usize> {
    EDGES.iter().position(|edge| after <= Duration::from_millis(*edge))
}

/// Where a span begins and ends.
pub(super) fn ends(span: usize) -> (Duration, Duration) {
    let from = span.checked_sub(1).map_or(0, |before| EDGES[before]);
    (Duration::from_millis(from), Duration::from_millis(EDGES[span]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_counts_in_the_span_in_which_it_was_sent_and_one_after_the_last_in_none() {
        for (after, spans) in
            [(0, Some(0)), (1_000, Some(0)), (1_001, Some(1)), (384_000, Some(17)), (384_001, None)]
        {
            let known = PastYield::NONE.with(Duration::from_millis(after), true, 7);
            let counted = known.tallies.iter().position(|tally| tally.tried > 0);
            assert_eq!((counted, known.at), (spans, spans.map_or(0, |_| 7)), "{after} ms");
        }
    }

    #[test]
    fn counts_stay_bounded() {
        let known =
            (0..10_000).fold(PastYield::NONE, |known, n| known.with(Duration::from_secs(300), n % 2 == 0, 0));
        let Tally { tried, worked } = known.tallies[17];
        assert!(tried <= FULL && worked <= tried && worked * 3 > tried, "{worked} of {tried}");
    }
}
