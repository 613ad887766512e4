//! Where git keeps what it keeps, read from its own small files. Git is never run: it may run what a repository tells it to.

use std::fs;
use std::path::{Path, PathBuf};

use crate::regular_file;

/// How many folders up a repository is looked for.
const FOLDERS_UP: usize = 64;

/// The files that are read here have a few lines.
const SMALL: u64 = 1 << 20;

/// A repository, as it is seen from a folder in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    /// The top of the work tree, or the repository itself where it has none.
    top: PathBuf,
    /// The folders that git keeps its things in: that of the work tree, and the one it shares with others.
    kept: Vec<PathBuf>,
}

impl Repository {
    /// The repository around a folder.
    pub(crate) fn around(folder: &Path) -> Option<Repository> {
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        folder.ancestors().take(FOLDERS_UP).find_map(Repository::at)
    }

    fn at(top: &Path) -> Option<Repository> {
        let link = top.join(".git");
        let own = match fs::metadata(&link) {
            Ok(found) if found.is_dir() => fs::canonicalize(&link).ok()?,
            // Work trees and submodules have a file that says where theirs is.
            Ok(_) => followed(top, &small(&link)?, "gitdir:")?,
            Err(_) if is_bare(top) => top.to_owned(),
            Err(_) => return None,
        };
        // A folder that is only called `.git` is no repository, and git looks further up.
        if !own.join("HEAD").exists() {
            return None;
        }
        let shared = small(&own.join("commondir")).and_then(|text| followed(&own, &text, ""));
        // Anybody can write down any folder; only one that is a repository's is taken for one.
        let shared = shared.filter(|shared| is_bare(shared));
        let top = work_tree(&own).unwrap_or_else(|| top.to_owned());
        let kept = shared.into_iter().chain([own]).collect();
        Some(Repository { top, kept })
    }

    /// The top of the work tree.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// The folders that git keeps its things in.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &PathBuf> {
        self.kept.iter()
    }

    /// The index of this work tree, which is in the folder that is its own.
    pub(super) fn index(&self) -> Option<PathBuf> {
        self.kept.last().map(|own| own.join("index"))
    }

    /// The work tree, and those folders.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        let outside = |kept: &&PathBuf| !kept.starts_with(&self.top);
        std::iter::once(&self.top).chain(self.kept.iter().filter(outside))
    }
}

/// A small file of git. What is no file, or longer than git would write it, says nothing: a pipe is never waited for.
fn small(path: &Path) -> Option<String> {
    regular_file::text(path, SMALL)
}

/// The work tree that a repository names in its own settings, where it is not the folder around it.
fn work_tree(own: &Path) -> Option<PathBuf> {
    let settings = small(&own.join("config"))?;
    let mut lines = settings.lines().map(str::trim);
    lines.find(|line| line.eq_ignore_ascii_case("[core]"))?;
    let named = lines.take_while(|line| !line.starts_with('[')).find_map(|line| {
        let (key, value) = line.split_once('=')?;
        key.trim().eq_ignore_ascii_case("worktree").then(|| value.trim().trim_matches('"').to_owned())
    })?;
    fs::canonicalize(own.join(named)).ok().filter(|folder| folder.is_dir())
}

/// What git only adds to, unless it is told to clear up: the content of files and commits, and the repositories of submodules.
pub(super) fn spared(kept: &Path) -> impl Iterator<Item = PathBuf> {
    ["objects", "lfs", "modules"].into_iter().map(|name| kept.join(name))
}

/// A folder that a line of a file names, relative to where the file is.
fn followed(base: &Path, text: &str, lead: &str) -> Option<PathBuf> {
    let path = text.lines().next()?.strip_prefix(lead)?.trim();
    fs::canonicalize(base.join(path)).ok().filter(|folder| folder.is_dir())
}

fn is_bare(folder: &Path) -> bool {
    ["objects", "refs"].iter().all(|name| folder.join(name).is_dir()) && folder.join("HEAD").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(folder: &Path) {
        for name in ["objects", "refs"] {
            fs::create_dir_all(folder.join(".git").join(name)).unwrap();
        }
        fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    #[test]
    fn a_pipe_in_the_place_of_gits_files_is_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let pipe = |path: PathBuf| nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        pipe(top.join(".git"));
        assert_eq!(Repository::at(&top), None);
        fs::remove_file(top.join(".git")).unwrap();
        repository(&top);
        pipe(top.join(".git/commondir"));
        pipe(top.join(".git/config"));
        assert_eq!(Repository::at(&top).unwrap().top(), top);
    }

    #[test]
    fn a_work_tree_that_the_settings_name_is_the_one_that_is_at_risk() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        repository(&top);
        fs::create_dir(top.join("outer")).unwrap();
        fs::write(top.join(".git/config"), "[core]\n\tbare = false\n\tworktree = ../outer\n[other]\n")
            .unwrap();
        assert_eq!(Repository::at(&top).unwrap().top(), top.join("outer"));
    }

    #[test]
    fn a_shared_folder_that_is_no_repository_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        repository(&top);
        fs::create_dir(top.join("keys")).unwrap();
        fs::write(top.join(".git/commondir"), "../keys\n").unwrap();
        let found = Repository::at(&top).unwrap();
        assert_eq!(found.kept().collect::<Vec<_>>(), [&top.join(".git")]);
    }
}
