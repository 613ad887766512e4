//! The way down to the safe: which folder, within what bounds, and the word in the timeline of what was done there. What is in
//! it is the safe's own business.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use glob::Pattern;
use unstuck_judge::Lang;
use unstuck_store::{Entry, SafeCall, SafeDeed, SafeNote};
use unstuck_vault::{
    Cause, Collected, Coverage, Gone, Origin, Reserve, Restored, Retention, Snapshot, SnapshotId, Vault,
    VaultError, Watch, Wish,
};
use unstuck_wire::clean::{Clean, Cleaner};

use crate::cellar::{self, Cellar};
use crate::exit::CommandError;
use crate::settings::{Key, Layer, Settings, VaultSettings};
use crate::{moment, person, removed, snapshot_page};

/// The folder of the safe, within the one of the store.
const FOLDER: &str = "vault";
/// The most that is kept of a line in the timeline.
const LINE_MAX: usize = 400;

/// The safe as the settings describe it. Nothing is opened before it is needed.
pub(crate) struct Safe<'a> {
    cellar: &'a Cellar,
    pub(crate) settings: VaultSettings,
}

/// Why something was done in the safe, in the word that the timeline has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Restore,
    Undo,
    Redo,
    Drop,
    Expired,
    Purge,
}

impl Why {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Why::Restore => "restore",
            Why::Undo => "undo",
            Why::Redo => "redo",
            Why::Drop => "drop",
            Why::Expired => "expired",
            Why::Purge => "purge",
        }
    }
}

/// What is to be seen of the safe at a glance.
pub(crate) struct SafeSeen {
    pub(crate) snapshots: u64,
    pub(crate) bytes: u64,
    /// When the oldest was taken, in milliseconds since 1970.
    pub(crate) oldest: Option<u64>,
    /// What is wrong with it, in lines.
    pub(crate) amiss: String,
}

impl SafeSeen {
    pub(crate) fn in_words(&self, now: u64, lang: Lang) -> String {
        let size = removed::size(self.bytes);
        let oldest = self.oldest.map(|at| moment::ago(at, now, lang));
        match (oldest, lang) {
            (None, Lang::En) => format!("no snapshots ({size})"),
            (None, Lang::Zh) => format!("没有快照（{size}）"),
            (Some(oldest), Lang::En) => {
                let count = removed::counted(self.snapshots, ["snapshot", "snapshots"]);
                format!("{count} ({size}), the oldest {oldest}")
            }
            (Some(oldest), Lang::Zh) => format!("{} 个快照（{size}），最早 {oldest}", self.snapshots),
        }
    }
}

impl<'a> Safe<'a> {
    pub(crate) fn of(cellar: &'a Cellar) -> Safe<'a> {
        Safe { cellar, settings: cellar.settings.vault() }
    }

    /// Where it lies.
    pub(crate) fn folder(&self) -> Result<PathBuf, CommandError> {
        Ok(self.cellar.folder()?.join(FOLDER))
    }

    /// The folder in which it lies, with all else that we keep.
    pub(crate) fn around(&self) -> Option<&Path> {
        self.cellar.folder().ok()
    }

    /// Opens it, and makes it where it is not there.
    pub(crate) fn open(&self) -> Result<Vault, CommandError> {
        Ok(Vault::open(&self.cellar.make_folder()?.join(FOLDER))?)
    }

    /// Opens it for those who need what is in it: nothing is made where nothing is.
    pub(crate) fn existing(&self) -> Result<Vault, CommandError> {
        Ok(Vault::existing(&self.folder()?)?)
    }

    /// The same for those who get along without: nothing where no snapshot has been taken yet.
    pub(crate) fn if_there(&self) -> Result<Option<Vault>, CommandError> {
        match self.existing() {
            Err(CommandError::Vault(VaultError::Missing { .. })) => Ok(None),
            vault => vault.map(Some),
        }
    }

    /// Opens it to change something: a restore that was interrupted is finished or undone first. Nothing is made where nothing is.
    pub(crate) fn at_work(&self) -> Result<Vault, CommandError> {
        self.existing()?;
        self.open()
    }

    /// What may be used of the disk.
    pub(crate) fn reserve(&self) -> Reserve {
        Reserve { max_size: self.settings.max_size, min_free: self.settings.min_free }
    }

    /// How long snapshots are kept: for an agent no shorter than is built in, whatever the settings say that it started us with.
    pub(crate) fn retention(&self) -> Retention {
        let VaultSettings { per_target, max_age, max_size, .. } = self.settings;
        if !person::is_an_agent() {
            return Retention { per_target, max_age, max_size, spare_persons: false };
        }
        let least = Settings::built_in().vault();
        Retention {
            per_target: per_target.max(least.per_target),
            max_age: max_age.max(least.max_age),
            max_size: max_size.max(least.max_size),
            spare_persons: true,
        }
    }

    /// What is in it, where there is one.
    pub(crate) fn seen(&self, lang: Lang) -> Result<Option<SafeSeen>, CommandError> {
        let Some(vault) = self.if_there()? else { return Ok(None) };
        let snapshots = vault.snapshots()?;
        let oldest = snapshots.first().map(|oldest| snapshot_page::millis(oldest.at));
        let amiss = snapshot_page::amiss(&vault, lang)?;
        Ok(Some(SafeSeen { snapshots: snapshots.len() as u64, bytes: vault.size()?, oldest, amiss }))
    }

    /// Patterns of paths that are never taken: what the settings name, and all that is ours. A database that is in use must not
    /// be put back under those who use it.
    pub(crate) fn never(&self) -> Vec<String> {
        // Whoever walks through folders sees real places.
        let own = self.cellar.folder().ok();
        let own = own.map(|folder| fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned()));
        self.settings.never.iter().cloned().chain(own.and_then(|folder| pattern_of(&folder))).collect()
    }

    /// The same, and what a call spares.
    pub(crate) fn never_but_also(&self, spared: &[PathBuf]) -> Vec<String> {
        let spared = spared.iter().filter_map(|path| pattern_of(path));
        self.never().into_iter().chain(spared).collect()
    }

    /// Returns a note without secrets: what a person writes is kept for long, and handed to agents.
    pub(crate) fn clean(&self, note: &str) -> String {
        self.cellar.cleaner().line(note, LINE_MAX).into_string()
    }

    /// Takes a snapshot. Where there is no room, what has expired goes, and then the oldest ones for the one that is wanted now.
    pub(crate) fn take(&self, vault: &Vault, wish: &Wish, watch: &dyn Watch) -> Result<Snapshot, VaultError> {
        let full = match vault.take(wish, watch) {
            Err(full @ (VaultError::OverBudget { .. } | VaultError::DiskFull { .. })) => full,
            taken => return taken,
        };
        if self.must_keep_to_its_limits(Layer::Flags).is_err() {
            return Err(full);
        }
        let mut retention = Retention {
            // Within the bounds that a person set in a file, there must be room for what protects a call.
            max_size: self.settings.max_size,
            spare_persons: wish.origin != Origin::Person,
            ..self.retention()
        };
        if let VaultError::OverBudget { needed, .. } = &full {
            match retention.max_size.checked_sub(*needed) {
                Some(rest) => retention.max_size = rest,
                // It would not fit into an empty safe: nothing needs to go for it.
                None => return Err(full),
            }
        }
        let collected = vault.collect(&retention, wish.now, watch)?;
        self.note_removed(&collected.gone, Why::Expired);
        match collected.after < collected.before {
            true => vault.take(wish, watch),
            false => Err(full),
        }
    }

    /// Fails where an agent would remove snapshots or records before their time, by limits that it gives itself: flags, or whatever else
    /// is stronger than a file.
    pub(crate) fn must_keep_to_its_limits(&self, given: Layer) -> Result<(), CommandError> {
        let limits = [
            Key::KeepEvents,
            Key::KeepCalls,
            Key::MaxSize,
            Key::VaultPerTarget,
            Key::VaultMaxAge,
            Key::VaultMaxSize,
        ];
        let is_given = |key| self.cellar.settings.setting(key).layer >= given;
        match limits.into_iter().any(is_given) {
            true => person::must_not_be_an_agent(),
            false => Ok(()),
        }
    }

    /// Removes what has expired, beside something else that was done: what does not work now is left to the next.
    pub(crate) fn expire(&self, vault: &Vault) -> Collected {
        self.finish(vault, None)
    }

    /// The end of something that was done in the safe: what has expired goes, and the timeline is told of both at once.
    pub(crate) fn finish(&self, vault: &Vault, done: Option<Done<'_>>) -> Collected {
        let is_by_person = matches!(&done, Some(Done::Taken(snapshot)) if snapshot.origin == Origin::Person);
        let retention = self.retention();
        let retention = Retention { spare_persons: retention.spare_persons || !is_by_person, ..retention };
        // Hooks do this, too, with the variables that a person gave their agent.
        let collected = match self.must_keep_to_its_limits(Layer::Flags) {
            Ok(()) => vault.expire(&retention, SystemTime::now()).unwrap_or_default(),
            Err(_) => Collected::default(),
        };
        let removed = collected.gone.iter().map(|gone| Done::Removed(gone, Why::Expired));
        self.tell(done.into_iter().chain(removed));
        collected
    }

    /// Tells the timeline that a person could not take one.
    pub(crate) fn note_failed(&self, why: &CommandError) {
        self.tell([Done::Failed(why)]);
    }

    /// Tells the timeline of snapshots that are gone.
    pub(crate) fn note_removed(&self, gone: &[Gone], why: Why) {
        self.tell(gone.iter().map(|gone| Done::Removed(gone, why)));
    }

    fn tell<'d>(&self, done: impl IntoIterator<Item = Done<'d>>) {
        let mut done = done.into_iter().peekable();
        if done.peek().is_none() {
            return;
        }
        let cleaner = self.cellar.cleaner();
        let notes: Vec<Entry> = done.filter_map(|done| done.note(&cleaner)).map(Entry::Safe).collect();
        self.cellar.note(&cleaner, &notes);
    }
}

/// What was done in the safe.
pub(crate) enum Done<'a> {
    /// A snapshot was taken: by a person, or before something that is run.
    Taken(&'a Snapshot),
    /// A person could not take one.
    Failed(&'a CommandError),
    /// Something was brought back from a snapshot.
    Restored(&'a Snapshot, &'a Restored, Why),
    /// A snapshot is gone.
    Removed(&'a Gone, Why),
}

impl Done<'_> {
    /// What the timeline hears of it. Where nothing had to be brought back, that is nothing.
    fn note(&self, cleaner: &Cleaner) -> Option<SafeNote> {
        let name = |id: SnapshotId| Clean::stored(id.to_string());
        let note = |id: Option<SnapshotId>, deed, why: &'static str, text: &str| SafeNote {
            at: cellar::now(),
            call: SafeCall::Nobody,
            snapshot: id.map(name).unwrap_or_default(),
            deed,
            why: Clean::from(why),
            text: cleaner.line(text, LINE_MAX),
        };
        Some(match self {
            Done::Taken(snapshot) => {
                let partial = snapshot.coverage() == Coverage::Partial;
                let deed = SafeDeed::Taken { paths: snapshot.entries, bytes: snapshot.bytes, partial };
                let (call, text) = behind(snapshot, cleaner);
                let taken = note(Some(snapshot.id), deed, "person", text);
                match &snapshot.origin {
                    Origin::Call { row, .. } => SafeNote { call, why: cleaner.name(row, LINE_MAX), ..taken },
                    Origin::Agent => SafeNote { why: Clean::from("agent"), ..taken },
                    Origin::Person | Origin::Restore { .. } => taken,
                }
            }
            Done::Failed(why) => note(None, SafeDeed::Failed, "person", &why.to_string()),
            Done::Restored(_, restored, _) if restored.done.is_empty() => return None,
            Done::Restored(snapshot, restored, why) => {
                let deed = SafeDeed::Restored {
                    paths: restored.done.len() as u64,
                    bytes: restored.written,
                    kept: restored.kept.len() as u64,
                    saved: restored.saved.map(name).unwrap_or_default(),
                };
                let (call, text) = behind(snapshot, cleaner);
                SafeNote { call, ..note(Some(snapshot.id), deed, why.word(), text) }
            }
            Done::Removed(gone, why) => {
                let over = Clean::from(match gone.cause {
                    Cause::Count => "count",
                    Cause::Age => "age",
                    Cause::Size => "size",
                    Cause::Asked => "",
                });
                // What was purged is not named again.
                let text = if *why == Why::Purge { "" } else { &*gone.note };
                note(Some(gone.id), SafeDeed::Removed { over }, why.word(), text)
            }
        })
    }
}

/// The call that a snapshot was taken before, and what is said of it.
fn behind<'s>(snapshot: &'s Snapshot, cleaner: &Cleaner) -> (SafeCall, &'s str) {
    match &snapshot.origin {
        Origin::Call { call: Some(call), label, .. } => (SafeCall::Numbered(*call), label),
        Origin::Call { call: None, key, session, label, .. } => {
            let [session, key] = [session, key].map(|name| cleaner.name(name, LINE_MAX));
            (SafeCall::Named { session, key }, label)
        }
        Origin::Person | Origin::Agent | Origin::Restore { .. } => (SafeCall::Nobody, &snapshot.note),
    }
}

/// The pattern of a path that is meant as it is.
fn pattern_of(path: &Path) -> Option<String> {
    Some(Pattern::escape(path.to_str()?))
}
