//! When a failed call is sent again: the matrix of retries and waits, what experience makes of it, and the two
//! brakes that stop storms.
//!
//! Everything here is a value. The clock and the dice are arguments, the state of budget, breaker and experience is the
//! caller's to keep, and "may this run again?" is an input: it is answered elsewhere, in one place.

mod backoff;
mod breaker;
mod budget;
mod decide;
mod experience;
mod file;
mod host;
mod past_yield;
mod policy;
#[cfg(test)]
mod tests;
mod whom;

pub use backoff::{Backoff, Dice, Draw, Jitter};
pub use breaker::{Breaker, BreakerEvent, BreakerRules, Gate, Recent};
pub use budget::{Budget, BudgetRules};
pub use decide::{Ask, Decision, MayRepeat, StopReason};
pub use experience::{Advice, Experience, Seen, YieldRules};
pub use file::{MOST_RETRIES, PolicyError};
pub use host::{HostBudget, HostRules, host};
pub use past_yield::{PastYield, SPANS, Tally};
pub use policy::{HintRules, KindRow, LimitFactor, LimitedBy, Policy};
pub use whom::whom;
