//! `unstuck export`: everything that is recorded, for other programs.

use serde::Serialize;
use unstuck_store::{Bookmark, Exported, Selection, Since, StoredSession};
use unstuck_wire::time;

use crate::cellar::{self, Cellar};
use crate::commands::alerts::WireFired;
use crate::event_line::WireEvent;
use crate::exit::{CommandError, ExitStatus};
use crate::find_session::find_session;
use crate::problem_page::WireProblem;
use crate::since::{self, Moment};
use crate::ui::Ui;
use crate::wire_call::WireWholeCall;

/// Hand out what is recorded: as JSON Lines, or as the file that other tools expect
///
/// Every line of --jsonl has a `type`: session, call, event, problem, alert. The last is {"type":"bookmark","bookmark":N};
/// `--since N` goes on from there the next time, with everything that is new or has changed.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck export --jsonl > all.jsonl                        everything
  unstuck export --jsonl --since 4711 --only calls          calls that are new or have changed since bookmark 4711
  unstuck export --jsonl --session 3f9c --since 7d          one session, the last week
  unstuck export --tool-errors 3f9c                         write sessions/<id>/tool-errors.json and print its path")]
#[command(group = clap::ArgGroup::new("what").required(true).args(["jsonl", "tool_errors"]))]
pub(crate) struct ExportArgs {
    /// JSON Lines on standard output
    #[arg(long)]
    jsonl: bool,
    /// Write the failures of a session as tool-errors.json under the state folder
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["session", "since", "only"])]
    tool_errors: Option<String>,
    /// Only this session: its name, or enough of its beginning
    #[arg(long, value_name = "S")]
    session: Option<String>,
    /// Only what came after a bookmark (a number), or since a moment (30d, 2026-11-15)
    #[arg(long, value_name = "BOOKMARK|SPAN", value_parser = parse_from)]
    since: Option<From>,
    /// Only these: sessions, calls, events, problems, alerts
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = ["sessions", "calls", "events", "problems", "alerts"])]
    only: Vec<String>,
}

/// From where on, as a person names it.
#[derive(Debug, Clone, Copy)]
enum From {
    Bookmark(u64),
    Moment(Moment),
}

fn parse_from(text: &str) -> Result<From, String> {
    match text.trim().parse() {
        Ok(place) => Ok(From::Bookmark(place)),
        Err(_) => since::parse_moment(text)
            .map(From::Moment)
            .map_err(|why| format!("{why}; a bookmark is a number")),
    }
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &ExportArgs) -> Result<ExitStatus, CommandError> {
    let store = cellar.to_read()?;
    if let Some(asked) = &args.tool_errors {
        let session = find_session(&store, &cellar.cleaner(), asked)?;
        if let Some(path) = store.write_tool_errors(&session.name)? {
            ui.say(&format!("{}\n", path.display()))?;
        }
        return Ok(ExitStatus::Success);
    }
    let session =
        args.session.as_deref().map(|name| find_session(&store, &cellar.cleaner(), name)).transpose()?;
    let wants = |what: &str| args.only.is_empty() || args.only.iter().any(|only| only == what);
    let selection = Selection {
        session: session.map(|session| session.name),
        since: match args.since {
            None => Since::Beginning,
            Some(From::Bookmark(place)) => Since::Bookmark(Bookmark(place)),
            Some(From::Moment(moment)) => Since::Moment(moment.before(cellar::now())),
        },
        sessions: wants("sessions"),
        calls: wants("calls"),
        events: wants("events"),
        problems: wants("problems"),
        alerts: wants("alerts"),
    };
    let end = store.export(&selection, |row| match &row {
        Exported::Session(session) => ui.json(&WireRow { record: "session", row: WireSession::new(session) }),
        Exported::Call(call, text) => {
            ui.json(&WireRow { record: "call", row: WireWholeCall::new(call, text) })
        }
        Exported::Event(event) => ui.json(&WireEvent::new(event)),
        Exported::Problem(problem) => ui.json(&WireRow { record: "problem", row: WireProblem::new(problem) }),
        Exported::Alert(alert) => ui.json(&WireFired::new(alert)),
    })?;
    if let Some(Bookmark(bookmark)) = end {
        ui.json(&WireRow { record: "bookmark", row: WireBookmark { bookmark } })?;
    }
    Ok(ExitStatus::Success)
}

/// A row with its type.
#[derive(Serialize)]
struct WireRow<T: Serialize> {
    #[serde(rename = "type")]
    record: &'static str,
    #[serde(flatten)]
    row: T,
}

#[derive(Serialize)]
struct WireBookmark {
    bookmark: u64,
}

#[derive(Serialize)]
struct WireSession<'a> {
    name: &'a str,
    host: &'a str,
    cwd: &'a str,
    first_at: String,
    first_at_ms: u64,
    last_at: String,
    last_at_ms: u64,
}

impl<'a> WireSession<'a> {
    fn new(session: &'a StoredSession) -> WireSession<'a> {
        WireSession {
            name: &session.name,
            host: &session.host,
            cwd: &session.cwd,
            first_at: time::iso(session.first_at),
            first_at_ms: session.first_at,
            last_at: time::iso(session.last_at),
            last_at_ms: session.last_at,
        }
    }
}
