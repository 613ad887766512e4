//! `unstuck export`: everything that is recorded, for other programs.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use unstuck_store::{
    Bookmark, Exported, ExportedCall, ExportedProblem, ExportedSession, Selection, Since, UnreadEvent,
};

use crate::cellar::{self, Cellar};
use crate::commands::alerts::WireFired;
use crate::exit::{CommandError, ExitStatus};
use crate::find_session::find_session;
use crate::moment;
use crate::since::{self, Moment};
use crate::ui::Ui;

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
        let session = find_session(&store, asked)?;
        if let Some(path) = store.write_tool_errors(&session.name)? {
            ui.say(&format!("{}\n", path.display()))?;
        }
        return Ok(ExitStatus::Success);
    }
    let session = args.session.as_deref().map(|name| find_session(&store, name)).transpose()?;
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
        Exported::Session(session) => ui.json(&WireSession::new(session)),
        Exported::Call(call) => ui.json(&WireCall::new(call)),
        Exported::Event(event) => ui.json(&WireExportedEvent::new(event)),
        Exported::Problem(problem) => ui.json(&WireProblem::new(problem)),
        Exported::Alert(alert) => ui.json(&WireFired::new(alert)),
    })?;
    if let Some(Bookmark(bookmark)) = end {
        ui.json(&WireBookmark { kind: "bookmark", bookmark })?;
    }
    Ok(ExitStatus::Success)
}

/// JSON that stands in the store as a text, passed on unread where it fits on a line.
#[derive(Serialize)]
#[serde(untagged)]
enum WireJson<'a> {
    Nothing,
    Unread(&'a RawValue),
    Read(Value),
    /// It was cut, and is JSON no more.
    Text(&'a str),
}

impl<'a> WireJson<'a> {
    fn new(text: &'a str) -> WireJson<'a> {
        match serde_json::from_str::<&RawValue>(text) {
            _ if text.is_empty() => WireJson::Nothing,
            Ok(whole) if !text.contains(['\n', '\r']) => WireJson::Unread(whole),
            Ok(_) => serde_json::from_str(text).map_or(WireJson::Text(text), WireJson::Read),
            Err(_) => WireJson::Text(text),
        }
    }
}

#[derive(Serialize)]
struct WireBookmark {
    #[serde(rename = "type")]
    kind: &'static str,
    bookmark: u64,
}

#[derive(Serialize)]
struct WireSession<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    host: &'a str,
    cwd: &'a str,
    first_at: String,
    first_at_ms: u64,
    last_at: String,
    last_at_ms: u64,
}

impl<'a> WireSession<'a> {
    fn new(session: &'a ExportedSession) -> WireSession<'a> {
        WireSession {
            kind: "session",
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

#[derive(Serialize)]
struct WireCall<'a> {
    #[serde(rename = "type")]
    record: &'static str,
    call: i64,
    session: &'a str,
    call_id: &'a str,
    agent: &'a str,
    tool: &'a str,
    state: &'a str,
    asked_at: String,
    asked_at_ms: u64,
    ended_at: Option<String>,
    ended_at_ms: Option<u64>,
    took_ms: Option<u64>,
    attempt: u64,
    ok: Option<bool>,
    outcome: Option<&'a str>,
    code: Option<i64>,
    kind: Option<&'a str>,
    #[serde(rename = "errorType")]
    error_type: Option<&'a str>,
    retryable: Option<bool>,
    rule: Option<&'a str>,
    rung_before: &'a str,
    rung_after: &'a str,
    repeat: bool,
    recovered_at: Option<String>,
    recovered_at_ms: Option<u64>,
    call_print: &'a str,
    intent_print: &'a str,
    cause_print: Option<&'a str>,
    label: &'a str,
    input: &'a str,
    evidence: &'a str,
    head: &'a str,
    tail: &'a str,
    omitted: u64,
    verdict: WireJson<'a>,
    life: WireJson<'a>,
}

impl<'a> WireCall<'a> {
    fn new(call: &'a ExportedCall) -> WireCall<'a> {
        WireCall {
            record: "call",
            call: call.number,
            session: &call.session,
            call_id: &call.key,
            agent: &call.agent,
            tool: &call.tool,
            state: &call.state,
            asked_at: time::iso(call.asked_at),
            asked_at_ms: call.asked_at,
            ended_at: call.ended_at.map(time::iso),
            ended_at_ms: call.ended_at,
            took_ms: call.took_ms,
            attempt: call.attempt,
            ok: call.ok,
            outcome: call.outcome.as_deref(),
            code: call.code,
            kind: call.kind.as_deref(),
            error_type: call.error_type.as_deref(),
            retryable: call.retryable,
            rule: call.rule.as_deref(),
            rung_before: &call.rung_before,
            rung_after: &call.rung_after,
            repeat: call.repeat,
            recovered_at: call.recovered_at.map(time::iso),
            recovered_at_ms: call.recovered_at,
            call_print: &call.call_print,
            intent_print: &call.intent_print,
            cause_print: call.cause_print.as_deref(),
            label: &call.label,
            input: &call.input,
            evidence: &call.evidence,
            head: &call.head,
            tail: &call.tail,
            omitted: call.omitted,
            verdict: WireJson::new(&call.verdict),
            life: WireJson::new(&call.life),
        }
    }
}

#[derive(Serialize)]
struct WireExportedEvent<'a> {
    #[serde(rename = "type")]
    record: &'static str,
    seq: u64,
    at: String,
    at_ms: u64,
    channel: &'a str,
    event: &'a str,
    session: Option<&'a str>,
    call: Option<i64>,
    body: WireJson<'a>,
}

impl<'a> WireExportedEvent<'a> {
    fn new(event: &'a UnreadEvent) -> WireExportedEvent<'a> {
        WireExportedEvent {
            record: "event",
            seq: event.seq.0,
            at: time::iso(event.at),
            at_ms: event.at,
            channel: &event.channel,
            event: &event.kind,
            session: event.session.as_deref(),
            call: event.call,
            body: WireJson::new(&event.body),
        }
    }
}

#[derive(Serialize)]
struct WireProblem<'a> {
    #[serde(rename = "type")]
    record: &'static str,
    cause: &'a str,
    kind: &'a str,
    rule: &'a str,
    title: &'a str,
    tools: WireJson<'a>,
    count: u64,
    first_at: String,
    first_at_ms: u64,
    last_at: String,
    last_at_ms: u64,
    resolved_at: Option<String>,
    regressed_at: Option<String>,
}

impl<'a> WireProblem<'a> {
    fn new(problem: &'a ExportedProblem) -> WireProblem<'a> {
        WireProblem {
            record: "problem",
            cause: &problem.cause,
            kind: &problem.kind,
            rule: &problem.rule,
            title: &problem.title,
            tools: WireJson::new(&problem.tools),
            count: problem.count,
            first_at: time::iso(problem.first_at),
            first_at_ms: problem.first_at,
            last_at: time::iso(problem.last_at),
            last_at_ms: problem.last_at,
            resolved_at: problem.resolved_at.map(time::iso),
            regressed_at: problem.regressed_at.map(time::iso),
        }
    }
}
