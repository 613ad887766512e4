//! The folder that holds everything: ours alone, never somebody else's, never followed through a link.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::error::{Deed, Foreign, StoreError};
use crate::filesystem::{self, Filesystem};
use crate::spool::Spool;

/// The state folder, checked.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
    filesystem: Filesystem,
}

impl Root {
    /// Makes the folder if it is not there, and checks that nobody else can read or replace what is in it.
    pub fn open(path: &Path, believed: Option<Filesystem>) -> Result<Root, StoreError> {
        if let Err(error) = make_folder(path) {
            // What stands in its place says more.
            if fs::symlink_metadata(path).is_ok() {
                check_folder(path)?;
            }
            return Err(error);
        }
        Root::checked(path, believed)
    }

    /// The same for those who only read: nothing is made.
    pub fn existing(path: &Path, believed: Option<Filesystem>) -> Result<Root, StoreError> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(StoreError::Missing { path: path.to_owned() })
            }
            Err(error) => Err(StoreError::io(Deed::LookAt, path)(error)),
            Ok(_) => Root::checked(path, believed),
        }
    }

    fn checked(path: &Path, believed: Option<Filesystem>) -> Result<Root, StoreError> {
        check_folder(path)?;
        let filesystem = match believed {
            Some(filesystem) => filesystem,
            None => filesystem::of(path).map_err(StoreError::io(Deed::LookAt, path))?,
        };
        Ok(Root { path: path.to_owned(), filesystem })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Flushes the names of the files in it, as far as the system can.
    pub(crate) fn flush(&self) {
        let _not_every_system_opens_folders = File::open(&self.path).and_then(|folder| folder.sync_all());
    }

    /// What it lies on.
    pub fn filesystem(&self) -> &Filesystem {
        &self.filesystem
    }

    /// How many bytes can still be written here; nothing where nobody can tell.
    pub fn free_bytes(&self) -> Option<u64> {
        filesystem::free(&self.path)
    }

    /// Writes a file into every folder of ours and removes it again, to prove that this can be done.
    pub fn probe(&self) -> Result<(), StoreError> {
        let folders = [self.path.clone(), self.spool(), self.path.join("vault")];
        let is_there = |folder: &&PathBuf| fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir());
        folders.iter().filter(is_there).try_for_each(|folder| probe(folder))
    }

    /// Proves that the folder could be made where it is not there: the nearest one above it that is can be written.
    pub fn probe_place(path: &Path) -> Result<(), StoreError> {
        let above = path.ancestors().skip(1).find(|above| above.is_dir());
        above.map_or(Ok(()), probe)
    }

    /// How many bytes wait in the spool.
    pub fn waiting_bytes(&self) -> u64 {
        Spool::of(self).size()
    }

    /// The database.
    pub fn timeline(&self) -> PathBuf {
        self.path.join("timeline.db")
    }

    /// Lines that wait to be taken into the database.
    pub fn spool(&self) -> PathBuf {
        self.path.join("spool")
    }

    /// Copies made before the format of the database changed.
    pub fn backups(&self) -> PathBuf {
        self.path.join("backups")
    }

    /// Databases that could not be read any more.
    pub fn damaged(&self) -> PathBuf {
        self.path.join("damaged")
    }

    /// How long our own hooks took.
    pub(crate) fn hook_times(&self) -> PathBuf {
        self.path.join("hook-times")
    }

    /// The same of before.
    pub(crate) fn old_hook_times(&self) -> PathBuf {
        self.path.join("hook-times.old")
    }

    /// What is written for other tools, by session.
    pub fn sessions(&self) -> PathBuf {
        self.path.join("sessions")
    }

    /// Held while the database is made or set aside, which no two processes may do at once. Whoever was stopped while he
    /// held it must not stop all others.
    pub(crate) fn lock(&self, patience: Duration) -> Result<File, StoreError> {
        const PAUSE: Duration = Duration::from_millis(5);
        let path = self.path.join("lock");
        let file = private(&path).map_err(StoreError::io(Deed::Open, &path))?;
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(StoreError::io(Deed::Lock, &path)(error)),
                Err(TryLockError::WouldBlock) if waited >= patience => {
                    return Err(StoreError::Busy { path });
                }
                Err(TryLockError::WouldBlock) => {
                    thread::sleep(PAUSE);
                    waited += PAUSE;
                }
            }
        }
    }
}

/// As much as a small entry takes: a full disk may still have room for an empty file.
const PROBE: usize = 16 * 1024;

fn probe(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(format!(".unstuck-probe-{}", std::process::id()));
    let written = File::create_new(&path).and_then(|mut file| {
        file.write_all(&[0; PROBE])?;
        file.sync_all()
    });
    let removed = fs::remove_file(&path);
    written.and(removed).map_err(StoreError::io(Deed::Write, folder))
}

/// Makes a folder that only its owner can enter, with all that lead to it.
pub(crate) fn make_folder(path: &Path) -> Result<(), StoreError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(StoreError::io(Deed::Make, path))?;
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_dir() => {
            Err(StoreError::NotOurs { path: path.to_owned(), why: Foreign::SymbolicLink })
        }
        Ok(_) => Ok(()),
        Err(error) => Err(StoreError::io(Deed::LookAt, path)(error)),
    }
}

/// Opens a file for reading and appending that only its owner can read; makes it if it is not there.
pub(crate) fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    itself(&mut options).open(path)
}

/// Opens a file that is there, to read it and to make it shorter.
pub(crate) fn existing(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    itself(&mut options).open(path)
}

/// The file itself, for its owner alone: not what a link in its place points to.
fn itself(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits());
    }
    options
}

/// Makes sure that a file which is there is ours, and that nobody else can read or write it.
#[cfg(unix)]
pub(crate) fn check_file(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let not_ours = |why: Foreign| Err(StoreError::NotOurs { path: path.to_owned(), why });
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    let us = nix::unistd::geteuid().as_raw();
    if !found.is_file() {
        return not_ours(Foreign::NoFile);
    }
    if found.uid() != us {
        return not_ours(Foreign::OfAnother { owner: found.uid(), us });
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
            .map_err(StoreError::io(Deed::CloseToOthers, path))?;
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn check_file(_path: &Path) -> Result<(), StoreError> {
    Ok(())
}

#[cfg(unix)]
fn check_folder(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let not_ours = |why: Foreign| StoreError::NotOurs { path: path.to_owned(), why };
    let found = fs::symlink_metadata(path).map_err(StoreError::io(Deed::LookAt, path))?;
    if found.is_symlink() {
        return Err(not_ours(Foreign::SymbolicLink));
    }
    if !found.is_dir() {
        return Err(not_ours(Foreign::NoFolder));
    }
    let us = nix::unistd::geteuid().as_raw();
    if found.uid() != us {
        return Err(not_ours(Foreign::OfAnother { owner: found.uid(), us }));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
            .map_err(StoreError::io(Deed::CloseToOthers, path))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_folder(path: &Path) -> Result<(), StoreError> {
    let found = fs::symlink_metadata(path).map_err(StoreError::io(Deed::LookAt, path))?;
    match found.is_dir() {
        true => Ok(()),
        false => Err(StoreError::NotOurs { path: path.to_owned(), why: Foreign::NoFolder }),
    }
}
