//! What a pattern of the shell stands for, one part of a path after the other, as a shell reads it: a name that begins with a
//! dot is matched only by a part that does so, too, and `.` and `..` never are.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The paths below `folder` that a pattern stands for, sorted; a folder that cannot be read stands for itself, since anything in
/// it may match. Nothing where they are more than `most`, or where the pattern says more than can be read here: then whoever
/// asks has to take what holds them.
pub(super) fn matching(folder: &Path, pattern: &str, hidden: bool, most: usize) -> Option<Vec<PathBuf>> {
    let mut found = vec![folder.to_owned()];
    let mut closed = Vec::new();
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for holder in &found {
            match part.contains(['*', '?', '[']) {
                true => match names_in(holder) {
                    Ok(names) => {
                        let like = like(part, hidden)?;
                        next.extend(names.filter(|name| like(name)).map(|name| holder.join(name)));
                    }
                    Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                    Err(_) => closed.push(holder.clone()),
                },
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
    found.append(&mut closed);
    found.sort();
    Some(found)
}

fn names_in(folder: &Path) -> io::Result<impl Iterator<Item = OsString>> {
    Ok(fs::read_dir(folder)?.flatten().map(|entry| entry.file_name()))
}

/// Tells names that one part of a pattern stands for.
fn like(part: &str, hidden: bool) -> Option<impl Fn(&OsString) -> bool> {
    // Classes like `[[:alpha:]]` would be read as something else.
    if part.contains("[:") {
        return None;
    }
    // A bracket that is never closed is a letter like any other.
    let pattern = glob::Pattern::new(&part.replace("[^", "[!"))
        .or_else(|_| glob::Pattern::new(&part.replace('[', "[[]")))
        .ok()?;
    let hidden = hidden || part.starts_with('.');
    Some(move |name: &OsString| {
        let name = name.to_string_lossy();
        (hidden || !name.starts_with('.')) && pattern.matches(&name)
    })
}
