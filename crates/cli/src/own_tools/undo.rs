//! The tool `undo`: brings files back, and says which.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Deserialize;
use serde_json::{Value, json};
use unstuck::schemars::JsonSchema;
use unstuck::{Annotations, Failure, Tool, ToolContext};
use unstuck_judge::{Lang, quote};
use unstuck_vault::{Choice, Origin, Restored, Snapshot};

use super::schema::schema;
use super::workplace::Waiting;
use super::{LONG, Workplace, quote_paths, quoted};
use crate::commands::restore::paths_in;
use crate::commands::undo::undo_last;
use crate::exit::CommandError;
use crate::restored_page::{self, WireDifference, WireKept};
use crate::safe::{Done, Safe, Why};
use crate::undoable::Undoable;
use crate::whereabouts::{self, Here};

/// How many paths of one sort are named.
const NAMED: usize = 200;
/// The longest label of a call.
const LABEL: usize = 160;

pub(super) struct Undo(pub(super) Arc<Workplace>);

/// What is brought back.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "unstuck::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct UndoArgs {
    /// The id of a snapshot (`s41`), or a call that was protected, by its number or its id. Without it, the last call that
    /// changed files here and is not undone.
    #[serde(default)]
    #[schemars(with = "String")]
    snapshot: Option<String>,
    /// Only these files and folders.
    #[serde(default)]
    paths: Vec<PathBuf>,
    /// Only say what would be brought back.
    #[serde(default)]
    dry_run: bool,
}

/// The same in Chinese.
const IN_CHINESE: &[(&str, &str)] = &[
    ("", "恢复什么。"),
    (
        "snapshot",
        "快照的编号（`s41`），或受保护的调用，用其序号或编号。不填则为在此处更改过文件且尚未撤销的最后一次调用。",
    ),
    ("paths", "只限这些文件和文件夹。"),
    ("dry_run", "只说明会恢复什么。"),
];

impl Tool for Undo {
    type Args = UndoArgs;
    type Output = Value;

    fn name(&self) -> &str {
        "undo"
    }

    fn description(&self) -> &str {
        match self.0.lang() {
            Lang::En => {
                "Brings files back: what the last risky call changed, or exactly what a snapshot holds. What is there now is \
                 saved first, as the snapshot named in `saved`, which brings it back in turn. Undoing a call leaves alone what \
                 others changed since; bringing back a snapshot that was taken with the tool snapshot makes its files what they \
                 were, and removes what came since. Use dry_run to see it first. The answer names every path."
            }
            Lang::Zh => {
                "恢复文件：撤销上一次有风险的调用所做的更改，或恢复为快照中的内容。当前内容会先保存为 `saved` 所示的快照，可再次恢复。\
                 撤销调用时，他人之后的更改保持不变；恢复由工具 snapshot 保存的快照时，其中的文件会恢复原状，之后新增的会被移除。\
                 可先用 dry_run 查看。返回每个路径。"
            }
        }
    }

    fn schema(&self) -> Value {
        schema::<UndoArgs>(self.0.lang(), IN_CHINESE)
    }

    fn annotations(&self) -> Annotations {
        Annotations::new().destructive().blocking().timeout(LONG)
    }

    async fn call(&self, args: UndoArgs, context: ToolContext) -> Result<Value, Failure> {
        let cellar = self.0.cellar();
        let failure = |error| self.0.failure(&error);
        let safe = Safe::of(&cellar);
        let vault = safe.at_work().map_err(failure)?;
        let all = Undoable::new(vault.snapshots().map_err(CommandError::from).map_err(failure)?);
        let here = Here::walled(cellar.home()).map_err(failure)?;
        let watch = Waiting(context);
        let choice = |paths| Choice {
            paths,
            dry_run: args.dry_run,
            force: false,
            reserve: safe.reserve(),
            now: SystemTime::now(),
        };
        let asked = args.snapshot.as_deref().map(str::trim).filter(|asked| !matches!(*asked, "" | "last"));
        let (snapshot, restored) = match asked {
            None => {
                let undone = undo_last(&all, &here, |snapshot| {
                    let paths = self.paths(&here, snapshot, &args)?;
                    let choice = choice(paths_in(&vault, snapshot, &paths).map_err(failure)?);
                    vault.undo(snapshot.id, &choice, &watch).map_err(|error| failure(error.into()))
                })?;
                undone.ok_or_else(|| failure(all.no_call(&here, safe.settings.per_target, self.0.lang())))?
            }
            Some(asked) => {
                let snapshot = all.named(&cellar, asked).map_err(failure)?;
                let paths = self.paths(&here, snapshot, &args)?;
                let choice = choice(paths_in(&vault, snapshot, &paths).map_err(failure)?);
                let restored = match (&snapshot.origin, snapshot.undone_by) {
                    (Origin::Call { .. }, Some(by)) if all.is_undone(snapshot) => {
                        return Err(failure(CommandError::AlreadyUndone { id: snapshot.id, by }));
                    }
                    (Origin::Call { .. }, _) => vault.undo(snapshot.id, &choice, &watch),
                    // Whoever names what somebody saved wants exactly that.
                    (Origin::Person | Origin::Agent | Origin::Restore { .. }, _) => {
                        vault.restore(snapshot.id, &choice, &watch)
                    }
                };
                (snapshot, restored.map_err(|error| failure(error.into()))?)
            }
        };
        let why = match &snapshot.origin {
            Origin::Call { .. } => Why::Undo,
            Origin::Person | Origin::Agent | Origin::Restore { .. } => Why::Restore,
        };
        if !args.dry_run {
            safe.finish(&vault, Some(Done::Restored(snapshot, &restored, why)));
        }
        Ok(told(snapshot, &restored, why, args.dry_run, self.0.lang()))
    }
}

impl Undo {
    /// The paths that are meant, all of them within reach. Without any, all that the snapshot holds has to be.
    fn paths(&self, here: &Here, snapshot: &Snapshot, args: &UndoArgs) -> Result<Vec<PathBuf>, Failure> {
        if args.paths.is_empty() {
            self.0.must_hold_all_of(here, snapshot)?;
        }
        for path in &args.paths {
            let path = whereabouts::named(path).map_err(|error| self.0.failure(&error))?;
            self.0.must_hold(here, &path)?;
        }
        Ok(args.paths.clone())
    }
}

/// What was done, or would be.
fn told(snapshot: &Snapshot, restored: &Restored, why: Why, dry_run: bool, lang: Lang) -> Value {
    let (call, label) = match &snapshot.origin {
        Origin::Call { call, label, .. } => (*call, Some(quoted(label, LABEL))),
        Origin::Person | Origin::Agent | Origin::Restore { .. } => (None, None),
    };
    let done: Vec<WireDifference> = restored.done.iter().take(NAMED).map(WireDifference::from).collect();
    let kept: Vec<WireKept> = restored.kept.iter().take(NAMED).map(WireKept::from).collect();
    let mut told = json!({
        "snapshot": snapshot.id.to_string(),
        "call": call,
        "label": label,
        "dry_run": dry_run,
        "saved": restored.saved.map(|saved| saved.to_string()),
        "restored": done,
        "restored_count": restored.done.len(),
        "kept": kept,
        "kept_count": restored.kept.len(),
        "verified": restored.verified,
        "text": quote::block(&restored_page::in_words(restored, why, dry_run, lang)),
    });
    quote_paths(&mut told);
    told
}
