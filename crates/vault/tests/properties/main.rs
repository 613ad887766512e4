//! Random trees, random deeds, snapshots, restores and removals in between: what a snapshot held comes back to the last
//! detail, and so does what was there before it came back.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod deeds;
mod listing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use deeds::{A_DAY, Deed, deed, now, perform, remove, tying_deed};
use listing::{Kind, Listing};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tempfile::TempDir;
use unstuck_vault::{
    Choice, Origin, Rebuildable, Reserve, Restored, Retention, SnapshotId, Unwatched, Vault, VaultError, Wish,
};

const RESERVE: Reserve = Reserve { max_size: u64::MAX, min_free: 0 };

/// One step of a story.
#[derive(Debug, Clone)]
enum Step {
    Do(Vec<Deed>),
    Take,
    /// The state after the deeds of the call behind the newest snapshot is recorded.
    Conclude,
    /// One of the snapshots is restored, which one by number.
    Restore(u16),
    /// The last restore is taken back, where nobody did anything since.
    TakeBack,
    /// Everything goes, the tree itself too.
    Vanish,
    Collect {
        per_target: usize,
    },
    Remove(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(deed(), 1..12).prop_map(Step::Do),
        4 => Just(Step::Take),
        2 => Just(Step::Conclude),
        4 => any::<u16>().prop_map(Step::Restore),
        2 => Just(Step::TakeBack),
        1 => Just(Step::Vanish),
        1 => (2..6_usize).prop_map(|per_target| Step::Collect { per_target }),
        1 => any::<u16>().prop_map(Step::Remove),
    ]
}

/// A tree, its safe, and what is known of both.
struct World {
    _temp: TempDir,
    tree: PathBuf,
    scopes: Vec<PathBuf>,
    vault: Vault,
    known: BTreeMap<SnapshotId, Listing>,
    newest: Option<SnapshotId>,
    /// The snapshot that the last restore saved, and what was there before.
    saved: Option<(SnapshotId, Listing)>,
}

type Outcome = Result<(), TestCaseError>;

fn said<T, E: std::fmt::Debug>(result: Result<T, E>, what: &str) -> Result<T, TestCaseError> {
    result.map_err(|error| TestCaseError::fail(format!("{what}: {error:?}")))
}

impl World {
    fn new(parts: bool) -> World {
        // In memory waiting for the disk costs nothing; now and then it has to be a disk.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let in_memory = match COUNT.fetch_add(1, Ordering::Relaxed) % 25 {
            0 => None,
            _ => tempfile::tempdir_in("/dev/shm").ok(),
        };
        let temp = in_memory.unwrap_or_else(|| tempfile::tempdir().unwrap());
        let tree = temp.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        let vault = Vault::open(&temp.path().join("safe")).unwrap();
        let scopes = match parts {
            true => vec![tree.join("a"), tree.join("b"), tree.join("c")],
            false => vec![tree.clone()],
        };
        World { _temp: temp, tree, scopes, vault, known: BTreeMap::new(), newest: None, saved: None }
    }

    fn listing(&self) -> Listing {
        Listing::of(&self.scopes).unwrap()
    }

    /// What lies beside what is saved: nothing that is done to the one may be seen here.
    fn beside(&self) -> Listing {
        if self.scopes.contains(&self.tree) {
            return Listing::default();
        }
        let all = std::fs::read_dir(&self.tree).unwrap().map(|entry| entry.unwrap().path());
        Listing::of(&all.filter(|path| !self.scopes.contains(path)).collect::<Vec<_>>()).unwrap()
    }

    fn deeds(&self, deeds: &[Deed]) -> Outcome {
        std::fs::create_dir_all(&self.tree).unwrap();
        deeds.iter().try_for_each(|deed| said(perform(&self.tree, deed), "a deed cannot be done"))
    }

    fn step(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Do(deeds) => {
                self.deeds(deeds)?;
                self.saved = None;
            }
            Step::Take => self.take()?,
            Step::Conclude => {
                if let Some(id) = self.newest.filter(|id| self.known.contains_key(id)) {
                    let snapshot = said(self.vault.conclude(id, now(), RESERVE, &Unwatched), "conclude")?;
                    prop_assert!(snapshot.concluded);
                }
            }
            Step::Restore(number) => {
                if let Some(id) = self.pick(*number) {
                    self.restore(id)?;
                }
            }
            Step::TakeBack => self.take_back()?,
            Step::Vanish => {
                for scope in self.scopes.iter().filter(|scope| scope.symlink_metadata().is_ok()) {
                    remove(scope).unwrap();
                }
                self.saved = None;
            }
            Step::Collect { per_target } => {
                let retention = Retention {
                    per_target: *per_target,
                    max_age: A_DAY,
                    max_size: u64::MAX,
                    spare_persons: false,
                };
                let collected = said(self.vault.collect(&retention, now(), &Unwatched), "collect")?;
                prop_assert_eq!(collected.blocked_by, []);
                self.forget(&collected.snapshots);
            }
            Step::Remove(number) => {
                if let Some(id) = self.pick(*number) {
                    said(self.vault.remove(&[id], &Unwatched), "remove")?;
                    self.forget(&[id]);
                }
            }
        }
        Ok(())
    }

    fn pick(&self, number: u16) -> Option<SnapshotId> {
        let at = usize::from(number).checked_rem(self.known.len())?;
        self.known.keys().nth(at).copied()
    }

    fn forget(&mut self, ids: &[SnapshotId]) {
        self.known.retain(|id, _| !ids.contains(id));
        self.saved.take_if(|(id, _)| ids.contains(id));
    }

    fn take(&mut self) -> Outcome {
        let wish = Wish {
            scopes: self.scopes.clone(),
            rebuildable: Rebuildable::Taken,
            never: Vec::new(),
            origin: Origin::Person,
            note: String::new(),
            reserve: RESERVE,
            now: now(),
        };
        let snapshot = said(self.vault.take(&wish, &Unwatched), "take")?;
        prop_assert_eq!(&snapshot.gaps, &[]);
        self.known.insert(snapshot.id, self.listing());
        self.newest = Some(snapshot.id);
        Ok(())
    }

    fn choice(&self) -> Choice {
        Choice { paths: Vec::new(), dry_run: false, force: false, reserve: RESERVE, now: now() }
    }

    fn restore(&mut self, id: SnapshotId) -> Outcome {
        let (before, beside) = (self.listing(), self.beside());
        let restored = said(self.vault.restore(id, &self.choice(), &Unwatched), "restore")?;
        self.is_now(&self.known[&id].clone(), "restored", id)?;
        prop_assert_eq!(self.beside().differs_from(&beside), None);
        self.note_saved(&restored, before)
    }

    fn take_back(&mut self) -> Outcome {
        let Some((id, expected)) = self.saved.take() else { return Ok(()) };
        let (before, beside) = (self.listing(), self.beside());
        let restored = said(self.vault.undo(id, &self.choice(), &Unwatched), "undo")?;
        self.is_now(&expected, "taken back", id)?;
        prop_assert_eq!(self.beside().differs_from(&beside), None);
        self.note_saved(&restored, before)
    }

    fn note_saved(&mut self, restored: &Restored, before: Listing) -> Outcome {
        prop_assert_eq!(&restored.kept, &[]);
        match restored.saved {
            Some(saved) => {
                self.known.insert(saved, before.clone());
                self.saved = Some((saved, before));
            }
            None => prop_assert!(restored.done.is_empty(), "something was changed and nothing saved"),
        }
        Ok(())
    }

    fn is_now(&self, expected: &Listing, what: &str, id: SnapshotId) -> Outcome {
        match self.listing().differs_from(expected) {
            Some(difference) => Err(TestCaseError::fail(format!("{what} {id}:\n{difference}"))),
            None => Ok(()),
        }
    }

    /// Everything that was promised is still there.
    fn end(&mut self) -> Outcome {
        let checked = said(self.vault.check(&[], &Unwatched), "check")?;
        prop_assert_eq!(checked.damages, []);
        let there: Vec<SnapshotId> = self.vault.snapshots().unwrap().iter().map(|found| found.id).collect();
        for id in self.known.keys().copied().collect::<Vec<_>>() {
            prop_assert!(there.contains(&id), "{} is gone", id);
            self.restore(id)?;
        }
        Ok(())
    }
}

/// How many stories are told; more of them with `UNSTUCK_VAULT_CASES`.
#[allow(clippy::disallowed_methods, reason = "a test has no other way to be told")]
fn config() -> ProptestConfig {
    let cases = std::env::var("UNSTUCK_VAULT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(70);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 300, ..ProptestConfig::default() }
}

/// The repository that something is an object of.
fn repository_of(path: &Path) -> Option<PathBuf> {
    let git = path.ancestors().filter(|above| above.ends_with(".git")).last()?;
    let mut inside = path.strip_prefix(git).ok()?.iter();
    let part = inside.find(|part| ["objects", "refs", "logs"].iter().any(|known| part == known))?;
    (part == "objects").then(|| git.to_owned())
}

/// Did somebody touch what names the objects of a repository?
fn is_worked_on(git: &Path, left: &Listing, present: &Listing) -> bool {
    let names = left.items.keys().chain(present.items.keys());
    let mut names = names.filter(|path| path.starts_with(git) && repository_of(path).is_none());
    names.any(|path| !present.is_same_at(left, path))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_a_snapshot_held_comes_back_to_the_last_detail(
        parts in prop::bool::weighted(0.3),
        first in prop::collection::vec(deed(), 0..25),
        steps in prop::collection::vec(step(), 1..10),
    ) {
        let mut world = World::new(parts);
        world.deeds(&first)?;
        world.take()?;
        for step in &steps {
            world.step(step)?;
        }
        world.end()?;
    }

    #[test]
    fn a_call_is_undone_and_redone_exactly(
        first in prop::collection::vec(deed(), 0..25),
        call in prop::collection::vec(deed(), 0..15),
    ) {
        let mut world = World::new(false);
        world.deeds(&first)?;
        world.take()?;
        let before = world.listing();
        world.deeds(&call)?;
        let after = world.listing();
        let id = world.newest.unwrap();
        let snapshot = said(world.vault.conclude(id, now(), RESERVE, &Unwatched), "conclude")?;
        prop_assert_eq!(snapshot.changed, Some(before != after || snapshot.changed == Some(true)));
        let undone = said(world.vault.undo(id, &world.choice(), &Unwatched), "undo")?;
        prop_assert_eq!(&undone.kept, &[]);
        world.is_now(&before, "undone", id)?;
        if let Some(saved) = undone.saved {
            let redone = said(world.vault.undo(saved, &world.choice(), &Unwatched), "redo")?;
            prop_assert_eq!(&redone.kept, &[]);
            world.is_now(&after, "redone", saved)?;
        }
    }

    #[test]
    fn an_undo_takes_back_the_call_and_nothing_that_others_did_since(
        first in prop::collection::vec(tying_deed(), 0..25),
        call in prop::collection::vec(tying_deed(), 0..12),
        others in prop::collection::vec(tying_deed(), 0..6),
    ) {
        let mut world = World::new(false);
        world.deeds(&first)?;
        world.take()?;
        let before = world.listing();
        world.deeds(&call)?;
        let id = world.newest.unwrap();
        said(world.vault.conclude(id, now(), RESERVE, &Unwatched), "conclude")?;
        let left = world.listing();
        world.deeds(&others)?;
        let present = world.listing();
        let undone = said(world.vault.undo(id, &world.choice(), &Unwatched), "undo")?;
        let now = world.listing();
        let all = [&before, &left, &present, &now].into_iter().flat_map(|listing| listing.items.keys());
        for path in all {
            let is_folder = |listing: &Listing| listing.items.get(path).is_some_and(|item| item.kind == Kind::Folder);
            if [&before, &left, &present, &now].into_iter().any(is_folder) {
                continue;
            }
            let is_theirs = !present.is_same_at(&left, path);
            // What a call added to a repository stays where somebody worked on in it since.
            let is_object = !before.items.contains_key(path)
                && repository_of(path).is_some_and(|git| is_worked_on(&git, &left, &present));
            let is_kept = is_object || undone.kept.iter().any(|kept| path.starts_with(&kept.path) || kept.path.starts_with(path));
            let is_right = match is_theirs {
                true => now.is_same_at(&present, path) || now.is_same_at(&before, path) && before.is_same_at(&present, path),
                false => now.is_same_at(&before, path) || is_kept && now.is_same_at(&present, path),
            };
            prop_assert!(
                is_right,
                "{path:?}\nwas {:?}\nwas left as {:?}\nwas {:?} before the undo\nis {:?}\n{:?}",
                before.items.get(path), left.items.get(path), present.items.get(path), now.items.get(path), undone.kept,
            );
            // Names that nobody else tied or untied are one file where they were.
            let is_quiet = |path: &Path| left.names_of(path) == present.names_of(path) && now.is_same_at(&before, path);
            let others = before.names_of(path).into_iter().chain(now.names_of(path));
            for other in others.filter(|other| is_quiet(path) && is_quiet(other) && before.items.contains_key(*other)) {
                let are_one = |listing: &Listing| listing.names_of(path).contains(&other);
                prop_assert_eq!(are_one(&now), are_one(&before), "{:?} and {:?}", path, other);
            }
        }
    }

    #[test]
    fn only_what_is_chosen_becomes_what_it_was(
        first in prop::collection::vec(tying_deed(), 0..25),
        since in prop::collection::vec(tying_deed(), 0..12),
        picks in prop::collection::vec(any::<u16>(), 1..4),
    ) {
        let mut world = World::new(false);
        world.deeds(&first)?;
        world.take()?;
        let before = world.listing();
        world.deeds(&since)?;
        let present = world.listing();
        let all: Vec<&PathBuf> = before.items.keys().chain(present.items.keys()).collect();
        let paths: Vec<PathBuf> = picks.iter().map(|pick| all[usize::from(*pick) % all.len()].clone()).collect();
        let choice = Choice { paths: paths.clone(), ..world.choice() };
        let restored = said(world.vault.restore(world.newest.unwrap(), &choice, &Unwatched), "restore")?;
        prop_assert_eq!(&restored.kept, &[]);
        let now = world.listing();
        for path in all.into_iter().chain(now.items.keys()) {
            if paths.iter().any(|chosen| chosen != path && chosen.starts_with(path)) {
                continue;
            }
            let is_chosen = paths.iter().any(|chosen| path.starts_with(chosen));
            let expected = if is_chosen { &before } else { &present };
            prop_assert!(
                now.is_same_at(expected, path),
                "{path:?} of {paths:?}\nwas {:?}\nwas {:?} before the restore\nis {:?}",
                before.items.get(path), present.items.get(path), now.items.get(path),
            );
        }
    }
}

#[test]
fn there_is_nothing_to_take_back_in_a_new_safe() {
    let world = World::new(false);
    let wrong = world.vault.restore(SnapshotId(1), &world.choice(), &Unwatched).unwrap_err();
    assert!(matches!(wrong, VaultError::NoSuchSnapshot { id: SnapshotId(1) }));
    assert!(Path::new(world.vault.folder()).exists());
}
