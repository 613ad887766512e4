//! Puts new content in the place of a file, whole or not at all: written beside it, made durable, given the same owner and
//! rights, and moved over it only if the file is still what was read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use unstuck_exec::alive;

use super::error::{Deed, EditError};
use super::found::Found;
use super::ledger::private_options;
use crate::regular_file;

/// What a file is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum After {
    /// It stays as it is.
    Same,
    /// This is in it.
    Bytes(Vec<u8>),
    /// It is gone.
    Gone,
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a file that changed meanwhile was not written"]
pub(crate) enum Put {
    Done,
    /// Somebody changed it since it was read; nothing was done.
    Changed,
}

/// Makes a file what it is to become.
pub(crate) fn put(found: &Found, after: &After) -> Result<Put, EditError> {
    match after {
        After::Same => Ok(Put::Done),
        After::Gone => {
            found.may_be_replaced()?;
            if !is_still(found)? {
                return Ok(Put::Changed);
            }
            fs::remove_file(&found.path).map_err(EditError::io(Deed::Remove, &found.path))?;
            Ok(Put::Done)
        }
        After::Bytes(bytes) => {
            found.may_be_replaced()?;
            let beside = Beside::write(found, bytes)?;
            if !is_still(found)? {
                return Ok(Put::Changed);
            }
            beside.move_over(found)
        }
    }
}

/// Is the file still what was read?
fn is_still(found: &Found) -> Result<bool, EditError> {
    match regular_file::read(&found.path, u64::MAX) {
        Ok(bytes) => Ok(found.bytes.as_deref() == Some(&bytes[..])),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(found.bytes.is_none()),
        Err(error) => Err(EditError::io(Deed::Read, &found.path)(error)),
    }
}

/// New content in a file beside the one it is for. It goes with this value unless it was moved.
struct Beside {
    path: PathBuf,
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _gone_or_swept_later = fs::remove_file(&self.path);
    }
}

impl Beside {
    /// Makes the file, empty. Where it is to take the place of another, nobody else can read it before it has the other's
    /// rights: what is written into it may be a secret.
    fn open(found: &Found) -> Result<(Beside, File), EditError> {
        let path = found.path.with_file_name(format!("{}{}", prefix(&found.path), signature()));
        let mut options = match &found.metadata {
            Some(_) => private_options(),
            None => OpenOptions::new(),
        };
        let file = options.write(true).create_new(true).open(&path);
        let file = file.map_err(EditError::io(Deed::Write, &path))?;
        Ok((Beside { path }, file))
    }

    fn write(found: &Found, bytes: &[u8]) -> Result<Beside, EditError> {
        let (beside, mut file) = Beside::open(found)?;
        let failed = || EditError::io(Deed::Write, &beside.path);
        file.write_all(bytes).map_err(EditError::io(Deed::Write, &found.path))?;
        if let Some(metadata) = &found.metadata {
            same_owner(&file, metadata).map_err(|_| EditError::Theirs { path: found.path.clone() })?;
            file.set_permissions(metadata.permissions()).map_err(failed())?;
        }
        file.sync_all().map_err(EditError::io(Deed::Write, &found.path))?;
        Ok(beside)
    }

    fn move_over(self, found: &Found) -> Result<Put, EditError> {
        let moved = match found.bytes {
            Some(_) => fs::rename(&self.path, &found.path),
            // A second name for it is refused where something stands by now; moving would put it out of the way.
            None => match fs::hard_link(&self.path, &found.path) {
                Err(error) if !is_taken(&error) && !found.path.exists() => {
                    // Not every file system knows second names.
                    fs::rename(&self.path, &found.path)
                }
                linked => linked,
            },
        };
        match moved {
            Ok(()) => {}
            Err(error) if is_taken(&error) => return Ok(Put::Changed),
            Err(error) => return Err(EditError::io(Deed::Write, &found.path)(error)),
        }
        if let Some(Ok(folder)) = found.path.parent().map(File::open) {
            let _not_every_system_can = folder.sync_all();
        }
        Ok(Put::Done)
    }
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AlreadyExists
}

/// Names this process, so that others can tell whether it still runs.
fn signature() -> String {
    let pid = std::process::id();
    match alive::owner(pid).split_once(':') {
        Some((pid, start)) => format!("{pid}-{start}"),
        None => pid.to_string(),
    }
}

/// Removes what an installer left beside a file when it was killed.
pub(crate) fn sweep(path: &Path) {
    let prefix = prefix(path);
    let Some(Ok(folder)) = path.parent().map(fs::read_dir) else { return };
    for entry in folder.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(owner) = name.strip_prefix(&prefix) else { continue };
        if !alive::is_alive(&owner.replacen('-', ":", 1)) || is_old(&entry.path()) {
            let _next_time = fs::remove_file(entry.path());
        }
    }
}

/// No installer works for an hour. It tells where nobody can say which processes run.
fn is_old(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > Duration::from_secs(3600)))
}

/// How the names of files begin that are written beside this one.
fn prefix(path: &Path) -> String {
    format!(".{}.unstuck-", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Makes a folder and those that lead to it, and tells which were not there, outermost first.
pub(crate) fn make_folders(folder: &Path) -> Result<Vec<PathBuf>, EditError> {
    let missing = folder.ancestors().take_while(|folder| !folder.exists());
    let mut made: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    made.reverse();
    fs::create_dir_all(folder).map_err(EditError::io(Deed::Make, folder))?;
    Ok(made)
}

#[cfg(unix)]
fn same_owner(file: &File, wanted: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let own = file.metadata()?;
    match (own.uid(), own.gid()) == (wanted.uid(), wanted.gid()) {
        true => Ok(()),
        false => fchown(file, Some(wanted.uid()), Some(wanted.gid())),
    }
}

#[cfg(not(unix))]
fn same_owner(_: &File, _: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_takes_the_place_of_a_file_is_never_open_to_more_people_than_that_file() {
        for wanted in [0o600, 0o640, 0o644, 0o666] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("settings.json");
            fs::write(&path, "{}").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
            let found = Found::look(&path).unwrap();
            let (beside, _file) = Beside::open(&found).unwrap();
            assert_eq!(mode(&beside.path), 0o600, "{wanted:o}");
            drop(beside);
            assert_eq!(put(&found, &After::Bytes(b"{ }".to_vec())).unwrap(), Put::Done);
            assert_eq!((mode(&path), fs::read(&path).unwrap()), (wanted, b"{ }".to_vec()));
        }
    }
}
