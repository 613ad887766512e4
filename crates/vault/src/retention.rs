//! How long snapshots are kept, and what came of looking after them.

use std::path::PathBuf;
use std::time::Duration;

use crate::snapshot::SnapshotId;

/// How long snapshots are kept. Pinned ones stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The newest so many of each target. Those that a person took stay whatever their number.
    pub per_target: usize,
    /// None that is older.
    pub max_age: Duration,
    /// The oldest go first while the safe holds more bytes.
    pub max_size: u64,
    /// Those that a person took do not go for their size: calls and agents come in any number.
    pub spare_persons: bool,
}

/// Why a snapshot was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// There are enough newer ones of the same paths.
    Count,
    /// It was too old.
    Age,
    /// The safe held too much.
    Size,
    /// Somebody removed it.
    Asked,
}

/// A snapshot that is gone, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// Its name.
    pub id: SnapshotId,
    /// What was noted with it; the call in one line where it was taken before one.
    pub note: String,
    /// Why it went.
    pub cause: Cause,
}

/// What was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// Snapshots that are gone, or would be.
    pub snapshots: Vec<SnapshotId>,
    /// The same, with what is known of each.
    pub gone: Vec<Gone>,
    /// Bytes in the safe before.
    pub before: u64,
    /// Bytes in the safe after.
    pub after: u64,
    /// Somebody else is at work in the safe, or it was ended early: what is left is removed another time.
    pub left_busy: bool,
    /// Snapshots whose own lists are damaged. While they are there, nothing is removed that they may need.
    pub blocked_by: Vec<SnapshotId>,
}

/// Something in the safe that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The snapshot that can no longer bring it back.
    pub snapshot: SnapshotId,
    /// The file of the user that is concerned; the snapshot's own list where that is damaged.
    pub path: PathBuf,
    /// The file in the safe in which it was found.
    pub file: PathBuf,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Snapshots that were looked at.
    pub snapshots: Vec<SnapshotId>,
    /// Contents that were read and hashed.
    pub contents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is not as it was written.
    pub damages: Vec<Damage>,
}
