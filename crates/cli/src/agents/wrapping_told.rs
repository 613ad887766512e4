//! What came of the servers of a file.

use serde::Serialize;
use unstuck_judge::Lang;

use super::change::{Done, Outcome};
use super::server::Server;
use super::told::{Tells, Told};
use super::wrapping::{Fate, Fates, Wrapping};

#[derive(Serialize)]
struct WireDetails<'a> {
    servers: Vec<WireFate<'a>>,
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

impl Tells for Wrapping {
    type Became = Outcome<Fates>;

    fn outcome(became: &Outcome<Fates>) -> Option<&Outcome<Fates>> {
        Some(became)
    }

    fn status(became: &Outcome<Fates>) -> &'static str {
        match became.done {
            Done::Nothing => "unchanged",
            Done::Made | Done::Changed => "changed",
            Done::Removed => "removed",
        }
    }

    fn details(&self, became: Option<&Outcome<Fates>>) -> impl Serialize {
        let fates = became.into_iter().flat_map(|outcome| &outcome.seen);
        WireDetails { servers: fates.map(|(server, fate)| wire_fate(server, *fate)).collect() }
    }

    fn name(&self) -> String {
        self.client.name.to_owned()
    }

    fn in_words(&self, outcome: &Outcome<Fates>, dry_run: bool, lang: Lang) -> String {
        let (name, file) = (self.client.name, outcome.file.display());
        let mut lines = match lang {
            Lang::En => format!("{name}: {file}\n"),
            Lang::Zh => format!("{name}：{file}\n"),
        };
        for (server, fate) in &outcome.seen {
            let (scope, reach) = (server.scope_word(), server.reach.word());
            let fate = fate.in_words(dry_run, lang);
            lines.push_str(&match lang {
                Lang::En => format!("  {} ({scope}, {reach}): {fate}\n", server.name),
                Lang::Zh => format!("  {}（{scope}，{reach}）：{fate}\n", server.name),
            });
        }
        match (outcome.done, dry_run, lang) {
            (Done::Removed, false, Lang::En) => lines.push_str("  the file was ours, and is gone\n"),
            (Done::Removed, false, Lang::Zh) => lines.push_str("  该文件由我们创建，已删除\n"),
            (Done::Nothing | Done::Made | Done::Changed | Done::Removed, _, _) => {}
        }
        lines + &outcome.backup_in_words(lang)
    }
}

impl Told<Wrapping> {
    /// Was something like ours left where it is?
    pub(crate) fn has_left(&self) -> bool {
        self.has_any(|fate| matches!(fate, Fate::ByHand | Fate::NameTaken))
    }

    /// Was a server not wrapped that is as it was?
    pub(crate) fn has_refused(&self) -> bool {
        self.has_any(|fate| matches!(fate, Fate::Left(_)))
    }

    /// Is there nothing to tell?
    pub(crate) fn is_silent(&self) -> bool {
        self.outcome().is_some_and(|outcome| outcome.seen.is_empty())
    }

    fn has_any(&self, is_one: impl Fn(Fate) -> bool) -> bool {
        self.outcome().is_some_and(|outcome| outcome.seen.iter().any(|(_, fate)| is_one(*fate)))
    }
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
