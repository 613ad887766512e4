//! Undo takes back what a call did, and leaves alone what anybody else did since. What the safe does not hold is never
//! touched by either.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use unstuck_vault::{Choice, SnapshotId, Unwatched, VaultError};

use crate::house::House;

/// A tree after a call that changed, deleted and made things.
fn after_call() -> (House, SnapshotId) {
    let house = House::new();
    for name in ["changed", "deleted", "untouched", "dir/changed", "dir/deleted"] {
        house.write(name, name);
    }
    let id = house.call(|| {
        house.write("changed", "by the call");
        house.write("dir/changed", "by the call");
        fs::remove_file(house.path("deleted")).unwrap();
        fs::remove_file(house.path("dir/deleted")).unwrap();
        house.write("made", "by the call");
        house.write("folder/made", "by the call");
    });
    (house, id)
}

/// What somebody does after the call, what an undo keeps of it, and what a file says then.
fn check(since: impl FnOnce(&House), kept: &[&str], says: &[(&str, &str)]) {
    let (house, id) = after_call();
    since(&house);
    let undone = house.undo(id);
    assert_eq!(house.kept(&undone), kept);
    for (name, content) in says {
        assert_eq!(&house.read(name), content, "{name}");
    }
    house.is_tidy();
    assert_eq!(house.vault.snapshot(id).unwrap().undone_by, undone.saved);
}

#[test]
fn an_undo_takes_back_a_call_and_a_second_one_finds_nothing() {
    let house = House::new();
    house.write("a/b", "1");
    let before = house.listing();
    let id = house.call(|| fs::remove_dir_all(house.path("a")).unwrap());
    let undone = house.undo(id);
    assert_eq!(house.done(&undone), ["a Removed", "a/b Removed"]);
    assert_eq!(undone.verified, 1);
    house.is(&before);
    assert_eq!(house.undo(id).saved, None);
}

#[test]
fn what_somebody_wrote_over_is_kept() {
    check(
        |house| house.write("changed", "by a person"),
        &["changed ChangedSince"],
        &[("changed", "by a person"), ("deleted", "deleted"), ("dir/changed", "dir/changed")],
    );
}

#[test]
fn what_somebody_made_again_is_kept() {
    check(
        |house| house.write("deleted", "made again"),
        &["deleted ChangedSince"],
        &[("deleted", "made again"), ("changed", "changed")],
    );
}

#[test]
fn what_somebody_added_beside_it_is_no_conflict() {
    check(|house| house.write("dir/new", "by a person"), &[], &[("dir/new", "by a person")]);
}

#[test]
fn what_the_call_did_not_touch_stays_as_somebody_left_it() {
    check(|house| house.write("untouched", "by a person"), &[], &[("untouched", "by a person")]);
}

#[test]
fn a_folder_of_the_call_stays_for_a_file_of_somebody_else() {
    check(
        |house| house.write("folder/theirs", "by a person"),
        &["folder/theirs ChangedSince"],
        &[("folder/theirs", "by a person")],
    );
}

#[test]
fn what_somebody_deleted_after_the_call_stays_deleted() {
    check(
        |house| fs::remove_file(house.path("changed")).unwrap(),
        &["changed ChangedSince"],
        &[("deleted", "deleted")],
    );
    check(
        |house| fs::remove_dir_all(house.path("dir")).unwrap(),
        &["dir ChangedSince"],
        &[("deleted", "deleted")],
    );
}

#[test]
fn a_mode_that_somebody_set_is_a_change() {
    check(
        |house| fs::set_permissions(house.path("changed"), Permissions::from_mode(0o600)).unwrap(),
        &["changed ChangedSince"],
        &[("changed", "by the call")],
    );
}

#[test]
fn force_takes_back_the_call_whatever_came_since_and_nothing_else() {
    let (house, id) = after_call();
    house.write("changed", "by a person");
    house.write("untouched", "by a person");
    house.write("folder/theirs", "by a person");
    let undone = house.try_undo(id, true).unwrap();
    assert_eq!(house.kept(&undone), Vec::<String>::new());
    assert_eq!(house.read("changed"), "changed");
    assert_eq!(house.read("untouched"), "by a person");
    assert!(!house.path("folder").exists());
}

#[test]
fn a_call_whose_end_nobody_saw_is_undone_only_by_force() {
    let house = House::new();
    house.write("a", "1");
    let id = house.take().id;
    house.write("a", "2");
    assert!(matches!(house.try_undo(id, false), Err(VaultError::NotConcluded { .. })));
    assert_eq!(house.read("a"), "2");
    house.try_undo(id, true).unwrap();
    assert_eq!(house.read("a"), "1");
}

#[test]
fn undo_redo_and_undo_again_go_back_and_forth() {
    let (house, id) = after_call();
    let by = |id: SnapshotId| house.vault.snapshot(id).unwrap().undone_by;
    let after = house.listing();
    let undone = house.undo(id).saved.unwrap();
    let before = house.listing();
    assert_eq!(by(id), Some(undone));
    let redone = house.undo(undone).saved.unwrap();
    house.is(&after);
    assert_eq!((by(id), by(undone)), (None, Some(redone)));
    let again = house.undo(redone).saved.unwrap();
    house.is(&before);
    assert_eq!((by(id), by(undone), by(redone)), (Some(undone), None, Some(again)));
}

#[test]
fn only_what_is_chosen_is_restored() {
    let (house, id) = after_call();
    let choice = house.choice(&["dir", "deleted", "folder/made"]);
    let restored = house.vault.restore(id, &choice, &Unwatched).unwrap();
    assert_eq!(
        house.done(&restored),
        ["deleted Removed", "dir/changed Modified", "dir/deleted Removed", "folder/made Added"]
    );
    assert_eq!(house.read("changed"), "by the call");
    assert!(house.path("folder").is_dir() && house.path("made").exists());
    assert_eq!(house.vault.snapshot(id).unwrap().undone_by, None);
}

#[test]
fn a_chosen_file_brings_the_folder_that_it_was_in_and_nothing_else_of_it() {
    let house = House::new();
    house.write("dir/deep/a", "1");
    house.write("dir/deep/b", "2");
    let id = house.take().id;
    fs::remove_dir_all(house.path("dir")).unwrap();
    let choice = house.choice(&["dir/deep/a"]);
    house.vault.restore(id, &choice, &Unwatched).unwrap();
    assert_eq!(house.read("dir/deep/a"), "1");
    assert!(!house.path("dir/deep/b").exists());
}

#[test]
fn what_is_not_held_is_never_touched() {
    let house = House::new();
    house.write("a", "1");
    house.write("Cargo.toml", "");
    house.write("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
    house.write("target/debug/x", "built");
    house.write("secret.txt", "old");
    let _listens = UnixListener::bind(house.path("socket")).unwrap();
    let id = house.take().id;
    house.write("a", "2");
    house.write("target/debug/x", "built again");
    house.write("target/debug/y", "built");
    house.write("secret.txt", "new");
    house.write("new/secret.txt", "only here");
    house.write("new/b", "3");
    let _listens_too = UnixListener::bind(house.path("new/socket")).unwrap();
    let restored = house.restore(id);
    assert_eq!(house.kept(&restored), ["new/secret.txt NotHeld", "new/socket NotHeld", "secret.txt NotHeld"]);
    assert_eq!(house.done(&restored), ["a Modified", "new/b Added"]);
    assert_eq!([house.read("a"), house.read("secret.txt")], ["1", "new"]);
    assert_eq!([house.read("target/debug/x"), house.read("target/debug/y")], ["built again", "built"]);
    assert_eq!(house.read("new/secret.txt"), "only here");
    assert!(house.path("socket").exists() && house.path("new/socket").exists());
}

#[test]
fn the_differences_are_what_a_restore_would_do() {
    let (house, id) = after_call();
    let differences = house.vault.differences(id, &[], &Unwatched).unwrap();
    let dry = Choice { dry_run: true, ..house.choice(&[]) };
    let dry = house.vault.restore(id, &dry, &Unwatched).unwrap();
    assert_eq!(differences, dry.done);
    assert_eq!(house.restore(id).done, differences);
    assert_eq!(house.vault.differences(id, &[], &Unwatched).unwrap(), []);
}

#[test]
fn the_content_of_then_can_be_read() {
    let (house, id) = after_call();
    let content = |name: &str, most| house.vault.content(id, &house.path(name), most).unwrap();
    assert_eq!(content("deleted", 99).as_deref(), Some(&b"deleted"[..]));
    assert_eq!(content("deleted", 3).as_deref(), Some(&b"del"[..]));
    assert_eq!((content("made", 99), content("dir", 99)), (None, None));
}

/// Runs git in the tree of a house.
#[allow(clippy::disallowed_types, reason = "a test plays the person who asks git how things stand")]
fn git(house: &House, words: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@b.example"]).args(words);
    let done = command.current_dir(&house.tree).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn whoever_asks_git_how_things_stand_changed_nothing() {
    let house = House::new();
    git(&house, &["init", "-q"]);
    house.write("a", "committed");
    house.write("other", "committed");
    git(&house, &["add", "a", "other"]);
    git(&house, &["commit", "-qm", "a"]);
    house.write("a", "staged");
    house.write("new", "staged");
    git(&house, &["add", "a", "new"]);
    let index = fs::read(house.path(".git/index")).unwrap();
    let id = house.call(|| git(&house, &["reset", "-q", "--hard"]));
    let left = fs::read(house.path(".git/index")).unwrap();
    // So that git has something to note.
    fs::File::open(house.path("other")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    git(&house, &["status"]);
    assert_ne!(fs::read(house.path(".git/index")).unwrap(), left);
    let undone = house.undo(id);
    assert!(undone.kept.is_empty(), "{:?}", house.kept(&undone));
    assert_eq!(fs::read(house.path(".git/index")).unwrap(), index);
    assert_eq!(house.read("new"), "staged");
}

#[test]
fn what_somebody_staged_since_is_kept() {
    let house = House::new();
    git(&house, &["init", "-q"]);
    house.write("a", "1");
    let id = house.call(|| git(&house, &["add", "a"]));
    house.write("b", "2");
    git(&house, &["add", "b"]);
    let undone = house.undo(id);
    assert!(house.kept(&undone).contains(&".git/index ChangedSince".to_owned()), "{:?}", house.kept(&undone));
}

/// What an agent's commit leaves behind, what somebody does then, and whether the repository is whole after an undo.
#[track_caller]
fn check_commit(since: impl FnOnce(&House)) {
    let house = House::new();
    git(&house, &["init", "-q"]);
    house.write("a", "A0");
    house.write("b", "B0");
    git(&house, &["add", "."]);
    git(&house, &["commit", "-qm", "first"]);
    house.write("a", "A1");
    let id = house.call(|| git(&house, &["commit", "-qam", "by the agent"]));
    since(&house);
    house.undo(id);
    git(&house, &["fsck", "--strict"]);
    git(&house, &["log", "--all"]);
    git(&house, &["status"]);
}

#[test]
fn a_repository_is_whole_after_an_undo_whatever_was_done_since() {
    check_commit(|_| {});
    check_commit(|house| {
        house.write("b", "B1");
        git(house, &["commit", "-qam", "by hand"]);
    });
    check_commit(|house| {
        house.write("b", "B1");
        git(house, &["add", "b"]);
    });
    check_commit(|house| git(house, &["branch", "keep"]));
    check_commit(|house| git(house, &["tag", "kept"]));
    check_commit(|house| git(house, &["switch", "-qc", "other"]));
    check_commit(|house| git(house, &["commit", "-q", "--amend", "-m", "amended"]));
}
