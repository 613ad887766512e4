//! Takes lessons out of the database: those that came from what is purged, and those that nobody has needed for long.
//!
//! A lesson that several sessions taught lives on by those that are left. One that a person forgot keeps its prints, without
//! a word of it, so that it is not learnt again.

use rusqlite::{Connection, OptionalExtension};
use unstuck_judge::nature;

use crate::lesson::stored_call;
use crate::removal::SLICE;
use crate::rows::Lenient;

/// Where what is to go came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// From the session with this number.
    From(i64),
    /// From before this moment.
    Before(i64),
}

impl Came {
    /// The condition on a source, with the value of its first parameter.
    fn source(self) -> (&'static str, i64) {
        match self {
            Came::From(session) => ("session = ?1", session),
            Came::Before(cut) => ("at < ?1", cut),
        }
    }

    /// The condition on lessons that go as a whole, after or before what they won there is taken from them.
    fn whole(self) -> String {
        let (which, _) = self.source();
        let old = match self {
            Came::From(_) => "",
            Came::Before(_) => "won_at < ?1 OR ",
        };
        let won = format!("(SELECT sum(wins) FROM lesson_source WHERE lesson = lesson.id AND {which})");
        format!("({old}(origin = 'seen' AND {won} >= wins))")
    }
}

/// How many lessons would go.
pub(crate) fn count(connection: &Connection, came: Came) -> Result<u64, rusqlite::Error> {
    let sql = format!("SELECT count(*) FROM lesson WHERE {} AND state <> 'forgotten'", came.whole());
    connection.query_row(&sql, [came.source().1], |row| row.lenient::<i64>(0)).map(i64::unsigned_abs)
}

/// Removes all that came from there, and says how many lessons went with it. The calls have to be gone already: what stays is
/// told by the words of those that are left.
pub(crate) fn take_back(connection: &Connection, came: Came) -> Result<u64, rusqlite::Error> {
    let (which, value) = came.source();
    let ids = |sql: &str| -> Result<Vec<i64>, rusqlite::Error> {
        connection.prepare(sql)?.query_map([value], |row| row.lenient(0))?.collect()
    };
    let whole = came.whole();
    let gone = ids(&format!("SELECT id FROM lesson WHERE {whole} AND state <> 'forgotten'"))?;
    let bare = ids(&format!("SELECT id FROM lesson WHERE {whole} AND state = 'forgotten'"))?;
    let touched = ids(&format!("SELECT DISTINCT lesson FROM lesson_source WHERE {which}"))?;
    let told: Vec<i64> = gone.iter().chain(&bare).copied().collect();
    unsay(connection, &told)?;
    remove(connection, &gone)?;
    for id in &bare {
        for table in ["lesson_place", "lesson_source", "lesson_shown"] {
            connection.execute(&format!("DELETE FROM {table} WHERE lesson = ?1"), [id])?;
        }
        let sql = "UPDATE lesson SET rule = '', tool = '', program = '', title = '', body = '' WHERE id = ?1";
        connection.execute(sql, [id])?;
    }
    let lower = |table: &str, own: &str, and: &str| {
        let part = |column: &str| {
            format!(
                "{column} = max(0, {column} - ifnull((SELECT sum(source.{column}) FROM lesson_source source
                     WHERE source.lesson = {table}.{own}{and} AND source.{which}), 0))"
            )
        };
        format!(
            "UPDATE {table} SET {}, {} WHERE {own} IN (SELECT lesson FROM lesson_source WHERE {which})",
            part("wins"),
            part("losses")
        )
    };
    connection.execute(&lower("lesson", "id", ""), [value])?;
    connection.execute(
        &lower(
            "lesson_place",
            "lesson",
            " AND source.place = lesson_place.place AND source.source = lesson_place.source",
        ),
        [value],
    )?;
    connection.execute("DELETE FROM lesson_place WHERE wins = 0 AND losses = 0", [])?;
    connection.execute(&format!("DELETE FROM lesson_source WHERE {which}"), [value])?;
    connection.execute(&format!("DELETE FROM stopper WHERE {which}"), [value])?;
    for id in touched.iter().filter(|id| !gone.contains(id) && !bare.contains(id)) {
        tell_anew(connection, *id)?;
    }
    Ok(gone.len() as u64)
}

/// Takes the words of lessons out of what other sessions were told: of the lesson itself, and of all that was said with it.
fn unsay(connection: &Connection, lessons: &[i64]) -> Result<(), rusqlite::Error> {
    if lessons.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE event SET body = json_set(body, '$.text', '')
         WHERE type IN ('lesson:shown', 'tool:advice', 'tool:denied') AND json_valid(body)
           AND (session, call) IN (SELECT session, call FROM event WHERE type = 'lesson:shown' AND
                CASE WHEN json_valid(body) THEN json_extract(body, '$.lesson') END IN (SELECT value FROM json_each(?1)))";
    let lessons = serde_json::to_string(lessons).unwrap_or_default();
    connection.execute(sql, [lessons]).map(|_| ())
}

/// Tells a lesson by the words of the last call that met its cause and is still there.
fn tell_anew(connection: &Connection, id: i64) -> Result<(), rusqlite::Error> {
    let sql = "SELECT nullif(evidence, ''), tool, input FROM call JOIN call_text ON call_text.call = call.id
               WHERE cause_print = (SELECT cause FROM lesson WHERE id = ?1) ORDER BY call.id DESC LIMIT 1";
    let found: Option<(Option<String>, String, String)> = connection
        .prepare_cached(sql)?
        .query_row([id], |row| Ok((row.lenient(0)?, row.lenient(1)?, row.lenient(2)?)))
        .optional()?;
    let (title, tool, input) = found.unwrap_or_default();
    let program = stored_call(&tool, &input).map(|call| nature::approach(&call)).unwrap_or_default();
    connection
        .prepare_cached("UPDATE lesson SET title = coalesce(?2, kind), program = ?3 WHERE id = ?1")?
        .execute((id, title, program))
        .map(|_| ())
}

/// Removes lessons with all that hangs on them.
pub(crate) fn remove(connection: &Connection, ids: &[i64]) -> Result<(), rusqlite::Error> {
    for id in ids {
        for sql in [
            "DELETE FROM lesson_place WHERE lesson = ?1",
            "DELETE FROM lesson_source WHERE lesson = ?1",
            "DELETE FROM lesson_shown WHERE lesson = ?1",
            "DELETE FROM lesson WHERE id = ?1",
        ] {
            connection.prepare_cached(sql)?.execute([id])?;
        }
    }
    Ok(())
}

/// Counts the lessons that have not won since a moment. What a person said of a lesson does not grow old.
pub(crate) const EXPIRED: &str =
    "SELECT count(*) FROM lesson WHERE won_at < ?1 AND state NOT IN ('approved', 'forgotten')";

/// The next lessons that go: those that have not won for long, or those that won longest ago where there are too many.
pub(crate) fn expired(connection: &Connection, cut: i64, most: u32) -> Result<Vec<i64>, rusqlite::Error> {
    let sql = "SELECT id FROM lesson WHERE state NOT IN ('approved', 'forgotten')
                 AND (won_at < ?1 OR ?2) ORDER BY won_at LIMIT ?3";
    let count: i64 =
        connection.prepare_cached("SELECT count(*) FROM lesson")?.query_row([], |row| row.lenient(0))?;
    let beyond = count.saturating_sub(i64::from(most)).clamp(0, i64::from(SLICE));
    let limit = if beyond > 0 { beyond } else { i64::from(SLICE) };
    connection.prepare_cached(sql)?.query_map((cut, beyond > 0, limit), |row| row.lenient(0))?.collect()
}

/// Sessions that are gone taught what is kept: only that it was they is forgotten.
pub(crate) fn forget_sources(connection: &Connection) -> Result<(), rusqlite::Error> {
    let sql = "DELETE FROM lesson_source WHERE session NOT IN (SELECT id FROM session)";
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}
