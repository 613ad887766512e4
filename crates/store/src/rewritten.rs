//! A call that was to be refused and runs after all, because its input was exchanged for one that can work.

use rusqlite::{Connection, OptionalExtension};
use serde_json::json;
use unstuck_judge::Lang;
use unstuck_wire::clean::Clean;

use crate::event::{self, EventType, NewEvent};
use crate::life;
use crate::state::CallState;

/// What was exchanged.
#[derive(Debug, Clone, Copy)]
pub struct Rewritten<'a> {
    /// The row of the table of rewrites.
    pub row: &'a str,
    /// What was asked for.
    pub from: &'a Clean,
    /// What runs.
    pub to: &'a Clean,
}

impl Rewritten<'_> {
    /// Opens the call again. Nothing is done to a call that is not refused.
    pub(crate) fn record(
        &self,
        connection: &Connection,
        call: i64,
        now: u64,
        lang: Lang,
    ) -> Result<bool, rusqlite::Error> {
        let found: Option<(i64, String)> = connection
            .prepare_cached(
                "SELECT session, life FROM call JOIN call_text ON call_text.call = call.id
                 WHERE id = ?1 AND state = 'denied' AND charge IS NOT NULL",
            )?
            .query_row([call], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((session, mut life)) = found else { return Ok(false) };
        let text = match lang {
            Lang::En => format!("{} instead of {}", self.to, self.from),
            Lang::Zh => format!("以 {} 代替 {}", self.to, self.from),
        };
        life::add(&mut life, now, CallState::Executing, &text);
        connection
            .prepare_cached(
                "UPDATE call SET state = 'executing', ended_at = NULL, charge = NULL WHERE id = ?1",
            )?
            .execute([call])?;
        connection.prepare_cached("UPDATE call_text SET life = ?2 WHERE call = ?1")?.execute((call, life))?;
        let body = json!({ "row": self.row, "from": &**self.from, "to": &**self.to, "text": text });
        let kind = EventType::ToolRewritten;
        event::append(
            connection,
            &NewEvent { at: now, kind, session: Some(session), call: Some(call), body },
        )?;
        Ok(true)
    }
}
