//! What can go wrong, by what a caller would do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::snapshot::SnapshotId;

/// Why something could not be done. Nothing of a user's is ever half done after one.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// There is no snapshot of this name.
    #[error("there is no snapshot {id}")]
    NoSuchSnapshot {
        /// The name.
        id: SnapshotId,
    },
    /// The safe has not been made yet.
    #[error("no snapshot has been taken yet: {path} does not exist")]
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
    /// The safe was written by a newer version.
    #[error("{path} has format {found}, this version knows up to {known}")]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Somebody else could read or replace what is in the safe.
    #[error("{path} cannot be used: {why}")]
    NotOurs {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another process is at work in the safe.
    #[error("another process is at work in {path}")]
    Busy {
        /// The lock.
        path: PathBuf,
    },
    /// The safe may not hold as much.
    #[error("{needed} bytes are needed, and the safe may hold {allowed} more")]
    OverBudget {
        /// What would have to be written.
        needed: u64,
        /// What may be.
        allowed: u64,
    },
    /// The disk has no room for it.
    #[error("{needed} bytes are needed, and the disk of {path} has {free} to spare")]
    DiskFull {
        /// Where.
        path: PathBuf,
        /// What would have to be written.
        needed: u64,
        /// What is there, less what must stay free.
        free: u64,
    },
    /// Whoever watched ended it.
    #[error("it was ended before it was done")]
    Stopped,
    /// This is never taken as a whole.
    #[error("{path} is too much to take as a whole")]
    TooWide {
        /// The path.
        path: PathBuf,
    },
    /// How the call left things was not recorded, so what others did since cannot be told apart from it.
    #[error("how the call behind {id} left things was not recorded")]
    NotConcluded {
        /// The snapshot.
        id: SnapshotId,
    },
    /// A restore was interrupted, and what it had made ready is on a disk that is away.
    #[error("a restore was interrupted and waits for {path}")]
    Away {
        /// What is not there.
        path: PathBuf,
        /// What the restore has set out to do.
        journal: PathBuf,
    },
    /// A file of the safe is not as it was written.
    #[error("{path} is damaged")]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The system said no.
    #[error("could not {deed} {path}")]
    Io {
        /// What was to be done.
        deed: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl VaultError {
    /// Makes an error of what the system said; a full disk has its own, and so has what is no file of ours.
    pub(crate) fn io(deed: &'static str, path: &Path) -> impl FnOnce(io::Error) -> VaultError {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                VaultError::DiskFull { path, needed: 0, free: 0 }
            }
            io::ErrorKind::InvalidData => VaultError::Damaged { path },
            _ => VaultError::Io { deed, path, source },
        }
    }
}
