//! Killed at any moment, a restore leaves the tree as it was or as it should be, once the safe was opened again.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test has to start what it kills")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit};
use unstuck_vault::{Choice, Progress, Retention, SnapshotId, Stage, Unwatched, Vault, VaultError, Watch};

use crate::house::{House, ROOM};

/// Where the child finds the safe and the snapshot to restore.
const SAFE: &str = "UNSTUCK_TEST_SAFE";
/// How many files it may have open.
const OPEN_FILES: u64 = 256;

/// Not a test by itself: the process that is killed.
#[test]
fn child() {
    let Ok(said) = std::env::var(SAFE) else { return };
    let (id, safe) = said.split_once(' ').unwrap();
    let few = Rlimit { current: Some(OPEN_FILES), maximum: Some(OPEN_FILES) };
    rustix::process::setrlimit(Resource::Nofile, few).unwrap();
    let vault = Vault::open(Path::new(safe)).unwrap();
    let now = std::time::SystemTime::now();
    let choice = Choice { paths: Vec::new(), dry_run: false, force: false, reserve: ROOM, now };
    vault.restore(SnapshotId(id.parse().unwrap()), &choice, &Unwatched).unwrap();
}

fn spawn(house: &House, id: SnapshotId) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["faults::child", "--exact", "--nocapture"])
        .env(SAFE, format!("{} {}", id.0, house.vault.folder().display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn make(house: &House, generation: u32) {
    for number in 0..60_u32 {
        let folder = PathBuf::from(format!("{}/{}", number % 7, number % 3));
        let name = folder.join(number.to_string());
        match (number + generation) % 5 {
            0 => {
                let _it_may_be_gone = fs::remove_file(house.tree.join(&name));
            }
            other => house.write(name.to_str().unwrap(), format!("{generation} {other}").repeat(200)),
        }
    }
    let (whole, other) = match generation {
        1 => (house.path("odd"), house.path("even")),
        _ => (house.path("even"), house.path("odd")),
    };
    let _it_may_be_gone = fs::remove_dir_all(other);
    for number in 0..40 {
        house.write(whole.join(format!("{}/{number}", number % 4)).to_str().unwrap(), vec![7; 3000]);
    }
    let linked = house.path("linked");
    let _it_may_be_gone = fs::remove_file(&linked);
    fs::hard_link(house.path("0/0/0"), &linked).unwrap();
}

fn killed_at_random_moments(house: &House, rounds: u64) {
    make(house, 1);
    let one = (house.take().id, house.listing());
    make(house, 2);
    let two = (house.take().id, house.listing());
    let started = Instant::now();
    assert!(spawn(house, one.0).wait().unwrap().success());
    let whole = started.elapsed();
    house.is(&one.1);
    let mut now = &one;
    for round in 0..rounds {
        let next = if now.0 == one.0 { &two } else { &one };
        let mut child = spawn(house, next.0);
        let share = u32::try_from(round * 7 % 50).unwrap() + 1;
        std::thread::sleep(whole * share / 50);
        child.kill().unwrap();
        child.wait().unwrap();
        Vault::open(house.vault.folder()).unwrap();
        house.is_tidy();
        let found = house.listing();
        now = match (found.differs_from(&one.1), found.differs_from(&two.1)) {
            (None, _) => &one,
            (_, None) => &two,
            (Some(old), Some(new)) => panic!("round {round}: neither\n{old}\nnor\n{new}"),
        };
    }
    assert_eq!(house.vault.check(&[], &Unwatched).unwrap().damages, []);
}

#[test]
fn killed_at_any_moment_a_restore_leaves_the_old_or_the_new() {
    killed_at_random_moments(&House::new(), 50);
}

#[test]
fn killed_at_any_moment_it_is_the_same_on_another_filesystem() {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        killed_at_random_moments(&House::at(Some(memory)), 25);
    }
}

#[test]
fn a_restore_that_was_written_down_is_finished_by_the_next_command() {
    let house = House::new();
    make(&house, 1);
    let one = (house.take().id, house.listing());
    make(&house, 2);
    let journal = house.vault.folder().join("journal");
    let mut child = spawn(&house, one.0);
    let patience = Instant::now() + Duration::from_secs(20);
    while !journal.exists() && child.try_wait().unwrap().is_none() && Instant::now() < patience {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    Vault::open(house.vault.folder()).unwrap();
    house.is(&one.1);
    house.is_tidy();
    let saved = house.vault.snapshots().unwrap().pop().unwrap();
    assert!(saved.concluded, "what was saved before can be brought back");
}

/// Breaks down when everything is written down and nothing is in its place yet.
struct BreaksDown;

impl Watch for BreaksDown {
    fn goes_on(&self, progress: Progress) -> bool {
        assert!(progress.stage != Stage::Placing, "meant to break down here");
        true
    }
}

/// Begins a restore that breaks down. Where it made things ready comes back.
fn begin(house: &House, id: SnapshotId) -> PathBuf {
    let restore = || house.vault.restore(id, &house.choice(&[]), &BreaksDown);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(restore)).unwrap_err();
    assert!(house.vault.awaits_recovery());
    // A process that another test starts at this moment has our locks until it is what it shall be.
    std::thread::sleep(Duration::from_millis(300));
    let stage = fs::read_dir(house.vault.folder().join("stages")).unwrap().next().unwrap();
    stage.unwrap().path()
}

#[test]
fn what_was_taken_away_and_changed_since_goes_back_when_the_restore_is_finished() {
    for (change, expected) in [(None, "1"), (Some("typed meanwhile"), "typed meanwhile")] {
        let house = House::new();
        house.write("a", "1");
        let id = house.take().id;
        house.write("a", "2");
        let stage = begin(&house, id);
        // On a filesystem where two names cannot change places, one goes first.
        if let Some(change) = change {
            house.write("a", change);
        }
        fs::rename(house.path("a"), stage.join("0-old")).unwrap();
        Vault::open(house.vault.folder()).unwrap();
        assert_eq!(house.read("a"), expected);
        house.is_tidy();
    }
}

fn spoil(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_restore_that_nobody_can_finish_is_set_aside_and_nothing_of_it_is_lost() {
    type Spoil = fn(&House, &Path);
    let ways: [(&str, Spoil); 4] = [
        ("the journal is damaged", |house, _| spoil(&house.vault.folder().join("journal"))),
        ("the journal is empty", |house, _| fs::write(house.vault.folder().join("journal"), "").unwrap()),
        ("what was saved is gone", |house, stage| {
            fs::remove_file(house.vault.folder().join("snapshots").join(stage.file_name().unwrap())).unwrap();
        }),
        ("what was saved is damaged", |house, stage| {
            spoil(&house.vault.folder().join("snapshots").join(stage.file_name().unwrap()));
        }),
    ];
    for (way, spoil) in ways {
        let house = House::new();
        house.write("a", "1");
        let id = house.take().id;
        house.write("a", "2");
        let stage = begin(&house, id);
        // The only copy of something may lie there.
        fs::rename(house.path("a"), stage.join("0-old")).unwrap();
        spoil(&house, &stage);
        let vault = Vault::open(house.vault.folder()).unwrap();
        assert_eq!(vault.given_up().unwrap(), [vault.folder().join("journal.damaged-1")], "{way}");
        assert!(!vault.awaits_recovery(), "{way}");
        house.restore(id);
        assert_eq!(house.read("a"), "1", "{way}");
        let vault = Vault::open(vault.folder()).unwrap();
        assert_eq!(fs::read_to_string(stage.with_extension("kept").join("0-old")).unwrap(), "2", "{way}");
        assert_eq!(vault.given_up().unwrap().len(), 1, "{way}");
    }
}

#[test]
fn while_a_restore_cannot_be_finished_snapshots_are_taken_all_the_same() {
    let house = House::new();
    house.write("a", "1");
    let id = house.take().id;
    house.write("a", "2");
    let stage = begin(&house, id);
    // What is no folder cannot be opened as one.
    let hidden = stage.with_extension("hidden");
    fs::rename(&stage, &hidden).unwrap();
    fs::write(&stage, "").unwrap();
    let vault = Vault::open(house.vault.folder()).unwrap();
    assert!(vault.awaits_recovery());
    vault.take(&house.wish(std::slice::from_ref(&house.tree)), &Unwatched).unwrap();
    let retention = Retention {
        per_target: 3,
        max_age: Duration::from_secs(3600),
        max_size: 1 << 40,
        spare_persons: false,
    };
    let now = std::time::SystemTime::now();
    let refusals = [
        vault.restore(id, &house.choice(&[]), &Unwatched).map(|_| ()),
        vault.remove(&[id], &Unwatched).map(|_| ()),
        vault.collect(&retention, now, &Unwatched).map(|_| ()),
    ];
    for refused in refusals {
        let error = refused.unwrap_err();
        assert!(matches!(&error, VaultError::Io { path, .. } if *path == stage), "{error:?}");
    }
    assert!(vault.awaits_recovery() && vault.given_up().unwrap().is_empty());
    // When it is in the way no longer, it is finished.
    fs::remove_file(&stage).unwrap();
    fs::rename(&hidden, &stage).unwrap();
    Vault::open(vault.folder()).unwrap();
    assert_eq!(house.read("a"), "1");
    house.is_tidy();
}

#[test]
fn what_could_not_be_finished_for_a_day_is_given_up_when_space_is_given_back() {
    let house = House::new();
    house.write("a", "1");
    let id = house.take().id;
    house.write("a", "2");
    let stage = begin(&house, id);
    fs::rename(&stage, stage.with_extension("hidden")).unwrap();
    fs::write(&stage, "").unwrap();
    let retention = Retention {
        per_target: 3,
        max_age: Duration::from_secs(1 << 30),
        max_size: 1 << 40,
        spare_persons: false,
    };
    let now = std::time::SystemTime::now();
    let after = |hours: u64| now + Duration::from_secs(hours * 3600);
    house.vault.collect(&retention, after(23), &Unwatched).unwrap_err();
    house.vault.collect(&retention, after(25), &Unwatched).unwrap();
    assert_eq!(house.vault.given_up().unwrap().len(), 1);
    assert_eq!((house.restore(id).kept, house.read("a")), (Vec::new(), "1".to_owned()));
}

#[test]
fn a_restore_whose_disk_is_away_waits_until_it_is_back() {
    type Away = fn(&Path, &Path);
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let ways: [(&str, Away); 2] = [
        ("nothing is there", |disk, away| fs::rename(disk, away).unwrap()),
        ("a link is there", |disk, away| {
            fs::rename(disk, away).unwrap();
            std::os::unix::fs::symlink(away, disk).unwrap();
        }),
    ];
    for (way, take_away) in ways {
        let (house, other) = (House::at(Some(memory)), tempfile::tempdir().unwrap());
        make(&house, 1);
        let one = (house.take().id, house.listing());
        make(&house, 2);
        begin(&house, one.0);
        let disk = house.tree.parent().unwrap();
        let away = disk.with_extension("away");
        take_away(disk, &away);
        let vault = Vault::open(house.vault.folder()).unwrap();
        vault.take(&house.wish(&[other.path().to_owned()]), &Unwatched).unwrap();
        let retention = Retention {
            per_target: 3,
            max_age: Duration::from_secs(3600),
            max_size: 1 << 40,
            spare_persons: false,
        };
        let later = std::time::SystemTime::now() + Duration::from_secs(48 * 3600);
        let refusals = [
            vault.restore(one.0, &house.choice(&[]), &Unwatched).map(|_| ()),
            vault.undo(one.0, &house.choice(&[]), &Unwatched).map(|_| ()),
            vault.collect(&retention, later, &Unwatched).map(|_| ()),
        ];
        for refused in refusals {
            let error = refused.unwrap_err();
            let is_said = matches!(&error, VaultError::Away { path, .. } if path.starts_with(disk));
            assert!(is_said, "{way}: {error:?}");
        }
        let _it_is_no_link = fs::remove_file(disk);
        fs::rename(&away, disk).unwrap();
        // A child that another test starts holds our locks, too, until it has become another program: whoever opens the safe just
        // then leaves it to the next one.
        let patience = Instant::now() + Duration::from_secs(20);
        while {
            Vault::open(vault.folder()).unwrap();
            house.listing().differs_from(&one.1).is_some() && Instant::now() < patience
        } {}
        house.is(&one.1);
        house.is_tidy();
    }
}

#[test]
fn folders_in_folders_come_and_go_however_deep_they_lie() {
    let house = House::new();
    house.write("a", "1");
    let shallow = (house.take().id, house.listing());
    let levels = 4000_usize.saturating_sub(house.tree.as_os_str().len()) / 2;
    assert!(levels as u64 > OPEN_FILES);
    let lowest = house.path(&vec!["d"; levels].join("/"));
    fs::create_dir_all(&lowest).unwrap();
    fs::write(lowest.join("b"), "2").unwrap();
    let deep = house.take().id;
    assert!(spawn(&house, shallow.0).wait().unwrap().success());
    house.is(&shallow.1);
    house.is_tidy();
    assert!(spawn(&house, deep).wait().unwrap().success());
    assert_eq!(fs::read_to_string(lowest.join("b")).unwrap(), "2");
    house.is_tidy();
}
