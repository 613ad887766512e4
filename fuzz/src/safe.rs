//! Any bytes in the place of a file of the safe: they are read or refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use unstuck_vault::fuzzed::{self, Seal};

/// A safe of this process alone, in memory where the system has a place for that.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    place.join(format!("unstuck-fuzz-safe-{}", std::process::id()))
});

/// The first byte says which file it is, and whether its checksum is put right.
pub fn safe(data: &[u8]) {
    let [choice, bytes @ ..] = data else { return };
    let seal = if choice & 1 == 0 { Seal::Whole } else { Seal::AsItIs };
    match (choice >> 1) % 5 {
        0 => fuzzed::manifest(bytes, seal),
        1 => fuzzed::journal(bytes, seal, &FOLDER),
        2 => fuzzed::snapshot(bytes, seal, &FOLDER),
        3 => {
            let _made_by_the_first = fs::create_dir_all(&*FOLDER);
            fuzzed::pack(bytes, &FOLDER.join("pack"));
        }
        _ => {
            let (one, other) = bytes.split_at(bytes.len() / 2);
            fuzzed::indices(one, other);
        }
    }
}
