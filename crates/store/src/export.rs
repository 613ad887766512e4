//! Hands out everything that is recorded, row by row. Rows are read a page at a time, never under one long transaction:
//! somebody who reads slowly must not keep the log from being folded.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::alert::FiredAlert;
use crate::error::StoreError;
use crate::event::{self, Bookmark, UnreadEvent};
use crate::session;
use crate::store::Store;

/// So many rows are read at once.
const PAGE: u32 = 500;

/// From where on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// Everything.
    Beginning,
    /// What was written or changed after this place of the timeline.
    Bookmark(Bookmark),
    /// What happened at this moment or later, in milliseconds since 1970.
    Moment(u64),
}

/// What is handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Only of this session.
    pub session: Option<String>,
    /// From where on.
    pub since: Since,
    /// Sessions?
    pub sessions: bool,
    /// Calls?
    pub calls: bool,
    /// Events?
    pub events: bool,
    /// Problems?
    pub problems: bool,
    /// Alerts?
    pub alerts: bool,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub enum Exported {
    /// A session.
    Session(ExportedSession),
    /// A call.
    Call(Box<ExportedCall>),
    /// An event.
    Event(UnreadEvent),
    /// A problem.
    Problem(ExportedProblem),
    /// An alert.
    Alert(FiredAlert),
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedSession {
    /// Its name.
    pub name: String,
    /// The door it came through.
    pub host: String,
    /// Where it worked.
    pub cwd: String,
    /// When it was first heard of.
    pub first_at: u64,
    /// And last.
    pub last_at: u64,
}

/// A call with its texts. What a newer version calls otherwise is handed on as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedCall {
    /// Its number.
    pub number: i64,
    /// The session's name.
    pub session: String,
    /// The host's name for it; empty where it gives none.
    pub key: String,
    /// The agent.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// Where it stands.
    pub state: String,
    /// When it was asked for.
    pub asked_at: u64,
    /// When it ended.
    pub ended_at: Option<u64>,
    /// How long it ran.
    pub took_ms: Option<u64>,
    /// Which try it was.
    pub attempt: u64,
    /// Did it go well?
    pub ok: Option<bool>,
    /// How it ended.
    pub outcome: Option<String>,
    /// The exit code or the signal.
    pub code: Option<i64>,
    /// The cause of a failure.
    pub kind: Option<String>,
    /// The same in an older vocabulary.
    pub error_type: Option<String>,
    /// May the same call run again?
    pub retryable: Option<bool>,
    /// The rule that named the cause.
    pub rule: Option<String>,
    /// What the ladder said before it ran.
    pub rung_before: String,
    /// And with its result.
    pub rung_after: String,
    /// Was it a failure the session had met before?
    pub repeat: bool,
    /// When a later call of the same intent went well.
    pub recovered_at: Option<u64>,
    /// The print of the call.
    pub call_print: String,
    /// Of what it was for.
    pub intent_print: String,
    /// Of the cause.
    pub cause_print: Option<String>,
    /// The call in one short line.
    pub label: String,
    /// Its input, bounded.
    pub input: String,
    /// The line that shows the cause.
    pub evidence: String,
    /// The first of its output.
    pub head: String,
    /// The last of it.
    pub tail: String,
    /// How many bytes stood between.
    pub omitted: u64,
    /// The diagnosis and what follows from it, as JSON; empty for a success.
    pub verdict: String,
    /// Its states, each with time and note, as JSON.
    pub life: String,
}

/// A recurring problem.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedProblem {
    /// The print of the cause.
    pub cause: String,
    /// The kind.
    pub kind: String,
    /// The rule that named it.
    pub rule: String,
    /// The line that showed it last.
    pub title: String,
    /// The tools it was met with, as JSON.
    pub tools: String,
    /// How often.
    pub count: u64,
    /// When first.
    pub first_at: u64,
    /// When last.
    pub last_at: u64,
    /// When a person called it resolved.
    pub resolved_at: Option<u64>,
    /// When it came back.
    pub regressed_at: Option<u64>,
}

/// Which rows a page takes.
struct Bounds {
    session: Option<i64>,
    /// Events after this place.
    after: i64,
    /// And up to this one: where the timeline ended when the export began.
    up_to: i64,
    /// What happened from this moment on.
    from: i64,
    /// The calls and the sessions that something happened to after the bookmark, in order; all where there is none.
    touched: Option<[Vec<i64>; 2]>,
}

impl Bounds {
    /// The numbers of the rows to take, where not all are.
    fn only(&self, which: usize) -> Option<&[i64]> {
        self.touched.as_ref().map(|touched| &touched[which][..])
    }
}

impl Store {
    /// Hands every selected row to `each`: sessions, calls, events, problems, alerts, each in the order in which they were
    /// first written. Returns the bookmark from which to go on the next time; `None` where there is no such session.
    pub fn export<E: From<StoreError>>(
        &self,
        selection: &Selection,
        mut each: impl FnMut(Exported) -> Result<(), E>,
    ) -> Result<Option<Bookmark>, E> {
        let wrong = self.wrong();
        let Some(bounds) = self.bounds(selection).map_err(&wrong)? else { return Ok(None) };
        if selection.sessions {
            let sql = "SELECT id, name, host, cwd, first_at, last_at FROM session
                       WHERE id > ?1 AND id <= ?2 AND (?3 IS NULL OR id = ?3) AND last_at >= ?4 ORDER BY id LIMIT ?5";
            self.paged(sql, &bounds, bounds.only(1), read_session, |row| each(Exported::Session(row)))?;
        }
        if selection.calls {
            let sql = format!(
                "SELECT {CALL_COLUMNS} FROM call JOIN session ON session.id = call.session
                 LEFT JOIN call_text ON call_text.call = call.id
                 WHERE call.id > ?1 AND call.id <= ?2 AND (?3 IS NULL OR call.session = ?3)
                   AND coalesce(ended_at, asked_at) >= ?4
                 ORDER BY call.id LIMIT ?5"
            );
            self.paged(&sql, &bounds, bounds.only(0), read_call, |row| each(Exported::Call(Box::new(row))))?;
        }
        if selection.events {
            self.export_events(&bounds, &mut each)?;
        }
        if selection.problems {
            self.export_problems(&bounds, &mut each)?;
        }
        if selection.alerts && bounds.session.is_none() {
            let mut before = None;
            loop {
                let page = self.fired_alerts(before, PAGE)?;
                let Some(last) = page.last() else { break };
                before = Some(last.id);
                for alert in page.into_iter().filter(|alert| alert.at.cast_signed() >= bounds.from) {
                    each(Exported::Alert(alert))?;
                }
            }
        }
        Ok(Some(Bookmark(bounds.up_to.unsigned_abs())))
    }

    fn bounds(&self, selection: &Selection) -> Result<Option<Bounds>, rusqlite::Error> {
        let connection = &self.connection;
        let session = match &selection.session {
            None => None,
            Some(name) => match session::number(connection, name)? {
                None => return Ok(None),
                found => found,
            },
        };
        // The counter and not the newest row: a bookmark must never go back, also when everything was removed.
        let up_to: i64 = connection
            .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'event'", [], |row| row.get(0))
            .optional()?
            .unwrap_or_default();
        let mut bounds = Bounds { session, after: 0, up_to, from: 0, touched: None };
        match selection.since {
            Since::Beginning => {}
            Since::Moment(moment) => bounds.from = moment.cast_signed(),
            Since::Bookmark(place) => {
                bounds.after = place.0.cast_signed();
                bounds.touched = Some([
                    touched(connection, "call", bounds.after, up_to)?,
                    touched(connection, "session", bounds.after, up_to)?,
                ]);
            }
        }
        Ok(Some(bounds))
    }

    fn export_events<E: From<StoreError>>(
        &self,
        bounds: &Bounds,
        each: &mut impl FnMut(Exported) -> Result<(), E>,
    ) -> Result<(), E> {
        let only = if bounds.session.is_some() { "AND event.session = ?2" } else { "AND ?2 IS NULL" };
        let sql = format!(
            "SELECT {} FROM event LEFT JOIN session ON session.id = event.session
             WHERE event.seq > ?1 {only} AND event.at >= ?3 AND event.seq <= ?4 ORDER BY event.seq LIMIT ?5",
            event::COLUMNS
        );
        let mut after = bounds.after;
        loop {
            let page = || -> Result<Vec<UnreadEvent>, rusqlite::Error> {
                self.connection
                    .prepare_cached(&sql)?
                    .query_map(
                        (after, bounds.session, bounds.from, bounds.up_to, PAGE),
                        UnreadEvent::from_row,
                    )?
                    .collect()
            };
            let page = page().map_err(self.wrong())?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.seq.0.cast_signed();
            page.into_iter().try_for_each(|event| each(Exported::Event(event)))?;
        }
    }

    fn export_problems<E: From<StoreError>>(
        &self,
        bounds: &Bounds,
        each: &mut impl FnMut(Exported) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = "SELECT cause, kind, rule, title, tools, count, first_at, last_at, resolved_at, regressed_at FROM problem
                   WHERE cause > ?1 AND last_at >= ?3
                     AND (?2 IS NULL OR EXISTS (SELECT 1 FROM call WHERE cause_print = problem.cause AND session = ?2))
                   ORDER BY cause LIMIT ?4";
        let from = match bounds.touched {
            None => bounds.from,
            // A problem has no place in the timeline of its own; it changed when the first event after the bookmark did.
            Some(_) => self.first_after(bounds.after).map_err(self.wrong())?,
        };
        let mut after = String::new();
        loop {
            let page = || -> Result<Vec<ExportedProblem>, rusqlite::Error> {
                self.connection
                    .prepare_cached(sql)?
                    .query_map((&after, bounds.session, from, PAGE), read_problem)?
                    .collect()
            };
            let page = page().map_err(self.wrong())?;
            let Some(last) = page.last() else { return Ok(()) };
            after.clone_from(&last.cause);
            page.into_iter().try_for_each(|problem| each(Exported::Problem(problem)))?;
        }
    }

    /// The earliest moment told after a place of the timeline; past all moments where there is none.
    fn first_after(&self, place: i64) -> Result<i64, rusqlite::Error> {
        let sql = "SELECT min(at) FROM event WHERE seq > ?1";
        let found: Option<i64> = self.connection.query_row(sql, [place], |row| row.get(0))?;
        Ok(found.unwrap_or(i64::MAX))
    }

    /// Reads a table page by page, or only some rows of it. The query's first column is its number, by which it goes on.
    fn paged<T, E: From<StoreError>>(
        &self,
        sql: &str,
        bounds: &Bounds,
        only: Option<&[i64]>,
        read: fn(&Row<'_>) -> Result<T, rusqlite::Error>,
        mut each: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        let page = |after: i64, last: i64| -> Result<Vec<(i64, T)>, StoreError> {
            let rows = || -> Result<Vec<(i64, T)>, rusqlite::Error> {
                self.connection
                    .prepare_cached(sql)?
                    .query_map((after, last, bounds.session, bounds.from, PAGE), |row| {
                        Ok((row.get(0)?, read(row)?))
                    })?
                    .collect()
            };
            rows().map_err(self.wrong())
        };
        if let Some(only) = only {
            for number in only {
                page(number - 1, *number)?.into_iter().try_for_each(|(_, row)| each(row))?;
            }
            return Ok(());
        }
        let mut after = 0;
        loop {
            let rows = page(after, i64::MAX)?;
            let Some((last, _)) = rows.last() else { return Ok(()) };
            after = *last;
            rows.into_iter().try_for_each(|(_, row)| each(row))?;
        }
    }
}

/// The calls or sessions that something happened to, in order.
fn touched(
    connection: &Connection,
    column: &str,
    after: i64,
    up_to: i64,
) -> Result<Vec<i64>, rusqlite::Error> {
    let sql = format!(
        "SELECT DISTINCT {column} FROM event WHERE seq > ?1 AND seq <= ?2 AND {column} IS NOT NULL ORDER BY 1"
    );
    connection.prepare(&sql)?.query_map([after, up_to], |row| row.get(0))?.collect()
}

const CALL_COLUMNS: &str = "call.id, session.name, key, agent, tool, state, asked_at, ended_at, took_ms, attempt, ok,
    outcome, code, kind, error_type, retryable, rule, rung_before, rung_after, repeat, recovered_at, call_print,
    intent_print, cause_print, coalesce(label, ''), coalesce(input, ''), coalesce(evidence, ''), coalesce(head, ''),
    coalesce(tail, ''), coalesce(omitted, 0), coalesce(verdict, ''), coalesce(life, '')";

fn number(row: &Row<'_>, column: usize) -> Result<u64, rusqlite::Error> {
    row.get::<_, i64>(column).map(i64::unsigned_abs)
}

fn maybe(row: &Row<'_>, column: usize) -> Result<Option<u64>, rusqlite::Error> {
    row.get::<_, Option<i64>>(column).map(|at| at.map(i64::unsigned_abs))
}

fn read_session(row: &Row<'_>) -> Result<ExportedSession, rusqlite::Error> {
    Ok(ExportedSession {
        name: row.get(1)?,
        host: row.get(2)?,
        cwd: row.get(3)?,
        first_at: number(row, 4)?,
        last_at: number(row, 5)?,
    })
}

fn read_call(row: &Row<'_>) -> Result<ExportedCall, rusqlite::Error> {
    Ok(ExportedCall {
        number: row.get(0)?,
        session: row.get(1)?,
        key: row.get(2)?,
        agent: row.get(3)?,
        tool: row.get(4)?,
        state: row.get(5)?,
        asked_at: number(row, 6)?,
        ended_at: maybe(row, 7)?,
        took_ms: maybe(row, 8)?,
        attempt: number(row, 9)?,
        ok: row.get(10)?,
        outcome: row.get(11)?,
        code: row.get(12)?,
        kind: row.get(13)?,
        error_type: row.get(14)?,
        retryable: row.get(15)?,
        rule: row.get(16)?,
        rung_before: row.get(17)?,
        rung_after: row.get(18)?,
        repeat: row.get(19)?,
        recovered_at: maybe(row, 20)?,
        call_print: row.get(21)?,
        intent_print: row.get(22)?,
        cause_print: row.get(23)?,
        label: row.get(24)?,
        input: row.get(25)?,
        evidence: row.get(26)?,
        head: row.get(27)?,
        tail: row.get(28)?,
        omitted: number(row, 29)?,
        verdict: row.get(30)?,
        life: row.get(31)?,
    })
}

fn read_problem(row: &Row<'_>) -> Result<ExportedProblem, rusqlite::Error> {
    Ok(ExportedProblem {
        cause: row.get(0)?,
        kind: row.get(1)?,
        rule: row.get(2)?,
        title: row.get(3)?,
        tools: row.get(4)?,
        count: number(row, 5)?,
        first_at: number(row, 6)?,
        last_at: number(row, 7)?,
        resolved_at: maybe(row, 8)?,
        regressed_at: maybe(row, 9)?,
    })
}

#[cfg(test)]
mod tests;
