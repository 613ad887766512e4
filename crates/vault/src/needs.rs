//! What snapshots need: the manifests and contents without which they could not be brought back. Whoever removes something
//! asks here first. What cannot be read is said, and never taken for a sign that nothing is needed.

use std::collections::{HashMap, HashSet};

use crate::entry::{Entry, Flags, HOLE, Hash, Kind};
use crate::error::VaultError;
use crate::folder::{Folder, Number, Room};
use crate::manifest::Manifest;
use crate::pack::Packs;
use crate::snapshot::SnapshotId;
use crate::stored_snapshot::StoredSnapshot;

/// Names of contents, each once.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Sorted as far as `sorted`.
    hashes: Vec<Hash>,
    sorted: usize,
}

impl Contents {
    pub(crate) fn add(&mut self, hash: Hash) {
        self.hashes.push(hash);
        // Snapshots of one tree name the same contents again and again: they are thrown out before they fill the memory.
        if self.hashes.len() > 2 * self.sorted + 65_536 {
            self.sort();
        }
    }

    /// Has to be called before anything is looked for.
    pub(crate) fn sort(&mut self) {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.sorted = self.hashes.len();
    }

    /// Where a content stands among all of them.
    pub(crate) fn position(&self, hash: &Hash) -> Option<usize> {
        self.hashes.binary_search(hash).ok()
    }

    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Hash> {
        self.hashes.iter()
    }
}

/// What all snapshots of a safe need.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    pub(crate) contents: Contents,
    manifests: HashSet<Number>,
    /// What lies at or below this number may be needed by something that cannot be read.
    uncertain: Number,
    /// Snapshots of which nobody can tell what they need.
    pub(crate) blocked_by: Vec<SnapshotId>,
}

impl Needs {
    /// Reads the lists of all snapshots. `goes_on` is asked for each.
    pub(crate) fn of(
        folder: &Folder,
        packs: &Packs,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<Needs, VaultError> {
        let mut needs = Needs::default();
        // Most snapshots end where the next one begins: such a list is read once.
        let mut read: HashMap<Number, bool> = HashMap::new();
        let mut numbers = folder.numbers(Room::Snapshots)?;
        numbers.sort_unstable();
        for id in numbers.into_iter().map(SnapshotId) {
            let is_certain = match StoredSnapshot::read(folder, id) {
                Ok(stored) => {
                    let mut is_certain = true;
                    for number in stored.manifests() {
                        if let Some(known) = read.get(&number) {
                            is_certain &= known;
                            continue;
                        }
                        if !goes_on() {
                            return Err(VaultError::Stopped);
                        }
                        let known = needs.add(folder, packs, number);
                        read.insert(number, known);
                        is_certain &= known;
                    }
                    is_certain
                }
                Err(_) => {
                    needs.uncertain = Number::MAX;
                    false
                }
            };
            if !is_certain {
                needs.blocked_by.push(id);
            }
        }
        needs.contents.sort();
        Ok(needs)
    }

    /// Adds what a manifest needs, and tells whether that is all of it.
    fn add(&mut self, folder: &Folder, packs: &Packs, number: Number) -> bool {
        self.manifests.insert(number);
        let Ok(manifest) = Manifest::read(folder, number) else {
            // What lies below a manifest is older than it.
            self.uncertain = self.uncertain.max(number);
            return false;
        };
        self.manifests.extend(manifest.bases());
        let mut list = Vec::new();
        let mut is_certain = true;
        let Ok(()) = manifest.visit(|_, seen| {
            is_certain &= contents_of(&seen.entry, packs, &mut list, |hash| self.contents.add(*hash)).is_ok();
            Ok::<(), std::convert::Infallible>(())
        });
        is_certain
    }

    /// May a snapshot need this manifest?
    pub(crate) fn manifest(&self, number: Number) -> bool {
        number <= self.uncertain || self.manifests.contains(&number)
    }
}

/// Names the contents that an entry needs: its own, and each chunk where that is a list of them. An error says that the list
/// cannot be read; it was named all the same.
pub(crate) fn contents_of(
    entry: &Entry,
    packs: &Packs,
    list: &mut Vec<u8>,
    mut see: impl FnMut(&Hash),
) -> Result<(), VaultError> {
    let has_content = matches!(entry.kind(), Kind::File | Kind::Link) && entry.is_held();
    if !has_content || entry.hash == HOLE {
        return Ok(());
    }
    see(&entry.hash);
    if !entry.flags.has(Flags::CHUNKED) {
        return Ok(());
    }
    packs.read(&entry.hash, list)?;
    let (chunks, _) = list.as_chunks::<32>();
    chunks.iter().filter(|chunk| **chunk != HOLE).for_each(see);
    Ok(())
}
