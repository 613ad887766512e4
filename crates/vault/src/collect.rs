//! Removes snapshots and what then nobody needs any more. Whoever removes works alone in the safe, and names each thing that
//! goes by its own number. The order makes it safe to be interrupted: first the snapshot, then its lists, then the contents;
//! at any moment everything that a remaining snapshot needs is there.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::SystemTime;

use crate::error::VaultError;
use crate::expiry;
use crate::folder::{Folder, Held, Hold, Number, Room, open_own};
use crate::layer;
use crate::needs::Needs;
use crate::pack::Packs;
use crate::recover;
use crate::repack::{self, Effort};
use crate::retention::{Cause, Collected, Gone, Retention};
use crate::snapshot::{Snapshot, SnapshotId};
use crate::stage;
use crate::stored_snapshot::StoredSnapshot;
use crate::watch::{Progress, Stage, Unwatched, Watch};

/// With fewer lists that nobody needs, it does not pay to look for what else goes with them.
const WORTH_TIDYING: usize = 8;
/// With so many bytes, it does.
const WORTH_FREEING: u64 = 256 << 20;
/// A snapshot is pinned in passing: whoever wants that waits at most for so many pauses.
const PATIENCE: u32 = 2_000;

/// All snapshots that can be read, the oldest first.
pub(crate) fn snapshots(folder: &Folder) -> Result<Vec<Snapshot>, VaultError> {
    Ok(StoredSnapshot::all(folder)?.iter().map(StoredSnapshot::to_snapshot).collect())
}

/// Those that cannot be read.
pub(crate) fn unreadable(folder: &Folder) -> Result<Vec<SnapshotId>, VaultError> {
    let mut ids: Vec<SnapshotId> = folder.numbers(Room::Snapshots)?.into_iter().map(SnapshotId).collect();
    ids.sort_unstable();
    ids.retain(|id| match StoredSnapshot::read(folder, *id) {
        Ok(_) | Err(VaultError::NoSuchSnapshot { .. }) => false,
        Err(_) => true,
    });
    Ok(ids)
}

/// Keeps a snapshot until somebody removes it, or no longer does.
pub(crate) fn pin(folder: &Folder, id: SnapshotId, pinned: bool) -> Result<Snapshot, VaultError> {
    let mut pauses = 0;
    let _beside_others = folder.hold(Hold::Shared, || {
        pauses += 1;
        pauses < PATIENCE
    })?;
    // Others may be about to record something else of the same snapshot.
    let _at_the_desk = folder.desk()?;
    let mut stored = StoredSnapshot::read(folder, id)?;
    if stored.pinned != pinned {
        stored.pinned = pinned;
        stored.write(folder)?;
    }
    Ok(stored.to_snapshot())
}

/// What has expired by now.
pub(crate) fn expired(
    folder: &Folder,
    retention: &Retention,
    now: SystemTime,
) -> Result<Vec<Gone>, VaultError> {
    Ok(expiry::expired(&snapshots(folder)?, retention, folder.size(), now))
}

/// Removes what has expired, if nobody else is at work. What nobody needs any more goes with it once there is enough of it.
pub(crate) fn expire(
    folder: &Folder,
    retention: &Retention,
    now: SystemTime,
) -> Result<Collected, VaultError> {
    let before = folder.size();
    let mut collected = Collected { before, after: before, ..Collected::default() };
    let is_any_due = !expiry::expired(&snapshots(folder)?, retention, before, now).is_empty();
    // Whoever was killed while taking a snapshot may have left much.
    if !is_any_due && !folder.is_littered()? {
        return Ok(collected);
    }
    let Some(alone) = folder.try_hold(Hold::Alone)?.filter(|_| !is_restoring(folder)) else {
        collected.left_busy = is_any_due;
        return Ok(collected);
    };
    folder.sweep(&alone)?;
    let retention = without_idle_budget(folder, retention, &Unwatched)?;
    // Somebody may have removed them in the meantime.
    let there = StoredSnapshot::all(folder)?;
    let seen: Vec<Snapshot> = there.iter().map(StoredSnapshot::to_snapshot).collect();
    collected.note(expiry::expired(&seen, &retention, before, now));
    let (gone, rest): (Vec<_>, Vec<_>) =
        there.into_iter().partition(|snapshot| collected.snapshots.contains(&snapshot.id()));
    drop_records(folder, &collected.snapshots)?;
    let freed: u64 = gone.iter().map(StoredSnapshot::stored).sum();
    let is_due = before > retention.max_size || freed >= WORTH_FREEING;
    if is_due || unneeded(folder, &rest)? >= WORTH_TIDYING {
        tidy(folder, &alone, Effort::WholeFiles, &Unwatched, &mut collected)?;
        collected.after = folder.size();
    }
    Ok(collected)
}

/// Removes what has expired, and all that nobody needs any more.
pub(crate) fn collect(
    folder: &Folder,
    retention: &Retention,
    now: SystemTime,
    watch: &dyn Watch,
) -> Result<Collected, VaultError> {
    let alone = folder.hold(Hold::Alone, || goes_on(watch))?;
    let before = folder.size();
    let mut collected = Collected { before, after: before, ..Collected::default() };
    if is_restoring(folder) {
        collected.left_busy = true;
        return Ok(collected);
    }
    let retention = without_idle_budget(folder, retention, watch)?;
    loop {
        let due = expired(folder, &retention, now)?;
        let ids: Vec<SnapshotId> = due.iter().map(|gone| gone.id).collect();
        drop_records(folder, &ids)?;
        collected.note(due);
        tidy(folder, &alone, Effort::HalfEmptyFiles, watch, &mut collected)?;
        // How much the budget needed to lose was a guess; now it is known.
        if ids.is_empty() || collected.left_busy {
            break;
        }
    }
    collected.snapshots.sort_unstable();
    collected.gone.sort_unstable_by_key(|gone| gone.id);
    collected.after = folder.size();
    Ok(collected)
}

/// Removes snapshots by hand. Nothing of their contents stays that no other one needs.
pub(crate) fn remove(
    folder: &Folder,
    ids: &[SnapshotId],
    watch: &dyn Watch,
) -> Result<Collected, VaultError> {
    let alone = folder.hold(Hold::Alone, || goes_on(watch))?;
    // Whoever restored while we waited may have been killed at it.
    if is_restoring(folder) {
        recover::recover_alone(folder, &alone)?;
    }
    if is_restoring(folder) {
        return Err(VaultError::Busy { path: folder.journal() });
    }
    let there = folder.numbers(Room::Snapshots)?;
    if let Some(id) = ids.iter().find(|id| !there.contains(&id.0)) {
        return Err(VaultError::NoSuchSnapshot { id: *id });
    }
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let before = folder.size();
    let mut collected = Collected { before, after: before, ..Collected::default() };
    // Of one that cannot be read only its name is known.
    let gone = |id: &SnapshotId| match StoredSnapshot::read(folder, *id) {
        Ok(stored) => expiry::gone(&stored.to_snapshot(), Cause::Asked),
        Err(_) => Gone { id: *id, note: String::new(), cause: Cause::Asked },
    };
    collected.note(ids.iter().map(gone).collect());
    drop_records(folder, &ids)?;
    tidy(folder, &alone, Effort::Everything, watch, &mut collected)?;
    collected.after = folder.size();
    Ok(collected)
}

impl Collected {
    fn note(&mut self, gone: Vec<Gone>) {
        self.snapshots.extend(gone.iter().map(|gone| gone.id));
        self.gone.extend(gone);
    }
}

fn goes_on(watch: &dyn Watch) -> bool {
    watch.goes_on(Progress { stage: Stage::Removing, done: 0, of: 0, bytes: 0 })
}

/// A restore was interrupted and waits to be finished: until then nothing is removed, because it may still be needed.
fn is_restoring(folder: &Folder) -> bool {
    fs::symlink_metadata(folder.journal()).is_ok()
}

/// While something cannot be read, removing snapshots gives no space back; then none is removed for the sake of space.
fn without_idle_budget(
    folder: &Folder,
    retention: &Retention,
    watch: &dyn Watch,
) -> Result<Retention, VaultError> {
    if folder.size() <= retention.max_size {
        return Ok(*retention);
    }
    let needs = Needs::of(folder, &Packs::open(folder)?, || goes_on(watch))?;
    let max_size = if needs.blocked_by.is_empty() { retention.max_size } else { u64::MAX };
    Ok(Retention { max_size, ..*retention })
}

/// What they need stays: should the disk lose its memory of this, they are there again, and whole.
fn drop_records(folder: &Folder, ids: &[SnapshotId]) -> Result<(), VaultError> {
    ids.iter().try_for_each(|id| remove_file(folder, Room::Snapshots, id.0))
}

pub(crate) fn remove_file(folder: &Folder, room: Room, number: Number) -> Result<(), VaultError> {
    let path = folder.numbered(room, number);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(VaultError::io("remove", &path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// How many manifests no snapshot seems to need. Only their beginnings are read, unchecked: this tells whether it pays to
/// look closely, and nothing is removed by it.
fn unneeded(folder: &Folder, snapshots: &[StoredSnapshot]) -> Result<usize, VaultError> {
    let mut numbers = folder.numbers(Room::Manifests)?;
    let mut waiting: Vec<Number> = snapshots.iter().flat_map(StoredSnapshot::manifests).collect();
    while let Some(number) = waiting.pop() {
        let Some(at) = numbers.iter().position(|there| *there == number) else { continue };
        numbers.swap_remove(at);
        let mut beginning = [0; layer::HEADER];
        let read = open_own(&folder.numbered(Room::Manifests, number))
            .and_then(|file| file.read_exact_at(&mut beginning, 0));
        waiting.extend(read.ok().and_then(|()| layer::base_in(&beginning)));
    }
    Ok(numbers.len())
}

/// Removes what no snapshot needs. Ended early, it leaves everything whole, and the rest for another time.
fn tidy(
    folder: &Folder,
    alone: &Held,
    effort: Effort,
    watch: &dyn Watch,
    collected: &mut Collected,
) -> Result<(), VaultError> {
    folder.sweep(alone)?;
    stage::remove_all(folder, alone)?;
    // Only when records are gone for good may anything go that they needed.
    folder.settle(Room::Snapshots)?;
    let packs = Packs::open(folder)?;
    let needs = match Needs::of(folder, &packs, || goes_on(watch)) {
        Err(VaultError::Stopped) => {
            collected.left_busy = true;
            return Ok(());
        }
        needs => needs?,
    };
    collected.blocked_by.clone_from(&needs.blocked_by);
    for number in folder.numbers(Room::Manifests)? {
        if !needs.manifest(number) {
            remove_file(folder, Room::Manifests, number)?;
        }
    }
    if !needs.blocked_by.is_empty() {
        return Ok(());
    }
    match repack::repack(folder, &packs, &needs.contents, effort, watch) {
        Err(VaultError::Stopped) => {
            collected.left_busy = true;
            Ok(())
        }
        done => done,
    }
}
