//! Copies of the database that lie beside it: made before its format changed, or set aside because it was damaged. They hold
//! what it held, so whoever removes something for good has to know of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use unstuck_wire::time;

use crate::error::{Deed, StoreError};
use crate::root::Root;

/// One copy: a file of `backups`, or a folder of `damaged`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) path: PathBuf,
    /// When it was made, in milliseconds since 1970.
    pub(crate) made_at: u64,
}

/// All copies, the oldest first.
pub(crate) fn all(root: &Root) -> Result<Vec<Copy>, StoreError> {
    let mut copies = Vec::new();
    for folder in [root.backups(), root.damaged()] {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(StoreError::io(Deed::LookInto, &folder)(error)),
        };
        for entry in entries {
            let path = entry.map_err(StoreError::io(Deed::LookInto, &folder))?.path();
            let made_at = made_at(&path);
            copies.push(Copy { path, made_at });
        }
    }
    copies.sort_by(|one, other| (one.made_at, &one.path).cmp(&(other.made_at, &other.path)));
    Ok(copies)
}

/// All copies, and the lines of the spool that nobody could read: whose they are is not known.
pub(crate) fn with_leftovers(root: &Root) -> Result<Vec<Copy>, StoreError> {
    let mut copies = all(root)?;
    let path = root.spool().join("unreadable.txt");
    if path.exists() {
        copies.push(Copy { made_at: changed_at(&path), path });
    }
    Ok(copies)
}

pub(crate) fn remove(copy: &Copy) -> Result<(), StoreError> {
    let gone = match fs::symlink_metadata(&copy.path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(&copy.path),
        Ok(_) => fs::remove_file(&copy.path),
        Err(error) => Err(error),
    };
    match gone {
        // Another process was first.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        gone => gone.map_err(StoreError::io(Deed::Remove, &copy.path)),
    }
}

/// The time at the end of its name; what is named otherwise is as old as its content.
fn made_at(path: &Path) -> u64 {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let named = name.rsplit('-').next().and_then(|digits| digits.parse().ok());
    named.unwrap_or_else(|| changed_at(path))
}

fn changed_at(path: &Path) -> u64 {
    let changed = fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
    let since = changed.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    time::span_ms(since)
}
