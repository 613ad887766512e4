//! Saves files before something runs, and brings them back where it came to nothing. What it does to a tree it does through the
//! safe alone, which saves the failed state first: nothing is lost either way. It never decides whether something failed.

mod error;
mod remove;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use unstuck_judge::{Call, Lang, risk};
use unstuck_store::NAME_MAX;
use unstuck_vault::{
    Choice, Gap, Origin, Rebuildable, Restored, Snapshot, SnapshotId, Vault, VaultError, Wish,
};

pub(crate) use error::ProtectError;
pub(crate) use remove::{LeftBecause, Removal};

use crate::at_risk::{self, AtRisk, at_risk};
use crate::cellar::Cellar;
use crate::exit::CommandError;
use crate::onlooker::Onlooker;
use crate::restored_page;
use crate::safe::{Done, Safe, Why};
use crate::ui::{self, Ui};
use crate::whereabouts;

/// The word that stands for what a command is known to put at risk.
const AUTO: &str = "auto";
/// The row of what is saved because somebody named it.
const BY_NAME: &str = "protect";
/// The most of a label.
const LABEL_MAX: usize = 400;

/// What is to be saved, and when it is brought back.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Protection")]
pub(crate) struct ProtectArgs {
    /// Save this first; `auto`: whatever the command is known to put at risk (may be given several times)
    #[arg(long, value_name = "PATH|auto")]
    pub(crate) protect: Vec<PathBuf>,
    /// When to bring it back [default: on-failure where a check is given, too, else never]
    #[arg(long, value_name = "WHEN", requires = "protect")]
    pub(crate) rollback: Option<Rollback>,
}

/// When what was saved is brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Rollback {
    /// After the last failure, or a check that did not hold
    OnFailure,
    /// Only by hand: `unstuck undo`
    Never,
    /// After asking whoever sits at the terminal
    Ask,
}

impl ProtectArgs {
    /// When it is brought back, where nobody may have said.
    fn when(&self, has_checks: bool) -> Rollback {
        self.rollback.unwrap_or(if has_checks { Rollback::OnFailure } else { Rollback::Never })
    }
}

/// What runs, as the safe and the timeline know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Runs<'a> {
    pub(crate) call: &'a Call,
    /// The name of its first attempt.
    pub(crate) key: &'a str,
    pub(crate) session: &'a str,
    /// It in one line.
    pub(crate) label: &'a str,
    /// Is it looked at whether a success is one?
    pub(crate) has_checks: bool,
}

/// Files that are safe, whatever happens to them now.
pub(crate) struct Protection<'a> {
    safe: Safe<'a>,
    vault: Vault,
    snapshot: Snapshot,
    rollback: Rollback,
    /// Does the timeline know of it?
    is_told: bool,
}

/// What became of what was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RolledBack {
    /// Nobody wanted it, or all went well.
    No,
    /// A person said no, or nobody sits at the terminal.
    Declined,
    /// Nothing had been changed.
    NothingChanged,
    /// It was brought back; what somebody changed since was kept, and the failed state is saved.
    Yes(Restored),
}

/// What is to be saved.
struct Scopes {
    paths: Vec<PathBuf>,
    rebuildable: Rebuildable,
    spared: Vec<PathBuf>,
    row: &'static str,
}

impl<'a> Protection<'a> {
    /// Saves what is asked for. Nothing where nobody asks, or where a known command puts nothing at risk that is there. What
    /// cannot be saved as a whole is an error: nothing must run then.
    pub(crate) fn before(
        lang: Lang,
        cellar: &'a Cellar,
        args: &ProtectArgs,
        runs: &Runs<'_>,
    ) -> Result<Option<Protection<'a>>, CommandError> {
        if args.protect.is_empty() {
            return Ok(None);
        }
        let safe = Safe::of(cellar);
        let Some(scopes) = scopes(&safe, cellar, &args.protect, runs.call)? else { return Ok(None) };
        let wish = Wish {
            scopes: scopes.paths,
            rebuildable: scopes.rebuildable,
            never: safe.never_but_also(&scopes.spared),
            origin: origin(cellar, runs, scopes.row),
            note: String::new(),
            reserve: safe.reserve(),
            now: SystemTime::now(),
        };
        let protection = Protection::take(lang, safe, &wish, args.when(runs.has_checks))?;
        protection.holding_all(|gap| !gap.reason.is_on_purpose()).map(Some)
    }

    /// Saves what a wish names.
    pub(crate) fn take(
        lang: Lang,
        safe: Safe<'a>,
        wish: &Wish,
        rollback: Rollback,
    ) -> Result<Protection<'a>, CommandError> {
        let vault = safe.open()?;
        let onlooker = Onlooker::new(lang);
        let taken = safe.take(&vault, wish, &onlooker).map_err(CommandError::from);
        onlooker.end();
        let snapshot = taken.inspect_err(|error| safe.note_failed(error))?;
        Ok(Protection { safe, vault, snapshot, rollback, is_told: false })
    }

    /// Tells the timeline of it, where the call that it is for must stand by now: then they belong together.
    pub(crate) fn tell(&mut self) {
        self.is_told = true;
        self.safe.finish(&self.vault, Some(Done::Taken(&self.snapshot)));
    }

    /// Fails where something is missing that must not be.
    pub(crate) fn holding_all(self, is_amiss: impl Fn(&Gap) -> bool) -> Result<Protection<'a>, CommandError> {
        let missing: Vec<Gap> = self.snapshot.gaps.iter().filter(|gap| is_amiss(gap)).cloned().collect();
        match missing.is_empty() {
            true => Ok(self),
            false => Err(self.given_up(ProtectError::NotAllSaved { missing })),
        }
    }

    /// Nothing is done after all. What was saved for it goes, so that no undo takes what others do meanwhile for its work.
    pub(crate) fn given_up(&self, why: ProtectError) -> CommandError {
        self.drop_snapshots(&[self.snapshot.id]);
        let why = why.into();
        if !self.is_told {
            self.safe.note_failed(&why);
        }
        why
    }

    fn drop_snapshots(&self, ids: &[SnapshotId]) {
        let removed = self.vault.remove(ids, &Onlooker::new(Lang::En));
        if let (Ok(collected), true) = (removed, self.is_told) {
            self.safe.note_removed(&collected.gone, Why::Drop);
        }
    }

    /// Puts back what was removed of it, and only that, because not all of it could be: then it was not removed at all.
    pub(crate) fn put_back(&self, gone: &[PathBuf], why: ProtectError) -> CommandError {
        if gone.is_empty() {
            return self.given_up(why);
        }
        let choice = Choice { paths: gone.to_vec(), ..self.everything() };
        match self.vault.restore(self.snapshot.id, &choice, &Onlooker::new(Lang::En)) {
            Ok(restored) if restored.kept.is_empty() => {
                let saved = restored.saved.into_iter().chain([self.snapshot.id]);
                self.drop_snapshots(&saved.collect::<Vec<_>>());
                why.into()
            }
            Ok(_) => ProtectError::NotPutBack { id: self.snapshot.id }.into(),
            Err(error) => error.into(),
        }
    }

    pub(crate) fn id(&self) -> SnapshotId {
        self.snapshot.id
    }

    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Everything is over, the checks too: records how things were left, and brings back what was there before where that is
    /// wanted. What is said goes to standard error.
    pub(crate) fn settle(&mut self, ui: &mut Ui, has_failed: bool) -> Result<RolledBack, CommandError> {
        self.conclude(ui.lang())?;
        if !has_failed {
            return Ok(RolledBack::No);
        }
        if self.snapshot.changed == Some(false) {
            return Ok(RolledBack::NothingChanged);
        }
        match self.rollback {
            Rollback::Never => {
                ui.remark(&self.by_hand(ui.lang()))?;
                Ok(RolledBack::No)
            }
            Rollback::Ask if !self.is_wanted(ui)? => {
                ui.remark(&self.by_hand(ui.lang()))?;
                Ok(RolledBack::Declined)
            }
            Rollback::OnFailure | Rollback::Ask => {
                let restored = self.roll_back(ui.lang())?;
                ui.remark(&restored_page::in_words(&restored, Why::Undo, false, ui.lang()))?;
                Ok(RolledBack::Yes(restored))
            }
        }
    }

    /// Records how things were left, so that what others change from now on is told apart from it.
    pub(crate) fn conclude(&mut self, lang: Lang) -> Result<(), CommandError> {
        let _only_the_onlooker_hears = signals_are_heard();
        let onlooker = Onlooker::new(lang);
        let (now, reserve) = (SystemTime::now(), self.safe.reserve());
        let concluded = self.vault.conclude(self.snapshot.id, now, reserve, &onlooker);
        onlooker.end();
        self.snapshot = concluded?;
        self.safe.expire(&self.vault);
        Ok(())
    }

    /// Brings back what was there before, and nothing that anybody changed since. The failed state is saved first.
    pub(crate) fn roll_back(&self, lang: Lang) -> Result<Restored, CommandError> {
        let _only_the_onlooker_hears = signals_are_heard();
        let onlooker = Onlooker::new(lang);
        let restored = self.vault.undo(self.snapshot.id, &self.everything(), &onlooker);
        onlooker.end();
        let restored = restored?;
        self.safe.finish(&self.vault, Some(Done::Restored(&self.snapshot, &restored, Why::Undo)));
        Ok(restored)
    }

    fn everything(&self) -> Choice {
        let (reserve, now) = (self.safe.reserve(), SystemTime::now());
        Choice { paths: Vec::new(), dry_run: false, force: false, reserve, now }
    }

    /// Asks whoever sits at the terminal; nobody there is a no.
    fn is_wanted(&self, ui: &mut Ui) -> Result<bool, CommandError> {
        if !ui::input_is_terminal() {
            return Ok(false);
        }
        ui.remark(match ui.lang() {
            Lang::En => "it failed: bring back what was there before? [y/N] ",
            Lang::Zh => "运行失败：恢复之前的内容吗？[y/N] ",
        })?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).map_err(CommandError::Input)?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    /// How a person takes it back. Where nobody knows how things were left, that has to be wanted whatever was changed since.
    pub(crate) fn by_hand(&self, lang: Lang) -> String {
        let id = self.snapshot.id;
        let anyway = if self.snapshot.concluded { "" } else { " --force" };
        match lang {
            Lang::En => {
                format!("what it changed is still there; take it back: `unstuck undo {id}{anyway}`\n")
            }
            Lang::Zh => format!("它所做的改动仍在；撤销：`unstuck undo {id}{anyway}`\n"),
        }
    }
}

/// While it is there, Ctrl-C is for the onlooker, who lets the safe leave everything whole: after a command has run, it would
/// end us at once.
fn signals_are_heard() -> io::Result<unstuck_exec::Watch> {
    unstuck_exec::Watch::start()
}

/// A snapshot that belongs to a call, so that an undo finds it.
pub(crate) fn origin(cellar: &Cellar, runs: &Runs<'_>, row: &str) -> Origin {
    let cleaner = cellar.cleaner();
    // As they stand in the timeline.
    let [key, session] = [runs.key, runs.session].map(|name| cleaner.name(name, NAME_MAX).to_string());
    Origin::Call {
        call: None,
        key,
        session,
        row: row.to_owned(),
        label: cleaner.line(runs.label, LABEL_MAX).to_string(),
    }
}

/// What the words on the command line stand for. What is not there yet may be named: it goes again when it is brought back.
fn scopes(
    safe: &Safe<'_>,
    cellar: &Cellar,
    wanted: &[PathBuf],
    call: &Call,
) -> Result<Option<Scopes>, CommandError> {
    let is_auto = |path: &&PathBuf| path.as_path() == Path::new(AUTO);
    let mut named = Vec::new();
    for path in wanted.iter().filter(|path| !is_auto(path)) {
        let path = whereabouts::named(path)?;
        if at_risk::is_wide(&path, cellar.home()) {
            return Err(VaultError::TooWide { path }.into());
        }
        named.push(path);
    }
    let known = wanted.iter().find(is_auto).and_then(|_| risk::of(call));
    let found = match &known {
        Some(risk) => at_risk(risk, &whereabouts::folder()?, cellar.home(), safe.around()),
        None => AtRisk::Nothing,
    };
    let mut scopes = match found {
        AtRisk::Nothing => {
            Scopes { paths: Vec::new(), rebuildable: Rebuildable::LeftOut, spared: Vec::new(), row: BY_NAME }
        }
        AtRisk::Scopes { paths, rebuildable, spared } => {
            Scopes { paths, rebuildable, spared, row: known.as_ref().map_or(BY_NAME, risk::Risk::row) }
        }
        AtRisk::TooWide { path } => return Err(VaultError::TooWide { path }.into()),
        AtRisk::OurOwn { path } => return Err(CommandError::OurOwn { path }),
    };
    // What somebody names is not spared.
    scopes.spared.retain(|spared| !named.iter().any(|path| spared.starts_with(path)));
    scopes.paths.append(&mut named);
    scopes.paths.sort();
    scopes.paths.dedup();
    Ok((!scopes.paths.is_empty()).then_some(scopes))
}
