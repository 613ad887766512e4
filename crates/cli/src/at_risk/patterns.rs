//! What a pattern of the shell stands for, one part of a path after the other, as a shell reads it: a name that begins with a
//! dot is matched only by a part that does so, too, and `.` and `..` never are.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The paths below `folder` that a pattern stands for, sorted. Nothing where they are more than `most`, or where the pattern
/// says more than can be read here: then whoever asks has to take what holds them.
pub(super) fn matching(folder: &Path, pattern: &str, hidden: bool, most: usize) -> Option<Vec<PathBuf>> {
    let mut found = vec![folder.to_owned()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for holder in &found {
            match part.contains(['*', '?', '[']) {
                true => next.extend(names_like(holder, part, hidden)?.map(|name| holder.join(name))),
                false => {
                    next.extend(Some(holder.join(part)).filter(|path| fs::symlink_metadata(path).is_ok()))
                }
            }
            if next.len() > most {
                return None;
            }
        }
        found = next;
    }
    found.sort();
    Some(found)
}

/// The names in a folder that one part of a pattern stands for.
fn names_like(folder: &Path, part: &str, hidden: bool) -> Option<impl Iterator<Item = std::ffi::OsString>> {
    // Classes like `[[:alpha:]]` would be read as something else.
    if part.contains("[:") {
        return None;
    }
    // A bracket that is never closed is a letter like any other.
    let pattern = glob::Pattern::new(&part.replace("[^", "[!"))
        .or_else(|_| glob::Pattern::new(&part.replace('[', "[[]")))
        .ok()?;
    let hidden = hidden || part.starts_with('.');
    let entries = match fs::read_dir(folder) {
        Ok(entries) => Some(entries),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        // In a folder that cannot be read anything may match.
        Err(_) => return None,
    };
    let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
    Some(names.filter(move |name| {
        let name = name.to_string_lossy();
        (hidden || !name.starts_with('.')) && pattern.matches(&name)
    }))
}
