//! What was promised to be kept, beside what is found in a copy of the store.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::Fault;
use crate::world::{MEMORY, Told, copy_folder};

/// What was told about the two entries of a call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Promise {
    /// That it begins.
    pub before: Told,
    /// That it ended.
    pub after: Told,
}

/// All calls that were sent, by their marks.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    promises: BTreeMap<String, Promise>,
}

/// What is found of one call.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trail {
    rows: u64,
    state: String,
    starts: u64,
    ends: u64,
}

/// What is found in a store.
#[derive(Debug, Default)]
pub struct Found {
    trails: BTreeMap<String, Trail>,
    /// How many events there are.
    pub events: u64,
    /// The place of the last.
    pub last_seq: u64,
}

impl Ledger {
    /// Notes what was told about both entries of a call.
    pub fn note(&mut self, mark: &str, told: &[Told]) {
        let promise = self.promises.entry(mark.to_owned()).or_default();
        let mut told = told.iter().copied();
        promise.before = told.next().unwrap_or(promise.before);
        promise.after = told.next().unwrap_or(promise.after);
    }

    /// Notes what was told about the end of a call.
    pub fn note_after(&mut self, mark: &str, told: &[Told]) {
        let promise = self.promises.entry(mark.to_owned()).or_default();
        promise.after = told.first().copied().unwrap_or_default();
    }

    /// Takes over what another has noted.
    pub fn join(&mut self, other: Ledger) {
        self.promises.extend(other.promises);
    }

    /// How many entries were promised to be kept.
    pub fn acknowledged(&self) -> u64 {
        self.promises
            .values()
            .flat_map(|promise| [promise.before, promise.after])
            .filter(|told| told.is_acknowledged())
            .count() as u64
    }

    /// How many calls were sent.
    pub fn calls(&self) -> u64 {
        self.promises.len() as u64
    }

    /// Everything that was promised must be there exactly once, and nothing may be there twice.
    pub fn compare(&self, found: &Found) -> Result<(), Fault> {
        let nothing = Trail::default();
        for (mark, promise) in &self.promises {
            let trail = found.trails.get(mark).unwrap_or(&nothing);
            check(*promise, trail)
                .map_err(|wrong| format!("{mark}: {wrong} ({promise:?}, found {trail:?})"))?;
        }
        match found.trails.keys().find(|mark| !self.promises.contains_key(*mark)) {
            Some(stranger) => Err(format!("{stranger} was never sent and is there").into()),
            None => Ok(()),
        }
    }
}

fn check(promise: Promise, trail: &Trail) -> Result<(), &'static str> {
    let has_ended = ["completed", "failed", "denied"].contains(&&*trail.state);
    if trail.rows > 1 || trail.starts > 1 || trail.ends > 1 {
        Err("kept more than once")
    } else if promise.before.is_acknowledged() && (trail.rows == 0 || trail.starts == 0) {
        Err("its beginning was acknowledged and is lost")
    } else if promise.after.is_acknowledged() && (trail.ends == 0 || !has_ended) {
        Err("its end was acknowledged and is lost")
    } else {
        Ok(())
    }
}

impl Found {
    /// Copies the store's folder and reads the copy; the store itself is not touched. Damage is a fault.
    pub fn in_copy_of(store: &Path) -> Result<Found, Fault> {
        let folder = tempfile::tempdir_in(MEMORY).or_else(|_| tempfile::tempdir())?;
        copy_folder(store, folder.path())?;
        let path = folder.path().join("timeline.db");
        if let Ok(damaged) = std::fs::read_dir(folder.path().join("damaged")) {
            return Err(format!("{} databases were set aside as damaged", damaged.count()).into());
        }
        match path.exists() {
            true => Found::read(&path),
            false => Ok(Found::default()),
        }
    }

    /// The same as `unstuck export` tells it.
    pub fn exported(rows: &[Value]) -> Result<Found, Fault> {
        let mut found = Found::default();
        let mut marks: HashMap<u64, String> = HashMap::new();
        for row in rows.iter().filter(|row| row["type"] == "call") {
            let input = row["input"].to_string();
            let mark = mark_in(&input).ok_or_else(|| format!("a call without a mark: {row}"))?;
            let trail = found.trails.entry(mark.clone()).or_default();
            trail.rows += 1;
            trail.state = row["state"].as_str().unwrap_or_default().to_owned();
            marks.insert(row["call"].as_u64().ok_or("a call without a number")?, mark);
        }
        for row in rows.iter().filter(|row| row["type"] == "event") {
            found.events += 1;
            found.last_seq = found.last_seq.max(row["seq"].as_u64().unwrap_or(0));
            let mark = row["call"].as_u64().and_then(|call| marks.get(&call));
            let Some(trail) = mark.and_then(|mark| found.trails.get_mut(mark)) else { continue };
            match row["event"].as_str() {
                Some("tool:start" | "tool:denied") => trail.starts += 1,
                Some("tool:end") => trail.ends += 1,
                _ => {}
            }
        }
        Ok(found)
    }

    fn read(path: &Path) -> Result<Found, Fault> {
        // The copy needs its log folded in before it can be read; that is all that is ever written to it.
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        if verdict != "ok" {
            return Err(format!("the database is damaged: {verdict}").into());
        }
        let mut events: HashMap<(i64, String), u64> = HashMap::new();
        let mut statement = connection
            .prepare("SELECT call, type, count(*) FROM event WHERE call IS NOT NULL GROUP BY 1, 2")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            events.insert((row.get(0)?, row.get(1)?), row.get::<_, i64>(2)?.unsigned_abs());
        }
        let count = |call: i64, kind: &str| events.get(&(call, kind.to_owned())).copied().unwrap_or(0);
        let mut found = Found::default();
        let mut statement = connection.prepare(
            "SELECT call.id, call.state, call_text.input FROM call LEFT JOIN call_text ON call_text.call = call.id",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (call, input): (i64, String) = (row.get(0)?, row.get(2)?);
            let mark = mark_in(&input).ok_or_else(|| format!("a call without a mark: {input}"))?;
            let trail = found.trails.entry(mark).or_default();
            trail.rows += 1;
            trail.state = row.get(1)?;
            trail.starts += count(call, "tool:start") + count(call, "tool:denied");
            trail.ends += count(call, "tool:end");
        }
        let (events, last): (i64, Option<i64>) =
            connection.query_row("SELECT count(*), max(seq) FROM event", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        found.events = events.unsigned_abs();
        found.last_seq = last.unwrap_or(0).unsigned_abs();
        Ok(found)
    }
}

/// The mark of a call, from the command in its input.
fn mark_in(input: &str) -> Option<String> {
    let (_, rest) = input.split_once("make ")?;
    let end =
        rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').unwrap_or(rest.len());
    Some(rest[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(rows: u64, state: &str, starts: u64, ends: u64) -> Trail {
        Trail { rows, state: state.to_owned(), starts, ends }
    }

    #[test]
    fn what_was_acknowledged_must_be_there_and_nothing_twice() {
        let both = Promise { before: Told::Recorded, after: Told::Spooled };
        let neither = Promise { before: Told::Nothing, after: Told::Lost };
        assert!(check(both, &trail(1, "failed", 1, 1)).is_ok());
        assert!(check(both, &trail(1, "executing", 1, 0)).is_err());
        assert!(check(both, &trail(1, "failed", 0, 1)).is_err());
        assert!(check(both, &Trail::default()).is_err());
        assert!(check(neither, &Trail::default()).is_ok());
        assert!(check(neither, &trail(1, "failed", 1, 1)).is_ok());
        assert!(check(neither, &trail(2, "failed", 2, 2)).is_err());
    }

    #[test]
    fn a_mark_is_read_from_the_command() {
        assert_eq!(mark_in(r#"{"command":"make a-17"}"#).as_deref(), Some("a-17"));
        assert_eq!(mark_in(r#"{"command":"ls"}"#), None);
    }
}
