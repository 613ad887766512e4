//! Killed at any moment, a restore leaves the tree as it was or as it should be, once the safe was opened again.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test has to start what it kills")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use unstuck_vault::{Choice, Progress, SnapshotId, Stage, Unwatched, Vault, Watch};

use crate::house::{House, ROOM};

/// Where the child finds the safe and the snapshot to restore.
const SAFE: &str = "UNSTUCK_TEST_SAFE";

/// Not a test by itself: the process that is killed.
#[test]
fn child() {
    let Ok(said) = std::env::var(SAFE) else { return };
    let (id, safe) = said.split_once(' ').unwrap();
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
