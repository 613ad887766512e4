//! Calls whose process is gone. Nobody will ever say how they ended, so they are sealed, with a text that depends on where
//! they stood: what was running may have done something.

use rusqlite::{Connection, Row};
use serde_json::json;
use unstuck_judge::{Lang, quote};

use crate::chain::Record;
use crate::event::{self, EventType, NewEvent};
use crate::life;
use crate::rows::Lenient;
use crate::state::CallState;

/// A call that was found dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Its number.
    pub call: i64,
    /// The host's name for it; empty where it gave none.
    pub key: String,
    /// The tool.
    pub tool: String,
    /// The call in one short line.
    pub label: String,
    /// Where it stood.
    pub from: CallState,
    /// Was it run by a process that we know by name? Of any other nobody can say whether it ran: a person may have refused it
    /// in a dialog that no hook is told of.
    pub is_owned: bool,
}

impl Sealed {
    /// What is said of it.
    pub fn text(&self, lang: Lang) -> String {
        format!("{} {}", quote::call(&self.label, quote::LINE), self.from.seal_text(self.is_owned, lang))
    }
}

/// The dead calls of a session of which it has not been told; from now on it has.
pub(crate) fn untold(connection: &Connection, session: i64) -> Result<Vec<Sealed>, rusqlite::Error> {
    let mut statement = connection.prepare_cached(
        "SELECT call.id, label, sealed_from, key, tool, owner <> '' FROM call JOIN call_text ON call_text.call = call.id
         WHERE session = ?1 AND sealed_from IS NOT NULL ORDER BY call.id",
    )?;
    let read = |row: &Row<'_>| {
        let from: String = row.lenient(2)?;
        Ok(Sealed {
            call: row.lenient(0)?,
            key: row.lenient(3)?,
            tool: row.lenient(4)?,
            label: row.lenient(1)?,
            from: from.parse().unwrap_or(CallState::Executing),
            is_owned: row.lenient(5)?,
        })
    };
    let found: Vec<Sealed> = statement.query_map([session], read)?.collect::<Result<_, _>>()?;
    if !found.is_empty() {
        connection
            .prepare_cached(
                "UPDATE call SET sealed_from = NULL WHERE session = ?1 AND sealed_from IS NOT NULL",
            )?
            .execute([session])?;
    }
    Ok(found)
}

/// What makes an open call a dead one.
pub(crate) struct Death<'a> {
    /// It began before this, and nobody has heard of it since.
    pub(crate) before: u64,
    /// Does the process that owns it still run?
    pub(crate) is_alive: &'a dyn Fn(&str) -> bool,
}

/// An open call.
struct Open {
    call: i64,
    session: i64,
    state: CallState,
    owner: String,
    label: String,
    life: String,
    key: String,
    tool: String,
}

impl Open {
    /// The columns it is read from.
    const SELECT: &'static str =
        "SELECT call.id, session, state, owner, label, life, asked_at, key, tool FROM call";
    const OPEN: &'static str = "JOIN call_text ON call_text.call = call.id
        WHERE state IN ('pending', 'approval_required', 'approved', 'executing')";

    fn read(row: &Row<'_>) -> Result<Open, rusqlite::Error> {
        Ok(Open {
            call: row.lenient(0)?,
            session: row.lenient(1)?,
            state: row.lenient::<String>(2)?.parse().unwrap_or(CallState::Executing),
            owner: row.lenient(3)?,
            label: row.lenient(4)?,
            life: row.lenient(5)?,
            key: row.lenient(7)?,
            tool: row.lenient(8)?,
        })
    }
}

/// Notes in the open calls of an agent that the user spoke meanwhile. That proves nothing of any of them: the message may wait
/// until they end, or they were refused or broken off, of which the agent knows by then. So it is not told of them any more.
pub(crate) fn note_user(
    connection: &Connection,
    session: i64,
    agent: &str,
    now: u64,
    lang: Lang,
) -> Result<(), rusqlite::Error> {
    let sql = format!(
        "{} INDEXED BY call_open {} AND session = ?1 AND asked_at <= ?2 AND agent = ?3 AND owner = ''",
        Open::SELECT,
        Open::OPEN
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let open = statement
        .query_map((session, now.cast_signed(), agent), Open::read)?
        .collect::<Result<Vec<_>, _>>()?;
    for Open { call, state, mut life, .. } in open {
        if life::heard_user(&life) {
            continue;
        }
        life::note_user(&mut life, now, state, lang);
        connection.prepare_cached("UPDATE call_text SET life = ?2 WHERE call = ?1")?.execute((call, life))?;
    }
    Ok(())
}

/// Seals every open call of a session.
pub(crate) fn all_of(
    connection: &Connection,
    session: i64,
    now: u64,
    lang: Lang,
) -> Result<(), rusqlite::Error> {
    // Word of it may come late: what began since then is not meant.
    let sql =
        format!("{} INDEXED BY call_open {} AND session = ?1 AND asked_at <= ?2", Open::SELECT, Open::OPEN);
    let mut statement = connection.prepare_cached(&sql)?;
    let open =
        statement.query_map((session, now.cast_signed()), Open::read)?.collect::<Result<Vec<_>, _>>()?;
    seal(connection, open, now, lang).map(|_| ())
}

/// Seals every open call of one agent of a session.
pub(crate) fn all_of_agent(
    connection: &Connection,
    session: i64,
    agent: &str,
    now: u64,
    lang: Lang,
) -> Result<(), rusqlite::Error> {
    let sql = format!(
        "{} INDEXED BY call_open {} AND session = ?1 AND asked_at <= ?2 AND agent = ?3",
        Open::SELECT,
        Open::OPEN
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let open = statement
        .query_map((session, now.cast_signed(), agent), Open::read)?
        .collect::<Result<Vec<_>, _>>()?;
    seal(connection, open, now, lang).map(|_| ())
}

/// Seals the dead calls of a session. Calls that are merely open are not looked at, however many they are.
pub(crate) fn dead_of(
    connection: &Connection,
    session: i64,
    death: &Death<'_>,
    now: u64,
    lang: Lang,
) -> Result<(), rusqlite::Error> {
    let sql =
        format!("{} INDEXED BY call_open {} AND session = ?1 AND asked_at < ?2", Open::SELECT, Open::OPEN);
    let mut statement = connection.prepare_cached(&sql)?;
    let forgotten = statement
        .query_map((session, death.before.cast_signed()), Open::read)?
        .collect::<Result<Vec<_>, _>>()?;
    seal(connection, forgotten, now, lang)?;
    let sql =
        format!("{} INDEXED BY call_owned {} AND session = ?1 AND owner <> ''", Open::SELECT, Open::OPEN);
    let mut statement = connection.prepare_cached(&sql)?;
    let owned = statement.query_map([session], Open::read)?.collect::<Result<Vec<_>, _>>()?;
    let orphaned = owned.into_iter().filter(|open| !(death.is_alive)(&open.owner)).collect();
    seal(connection, orphaned, now, lang).map(|_| ())
}

/// Seals the dead calls of all sessions, and returns them.
pub(crate) fn dead_everywhere(
    connection: &Connection,
    death: &Death<'_>,
    now: u64,
    lang: Lang,
) -> Result<Vec<Sealed>, rusqlite::Error> {
    let sql =
        format!("{} INDEXED BY call_open {} AND (asked_at < ?1 OR owner <> '')", Open::SELECT, Open::OPEN);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut dead = Vec::new();
    let mut rows = statement.query([death.before.cast_signed()])?;
    while let Some(row) = rows.next()? {
        let open = Open::read(row)?;
        let is_old = row.lenient::<i64>(6)?.unsigned_abs() < death.before;
        if is_old || !(death.is_alive)(&open.owner) {
            dead.push(open);
        }
    }
    drop(rows);
    seal(connection, dead, now, lang)
}

fn seal(
    connection: &Connection,
    dead: Vec<Open>,
    now: u64,
    lang: Lang,
) -> Result<Vec<Sealed>, rusqlite::Error> {
    let mut sealed = Vec::with_capacity(dead.len());
    for Open { call, session, state, owner, label, mut life, key, tool } in dead {
        let is_owned = !owner.is_empty();
        let text = state.seal_text(is_owned, lang);
        let is_told = !life::heard_user(&life);
        life::add(&mut life, now, CallState::Sealed, text);
        connection
            .prepare_cached(
                "UPDATE call SET state = 'sealed', ended_at = ?2, sealed_from = ?3 WHERE id = ?1",
            )?
            .execute((call, now.cast_signed(), is_told.then_some(state.word())))?;
        connection.prepare_cached("UPDATE call_text SET life = ?2 WHERE call = ?1")?.execute((call, life))?;
        let body = json!({ "from": state.word(), "label": label, "text": text });
        let kind = EventType::ToolSealed;
        let record = Record::of_row(connection, call)?;
        let new = NewEvent { at: now, kind, session: Some(session), call: Some(call), body };
        event::append_with(connection, &new, record.as_ref())?;
        sealed.push(Sealed { call, key, tool, label, from: state, is_owned });
    }
    Ok(sealed)
}
