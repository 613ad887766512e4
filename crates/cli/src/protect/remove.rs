//! Removes what a snapshot holds, and nothing else: what came in the meantime stays, and so does the folder around it. Every
//! step goes from an open folder to a name in it, so no link is followed, not even one that is put there while it works.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use unstuck_vault::Held;

/// What was removed.
#[derive(Debug, Default)]
pub(crate) struct Removal {
    /// How many files, links and folders are gone.
    pub(crate) count: u64,
    /// Which: of a folder that is gone, only itself.
    pub(crate) gone: Vec<PathBuf>,
    /// What stays.
    pub(crate) left: Vec<(PathBuf, LeftBecause)>,
}

/// Why something stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftBecause {
    /// It is not what was saved: somebody made or changed it since.
    CameSince,
    /// The system said no.
    Refused(Errno),
}

/// The kind of what stands at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    File { size: u64 },
    Folder,
    Link,
    Special,
}

impl Stands {
    fn of(stat: &FileStat) -> Stands {
        match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFREG => Stands::File { size: u64::try_from(stat.st_size).unwrap_or(0) },
            SFlag::S_IFDIR => Stands::Folder,
            SFlag::S_IFLNK => Stands::Link,
            _ => Stands::Special,
        }
    }

    /// Is it, as far as one look tells, what is held?
    fn is(self, held: Held) -> bool {
        match held {
            Held::File { size } => self == Stands::File { size },
            Held::Folder => self == Stands::Folder,
            Held::Link => self == Stands::Link,
            Held::Special => self == Stands::Special,
            Held::Not => false,
        }
    }
}

impl Removal {
    /// Removes what is at an absolute path without links on the way, as far as it is what is held.
    pub(crate) fn of(&mut self, path: &Path, held: &HashMap<PathBuf, Held>) {
        let name = path.file_name().and_then(|name| CString::new(name.as_bytes()).ok());
        let folder = match (path.parent(), &name) {
            (Some(parent), Some(_)) => open_folder(parent),
            (_, _) => Err(Errno::EINVAL),
        };
        match (folder, name) {
            (Ok(folder), Some(name)) => self.take(&folder, &name, path, held),
            (Err(error), _) => self.left.push((path.to_owned(), LeftBecause::Refused(error))),
            (Ok(_), None) => {}
        }
    }
}

const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Opens a folder name by name: a link on the way is an error.
fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    let mut folder = open("/", on_the_way(), Mode::empty())?;
    for part in path.components() {
        if let Component::Normal(name) = part {
            folder = openat(&folder, name, on_the_way(), Mode::empty())?;
        }
    }
    Ok(folder)
}

/// A folder that is only passed through need not be readable, where the system can do that.
#[cfg(target_os = "linux")]
fn on_the_way() -> OFlag {
    OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

#[cfg(not(target_os = "linux"))]
fn on_the_way() -> OFlag {
    FOLDER
}

impl Removal {
    fn take(&mut self, folder: &OwnedFd, name: &CStr, path: &Path, held: &HashMap<PathBuf, Held>) {
        let before = self.gone.len();
        match self.try_take(folder, name, path, held) {
            Ok(true) => {
                self.count += 1;
                self.gone.truncate(before);
                self.gone.push(path.to_owned());
            }
            // What is in it was told.
            Ok(false) => {}
            // Somebody else was faster.
            Err(Errno::ENOENT) => {}
            Err(error) => self.left.push((path.to_owned(), LeftBecause::Refused(error))),
        }
    }

    /// Removes what is at a name; false where something of it stays.
    fn try_take(
        &mut self,
        folder: &OwnedFd,
        name: &CStr,
        path: &Path,
        held: &HashMap<PathBuf, Held>,
    ) -> Result<bool, Errno> {
        let stands = Stands::of(&fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?);
        if !held.get(path).is_some_and(|held| stands.is(*held)) {
            self.left.push((path.to_owned(), LeftBecause::CameSince));
            return Ok(false);
        }
        if stands != Stands::Folder {
            unlinkat(folder, name, UnlinkatFlags::NoRemoveDir)?;
            return Ok(true);
        }
        let inside = openat(folder, name, FOLDER, Mode::empty())?;
        let before = self.left.len();
        for below in names(&inside)? {
            self.take(&inside, &below, &path.join(OsStr::from_bytes(below.to_bytes())), held);
        }
        if self.left.len() > before {
            return Ok(false);
        }
        unlinkat(folder, name, UnlinkatFlags::RemoveDir)?;
        Ok(true)
    }
}

/// The names in a folder.
fn names(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let again = folder.as_fd().try_clone_to_owned().map_err(|_| Errno::EMFILE)?;
    let mut listing = Dir::from_fd(again)?;
    let mut names = Vec::new();
    for entry in listing.iter() {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Removes `d` in a folder of its own, after something happened to it; returns what is left, and why.
    fn removed(held: &[(&str, Held)], happens: impl FnOnce(&Path)) -> (Vec<String>, String, bool) {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("d/in")).unwrap();
        fs::create_dir(top.join("else")).unwrap();
        fs::write(top.join("d/a"), "aaa").unwrap();
        fs::write(top.join("d/in/b"), "b").unwrap();
        fs::write(top.join("else/kept"), "x").unwrap();
        symlink("../else", top.join("d/link")).unwrap();
        happens(&top);
        let held = held.iter().map(|(path, held)| (top.join(path), *held)).collect();
        let mut removal = Removal::default();
        removal.of(&top.join("d"), &held);
        assert!(top.join("else/kept").exists(), "a link was followed");
        let short = |path: &Path| path.strip_prefix(&top).unwrap().display().to_string();
        let left = removal.left.iter().map(|(path, because)| format!("{} {because:?}", short(path)));
        let gone = removal.gone.iter().map(|path| short(path)).collect::<Vec<_>>();
        (left.collect(), gone.join(" "), top.join("d").exists())
    }

    const HELD: &[(&str, Held)] = &[
        ("d", Held::Folder),
        ("d/a", Held::File { size: 3 }),
        ("d/in", Held::Folder),
        ("d/in/b", Held::File { size: 1 }),
        ("d/link", Held::Link),
    ];

    #[test]
    fn what_is_held_goes_and_links_are_not_followed() {
        assert_eq!(removed(HELD, |_| {}), (vec![], "d".to_owned(), false));
    }

    #[test]
    fn what_came_or_changed_since_stays_with_the_folder_around_it() {
        let check = |happens: &dyn Fn(&Path), left: &str, gone: &str| {
            let (found, went, is_there) = removed(HELD, happens);
            let went: BTreeSet<&str> = went.split(' ').collect();
            assert_eq!(
                (found, went, is_there),
                (vec![format!("{left} CameSince")], gone.split(' ').collect(), true)
            );
        };
        check(&|top| fs::write(top.join("d/in/new"), "").unwrap(), "d/in/new", "d/a d/in/b d/link");
        check(&|top| fs::write(top.join("d/a"), "longer").unwrap(), "d/a", "d/in d/link");
        let swapped = |top: &Path| {
            fs::remove_dir_all(top.join("d/in")).unwrap();
            symlink("../else", top.join("d/in")).unwrap();
        };
        check(&swapped, "d/in", "d/a d/link");
        let gone = |top: &Path| fs::remove_file(top.join("d/a")).unwrap();
        assert_eq!(removed(HELD, gone), (vec![], "d".to_owned(), false));
    }

    #[test]
    fn a_link_on_the_way_ends_it() {
        let swapped = |top: &Path| {
            fs::rename(top.join("d"), top.join("else/d")).unwrap();
            symlink("else/d", top.join("d")).unwrap();
        };
        let (left, gone, is_there) = removed(HELD, swapped);
        assert_eq!((left, gone, is_there), (vec!["d CameSince".to_owned()], String::new(), true));
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir(top.join("real")).unwrap();
        fs::write(top.join("real/a"), "a").unwrap();
        symlink("real", top.join("way")).unwrap();
        let path = top.join("way/a");
        let mut removal = Removal::default();
        removal.of(&path, &HashMap::from([(path.clone(), Held::File { size: 1 })]));
        assert!(matches!(removal.left[..], [(_, LeftBecause::Refused(_))]), "{removal:?}");
        assert!(top.join("real/a").exists());
    }
}
