//! Hands out everything that is recorded, row by row. Rows are read a page at a time, never under one long transaction:
//! somebody who reads slowly must not keep the log from being folded.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::alert::FiredAlert;
use crate::calls::{StoredCall, StoredCallText};
use crate::error::StoreError;
use crate::event::{Bookmark, StoredEvent};
use crate::problems::Problem;
use crate::rows::{self, Lenient};
use crate::session;
use crate::store::Store;
use crate::timeline::{StoredSession, Wanted};

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
    Session(StoredSession),
    /// A call, with its texts.
    Call(Box<StoredCall>, Box<StoredCallText>),
    /// An event.
    Event(StoredEvent),
    /// A problem.
    Problem(Problem),
    /// An alert.
    Alert(FiredAlert),
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
    /// What something happened to after the bookmark; all where there is none.
    touched: Option<Touched>,
}

/// Numbers of rows, in order.
struct Touched {
    calls: Vec<i64>,
    sessions: Vec<i64>,
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
            let only = bounds.touched.as_ref().map(|touched| &*touched.sessions);
            let columns = StoredSession::COLUMNS;
            let sql = format!(
                "SELECT {columns} FROM session
                 WHERE id > ?1 AND id <= ?2 AND (?3 IS NULL OR id = ?3) AND last_at >= ?4 ORDER BY id LIMIT ?5"
            );
            self.paged("session", &sql, &bounds, only, StoredSession::read, |row| {
                each(Exported::Session(row))
            })?;
        }
        if selection.calls {
            let (columns, texts, tables) = (StoredCall::COLUMNS, StoredCallText::COLUMNS, StoredCall::TABLES);
            let sql = format!(
                "SELECT {columns}, {texts} FROM {tables}
                 WHERE call.id > ?1 AND call.id <= ?2 AND (?3 IS NULL OR call.session = ?3)
                   AND coalesce(ended_at, asked_at) >= ?4
                 ORDER BY call.id LIMIT ?5"
            );
            let only = bounds.touched.as_ref().map(|touched| &*touched.calls);
            let read = |row: &Row<'_>| {
                Ok((
                    Box::new(StoredCall::read(row)?),
                    Box::new(StoredCallText::read(row, StoredCall::WIDTH)?),
                ))
            };
            self.paged("call", &sql, &bounds, only, read, |(call, text)| each(Exported::Call(call, text)))?;
        }
        if selection.events {
            let wanted = Wanted {
                session: bounds.session,
                from: Some(bounds.from.unsigned_abs()),
                ..Wanted::default()
            };
            let (after, up_to) =
                (Bookmark(bounds.after.unsigned_abs()), Bookmark(bounds.up_to.unsigned_abs()));
            self.events(&wanted, after, up_to, |event| each(Exported::Event(event)))?;
        }
        if selection.problems {
            self.export_problems(&bounds, &mut each)?;
        }
        if selection.alerts && bounds.session.is_none() {
            self.each_fired_alert(|alert| match alert.at.cast_signed() >= bounds.from {
                true => each(Exported::Alert(alert)),
                false => Ok(()),
            })?;
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
            .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'event'", [], |row| row.lenient(0))
            .optional()?
            .unwrap_or_default();
        let mut bounds = Bounds { session, after: 0, up_to, from: 0, touched: None };
        match selection.since {
            Since::Beginning => {}
            Since::Moment(moment) => bounds.from = i64::try_from(moment).unwrap_or(i64::MAX),
            Since::Bookmark(place) => {
                // A bookmark from another program may be any number.
                bounds.after = i64::try_from(place.0).unwrap_or(i64::MAX);
                bounds.touched = Some(Touched {
                    calls: touched(connection, "call", bounds.after, up_to)?,
                    sessions: touched(connection, "session", bounds.after, up_to)?,
                });
            }
        }
        Ok(Some(bounds))
    }

    fn export_problems<E: From<StoreError>>(
        &self,
        bounds: &Bounds,
        each: &mut impl FnMut(Exported) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = format!(
            "SELECT {} FROM problem WHERE cause > ?1 AND last_at >= ?3
               AND (?2 IS NULL OR EXISTS (SELECT 1 FROM call WHERE cause_print = problem.cause AND session = ?2))
             ORDER BY cause LIMIT ?4",
            Problem::COLUMNS
        );
        let from = match bounds.touched {
            None => bounds.from,
            // A problem has no place in the timeline of its own; it changed when the first event after the bookmark did.
            Some(_) => self.first_after(bounds.after).map_err(self.wrong())?,
        };
        let mut after = String::new();
        loop {
            let before = after.clone();
            let mut page = || -> Result<Vec<Option<Problem>>, rusqlite::Error> {
                let mut statement = self.connection.prepare_cached(&sql)?;
                let mut rows = statement.query((&before, bounds.session, from, PAGE))?;
                let mut found = Vec::new();
                while let Some(row) = rows.next()? {
                    rows::take_replaced();
                    let problem = Problem::read(row)?;
                    // A key that is no text leads on to nothing.
                    let is_whole = !rows::take_replaced();
                    if problem.cause > after {
                        after.clone_from(&problem.cause);
                    }
                    if !is_whole {
                        rows::skip("problem", None);
                    }
                    found.push(Some(problem).filter(|_| is_whole));
                }
                Ok(found)
            };
            let page = match page() {
                // Rows without numbers cannot be counted past a page that cannot be read.
                Err(error) if rows::is_damage(&error) => {
                    rows::skip("problem", None);
                    return Ok(());
                }
                page => page.map_err(self.wrong())?,
            };
            page.into_iter().flatten().try_for_each(|problem| each(Exported::Problem(problem)))?;
            if after == before {
                return Ok(());
            }
        }
    }

    /// The earliest moment told after a place of the timeline; past all moments where there is none.
    fn first_after(&self, place: i64) -> Result<i64, rusqlite::Error> {
        let sql = "SELECT min(at) FROM event WHERE seq > ?1";
        let found: Option<i64> = self.connection.query_row(sql, [place], |row| row.lenient(0))?;
        Ok(found.unwrap_or(i64::MAX))
    }

    /// Reads a table page by page, or only some rows of it. The query's first column is its number, by which it goes on.
    fn paged<T, E: From<StoreError>>(
        &self,
        table: &str,
        sql: &str,
        bounds: &Bounds,
        only: Option<&[i64]>,
        read: fn(&Row<'_>) -> Result<T, rusqlite::Error>,
        mut each: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        // A row that cannot be read whole is left out, but its number leads on.
        let page = |after: i64, last: i64| -> Result<Vec<(i64, Option<T>)>, StoreError> {
            let mut found = Vec::new();
            let read_on = |after: i64, seen: &mut i64| {
                let mut statement = self.connection.prepare_cached(sql)?;
                let mut rows = statement.query((after, last, bounds.session, bounds.from, PAGE))?;
                while let Some(row) = rows.next()? {
                    rows::take_replaced();
                    let number: i64 = row.lenient(0)?;
                    let whole = Some(read(row)?).filter(|_| !rows::take_replaced());
                    if whole.is_none() {
                        rows::skip(table, Some(number));
                    }
                    found.push((number, whole));
                    *seen = number;
                }
                Ok(())
            };
            rows::over_gaps(table, after, read_on).map_err(self.wrong())?;
            Ok(found)
        };
        if let Some(only) = only {
            for number in only {
                page(number - 1, *number)?.into_iter().filter_map(|(_, row)| row).try_for_each(&mut each)?;
            }
            return Ok(());
        }
        let mut after = 0;
        loop {
            let rows = page(after, i64::MAX)?;
            let Some((last, _)) = rows.last() else { return Ok(()) };
            after = *last;
            rows.into_iter().filter_map(|(_, row)| row).try_for_each(&mut each)?;
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
    connection.prepare(&sql)?.query_map([after, up_to], |row| row.lenient(0))?.collect()
}

#[cfg(test)]
mod tests;
