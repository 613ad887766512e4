//! One decision: is this call sent again, and when; and if not, why, and when it is worth coming back.
//!
//! Whether the call may run again at all is an input here. It is answered elsewhere, in one place, from what the failure is
//! and what the call may have done.

use std::time::Duration;

use super::backoff::Draw;
use super::breaker::{Breaker, Gate};
use super::budget::Budget;
use super::experience::{self, Advice, Experience, Seen};
use super::policy::{LimitFactor, LimitedBy, Policy};
use crate::kind::{Kind, vocabulary};

/// A refused caller is never told to come back sooner than this, not even where a retry would have been made at once.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// The answer to "may the same call run again?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayRepeat {
    /// Yes; the policy chooses the wait.
    Yes,
    /// Yes, after the wait that the server asked for.
    After(Duration),
    /// Only when something has changed.
    IfChanged,
    /// It may have taken effect already, and a second time would not be harmless.
    Uncertain,
    /// No.
    Never,
}

/// A failed call, and all that bears on sending it again.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// What the failure is.
    pub kind: Kind,
    /// Whether the same call may run again.
    pub may_repeat: MayRepeat,
    /// The tool's name.
    pub tool: &'a str,
    /// The agent's name.
    pub agent: &'a str,
    /// How many times this call has been sent again already.
    pub retries_made: u8,
    /// The wait before the last retry, zero if there was none.
    pub last_wait: Duration,
    /// The time since the first attempt began.
    pub elapsed: Duration,
    /// The time that all attempts share, counted like `elapsed`.
    pub deadline: Duration,
    /// The budget, after this failure was taken from it.
    pub budget: Budget,
    /// The breaker, after it was told of this failure.
    pub breaker: Breaker,
    /// What past retries of such failures achieved.
    pub past: &'a Experience,
    /// The time by the clock of breaker and experience, in milliseconds.
    pub now: u64,
    /// A throw of the dice.
    pub draw: Draw,
}

/// What is done about a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is sent again.
    Retry {
        /// After this wait.
        wait: Duration,
        /// With its first time limit multiplied by this.
        limit_factor: LimitFactor,
        /// What was seen of past retries, where the wait follows from that.
        seen: Option<Seen>,
    },
    /// It is not sent again.
    Stop {
        /// For this reason.
        why: StopReason,
        /// Whoever asks next should wait this long; `None` where no wait would help.
        come_back_after: Option<Duration>,
        /// What was seen of past retries, where it follows from that.
        seen: Option<Seen>,
    },
}

vocabulary! {
    /// Why a call is not sent again.
    StopReason {
        /// The same call cannot work, or its kind is never retried.
        NotRetryable = "not_retryable",
        /// It can work only after a change.
        NothingChanged = "nothing_changed",
        /// It may have taken effect already.
        EffectUncertain = "effect_uncertain",
        /// The agent gets no retries, since what it does is not to be done twice.
        AgentWrites = "agent_writes",
        /// The tool gets no retries, since what it does is not to be done twice.
        ToolWrites = "tool_writes",
        /// All its retries have been made.
        TriesUsed = "tries_used",
        /// Too many calls failed lately.
        BreakerOpen = "breaker_open",
        /// The tokens for retries are used up.
        BudgetEmpty = "budget_empty",
        /// Everybody together has asked the host again often enough for now.
        HostBudget = "host_budget",
        /// Such retries have been in vain.
        PastYield = "past_yield",
        /// The server asked for a longer wait than anyone should sleep through.
        HintTooLong = "hint_too_long",
        /// The next attempt could not begin before the deadline.
        Deadline = "deadline",
    }
}

impl Policy {
    /// Decides whether a failed call is sent again.
    ///
    /// A refusal still says how long to wait wherever waiting helps: an agent that is only told "no" asks again at once.
    pub fn decide(&self, ask: &Ask<'_>) -> Decision {
        let never = |why| Decision::Stop { why, come_back_after: None, seen: None };
        let planned = match ask.may_repeat {
            MayRepeat::Never => return never(StopReason::NotRetryable),
            MayRepeat::IfChanged => return never(StopReason::NothingChanged),
            MayRepeat::Uncertain => return never(StopReason::EffectUncertain),
            MayRepeat::Yes => self.own_wait(ask),
            MayRepeat::After(said) => self.said_wait(said, ask.draw),
        };
        let stop_as_seen = |why, wait: Duration, seen| {
            let come_back_after = Some(wait.max(LEAST_PAUSE));
            Decision::Stop { why, come_back_after, seen }
        };
        let stop = |why, wait| stop_as_seen(why, wait, None);

        let (retries, limited_by) = self.retries(ask.kind, ask.tool, ask.agent);
        if ask.retries_made >= retries && !self.gets_more(ask, planned) {
            return match (retries, limited_by) {
                (0, LimitedBy::Kind) => match planned {
                    Planned::Own(..) | Planned::InVain(..) => never(StopReason::NotRetryable),
                    Planned::Said(wait) | Planned::TooLong(wait) => stop(StopReason::NotRetryable, wait),
                },
                (0, LimitedBy::Tool) => stop(StopReason::ToolWrites, planned.wait()),
                (0, LimitedBy::Agent) => stop(StopReason::AgentWrites, planned.wait()),
                (_, LimitedBy::Kind | LimitedBy::Tool | LimitedBy::Agent) => {
                    stop(StopReason::TriesUsed, planned.wait())
                }
            };
        }
        match ask.breaker.gate(ask.now, &self.breaker) {
            Gate::Pass | Gate::Probe => {}
            Gate::Shut(rest) => return stop(StopReason::BreakerOpen, rest.max(planned.wait())),
        }
        if !ask.budget.allows_retry(&self.budget) {
            return stop(StopReason::BudgetEmpty, planned.wait());
        }
        let (wait, seen) = match planned {
            Planned::Own(wait, seen) => (wait, seen),
            Planned::Said(wait) => (wait, None),
            Planned::InVain(wait, seen) => return stop_as_seen(StopReason::PastYield, wait, Some(seen)),
            Planned::TooLong(wait) => return stop(StopReason::HintTooLong, wait),
        };
        if ask.elapsed.saturating_add(wait) >= ask.deadline {
            return stop(StopReason::Deadline, wait);
        }
        let limit_factor = self.row(ask.kind).limit_growth.for_retry(ask.retries_made);
        Decision::Retry { wait, limit_factor, seen }
    }

    /// What a failure takes from the budget, `elapsed` after the first attempt began. One that experience expects to stay is no
    /// news of the far side, and is not sent again: it costs the other calls nothing.
    pub fn cost(&self, kind: Kind, past: &Experience, elapsed: Duration) -> u32 {
        let (wait, cap) = (self.row(kind).first_wait, self.reach(kind));
        let planned = experience::Planned { elapsed, wait, cap, retries_made: u8::MAX, now: 0 };
        match past.advice(&planned, &self.past_yield) {
            Advice::Stop(_) => 0,
            Advice::AsPlanned | Advice::Wait { .. } => self.row(kind).cost,
        }
    }

    /// Plans the wait by the matrix, as experience corrects it.
    fn own_wait(&self, ask: &Ask<'_>) -> Planned {
        let wait = self.backoff(ask.kind).wait(ask.retries_made, ask.last_wait, ask.draw);
        match ask.past.advice(&self.in_time(ask, wait), &self.past_yield) {
            Advice::AsPlanned => Planned::Own(wait, None),
            Advice::Wait { from, to, seen } => {
                Planned::Own(from + ask.draw.of(to.saturating_sub(from)), Some(seen))
            }
            Advice::Stop(seen) => Planned::InVain(wait, seen),
        }
    }

    /// Says whether a call gets one more retry than the matrix allows at first, because such retries were seen to help.
    fn gets_more(&self, ask: &Ask<'_>, planned: Planned) -> bool {
        let (_, limited_by) = self.retries(ask.kind, ask.tool, ask.agent);
        ask.retries_made < self.most_retries(ask.kind, ask.tool, ask.agent)
            && limited_by == LimitedBy::Kind
            && ask.past.is_worth_more(&self.in_time(ask, planned.wait()), &self.past_yield)
    }

    fn in_time(&self, ask: &Ask<'_>, wait: Duration) -> experience::Planned {
        let Ask { elapsed, retries_made, now, .. } = *ask;
        experience::Planned { elapsed, wait, cap: self.reach(ask.kind), retries_made, now }
    }

    /// How long experience may wait. A kind that is retried at once heals at once or never.
    fn reach(&self, kind: Kind) -> Duration {
        let row = self.row(kind);
        if row.first_wait.is_zero() { Duration::ZERO } else { row.longest_wait }
    }

    /// Plans the wait that the server asked for. It is spread upwards only: everyone else was told the same time.
    fn said_wait(&self, said: Duration, draw: Draw) -> Planned {
        let said = said.min(self.hints.longest_believed);
        match said <= self.hints.longest_wait {
            true => Planned::Said(said.saturating_add(draw.of(self.spread)).min(self.hints.longest_wait)),
            false => Planned::TooLong(said),
        }
    }
}

/// The wait that a retry would take.
#[derive(Clone, Copy)]
enum Planned {
    /// By the matrix, or by what was seen.
    Own(Duration, Option<Seen>),
    /// By the server.
    Said(Duration),
    /// By the matrix, had such retries not been in vain.
    InVain(Duration, Seen),
    /// By the server, and too long.
    TooLong(Duration),
}

impl Planned {
    fn wait(self) -> Duration {
        match self {
            Planned::Own(wait, _)
            | Planned::Said(wait)
            | Planned::InVain(wait, _)
            | Planned::TooLong(wait) => wait,
        }
    }
}
