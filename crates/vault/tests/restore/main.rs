//! Restore and undo, as whoever uses the safe sees them: everything comes back to the last detail, what others changed stays,
//! nothing is written outside of what was taken, and whatever interrupts it, the tree is what it was or what it should be.

mod conflicts;
mod faults;
mod house;
mod kinds;
#[path = "../properties/listing.rs"]
mod listing;
mod safety;
