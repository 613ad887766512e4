//! What whoever asks for a snapshot or a restore wants.

use std::path::PathBuf;
use std::time::SystemTime;

use crate::snapshot::Origin;

/// Is a folder that a program can make again taken, where it lies inside a scope? One that is a scope itself always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuildable {
    /// It is left out, and the snapshot says so.
    LeftOut,
    /// It is taken like everything else.
    Taken,
}

/// What may be used of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserve {
    /// The most that the safe may hold, in bytes.
    pub max_size: u64,
    /// What must stay free on its disk, in bytes.
    pub min_free: u64,
}

/// A snapshot that is asked for.
#[derive(Debug, Clone)]
pub struct Wish {
    /// What to take: absolute paths. One that does not exist is kept as absent, and a restore removes what came there.
    pub scopes: Vec<PathBuf>,
    /// What becomes of folders that can be made again.
    pub rebuildable: Rebuildable,
    /// Patterns of paths that are never taken: `**/.env`, `/home/me/secrets/**`.
    pub never: Vec<String>,
    /// Who asks, and why.
    pub origin: Origin,
    /// What a person noted.
    pub note: String,
    /// What may be used of the disk.
    pub reserve: Reserve,
    /// The time.
    pub now: SystemTime,
}

/// What of a snapshot is restored, and how.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Only what lies at or below these absolute paths; everything where there are none.
    pub paths: Vec<PathBuf>,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Also write over what somebody else changed since. Only an undo asks; a restore always does.
    pub force: bool,
    /// What may be used of the disk to save the present first.
    pub reserve: Reserve,
    /// The time.
    pub now: SystemTime,
}
