//! The rows of `rules/suspicions.toml`, as they are compiled in: which programs give a sign, and what it looks like. Each has
//! examples in `tests.rs`, of both sorts.

use crate::shell::Command;

/// The name of the sign that JSON ends too early.
pub const CUT_JSON: &str = "cut-json";

/// One sign that a success is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: &'static str,
    /// The programs that give it; `python*` stands for all whose names begin so.
    programs: &'static [&'static str],
    /// One of these words is among theirs; any will do where there are none.
    words: &'static [&'static str],
    /// Whoever gives one of these words wants it so.
    unless: &'static [&'static str],
    pub(super) sign: Sign,
    /// What it means, in English and Chinese, as half a sentence.
    pub(super) why: [&'static str; 2],
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// A line that is bad, and nowhere one that is good. A line is looked at only where it has one of the hints.
    Lines { hints: &'static [&'static str], bad: &'static str, good: Option<&'static str> },
    /// The answer is a web page that tells of an error.
    ErrorPage,
    /// The answer is JSON that ends too early.
    CutJson,
}

impl Row {
    /// Can this command give it?
    pub(super) fn is_about(&self, command: &Command) -> bool {
        let is_named = |name: &&str| match name.strip_suffix('*') {
            Some(start) => command.program.starts_with(start),
            None => command.program == *name,
        };
        let has = |word: &&str| command.args().iter().any(|other| other == word);
        self.programs.iter().any(is_named)
            && (self.words.is_empty() || self.words.iter().any(has))
            && !self.unless.iter().any(has)
    }
}

/// Is what this command prints what a server answered? Then it may be an error page.
pub(super) fn is_fetcher(command: &Command) -> bool {
    let may_be_page = |row: &&Row| row.sign == Sign::ErrorPage;
    ROWS.iter().filter(may_be_page).any(|row| row.is_about(command))
}

include!(concat!(env!("OUT_DIR"), "/suspicions.rs"));
