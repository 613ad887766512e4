//! Each kind of thing, and each way in which it can be harmed: it comes back exactly, and what was done can be done again.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat};

use crate::house::House;

/// What is made, what is then done to it, and what is told of bringing it back.
fn check(make: impl FnOnce(&House), harm: impl FnOnce(&House), told: &[&str]) {
    check_in(&House::new(), make, harm, told);
}

fn check_in(house: &House, make: impl FnOnce(&House), harm: impl FnOnce(&House), told: &[&str]) {
    make(house);
    let taken = house.take();
    let before = house.listing();
    harm(house);
    let after = house.listing();
    let dry = unstuck_vault::Choice { dry_run: true, ..house.choice(&[]) };
    let dry = house.vault.restore(taken.id, &dry, &unstuck_vault::Unwatched).unwrap();
    house.is(&after);
    let restored = house.restore(taken.id);
    assert_eq!(restored.kept, []);
    house.is(&before);
    assert_eq!(house.done(&restored), told);
    assert_eq!((&dry.done, &dry.kept, dry.saved), (&restored.done, &restored.kept, None));
    assert_eq!(house.restore(taken.id).saved, None, "there is nothing left to do");
    house.is_tidy();
    let redone = house.undo(restored.saved.unwrap());
    assert_eq!(redone.kept, []);
    house.is(&after);
    house.is_tidy();
    assert_eq!(house.vault.check(&[], &unstuck_vault::Unwatched).unwrap().damages, []);
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o640), 0).unwrap();
}

#[test]
fn a_changed_file_gets_its_content_back() {
    check(
        |house| house.write("src/a.rs", "fn a() {}"),
        |house| house.write("src/a.rs", "oops"),
        &["src/a.rs Modified"],
    );
}

#[test]
fn a_deleted_file_is_made_again() {
    check(|house| house.write("a", "1"), |house| fs::remove_file(house.path("a")).unwrap(), &["a Removed"]);
}

#[test]
fn a_new_file_goes_and_its_folder_is_as_old_as_before() {
    check(|house| house.write("src/a", "1"), |house| house.write("src/b", "2"), &["src/b Added"]);
}

#[test]
fn a_deleted_folder_comes_back_with_everything_in_it() {
    check(
        |house| {
            house.write("src/a", "1");
            house.write("src/deep/er/b", "2");
            fs::create_dir(house.path("src/empty")).unwrap();
            symlink("a", house.path("src/link")).unwrap();
        },
        |house| fs::remove_dir_all(house.path("src")).unwrap(),
        &[
            "src Removed",
            "src/a Removed",
            "src/deep Removed",
            "src/deep/er Removed",
            "src/deep/er/b Removed",
            "src/empty Removed",
            "src/link Removed",
        ],
    );
}

#[test]
fn the_whole_tree_comes_back() {
    check(
        |house| house.write("src/a", "1"),
        |house| fs::remove_dir_all(&house.tree).unwrap(),
        &[" Removed", "src Removed", "src/a Removed"],
    );
}

#[test]
fn a_new_folder_goes_with_everything_in_it() {
    check(
        |house| house.write("a", "1"),
        |house| house.write("new/deep/b", "2"),
        &["new Added", "new/deep Added", "new/deep/b Added"],
    );
}

#[test]
fn mode_and_time_come_back_without_the_content_being_written() {
    check(
        |house| house.write("a", "1"),
        |house| {
            mode(&house.path("a"), 0o600);
            let long_ago = SystemTime::UNIX_EPOCH + Duration::new(86400, 123_456_789);
            File::open(house.path("a")).unwrap().set_modified(long_ago).unwrap();
        },
        &["a Touched"],
    );
}

#[test]
fn a_file_that_was_only_touched_stays_the_same_file() {
    let house = House::new();
    house.write("a", "1");
    let taken = house.take();
    let inode = house.path("a").metadata().unwrap().ino();
    mode(&house.path("a"), 0o755);
    let restored = house.restore(taken.id);
    assert_eq!((house.path("a").metadata().unwrap().ino(), restored.written), (inode, 0));
}

#[test]
fn links_are_links_and_never_followed() {
    check(
        |house| {
            symlink("/etc/passwd", house.path("out")).unwrap();
            symlink("nowhere", house.path("broken")).unwrap();
        },
        |house| {
            fs::remove_file(house.path("out")).unwrap();
            symlink("/etc/hosts", house.path("out")).unwrap();
            fs::remove_file(house.path("broken")).unwrap();
        },
        &["broken Removed", "out Modified"],
    );
}

#[test]
fn what_became_something_else_becomes_what_it_was() {
    check(
        |house| {
            house.write("file", "1");
            house.write("folder/a", "2");
            symlink("file", house.path("link")).unwrap();
            fifo(&house.path("pipe"));
        },
        |house| {
            fs::remove_file(house.path("file")).unwrap();
            house.write("file/in/it", "now a folder");
            fs::remove_dir_all(house.path("folder")).unwrap();
            house.write("folder", "now a file");
            fs::remove_file(house.path("link")).unwrap();
            fs::create_dir(house.path("link")).unwrap();
            fs::remove_file(house.path("pipe")).unwrap();
            symlink("file", house.path("pipe")).unwrap();
        },
        &[
            "file Retyped",
            "file/in Added",
            "file/in/it Added",
            "folder Retyped",
            "folder/a Removed",
            "link Retyped",
            "pipe Retyped",
        ],
    );
}

#[test]
fn pipes_are_made_again() {
    check(
        |house| fifo(&house.path("pipe")),
        |house| fs::remove_file(house.path("pipe")).unwrap(),
        &["pipe Removed"],
    );
}

#[test]
fn names_that_are_no_text_come_back() {
    let name = OsStr::from_bytes(b"na\xff\xfeme\n");
    check(
        |house| fs::write(house.tree.join(name), "1").unwrap(),
        |house| fs::write(house.tree.join(name), "22").unwrap(),
        &["na\u{fffd}\u{fffd}me\n Modified"],
    );
}

#[test]
fn attributes_come_back() {
    let set = |path: &Path, name: &str, value: &str| {
        rustix::fs::setxattr(path, name, value.as_bytes(), XattrFlags::empty()).unwrap();
    };
    check(
        |house| {
            for name in ["changed", "lost", "gone"] {
                house.write(name, name);
                set(&house.path(name), "user.color", "red");
            }
            house.write("plain", "");
            fs::create_dir(house.path("folder")).unwrap();
            set(&house.path("folder"), "user.of", "folder");
        },
        |house| {
            set(&house.path("changed"), "user.color", "blue");
            rustix::fs::removexattr(house.path("lost"), "user.color").unwrap();
            fs::remove_file(house.path("gone")).unwrap();
            set(&house.path("plain"), "user.new", "1");
            rustix::fs::removexattr(house.path("folder"), "user.of").unwrap();
        },
        &["changed Touched", "folder Touched", "gone Removed", "lost Touched", "plain Touched"],
    );
}

#[test]
fn names_of_one_file_are_names_of_one_file_again() {
    let link = |house: &House, old: &str, new: &str| fs::hard_link(house.path(old), house.path(new)).unwrap();
    check(
        |house| {
            house.write("a", "one file");
            link(house, "a", "b");
            house.write("far/c", "another");
            link(house, "far/c", "d");
            house.write("apart", "twice the same");
        },
        |house| {
            // One name becomes a file of its own, one goes with its folder, and one file gets a name that it did not have.
            let modified = house.path("b").metadata().unwrap().modified().unwrap();
            fs::remove_file(house.path("b")).unwrap();
            house.write("b", "one file");
            File::open(house.path("b")).unwrap().set_modified(modified).unwrap();
            fs::remove_dir_all(house.path("far")).unwrap();
            link(house, "apart", "together");
        },
        &["b Touched", "far Removed", "far/c Removed", "together Added"],
    );
}

#[test]
fn a_file_with_holes_takes_no_more_of_the_disk_than_before() {
    let house = House::new();
    let make = |house: &House| {
        for (name, size) in [("small", 256 << 10), ("big", 64 << 20)] {
            let mut file = File::create(house.path(name)).unwrap();
            file.set_len(size).unwrap();
            file.seek(SeekFrom::Start(size / 2)).unwrap();
            file.write_all(b"in the middle").unwrap();
        }
    };
    check_in(
        &house,
        make,
        |house| {
            fs::remove_file(house.path("small")).unwrap();
            fs::write(house.path("big"), "short").unwrap();
        },
        &["big Modified", "small Removed"],
    );
    let first = house.vault.snapshots().unwrap()[0].id;
    house.restore(first);
    for name in ["small", "big"] {
        let blocks = house.path(name).metadata().unwrap().blocks();
        assert!(blocks <= 32, "{name} takes {blocks} blocks");
    }
}

#[test]
fn a_big_file_comes_back_part_by_part() {
    let big: Vec<u8> = (0..9_u32 << 18).flat_map(|number| (number ^ 0x5bd1_e995).to_le_bytes()).collect();
    check(
        |house| house.write("big", &big),
        |house| {
            let mut file = OpenOptions::new().write(true).open(house.path("big")).unwrap();
            file.seek(SeekFrom::Start(5 << 20)).unwrap();
            file.write_all(b"scribble").unwrap();
        },
        &["big Modified"],
    );
}

#[test]
fn folders_that_may_not_be_written_are_no_obstacle() {
    check(
        |house| {
            house.write("closed/a", "1");
            house.write("closed/inner/b", "2");
            mode(&house.path("closed/inner"), 0o555);
            mode(&house.path("closed"), 0o555);
        },
        |house| {
            mode(&house.path("closed"), 0o755);
            mode(&house.path("closed/inner"), 0o755);
            house.write("closed/a", "changed");
            fs::remove_dir_all(house.path("closed/inner")).unwrap();
            mode(&house.path("closed"), 0o500);
        },
        &["closed Touched", "closed/a Modified", "closed/inner Removed", "closed/inner/b Removed"],
    );
}

#[test]
fn a_repository_comes_back_whole() {
    check(
        |house| {
            house.write(".git/HEAD", "ref: refs/heads/main\n");
            house.write(".git/refs/heads/main", "1111\n");
            house.write(".git/objects/11/11", "object");
            house.write("a", "1");
        },
        |house| {
            house.write(".git/refs/heads/main", "2222\n");
            house.write(".git/objects/22/22", "object");
            fs::remove_dir_all(house.path(".git/objects/11")).unwrap();
        },
        &[
            ".git/objects/11 Removed",
            ".git/objects/11/11 Removed",
            ".git/objects/22 Added",
            ".git/objects/22/22 Added",
            ".git/refs/heads/main Modified",
        ],
    );
}

#[test]
fn a_tree_on_another_filesystem_is_restored_beside_itself() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    check_in(
        &House::at(Some(memory)),
        |house| {
            house.write("src/a", "1");
            house.write("b", "2");
            house.write("same", "3");
        },
        |house| {
            fs::remove_dir_all(house.path("src")).unwrap();
            house.write("b", "changed");
            house.write("new/c", "4");
        },
        &["b Modified", "new Added", "new/c Added", "src Removed", "src/a Removed"],
    );
}

#[test]
fn a_scope_that_was_not_there_goes_and_one_that_is_gone_comes_with_the_folders_above_it() {
    let house = House::new();
    house.write("above/it/scope/a", "1");
    let scopes = [house.path("above/it/scope"), house.path("later")];
    let taken = house.take_of(&scopes);
    fs::remove_dir_all(house.path("above")).unwrap();
    house.write("later", "came");
    let restored = house.restore(taken.id);
    assert_eq!(restored.kept, []);
    assert_eq!(house.read("above/it/scope/a"), "1");
    assert!(!house.path("later").exists());
    house.undo(restored.saved.unwrap());
    assert!(!house.path("above/it/scope").exists());
    assert_eq!(house.read("later"), "came");
}

#[test]
fn names_of_one_file_that_all_went_come_back_as_names_of_one_file() {
    check(
        |house| {
            house.write("a", "");
            fs::create_dir(house.path("dir")).unwrap();
            fs::hard_link(house.path("a"), house.path("dir/b")).unwrap();
        },
        |house| {
            fs::remove_file(house.path("a")).unwrap();
            fs::remove_dir_all(house.path("dir")).unwrap();
        },
        &["a Removed", "dir Removed", "dir/b Removed"],
    );
}
