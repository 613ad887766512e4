//! Calls whose process is gone. Nobody will ever say how they ended, so they are sealed, with a text that depends on where
//! they stood: what was running may have done something.

use rusqlite::{Connection, Row};
use serde_json::json;
use unstuck_judge::Lang;

use crate::event::{self, EventType, NewEvent};
use crate::life;
use crate::state::CallState;

/// A call that was found dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Its number.
    pub call: i64,
    /// The call in one short line.
    pub label: String,
    /// Where it stood.
    pub from: CallState,
}

impl Sealed {
    /// What is said of it.
    pub fn text(&self, lang: Lang) -> String {
        format!("`{}` {}", self.label, self.from.seal_text(lang))
    }
}

/// The dead calls of a session of which it has not been told; from now on it has.
pub(crate) fn untold(connection: &Connection, session: i64) -> Result<Vec<Sealed>, rusqlite::Error> {
    let mut statement = connection.prepare_cached(
        "SELECT call.id, label, sealed_from FROM call JOIN call_text ON call_text.call = call.id
         WHERE session = ?1 AND sealed_from IS NOT NULL ORDER BY call.id",
    )?;
    let read = |row: &Row<'_>| {
        let from: String = row.get(2)?;
        Ok(Sealed {
            call: row.get(0)?,
            label: row.get(1)?,
            from: from.parse().unwrap_or(CallState::Executing),
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

/// Seals every open call of a session.
pub(crate) fn all_open(
    connection: &Connection,
    session: i64,
    now: u64,
    lang: Lang,
) -> Result<Vec<Sealed>, rusqlite::Error> {
    open_calls(connection, Some(session), now, lang, &|_, _| true)
}

/// Seals the open calls, of one session or of all, that `is_dead` says are dead; it gets the owner and the time they began.
pub(crate) fn open_calls(
    connection: &Connection,
    session: Option<i64>,
    now: u64,
    lang: Lang,
    is_dead: &dyn Fn(&str, u64) -> bool,
) -> Result<Vec<Sealed>, rusqlite::Error> {
    // Each in words of its own: a condition that serves both would walk the open calls of all sessions.
    let whose = match session {
        Some(_) => "session = ?1",
        None => "?1 IS NULL",
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT call.id, session, state, owner, asked_at, label, life
         FROM call INDEXED BY call_open JOIN call_text ON call_text.call = call.id
         WHERE state IN ('pending', 'approval_required', 'approved', 'executing') AND {whose}"
    ))?;
    let mut rows = statement.query([session])?;
    let mut dead: Vec<(Sealed, i64, String)> = Vec::new();
    while let Some(row) = rows.next()? {
        let owner: String = row.get(3)?;
        if is_dead(&owner, row.get::<_, i64>(4)?.unsigned_abs()) {
            let from = row.get::<_, String>(2)?.parse().unwrap_or(CallState::Executing);
            dead.push((Sealed { call: row.get(0)?, label: row.get(5)?, from }, row.get(1)?, row.get(6)?));
        }
    }
    drop(rows);
    for (sealed, session, life) in &mut dead {
        let text = sealed.from.seal_text(lang);
        life::add(life, now, CallState::Sealed, text);
        connection
            .prepare_cached(
                "UPDATE call SET state = 'sealed', ended_at = ?2, sealed_from = ?3 WHERE id = ?1",
            )?
            .execute((sealed.call, now.cast_signed(), sealed.from.word()))?;
        connection
            .prepare_cached("UPDATE call_text SET life = ?2 WHERE call = ?1")?
            .execute((sealed.call, &*life))?;
        let body = json!({ "from": sealed.from.word(), "label": sealed.label, "text": text });
        let new = NewEvent {
            at: now,
            kind: EventType::ToolSealed,
            session: Some(*session),
            call: Some(sealed.call),
            body,
        };
        event::append(connection, &new)?;
    }
    Ok(dead.into_iter().map(|(sealed, _, _)| sealed).collect())
}
