//! What came of one file, for people and for programs.

use std::path::{Path, PathBuf};

use serde::Serialize;
use unstuck_judge::Lang;

use super::agent::Agent;
use super::installation::{Done, Outcome};
use super::note::Note;
use super::place::Scope;
use super::version::Reported;
use crate::editing::EditError;
use crate::plain;

/// What is told of one agent's file.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) agent: &'static Agent,
    pub(crate) scope: Option<Scope>,
    /// The file as it was asked for.
    pub(crate) file: PathBuf,
    pub(crate) version: Reported,
    pub(crate) events: Vec<&'static str>,
    pub(crate) left_out: Vec<&'static str>,
    pub(crate) command: String,
    pub(crate) became: Became,
    pub(crate) notes: Vec<Note>,
    pub(crate) dry_run: bool,
}

/// How it went.
#[derive(Debug)]
pub(crate) enum Became {
    Installed(Outcome),
    Uninstalled(Outcome),
    /// The plugin is active already; this file says so.
    HasPlugin(PathBuf),
    Failed(EditError),
}

#[derive(Serialize)]
struct WireTold<'a> {
    agent: &'static str,
    scope: Option<&'static str>,
    status: &'static str,
    dry_run: bool,
    file: &'a Path,
    version: Option<String>,
    events: &'a [&'static str],
    left_out: &'a [&'static str],
    command: &'a str,
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

impl Told {
    /// Did it fail?
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.became, Became::Failed(_))
    }

    /// Was something written?
    pub(crate) fn has_changed(&self) -> bool {
        match &self.became {
            Became::Installed(outcome) | Became::Uninstalled(outcome) => outcome.done != Done::Nothing,
            Became::HasPlugin(_) | Became::Failed(_) => false,
        }
    }

    fn outcome(&self) -> Option<&Outcome> {
        match &self.became {
            Became::Installed(outcome) | Became::Uninstalled(outcome) => Some(outcome),
            Became::HasPlugin(_) | Became::Failed(_) => None,
        }
    }

    /// The change as a unified diff.
    pub(crate) fn diff(&self) -> &str {
        self.outcome().map_or("", |outcome| &outcome.diff)
    }

    fn status(&self) -> &'static str {
        match &self.became {
            Became::Installed(outcome) => match outcome.done {
                Done::Nothing => "unchanged",
                Done::Made | Done::Changed | Done::Removed => "installed",
            },
            Became::Uninstalled(outcome) => match outcome.done {
                Done::Nothing => "not_installed",
                Done::Made | Done::Changed => "uninstalled",
                Done::Removed => "removed",
            },
            Became::HasPlugin(_) => "has_plugin",
            Became::Failed(_) => "failed",
        }
    }

    /// For programs.
    pub(crate) fn to_wire(&self) -> impl Serialize + '_ {
        let error = match &self.became {
            Became::Failed(error) => Some(error),
            Became::Installed(_) | Became::Uninstalled(_) | Became::HasPlugin(_) => None,
        };
        let note = |note: &Note| WireNote { note: note.word(), text: note.text(Lang::En) };
        WireTold {
            agent: self.agent.host.word(),
            scope: self.scope.map(Scope::word),
            status: self.status(),
            dry_run: self.dry_run,
            file: self.outcome().map_or(&self.file, |outcome| &outcome.file),
            version: match &self.version {
                Reported::Version(version) => Some(version.to_string()),
                Reported::NotFound | Reported::NotAsked | Reported::Unreadable(_) => None,
            },
            events: &self.events,
            left_out: &self.left_out,
            command: &self.command,
            backup: self.outcome().and_then(|outcome| outcome.backup.as_deref()),
            diff: self.dry_run.then(|| self.diff()),
            notes: self.notes.iter().map(note).collect(),
            error: error.map(ToString::to_string),
            hint: error.and_then(|error| error.hint(Lang::En)),
        }
    }

    /// For people. A diff, where one was asked for, is not part of it.
    pub(crate) fn in_words(&self, lang: Lang) -> String {
        let version = match &self.version {
            Reported::Version(version) => format!(" {version}"),
            Reported::NotFound | Reported::NotAsked | Reported::Unreadable(_) => String::new(),
        };
        let name = format!("{}{version}", self.agent.name);
        let file = self.outcome().map_or(&self.file, |outcome| &outcome.file).display().to_string();
        let mut lines = match (&self.became, lang) {
            (Became::Failed(error), _) => {
                let hint = error.hint(lang);
                match lang {
                    Lang::En => format!(
                        "{name}: not done: {}\n{}",
                        error.in_words(lang),
                        hint.map(|hint| format!("  hint: {hint}\n")).unwrap_or_default()
                    ),
                    Lang::Zh => format!(
                        "{name}：未完成：{}\n{}",
                        error.in_words(lang),
                        hint.map(|hint| format!("  提示：{hint}\n")).unwrap_or_default()
                    ),
                }
            }
            (Became::HasPlugin(file), Lang::En) => {
                format!("{name}: the plugin is active already ({}), so nothing was written\n", file.display())
            }
            (Became::HasPlugin(file), Lang::Zh) => {
                format!("{name}：插件已启用（{}），因此未写入任何内容\n", file.display())
            }
            (Became::Installed(outcome), lang) => self.installed(outcome, &name, &file, lang),
            (Became::Uninstalled(outcome), lang) => self.uninstalled(outcome, &name, &file, lang),
        };
        for note in &self.notes {
            lines.push_str(&format!("  ! {}\n", note.text(lang)));
        }
        plain::lines(&lines).into_owned()
    }

    fn installed(&self, outcome: &Outcome, name: &str, file: &str, lang: Lang) -> String {
        let events = self.events.join(", ");
        let head = match (outcome.done, self.dry_run, lang) {
            (Done::Nothing, _, Lang::En) => format!("{name}: installed already\n"),
            (Done::Nothing, _, Lang::Zh) => format!("{name}：早已安装\n"),
            (_, true, Lang::En) => format!("{name}: would be installed\n"),
            (_, true, Lang::Zh) => format!("{name}：将会安装\n"),
            (_, false, Lang::En) => format!("{name}: installed\n"),
            (_, false, Lang::Zh) => format!("{name}：已安装\n"),
        };
        let backup = match (&outcome.backup, lang) {
            (None, _) => String::new(),
            (Some(copy), Lang::En) => format!("  what was there before: {}\n", copy.display()),
            (Some(copy), Lang::Zh) => format!("  之前的内容：{}\n", copy.display()),
        };
        format!("{head}  {file}: {events}\n{backup}")
    }

    fn uninstalled(&self, outcome: &Outcome, name: &str, file: &str, lang: Lang) -> String {
        match (outcome.done, self.dry_run, lang) {
            (Done::Nothing, _, Lang::En) => format!("{name}: nothing of ours is in {file}\n"),
            (Done::Nothing, _, Lang::Zh) => format!("{name}：{file} 中没有我们的内容\n"),
            (Done::Removed, true, Lang::En) => format!("{name}: {file} would be removed\n"),
            (Done::Removed, true, Lang::Zh) => format!("{name}：将会删除 {file}\n"),
            (Done::Removed, false, Lang::En) => format!("{name}: removed {file}, which was ours\n"),
            (Done::Removed, false, Lang::Zh) => format!("{name}：已删除 {file}（由我们创建）\n"),
            (Done::Made | Done::Changed, true, Lang::En) => format!("{name}: would be taken out of {file}\n"),
            (Done::Made | Done::Changed, true, Lang::Zh) => format!("{name}：将会从 {file} 中移除\n"),
            (Done::Made | Done::Changed, false, Lang::En) => format!("{name}: taken out of {file}\n"),
            (Done::Made | Done::Changed, false, Lang::Zh) => format!("{name}：已从 {file} 中移除\n"),
        }
    }
}
