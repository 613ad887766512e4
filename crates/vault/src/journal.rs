//! What a restore has set out to do, written down before the first name in a tree changes. While it is there, the restore is
//! under way: whoever finds it without anybody at work finishes it. Each deed can be tried again without harm, because the
//! inodes tell whether it was done.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::deed::{Deed, FolderMark};
use crate::entry::{Attributes, Entry, Moment};
use crate::error::VaultError;
use crate::folder::{Folder, read_own};
use crate::marks::Marks;
use crate::plan::to_path;
use crate::snapshot::SnapshotId;
use crate::stage::parent;
use crate::stored_snapshot::StoredPath;

/// What is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Journal {
    /// The snapshot with the present as it was before.
    pub(crate) saved: SnapshotId,
    pub(crate) now: SystemTime,
    /// What becomes of snapshots: by which they are undone then.
    pub(crate) undone: Vec<(SnapshotId, Option<SnapshotId>)>,
    pub(crate) stages: Vec<PathBuf>,
    /// Folders above scopes that went and have to be made again.
    pub(crate) above: Vec<Vec<u8>>,
    pub(crate) steps: Vec<Step>,
    pub(crate) folders: Vec<FolderMark>,
    /// Folders that are made whole.
    pub(crate) made: Vec<Vec<u8>>,
}

/// One deed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// Its number in the plan, which is also its name in the stage.
    pub(crate) number: usize,
    pub(crate) deed: Deed,
    pub(crate) stage: usize,
    pub(crate) path: Vec<u8>,
    /// What waits in the stage.
    pub(crate) new: Option<u64>,
    /// What is in the tree.
    pub(crate) old: Option<Old>,
    /// What is only marked.
    pub(crate) marks: Option<Marks>,
}

/// What tells that something is still what it was when it was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Old {
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

impl Old {
    pub(crate) fn of(entry: &Entry) -> Old {
        let Entry { inode, size, mode, mtime, .. } = *entry;
        Old { inode, size, mode, seconds: mtime.seconds, nanos: mtime.nanos }
    }
}

#[derive(Serialize, Deserialize)]
struct StoredJournal {
    saved: u64,
    now_ms: u64,
    undone: Vec<(u64, Option<u64>)>,
    stages: Vec<StoredPath>,
    above: Vec<StoredPath>,
    steps: Vec<StoredStep>,
    folders: Vec<(StoredPath, u64, StoredMarks)>,
    made: Vec<StoredPath>,
}

#[derive(Serialize, Deserialize)]
struct StoredStep {
    number: usize,
    deed: StoredDeed,
    stage: usize,
    path: StoredPath,
    new: Option<u64>,
    old: Option<Old>,
    marks: Option<StoredMarks>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredDeed {
    Place,
    Exchange,
    Remove,
    Touch,
}

#[derive(Serialize, Deserialize)]
struct StoredMarks {
    mode: u32,
    uid: u32,
    gid: u32,
    seconds: i64,
    nanos: u32,
    attributes: Attributes,
}

impl Journal {
    /// The folders in which something is another after it.
    pub(crate) fn folders_written(&self) -> Vec<Vec<u8>> {
        let steps = self.steps.iter().map(|step| parent(&step.path).to_vec());
        let marked = self.folders.iter().map(|mark| parent(&mark.path).to_vec());
        let mut folders: Vec<Vec<u8>> = steps.chain(marked).chain(self.made.iter().cloned()).collect();
        folders.sort_unstable();
        folders.dedup();
        folders
    }

    /// Writes it down. From here on the restore goes forward.
    pub(crate) fn write(&self, folder: &Folder) -> Result<(), VaultError> {
        let path = folder.journal();
        let failed = |error: serde_json::Error| VaultError::io("write", &path)(error.into());
        let mut text = serde_json::to_vec(&self.stored()).map_err(failed)?;
        let check = blake3::hash(&text).to_hex();
        text.push(b'\n');
        text.extend_from_slice(check.as_bytes());
        folder.replace(&path, &text)
    }

    /// Reads it; nothing where no restore is under way.
    pub(crate) fn read(folder: &Folder) -> Result<Option<Journal>, VaultError> {
        let path = folder.journal();
        let text = match read_own(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(VaultError::io("read", &path))?,
        };
        let end = text.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        let (body, check) = (&text[..end], text.get(end + 1..).unwrap_or_default());
        let stored: Option<StoredJournal> = match blake3::hash(body).to_hex().as_bytes() == check {
            true => serde_json::from_slice(body).ok(),
            false => None,
        };
        stored.map(|stored| Some(stored.to_journal())).ok_or(VaultError::Damaged { path })
    }

    /// The restore is over.
    pub(crate) fn remove(folder: &Folder) -> Result<(), VaultError> {
        let path = folder.journal();
        fs::remove_file(&path).map_err(VaultError::io("remove", &path))
    }

    fn stored(&self) -> StoredJournal {
        let now = self.now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let step = |step: &Step| StoredStep {
            number: step.number,
            deed: match step.deed {
                Deed::Place => StoredDeed::Place,
                Deed::Exchange => StoredDeed::Exchange,
                Deed::Remove => StoredDeed::Remove,
                Deed::Touch => StoredDeed::Touch,
            },
            stage: step.stage,
            path: stored_path(&step.path),
            new: step.new,
            old: step.old,
            marks: step.marks.as_ref().map(stored_marks),
        };
        StoredJournal {
            saved: self.saved.0,
            now_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            undone: self.undone.iter().map(|(id, by)| (id.0, by.map(|by| by.0))).collect(),
            stages: self.stages.iter().map(|path| StoredPath::of(path)).collect(),
            above: self.above.iter().map(|path| stored_path(path)).collect(),
            steps: self.steps.iter().map(step).collect(),
            made: self.made.iter().map(|path| stored_path(path)).collect(),
            folders: self
                .folders
                .iter()
                .map(|mark| (stored_path(&mark.path), mark.inode, stored_marks(&mark.marks)))
                .collect(),
        }
    }
}

impl StoredJournal {
    fn to_journal(&self) -> Journal {
        let step = |step: &StoredStep| Step {
            number: step.number,
            deed: match step.deed {
                StoredDeed::Place => Deed::Place,
                StoredDeed::Exchange => Deed::Exchange,
                StoredDeed::Remove => Deed::Remove,
                StoredDeed::Touch => Deed::Touch,
            },
            stage: step.stage,
            path: bytes(&step.path),
            new: step.new,
            old: step.old,
            marks: step.marks.as_ref().map(marks),
        };
        let mark = |(path, inode, stored): &(StoredPath, u64, StoredMarks)| FolderMark {
            path: bytes(path),
            inode: *inode,
            marks: marks(stored),
        };
        Journal {
            saved: SnapshotId(self.saved),
            now: SystemTime::UNIX_EPOCH + Duration::from_millis(self.now_ms),
            undone: self.undone.iter().map(|(id, by)| (SnapshotId(*id), by.map(SnapshotId))).collect(),
            stages: self.stages.iter().map(StoredPath::to_path).collect(),
            above: self.above.iter().map(bytes).collect(),
            steps: self.steps.iter().map(step).collect(),
            folders: self.folders.iter().map(mark).collect(),
            made: self.made.iter().map(bytes).collect(),
        }
    }
}

fn stored_path(path: &[u8]) -> StoredPath {
    StoredPath::of(&to_path(path))
}

fn bytes(path: &StoredPath) -> Vec<u8> {
    use std::os::unix::ffi::OsStringExt;
    path.to_path().into_os_string().into_vec()
}

fn stored_marks(marks: &Marks) -> StoredMarks {
    let Marks { mode, uid, gid, mtime, attributes } = marks.clone();
    StoredMarks { mode, uid, gid, seconds: mtime.seconds, nanos: mtime.nanos, attributes }
}

fn marks(stored: &StoredMarks) -> Marks {
    let StoredMarks { mode, uid, gid, seconds, nanos, ref attributes } = *stored;
    Marks { mode, uid, gid, mtime: Moment { seconds, nanos }, attributes: attributes.clone() }
}
