//! The safe: what a tool is about to change or remove is saved there first, and comes back exactly as it was.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;
use unstuck_vault::{
    Choice, Gap, Origin, Progress, Rebuildable, Reserve, Restored, Retention, SnapshotId, Unwatched, Vault,
    VaultError, Watch, Wish,
};

use super::ground::{Ground, failed};
use crate::call::{CallId, CallInfo};
use crate::failure::Failure;

/// How much it may hold, where nobody says.
const MAX_SIZE: u64 = 10 << 30;
/// What stays free on its disk.
const MIN_FREE: u64 = 256 << 20;
/// How many snapshots of one thing are kept, and how long.
const PER_TARGET: usize = 50;
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3_600);

/// A folder in which files are saved before a tool changes or removes them.
///
/// A result of a tool that is protected by it carries the name of what was saved as `snapshot`.
///
/// ```no_run
/// use serde_json::json;
/// use unstuck::tools::{Files, Safe};
/// use unstuck::{ToolCall, Toolbox};
///
/// # async fn show() -> Result<(), Box<dyn std::error::Error>> {
/// let safe = Safe::at("/var/lib/agent/safe");
/// let tools = Toolbox::builder().tool(Files::in_folder("project").protected_by(&safe).write()).build()?;
/// let result = tools.call(ToolCall::new("fs_write", json!({ "path": "notes.txt", "content": "" }))).await;
/// if let Some(snapshot) = result.output()["snapshot"].as_str() {
///     safe.undo(snapshot)?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// It holds the exact bytes of files, secrets included, and only their owner may read it. Let it lie outside of the folders
/// that tools work in. Snapshots go after 30 days, when there are more than 50 of the same, or when there is no room left.
#[derive(Debug, Clone)]
pub struct Safe {
    folder: Arc<Path>,
    max_size: u64,
    vault: Arc<OnceLock<Vault>>,
}

/// Why nothing could be brought back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SafeError {
    /// This is not how a snapshot is called.
    #[error("`{given}` is no name of a snapshot: they are called s1, s2 and so on")]
    NoName {
        /// What was given.
        given: String,
    },
    /// The safe says no. Nothing of the user's is half done.
    #[error("the safe could not do it")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

/// What was brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undone {
    /// What is again as it was before the call.
    pub restored: Vec<PathBuf>,
    /// What was left as it is: somebody changed it after the call, or it may not be written.
    pub kept: Vec<PathBuf>,
}

impl Safe {
    /// The safe in a folder. It is made when something is saved for the first time.
    pub fn at(folder: impl Into<PathBuf>) -> Safe {
        Safe { folder: folder.into().into(), max_size: MAX_SIZE, vault: Arc::default() }
    }

    /// The most that it may hold, in bytes. What does not fit is not saved, and then not changed either.
    #[must_use]
    pub fn max_size(self, bytes: u64) -> Safe {
        Safe { max_size: bytes, ..self }
    }

    /// Takes back what the call behind a snapshot changed, and nothing that anybody changed since.
    ///
    /// # Errors
    /// Where there is no such snapshot, or nobody knows how its call left things because the program ended in the middle of it:
    /// then [`Safe::restore`] brings back all that was saved.
    pub fn undo(&self, snapshot: &str) -> Result<Undone, SafeError> {
        self.bring_back(snapshot, |vault, id, choice| vault.undo(id, choice, &Unwatched))
    }

    /// Makes everything as it was when the snapshot was taken, whoever changed it since.
    ///
    /// # Errors
    /// Where there is no such snapshot, or the disk has no room to save the present first.
    pub fn restore(&self, snapshot: &str) -> Result<Undone, SafeError> {
        self.bring_back(snapshot, |vault, id, choice| vault.restore(id, choice, &Unwatched))
    }

    /// The snapshot that was taken for a call, also for one that never told: because it was given up, or the program ended.
    ///
    /// # Errors
    /// Where the safe cannot be read.
    pub fn snapshot_of(&self, call: &CallId) -> Result<Option<String>, SafeError> {
        let is_its = |origin: &Origin| matches!(origin, Origin::Call { key, .. } if key == call.as_str());
        let all =
            self.open().and_then(Vault::snapshots).map_err(|error| SafeError::Failed(Box::new(error)))?;
        Ok(all.iter().rev().find(|snapshot| is_its(&snapshot.origin)).map(|snapshot| snapshot.id.to_string()))
    }

    fn bring_back(
        &self,
        snapshot: &str,
        deed: impl FnOnce(&Vault, SnapshotId, &Choice) -> Result<Restored, VaultError>,
    ) -> Result<Undone, SafeError> {
        let id = snapshot.parse().map_err(|()| SafeError::NoName { given: snapshot.to_owned() })?;
        let choice = Choice {
            paths: Vec::new(),
            dry_run: false,
            force: false,
            reserve: self.reserve(),
            now: SystemTime::now(),
        };
        let done = self.open().and_then(|vault| deed(vault, id, &choice));
        let Restored { done, kept, .. } = done.map_err(|error| SafeError::Failed(Box::new(error)))?;
        let restored = done.into_iter().map(|difference| difference.path).collect();
        Ok(Undone { restored, kept: kept.into_iter().map(|kept| kept.path).collect() })
    }

    fn open(&self) -> Result<&Vault, VaultError> {
        if let Some(vault) = self.vault.get() {
            return Ok(vault);
        }
        let vault = Vault::open(&self.folder)?;
        Ok(self.vault.get_or_init(|| vault))
    }

    fn reserve(&self) -> Reserve {
        Reserve { max_size: self.max_size, min_free: MIN_FREE }
    }

    /// Saves what lies at some real places, absolute paths. When it returns, it is on the disk.
    pub(super) fn save(
        &self,
        scopes: Vec<PathBuf>,
        rebuildable: Rebuildable,
        call: &CallInfo,
        (row, label): (&str, String),
        cancellation: &CancellationToken,
    ) -> Result<Saved, Failure> {
        let wish = Wish {
            scopes,
            rebuildable,
            never: Vec::new(),
            origin: Origin::Call {
                call: None,
                key: call.id().as_str().to_owned(),
                session: call.session().as_str().to_owned(),
                row: row.to_owned(),
                label,
            },
            note: String::new(),
            reserve: self.reserve(),
            now: SystemTime::now(),
        };
        let watch = Waiting(cancellation);
        let taken = self.open().and_then(|vault| match vault.take(&wish, &watch) {
            Err(full @ (VaultError::OverBudget { .. } | VaultError::DiskFull { .. })) => {
                vault.collect(&self.making_room_for(full)?, wish.now, &watch)?;
                vault.take(&wish, &watch)
            }
            taken => taken,
        });
        let snapshot = taken.map_err(|error| not_saved(&chain(&error)))?;
        let gaps = snapshot.gaps.into_iter().filter(|gap| !gap.reason.is_on_purpose()).collect();
        Ok(Saved { safe: self.clone(), id: snapshot.id, gaps })
    }

    /// What is left of it when old snapshots go for one that does not fit. For one that would not fit into an empty safe, none goes.
    fn making_room_for(&self, full: VaultError) -> Result<Retention, VaultError> {
        let needed = if let VaultError::OverBudget { needed, .. } = full { needed } else { 0 };
        let max_size = self.max_size.checked_sub(needed).ok_or(full)?;
        Ok(Retention { max_size, ..self.retention() })
    }

    fn retention(&self) -> Retention {
        Retention { per_target: PER_TARGET, max_age: MAX_AGE, max_size: self.max_size, spare_persons: false }
    }
}

/// Something that was saved for a call that is on its way.
#[derive(Debug)]
pub(super) struct Saved {
    safe: Safe,
    id: SnapshotId,
    /// What could not be saved.
    pub(super) gaps: Vec<Gap>,
}

impl Saved {
    /// The call is done: how it left things is noted, so that an undo takes back nothing else. Gives the name of the snapshot.
    pub(super) fn conclude(self) -> String {
        if let Ok(vault) = self.safe.open() {
            let now = SystemTime::now();
            // Without it there is still `restore`.
            let _as_far_as_possible = vault.conclude(self.id, now, self.safe.reserve(), &Unwatched);
            let _another_time = vault.expire(&self.safe.retention(), now);
        }
        self.id.to_string()
    }

    /// The call was not made after all.
    fn drop_it(self) {
        if let Ok(vault) = self.safe.open() {
            let _it_expires_otherwise = vault.remove(&[self.id], &Unwatched);
        }
    }
}

/// Saves one file, where there is a safe. Nothing may be missing of it.
pub(super) fn save_file(
    safe: Option<&Safe>,
    ground: &Ground,
    way: &Path,
    call: &CallInfo,
    row: &str,
    cancellation: &CancellationToken,
) -> Result<Option<Saved>, Failure> {
    let Some(safe) = safe else { return Ok(None) };
    let place = ground.real_place(way).map_err(|error| failed("save", way, &error))?;
    let label = format!("{} {}", call.tool(), way.display());
    let saved = safe.save(vec![place], Rebuildable::Taken, call, (row, label), cancellation)?;
    match saved.gaps.is_empty() {
        true => Ok(Some(saved)),
        false => {
            saved.drop_it();
            Err(not_saved(&format!("`{}` could not be read", way.display())))
        }
    }
}

/// Ends what [`save_file`] began: with what was done noted, or without a trace where nothing was.
pub(super) fn concluded(saved: Option<Saved>, done: Result<(), Failure>) -> Result<Option<String>, Failure> {
    match (saved, done) {
        (saved, Ok(())) => Ok(saved.map(Saved::conclude)),
        (saved, Err(failure)) => {
            saved.into_iter().for_each(Saved::drop_it);
            Err(failure)
        }
    }
}

/// Fails where a path leads into the safe: no safe can save itself.
pub(super) fn keep_out(safe: Option<&Safe>, ground: &Ground, way: &Path) -> Result<(), Failure> {
    let Some(own) = safe.and_then(|safe| safe.folder.canonicalize().ok()) else { return Ok(()) };
    match ground.real_place(way) {
        Ok(place) if place.starts_with(&own) => Err(Failure::expected(format!(
            "permission denied: `{}` lies in the safe, which is not changed by hand",
            way.display()
        ))
        .in_chinese(format!("权限不足：`{}` 位于保险库中，不能手动修改", way.display()))),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Nothing was done, because it could not be saved first.
pub(super) fn not_saved(why: &str) -> Failure {
    Failure::expected(format!("not done, because what it would change could not be saved first: {why}"))
        .in_chinese(format!("没有执行，因为它要改动的内容无法事先保存：{why}"))
}

/// An error with all its causes.
fn chain(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

/// Whoever saves goes on as long as somebody waits.
struct Waiting<'a>(&'a CancellationToken);

impl Watch for Waiting<'_> {
    fn goes_on(&self, _progress: Progress) -> bool {
        !self.0.is_cancelled()
    }
}
