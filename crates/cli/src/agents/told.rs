//! What came of one file, for people and for programs.

use std::path::Path;

use serde::Serialize;
use unstuck_judge::Lang;

use super::change::{Change, Done, Outcome};
use super::note::Note;
use super::place::Scope;
use crate::editing::EditError;
use crate::plain;

/// What is told of one file.
pub(crate) struct Told<C: Tells> {
    /// What was to be done.
    pub(crate) change: C,
    pub(crate) scope: Option<Scope>,
    pub(crate) became: Result<C::Became, EditError>,
    pub(crate) notes: Vec<Note>,
    pub(crate) dry_run: bool,
}

/// A change that somebody is told of.
pub(crate) trait Tells: Change {
    /// How it went, where it did not fail.
    type Became;

    /// What became of the file; nothing where there was no need to look at it.
    fn outcome(became: &Self::Became) -> Option<&Outcome<Self::Seen>>;

    /// What became of it, in one word.
    fn status(became: &Self::Became) -> &'static str;

    /// What only this kind of change tells programs. It stands behind the file.
    fn details(&self, became: Option<&Self::Became>) -> impl Serialize;

    /// The agent, for people.
    fn name(&self) -> String;

    /// How it went, for people.
    fn in_words(&self, became: &Self::Became, dry_run: bool, lang: Lang) -> String;
}

#[derive(Serialize)]
struct WireTold<'a, D> {
    agent: &'static str,
    scope: Option<&'static str>,
    status: &'static str,
    dry_run: bool,
    file: &'a Path,
    #[serde(flatten)]
    details: D,
    backup: Option<&'a Path>,
    diff: Option<&'a str>,
    notes: Vec<WireNote>,
    error: Option<String>,
    hint: Option<String>,
}

#[derive(Serialize)]
struct WireNote {
    note: &'static str,
    text: String,
}

impl<C: Tells> Told<C> {
    /// Did it fail?
    pub(crate) fn has_failed(&self) -> bool {
        self.became.is_err()
    }

    /// Was something written?
    pub(crate) fn has_changed(&self) -> bool {
        self.outcome().is_some_and(|outcome| outcome.done != Done::Nothing)
    }

    pub(super) fn outcome(&self) -> Option<&Outcome<C::Seen>> {
        self.became.as_ref().ok().and_then(C::outcome)
    }

    /// The change as a unified diff.
    pub(crate) fn diff(&self) -> &str {
        self.outcome().map_or("", |outcome| &outcome.diff)
    }

    /// For programs.
    pub(crate) fn to_wire(&self) -> impl Serialize + '_ {
        let error = self.became.as_ref().err();
        let note = |note: &Note| WireNote { note: note.word(), text: note.text(Lang::En) };
        WireTold {
            agent: self.change.agent(),
            scope: self.scope.map(Scope::word),
            status: self.became.as_ref().map_or("failed", C::status),
            dry_run: self.dry_run,
            file: self.outcome().map_or(self.change.file(), |outcome| &outcome.file),
            details: self.change.details(self.became.as_ref().ok()),
            backup: self.outcome().and_then(|outcome| outcome.backup.as_deref()),
            diff: self.dry_run.then(|| self.diff()),
            notes: self.notes.iter().map(note).collect(),
            error: error.map(ToString::to_string),
            hint: error.and_then(|error| error.hint(Lang::En)),
        }
    }

    /// For people. A diff, where one was asked for, is not part of it.
    pub(crate) fn in_words(&self, lang: Lang) -> String {
        let mut lines = match &self.became {
            Ok(became) => self.change.in_words(became, self.dry_run, lang),
            Err(error) => failed(&self.change.name(), error, lang),
        };
        for note in &self.notes {
            lines.push_str(&format!("  ! {}\n", note.text(lang)));
        }
        plain::lines(&lines).into_owned()
    }
}

fn failed(name: &str, error: &EditError, lang: Lang) -> String {
    let (what, hint) = (error.in_words(lang), error.hint(lang));
    match (hint, lang) {
        (None, Lang::En) => format!("{name}: not done: {what}\n"),
        (None, Lang::Zh) => format!("{name}：未完成：{what}\n"),
        (Some(hint), Lang::En) => format!("{name}: not done: {what}\n  hint: {hint}\n"),
        (Some(hint), Lang::Zh) => format!("{name}：未完成：{what}\n  提示：{hint}\n"),
    }
}

impl<S> Outcome<S> {
    /// Where the copy of what was there before is, in a line; nothing where there is none.
    pub(super) fn backup_in_words(&self, lang: Lang) -> String {
        match (&self.backup, lang) {
            (None, _) => String::new(),
            (Some(copy), Lang::En) => format!("  what was there before: {}\n", copy.display()),
            (Some(copy), Lang::Zh) => format!("  之前的内容：{}\n", copy.display()),
        }
    }
}
