//! The safe itself: what can be asked of it.

use std::path::{Path, PathBuf};

use crate::error::VaultError;
use crate::folder::{Folder, Hold};
use crate::pack::Packs;
use crate::restored::{Difference, Held, Restored};
use crate::retention::{Checked, Collected, Retention};
use crate::snapshot::{Snapshot, SnapshotId};
use crate::stored_snapshot::StoredSnapshot;
use crate::take;
use crate::watch::{Progress, Stage, Watch};
use crate::wish::{Choice, Wish};
use crate::{check, collect, recover, restore};

/// An opened safe.
#[derive(Debug, Clone)]
pub struct Vault {
    folder: Folder,
}

impl Vault {
    /// Opens the safe in `folder`, and makes it where it is not there. A restore that was interrupted is finished or undone;
    /// one that cannot be is in nobody's way who only adds to the safe, and `awaits_recovery` or `given_up` tells of it.
    pub fn open(folder: &Path) -> Result<Vault, VaultError> {
        let folder = Folder::make(folder)?;
        let _whoever_needs_it_finished_is_told = recover::recover(&folder);
        Ok(Vault { folder })
    }

    /// Opens it for those who only look: nothing is made.
    pub fn existing(folder: &Path) -> Result<Vault, VaultError> {
        Ok(Vault { folder: Folder::existing(folder)? })
    }

    /// Takes a snapshot. When it returns, it is on the disk.
    pub fn take(&self, wish: &Wish, watch: &dyn Watch) -> Result<Snapshot, VaultError> {
        let _held = self.folder.hold(Hold::Shared, || waiting(watch))?;
        Ok(take::take(&self.folder, &Packs::list(&self.folder)?, wish, None, watch)?.stored.to_snapshot())
    }

    /// Records how the protected call left things, so that an undo can tell its changes from those of others.
    pub fn conclude(
        &self,
        id: SnapshotId,
        now: std::time::SystemTime,
        reserve: crate::Reserve,
        watch: &dyn Watch,
    ) -> Result<Snapshot, VaultError> {
        let _held = self.folder.hold(Hold::Shared, || waiting(watch))?;
        Ok(take::conclude(&self.folder, id, now, reserve, watch)?.stored.to_snapshot())
    }

    /// All snapshots that can be read, the oldest first.
    pub fn snapshots(&self) -> Result<Vec<Snapshot>, VaultError> {
        collect::snapshots(&self.folder)
    }

    /// Those whose own record is damaged, the oldest first. They cannot be restored; they can be removed by hand.
    pub fn unreadable(&self) -> Result<Vec<SnapshotId>, VaultError> {
        collect::unreadable(&self.folder)
    }

    /// Was a restore interrupted, and waits to be finished or undone? Whoever opens the safe to change something does that.
    pub fn awaits_recovery(&self) -> bool {
        std::fs::symlink_metadata(self.folder.journal()).is_ok()
    }

    /// The journals of restores that nobody could finish. What such a restore had moved lies in `stages`, in folders whose
    /// names end in `.kept`; both stay until somebody removes them.
    pub fn given_up(&self) -> Result<Vec<PathBuf>, VaultError> {
        recover::given_up(&self.folder)
    }

    /// One of them.
    pub fn snapshot(&self, id: SnapshotId) -> Result<Snapshot, VaultError> {
        Ok(StoredSnapshot::read(&self.folder, id)?.to_snapshot())
    }

    /// How the present differs from a snapshot, at or below `paths` (everywhere where there are none), sorted by path.
    pub fn differences(
        &self,
        id: SnapshotId,
        paths: &[PathBuf],
        watch: &dyn Watch,
    ) -> Result<Vec<Difference>, VaultError> {
        restore::differences(&self.folder, id, paths, watch)
    }

    /// The content of a file, or the target of a link, as a snapshot holds it, at most its first `most` bytes; nothing where
    /// it holds none at this path.
    pub fn content(&self, id: SnapshotId, path: &Path, most: usize) -> Result<Option<Vec<u8>>, VaultError> {
        restore::content(&self.folder, id, path, most)
    }

    /// What a snapshot holds at a path and below it, or of everything, sorted by path.
    pub fn held(&self, id: SnapshotId, below: Option<&Path>) -> Result<Vec<(PathBuf, Held)>, VaultError> {
        restore::held(&self.folder, id, below)
    }

    /// Makes the present what the snapshot holds. The present is saved first.
    pub fn restore(
        &self,
        id: SnapshotId,
        choice: &Choice,
        watch: &dyn Watch,
    ) -> Result<Restored, VaultError> {
        restore::restore(&self.folder, id, choice, watch)
    }

    /// Takes back what the protected call changed, and nothing that anybody changed since. Of a snapshot that was saved by a
    /// restore or an undo, it takes that one back: this is how redo works.
    pub fn undo(&self, id: SnapshotId, choice: &Choice, watch: &dyn Watch) -> Result<Restored, VaultError> {
        restore::undo(&self.folder, id, choice, watch)
    }

    /// Reads everything that snapshots need, and compares it with what was written. All snapshots where none is named.
    pub fn check(&self, ids: &[SnapshotId], watch: &dyn Watch) -> Result<Checked, VaultError> {
        check::check(&self.folder, ids, watch)
    }

    /// Keeps a snapshot until somebody removes it, or no longer does.
    pub fn pin(&self, id: SnapshotId, pinned: bool) -> Result<Snapshot, VaultError> {
        collect::pin(&self.folder, id, pinned)
    }

    /// Removes snapshots for good, pinned ones too.
    pub fn remove(&self, ids: &[SnapshotId], watch: &dyn Watch) -> Result<Collected, VaultError> {
        recover::recover(&self.folder)?;
        collect::remove(&self.folder, ids, watch)
    }

    /// What has expired is removed if that can be done at once; cheap where nothing has.
    pub fn expire(&self, retention: &Retention, now: std::time::SystemTime) -> Result<Collected, VaultError> {
        collect::expire(&self.folder, retention, now)
    }

    /// What `collect` would remove.
    pub fn expired(
        &self,
        retention: &Retention,
        now: std::time::SystemTime,
    ) -> Result<Vec<SnapshotId>, VaultError> {
        Ok(collect::expired(&self.folder, retention, now)?.into_iter().map(|gone| gone.id).collect())
    }

    /// Removes what has expired, writes half-empty files anew, and gives the space back. A restore that could not be finished
    /// for a day is given up.
    pub fn collect(
        &self,
        retention: &Retention,
        now: std::time::SystemTime,
        watch: &dyn Watch,
    ) -> Result<Collected, VaultError> {
        recover::recover_by(&self.folder, now)?;
        collect::collect(&self.folder, retention, now, watch)
    }

    /// How many bytes it holds.
    pub fn size(&self) -> Result<u64, VaultError> {
        Ok(self.folder.size())
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Somebody else is at work: does whoever watches still wait?
fn waiting(watch: &dyn Watch) -> bool {
    watch.goes_on(Progress { stage: Stage::Looking, done: 0, of: 0, bytes: 0 })
}
