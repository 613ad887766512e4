//! What was found at risk so far.

use super::names::{Meaning, Names};
use super::row::{ROWS, Row};
use super::target::{At, Folder, Target, is_absolute};
use super::whereabouts::Place;
use super::{Counts, Risk};
use crate::shell;

/// Of more targets than this, the folders that hold them are taken.
const TARGETS_MAX: usize = 256;

/// The rows that fit, and all their targets.
#[derive(Default)]
pub(super) struct Found {
    first: Option<usize>,
    /// All that fit, each once.
    rows: Vec<usize>,
    targets: Vec<Target>,
    /// Whether the line has told its shell that patterns match hidden names.
    pub hidden: bool,
}

/// How a target is meant.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    pub row: usize,
    pub only_if_there: bool,
}

impl Manner {
    /// A word that may be no path.
    pub(super) fn perhaps(row: usize) -> Manner {
        Manner { row, only_if_there: true }
    }

    /// A path that the call makes where there is none.
    pub(super) fn surely(row: usize) -> Manner {
        Manner { row, only_if_there: false }
    }
}

impl Found {
    /// Adds a target. The row that stands first among those that always count gives the risk its name.
    pub(super) fn add(&mut self, at: At, manner: Manner) {
        let rank = |row: usize| (ROWS[row].counts, row);
        self.first = Some(match self.first {
            Some(first) if rank(first) <= rank(manner.row) => first,
            Some(_) | None => manner.row,
        });
        if !self.rows.contains(&manner.row) {
            self.rows.push(manner.row);
        }
        let row = &ROWS[manner.row];
        let target = Target {
            at,
            rebuildable: row.rebuildable,
            only_if_there: manner.only_if_there,
            through_links: !row.links,
            hidden: self.hidden,
        };
        // Each round goes up by one folder, so this ends.
        while self.targets.len() >= TARGETS_MAX {
            for Target { at, rebuildable, .. } in std::mem::take(&mut self.targets) {
                for at in holders(at) {
                    self.push(Target {
                        at,
                        rebuildable,
                        only_if_there: true,
                        through_links: true,
                        hidden: false,
                    });
                }
            }
        }
        self.push(target);
    }

    fn push(&mut self, target: Target) {
        if !self.targets.contains(&target) {
            self.targets.push(target);
        }
    }

    /// Adds a path as it is, with no pattern in it.
    pub(super) fn add_path(&mut self, path: &str, places: &[Place], manner: Manner) {
        for place in places {
            if let Place::Known(from) = place {
                self.add(At::Path { from: from.clone(), path: path.to_owned() }, manner);
            }
        }
    }

    /// Adds a text as a path or a pattern, as seen from each place.
    pub(super) fn add_text(&mut self, text: &str, places: &[Place], manner: Manner) {
        if text.is_empty() || text.starts_with("/proc/") || shell::is_stream(text) {
            return;
        }
        let of_another =
            text.strip_prefix('~').is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
        let at = |from: Folder| match () {
            () if of_another => At::Workspace { from },
            () if text.contains(['*', '?', '[']) => At::Glob { from, pattern: text.to_owned() },
            () => At::Path { from, path: text.to_owned() },
        };
        if is_absolute(text) {
            return self.add(at(Folder::default()), manner);
        }
        for place in places {
            match place {
                Place::Known(from) => self.add(at(from.clone()), manner),
                Place::New => {}
                Place::Unknown => self.add(At::Workspace { from: Folder::default() }, manner),
            }
        }
    }

    /// Adds a word for what it stands for; `unknown` adds whatever a word means of which nobody can tell.
    pub(super) fn add_word(
        &mut self,
        word: &str,
        names: &Names<'_>,
        places: &[Place],
        manner: Manner,
        unknown: impl FnOnce(&mut Found),
    ) {
        match names.meaning(word) {
            Meaning::Texts(texts) => {
                for text in &texts {
                    self.add_text(text, places, manner);
                    // Without quotes, a variable with blanks in it is several words.
                    if word.contains('$') && text.contains(char::is_whitespace) {
                        let perhaps = Manner::perhaps(manner.row);
                        text.split_whitespace().for_each(|part| self.add_text(part, places, perhaps));
                    }
                }
            }
            Meaning::New => {}
            Meaning::Unknown => unknown(self),
        }
    }

    /// Adds what is seen from each place as a folder.
    pub(super) fn add_from(&mut self, places: &[Place], row: usize, at: impl Fn(Folder) -> At) {
        for place in places {
            match place {
                Place::Known(from) => self.add(at(from.clone()), Manner::perhaps(row)),
                Place::New => {}
                // The nearest guess for a repository or a project is the one the call is made in.
                Place::Unknown => self.add(at(Folder::default()), Manner::perhaps(row)),
            }
        }
    }

    /// The risk, if anything was found.
    pub(super) fn risk(self) -> Option<Risk> {
        let row = &ROWS[self.first?];
        let Row { id, why, counts, .. } = row;
        let rows = self.rows.iter().map(|row| (ROWS[*row].id, ROWS[*row].counts)).collect();
        Some(Risk { row: id, why: *why, counts: *counts, rows, targets: self.targets })
    }
}

/// The folders that hold a target. Past the top of what the words tell, that is the project.
fn holders(at: At) -> Vec<At> {
    let entered = |from: &Folder| -> Vec<At> {
        let last = from.steps.split_last();
        let step = last.map(|(step, before)| At::Path {
            from: Folder { steps: before.to_vec() },
            path: step.to.clone(),
        });
        step.into_iter().chain([At::Workspace { from: Folder::default() }]).collect()
    };
    let above = |from: &Folder, path: &str| {
        let fixed = path.split(['*', '?', '[']).next().unwrap_or_default();
        let top = || vec![At::Path { from: Folder::default(), path: "/".to_owned() }];
        match fixed.trim_end_matches('/').rsplit_once('/') {
            Some(("", _)) => top(),
            Some((folder, _)) => vec![At::Path { from: from.clone(), path: folder.to_owned() }],
            None if is_absolute(path) => top(),
            None => entered(from),
        }
    };
    match at {
        At::Path { from, path } => above(&from, &path),
        At::Glob { from, pattern } => above(&from, &pattern),
        At::Over { from, sources, to, moves } => {
            let sources = sources.iter().filter(|_| moves);
            sources.chain([&to]).flat_map(|path| above(&from, path)).collect()
        }
        At::Repository { from }
        | At::GitFolder { from }
        | At::GitState { from }
        | At::GitIndex { from, .. }
        | At::Named { from, .. } => {
            let repository = At::Repository { from: Folder::default() };
            entered(&from).into_iter().chain([repository]).collect()
        }
        At::Workspace { from } => entered(&from),
    }
}

// The order in which counts are compared is that of their strength.
const _: () = assert!((Counts::Always as u8) < Counts::Edits as u8);
