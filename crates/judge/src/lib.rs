//! What a failed tool call means, and what may happen next.
//!
//! This crate is pure: it reads no clock, no environment and no file, starts nothing and prints nothing. Time, dice and
//! state come in as arguments, so every judgement can be replayed.

mod alias;
mod call;
mod condition;
mod diagnose;
pub mod fingerprint;
pub mod hint;
mod kind;
pub mod ladder;
pub mod lesson;
pub mod nature;
mod need;
pub mod quote;
mod reading;
pub mod retry;
pub mod rewrite;
pub mod risk;
pub mod rules;
pub mod shell;
pub mod suspicion;
mod text;
mod verdict;
mod words;

pub use alias::Aliases;
pub use call::{Call, Observation, Outcome};
pub use condition::Condition;
pub use diagnose::{DENIED_BY_CHECK, Diagnosis, Proof, Rules};
pub use kind::{Kind, NotAWord, Stage};
pub use need::Need;
pub use reading::{Found, Reading, telling_line};
pub use text::{Lang, remedy};
pub use verdict::{Again, Effect, FixBy, Verdict};
