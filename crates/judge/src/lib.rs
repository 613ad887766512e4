//! What a failed tool call means, and what may happen next.
//!
//! This crate is pure: it reads no clock, no environment and no file, starts nothing and prints nothing. Time, dice and
//! state come in as arguments, so every judgement can be replayed.

mod call;
mod kind;
pub mod ladder;

pub use call::{Call, Observation, Outcome};
pub use kind::{Kind, NotAWord, Stage};
