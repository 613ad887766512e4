//! Formats of the database: forward only, one step after the other, with a copy made before the first.

use rusqlite::{Connection, TransactionBehavior};

use crate::chain;
use crate::database;
use crate::error::{Deed, StoreError};
use crate::lesson;
use crate::root::{self, Root};
use crate::rows::Lenient;
use crate::scanned;
use crate::server_tools;

/// One step forward: the SQL, in parts, that turns format `to - 1` into format `to`.
pub(crate) struct Step {
    pub(crate) to: u32,
    pub(crate) sql: &'static [&'static str],
}

/// All steps there are. Format 1 is the first, and is made by `schema.sql`. A new database takes the steps as well, so what a
/// step makes stands in one place.
pub(crate) const STEPS: &[Step] = &[
    Step { to: 2, sql: &[lesson::TABLES, scanned::TABLE] },
    Step { to: 3, sql: &[server_tools::TABLE] },
    Step { to: 4, sql: &[chain::TABLES] },
    Step { to: 5, sql: &[lesson::SOURCES] },
];

/// The first format there was.
pub(crate) const FIRST: u32 = 1;

/// The newest format that some steps lead to.
pub(crate) fn newest(steps: &[Step]) -> u32 {
    steps.last().map_or(FIRST, |step| step.to)
}

/// The format of a database.
pub(crate) fn format(connection: &Connection) -> Result<u32, rusqlite::Error> {
    connection.query_row("PRAGMA user_version", [], |row| row.lenient(0))
}

/// Brings a database forward. Whoever calls holds the folder's lock.
pub(crate) fn run(
    root: &Root,
    connection: &mut Connection,
    steps: &[Step],
    now: u64,
) -> Result<(), StoreError> {
    let path = root.timeline();
    let wrong = StoreError::sql(&path);
    // Another process may have done it while this one waited for the lock.
    let found = format(connection).map_err(&wrong)?;
    if found > newest(steps) {
        return Err(StoreError::TooNew { path, found, known: newest(steps) });
    }
    if found == newest(steps) {
        return Ok(());
    }
    if found < FIRST {
        return Err(StoreError::Damaged { path, why: "it has no format number".to_owned() });
    }
    back_up(root, connection, found, now)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&wrong)?;
    for step in steps.iter().filter(|step| step.to > found) {
        for part in step.sql {
            transaction.execute_batch(&database::bare(part)).map_err(|error| match wrong(error) {
                // What a step makes is there already: the number is not that of the tables.
                StoreError::Sql { path, source } => StoreError::Damaged { path, why: source.to_string() },
                other => other,
            })?;
        }
    }
    transaction.pragma_update(None, "user_version", newest(steps)).map_err(&wrong)?;
    transaction.commit().map_err(&wrong)
}

fn back_up(root: &Root, connection: &Connection, format: u32, now: u64) -> Result<(), StoreError> {
    root::make_folder(&root.backups())?;
    let target = root.backups().join(format!("timeline-format{format}-{now}.db"));
    // SQLite would make it readable for everyone; what it finds it keeps.
    root::private(&target).map_err(StoreError::io(Deed::Make, &target))?;
    connection
        .execute("VACUUM INTO ?1", [target.to_string_lossy()])
        .map(|_| ())
        .map_err(StoreError::sql(&target))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::database::Access;

    const NEXT: &[Step] =
        &[Step { to: 6, sql: &["ALTER TABLE session ADD COLUMN colour TEXT NOT NULL DEFAULT ''"] }];

    #[test]
    fn a_step_forward_keeps_a_copy_and_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(&folder.path().join("state"), None).unwrap();
        let mut connection = database::open(&root, Access::Write, Duration::from_secs(1), 7).unwrap();
        connection.execute("INSERT INTO session VALUES (1, 'a', 'generic', '', 1, 2, 0)", []).unwrap();
        run(&root, &mut connection, NEXT, 8).unwrap();
        run(&root, &mut connection, NEXT, 9).unwrap();
        assert_eq!(format(&connection).unwrap(), 6);
        let colour: String = connection
            .query_row("SELECT colour FROM session WHERE name = 'a'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(colour, "");
        let copies: Vec<_> = std::fs::read_dir(root.backups()).unwrap().flatten().collect();
        let [copy] = &copies[..] else { panic!("expected one copy, found {copies:?}") };
        let copy = Connection::open(copy.path()).unwrap();
        assert_eq!(format(&copy).unwrap(), 5);
        assert_eq!(
            copy.query_row("SELECT count(*) FROM session", [], |row| row.get::<_, u32>(0)).unwrap(),
            1
        );
    }

    #[test]
    fn a_newer_format_is_read_but_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(&folder.path().join("state"), None).unwrap();
        let connection = database::open(&root, Access::Write, Duration::from_secs(1), 7).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        drop(connection);
        let refused = database::open(&root, Access::Write, Duration::from_secs(1), 8).unwrap_err();
        assert!(refused.to_string().ends_with("has format 99, this version writes up to 5"), "{refused}");
        database::open(&root, Access::Read, Duration::from_secs(1), 8).unwrap();
    }
}
