//! In which folder each command of a line runs, as far as its `cd`s tell.

use super::names::{Meaning, Names};
use super::target::{Folder, Step, is_absolute};
use crate::shell::{Command, Join};

/// In how many folders a command may run before nobody can tell.
const PLACES_MAX: usize = 4;

/// Where a command may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In this folder.
    Known(Folder),
    /// In a folder that the line itself makes: nothing that was there before is in it.
    New,
    /// Nobody can tell.
    Unknown,
}

impl Place {
    /// The folder that is reached from here by a word.
    pub(super) fn then(&self, word: &str, names: &Names<'_>) -> Vec<Place> {
        let to = |text: &String| match self {
            Place::Known(folder) => Place::Known(folder.then(text)),
            Place::New | Place::Unknown if is_absolute(text) => Place::Known(Folder::default().then(text)),
            Place::New => Place::New,
            Place::Unknown => Place::Unknown,
        };
        match names.meaning(word) {
            Meaning::Texts(texts) if texts.iter().any(|text| text.contains(['*', '?'])) => {
                vec![Place::Unknown]
            }
            Meaning::Texts(texts) => texts.iter().map(to).collect(),
            Meaning::New => vec![Place::New],
            Meaning::Unknown => vec![Place::Unknown],
        }
    }
}

/// The brackets that are open, and where they were opened.
struct Level {
    depth: u16,
    start: usize,
    isolated: bool,
    entry: Vec<Place>,
}

/// Where the command that is looked at runs.
pub(super) struct Whereabouts {
    now: Vec<Place>,
    levels: Vec<Level>,
    /// Where `cd -` and `popd` lead.
    before: Vec<Vec<Place>>,
    /// How many steps the call itself made, without a `cd`.
    given: usize,
    /// Whether a line ends at its first failure.
    errexit: bool,
}

impl Whereabouts {
    pub(super) fn new(start: Folder) -> Whereabouts {
        let given = start.steps.len();
        let now = vec![Place::Known(start)];
        Whereabouts { now, levels: Vec::new(), before: Vec::new(), given, errexit: false }
    }

    pub(super) fn now(&self) -> &[Place] {
        &self.now
    }

    /// Steps into the brackets of the next command, and out of those that were closed before it.
    pub(super) fn enter(&mut self, command: &Command) {
        let (depth, start) = (command.depth, command.group.start);
        let is_open = |level: &Level| level.depth < depth || level.depth == depth && level.start == start;
        while let Some(level) = self.levels.pop_if(|level| !is_open(level)) {
            match level.isolated {
                true => self.now = level.entry,
                // Whether a branch was taken is not known.
                false => level.entry.into_iter().for_each(|place| self.also(place)),
            }
        }
        if self.levels.last().is_none_or(|level| level.depth < depth) {
            let (isolated, entry) = (command.group.isolated, self.now.clone());
            self.levels.push(Level { depth, start, isolated, entry });
        }
    }

    fn also(&mut self, place: Place) {
        if self.now.contains(&place) {
            return;
        }
        match self.now.len() < PLACES_MAX {
            true => self.now.push(place),
            false => self.now = vec![Place::Unknown],
        }
    }

    /// Follows a command that moves, and marks what is no longer certain after it.
    pub(super) fn leave(&mut self, command: &Command, names: &Names<'_>) {
        match command.program.as_str() {
            "cd" | "chdir" | "pushd" => self.follow(command, names),
            "popd" => self.now = self.before.pop().unwrap_or_else(|| vec![Place::Unknown]),
            "set" => {
                self.errexit |= command.has_flag(&["-e"]) || command.args().iter().any(|arg| arg == "errexit")
            }
            _ => {}
        }
        match command.then {
            Join::And | Join::Pipe | Join::Wraps => {}
            Join::Always | Join::Or | Join::Background | Join::End if self.errexit => {}
            Join::Always | Join::Or | Join::Background | Join::End => self.doubt(),
        }
    }

    fn follow(&mut self, command: &Command, names: &Names<'_>) {
        let here = self.now.clone();
        match command.operands().next() {
            Some("-") => self.now = self.before.pop().unwrap_or_else(|| vec![Place::Unknown]),
            word => {
                self.now = Vec::new();
                for place in here.iter().flat_map(|place| place.then(word.unwrap_or("~"), names)) {
                    self.also(place);
                }
            }
        }
        self.before.push(here);
    }

    /// What follows runs whether or not the last `cd` went well.
    fn doubt(&mut self) {
        let given = self.given;
        for place in &mut self.now {
            if let Place::Known(Folder { steps }) = place {
                steps.iter_mut().skip(given).for_each(|step: &mut Step| step.or_stay = true);
            }
        }
    }
}
