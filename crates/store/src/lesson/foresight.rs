//! Foresees: what was missing when an earlier session needed it is told before a new one runs into it, and so is a call that
//! took the place of this one before.
//!
//! Nothing is refused for what an earlier session knew, and each session is told once: whoever asks may know more than we do. It
//! must cost next to nothing where there is nothing to foresee.

use rusqlite::OptionalExtension;
use serde_json::json;
use unstuck_judge::ladder::{Reason, Track, words as ladder_words};
use unstuck_judge::lesson::{self, words};
use unstuck_judge::{Call, Condition, Kind, Need};

use super::{Known, LessonState, ShownOutcome, Tried, stored_call};
use crate::advocate::{Proposal, Stands};
use crate::entry::{Asked, Finding, Hears};
use crate::event::EventType;
use crate::mode::Mode;
use crate::record::{Clerk, Said};
use crate::rows::Lenient;
use crate::stance::{Stance, is_allowed, key_of};
use crate::state::CallState;

/// Nobody knows of another machine what it does after so long.
const HOST_FADES_MS: u64 = 60 * 60 * 1000;
/// What was not met for so long is forgotten.
const FORGOTTEN_MS: u64 = 90 * 24 * 60 * 60 * 1000;
/// A change of a call that won so often, and never lost, is suggested before the call fails.
const WINS: u32 = 2;

/// Something that was missing.
struct Stopper {
    root: i64,
    cause: String,
    reason: Reason,
    at: u64,
}

/// What was foreseen of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Foreseen {
    /// Nothing.
    Nothing,
    /// What a lesson says was told.
    Told(i64),
    /// What a lesson says runs in its place.
    Runs(i64),
}

impl Clerk<'_> {
    /// A call of which its own session knows nothing bad is asked for.
    pub(crate) fn foresee(
        &self,
        session: i64,
        asked: &Asked,
        attempt: u32,
        said: &mut Said,
    ) -> Result<Foreseen, rusqlite::Error> {
        if said.stance != Stance::Go || said.text.is_some() || said.rewritten.is_some() {
            return Ok(Foreseen::Nothing);
        }
        let Some(call) = stored_call(&asked.tool, &asked.input) else { return Ok(Foreseen::Nothing) };
        let knows = "SELECT EXISTS (SELECT 1 FROM stopper), EXISTS (SELECT 1 FROM lesson WHERE CASE WHEN \
             json_valid(body) THEN json_extract(body, '$.change.from') END IN (?1, ?2))";
        let (stoppers, changes): (bool, bool) = self
            .connection
            .prepare_cached(knows)?
            .query_row((lesson::own_words(&call), lesson::bare_words(&call)), |row| {
                Ok((row.lenient(0)?, row.lenient(1)?))
            })?;
        if !stoppers && !changes {
            return Ok(Foreseen::Nothing);
        }
        let change = match changes && attempt == 1 {
            true => self.learned_change(&call, asked)?,
            false => None,
        };
        let stopper = if stoppers { self.stopper_of(&call, session, asked.who.at)? } else { None };
        let may_exchange = said.mode == Mode::Enforce
            && !is_allowed(self.connection, &key_of(&asked.call_print), asked.who.at)?;
        let is_approved = |lesson: &&Known| lesson.state == LessonState::Approved && may_exchange;
        if let Some(lesson) = change.as_ref().filter(is_approved)
            && let Some(change) = &lesson.fix.change
            && let Some(rewritten) = self.inquiry.exchanged(&change.from, &change.to)
        {
            said.rewritten = Some(rewritten);
            return Ok(Foreseen::Runs(lesson.id));
        }
        if let Some((stopper, stands)) = stopper {
            let is_missing = stands == Stands::Yes;
            return self.warn(session, asked, &stopper, (is_missing, may_exchange), change, said);
        }
        let Some(lesson) = change else { return Ok(Foreseen::Nothing) };
        said.text = Some(words::suggested(&lesson.fix, &lesson.record, asked.who.at, self.bench.lang));
        said.foreseen = said.text.clone();
        Ok(Foreseen::Told(lesson.id))
    }

    /// Tells of what was missing, with what helped against it or stands for it.
    fn warn(
        &self,
        session: i64,
        asked: &Asked,
        stopper: &Stopper,
        (is_missing, may_exchange): (bool, bool),
        change: Option<Known>,
        said: &mut Said,
    ) -> Result<Foreseen, rusqlite::Error> {
        let (at, lang) = (asked.who.at, self.bench.lang);
        self.connection
            .prepare_cached("UPDATE stopper SET told = ?2 WHERE root = ?1")?
            .execute((stopper.root, session))?;
        let reason = &stopper.reason;
        let other_words = match self.inquiry.proposal(reason) {
            Some(Proposal::Run(rewritten)) if is_missing && may_exchange => {
                said.rewritten = Some(rewritten);
                return Ok(Foreseen::Nothing);
            }
            Some(Proposal::Say(words)) => Some(words.into_string()),
            Some(Proposal::Run(_)) | None => None,
        };
        let lesson = match change {
            Some(lesson) => Some(lesson),
            None => self.best_lesson(&stopper.cause, &asked.who.place, at)?,
        };
        let foreseen = lesson.as_ref().map_or(Foreseen::Nothing, |lesson| Foreseen::Told(lesson.id));
        let helped = match &lesson {
            Some(lesson) => Some(self.in_words(lesson, &stopper.cause, at)?),
            None => reason.remedy(lang).filter(|_| other_words.is_none()),
        };
        let text = ladder_words::foreseen(reason, is_missing, lang);
        said.text = Some(ladder_words::joined([Some(&*text), other_words.as_deref(), helped.as_deref()]));
        // The ladder itself has nothing to say yet.
        said.foreseen = said.text.clone();
        Ok(foreseen)
    }

    /// Writes down which lesson was told or run with a call that is recorded now.
    pub(crate) fn note_foreseen(
        &self,
        session: i64,
        call: i64,
        asked: &Asked,
        foreseen: Foreseen,
        said: &Said,
    ) -> Result<(), rusqlite::Error> {
        let (lesson, text) = match foreseen {
            Foreseen::Nothing => return Ok(()),
            Foreseen::Told(_) if !is_heard(asked, said) => return Ok(()),
            Foreseen::Told(lesson) => {
                // Once is enough.
                self.note_shown(session, lesson, call, asked.who.at)?;
                (lesson, said.text.clone())
            }
            Foreseen::Runs(lesson) => {
                let sql = "INSERT INTO lesson_shown VALUES (?1, ?2, ?3, ?4, 'runs') ON CONFLICT DO UPDATE
                     SET call = excluded.call, at = excluded.at, outcome = 'runs'";
                let at = asked.who.at.cast_signed();
                self.connection.prepare_cached(sql)?.execute((session, lesson, call, at))?;
                self.connection
                    .prepare_cached("UPDATE lesson SET shown = shown + 1 WHERE id = ?1")?
                    .execute([lesson])?;
                (lesson, None)
            }
        };
        let body = json!({ "lesson": lesson, "when": "before", "text": text.unwrap_or_default() });
        self.append(asked.who.at, EventType::LessonShown, session, call, body).map(|_| ())
    }

    /// A call that ran in the place of another has ended: that is a win or a loss of the lesson behind it.
    pub(crate) fn judge_run(
        &self,
        session: i64,
        call: i64,
        asked: &Asked,
        state: CallState,
    ) -> Result<(), rusqlite::Error> {
        // Hardly any call ran in the place of another, and every call that ends asks.
        let ran = "SELECT lesson FROM lesson_shown WHERE session = ?1 AND call = ?2 AND outcome = 'runs'";
        let ran: Option<i64> = self
            .connection
            .prepare_cached(ran)?
            .query_row((session, call), |row| row.lenient(0))
            .optional()?;
        let Some(ran) = ran else { return Ok(()) };
        let place = asked.who.place.to_string();
        let sql = format!("SELECT {} FROM lesson WHERE id = ?1", Known::COLUMNS);
        let ran = self.connection.prepare_cached(&sql)?.query_row((ran, &place), Known::read).optional()?;
        let Some(lesson) = ran else { return Ok(()) };
        let tried = Tried { session, place: &place, at: asked.who.at, source: self.source_of(call)? };
        match state {
            CallState::Completed => {
                self.settle_shown(session, lesson.id, ShownOutcome::Worked)?;
                self.win(lesson.id, &tried)
            }
            CallState::Failed => {
                self.settle_shown(session, lesson.id, ShownOutcome::Failed)?;
                self.lose(call, &lesson, &tried)
            }
            // It never ran, or nobody knows how it ended.
            CallState::Pending
            | CallState::ApprovalRequired
            | CallState::Approved
            | CallState::Executing
            | CallState::Denied
            | CallState::Sealed => self.settle_shown(session, lesson.id, ShownOutcome::Other),
        }
    }

    /// A call failed: what it missed is remembered.
    pub(crate) fn note_missing(
        &self,
        session: i64,
        asked: &Asked,
        finding: &Finding,
    ) -> Result<(), rusqlite::Error> {
        if !matches!(finding.kind, Kind::CommandNotFound | Kind::Network | Kind::Validation) {
            return Ok(());
        }
        let Some(call) = stored_call(&asked.tool, &asked.input) else { return Ok(()) };
        let Some(need) = Need::missing(&call, finding.kind, &finding.evidence) else { return Ok(()) };
        let at = asked.who.at;
        let door = if self.is_paired(session)? { &*asked.who.host } else { "" };
        self.connection
            .prepare_cached(
                "INSERT INTO stopper VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?7, ?8)
                 ON CONFLICT DO UPDATE SET cause = excluded.cause, kind = excluded.kind, rule = excluded.rule,
                     line = excluded.line, met = met + 1, door = excluded.door, session = excluded.session,
                     told = excluded.told, at = excluded.at WHERE excluded.at >= at",
            )?
            .execute((
                root(&need),
                finding.cause.as_str(),
                finding.kind.word(),
                &*finding.rule,
                &*finding.evidence,
                door,
                session,
                at.cast_signed(),
            ))?;
        self.connection
            .prepare_cached("DELETE FROM stopper WHERE at < ?1")?
            .execute([at.saturating_sub(FORGOTTEN_MS).cast_signed()])
            .map(|_| ())
    }

    /// A call went well: what it needs is there.
    pub(crate) fn forget_missing(&self, asked: &Asked) -> Result<(), rusqlite::Error> {
        let knows = self
            .desk
            .is_something_missed(|| self.connection.prepare_cached("SELECT 1 FROM stopper")?.exists([]))?;
        let call = if knows { stored_call(&asked.tool, &asked.input) } else { None };
        for need in call.iter().flat_map(Need::of) {
            self.connection
                .prepare_cached("DELETE FROM stopper WHERE root = ?1 AND at <= ?2")?
                .execute((root(&need), asked.who.at.cast_signed()))?;
        }
        Ok(())
    }

    /// What a call needs, was missing and may still be, of which its session does not know.
    fn stopper_of(
        &self,
        call: &Call,
        session: i64,
        now: u64,
    ) -> Result<Option<(Stopper, Stands)>, rusqlite::Error> {
        for need in Need::of(call) {
            let sql =
                "SELECT root, cause, kind, rule, line, met, at FROM stopper WHERE root = ?1 AND told <> ?2";
            let found = self
                .connection
                .prepare_cached(sql)?
                .query_row((root(&need), session), Stopper::read)
                .optional()?;
            // What was only met later, by a clock that ran ahead or in the record of another day, says nothing of now.
            let is_due = |stopper: &Stopper| stopper.at <= now.saturating_add(HOST_FADES_MS);
            let Some(stopper) = found.filter(is_due) else { continue };
            if self.was_told_of(session, &need)? {
                continue;
            }
            let age = now.saturating_sub(stopper.at);
            let has_faded = match need {
                Need::Host(_) => age > HOST_FADES_MS,
                Need::Program(_) | Need::Flag { .. } => age > FORGOTTEN_MS,
            };
            let stands = match has_faded {
                true => Stands::No,
                false => self.inquiry.stands(&need, stopper.at),
            };
            match stands {
                Stands::Yes | Stands::Unsaid => return Ok(Some((stopper, stands))),
                Stands::No => {
                    self.connection
                        .prepare_cached("DELETE FROM stopper WHERE root = ?1")?
                        .execute([stopper.root])?;
                }
            }
        }
        Ok(None)
    }

    /// Was this session told of what it needs already? Another one may have been told of it since.
    fn was_told_of(&self, session: i64, need: &Need) -> Result<bool, rusqlite::Error> {
        let sql = "SELECT tool, input FROM event JOIN call ON call.id = event.call JOIN call_text ON call_text.call = call.id
             WHERE event.session = ?1 AND type = 'tool:advice' AND body LIKE '%\"foreseen\":true%'";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([session])?;
        while let Some(row) = rows.next()? {
            let told = stored_call(&row.lenient::<String>(0)?, &row.lenient::<String>(1)?);
            if told.is_some_and(|call| Need::of(&call).contains(need)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The lesson that says which call took the place of this one, often enough and always with success.
    fn learned_change(&self, call: &Call, asked: &Asked) -> Result<Option<Known>, rusqlite::Error> {
        let sql = format!(
            "SELECT {} FROM lesson WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$.change.from') END IN (?1, ?3)
             ORDER BY {} LIMIT 4",
            Known::COLUMNS,
            Known::BEST
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let (line, bare) = (lesson::own_words(call), lesson::bare_words(call));
        let known = statement.query_map((&line, &*asked.who.place, bare), Known::read)?;
        for lesson in known {
            let lesson = lesson?;
            let always_won = lesson.record.wins >= WINS && lesson.record.losses == 0;
            // A call that something is made ready for may be the very one that went well.
            let is_meant = lesson.fix.change.as_ref().is_some_and(|change| {
                line.as_ref() == Some(&change.from) || !change.to.ends_with(&format!(" && {}", change.from))
            });
            if lesson.fix.deeds.is_empty() && is_meant && always_won && lesson.showing().is_shown() {
                return Ok(Some(lesson));
            }
        }
        Ok(None)
    }

    /// What helped best against a cause, of what may be shown.
    fn best_lesson(&self, cause: &str, place: &str, at: u64) -> Result<Option<Known>, rusqlite::Error> {
        let known = self.lessons_for(cause, place)?;
        let shown = known.into_iter().filter(|lesson| lesson.showing().is_shown());
        Ok(shown.max_by(|a, b| a.worth(at).partial_cmp(&b.worth(at)).unwrap_or(std::cmp::Ordering::Equal)))
    }
}

/// Does anybody hear what is said before a call?
fn is_heard(asked: &Asked, said: &Said) -> bool {
    let is_told = match asked.who.hears {
        Hears::Notices | Hears::Everything => true,
        Hears::Nothing | Hears::Memory => false,
    };
    is_told && said.mode != Mode::Shadow
}

impl Stopper {
    fn read(row: &rusqlite::Row<'_>) -> Result<Stopper, rusqlite::Error> {
        let reason = Reason {
            track: Track::Root,
            count: row.lenient(5)?,
            kind: row.lenient::<String>(2)?.parse().unwrap_or(Kind::Unknown),
            rule: row.lenient(3)?,
            line: row.lenient(4)?,
            condition: Condition::Unseen,
            passes: false,
        };
        let at = row.lenient::<i64>(6)?.unsigned_abs();
        Ok(Stopper { root: row.lenient(0)?, cause: row.lenient(1)?, reason, at })
    }
}

fn root(need: &Need) -> i64 {
    need.print().0.cast_signed()
}
