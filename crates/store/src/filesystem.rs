//! What a folder lies on. A database shared by processes is safe on a local disk only: over a network, locks and shared
//! memory are promises that are not kept.

use std::io;
use std::path::Path;

/// Where a folder lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filesystem {
    /// On this machine.
    Local,
    /// On another one, or behind a program of which nobody knows what it does.
    Network {
        /// Its name.
        name: String,
    },
}

/// Filesystems on which the database is not used, by the number the kernel gives them.
const REMOTE: [(i64, &str); 13] = [
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "kafs"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0x6a65_6a63, "virtiofs"),
    (0x00c3_6400, "ceph"),
    (0x0bd0_0bd0, "lustre"),
    (0x0116_1970, "gfs2"),
    (0x7461_636f, "ocfs2"),
];

/// The filesystem by its number. Linux hands some out as negative numbers; they are the same 32 bits.
fn by_number(number: i64) -> Filesystem {
    let number = number & 0xffff_ffff;
    match REMOTE.iter().find(|(remote, _)| *remote == number) {
        Some((_, name)) => Filesystem::Network { name: (*name).to_owned() },
        None => Filesystem::Local,
    }
}

/// Looks what `path` lies on.
#[cfg(target_os = "linux")]
pub(crate) fn of(path: &Path) -> io::Result<Filesystem> {
    let found = nix::sys::statfs::statfs(path)?;
    // The number's type differs from one kind of machine to the next.
    #[allow(clippy::unnecessary_cast)]
    Ok(by_number(found.filesystem_type().0 as i64))
}

/// Looks what `path` lies on.
#[cfg(target_os = "macos")]
pub(crate) fn of(path: &Path) -> io::Result<Filesystem> {
    let found = nix::sys::statfs::statfs(path)?;
    let name = found.filesystem_type_name();
    Ok(match name {
        "nfs" | "smbfs" | "afpfs" | "webdav" | "macfuse" | "osxfuse" => {
            Filesystem::Network { name: name.to_owned() }
        }
        _ => Filesystem::Local,
    })
}

/// How many bytes can still be written below `path`; nothing where nobody can tell.
#[cfg(unix)]
pub(crate) fn free(path: &Path) -> Option<u64> {
    let found = nix::sys::statvfs::statvfs(path).ok()?;
    // The numbers' types differ from one system to the next.
    #[allow(clippy::unnecessary_cast)]
    Some((found.blocks_available() as u64).saturating_mul(found.fragment_size() as u64))
}

/// Nobody can tell here.
#[cfg(not(unix))]
pub(crate) fn free(_path: &Path) -> Option<u64> {
    None
}

/// Nobody can tell here.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(crate) fn of(_path: &Path) -> io::Result<Filesystem> {
    let _ = by_number;
    Ok(Filesystem::Local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(number: i64, expected: &str) {
        let shown = match by_number(number) {
            Filesystem::Local => "local".to_owned(),
            Filesystem::Network { name } => name,
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_known_to_be_remote_is_named() {
        check(0x6969, "nfs");
        check(-0x00ac_b2be, "cifs");
        check(0x6573_5546, "fuse");
    }

    #[test]
    fn disks_and_memory_are_local() {
        for number in [0xef53, 0x9123_683e, 0x5846_5342, 0x0102_1994, 0x794c_7630] {
            check(number, "local");
        }
    }
}
