//! Looking after a safe, tried on small ones that are put together by hand: check, expiry, removal and repacking.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::entry::{Attributes, Entry, Flags, HOLE, Hash};
use crate::folder::{Folder, Hold, Number, Room};
use crate::journal::Journal;
use crate::layer::{Listed, Listing, Writer};
use crate::pack::{Batch, Look, PackWriter, Packs};
use crate::stored_snapshot::{Lists, StoredSnapshot};
use crate::{
    Checked, Origin, Progress, Retention, Scope, Snapshot, SnapshotId, Unwatched, Vault, VaultError, Watch,
};

const NOW: u64 = 1_000_000;
const FOREVER: Retention =
    Retention { per_target: usize::MAX, max_age: Duration::MAX, max_size: u64::MAX, spare_persons: false };

/// A safe, and a clock.
struct Safe {
    temp: TempDir,
    folder: Folder,
}

/// What a file holds.
#[derive(Clone)]
enum Held {
    Small(Vec<u8>),
    /// Chunks; nothing is a hole.
    Large(Vec<Option<Vec<u8>>>),
}

fn small(text: &str) -> Held {
    Held::Small(text.as_bytes().to_vec())
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(NOW)
}

impl Safe {
    fn new() -> Safe {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::make(&temp.path().join("vault")).unwrap();
        Safe { temp, folder }
    }

    fn vault(&self) -> Vault {
        Vault::existing(self.folder.path()).unwrap()
    }

    /// Puts contents into a pack of their own.
    fn pack(&self, contents: &[&[u8]]) -> Number {
        let writer = PackWriter::begin(&self.folder).unwrap();
        let mut batch = Batch::default();
        contents.iter().for_each(|content| batch.add(*blake3::hash(content).as_bytes(), content, false));
        writer.write(&mut batch).unwrap();
        let hidden = writer.finish().unwrap().unwrap();
        let number = self.folder.desk().unwrap().next().unwrap();
        self.folder.publish(&hidden, Room::Packs, number).unwrap();
        number
    }

    /// Keeps files of the folder `/t`, one pack and one list for them.
    fn keep(&self, files: &[(&str, Held)], base: Option<(Number, u32)>) -> (SnapshotId, Number) {
        let mut contents: Vec<Vec<u8>> = Vec::new();
        let mut entries = Vec::new();
        for (name, held) in files {
            let (content, flags) = match held {
                Held::Small(bytes) => (bytes.clone(), Flags::default()),
                Held::Large(chunks) => {
                    let hash = |chunk: &Option<Vec<u8>>| -> Hash {
                        chunk.as_ref().map_or(HOLE, |chunk| *blake3::hash(chunk).as_bytes())
                    };
                    contents.extend(chunks.iter().flatten().cloned());
                    (chunks.iter().flat_map(hash).collect(), Flags::CHUNKED)
                }
            };
            let hash = *blake3::hash(&content).as_bytes();
            let entry = Entry { mode: 0o100_644, size: content.len() as u64, hash, flags, ..Entry::ABSENT };
            entries.push(Listed { name: name.as_bytes().to_vec(), entry, attributes: Attributes::new() });
            contents.push(content);
        }
        let packs = Packs::open(&self.folder).unwrap();
        contents.retain(|content| !packs.has(blake3::hash(content).as_bytes(), Look::Everywhere));
        contents.sort();
        contents.dedup();
        let stored: usize = contents.iter().map(Vec::len).sum();
        if !contents.is_empty() {
            self.pack(&contents.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        let mut writer = Writer::new(base);
        let scope = Entry { mode: 0o040_755, ..Entry::ABSENT };
        let scope = Listed { name: b"/t".to_vec(), entry: scope, attributes: Attributes::new() };
        writer.folder(b"", &Listing { device: 0, entries: vec![scope] });
        writer.folder(b"/t", &Listing { device: 1, entries });
        let list = self.folder.desk().unwrap().next().unwrap();
        self.folder.replace(&self.folder.numbered(Room::Manifests, list), &writer.finish()).unwrap();
        (self.record(list, stored as u64), list)
    }

    fn record(&self, before: Number, stored: u64) -> SnapshotId {
        let id = SnapshotId(self.folder.desk().unwrap().next().unwrap());
        let snapshot = Snapshot {
            id,
            at: now(),
            origin: Origin::Restore { of: SnapshotId(0) },
            note: String::new(),
            scopes: vec![Scope { path: "/t".into() }],
            gaps: Vec::new(),
            gap_count: 0,
            entries: 1,
            bytes: stored,
            stored,
            pinned: false,
            concluded: false,
            changed: None,
            undone_by: None,
        };
        let lists = Lists { before, takes_rebuildable: false, never: Vec::new() };
        StoredSnapshot::new(&snapshot, lists).write(&self.folder).unwrap();
        id
    }

    fn ids(&self) -> Vec<SnapshotId> {
        self.vault().snapshots().unwrap().iter().map(|snapshot| snapshot.id).collect()
    }

    fn numbers(&self, room: Room) -> Vec<Number> {
        let mut numbers = self.folder.numbers(room).unwrap();
        numbers.sort_unstable();
        numbers
    }

    fn check(&self) -> Checked {
        self.vault().check(&[], &Unwatched).unwrap()
    }

    #[track_caller]
    fn is_whole(&self) {
        assert_eq!(self.check().damages, [], "{:?}", self.temp.path());
    }

    fn holds(&self, text: &str) -> bool {
        Packs::open(&self.folder).unwrap().has(blake3::hash(text.as_bytes()).as_bytes(), Look::Everywhere)
    }

    /// All files of the safe that say something.
    fn files(&self) -> Vec<PathBuf> {
        let in_room =
            |room| self.numbers(room).into_iter().map(move |number| self.folder.numbered(room, number));
        [Room::Snapshots, Room::Manifests, Room::Packs].into_iter().flat_map(in_room).collect()
    }
}

fn flip(path: &Path, at: usize) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at as u64).unwrap();
}

fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn a_sound_safe_is_found_sound_and_each_content_is_read_once() {
    let safe = Safe::new();
    let large = Held::Large(vec![Some(noise(5000)), None, Some(b"x".to_vec())]);
    safe.keep(&[("a", small("one")), ("same", small("one")), ("big", large)], None);
    safe.keep(&[("a", small("one"))], None);
    let checked = safe.check();
    assert_eq!(checked.damages, []);
    assert_eq!((checked.snapshots.len(), checked.contents), (2, 4));
    assert_eq!(checked.bytes, 3 + 5000 + 1 + 96);
}

#[test]
fn any_flipped_byte_is_found_or_harms_nothing() {
    let safe = Safe::new();
    let large = Held::Large(vec![Some(noise(64)), None, Some(b"second".to_vec())]);
    let (_, base) = safe.keep(&[("a", small("one")), ("b", small("two")), ("big", large)], None);
    safe.keep(&[("a", small("three"))], Some((base, 1)));
    let (mut found, mut harmless) = (0, 0);
    for file in safe.files() {
        for at in 0..fs::metadata(&file).unwrap().len() as usize {
            flip(&file, at);
            let checked = safe.check();
            match checked.damages.is_empty() {
                true => {
                    assert_eq!(checked.contents, 6, "byte {at} of {file:?}");
                    harmless += 1;
                }
                false => {
                    assert!(
                        checked.damages.iter().all(|damage| damage.file == file),
                        "byte {at} of {file:?}"
                    );
                    found += 1;
                }
            }
            flip(&file, at);
        }
    }
    safe.is_whole();
    assert!(found > 1000 && harmless > 100, "{found} {harmless}");
}

#[test]
fn a_flipped_content_names_its_snapshots_and_files_and_no_others() {
    let safe = Safe::new();
    let chunks = vec![Some(b"first chunk".to_vec()), Some(b"second chunk".to_vec())];
    let (one, _) = safe.keep(&[("a", small("one")), ("big", Held::Large(chunks)), ("z", small("z"))], None);
    let (two, _) = safe.keep(&[("b", small("one"))], None);
    let pack = safe.files().pop().unwrap();
    for (content, expected) in
        [("one", vec![(one, "/t/a"), (two, "/t/b")]), ("second chunk", vec![(one, "/t/big")])]
    {
        let bytes = fs::read(&pack).unwrap();
        let at = bytes.windows(content.len()).position(|window| window == content.as_bytes()).unwrap();
        flip(&pack, at);
        let damages = safe.check().damages;
        let named: Vec<_> =
            damages.iter().map(|damage| (damage.snapshot, damage.path.to_str().unwrap())).collect();
        assert_eq!(named, expected);
        assert!(damages.iter().all(|damage| damage.file == pack));
        flip(&pack, at);
    }
}

#[test]
fn missing_packs_lists_and_records_are_found() {
    for room in [Room::Manifests, Room::Packs] {
        let safe = Safe::new();
        let (one, _) = safe.keep(&[("a", small("one"))], None);
        fs::remove_file(safe.folder.numbered(room, safe.numbers(room)[0])).unwrap();
        let damages = safe.check().damages;
        assert_eq!(damages.iter().map(|damage| damage.snapshot).collect::<Vec<_>>(), [one], "{room:?}");
    }
    let safe = Safe::new();
    let there_is_none = safe.vault().check(&[SnapshotId(7)], &Unwatched).unwrap_err();
    assert!(matches!(there_is_none, VaultError::NoSuchSnapshot { id: SnapshotId(7) }));
}

#[test]
fn what_only_a_removed_snapshot_needs_goes_with_it() {
    let safe = Safe::new();
    let (one, _) = safe.keep(&[("a", small("one")), ("b", small("shared"))], None);
    let (two, _) = safe.keep(&[("a", small("two")), ("b", small("shared"))], None);
    let collected = safe.vault().remove(&[one], &Unwatched).unwrap();
    assert_eq!(collected.snapshots, [one]);
    assert!(collected.after < collected.before);
    assert_eq!(safe.ids(), [two]);
    assert!(!safe.holds("one") && safe.holds("two") && safe.holds("shared"));
    assert_eq!(safe.numbers(Room::Manifests).len(), 1);
    safe.is_whole();
    safe.vault().remove(&[two], &Unwatched).unwrap();
    assert_eq!(safe.files(), Vec::<PathBuf>::new());
}

#[test]
fn of_several_to_remove_none_goes_where_one_is_not_there() {
    let safe = Safe::new();
    let (one, _) = safe.keep(&[("a", small("one"))], None);
    let wrong = safe.vault().remove(&[one, SnapshotId(99)], &Unwatched).unwrap_err();
    assert!(matches!(wrong, VaultError::NoSuchSnapshot { id: SnapshotId(99) }));
    assert_eq!(safe.ids(), [one]);
}

#[test]
fn a_list_below_another_one_stays_while_that_is_needed() {
    let safe = Safe::new();
    let (one, below) = safe.keep(&[("a", small("one"))], None);
    let (_, above) = safe.keep(&[("a", small("two"))], Some((below, 1)));
    safe.vault().remove(&[one], &Unwatched).unwrap();
    assert_eq!(safe.numbers(Room::Manifests), [below, above]);
    assert!(!safe.holds("one"), "what only the list below names is not needed");
    safe.is_whole();
}

#[test]
fn damage_to_a_record_or_list_keeps_everything_until_it_is_dropped_by_hand() {
    for room in [Room::Snapshots, Room::Manifests] {
        let safe = Safe::new();
        let (one, _) = safe.keep(&[("a", small("one"))], None);
        let (two, _) = safe.keep(&[("a", small("two"))], None);
        let (three, _) = safe.keep(&[("a", small("three"))], None);
        flip(&safe.folder.numbered(room, safe.numbers(room)[1]), 60);
        let collected = safe.vault().remove(&[one], &Unwatched).unwrap();
        assert_eq!(collected.blocked_by, [two], "{room:?}");
        assert!(safe.holds("one") && safe.holds("two") && safe.holds("three"), "{room:?}");
        let tiny = Retention { max_size: 1, ..FOREVER };
        let collected = safe.vault().collect(&tiny, now(), &Unwatched).unwrap();
        assert_eq!((collected.snapshots.len(), collected.blocked_by), (0, vec![two]), "{room:?}");
        match room {
            Room::Snapshots => assert_eq!(safe.vault().unreadable().unwrap(), [two]),
            Room::Manifests | Room::Packs | Room::Stages => {}
        }
        let collected = safe.vault().remove(&[two], &Unwatched).unwrap();
        assert_eq!(collected.blocked_by, []);
        assert!(!safe.holds("one") && !safe.holds("two") && safe.holds("three"), "{room:?}");
        assert_eq!(safe.ids(), [three]);
        safe.is_whole();
    }
}

#[test]
fn a_list_of_chunks_that_cannot_be_read_keeps_everything() {
    let safe = Safe::new();
    let chunks = vec![Some(b"first chunk".to_vec()), Some(b"second chunk".to_vec())];
    let (big, _) = safe.keep(&[("big", Held::Large(chunks.clone()))], None);
    let (other, _) = safe.keep(&[("a", small("other"))], None);
    let list: Vec<u8> = chunks.iter().flatten().flat_map(|chunk| *blake3::hash(chunk).as_bytes()).collect();
    let pack = safe.folder.numbered(Room::Packs, safe.numbers(Room::Packs)[0]);
    let bytes = fs::read(&pack).unwrap();
    flip(&pack, bytes.windows(64).position(|window| window == list).unwrap());
    let collected = safe.vault().remove(&[other], &Unwatched).unwrap();
    assert_eq!(collected.blocked_by, [big]);
    assert!(safe.holds("first chunk") && safe.holds("other"));
}

#[test]
fn a_damaged_content_stays_where_it_is_and_the_rest_moves() {
    let safe = Safe::new();
    let (one, _) = safe.keep(&[("a", small("dead")), ("b", small("damaged")), ("c", small("sound"))], None);
    let (two, _) = safe.keep(&[("b", small("damaged")), ("c", small("sound"))], None);
    let old = safe.numbers(Room::Packs)[0];
    let pack = safe.folder.numbered(Room::Packs, old);
    let bytes = fs::read(&pack).unwrap();
    flip(&pack, bytes.windows(7).position(|window| window == b"damaged").unwrap());
    safe.vault().remove(&[one], &Unwatched).unwrap();
    let damages = safe.check().damages;
    assert_eq!(damages.len(), 1);
    assert_eq!((damages[0].snapshot, &damages[0].path), (two, &PathBuf::from("/t/b")));
    assert!(safe.numbers(Room::Packs).contains(&old));
}

#[test]
fn an_index_that_is_damaged_is_made_again() {
    let safe = Safe::new();
    safe.keep(&[("a", small("one")), ("b", small("two"))], None);
    let old = safe.numbers(Room::Packs)[0];
    let pack = safe.folder.numbered(Room::Packs, old);
    flip(&pack, fs::metadata(&pack).unwrap().len() as usize - 1);
    safe.vault().collect(&FOREVER, now(), &Unwatched).unwrap();
    assert_ne!(safe.numbers(Room::Packs), [old]);
    assert!(Packs::open(&safe.folder).unwrap().iter().all(|pack| pack.is_whole));
    safe.is_whole();
}

#[test]
fn many_small_packs_become_one() {
    let safe = Safe::new();
    for number in 0..33 {
        safe.keep(&[("a", small(&format!("content {number}")))], None);
    }
    assert_eq!(safe.numbers(Room::Packs).len(), 33);
    safe.vault().collect(&FOREVER, now(), &Unwatched).unwrap();
    assert_eq!(safe.numbers(Room::Packs).len(), 1);
    assert_eq!(safe.ids().len(), 33);
    safe.is_whole();
}

#[test]
fn what_can_be_compressed_is_compressed_once_and_the_rest_left_alone() {
    let safe = Safe::new();
    let text = "plain words, again and again; ".repeat(100_000);
    safe.keep(&[("text", small(&text))], None);
    safe.keep(&[("noise", Held::Small(noise(3 << 20)))], None);
    let noisy = safe.numbers(Room::Packs)[1];
    let collected = safe.vault().collect(&FOREVER, now(), &Unwatched).unwrap();
    assert!(collected.after < collected.before - 2_500_000, "{collected:?}");
    let packs = safe.numbers(Room::Packs);
    assert!(packs.contains(&noisy));
    safe.is_whole();
    safe.vault().collect(&FOREVER, now(), &Unwatched).unwrap();
    assert_eq!(safe.numbers(Room::Packs), packs);
}

#[test]
fn what_stands_in_two_packs_is_given_up_in_one_only_where_the_other_is_sound() {
    for is_newer_sound in [true, false] {
        let safe = Safe::new();
        safe.keep(&[("a", small("twice"))], None);
        let newer = safe.pack(&[b"twice"]);
        if !is_newer_sound {
            let pack = safe.folder.numbered(Room::Packs, newer);
            let bytes = fs::read(&pack).unwrap();
            flip(&pack, bytes.windows(5).position(|window| window == b"twice").unwrap());
        }
        safe.vault().collect(&FOREVER, now(), &Unwatched).unwrap();
        safe.is_whole();
    }
}

#[test]
fn expiry_costs_nothing_where_nothing_is_due_and_waits_for_nobody() {
    let safe = Safe::new();
    for number in 0..4 {
        safe.keep(&[("a", small(&format!("content {number}")))], None);
    }
    let retention = Retention { per_target: 3, ..FOREVER };
    assert_eq!(safe.vault().expired(&retention, now()).unwrap(), safe.ids()[..1]);
    let held = safe.folder.try_hold(Hold::Shared).unwrap();
    let busy = safe.vault().expire(&retention, now()).unwrap();
    assert!(busy.left_busy && busy.snapshots.is_empty());
    assert!(!safe.vault().expire(&FOREVER, now()).unwrap().left_busy);
    drop(held);
    let expired = safe.vault().expire(&retention, now()).unwrap();
    assert_eq!((expired.snapshots.len(), safe.ids().len()), (1, 3));
    safe.is_whole();
}

#[test]
fn over_budget_the_oldest_go_until_it_fits() {
    let safe = Safe::new();
    for number in 0..5_u8 {
        let mut bytes = noise(100_000);
        bytes[0] = number;
        safe.keep(&[("a", Held::Small(bytes))], None);
    }
    let ids = safe.ids();
    let retention = Retention { max_size: 210_000, ..FOREVER };
    let collected = safe.vault().collect(&retention, now(), &Unwatched).unwrap();
    assert_eq!((safe.ids(), collected.snapshots), (ids[3..].to_vec(), ids[..3].to_vec()));
    assert!(safe.vault().size().unwrap() <= 210_000);
    safe.is_whole();
}

#[test]
fn a_pinned_snapshot_stays_until_it_is_no_longer_pinned() {
    let safe = Safe::new();
    let (one, _) = safe.keep(&[("a", small("one"))], None);
    safe.keep(&[("a", small("two"))], None);
    let none = Retention { per_target: 0, ..FOREVER };
    assert!(safe.vault().pin(one, true).unwrap().pinned);
    safe.vault().collect(&none, now(), &Unwatched).unwrap();
    assert_eq!(safe.ids(), [one]);
    safe.is_whole();
    assert!(!safe.vault().pin(one, false).unwrap().pinned);
    safe.vault().collect(&none, now(), &Unwatched).unwrap();
    assert_eq!(safe.ids(), []);
    let gone = safe.vault().pin(one, true).unwrap_err();
    assert!(matches!(gone, VaultError::NoSuchSnapshot { .. }));
}

#[test]
fn what_was_never_finished_goes_and_nothing_that_is_not_ours() {
    let safe = Safe::new();
    safe.keep(&[("a", small("one"))], None);
    drop(safe.folder.unfinished(Room::Packs).unwrap());
    fs::create_dir_all(safe.folder.room(Room::Stages).join("7/deep")).unwrap();
    let strange = safe.folder.room(Room::Packs).join("notes.txt");
    fs::write(&strange, "mine").unwrap();
    safe.vault().collect(&FOREVER, now(), &Unwatched).unwrap();
    assert!(safe.numbers(Room::Stages).is_empty());
    assert!(strange.exists());
    assert_eq!(fs::read_dir(safe.folder.room(Room::Packs)).unwrap().count(), 2);
}

#[test]
fn nothing_goes_while_a_restore_waits_to_be_finished() {
    let safe = Safe::new();
    let (one, _) = safe.keep(&[("a", small("one"))], None);
    // What it had made ready is on a disk that is away.
    fs::create_dir(safe.folder.numbered(Room::Stages, one.0)).unwrap();
    let stages = ["here", "/away/.unstuck-restore-1"].map(PathBuf::from).to_vec();
    let (undone, above, steps, folders, made) = Default::default();
    let journal = Journal { saved: one, now: now(), undone, stages, above, steps, folders, made };
    journal.write(&safe.folder).unwrap();
    let none = Retention { per_target: 0, ..FOREVER };
    assert!(matches!(safe.vault().collect(&none, now(), &Unwatched), Err(VaultError::Away { .. })));
    assert!(safe.vault().expire(&none, now()).unwrap().left_busy);
    assert!(matches!(safe.vault().remove(&[one], &Unwatched), Err(VaultError::Away { .. })));
    assert_eq!(safe.ids(), [one]);
}

/// Ends the work after so many questions.
struct Impatient(std::sync::atomic::AtomicU32);

impl Watch for Impatient {
    fn goes_on(&self, _: Progress) -> bool {
        let before = std::sync::atomic::Ordering::Relaxed;
        self.0.fetch_update(before, before, |left| left.checked_sub(1)).is_ok()
    }
}

#[test]
fn ended_at_any_moment_it_leaves_everything_whole() {
    for patience in 0..12 {
        let safe = Safe::new();
        let (one, _) = safe.keep(&[("a", small("one")), ("b", small("shared"))], None);
        let (two, _) = safe.keep(&[("b", small("shared")), ("c", small("other"))], None);
        let watch = Impatient(patience.into());
        let is_gone = match safe.vault().remove(&[one], &watch) {
            Ok(collected) => !collected.snapshots.is_empty(),
            Err(VaultError::Busy { .. } | VaultError::Stopped) => false,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(safe.ids(), if is_gone { vec![two] } else { vec![one, two] }, "{patience}");
        safe.is_whole();
        safe.vault().collect(&FOREVER, now(), &Unwatched).unwrap();
        safe.is_whole();
    }
}
