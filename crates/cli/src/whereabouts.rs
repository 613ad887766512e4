//! Where somebody is, and which files they mean by the paths they write. Links on the way to a path are followed, the path
//! itself is not: whoever names a link means the link.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use unstuck_vault::Snapshot;
use unstuck_wire::clean::{Clean, Cleaner};

use crate::at_risk::git::Repository;
use crate::exit::{CommandError, NoPlace};

/// The longest name of a place.
const PLACE_MAX: usize = 1024;

/// The working folder. It may be gone, and with it all that was in it: then it is where its name says.
pub(crate) fn folder() -> Result<PathBuf, CommandError> {
    env::current_dir()
        .ok()
        .or_else(|| env::var_os("PWD").map(PathBuf::from).filter(|path| path.is_absolute()))
        .ok_or(CommandError::NoPlace(NoPlace::WorkingFolderGone))
}

/// What is worked on here.
pub(crate) fn project(home: Option<&Path>) -> Result<PathBuf, CommandError> {
    Ok(project_of(&folder()?, home))
}

/// What is worked on in a folder: the git work tree that holds it, or the folder itself. A work tree elsewhere, which a repository
/// names in its settings, holds nothing of it. A home that is a repository, as some
/// keep their settings, is no project.
pub(crate) fn project_of(folder: &Path, home: Option<&Path>) -> PathBuf {
    // Every hook asks this; where the home really is matters only where there is a repository.
    let is_project = |top: &Path| {
        home.is_none_or(|home| !fs::canonicalize(home).unwrap_or_else(|_| home.to_owned()).starts_with(top))
    };
    let found = Repository::around(folder);
    let top = found.as_ref().map(|found| found.top_around(folder)).filter(|top| is_project(top));
    top.unwrap_or(folder).to_owned()
}

/// What is worked on in a folder, as the record names it; nothing where nobody said in which.
pub(crate) fn place(folder: &str, home: Option<&Path>, cleaner: &Cleaner) -> Clean {
    match folder {
        "" => Clean::default(),
        folder => {
            // Some write a slash behind it.
            let folder: PathBuf = Path::new(folder).components().collect();
            cleaner.line(&project_of(&folder, home).to_string_lossy(), PLACE_MAX)
        }
    }
}

/// What is worked on here, with all that belongs to it.
pub(crate) struct Here {
    project: PathBuf,
    /// Where git keeps what it keeps of it. Of a linked work tree and of a submodule that is elsewhere.
    git: Vec<PathBuf>,
}

impl Here {
    pub(crate) fn new(home: Option<&Path>) -> Result<Here, CommandError> {
        let project = project(home)?;
        let repository =
            Repository::around(&project).filter(|repository| repository.top_around(&project) == project);
        let git = repository.iter().flat_map(Repository::kept).cloned().collect();
        Ok(Here { project, git })
    }

    /// The same, for an agent that may reach no further: what its files say leads to no folder elsewhere, unless that folder says
    /// itself that it belongs to this one.
    pub(crate) fn walled(home: Option<&Path>) -> Result<Here, CommandError> {
        let folder = folder()?;
        let home = home.map(|home| fs::canonicalize(home).unwrap_or_else(|_| home.to_owned()));
        let is_project = |top: &Path| home.as_ref().is_none_or(|home| !home.starts_with(top));
        match Repository::around(&folder).filter(|repository| is_project(repository.place())) {
            None => Ok(Here { project: folder, git: Vec::new() }),
            Some(repository) => {
                let git = repository.vouched_for().cloned().collect();
                Ok(Here { project: repository.place().to_owned(), git })
            }
        }
    }

    /// What is worked on.
    pub(crate) fn project(&self) -> &Path {
        &self.project
    }

    /// Does a path lie in it, or in what git keeps of it?
    pub(crate) fn holds(&self, path: &Path) -> bool {
        path.starts_with(&self.project) || self.git.iter().any(|git| path.starts_with(git))
    }

    /// Does a snapshot hold something of it, or what it lies in? What several work trees share is of each of them; what holds
    /// another work tree as well is of that one.
    pub(crate) fn is_concerned_by(&self, snapshot: &Snapshot) -> bool {
        let is_gits = |path: &Path| self.git.iter().any(|git| path.starts_with(git));
        let mut scopes = snapshot.scopes.iter().map(|scope| &scope.path);
        let is_of_git = !snapshot.scopes.is_empty() && scopes.clone().all(|path| is_gits(path));
        is_of_git || scopes.any(|path| touch(path, &self.project))
    }
}

/// A path that somebody wrote, absolute and without links on the way. What is not there may be named, too.
pub(crate) fn named(path: &Path) -> Result<PathBuf, CommandError> {
    let path = folder()?.join(path);
    // `link/` and `link/.` mean what the link leads to.
    let written = path.as_os_str().as_encoded_bytes();
    let means_inside = written.ends_with(b"/") || written.ends_with(b"/.");
    match (means_inside, path.parent(), path.file_name()) {
        (false, Some(parent), Some(name)) => Ok(resolved(parent).join(name)),
        (_, _, _) => Ok(resolved(&path)),
    }
}

/// The path without links and dots, as far down as there is something.
fn resolved(path: &Path) -> PathBuf {
    let mut rest: Vec<&OsStr> = Vec::new();
    let mut existing = path;
    loop {
        if let Ok(found) = fs::canonicalize(existing) {
            return rest.iter().rev().fold(found, |path, name| path.join(name));
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name);
                existing = parent;
            }
            (_, _) => return without_dots(path),
        }
    }
}

/// The path without dots, by its words alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// Is one of them inside the other, or the same?
pub(crate) fn touch(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}
