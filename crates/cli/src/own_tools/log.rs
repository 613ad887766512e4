//! The tool `log`: what happened here, the last of it.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use unstuck::schemars::JsonSchema;
use unstuck::{Annotations, Failure, Session, Tool, ToolContext};
use unstuck_judge::{Lang, quote};
use unstuck_store::{Bookmark, Channel, EventType, Store, StoredEvent, StoredSession, Wanted};
use unstuck_wire::time;

use super::schema::schema;
use super::{Workplace, looks, quoted, quoting};
use crate::cellar::Cellar;
use crate::exit::CommandError;
use crate::find_session::find_session;
use crate::{event_line, whereabouts};

/// How many events are told where nobody says how many.
const USUAL: usize = 30;
/// How far back events of this folder are looked for among those of all.
const WINDOW: u64 = 20_000;
/// How many sessions are looked at for those of this folder.
const SESSIONS: u32 = 10_000;
/// The longest text of an event.
const TEXT: usize = 240;

pub(super) struct Log {
    pub(super) workplace: Arc<Workplace>,
    /// The session of these very calls, of which nothing is told.
    pub(super) own: Session,
}

/// Which events.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "unstuck::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct LogArgs {
    /// Only this session: its name, or enough of its beginning. Without it, all sessions of this folder.
    #[serde(default)]
    #[schemars(with = "String")]
    session: Option<String>,
    /// Only calls of the tools of this MCP server, and what happened to it.
    #[serde(default)]
    #[schemars(with = "String")]
    server: Option<String>,
    /// Only one channel: progress (calls), monitor (operations), control (what needs a person).
    #[serde(default)]
    #[schemars(with = "WireChannel")]
    channel: Option<WireChannel>,
    /// Only failures and what was said about them.
    #[serde(default)]
    failures: bool,
    /// Only what came after this bookmark.
    #[serde(default)]
    #[schemars(with = "i64", range(min = 0))]
    since: Option<u64>,
    /// At most so many, the last ones.
    #[serde(default)]
    #[schemars(with = "i32", range(min = 1, max = 200))]
    last: Option<usize>,
}

/// The channels as they are written.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[schemars(crate = "unstuck::schemars")]
#[serde(rename_all = "snake_case")]
enum WireChannel {
    Progress,
    Monitor,
    Control,
}

impl From<WireChannel> for Channel {
    fn from(channel: WireChannel) -> Channel {
        match channel {
            WireChannel::Progress => Channel::Progress,
            WireChannel::Monitor => Channel::Monitor,
            WireChannel::Control => Channel::Control,
        }
    }
}

/// The same in Chinese.
const IN_CHINESE: &[(&str, &str)] = &[
    ("", "哪些事件。"),
    ("session", "只限此会话：其名称，或足以辨认的开头。不填则为此文件夹的所有会话。"),
    ("server", "只限此 MCP 服务器的工具调用，以及它发生的事。"),
    ("channel", "只限一个频道：progress（调用）、monitor（运行情况）、control（需要人处理的事）。"),
    ("failures", "只限失败以及对其所说的话。"),
    ("since", "只限此书签之后的事件。"),
    ("last", "最多这么多条，取最近的。"),
    ("WireChannel", "频道的写法。"),
];

impl Tool for Log {
    type Args = LogArgs;
    type Output = Value;

    fn name(&self) -> &str {
        "log"
    }

    fn description(&self) -> &str {
        match self.workplace.lang() {
            Lang::En => {
                "Shows the last events that were recorded in this folder: calls with how they ended, retries, refusals, \
                 snapshots, servers that ended. Use it to see what was tried already, also in earlier sessions and by other \
                 agents, before trying it again. Each event has a bookmark; since=BOOKMARK tells what came after it. Read only."
            }
            Lang::Zh => {
                "显示在此文件夹中记录的最近事件：调用及其结果、重试、拒绝、快照、服务器退出。\
                 在重试之前，用它查看已经尝试过什么（包括以往的会话和其他智能体）。每个事件有书签；since=书签 显示之后的事件。只读。"
            }
        }
    }

    fn schema(&self) -> Value {
        schema::<LogArgs>(self.workplace.lang(), IN_CHINESE)
    }

    fn annotations(&self) -> Annotations {
        looks()
    }

    async fn call(&self, args: LogArgs, _context: ToolContext) -> Result<Value, Failure> {
        let cellar = self.workplace.cellar();
        let failure = |error| self.workplace.failure(&error);
        let store = cellar.to_read().map_err(failure)?;
        let whose = self.whose(&cellar, &store, &args).map_err(failure)?;
        let Some(whose) = whose else { return Err(self.elsewhere()) };
        self.told(&store, &whose, &args).map_err(failure)
    }
}

/// Whose events are told.
enum Whose {
    Everybodys,
    Of(StoredSession),
    /// Those of these sessions.
    Among(HashSet<String>),
}

impl Log {
    /// Whose events are asked for; nothing where that is a session that lies out of reach.
    fn whose(&self, cellar: &Cellar, store: &Store, args: &LogArgs) -> Result<Option<Whose>, CommandError> {
        let cleaner = cellar.cleaner();
        let folder = self.workplace.folder()?;
        let here = whereabouts::place(&folder.to_string_lossy(), cellar.home(), &cleaner);
        let is_here = |session: &StoredSession| {
            let below = session.cwd.strip_prefix(here.as_str());
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        Ok(match (args.session.as_deref(), self.workplace.reaches_everything()) {
            (None, true) => Some(Whose::Everybodys),
            (None, false) => {
                let all = store.sessions(SESSIONS)?.into_iter().filter(is_here);
                Some(Whose::Among(all.map(|session| session.name).collect()))
            }
            (Some(name), anywhere) => {
                let session = find_session(store, &cleaner, name)?;
                (anywhere || is_here(&session)).then_some(Whose::Of(session))
            }
        })
    }

    fn elsewhere(&self) -> Failure {
        let (said, advice) = match self.workplace.lang() {
            Lang::En => (
                "that session worked in another folder, and this server does not reach further",
                "leave out session, or ask the user to start the server with --anywhere",
            ),
            Lang::Zh => (
                "该会话在另一个文件夹中工作，此服务器不会触及那里",
                "请省略 session，或请用户以 --anywhere 启动服务器",
            ),
        };
        Failure::invalid(said).recommend(advice)
    }

    fn told(&self, store: &Store, whose: &Whose, args: &LogArgs) -> Result<Value, CommandError> {
        let lang = self.workplace.lang();
        let wanted = Wanted {
            session: match whose {
                Whose::Of(session) => Some(session.id),
                Whose::Everybodys | Whose::Among(_) => None,
            },
            channel: args.channel.map(Channel::from),
            from: None,
            server: args.server.as_deref(),
        };
        let newest = store.newest()?;
        let after = Bookmark(args.since.unwrap_or(0)).max(store.before_last(&wanted, WINDOW)?);
        let most = args.last.unwrap_or(USUAL);
        let (mut events, mut earlier) = (VecDeque::new(), 0_u64);
        store.events(&wanted, after, newest, |event| {
            let session = event.session.as_deref();
            let is_theirs = match whose {
                Whose::Everybodys | Whose::Of(_) => true,
                Whose::Among(names) => session.is_some_and(|name| names.contains(name)),
            };
            let is_own = session == Some(self.own.as_str());
            if is_theirs && !is_own && (!args.failures || is_of_failure(&event)) {
                events.push_back(event);
                if events.len() > most {
                    events.pop_front();
                    earlier += 1;
                }
            }
            Ok::<(), CommandError>(())
        })?;
        let events: Vec<Value> = events.iter().map(|event| in_json(event, lang)).collect();
        Ok(json!({
            "note": quoting(lang),
            "events": events,
            "earlier": earlier,
            "bookmark": newest.0,
        }))
    }
}

/// Does it tell of something that went wrong?
fn is_of_failure(event: &StoredEvent) -> bool {
    match event.kind.parse::<EventType>() {
        Ok(
            EventType::ToolError
            | EventType::ToolDenied
            | EventType::ToolSealed
            | EventType::ToolRetry
            | EventType::OwnFault
            | EventType::Halt
            | EventType::SnapshotFailed
            | EventType::ServerExited
            | EventType::ServerGaveUp
            | EventType::ServerUnresponsive,
        ) => true,
        Ok(
            EventType::ToolStart
            | EventType::ToolEnd
            | EventType::ToolAdvice
            // It says once more what `tool:error` says.
            | EventType::Error
            | EventType::Budget
            | EventType::Breaker
            | EventType::FalseAlarm
            | EventType::ToolRewritten
            | EventType::ProblemNew
            | EventType::ProblemRegressed
            | EventType::LessonShown
            | EventType::LessonRegressed
            | EventType::Alert
            | EventType::Ask
            | EventType::SnapshotTaken
            | EventType::SnapshotRestored
            | EventType::SnapshotRemoved
            | EventType::ServerStarted
            | EventType::ServerRestarted
            | EventType::ServerRecovered
            | EventType::ServerNoise
            | EventType::ServerToolsChanged
            | EventType::ServerRemark,
        )
        | Err(_) => false,
    }
}

fn in_json(event: &StoredEvent, lang: Lang) -> Value {
    json!({
        "bookmark": event.seq.0,
        "at": time::iso(event.at),
        "event": &event.kind,
        "session": event.session.as_deref().map(quote::bare),
        "call": event.call,
        "text": quoted(&event_line::message(event, lang), TEXT),
    })
}
