//! What can go wrong in the cellar, by what a caller can do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::database;

/// Why the store could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder is not safe to write secrets' neighbours into.
    #[error("{path} is not used: {why}")]
    NotOurs {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it.
        why: Foreign,
    },
    /// A newer version wrote it; it may be read, not written.
    #[error("{path} has format {found}, this version writes up to {known}")]
    TooNew {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// Another process held it for longer than we may wait.
    #[error("another process holds {path}")]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// There is no room left.
    #[error("no space left for {path}")]
    Full {
        /// The database or the spool.
        path: PathBuf,
    },
    /// Its content cannot be read as a database.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// It lies on a network filesystem, where a database shared by processes loses data.
    #[error("{path} lies on a network filesystem ({filesystem}): only the spool is used there")]
    Network {
        /// The folder.
        path: PathBuf,
        /// The filesystem's name.
        filesystem: String,
    },
    /// There is no store yet.
    #[error("nothing is recorded in {path} yet")]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// The operating system said no.
    #[error("could not {deed} {path}: {source}")]
    Io {
        /// What was tried.
        deed: Deed,
        /// On what.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// SQLite said no in a way that nobody foresaw.
    #[error("{path}: {source}")]
    Sql {
        /// The database.
        path: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
}

/// Why a folder or a file is not ours to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Foreign {
    /// It leads elsewhere.
    SymbolicLink,
    /// Something else stands where a folder belongs.
    NoFolder,
    /// Something else stands where a file belongs.
    NoFile,
    /// It belongs to somebody else.
    OfAnother {
        /// Whose it is.
        owner: u32,
        /// Who we are.
        us: u32,
    },
    /// What was found when the folder was first looked at.
    Found(String),
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Foreign::SymbolicLink => f.write_str("it is a symbolic link"),
            Foreign::NoFolder => f.write_str("it is not a folder"),
            Foreign::NoFile => f.write_str("it is no ordinary file"),
            Foreign::OfAnother { owner, us } => {
                write!(f, "it belongs to user {owner}, and this process runs as {us}")
            }
            Foreign::Found(why) => f.write_str(why),
        }
    }
}

/// What was tried on a file or a folder when the operating system said no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Takes the rights of others away.
    CloseToOthers,
    /// Locks.
    Lock,
    /// Asks what stands there.
    LookAt,
    /// Lists a folder.
    LookInto,
    /// Makes a file or a folder.
    Make,
    /// Opens a file.
    Open,
    /// Puts a finished file where it belongs.
    PutInPlace,
    /// Removes.
    Remove,
    /// Moves out of the way.
    SetAside,
    /// Writes.
    Write,
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Deed::CloseToOthers => "close to others",
            Deed::Lock => "lock",
            Deed::LookAt => "look at",
            Deed::LookInto => "look into",
            Deed::Make => "make",
            Deed::Open => "open",
            Deed::PutInPlace => "put in place",
            Deed::Remove => "remove",
            Deed::SetAside => "set aside",
            Deed::Write => "write",
        })
    }
}

impl StoreError {
    pub(crate) fn io(deed: Deed, path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { path },
            _ => StoreError::Io { deed, path, source },
        }
    }

    pub(crate) fn sql(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        let path = path.to_owned();
        move |source| {
            let path = path.clone();
            match source.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path },
                Some(ErrorCode::DiskFull) => StoreError::Full { path },
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    StoreError::Damaged { path, why: source.to_string() }
                }
                Some(ErrorCode::ReadOnly) if database::has_bad_header(&path) => {
                    StoreError::Damaged { path, why: source.to_string() }
                }
                _ if is_of_damage(&source) => StoreError::Damaged { path, why: source.to_string() },
                _ => StoreError::Sql { path, source },
            }
        }
    }
}

/// Does SQLite say in other words that the file is not what it was? The list of tables may be readable and wrong.
fn is_of_damage(error: &rusqlite::Error) -> bool {
    const WORDS: [&str; 5] = [
        "unsupported file format",
        "no such table",
        "no such column",
        "has no column named",
        "no such index",
    ];
    let told = error.to_string();
    WORDS.iter().any(|words| told.contains(words))
}
