//! A snapshot as it lies in the safe: one small file for each, a line of JSON and a line that tells whether it is whole.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::error::VaultError;
use crate::folder::{Folder, Number, Room, read_own_text};
use crate::snapshot::{Gap, GapReason, Origin, Scope, Snapshot, SnapshotId};

/// A path, whatever its bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum StoredPath {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

impl StoredPath {
    pub(crate) fn of(path: &Path) -> StoredPath {
        match path.to_str() {
            Some(text) => StoredPath::Text(text.to_owned()),
            None => StoredPath::Bytes { bytes: path.as_os_str().as_bytes().to_vec() },
        }
    }

    pub(crate) fn to_path(&self) -> PathBuf {
        match self {
            StoredPath::Text(text) => PathBuf::from(text),
            StoredPath::Bytes { bytes } => PathBuf::from(OsString::from_vec(bytes.clone())),
        }
    }
}

/// What a snapshot is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
enum StoredOrigin {
    Person {
        /// An agent asked for it, in the place of a person.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_agent: bool,
    },
    Call {
        call: Option<i64>,
        key: String,
        session: String,
        row: String,
        label: String,
    },
    Restore {
        of: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredGap {
    path: StoredPath,
    reason: StoredReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredReason {
    Rebuildable,
    Never,
    Unreadable,
    Mounted,
    Special,
    Unstable,
}

/// A snapshot with the numbers of its lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredSnapshot {
    id: u64,
    at_ms: u64,
    origin: StoredOrigin,
    note: String,
    scopes: Vec<StoredPath>,
    gaps: Vec<StoredGap>,
    gap_count: u64,
    entries: u64,
    bytes: u64,
    stored: u64,
    pub(crate) pinned: bool,
    undone_by: Option<u64>,
    changed: Option<bool>,
    /// What was there when it was taken.
    pub(crate) before: Number,
    /// What was there after the protected call; nothing while nobody knows.
    pub(crate) after: Option<Number>,
    /// Folders that can be made again were taken, too.
    pub(crate) takes_rebuildable: bool,
    /// What was not to be taken.
    pub(crate) never: Vec<String>,
}

/// The lists of a snapshot, and how they came about.
#[derive(Debug, Clone)]
pub(crate) struct Lists {
    pub(crate) before: Number,
    pub(crate) takes_rebuildable: bool,
    pub(crate) never: Vec<String>,
}

impl StoredSnapshot {
    pub(crate) fn new(snapshot: &Snapshot, lists: Lists) -> StoredSnapshot {
        let at = snapshot.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        StoredSnapshot {
            id: snapshot.id.0,
            at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            origin: match snapshot.origin.clone() {
                Origin::Person => StoredOrigin::Person { by_agent: false },
                Origin::Agent => StoredOrigin::Person { by_agent: true },
                Origin::Call { call, key, session, row, label } => {
                    StoredOrigin::Call { call, key, session, row, label }
                }
                Origin::Restore { of } => StoredOrigin::Restore { of: of.0 },
            },
            note: snapshot.note.clone(),
            scopes: snapshot.scopes.iter().map(|scope| StoredPath::of(&scope.path)).collect(),
            gaps: snapshot.gaps.iter().map(stored_gap).collect(),
            gap_count: snapshot.gap_count,
            entries: snapshot.entries,
            bytes: snapshot.bytes,
            stored: snapshot.stored,
            pinned: snapshot.pinned,
            undone_by: snapshot.undone_by.map(|id| id.0),
            changed: snapshot.changed,
            before: lists.before,
            after: None,
            takes_rebuildable: lists.takes_rebuildable,
            never: lists.never,
        }
    }

    /// As the world sees it.
    pub(crate) fn to_snapshot(&self) -> Snapshot {
        Snapshot {
            id: self.id(),
            at: SystemTime::UNIX_EPOCH + Duration::from_millis(self.at_ms),
            origin: match self.origin.clone() {
                StoredOrigin::Person { by_agent: false } => Origin::Person,
                StoredOrigin::Person { by_agent: true } => Origin::Agent,
                StoredOrigin::Call { call, key, session, row, label } => {
                    Origin::Call { call, key, session, row, label }
                }
                StoredOrigin::Restore { of } => Origin::Restore { of: SnapshotId(of) },
            },
            note: self.note.clone(),
            scopes: self.scopes.iter().map(|path| Scope { path: path.to_path() }).collect(),
            gaps: self.gaps.iter().map(gap).collect(),
            gap_count: self.gap_count,
            entries: self.entries,
            bytes: self.bytes,
            stored: self.stored,
            pinned: self.pinned,
            concluded: self.after.is_some(),
            changed: self.changed,
            undone_by: self.undone_by.map(SnapshotId),
        }
    }

    pub(crate) fn id(&self) -> SnapshotId {
        SnapshotId(self.id)
    }

    /// How much had to be written for it.
    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }

    /// What it covers.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = Vec<u8>> {
        self.scopes.iter().map(|scope| scope.to_path().into_os_string().into_vec())
    }

    /// The manifests that it needs, without those below them.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = Number> {
        [Some(self.before), self.after].into_iter().flatten()
    }

    /// What the protected call left is known now.
    pub(crate) fn conclude(&mut self, after: Number, changed: bool) {
        self.changed = Some(changed);
        self.after = Some(after);
    }

    /// It was undone, or that was taken back.
    pub(crate) fn undone(&mut self, by: Option<SnapshotId>) {
        self.undone_by = by.map(|id| id.0);
    }

    /// Writes it; the old one or the new one is there at any moment.
    pub(crate) fn write(&self, folder: &Folder) -> Result<(), VaultError> {
        let path = folder.numbered(Room::Snapshots, self.id);
        let mut text = serde_json::to_string(self).map_err(|error| VaultError::Io {
            deed: "write",
            path: path.clone(),
            source: error.into(),
        })?;
        let check = blake3::hash(text.as_bytes()).to_hex();
        text.push('\n');
        text.push_str(&check);
        text.push('\n');
        folder.replace(&path, text.as_bytes())
    }

    pub(crate) fn read(folder: &Folder, id: SnapshotId) -> Result<StoredSnapshot, VaultError> {
        let path = folder.numbered(Room::Snapshots, id.0);
        let text = match read_own_text(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(VaultError::NoSuchSnapshot { id });
            }
            text => text.map_err(VaultError::io("read", &path))?,
        };
        let whole = text
            .split_once('\n')
            .filter(|(body, check)| check.trim_end() == blake3::hash(body.as_bytes()).to_hex().as_str());
        let read = whole.and_then(|(body, _)| serde_json::from_str::<StoredSnapshot>(body).ok());
        read.filter(|read| read.id == id.0).ok_or(VaultError::Damaged { path })
    }

    /// All of them, the oldest first. One that cannot be read is left out.
    pub(crate) fn all(folder: &Folder) -> Result<Vec<StoredSnapshot>, VaultError> {
        let mut numbers = folder.numbers(Room::Snapshots)?;
        numbers.sort_unstable();
        Ok(numbers.into_iter().filter_map(|id| StoredSnapshot::read(folder, SnapshotId(id)).ok()).collect())
    }
}

fn stored_gap(gap: &Gap) -> StoredGap {
    let reason = match gap.reason {
        GapReason::Rebuildable => StoredReason::Rebuildable,
        GapReason::Never => StoredReason::Never,
        GapReason::Unreadable => StoredReason::Unreadable,
        GapReason::Mounted => StoredReason::Mounted,
        GapReason::Special => StoredReason::Special,
        GapReason::Unstable => StoredReason::Unstable,
    };
    StoredGap { path: StoredPath::of(&gap.path), reason }
}

fn gap(stored: &StoredGap) -> Gap {
    let reason = match stored.reason {
        StoredReason::Rebuildable => GapReason::Rebuildable,
        StoredReason::Never => GapReason::Never,
        StoredReason::Unreadable => GapReason::Unreadable,
        StoredReason::Mounted => GapReason::Mounted,
        StoredReason::Special => GapReason::Special,
        StoredReason::Unstable => GapReason::Unstable,
    };
    Gap { path: stored.path.to_path(), reason }
}
