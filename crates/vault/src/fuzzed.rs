//! Hands any bytes to what reads the files of the safe. A reader answers with what it found or refuses; each function panics
//! where neither happens, or where the answer could lead a restore out of its scopes.
//!
//! Checksums would stop nearly every changed byte, so each function puts them right first: what is tried here is what a
//! checksum does not catch.

use std::fs;
use std::path::Path;

use crate::entry::Entry;
use crate::error::VaultError;
use crate::folder::Folder;
use crate::git_index;
use crate::journal::Journal;
use crate::layer::{Layer, Listed, Listing, Writer, attributes};
use crate::manifest::Manifest;
use crate::pack::Pack;
use crate::snapshot::SnapshotId;
use crate::stored_snapshot::StoredSnapshot;

/// What is put right before bytes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seal {
    /// Nothing: they are read as they are.
    AsItIs,
    /// The checksum of the whole.
    Whole,
}

/// Reads a manifest and everything it names.
///
/// # Panics
/// Where it holds more than its bytes can, or a name that is a path.
pub fn manifest(bytes: &[u8], seal: Seal) {
    let mut bytes = bytes.to_vec();
    if seal == Seal::Whole {
        let hash = blake3::hash(&bytes);
        bytes.extend_from_slice(hash.as_bytes());
    }
    let length = bytes.len();
    let Ok(layer) = Layer::parse(bytes, 7, Path::new("manifest")) else { return };
    let mut listed = 0;
    for (path, folder) in layer.folders() {
        for seen in folder.iter() {
            listed += 1;
            assert!(is_name(seen.name, path), "a name that is none in {path:?}: {:?}", seen.name);
            let bytes: usize =
                attributes(seen.attributes).iter().map(|(name, value)| name.len() + value.len()).sum();
            assert!(bytes <= length, "attributes out of nowhere");
        }
        let _ = (folder.is_same(&folder), folder.held_folders().count(), folder.to_listing());
    }
    assert!(listed <= length / 100, "{listed} entries out of {length} bytes");
    let manifest = Manifest::default().on_top(layer);
    let mut visited = 0;
    let visit = manifest.visit(|path, _| {
        visited += 1;
        assert!(manifest.find(path).is_some() || !path.starts_with(b"/"), "{path:?} is held, and not found");
        if visited <= length { Ok(()) } else { Err(()) }
    });
    assert!(visit.is_ok(), "a visit of {length} bytes does not end");
}

/// Is it one name in a folder, or, in the folder that names the scopes, an absolute path without `.` and `..`?
fn is_name(name: &[u8], folder: &[u8]) -> bool {
    let is_one = |name: &[u8]| {
        !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
    };
    match folder {
        b"" => {
            name == b"/" || name.strip_prefix(b"/").is_some_and(|path| path.split(|b| *b == b'/').all(is_one))
        }
        _ => is_one(name),
    }
}

/// Reads a pack in `file`, and every content that it names.
///
/// # Panics
/// Where a content is another than its hash says, or larger than any that is stored.
pub fn pack(bytes: &[u8], file: &Path) {
    fs::write(file, bytes).expect("a place for the fuzzer's files");
    let Ok(pack) = Pack::open(file.to_owned(), 7) else { return };
    let mut content = Vec::new();
    for place in pack.places().take(64) {
        let found = pack.find(&place.hash).is_some();
        assert!(found || !pack.is_whole || !pack.places().is_sorted_by_key(|place| place.hash));
        if pack.read(&place, &mut content).is_ok() {
            assert_eq!(blake3::hash(&content).as_bytes(), &place.hash);
        }
        assert!(content.capacity() <= crate::pack::LONGEST + bytes.len(), "{} bytes", content.capacity());
    }
}

/// Reads a journal from a safe in `folder`.
///
/// # Panics
/// Where it is another after it was written and read again.
pub fn journal(bytes: &[u8], seal: Seal, folder: &Path) {
    let folder = Folder::make(folder).expect("a place for the fuzzer's files");
    fs::write(folder.journal(), sealed_text(bytes, seal)).expect("a place for the fuzzer's files");
    let Ok(Some(journal)) = Journal::read(&folder) else { return };
    let _ = journal.folders_written();
    journal.write(&folder).expect("what was read can be written");
    assert_eq!(Journal::read(&folder).ok().flatten().as_ref(), Some(&journal));
}

/// Reads the record of a snapshot from a safe in `folder`.
///
/// # Panics
/// Where it is another after it was written and read again.
pub fn snapshot(bytes: &[u8], seal: Seal, folder: &Path) {
    let folder = Folder::make(folder).expect("a place for the fuzzer's files");
    let path = folder.numbered(crate::folder::Room::Snapshots, 7);
    fs::write(path, sealed_text(bytes, seal)).expect("a place for the fuzzer's files");
    match StoredSnapshot::read(&folder, SnapshotId(7)) {
        Ok(stored) => {
            stored.write(&folder).expect("what was read can be written");
            let again = StoredSnapshot::read(&folder, SnapshotId(7));
            assert_eq!(again.ok().map(|again| again.to_snapshot()), Some(stored.to_snapshot()));
        }
        Err(error) => {
            let is_plain = matches!(error, VaultError::Damaged { .. } | VaultError::Io { .. });
            assert!(is_plain, "{error}");
        }
    }
}

/// A text, a line end, and its checksum.
fn sealed_text(bytes: &[u8], seal: Seal) -> Vec<u8> {
    let mut text = bytes.to_vec();
    if seal == Seal::Whole {
        let check = blake3::hash(&text).to_hex();
        text.push(b'\n');
        text.extend_from_slice(check.as_bytes());
    }
    text
}

/// Compares two indices of git, which a repository brings along.
///
/// # Panics
/// Where one that can be read is not the same as itself.
pub fn indices(one: &[u8], other: &[u8]) {
    assert_eq!(git_index::says_the_same(one, other), git_index::says_the_same(other, one));
}

/// Sound files to start from, each behind the byte that the fuzzer's target reads first.
pub fn samples() -> Vec<Vec<u8>> {
    let manifest = sample_manifest();
    let mark = r#""marks":{"mode":33188,"uid":0,"gid":0,"seconds":1,"nanos":2,"attributes":[]}"#;
    let step = format!(
        r#"{{"number":0,"deed":"exchange","stage":0,"path":"/t/a","new":5,"old":{{"inode":4,"size":1,"mode":33188,"seconds":1,"nanos":2}},{mark}}}"#
    );
    let journal = format!(
        r#"{{"saved":7,"now_ms":1,"undone":[[3,null],[4,7]],"stages":["/s"],"above":["/t"],"steps":[{step}],"folders":[],"made":[{{"bytes":[47,116,255]}}]}}"#
    );
    let snapshot = r#"{"id":7,"at_ms":1,"origin":{"kind":"person"},"note":"n","scopes":["/t"],"gaps":[{"path":"/t/x","reason":"special"}],"gap_count":1,"entries":2,"bytes":3,"stored":4,"pinned":false,"undone_by":null,"changed":null,"before":6,"after":null,"takes_rebuildable":false,"never":[]}"#;
    let behind = |choice: u8, bytes: &[u8]| [&[choice][..], bytes].concat();
    let mut index = b"DIRC\0\0\0\x02\0\0\0\x01".to_vec();
    index.extend_from_slice(&[0; 62]);
    index.extend_from_slice(b"a\0\0\0\0\0\0\0\0\0");
    index.extend_from_slice(&[0; 20]);
    vec![
        behind(0, &manifest),
        behind(2, journal.as_bytes()),
        behind(4, snapshot.as_bytes()),
        behind(6, &sample_pack()),
        behind(8, &[&index[..], &index[..]].concat()),
    ]
}

/// A manifest without its checksum.
fn sample_manifest() -> Vec<u8> {
    let entry = |mode| Entry { mode, size: 5, hash: [7; 32], ..Entry::ABSENT };
    let listed =
        |name: &[u8], mode, attributes| Listed { name: name.to_vec(), entry: entry(mode), attributes };
    let mut writer = Writer::new(None);
    let folder = |entries| Listing { device: 3, entries };
    writer.folder(b"", &folder(vec![listed(b"/t", 0o040_755, Vec::new())]));
    let attributes = vec![(b"user.a".to_vec(), b"1".to_vec())];
    writer.folder(
        b"/t",
        &folder(vec![listed(b"a", 0o100_644, attributes), listed(b"d", 0o040_700, Vec::new())]),
    );
    writer.folder(b"/t/d", &folder(vec![listed(b"b", 0o120_777, Vec::new())]));
    let mut bytes = writer.finish();
    bytes.truncate(bytes.len() - 32);
    bytes
}

/// A pack with one content that is stored as it is, and without an index.
fn sample_pack() -> Vec<u8> {
    let content = b"content";
    let mut header = blake3::hash(content).as_bytes().to_vec();
    for number in [content.len() as u32, content.len() as u32, 0] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    let check = blake3::hash(&header);
    header.extend_from_slice(&check.as_bytes()[..4]);
    [b"USPACK_1", &header[..], content].concat()
}
