//! Our own policy: the judge's functions, asked in the order in which the store asks them. Nothing is decided here.

use std::collections::HashMap;
use std::time::Duration;

use unstuck_judge::Kind;
use unstuck_judge::retry::{Ask, Breaker, BreakerEvent, Budget, Decision, PastYield, Policy};

use super::caller::{Caller, Ended, Next, draw};
use super::failure::Read;
use super::service::LIMIT;
use crate::dice::Dice;

/// Is it remembered what past retries achieved?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    Kept,
    None,
}

/// A machine on which unstuck runs.
pub struct Ours<'a> {
    policy: &'a Policy,
    memory: Memory,
    /// Of each session.
    brakes: HashMap<usize, (Budget, Breaker)>,
    /// Of the machine, over all sessions. Runs here last less than a day, so nothing fades.
    past: HashMap<Kind, PastYield>,
}

impl<'a> Ours<'a> {
    /// A machine that has seen nothing.
    pub fn new(policy: &'a Policy, memory: Memory) -> Ours<'a> {
        Ours { policy, memory, brakes: HashMap::new(), past: HashMap::new() }
    }

    /// Tells the brakes how an attempt ended. A failure that costs nothing says nothing about the far side.
    fn tell(&mut self, ended: &Ended, failed: Option<Kind>) -> (Budget, Breaker) {
        let rules = self.policy;
        let new = (Budget::full(&rules.budget), Breaker::NEW);
        let (budget, breaker) = self.brakes.entry(ended.session).or_insert(new);
        *breaker = breaker.step(BreakerEvent::Asked, ended.sent, &rules.breaker);
        match failed.map(|kind| rules.row(kind).cost) {
            Some(0) => {}
            Some(cost) => {
                *budget = budget.failed(cost);
                *breaker = breaker.step(BreakerEvent::Failed, ended.now, &rules.breaker);
            }
            None => {
                *budget = budget.succeeded(&rules.budget);
                *breaker = breaker.step(BreakerEvent::Passed, ended.now, &rules.breaker);
            }
        }
        if let (Memory::Kept, Some((waited, kind))) = (self.memory, ended.before) {
            let past = self.past.entry(kind).or_insert(PastYield::NONE);
            *past = past.with(ended.retries - 1, waited, failed.is_none());
        }
        (*budget, *breaker)
    }
}

impl Caller for Ours<'_> {
    fn succeeded(&mut self, ended: &Ended) {
        self.tell(ended, None);
    }

    fn failed(&mut self, ended: &Ended, read: Read, dice: &mut Dice) -> Next {
        let (budget, breaker) = self.tell(ended, Some(read.kind));
        let decision = self.policy.decide(&Ask {
            kind: read.kind,
            may_repeat: read.may_repeat,
            tool: "Bash",
            agent: "main",
            retries_made: ended.retries,
            last_wait: ended.before.map_or(Duration::ZERO, |(waited, _)| waited),
            elapsed: Duration::from_millis(ended.now - ended.begun),
            deadline: self.policy.deadline,
            budget,
            breaker,
            past: self.past.get(&read.kind).unwrap_or(&PastYield::NONE),
            now: ended.now,
            draw: draw(dice),
        });
        match decision {
            Decision::Stop { why, .. } => Next::GiveUp(why.word()),
            Decision::Retry { wait, limit_factor } => {
                let limit = limit_factor.of(Duration::from_millis(LIMIT));
                Next::Again { wait, limit: limit.as_millis() as u64 }
            }
        }
    }
}
