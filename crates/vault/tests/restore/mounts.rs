//! A mount is another tree, also where it shows the same filesystem: no restore removes what is in it, or moves it about.

#![allow(clippy::print_stderr, reason = "what is not tested is said")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "mounting needs a process with its own mounts"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use unstuck_vault::{Stage, Unwatched, Vault};

use crate::house::House;
use crate::safety::At;

/// Said to the process that has mounts of its own.
const OWN_MOUNTS: &str = "UNSTUCK_TEST_OWN_MOUNTS";

fn is_done(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Runs a test of this file in a process with mounts of its own. Tells whether this is that process.
fn has_own_mounts(test: &str) -> bool {
    if std::env::var_os(OWN_MOUNTS).is_some() {
        return true;
    }
    let ways: [&[&str]; 2] = [&["--mount"], &["--mount", "--map-root-user"]];
    let can = |way: &&[&str]| is_done(Command::new("unshare").args(*way).arg("true"));
    let Some(way) = ways.into_iter().find(can) else {
        eprintln!("SKIPPED {test}: this system lets nobody mount anything");
        return false;
    };
    let mut child = Command::new("unshare");
    child.args(way).arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]);
    let output = child.env(OWN_MOUNTS, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{test} is none");
    false
}

/// A folder beside the tree with something in it.
fn outside(house: &House) -> PathBuf {
    let outside = house.tree.parent().unwrap().join("outside");
    fs::create_dir_all(outside.join("deep")).unwrap();
    fs::write(outside.join("deep/precious"), "1").unwrap();
    outside
}

fn mount(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    assert!(is_done(Command::new("mount").arg("--bind").args([from, to])));
}

#[test]
fn a_folder_with_a_mount_in_it_stays_where_it_is() {
    if !has_own_mounts("mounts::a_folder_with_a_mount_in_it_stays_where_it_is") {
        return;
    }
    let house = House::new();
    let outside = outside(&house);
    house.write("a", "1");
    let id = house.take().id;
    house.write("a", "2");
    house.write("extra/b", "2");
    mount(&outside, &house.path("extra/in/mounted"));
    let restored = house.restore(id);
    assert!(!house.kept(&restored).is_empty());
    assert_eq!((house.read("a"), house.read("extra/in/mounted/deep/precious")), ("1".into(), "1".into()));
    assert!(outside.join("deep/precious").exists());
    house.is_tidy();
}

#[test]
fn what_is_mounted_while_the_restore_goes_on_stays_too() {
    if !has_own_mounts("mounts::what_is_mounted_while_the_restore_goes_on_stays_too") {
        return;
    }
    let house = House::new();
    let outside = outside(&house);
    house.write("a", "1");
    house.write("file", "1");
    let id = house.take().id;
    house.write("a", "2");
    fs::create_dir_all(house.path("extra/in/mounted")).unwrap();
    fs::remove_file(house.path("file")).unwrap();
    house.write("file/mounted/deep/precious", "1");
    let mounting = At::new(Stage::Placing, || {
        mount(&outside, &house.path("extra/in/mounted"));
        // Mounted on itself, everything in it looks as it did.
        mount(&house.path("file/mounted"), &house.path("file/mounted"));
    });
    let restored = house.vault.restore(id, &house.choice(&[]), &mounting).unwrap();
    let kept = house.kept(&restored);
    for folder in ["extra ChangedMeanwhile", "file Refused"] {
        assert!(kept.iter().any(|kept| kept == folder), "{kept:?}");
    }
    for name in ["extra/in/mounted", "file/mounted"] {
        assert_eq!(house.read(&format!("{name}/deep/precious")), "1");
    }
    assert_eq!(house.read("a"), "1");
    house.is_tidy();
}

#[test]
fn rubbish_is_removed_only_up_to_a_mount() {
    if !has_own_mounts("mounts::rubbish_is_removed_only_up_to_a_mount") {
        return;
    }
    let house = House::new();
    let outside = outside(&house);
    let rubbish = house.vault.folder().join("stages/77/0/mounted");
    mount(&outside, &rubbish);
    fs::create_dir(house.vault.folder().join("stages/78")).unwrap();
    let vault = Vault::open(house.vault.folder()).unwrap();
    assert!(outside.join("deep/precious").exists() && rubbish.join("deep/precious").exists());
    assert!(!house.vault.folder().join("stages/78").exists());
    vault.take(&house.wish(std::slice::from_ref(&house.tree)), &Unwatched).unwrap();
    assert!(is_done(Command::new("umount").arg(&rubbish)));
    Vault::open(house.vault.folder()).unwrap();
    house.is_tidy();
}
