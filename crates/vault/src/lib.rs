//! THE SAFE: snapshots of files before they are put at risk, and exact restore.
//!
//! It knows nothing of agents. It writes its own folder, and a user's tree only to restore it; it starts nothing, prints
//! nothing, reads no settings, and time comes in as an argument. It holds the exact bytes of files, secrets included: its
//! folder is for its owner alone.

mod apply;
mod check;
mod collect;
mod compare;
mod content;
mod deed;
mod depth;
mod distrust;
mod entry;
mod error;
mod expiry;
mod folder;
mod git_index;
mod git_paths;
mod journal;
mod keep;
mod layer;
mod links;
mod manifest;
mod marks;
mod mounts;
mod needs;
mod pack;
mod places;
mod plan;
mod policy;
mod prepare;
mod recover;
mod repack;
mod repository;
mod restore;
mod restored;
mod retention;
mod scopes;
mod snapshot;
mod stage;
mod steps;
mod stored_snapshot;
mod take;
mod threads;
mod tree;
mod undone;
#[cfg(test)]
mod upkeep_tests;
mod vault;
mod verify;
mod walk;
mod watch;
mod wish;

/// What a fuzzer hands bytes to; no part of the interface.
#[cfg(feature = "_fuzzed")]
#[doc(hidden)]
pub mod fuzzed;

pub use error::VaultError;
pub use restored::{Change, Difference, Held, Kept, KeptBecause, Restored};
pub use retention::{Cause, Checked, Collected, Damage, Gone, Retention};
pub use snapshot::{Coverage, Gap, GapReason, Origin, Scope, Snapshot, SnapshotId};
pub use vault::Vault;
pub use watch::{Progress, Stage, Unwatched, Watch};
pub use wish::{Choice, Rebuildable, Reserve, Wish};
