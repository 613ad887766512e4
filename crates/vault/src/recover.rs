//! Finishing a restore: its own last part, and what the next command does when one was interrupted. Without a journal nothing
//! was touched yet, and what was made ready is removed; with one, the restore goes on to its end. One that nobody can finish
//! is given up: its journal and what was made ready are set aside for a person, never removed.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::apply;
use crate::error::VaultError;
use crate::folder::{Folder, Held, Hold, Number, Room};
use crate::journal::Journal;
use crate::manifest::Manifest;
use crate::pack::Packs;
use crate::restored::{Kept, KeptBecause};
use crate::stage::{self, Stages};
use crate::stored_snapshot::StoredSnapshot;
use crate::take::{self, Taken};
use crate::walk::Extent;
use crate::watch::{Progress, Unwatched, Watch};
use crate::wish::Reserve;

/// What is known of a restore when it is over.
pub(crate) struct Finished {
    /// Steps that were not taken.
    pub(crate) kept: Vec<(usize, KeptBecause)>,
    /// Folders that did not get their marks.
    pub(crate) unmarked: Vec<Kept>,
    /// What is there now; nothing where that could not be recorded.
    pub(crate) after: Option<Manifest>,
}

/// What a journal that was given up is called.
const GIVEN_UP: &str = "journal.damaged-";
/// What was made ready for it is called by its number and this.
const KEPT: &str = "kept";
/// What could not be finished for so long is given up by those who need it out of the way.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// A disk that is away may come back after so long.
const PATIENCE_FOR_DISKS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Finishes what was interrupted. If somebody is at work, it is left to them.
pub(crate) fn recover(folder: &Folder) -> Result<(), VaultError> {
    let is_idle = !folder.journal().exists() && folder.numbers(Room::Stages)?.is_empty();
    if is_idle {
        return Ok(());
    }
    match folder.try_hold(Hold::Alone)? {
        Some(alone) => recover_alone(folder, &alone),
        None => Ok(()),
    }
}

/// The same; what the system did not let anybody finish for a day, or a month where a disk is away, is given up.
pub(crate) fn recover_by(folder: &Folder, now: SystemTime) -> Result<(), VaultError> {
    let Err(error) = recover(folder) else { return Ok(()) };
    let is_away = matches!(error, VaultError::Away { .. });
    let patience = if is_away { PATIENCE_FOR_DISKS } else { PATIENCE };
    let written = fs::symlink_metadata(folder.journal()).and_then(|found| found.modified());
    let is_old = written.is_ok_and(|written| now.duration_since(written).is_ok_and(|age| age > patience));
    match folder.try_hold(Hold::Alone)?.filter(|_| is_old) {
        Some(_alone) => give_up(folder),
        None => Err(error),
    }
}

/// The same for those who work alone already.
pub(crate) fn recover_alone(folder: &Folder, alone: &Held) -> Result<(), VaultError> {
    let finished = match begun(folder) {
        Ok(Some((journal, saved))) => {
            finish(folder, &Packs::list(folder)?, &journal, saved, &Unwatched).map(|_| ())
        }
        begun => begun.map(|_| ()),
    };
    match finished {
        Ok(()) => {}
        // It will not be whole the next time, either.
        Err(VaultError::Damaged { .. } | VaultError::NoSuchSnapshot { .. }) => give_up(folder)?,
        Err(error) => return Err(error),
    }
    // Rubbish that cannot be removed is in nobody's way.
    let _it_is_tried_again = stage::remove_all(folder, alone);
    Ok(())
}

/// What was begun, and the present as it was saved before.
fn begun(folder: &Folder) -> Result<Option<(Journal, Taken)>, VaultError> {
    let Some(journal) = Journal::read(folder)? else { return Ok(None) };
    let stored = StoredSnapshot::read(folder, journal.saved)?;
    let manifest = Manifest::read(folder, stored.before)?;
    Ok(Some((journal, Taken { stored, manifest })))
}

/// Sets a restore aside. What it had made ready, or moved out of a tree, goes first: without a journal it would be rubbish.
fn give_up(folder: &Folder) -> Result<(), VaultError> {
    for number in folder.numbers(Room::Stages)? {
        let stage = folder.numbered(Room::Stages, number);
        fs::rename(&stage, stage.with_extension(KEPT)).map_err(VaultError::io("rename", &stage))?;
    }
    let names = (1..).map(|number| folder.path().join(format!("{GIVEN_UP}{number}")));
    let free = names.into_iter().find(|name| fs::symlink_metadata(name).is_err());
    let journal = folder.journal();
    fs::rename(&journal, free.unwrap_or_default()).map_err(VaultError::io("rename", &journal))
}

/// The journals that were given up.
pub(crate) fn given_up(folder: &Folder) -> Result<Vec<PathBuf>, VaultError> {
    let failed = || VaultError::io("list", folder.path());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.path()).map_err(failed())? {
        let name = entry.map_err(failed())?.file_name();
        if name.as_bytes().starts_with(GIVEN_UP.as_bytes()) {
            found.push(folder.path().join(name));
        }
    }
    found.sort();
    Ok(found)
}

/// Carries out what the journal says, records what is there then, and removes the journal.
pub(crate) fn finish(
    folder: &Folder,
    packs: &Packs,
    journal: &Journal,
    saved: Taken,
    watch: &dyn Watch,
) -> Result<Finished, VaultError> {
    let number = journal.saved.0;
    // What lies elsewhere is removed while the journal is still there. From then on it no longer tells what was done.
    let placed = folder.numbered(Room::Stages, number).join("placed");
    let mut kept = Vec::new();
    if !placed.exists() {
        let stages = Stages::find(folder, number, &journal.stages)?;
        kept = apply::apply(journal, &stages, &saved.manifest, watch)?;
        if journal.stages.len() > 1 {
            for stage in &stages {
                stage::settle(&stage.folder).map_err(VaultError::io("write", &stage.path))?;
            }
            fs::File::create(&placed)
                .and_then(|file| file.sync_all())
                .map_err(VaultError::io("write", &placed))?;
        }
    }
    match stage::remove_elsewhere(folder, number) {
        // Somebody mounted something in what was moved away: it stays, and is tried again with all other rubbish.
        Err(VaultError::Io { source, .. }) if is_mounted(&source) => {}
        removed => removed?,
    }
    let unmarked = apply::mark_folders(&journal.folders)?;
    let reserve = Reserve { max_size: u64::MAX, min_free: 0 };
    let (extent, now) = (journal.folders_written(), clock(folder, number).unwrap_or(journal.now));
    let after = match take::conclude_where(
        folder,
        packs,
        saved,
        Extent::Only(&extent),
        now,
        reserve,
        &Unstoppable(watch),
    ) {
        Ok(taken) => Some(taken.manifest),
        // The tree is as it should be; only an undo of this restore knows less.
        Err(VaultError::OverBudget { .. } | VaultError::DiskFull { .. } | VaultError::Damaged { .. }) => None,
        Err(error) => return Err(error),
    };
    for (id, by) in &journal.undone {
        match StoredSnapshot::read(folder, *id) {
            Ok(mut stored) => {
                stored.undone(*by);
                stored.write(folder)?;
            }
            Err(VaultError::NoSuchSnapshot { .. } | VaultError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Journal::remove(folder)?;
    Ok(Finished { kept, unmarked, after })
}

fn is_mounted(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::CrossesDevices | io::ErrorKind::ResourceBusy)
}

/// What the filesystem of the safe takes the time to be: what was made ready before is then known to be older.
fn clock(folder: &Folder, number: Number) -> Option<SystemTime> {
    let path = folder.numbered(Room::Stages, number).join("clock");
    let modified = fs::File::create(&path).and_then(|file| file.metadata()?.modified());
    modified.ok()
}

/// Tells whoever watches how far it is, and goes on whatever they say: what has begun has to end.
struct Unstoppable<'a>(&'a dyn Watch);

impl Watch for Unstoppable<'_> {
    fn goes_on(&self, progress: Progress) -> bool {
        self.0.goes_on(progress);
        true
    }
}
