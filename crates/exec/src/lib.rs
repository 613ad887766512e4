//! The hands: runs a command once and tells how it ended, or starts one that works beside us.
//!
//! This is the only crate that starts processes. It puts no shell in between, keeps no output (the sink decides what is
//! worth keeping, so memory stays flat however much is printed), and judges nothing.

pub mod alive;
mod companion;
mod job;
// Built for tests everywhere, so that the fallback does not rot where nobody uses it.
#[cfg(any(test, not(unix)))]
mod portable;
pub mod process;
mod stop;
#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod watch_portable;

#[cfg(not(unix))]
use portable as platform;
#[cfg(unix)]
use unix as platform;

pub use companion::Companion;
pub use job::{Ending, Job, Run, Stream, Undelivered};
pub use stop::Stop;
#[cfg(unix)]
pub use unix::Watch;
#[cfg(not(unix))]
pub use watch_portable::Watch;
