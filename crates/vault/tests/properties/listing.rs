//! What is in a folder, to the last detail that a restore has to bring back, read without any help of the vault.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::{self, File, Metadata};
use std::hash::Hasher;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// All that makes one path what it is.
#[derive(Clone, PartialEq, Eq)]
pub struct Item {
    pub kind: Kind,
    mode: u32,
    owner: (u32, u32),
    mtime: (i64, i64),
    attributes: Vec<(String, Vec<u8>)>,
    /// The first path that is the same file; its own where it has no other name.
    same_as: PathBuf,
}

#[derive(Clone, PartialEq, Eq)]
pub enum Kind {
    File { size: u64, content: u64 },
    Folder,
    Link { target: PathBuf },
    Fifo,
    Other,
}

impl fmt::Debug for Item {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::File { size, content } => write!(out, "file of {size} bytes {content:016x}")?,
            Kind::Folder => write!(out, "folder")?,
            Kind::Link { target } => write!(out, "link to {target:?}")?,
            Kind::Fifo => write!(out, "fifo")?,
            Kind::Other => write!(out, "something else")?,
        }
        let (seconds, nanos) = self.mtime;
        write!(
            out,
            " {:o} {:?} {seconds}.{nanos:09} {:?} as {:?}",
            self.mode, self.owner, self.attributes, self.same_as
        )
    }
}

/// A folder with all that is in it; nothing where it is not there.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Listing {
    pub items: BTreeMap<PathBuf, Item>,
}

impl Listing {
    /// Lists what lies at some paths, and below them.
    pub fn of<P: AsRef<Path>>(roots: &[P]) -> io::Result<Listing> {
        let mut listing = Listing::default();
        let mut first: HashMap<(u64, u64), PathBuf> = HashMap::new();
        let mut waiting: Vec<PathBuf> = roots.iter().map(|root| root.as_ref().to_owned()).collect();
        let mut found = Vec::new();
        while let Some(path) = waiting.pop() {
            let Some(metadata) = there(&path)? else { continue };
            if metadata.is_dir() {
                for entry in fs::read_dir(&path)? {
                    waiting.push(entry?.path());
                }
            }
            found.push((path, metadata));
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        for (path, metadata) in found {
            let same_as = match metadata.is_dir() {
                true => path.clone(),
                false => {
                    first.entry((metadata.dev(), metadata.ino())).or_insert_with(|| path.clone()).clone()
                }
            };
            let item = Item {
                kind: kind(&path, &metadata)?,
                mode: metadata.mode(),
                owner: (metadata.uid(), metadata.gid()),
                mtime: (metadata.mtime(), metadata.mtime_nsec()),
                attributes: attributes(&path, &metadata)?,
                same_as,
            };
            listing.items.insert(path, item);
        }
        Ok(listing)
    }

    /// The same without what lies at or below some paths. What has several names may have lost some of them with it.
    #[allow(dead_code, reason = "not everybody who lists leaves something out")]
    pub fn without(&self, paths: &[PathBuf]) -> Listing {
        if paths.is_empty() {
            return self.clone();
        }
        // Whoever names paths as text cannot name each of them exactly.
        let is_left = |path: &Path| {
            let as_text = PathBuf::from(path.to_string_lossy().into_owned());
            !paths.iter().any(|out| path.starts_with(out) || as_text.starts_with(out))
        };
        let items = self.items.iter().filter(|(path, _)| is_left(path));
        let alone =
            |(path, item): (&PathBuf, &Item)| (path.clone(), Item { same_as: path.clone(), ..item.clone() });
        Listing { items: items.map(alone).collect() }
    }

    /// Is the same at a path in both? A folder may have another time, and other names of a file do not count.
    #[allow(dead_code, reason = "not everybody who lists compares path by path")]
    pub fn is_same_at(&self, other: &Listing, path: &Path) -> bool {
        let plain = |listing: &Listing| {
            listing.items.get(path).map(|item| {
                let mtime = if item.kind == Kind::Folder { (0, 0) } else { item.mtime };
                Item { mtime, same_as: PathBuf::new(), ..item.clone() }
            })
        };
        plain(self) == plain(other)
    }

    /// The first path that is neither what it was nor what it was to become. Folders may have another time.
    #[allow(dead_code, reason = "not everybody who lists mixes")]
    pub fn neither(&self, old: &Listing, new: &Listing) -> Option<String> {
        let mut all = self.items.keys().chain(old.items.keys()).chain(new.items.keys());
        let is_strange = |path: &&PathBuf| !self.is_same_at(old, path) && !self.is_same_at(new, path);
        all.find(is_strange).map(|path| format!("{path:?} is {:?}", self.items.get(path)))
    }

    /// All names of the file at a path, its own included.
    #[allow(dead_code, reason = "not everybody who lists asks for other names")]
    pub fn names_of(&self, path: &Path) -> Vec<&Path> {
        let Some(item) = self.items.get(path) else { return Vec::new() };
        let same = self.items.iter().filter(|(_, other)| other.same_as == item.same_as);
        same.map(|(path, _)| path.as_path()).collect()
    }

    /// In words, where it is not the same as another one. The other one is what was expected.
    pub fn differs_from(&self, expected: &Listing) -> Option<String> {
        let mut lines = Vec::new();
        for (path, item) in &expected.items {
            match self.items.get(path) {
                Some(found) if found == item => {}
                Some(found) => lines.push(format!("{path:?}\n  is {found:?}\n  not {item:?}")),
                None => lines.push(format!("{path:?} is missing: {item:?}")),
            }
        }
        let is_new = |path: &&PathBuf| !expected.items.contains_key(*path);
        lines.extend(self.items.keys().filter(is_new).map(|path| format!("{path:?} should not be there")));
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

fn there(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        found => found.map(Some),
    }
}

fn kind(path: &Path, metadata: &Metadata) -> io::Result<Kind> {
    let kind = metadata.file_type();
    Ok(match () {
        () if kind.is_file() => Kind::File { size: metadata.len(), content: content(path)? },
        () if kind.is_dir() => Kind::Folder,
        () if kind.is_symlink() => Kind::Link { target: fs::read_link(path)? },
        () if kind.is_fifo() => Kind::Fifo,
        () => Kind::Other,
    })
}

fn content(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let mut hasher = DefaultHasher::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            length => hasher.write(&buffer[..length]),
        }
    }
}

fn attributes(path: &Path, metadata: &Metadata) -> io::Result<Vec<(String, Vec<u8>)>> {
    if !metadata.is_file() && !metadata.is_dir() {
        return Ok(Vec::new());
    }
    let mut names = vec![0; 64 << 10];
    let length = match rustix::fs::llistxattr(path, &mut names) {
        Err(rustix::io::Errno::NOTSUP) => 0,
        length => length?,
    };
    let mut found = Vec::new();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = std::ffi::OsStr::from_bytes(name);
        let mut value = vec![0; 64 << 10];
        let length = rustix::fs::lgetxattr(path, name, &mut value)?;
        value.truncate(length);
        found.push((name.to_string_lossy().into_owned(), value));
    }
    found.sort();
    Ok(found)
}
