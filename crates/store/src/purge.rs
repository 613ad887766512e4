//! Removes what a person wants gone, so that nothing of it can be read in the files afterwards.
//!
//! Rows go in slices. Then the database is written anew as a whole, because pages keep traces of what was moved or
//! changed in them long before, and the log is emptied. A fact remembers that this is still to be done, so the next purge
//! or the next `gc` finishes one that was killed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension};

use crate::chain::{self, CutBecause};
use crate::copies::{self, Copy};
use crate::error::StoreError;
use crate::fact;
use crate::lesson_removal::{self, Came};
use crate::problem::TOOLS;
use crate::removal::{self, Counts, Removed, SLICE};
use crate::root::Root;
use crate::rows::Lenient;
use crate::server_tools;
use crate::session;
use crate::store::Store;
use crate::tool_errors;

/// The fact that tells of a purge that has not come to its end.
const UNFINISHED: &str = "purge_unfinished";

/// What is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purge {
    /// Everything of one session.
    Session(String),
    /// Everything from before this moment.
    Before(u64),
}

/// What becomes of copies of the database that may hold it, too, and of lines of the spool that nobody could read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopiesToo {
    /// Only those that are older than the moment of [`Purge::Before`] go.
    IfOlder,
    /// All of them go.
    All,
}

/// What was removed, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purged {
    /// Rows.
    pub rows: Removed,
    /// Files written for other tools.
    pub tool_errors: u64,
    /// Copies of the database that went.
    pub copies: Vec<PathBuf>,
    /// Copies that stayed and may still hold it.
    pub copies_left: Vec<PathBuf>,
    /// Nothing can be read in the files any more. `false` where another process still reads: it is to be run again.
    pub is_final: bool,
}

impl Store {
    /// Was a purge begun that has not come to its end?
    pub fn has_unfinished_purge(&self) -> Result<bool, StoreError> {
        fact::read(&self.connection, UNFINISHED).map(|found| found.is_some()).map_err(self.wrong())
    }

    /// Counts what a purge would remove.
    pub fn purgeable(&self, what: &Purge, copies: CopiesToo) -> Result<Purged, StoreError> {
        let rows = match what {
            Purge::Session(name) => count_session(&self.connection, name),
            Purge::Before(moment) => count_before(&self.connection, moment.cast_signed()),
        };
        let (go, stay) = chosen(self.root(), what, copies)?;
        let tool_errors = match what {
            Purge::Session(name) => u64::from(tool_errors::exists(self.root(), name)),
            Purge::Before(_) => 0,
        };
        Ok(Purged {
            rows: rows.map_err(self.wrong())?,
            tool_errors,
            copies: go.into_iter().map(|copy| copy.path).collect(),
            copies_left: stay.into_iter().map(|copy| copy.path).collect(),
            is_final: false,
        })
    }

    /// Removes it. `seen` is told how far it is after every slice.
    pub fn purge(
        &mut self,
        what: &Purge,
        copies: CopiesToo,
        seen: &mut dyn FnMut(&Removed),
    ) -> Result<Purged, StoreError> {
        self.connection.pragma_update(None, "secure_delete", true).map_err(self.wrong())?;
        self.write(|connection| fact::write(connection, UNFINISHED, "1"))?;
        let mut purged = Purged::default();
        match what {
            Purge::Session(name) => self.purge_session(name, &mut purged, seen)?,
            Purge::Before(moment) => self.purge_before(moment.cast_signed(), &mut purged, seen)?,
        }
        let (go, stay) = chosen(self.root(), what, copies)?;
        go.iter().try_for_each(copies::remove)?;
        purged.copies = go.into_iter().map(|copy| copy.path).collect();
        purged.copies_left = stay.into_iter().map(|copy| copy.path).collect();
        purged.is_final = self.finish_purge()?;
        Ok(purged)
    }

    /// Writes the database anew and empties its log. `false` where another process still reads from it.
    pub fn finish_purge(&mut self) -> Result<bool, StoreError> {
        let wrong = self.wrong();
        // SQLite builds the new database in a temporary file, which must lie nowhere but in our own folder.
        let folder = self.root().path().to_string_lossy().into_owned();
        let placed = self.connection.pragma_update(None, "temp_store_directory", &folder);
        if placed.is_ok() {
            self.connection.pragma_update(None, "temp_store", "FILE").map_err(&wrong)?;
        }
        let written = self.connection.execute_batch("VACUUM");
        self.connection.pragma_update(None, "temp_store", "MEMORY").map_err(&wrong)?;
        written.map_err(&wrong)?;
        if !self.fold_all()? {
            return Ok(false);
        }
        self.write(|connection| fact::remove(connection, UNFINISHED))?;
        Ok(true)
    }

    fn purge_session(
        &mut self,
        name: &str,
        purged: &mut Purged,
        seen: &mut dyn FnMut(&Removed),
    ) -> Result<(), StoreError> {
        let Some(number) = session::number(&self.connection, name).map_err(self.wrong())? else {
            purged.tool_errors += u64::from(tool_errors::remove(self.root(), name)?);
            return Ok(());
        };
        let mut causes = BTreeSet::new();
        loop {
            let slice = self.write(|connection| session_slice(connection, number, &mut causes))?;
            if slice.total() == 0 {
                break;
            }
            purged.rows += slice;
            seen(&purged.rows);
            if slice.sessions > 0 {
                break;
            }
        }
        self.rename_tools(&causes)?;
        purged.tool_errors += u64::from(tool_errors::remove(self.root(), name)?);
        Ok(())
    }

    fn purge_before(
        &mut self,
        cut: i64,
        purged: &mut Purged,
        seen: &mut dyn FnMut(&Removed),
    ) -> Result<(), StoreError> {
        let wrong = self.wrong();
        let mut causes = BTreeSet::new();
        let mut touched = BTreeSet::new();
        let mut last = 0;
        loop {
            let sql = "SELECT id, session FROM call WHERE id > ?1 AND coalesce(ended_at, asked_at) < ?2
                       ORDER BY id LIMIT ?3";
            let found = pairs(&self.connection, sql, last, cut).map_err(&wrong)?;
            let Some((newest, _)) = found.last() else { break };
            last = *newest;
            touched.extend(found.iter().map(|(_, session)| *session));
            let ids: Vec<i64> = found.iter().map(|(id, _)| *id).collect();
            purged.rows += self.write(|connection| remove_calls(connection, &ids, &mut causes))?;
            seen(&purged.rows);
        }
        last = 0;
        loop {
            let sql = "SELECT seq, 0 FROM event WHERE seq > ?1 AND at < ?2 ORDER BY seq LIMIT ?3";
            let found = pairs(&self.connection, sql, last, cut).map_err(&wrong)?;
            let Some((newest, _)) = found.last() else { break };
            last = *newest;
            let seqs: Vec<i64> = found.iter().map(|(seq, _)| *seq).collect();
            purged.rows += self.write(|connection| {
                chain::cut(connection, &seqs, CutBecause::Purged)?;
                let mut statement = connection.prepare_cached("DELETE FROM event WHERE seq = ?1")?;
                let mut events = 0;
                for seq in &seqs {
                    events += statement.execute([seq])? as u64;
                }
                Ok(Removed { events, ..Removed::default() })
            })?;
            seen(&purged.rows);
        }
        self.rename_tools(&causes)?;
        let (rest, gone) = self.write(|connection| {
            let alerts = connection.execute("DELETE FROM alert WHERE at < ?1", [cut])? as u64;
            connection.execute("DELETE FROM brake WHERE at < ?1", [cut])?;
            server_tools::forget(connection, cut, u32::MAX)?;
            let sql = "SELECT id FROM session WHERE last_at < ?1";
            let ids: Vec<i64> =
                connection.prepare(sql)?.query_map([cut], |row| row.lenient(0))?.collect::<Result<_, _>>()?;
            let lessons = lesson_removal::take_back(connection, Came::Before(cut))?;
            let (mut removed, names) = removal::empty_sessions(connection, &ids)?;
            removed.alerts = alerts;
            removed.lessons = lessons;
            Ok((removed, names))
        })?;
        purged.rows += rest;
        for name in &gone {
            purged.tool_errors += u64::from(tool_errors::remove(self.root(), name)?);
        }
        self.rewrite_tool_errors(&touched)
    }

    /// Writes the files of sessions anew that lost some of their calls, where there are such files.
    fn rewrite_tool_errors(&self, sessions: &BTreeSet<i64>) -> Result<(), StoreError> {
        for session in sessions {
            let name: Option<String> = self
                .connection
                .query_row("SELECT name FROM session WHERE id = ?1", [session], |row| row.lenient(0))
                .optional()
                .map_err(self.wrong())?;
            if let Some(name) = name.filter(|name| tool_errors::exists(self.root(), name)) {
                self.write_tool_errors(&name)?;
            }
        }
        Ok(())
    }

    /// Names only those tools with a problem that still have a call of it.
    fn rename_tools(&mut self, causes: &BTreeSet<String>) -> Result<(), StoreError> {
        for cause in causes {
            self.write(|connection| {
                let sql = "UPDATE problem SET tools = (SELECT json_group_array(tool) FROM
                             (SELECT DISTINCT tool FROM call WHERE cause_print = ?1 ORDER BY tool LIMIT ?2))
                           WHERE cause = ?1";
                connection.prepare_cached(sql)?.execute((cause, TOOLS)).map(|_| ())
            })?;
        }
        Ok(())
    }
}

/// One slice of a session; its own row goes when nothing else is left.
fn session_slice(
    connection: &Connection,
    session: i64,
    causes: &mut BTreeSet<String>,
) -> Result<Removed, rusqlite::Error> {
    let ids: Vec<i64> = connection
        .prepare_cached("SELECT id FROM call WHERE session = ?1 LIMIT ?2")?
        .query_map((session, SLICE), |row| row.lenient(0))?
        .collect::<Result<_, _>>()?;
    if !ids.is_empty() {
        return remove_calls(connection, &ids, causes);
    }
    let seqs: Vec<i64> = connection
        .prepare_cached("SELECT seq FROM event WHERE session = ?1 ORDER BY seq LIMIT ?2")?
        .query_map((session, SLICE), |row| row.lenient(0))?
        .collect::<Result<_, _>>()?;
    chain::cut(connection, &seqs, CutBecause::Purged)?;
    let mut events = 0;
    for seq in seqs {
        events += connection.prepare_cached("DELETE FROM event WHERE seq = ?1")?.execute([seq])? as u64;
    }
    if events > 0 {
        return Ok(Removed { events, ..Removed::default() });
    }
    let lessons = lesson_removal::take_back(connection, Came::From(session))?;
    let (mut removed, _) = removal::empty_sessions(connection, &[session])?;
    removed.lessons = lessons;
    Ok(removed)
}

fn remove_calls(
    connection: &Connection,
    ids: &[i64],
    causes: &mut BTreeSet<String>,
) -> Result<Removed, rusqlite::Error> {
    let mut statement = connection.prepare_cached("SELECT cause_print FROM call WHERE id = ?1")?;
    for id in ids {
        let cause: Option<Option<String>> = statement.query_row([id], |row| row.lenient(0)).optional()?;
        causes.extend(cause.flatten());
    }
    removal::calls(connection, ids, Counts::Lower)
}

fn pairs(
    connection: &Connection,
    sql: &str,
    last: i64,
    cut: i64,
) -> Result<Vec<(i64, i64)>, rusqlite::Error> {
    connection
        .prepare_cached(sql)?
        .query_map((last, cut, SLICE), |row| Ok((row.lenient(0)?, row.lenient(1)?)))?
        .collect()
}

/// The copies that go, and those that stay.
fn chosen(root: &Root, what: &Purge, too: CopiesToo) -> Result<(Vec<Copy>, Vec<Copy>), StoreError> {
    let goes = |copy: &Copy| match (too, what) {
        (CopiesToo::All, _) => true,
        (CopiesToo::IfOlder, Purge::Before(moment)) => copy.made_at < *moment,
        (CopiesToo::IfOlder, Purge::Session(_)) => false,
    };
    Ok(copies::with_leftovers(root)?.into_iter().partition(goes))
}

fn count_session(connection: &Connection, name: &str) -> Result<Removed, rusqlite::Error> {
    let Some(number) = session::number(connection, name)? else { return Ok(Removed::default()) };
    let count = |sql: &str| -> Result<u64, rusqlite::Error> {
        connection.query_row(sql, [number], |row| row.lenient::<i64>(0)).map(i64::unsigned_abs)
    };
    Ok(Removed {
        calls: count("SELECT count(*) FROM call WHERE session = ?1")?,
        events: count("SELECT count(*) FROM event WHERE session = ?1")?,
        sessions: 1,
        standing: count("SELECT count(*) FROM standing WHERE session = ?1")?,
        problems: count(
            "SELECT count(*) FROM problem WHERE cause IN (SELECT cause_print FROM call WHERE session = ?1)
               AND NOT EXISTS (SELECT 1 FROM call WHERE cause_print = problem.cause AND session <> ?1)",
        )?,
        alerts: 0,
        lessons: lesson_removal::count(connection, Came::From(number))?,
    })
}

fn count_before(connection: &Connection, cut: i64) -> Result<Removed, rusqlite::Error> {
    let count = |sql: &str| -> Result<u64, rusqlite::Error> {
        connection.query_row(sql, [cut], |row| row.lenient::<i64>(0)).map(i64::unsigned_abs)
    };
    let gone = "last_at < ?1
                AND NOT EXISTS (SELECT 1 FROM call WHERE session = session.id AND coalesce(ended_at, asked_at) >= ?1)
                AND NOT EXISTS (SELECT 1 FROM event WHERE session = session.id AND at >= ?1)";
    Ok(Removed {
        calls: count("SELECT count(*) FROM call WHERE coalesce(ended_at, asked_at) < ?1")?,
        events: count("SELECT count(*) FROM event WHERE at < ?1")?,
        sessions: count(&format!("SELECT count(*) FROM session WHERE {gone}"))?,
        standing: count(&format!(
            "SELECT count(*) FROM standing WHERE session IN (SELECT id FROM session WHERE {gone})"
        ))?,
        problems: count(
            "SELECT count(*) FROM problem WHERE EXISTS (SELECT 1 FROM call WHERE cause_print = problem.cause)
               AND NOT EXISTS (SELECT 1 FROM call WHERE cause_print = problem.cause AND coalesce(ended_at, asked_at) >= ?1)",
        )?,
        alerts: count("SELECT count(*) FROM alert WHERE at < ?1")?,
        lessons: lesson_removal::count(connection, Came::Before(cut))?,
    })
}

#[cfg(test)]
mod tests;
