//! Reads the record of single calls: what was asked, how it went, and everything that was said about it. It never writes.

use rusqlite::{OptionalExtension, Row};
use serde_json::Value;

use crate::error::StoreError;
use crate::event::{self, COLUMNS, StoredEvent};
use crate::rows::{self, Lenient};
use crate::store::Store;

/// A call as it stands in the store. Words are texts, because a newer version may have others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCall {
    /// Its number here.
    pub id: i64,
    /// The session's number.
    pub session_id: i64,
    /// The session's name; empty where the session is gone.
    pub session: String,
    /// The host's name for the call; empty where it gives none.
    pub key: String,
    /// Who made it.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// Where it stands.
    pub state: String,
    /// When it was asked for, in milliseconds since 1970.
    pub asked_at: u64,
    /// When it ended.
    pub ended_at: Option<u64>,
    /// How long it took.
    pub took_ms: Option<u64>,
    /// Which attempt it was, counted from 1.
    pub attempt: u32,
    /// Did it go well? `None` while nobody knows.
    pub ok: Option<bool>,
    /// How it ended.
    pub outcome: Option<String>,
    /// The exit code or the signal.
    pub code: Option<i64>,
    /// The cause, of a failure.
    pub kind: Option<String>,
    /// The older word for it.
    pub error_type: Option<String>,
    /// May the same call run again, now or later?
    pub retryable: Option<bool>,
    /// The rule that named the cause.
    pub rule: Option<String>,
    /// What the ladder said before it ran.
    pub rung_before: String,
    /// And with its result.
    pub rung_after: String,
    /// Was it a failure that the session had already met?
    pub repeat: bool,
    /// When a later call of the same intent went well.
    pub recovered_at: Option<u64>,
    /// The fingerprint of the exact call.
    pub call_print: String,
    /// The fingerprint of what it was meant to do.
    pub intent_print: String,
    /// The fingerprint of what stopped it.
    pub cause_print: Option<String>,
    /// The call in one short line.
    pub label: String,
}

impl StoredCall {
    /// Its columns, to be selected from [`StoredCall::TABLES`].
    pub(crate) const COLUMNS: &str = "call.id, call.session, ifnull(session.name, ''), call.key, call.agent, call.tool,
        call.state, call.asked_at, call.ended_at, call.took_ms, call.attempt, call.ok, call.outcome, call.code,
        call.kind, call.error_type, call.retryable, call.rule, call.rung_before, call.rung_after, call.repeat,
        call.recovered_at, call.call_print, call.intent_print, call.cause_print, ifnull(call_text.label, '')";
    /// The tables they come from.
    pub(crate) const TABLES: &str = "call LEFT JOIN session ON session.id = call.session
        LEFT JOIN call_text ON call_text.call = call.id";

    /// How many columns there are.
    pub(crate) const WIDTH: usize = 26;

    pub(crate) fn read(row: &Row<'_>) -> Result<StoredCall, rusqlite::Error> {
        let moment = |column: usize| row.lenient::<Option<i64>>(column).map(|at| at.map(i64::unsigned_abs));
        Ok(StoredCall {
            id: row.lenient(0)?,
            session_id: row.lenient(1)?,
            session: row.lenient(2)?,
            key: row.lenient(3)?,
            agent: row.lenient(4)?,
            tool: row.lenient(5)?,
            state: row.lenient(6)?,
            asked_at: row.lenient::<i64>(7)?.unsigned_abs(),
            ended_at: moment(8)?,
            took_ms: moment(9)?,
            attempt: row.lenient(10)?,
            ok: row.lenient(11)?,
            outcome: row.lenient(12)?,
            code: row.lenient(13)?,
            kind: row.lenient(14)?,
            error_type: row.lenient(15)?,
            retryable: row.lenient(16)?,
            rule: row.lenient(17)?,
            rung_before: row.lenient(18)?,
            rung_after: row.lenient(19)?,
            repeat: row.lenient(20)?,
            recovered_at: moment(21)?,
            call_print: row.lenient(22)?,
            intent_print: row.lenient(23)?,
            cause_print: row.lenient(24)?,
            label: row.lenient(25)?,
        })
    }
}

/// What there is to read of a call, as its writer wrote it: reading a million verdicts only to write them out again costs
/// more than everything else about them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredCallText {
    /// Its input as JSON, cut where it was too long.
    pub input: String,
    /// The line that shows the cause; empty where there is none.
    pub evidence: String,
    /// The first of its output.
    pub head: String,
    /// And the last of it.
    pub tail: String,
    /// How many bytes stood between.
    pub omitted: u64,
    /// The diagnosis and what follows from it, as JSON; empty for a success.
    pub verdict: String,
    /// The states it went through, as JSON; [`LifeStep::all`] reads them.
    pub life: String,
}

impl StoredCallText {
    /// Its columns, to be selected from [`StoredCall::TABLES`]; empty where the texts were removed.
    pub(crate) const COLUMNS: &str = "ifnull(call_text.input, ''), ifnull(call_text.evidence, ''), ifnull(call_text.head, ''),
        ifnull(call_text.tail, ''), ifnull(call_text.omitted, 0), ifnull(call_text.verdict, ''), ifnull(call_text.life, '')";

    /// Reads the columns, the first of which stands at `from`.
    pub(crate) fn read(row: &Row<'_>, from: usize) -> Result<StoredCallText, rusqlite::Error> {
        Ok(StoredCallText {
            input: row.lenient(from)?,
            evidence: row.lenient(from + 1)?,
            head: row.lenient(from + 2)?,
            tail: row.lenient(from + 3)?,
            omitted: row.lenient::<i64>(from + 4)?.unsigned_abs(),
            verdict: row.lenient(from + 5)?,
            life: row.lenient(from + 6)?,
        })
    }

    /// The verdict, read: null for a success, and a text where it is no JSON.
    pub fn read_verdict(&self) -> Value {
        match self.verdict.is_empty() {
            true => Value::Null,
            false => event::read_json(&self.verdict),
        }
    }
}

/// One state of a call's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifeStep {
    /// When, in milliseconds since 1970, where that is known.
    pub at: Option<u64>,
    /// The state; empty for a bare note.
    pub state: String,
    /// What was to be said about it.
    pub note: String,
    /// The snapshot that was taken of what the call puts at risk; empty where this step tells of none.
    pub snapshot: String,
}

impl LifeStep {
    /// Reads a life. What is no list of steps is one note, so that nothing is hidden.
    pub fn all(life: &str) -> Vec<LifeStep> {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let step = |step: &Value| match step {
            Value::Object(_) => LifeStep {
                at: step["at"].as_u64(),
                state: text(&step["state"]),
                note: text(&step["note"]),
                snapshot: text(&step["snapshot"]),
            },
            other => LifeStep { at: None, state: String::new(), note: text(other), snapshot: String::new() },
        };
        match serde_json::from_str(life) {
            Ok(Value::Array(steps)) => steps.iter().map(step).collect(),
            Ok(other) => vec![step(&other)],
            Err(_) if life.is_empty() => Vec::new(),
            Err(_) => vec![step(&Value::from(life))],
        }
    }
}

impl Store {
    /// The call with this number.
    pub fn call(&self, id: i64) -> Result<Option<StoredCall>, StoreError> {
        Ok(self.some_calls("call.id = ?1", "call.id", (id,))?.pop())
    }

    /// Calls that the host names like this: exactly, or else by how the name begins. The newest first.
    pub fn calls_named(&self, key: &str, most: u32) -> Result<Vec<StoredCall>, StoreError> {
        if key.is_empty() {
            return Ok(Vec::new());
        }
        // The names are looked for in the index, which holds them alone; only what is found is read whole.
        let named = |which: &str| {
            let ids = format!(
                "call.id IN (SELECT id FROM call WHERE key <> '' AND {which} ORDER BY id DESC LIMIT ?2)"
            );
            self.some_calls(&ids, "call.id DESC", (key, most))
        };
        let exactly = named("key = ?1")?;
        if !exactly.is_empty() {
            return Ok(exactly);
        }
        named("substr(key, 1, length(?1)) = ?1")
    }

    /// The calls of the session with this name, in order; of more than `most` the newest.
    pub fn calls_of_session(&self, session: &str, most: u32) -> Result<Vec<StoredCall>, StoreError> {
        let of_session =
            "call.session = (SELECT id FROM session WHERE name = ?1) ORDER BY call.id DESC LIMIT ?2";
        let newest = format!("call.id IN (SELECT call.id FROM call WHERE {of_session})");
        self.some_calls(&newest, "call.id", (session, most))
    }

    /// Every attempt at the same call in its session, this one among them, in order.
    pub fn attempts(&self, call: &StoredCall) -> Result<Vec<StoredCall>, StoreError> {
        let same = "call.session = ?1 AND call.call_print = ?2";
        self.some_calls(same, "call.id", (call.session_id, call.call_print.as_str()))
    }

    /// The last calls that one cause stopped, the newest first.
    pub fn calls_stopped_by(&self, cause: &str, most: u32) -> Result<Vec<StoredCall>, StoreError> {
        let of_cause = "call.id IN (SELECT id FROM call WHERE cause_print = ?1 ORDER BY id DESC LIMIT ?2)";
        self.some_calls(of_cause, "call.id DESC", (cause, most))
    }

    fn some_calls(
        &self,
        which: &str,
        order: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<StoredCall>, StoreError> {
        let (columns, tables) = (StoredCall::COLUMNS, StoredCall::TABLES);
        let wrong = self.wrong();
        let sql = format!("SELECT {columns} FROM {tables} WHERE {which} ORDER BY {order}");
        let mut statement = self.connection.prepare(&sql).map_err(&wrong)?;
        let rows = statement.query_map(values, StoredCall::read).map_err(&wrong)?;
        rows::readable("call", rows).map_err(wrong)
    }

    /// What there is to read of a call; nothing where its texts were removed.
    pub fn call_text(&self, id: i64) -> Result<StoredCallText, StoreError> {
        let (columns, tables) = (StoredCallText::COLUMNS, StoredCall::TABLES);
        let sql = format!("SELECT {columns} FROM {tables} WHERE call.id = ?1");
        let found = self.connection.query_row(&sql, [id], |row| StoredCallText::read(row, 0));
        Ok(found.optional().map_err(self.wrong())?.unwrap_or_default())
    }

    /// Everything that the timeline tells about a call, in order.
    pub fn events_of(&self, call: &StoredCall) -> Result<Vec<StoredEvent>, StoreError> {
        let wrong = self.wrong();
        let sql = format!(
            "SELECT {COLUMNS} FROM event LEFT JOIN session ON session.id = event.session
             WHERE event.session = ?1 AND event.call = ?2 ORDER BY event.seq"
        );
        let mut statement = self.connection.prepare(&sql).map_err(&wrong)?;
        let rows = statement.query_map((call.session_id, call.id), StoredEvent::read).map_err(&wrong)?;
        rows::readable("event", rows).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, SampleCall};

    fn ids(calls: &[StoredCall]) -> Vec<i64> {
        calls.iter().map(|call| call.id).collect()
    }

    #[test]
    fn a_call_is_found_by_its_number_and_by_the_name_its_host_gives_it() {
        let sample = Sample::empty();
        let (one, other) = (sample.session("one", 0), sample.session("other", 0));
        for (session, key) in [(one, "toolu_1"), (one, "toolu_12"), (other, "toolu_12"), (one, "")] {
            sample.call(&SampleCall { session, key, ..SampleCall::default() });
        }
        let store = &sample.store;
        assert_eq!(store.call(4).unwrap().map(|call| (call.id, call.session)), Some((4, "one".to_owned())));
        assert_eq!(store.call(5).unwrap(), None);
        let check =
            |key: &str, expected: &[i64]| assert_eq!(ids(&store.calls_named(key, 9).unwrap()), expected);
        check("toolu_1", &[1]);
        check("toolu_12", &[3, 2]);
        check("tool", &[3, 2, 1]);
        check("oolu", &[]);
        check("", &[]);
        assert_eq!(ids(&store.calls_named("tool", 2).unwrap()), [3, 2]);
    }

    #[test]
    fn the_attempts_are_those_of_the_same_call_in_the_same_session() {
        let sample = Sample::empty();
        let (one, other) = (sample.session("one", 0), sample.session("other", 0));
        for (session, print) in [(one, "c1:a"), (one, "c1:b"), (other, "c1:a"), (one, "c1:a")] {
            sample.call(&SampleCall { session, print, ..SampleCall::default() });
        }
        let store = &sample.store;
        let first = store.call(1).unwrap().unwrap();
        assert_eq!(ids(&store.attempts(&first).unwrap()), [1, 4]);
    }

    #[test]
    fn the_events_of_a_call_are_its_own_whatever_their_type() {
        let sample = Sample::empty();
        let one = sample.session("one", 0);
        let call = sample.call(&SampleCall { session: one, ..SampleCall::default() });
        sample.event(0, "progress", "tool:start", Some(one), Some(call), "");
        sample.event(0, "progress", "tool:start", Some(one), Some(call + 1), "");
        sample.event(0, "progress", "tool:levitated", Some(one), Some(call), "");
        let store = &sample.store;
        let call = store.call(call).unwrap().unwrap();
        let kinds: Vec<_> = store.events_of(&call).unwrap().into_iter().map(|event| event.kind).collect();
        assert_eq!(kinds, ["tool:start", "tool:levitated"]);
    }

    #[test]
    fn a_call_whose_texts_are_gone_can_still_be_read() {
        let sample = Sample::empty();
        let call = sample.call(&SampleCall { session: 77, ..SampleCall::default() });
        let store = &sample.store;
        assert_eq!(
            store.call(call).unwrap().map(|call| (call.session, call.label)),
            Some(Default::default())
        );
        assert_eq!(store.call_text(call).unwrap(), StoredCallText::default());
    }

    #[test]
    fn a_life_that_is_no_list_of_steps_is_still_shown() {
        let step = |at, state: &str, note: &str| LifeStep {
            at,
            state: state.to_owned(),
            note: note.to_owned(),
            snapshot: String::new(),
        };
        let check = |life: &str, expected: &[LifeStep]| assert_eq!(LifeStep::all(life), expected, "{life}");
        check(
            r#"[{"at":5,"state":"pending"},{"at":6,"state":"failed","note":"x"}]"#,
            &[step(Some(5), "pending", ""), step(Some(6), "failed", "x")],
        );
        let saved = LifeStep { snapshot: "s41".to_owned(), ..step(Some(7), "executing", "") };
        check(r#"[{"at":7,"state":"executing","snapshot":"s41"}]"#, &[saved]);
        check(r#"[{"note":"lost"}, 7]"#, &[step(None, "", "lost"), step(None, "", "7")]);
        check("not JSON", &[step(None, "", "not JSON")]);
        check("", &[]);
    }
}
