//! One line of the timeline. What a newer version wrote is kept whole and handed on as it is.

use rusqlite::{Connection, Row};
use serde_json::Value;
use unstuck_judge::vocabulary;

use crate::chain::{self, Link, Linked, Record};
use crate::rows::Lenient;

vocabulary! {
    /// Who an event is for.
    Channel {
        /// The user sees it.
        Progress = "progress",
        /// Operations watch it.
        Monitor = "monitor",
        /// A person has to decide.
        Control = "control",
    }
}

vocabulary! {
    /// The types of event this version writes.
    EventType {
        /// A call begins. `{tool, label, attempt}`
        ToolStart = "tool:start",
        /// The same call is sent again. `{attempt, of, wait_ms, because, text}`
        ToolRetry = "tool:retry",
        /// A call failed. `{call: {…}, error, kind, errorType, retryable}`
        ToolError = "tool:error",
        /// A call ended, well or not. `{ok, state, took_ms}`
        ToolEnd = "tool:end",
        /// The ladder spoke. `{rung, when, track, count, text}`
        ToolAdvice = "tool:advice",
        /// A call was refused before it ran. `{rung, track, count, text}`
        ToolDenied = "tool:denied",
        /// A call failed, for operations. `{severity, phase, message, detail: {errorType, retryable, kind, rule}}`, and once more what is in the detail
        Error = "error",
        /// A call whose process is gone. `{from, text}`
        ToolSealed = "tool:sealed",
        /// unstuck itself could not do something. `{part, what}`
        OwnFault = "own_fault",
        /// A retry budget ran low or recovered. `{name, tokens, allows_retry}`
        Budget = "budget",
        /// A circuit breaker opened, probes or closed. `{name, state}`
        Breaker = "breaker",
        /// A refused call went well later, and nothing had changed. `{refused, rule, label, lowered}`
        FalseAlarm = "false_alarm",
        /// A call ran with another input than was asked for. `{row, from, to, text}`
        ToolRewritten = "tool:rewritten",
        /// A cause was met for the first time. `{cause, kind, title}`
        ProblemNew = "problem:new",
        /// A cause that was resolved is back. `{cause, kind, title}`
        ProblemRegressed = "problem:regressed",
        /// What was seen to help earlier was told with a failure. `{lesson, text}`
        LessonShown = "lesson:shown",
        /// A lesson that used to help does not any more. `{lesson, wins, losses}`
        LessonRegressed = "lesson:regressed",
        /// A threshold of the configuration was crossed. `{name, value, text}`
        Alert = "alert",
        /// A person has to allow a call. `{label, by, question}`
        Ask = "ask",
        /// The run was stopped for a person to decide. `{text, table}`
        Halt = "halt",
        /// Files were saved. `{snapshot, paths, bytes, partial, why, text}`
        SnapshotTaken = "snapshot:taken",
        /// Files that a call puts at risk could not be saved. `{snapshot, why, text}`
        SnapshotFailed = "snapshot:failed",
        /// Files were brought back. `{snapshot, saved, paths, bytes, kept, why, text}`
        SnapshotRestored = "snapshot:restored",
        /// A snapshot is gone. `{snapshot, why, text}`
        SnapshotRemoved = "snapshot:removed",
        /// A server that offers tools was started. `{server, pid, command}`
        ServerStarted = "server:started",
        /// It ended. `{server, text, code, stderr}`
        ServerExited = "server:exited",
        /// It was started again. `{server, attempt, waited_ms}`
        ServerRestarted = "server:restarted",
        /// It is left alone, and calls are answered without it. `{server, why, for_ms}`
        ServerGaveUp = "server:gave_up",
        /// It answers again after it was left alone. `{server}`
        ServerRecovered = "server:recovered",
        /// It runs and does not answer. `{server, text, waited_ms}`
        ServerUnresponsive = "server:unresponsive",
        /// It sent something that is no message. `{server, beginning, why}`
        ServerNoise = "server:noise",
        /// It offers other tools than the last time. `{server, severity, added, removed, changed, counts}`
        ServerToolsChanged = "server:tools_changed",
        /// It wrote something to standard error. `{server, lines}`
        ServerRemark = "server:remark",
    }
}

impl EventType {
    /// Who it is for.
    pub const fn channel(self) -> Channel {
        match self {
            EventType::ToolStart
            | EventType::ToolRetry
            | EventType::ToolError
            | EventType::ToolEnd
            | EventType::ToolAdvice
            | EventType::ToolDenied
            | EventType::ToolRewritten
            | EventType::LessonShown
            | EventType::SnapshotTaken
            | EventType::SnapshotRestored => Channel::Progress,
            EventType::Error
            | EventType::ToolSealed
            | EventType::OwnFault
            | EventType::Budget
            | EventType::Breaker
            | EventType::FalseAlarm
            | EventType::ProblemNew
            | EventType::ProblemRegressed
            | EventType::LessonRegressed
            | EventType::Alert
            | EventType::SnapshotFailed
            | EventType::SnapshotRemoved
            | EventType::ServerStarted
            | EventType::ServerExited
            | EventType::ServerRestarted
            | EventType::ServerGaveUp
            | EventType::ServerRecovered
            | EventType::ServerUnresponsive
            | EventType::ServerNoise
            | EventType::ServerToolsChanged
            | EventType::ServerRemark => Channel::Monitor,
            EventType::Ask | EventType::Halt => Channel::Control,
        }
    }
}

/// A place in the timeline: everything up to and including it has been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Bookmark(pub u64);

/// An event as it stands in the timeline. Channel and type are texts, because a newer version may have others; the body is
/// the text its writer wrote, because reading a million bodies only to write them out again costs more than everything else
/// about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its place.
    pub seq: Bookmark,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Who it is for.
    pub channel: String,
    /// What it is.
    pub kind: String,
    /// The session's name.
    pub session: Option<String>,
    /// The call's number.
    pub call: Option<i64>,
    /// The rest: a JSON object, if its writer was sane.
    pub body: String,
    /// Its link to the event before it, as text; nothing before the chain began.
    pub link: Option<String>,
}

/// Columns of a [`StoredEvent`], to be selected from `event LEFT JOIN session ON session.id = event.session`.
pub(crate) const COLUMNS: &str =
    "event.seq, event.at, event.channel, event.type, session.name, event.call, event.body, event.link";

impl StoredEvent {
    /// Reads the columns named in [`COLUMNS`].
    pub(crate) fn read(row: &Row<'_>) -> Result<StoredEvent, rusqlite::Error> {
        Ok(StoredEvent {
            seq: Bookmark(row.lenient::<i64>(0)?.unsigned_abs()),
            at: row.lenient::<i64>(1)?.unsigned_abs(),
            channel: row.lenient(2)?,
            kind: row.lenient(3)?,
            session: row.lenient(4)?,
            call: row.lenient(5)?,
            body: row.lenient(6)?,
            link: row.get_ref(7)?.as_blob().ok().map(chain::hex),
        })
    }

    /// The body, read; a text where it is no JSON.
    pub fn read_body(&self) -> Value {
        read_json(&self.body)
    }
}

/// What stands in the store as JSON. What is none is handed on as a text.
pub(crate) fn read_json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// An event about to be written. Every text in its body must be clean.
pub(crate) struct NewEvent {
    pub(crate) at: u64,
    pub(crate) kind: EventType,
    pub(crate) session: Option<i64>,
    pub(crate) call: Option<i64>,
    pub(crate) body: Value,
}

/// Appends an event and returns its place. Only inside a transaction that holds the write lock is that place final.
pub(crate) fn append(connection: &Connection, event: &NewEvent) -> Result<Bookmark, rusqlite::Error> {
    append_with(connection, event, None)
}

/// The same for an event that says something new of the row of its call.
pub(crate) fn append_with(
    connection: &Connection,
    event: &NewEvent,
    record: Option<&Record>,
) -> Result<Bookmark, rusqlite::Error> {
    let body = event.body.to_string();
    let linked = Linked {
        at: event.at.cast_signed(),
        channel: event.kind.channel().word(),
        kind: event.kind.word(),
        session: event.session,
        call: event.call,
        body: &body,
        record: record.map(Record::bytes),
    };
    let link = Link::after(chain::head(connection)?, &linked);
    insert(connection, None, &linked, Some(link))
}

/// Writes the row of an event; the table chooses its number where none is given.
pub(crate) fn insert(
    connection: &Connection,
    seq: Option<i64>,
    event: &Linked<'_>,
    link: Option<Link>,
) -> Result<Bookmark, rusqlite::Error> {
    connection
        .prepare_cached(
            "INSERT INTO event (seq, at, channel, type, session, call, body, link, record)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute((
            seq,
            event.at,
            event.channel,
            event.kind,
            event.session,
            event.call,
            event.body,
            link.as_ref().map(Link::bytes),
            event.record,
        ))?;
    Ok(Bookmark(connection.last_insert_rowid().unsigned_abs()))
}
