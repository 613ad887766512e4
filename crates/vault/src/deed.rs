//! What a restore sets out to do, deed by deed.

use std::ops::Range;

use crate::entry::Entry;
use crate::marks::Marks;
use crate::plan::to_path;
use crate::restored::{Difference, Kept, KeptBecause};

/// What is done at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Nothing is there: what is wanted is put there, a folder with everything in it.
    Place,
    /// What is there and what is wanted change places.
    Exchange,
    /// What is there goes.
    Remove,
    /// Only its marks are set.
    Touch,
}

/// One thing to do.
#[derive(Debug, Clone)]
pub(crate) struct Op {
    pub(crate) deed: Deed,
    pub(crate) path: Vec<u8>,
    /// What shall be there; nothing where it goes.
    pub(crate) want: Option<(Entry, Vec<u8>)>,
    /// What is there.
    pub(crate) have: Option<Entry>,
    /// What is done by it, as it is told.
    pub(crate) told: Range<usize>,
    /// What has to be written for it.
    pub(crate) bytes: u64,
}

/// A folder that gets its marks when everything in it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FolderMark {
    pub(crate) path: Vec<u8>,
    pub(crate) inode: u64,
    pub(crate) marks: Marks,
}

/// A file with several names that is there.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    /// The inode it had.
    pub(crate) inode: u64,
    /// A name that it has now.
    pub(crate) path: Vec<u8>,
    /// What it is now.
    pub(crate) is: Entry,
}

/// All there is to do.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) ops: Vec<Op>,
    /// Those inside others first.
    pub(crate) folders: Vec<FolderMark>,
    pub(crate) told: Vec<Difference>,
    pub(crate) kept: Vec<Kept>,
    /// Files with several names that are there: further names are linked to them.
    pub(crate) keepers: Vec<Keeper>,
    /// Folders that are made whole, each of those in them as well.
    pub(crate) made: Vec<Vec<u8>>,
}

impl Plan {
    /// Is there nothing to do?
    pub(crate) fn is_empty(&self) -> bool {
        self.ops.is_empty() && self.folders.is_empty()
    }

    /// Leaves out some deeds, and tells that.
    pub(crate) fn refuse(&mut self, is_refused: impl Fn(&Op) -> bool) {
        let because = KeptBecause::Refused;
        for op in self.ops.extract_if(.., |op| is_refused(op)) {
            self.kept.push(Kept { path: to_path(&op.path), because });
            let below = self.told.get(op.told).unwrap_or_default();
            self.kept.extend(below.iter().map(|told| Kept { path: told.path.clone(), because }));
        }
    }
}
