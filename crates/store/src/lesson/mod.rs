//! Learns from what is recorded, in the transaction of the call itself, and remembers when the same cause is met again.
//!
//! A failure that was got over teaches what lay between; a lesson that was shown is judged by what followed. Nothing is
//! learnt from what anybody says.

mod foresight;
mod recall;
mod showing;
mod stored_fix;

use rusqlite::Row;
use serde_json::{Value, json};
use unstuck_judge::lesson::{
    Caution, Deed, Fix, Record, Standing, Trouble, is_launch, takes_the_place_of, was_idle,
};
use unstuck_judge::{Call, Kind, nature, vocabulary};

use crate::entry::Asked;
use crate::event::EventType;
use crate::lesson_removal;
use crate::record::Clerk;
use crate::rows::Lenient;
use crate::source::{Source, WATCHED};

pub(crate) use foresight::Foreseen;
pub use showing::Showing;
pub use stored_fix::{fix_from_json, fix_to_json};

/// The tables of lessons, which format 2 brought.
pub(crate) const TABLES: &str = include_str!("tables.sql");
/// How calls and wins came to be known, which format 5 brought.
pub(crate) const SOURCES: &str = include_str!("sources.sql");

/// What is asked of unstuck itself teaches nothing of anything else.
pub(crate) const OUR_TOOLS: &str = "mcp__unstuck__";
/// So many open failures of a session are looked at when a call goes well.
const OPEN_FAILURES: u32 = 8;
/// So many calls between a failure and its end are looked at.
const BETWEEN: u32 = 64;
/// A longer fix is a piece of work, not a fix.
const DEEDS_MAX: usize = 6;
/// So many fixes of one cause are kept apart.
const FIXES_MAX: u32 = 16;

vocabulary! {
    /// Where a lesson comes from, and what became of it.
    LessonState {
        /// It was learnt here by watching.
        Seen = "seen",
        /// A person read it and lets it be shown.
        Approved = "approved",
        /// It was learnt elsewhere: it has to win here first.
        Imported = "imported",
        /// It does not work any more.
        Quarantined = "quarantined",
        /// What others showed to be the core of it is a lesson of its own.
        Merged = "merged",
        /// A person does not want it.
        Forgotten = "forgotten",
    }
}

vocabulary! {
    /// What followed when a lesson was shown.
    ShownOutcome {
        /// Nobody knows yet.
        Open = "open",
        /// What it says runs in place of a call, and nobody knows yet how that ends.
        Runs = "runs",
        /// It was followed, and the call went well.
        Worked = "worked",
        /// It was followed, and the same cause was met again.
        Failed = "failed",
        /// The call went well by other means, or did not even fail.
        Other = "other",
        /// The session ended without success.
        GivenUp = "given_up",
    }
}

/// A failure of the session that was not got over yet.
struct OpenFailure {
    id: i64,
    cause: String,
    kind: Kind,
    rule: String,
    title: String,
    call: Call,
    same_intent: bool,
    source: Source,
}

/// A win or a loss, as it is counted.
struct Tried<'a> {
    session: i64,
    place: &'a str,
    at: u64,
    source: Source,
}

/// A lesson as it is judged.
pub(crate) struct Known {
    pub(crate) id: i64,
    /// Empty where it cannot be read.
    pub(crate) fix: Fix,
    pub(crate) state: LessonState,
    pub(crate) caution: bool,
    /// What counts for showing it: what was watched, or all of it where a person vouches for it.
    pub(crate) record: Record,
    /// How often it won, whoever told of it.
    pub(crate) wins: u32,
    /// How often that was watched.
    pub(crate) watched: u32,
    /// The line that showed the cause when it last won.
    pub(crate) title: String,
}

impl Known {
    /// How much it is worth among others. A person's word goes before everything that was only seen.
    fn worth(&self, at: u64) -> (bool, f64) {
        (self.state == LessonState::Approved, self.record.score(at))
    }

    pub(crate) const COLUMNS: &str =
        "id, body, state, caution IS NOT NULL, wins, losses, losses_since_win, won_at,
        (SELECT count(DISTINCT place) FROM lesson_place
            WHERE lesson = lesson.id AND wins > 0 AND source IN ('ran', 'hook')),
        EXISTS (SELECT 1 FROM lesson_place
            WHERE lesson = lesson.id AND place = ?2 AND wins > 0 AND source IN ('ran', 'hook')),
        title, (SELECT ifnull(sum(wins), 0) FROM lesson_place WHERE lesson = lesson.id AND source IN ('ran', 'hook'))";

    /// How many columns that are.
    pub(crate) const WIDTH: usize = 12;

    /// The best first, so that what was only told of does not crowd out what was watched.
    pub(crate) const BEST: &str = "state = 'approved' DESC, EXISTS (SELECT 1 FROM lesson_place
        WHERE lesson = lesson.id AND wins > 0 AND source IN ('ran', 'hook')) DESC, wins DESC";

    pub(crate) fn read(row: &Row<'_>) -> Result<Known, rusqlite::Error> {
        // What only a newer version knows is not shown.
        let state = row.lenient::<String>(2)?.parse().unwrap_or(LessonState::Forgotten);
        let (wins, watched) = (row.lenient(4)?, row.lenient(11)?);
        Ok(Known {
            id: row.lenient(0)?,
            fix: fix_from_json(&row.lenient::<String>(1)?).unwrap_or_default(),
            state,
            caution: row.lenient(3)?,
            wins,
            watched,
            record: Record {
                wins: if state == LessonState::Approved { wins } else { watched.min(wins) },
                losses: row.lenient(5)?,
                losses_since_win: row.lenient(6)?,
                won_at: row.lenient::<i64>(7)?.unsigned_abs(),
                places: row.lenient(8)?,
                won_here: row.lenient(9)?,
                is_of_another_version: false,
            },
            title: row.lenient(10)?,
        })
    }
}

impl Clerk<'_> {
    /// A call went well. Failures that it got over are learnt from, and lessons that were shown against them are judged.
    pub(crate) fn learn(&self, session: i64, id: i64, asked: &Asked) -> Result<(), rusqlite::Error> {
        if asked.tool.starts_with(OUR_TOOLS) {
            return Ok(());
        }
        self.reopen_if_stepped(session, asked)?;
        let open = self.open_failures(session, asked)?;
        if open.is_empty() {
            return Ok(());
        }
        let Some(worked) = stored_call(&asked.tool, &asked.input).filter(|call| !is_launch(call)) else {
            return Ok(());
        };
        let mut done: Vec<&str> = Vec::new();
        for failure in &open {
            let is_over = failure.same_intent || takes_the_place_of(&worked, &failure.call, failure.kind);
            // Of one cause the last failure counts: what was done before it did not help.
            if !is_over || done.contains(&&*failure.cause) {
                continue;
            }
            done.push(&failure.cause);
            self.learn_from(session, id, asked, failure, &open, &worked)?;
        }
        Ok(())
    }

    /// A call that failed goes well itself, although another one was taken to have gone well in its place: that one was a step.
    /// What was learnt of it is taken back, and the failure is learnt from anew.
    fn reopen_if_stepped(&self, session: i64, asked: &Asked) -> Result<(), rusqlite::Error> {
        // In this order, hardly anything is read where hardly anything was learnt, however often a cause was met.
        let sql = "SELECT call.id, lesson.id FROM lesson_source CROSS JOIN lesson CROSS JOIN call
             WHERE lesson_source.session = ?1 AND lesson.id = lesson_source.lesson AND lesson.wins = 1
               AND lesson.state = 'seen'
               AND CASE WHEN json_valid(body) THEN json_extract(body, '$.change.from') END IS NOT NULL
               AND call.id IN (SELECT id FROM call WHERE cause_print = lesson.cause ORDER BY id DESC LIMIT 64)
               AND +call.session = ?1 AND +call.intent_print = ?2 AND call.state = 'failed'
               AND call.recovered_at = lesson.won_at";
        let mut statement = self.connection.prepare_cached(sql)?;
        let stepped = statement
            .query_map((session, asked.intent_print.as_str()), |row| Ok((row.lenient(0)?, row.lenient(1)?)))?
            .collect::<Result<Vec<(i64, i64)>, _>>()?;
        for (call, lesson) in stepped {
            lesson_removal::remove(self.connection, &[lesson])?;
            self.connection
                .prepare_cached("UPDATE call SET recovered_at = NULL WHERE id = ?1")?
                .execute([call])?;
        }
        Ok(())
    }

    fn learn_from(
        &self,
        session: i64,
        id: i64,
        asked: &Asked,
        failure: &OpenFailure,
        open: &[OpenFailure],
        worked: &Call,
    ) -> Result<(), rusqlite::Error> {
        let source = failure.source.and(self.source_of(id)?);
        let fix_since = |since: i64| -> Result<Fix, rusqlite::Error> {
            let between = self.calls_between(session, asked, since, id, source)?;
            Ok(Fix::seen(&failure.call, &between, worked))
        };
        let trouble = Trouble { call: &failure.call, kind: failure.kind, shown: &failure.title };
        let mut done = fix_since(failure.id)?;
        let mut fix = done.that_bears_on(&trouble);
        if fix.is_empty() {
            let first = open.iter().filter(|other| other.cause == failure.cause).map(|other| other.id).min();
            done = fix_since(first.unwrap_or(failure.id))?;
            fix = done.that_bears_on(&trouble);
        }
        if !failure.same_intent {
            self.connection
                .prepare_cached("UPDATE call SET recovered_at = ?2 WHERE id = ?1 AND recovered_at IS NULL")?
                .execute((failure.id, asked.who.at.cast_signed()))?;
        }
        self.judge_shown(session, &failure.cause, &done)?;
        self.leave_to_others(session, &failure.cause, &mut fix)?;
        if fix.is_empty() || fix.deeds.len() > DEEDS_MAX {
            return Ok(());
        }
        let place = asked.who.place.to_string();
        let win = Tried { session, place: &place, at: asked.who.at, source };
        let known = self.lessons_for(&failure.cause, &place)?;
        // Whatever was among what helped has helped once more.
        let mut within = known.iter().filter(|lesson| lesson.fix.is_within(&done)).peekable();
        if within.peek().is_some() {
            for lesson in within {
                self.win(lesson.id, &win)?;
            }
            return Ok(());
        }
        let mergeable = |lesson: &&Known| {
            !matches!(lesson.state, LessonState::Forgotten | LessonState::Approved | LessonState::Merged)
                // What was watched is not taken apart by what was only told of.
                && (source.is_watched() || lesson.watched == 0)
        };
        let common =
            known.iter().filter(mergeable).find_map(|lesson| Some((lesson, lesson.fix.common(&fix)?)));
        match common {
            Some((lesson, common)) => {
                let core = self.note_lesson(failure, &common, &win)?;
                self.connection
                    .prepare_cached("UPDATE lesson SET wins = wins + ?2 WHERE id = ?1")?
                    .execute((core, lesson.wins))?;
                self.connection
                    .prepare_cached("UPDATE lesson SET state = 'merged' WHERE id = ?1")?
                    .execute([lesson.id])?;
                self.connection
                    .prepare_cached(
                        "INSERT INTO lesson_place SELECT ?1, place, wins, losses, at, source FROM lesson_place WHERE lesson = ?2
                         AND true ON CONFLICT DO UPDATE SET wins = wins + excluded.wins",
                    )?
                    .execute((core, lesson.id))?;
                self.connection
                    .prepare_cached(
                        "INSERT INTO lesson_source SELECT ?1, session, place, wins, losses, at, source FROM lesson_source
                         WHERE lesson = ?2 AND true ON CONFLICT DO UPDATE SET wins = wins + excluded.wins",
                    )?
                    .execute((core, lesson.id))?;
            }
            None => {
                self.note_lesson(failure, &fix, &win)?;
            }
        }
        Ok(())
    }

    /// Takes out what ended another failure of the session, unless nothing else was done.
    fn leave_to_others(&self, session: i64, cause: &str, fix: &mut Fix) -> Result<(), rusqlite::Error> {
        if fix.deeds.len() < 2 {
            return Ok(());
        }
        let sql = "SELECT body, program FROM lesson JOIN lesson_source ON lesson_source.lesson = lesson.id
             WHERE lesson_source.session = ?1 AND lesson_source.wins > 0 AND cause <> ?2
               AND state NOT IN ('merged', 'forgotten')";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut others: Vec<Fix> = Vec::new();
        let mut rows = statement.query((session, cause))?;
        while let Some(row) = rows.next()? {
            let failed: String = row.lenient(1)?;
            // A step that failed itself, and was brought about by another one, needs that one.
            let program = failed.split(' ').next().unwrap_or_default();
            let is_step = |deed: &Deed| matches!(deed, Deed::Ran { line } if line.split(' ').any(|word| word == program));
            if !fix.deeds.iter().any(is_step) {
                others.extend(fix_from_json(&row.lenient::<String>(0)?));
            }
        }
        let is_theirs =
            |deed: &Deed| others.iter().flat_map(|other| &other.deeds).any(|done| done.is_like(deed));
        if !fix.deeds.iter().all(is_theirs) {
            fix.deeds.retain(|deed| !is_theirs(deed));
        }
        Ok(())
    }

    /// A new lesson, or one more win of one that is there.
    fn note_lesson(&self, failure: &OpenFailure, fix: &Fix, win: &Tried<'_>) -> Result<i64, rusqlite::Error> {
        self.make_room(&failure.cause, fix)?;
        let id: i64 = self
            .connection
            .prepare_cached(
                "INSERT INTO lesson (cause, fix, kind, rule, tool, program, title, body, state, caution, wins, losses,
                     losses_since_win, shown, followed, first_at, won_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'seen', ?9, 0, 0, 0, 0, 0, ?10, ?10)
                 ON CONFLICT DO UPDATE SET title = excluded.title RETURNING id",
            )?
            .query_row(
                (
                    &failure.cause,
                    fix.print().as_str(),
                    failure.kind.word(),
                    &failure.rule,
                    &failure.call.tool,
                    nature::approach(&failure.call),
                    &failure.title,
                    fix_to_json(fix),
                    Caution::about(fix).map(Caution::word),
                    win.at.cast_signed(),
                ),
                |row| row.lenient(0),
            )?;
        self.win(id, win)?;
        Ok(id)
    }

    /// A cause that is got over in ever new ways has no fix: of those that were only seen, the ones that won least and
    /// longest ago make room for a new one.
    fn make_room(&self, cause: &str, new: &Fix) -> Result<(), rusqlite::Error> {
        let sql = format!(
            "SELECT id FROM lesson WHERE cause = ?1 AND fix <> ?2 AND state IN ('seen', 'quarantined', 'merged')
             ORDER BY state = 'merged', EXISTS (SELECT 1 FROM lesson_place WHERE lesson = lesson.id AND wins > 0
                 AND source IN {WATCHED}) DESC, wins DESC, won_at DESC LIMIT -1 OFFSET {}",
            FIXES_MAX - 1
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let beyond = statement.query_map((cause, new.print().as_str()), |row| row.lenient(0))?;
        let beyond = beyond.collect::<Result<Vec<i64>, _>>()?;
        lesson_removal::remove(self.connection, &beyond)
    }

    fn win(&self, lesson: i64, win: &Tried<'_>) -> Result<(), rusqlite::Error> {
        let Tried { place, at, source, .. } = *win;
        self.connection
            .prepare_cached(
                "UPDATE lesson SET wins = wins + 1, losses_since_win = 0, won_at = max(won_at, ?2),
                     state = CASE state WHEN 'quarantined' THEN 'seen' ELSE state END WHERE id = ?1",
            )?
            .execute((lesson, at.cast_signed()))?;
        self.connection
            .prepare_cached(
                "INSERT INTO lesson_place VALUES (?1, ?2, 1, 0, ?3, ?4)
                 ON CONFLICT DO UPDATE SET wins = wins + 1, at = max(at, excluded.at)",
            )?
            .execute((lesson, place, at.cast_signed(), source.word()))?;
        self.note_source(lesson, win, [1, 0])
    }

    /// Notes which session a win or a loss came from.
    fn note_source(
        &self,
        lesson: i64,
        of: &Tried<'_>,
        [wins, losses]: [u32; 2],
    ) -> Result<(), rusqlite::Error> {
        self.connection
            .prepare_cached(
                "INSERT INTO lesson_source VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET
                     wins = wins + excluded.wins, losses = losses + excluded.losses, at = max(at, excluded.at)",
            )?
            .execute((lesson, of.session, of.place, wins, losses, of.at.cast_signed(), of.source.word()))
            .map(|_| ())
    }

    /// A lesson was shown and did not help. One whose fix stopped working is put aside, and that is news.
    fn lose(&self, call: i64, lesson: &Known, loss: &Tried<'_>) -> Result<(), rusqlite::Error> {
        let Tried { session, place, at, source } = *loss;
        let record = Record { losses_since_win: lesson.record.losses_since_win + 1, ..lesson.record };
        let is_over = record.standing() == Standing::Quarantined && lesson.state != LessonState::Quarantined;
        self.connection
            .prepare_cached(
                "UPDATE lesson SET losses = losses + 1, losses_since_win = losses_since_win + 1,
                     state = CASE WHEN ?2 THEN 'quarantined' ELSE state END WHERE id = ?1",
            )?
            .execute((lesson.id, is_over))?;
        self.connection
            .prepare_cached(
                "INSERT INTO lesson_place VALUES (?1, ?2, 0, 1, ?3, ?4)
                 ON CONFLICT DO UPDATE SET losses = losses + 1, at = max(at, excluded.at)",
            )?
            .execute((lesson.id, place, at.cast_signed(), source.word()))?;
        self.note_source(lesson.id, loss, [0, 1])?;
        if is_over {
            let body =
                json!({ "lesson": lesson.id, "wins": lesson.wins, "losses": lesson.record.losses + 1 });
            self.append(at, EventType::LessonRegressed, session, call, body)?;
        }
        Ok(())
    }

    /// What is known against a cause, with how it did in this place.
    fn lessons_for(&self, cause: &str, place: &str) -> Result<Vec<Known>, rusqlite::Error> {
        // Most causes are new, and the question below takes SQLite ten times as long to understand as this one.
        let is_known = "SELECT EXISTS (SELECT 1 FROM lesson WHERE cause = ?1)";
        if !self.connection.prepare_cached(is_known)?.query_row([cause], |row| row.get(0))? {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT {} FROM lesson WHERE cause = ?1 ORDER BY {} LIMIT {FIXES_MAX}",
            Known::COLUMNS,
            Known::BEST
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        // Nothing can be said by a fix that cannot be read, and everything would seem to hold it.
        let readable =
            |lesson: &Result<Known, _>| lesson.as_ref().map_or(true, |lesson| !lesson.fix.is_empty());
        statement.query_map((cause, place), Known::read)?.filter(readable).collect()
    }

    /// The failures of the session that are still open, the last one first.
    fn open_failures(&self, session: i64, asked: &Asked) -> Result<Vec<OpenFailure>, rusqlite::Error> {
        let sql = format!(
            "SELECT call.id, cause_print, kind, rule, evidence, tool, input, intent_print = ?2, source
             FROM call JOIN call_text ON call_text.call = call.id
             WHERE session = ?1 AND state = 'failed' AND recovered_at IS NULL AND cause_print IS NOT NULL
             ORDER BY call.id DESC LIMIT {OPEN_FAILURES}"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query((session, asked.intent_print.as_str()))?;
        let mut open = Vec::new();
        while let Some(row) = rows.next()? {
            let Some(call) = stored_call(&row.lenient::<String>(5)?, &row.lenient::<String>(6)?) else {
                continue;
            };
            open.push(OpenFailure {
                id: row.lenient(0)?,
                cause: row.lenient(1)?,
                kind: row.lenient::<String>(2)?.parse().unwrap_or(Kind::Unknown),
                rule: row.lenient::<Option<String>>(3)?.unwrap_or_default(),
                title: row.lenient(4)?,
                call,
                same_intent: row.lenient(7)?,
                source: Source::stored(&row.lenient::<String>(8)?),
            });
        }
        Ok(open)
    }

    /// How a call came to be known.
    fn source_of(&self, call: i64) -> Result<Source, rusqlite::Error> {
        self.connection
            .prepare_cached("SELECT source FROM call WHERE id = ?1")?
            .query_row([call], |row| Ok(Source::stored(&row.lenient::<String>(0)?)))
    }

    /// The calls of this agent that went well after one and before another, and had something to do. Between calls that were
    /// watched, only what was watched as well.
    fn calls_between(
        &self,
        session: i64,
        asked: &Asked,
        after: i64,
        before: i64,
        source: Source,
    ) -> Result<Vec<Call>, rusqlite::Error> {
        // The sign before the session keeps SQLite from reading all calls of the session for the few between.
        let sql = format!(
            "SELECT tool, input, head FROM call JOIN call_text ON call_text.call = call.id
             WHERE +session = ?1 AND call.id > ?2 AND call.id < ?3 AND state = 'completed' AND agent = ?4
               AND (source IN {WATCHED} OR NOT ?5)
             ORDER BY call.id LIMIT {BETWEEN}"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query((session, after, before, &*asked.who.agent, source.is_watched()))?;
        let mut calls = Vec::new();
        while let Some(row) = rows.next()? {
            if !was_idle(row.get_ref(2)?.as_str()?) {
                calls.extend(stored_call(&row.lenient::<String>(0)?, &row.lenient::<String>(1)?));
            }
        }
        Ok(calls)
    }
}

/// A call as it was kept. One that was cut is not whole any more, and says nothing.
pub(crate) fn stored_call(tool: &str, input: &str) -> Option<Call> {
    let input: Value = serde_json::from_str(input).ok()?;
    Some(Call::new(tool, input))
}
