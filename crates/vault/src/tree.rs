//! The way into a user's tree: folders are opened so that no link on the way leads out of it, and everything in them is
//! reached from there by its name alone.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{self, AtFlags, CWD, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::entry::{Attributes, Entry};
use crate::manifest::is_at_or_below;

pub(crate) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the folder at an absolute path. A link anywhere in the path is an error (`ELOOP` or `ENOTDIR`).
pub(crate) fn open_folder(path: &[u8]) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match fs::openat2(CWD, path, FOLDER, Mode::empty(), resolve) {
            // Old kernels do not know it, and some sandboxes forbid what they do not know.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
    }
    step_by_step(path)
}

/// The same where the system cannot do it at once.
fn step_by_step(path: &[u8]) -> io::Result<OwnedFd> {
    let mut folder = fs::openat(CWD, "/", FOLDER, Mode::empty())?;
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        folder = fs::openat(&folder, name, FOLDER, Mode::empty())?;
    }
    Ok(folder)
}

/// Opens a folder in a folder.
pub(crate) fn open_child(folder: impl AsFd, name: &[u8]) -> io::Result<OwnedFd> {
    Ok(fs::openat(folder, name, FOLDER, Mode::empty())?)
}

/// Opens a file in a folder to read it. When it was last read stays as it is, where that is allowed.
pub(crate) fn open_file(folder: impl AsFd, name: &[u8]) -> io::Result<OwnedFd> {
    // Whoever waits for the other end of a pipe waits for ever; what was a file a moment ago may be one by now.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    #[cfg(target_os = "linux")]
    match fs::openat(folder.as_fd(), name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => {}
        opened => return Ok(opened?),
    }
    Ok(fs::openat(folder, name, flags, Mode::empty())?)
}

/// What is at a name in a folder, not followed; nothing where there is nothing.
pub(crate) fn stat(folder: impl AsFd, name: impl Arg) -> io::Result<Option<Stat>> {
    match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The same as an entry, its content not known.
pub(crate) fn entry(folder: impl AsFd, name: &[u8]) -> io::Result<Option<Entry>> {
    Ok(stat(folder, name)?.map(|stat| Entry::of(&stat)))
}

/// The names in a folder, one after the other in `names`, each closed by a zero, in the order of the system.
pub(crate) fn names(
    folder: impl AsFd,
    buffer: &mut [MaybeUninit<u8>],
    names: &mut Vec<u8>,
) -> io::Result<()> {
    names.clear();
    let mut listing = RawDir::new(folder, buffer);
    while let Some(found) = listing.next() {
        let found = found?;
        let name = found.file_name().to_bytes_with_nul();
        if name != b".\0" && name != b"..\0" {
            names.extend_from_slice(name);
        }
    }
    Ok(())
}

/// Where a link points to.
pub(crate) fn target(folder: impl AsFd, name: &[u8]) -> io::Result<Vec<u8>> {
    Ok(fs::readlinkat(folder, name, Vec::new())?.into_bytes())
}

/// The extended attributes of an open file or folder, sorted. A filesystem without them has none.
pub(crate) fn attributes(file: impl AsFd) -> io::Result<Attributes> {
    let mut names = vec![0; 256];
    let length = loop {
        match fs::flistxattr(file.as_fd(), &mut names[..]) {
            Ok(length) => break length,
            Err(Errno::RANGE) => {
                let needed = fs::flistxattr(file.as_fd(), &mut [0_u8; 0][..])?;
                names.resize(needed + 256, 0);
            }
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Attributes::new()),
            Err(error) => return Err(error.into()),
        }
    };
    let mut found = Attributes::new();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 1024];
        loop {
            match fs::fgetxattr(file.as_fd(), OsStr::from_bytes(name), &mut value[..]) {
                Ok(length) => {
                    value.truncate(length);
                    found.push((name.to_vec(), value));
                    break;
                }
                Err(Errno::RANGE) => value.resize(value.len() * 8, 0),
                // It went meanwhile, or is not for us to see.
                Err(Errno::NODATA | Errno::ACCESS | Errno::PERM | Errno::OPNOTSUPP) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Places below some paths at which something else is mounted, whatever filesystem that is from. Where the system does not
/// tell, there are none: another filesystem is still noticed by its number.
pub(crate) fn mounts_below(paths: &[Vec<u8>]) -> HashSet<Vec<u8>> {
    let told = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let places = told.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    let is_below = |place: &Vec<u8>| paths.iter().any(|path| place != path && is_at_or_below(place, path));
    places.map(unescaped).filter(is_below).collect()
}

/// A path as the system lists it: blanks and the like are written as `\040`.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let octal = behind
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        plain.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &behind[3..] } else { behind };
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mounted_is_found_by_its_plain_name() {
        assert_eq!(unescaped(b"/a\\040b\\011c"), b"/a b\tc");
        assert_eq!(unescaped(b"/a\\09"), b"/a\\09");
        assert!(mounts_below(&[b"/".to_vec()]).contains(b"/proc".as_slice()));
        assert!(!mounts_below(&[b"/proc".to_vec()]).contains(b"/proc".as_slice()));
    }
}
