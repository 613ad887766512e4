//! A store with rows in it as the schema promises them, for tests.

use std::time::Duration;

use tempfile::TempDir;

use crate::root::Root;
use crate::store::Store;

/// A store in a folder of its own, made at a moment.
pub(crate) struct Sample {
    _folder: TempDir,
    pub(crate) root: Root,
    pub(crate) store: Store,
}

/// A call; what a test does not care for stays as it is here.
pub(crate) struct SampleCall<'a> {
    /// Its number; the next one where none is given.
    pub(crate) id: Option<i64>,
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

impl Default for SampleCall<'_> {
    fn default() -> Self {
        SampleCall {
            id: None,
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

impl Sample {
    pub(crate) fn empty() -> Sample {
        Sample::made_at(0)
    }

    pub(crate) fn made_at(moment: u64) -> Sample {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(&folder.path().join("state"), None).unwrap();
        let store = Store::to_write(&root, Duration::from_secs(5), moment).unwrap();
        Sample { _folder: folder, root, store }
    }

    /// Another process at the same store.
    pub(crate) fn another(&self) -> Store {
        Store::to_write(&self.root, Duration::from_secs(5), 0).unwrap()
    }

    /// Adds a session and returns its number; the first is 1.
    pub(crate) fn session(&self, name: &str, last_at: u64) -> i64 {
        let sql =
            "INSERT INTO session (name, host, cwd, first_at, last_at) VALUES (?1, 'generic', '/src', 1, ?2)";
        self.store.connection.execute(sql, (name, last_at.cast_signed())).unwrap();
        self.store.connection.last_insert_rowid()
    }

    /// Adds a session for each of the hundred days before a moment: the clock went on all the while.
    pub(crate) fn went_on_until(&self, moment: u64) {
        for day in 0..100 {
            self.session(&format!("day-{day}"), moment - day * 86_400_000);
        }
    }

    /// Adds a call without texts and returns its number.
    pub(crate) fn call(&self, call: &SampleCall<'_>) -> i64 {
        let (ok, outcome, code) = match call.state {
            "completed" => (Some(true), Some("succeeded"), Some(0)),
            "failed" => (Some(false), Some("exited"), Some(1)),
            _ => (None, None, None),
        };
        let ended_at = ok.map(|_| call.asked_at + call.took_ms);
        let sql = "INSERT INTO call (id, session, key, agent, tool, state, asked_at, ended_at, took_ms, attempt, ok,
                outcome, code, kind, error_type, rung_before, rung_after, repeat, recovered_at, owner, call_print,
                intent_print, cause_print)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, 'observe', ?17, ?18, '', ?19,
                'i1:a', ?20)";
        let mut statement = self.store.connection.prepare(sql).unwrap();
        let values = rusqlite::params![
            call.id,
            call.session,
            call.key,
            call.agent,
            call.tool,
            call.state,
            call.asked_at,
            ended_at,
            ended_at.map(|_| call.took_ms),
            call.attempt,
            ok,
            outcome,
            code,
            call.kind,
            call.error_type,
            call.rung_before,
            call.repeat,
            call.recovered_at,
            call.print,
            call.cause,
        ];
        statement.insert(values).unwrap()
    }

    /// A call that failed, with everything that a failure leaves behind.
    pub(crate) fn failed(&self, id: i64, session: i64, at: u64, cause: &str, evidence: &str) {
        self.call(&SampleCall {
            id: Some(id),
            session,
            state: "failed",
            asked_at: at.cast_signed(),
            took_ms: 0,
            kind: Some("network"),
            error_type: Some("runtime"),
            print: &format!("p:{cause}"),
            cause: Some(cause),
            ..SampleCall::default()
        });
        self.sql(&format!(
            "INSERT INTO call_text (call, label, input, evidence, head, tail, omitted, verdict, life)
             VALUES ({id}, 'curl {cause}', '{{}}', '{evidence}', '{evidence}', '', 0,
               '{{\"kind\":\"network\"}}', '[]');
             INSERT INTO problem VALUES ('{cause}', 'network', 'net.dns', '{evidence}', '[\"Bash\"]', 1, {at}, {at}, NULL, NULL)
               ON CONFLICT DO UPDATE SET count = count + 1, last_at = {at}, title = '{evidence}';
             INSERT INTO problem_day VALUES ('{cause}', {at} / 86400000, 1) ON CONFLICT DO UPDATE SET count = count + 1;"
        ));
        self.event(at, "progress", "tool:error", Some(session), Some(id), evidence);
    }

    pub(crate) fn succeeded(&self, id: i64, session: i64, at: u64) {
        let asked_at = at.cast_signed();
        self.call(&SampleCall { id: Some(id), session, asked_at, took_ms: 0, ..SampleCall::default() });
    }

    pub(crate) fn event(
        &self,
        at: u64,
        channel: &str,
        kind: &str,
        session: Option<i64>,
        call: Option<i64>,
        text: &str,
    ) {
        let sql =
            "INSERT INTO event (at, channel, type, session, call, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let body = serde_json::json!({ "text": text }).to_string();
        self.store.connection.execute(sql, (at.cast_signed(), channel, kind, session, call, body)).unwrap();
    }

    pub(crate) fn sql(&self, sql: &str) {
        self.store.connection.execute_batch(sql).unwrap();
    }

    /// The only value of a query.
    #[track_caller]
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.store.connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    #[track_caller]
    pub(crate) fn text(&self, sql: &str) -> String {
        self.store.connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }
}
