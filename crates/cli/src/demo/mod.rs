//! The demonstration: a scripted agent that makes real calls through the real hook, in a folder of its own.
//!
//! The story is data; what is shown as its outcome is what the hook's process answered and what the command did. Nothing of
//! the person who watches is touched: neither their store, nor their settings, nor their files.

mod agent;
mod screen;
mod stage;
mod story;

pub(crate) use agent::{Agent, Ended, Step};
pub(crate) use screen::{Screen, Telling};
pub(crate) use stage::Stage;
pub(crate) use story::{Act, CHAPTERS, Chapter};
