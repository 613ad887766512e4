//! The marks of things: mode, owner, time and extended attributes. Where the system does not let us give something to its
//! owner, or keep an attribute, the rest is still done; the content never depends on it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{self, AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::Errno;

use crate::entry::{Attributes, Entry, Moment};
use crate::layer::{self, Seen};
use crate::tree;

/// Who may set a file's user or group for the one who runs it.
const RUNS_AS: u32 = 0o6000;
/// Attributes that follow from the mode, so they are set after it.
const OF_ACCESS: &[u8] = b"system.";

/// All that is known of something besides its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marks {
    /// With the kind.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: Moment,
    pub(crate) attributes: Attributes,
}

impl Marks {
    pub(crate) fn of(seen: &Seen<'_>) -> Marks {
        Marks::new(&seen.entry, seen.attributes)
    }

    /// `attributes` as they are written in a list.
    pub(crate) fn new(entry: &Entry, attributes: &[u8]) -> Marks {
        let Entry { mode, uid, gid, mtime, .. } = *entry;
        Marks { mode, uid, gid, mtime, attributes: layer::attributes(attributes) }
    }

    fn times(&self) -> Timestamps {
        let mtime = Timespec { tv_sec: self.mtime.seconds, tv_nsec: self.mtime.nanos.into() };
        Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, last_modification: mtime }
    }

    fn owner(&self) -> (Option<Uid>, Option<Gid>) {
        (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))
    }

    /// Nobody gets to run something as somebody else because its owner could not be set.
    fn mode_for(&self, is_owned: bool) -> Mode {
        let mode = self.mode & 0o7777;
        Mode::from_raw_mode(if is_owned { mode } else { mode & !RUNS_AS })
    }

    /// Sets them on an open file or folder that was just made. Tells whether it is its owner's then.
    pub(crate) fn give(&self, file: impl AsFd) -> io::Result<bool> {
        let file = file.as_fd();
        let is_owned = self
            .own(fs::fstat(file)?.st_uid, fs::fstat(file)?.st_gid, |uid, gid| fs::fchown(file, uid, gid))?;
        self.add_attributes(file, |_| true)?;
        fs::fchmod(file, self.mode_for(is_owned))?;
        self.add_attributes(file, |name| name.starts_with(OF_ACCESS))?;
        fs::futimens(file, &self.times())?;
        Ok(is_owned)
    }

    /// Sets them on an open file or folder, whatever it had. If it cannot be given to its owner, all else is done first.
    pub(crate) fn replace(&self, file: impl AsFd) -> io::Result<()> {
        let file = file.as_fd();
        let present = tree::attributes(file)?;
        if present != self.attributes {
            // Attributes can only be written where the content can.
            let mode = fs::fstat(file)?.st_mode & 0o7777 | 0o200;
            let _they_are_tried_anyway = fs::fchmod(file, Mode::from_raw_mode(mode));
            for (name, _) in present.iter().filter(|(name, _)| !self.has_attribute(name)) {
                forgiving(fs::fremovexattr(file, OsStr::from_bytes(name)))?;
            }
        }
        owned(self.give(file)?)
    }

    fn has_attribute(&self, name: &[u8]) -> bool {
        self.attributes.iter().any(|(known, _)| known == name)
    }

    fn add_attributes(&self, file: impl AsFd, which: impl Fn(&[u8]) -> bool) -> io::Result<()> {
        for (name, value) in self.attributes.iter().filter(|(name, _)| which(name)) {
            forgiving(fs::fsetxattr(file.as_fd(), OsStr::from_bytes(name), value, XattrFlags::empty()))?;
        }
        Ok(())
    }

    /// Gives it to its owner, where it is not already theirs. Tells whether it is theirs then.
    fn own(
        &self,
        uid: u32,
        gid: u32,
        give: impl FnOnce(Option<Uid>, Option<Gid>) -> rustix::io::Result<()>,
    ) -> io::Result<bool> {
        if (uid, gid) == (self.uid, self.gid) {
            return Ok(true);
        }
        let (uid, gid) = self.owner();
        match give(uid, gid) {
            Ok(()) => Ok(true),
            Err(Errno::PERM | Errno::INVAL | Errno::OPNOTSUPP) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets owner and time of a link, or of a pipe that nobody may open; of a pipe in a folder of our own also the mode.
    /// Tells whether it is its owner's then.
    pub(crate) fn give_by_name(&self, folder: impl AsFd, name: &[u8], sets_mode: bool) -> io::Result<bool> {
        let folder = folder.as_fd();
        let Some(stat) = tree::stat(folder, name)? else { return Err(Errno::NOENT.into()) };
        let is_owned = self.own(stat.st_uid, stat.st_gid, |uid, gid| {
            fs::chownat(folder, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
        })?;
        if sets_mode {
            fs::chmodat(folder, name, self.mode_for(is_owned), AtFlags::empty())?;
        }
        fs::utimensat(folder, name, &self.times(), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(is_owned)
    }

    /// Sets owner and time of a link in somebody's tree.
    pub(crate) fn give_to_link(&self, folder: impl AsFd, name: &[u8]) -> io::Result<()> {
        owned(self.give_by_name(folder, name, false)?)
    }

    /// Sets them on a pipe in somebody's tree, without opening it: whoever waits at its other end would notice.
    pub(crate) fn give_to_pipe(&self, folder: impl AsFd, name: &[u8], inode: u64) -> io::Result<()> {
        let pipe = grip(folder.as_fd(), name, inode)?;
        // A change of owner takes away some of the mode.
        let is_owned = self.give_by_name(folder, name, false)?;
        fs::chmod(grip_path(&pipe), self.mode_for(is_owned))?;
        owned(is_owned)
    }
}

/// Opens a file or folder of ours that its own mode keeps us from opening: the mode is opened first.
pub(crate) fn open_closed(folder: impl AsFd, name: &[u8], inode: u64, mode: u32) -> io::Result<OwnedFd> {
    let closed = grip(folder.as_fd(), name, inode)?;
    fs::chmod(grip_path(&closed), Mode::from_raw_mode(mode & 0o7777 | 0o700))?;
    tree::open_file(folder, name)
}

/// Takes hold of something without opening it, if it is what it should be.
#[cfg(target_os = "linux")]
fn grip(folder: impl AsFd, name: &[u8], inode: u64) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = fs::openat(folder, name, flags, Mode::empty())?;
    match fs::fstat(&found)?.st_ino == inode {
        true => Ok(found),
        false => Err(Errno::STALE.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn grip(_folder: impl AsFd, _name: &[u8], _inode: u64) -> io::Result<OwnedFd> {
    Err(Errno::OPNOTSUPP.into())
}

fn grip_path(found: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", found.as_raw_fd())
}

/// What belongs to somebody else than it should was refused.
fn owned(is_owned: bool) -> io::Result<()> {
    is_owned.then_some(()).ok_or(Errno::PERM.into())
}

/// Some attributes are not for us to write, and some filesystems know none.
fn forgiving(done: rustix::io::Result<()>) -> io::Result<()> {
    match done {
        Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP | Errno::NODATA | Errno::INVAL) => Ok(()),
        done => Ok(done?),
    }
}
