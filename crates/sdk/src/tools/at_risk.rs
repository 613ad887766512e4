//! What has to be saved before a command that puts files at risk: the folder it works in, and what else its words name.

use std::fs;
use std::path::{Component, Path, PathBuf};

use unstuck_judge::risk::{At, Folder, Risk, Target};
use unstuck_vault::Rebuildable;

use super::safe::not_saved;
use crate::failure::Failure;

/// How many folders up a project's files are looked for.
const FOLDERS_UP: usize = 16;

/// The paths to save for a command in `folder`, a real place. A path that only the shell could tell (`~`, `$TMPDIR`) is none
/// that can be saved, so whoever asks is told to write it out.
pub(super) fn scopes(risk: &Risk, folder: &Path) -> Result<(Vec<PathBuf>, Rebuildable), Failure> {
    let mut look = Look { folder, scopes: vec![folder.to_owned()] };
    for target in risk.targets() {
        look.at(target)?;
    }
    let takes_all = risk.targets().iter().any(|target| target.rebuildable);
    Ok((look.scopes, if takes_all { Rebuildable::Taken } else { Rebuildable::LeftOut }))
}

struct Look<'a> {
    folder: &'a Path,
    scopes: Vec<PathBuf>,
}

impl Look<'_> {
    fn at(&mut self, target: &Target) -> Result<(), Failure> {
        match &target.at {
            At::Path { from, path } => self.add(from, path, target.through_links),
            At::Glob { from, pattern } => {
                let fixed = pattern.split(['*', '?', '[']).next().unwrap_or_default();
                let holder = fixed.rfind('/').map_or("", |end| &fixed[..=end]);
                self.add(from, holder, target.through_links)
            }
            At::Over { from, sources, to, moves } => {
                let gone = sources.iter().filter(|_| *moves);
                gone.chain([to]).try_for_each(|path| self.add(from, path, target.through_links))
            }
            At::Repository { from }
            | At::GitFolder { from }
            | At::GitState { from }
            | At::GitIndex { from, .. } => self.keep_around(from, ".git"),
            At::Named { from, names } => {
                self.add(from, "", true)?;
                names.iter().try_for_each(|name| self.keep_beside(from, name))
            }
            At::Workspace { from } => {
                self.add(from, "", true)?;
                self.keep_around(from, ".git")
            }
        }
    }

    /// Keeps the nearest folder, from here up, that has such a name in it.
    fn keep_around(&mut self, from: &Folder, name: &str) -> Result<(), Failure> {
        let folder = self.place(from, "")?;
        if let Some(around) = folder.ancestors().find(|around| around.join(name).exists()) {
            self.keep(around.to_owned());
        }
        Ok(())
    }

    /// Keeps what has this name in the nearest folder, from here up. A pattern is only looked for here.
    fn keep_beside(&mut self, from: &Folder, name: &str) -> Result<(), Failure> {
        let folder = self.place(from, "")?;
        let beside = folder.ancestors().take(FOLDERS_UP).map(|around| around.join(name));
        if let Some(found) = beside.into_iter().find(|path| path.exists()) {
            self.keep(found);
        }
        Ok(())
    }

    fn add(&mut self, from: &Folder, path: &str, through_links: bool) -> Result<(), Failure> {
        let place = self.place(from, path)?;
        let real = place.parent().and_then(|holder| fs::canonicalize(holder).ok());
        // Where not even its folder is there, nothing is at risk.
        if let (Some(holder), Some(name)) = (real, place.file_name()) {
            self.keep(holder.join(name));
        }
        if let Ok(end) = fs::canonicalize(&place)
            && through_links
        {
            self.keep(end);
        }
        Ok(())
    }

    /// The place of a path, as a shell that goes the same steps would name it.
    fn place(&self, from: &Folder, path: &str) -> Result<PathBuf, Failure> {
        let mut place = self.folder.to_owned();
        for step in from.steps.iter().map(|step| &*step.to).chain([path]) {
            if step.starts_with(['~', '$']) {
                return Err(not_saved(&format!("only the shell knows what `{step}` stands for"))
                    .recommend_both(
                        format!("write the full path instead of `{step}`"),
                        format!("请写出完整路径，而不是 `{step}`"),
                    ));
            }
            place.push(step);
        }
        let mut plain = PathBuf::new();
        for part in place.components() {
            match part {
                Component::ParentDir => drop(plain.pop()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
            }
        }
        Ok(plain)
    }

    fn keep(&mut self, path: PathBuf) {
        if !self.scopes.iter().any(|scope| path.starts_with(scope)) {
            self.scopes.retain(|scope| !scope.starts_with(&path));
            self.scopes.push(path);
        }
    }
}
