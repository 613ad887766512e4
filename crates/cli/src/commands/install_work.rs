//! What all that is installed and uninstalled has in common: the ledger is held meanwhile, what was written is looked at once
//! more, and what came of it is told.

use std::thread;
use std::time::Duration;

use crate::agents::{Direction, Note, OwnProgram, Scope, Tells, Told, Tools};
use crate::cellar::{self, Cellar};
use crate::editing::{Backups, Book, EditError, Ledger};
use crate::exit::{CommandError, ExitStatus};
use crate::ui::Ui;

/// A running agent may write back what it holds in memory; by then it has.
const SETTLE: Duration = Duration::from_secs(1);

/// For whom something is installed, and whether it is only shown.
#[derive(clap::Args)]
pub(super) struct ForWhom {
    /// For you, in every project (the default)
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// For this project only
    #[arg(long)]
    project: bool,
    /// Show the change as a unified diff, and make none
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl ForWhom {
    pub(super) fn scope(&self) -> Scope {
        Scope::asked(self.user, self.project).unwrap_or(Scope::User)
    }
}

/// The ledger, held for as long as something is done.
pub(super) struct Work {
    pub(super) ledger: Ledger,
    backups: Backups,
    pub(super) dry_run: bool,
}

impl Work {
    pub(super) fn begin(cellar: &Cellar, book: Book, dry_run: bool) -> Result<Work, CommandError> {
        let state = cellar.folder()?;
        let ledger = match dry_run {
            true => Ledger::read(state, book)?,
            false => Ledger::lock(state, book)?,
        };
        Ok(Work { ledger, backups: Backups::in_folder(state), dry_run })
    }

    pub(super) fn tools(&mut self) -> Tools<'_> {
        Tools { ledger: &mut self.ledger, backups: &self.backups, now: cellar::now(), dry_run: self.dry_run }
    }

    /// Waits a second and looks again: a running agent may have written its old copy over ours. Then it is done once more, and
    /// looked at once more.
    pub(super) fn settle<C: Tells>(&mut self, told: &mut [Told<C>], direction: Direction) {
        if self.dry_run {
            return;
        }
        let mut open: Vec<&mut Told<C>> = told.iter_mut().filter(|told| told.has_changed()).collect();
        for is_last in [false, true] {
            if open.is_empty() {
                return;
            }
            thread::sleep(SETTLE);
            let mut overwritten = Vec::new();
            for told in open {
                let file = told.change.file().to_owned();
                match told.change.stands(direction, &self.ledger) {
                    Ok(true) => {}
                    Ok(false) if is_last => told.became = Err(EditError::WrittenBack { path: file }),
                    Ok(false) => match told.change.make(direction, &mut self.tools()) {
                        Ok(_) => {
                            told.notes.push(Note::WroteAgain { file });
                            overwritten.push(told);
                        }
                        Err(error) => told.became = Err(error),
                    },
                    Err(error) => told.became = Err(error),
                }
            }
            open = overwritten;
        }
    }
}

/// Our own program, and its path as it is written into settings.
pub(super) fn own_program() -> Result<(OwnProgram, String), CommandError> {
    let own = OwnProgram::here().map_err(CommandError::NoProgram)?;
    match own.path.to_str().map(str::to_owned) {
        Some(program) => Ok((own, program)),
        None => Err(CommandError::OddPath { path: own.path }),
    }
}

/// Notes why our own program may not be there for long. A program reads each line by itself; a person reads them all, and need be
/// told once.
pub(super) fn add_doubt<C: Tells>(told: &mut [Told<C>], own: &OwnProgram, json: bool) {
    let told_once = if json { 0 } else { told.len().saturating_sub(1) };
    for told in &mut told[told_once..] {
        told.notes.extend(own.doubt());
    }
}

/// Tells what came of it all. Where nothing failed, the answer is no if it is that of any.
pub(super) fn tell<C: Tells>(
    ui: &mut Ui,
    told: &[Told<C>],
    json: bool,
    is_no: impl Fn(&Told<C>) -> bool,
) -> Result<ExitStatus, CommandError> {
    let lang = ui.lang();
    for told in told {
        match (json, told.dry_run || told.has_failed()) {
            (true, _) => ui.json(&told.to_wire())?,
            (false, false) => ui.say(&told.in_words(lang))?,
            // Standard output is for the diff alone, so that it can be kept or applied.
            (false, true) => {
                ui.say(told.diff())?;
                ui.remark(&told.in_words(lang))?;
            }
        }
    }
    Ok(match told.iter().any(Told::has_failed) {
        true => ExitStatus::Failed,
        false if told.iter().any(is_no) => ExitStatus::No,
        false => ExitStatus::Success,
    })
}
