//! A snapshot as the world sees it: a restorable copy, tied to what it protects.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::SystemTime;

/// The name of a snapshot: `s41`. Later ones have higher numbers; none is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(pub u64);

impl fmt::Display for SnapshotId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "s{}", self.0)
    }
}

impl FromStr for SnapshotId {
    type Err = ();

    /// Reads `s41`, and `41` as well.
    fn from_str(text: &str) -> Result<SnapshotId, ()> {
        let digits = text.strip_prefix('s').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok().map(SnapshotId)).flatten().ok_or(())
    }
}

/// One path that a snapshot covers, with everything below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// Absolute, without `.` and `..`.
    pub path: PathBuf,
}

/// Why a snapshot was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A person asked for it.
    Person,
    /// An agent asked for it, before something that it was about to do.
    Agent,
    /// Before a call that puts files at risk.
    Call {
        /// The call's number in the timeline; nothing while it is not recorded.
        call: Option<i64>,
        /// The name that the agent gives it.
        key: String,
        /// The session that it belongs to.
        session: String,
        /// Which row of the table of risks it fits.
        row: String,
        /// The call in one line, clean of secrets.
        label: String,
    },
    /// What was there before another one was restored.
    Restore {
        /// The one that was restored.
        of: SnapshotId,
    },
}

/// Something inside the scopes that a snapshot does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Where.
    pub path: PathBuf,
    /// Why.
    pub reason: GapReason,
}

/// Why something is not held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapReason {
    /// A program can make it again, and nothing in it is at risk.
    Rebuildable,
    /// The settings say that it is never taken.
    Never,
    /// It could not be read.
    Unreadable,
    /// Something else is mounted there.
    Mounted,
    /// A socket or a device: noted, but there is nothing to copy.
    Special,
    /// It changed each time it was read.
    Unstable,
}

impl GapReason {
    /// Is it left out because somebody wants it so, or because there is nothing to hold?
    pub fn is_on_purpose(self) -> bool {
        match self {
            GapReason::Rebuildable | GapReason::Never | GapReason::Special => true,
            GapReason::Unreadable | GapReason::Mounted | GapReason::Unstable => false,
        }
    }
}

/// How much of its scopes a snapshot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Everything, or all but what is left out on purpose.
    Whole,
    /// Something could not be taken.
    Partial,
}

/// A snapshot that can be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name.
    pub id: SnapshotId,
    /// When it was taken.
    pub at: SystemTime,
    /// Why.
    pub origin: Origin,
    /// What a person noted.
    pub note: String,
    /// What it covers.
    pub scopes: Vec<Scope>,
    /// What lies inside the scopes and is not held: what could not be taken first.
    pub gaps: Vec<Gap>,
    /// How many gaps there are in all, where there are too many to name.
    pub gap_count: u64,
    /// Files, links and folders.
    pub entries: u64,
    /// The sum of the sizes of its files.
    pub bytes: u64,
    /// What had to be written to keep it: what is new in it.
    pub stored: u64,
    /// It stays until somebody removes it.
    pub pinned: bool,
    /// Was the state after the protected call recorded?
    pub concluded: bool,
    /// Did that call change anything? Nothing while nobody knows.
    pub changed: Option<bool>,
    /// The snapshot that was saved when this one was undone; nothing while it is not.
    pub undone_by: Option<SnapshotId>,
}

impl Snapshot {
    /// How much of its scopes it holds.
    pub fn coverage(&self) -> Coverage {
        match self.gaps.iter().all(|gap| gap.reason.is_on_purpose()) {
            true => Coverage::Whole,
            false => Coverage::Partial,
        }
    }
}
