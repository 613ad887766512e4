//! What differs between a snapshot and the present, and what a restore did about it.

use std::path::PathBuf;

use crate::snapshot::SnapshotId;

/// How the present differs from a snapshot at one path, said as what happened since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It came: a restore removes it.
    Added,
    /// It went: a restore makes it again.
    Removed,
    /// Its content is another one.
    Modified,
    /// It is something else: a file in place of a folder, a link in place of a file.
    Retyped,
    /// Only its mode, owner, times or attributes are others.
    Touched,
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where.
    pub path: PathBuf,
    /// How.
    pub change: Change,
}

/// What a snapshot holds at one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// A file of so many bytes.
    File {
        /// How many.
        size: u64,
    },
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device.
    Special,
    /// It was there, but it is not held, nor what is in it.
    Not,
}

/// Why a path was left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeptBecause {
    /// Somebody changed it after the call that is undone.
    ChangedSince,
    /// It changed while the restore was going on.
    ChangedMeanwhile,
    /// The snapshot does not hold it.
    NotHeld,
    /// What the safe holds of it is damaged.
    Damaged,
    /// It may not be written.
    Refused,
}

/// A path that was left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Where.
    pub path: PathBuf,
    /// Why.
    pub because: KeptBecause,
}

/// What a restore did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The snapshot that was restored.
    pub id: SnapshotId,
    /// The present as it was before, to take this back; nothing where nothing was changed, or in a dry run.
    pub saved: Option<SnapshotId>,
    /// What was brought back: each path with how it differed.
    pub done: Vec<Difference>,
    /// What was left as it is.
    pub kept: Vec<Kept>,
    /// How many files were read again and found to be what the snapshot holds.
    pub verified: u64,
    /// How many bytes were written.
    pub written: u64,
}
