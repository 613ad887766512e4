//! The home folder, written as `~`: it is long, and it tells who somebody is.

use memchr::memmem;

use crate::redact::{Edge, splice};

/// Where the user's files are.
pub(super) struct Home(String);

impl Home {
    /// A folder that is worth shortening: the root and relative ones are not.
    pub(super) fn new(folder: &str) -> Option<Home> {
        let folder = folder.trim_end_matches(['/', '\\']);
        let is_absolute = folder.starts_with('/') || folder.get(1..3).is_some_and(|drive| drive == ":\\");
        (is_absolute && folder.len() > 3).then(|| Home(folder.to_owned()))
    }

    /// `text` with the folder shortened wherever a path begins with it, if one does.
    pub(super) fn shorten(&self, text: &str, edges: &mut [Edge]) -> Option<String> {
        let bytes = text.as_bytes();
        let places: Vec<usize> = memmem::find_iter(bytes, self.0.as_bytes())
            .filter(|at| begins_path(&bytes[..*at]) && ends_folder(&bytes[at + self.0.len()..]))
            .collect();
        if places.is_empty() {
            return None;
        }
        let changes = places.iter().map(|at| (*at, at + self.0.len(), [b"~".as_slice(), b"", b""]));
        // The folder is text and stands in text, so what is left is text.
        String::from_utf8(splice(bytes, changes, edges)).ok()
    }
}

/// Whether a path can begin behind `before`.
fn begins_path(before: &[u8]) -> bool {
    match before {
        [] => true,
        // `file:///home/…`, an escaped line end, and `-I/home/…`.
        [.., b':', b'/', b'/'] | [.., b'\\', b'n' | b'r' | b't'] | [b'-', b'A'..=b'Z'] => true,
        [.., other, b'-', b'A'..=b'Z'] => !other.is_ascii_alphanumeric(),
        [.., last] => !last.is_ascii_alphanumeric() && !b"_-./~]\\".contains(last) && last.is_ascii(),
    }
}

/// Whether the folder's name ends before `after`.
fn ends_folder(after: &[u8]) -> bool {
    match after {
        [] => true,
        [b'.' | b'-', next, ..] => !next.is_ascii_alphanumeric() && *next != b'_' && next.is_ascii(),
        [first, ..] => !first.is_ascii_alphanumeric() && *first != b'_' && first.is_ascii(),
    }
}
