//! All that there is to know about a tree, and how two states of it differ: whoever restores is judged by this, not by what it
//! says of itself.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use crate::Fault;

/// One entry: everything but its inode, its ctime and its atime, which no program can bring back.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    content: Content,
    mode: u32,
    owner: (u32, u32),
    links: u64,
    mtime: (i64, i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Folder,
    File(blake3::Hash),
    Link(PathBuf),
    Other,
}

/// A tree at one moment.
pub struct Listing(BTreeMap<PathBuf, Entry>);

/// What of a tree is not as it was, in paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Differs {
    missing: usize,
    extra: usize,
    content: usize,
    mode: usize,
    links: usize,
    mtime: usize,
}

impl Listing {
    /// Reads all of it.
    pub fn of(root: &Path) -> Result<Listing, Fault> {
        let mut paths = vec![(root.to_owned(), root.symlink_metadata()?)];
        collect(root, &mut paths)?;
        let share = paths.len().div_ceil(2).max(1);
        let entries = thread::scope(|scope| {
            let all: Vec<_> = paths
                .chunks(share)
                .map(|share| scope.spawn(move || share.iter().map(|one| entry(root, one)).collect()))
                .collect();
            let mut entries = BTreeMap::new();
            for one in all {
                let share: Result<Vec<_>, Fault> = one.join().map_err(|_| "a thread panicked")?;
                entries.extend(share?);
            }
            Ok::<_, Fault>(entries)
        })?;
        Ok(Listing(entries))
    }

    /// How a later state differs from this one.
    pub fn differs(&self, now: &Listing) -> Differs {
        let mut differs = Differs {
            extra: now.0.keys().filter(|path| !self.0.contains_key(*path)).count(),
            ..Differs::default()
        };
        for (path, was) in &self.0 {
            let Some(is) = now.0.get(path) else {
                differs.missing += 1;
                continue;
            };
            differs.content += usize::from(was.content != is.content);
            differs.mode += usize::from((was.mode, was.owner) != (is.mode, is.owner));
            // A folder's links count its subfolders, which are listed themselves.
            differs.links += usize::from(was.content != Content::Folder && was.links != is.links);
            differs.mtime += usize::from(was.mtime != is.mtime);
        }
        differs
    }
}

impl Differs {
    /// The worse of two.
    pub fn max(self, other: Differs) -> Differs {
        Differs {
            missing: self.missing.max(other.missing),
            extra: self.extra.max(other.extra),
            content: self.content.max(other.content),
            mode: self.mode.max(other.mode),
            links: self.links.max(other.links),
            mtime: self.mtime.max(other.mtime),
        }
    }

    /// Is all as it was?
    pub fn is_nothing(self) -> bool {
        self == Differs::default()
    }
}

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Differs { missing, extra, content, mode, links, mtime } = self;
        let told: Vec<String> = [
            (missing, "missing"),
            (extra, "too many"),
            (content, "with other content"),
            (mode, "with another mode"),
            (links, "with other links"),
            (mtime, "with another mtime"),
        ]
        .into_iter()
        .filter(|(count, _)| **count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        f.write_str(if told.is_empty() { "exact".to_owned() } else { told.join(", ") }.as_str())
    }
}

fn collect(folder: &Path, paths: &mut Vec<(PathBuf, Metadata)>) -> Result<(), Fault> {
    for found in fs::read_dir(folder)? {
        let path = found?.path();
        let state = path.symlink_metadata()?;
        let is_folder = state.is_dir();
        paths.push((path.clone(), state));
        if is_folder {
            collect(&path, paths)?;
        }
    }
    Ok(())
}

fn entry(root: &Path, (path, state): &(PathBuf, Metadata)) -> Result<(PathBuf, Entry), Fault> {
    let content = match state.file_type() {
        kind if kind.is_dir() => Content::Folder,
        kind if kind.is_symlink() => Content::Link(fs::read_link(path)?),
        kind if kind.is_file() => {
            let (mut file, mut hasher) = (File::open(path)?, blake3::Hasher::new());
            let mut buffer = vec![0; 64 << 10];
            loop {
                match file.read(&mut buffer)? {
                    0 => break Content::File(hasher.finalize()),
                    read => hasher.update(&buffer[..read]),
                };
            }
        }
        _ => Content::Other,
    };
    let entry = Entry {
        content,
        mode: state.mode(),
        owner: (state.uid(), state.gid()),
        links: state.nlink(),
        mtime: (state.mtime(), state.mtime_nsec()),
    };
    Ok((path.strip_prefix(root)?.to_owned(), entry))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, SystemTime};

    use super::*;

    fn check(change: impl FnOnce(&Path), expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/file"), "text").unwrap();
        symlink("file", root.join("a/link")).unwrap();
        let before = Listing::of(root).unwrap();
        change(root);
        // Its own mtime changes with every entry, and is looked at by the case that is about it.
        let of_root = File::open(root).unwrap();
        let (seconds, nanos) = before.0[Path::new("")].mtime;
        of_root.set_modified(SystemTime::UNIX_EPOCH + Duration::new(seconds as u64, nanos as u32)).unwrap();
        assert_eq!(before.differs(&Listing::of(root).unwrap()).to_string(), expected);
    }

    fn keeping_mtime(path: &Path, change: impl FnOnce()) {
        let was = path.metadata().unwrap().modified().unwrap();
        change();
        File::open(path).unwrap().set_modified(was).unwrap();
    }

    #[test]
    fn a_tree_that_nobody_touched_is_exact() {
        check(|_| {}, "exact");
    }

    #[test]
    fn a_file_too_many_is_seen() {
        check(|root| fs::write(root.join("more"), "").unwrap(), "1 too many");
    }

    #[test]
    fn what_is_gone_is_seen() {
        check(|root| fs::remove_dir_all(root.join("a")).unwrap(), "3 missing");
    }

    #[test]
    fn other_bytes_of_the_same_length_and_time_are_seen() {
        let change = |root: &Path| {
            let path = root.join("a/file");
            keeping_mtime(&path, || fs::write(&path, "TEXT").unwrap());
        };
        check(change, "1 with other content");
    }

    #[test]
    fn a_nanosecond_is_seen() {
        let change = |root: &Path| {
            let file = File::open(root.join("a/file")).unwrap();
            let was = file.metadata().unwrap().modified().unwrap();
            file.set_modified(was + Duration::from_nanos(1)).unwrap();
        };
        check(change, "1 with another mtime");
    }

    #[test]
    fn a_mode_and_a_second_name_are_seen() {
        let change = |root: &Path| {
            let path = root.join("a/file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
            fs::hard_link(&path, root.join("again")).unwrap();
        };
        check(change, "1 too many, 1 with another mode, 1 with other links");
    }

    #[test]
    fn a_link_to_somewhere_else_is_other_content() {
        let change = |root: &Path| {
            keeping_mtime(&root.join("a"), || {
                fs::remove_file(root.join("a/link")).unwrap();
                symlink("elsewhere", root.join("a/link")).unwrap();
            });
        };
        check(change, "1 with other content, 1 with another mtime");
    }
}
