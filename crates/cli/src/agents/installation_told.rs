//! What came of the entries by which an agent calls us.

use std::path::PathBuf;

use serde::Serialize;
use unstuck_judge::Lang;

use super::agent::event_names;
use super::change::{Done, Outcome};
use super::installation::{Alike, Installation};
use super::told::Tells;
use super::version::Reported;

/// How it went.
#[derive(Debug)]
pub(crate) enum Became {
    Installed(Outcome<Alike>),
    Uninstalled(Outcome<Alike>),
    /// The plugin is active already; this file says so.
    HasPlugin(PathBuf),
}

#[derive(Serialize)]
struct WireDetails {
    version: Option<String>,
    events: Vec<&'static str>,
    left_out: Vec<&'static str>,
    command: String,
}

impl Tells for Installation {
    type Became = Became;

    fn outcome(became: &Became) -> Option<&Outcome<Alike>> {
        match became {
            Became::Installed(outcome) | Became::Uninstalled(outcome) => Some(outcome),
            Became::HasPlugin(_) => None,
        }
    }

    fn status(became: &Became) -> &'static str {
        match became {
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
        }
    }

    fn details(&self, _: Option<&Became>) -> impl Serialize {
        WireDetails {
            version: self.version_number(),
            events: event_names(&self.events),
            left_out: event_names(&self.left_out),
            command: self.line(),
        }
    }

    fn name(&self) -> String {
        match self.version_number() {
            Some(version) => format!("{} {version}", self.agent.name),
            None => self.agent.name.to_owned(),
        }
    }

    fn in_words(&self, became: &Became, dry_run: bool, lang: Lang) -> String {
        match (became, lang) {
            (Became::Installed(outcome), _) => self.installed(outcome, dry_run, lang),
            (Became::Uninstalled(outcome), _) => self.uninstalled(outcome, dry_run, lang),
            (Became::HasPlugin(file), Lang::En) => {
                let (name, file) = (self.name(), file.display());
                format!("{name}: the plugin is active already ({file}), so nothing was written\n")
            }
            (Became::HasPlugin(file), Lang::Zh) => {
                let (name, file) = (self.name(), file.display());
                format!("{name}：插件已启用（{file}），因此未写入任何内容\n")
            }
        }
    }
}

impl Installation {
    fn version_number(&self) -> Option<String> {
        match &self.version {
            Reported::Version(version) => Some(version.to_string()),
            Reported::NotFound | Reported::NotAsked | Reported::Unreadable(_) => None,
        }
    }

    fn installed(&self, outcome: &Outcome<Alike>, dry_run: bool, lang: Lang) -> String {
        let (name, file, events) =
            (self.name(), outcome.file.display(), event_names(&self.events).join(", "));
        let head = match (outcome.done, dry_run, lang) {
            (Done::Nothing, _, Lang::En) => format!("{name}: installed already\n"),
            (Done::Nothing, _, Lang::Zh) => format!("{name}：早已安装\n"),
            (_, true, Lang::En) => format!("{name}: would be installed\n"),
            (_, true, Lang::Zh) => format!("{name}：将会安装\n"),
            (_, false, Lang::En) => format!("{name}: installed\n"),
            (_, false, Lang::Zh) => format!("{name}：已安装\n"),
        };
        format!("{head}  {file}: {events}\n{}", outcome.backup_in_words(lang))
    }

    fn uninstalled(&self, outcome: &Outcome<Alike>, dry_run: bool, lang: Lang) -> String {
        let (name, file) = (self.name(), outcome.file.display());
        match (outcome.done, dry_run, lang) {
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
