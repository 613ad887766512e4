//! What was found at risk so far.

use super::names::{Meaning, Names};
use super::row::{ROWS, Row};
use super::target::{At, Folder, Target};
use super::whereabouts::Place;
use super::{Counts, Risk};

/// More targets than this are as good as the whole project.
const TARGETS_MAX: usize = 256;

/// The rows that fit, and all their targets.
#[derive(Default)]
pub(super) struct Found {
    first: Option<usize>,
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
        let row = &ROWS[manner.row];
        let target = Target {
            at,
            rebuildable: row.rebuildable,
            only_if_there: manner.only_if_there,
            through_links: !row.links,
            hidden: self.hidden,
        };
        if self.targets.len() >= TARGETS_MAX {
            let at = At::Workspace { from: Folder::default() };
            self.targets.clear();
            self.targets.push(Target { at, only_if_there: true, ..target.clone() });
        }
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
        let is_absolute = text.starts_with(['/', '~']);
        if text.is_empty() || ["/dev/", "/proc/"].iter().any(|folder| text.starts_with(folder)) {
            return;
        }
        let of_another =
            text.strip_prefix('~').is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
        let at = |from: Folder| match () {
            () if of_another => At::Workspace { from },
            () if text.contains(['*', '?', '[']) => At::Glob { from, pattern: text.to_owned() },
            () => At::Path { from, path: text.to_owned() },
        };
        if is_absolute {
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
        Some(Risk { row: id, why: *why, counts: *counts, targets: self.targets })
    }
}

// The order in which counts are compared is that of their strength.
const _: () = assert!((Counts::Always as u8) < Counts::Edits as u8);
