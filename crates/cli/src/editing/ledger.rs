//! What we wrote where: by it an uninstall gives back exactly what was there. It names files, never what is in them.
//!
//! It is written before the file it speaks of, so that being killed in between leaves a line too many and never one too few.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::error::{Deed, EditError};
use super::found::read_plain;

/// The format of the file.
const FORMAT: u32 = 1;

/// How long to wait for another installer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Which list is meant: they speak of the same files, and each of what it wrote there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Book {
    /// Entries by which agents call us.
    Hooks,
    /// Servers that agents reach through us.
    Servers,
}

impl Book {
    fn file(self) -> &'static str {
        match self {
            Book::Hooks => "installed.json",
            Book::Servers => "installed-mcp.json",
        }
    }

    fn other(self) -> Book {
        match self {
            Book::Hooks => Book::Servers,
            Book::Servers => Book::Hooks,
        }
    }
}

/// What was there before us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Before {
    /// No file.
    Nothing,
    /// A file, of which this is a copy.
    Copy(PathBuf),
}

/// One file that we wrote into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    /// Where it really lies.
    pub(crate) file: PathBuf,
    pub(crate) agent: String,
    pub(crate) at_ms: u64,
    pub(crate) before: Before,
    /// The hash of what we left there.
    pub(crate) left: String,
    /// Keys we made in it.
    pub(crate) made: Vec<String>,
    /// Folders we made for it, outermost first.
    pub(crate) folders: Vec<PathBuf>,
    /// Every command line we ever put into it.
    pub(crate) commands: Vec<String>,
    /// Servers that were wrapped in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) servers: Vec<Wrapped>,
}

/// A server whose entry we changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wrapped {
    /// The keys that lead to it; the last one is its name.
    pub(crate) place: Vec<String>,
    /// The hash of the entry as we left it.
    pub(crate) left: String,
}

impl Written {
    #[cfg(test)]
    pub(crate) fn nothing_yet(file: &str, agent: &str) -> Written {
        Written {
            file: PathBuf::from(file),
            agent: agent.to_owned(),
            at_ms: 0,
            before: Before::Nothing,
            left: String::new(),
            made: Vec::new(),
            folders: Vec::new(),
            commands: Vec::new(),
            servers: Vec::new(),
        }
    }

    /// Was the server at this place wrapped or added by us?
    pub(crate) fn has_server(&self, place: &[String]) -> bool {
        self.servers.iter().any(|server| server.place == place)
            || self.made.iter().any(|made| made.strip_prefix('/').is_some_and(|made| made == place.join("/")))
    }

    /// Is this what we left there?
    pub(crate) fn is_left(&self, bytes: &[u8]) -> bool {
        self.left == hash(bytes)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredLedger {
    v: u32,
    written: Vec<Written>,
}

/// The list of what we wrote, held by one process at a time.
#[derive(Debug)]
pub(crate) struct Ledger {
    book: Book,
    path: PathBuf,
    written: Vec<Written>,
    _lock: Option<File>,
}

impl Ledger {
    /// Opens one of the lists to write. Another installer is waited for: they have one lock, because they speak of the same files.
    pub(crate) fn lock(state: &Path, book: Book) -> Result<Ledger, EditError> {
        private_folder(state)?;
        let path = state.join("install.lock");
        let failed = |error| EditError::io(Deed::Lock, &path)(error);
        let lock = private_options().create(true).truncate(false).open(&path).map_err(failed)?;
        let begun = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) if begun.elapsed() > PATIENCE => return Err(EditError::Busy),
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(20)),
            }
        }
        Ok(Ledger { _lock: Some(lock), ..Ledger::read(state, book)? })
    }

    /// Opens one of the lists to look. One that was never written is empty.
    pub(crate) fn read(state: &Path, book: Book) -> Result<Ledger, EditError> {
        let path = state.join(book.file());
        let written = match read_plain(&path) {
            Ok(bytes) => parse(&bytes).map_err(|what| EditError::BadLedger { path: path.clone(), what })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(EditError::io(Deed::Read, &path)(error)),
        };
        Ok(Ledger { book, path, written, _lock: None })
    }

    /// What we wrote into a file.
    pub(crate) fn about(&self, file: &Path) -> Option<&Written> {
        self.written.iter().find(|each| each.file == file)
    }

    /// All that was written.
    pub(crate) fn all(&self) -> &[Written] {
        &self.written
    }

    /// The copies that are still needed, by the other list too.
    pub(crate) fn copies(&self) -> Vec<PathBuf> {
        let other = self.path.parent().and_then(|state| Ledger::read(state, self.book.other()).ok());
        let other = other.map(|other| other.written).unwrap_or_default();
        let copy = |each: &Written| match &each.before {
            Before::Nothing => None,
            Before::Copy(path) => Some(path.clone()),
        };
        self.written.iter().chain(&other).filter_map(copy).collect()
    }

    /// Notes what is about to be written into a file.
    pub(crate) fn note(&mut self, written: Written) -> Result<(), EditError> {
        self.written.retain(|each| each.file != written.file);
        self.written.push(written);
        self.save()
    }

    /// Forgets a file.
    pub(crate) fn forget(&mut self, file: &Path) -> Result<(), EditError> {
        let before = self.written.len();
        self.written.retain(|each| each.file != file);
        match self.written.len() == before {
            true => Ok(()),
            false => self.save(),
        }
    }

    fn save(&self) -> Result<(), EditError> {
        let stored = StoredLedger { v: FORMAT, written: self.written.clone() };
        let text = serde_json::to_string_pretty(&stored).unwrap_or_default() + "\n";
        private_write(&self.path, text.as_bytes())
    }
}

fn parse(bytes: &[u8]) -> Result<Vec<Written>, String> {
    let stored: StoredLedger = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match stored.v {
        FORMAT => Ok(stored.written),
        newer => Err(format!("it has format {newer}, this version writes {FORMAT}")),
    }
}

/// The short name of some content.
pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Makes a folder that only its owner can enter.
pub(super) fn private_folder(folder: &Path) -> Result<(), EditError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(EditError::io(Deed::Make, folder))
}

/// Writes a file that only its owner can read, whole or not at all.
pub(super) fn private_write(path: &Path, bytes: &[u8]) -> Result<(), EditError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.new"));
    let write = || {
        let mut file = private_options().create(true).truncate(true).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(|error| {
        let _what_is_half_written = fs::remove_file(&beside);
        EditError::io(Deed::Write, path)(error)
    })
}

/// For a file that only its owner can read, from its first byte on.
pub(super) fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
