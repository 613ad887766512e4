//! Keeps the database from growing for ever: the oldest goes first, in slices so small that no hook has to wait for them.
//!
//! Rows go in the order in which they were written, as long as the next one is old enough. An old transcript that was
//! recorded yesterday is therefore not gone today, and finding nothing to do costs one look at each table. In a store that
//! is itself younger than a limit, that limit has no meaning yet.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};
use unstuck_wire::{clock, time};

use crate::chain;
use crate::copies::{self, Copy};
use crate::error::StoreError;
use crate::fact;
use crate::lesson_removal;
use crate::problem::DAY_MS;
use crate::removal::{self, Counts, Removed, SLICE};
use crate::rows::Lenient;
use crate::server_tools;
use crate::spool::{self, Spool};
use crate::store::Store;
use crate::tool_errors;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// A log smaller than this is left to the hooks, which fold it in on their way.
const LOG_LARGE: u64 = 4 * 1024 * 1024;
/// How often a log that others fold just now is tried again, and after what pause.
const FOLD_TRIES: u32 = 10;
const FOLD_PAUSE: Duration = Duration::from_millis(20);
/// No more moments than these are looked at to see how the clock went.
const TIMES_MAX: usize = 100_000;
/// So many free pages are given back to the disk under one write lock.
const PAGES: u32 = 256;

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Events of the timeline.
    pub events: Duration,
    /// Calls, and alerts and problems with them.
    pub calls: Duration,
    /// What a session that fell silent has on the ladder.
    pub standing: Duration,
    /// How many things of one sort a session may have on the ladder.
    pub standing_rows: u32,
    /// Lessons that have not won, counted from their last win. What a person approved or forgot stays.
    pub lessons: Duration,
    /// How many lessons there may be; those that won longest ago go first.
    pub lesson_rows: u32,
    /// How large the database may be, in bytes.
    pub max_size: u64,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention {
            events: 30 * DAY,
            calls: 180 * DAY,
            standing: 7 * DAY,
            standing_rows: 2048,
            lessons: 365 * DAY,
            lesson_rows: 200_000,
            max_size: 1 << 30,
        }
    }
}

/// What is older than these moments goes.
struct Cuts {
    events: i64,
    calls: i64,
    standing: i64,
    lessons: i64,
}

/// What became of a slice.
enum Slice {
    Nothing,
    Some(Removed),
}

impl Slice {
    /// A slice that removed nothing ends the work.
    fn of(removed: Removed) -> Slice {
        if removed.total() == 0 { Slice::Nothing } else { Slice::Some(removed) }
    }

    /// This slice, or the next where there was nothing to remove.
    fn or(self, next: impl FnOnce() -> Result<Slice, StoreError>) -> Result<Slice, StoreError> {
        match self {
            Slice::Nothing => next(),
            Slice::Some(removed) => Ok(Slice::Some(removed)),
        }
    }
}

/// How large the files are, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// The database.
    pub database: u64,
    /// Its log.
    pub log: u64,
    /// Pages of the database that hold nothing.
    pub free: u64,
    /// What waits in the spool.
    pub spool: u64,
}

impl Store {
    /// Removes what is too old or too much, until nothing is left to do or `goes_on` says no; it is asked before each slice.
    pub fn expire(
        &mut self,
        retention: &Retention,
        now: u64,
        goes_on: &mut dyn FnMut(&Removed) -> bool,
    ) -> Result<Removed, StoreError> {
        let Cuts { events, calls, standing, lessons } = self.cuts(retention, now)?;
        let now = now.cast_signed();
        let mut removed = Removed::default();
        let mut gone = Vec::new();
        while goes_on(&removed) {
            let slice = self
                .events_slice(events, now)?
                .or(|| self.calls_slice(calls, now))?
                .or(|| self.standing_slice(standing))?
                .or(|| self.rest_slice(calls, &mut gone))?
                .or(|| self.lessons_slice(lessons, retention.lesson_rows))?
                .or(|| self.size_slice(retention.max_size))?;
            match slice {
                Slice::Nothing => break,
                Slice::Some(more) => removed += more,
            }
        }
        for name in gone {
            tool_errors::remove(self.root(), &name)?;
        }
        Ok(removed)
    }

    /// Lets each session keep only the newest things it has on the ladder.
    pub fn cap_standing(
        &mut self,
        rows: u32,
        goes_on: &mut dyn FnMut(&Removed) -> bool,
    ) -> Result<Removed, StoreError> {
        let mut removed = Removed::default();
        let sql = "SELECT session, part FROM standing GROUP BY session, part HAVING count(*) > ?1";
        let crowded: Vec<(i64, i64)> = self
            .connection
            .prepare(sql)
            .and_then(|mut statement| {
                statement.query_map([rows], |row| Ok((row.lenient(0)?, row.lenient(1)?)))?.collect()
            })
            .map_err(self.wrong())?;
        for (session, part) in crowded {
            loop {
                if !goes_on(&removed) {
                    return Ok(removed);
                }
                let gone = self.write(|connection| {
                    let sql = "DELETE FROM standing WHERE session = ?1 AND part = ?2 AND print IN
                                 (SELECT print FROM standing WHERE session = ?1 AND part = ?2
                                  ORDER BY tick DESC, print LIMIT ?4 OFFSET ?3)";
                    connection.prepare_cached(sql)?.execute((session, part, rows, SLICE))
                })?;
                if gone == 0 {
                    break;
                }
                removed.standing += gone as u64;
            }
        }
        Ok(removed)
    }

    fn cuts(&self, retention: &Retention, now: u64) -> Result<Cuts, StoreError> {
        let made_at = made_at(&self.connection).map_err(self.wrong())?;
        let cut = |keep: Duration| -> Result<i64, StoreError> {
            let now = self.credible(now, keep)?;
            let cut = now.checked_sub(time::span_ms(keep));
            // Nothing is older than the store.
            Ok(cut.filter(|cut| made_at <= *cut).unwrap_or_default().cast_signed())
        };
        Ok(Cuts {
            events: cut(retention.events)?,
            calls: cut(retention.calls)?,
            standing: cut(retention.standing)?,
            lessons: cut(retention.lessons)?,
        })
    }

    /// The moment against which the age of what is kept for `limit` is measured: a clock that jumps ahead empties nothing.
    fn credible(&self, now: u64, limit: Duration) -> Result<u64, StoreError> {
        let times = recorded_at(&self.connection, now, limit).map_err(self.wrong())?;
        Ok(clock::credible(now, &times, limit))
    }

    fn events_slice(&mut self, cut: i64, now: i64) -> Result<Slice, StoreError> {
        let sql = "SELECT at FROM event ORDER BY seq LIMIT 1";
        self.slice(sql, cut, now, |connection| {
            let ids = leading(connection, "SELECT seq, at FROM event ORDER BY seq LIMIT ?1", cut, now)?;
            remove_events(connection, ids.last().copied())
        })
    }

    fn calls_slice(&mut self, cut: i64, now: i64) -> Result<Slice, StoreError> {
        let sql = "SELECT coalesce(ended_at, asked_at) FROM call ORDER BY id LIMIT 1";
        self.slice(sql, cut, now, |connection| {
            let sql = "SELECT id, coalesce(ended_at, asked_at) FROM call ORDER BY id LIMIT ?1";
            removal::calls(connection, &leading(connection, sql, cut, now)?, Counts::Keep)
        })
    }

    /// The ladder of sessions that fell silent.
    fn standing_slice(&mut self, cut: i64) -> Result<Slice, StoreError> {
        let silent = "SELECT last_at FROM session WHERE last_at < ?1
                        AND EXISTS (SELECT 1 FROM standing WHERE session = session.id) LIMIT 1";
        let found: Option<i64> = self
            .connection
            .prepare_cached(silent)
            .and_then(|mut statement| statement.query_row([cut], |row| row.lenient(0)).optional())
            .map_err(self.wrong())?;
        if found.is_none() {
            return Ok(Slice::Nothing);
        }
        let gone = self.write(|connection| {
            let sql = "DELETE FROM standing WHERE (session, part, print) IN
                         (SELECT standing.session, part, print FROM session JOIN standing ON standing.session = session.id
                          WHERE last_at < ?1 LIMIT ?2)";
            connection.prepare_cached(sql)?.execute((cut, SLICE))
        })?;
        Ok(Slice::of(Removed { standing: gone as u64, ..Removed::default() }))
    }

    /// Alerts, counts by day, tools that nobody offers any more, and sessions of which nothing is left.
    fn rest_slice(&mut self, cut: i64, gone: &mut Vec<String>) -> Result<Slice, StoreError> {
        let day = cut / DAY_MS.cast_signed();
        let any = "SELECT EXISTS (SELECT 1 FROM alert WHERE at < ?1) OR EXISTS (SELECT 1 FROM problem_day WHERE day < ?2)
                     OR EXISTS (SELECT 1 FROM server_tool WHERE last_at < ?1)
                     OR EXISTS (SELECT 1 FROM session WHERE last_at < ?1
                                AND NOT EXISTS (SELECT 1 FROM call WHERE call.session = session.id)
                                AND NOT EXISTS (SELECT 1 FROM event WHERE event.session = session.id))";
        let any: bool = self
            .connection
            .prepare_cached(any)
            .and_then(|mut statement| statement.query_row((cut, day), |row| row.lenient(0)))
            .map_err(self.wrong())?;
        if !any {
            return Ok(Slice::Nothing);
        }
        let (removed, names) = self.write(|connection| {
            let alerts = "DELETE FROM alert WHERE id IN (SELECT id FROM alert WHERE at < ?1 LIMIT ?2)";
            let alerts = connection.prepare_cached(alerts)?.execute((cut, SLICE))?;
            let days = "DELETE FROM problem_day WHERE (cause, day) IN
                          (SELECT cause, day FROM problem_day WHERE day < ?1 LIMIT ?2)";
            connection.prepare_cached(days)?.execute((day, SLICE))?;
            server_tools::forget(connection, cut, SLICE)?;
            let sessions = "SELECT id FROM session WHERE last_at < ?1
                              AND NOT EXISTS (SELECT 1 FROM call WHERE call.session = session.id)
                              AND NOT EXISTS (SELECT 1 FROM event WHERE event.session = session.id) LIMIT ?2";
            let ids: Vec<i64> = connection
                .prepare_cached(sessions)?
                .query_map((cut, SLICE), |row| row.lenient(0))?
                .collect::<Result<_, _>>()?;
            let (mut removed, names) = removal::empty_sessions(connection, &ids)?;
            removed.alerts = alerts as u64;
            lesson_removal::forget_sources(connection)?;
            Ok((removed, names))
        })?;
        gone.extend(names);
        Ok(Slice::Some(removed))
    }

    /// Lessons that nobody has needed for long, and those beyond what there may be.
    fn lessons_slice(&mut self, cut: i64, most: u32) -> Result<Slice, StoreError> {
        let found = lesson_removal::expired(&self.connection, cut, most).map_err(self.wrong())?;
        if found.is_empty() {
            return Ok(Slice::Nothing);
        }
        self.write(|connection| lesson_removal::remove(connection, &found))?;
        Ok(Slice::Some(Removed { lessons: found.len() as u64, ..Removed::default() }))
    }

    /// The oldest of all, while the database is larger than it may be.
    fn size_slice(&mut self, max: u64) -> Result<Slice, StoreError> {
        let size = self.size()?;
        if size.database.saturating_sub(size.free) <= max {
            return Ok(Slice::Nothing);
        }
        let front = |sql: &str| -> Result<Option<i64>, rusqlite::Error> {
            self.connection.prepare_cached(sql)?.query_row([], |row| row.lenient(0)).optional()
        };
        let event = front("SELECT at FROM event ORDER BY seq LIMIT 1").map_err(self.wrong())?;
        let call = front("SELECT coalesce(ended_at, asked_at) FROM call ORDER BY id LIMIT 1")
            .map_err(self.wrong())?;
        let ids = |connection: &Connection, sql: &str| -> Result<Vec<i64>, rusqlite::Error> {
            connection.prepare_cached(sql)?.query_map([SLICE], |row| row.lenient(0))?.collect()
        };
        let removed = match (event, call) {
            (None, None) => return Ok(Slice::Nothing),
            (Some(event), call) if call.is_none_or(|call| event <= call) => self.write(|connection| {
                let ids = ids(connection, "SELECT seq FROM event ORDER BY seq LIMIT ?1")?;
                remove_events(connection, ids.last().copied())
            })?,
            (_, _) => self.write(|connection| {
                let ids = ids(connection, "SELECT id FROM call ORDER BY id LIMIT ?1")?;
                removal::calls(connection, &ids, Counts::Keep)
            })?,
        };
        Ok(Slice::of(removed))
    }

    /// Removes a slice where the first row is older than `cut`.
    fn slice(
        &mut self,
        first: &str,
        cut: i64,
        now: i64,
        work: impl FnOnce(&Connection) -> Result<Removed, rusqlite::Error>,
    ) -> Result<Slice, StoreError> {
        let first: Option<i64> = self
            .connection
            .prepare_cached(first)
            .and_then(|mut statement| statement.query_row([], |row| row.lenient(0)).optional())
            .map_err(self.wrong())?;
        match first {
            Some(at) if at < cut || at > now => Ok(Slice::of(self.write(work)?)),
            Some(_) | None => Ok(Slice::Nothing),
        }
    }

    /// How large the files are.
    pub fn size(&self) -> Result<Size, StoreError> {
        let number = |pragma: &str| -> Result<u64, StoreError> {
            self.connection
                .pragma_query_value(None, pragma, |row| row.lenient::<i64>(0))
                .map(i64::unsigned_abs)
                .map_err(self.wrong())
        };
        let page = number("page_size")?;
        let log = fs::metadata(self.log_path()).map_or(0, |found| found.len());
        let (database, free) = (number("page_count")? * page, number("freelist_count")? * page);
        Ok(Size { database, log, free, spool: Spool::of(self.root()).size() })
    }

    fn log_path(&self) -> PathBuf {
        let mut name = self.root().timeline().into_os_string();
        name.push("-wal");
        PathBuf::from(name)
    }

    /// Folds a large log into the database as far as nobody has to wait for it. Says whether it was large.
    pub fn fold_if_large(&self) -> Result<bool, StoreError> {
        let is_large = fs::metadata(self.log_path()).is_ok_and(|found| found.len() > LOG_LARGE);
        if is_large {
            self.connection
                .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
                .map_err(self.wrong())?;
        }
        Ok(is_large)
    }

    /// Folds the whole log into the database and empties it. `false` where another process still reads from it.
    pub fn fold_all(&self) -> Result<bool, StoreError> {
        let fold = || -> Result<bool, rusqlite::Error> {
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
                row.lenient(0).map(|busy: bool| !busy)
            })
        };
        if fold().map_err(self.wrong())? {
            return Ok(true);
        }
        // SQLite waits for readers, but not for another process that is folding, as hooks do in passing.
        self.connection.busy_timeout(FOLD_PAUSE).map_err(self.wrong())?;
        let folded = (0..FOLD_TRIES).try_fold(false, |is_folded, _| match is_folded {
            true => Ok(true),
            false => {
                thread::sleep(FOLD_PAUSE);
                fold()
            }
        });
        self.connection.busy_timeout(self.patience).and(folded).map_err(self.wrong())
    }

    /// Gives pages that hold nothing back to the disk, a few at a time.
    pub fn give_back(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<(), StoreError> {
        let mut before = u64::MAX;
        while goes_on() {
            let free = self.size()?.free;
            // A page that cannot be moved is no reason to try for ever.
            if free == 0 || free >= before {
                break;
            }
            before = free;
            let mut statement = self
                .connection
                .prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))
                .map_err(self.wrong())?;
            let mut rows = statement.query([]).map_err(self.wrong())?;
            while rows.next().map_err(self.wrong())?.is_some() {}
        }
        Ok(())
    }

    /// Reads the whole database and says whether it fits together.
    pub fn check(&self) -> Result<(), StoreError> {
        let answer: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.lenient(0))
            .map_err(self.wrong())?;
        match answer.as_str() {
            "ok" => Ok(()),
            _ => Err(StoreError::Damaged { path: self.root().timeline(), why: answer }),
        }
    }

    /// Removes copies of the database that are older than calls are kept, and names them; the newest stays.
    pub fn expire_copies(&self, retention: &Retention, now: u64) -> Result<Vec<PathBuf>, StoreError> {
        let copies = self.old_copies(retention, now)?;
        copies.iter().try_for_each(copies::remove)?;
        Ok(copies.into_iter().map(|copy| copy.path).collect())
    }

    /// The copies that [`Store::expire_copies`] would remove.
    pub fn expirable_copies(&self, retention: &Retention, now: u64) -> Result<Vec<PathBuf>, StoreError> {
        Ok(self.old_copies(retention, now)?.into_iter().map(|copy| copy.path).collect())
    }

    fn old_copies(&self, retention: &Retention, now: u64) -> Result<Vec<Copy>, StoreError> {
        let cut = self.credible(now, retention.calls)?.saturating_sub(time::span_ms(retention.calls));
        let mut copies = copies::all(self.root())?;
        copies.pop();
        copies.retain(|copy| copy.made_at < cut);
        Ok(copies)
    }

    /// Removes empty files of the spool that nobody writes to any more.
    pub fn sweep_spool(&self) -> u64 {
        spool::remove_empty(&self.root().spool())
    }

    /// What [`Store::expire`] would remove for its age, counted without removing it.
    pub fn expirable(&self, retention: &Retention, now: u64) -> Result<Removed, StoreError> {
        let cuts = self.cuts(retention, now)?;
        let count = |sql: &str, cut: i64| -> Result<u64, StoreError> {
            self.connection
                .prepare(sql)
                .and_then(|mut statement| statement.query_row([cut], |row| row.lenient::<i64>(0)))
                .map(i64::unsigned_abs)
                .map_err(self.wrong())
        };
        let events = "SELECT count(*) FROM event WHERE seq <
                        coalesce((SELECT min(seq) FROM event WHERE at >= ?1), 9223372036854775807)";
        let calls = "SELECT count(*) FROM call WHERE id <
                       coalesce((SELECT min(id) FROM call WHERE coalesce(ended_at, asked_at) >= ?1), 9223372036854775807)";
        let standing =
            "SELECT count(*) FROM standing WHERE session IN (SELECT id FROM session WHERE last_at < ?1)";
        let sessions = "SELECT count(*) FROM session WHERE last_at < ?1
                          AND NOT EXISTS (SELECT 1 FROM call WHERE call.session = session.id AND ended_at >= ?1)";
        Ok(Removed {
            calls: count(calls, cuts.calls)?,
            events: count(events, cuts.events)?,
            sessions: count(sessions, cuts.calls)?,
            standing: count(standing, cuts.standing)?,
            problems: count("SELECT count(*) FROM problem WHERE last_at < ?1", cuts.calls)?,
            alerts: count("SELECT count(*) FROM alert WHERE at < ?1", cuts.calls)?,
            lessons: count(lesson_removal::EXPIRED, cuts.lessons)?,
        })
    }
}

/// The rows at the front that are older than `cut`. Rows of the future, written while the clock was wrong, do not keep older
/// ones behind them from going, and go with them.
fn leading(connection: &Connection, sql: &str, cut: i64, now: i64) -> Result<Vec<i64>, rusqlite::Error> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([SLICE])?;
    let (mut ids, mut old) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let at: i64 = row.lenient(1)?;
        if (cut..=now).contains(&at) {
            break;
        }
        ids.push(row.lenient(0)?);
        if at < cut {
            old = ids.len();
        }
    }
    ids.truncate(old);
    Ok(ids)
}

/// Moments at which something was recorded: of each session the last, of the calls as many as show how the clock went on, and
/// the newest events.
fn recorded_at(connection: &Connection, now: u64, limit: Duration) -> Result<Vec<u64>, rusqlite::Error> {
    let mut times: Vec<i64> = connection
        .prepare_cached("SELECT last_at FROM session UNION ALL SELECT * FROM (SELECT at FROM event ORDER BY seq DESC LIMIT 256)")?
        .query_map([], |row| row.lenient(0))?
        .flatten()
        .collect();
    let number = |sql: &str, values: (i64, i64)| -> Result<Option<i64>, rusqlite::Error> {
        connection.prepare_cached(sql)?.query_row(values, |row| row.lenient(0))
    };
    let stride = time::span_ms(limit / 8).max(60 * 60 * 1000).cast_signed();
    let (mut at, end) =
        (now.cast_signed(), now.saturating_sub(time::span_ms(limit).saturating_mul(2)).cast_signed());
    // The farthest within a stride, or else the next one at all: no silence is skipped, and no step is wasted.
    while at > end && times.len() < TIMES_MAX {
        let near = number(
            "SELECT min(ended_at) FROM call WHERE ended_at >= ?2 AND ended_at < ?1",
            (at, at.saturating_sub(stride)),
        )?;
        let next = match near {
            Some(near) => Some(near),
            None => number(
                "SELECT max(ended_at) FROM call WHERE ended_at < ?1 AND ended_at > ?2",
                (at, i64::MIN),
            )?,
        };
        let Some(next) = next else { break };
        times.push(next);
        at = next;
    }
    Ok(times.into_iter().filter(|time| *time >= 0).map(i64::unsigned_abs).collect())
}

fn remove_events(connection: &Connection, up_to: Option<i64>) -> Result<Removed, rusqlite::Error> {
    let Some(up_to) = up_to else { return Ok(Removed::default()) };
    chain::cut_front(connection, up_to)?;
    let gone = connection.prepare_cached("DELETE FROM event WHERE seq <= ?1")?.execute([up_to])?;
    Ok(Removed { events: gone as u64, ..Removed::default() })
}

/// When the store was made.
fn made_at(connection: &Connection) -> Result<u64, rusqlite::Error> {
    let value = fact::read(connection, fact::MADE_AT)?;
    Ok(value.and_then(|value| value.parse().ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests;
