//! Brings back what can be read of a database that was damaged: page by page from its files, into the store that is there now.
//!
//! The source is only read. What is there already is not added again, so it can be run twice, and be killed half-way.

mod cells;
mod events;
mod merge;
mod pages;
mod plain;
mod salvage;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::copies;
use crate::database;
use crate::error::{Deed, StoreError};
use crate::examine::Examined;
use crate::fact;
use crate::root::Root;
use crate::store::Store;
use salvage::Salvage;

/// So many rows are written under one write lock.
const BATCH: usize = 500;

/// What the facts of recovered databases begin with.
const DONE: &str = "recovered ";

/// How a database is recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoverHow {
    /// Only count.
    pub dry_run: bool,
    /// A person vouches for the source: what was allowed, approved and learned counts again. Where an agent may have started
    /// this, lessons come back like those of somebody else, and nothing that lifts a refusal comes back.
    pub with_approvals: bool,
    /// The present moment.
    pub now: u64,
}

/// What came back of one database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Sessions that were not there.
    pub sessions: u64,
    /// Calls.
    pub calls: u64,
    /// Events of the timeline.
    pub events: u64,
    /// Lessons, and lessons whose approval came back.
    pub lessons: u64,
    /// Problems.
    pub problems: u64,
    /// Smaller things: counts, marks, places.
    pub others: u64,
    /// Rows that were there already.
    pub known: u64,
    /// Rows of which some could not be read, and was replaced.
    pub mended: u64,
    /// Records that the chain does not prove any more.
    pub unproven: u64,
    /// Events that were written once and cannot be read any more.
    pub lost: u64,
    /// Lessons and permissions that count only after a person vouched for the source.
    pub withheld: u64,
}

impl Recovered {
    /// How much came back.
    pub fn total(&self) -> u64 {
        self.sessions + self.calls + self.events + self.lessons + self.problems + self.others
    }
}

impl Store {
    /// Brings back what can be read of the database at `path`. `seen` is told how far it is.
    pub fn recover(
        &mut self,
        path: &Path,
        how: RecoverHow,
        seen: &mut dyn FnMut(&Recovered),
    ) -> Result<Recovered, StoreError> {
        let salvage = Salvage::of(path).map_err(StoreError::io(Deed::Open, path))?;
        let recovered = merge::Merge::new(self, &salvage, how, seen)?.all()?;
        if let (false, Some(name)) = (how.dry_run, name_of(path)) {
            self.write_durably(|connection| fact::write(connection, &format!("{DONE}{name}"), "1"))?;
        }
        Ok(recovered)
    }

    /// Were these databases that were set aside recovered?
    pub fn unrecovered(&self) -> Result<Vec<PathBuf>, StoreError> {
        let is_done = |path: &PathBuf| {
            let Some(name) = name_of(path) else { return Ok(false) };
            fact::read(&self.connection, &format!("{DONE}{name}")).map(|found| found.is_some())
        };
        let mut left = Vec::new();
        for path in set_aside(self.root())? {
            if !is_done(&path).map_err(self.wrong())? {
                left.push(path);
            }
        }
        Ok(left)
    }
}

/// The folder that a database lies in bears the moment at which it was set aside.
fn name_of(path: &Path) -> Option<String> {
    Some(path.parent()?.file_name()?.to_string_lossy().into_owned())
}

/// The databases that were set aside, the oldest first.
pub fn set_aside(root: &Root) -> Result<Vec<PathBuf>, StoreError> {
    let aside = copies::all(root)?.into_iter().map(|copy| copy.path.join("timeline.db"));
    Ok(aside.filter(|path| path.is_file()).collect())
}

/// Is the database damaged in any way that a full look finds, or does it bear the number of a format that it does not have?
pub fn is_damaged(
    root: &Root,
    patience: Duration,
    now: u64,
    seen: &mut dyn FnMut(&Examined),
) -> Result<bool, StoreError> {
    if !root.timeline().exists() {
        return Ok(false);
    }
    let found = Store::to_read(root, patience, now)
        .and_then(|store| Ok(!store.examine(seen)?.is_readable() || store.is_misnumbered()?));
    match found {
        Err(StoreError::Damaged { .. } | StoreError::Sql { .. }) => Ok(true),
        found => found,
    }
}

/// Puts the database aside: whoever calls has seen that [`is_damaged`]. Returns where it lies now.
pub fn put_aside(root: &Root, patience: Duration, now: u64) -> Result<PathBuf, StoreError> {
    database::put_aside(root, patience, now).map(|folder| folder.join("timeline.db"))
}
