//! How far transcripts were read, so that the next reading goes on from there. A mark is written in the transaction of the
//! calls before it: what is recorded and what counts as read are never apart.

use std::collections::HashMap;

use rusqlite::Connection;
use unstuck_judge::lesson::Fix;

use crate::error::StoreError;
use crate::lesson::fix_from_json;
use crate::rows::Lenient;
use crate::store::Store;

/// The table of transcripts, which format 2 brought.
pub(crate) const TABLE: &str = include_str!("scanned.sql");

/// How far a file was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanned {
    /// A print of its beginning.
    pub head: u64,
    /// So many bytes need not be read again.
    pub read: u64,
    /// Its size when it was last read.
    pub size: u64,
}

/// A lesson as it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundLesson {
    /// Its number.
    pub id: i64,
    /// What failed, in a word or two.
    pub program: String,
    /// The cause's kind.
    pub kind: String,
    /// The line that showed the cause.
    pub title: String,
    /// What was seen to help.
    pub fix: Fix,
    /// How often it did.
    pub wins: u64,
    /// Why nobody is shown it before a person has approved it.
    pub caution: Option<String>,
}

impl Store {
    /// All transcripts that were read, by what names their file.
    pub fn scanned(&self) -> Result<HashMap<String, Scanned>, StoreError> {
        let wrong = self.wrong();
        let mut statement =
            self.connection.prepare("SELECT file, head, read, size FROM scanned").map_err(&wrong)?;
        let rows = statement.query_map([], |row| {
            let number = |at: usize| row.lenient::<i64>(at).map(i64::cast_unsigned);
            Ok((row.lenient(0)?, Scanned { head: number(1)?, read: number(2)?, size: number(3)? }))
        });
        rows.and_then(Iterator::collect).map_err(&wrong)
    }

    /// The number of the newest lesson; 0 where there is none.
    pub fn newest_lesson(&self) -> Result<i64, StoreError> {
        self.connection
            .query_row("SELECT ifnull(max(id), 0) FROM lesson", [], |row| row.lenient(0))
            .map_err(self.wrong())
    }

    /// How many lessons are newer than the one of this number, and of those the ones that helped most often.
    pub fn lessons_after(&self, newest: i64, most: usize) -> Result<(u64, Vec<FoundLesson>), StoreError> {
        let wrong = self.wrong();
        let those = "FROM lesson WHERE id > ?1 AND state <> 'merged'";
        let count: i64 = self
            .connection
            .query_row(&format!("SELECT count(*) {those}"), [newest], |row| row.lenient(0))
            .map_err(&wrong)?;
        let sql = format!(
            "SELECT id, program, kind, title, body, wins, caution {those} ORDER BY wins DESC, id LIMIT ?2"
        );
        let mut statement = self.connection.prepare(&sql).map_err(&wrong)?;
        let rows = statement.query_map((newest, i64::try_from(most).unwrap_or(i64::MAX)), |row| {
            Ok(FoundLesson {
                id: row.lenient(0)?,
                program: row.lenient(1)?,
                kind: row.lenient(2)?,
                title: row.lenient(3)?,
                fix: fix_from_json(&row.lenient::<String>(4)?).unwrap_or_default(),
                wins: row.lenient::<i64>(5)?.unsigned_abs(),
                caution: row.lenient(6)?,
            })
        });
        let found = rows.and_then(Iterator::collect).map_err(&wrong)?;
        Ok((count.unsigned_abs(), found))
    }
}

/// Writes down how far a file was read.
pub(crate) fn note(connection: &Connection, file: &str, scanned: &Scanned) -> Result<(), rusqlite::Error> {
    let Scanned { head, read, size } = *scanned;
    connection
        .prepare_cached(
            "INSERT INTO scanned VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET head = excluded.head, read = excluded.read, size = excluded.size",
        )?
        .execute((file, head.cast_signed(), read.cast_signed(), size.cast_signed()))
        .map(|_| ())
}
