//! What a person wants to know at a glance: how much happened since a moment, who was heard of last, what went wrong with us.
//! It never writes, and every question is answered from an index or a small table.

use rusqlite::Row;

use crate::error::StoreError;
use crate::event::read_json;
use crate::rows::Lenient;
use crate::store::Store;

/// How much happened since a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Glance {
    /// Sessions that were heard of.
    pub sessions: u64,
    /// Calls that ended.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those about which something was said to the model, or would have been.
    pub hints: u64,
    /// Those that were refused.
    pub denials: u64,
    /// Those of them that a later success proved wrong.
    pub false_alarms: u64,
    /// Faults of our own.
    pub own_faults: u64,
}

/// When sessions of an agent program were heard of last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSeen {
    /// The door they came through.
    pub host: String,
    /// When, in milliseconds since 1970.
    pub last_at: u64,
    /// How many sessions there are.
    pub sessions: u64,
}

/// A fault of our own, as often as it was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultSeen {
    /// When it was met last, in milliseconds since 1970.
    pub last_at: u64,
    /// How often.
    pub count: u64,
    /// Which part of us met it.
    pub part: String,
    /// What it was.
    pub what: String,
}

/// How a snapshot went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Because of what: `drop`, `expired`, `purge`.
    pub why: String,
    /// What it was too much of: `count`, `age`, `size`; empty where somebody removed it.
    pub over: String,
    /// What was noted with it, or the call it was taken before.
    pub note: String,
}

impl Store {
    /// How much happened since a moment.
    pub fn glance(&self, since: u64) -> Result<Glance, StoreError> {
        let since = since.cast_signed();
        let number = |row: &Row<'_>, column| row.lenient::<i64>(column).map(i64::unsigned_abs);
        let read = || -> Result<Glance, rusqlite::Error> {
            let sql = "SELECT count(*), coalesce(sum(state = 'failed'), 0),
                              coalesce(sum(rung_after IN ('note', 'hint', 'insist') OR rung_before IN ('hint', 'insist')), 0),
                              coalesce(sum(state = 'denied' AND charge IS NOT NULL), 0),
                              coalesce(sum(false_alarm), 0)
                       FROM call WHERE ended_at >= ?1";
            let glance = self.connection.query_row(sql, [since], |row| {
                Ok(Glance {
                    calls: number(row, 0)?,
                    failed: number(row, 1)?,
                    hints: number(row, 2)?,
                    denials: number(row, 3)?,
                    false_alarms: number(row, 4)?,
                    ..Glance::default()
                })
            })?;
            let count = |sql| self.connection.query_row(sql, [since], |row| number(row, 0));
            Ok(Glance {
                sessions: count("SELECT count(*) FROM session WHERE last_at >= ?1")?,
                own_faults: count(&format!("SELECT count(*) FROM {OWN_FAULTS}"))?,
                ..glance
            })
        };
        read().map_err(self.wrong())
    }

    /// When each agent program was heard of last, the newest first.
    pub fn hosts(&self) -> Result<Vec<HostSeen>, StoreError> {
        let sql =
            "SELECT host, max(last_at), count(*) FROM session GROUP BY host ORDER BY max(last_at) DESC, host";
        self.connection
            .prepare(sql)
            .and_then(|mut statement| {
                let read = |row: &Row<'_>| {
                    Ok(HostSeen {
                        host: row.lenient(0)?,
                        last_at: row.lenient::<i64>(1)?.unsigned_abs(),
                        sessions: row.lenient::<i64>(2)?.unsigned_abs(),
                    })
                };
                statement.query_map([], read)?.collect()
            })
            .map_err(self.wrong())
    }

    /// Faults of our own since a moment, equal ones once, the newest first.
    pub fn own_faults(&self, since: u64, most: u32) -> Result<Vec<FaultSeen>, StoreError> {
        let sql = format!(
            "SELECT max(at), count(*), body FROM {OWN_FAULTS} GROUP BY body ORDER BY max(at) DESC, body LIMIT ?2"
        );
        self.connection
            .prepare(&sql)
            .and_then(|mut statement| {
                let read = |row: &Row<'_>| {
                    let body = read_json(&row.lenient::<String>(2)?);
                    let text = |name: &str| {
                        body.get(name).and_then(|text| text.as_str()).unwrap_or_default().to_owned()
                    };
                    Ok(FaultSeen {
                        last_at: row.lenient::<i64>(0)?.unsigned_abs(),
                        count: row.lenient::<i64>(1)?.unsigned_abs(),
                        part: text("part"),
                        what: text("what"),
                    })
                };
                statement.query_map((since.cast_signed(), most), read)?.collect()
            })
            .map_err(self.wrong())
    }

    /// When and why a snapshot went, where the timeline still tells.
    pub fn removal_of(&self, snapshot: &str) -> Result<Option<Removal>, StoreError> {
        let sql =
            "SELECT at, body FROM event WHERE type = 'snapshot:removed' AND body LIKE ?1 ORDER BY seq DESC";
        let read = |row: &Row<'_>| {
            let body = read_json(&row.lenient::<String>(1)?);
            let text =
                |name: &str| body.get(name).and_then(|text| text.as_str()).unwrap_or_default().to_owned();
            let (at, why) = (row.lenient::<i64>(0)?.unsigned_abs(), text("why"));
            Ok((text("snapshot"), Removal { at, why, over: text("over"), note: text("text") }))
        };
        let found = self.connection.prepare(sql).and_then(|mut statement| {
            let rows = statement.query_map([format!("%\"{snapshot}\"%")], read)?;
            rows.collect::<Result<Vec<(String, Removal)>, _>>()
        });
        let found = found.map_err(self.wrong())?;
        Ok(found.into_iter().find(|(id, _)| id == snapshot).map(|(_, removal)| removal))
    }

    /// When the last event was, in milliseconds since 1970. Where it lies in the future, a clock was wrong then or is now.
    pub fn last_event_at(&self) -> Result<Option<u64>, StoreError> {
        let sql = "SELECT (SELECT at FROM event ORDER BY seq DESC LIMIT 1)";
        let at: Option<i64> =
            self.connection.query_row(sql, [], |row| row.lenient(0)).map_err(self.wrong())?;
        Ok(at.map(i64::unsigned_abs))
    }
}

/// Our own faults since a moment. The last two conditions are those of the index.
const OWN_FAULTS: &str =
    "event WHERE type = 'own_fault' AND at >= ?1 AND channel <> 'progress' AND type <> 'error'";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database;
    use crate::sample::{Sample, SampleCall as Call};

    fn fault(sample: &Sample, at: i64, what: &str) {
        let body = format!(r#"{{"part":"hook","what":"{what}"}}"#);
        let sql = "INSERT INTO event (at, channel, type, body) VALUES (?1, 'monitor', 'own_fault', ?2)";
        sample.store.connection.execute(sql, (at, body)).unwrap();
    }

    #[test]
    fn only_what_happened_since_then_counts() {
        let sample = Sample::empty();
        let session = sample.session("one", 5000);
        for (state, rung_before, asked_at) in [
            ("completed", "observe", 0),
            ("failed", "observe", 2000),
            ("denied", "deny", 2000),
            ("denied", "observe", 2000),
            ("completed", "hint", 2000),
        ] {
            sample.call(&Call { session, state, rung_before, asked_at, ..Call::default() });
        }
        sample.sql("UPDATE call SET ended_at = asked_at WHERE state = 'denied'");
        sample.sql("UPDATE call SET charge = 'some.rule', false_alarm = 1 WHERE rung_before = 'deny'");
        fault(&sample, 500, "old");
        fault(&sample, 2500, "new");
        let expected =
            Glance { sessions: 1, calls: 4, failed: 1, hints: 1, denials: 1, false_alarms: 1, own_faults: 1 };
        assert_eq!(sample.store.glance(2000).unwrap(), expected);
        assert_eq!(sample.store.glance(9000).unwrap(), Glance::default());
    }

    #[test]
    fn equal_faults_are_told_once_with_their_number() {
        let sample = Sample::empty();
        for (at, what) in [(1000, "a"), (2000, "b"), (3000, "a")] {
            fault(&sample, at, what);
        }
        let shown: Vec<(u64, u64, String)> = sample
            .store
            .own_faults(1000, 9)
            .unwrap()
            .into_iter()
            .map(|f| (f.last_at, f.count, f.what))
            .collect();
        assert_eq!(shown, [(3000, 2, "a".to_owned()), (2000, 1, "b".to_owned())]);
        assert_eq!(sample.store.own_faults(2500, 9).unwrap().len(), 1);
        assert_eq!(sample.store.last_event_at().unwrap(), Some(3000));
    }

    #[test]
    fn nothing_of_the_timeline_is_read_through() {
        let sample = Sample::empty();
        let check = |sql: &str, index: &str| {
            let plan = database::plan(&sample.store.connection, sql);
            assert!(plan.contains(index), "{sql}: {plan}");
        };
        check(&format!("SELECT count(*) FROM {OWN_FAULTS}"), "USING INDEX event_rare");
        check("SELECT sum(state = 'failed') FROM call WHERE ended_at >= ?1", "USING INDEX call_by_end");
    }
}
