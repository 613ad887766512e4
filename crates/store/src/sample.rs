//! A store with rows in it, for the tests of those who tidy and hand out.

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

impl Sample {
    pub(crate) fn made_at(moment: u64) -> Sample {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(&folder.path().join("state"), None).unwrap();
        let store = Store::to_write(&root, Duration::from_secs(1), moment).unwrap();
        Sample { _folder: folder, root, store }
    }

    /// Another process at the same store.
    pub(crate) fn another(&self) -> Store {
        Store::to_write(&self.root, Duration::from_secs(1), 0).unwrap()
    }

    pub(crate) fn session(&self, id: i64, name: &str, last_at: u64) {
        self.sql(&format!("INSERT INTO session VALUES ({id}, '{name}', 'generic', '/src', 1, {last_at})"));
    }

    /// A call that failed, with everything that a failure leaves behind.
    pub(crate) fn failed(&self, id: i64, session: i64, at: u64, cause: &str, evidence: &str) {
        self.sql(&format!(
            "INSERT INTO call VALUES ({id}, {session}, 'c{id}', 'main', 'Bash', 'failed', {at}, {at}, 5, 1, 0, 'exited', 1,
               'network', 'runtime', 1, 'net.dns', 'observe', 'note', 0, NULL, '', 'p:{cause}', 'i:{cause}', '{cause}');
             INSERT INTO call_text VALUES ({id}, 'curl {cause}', '{{}}', '{evidence}', '{evidence}', '', 0,
               '{{\"kind\":\"network\"}}', '[]');
             INSERT INTO problem VALUES ('{cause}', 'network', 'net.dns', '{evidence}', '[\"Bash\"]', 1, {at}, {at}, NULL, NULL)
               ON CONFLICT DO UPDATE SET count = count + 1, last_at = {at}, title = '{evidence}';
             INSERT INTO problem_day VALUES ('{cause}', {at} / 86400000, 1) ON CONFLICT DO UPDATE SET count = count + 1;"
        ));
        self.event(at, "progress", "tool:error", Some(session), Some(id), evidence);
    }

    pub(crate) fn succeeded(&self, id: i64, session: i64, at: u64) {
        self.sql(&format!(
            "INSERT INTO call VALUES ({id}, {session}, 'c{id}', 'main', 'Bash', 'completed', {at}, {at}, 5, 1, 1, 'succeeded',
               0, NULL, NULL, NULL, NULL, 'observe', 'observe', 0, NULL, '', 'p{id}', 'i{id}', NULL);"
        ));
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
