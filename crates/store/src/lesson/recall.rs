//! Remembers: what helped against a cause is said with its next failure, and what followed is counted.

use serde_json::json;
use unstuck_judge::Lang;
use unstuck_judge::lesson::{Fix, is_about_another, words};

use super::{Known, ShownOutcome, Tried};
use crate::entry::{Asked, Finding, Hears};
use crate::event::EventType;
use crate::record::Clerk;
use crate::rows::Lenient;
use crate::source::Source;

/// After so long a silence a session is over.
const OVER_MS: u64 = 60 * 60 * 1000;

impl Clerk<'_> {
    /// A call failed. Lessons that were shown against its cause are judged, and the best one that the session has not
    /// been shown is told to whoever `hears` it.
    pub(crate) fn recall(
        &self,
        session: i64,
        call: i64,
        asked: &Asked,
        finding: &Finding,
        hears: Hears,
    ) -> Result<Option<String>, rusqlite::Error> {
        let (at, cause) = (asked.who.at, finding.cause.as_str());
        let place = asked.who.place.to_string();
        let mut known = self.lessons_for(cause, &place)?;
        if known.is_empty() {
            return Ok(None);
        }
        for lesson in &mut known {
            let won_at = lesson.record.won_at;
            lesson.record.is_of_another_version = self.inquiry.has_another_version(won_at);
        }
        for lesson in &known {
            self.close_over(lesson, session, at)?;
            self.judge_followed(session, call, asked, lesson, &place)?;
        }
        let is_followed = match hears {
            Hears::Nothing | Hears::Notices => return Ok(None),
            Hears::Memory => false,
            Hears::Everything => true,
        };
        let mut best: Option<&Known> = None;
        let fits = |lesson: &&Known| {
            lesson.showing().is_shown() && !is_about_another(&lesson.title, &finding.evidence)
        };
        for lesson in known.iter().filter(fits) {
            let is_better = best.is_none_or(|best| lesson.worth(at) > best.worth(at));
            if is_better && !self.was_shown(session, lesson.id)? {
                best = Some(lesson);
            }
        }
        let Some(lesson) = best else { return Ok(None) };
        // Where nobody sees what follows, it is not judged by that.
        if is_followed {
            self.note_shown(session, lesson.id, call, at)?;
        }
        let text = self.in_words(lesson, cause, at)?;
        let body = json!({ "lesson": lesson.id, "text": text });
        self.append(at, EventType::LessonShown, session, call, body)?;
        Ok(Some(text))
    }

    /// A session has been shown a lesson.
    pub(super) fn note_shown(
        &self,
        session: i64,
        lesson: i64,
        call: i64,
        at: u64,
    ) -> Result<(), rusqlite::Error> {
        let shown = self
            .connection
            .prepare_cached(
                "INSERT INTO lesson_shown VALUES (?1, ?2, ?3, ?4, 'open') ON CONFLICT DO NOTHING",
            )?
            .execute((session, lesson, call, at.cast_signed()))?;
        self.connection
            .prepare_cached("UPDATE lesson SET shown = shown + ?2 WHERE id = ?1")?
            .execute((lesson, shown as i64))
            .map(|_| ())
    }

    /// A lesson as it is told: how often it was met, what was seen to help, and how that went.
    pub(super) fn in_words(&self, lesson: &Known, cause: &str, at: u64) -> Result<String, rusqlite::Error> {
        let met: u32 = self
            .connection
            .prepare_cached("SELECT ifnull(max(count), 1) FROM problem WHERE cause = ?1")?
            .query_row([cause], |row| row.lenient(0))?;
        let lang: Lang = self.bench.lang;
        Ok(words::told(&lesson.fix, &lesson.record, met, at, lang))
    }

    /// A session that has been silent for long and was shown this lesson has given up, unless the call did not fail that it was
    /// shown with: it may have been told in time.
    fn close_over(&self, lesson: &Known, here: i64, at: u64) -> Result<(), rusqlite::Error> {
        let sql = "UPDATE lesson_shown SET outcome = CASE WHEN EXISTS
                 (SELECT 1 FROM call WHERE id = lesson_shown.call AND state = 'failed') THEN 'given_up' ELSE 'other' END
             WHERE lesson = ?1 AND outcome = 'open' AND session <> ?2
               AND (SELECT last_at FROM session WHERE id = lesson_shown.session) < ?3
             RETURNING session, outcome = 'given_up'";
        let mut statement = self.connection.prepare_cached(sql)?;
        let before = at.saturating_sub(OVER_MS).cast_signed();
        let closed =
            statement.query_map((lesson.id, here, before), |row| Ok((row.lenient(0)?, row.lenient(1)?)))?;
        for (session, is_lost) in closed.collect::<Result<Vec<(i64, bool)>, _>>()? {
            if is_lost {
                self.connection
                    .prepare_cached("UPDATE lesson SET losses = losses + 1 WHERE id = ?1")?
                    .execute([lesson.id])?;
                // Nobody said where it was given up.
                let loss = Tried { session, place: "", at, source: Source::Unknown };
                self.note_source(lesson.id, &loss, [0, 1])?;
            }
        }
        Ok(())
    }

    /// The same cause again, after a lesson was shown: if it was followed, it has lost.
    fn judge_followed(
        &self,
        session: i64,
        call: i64,
        asked: &Asked,
        lesson: &Known,
        place: &str,
    ) -> Result<(), rusqlite::Error> {
        let Some(since) = self.shown_with(session, lesson.id, "outcome IN ('open', 'failed')")? else {
            return Ok(());
        };
        let source = self.source_of(call)?;
        let since_then = self.calls_between(session, asked, since, call, source)?;
        let done = Fix::done(&since_then);
        let is_followed = !lesson.fix.deeds.is_empty() && lesson.fix.deeds_are_within(&done);
        if is_followed {
            self.settle_shown(session, lesson.id, ShownOutcome::Failed)?;
            // If it is followed once more from here, in vain, it has lost once more.
            self.connection
                .prepare_cached("UPDATE lesson_shown SET call = ?3 WHERE session = ?1 AND lesson = ?2")?
                .execute((session, lesson.id, call))?;
            self.lose(call, lesson, &Tried { session, place, at: asked.who.at, source })?;
        }
        Ok(())
    }

    /// A failure was got over: lessons shown against it have worked where they were followed.
    pub(super) fn judge_shown(&self, session: i64, cause: &str, fix: &Fix) -> Result<(), rusqlite::Error> {
        for lesson in self.lessons_for(cause, "")? {
            if self.shown_with(session, lesson.id, "outcome = 'open'")?.is_none() {
                continue;
            }
            let outcome = match lesson.fix.is_within(fix) {
                true => ShownOutcome::Worked,
                false => ShownOutcome::Other,
            };
            self.settle_shown(session, lesson.id, outcome)?;
        }
        Ok(())
    }

    pub(super) fn settle_shown(
        &self,
        session: i64,
        lesson: i64,
        outcome: ShownOutcome,
    ) -> Result<(), rusqlite::Error> {
        // Whatever is followed again and again was shown only once.
        let settled = self
            .connection
            .prepare_cached(
                "UPDATE lesson_shown SET outcome = ?3 WHERE session = ?1 AND lesson = ?2 AND outcome <> ?3",
            )?
            .execute((session, lesson, outcome.word()))?;
        if settled > 0 && matches!(outcome, ShownOutcome::Worked | ShownOutcome::Failed) {
            self.connection
                .prepare_cached(
                    "UPDATE lesson SET followed = followed + 1, worked = worked + ?2 WHERE id = ?1",
                )?
                .execute((lesson, outcome == ShownOutcome::Worked))?;
        }
        Ok(())
    }

    /// The failure that a lesson was shown with, or followed by, while that is what became of it.
    fn shown_with(&self, session: i64, lesson: i64, became: &str) -> Result<Option<i64>, rusqlite::Error> {
        use rusqlite::OptionalExtension;
        let sql = format!("SELECT call FROM lesson_shown WHERE session = ?1 AND lesson = ?2 AND {became}");
        self.connection.prepare_cached(&sql)?.query_row((session, lesson), |row| row.lenient(0)).optional()
    }

    fn was_shown(&self, session: i64, lesson: i64) -> Result<bool, rusqlite::Error> {
        self.connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM lesson_shown WHERE session = ?1 AND lesson = ?2)")?
            .query_row((session, lesson), |row| row.lenient(0))
    }
}
