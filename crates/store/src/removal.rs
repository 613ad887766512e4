//! Takes calls out of the database with everything that hangs on them. Both retention and purge come through here.

use std::collections::BTreeSet;
use std::ops::AddAssign;

use rusqlite::{Connection, OptionalExtension};

use crate::rows::Lenient;
use crate::stance;

/// At most so many rows are removed under one write lock, so that hooks never wait long.
pub(crate) const SLICE: u32 = 200;

/// How many of each were removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Calls, with their texts.
    pub calls: u64,
    /// Events of the timeline.
    pub events: u64,
    /// Sessions of which nothing is left.
    pub sessions: u64,
    /// Things remembered for the ladder.
    pub standing: u64,
    /// Problems of which no call is left.
    pub problems: u64,
    /// Alerts.
    pub alerts: u64,
    /// Lessons.
    pub lessons: u64,
}

impl Removed {
    /// How many in all.
    pub fn total(&self) -> u64 {
        self.calls + self.events + self.sessions + self.standing + self.problems + self.alerts + self.lessons
    }
}

impl AddAssign for Removed {
    fn add_assign(&mut self, other: Removed) {
        self.calls += other.calls;
        self.events += other.events;
        self.sessions += other.sessions;
        self.standing += other.standing;
        self.problems += other.problems;
        self.alerts += other.alerts;
        self.lessons += other.lessons;
    }
}

/// What becomes of the counts of a problem when its calls go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// They stay: the calls are merely old, and the counts are history.
    Keep,
    /// They go down, and nothing stays that came from these calls.
    Lower,
}

/// The allowance of a call.
const FORGET_ALLOWANCE: &str = "DELETE FROM allowance WHERE key =
    (SELECT substr(call_print, instr(call_print, ':') + 1, ?2) FROM call WHERE id = ?1)";

/// Removes these calls. Only inside a transaction that holds the write lock.
pub(crate) fn calls(
    connection: &Connection,
    ids: &[i64],
    counts: Counts,
) -> Result<Removed, rusqlite::Error> {
    let mut removed = Removed::default();
    let mut causes = BTreeSet::new();
    for id in ids {
        let sql = "SELECT cause_print, coalesce(ended_at, asked_at) / 86400000 FROM call WHERE id = ?1";
        let found: Option<(Option<String>, i64)> = connection
            .prepare_cached(sql)?
            .query_row([id], |row| Ok((row.lenient(0)?, row.lenient(1)?)))
            .optional()?;
        let Some((cause, day)) = found else { continue };
        // What a person allowed bears the words of the call.
        connection.prepare_cached(FORGET_ALLOWANCE)?.execute((id, stance::KEY_LETTERS))?;
        connection.prepare_cached("DELETE FROM call_text WHERE call = ?1")?.execute([id])?;
        connection.prepare_cached("DELETE FROM call WHERE id = ?1")?.execute([id])?;
        removed.calls += 1;
        let Some(cause) = cause else { continue };
        if counts == Counts::Lower {
            lower(connection, &cause, day)?;
        }
        causes.insert(cause);
    }
    for cause in causes {
        removed.problems += settle(connection, &cause, counts)?;
    }
    Ok(removed)
}

fn lower(connection: &Connection, cause: &str, day: i64) -> Result<(), rusqlite::Error> {
    connection
        .prepare_cached("UPDATE problem SET count = max(count - 1, 1) WHERE cause = ?1")?
        .execute([cause])?;
    connection
        .prepare_cached("UPDATE problem_day SET count = count - 1 WHERE cause = ?1 AND day = ?2")?
        .execute((cause, day))?;
    connection
        .prepare_cached("DELETE FROM problem_day WHERE cause = ?1 AND day = ?2 AND count <= 0")?
        .execute((cause, day))?;
    Ok(())
}

/// Removes a problem of which no call is left. One that lives on is told by the words of a call that is still there.
fn settle(connection: &Connection, cause: &str, counts: Counts) -> Result<u64, rusqlite::Error> {
    let sql = "SELECT call.id, coalesce(ended_at, asked_at), coalesce(nullif(evidence, ''), kind)
               FROM call LEFT JOIN call_text ON call_text.call = call.id
               WHERE cause_print = ?1 ORDER BY call.id DESC LIMIT 1";
    let newest: Option<(i64, i64, Option<String>)> = connection
        .prepare_cached(sql)?
        .query_row([cause], |row| Ok((row.lenient(0)?, row.lenient(1)?, row.lenient(2)?)))
        .optional()?;
    match (newest, counts) {
        (None, _) => {
            connection.prepare_cached("DELETE FROM problem_day WHERE cause = ?1")?.execute([cause])?;
            let gone = connection.prepare_cached("DELETE FROM problem WHERE cause = ?1")?.execute([cause])?;
            Ok(gone as u64)
        }
        (Some(_), Counts::Keep) => Ok(0),
        (Some((_, last_at, title)), Counts::Lower) => {
            let sql =
                "SELECT coalesce(ended_at, asked_at) FROM call WHERE cause_print = ?1 ORDER BY id LIMIT 1";
            let first_at: i64 = connection.prepare_cached(sql)?.query_row([cause], |row| row.lenient(0))?;
            connection
                .prepare_cached(
                    "UPDATE problem SET title = coalesce(?2, kind), first_at = ?3, last_at = ?4 WHERE cause = ?1",
                )?
                .execute((cause, title, first_at.min(last_at), last_at.max(first_at)))?;
            Ok(0)
        }
    }
}

/// Removes sessions of which nothing is left but the name, with their standing. Returns their names.
pub(crate) fn empty_sessions(
    connection: &Connection,
    ids: &[i64],
) -> Result<(Removed, Vec<String>), rusqlite::Error> {
    let (mut removed, mut names) = (Removed::default(), Vec::new());
    for id in ids {
        let sql = "DELETE FROM session WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM call WHERE session = ?1)
                     AND NOT EXISTS (SELECT 1 FROM event WHERE session = ?1) RETURNING name";
        let name: Option<String> =
            connection.prepare_cached(sql)?.query_row([id], |row| row.lenient(0)).optional()?;
        if let Some(name) = name {
            let standing =
                connection.prepare_cached("DELETE FROM standing WHERE session = ?1")?.execute([id])?;
            connection.prepare_cached("DELETE FROM brake WHERE session = ?1")?.execute([id])?;
            connection.prepare_cached("DELETE FROM lesson_shown WHERE session = ?1")?.execute([id])?;
            removed += Removed { sessions: 1, standing: standing as u64, ..Removed::default() };
            names.push(name);
        }
    }
    Ok((removed, names))
}
