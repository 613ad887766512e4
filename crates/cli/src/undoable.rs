//! Which snapshot somebody means who wants something undone or redone. Nothing is changed here.

use std::path::Path;

use unstuck_judge::Lang;
use unstuck_store::StoreError;
use unstuck_vault::{Origin, Snapshot, SnapshotId};

use crate::cellar::Cellar;
use crate::exit::{Among, CommandError};
use crate::whereabouts::touch;
use crate::{plain, snapshot_page};

/// How many candidates are listed.
const LISTED: usize = 10;

/// All snapshots, the oldest first, with what was undone of them.
pub(crate) struct Undoable {
    snapshots: Vec<Snapshot>,
}

impl Undoable {
    pub(crate) fn new(snapshots: Vec<Snapshot>) -> Undoable {
        Undoable { snapshots }
    }

    fn get(&self, id: SnapshotId) -> Option<&Snapshot> {
        self.snapshots.iter().find(|snapshot| snapshot.id == id)
    }

    /// Is it undone as things stand? An undo that was taken back is none.
    pub(crate) fn is_undone(&self, snapshot: &Snapshot) -> bool {
        let by = snapshot.undone_by.filter(|by| *by > snapshot.id);
        by.is_some_and(|by| self.get(by).is_none_or(|saved| !self.is_undone(saved)))
    }

    /// Protected calls around a folder that changed something, or may have, and are not undone, the newest first.
    pub(crate) fn last_calls(&self, around: &Path) -> Vec<&Snapshot> {
        self.calls().filter(|snapshot| is_around(snapshot, around)).collect()
    }

    /// That there is none, and the newest that lies elsewhere.
    pub(crate) fn no_call(&self, around: &Path, lang: Lang) -> CommandError {
        let elsewhere = self.calls().find(|snapshot| !is_around(snapshot, around));
        CommandError::NothingToUndo { elsewhere: elsewhere.map(|snapshot| told(snapshot, lang)) }
    }

    fn calls(&self) -> impl Iterator<Item = &Snapshot> {
        let is_meant = |snapshot: &&Snapshot| {
            matches!(snapshot.origin, Origin::Call { .. })
                && snapshot.changed != Some(false)
                && !self.is_undone(snapshot)
        };
        self.snapshots.iter().rev().filter(is_meant)
    }

    /// What was there before the newest undo or restore around a folder that is not taken back.
    pub(crate) fn last_undo(&self, around: &Path) -> Result<&Snapshot, CommandError> {
        let is_meant = |snapshot: &&Snapshot| {
            self.is_saved_by_undo(snapshot) && !self.is_undone(snapshot) && is_around(snapshot, around)
        };
        self.snapshots.iter().rev().find(is_meant).ok_or(CommandError::NothingToRedo)
    }

    /// Was it saved by an undo or a restore, and not by a redo? A redo restores what such a one had saved.
    fn is_saved_by_undo(&self, snapshot: &Snapshot) -> bool {
        match snapshot.origin {
            Origin::Restore { of } => {
                of >= snapshot.id || self.get(of).is_none_or(|of| !self.is_saved_by_undo(of))
            }
            Origin::Person | Origin::Call { .. } => false,
        }
    }

    /// The snapshot of a call, by the call's number or by the name its host gives it; or a snapshot by its own name.
    pub(crate) fn named(&self, cellar: &Cellar, asked: &str) -> Result<&Snapshot, CommandError> {
        if let (Some(_), Ok(id)) = (asked.strip_prefix('s'), asked.parse::<SnapshotId>()) {
            return self.get(id).ok_or(unstuck_vault::VaultError::NoSuchSnapshot { id }.into());
        }
        let not_protected = || CommandError::NotProtected { asked: asked.to_owned() };
        let number = asked.strip_prefix('#').unwrap_or(asked).parse::<i64>().ok();
        if let Some(found) = number.and_then(|number| self.of_call(cellar, number).transpose()) {
            return found;
        }
        if asked.is_empty() {
            return Err(not_protected());
        }
        let exactly = self.newest_of(|_, key, _| key == asked);
        if let Some(found) = exactly {
            return Ok(found);
        }
        let like: Vec<&Snapshot> = self
            .snapshots
            .iter()
            .rev()
            .filter(|one| key_of(one).is_some_and(|key| key.starts_with(asked)))
            .collect();
        match &like[..] {
            [] => Err(not_protected()),
            [first, rest @ ..] if rest.iter().all(|other| key_of(other) == key_of(first)) => Ok(first),
            several => {
                let listed = several.iter().take(LISTED);
                let candidates: Vec<String> = listed
                    .map(|one| format!("{}  {}", one.id, plain::short(key_of(one).unwrap_or_default(), 60)))
                    .collect();
                let more = several.len() - candidates.len();
                Err(CommandError::Ambiguous {
                    asked: asked.to_owned(),
                    among: Among::Snapshots,
                    candidates,
                    more,
                })
            }
        }
    }

    /// The newest snapshot of the call with a number. Where the number was not known yet, its names tell.
    fn of_call(&self, cellar: &Cellar, number: i64) -> Result<Option<&Snapshot>, CommandError> {
        if let Some(found) = self.newest_of(|call, _, _| call == Some(number)) {
            return Ok(Some(found));
        }
        let call = match cellar.to_read() {
            Ok(store) => store.call(number)?,
            Err(CommandError::Store(StoreError::Missing { .. })) => None,
            Err(error) => return Err(error),
        };
        Ok(call.and_then(|asked| {
            self.newest_of(|call, key, session| {
                call.is_none() && key == asked.key && session == asked.session
            })
        }))
    }

    fn newest_of(&self, is_meant: impl Fn(Option<i64>, &str, &str) -> bool) -> Option<&Snapshot> {
        self.snapshots.iter().rev().find(|snapshot| match &snapshot.origin {
            Origin::Call { call, key, session, .. } => is_meant(*call, key, session),
            Origin::Person | Origin::Restore { .. } => false,
        })
    }
}

/// One that lies elsewhere, and how to undo it.
fn told(snapshot: &Snapshot, lang: Lang) -> String {
    let (id, why) = (snapshot.id, snapshot_page::why(snapshot, lang));
    let first = snapshot.scopes.first().map(|scope| snapshot_page::shown(&scope.path)).unwrap_or_default();
    format!("{id} ({why}; {first}): `unstuck undo {id}`")
}

/// Does it hold something in a folder, or what the folder lies in?
pub(crate) fn is_around(snapshot: &Snapshot, folder: &Path) -> bool {
    snapshot.scopes.iter().any(|scope| touch(&scope.path, folder))
}

/// The name that its host gives the call behind a snapshot.
fn key_of(snapshot: &Snapshot) -> Option<&str> {
    match &snapshot.origin {
        Origin::Call { key, .. } => Some(key),
        Origin::Person | Origin::Restore { .. } => None,
    }
}
