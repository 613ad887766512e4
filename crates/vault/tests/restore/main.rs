//! Restore and undo, as whoever uses the safe sees them: everything comes back to the last detail, what others changed stays,
//! nothing is written outside of what was taken, and whatever interrupts it, the tree is what it was or what it should be.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]
#![allow(clippy::disallowed_methods, reason = "a test has to ask somebody for the time")]

mod conflicts;
mod faults;
mod house;
mod kinds;
#[path = "../properties/listing.rs"]
mod listing;
mod mounts;
mod names;
mod safety;
