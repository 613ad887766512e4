//! What came of one file of servers, for people and for programs.

use std::path::{Path, PathBuf};

use serde::Serialize;
use unstuck_judge::Lang;

use super::client::Client;
use super::installation::Done;
use super::note::Note;
use super::place::Scope;
use super::server::Server;
use super::wrapping::{Fate, Reshaped};
use crate::editing::EditError;
use crate::plain;

/// What is told of one file.
#[derive(Debug)]
pub(crate) struct WrappingTold {
    pub(crate) client: &'static Client,
    pub(crate) scope: Option<Scope>,
    /// The file as it was asked for.
    pub(crate) file: PathBuf,
    pub(crate) turned: Turned,
    pub(crate) notes: Vec<Note>,
    pub(crate) dry_run: bool,
}

/// How it turned out.
#[derive(Debug)]
pub(crate) enum Turned {
    Well(Reshaped),
    Failed(EditError),
}

#[derive(Serialize)]
struct WireTold<'a> {
    agent: &'static str,
    scope: Option<&'static str>,
    status: &'static str,
    dry_run: bool,
    file: &'a Path,
    servers: Vec<WireFate<'a>>,
    backup: Option<&'a Path>,
    diff: Option<&'a str>,
    notes: Vec<WireNote>,
    error: Option<String>,
    hint: Option<String>,
}

#[derive(Serialize)]
struct WireFate<'a> {
    server: &'a str,
    scope: &'static str,
    transport: &'static str,
    status: &'static str,
    why: Option<&'static str>,
    text: Option<&'static str>,
}

#[derive(Serialize)]
struct WireNote {
    note: &'static str,
    text: String,
}

impl Fate {
    /// Its name in JSON.
    fn word(self) -> &'static str {
        match self {
            Fate::Wrapped | Fate::AllTheSame(_) => "wrapped",
            Fate::Mended => "mended",
            Fate::Already => "already",
            Fate::ByHand => "by_hand",
            Fate::Unwrapped => "unwrapped",
            Fate::Left(_) => "left",
            Fate::Added => "added",
            Fate::TakenOut => "taken_out",
            Fate::NameTaken => "name_taken",
        }
    }

    fn in_words(self, dry_run: bool, lang: Lang) -> String {
        let (en, zh) = match (self, dry_run) {
            (Fate::Wrapped, false) => ("wrapped", "已包装"),
            (Fate::Wrapped, true) => ("would be wrapped", "将会包装"),
            (Fate::AllTheSame(why), is_thought) => {
                let head = Fate::Wrapped.in_words(is_thought, lang);
                return match lang {
                    Lang::En => format!("{head}; {}", why.mind(lang)),
                    Lang::Zh => format!("{head}；{}", why.mind(lang)),
                };
            }
            (Fate::Mended, false) => {
                ("wrapped already; the path of unstuck was mended", "早已包装；已更正 unstuck 的路径")
            }
            (Fate::Mended, true) => {
                ("wrapped already; the path of unstuck would be mended", "早已包装；将会更正 unstuck 的路径")
            }
            (Fate::Already, _) => ("there already", "早已如此"),
            (Fate::ByHand, _) => ("wrapped by hand, so it was left alone", "由人手动包装，因此未作改动"),
            (Fate::Unwrapped, false) => ("put back", "已恢复"),
            (Fate::Unwrapped, true) => ("would be put back", "将会恢复"),
            (Fate::Left(why), _) => {
                return match lang {
                    Lang::En => format!("left as it is: {}", why.text(lang)),
                    Lang::Zh => format!("未作改动：{}", why.text(lang)),
                };
            }
            (Fate::Added, false) => ("added", "已添加"),
            (Fate::Added, true) => ("would be added", "将会添加"),
            (Fate::TakenOut, false) => ("taken out", "已移除"),
            (Fate::TakenOut, true) => ("would be taken out", "将会移除"),
            (Fate::NameTaken, _) => (
                "another server has this name, so it was left alone",
                "另一个服务器已使用此名称，因此未作改动",
            ),
        };
        match lang {
            Lang::En => en.to_owned(),
            Lang::Zh => zh.to_owned(),
        }
    }
}

impl WrappingTold {
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.turned, Turned::Failed(_))
    }

    /// Was something written?
    pub(crate) fn has_changed(&self) -> bool {
        self.reshaped().is_some_and(|reshaped| reshaped.done != Done::Nothing)
    }

    /// Was something like ours left where it is?
    pub(crate) fn has_left(&self) -> bool {
        let is_left = |(_, fate): &(Server, Fate)| matches!(fate, Fate::ByHand | Fate::NameTaken);
        self.reshaped().is_some_and(|reshaped| reshaped.fates.iter().any(is_left))
    }

    /// Was a server not wrapped that is as it was?
    pub(crate) fn has_refused(&self) -> bool {
        let is_refused = |(_, fate): &(Server, Fate)| matches!(fate, Fate::Left(_));
        self.reshaped().is_some_and(|reshaped| reshaped.fates.iter().any(is_refused))
    }

    /// Is there nothing to tell?
    pub(crate) fn is_silent(&self) -> bool {
        self.reshaped().is_some_and(|reshaped| reshaped.fates.is_empty())
    }

    fn reshaped(&self) -> Option<&Reshaped> {
        match &self.turned {
            Turned::Well(reshaped) => Some(reshaped),
            Turned::Failed(_) => None,
        }
    }

    /// The change as a unified diff.
    pub(crate) fn diff(&self) -> &str {
        self.reshaped().map_or("", |reshaped| &reshaped.diff)
    }

    /// For programs.
    pub(crate) fn to_wire(&self) -> impl Serialize + '_ {
        let error = match &self.turned {
            Turned::Failed(error) => Some(error),
            Turned::Well(_) => None,
        };
        let status = match self.reshaped().map(|reshaped| reshaped.done) {
            None => "failed",
            Some(Done::Nothing) => "unchanged",
            Some(Done::Made | Done::Changed) => "changed",
            Some(Done::Removed) => "removed",
        };
        let fates = self.reshaped().into_iter().flat_map(|reshaped| &reshaped.fates);
        let note = |note: &Note| WireNote { note: note.word(), text: note.text(Lang::En) };
        WireTold {
            agent: self.client.word,
            scope: self.scope.map(Scope::word),
            status,
            dry_run: self.dry_run,
            file: self.reshaped().map_or(&self.file, |reshaped| &reshaped.file),
            servers: fates.map(|(server, fate)| wire_fate(server, *fate)).collect(),
            backup: self.reshaped().and_then(|reshaped| reshaped.backup.as_deref()),
            diff: self.dry_run.then(|| self.diff()),
            notes: self.notes.iter().map(note).collect(),
            error: error.map(ToString::to_string),
            hint: error.and_then(|error| error.hint(Lang::En)),
        }
    }

    /// For people. A diff, where one was asked for, is not part of it.
    pub(crate) fn in_words(&self, lang: Lang) -> String {
        let name = self.client.name;
        let mut lines = match &self.turned {
            Turned::Failed(error) => {
                let (what, hint) = (error.in_words(lang), error.hint(lang));
                match lang {
                    Lang::En => format!(
                        "{name}: not done: {what}\n{}",
                        hint.map(|hint| format!("  hint: {hint}\n")).unwrap_or_default()
                    ),
                    Lang::Zh => format!(
                        "{name}：未完成：{what}\n{}",
                        hint.map(|hint| format!("  提示：{hint}\n")).unwrap_or_default()
                    ),
                }
            }
            Turned::Well(reshaped) => self.fates(reshaped, lang),
        };
        for note in &self.notes {
            lines.push_str(&format!("  ! {}\n", note.text(lang)));
        }
        plain::lines(&lines).into_owned()
    }

    fn fates(&self, reshaped: &Reshaped, lang: Lang) -> String {
        let (name, file) = (self.client.name, reshaped.file.display());
        let mut lines = match lang {
            Lang::En => format!("{name}: {file}\n"),
            Lang::Zh => format!("{name}：{file}\n"),
        };
        for (server, fate) in &reshaped.fates {
            let (scope, reach) = (server.scope_word(), server.reach.word());
            let fate = fate.in_words(self.dry_run, lang);
            lines.push_str(&match lang {
                Lang::En => format!("  {} ({scope}, {reach}): {fate}\n", server.name),
                Lang::Zh => format!("  {}（{scope}，{reach}）：{fate}\n", server.name),
            });
        }
        match (reshaped.done, self.dry_run, lang) {
            (Done::Removed, false, Lang::En) => lines.push_str("  the file was ours, and is gone\n"),
            (Done::Removed, false, Lang::Zh) => lines.push_str("  该文件由我们创建，已删除\n"),
            (Done::Nothing | Done::Made | Done::Changed | Done::Removed, _, _) => {}
        }
        match (&reshaped.backup, lang) {
            (None, _) => {}
            (Some(copy), Lang::En) => {
                lines.push_str(&format!("  what was there before: {}\n", copy.display()));
            }
            (Some(copy), Lang::Zh) => lines.push_str(&format!("  之前的内容：{}\n", copy.display())),
        }
        lines
    }
}

fn wire_fate(server: &Server, fate: Fate) -> WireFate<'_> {
    let why = match fate {
        Fate::Left(why) => Some((why.word(), why.text(Lang::En))),
        Fate::AllTheSame(why) => Some((why.word(), why.mind(Lang::En))),
        Fate::Wrapped
        | Fate::Mended
        | Fate::Already
        | Fate::ByHand
        | Fate::Unwrapped
        | Fate::Added
        | Fate::TakenOut
        | Fate::NameTaken => None,
    };
    WireFate {
        server: &server.name,
        scope: server.scope_word(),
        transport: server.reach.word(),
        status: fate.word(),
        why: why.map(|(word, _)| word),
        text: why.map(|(_, text)| text),
    }
}
