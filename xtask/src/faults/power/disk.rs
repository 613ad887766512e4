//! Files as a system keeps them between memory and disk: every change in its order, and what a disk may hold of them when the
//! power goes.
//!
//! A page of a file is on the disk as it was at some moment since its file was last flushed, each page at a moment of its own, and
//! so is the length of the file. Names change in the order in which they were changed, but may lag behind as a whole, up to the
//! last that was flushed: a flush of a folder flushes its names, and on a journalling file system a flush of a file those that came
//! before it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::Fault;
use crate::dice::Dice;

/// So much of a file goes to the disk at once.
const PAGE: usize = 4096;

/// What flushes names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Only a flush of their folder.
    ByFolder,
    /// Also a flush of any file.
    ByFile,
}

/// What a name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A file, by its number.
    File(usize),
    Folder,
    Link(PathBuf),
}

/// What happened.
#[derive(Debug, Clone)]
enum Deed {
    Write {
        file: usize,
        at: usize,
        bytes: Vec<u8>,
    },
    Resize {
        file: usize,
        length: usize,
    },
    Put {
        path: PathBuf,
        node: Node,
    },
    Take {
        path: PathBuf,
    },
    Move {
        from: PathBuf,
        to: PathBuf,
    },
    FlushFile(usize),
    FlushFolder(PathBuf),
    /// Everything so far is on the disk: what the story itself did to the files.
    FlushAll,
}

/// All that happened below a folder.
pub struct Disk {
    names: BTreeMap<PathBuf, Node>,
    files: Vec<Vec<u8>>,
    modes: Vec<u32>,
    deeds: Vec<Deed>,
}

impl Disk {
    /// What lies below a folder, all of it flushed.
    pub fn of(folder: &Path) -> Result<Disk, Fault> {
        let mut disk =
            Disk { names: BTreeMap::new(), files: Vec::new(), modes: Vec::new(), deeds: Vec::new() };
        disk.catch_up(folder)?;
        Ok(disk)
    }

    /// How much has happened.
    pub fn deeds(&self) -> usize {
        self.deeds.len()
    }

    /// Where it differs from what really lies there; memory that processes share is no file.
    pub fn differs(&self, folder: &Path) -> Result<Vec<String>, Fault> {
        let real = listed(folder)?;
        let mut wrong = Vec::new();
        let all: BTreeSet<&PathBuf> = self.names.keys().chain(real.keys()).collect();
        for path in all {
            let same = match (self.names.get(path), real.get(path)) {
                (Some(Node::File(file)), Some(Real::File(bytes, _))) => self.files[*file] == *bytes,
                (Some(Node::Folder), Some(Real::Folder)) => true,
                (Some(Node::Link(one)), Some(Real::Link(other))) => one == other,
                (_, _) => false,
            };
            if !same && !is_shared_memory(path) {
                wrong.push(path.display().to_string());
            }
        }
        Ok(wrong)
    }

    /// Takes over what the story itself did to the files, as flushed.
    pub fn catch_up(&mut self, folder: &Path) -> Result<(), Fault> {
        let real = listed(folder)?;
        let gone: Vec<PathBuf> =
            self.names.keys().filter(|path| !real.contains_key(*path)).cloned().collect();
        for path in gone.into_iter().rev() {
            self.take(&path);
        }
        for (path, found) in real {
            match found {
                Real::Folder => self.put(&path, Node::Folder),
                Real::Link(to) => self.put(&path, Node::Link(to)),
                Real::File(bytes, mode) => {
                    let file = self.create(&path, mode);
                    if self.files[file] != bytes {
                        self.resize(file, 0);
                        self.write(file, 0, &bytes);
                    }
                }
            }
        }
        self.deeds.push(Deed::FlushAll);
        Ok(())
    }

    /// The node at a path.
    pub fn node(&self, path: &Path) -> Option<&Node> {
        self.names.get(path)
    }

    /// How long a file is.
    pub fn length(&self, file: usize) -> usize {
        self.files[file].len()
    }

    /// What a file holds.
    pub fn bytes(&self, file: usize) -> &[u8] {
        &self.files[file]
    }

    /// The file at a path, made where there is none.
    pub fn create(&mut self, path: &Path, mode: u32) -> usize {
        if let Some(Node::File(file)) = self.names.get(path) {
            return *file;
        }
        self.files.push(Vec::new());
        self.modes.push(mode);
        self.put(path, Node::File(self.files.len() - 1));
        self.files.len() - 1
    }

    pub fn put(&mut self, path: &Path, node: Node) {
        if self.names.get(path) != Some(&node) {
            self.names.insert(path.to_owned(), node.clone());
            self.deeds.push(Deed::Put { path: path.to_owned(), node });
        }
    }

    pub fn take(&mut self, path: &Path) {
        if self.names.remove(path).is_some() {
            self.deeds.push(Deed::Take { path: path.to_owned() });
        }
    }

    pub fn rename(&mut self, from: &Path, to: &Path) {
        shift(&mut self.names, from, to);
        self.deeds.push(Deed::Move { from: from.to_owned(), to: to.to_owned() });
    }

    pub fn write(&mut self, file: usize, at: usize, bytes: &[u8]) {
        write(&mut self.files[file], at, bytes);
        self.deeds.push(Deed::Write { file, at, bytes: bytes.to_vec() });
    }

    pub fn resize(&mut self, file: usize, length: usize) {
        self.files[file].resize(length, 0);
        self.deeds.push(Deed::Resize { file, length });
    }

    pub fn flush(&mut self, path: &Path) {
        match self.names.get(path) {
            Some(Node::File(file)) => self.deeds.push(Deed::FlushFile(*file)),
            Some(Node::Folder) => self.deeds.push(Deed::FlushFolder(path.to_owned())),
            Some(Node::Link(_)) | None => {}
        }
    }

    /// Lays out in an empty folder what the disk may hold when the power goes after so many deeds.
    pub fn after_cut(&self, deeds: usize, names: Names, dice: &mut Dice, folder: &Path) -> Result<(), Fault> {
        let all = &self.deeds[..deeds];
        // How much of what was not flushed got to the disk all the same: nothing, everything, or some of it.
        let luck = [0, 0, 10, 50, 90, 100][dice.below(6) as usize];
        let flushed_names = flushed_names(all, names);
        let last_name = match dice.below(100) < luck {
            true => deeds,
            false => flushed_names + dice.below((deeds - flushed_names + 1) as u64) as usize,
        };
        let mut tree = BTreeMap::new();
        for deed in &all[..last_name] {
            match deed {
                Deed::Put { path, node } => drop(tree.insert(path.clone(), node.clone())),
                Deed::Take { path } => drop(tree.remove(path)),
                Deed::Move { from, to } => shift(&mut tree, from, to),
                Deed::Write { .. }
                | Deed::Resize { .. }
                | Deed::FlushFile(_)
                | Deed::FlushFolder(_)
                | Deed::FlushAll => {}
            }
        }
        for (path, node) in &tree {
            let place = folder.join(path);
            match node {
                Node::Folder => fs::create_dir_all(&place)?,
                Node::Link(to) => symlink(to, &place)?,
                Node::File(_) if is_shared_memory(path) => {}
                Node::File(file) => {
                    if let Some(parent) = place.parent() {
                        fs::create_dir_all(parent)?;
                    }
                    fs::write(&place, content(all, *file, luck, dice))?;
                    fs::set_permissions(&place, fs::Permissions::from_mode(self.modes[*file]))?;
                }
            }
        }
        Ok(())
    }
}

/// Up to which deed the names are flushed.
fn flushed_names(deeds: &[Deed], names: Names) -> usize {
    let mut changed: BTreeMap<PathBuf, usize> = BTreeMap::new();
    let (mut last, mut flushed) = (0, 0);
    for (index, deed) in deeds.iter().enumerate() {
        let mut note = |path: &Path| {
            last = index + 1;
            changed.insert(path.parent().unwrap_or(Path::new("")).to_owned(), last);
        };
        match deed {
            Deed::Put { path, .. } | Deed::Take { path } => note(path),
            Deed::Move { from, to } => {
                note(from);
                note(to);
            }
            Deed::FlushFolder(folder) => {
                flushed = flushed.max(changed.get(folder).copied().unwrap_or(0));
            }
            Deed::FlushFile(_) if names == Names::ByFile => flushed = last,
            Deed::FlushAll => flushed = index + 1,
            Deed::FlushFile(_) | Deed::Write { .. } | Deed::Resize { .. } => {}
        }
    }
    flushed
}

/// What a disk may hold of a file: each page as it was at some moment since the last flush.
fn content(deeds: &[Deed], file: usize, luck: u64, dice: &mut Dice) -> Vec<u8> {
    let is_flush =
        |deed: &Deed| matches!(deed, Deed::FlushAll) || matches!(deed, Deed::FlushFile(own) if *own == file);
    let flushed = deeds.iter().rposition(is_flush).map_or(0, |index| index + 1);
    let mut moment = || match dice.below(100) < luck {
        true => deeds.len(),
        false => flushed + dice.below((deeds.len() - flushed + 1) as u64) as usize,
    };
    let (end, mut pages, mut length) = (moment(), Vec::<(usize, Vec<u8>)>::new(), 0);
    for (index, deed) in deeds.iter().enumerate() {
        match deed {
            Deed::Write { file: own, at, bytes } if *own == file => {
                for page in at / PAGE..=(at + bytes.len()).saturating_sub(1) / PAGE {
                    while pages.len() <= page {
                        pages.push((moment(), vec![0; PAGE]));
                    }
                    let (until, held) = &mut pages[page];
                    if index < *until {
                        let (begin, stop) =
                            ((*at).max(page * PAGE), (at + bytes.len()).min((page + 1) * PAGE));
                        if begin < stop {
                            held[begin - page * PAGE..stop - page * PAGE]
                                .copy_from_slice(&bytes[begin - at..stop - at]);
                        }
                    }
                }
                if index < end {
                    length = length.max(at + bytes.len());
                }
            }
            Deed::Resize { file: own, length: new } if *own == file => {
                for (page, (until, held)) in pages.iter_mut().enumerate() {
                    let keep = new.saturating_sub(page * PAGE).min(PAGE);
                    if index < *until {
                        held[keep..].fill(0);
                    }
                }
                if index < end {
                    length = *new;
                }
            }
            _ => {}
        }
    }
    let mut bytes: Vec<u8> = pages.into_iter().flat_map(|(_, held)| held).collect();
    bytes.resize(length, 0);
    bytes
}

fn write(held: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if held.len() < at + bytes.len() {
        held.resize(at + bytes.len(), 0);
    }
    held[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Gives a name, and all names below it, another beginning.
fn shift(names: &mut BTreeMap<PathBuf, Node>, from: &Path, to: &Path) {
    let moved: Vec<PathBuf> = names.keys().filter(|path| path.starts_with(from)).cloned().collect();
    for path in moved {
        if let (Some(node), Ok(rest)) = (names.remove(&path), path.strip_prefix(from)) {
            let place = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
            names.insert(place, node);
        }
    }
}

fn is_shared_memory(path: &Path) -> bool {
    path.to_string_lossy().ends_with("-shm")
}

/// What really lies at a path.
enum Real {
    File(Vec<u8>, u32),
    Folder,
    Link(PathBuf),
}

/// Everything below a folder, by its path from there.
fn listed(folder: &Path) -> Result<BTreeMap<PathBuf, Real>, Fault> {
    fn list(folder: &Path, at: &Path, found: &mut BTreeMap<PathBuf, Real>) -> Result<(), Fault> {
        for entry in fs::read_dir(at)? {
            let path = entry?.path();
            let kind = fs::symlink_metadata(&path)?;
            let name = path.strip_prefix(folder)?.to_owned();
            if kind.is_symlink() {
                found.insert(name, Real::Link(fs::read_link(&path)?));
            } else if kind.is_dir() {
                found.insert(name, Real::Folder);
                list(folder, &path, found)?;
            } else if kind.is_file() {
                found.insert(name, Real::File(fs::read(&path)?, kind.permissions().mode()));
            }
        }
        Ok(())
    }
    let mut found = BTreeMap::new();
    list(folder, folder, &mut found)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What files hold after a cut at the end, over many throws.
    fn outcomes(disk: &Disk, names: Names, file: &str) -> BTreeSet<Option<String>> {
        let outcome = |seed| {
            let folder = tempfile::tempdir().expect("a folder");
            disk.after_cut(disk.deeds(), names, &mut Dice(seed), folder.path()).expect("a state");
            fs::read_to_string(folder.path().join(file)).ok()
        };
        (0..200).map(outcome).collect()
    }

    #[test]
    fn what_was_flushed_is_there_and_what_was_not_may_be() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a"), "old").expect("a file");
        let mut disk = Disk::of(folder.path()).expect("a disk");
        let told =
            |texts: &[&str]| texts.iter().map(|text| Some((*text).to_owned())).collect::<BTreeSet<_>>();
        let new = disk.create(Path::new("b"), 0o600);
        disk.write(new, 0, b"new");
        disk.rename(Path::new("b"), Path::new("a"));
        let loose = outcomes(&disk, Names::ByFile, "a");
        assert!(loose.is_superset(&told(&["old", "new", ""])), "{loose:?}");
        // Flushed before it is renamed: one or the other, whole.
        let mut disk = Disk::of(folder.path()).expect("a disk");
        let new = disk.create(Path::new("b"), 0o600);
        disk.write(new, 0, b"new");
        disk.flush(Path::new("b"));
        disk.rename(Path::new("b"), Path::new("a"));
        assert_eq!(outcomes(&disk, Names::ByFile, "a"), told(&["old", "new"]));
        disk.put(Path::new(""), Node::Folder);
        disk.flush(Path::new(""));
        assert_eq!(outcomes(&disk, Names::ByFolder, "a"), told(&["new"]));
    }
}
