//! How far a lesson is trusted: what followed when it was tried, how long ago, and in how many places.

/// What is old counts half after so long, in milliseconds.
const HALF_LIFE_MS: f64 = 90.0 * 24.0 * 60.0 * 60.0 * 1000.0;
/// So many losses since the last win end a lesson.
const LOSSES_MAX: u32 = 2;
/// So many places have to agree before a lesson holds everywhere.
const PLACES: u32 = 2;
/// The bound is one-sided, at 90 %.
const Z: f64 = 1.2816;

/// How a lesson has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// How often it was followed by success.
    pub wins: u32,
    /// How often it was not.
    pub losses: u32,
    /// How many of those came after the last win.
    pub losses_since_win: u32,
    /// In how many places it won.
    pub places: u32,
    /// Whether it won in the place that is asked about.
    pub won_here: bool,
    /// When it last won, in milliseconds since 1970.
    pub won_at: u64,
    /// Whether the program that failed was exchanged since then, as an update does: one loss is enough now.
    pub is_of_another_version: bool,
}

/// What is done with a lesson.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is shown.
    Trusted,
    /// It was seen elsewhere only: it is found by who looks for it.
    Elsewhere,
    /// It does not work any more.
    Quarantined,
    /// It lost more often than it won.
    Doubtful,
}

impl Record {
    /// What is done with it.
    pub fn standing(&self) -> Standing {
        let losses_max = if self.is_of_another_version { 1 } else { LOSSES_MAX };
        if self.losses_since_win >= losses_max {
            return Standing::Quarantined;
        }
        if self.losses > self.wins {
            return Standing::Doubtful;
        }
        match self.won_here || self.places >= PLACES {
            true => Standing::Trusted,
            false => Standing::Elsewhere,
        }
    }

    /// How surely it helps, between 0 and 1: the lower end of what its wins and losses leave open, less with age.
    pub fn score(&self, now: u64) -> f64 {
        let age = now.saturating_sub(self.won_at) as f64;
        let weight = 0.5_f64.powf(age / HALF_LIFE_MS);
        let (wins, tries) = (f64::from(self.wins) * weight, f64::from(self.wins + self.losses) * weight);
        if tries == 0.0 {
            return 0.0;
        }
        let (rate, z2) = (wins / tries, Z * Z);
        let centre = rate + z2 / (2.0 * tries);
        let spread = Z * ((rate * (1.0 - rate) + z2 / (4.0 * tries)) / tries).sqrt();
        ((centre - spread) / (1.0 + z2 / tries)).max(0.0)
    }
}
