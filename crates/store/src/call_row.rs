//! The rows of a session and of its calls, as the record needs them: found, made, and closed.

use rusqlite::{OptionalExtension, Row, params};
use unstuck_judge::fingerprint::Fingerprint;
use unstuck_judge::ladder::Rung;
use unstuck_wire::clean::Clean;

use crate::chain::{AskedPart, EndedPart, Record};
use crate::entry::{Asked, Ended, Finding, Who};
use crate::heard;
use crate::life;
use crate::record::Clerk;
use crate::rewritten::Rewritten;
use crate::rows::Lenient;
use crate::source::WATCHED;
use crate::state::CallState;

/// After so long a silence anything may have changed.
const IDLE_MS: u64 = 10 * 60 * 1000;

/// The call with the host's name for it. That the name is not empty must be said: SQLite uses an index over such names only
/// where it can see that.
const FIND: &str = "SELECT id, state, asked_at, attempt, rung_before, life, charge, untold, call_print
    FROM call JOIN call_text ON call_text.call = call.id
    WHERE session = ?1 AND key = ?2 AND key <> ''";

/// The first open call of those that are alike and have no name.
const FIND_NAMELESS: &str =
    "SELECT id, state, asked_at, attempt, rung_before, life, charge, untold, call_print
    FROM call JOIN call_text ON call_text.call = call.id
    WHERE session = ?1 AND call_print = ?2 AND agent = ?3 AND key = ''
      AND state IN ('approval_required', 'approved', 'executing')
    ORDER BY id LIMIT 1";

/// The latest open call that is the same, whatever its name.
const FIND_SAME: &str = "SELECT id, state, asked_at, attempt, rung_before, life, charge, untold, call_print
    FROM call JOIN call_text ON call_text.call = call.id
    WHERE session = ?1 AND call_print = ?2 AND agent = ?3 AND state = 'executing' ORDER BY id DESC LIMIT 1";

/// The last attempt at the same call.
const LAST_ATTEMPT: &str =
    "SELECT state, attempt FROM call WHERE session = ?1 AND call_print = ?2 ORDER BY id DESC LIMIT 1";

/// The same failure of the same intent, not got over.
const IS_REPEAT: &str = "SELECT 1 FROM call
    WHERE session = ?1 AND intent_print = ?2 AND state = 'failed' AND recovered_at IS NULL AND cause_print = ?3 LIMIT 1";

/// Nothing failed that was not got over, and nothing was learnt or shown.
const IS_UNTROUBLED: &str = "SELECT
    NOT EXISTS (SELECT 1 FROM call WHERE session = ?1 AND state = 'failed' AND recovered_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM lesson_source WHERE session = ?1)
    AND NOT EXISTS (SELECT 1 FROM lesson_shown WHERE session = ?1)";

/// A call as it is found in the tables.
pub(crate) struct Found {
    pub(crate) id: i64,
    pub(crate) state: CallState,
    pub(crate) asked_at: u64,
    pub(crate) attempt: u32,
    pub(crate) rung_before: Rung,
    /// The rule behind its refusal.
    pub(crate) charge: Option<String>,
    /// What is still to be said of it, with its result.
    pub(crate) untold: Option<String>,
    pub(crate) life: String,
    /// The fingerprint of what it runs.
    pub(crate) call_print: String,
    pub(crate) written: Written,
}

/// Does a call stand in the tables?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Yes,
    /// Only just: no event tells of its beginning.
    Late,
    /// Not yet: it is written when it ends.
    Not {
        /// It is the first of its session that is like this.
        is_first: bool,
    },
}

/// A call that is asked for, as far as its asker does not say it.
pub(crate) struct NewCall<'a> {
    pub(crate) state: CallState,
    /// Which attempt it is.
    pub(crate) attempt: u32,
    /// What the ladder said before it.
    pub(crate) rung: Rung,
    /// The rule behind its refusal.
    pub(crate) charge: Option<&'a str>,
    /// How often the session's world had moved, where somebody looked.
    pub(crate) world: Option<u32>,
    pub(crate) life: &'a str,
}

/// What is written down when a call ends, beside the result itself.
pub(crate) struct Closing<'a> {
    pub(crate) state: CallState,
    pub(crate) took: Option<u64>,
    /// The session had met this failure before.
    pub(crate) repeat: bool,
    /// What the ladder says to it.
    pub(crate) rung: Rung,
    pub(crate) world: u32,
    pub(crate) life: &'a str,
}

impl Found {
    fn read(row: &Row<'_>) -> Result<Found, rusqlite::Error> {
        Ok(Found {
            id: row.lenient(0)?,
            // A state that only a newer version knows is not one that this one may move.
            state: row.lenient::<String>(1)?.parse().unwrap_or(CallState::Completed),
            asked_at: row.lenient::<i64>(2)?.unsigned_abs(),
            attempt: row.lenient(3)?,
            rung_before: row.lenient::<String>(4)?.parse().unwrap_or(Rung::Observe),
            life: row.lenient(5)?,
            charge: row.lenient(6)?,
            untold: row.lenient(7)?,
            call_print: row.lenient(8)?,
            written: Written::Yes,
        })
    }
}

impl Clerk<'_> {
    /// The session's number; it is made when it is first heard of.
    pub(crate) fn session(&self, who: &Who) -> Result<i64, rusqlite::Error> {
        heard::note(self.connection, who)?;
        if let Some(id) = self.desk.meet(who) {
            return Ok(id);
        }
        let (id, last_at): (i64, i64) = self
            .connection
            .prepare_cached(
                "INSERT INTO session (name, host, cwd, first_at, last_at) VALUES (?1, ?2, ?3, ?4, ?4)
                 ON CONFLICT (name) DO UPDATE SET last_at = max(last_at, excluded.last_at),
                     cwd = CASE excluded.cwd WHEN '' THEN cwd ELSE excluded.cwd END
                 RETURNING id, last_at",
            )?
            .query_row((&*who.session, &*who.host, &*who.cwd, who.at.cast_signed()), |row| {
                Ok((row.lenient(0)?, row.lenient(1)?))
            })?;
        self.desk.note_session(who, id, last_at.unsigned_abs());
        Ok(id)
    }

    /// The number of the session that a call belongs to; nothing where the call is gone.
    pub(crate) fn session_of(&self, call: i64) -> Result<Option<i64>, rusqlite::Error> {
        self.connection
            .prepare_cached("SELECT session FROM call WHERE id = ?1")?
            .query_row([call], |row| row.lenient(0))
            .optional()
    }

    /// Was nothing heard of the session for so long that anything may have changed?
    pub(crate) fn was_idle(&self, who: &Who) -> Result<bool, rusqlite::Error> {
        let last = match self.desk.last_heard(who) {
            Some(last) => Some(last),
            None => self
                .connection
                .prepare_cached("SELECT last_at FROM session WHERE name = ?1")?
                .query_row([&*who.session], |row| row.lenient::<i64>(0))
                .optional()?
                .map(i64::unsigned_abs),
        };
        Ok(last.is_some_and(|last| who.at.saturating_sub(last) > IDLE_MS))
    }

    /// The call with the host's name for it.
    pub(crate) fn find(&self, session: i64, key: &Clean) -> Result<Option<Found>, rusqlite::Error> {
        if key.is_empty() {
            return Ok(None);
        }
        self.connection.prepare_cached(FIND)?.query_row((session, &**key), Found::read).optional()
    }

    /// The latest open call that is the same.
    pub(crate) fn find_same(
        &self,
        session: i64,
        who: &Who,
        print: &Fingerprint,
    ) -> Result<Option<Found>, rusqlite::Error> {
        self.connection
            .prepare_cached(FIND_SAME)?
            .query_row((session, print.as_str(), &*who.agent), Found::read)
            .optional()
    }

    /// Keeps words that cannot be said before a call until its result is there.
    pub(crate) fn tell_with_result(&self, call: i64, words: &str) -> Result<(), rusqlite::Error> {
        let sql = "UPDATE call_text SET untold = trim(coalesce(untold, '') || ' ' || ?2) WHERE call = ?1";
        self.connection.prepare_cached(sql)?.execute((call, words)).map(|_| ())
    }

    /// A call that runs with other words is known by what runs: its result tells nothing else.
    pub(crate) fn note_rewritten(
        &self,
        call: i64,
        life: &mut String,
        at: u64,
        rewritten: &Rewritten,
    ) -> Result<(), rusqlite::Error> {
        life::note_rewritten(life, at);
        self.connection
            .prepare_cached("UPDATE call SET call_print = ?2 WHERE id = ?1")?
            .execute((call, rewritten.call.as_str()))?;
        self.connection
            .prepare_cached("UPDATE call_text SET untold = ?2, life = ?3 WHERE call = ?1")?
            .execute((call, rewritten.tell_later.as_deref(), &**life))
            .map(|_| ())
    }

    /// The call that a result without a name belongs to: the first of the same calls that is still open.
    pub(crate) fn find_nameless(
        &self,
        session: i64,
        asked: &Asked,
    ) -> Result<Option<Found>, rusqlite::Error> {
        self.connection
            .prepare_cached(FIND_NAMELESS)?
            .query_row((session, asked.call_print.as_str(), &*asked.who.agent), Found::read)
            .optional()
    }

    pub(crate) fn insert(
        &self,
        session: i64,
        asked: &Asked,
        new: &NewCall<'_>,
    ) -> Result<i64, rusqlite::Error> {
        let at = asked.who.at.cast_signed();
        self.connection
            .prepare_cached(
                "INSERT INTO call (id, session, key, agent, tool, state, asked_at, ended_at, attempt, rung_before,
                     rung_after, repeat, owner, call_print, intent_print, charge, world, source)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'observe', 0, ?11, ?12, ?13, ?14, ?15, ?16)",
            )?
            .execute((
                self.desk.number(self.connection)?,
                session,
                &*asked.key,
                &*asked.who.agent,
                &*asked.tool,
                new.state.word(),
                at,
                new.state.is_final().then_some(at),
                new.attempt,
                new.rung.word(),
                &*asked.who.owner,
                asked.call_print.as_str(),
                asked.intent_print.as_str(),
                new.charge,
                new.world,
                asked.who.source.word(),
            ))?;
        let call = self.connection.last_insert_rowid();
        self.connection
            .prepare_cached(
                "INSERT INTO call_text (call, label, input, evidence, head, tail, omitted, verdict, life)
                 VALUES (?1, ?2, ?3, '', '', '', 0, '', ?4)",
            )?
            .execute((call, &*asked.label, &*asked.input, new.life))?;
        Ok(call)
    }

    /// Which attempt this is: one more than the last, if that failed.
    pub(crate) fn attempt(&self, session: i64, asked: &Asked) -> Result<u32, rusqlite::Error> {
        Ok(self.next_attempt(session, asked)?.unwrap_or(1))
    }

    /// The same; nothing where the session has no such call yet.
    pub(crate) fn next_attempt(&self, session: i64, asked: &Asked) -> Result<Option<u32>, rusqlite::Error> {
        if self.desk.has_draft_of(session, &asked.call_print) {
            return Ok(Some(1));
        }
        let last: Option<(String, u32)> = self
            .connection
            .prepare_cached(LAST_ATTEMPT)?
            .query_row((session, asked.call_print.as_str()), |row| Ok((row.lenient(0)?, row.lenient(1)?)))
            .optional()?;
        Ok(last.map(|(state, attempt)| match state {
            state if state == CallState::Failed.word() => attempt.saturating_add(1),
            // What was refused was no attempt, but it does not end the row of failures before it.
            state if state == CallState::Denied.word() => attempt,
            _ => 1,
        }))
    }

    /// Is a success no news to this session? Nothing is to be got over, learnt from or judged by it.
    pub(crate) fn is_untroubled(&self, session: i64) -> Result<bool, rusqlite::Error> {
        self.desk.is_untroubled(session, || {
            self.connection.prepare_cached(IS_UNTROUBLED)?.query_row([session], |row| row.lenient(0))
        })
    }

    /// Has this session met the same failure of the same intent, and not got over it?
    pub(crate) fn is_repeat(
        &self,
        session: i64,
        asked: &Asked,
        finding: &Finding,
    ) -> Result<bool, rusqlite::Error> {
        self.connection.prepare_cached(IS_REPEAT)?.exists((
            session,
            asked.intent_print.as_str(),
            finding.cause.as_str(),
        ))
    }

    pub(crate) fn write_ending(
        &self,
        call: i64,
        ended: &Ended,
        closing: &Closing<'_>,
    ) -> Result<(), rusqlite::Error> {
        let Closing { state, took, repeat, rung, world, life } = *closing;
        let at = ended.asked.who.at;
        let again_at = ended.again_after.map(|wait| at.saturating_add(wait).cast_signed());
        let finding = ended.finding.as_ref().filter(|_| state == CallState::Failed);
        let ok = (state != CallState::Denied).then_some(state == CallState::Completed);
        self.connection
            // Both that it was asked for and how it ended have to be seen.
            .prepare_cached(&format!(
                "UPDATE call SET state = ?2, ended_at = ?3, took_ms = ?4, ok = ?5, outcome = ?6, code = ?7, kind = ?8,
                     error_type = ?9, retryable = ?10, rule = ?11, rung_after = ?12, repeat = ?13, cause_print = ?14, again_at = ?15,
                     world = ?16, sealed_from = NULL, source = CASE WHEN source IN {WATCHED} THEN ?17 ELSE source END
                 WHERE id = ?1"
            ))?
            .execute(params![
                call,
                state.word(),
                at.cast_signed(),
                took.map(u64::cast_signed),
                ok,
                ended.outcome.word(),
                ended.outcome.number(),
                finding.map(|finding| finding.kind.word()),
                finding.map(|finding| &*finding.error_type),
                finding.and_then(|finding| finding.retryable),
                finding.map(|finding| &*finding.rule),
                rung.word(),
                repeat,
                finding.map(|finding| finding.cause.as_str()),
                again_at,
                world,
                ended.asked.who.source.word(),
            ])?;
        self.connection
            .prepare_cached(
                "UPDATE call_text SET evidence = ?2, head = ?3, tail = ?4, omitted = ?5, verdict = ?6, life = ?7
                 WHERE call = ?1",
            )?
            .execute((
                call,
                finding.map_or("", |finding| &*finding.evidence),
                &*ended.output.head,
                &*ended.output.tail,
                ended.output.omitted.cast_signed(),
                finding.map_or("", |finding| &*finding.verdict),
                life,
            ))?;
        Ok(())
    }

    /// A call that began and ended well while nobody else could write: the whole of it at once.
    pub(crate) fn write_whole(
        &self,
        session: i64,
        found: &Found,
        ended: &Ended,
        closing: &Closing<'_>,
    ) -> Result<(), rusqlite::Error> {
        let Closing { state, took, repeat, rung, world, life } = *closing;
        let (asked, at) = (&ended.asked, ended.asked.who.at);
        let again_at = ended.again_after.map(|wait| at.saturating_add(wait).cast_signed());
        self.connection
            .prepare_cached(
                "INSERT INTO call (id, session, key, agent, tool, state, asked_at, ended_at, took_ms, attempt, ok, outcome,
                     code, rung_before, rung_after, repeat, owner, call_print, intent_print, world, again_at,
                     source)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 1, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)",
            )?
            .execute(params![
                found.id,
                session,
                &*asked.key,
                &*asked.who.agent,
                &*asked.tool,
                state.word(),
                found.asked_at.cast_signed(),
                at.cast_signed(),
                took.map(u64::cast_signed),
                found.attempt,
                ended.outcome.word(),
                ended.outcome.number(),
                found.rung_before.word(),
                rung.word(),
                repeat,
                &*asked.who.owner,
                found.call_print,
                asked.intent_print.as_str(),
                world,
                again_at,
                asked.who.source.word(),
            ])?;
        self.connection
            .prepare_cached(
                "INSERT INTO call_text (call, label, input, evidence, head, tail, omitted, verdict, life)
                 VALUES (?1, ?2, ?3, '', ?4, ?5, ?6, '', ?7)",
            )?
            .execute((
                found.id,
                &*asked.label,
                &*asked.input,
                &*ended.output.head,
                &*ended.output.tail,
                ended.output.omitted.cast_signed(),
                life,
            ))?;
        Ok(())
    }

    /// What the timeline says of a call's row once it has ended.
    pub(crate) fn ended_record(&self, found: &Found, ended: &Ended, closing: &Closing<'_>) -> Record {
        let Closing { state, .. } = *closing;
        let asked = &ended.asked;
        let finding = ended.finding.as_ref().filter(|_| state == CallState::Failed);
        let part = EndedPart {
            state: state.word(),
            ended_at: Some(asked.who.at.cast_signed()),
            ok: (state != CallState::Denied).then_some(state == CallState::Completed),
            outcome: Some(ended.outcome.word()),
            code: ended.outcome.number().map(i64::from),
            kind: finding.map(|finding| finding.kind.word()),
            rule: finding.map(|finding| &*finding.rule),
            cause: finding.map(|finding| finding.cause.as_str()),
            evidence: finding.map_or("", |finding| &*finding.evidence),
            head: &ended.output.head,
            tail: &ended.output.tail,
            omitted: ended.output.omitted.cast_signed(),
            verdict: finding.map_or("", |finding| &*finding.verdict),
        };
        match found.written {
            // Its beginning is told by an event of its own.
            Written::Yes | Written::Not { .. } => Record::ended(&part),
            Written::Late => Record::whole(&asked_part(asked, found.asked_at.cast_signed()), &part),
        }
    }

    /// A call in one short line.
    pub(crate) fn label(&self, call: i64) -> Result<String, rusqlite::Error> {
        self.connection
            .prepare_cached("SELECT label FROM call_text WHERE call = ?1")?
            .query_row([call], |row| row.lenient(0))
    }
}

/// What the timeline says of the row of a call that is asked for.
pub(crate) fn asked_part(asked: &Asked, asked_at: i64) -> AskedPart<'_> {
    AskedPart {
        key: &asked.key,
        agent: &asked.who.agent,
        tool: &asked.tool,
        asked_at,
        label: &asked.label,
        input: &asked.input,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database;

    /// What a hook asks costs the same however long its session and however many calls of others there are: each question
    /// goes through the index that was made for it.
    #[test]
    fn every_question_of_a_hook_goes_through_its_index() {
        let connection = database::in_memory().unwrap();
        for (sql, index) in [
            (FIND, "call_by_key"),
            (FIND_NAMELESS, "call_nameless"),
            (LAST_ATTEMPT, "call_by_print"),
            (FIND_SAME, "call_by_print"),
            (IS_REPEAT, "call_unrecovered"),
            (IS_UNTROUBLED, "call_failed"),
        ] {
            let plan = database::plan(&connection, sql).replace("SCAN CONSTANT ROW", "");
            assert!(plan.contains(&format!("SEARCH call USING INDEX {index} (session=")), "{sql}: {plan}");
            assert!(!plan.contains("SCAN"), "{sql}: {plan}");
        }
    }
}
