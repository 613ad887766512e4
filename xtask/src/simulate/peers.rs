//! What others do, as their documentation tells it. They read a failure as well as we do where they look at all, and none of
//! them heeds what the server asks for.

use std::collections::HashMap;
use std::time::Duration;

use unstuck_judge::Kind;
use unstuck_judge::retry::{Backoff, Jitter};

use super::caller::{Caller, Ended, Next, draw};
use super::failure::Read;
use super::service::LIMIT;
use crate::dice::Dice;

const USED_UP: Next = Next::GiveUp("tries_used");

/// So many retries of whatever failed, after waits that nothing else changes.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    retries: u8,
    waits: Backoff,
}

impl Schedule {
    /// No retries.
    pub const NONE: Schedule = Schedule::fixed(0, Duration::ZERO);

    /// `retries` after `wait` each.
    pub const fn fixed(retries: u8, wait: Duration) -> Schedule {
        // Additive jitter that adds nothing, under a cap that lets nothing grow, is the same wait each time.
        let waits = Backoff { first: wait, cap: wait, jitter: Jitter::Additive, spread: Duration::ZERO };
        Schedule { retries, waits }
    }

    /// `retries` after anything up to a doubled wait.
    pub const fn full_jitter(retries: u8, first: Duration, cap: Duration) -> Schedule {
        Schedule { retries, waits: Backoff { first, cap, jitter: Jitter::Full, spread: Duration::ZERO } }
    }

    fn wait(&self, retries: u8, dice: &mut Dice) -> Next {
        let wait = self.waits.wait(retries, Duration::ZERO, draw(dice));
        Next::Again { wait, limit: LIMIT }
    }
}

impl Caller for Schedule {
    fn succeeded(&mut self, _: &Ended) {}

    fn failed(&mut self, ended: &Ended, _: Read, dice: &mut Dice) -> Next {
        match ended.retries < self.retries {
            true => self.wait(ended.retries, dice),
            false => USED_UP,
        }
    }
}

/// The standard mode of the AWS SDKs, as botocore has it: a retry that leads to a success gives its price back, a success
/// without one gives back a single token.
pub struct Aws {
    schedule: Schedule,
    /// Of each session, which stands for the life of an SDK's client.
    tokens: HashMap<usize, u32>,
}

impl Aws {
    const FULL: u32 = 500;

    /// A machine whose buckets are full.
    pub fn new() -> Aws {
        let schedule = Schedule::full_jitter(2, Duration::from_secs(1), Duration::from_secs(20));
        Aws { schedule, tokens: HashMap::new() }
    }

    fn price(kind: Kind) -> u32 {
        if kind == Kind::Timeout { 10 } else { 5 }
    }
}

impl Caller for Aws {
    fn succeeded(&mut self, ended: &Ended) {
        let tokens = self.tokens.entry(ended.session).or_insert(Aws::FULL);
        let back = ended.before.map_or(1, |(_, kind)| Aws::price(kind));
        *tokens = (*tokens + back).min(Aws::FULL);
    }

    fn failed(&mut self, ended: &Ended, read: Read, dice: &mut Dice) -> Next {
        if !matches!(read.kind, Kind::Network | Kind::Timeout | Kind::ServerError | Kind::RateLimited) {
            return Next::GiveUp("not_retryable");
        }
        let tokens = self.tokens.entry(ended.session).or_insert(Aws::FULL);
        match (ended.retries < self.schedule.retries, tokens.checked_sub(Aws::price(read.kind))) {
            (false, _) => USED_UP,
            (true, None) => Next::GiveUp("budget_empty"),
            (true, Some(left)) => {
                *tokens = left;
                self.schedule.wait(ended.retries, dice)
            }
        }
    }
}
