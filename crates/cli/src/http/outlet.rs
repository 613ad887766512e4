//! Where the body of an answer goes. As long as nothing of it has gone there, the request can be sent again as if nothing had
//! been; so what is short is held back until it is whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::cellar;

/// Where a body goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    Stdout,
    File(PathBuf),
}

/// The way there, for one answer.
pub(super) struct Outlet {
    end: End,
    /// What waits.
    held: Vec<u8>,
    /// How much may wait.
    hold_max: usize,
    passed_on: u64,
}

enum End {
    Stdout,
    /// Something that is no ordinary file: a device, a pipe.
    Direct(File),
    /// A file takes its name when it is whole.
    Beside {
        file: File,
        draft: PathBuf,
        path: PathBuf,
    },
}

impl Outlet {
    /// Opens the way. Nothing is held back before [`Outlet::hold`].
    pub(super) fn open(destination: &Destination) -> Result<Outlet, (PathBuf, io::Error)> {
        let end = match destination {
            Destination::Stdout => End::Stdout,
            Destination::File(path) => file(path).map_err(|error| (path.clone(), error))?,
        };
        Ok(Outlet { end, held: Vec::new(), hold_max: 0, passed_on: 0 })
    }

    /// Holds back what comes, up to so much.
    pub(super) fn hold(&mut self, most: usize) {
        self.hold_max = most;
    }

    /// Takes the next bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.held.len() + bytes.len() <= self.hold_max {
            self.held.extend_from_slice(bytes);
            return Ok(());
        }
        self.hold_max = 0;
        self.release()?;
        self.write(bytes)
    }

    /// Has somebody got a part of it already?
    pub(super) fn has_passed_on(&self) -> bool {
        self.passed_on > 0 && !matches!(self.end, End::Beside { .. })
    }

    /// It is whole.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.release()?;
        match &self.end {
            End::Stdout | End::Direct(_) => Ok(()),
            End::Beside { draft, path, .. } => fs::rename(draft, path),
        }
    }

    fn release(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.write(&held)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.passed_on += bytes.len() as u64;
        match &mut self.end {
            End::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(bytes)?;
                out.flush()
            }
            End::Direct(file) | End::Beside { file, .. } => file.write_all(bytes),
        }
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        if let End::Beside { draft, .. } = &self.end {
            let _it_has_its_name_by_now = fs::remove_file(draft);
        }
    }
}

/// Opens a file: beside its place, so that a half one never stands in for the whole.
fn file(path: &Path) -> io::Result<End> {
    let about = fs::metadata(path).ok();
    if about.as_ref().is_some_and(|about| !about.is_file()) {
        return Ok(End::Direct(File::options().write(true).open(path)?));
    }
    // A link stays one: what it leads to is replaced.
    let path = if about.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_string_lossy().into_owned();
    let draft = path.with_file_name(format!(".{name}.{}.part", cellar::random()));
    let file = File::create_new(&draft)?;
    if let Some(about) = about {
        file.set_permissions(about.permissions())?;
    }
    Ok(End::Beside { file, draft, path })
}
