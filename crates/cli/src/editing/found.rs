//! A file as it was found: where it really lies, what is in it, whose it is, and whether it may be replaced.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::error::{Deed, EditError};
use crate::regular_file;

/// No settings file is larger.
const MOST: u64 = 64 * 1024 * 1024;

/// Some programs empty a file before they write it anew; so long it is looked at again and again.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

/// One that was emptied so short a time ago is about to be written.
const JUST_NOW: Duration = Duration::from_secs(10);

/// A file, or the place for one.
#[derive(Debug)]
pub(crate) struct Found {
    /// Where it lies, behind all links.
    pub(super) path: PathBuf,
    /// What is in it, if it is there.
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) metadata: Option<Metadata>,
}

impl Found {
    /// Looks at the file. One that was emptied a moment ago is waited for, as long as there is hope: whoever did that is about to
    /// write it.
    pub(crate) fn look(asked: &Path) -> Result<Found, EditError> {
        let begun = Instant::now();
        loop {
            let found = Found::as_it_is(asked)?;
            match found.was_just_emptied() && begun.elapsed() <= PATIENCE {
                true => thread::sleep(PAUSE),
                false => return Ok(found),
            }
        }
    }

    fn was_just_emptied(&self) -> bool {
        let is_empty = self.bytes.as_ref().is_some_and(Vec::is_empty);
        let modified = self.metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        // A time in the future is no time at all.
        is_empty && modified.is_some_and(|at| at.elapsed().is_ok_and(|age| age < JUST_NOW))
    }

    /// Looks at the file as it is now, whoever is about to write it.
    pub(crate) fn as_it_is(asked: &Path) -> Result<Found, EditError> {
        let path = match fs::canonicalize(asked) {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return not_there(asked),
            Err(error) => return Err(EditError::io(Deed::Read, asked)(error)),
        };
        let metadata = fs::metadata(&path).map_err(EditError::io(Deed::Read, &path))?;
        if !metadata.is_file() {
            return Err(EditError::NotAFile { path });
        }
        if metadata.len() > MOST {
            return Err(EditError::TooLarge { path, bytes: metadata.len() });
        }
        let bytes = regular_file::read(&path, MOST).map_err(EditError::io(Deed::Read, &path))?;
        Ok(Found { path, bytes: Some(bytes), metadata: Some(metadata) })
    }

    /// Where it really lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it, if it is there.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }

    /// Fails where whoever emptied it is about to write it: what we put there meanwhile would take its place.
    pub(crate) fn is_settled(&self) -> Result<(), EditError> {
        match self.was_just_emptied() {
            true => Err(EditError::JustEmptied { path: self.path.clone() }),
            false => Ok(()),
        }
    }

    /// Fails where replacing it would be against its owner's will.
    pub(crate) fn may_be_replaced(&self) -> Result<(), EditError> {
        self.is_settled()?;
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        if let Ok(metadata) = fs::metadata(folder)
            && metadata.permissions().readonly()
        {
            return Err(EditError::ReadOnly { path: folder.to_owned() });
        }
        let Some(metadata) = &self.metadata else { return Ok(()) };
        if metadata.permissions().readonly() {
            return Err(EditError::ReadOnly { path: self.path.clone() });
        }
        match names(metadata) {
            0 | 1 => Ok(()),
            names => Err(EditError::ManyNames { path: self.path.clone(), names }),
        }
    }
}

/// What is in a file, where it is a plain one of sensible size: a pipe would never come to its end.
pub(crate) fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    regular_file::read(path, MOST)
}

/// The place for a file that is not there. A link that leads nowhere is none: what it should lead to is not ours to make.
fn not_there(asked: &Path) -> Result<Found, EditError> {
    if fs::symlink_metadata(asked).is_ok() {
        return Err(EditError::LeadsNowhere { path: asked.to_owned() });
    }
    let name = asked.file_name().unwrap_or_default();
    let folder = asked.parent().unwrap_or(Path::new("/"));
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    Ok(Found { path: folder.join(name), bytes: None, metadata: None })
}

#[cfg(unix)]
fn names(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
fn names(_: &Metadata) -> u64 {
    1
}
