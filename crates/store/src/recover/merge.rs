//! Puts what was read of a damaged database into the store that is there, each thing once.

use std::collections::{HashMap, HashSet};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::salvage::{Salvage, Salvaged};
use super::{BATCH, RecoverHow, Recovered};
use crate::error::StoreError;
use crate::source::Source;
use crate::store::Store;

/// One way through a damaged database.
pub(super) struct Merge<'a> {
    pub(super) store: &'a mut Store,
    pub(super) salvage: &'a Salvage,
    pub(super) how: RecoverHow,
    seen: &'a mut dyn FnMut(&Recovered),
    pub(super) ids: Ids,
    pub(super) counts: Recovered,
}

/// The numbers that rows have here, by those they had.
#[derive(Default)]
pub(super) struct Ids {
    pub(super) sessions: HashMap<i64, i64>,
    pub(super) calls: HashMap<i64, i64>,
    pub(super) lessons: HashMap<i64, i64>,
    /// Sessions and calls that were taken for one of the source, or came from it.
    claimed: HashSet<i64>,
    pub(super) new_sessions: HashSet<i64>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(
        store: &'a mut Store,
        salvage: &'a Salvage,
        how: RecoverHow,
        seen: &'a mut dyn FnMut(&Recovered),
    ) -> Result<Merge<'a>, StoreError> {
        Ok(Merge { store, salvage, how, seen, ids: Ids::default(), counts: Recovered::default() })
    }

    pub(super) fn all(mut self) -> Result<Recovered, StoreError> {
        self.each("session", |merge, connection, row| merge.session(connection, row))?;
        self.each("call", |merge, connection, row| merge.call(connection, row))?;
        self.events()?;
        self.each("lesson", |merge, connection, row| merge.lesson(connection, row))?;
        self.plain()?;
        self.prove_anew()?;
        self.counts.lost = self.lost_events();
        Ok(self.counts)
    }

    /// Does some work for each row of a table, a few rows under one write lock.
    pub(super) fn each(
        &mut self,
        table: &str,
        work: impl Fn(&mut Merge<'a>, &Connection, Salvaged) -> Result<(), rusqlite::Error>,
    ) -> Result<(), StoreError> {
        let salvage = self.salvage;
        let mut rows = salvage.rows(table).peekable();
        while rows.peek().is_some() {
            let batch: Vec<Salvaged> = rows.by_ref().take(BATCH).collect();
            self.write(|merge, connection| {
                batch.into_iter().try_for_each(|row| {
                    merge.counts.mended += u64::from(row.is_mended);
                    work(merge, connection, row)
                })
            })?;
        }
        Ok(())
    }

    /// Does some work under the write lock; in a dry run, without it.
    pub(super) fn write<T>(
        &mut self,
        work: impl FnOnce(&mut Merge<'a>, &Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        let transaction = if self.how.dry_run { "BEGIN" } else { "BEGIN IMMEDIATE" };
        let wrong = self.store.wrong();
        // The connection is borrowed from the store for as long as the work needs both.
        let connection =
            std::mem::replace(&mut self.store.connection, Connection::open_in_memory().map_err(&wrong)?);
        let done = connection
            .execute_batch(transaction)
            .and_then(|()| work(self, &connection))
            .and_then(|done| connection.execute_batch("COMMIT").map(|()| done));
        if done.is_err() {
            let _it_may_never_have_begun = connection.execute_batch("ROLLBACK");
        }
        self.store.connection = connection;
        (self.seen)(&self.counts);
        done.map_err(wrong)
    }

    fn session(&mut self, connection: &Connection, mut row: Salvaged) -> Result<(), rusqlite::Error> {
        if row.text("name").is_empty() {
            row.set("name", Value::Text(lost(row.number)));
        }
        let name = row.text("name").to_owned();
        let sql = "SELECT id FROM session WHERE name = ?1";
        let found: Option<i64> =
            connection.prepare_cached(sql)?.query_row([&name], |row| row.get(0)).optional()?;
        let id = match found {
            Some(id) => {
                self.counts.known += 1;
                if !self.how.dry_run {
                    let sql = "UPDATE session SET first_at = min(first_at, ?2), last_at = max(last_at, ?3),
                                 paired = max(paired, ?4) WHERE id = ?1";
                    let values = (id, row.integer("first_at"), row.integer("last_at"), row.integer("paired"));
                    connection.prepare_cached(sql)?.execute(values)?;
                }
                id
            }
            None => {
                self.counts.sessions += 1;
                let id = self.insert(connection, "session", &mut row, "id")?;
                self.ids.new_sessions.insert(id);
                id
            }
        };
        self.ids.sessions.insert(row.number, id);
        Ok(())
    }

    /// The session that a row belongs to. One that could not be read gets a name by which it is known as such.
    pub(super) fn session_of(&mut self, connection: &Connection, old: i64) -> Result<i64, rusqlite::Error> {
        if let Some(id) = self.ids.sessions.get(&old) {
            return Ok(*id);
        }
        let sql = "INSERT INTO session (name, host, cwd, first_at, last_at) VALUES (?1, 'unknown', '', 0, 0)
                   ON CONFLICT (name) DO UPDATE SET host = host RETURNING id";
        let id = match self.how.dry_run {
            true => -old,
            false => connection.prepare_cached(sql)?.query_row([lost(old)], |row| row.get(0))?,
        };
        self.ids.sessions.insert(old, id);
        Ok(id)
    }

    fn call(&mut self, connection: &Connection, mut row: Salvaged) -> Result<(), rusqlite::Error> {
        let session = self.session_of(connection, row.integer("session").unwrap_or_default())?;
        row.set("session", Value::Integer(session));
        self.doubt(&mut row);
        let (key, print) = (row.text("key").to_owned(), row.text("call_print").to_owned());
        let sql = match key.is_empty() {
            false => {
                "SELECT id FROM call WHERE session = ?1 AND key = ?2 AND key <> '' AND ?3 IS NOT NULL AND ?4 IS NOT NULL"
            }
            true => {
                "SELECT id FROM call WHERE session = ?1 AND call_print = ?2 AND asked_at = ?3 AND agent = ?4 AND key = ''"
            }
        };
        let name = if key.is_empty() { &print } else { &key };
        let same: Vec<i64> = connection
            .prepare_cached(sql)?
            .query_map((session, name, row.integer("asked_at").unwrap_or(0), row.text("agent")), |row| {
                row.get(0)
            })?
            .collect::<Result<_, _>>()?;
        let id = match same.into_iter().find(|id| !self.ids.claimed.contains(id)) {
            Some(id) => {
                self.counts.known += 1;
                id
            }
            None => {
                self.counts.calls += 1;
                let id = self.insert(connection, "call", &mut row, "id")?;
                self.call_text(connection, &row, id)?;
                id
            }
        };
        self.ids.claimed.insert(id);
        self.ids.calls.insert(row.number, id);
        Ok(())
    }

    fn call_text(
        &mut self,
        connection: &Connection,
        call: &Salvaged,
        id: i64,
    ) -> Result<(), rusqlite::Error> {
        if self.how.dry_run {
            return Ok(());
        }
        if let Some(mut text) = self.salvage.numbered("call_text", call.number) {
            self.counts.mended += u64::from(text.is_mended);
            text.set("call", Value::Integer(id));
            return write_row(connection, "call_text", &text, "").map(|_| ());
        }
        // A call whose texts are gone is still told of, by its tool.
        let sql = "INSERT OR IGNORE INTO call_text (call, label, input, evidence, head, tail, omitted, verdict, life)
                   VALUES (?1, ?2, '', '', '', '', 0, '', '[]')";
        connection.prepare_cached(sql)?.execute((id, call.text("tool"))).map(|_| ())
    }

    fn lesson(&mut self, connection: &Connection, mut row: Salvaged) -> Result<(), rusqlite::Error> {
        let sql = "SELECT id, state FROM lesson WHERE cause = ?1 AND fix = ?2";
        let found: Option<(i64, String)> = connection
            .prepare_cached(sql)?
            .query_row((row.text("cause"), row.text("fix")), |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let state = row.text("state").to_owned();
        let is_shown = matches!(&*state, "seen" | "approved");
        if is_shown && !self.how.with_approvals {
            // It has to win here first, like one from elsewhere.
            row.set("state", Value::Text("imported".to_owned()));
            row.set("origin", Value::Text("imported".to_owned()));
        }
        let id = match found {
            Some((id, present)) => {
                // A person's word goes before what was only seen.
                let is_word = match &*state {
                    "approved" => self.how.with_approvals && present != "forgotten",
                    "seen" => self.how.with_approvals && present == "imported",
                    "forgotten" => present != "approved",
                    _ => false,
                };
                let is_news = is_word && present != state;
                self.counts.lessons += u64::from(is_news);
                self.counts.known += u64::from(!is_news);
                if !self.how.dry_run && (is_news || self.how.with_approvals) {
                    let sql = "UPDATE lesson SET state = CASE WHEN ?2 THEN ?3 ELSE state END,
                                 origin = CASE WHEN ?2 THEN ?7 ELSE origin END, wins = max(wins, ?4),
                                 first_at = min(first_at, ?5), won_at = max(won_at, ?6) WHERE id = ?1";
                    let number = |name| row.integer(name).unwrap_or_default();
                    let (wins, first, won) = (number("wins"), number("first_at"), number("won_at"));
                    let values = (id, is_news, &state, wins, first, won, row.text("origin"));
                    connection.prepare_cached(sql)?.execute(values)?;
                }
                id
            }
            None => {
                self.counts.lessons += 1;
                self.counts.withheld += u64::from(is_shown && !self.how.with_approvals);
                self.insert(connection, "lesson", &mut row, "id")?
            }
        };
        self.ids.lessons.insert(row.number, id);
        Ok(())
    }

    /// What a file says of how something came to be known counts as little as what it says of approvals.
    pub(super) fn doubt(&self, row: &mut Salvaged) {
        if !self.how.with_approvals {
            row.set("source", Value::Text(Source::Unknown.word().to_owned()));
        }
    }

    /// Adds a row, under the number it had if that is free.
    fn insert(
        &mut self,
        connection: &Connection,
        table: &str,
        row: &mut Salvaged,
        number: &str,
    ) -> Result<i64, rusqlite::Error> {
        if self.how.dry_run {
            return Ok(-row.number);
        }
        let sql = format!("SELECT 1 FROM {table} WHERE {number} = ?1");
        if row.number <= 0 || connection.prepare_cached(&sql)?.exists([row.number])? {
            row.set(number, Value::Null);
        }
        write_row(connection, table, row, "")?;
        Ok(connection.last_insert_rowid())
    }
}

/// The name of a session that could not be read.
fn lost(number: i64) -> String {
    format!("lost-session-{number}")
}

/// Writes a row as it is. Returns whether it was new; what is there already stays, or is dealt with by `conflict`.
pub(super) fn write_row(
    connection: &Connection,
    table: &str,
    row: &Salvaged,
    conflict: &str,
) -> Result<bool, rusqlite::Error> {
    let names = row.names();
    let values: Vec<String> = (1..=names.len()).map(|number| format!("?{number}")).collect();
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let ignore = if conflict.is_empty() { " OR IGNORE" } else { "" };
    let sql = format!(
        "INSERT{ignore} INTO {table} ({}) VALUES ({}) {conflict}",
        quoted.join(", "),
        values.join(", ")
    );
    let values = names.iter().map(|name| row.value(name));
    connection.prepare_cached(&sql)?.execute(params_from_iter(values)).map(|changed| changed > 0)
}
