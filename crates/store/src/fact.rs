//! Single facts about the database, each under its name.

use rusqlite::{Connection, OptionalExtension};

use crate::rows::Lenient;

/// When the database was made, in milliseconds since 1970.
pub(crate) const MADE_AT: &str = "made_at";

/// A fact; `None` where it is not known.
pub(crate) fn read(connection: &Connection, name: &str) -> Result<Option<String>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT value FROM fact WHERE name = ?1")?
        .query_row([name], |row| row.lenient(0))
        .optional()
}

/// Writes a fact down, over what it was.
pub(crate) fn write(connection: &Connection, name: &str, value: &str) -> Result<(), rusqlite::Error> {
    let sql = "INSERT INTO fact (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    connection.prepare_cached(sql)?.execute((name, value)).map(|_| ())
}

/// Forgets a fact.
pub(crate) fn remove(connection: &Connection, name: &str) -> Result<(), rusqlite::Error> {
    connection.prepare_cached("DELETE FROM fact WHERE name = ?1")?.execute([name]).map(|_| ())
}
