//! Which calls put files at risk, and which files: a table (`rules/risky.toml`), and one loop over it.
//!
//! It reads words only. Whether a file is there, and what a pattern stands for, the machine has to say; so a target is
//! named as the call names it. Where the words do not tell (a variable nobody set, `xargs rm`), the whole project is at risk.
//! It must never look at a file, and never call a mere look a risk.

mod found;
mod invocation;
mod names;
mod row;
mod script;
mod target;
mod tool;
mod whereabouts;

#[cfg(test)]
mod tests;

use crate::shell::{self, ParsedCall};
use crate::{Call, Lang};
use found::Found;

pub use target::{At, Folder, PLACES, Step, Target};

/// When a risk counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counts {
    /// Always: something may be lost that nobody can bring back.
    Always,
    /// Only for a person who wants single edits protected as well.
    Edits,
}

/// A call that puts files at risk.
#[derive(Debug, Clone, PartialEq)]
pub struct Risk {
    row: &'static str,
    why: [&'static str; 2],
    counts: Counts,
    rows: Vec<(&'static str, Counts)>,
    targets: Vec<Target>,
}

impl Risk {
    /// The row of `rules/risky.toml` that says so; of several, the one that stands first there.
    pub fn row(&self) -> &'static str {
        self.row
    }

    /// Every row that fits: a line of several commands may put files at risk in several ways.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, Counts)> {
        self.rows.iter().copied()
    }

    /// What may be lost, in one sentence.
    pub fn why(&self, lang: Lang) -> &'static str {
        self.why[lang as usize]
    }

    /// When it counts.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What is at risk, each once.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }
}

/// Tells what a call puts at risk; nothing for a call that only looks, builds or adds.
pub fn of(call: &Call) -> Option<Risk> {
    of_parsed(&ParsedCall::of(call))
}

/// The same for a call whose line has been read already.
pub fn of_parsed(parsed: &ParsedCall<'_>) -> Option<Risk> {
    let mut found = Found::default();
    match &parsed.script {
        Some(script) => {
            let start = shell::folder(parsed.call).map(|folder| Folder::default().then(folder));
            script::look(script, start.unwrap_or_default(), &mut found);
        }
        None => tool::look(parsed.call, &mut found),
    }
    found.risk()
}

/// All rows, as they stand in the table: name, when it counts, and why.
pub fn rows() -> impl Iterator<Item = (&'static str, Counts, [&'static str; 2])> {
    row::ROWS.iter().map(|row| (row.id, row.counts, row.why))
}
