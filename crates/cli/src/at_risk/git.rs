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
    /// The folder that holds `.git`, whatever is written in there.
    place: PathBuf,
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
        let place = top.to_owned();
        let top = work_tree(&own).unwrap_or_else(|| place.clone());
        let kept = shared.into_iter().chain([own]).collect();
        Some(Repository { top, place, kept })
    }

    /// Returns the folder that holds `.git`. Nothing that is written in there leads elsewhere.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// Returns the folders outside of the place that git keeps its things in, as far as they say themselves that they belong to it.
    /// Anybody who may write in a folder can let its `.git` name any other repository; that one knows nothing of it.
    pub(crate) fn vouched_for(&self) -> impl Iterator<Item = &PathBuf> {
        let own = self.kept.last();
        let is_linked = own.is_some_and(|own| self.is_listed_by(own));
        let is_module =
            own.is_some_and(|own| is_in_modules(own) && work_tree(own).as_ref() == Some(&self.place));
        self.kept.iter().filter(move |kept| match (is_linked, is_module, Some(*kept) == own) {
            // Of a linked work tree, its own folder and the repository that lists it.
            (true, _, true) => true,
            (true, _, false) => own.and_then(|own| own.parent()?.parent()) == Some(kept.as_path()),
            (false, is_module, is_own) => is_module && is_own,
        })
    }

    /// Returns whether a folder is `worktrees/<name>` of a repository that lists this place as its work tree.
    fn is_listed_by(&self, own: &Path) -> bool {
        let is_entry = own.parent().is_some_and(|list| {
            list.file_name().is_some_and(|name| name == "worktrees") && list.parent().is_some_and(is_bare)
        });
        let listed = small(&own.join("gitdir"))
            .and_then(|text| Some(own.join(text.lines().next()?.trim())))
            .filter(|link| link.file_name().is_some_and(|name| name == ".git"))
            .and_then(|link| fs::canonicalize(link.parent()?).ok());
        is_entry && listed.as_ref() == Some(&self.place)
    }

    /// The top of the work tree.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// The top of the tree that a folder of this repository lies in. A work tree that the settings name elsewhere does not hold
    /// the folder, whatever git would do there.
    pub(crate) fn top_around(&self, folder: &Path) -> &Path {
        let holds_it = || fs::canonicalize(folder).is_ok_and(|folder| folder.starts_with(&self.top));
        if self.top == self.place || holds_it() { &self.top } else { &self.place }
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
    let is_on = |value: &String| matches!(&*value.to_ascii_lowercase(), "" | "true" | "yes" | "on" | "1");
    let beside = setting(&settings, "extensions", "worktreeconfig")
        .filter(is_on)
        .and_then(|_| setting(&small(&own.join("config.worktree"))?, "core", "worktree"));
    let named = beside.or_else(|| setting(&settings, "core", "worktree"))?;
    fs::canonicalize(own.join(named)).ok().filter(|folder| folder.is_dir())
}

/// A setting as git reads it: sections may come again, and the last value counts. Other files are not included here by git, either.
fn setting(text: &str, section: &str, key: &str) -> Option<String> {
    let (mut is_within, mut found) = (false, None);
    for line in text.replace("\\\r\n", "").replace("\\\n", "").lines() {
        let mut rest = line.trim();
        if let Some((name, behind)) = rest.strip_prefix('[').and_then(|header| header.split_once(']')) {
            is_within = name.eq_ignore_ascii_case(section);
            rest = behind.trim();
        }
        let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
        if is_within && name.trim().eq_ignore_ascii_case(key) {
            found = Some(plain(value.trim()));
        }
    }
    found
}

/// A value without quotes, escapes and what is remarked behind it.
fn plain(value: &str) -> String {
    let (mut plain, mut length, mut is_quoted) = (String::new(), 0, false);
    let mut signs = value.chars();
    while let Some(sign) = signs.next() {
        match (sign, is_quoted) {
            ('"', _) => is_quoted = !is_quoted,
            ('#' | ';', false) => break,
            ('\\', _) => plain.extend(signs.next().map(|escaped| match escaped {
                'n' => '\n',
                't' => '\t',
                'b' => '\u{8}',
                other => other,
            })),
            (sign, _) => plain.push(sign),
        }
        // Blanks at the end count only in quotes.
        if is_quoted || !sign.is_whitespace() {
            length = plain.len();
        }
    }
    plain.truncate(length);
    plain
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

/// Returns whether a folder lies in the `modules` of a repository, where those of its submodules are.
fn is_in_modules(own: &Path) -> bool {
    own.ancestors().skip(1).any(|above| {
        above.file_name().is_some_and(|name| name == "modules")
            && above.parent().is_some_and(|parent| parent.join("HEAD").is_file())
    })
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
        let found = Repository::at(&top).unwrap();
        assert_eq!(found.top(), top.join("outer"));
        assert_eq!(found.top_around(&top.join("outer")), top.join("outer"));
        // What is done in the folder of the repository is done to that folder all the same.
        assert_eq!(found.top_around(&top), top);
    }

    #[test]
    fn the_settings_of_a_repository_are_read_as_git_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        repository(&top);
        fs::create_dir(top.join("o ut")).unwrap();
        fs::write(top.join(".git/config.worktree"), "[core]\nworktree = \"../o ut\"\n").unwrap();
        for (settings, is_out) in [
            ("[core]\n\tbare = false\n[user]\n\tname = x\n[core]\n\tworktree = ../o ut\n", true),
            ("[CORE] WorkTree=\"../o ut\"\n", true),
            ("[core]\nworktree = ../o\\\n ut ; so it is\n", true),
            ("[core]\nworktree = \"../o \"ut # so it is\n", true),
            ("[core]\nworktree = ..\nworktree = ../o ut\n", true),
            ("[extensions]\nworktreeConfig\n", true),
            ("[core]\nworktree = ..\n[extensions]\nworktreeConfig = true\n", true),
            ("[extensions]\nworktreeConfig = false\n", false),
            ("[core]\nworktree = ../o ut\nworktree = ..\n", false),
            ("[core \"x\"]\nworktree = ../o ut\n", false),
            ("[other]\nworktree = ../o ut\n", false),
            ("; [core]\n# worktree = ../o ut\n", false),
        ] {
            fs::write(top.join(".git/config"), settings).unwrap();
            let expected = if is_out { top.join("o ut") } else { top.clone() };
            assert_eq!(Repository::at(&top).unwrap().top(), expected, "{settings}");
        }
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
