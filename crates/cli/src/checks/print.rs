//! What is at a path, in so few words that two looks can be compared: was it written, made or removed in between?

use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::regular_file;

/// The content of a larger file is not read: that it was written shows in its times.
const CONTENT_MAX: u64 = 16 << 20;
/// So many names in a folder are looked at.
const NAMES_MAX: usize = 1_000_000;

/// How something was at one moment. Nothing is told of it but whether another one is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Print(blake3::Hash);

impl Print {
    /// Looks at a path, and at everything below it. Of a link that is named, what it leads to counts.
    pub(super) fn of(path: &Path) -> Print {
        let mut hasher = blake3::Hasher::new();
        match fs::metadata(path) {
            Err(error) => {
                hasher.update(format!("nothing {:?}", error.kind()).as_bytes());
            }
            Ok(found) if found.is_dir() => below(path, &mut hasher),
            Ok(found) => {
                about(&found, &mut hasher);
                // Two writes within one tick of the clock may leave the same times.
                if found.is_file() && found.len() <= CONTENT_MAX {
                    let mut content = Vec::new();
                    let _unreadable_is_told_by_its_times = regular_file::open(path)
                        .and_then(|file| file.take(CONTENT_MAX).read_to_end(&mut content));
                    hasher.update(&content);
                }
            }
        }
        Print(hasher.finalize())
    }
}

fn about(found: &Metadata, hasher: &mut blake3::Hasher) {
    let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
    let sizes = [found.len(), found.ino(), u64::from(found.mode())];
    for time in times {
        hasher.update(&time.to_le_bytes());
    }
    for size in sizes {
        hasher.update(&size.to_le_bytes());
    }
}

/// Everything in a folder, in the order of its names. Links are not followed.
fn below(folder: &Path, hasher: &mut blake3::Hasher) {
    let mut waiting = vec![folder.to_owned()];
    let mut count = 0;
    while let Some(folder) = waiting.pop() {
        let mut entries: Vec<_> = fs::read_dir(&folder).into_iter().flatten().flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        count += entries.len();
        if count > NAMES_MAX {
            return;
        }
        for entry in entries {
            hasher.update(entry.path().as_os_str().as_encoded_bytes());
            if let Ok(found) = entry.metadata() {
                about(&found, hasher);
                if found.is_dir() {
                    waiting.push(entry.path());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Print;

    #[test]
    fn whatever_is_done_to_a_path_shows() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let file = at("d/file");
        fs::create_dir(at("d")).unwrap();
        let mut last = [Print::of(&file), Print::of(&at("d"))];
        let mut changes = |deed: &dyn Fn(), expected: [bool; 2]| {
            deed();
            let now = [Print::of(&file), Print::of(&at("d"))];
            let shows = [now[0] != last[0], now[1] != last[1]];
            assert_eq!(shows, expected);
            last = now;
        };
        changes(&|| {}, [false, false]);
        changes(&|| fs::write(at("d/file"), "one").unwrap(), [true, true]);
        changes(&|| {}, [false, false]);
        changes(&|| fs::write(at("d/file"), "two more").unwrap(), [true, true]);
        changes(&|| fs::write(at("d/other"), "x").unwrap(), [false, true]);
        changes(&|| fs::write(at("beside"), "x").unwrap(), [false, false]);
        changes(&|| fs::remove_file(at("d/file")).unwrap(), [true, true]);
    }
}
