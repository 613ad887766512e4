//! What is mounted where. A mount is another tree, also where it shows the same filesystem: nothing in it is removed, and no
//! folder that holds one is moved.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

/// What can be renamed into each other lies in the same home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Home {
    device: u64,
    mount: u64,
}

impl Home {
    #[allow(clippy::unnecessary_cast, reason = "the numbers' types differ from one system to the next")]
    pub(crate) fn of(folder: impl AsFd) -> io::Result<Home> {
        let device = fs::fstat(folder.as_fd())?.st_dev as u64;
        Ok(Home { device, mount: mount(folder) })
    }
}

/// Two mounts of one filesystem are two places for a rename.
#[cfg(target_os = "linux")]
fn mount(folder: impl AsFd) -> u64 {
    use rustix::fs::{AtFlags, StatxFlags};
    let found = fs::statx(folder, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID);
    found.map_or(0, |found| found.stx_mnt_id)
}

#[cfg(not(target_os = "linux"))]
fn mount(_folder: impl AsFd) -> u64 {
    0
}

/// Opens what is in a folder, if nothing is mounted there (`EXDEV`).
pub(crate) fn open_inside(folder: impl AsFd, name: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
        match fs::openat2(folder.as_fd(), name, flags, Mode::empty(), resolve) {
            // Old kernels do not know it, and some sandboxes forbid what they do not know.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
    }
    let inside = fs::openat(folder.as_fd(), name, flags, Mode::empty())?;
    match Home::of(&inside)? == Home::of(folder)? {
        true => Ok(inside),
        false => Err(Errno::XDEV.into()),
    }
}
