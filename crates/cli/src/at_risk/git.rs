//! Where git keeps what it keeps, read from its own small files. Git is never run: it may run what a repository tells it to.

use std::fs;
use std::path::{Path, PathBuf};

/// How many folders up a repository is looked for.
const FOLDERS_UP: usize = 64;

/// A repository, as it is seen from a folder in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    /// The top of the work tree, or the repository itself where it has none.
    top: PathBuf,
    /// The folders that git keeps its things in: that of the work tree, and the one it shares with others.
    kept: Vec<PathBuf>,
}

impl Repository {
    /// The repository around a folder.
    pub(super) fn around(folder: &Path) -> Option<Repository> {
        let folder = fs::canonicalize(folder).ok()?;
        folder.ancestors().take(FOLDERS_UP).find_map(Repository::at)
    }

    fn at(top: &Path) -> Option<Repository> {
        let link = top.join(".git");
        let own = match fs::metadata(&link) {
            Ok(found) if found.is_dir() => fs::canonicalize(&link).ok()?,
            // Work trees and submodules have a file that says where theirs is.
            Ok(_) => followed(top, &fs::read_to_string(&link).ok()?, "gitdir:")?,
            Err(_) if is_bare(top) => top.to_owned(),
            Err(_) => return None,
        };
        // A folder that is only called `.git` is no repository, and git looks further up.
        if !own.join("HEAD").exists() {
            return None;
        }
        let shared = fs::read_to_string(own.join("commondir")).ok();
        let shared = shared.and_then(|text| followed(&own, &text, ""));
        let kept = shared.into_iter().chain([own]).collect();
        Some(Repository { top: top.to_owned(), kept })
    }

    /// The top of the work tree.
    pub(super) fn top(&self) -> &Path {
        &self.top
    }

    /// The folders that git keeps its things in.
    pub(super) fn kept(&self) -> impl Iterator<Item = &PathBuf> {
        self.kept.iter()
    }

    /// The index of this work tree, which is in the folder that is its own.
    pub(super) fn index(&self) -> Option<PathBuf> {
        self.kept.last().map(|own| own.join("index"))
    }

    /// The work tree, and those folders.
    pub(super) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        let outside = |kept: &&PathBuf| !kept.starts_with(&self.top);
        std::iter::once(&self.top).chain(self.kept.iter().filter(outside))
    }
}

/// A folder that a line of a file names, relative to where the file is.
fn followed(base: &Path, text: &str, lead: &str) -> Option<PathBuf> {
    let path = text.lines().next()?.strip_prefix(lead)?.trim();
    fs::canonicalize(base.join(path)).ok().filter(|folder| folder.is_dir())
}

fn is_bare(folder: &Path) -> bool {
    ["objects", "refs"].iter().all(|name| folder.join(name).is_dir()) && folder.join("HEAD").is_file()
}
