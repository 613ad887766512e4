//! The doors: outside formats become our words here, and nowhere else.
//!
//! Each file knows one outside format. Its `Wire*` structs carry their names; one conversion makes them ours. Like the
//! judge this crate is pure: it reads no clock, no environment and no file, and prints nothing. It never panics on what
//! it is given: all of it comes from outside.

mod bounded;
pub mod clean;
pub mod clock;
pub mod failure;
pub mod hook;
mod json;
pub mod mcp;
pub mod recorded;
pub mod redact;
pub mod report;
mod scalar;
pub mod time;
pub mod transcript;
mod wording;

pub use json::WireError;
