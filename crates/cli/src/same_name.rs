//! Finds where a file lies that a call looked for in the wrong place: one bounded look through the project, and nothing where that
//! does not tell.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use unstuck_judge::{Call, Lang, quote, shell};

use crate::newer;
use crate::outside;

/// So long it may take.
const TIME: Duration = Duration::from_millis(20);
/// So much of the project is looked at.
const ENTRIES: usize = 20_000;
/// Of more places than these none is the one that was meant.
const PLACES: usize = 3;
/// A longer path is named nowhere.
const LONGEST: usize = 120;

/// Says where something of the name of `missing` lies that a call in `folder` looked for, if that is only in a few places.
pub(crate) fn told(
    missing: &str,
    call: &Call,
    folder: &str,
    home: Option<&Path>,
    lang: Lang,
) -> Option<String> {
    let folder = Path::new(folder);
    let name = Path::new(missing).file_name()?.to_str().filter(|name| is_name(name))?;
    let root = outside::project_of(folder);
    // A home, or the whole machine, is no project.
    if !folder.is_absolute() || root.parent().is_none() || home == Some(&*root) {
        return None;
    }
    // From another folder than this one a short path would lead elsewhere.
    let goes_elsewhere = |line: &str| line.split_whitespace().any(|word| word == "cd" || word == "pushd");
    let stays = !shell::line(call).is_some_and(|line| goes_elsewhere(&line));
    let short = stays && !Path::new(missing).is_absolute();
    let mut places = places_of(name, &root)?;
    places.sort();
    let shown: Vec<String> = places
        .iter()
        .map(|place| if short { place.strip_prefix(folder).unwrap_or(place) } else { place })
        .filter_map(|place| place.to_str().filter(|path| is_name(path)).map(quote::name))
        .collect();
    if shown.is_empty() || shown.len() < places.len() {
        return None;
    }
    let name = quote::name(name);
    Some(match lang {
        Lang::En => format!("{name} is at {}.", shown.join(" and at ")),
        Lang::Zh => format!("{name} 位于 {}。", shown.join("、")),
    })
}

/// Can it be nothing but a name or a path?
fn is_name(text: &str) -> bool {
    let is_plain = |sign: char| sign.is_alphanumeric() || "@/._+~- ".contains(sign);
    text.len() >= 2 && text.len() <= LONGEST && text != ".." && text.chars().all(is_plain)
}

/// Where something of that name lies below `root`: nothing where there is none, or too many to be of use.
fn places_of(name: &str, root: &Path) -> Option<Vec<PathBuf>> {
    let until = Instant::now() + TIME;
    let (mut found, mut seen) = (Vec::new(), 0);
    // The nearest come first: what time allows to see is what is most likely meant.
    let mut folders = std::collections::VecDeque::from([root.to_owned()]);
    while let Some(folder) = folders.pop_front() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > ENTRIES || Instant::now() > until {
                return Some(found).filter(|found| !found.is_empty());
            }
            let own = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if own == name {
                found.push(entry.path());
            }
            if is_folder && !newer::is_passed_over(&entry.path()) {
                folders.push_back(entry.path());
            }
            if found.len() > PLACES {
                return None;
            }
        }
    }
    Some(found).filter(|found| !found.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[&str], missing: &str, line: &str, expected: Option<&str>) {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let said = told(missing, &Call::shell(line), root.path().to_str().unwrap(), None, Lang::En);
        let expected = expected.map(|text| text.replace("ROOT", root.path().to_str().unwrap()));
        assert_eq!(said, expected, "{missing}");
    }

    #[test]
    fn a_file_that_lies_elsewhere_in_the_project_is_named() {
        let files = ["app/core.py", "app/other.py", "node_modules/x/core.py", ".git/core.py"];
        check(&files, "src/core.py", "cat src/core.py", Some("`core.py` is at `app/core.py`."));
        check(&files, "/w/core.py", "cat /w/core.py", Some("`core.py` is at `ROOT/app/core.py`."));
        check(&files, "core.py", "cd src && cat core.py", Some("`core.py` is at `ROOT/app/core.py`."));
        check(&files, "src/missing.py", "cat src/missing.py", None);
        check(&files, "src/core*.py", "cat src/core*.py", None);
    }

    #[test]
    fn of_many_places_none_is_named() {
        let files = ["a/mod.rs", "b/mod.rs", "c/mod.rs", "d/mod.rs"];
        check(&files, "x/mod.rs", "cat x/mod.rs", None);
        check(&files[..2], "x/mod.rs", "cat x/mod.rs", Some("`mod.rs` is at `a/mod.rs` and at `b/mod.rs`."));
    }
}
