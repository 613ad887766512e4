//! How long to wait before a retry. Chance comes in as a [`Draw`], so a whole schedule is one equality.

use std::time::Duration;

/// One throw of the dice, in thousandths from 0 to 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw(u16);

impl Draw {
    /// The smallest throw.
    pub const LOW: Draw = Draw(0);
    /// The largest throw.
    pub const HIGH: Draw = Draw(1_000);

    /// Makes a throw of `thousandths`; more than 1000 is 1000.
    pub const fn per_mille(thousandths: u16) -> Draw {
        if thousandths > 1_000 { Draw::HIGH } else { Draw(thousandths) }
    }

    /// Returns this share of `span`.
    pub fn of(self, span: Duration) -> Duration {
        span / 1_000 * u32::from(self.0)
    }
}

/// Dice that fall the same way for the same seed, on every machine: the splitmix64 generator.
///
/// It is chosen because its whole state is one number, which a recorded run can carry along; nothing here is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dice {
    /// The state, and at the start the seed.
    pub state: u64,
}

impl Dice {
    /// Makes dice that will fall as `seed` says.
    pub const fn seeded(seed: u64) -> Dice {
        Dice { state: seed }
    }

    /// Throws once.
    pub fn roll(&mut self) -> Draw {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        let thousandths = (u128::from(mixed) * 1_001) >> 64;
        Draw::per_mille(thousandths as u16)
    }
}

/// How waits are spread, so that callers who failed together do not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// The doubled wait plus up to one `spread`.
    Additive,
    /// Anything up to the doubled wait.
    Full,
    /// At least half of the doubled wait, at most all of it.
    Equal,
    /// Anything from the first wait to three times the last one.
    Decorrelated,
}

/// The waits between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The wait before the first retry. Zero means at once, every time.
    pub first: Duration,
    /// The longest wait, after jitter.
    pub cap: Duration,
    /// How waits are spread.
    pub jitter: Jitter,
    /// The most that additive jitter adds.
    pub spread: Duration,
}

impl Backoff {
    /// Returns the wait before retry `n`, counted from 0, after a `last` wait, which is zero before the first retry.
    pub fn wait(&self, n: u8, last: Duration, draw: Draw) -> Duration {
        if self.first.is_zero() {
            return Duration::ZERO;
        }
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(n.into())).min(self.cap);
        let wait = match self.jitter {
            Jitter::Additive => doubled.saturating_add(draw.of(self.spread)),
            Jitter::Full => draw.of(doubled),
            Jitter::Equal => doubled / 2 + draw.of(doubled / 2),
            Jitter::Decorrelated => {
                let most = last.max(self.first).saturating_mul(3);
                self.first.saturating_add(draw.of(most.saturating_sub(self.first)))
            }
        };
        wait.min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the waits of six retries with the lowest and the highest throw, in seconds.
    #[track_caller]
    fn check(jitter: Jitter, lowest: [f64; 6], highest: [f64; 6]) {
        let backoff = Backoff {
            first: Duration::from_secs(1),
            cap: Duration::from_secs(30),
            jitter,
            spread: Duration::from_secs(1),
        };
        let schedule = |draw| {
            let mut last = Duration::ZERO;
            [0, 1, 2, 3, 4, 5].map(|n| {
                last = backoff.wait(n, last, draw);
                last.as_secs_f64()
            })
        };
        assert_eq!([schedule(Draw::LOW), schedule(Draw::HIGH)], [lowest, highest]);
    }

    #[test]
    fn additive_jitter_adds_up_to_a_second_and_the_cap_holds_after_it() {
        check(Jitter::Additive, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0], [2.0, 3.0, 5.0, 9.0, 17.0, 30.0]);
    }

    #[test]
    fn full_jitter_reaches_from_nothing_to_the_doubled_wait() {
        check(Jitter::Full, [0.0; 6], [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]);
    }

    #[test]
    fn equal_jitter_keeps_half_of_the_doubled_wait() {
        check(Jitter::Equal, [0.5, 1.0, 2.0, 4.0, 8.0, 15.0], [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]);
    }

    #[test]
    fn decorrelated_jitter_grows_from_the_last_wait_and_not_from_the_count() {
        check(Jitter::Decorrelated, [1.0; 6], [3.0, 9.0, 27.0, 30.0, 30.0, 30.0]);
    }

    #[test]
    fn a_first_wait_of_zero_is_at_once_without_jitter() {
        let second = Duration::from_secs(1);
        let backoff =
            Backoff { first: Duration::ZERO, cap: second, jitter: Jitter::Additive, spread: second };
        assert_eq!(backoff.wait(3, second, Draw::HIGH), Duration::ZERO);
    }

    #[test]
    fn seeded_dice_fall_the_same_way_everywhere() {
        let mut dice = Dice::seeded(42);
        assert_eq!([(); 6].map(|()| dice.roll().0), [742, 160, 278, 344, 38, 869]);
    }

    #[test]
    fn dice_reach_both_ends() {
        let mut dice = Dice::seeded(7);
        let rolls: Vec<u16> = (0..20_000).map(|_| dice.roll().0).collect();
        assert_eq!((rolls.iter().min(), rolls.iter().max()), (Some(&0), Some(&1_000)));
    }
}
