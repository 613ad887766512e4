//! Which hooks of which agent program were heard, so that silence can be told from health.

use rusqlite::Connection;

use crate::entry::Who;
use crate::error::StoreError;
use crate::rows::Lenient;
use crate::store::Store;

/// A hook that was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The agent program.
    pub host: String,
    /// Its own name for the hook.
    pub hook: String,
    /// When it was heard first, in milliseconds since 1970.
    pub first_at: u64,
    /// And last.
    pub last_at: u64,
    /// How often.
    pub count: u64,
}

/// Counts the hook that tells of something; nothing where it has told of something else already.
pub(crate) fn note(connection: &Connection, who: &Who) -> Result<(), rusqlite::Error> {
    if who.hook.is_empty() {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO heard (host, hook, first_at, last_at, count) VALUES (?1, ?2, ?3, ?3, 1)
             ON CONFLICT (host, hook) DO UPDATE SET last_at = max(last_at, excluded.last_at), count = count + 1",
        )?
        .execute((&*who.host, &*who.hook, who.at.cast_signed()))
        .map(|_| ())
}

impl Store {
    /// All hooks that were ever heard.
    pub fn heard(&self) -> Result<Vec<Heard>, StoreError> {
        let read = || {
            let mut statement = self
                .connection
                .prepare("SELECT host, hook, first_at, last_at, count FROM heard ORDER BY host, hook")?;
            let rows = statement.query_map([], |row| {
                let number = |column| row.lenient::<i64>(column).map(i64::unsigned_abs);
                Ok(Heard {
                    host: row.lenient(0)?,
                    hook: row.lenient(1)?,
                    first_at: number(2)?,
                    last_at: number(3)?,
                    count: number(4)?,
                })
            })?;
            rows.collect::<Result<Vec<_>, rusqlite::Error>>()
        };
        read().map_err(self.wrong())
    }
}
