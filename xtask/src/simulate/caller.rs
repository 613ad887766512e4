//! Who calls: one machine with its policy. A policy sees what a caller sees (how an attempt ended, as far as it can be read)
//! and says whether there is another.

use std::time::Duration;

use unstuck_judge::Kind;
use unstuck_judge::retry::{Draw, Policy};

use super::failure::Read;
use super::ours::{Memory, Ours};
use super::peers::{Aws, Schedule};
use crate::dice::Dice;

/// An attempt that has just ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// In which session of the machine.
    pub session: usize,
    /// Of which program.
    pub program: u8,
    /// How many retries of the call were made before its end, this one included.
    pub retries: u8,
    /// When the first attempt was sent.
    pub begun: u64,
    /// When this one was sent.
    pub sent: u64,
    /// Now.
    pub now: u64,
    /// The wait before this one, and the failure that it was for.
    pub before: Option<(Duration, Kind)>,
}

/// What a caller does about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It sends the call again.
    Again {
        wait: Duration,
        /// The time limit of the next attempt, in milliseconds.
        limit: u64,
    },
    /// It gives the call up, for this reason.
    GiveUp(&'static str),
}

/// A machine with its policy.
pub trait Caller {
    /// An attempt went well.
    fn succeeded(&mut self, ended: &Ended);

    /// An attempt failed.
    fn failed(&mut self, ended: &Ended, read: Read, dice: &mut Dice) -> Next;
}

/// How a policy takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It sends calls again.
    Retries,
    /// It never does, which is best where nothing helps.
    Abstains,
    /// It is ours in another form, and does not compete.
    Variant,
}

/// The policies that are compared.
#[derive(Debug, Clone, Copy)]
pub enum Contender<'a> {
    /// Ours, as it comes.
    Ours,
    /// The same without past yield: only the matrix, the budget and the breaker.
    Forgetful,
    /// Ours with other numbers.
    Changed(&'a Policy),
    /// Nothing is sent again.
    NoRetry,
    /// Three retries, a second apart, of whatever failed.
    Fixed,
    /// Five attempts of whatever failed, with full jitter from half a second on, and nothing that holds them back.
    Exponential,
    /// `stop_after_attempt(5)` and `wait_random_exponential(1, 60)` of tenacity, which retries whatever was raised.
    Tenacity,
    /// The standard mode of the AWS SDKs: three attempts of what is transient, paid for from a bucket of tokens.
    Aws,
}

impl<'a> Contender<'a> {
    /// All that need no file, ours first.
    pub const ALL: [Contender<'static>; 7] = [
        Contender::Ours,
        Contender::Forgetful,
        Contender::NoRetry,
        Contender::Fixed,
        Contender::Exponential,
        Contender::Tenacity,
        Contender::Aws,
    ];

    /// What the tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Contender::Ours => "unstuck",
            Contender::Forgetful => "unstuck, without memory",
            Contender::Changed(_) => "unstuck, changed",
            Contender::NoRetry => "no retry",
            Contender::Fixed => "3 fixed retries",
            Contender::Exponential => "exponential, no budget",
            Contender::Tenacity => "tenacity-like",
            Contender::Aws => "AWS-standard-like",
        }
    }

    /// How it takes part.
    pub fn role(self) -> Role {
        match self {
            Contender::Forgetful | Contender::Changed(_) => Role::Variant,
            Contender::NoRetry => Role::Abstains,
            Contender::Ours
            | Contender::Fixed
            | Contender::Exponential
            | Contender::Tenacity
            | Contender::Aws => Role::Retries,
        }
    }

    /// A machine with this policy that has seen nothing yet.
    pub fn machine(self) -> Box<dyn Caller + 'a> {
        let seconds = Duration::from_secs;
        match self {
            Contender::Ours => Box::new(Ours::new(Policy::built_in(), Memory::Kept)),
            Contender::Forgetful => Box::new(Ours::new(Policy::built_in(), Memory::None)),
            Contender::Changed(policy) => Box::new(Ours::new(policy, Memory::Kept)),
            Contender::NoRetry => Box::new(Schedule::NONE),
            Contender::Fixed => Box::new(Schedule::fixed(3, seconds(1))),
            Contender::Exponential => {
                Box::new(Schedule::full_jitter(4, Duration::from_millis(500), seconds(60)))
            }
            Contender::Tenacity => Box::new(Schedule::full_jitter(4, seconds(1), seconds(60))),
            Contender::Aws => Box::new(Aws::new()),
        }
    }
}

/// One throw as the judge takes it.
pub fn draw(dice: &mut Dice) -> Draw {
    Draw::per_mille(dice.below(1_001) as u16)
}
