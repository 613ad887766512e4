//! Filesystems that the system makes up: processes, devices, settings of the kernel. Nothing in them is a file that could be brought
//! back, and some of it holds secrets of programs that run.

use std::path::{Path, PathBuf};

/// The folder of devices, which lies in memory like others, and what in it is plain memory.
const DEVICES: &str = "/dev";
const MEMORY: &str = "/dev/shm";

/// Filesystems by the number that Linux gives them.
#[cfg(target_os = "linux")]
const KINDS: [(i64, &str); 20] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0x1cd1, "devpts"),
    (0x6165_676c, "pstore"),
    (0xcafe_4a11, "bpf"),
    (0x6265_6570, "configfs"),
    (0xf97c_ff8c, "selinuxfs"),
    (0x4249_4e4d, "binfmt_misc"),
    (0xde5e_81e4, "efivarfs"),
    (0x1980_0202, "mqueue"),
    (0x6e73_6673, "nsfs"),
    (0x6573_5543, "fusectl"),
    (0x6759_6969, "rpc_pipefs"),
    (0x9584_58f6, "hugetlbfs"),
    (0x5049_5045, "pipefs"),
];

/// Returns the made-up filesystem that a path lies on. A link lies where its folder does.
pub(crate) fn filesystem(path: &Path) -> Option<&'static str> {
    let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let place = if is_link { path.parent()? } else { path };
    let real: PathBuf = place.canonicalize().unwrap_or_else(|_| place.to_owned());
    match real.starts_with(DEVICES) && !real.starts_with(MEMORY) {
        true => Some("devices"),
        false => of_system(&real),
    }
}

#[cfg(target_os = "linux")]
fn of_system(path: &Path) -> Option<&'static str> {
    let found = nix::sys::statfs::statfs(path).ok()?;
    // The number's type differs from one kind of machine to the next.
    #[allow(clippy::unnecessary_cast)]
    let number = found.filesystem_type().0 as i64 & 0xffff_ffff;
    KINDS.iter().find(|(kind, _)| *kind == number).map(|(_, name)| *name)
}

#[cfg(target_os = "macos")]
fn of_system(path: &Path) -> Option<&'static str> {
    let found = nix::sys::statfs::statfs(path).ok()?;
    (found.filesystem_type_name() == "devfs").then_some("devices")
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn of_system(_: &Path) -> Option<&'static str> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<&str>) {
        assert_eq!(filesystem(Path::new(path)), expected, "{path}");
    }

    #[test]
    fn what_the_system_makes_up_is_known_however_it_is_named() {
        check("/proc", Some("proc"));
        check("/proc/1/status", Some("proc"));
        check("/sys/kernel", Some("sysfs"));
        check("/dev", Some("devices"));
        check("/dev/null", Some("devices"));
        check("/", None);
        check("/etc/passwd", None);
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/proc", folder.path().join("link")).unwrap();
        check(folder.path().to_str().unwrap(), None);
        check(folder.path().join("link").to_str().unwrap(), None);
        check(folder.path().join("link/self").to_str().unwrap(), Some("proc"));
    }
}
