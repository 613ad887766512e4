//! Copies of what was there before we wrote: the last few of each file, in our own folder, readable by nobody else.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{Deed, EditError};
use super::ledger::private_write;

/// How many copies of a file are kept.
const KEPT: usize = 10;

/// The folder of the copies.
#[derive(Debug)]
pub(crate) struct Backups {
    folder: PathBuf,
}

impl Backups {
    pub(crate) fn in_folder(state: &Path) -> Backups {
        Backups { folder: state.join("settings-backups") }
    }

    /// Keeps a copy. Its name says when, and of which file; the same content is kept once.
    pub(crate) fn keep(&self, of: &Path, bytes: &[u8], at_ms: u64) -> Result<PathBuf, EditError> {
        let kind = kind(of);
        if let Some(last) = self.all(&kind).last()
            && fs::read(last).is_ok_and(|kept| kept == bytes)
        {
            return Ok(last.clone());
        }
        super::ledger::private_folder(&self.folder)?;
        let path = self.folder.join(format!("{kind}{at_ms:015}"));
        private_write(&path, bytes)?;
        Ok(path)
    }

    /// Lets the oldest copies of a file go, but none that is still needed.
    pub(crate) fn thin_out(&self, of: &Path, needed: &[PathBuf]) {
        let all = self.all(&kind(of));
        let surplus = all.len().saturating_sub(KEPT);
        for path in all.iter().take(surplus).filter(|path| !needed.contains(path)) {
            let _next_time = fs::remove_file(path);
        }
    }

    /// What a copy holds.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<u8>, EditError> {
        fs::read(path).map_err(EditError::io(Deed::Read, path))
    }

    /// The copies of one file, oldest first.
    fn all(&self, kind: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let is_one =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(kind));
        let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_one).collect();
        all.sort_unstable();
        all
    }
}

/// How the names of a file's copies begin. Two files of the same name lie in different folders.
fn kind(of: &Path) -> String {
    let name = of.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let place = blake3::hash(of.as_os_str().as_encoded_bytes()).to_hex();
    format!("{name}.{}.", &place[..8])
}
