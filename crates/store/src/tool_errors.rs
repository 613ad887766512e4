//! What other tools expect to find of a session's failures: `sessions/<encoded id>/tool-errors.json`.
//!
//! A session's name comes from outside and is never a path: only the encoded form becomes a folder.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use rusqlite::Connection;
use serde::Serialize;
use unstuck_wire::time;

use crate::error::{Deed, StoreError};
use crate::root::{self, Root};
use crate::rows::Lenient;
use crate::session;
use crate::store::Store;

/// A folder's name is never longer than this.
const NAME_MAX: usize = 100;
/// So much of a longer name is kept before its print.
const NAME_KEPT: usize = 80;
const FILE: &str = "tool-errors.json";

/// One call whose last attempts in a session failed. A success of the same call removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    /// The tool.
    pub tool_name: String,
    /// The print of the call; the same input gives the same.
    pub input_hash: String,
    /// What showed the cause the last time; the kind where nothing did.
    pub error: String,
    /// How often it failed in a row.
    pub count: u64,
    /// When the first of these was.
    pub first_at: u64,
    /// When last.
    pub last_at: u64,
}

/// The same in the file. The names are theirs.
#[derive(Serialize)]
struct StoredToolError<'e> {
    tool_name: &'e str,
    input_hash: &'e str,
    error: &'e str,
    count: u64,
    first_at: String,
    last_at: String,
}

impl Store {
    /// The calls of a session that have failed since they last succeeded, in the order in which they first did. `None` where there is no such session.
    pub fn tool_errors(&self, session: &str) -> Result<Option<Vec<ToolError>>, StoreError> {
        let found = session::number(&self.connection, session).map_err(self.wrong())?;
        found.map(|number| of(&self.connection, number).map_err(self.wrong())).transpose()
    }

    /// Removes what was written for sessions that are gone: a process that removed one may have died before it came to the
    /// file. Returns how many there were.
    pub fn sweep_tool_errors(&self) -> Result<u64, StoreError> {
        let folder = self.root().sessions();
        // Looked at before the sessions are: one that begins in between is not taken for one that is gone.
        let found: Vec<PathBuf> = match fs::read_dir(&folder) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(StoreError::io(Deed::LookInto, &folder)(error)),
        };
        let names = || -> Result<HashSet<String>, rusqlite::Error> {
            let mut statement = self.connection.prepare("SELECT name FROM session")?;
            let rows = statement.query_map([], |row| row.lenient::<String>(0))?;
            rows.map(|name| name.map(|name| encoded(&name))).collect()
        };
        let names = names().map_err(self.wrong())?;
        let is_gone = |path: &&PathBuf| {
            !path.file_name().and_then(|name| name.to_str()).is_some_and(|name| names.contains(name))
        };
        let mut gone = 0;
        for path in found.iter().filter(is_gone) {
            fs::remove_dir_all(path).map_err(StoreError::io(Deed::Remove, path))?;
            gone += 1;
        }
        Ok(gone)
    }

    /// Writes the file of a session anew and returns its path. `None` where there is no such session.
    pub fn write_tool_errors(&self, session: &str) -> Result<Option<PathBuf>, StoreError> {
        self.tool_errors(session)?.map(|errors| write(self.root(), session, &errors)).transpose()
    }
}

/// The calls that failed since they last succeeded, of a session by its number.
pub(crate) fn of(connection: &Connection, session: i64) -> Result<Vec<ToolError>, rusqlite::Error> {
    let sql = "SELECT tool, call_print, count(*), min(coalesce(ended_at, asked_at)), max(coalesce(ended_at, asked_at)),
                      max(id)
               FROM call AS failed
               WHERE session = ?1 AND state = 'failed' AND NOT EXISTS (
                   SELECT 1 FROM call AS well
                   WHERE well.session = ?1 AND well.call_print = failed.call_print AND well.state = 'completed'
                     AND well.id > failed.id)
               GROUP BY call_print ORDER BY min(id)";
    let mut statement = connection.prepare_cached(sql)?;
    let mut last = connection.prepare_cached(
        "SELECT coalesce(nullif(evidence, ''), kind, outcome, '') FROM call
         LEFT JOIN call_text ON call_text.call = call.id WHERE call.id = ?1",
    )?;
    let mut rows = statement.query([session])?;
    let mut errors = Vec::new();
    while let Some(row) = rows.next()? {
        errors.push(ToolError {
            tool_name: row.lenient(0)?,
            input_hash: row.lenient(1)?,
            error: last.query_row([row.lenient::<i64>(5)?], |row| row.lenient(0))?,
            count: row.lenient::<i64>(2)?.unsigned_abs(),
            first_at: row.lenient::<i64>(3)?.unsigned_abs(),
            last_at: row.lenient::<i64>(4)?.unsigned_abs(),
        });
    }
    Ok(errors)
}

/// Writes the file aside and puts it in its place, so that nobody ever reads half of it.
pub(crate) fn write(root: &Root, session: &str, errors: &[ToolError]) -> Result<PathBuf, StoreError> {
    let folder = root.sessions().join(encoded(session));
    root::make_folder(&root.sessions())?;
    root::make_folder(&folder)?;
    let stored: Vec<StoredToolError<'_>> = errors
        .iter()
        .map(|error| StoredToolError {
            tool_name: &error.tool_name,
            input_hash: &error.input_hash,
            error: &error.error,
            count: error.count,
            first_at: time::iso(error.first_at),
            last_at: time::iso(error.last_at),
        })
        .collect();
    let mut text = serde_json::to_vec_pretty(&stored).unwrap_or_default();
    text.push(b'\n');
    let path = folder.join(FILE);
    let aside = folder.join(format!("{FILE}.{}.new", std::process::id()));
    write_new(&aside, &text).map_err(StoreError::io(Deed::Write, &aside))?;
    fs::rename(&aside, &path).map_err(StoreError::io(Deed::PutInPlace, &path))?;
    Ok(path)
}

fn write_new(path: &std::path::Path, text: &[u8]) -> io::Result<()> {
    // One of the same name was left by a process that died.
    let _it_may_not_be_there = fs::remove_file(path);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text)
}

/// Removes what was written for a session. Says whether there was something.
pub(crate) fn remove(root: &Root, session: &str) -> Result<bool, StoreError> {
    let folder = root.sessions().join(encoded(session));
    match fs::remove_dir_all(&folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io(Deed::Remove, &folder)(error)),
    }
}

/// Is there a file for this session?
pub(crate) fn exists(root: &Root, session: &str) -> bool {
    root.sessions().join(encoded(session)).join(FILE).exists()
}

/// A session's name as a folder: what is no letter, digit, `_` or `-` is percent-encoded, so that no name leads elsewhere.
pub(crate) fn encoded(session: &str) -> String {
    let mut name = String::with_capacity(session.len());
    for byte in session.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    if name.is_empty() {
        // No other name is encoded like this.
        return "%".to_owned();
    }
    if name.len() > NAME_MAX {
        let print = blake3::hash(session.as_bytes()).to_hex();
        // A dot stands in no other encoded name.
        name = format!("{}.{}", &name[..NAME_KEPT], &print[..NAME_MAX - NAME_KEPT - 1]);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    #[test]
    fn no_name_leads_out_of_its_folder() {
        let check = |name: &str, expected: &str| assert_eq!(encoded(name), expected);
        check("a1_B-c", "a1_B-c");
        check("", "%");
        check(".", "%2E");
        check("..", "%2E%2E");
        check("../../etc/passwd", "%2E%2E%2F%2E%2E%2Fetc%2Fpasswd");
        check("a\\b:c\0", "a%5Cb%3Ac%00");
        check("%", "%25");
        check("会", "%E4%BC%9A");
        check(&"x".repeat(100), &"x".repeat(100));
        for long in ["x".repeat(101), "会".repeat(1000)] {
            let name = encoded(&long);
            assert!(name.len() == 100 && !name.contains('/'), "{name}");
            assert_ne!(name, encoded(&format!("{long}x")));
        }
    }

    #[test]
    fn failures_of_one_call_are_one_entry_told_by_the_last() {
        let sample = Sample::made_at(0);
        sample.session("s/1", 30);
        sample.failed(1, 1, 10, "e1", "first words");
        sample.failed(2, 1, 20, "e2", "");
        sample.failed(3, 1, 30, "e1", "last words");
        sample.succeeded(4, 1, 40);
        sample.failed(5, 1, 50, "e3", "over by now");
        sample.succeeded(6, 1, 60);
        sample.sql("UPDATE call SET call_print = 'p:e3' WHERE id = 6");
        let path = sample.store.write_tool_errors("s/1").unwrap().unwrap();
        assert_eq!(path, sample.root.sessions().join("s%2F1").join("tool-errors.json"));
        let text = fs::read_to_string(&path).unwrap();
        let expected = serde_json::json!([
            {"tool_name": "Bash", "input_hash": "p:e1", "error": "last words", "count": 2,
             "first_at": "1970-01-01T00:00:00.010Z", "last_at": "1970-01-01T00:00:00.030Z"},
            {"tool_name": "Bash", "input_hash": "p:e2", "error": "network", "count": 1,
             "first_at": "1970-01-01T00:00:00.020Z", "last_at": "1970-01-01T00:00:00.020Z"},
        ]);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), expected);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        }
        assert_eq!(sample.store.write_tool_errors("unknown").unwrap(), None);
        // What is left of a session that is gone is swept away, and nothing else.
        fs::create_dir(sample.root.sessions().join("gone")).unwrap();
        assert_eq!((sample.store.sweep_tool_errors().unwrap(), path.exists()), (1, true));
        assert!(remove(&sample.root, "s/1").unwrap() && !remove(&sample.root, "s/1").unwrap());
    }
}
