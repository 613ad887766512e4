//! A session by the name its host gives it.

use rusqlite::{Connection, OptionalExtension};

use crate::rows::Lenient;

/// The number of a session in this database.
pub(crate) fn number(connection: &Connection, name: &str) -> Result<Option<i64>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT id FROM session WHERE name = ?1")?
        .query_row([name], |row| row.lenient(0))
        .optional()
}
