//! A store for tests, with rows as the schema promises them.

use std::time::Duration;

use tempfile::TempDir;

use crate::root::Root;
use crate::store::Store;

/// A store of its own in a folder of its own.
pub(crate) struct Rows {
    _folder: TempDir,
    root: Root,
    store: Store,
}

/// A call; what a test does not care for stays as it is here.
pub(crate) struct Row<'a> {
    pub(crate) session: i64,
    pub(crate) key: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) state: &'a str,
    pub(crate) asked_at: i64,
    pub(crate) took_ms: i64,
    pub(crate) attempt: i64,
    pub(crate) kind: Option<&'a str>,
    pub(crate) error_type: Option<&'a str>,
    pub(crate) rung_before: &'a str,
    pub(crate) repeat: bool,
    pub(crate) recovered_at: Option<i64>,
    pub(crate) print: &'a str,
    pub(crate) cause: Option<&'a str>,
}

impl Default for Row<'_> {
    fn default() -> Self {
        Row {
            session: 1,
            key: "",
            agent: "main",
            tool: "Bash",
            state: "completed",
            asked_at: 1000,
            took_ms: 100,
            attempt: 1,
            kind: None,
            error_type: None,
            rung_before: "observe",
            repeat: false,
            recovered_at: None,
            print: "c1:a",
            cause: None,
        }
    }
}

impl Rows {
    pub(crate) fn empty() -> Rows {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(&folder.path().join("state"), None).unwrap();
        let store = Store::to_write(&root, Duration::from_secs(5), 0).unwrap();
        Rows { _folder: folder, root, store }
    }

    /// A second way to the same store.
    pub(crate) fn store(&self) -> Store {
        Store::to_write(&self.root, Duration::from_secs(5), 0).unwrap()
    }

    pub(crate) fn run(&self, sql: &str) {
        self.store.connection.execute_batch(sql).unwrap();
    }

    pub(crate) fn session(&self, name: &str) -> i64 {
        let sql = "INSERT INTO session (name, host, cwd, first_at, last_at) VALUES (?1, 'generic', '', 0, 0)";
        self.store.connection.execute(sql, [name]).unwrap();
        self.store.connection.last_insert_rowid()
    }

    pub(crate) fn event(&self, session: i64, channel: &str, kind: &str, body: &str) {
        self.event_of(session, None, channel, kind, body);
    }

    pub(crate) fn event_of(&self, session: i64, call: Option<i64>, channel: &str, kind: &str, body: &str) {
        let sql = "INSERT INTO event (at, channel, type, session, call, body) VALUES (0, ?1, ?2, ?3, ?4, ?5)";
        self.store.connection.execute(sql, (channel, kind, session, call, body)).unwrap();
    }

    /// Adds a call and returns its number.
    pub(crate) fn call(&self, row: &Row<'_>) -> i64 {
        let ok = match row.state {
            "completed" => Some(true),
            "failed" => Some(false),
            _ => None,
        };
        let ended_at = ok.map(|_| row.asked_at + row.took_ms);
        let sql = "INSERT INTO call (session, key, agent, tool, state, asked_at, ended_at, took_ms, attempt, ok,
                kind, error_type, rung_before, rung_after, repeat, recovered_at, owner, call_print, intent_print,
                cause_print)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 'observe', ?14, ?15, '', ?16, 'i1:a', ?17)";
        let mut statement = self.store.connection.prepare(sql).unwrap();
        let values = rusqlite::params![
            row.session,
            row.key,
            row.agent,
            row.tool,
            row.state,
            row.asked_at,
            ended_at,
            ended_at.map(|_| row.took_ms),
            row.attempt,
            ok,
            row.kind,
            row.error_type,
            row.rung_before,
            row.repeat,
            row.recovered_at,
            row.print,
            row.cause,
        ];
        statement.insert(values).unwrap()
    }
}
