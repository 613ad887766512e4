//! Files with several names: what is done to one name is done to all of them, so a name that has to stay as it is keeps the
//! file, and the others get a new one.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use unstuck_vault::{Restored, SnapshotId, Stage, Unwatched};

use crate::house::House;
use crate::safety::At;

fn mode(house: &House, name: &str, mode: u32) {
    fs::set_permissions(house.path(name), Permissions::from_mode(mode)).unwrap();
}

fn link(house: &House, old: &str, new: &str) {
    fs::hard_link(house.path(old), house.path(new)).unwrap();
}

/// Two names of one file, two of another, and a file of its own, all with the same mode.
fn names() -> House {
    let house = House::new();
    for (one, other) in [("a", "dir/b"), ("c", "secret")] {
        house.write(one, one);
        fs::create_dir_all(house.path("dir")).unwrap();
        link(&house, one, other);
        mode(&house, one, 0o644);
    }
    house.write("alone", "alone");
    mode(&house, "alone", 0o644);
    house
}

/// What a call does, what somebody does since, and how the tree looks when the call is undone: what was kept, each file with
/// its names and its mode.
#[track_caller]
fn check(
    call: impl FnOnce(&House),
    since: impl FnOnce(&House),
    kept: &[&str],
    files: &[(&[&str], u32)],
) -> House {
    check_by(call, since, |house, id| house.undo(id), kept, files)
}

#[track_caller]
fn check_by(
    call: impl FnOnce(&House),
    since: impl FnOnce(&House),
    back: impl FnOnce(&House, SnapshotId) -> Restored,
    kept: &[&str],
    files: &[(&[&str], u32)],
) -> House {
    let house = names();
    let id = house.call(|| call(&house));
    since(&house);
    let undone = back(&house, id);
    assert_eq!(house.kept(&undone), kept);
    let mut seen = Vec::new();
    for (names, mode) in files {
        let found: Vec<_> = names.iter().map(|name| house.path(name).metadata().unwrap()).collect();
        let inode = found[0].ino();
        assert!(found.iter().all(|found| found.ino() == inode), "{names:?} are not one file");
        assert!(!seen.contains(&inode), "{names:?} are one file with others");
        assert_eq!(found[0].mode() & 0o7777, *mode, "{names:?}");
        seen.push(inode);
    }
    house.is_tidy();
    house
}

#[test]
fn a_file_all_of_whose_names_get_other_marks_stays_the_same_file() {
    let house = names();
    let before = house.path("a").metadata().unwrap().ino();
    let id = house.call(|| mode(&house, "a", 0o600));
    let undone = house.undo(id);
    assert_eq!(house.done(&undone), ["a Touched", "dir/b Touched"]);
    assert_eq!(house.path("dir/b").metadata().unwrap().mode() & 0o7777, 0o644);
    assert_eq!(
        [house.path("a"), house.path("dir/b")].map(|path| path.metadata().unwrap().ino()),
        [before; 2]
    );
}

#[test]
fn a_name_that_somebody_added_keeps_the_marks_that_it_had() {
    check(
        |house| mode(house, "a", 0o600),
        |house| link(house, "a", "theirs"),
        &[],
        &[(&["a", "dir/b"], 0o644), (&["theirs"], 0o600)],
    );
}

#[test]
fn a_name_that_was_not_chosen_keeps_the_marks_that_it_had() {
    let house = check_by(
        |house| mode(house, "a", 0o600),
        |_| {},
        |house, id| house.vault.restore(id, &house.choice(&["a"]), &Unwatched).unwrap(),
        &[],
        &[(&["a"], 0o644), (&["dir/b"], 0o600)],
    );
    // All of it brings them together again.
    house.restore(house.vault.snapshots().unwrap().last().unwrap().id);
    let inode = |name: &str| house.path(name).metadata().unwrap().ino();
    assert_eq!(inode("a"), inode("dir/b"));
}

#[test]
fn a_name_that_is_not_held_keeps_the_marks_that_it_had() {
    let touch = |house: &House| mode(house, "c", 0o600);
    check(touch, |_| {}, &["secret NotHeld"], &[(&["c"], 0o644), (&["secret"], 0o600)]);
}

#[test]
fn a_name_outside_of_what_was_saved_keeps_the_marks_that_it_had() {
    let house = names();
    let id = house.take_of(&[house.path("dir")]).id;
    mode(&house, "a", 0o600);
    let restored = house.restore(id);
    assert_eq!(house.done(&restored), ["dir/b Touched"]);
    let modes = ["dir/b", "a"].map(|name| house.path(name).metadata().unwrap().mode() & 0o7777);
    assert_eq!(modes, [0o644, 0o600]);
    house.undo(restored.saved.unwrap());
    assert_eq!(house.path("dir/b").metadata().unwrap().mode() & 0o7777, 0o600);
}

#[test]
fn a_name_that_went_comes_back_with_its_own_marks_whatever_the_others_have_by_now() {
    let remove = |house: &House| fs::remove_file(house.path("dir/b")).unwrap();
    check(remove, |house| mode(house, "a", 0o600), &[], &[(&["a"], 0o600), (&["dir/b"], 0o644)]);
}

#[test]
fn a_name_that_went_comes_back_to_a_file_that_got_another_name_meanwhile() {
    let remove = |house: &House| fs::remove_file(house.path("dir/b")).unwrap();
    check(remove, |house| link(house, "a", "theirs"), &[], &[(&["a", "dir/b", "theirs"], 0o644)]);
}

#[test]
fn names_that_a_call_tied_are_untied_and_none_of_them_gets_the_marks_of_the_other() {
    check(
        |house| {
            fs::remove_file(house.path("alone")).unwrap();
            link(house, "a", "alone");
            mode(house, "a", 0o600);
        },
        |_| {},
        &[],
        &[(&["a", "dir/b"], 0o644), (&["alone"], 0o644)],
    );
}

#[test]
fn a_folder_with_something_of_somebody_else_stays_where_a_name_of_a_file_was() {
    let house = check(
        |house| {
            fs::remove_file(house.path("a")).unwrap();
            house.write("a/made", "by the call");
        },
        |house| house.write("a/theirs", "by a person"),
        &["a ChangedSince"],
        &[(&["dir/b"], 0o644)],
    );
    assert_eq!([house.read("a/made"), house.read("a/theirs")], ["by the call", "by a person"]);
}

#[test]
fn a_name_comes_back_as_it_was_though_somebody_saves_over_the_other_meanwhile() {
    let house = names();
    let id = house.take().id;
    fs::remove_file(house.path("dir/b")).unwrap();
    let saving = At::new(Stage::Preparing, || {
        house.write("beside", "by a person");
        fs::rename(house.path("beside"), house.path("a")).unwrap();
    });
    house.vault.restore(id, &house.choice(&[]), &saving).unwrap();
    assert_eq!([house.read("a"), house.read("dir/b")], ["by a person", "a"]);
    house.is_tidy();
}
