//! Our own policy: the judge's functions, asked in the order in which the store asks them. Nothing is decided here.

use std::collections::HashMap;
use std::time::Duration;

use unstuck_judge::Kind;
use unstuck_judge::retry::{Ask, Breaker, BreakerEvent, Budget, Decision, Experience, PastYield, Policy};

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
    /// Of the machine, over all sessions: of each kind of failure, and of each kind and program. Runs here last less than a
    /// week, so nothing fades.
    past: HashMap<(Kind, Option<u8>), PastYield>,
}

impl<'a> Ours<'a> {
    /// A machine that has seen nothing.
    pub fn new(policy: &'a Policy, memory: Memory) -> Ours<'a> {
        Ours { policy, memory, brakes: HashMap::new(), past: HashMap::new() }
    }

    /// Tells the brakes how an attempt ended. A failure that costs nothing says nothing about the far side.
    fn tell(&mut self, ended: &Ended, failed: Option<Kind>) -> (Budget, Breaker) {
        let rules = self.policy;
        let past = failed.map_or(Experience::NONE, |kind| self.experience(kind, ended.program));
        let new = (Budget::full(&rules.budget), Breaker::NEW);
        let (budget, breaker) = self.brakes.entry(ended.session).or_insert(new);
        *breaker = breaker.step(BreakerEvent::Asked, ended.sent, &rules.breaker);
        match failed.map(|kind| self.policy.cost(kind, &past, Duration::from_millis(ended.now - ended.begun)))
        {
            Some(0) => {}
            Some(cost) => {
                *budget = budget.failed(cost);
                *breaker = breaker.step(BreakerEvent::Failed, ended.now, &rules.breaker);
            }
            None => {
                let healed =
                    ended.before.map_or(0, |(_, kind)| rules.row(kind).cost * u32::from(ended.retries));
                *budget = budget.succeeded(healed, &rules.budget);
                *breaker = breaker.step(BreakerEvent::Passed, ended.now, &rules.breaker);
            }
        }
        if let (Memory::Kept, Some((_, kind))) = (self.memory, ended.before) {
            let after = Duration::from_millis(ended.sent - ended.begun);
            for whose in [Some(ended.program), None] {
                let past = self.past.entry((kind, whose)).or_insert(PastYield::NONE);
                *past = past.with(after, failed.is_none(), ended.now);
            }
        }
        (*budget, *breaker)
    }

    /// What is known of past retries. There is only one tool here.
    fn experience(&self, kind: Kind, program: u8) -> Experience {
        let past = |whose| self.past.get(&(kind, whose)).copied().unwrap_or(PastYield::NONE);
        Experience { whom: past(Some(program)), tool: past(None), kind: past(None) }
    }
}

impl Caller for Ours<'_> {
    fn succeeded(&mut self, ended: &Ended) {
        self.tell(ended, None);
    }

    fn failed(&mut self, ended: &Ended, read: Read, dice: &mut Dice) -> Next {
        let (budget, breaker) = self.tell(ended, Some(read.kind));
        let past = self.experience(read.kind, ended.program);
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
            past: &past,
            now: ended.now,
            draw: draw(dice),
        });
        match decision {
            Decision::Stop { why, .. } => Next::GiveUp(why.word()),
            Decision::Retry { wait, limit_factor, .. } => {
                let limit = limit_factor.of(Duration::from_millis(LIMIT));
                Next::Again { wait, limit: limit.as_millis() as u64 }
            }
        }
    }
}
