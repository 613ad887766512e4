//! A tree of a user beside a safe, and what can be done with both.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use unstuck_vault::{
    Choice, Kept, Origin, Rebuildable, Reserve, Restored, Snapshot, SnapshotId, Unwatched, Vault, VaultError,
    Wish,
};

use crate::listing::Listing;

pub const ROOM: Reserve = Reserve { max_size: 1 << 40, min_free: 0 };

pub struct House {
    _folders: Vec<TempDir>,
    pub tree: PathBuf,
    pub vault: Vault,
}

impl House {
    pub fn new() -> House {
        House::at(None)
    }

    /// With the tree somewhere else than the safe.
    pub fn at(tree: Option<&Path>) -> House {
        let safe = tempfile::tempdir().unwrap();
        let beside = tree.map_or_else(tempfile::tempdir, tempfile::tempdir_in).unwrap();
        let vault = Vault::open(&safe.path().join("vault")).unwrap();
        let tree = beside.path().canonicalize().unwrap().join("tree");
        fs::create_dir(&tree).unwrap();
        House { _folders: vec![safe, beside], tree, vault }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.tree.join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn listing(&self) -> Listing {
        Listing::of(&[&self.tree]).unwrap()
    }

    pub fn wish(&self, scopes: &[PathBuf]) -> Wish {
        Wish {
            scopes: scopes.to_vec(),
            rebuildable: Rebuildable::LeftOut,
            never: vec!["**/secret*".to_owned()],
            origin: call(),
            note: String::new(),
            reserve: ROOM,
            now: SystemTime::now(),
        }
    }

    pub fn take(&self) -> Snapshot {
        self.take_of(std::slice::from_ref(&self.tree))
    }

    pub fn take_of(&self, scopes: &[PathBuf]) -> Snapshot {
        // What was just written is looked at twice; that is tested elsewhere.
        std::thread::sleep(Duration::from_millis(25));
        self.vault.take(&self.wish(scopes), &Unwatched).unwrap()
    }

    /// A call between two looks.
    pub fn call(&self, deeds: impl FnOnce()) -> SnapshotId {
        let id = self.take().id;
        deeds();
        self.vault.conclude(id, SystemTime::now(), ROOM, &Unwatched).unwrap();
        id
    }

    pub fn choice(&self, paths: &[&str]) -> Choice {
        let paths = paths.iter().map(|path| self.path(path)).collect();
        Choice { paths, dry_run: false, force: false, reserve: ROOM, now: SystemTime::now() }
    }

    pub fn restore(&self, id: SnapshotId) -> Restored {
        self.vault.restore(id, &self.choice(&[]), &Unwatched).unwrap()
    }

    pub fn undo(&self, id: SnapshotId) -> Restored {
        self.vault.undo(id, &self.choice(&[]), &Unwatched).unwrap()
    }

    pub fn try_undo(&self, id: SnapshotId, force: bool) -> Result<Restored, VaultError> {
        self.vault.undo(id, &Choice { force, ..self.choice(&[]) }, &Unwatched)
    }

    /// Is the tree what it was?
    #[track_caller]
    pub fn is(&self, expected: &Listing) {
        assert_eq!(self.listing().differs_from(expected), None::<String>);
    }

    /// What was kept, as `name reason`.
    pub fn kept(&self, restored: &Restored) -> Vec<String> {
        let shown = |kept: &Kept| {
            let path = kept.path.strip_prefix(&self.tree).unwrap_or(&kept.path);
            format!("{} {:?}", path.display(), kept.because)
        };
        restored.kept.iter().map(shown).collect()
    }

    /// What was done, as `name change`.
    pub fn done(&self, restored: &Restored) -> Vec<String> {
        let shown = restored.done.iter().map(|done| {
            let path = done.path.strip_prefix(&self.tree).unwrap_or(&done.path);
            format!("{} {:?}", path.display(), done.change)
        });
        shown.collect()
    }

    /// Nothing of a restore is left lying about, in the safe or beside the tree.
    #[track_caller]
    pub fn is_tidy(&self) {
        let names = |path: &Path| -> Vec<String> {
            let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
            names.map(|name| name.to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(&self.vault.folder().join("stages")), Vec::<String>::new());
        assert!(!self.vault.folder().join("journal").exists());
        let beside = names(self.tree.parent().unwrap());
        assert!(beside.iter().all(|name| !name.starts_with(".unstuck")), "{beside:?}");
        if self.tree.is_dir() {
            let inside = names(&self.tree);
            assert!(inside.iter().all(|name| !name.starts_with(".unstuck")), "{inside:?}");
        }
    }
}

pub fn call() -> Origin {
    Origin::Call {
        call: None,
        key: "toolu_1".to_owned(),
        session: "s".to_owned(),
        row: "rm".to_owned(),
        label: "rm -rf src".to_owned(),
    }
}
