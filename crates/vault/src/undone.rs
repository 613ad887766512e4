//! Which snapshots are undone, and by which. Taking back what took something back brings that again, so one restore can change
//! what is true of a whole chain of them.

use crate::error::VaultError;
use crate::folder::Folder;
use crate::snapshot::{Origin, SnapshotId};
use crate::stored_snapshot::StoredSnapshot;

/// What is undone when all of a snapshot is taken back, and what is thereby no longer undone. `saved` holds the present as it
/// was before.
pub(crate) fn undone(
    folder: &Folder,
    taken_back: &StoredSnapshot,
    saved: SnapshotId,
) -> Result<Vec<(SnapshotId, Option<SnapshotId>)>, VaultError> {
    let mut marks = vec![(taken_back.id(), Some(saved))];
    let (mut by, mut is_undone, mut next) = (taken_back.id(), false, taken_back.to_snapshot().origin);
    while let Origin::Restore { of } = next {
        let stored = match StoredSnapshot::read(folder, of) {
            Err(VaultError::NoSuchSnapshot { .. } | VaultError::Damaged { .. }) => break,
            stored => stored?,
        };
        let snapshot = stored.to_snapshot();
        let was_marked = snapshot.undone_by.is_none_or(|marked| marked == by);
        if !was_marked || (!is_undone && snapshot.undone_by.is_none()) {
            break;
        }
        marks.push((of, is_undone.then_some(by)));
        (by, is_undone, next) = (of, !is_undone, snapshot.origin);
    }
    Ok(marks)
}
