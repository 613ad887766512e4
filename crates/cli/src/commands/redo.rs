//! `unstuck redo`: takes back the last undo or restore.

use std::time::SystemTime;

use unstuck_vault::Choice;

use crate::cellar::Cellar;
use crate::exit::{CommandError, ExitStatus};
use crate::onlooker::Onlooker;
use crate::restored_page;
use crate::safe::{Done, Safe, Why};
use crate::ui::Ui;
use crate::undoable::Undoable;
use crate::whereabouts::Here;

/// Take back the last undo or restore here
///
/// What somebody changed since is kept, and named. Several undos are taken back one after the other, the last one first.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck redo                    what was there before the last undo or restore
  unstuck redo --dry-run          what that would change")]
pub(crate) struct RedoArgs {
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

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &RedoArgs) -> Result<ExitStatus, CommandError> {
    let safe = Safe::of(cellar);
    let vault = safe.at_work()?;
    let all = Undoable::new(vault.snapshots()?);
    let snapshot = all.last_undo(&Here::new(cellar.home())?)?;
    let choice = Choice {
        paths: Vec::new(),
        dry_run: args.dry_run,
        force: args.force,
        reserve: safe.reserve(),
        now: SystemTime::now(),
    };
    let onlooker = Onlooker::new(ui.lang());
    let restored = vault.undo(snapshot.id, &choice, &onlooker)?;
    onlooker.end();
    if !args.dry_run {
        safe.finish(&vault, Some(Done::Restored(snapshot, &restored, Why::Redo)));
    }
    restored_page::tell(ui, snapshot, &restored, Why::Redo, args.dry_run, args.json)
}
