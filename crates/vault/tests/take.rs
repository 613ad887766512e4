//! What a snapshot holds, what it says that it does not hold, and what it costs when nothing changed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]
#![allow(clippy::disallowed_methods, reason = "a test has to ask somebody for the time")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use unstuck_vault::{
    Coverage, GapReason, Origin, Progress, Rebuildable, Reserve, Snapshot, Unwatched, Vault, VaultError,
    Watch, Wish,
};

const ROOM: Reserve = Reserve { max_size: 1 << 40, min_free: 0 };

/// A tree of a user beside a safe.
struct House {
    folder: TempDir,
    vault: Vault,
}

impl House {
    fn new() -> House {
        let folder = tempfile::tempdir().unwrap();
        let vault = Vault::open(&folder.path().join("vault")).unwrap();
        let house = House { vault, folder };
        fs::create_dir(house.tree()).unwrap();
        house
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("tree")
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.tree().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Makes everything old enough for its times to be trusted.
    fn settle(&self) {
        std::thread::sleep(Duration::from_millis(30));
    }

    fn wish(&self, scopes: &[PathBuf]) -> Wish {
        Wish {
            scopes: scopes.to_vec(),
            rebuildable: Rebuildable::LeftOut,
            never: Vec::new(),
            origin: Origin::Person,
            note: String::new(),
            reserve: ROOM,
            now: SystemTime::now(),
        }
    }

    fn take(&self) -> Snapshot {
        self.vault.take(&self.wish(&[self.tree()]), &Unwatched).unwrap()
    }

    fn packs(&self) -> usize {
        fs::read_dir(self.vault.folder().join("packs")).unwrap().count()
    }

    /// What a snapshot holds of a file.
    fn held(&self, snapshot: &Snapshot, path: &str) -> String {
        let content = self.vault.content(snapshot.id, &self.tree().join(path), 99).unwrap().unwrap();
        String::from_utf8(content).unwrap()
    }
}

/// The gaps of a snapshot, as `path reason`.
fn gaps(snapshot: &Snapshot, below: &Path) -> Vec<String> {
    let shown = snapshot.gaps.iter().map(|gap| {
        let path = gap.path.strip_prefix(below).unwrap_or(&gap.path);
        format!("{} {:?}", path.display(), gap.reason)
    });
    shown.collect()
}

#[test]
fn an_unchanged_tree_is_not_written_again() {
    let house = House::new();
    house.write("a/b.txt", "one");
    house.write("c.txt", "two");
    house.settle();
    let first = house.take();
    let second = house.take();
    assert_eq!((first.entries, first.bytes, first.stored > 0), (4, 6, true));
    assert_eq!((second.entries, second.bytes, second.stored), (4, 6, 0));
    assert!(second.id > first.id);
}

#[test]
fn a_rewrite_of_the_same_length_right_after_a_snapshot_is_seen() {
    let house = House::new();
    for round in 0..20 {
        house.write("a.txt", &format!("{round:03}"));
        let snapshot = house.take();
        house.write("a.txt", "xyz");
        assert_eq!(house.held(&snapshot, "a.txt"), format!("{round:03}"));
        assert_eq!(house.held(&house.take(), "a.txt"), "xyz");
    }
}

#[test]
fn each_snapshot_of_a_long_row_holds_its_own_state() {
    let house = House::new();
    for number in 0..40 {
        house.write(&format!("d{number}/same.txt"), "same");
    }
    let taken = (0..40).map(|round| {
        house.write("d7/changing.txt", &format!("round {round}"));
        house.take()
    });
    let taken: Vec<Snapshot> = taken.collect();
    for (round, snapshot) in taken.iter().enumerate() {
        assert_eq!(house.held(snapshot, "d7/changing.txt"), format!("round {round}"));
        assert_eq!(house.held(snapshot, "d39/same.txt"), "same");
    }
}

#[test]
fn what_can_be_made_again_is_left_out_and_named_unless_somebody_names_it() {
    let house = House::new();
    house.write("Cargo.toml", "[package]");
    house.write("target/debug/a.o", "object");
    house.write("web/node_modules/x/node_modules/y.js", "js");
    house.write("docs/target/page.md", "no cargo beside it");
    let snapshot = house.take();
    let tree = house.tree();
    assert_eq!(gaps(&snapshot, &tree), ["target Rebuildable", "web/node_modules Rebuildable"]);
    assert_eq!(snapshot.coverage(), Coverage::Whole);
    let named = house.wish(&[tree.join("web/node_modules/x")]);
    let named = house.vault.take(&named, &Unwatched).unwrap();
    assert_eq!((gaps(&named, &tree), named.entries), (vec![], 3));
    let all = Wish { rebuildable: Rebuildable::Taken, ..house.wish(&[tree]) };
    assert!(house.vault.take(&all, &Unwatched).unwrap().gaps.is_empty());
}

#[test]
fn what_is_never_to_be_taken_is_not() {
    let house = House::new();
    house.write(".env", "TOKEN=1");
    house.write("a/.env", "TOKEN=2");
    house.write("a/b", "b");
    let never = vec!["**/.env".to_owned()];
    let wish = Wish { never, ..house.wish(&[house.tree()]) };
    let snapshot = house.vault.take(&wish, &Unwatched).unwrap();
    assert_eq!(gaps(&snapshot, &house.tree()), [".env Never", "a/.env Never"]);
    for file in fs::read_dir(house.vault.folder().join("packs")).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(5).any(|part| part == b"TOKEN"));
    }
}

#[test]
fn the_safe_never_takes_itself() {
    let house = House::new();
    house.write("a", "a");
    let snapshot = house.vault.take(&house.wish(&[house.folder.path().to_owned()]), &Unwatched).unwrap();
    assert_eq!(gaps(&snapshot, &house.folder.path().canonicalize().unwrap()), ["vault Never"]);
}

#[test]
fn sockets_and_pipes_are_noted() {
    let house = House::new();
    let tree = house.tree();
    let _socket = std::os::unix::net::UnixListener::bind(tree.join("socket")).unwrap();
    mknodat(CWD, tree.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let snapshot = house.take();
    assert_eq!((gaps(&snapshot, &tree), snapshot.entries), (vec!["socket Special".to_owned()], 3));
    assert_eq!(snapshot.coverage(), Coverage::Whole);
}

#[test]
fn a_path_through_a_link_means_the_real_place_and_a_link_at_its_end_means_itself() {
    let house = House::new();
    house.write("real/a.txt", "a");
    symlink("real", house.tree().join("link")).unwrap();
    let taken = |path: &str| house.vault.take(&house.wish(&[house.tree().join(path)]), &Unwatched).unwrap();
    let through = taken("link/a.txt");
    assert_eq!(through.scopes[0].path, house.tree().join("real/a.txt"));
    let itself = taken("link");
    assert_eq!((itself.entries, &itself.scopes[0].path), (1, &house.tree().join("link")));
}

#[test]
fn a_scope_inside_a_known_one_needs_no_reading() {
    let house = House::new();
    house.write("a/b.txt", &"long ".repeat(100_000));
    house.settle();
    house.take();
    let packs = house.packs();
    let inside = house.wish(&[house.tree().join("a/b.txt")]);
    let snapshot = house.vault.take(&inside, &Unwatched).unwrap();
    assert_eq!((house.packs(), snapshot.entries, snapshot.bytes), (packs, 1, 500_000));
}

#[test]
fn what_is_not_there_is_kept_as_absent() {
    let house = House::new();
    let wish = house.wish(&[house.tree().join("no/such")]);
    let snapshot = house.vault.take(&wish, &Unwatched).unwrap();
    assert_eq!((snapshot.entries, snapshot.scopes.len()), (0, 1));
}

#[test]
fn scopes_inside_each_other_are_one() {
    let house = House::new();
    house.write("a/b", "b");
    let wish = house.wish(&["a/b", "a", "a/../a"].map(|path| house.tree().join(path)));
    assert_eq!(house.vault.take(&wish, &Unwatched).unwrap().scopes.len(), 1);
}

#[test]
fn everything_as_a_whole_is_too_wide_and_so_is_what_lies_nowhere() {
    let house = House::new();
    for path in ["/", "relative"] {
        let error = house.vault.take(&house.wish(&[PathBuf::from(path)]), &Unwatched).unwrap_err();
        assert!(matches!(error, VaultError::TooWide { .. }), "{error}");
    }
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_written() {
    let house = House::new();
    house.write("a", &"a".repeat(100_000));
    for (reserve, is_budget) in [
        (Reserve { max_size: 50_000, min_free: 0 }, true),
        (Reserve { max_size: 1 << 40, min_free: u64::MAX }, false),
    ] {
        let wish = Wish { reserve, ..house.wish(&[house.tree()]) };
        match house.vault.take(&wish, &Unwatched).unwrap_err() {
            VaultError::OverBudget { needed, allowed } => {
                assert_eq!((is_budget, needed, allowed <= 50_000), (true, 100_000, true));
            }
            VaultError::DiskFull { needed, .. } => assert_eq!((is_budget, needed), (false, 100_000)),
            other => panic!("{other}"),
        }
        assert_eq!((house.packs(), house.vault.snapshots().unwrap().len()), (0, 0));
    }
}

/// Ends the work when it is asked for the so-manieth time.
struct Impatient(AtomicUsize);

impl Watch for Impatient {
    fn goes_on(&self, _progress: Progress) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) > 1
    }
}

#[test]
fn whoever_ends_it_finds_nothing_half_done() {
    let house = House::new();
    for number in 0..400 {
        house.write(&format!("d{}/{number}", number % 90), "content");
    }
    for patience in 1..5 {
        let watch = Impatient(patience.into());
        let error = house.vault.take(&house.wish(&[house.tree()]), &watch).unwrap_err();
        assert!(matches!(error, VaultError::Stopped), "{error}");
        assert_eq!((house.packs(), house.vault.snapshots().unwrap().len()), (0, 0));
    }
    assert_eq!(house.take().entries, 491);
}

#[test]
fn a_tree_that_never_holds_still_is_taken_as_far_as_it_does() {
    let house = House::new();
    for number in 0..300 {
        house.write(&format!("d{}/{number}", number % 20), &"content".repeat(500));
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round: usize = 0;
            while !is_over.load(Ordering::Relaxed) {
                let _ = fs::remove_dir_all(house.tree().join(format!("gone{round}")));
                round += 1;
                house.write("d3/busy", &"x".repeat(round % 5000));
                house.write(&format!("gone{round}/a/b"), "b");
            }
        });
        for _ in 0..30 {
            let snapshot = house.take();
            assert!(snapshot.entries >= 321, "{snapshot:?}");
            let is_unstable = |reason| matches!(reason, GapReason::Unstable);
            assert!(snapshot.gaps.iter().all(|gap| is_unstable(gap.reason)), "{:?}", snapshot.gaps);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(house.vault.check(&[], &Unwatched).unwrap().damages.is_empty());
}

#[test]
fn many_may_take_at_once() {
    let house = House::new();
    for number in 0..200 {
        house.write(&format!("{number}"), &format!("content {number}"));
    }
    let mut ids: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| house.take().id)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), house.vault.snapshots().unwrap().len()), (8, 8));
}

#[test]
fn what_was_left_out_once_is_read_again_when_it_is_taken() {
    let house = House::new();
    house.write("package.json", "{}");
    house.write("node_modules/a.js", "only here");
    house.settle();
    let all = || Wish { rebuildable: Rebuildable::Taken, ..house.wish(&[house.tree()]) };
    let first = house.vault.take(&all(), &Unwatched).unwrap();
    house.take();
    house.vault.remove(&[first.id], &Unwatched).unwrap();
    let again = house.vault.take(&all(), &Unwatched).unwrap();
    assert!(house.vault.check(&[], &Unwatched).unwrap().damages.is_empty());
    assert_eq!(house.held(&again, "node_modules/a.js"), "only here");
}

#[test]
fn what_went_and_came_back_as_it_was_is_read_again() {
    let house = House::new();
    for number in 0..40 {
        house.write(&format!("d{number}/same"), "same");
    }
    house.write("dir/inner/a", "moved");
    house.settle();
    let first = house.take();
    fs::rename(house.tree().join("dir"), house.folder.path().join("away")).unwrap();
    house.take();
    house.vault.remove(&[first.id], &Unwatched).unwrap();
    fs::rename(house.folder.path().join("away"), house.tree().join("dir")).unwrap();
    let again = house.take();
    assert!(house.vault.check(&[], &Unwatched).unwrap().damages.is_empty());
    assert_eq!(house.held(&again, "dir/inner/a"), "moved");
}

#[test]
fn what_a_check_found_damaged_is_stored_again() {
    let house = House::new();
    house.write("a", "sound content of a file that nobody changes");
    house.write("b", "another");
    house.settle();
    let first = house.take();
    let pack = house.vault.folder().join("packs").join(first.id.to_string().trim_start_matches('s'));
    let mut bytes = fs::read(&pack).unwrap();
    let at = bytes.windows(5).position(|part| part == b"sound").unwrap();
    bytes[at] ^= 1;
    fs::write(&pack, bytes).unwrap();
    assert_eq!(house.vault.check(&[], &Unwatched).unwrap().damages.len(), 1);
    let second = house.take();
    assert_eq!(house.held(&second, "a"), "sound content of a file that nobody changes");
    assert!(house.vault.check(&[second.id], &Unwatched).unwrap().damages.is_empty());
}
