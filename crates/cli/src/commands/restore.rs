//! `unstuck restore`: makes files what a snapshot holds.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use unstuck_vault::{Choice, Snapshot, Vault};

use crate::cellar::Cellar;
use crate::exit::{CommandError, ExitStatus};
use crate::onlooker::Onlooker;
use crate::restored_page;
use crate::safe::{Done, Safe, Why};
use crate::snapshot_page::{Named, parse_named};
use crate::ui::Ui;
use crate::whereabouts::{self, touch};

/// Make files exactly what a snapshot holds
///
/// What differs is written, what came since is removed, what went is made again: content, mode, owner, times, links. The
/// present is saved first, so that `unstuck redo` takes it back. Afterwards everything that was written is read again and
/// compared. To take back a single call and leave alone what others changed since, use `unstuck undo`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck restore s41 --dry-run       what would be written and removed
  unstuck restore s41                 all of it
  unstuck restore latest src/main.rs  one file from the newest snapshot
  unstuck redo                        take the restore back")]
pub(crate) struct RestoreArgs {
    /// s41, 41 or latest
    #[arg(value_name = "ID", value_parser = parse_named)]
    id: Named,
    /// Only these files and folders
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &RestoreArgs) -> Result<ExitStatus, CommandError> {
    let safe = Safe::of(cellar);
    let vault = safe.at_work()?;
    let snapshot = args.id.find(&vault)?;
    let choice = Choice {
        paths: paths_in(&vault, &snapshot, &args.paths)?,
        dry_run: args.dry_run,
        force: true,
        reserve: safe.reserve(),
        now: SystemTime::now(),
    };
    let onlooker = Onlooker::new(ui.lang());
    let restored = vault.restore(snapshot.id, &choice, &onlooker)?;
    onlooker.end();
    if !args.dry_run {
        safe.finish(&vault, Some(Done::Restored(&snapshot, &restored, Why::Restore)));
    }
    restored_page::tell(ui, &snapshot, &restored, Why::Restore, args.dry_run, args.json)
}

/// The paths that are meant. The snapshot must cover each of them at least in part, and something must be there, then or now.
pub(crate) fn paths_in(
    vault: &Vault,
    snapshot: &Snapshot,
    paths: &[PathBuf],
) -> Result<Vec<PathBuf>, CommandError> {
    let mut meant = Vec::new();
    for path in paths {
        let path = whereabouts::named(path)?;
        if !snapshot.scopes.iter().any(|scope| touch(&scope.path, &path)) {
            return Err(CommandError::NotInSnapshot { id: snapshot.id, path });
        }
        let is_gone = fs::symlink_metadata(&path).is_err();
        if is_gone && vault.held(snapshot.id, Some(&path))?.is_empty() {
            return Err(CommandError::NeitherThenNorNow { id: snapshot.id, path });
        }
        meant.push(path);
    }
    Ok(meant)
}
