//! Lessons: what was seen to fix a failure. They are learnt by watching only: a call fails, other calls follow, and at last
//! the same call, or one that is meant to do the same, goes well. What lay between is the fix.
//!
//! A fix consists of calls that the agent itself made. No word of an output ever becomes part of one, and nothing that a
//! model merely says. Which fixes may be shown without a person's leave is decided here as well, in [`Caution`].

mod aim;
mod allowed;
mod bearing;
mod caution;
mod deed;
mod fix;
#[cfg(test)]
mod poison;
#[cfg(test)]
mod tests;
mod trust;
pub mod words;

pub use aim::{bare_words, is_launch, own_words, takes_the_place_of};
pub use bearing::{Trouble, is_about_another};
pub use caution::Caution;
pub use deed::{Deed, was_idle};
pub use fix::{Change, Fix};
pub use trust::{Record, Standing};
