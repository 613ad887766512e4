//! Opens the one database so that many short processes can share it, and makes it where there is none.
//!
//! The settings here were measured with 32 processes writing at once: without a busy timeout set first, or with deferred
//! transactions, most writes vanish; with the write-ahead log folded in by every process that closes, each costs ten times
//! as much.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::{Deed, StoreError};
use crate::filesystem::Filesystem;
use crate::migrate;
use crate::root::{self, Root};
use crate::rows::Lenient;

/// The log is folded into the database when it is longer than this. More makes the fold rarer, and with it the two flushes
/// it takes; less makes the log shorter to read for every process that finds itself alone, because such a process reads all
/// of it.
pub(crate) const LONGEST_LOG: u64 = 1024 * 1024;
/// The same while one process keeps very much at once: it would fold after every transaction, and wait for the disk each time.
pub(crate) const LONGEST_LOG_OF_MANY: u64 = 16 * 1024 * 1024;
/// How long a fold may wait for those who read. Whoever comes next can do it as well.
const FOLD_PATIENCE: Duration = Duration::from_millis(20);
/// More statements than there are.
const STATEMENTS: usize = 256;
/// How often a waiting process is worth waking: below this, SQLite gives up at once.
const LEAST_PATIENCE: Duration = Duration::from_millis(1);

/// What a caller is going to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read and write; the database is made if it is not there.
    Write,
    /// Only read; a newer format is tolerated.
    Read,
}

/// What a commit survives once it has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The end of the process: nothing is flushed before the log is folded.
    Process,
    /// A power cut: the log is flushed with the commit.
    Power,
}

/// Lets the next commit wait for the disk, or no longer.
pub(crate) fn flush_commits(connection: &Connection, flush: bool) -> Result<(), rusqlite::Error> {
    connection.execute_batch(match flush {
        true => "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;",
        false => "PRAGMA synchronous = NORMAL; PRAGMA fullfsync = OFF;",
    })
}

/// Opens the database of a folder. `now` names backups and what is set aside.
pub(crate) fn open(
    root: &Root,
    access: Access,
    patience: Duration,
    now: u64,
) -> Result<Connection, StoreError> {
    if let Filesystem::Network { name } = root.filesystem() {
        return Err(StoreError::Network { path: root.path().to_owned(), filesystem: name.clone() });
    }
    let path = root.timeline();
    root::check_file(&path)?;
    match connect(&path, patience) {
        Ok(connection) => checked(root, connection, access, patience, now),
        Err(error) if path.exists() => Err(error),
        Err(_) => match access {
            Access::Write => {
                make(root, patience, now)?;
                checked(root, connect(&path, patience)?, access, patience, now)
            }
            Access::Read => Err(StoreError::Missing { path: root.path().to_owned() }),
        },
    }
}

fn connect(path: &Path, patience: Duration) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let wrong = StoreError::sql(path);
    let connection = Connection::open_with_flags(path, flags).map_err(&wrong)?;
    // Before anything else is asked: a process that finds the log in need of recovery must wait for another that is at it.
    connection.busy_timeout(patience.max(LEAST_PATIENCE)).map_err(&wrong)?;
    // The last to close would fold the log in, flush and delete it, and every short process is the last.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(&wrong)?;
    // A statement that might use a partial index would be compiled once more as soon as its values are known, and a short
    // process runs each only once. Ours name the index's condition themselves.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(&wrong)?;
    // None of the triggers and views that such a file may hold is ours: they would take out, change or refuse what is written.
    for foreign in [DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW] {
        connection.set_db_config(foreign, false).map_err(&wrong)?;
    }
    // Whoever keeps many entries would otherwise compile most statements anew for each.
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection
        .execute_batch(
            "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY;
             PRAGMA foreign_keys = OFF; PRAGMA trusted_schema = OFF;",
        )
        .map_err(&wrong)?;
    Ok(connection)
}

/// Folds the log into the database once it is long.
///
/// SQLite's own way of doing this never empties the log here: it takes a second transaction of the same process to begin
/// it anew, and a short process makes only one.
pub(crate) fn fold_if_long(connection: &Connection, path: &Path, patience: Duration, longest: u64) {
    let [_, log, _] = parts(path);
    if fs::metadata(log).is_ok_and(|log| log.len() > longest) {
        let _somebody_else_will = fold(connection, FOLD_PATIENCE.min(patience));
        let _it_was_set_before = connection.busy_timeout(patience);
    }
}

/// Folds the log into the database and empties it.
pub(crate) fn fold(connection: &Connection, patience: Duration) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(patience)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Makes sure that this version knows the format.
fn checked(
    root: &Root,
    mut connection: Connection,
    access: Access,
    patience: Duration,
    now: u64,
) -> Result<Connection, StoreError> {
    let path = root.timeline();
    let found = migrate::format(&connection).map_err(StoreError::sql(&path))?;
    let known = migrate::newest(migrate::STEPS);
    if found > known && access == Access::Write {
        return Err(StoreError::TooNew { path, found, known });
    }
    if found < known {
        let _held = root.lock(patience)?;
        migrate::run(root, &mut connection, migrate::STEPS, now)?;
    }
    Ok(connection)
}

/// Makes the database aside and puts it in its place when it is complete, so that nobody ever meets half of it.
fn make(root: &Root, patience: Duration, now: u64) -> Result<(), StoreError> {
    let _held = root.lock(patience)?;
    let path = root.timeline();
    if path.exists() {
        return Ok(());
    }
    // The log of a database that is gone would be taken for that of the new one.
    if parts(&path).iter().any(|part| part.exists()) {
        set_aside(root, now)?;
    }
    let aside = root.path().join("timeline.db.new");
    remove_database(&aside);
    root::private(&aside).map_err(StoreError::io(Deed::Make, &aside))?;
    let wrong = StoreError::sql(&aside);
    let mut connection = Connection::open(&aside).map_err(&wrong)?;
    connection
        .execute_batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA synchronous = FULL;")
        .map_err(&wrong)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&wrong)?;
    transaction.execute_batch(&schema()).map_err(&wrong)?;
    transaction
        .execute("INSERT INTO fact (name, value) VALUES ('made_at', ?1)", [now.to_string()])
        .map_err(&wrong)?;
    transaction.pragma_update(None, "user_version", migrate::newest(migrate::STEPS)).map_err(&wrong)?;
    transaction.commit().map_err(&wrong)?;
    // The log comes last, when there is nothing to put into it: closing folds a log in, and swallows every error of that.
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).map_err(&wrong)?;
    connection.close().map_err(|(_, error)| wrong(error))?;
    fs::rename(&aside, &path).map_err(StoreError::io(Deed::PutInPlace, &path))?;
    root.flush();
    Ok(())
}

/// All tables.
fn schema() -> String {
    let steps = migrate::STEPS.iter().flat_map(|step| step.sql.iter().copied());
    let parts: Vec<String> = [include_str!("schema.sql")].into_iter().chain(steps).map(bare).collect();
    parts.join(" ")
}

/// Are the tables those of a format? A name that was damaged is a sound name to SQLite.
pub(crate) fn has_tables_of(connection: &Connection, format: u32) -> Result<bool, rusqlite::Error> {
    let expected = of_format(format)?;
    let tables = |connection: &Connection| -> Result<Vec<(String, String)>, rusqlite::Error> {
        let sql = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name";
        connection.prepare(sql)?.query_map([], |row| Ok((row.lenient(0)?, row.lenient(1)?)))?.collect()
    };
    Ok(tables(connection)? == tables(&expected)?)
}

/// An empty database of a format.
fn of_format(format: u32) -> Result<Connection, rusqlite::Error> {
    let made = Connection::open_in_memory()?;
    made.execute_batch(&bare(include_str!("schema.sql")))?;
    for step in migrate::STEPS.iter().filter(|step| step.to <= format) {
        step.sql.iter().try_for_each(|part| made.execute_batch(&bare(part)))?;
    }
    Ok(made)
}

/// What is in it that no format knows, such as `trigger x`.
pub(crate) fn foreign(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let named = |connection: &Connection| -> Result<Vec<String>, rusqlite::Error> {
        let sql =
            "SELECT type || ' ' || name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY rowid";
        connection.prepare(sql)?.query_map([], |row| row.lenient(0))?.collect()
    };
    let ours = named(&of_format(migrate::newest(migrate::STEPS))?)?;
    Ok(named(connection)?.into_iter().filter(|name| !ours.contains(name)).collect())
}

/// SQL without its comments: SQLite keeps the words it is given for a table and reads them anew in every process.
pub(crate) fn bare(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split_once("--").map_or(line, |(sql, _)| sql).trim());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A database with the same tables that lies nowhere.
pub(crate) fn in_memory() -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(&schema())?;
    Ok(connection)
}

/// How SQLite would answer a question.
#[cfg(test)]
pub(crate) fn plan(connection: &Connection, sql: &str) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("SQL");
    let unknown = vec![Option::<i64>::None; statement.parameter_count()];
    let steps = statement.query_map(rusqlite::params_from_iter(unknown), |row| row.lenient::<String>(3));
    steps.expect("a plan").flatten().collect::<Vec<_>>().join("; ")
}

/// Removes a database that was never in use.
fn remove_database(path: &Path) {
    for part in parts(path) {
        let _it_may_not_be_there = fs::remove_file(part);
    }
}

/// The files that make up a database.
fn parts(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    })
}

/// Looks again at a database that was called damaged. A single such answer proves nothing: a read that fails once is
/// reported in the same words. What is really damaged is set aside under its own name, and is kept.
///
/// Returns where it was put, or `None` where the database is sound after all.
pub(crate) fn set_aside_if_damaged(
    root: &Root,
    patience: Duration,
    now: u64,
) -> Result<Option<PathBuf>, StoreError> {
    let _held = root.lock(patience)?;
    let path = root.timeline();
    if !path.exists() || is_sound(&path, patience)? || is_sound(&path, patience)? {
        return Ok(None);
    }
    set_aside(root, now).map(Some)
}

/// The same without a look: whoever calls has had a closer one.
pub(crate) fn put_aside(root: &Root, patience: Duration, now: u64) -> Result<PathBuf, StoreError> {
    let _held = root.lock(patience)?;
    set_aside(root, now)
}

/// Moves whatever is left of a database out of the way, the database itself last: without it, its log is nobody's.
fn set_aside(root: &Root, now: u64) -> Result<PathBuf, StoreError> {
    root::make_folder(&root.damaged())?;
    let folder = root.damaged().join(now.to_string());
    root::make_folder(&folder)?;
    for part in parts(&root.timeline()).into_iter().rev() {
        if let (true, Some(name)) = (part.exists(), part.file_name()) {
            let target = folder.join(name);
            fs::rename(&part, &target).map_err(StoreError::io(Deed::SetAside, &part))?;
        }
    }
    Ok(folder)
}

/// Do the first bytes of the file name a way of reading or writing that SQLite does not know? It then takes the file for one that
/// may only be read.
pub(crate) fn has_bad_header(path: &Path) -> bool {
    let mut header = [0; 20];
    let read = fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut header));
    read.is_ok() && header[18..].iter().any(|version| !(1..=2).contains(version))
}

/// Reads the whole database and says whether it fits together. That another process holds it is no answer, and is an error.
fn is_sound(path: &Path, patience: Duration) -> Result<bool, StoreError> {
    let answer = connect(path, patience).and_then(|connection| {
        let answer = connection.query_row("PRAGMA quick_check(1)", [], |row| row.lenient::<String>(0));
        let format = migrate::format(&connection).map_err(StoreError::sql(path))?;
        let fits = format > migrate::newest(migrate::STEPS)
            || has_tables_of(&connection, format).map_err(StoreError::sql(path))?;
        answer.map(|answer| (answer, format, fits)).map_err(StoreError::sql(path))
    });
    match answer {
        // An empty file is a sound database to SQLite, but none of ours.
        Ok((answer, format, fits)) => {
            Ok(answer == "ok" && format >= migrate::FIRST && fits && !has_bad_header(path))
        }
        Err(StoreError::Damaged { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::{OptionalExtension, StatementStatus};

    use super::*;

    #[test]
    fn a_statement_that_uses_a_partial_index_is_compiled_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("timeline.db");
        Connection::open(&path).unwrap().execute_batch(&schema()).unwrap();
        let connection = connect(&path, Duration::ZERO).unwrap();
        let sql = "SELECT id FROM call WHERE session = ?1 AND key = ?2 AND key <> ''";
        let mut statement = connection.prepare(sql).unwrap();
        let found = statement.query_row((1, "toolu_1"), |row| row.get::<_, i64>(0)).optional();
        assert_eq!((found, statement.get_status(StatementStatus::RePrepare)), (Ok(None), 0));
    }
}
