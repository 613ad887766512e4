//! Finishing a restore: its own last part, and what the next command does when one was interrupted. Without a journal nothing
//! was touched yet, and what was made ready is removed; with one, the restore goes on to its end.

use std::fs;

use crate::apply;
use crate::error::VaultError;
use crate::folder::{Folder, Held, Hold, Room};
use crate::journal::Journal;
use crate::manifest::Manifest;
use crate::restored::KeptBecause;
use crate::stage::{self, Stages};
use crate::stored_snapshot::StoredSnapshot;
use crate::take;
use crate::watch::{Progress, Unwatched, Watch};
use crate::wish::Reserve;

/// What is known of a restore when it is over.
pub(crate) struct Finished {
    /// Steps that were not taken.
    pub(crate) kept: Vec<(usize, KeptBecause)>,
    /// What is there now; nothing where that could not be recorded.
    pub(crate) after: Option<Manifest>,
}

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

/// The same for those who work alone already.
pub(crate) fn recover_alone(folder: &Folder, alone: &Held) -> Result<(), VaultError> {
    if let Some(journal) = Journal::read(folder)? {
        let saved = StoredSnapshot::read(folder, journal.saved)?;
        let present = Manifest::read(folder, saved.before)?;
        finish(folder, &journal, &present, &Unwatched)?;
    }
    stage::remove_all(folder, alone)
}

/// Carries out what the journal says, records what is there then, and removes the journal.
pub(crate) fn finish(
    folder: &Folder,
    journal: &Journal,
    present: &Manifest,
    watch: &dyn Watch,
) -> Result<Finished, VaultError> {
    let stages = Stages::find(&journal.stages);
    let number = journal.saved.0;
    // What lies elsewhere is removed while the journal is still there. From then on it no longer tells what was done.
    let placed = folder.numbered(Room::Stages, number).join("placed");
    let mut kept = Vec::new();
    if !placed.exists() {
        kept = apply::apply(journal, &stages, present, watch)?;
        if journal.stages.len() > 1 {
            for stage in stages.iter().flatten() {
                stage::settle(&stage.folder).map_err(VaultError::io("write", &stage.path))?;
            }
            fs::File::create(&placed)
                .and_then(|file| file.sync_all())
                .map_err(VaultError::io("write", &placed))?;
        }
    }
    stage::remove_elsewhere(folder, number)?;
    apply::mark_folders(&journal.folders)?;
    let reserve = Reserve { max_size: u64::MAX, min_free: 0 };
    let after = match take::conclude(folder, journal.saved, journal.now, reserve, &Unstoppable(watch)) {
        Ok(taken) => Some(taken.manifest),
        // The tree is as it should be; only an undo of this restore knows less.
        Err(VaultError::OverBudget { .. } | VaultError::DiskFull { .. }) => None,
        Err(error) => return Err(error),
    };
    for (id, by) in &journal.undone {
        match StoredSnapshot::read(folder, *id) {
            Ok(mut stored) => {
                stored.undone(*by);
                stored.write(folder)?;
            }
            Err(VaultError::NoSuchSnapshot { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Journal::remove(folder)?;
    Ok(Finished { kept, after })
}

/// Tells whoever watches how far it is, and goes on whatever they say: what has begun has to end.
struct Unstoppable<'a>(&'a dyn Watch);

impl Watch for Unstoppable<'_> {
    fn goes_on(&self, progress: Progress) -> bool {
        self.0.goes_on(progress);
        true
    }
}
