//! What may go on around a restore: links swapped in, others at work, a safe that is damaged, a disk that is full.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use unstuck_vault::{Progress, Stage, Unwatched, Vault, VaultError, Watch};

use crate::house::House;
use crate::listing::Listing;

/// Does something once, when a stage is reached.
pub struct At<F: Fn() + Sync> {
    stage: Stage,
    done: AtomicBool,
    deed: F,
}

impl<F: Fn() + Sync> At<F> {
    pub fn new(stage: Stage, deed: F) -> At<F> {
        At { stage, done: AtomicBool::new(false), deed }
    }
}

impl<F: Fn() + Sync> Watch for At<F> {
    fn goes_on(&self, progress: Progress) -> bool {
        if progress.stage == self.stage && !self.done.swap(true, Ordering::SeqCst) {
            (self.deed)();
        }
        true
    }
}

#[test]
fn a_link_swapped_in_for_a_folder_leads_nowhere() {
    let house = House::new();
    let outside = house.tree.parent().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "precious").unwrap();
    house.write("dir/a", "1");
    house.write("dir/b", "1");
    house.write("c", "1");
    let id = house.take().id;
    house.write("dir/a", "2");
    fs::remove_file(house.path("dir/b")).unwrap();
    house.write("c", "2");
    let swap = At::new(Stage::Placing, || {
        fs::rename(house.path("dir"), house.path("moved")).unwrap();
        symlink(&outside, house.path("dir")).unwrap();
    });
    let restored = house.vault.restore(id, &house.choice(&[]), &swap).unwrap();
    assert_eq!(house.kept(&restored), ["dir/a Refused", "dir/b Refused"]);
    assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "precious");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!((house.read("c"), house.read("moved/a")), ("1".to_owned(), "2".to_owned()));
    house.is_tidy();
}

#[test]
fn what_changes_while_the_restore_goes_on_is_kept() {
    let house = House::new();
    for name in ["edited", "replaced", "made", "dir/inside", "plain"] {
        house.write(name, "old");
    }
    let id = house.take().id;
    for name in ["edited", "replaced", "plain"] {
        house.write(name, "by the call");
    }
    fs::remove_file(house.path("made")).unwrap();
    house.write("extra/a", "by the call");
    let meanwhile = At::new(Stage::Placing, || {
        house.write("edited", "somebody types");
        house.write("other", "another file");
        fs::rename(house.path("other"), house.path("replaced")).unwrap();
        house.write("made", "came meanwhile");
        house.write("extra/b", "came meanwhile");
    });
    let restored = house.vault.restore(id, &house.choice(&[]), &meanwhile).unwrap();
    assert_eq!(
        house.kept(&restored),
        [
            "edited ChangedMeanwhile",
            "extra ChangedMeanwhile",
            "extra/a ChangedMeanwhile",
            "made ChangedMeanwhile",
            "replaced ChangedMeanwhile"
        ]
    );
    assert_eq!(house.done(&restored), ["plain Modified"]);
    assert_eq!([house.read("edited"), house.read("replaced")], ["somebody types", "another file"]);
    assert_eq!([house.read("made"), house.read("extra/b")], ["came meanwhile", "came meanwhile"]);
    assert_eq!([house.read("plain"), house.read("extra/a")], ["old", "by the call"]);
    house.is_tidy();
}

#[test]
fn of_two_restores_one_waits_for_the_other() {
    let house = House::new();
    house.write("a", "1");
    let first = house.take().id;
    house.write("a", "2");
    let second = house.take().id;
    house.write("a", "3");
    let busy = At::new(Stage::Placing, || {
        let impatient = Impatient(AtomicUsize::new(0));
        let refused = house.vault.restore(second, &house.choice(&[]), &impatient).unwrap_err();
        assert!(matches!(refused, VaultError::Busy { .. }), "{refused:?}");
    });
    house.vault.restore(first, &house.choice(&[]), &busy).unwrap();
    assert!(busy.done.load(Ordering::SeqCst));
    assert_eq!(house.read("a"), "1");
    thread::scope(|scope| {
        for id in [first, second, first, second] {
            let house = &house;
            scope.spawn(move || house.restore(id));
        }
    });
    assert!(["1", "2"].contains(&house.read("a").as_str()));
    house.is_tidy();
}

struct Impatient(AtomicUsize);

impl Watch for Impatient {
    fn goes_on(&self, _progress: Progress) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst) < 3
    }
}

#[test]
fn whoever_ends_it_before_it_is_written_down_finds_everything_as_it_was() {
    struct Ended;
    impl Watch for Ended {
        fn goes_on(&self, progress: Progress) -> bool {
            progress.stage != Stage::Preparing
        }
    }
    let house = House::new();
    house.write("a", "1");
    let id = house.take().id;
    house.write("a", "2");
    let before = house.listing();
    let ended = house.vault.restore(id, &house.choice(&[]), &Ended).unwrap_err();
    assert!(matches!(ended, VaultError::Stopped));
    house.is(&before);
    house.is_tidy();
    assert_eq!(house.vault.snapshots().unwrap().len(), 1);
}

#[test]
fn what_is_damaged_is_named_and_the_rest_comes_back() {
    let house = House::new();
    let noise = |seed: u32| -> Vec<u8> {
        (0..4000_u32).flat_map(|n| (n.wrapping_mul(seed)).wrapping_mul(0x9E37_79B9).to_le_bytes()).collect()
    };
    for (number, name) in ["a", "dir/b", "dir/c", "d"].into_iter().enumerate() {
        house.write(name, noise(number as u32 * 2 + 3));
    }
    let id = house.take().id;
    let hit = noise(5);
    let pack = fs::read_dir(house.vault.folder().join("packs")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&pack).unwrap();
    let at = bytes.windows(64).position(|window| window == &hit[1000..1064]);
    let Some(at) = at else { panic!("noise is not compressed") };
    bytes[at] ^= 1;
    fs::write(&pack, bytes).unwrap();
    fs::remove_dir_all(house.path("dir")).unwrap();
    house.write("a", "changed");
    let restored = house.restore(id);
    assert_eq!(house.kept(&restored), ["dir/b Damaged"]);
    assert_eq!(house.done(&restored), ["a Modified", "dir Removed", "dir/c Removed"]);
    assert_eq!(fs::read(house.path("dir/c")).unwrap(), noise(7));
    assert!(!house.path("dir/b").exists());
}

#[test]
fn a_stage_without_a_journal_is_rubbish() {
    let house = House::new();
    house.write("a", "1");
    let before = house.listing();
    let stage = house.vault.folder().join("stages/77");
    fs::create_dir(&stage).unwrap();
    fs::write(stage.join("0"), "half made").unwrap();
    let above = house.tree.parent().unwrap();
    // Noted by its inode, or by none where it was about to be made; with something in it or not; and is it removed?
    let cases: [(&str, fn(u64) -> String, bool, bool); 6] = [
        (".unstuck-restore-made", |inode| inode.to_string(), true, true),
        (".unstuck-restore-about-to-be", |_| String::new(), false, true),
        (".unstuck-restore-about-to-be-in-use", |_| String::new(), true, false),
        (".unstuck-restore-another", |inode| (inode + 1).to_string(), true, false),
        (".unstuck-restore-other-empty", |inode| (inode + 1).to_string(), false, false),
        ("not-ours", |inode| inode.to_string(), true, false),
    ];
    let noted = cases.map(|(name, inode, is_full, _)| {
        fs::create_dir(above.join(name)).unwrap();
        if is_full {
            fs::write(above.join(name).join("x"), "1").unwrap();
        }
        let found = fs::metadata(above.join(name)).unwrap().ino();
        format!("{} {}", inode(found), above.join(name).display())
    });
    fs::write(stage.join("elsewhere"), noted.join("\0")).unwrap();
    Vault::open(house.vault.folder()).unwrap();
    assert!(!stage.exists());
    for (name, _, _, is_removed) in cases {
        assert_eq!(above.join(name).exists(), !is_removed, "{name}");
    }
    house.is(&before);
}

#[test]
fn a_disk_that_is_too_small_is_found_before_anything_is_touched() {
    let house = House::new();
    house.write("a", "1");
    let id = house.take().id;
    house.write("a", "2");
    let mut choice = house.choice(&[]);
    choice.reserve.max_size = 0;
    let full = house.vault.restore(id, &choice, &Unwatched).unwrap_err();
    assert!(matches!(full, VaultError::OverBudget { .. }), "{full:?}");
    assert_eq!(house.read("a"), "2");
    house.is_tidy();
}

#[test]
fn a_link_that_took_the_place_of_a_folder_above_leads_nowhere() {
    let house = House::new();
    let above = house.path("above");
    house.write("above/scope/a", "1");
    house.write("above/scope/gone", "1");
    house.write("beside/b", "1");
    let id = house.take_of(&[above.join("scope"), house.path("beside")]).id;
    // Another tree, with other things in it, is where the link leads.
    house.write("elsewhere/scope/a", "precious");
    house.write("elsewhere/scope/more", "precious");
    house.write("beside/b", "2");
    fs::rename(&above, house.path("moved")).unwrap();
    symlink(house.path("elsewhere"), &above).unwrap();
    let (moved, elsewhere) = (house.path("moved"), house.path("elsewhere"));
    let outside = Listing::of(&[&moved, &elsewhere]).unwrap();
    for _again in 0..2 {
        let restored = house.restore(id);
        let kept = house.kept(&restored);
        assert!(kept.iter().any(|kept| kept == "above/scope Refused"), "{kept:?}");
        assert!(kept.iter().all(|kept| kept.ends_with("Refused")), "{kept:?}");
        assert_eq!(Listing::of(&[&moved, &elsewhere]).unwrap().differs_from(&outside), None::<String>);
        assert_eq!(house.read("beside/b"), "1");
        house.is_tidy();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_whose_marks_may_not_be_set_is_not_said_to_be_brought_back() {
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

    let house = House::new();
    house.write("dir/a", "1");
    house.write("b", "1");
    let id = house.take().id;
    fs::set_permissions(house.path("dir"), fs::Permissions::from_mode(0o711)).unwrap();
    house.write("b", "2");
    let dir = fs::File::open(house.path("dir")).unwrap();
    let Ok(flags) = ioctl_getflags(&dir) else { return skipped("this filesystem knows no flags") };
    if ioctl_setflags(&dir, flags | IFlags::IMMUTABLE).is_err() {
        return skipped("only root may forbid everybody to change a folder");
    }
    let restored = house.restore(id);
    ioctl_setflags(&dir, flags).unwrap();
    assert_eq!(
        (house.done(&restored), house.kept(&restored)),
        (strings(["b Modified"]), strings(["dir Refused"]))
    );
    let restored = house.restore(id);
    assert_eq!((house.done(&restored), house.kept(&restored)), (strings(["dir Touched"]), Vec::new()));
}

#[cfg(target_os = "linux")]
fn strings<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

#[cfg(target_os = "linux")]
#[allow(clippy::print_stderr, reason = "what is not tested is said")]
fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
}

#[test]
fn a_pipe_in_the_place_of_a_file_of_the_safe_is_damage_and_nobody_waits_at_it() {
    for room in ["format", "counter", "journal", "snapshots", "packs", "manifests"] {
        let house = House::new();
        house.write("a", "some content that is not empty");
        let id = house.take().id;
        house.write("a", "2");
        let mut path = house.vault.folder().join(room);
        if path.is_dir() {
            path = fs::read_dir(&path).unwrap().next().unwrap().unwrap().path();
        }
        let _it_may_not_be_there = fs::remove_file(&path);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let opened = Vault::open(house.vault.folder());
        let is_damage =
            |error: &VaultError| matches!(error, VaultError::Damaged { path: named } if *named == path);
        match (room, opened) {
            ("format", opened) => assert!(is_damage(&opened.unwrap_err())),
            ("counter", vault) => {
                vault.unwrap().take(&house.wish(std::slice::from_ref(&house.tree)), &Unwatched).unwrap();
            }
            ("journal", vault) => assert_eq!(vault.unwrap().given_up().unwrap().len(), 1),
            ("packs", vault) => {
                let restored = vault.unwrap().restore(id, &house.choice(&[]), &Unwatched).unwrap();
                assert_eq!(house.kept(&restored), ["a Damaged"]);
            }
            (_, vault) => {
                let refused = vault.unwrap().restore(id, &house.choice(&[]), &Unwatched);
                assert!(is_damage(&refused.unwrap_err()), "{room}");
            }
        }
    }
}
