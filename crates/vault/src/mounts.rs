//! What is mounted where. A mount is another tree, also where it shows the same filesystem: nothing in it is removed, and no
//! folder that holds one is moved.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use crate::manifest::is_at_or_below;

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

/// All places at which something is mounted, as far as the system tells.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    places: Vec<Vec<u8>>,
}

impl Mounts {
    pub(crate) fn now() -> Mounts {
        // Where it cannot be read, a mount is noticed when the folder was moved, and that goes back.
        let text = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        Mounts::parse(&text)
    }

    fn parse(text: &[u8]) -> Mounts {
        let place = |line: &[u8]| line.split(|byte| *byte == b' ').nth(4).map(plain);
        Mounts { places: text.split(|byte| *byte == b'\n').filter_map(place).collect() }
    }

    /// Is something mounted at a path, or below it?
    pub(crate) fn is_any_in(&self, path: &[u8]) -> bool {
        self.places.iter().any(|place| is_at_or_below(place, path))
    }
}

/// Spaces, and what else would be mistaken for the end of a name, are written as `\040`.
fn plain(written: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(written.len());
    let mut rest = written;
    while let [first, behind @ ..] = rest {
        let code = behind.get(..3).filter(|_| *first == b'\\').and_then(|code| str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = &behind[3..];
            }
            None => {
                plain.push(*first);
                rest = behind;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mounted_in_a_folder_is_found_whatever_it_is_called() {
        let text = b"22 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\n\
            30 22 254:0 /x /home/a\\040b/\\134odd rw - ext4 /dev/vda rw\n";
        let mounts = Mounts::parse(text);
        let is_any_in = |path: &str| mounts.is_any_in(path.as_bytes());
        assert_eq!(["/home", "/home/a b", "/home/a b/\\odd"].map(is_any_in), [true; 3]);
        assert_eq!(["/home/a", "/home/a b/\\odd/in", "/var"].map(is_any_in), [false; 3]);
    }
}
