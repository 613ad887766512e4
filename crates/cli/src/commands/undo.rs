//! `unstuck undo`: takes back what a protected call changed, and nothing that anybody changed since.

use std::time::SystemTime;

use unstuck_vault::{Choice, Origin, Restored, Snapshot, VaultError};

use crate::cellar::Cellar;
use crate::exit::{CommandError, ExitStatus};
use crate::onlooker::Onlooker;
use crate::restored_page;
use crate::safe::{Done, Safe, Why};
use crate::ui::Ui;
use crate::undoable::Undoable;
use crate::whereabouts::Here;

/// Take back what an agent's call changed
///
/// Without CALL, the newest call in or around the project here that changed something and is not undone. What a person, an
/// editor or another agent changed since is kept, and named. What is there now is saved first: `unstuck redo` takes it back.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck undo                    the last thing an agent did to files here
  unstuck undo --dry-run          what that would bring back
  unstuck undo 12                 the call that `unstuck log` shows as #12
  unstuck undo toolu_01AbC        the same by the name that the agent's program gives it
  unstuck undo s41 --force        a snapshot, also over what was changed since")]
pub(crate) struct UndoArgs {
    /// A call, a snapshot, or `last`
    #[arg(value_name = "CALL|last|ID", default_value = "last")]
    what: String,
    /// Also bring back what somebody changed since
    #[arg(long)]
    force: bool,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &UndoArgs) -> Result<ExitStatus, CommandError> {
    let safe = Safe::of(cellar);
    let vault = safe.at_work()?;
    let all = Undoable::new(vault.snapshots()?);
    let choice = Choice {
        paths: Vec::new(),
        dry_run: args.dry_run,
        force: args.force,
        reserve: safe.reserve(),
        now: SystemTime::now(),
    };
    let onlooker = Onlooker::new(ui.lang());
    let undo = |snapshot: &Snapshot| match vault.undo(snapshot.id, &choice, &onlooker) {
        // Whoever wants it whatever was changed since need not know how the call left things.
        Err(VaultError::NotConcluded { .. }) if args.force => vault.restore(snapshot.id, &choice, &onlooker),
        restored => restored,
    };
    let (snapshot, restored) = match args.what.trim() {
        // `latest` is how the other commands name the newest.
        "last" | "latest" => {
            let here = Here::new(cellar.home())?;
            let last = undo_last(&all, &here, |snapshot| undo(snapshot).map_err(CommandError::from))?;
            last.ok_or_else(|| all.no_call(&here, safe.settings.per_target, ui.lang()))?
        }
        asked => {
            let snapshot = all.named(cellar, asked)?;
            if let (Some(by), true, false) = (snapshot.undone_by, all.is_undone(snapshot), args.force) {
                return Err(CommandError::AlreadyUndone { id: snapshot.id, by });
            }
            if matches!(snapshot.origin, Origin::Person | Origin::Agent) && !args.force {
                return Err(CommandError::NoCallBehind { id: snapshot.id });
            }
            (snapshot, undo(snapshot)?)
        }
    };
    onlooker.end();
    if !args.dry_run {
        safe.finish(&vault, Some(Done::Restored(snapshot, &restored, Why::Undo)));
    }
    restored_page::tell(ui, snapshot, &restored, Why::Undo, args.dry_run, args.json)
}

/// Undoes the newest call here that changed something; nothing where there is none.
pub(crate) fn undo_last<'s, E>(
    all: &'s Undoable,
    here: &Here,
    undo: impl Fn(&Snapshot) -> Result<Restored, E>,
) -> Result<Option<(&'s Snapshot, Restored)>, E> {
    for snapshot in all.last_calls(here) {
        let restored = undo(snapshot)?;
        // A call may have left everything as it was, although it looked otherwise.
        if !restored.done.is_empty() || !restored.kept.is_empty() {
            return Ok(Some((snapshot, restored)));
        }
    }
    Ok(None)
}
