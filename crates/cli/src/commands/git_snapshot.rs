//! `unstuck git-snapshot`: saves a repository before something is done to it.

use std::path::PathBuf;

use crate::at_risk::{self, git::Repository};
use crate::cellar::Cellar;
use crate::commands::snapshot::{self, Saving};
use crate::exit::{CommandError, ExitStatus};
use crate::protect::ProtectError;
use crate::ui::Ui;
use crate::whereabouts;

/// Save a git repository before a risky operation: what git keeps, and the uncommitted work
///
/// Commits, refs, reflogs, the stash and the index are saved with the whole work tree, ignored and untracked files too. Of a
/// linked work tree and of a submodule, what git keeps of it elsewhere is saved as well. Git is not run, and nothing of it is
/// touched. The id is printed on standard output.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck git-snapshot                              the repository here
  id=$(unstuck git-snapshot ~/app) && git -C ~/app rebase main || unstuck restore $id")]
pub(crate) struct GitSnapshotArgs {
    /// A folder in the repository [default: the working folder]
    #[arg(value_name = "REPO")]
    repository: Option<PathBuf>,
    /// Keep it until somebody removes it
    #[arg(long)]
    pin: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &GitSnapshotArgs) -> Result<ExitStatus, CommandError> {
    let folder = match &args.repository {
        Some(path) => whereabouts::folder()?.join(path),
        None => whereabouts::folder()?,
    };
    if !folder.exists() {
        return Err(CommandError::NoSuchPath { path: folder });
    }
    let repository = Repository::around(&folder).ok_or(ProtectError::NoRepository { path: folder })?;
    let scopes: Vec<PathBuf> = repository.all().cloned().collect();
    if let Some(path) = scopes.iter().find(|path| at_risk::is_wide(path, cellar.home())) {
        return Err(unstuck_vault::VaultError::TooWide { path: path.clone() }.into());
    }
    let note = format!("git-snapshot {}", repository.top().display());
    snapshot::save(
        ui,
        cellar,
        scopes,
        &Saving { note: &note, origin: snapshot::by_hand(), all: false, pin: args.pin, json: args.json },
    )
}
