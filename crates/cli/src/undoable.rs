//! Which snapshot somebody means who wants something undone or redone. Nothing is changed here.

use unstuck_judge::{Lang, quote};
use unstuck_store::StoreError;
use unstuck_vault::{Origin, Snapshot, SnapshotId};

use crate::attempts;
use crate::cellar::Cellar;
use crate::exit::{Among, CommandError};
use crate::snapshot_page;
use crate::whereabouts::Here;

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

    /// Protected calls that concern what is here, changed something or may have, and are not undone, the newest first.
    pub(crate) fn last_calls(&self, here: &Here) -> Vec<&Snapshot> {
        self.undoable_calls().filter(|snapshot| here.is_concerned_by(snapshot)).collect()
    }

    /// That there is none; the newest that lies elsewhere, or how far back one can go where that is the reason.
    pub(crate) fn no_call(&self, here: &Here, per_target: usize, lang: Lang) -> CommandError {
        let is_full = |one: &&Snapshot| {
            here.is_concerned_by(one)
                && self.calls().filter(|other| other.scopes == one.scopes).count() >= per_target
        };
        if self.calls().any(|one| is_full(&one)) {
            return CommandError::UndoneAsFarAsKept { per_target };
        }
        let elsewhere = self.undoable_calls().find(|snapshot| !here.is_concerned_by(snapshot));
        CommandError::NothingToUndo { elsewhere: elsewhere.map(|snapshot| told(snapshot, lang)) }
    }

    fn calls(&self) -> impl Iterator<Item = &Snapshot> {
        self.snapshots.iter().rev().filter(|snapshot| matches!(snapshot.origin, Origin::Call { .. }))
    }

    fn undoable_calls(&self) -> impl Iterator<Item = &Snapshot> {
        self.calls().filter(|snapshot| snapshot.changed != Some(false) && !self.is_undone(snapshot))
    }

    /// What was there before the newest undo or restore that concerns what is here and is in effect.
    pub(crate) fn last_undo(&self, here: &Here) -> Result<&Snapshot, CommandError> {
        let mut newest_first = in_effect(&self.snapshots).into_iter().rev();
        newest_first.find(|snapshot| here.is_concerned_by(snapshot)).ok_or(CommandError::NothingToRedo)
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
                    .map(|one| format!("{}  {}", one.id, quote::bare(key_of(one).unwrap_or_default())))
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

    /// The newest snapshot of the call with a number. Where the number was not known yet, its names tell; what we send
    /// several times is saved once, before the first attempt.
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
            let first = attempts::first_attempt(&asked.key);
            self.newest_of(|call, key, session| {
                let is_named = key == asked.key || first.as_deref() == Some(key);
                call.is_none() && is_named && session == asked.session
            })
        }))
    }

    fn newest_of(&self, is_meant: impl Fn(Option<i64>, &str, &str) -> bool) -> Option<&Snapshot> {
        self.snapshots.iter().rev().find(|snapshot| match &snapshot.origin {
            Origin::Call { call, key, session, .. } => is_meant(*call, key, session),
            Origin::Person | Origin::Agent | Origin::Restore { .. } => false,
        })
    }
}

/// One that lies elsewhere, and how to undo it.
fn told(snapshot: &Snapshot, lang: Lang) -> String {
    let (id, why) = (snapshot.id, snapshot_page::why(snapshot, lang));
    let first = snapshot.scopes.first().map(|scope| snapshot_page::shown(&scope.path)).unwrap_or_default();
    // Both may hold words of others.
    let (why, first) = (quote::call(&why, quote::LINE), quote::bare(&first));
    format!("{id} ({why}; {first}): `unstuck undo {id}`")
}

/// What undos and restores saved that are in effect, the oldest first: the stack that `redo` takes from. Bringing back what one
/// of them saved takes that one off; bringing back what such a redo saved is an undo again.
fn in_effect(snapshots: &[Snapshot]) -> Vec<&Snapshot> {
    let is_there = |id: SnapshotId| snapshots.iter().any(|snapshot| snapshot.id == id);
    let mut stack: Vec<&Snapshot> = Vec::new();
    for snapshot in snapshots {
        let Origin::Restore { of } = snapshot.origin else { continue };
        match stack.iter().position(|undo| undo.id == of) {
            Some(redone) => drop(stack.remove(redone)),
            None if is_there(of) => stack.push(snapshot),
            // What is gone was pushed out by later ones of its sort: it was no call, unless calls came since.
            None => {}
        }
    }
    // What took it back may be gone itself.
    stack.retain(|undo| undo.undone_by.is_none_or(is_there));
    stack
}

/// The name that its host gives the call behind a snapshot.
fn key_of(snapshot: &Snapshot) -> Option<&str> {
    match &snapshot.origin {
        Origin::Call { key, .. } => Some(key),
        Origin::Person | Origin::Agent | Origin::Restore { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// A snapshot in a few letters: `c1` of a call, `p1` of a person, `r3:1` saved when s1 was restored, and `r3:1!4` taken
    /// back since by what saved s4.
    fn snapshot(text: &str) -> Snapshot {
        let (sort, rest) = text.split_at(1);
        let (rest, undone_by) = rest.split_once('!').map_or((rest, None), |(rest, by)| (rest, Some(by)));
        let (id, of) = rest.split_once(':').unwrap_or((rest, "0"));
        let [key, session, row, label] = std::array::from_fn(|_| String::new());
        Snapshot {
            id: id.parse().unwrap(),
            at: SystemTime::UNIX_EPOCH,
            origin: match sort {
                "c" => Origin::Call { call: None, key, session, row, label },
                "p" => Origin::Person,
                "r" => Origin::Restore { of: of.parse().unwrap() },
                other => panic!("{other}"),
            },
            note: String::new(),
            scopes: Vec::new(),
            gaps: Vec::new(),
            gap_count: 0,
            entries: 0,
            bytes: 0,
            stored: 0,
            pinned: false,
            concluded: true,
            changed: None,
            undone_by: undone_by.map(|by| by.parse().unwrap()),
        }
    }

    #[test]
    fn a_redo_takes_back_only_what_is_in_effect() {
        let check = |text: &str, expected: &[u64]| {
            let all: Vec<Snapshot> = text.split(' ').map(snapshot).collect();
            let found: Vec<u64> = in_effect(&all).iter().map(|snapshot| snapshot.id.0).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("c1 c2", &[]);
        // Undo, undo, redo, redo.
        check("c1 c2 r3:2", &[3]);
        check("c1 c2 r3:2 r4:1", &[3, 4]);
        check("c1 c2 r3:2 r4:1 r5:4", &[3]);
        check("c1 c2 r3:2 r4:1 r5:4 r6:3", &[]);
        // The same, after the first of them was pushed out.
        check("c1 c2 r4:1 r5:4 r6:3", &[]);
        // Undo, redo, undo, redo: whatever is pushed out.
        check("c1 r2:1 r3:2 r4:1", &[4]);
        check("c1 r2:1 r3:2 r4:1 r5:4", &[]);
        check("c1 r3:2 r4:1 r5:4", &[]);
        check("c1 r4:1 r5:4", &[]);
        check("c1 r5:4", &[]);
        // Restore, redo; and a restore between undos.
        check("p1 r2:1", &[2]);
        check("p1 r2:1 r3:2", &[]);
        check("c1 p2 r3:1 r4:2", &[3, 4]);
        check("c1 p2 r3:1 r4:2 r5:4", &[3]);
        check("c1 p2 r3:1 r4:2 r5:4 r6:3", &[]);
        // A redo that is taken back by its name is an undo again.
        check("c1 r2:1 r3:2 r4:3", &[4]);
        check("c1 r2:1 r3:2 r4:3 r5:4", &[]);
        // An older undo that is taken back by its name leaves the newer one.
        check("c1 c2 r3:2 r4:1 r5:3", &[4]);
        // What took one back was dropped.
        check("c1 r2:1!3", &[]);
    }
}
