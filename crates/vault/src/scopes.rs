//! The scopes of a snapshot, made plain: real places, sorted, each once, none inside another.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::error::VaultError;

/// How long somebody waits for git to be done with its index.
const GIT_PATIENCE: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(10);

/// The real places of some paths. A link at the end of a path is itself what is meant; links on the way are followed.
pub(crate) fn real(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, VaultError> {
    let mut places = Vec::new();
    for path in paths {
        places.push(real_place(path)?);
    }
    places.sort();
    let mut scopes: Vec<PathBuf> = Vec::new();
    for place in places {
        if !scopes.iter().any(|scope| place.starts_with(scope)) {
            scopes.push(place);
        }
    }
    Ok(scopes.into_iter().map(|scope| scope.into_os_string().as_bytes().to_vec()).collect())
}

pub(crate) fn real_place(path: &Path) -> Result<PathBuf, VaultError> {
    let too_wide = || VaultError::TooWide { path: path.to_owned() };
    let plain = plain(path).ok_or_else(too_wide)?;
    let (parent, name) = plain.parent().zip(plain.file_name()).ok_or_else(too_wide)?;
    // What is not there has no real place; the folder that would hold it may have one.
    let mut above = parent;
    let mut missing = Vec::new();
    loop {
        match fs::canonicalize(above) {
            Ok(real) => {
                let place = missing.iter().rev().fold(real, |place, part| place.join(part));
                return Ok(place.join(name));
            }
            Err(error) => match above.parent().zip(above.file_name()) {
                Some((higher, part)) => {
                    missing.push(part);
                    above = higher;
                }
                None => return Err(VaultError::io("look at", path)(error)),
            },
        }
    }
}

/// An absolute path without `.` and `..`; nothing where it is not absolute.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                // Behind a link the folder above is another one than the text says.
                plain = fs::canonicalize(&plain).unwrap_or(plain);
                plain.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    path.is_absolute().then_some(plain)
}

/// Waits a little where git is at work in one of the scopes.
pub(crate) fn wait_for_git(scopes: &[Vec<u8>]) {
    let locks: Vec<PathBuf> = scopes
        .iter()
        .map(|scope| Path::new(std::ffi::OsStr::from_bytes(scope)))
        .flat_map(|scope| [scope.join(".git/index.lock"), scope.join("index.lock")])
        .collect();
    let mut waited = Duration::ZERO;
    while waited < GIT_PATIENCE && locks.iter().any(|lock| fs::symlink_metadata(lock).is_ok()) {
        thread::sleep(PAUSE);
        waited += PAUSE;
    }
}
