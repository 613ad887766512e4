//! Reads everything that snapshots need and compares it with what was written: each content once, however many snapshots
//! and files share it. What it finds damaged is noted, so that the next snapshot does not rely on it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::distrust::Distrust;
use crate::entry::{Entry, Hash};
use crate::error::VaultError;
use crate::folder::{Folder, Hold, Room};
use crate::manifest::Manifest;
use crate::needs::{Contents, contents_of};
use crate::pack::Packs;
use crate::retention::{Checked, Damage};
use crate::snapshot::SnapshotId;
use crate::stored_snapshot::StoredSnapshot;
use crate::threads::lock;
use crate::watch::{Progress, Stage, Watch};

/// So many contents a thread reads before it asks whether to go on.
const AT_ONCE: usize = 64;
/// More threads than this only wait for the disk.
const MOST_THREADS: usize = 8;

/// Contents that are not as they were written, each with the file of the safe in which that was found.
type Broken = HashMap<Hash, PathBuf>;

/// Checks the snapshots that are named, all where none is.
pub(crate) fn check(folder: &Folder, ids: &[SnapshotId], watch: &dyn Watch) -> Result<Checked, VaultError> {
    let waiting = || watch.goes_on(Progress { stage: Stage::Verifying, done: 0, of: 0, bytes: 0 });
    let _beside_others = folder.hold(Hold::Shared, waiting)?;
    let mut checked = Checked { snapshots: chosen(folder, ids)?, ..Checked::default() };
    let packs = Packs::open(folder)?;
    let mut contents = Contents::default();
    let mut list = Vec::new();
    for id in checked.snapshots.clone() {
        for manifest in lists(folder, id, &mut checked.damages)? {
            each(&manifest, |_, entry| {
                // A list that cannot be read is a content like any other: it is found below.
                let _found_below = contents_of(entry, &packs, &mut list, |hash| contents.add(*hash));
            });
        }
        if !waiting() {
            return Err(VaultError::Stopped);
        }
    }
    contents.sort();
    let broken = broken(folder, &packs, &contents, &mut checked, watch)?;
    if !broken.is_empty() {
        // Where it cannot be noted, it is at least told.
        let _it_is_told = Distrust::note(folder, broken.keys());
        for id in checked.snapshots.clone() {
            for manifest in lists(folder, id, &mut Vec::new())? {
                name(id, &manifest, &packs, &broken, &mut checked.damages);
            }
        }
    }
    checked.damages.sort_by(|a, b| (a.snapshot, &a.path).cmp(&(b.snapshot, &b.path)));
    checked.damages.dedup();
    Ok(checked)
}

fn chosen(folder: &Folder, ids: &[SnapshotId]) -> Result<Vec<SnapshotId>, VaultError> {
    let mut there: Vec<SnapshotId> = folder.numbers(Room::Snapshots)?.into_iter().map(SnapshotId).collect();
    there.sort_unstable();
    if ids.is_empty() {
        return Ok(there);
    }
    match ids.iter().find(|id| !there.contains(id)) {
        Some(id) => Err(VaultError::NoSuchSnapshot { id: *id }),
        None => Ok(there.into_iter().filter(|id| ids.contains(id)).collect()),
    }
}

/// The lists of a snapshot that can be read; of those that cannot, it is noted.
fn lists(folder: &Folder, id: SnapshotId, damages: &mut Vec<Damage>) -> Result<Vec<Manifest>, VaultError> {
    let mut note = |error: VaultError| {
        let file = match error {
            VaultError::Damaged { path } | VaultError::Io { path, .. } => path,
            other => return Err(other),
        };
        damages.push(Damage { snapshot: id, path: file.clone(), file });
        Ok(())
    };
    let stored = match StoredSnapshot::read(folder, id) {
        Ok(stored) => stored,
        Err(error) => return note(error).map(|()| Vec::new()),
    };
    let mut lists = Vec::new();
    for number in stored.manifests() {
        match Manifest::read(folder, number) {
            Ok(manifest) => lists.push(manifest),
            Err(error) => note(error)?,
        }
    }
    Ok(lists)
}

/// Everything that a manifest holds.
fn each(manifest: &Manifest, mut see: impl FnMut(&[u8], &Entry)) {
    let Ok(()) = manifest.visit(|path, seen| {
        see(path, &seen.entry);
        Ok::<(), std::convert::Infallible>(())
    });
}

/// Reads every content, by several threads. Each holds one content at a time.
fn broken(
    folder: &Folder,
    packs: &Packs,
    contents: &Contents,
    checked: &mut Checked,
    watch: &dyn Watch,
) -> Result<Broken, VaultError> {
    let in_order = in_order(packs, contents);
    let (next, bytes) = (AtomicUsize::new(0), AtomicU64::new(0));
    let broken: Mutex<Broken> = Mutex::default();
    let ended = Mutex::new(None);
    let work = || {
        let mut content = Vec::new();
        loop {
            let from = next.fetch_add(AT_ONCE, Ordering::Relaxed);
            let Some(here) =
                in_order.get(from..in_order.len().min(from + AT_ONCE)).filter(|here| !here.is_empty())
            else {
                return;
            };
            for hash in here {
                match packs.read(hash, &mut content) {
                    Ok(()) => {
                        bytes.fetch_add(content.len() as u64, Ordering::Relaxed);
                    }
                    Err(error) => {
                        let file = match error {
                            VaultError::Damaged { path } | VaultError::Io { path, .. }
                                if path.is_absolute() =>
                            {
                                path
                            }
                            _ => folder.room(Room::Packs),
                        };
                        lock(&broken).insert(**hash, file);
                    }
                }
            }
            let progress = Progress {
                stage: Stage::Verifying,
                done: from as u64,
                of: in_order.len() as u64,
                bytes: bytes.load(Ordering::Relaxed),
            };
            if !watch.goes_on(progress) {
                next.store(in_order.len(), Ordering::Relaxed);
                *lock(&ended) = Some(VaultError::Stopped);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(2, usize::from).min(MOST_THREADS);
    thread::scope(|scope| {
        for _ in 1..threads.min(in_order.len().div_ceil(AT_ONCE)) {
            scope.spawn(work);
        }
        work();
    });
    checked.contents = in_order.len() as u64;
    checked.bytes = bytes.into_inner();
    match ended.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(broken.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// The contents as they stand in the packs, so that the disk is read from front to back; what stands nowhere comes last.
fn in_order<'a>(packs: &Packs, contents: &'a Contents) -> Vec<&'a Hash> {
    let mut found: Vec<((usize, u64), &Hash)> = contents
        .iter()
        .map(|hash| {
            let place = packs
                .iter()
                .enumerate()
                .find_map(|(number, pack)| pack.find(hash).map(|place| (number, place.offset())));
            (place.unwrap_or((usize::MAX, 0)), hash)
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, hash)| hash).collect()
}

/// Names the files of a user that are concerned.
fn name(id: SnapshotId, manifest: &Manifest, packs: &Packs, broken: &Broken, damages: &mut Vec<Damage>) {
    let mut list = Vec::new();
    each(manifest, |path, entry| {
        let mut file = None;
        let see = |hash: &Hash| {
            if file.is_none() {
                file = broken.get(hash);
            }
        };
        let _named_already = contents_of(entry, packs, &mut list, see);
        if let Some(file) = file {
            let path = PathBuf::from(OsStr::from_bytes(path));
            damages.push(Damage { snapshot: id, path, file: file.clone() });
        }
    });
}
