//! What becomes of a call that speaks against itself: whether the ladder's word counts, whether it only comes too early, and
//! what the person allowed. A refusal that turns out to be wrong weighs against the rule behind it.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};
use serde_json::json;
use unstuck_judge::fingerprint::Fingerprint;
use unstuck_judge::ladder::words::{self, WayToWait};
use unstuck_judge::ladder::{Decision, Reason, Rung};
use unstuck_judge::{Call, Kind, nature};
use unstuck_wire::clean::Clean;
use unstuck_wire::hook::Host;

use crate::advocate::{Checked, Failed, Proposal};
use crate::entry::{Asked, Who};
use crate::error::StoreError;
use crate::event::EventType;
use crate::mode::Mode;
use crate::record::{Clerk, Said};
use crate::rows::Lenient;
use crate::store::Store;

/// How many letters of a call's fingerprint name it to a person.
pub(crate) const KEY_LETTERS: u32 = 8;
/// What stands in the record of a call whose files could not be saved.
pub(crate) const UNPROTECTED: &str = "unprotected";
/// A longer wait is told and not enforced: whoever named it may be wrong, and so may a clock.
const LONGEST_WAIT_MS: u64 = 15 * 60 * 1000;
/// So many of the latest calls of other sessions are read, to see what they changed.
const OTHERS: usize = 50;
/// So many of the latest failures of a call are read, to name the errors it had.
const FAILURES_READ: u32 = 12;
/// So many false alarms of a rule are no accident.
const ALARMS: i64 = 2;
/// A rule of which this part of all refusals was wrong only speaks.
const WRONG_PART: i64 = 5;
/// After this long without a refusal, what is known of a rule counts half.
const FADES_AFTER_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// What becomes of a call that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stance {
    /// It may run.
    #[default]
    Go,
    /// It may run after a wait.
    Hold {
        /// How long.
        wait: Duration,
        /// What made it fail the last time.
        because: Kind,
    },
    /// It may not run.
    Refuse,
    /// It may not run, and neither should what comes after it until a person has decided.
    Halt,
}

impl Stance {
    /// May the call not run?
    pub fn refuses(self) -> bool {
        match self {
            Stance::Go | Stance::Hold { .. } => false,
            Stance::Refuse | Stance::Halt => true,
        }
    }
}

/// A call that a person lets run although it would be refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// The short name of the call.
    pub key: String,
    /// The call in one short line.
    pub label: String,
    /// Until when, in milliseconds since 1970.
    pub until: u64,
}

/// The name by which refusals tell a person of a call, and by which `unstuck allow` knows it.
pub fn key_of(print: &Fingerprint) -> String {
    let bare = print.as_str().split_once(':').map_or(print.as_str(), |(_, bare)| bare);
    bare.chars().take(KEY_LETTERS as usize).collect()
}

/// The last failure of the same call that passes by itself.
struct Passing {
    world: Option<u32>,
    kind: Kind,
}

impl Clerk<'_> {
    /// Settles what becomes of a call, and what is said of it.
    pub(crate) fn settle(
        &self,
        session: i64,
        asked: &Asked,
        attempt: u32,
        world: u32,
        said: &mut Said,
    ) -> Result<(), rusqlite::Error> {
        let Some(decision) = &said.decision else { return Ok(()) };
        let refuses = decision.rung >= Rung::Deny;
        let early = match refuses || attempt < 2 {
            true => None,
            // Only what failed the last time can come too early.
            false => self.too_early(session, asked, world)?,
        };
        if let Some((wait, passing)) = early {
            return self.hold_back(session, asked, (wait, &passing), said);
        }
        if !refuses {
            return Ok(());
        }
        self.refuse(session, asked, said)
    }

    /// Refuses a call, if a look at the cause of its failure shows that it still holds. Where it cannot be looked at, where a
    /// person allows it, or where the rule behind it was wrong before, the call runs.
    fn refuse(&self, session: i64, asked: &Asked, said: &mut Said) -> Result<(), rusqlite::Error> {
        let Some(decision) = &said.decision else { return Ok(()) };
        let charge = decision.reason.as_ref().map(|reason| reason.charge()).unwrap_or_default();
        let key = key_of(&asked.call_print);
        let counts = said.mode == Mode::Enforce
            && self.is_paired(session)?
            && !self.is_lowered(&charge, asked.who.at)?
            && !is_allowed(self.connection, &key, asked.who.at)?;
        let Some(reason) = decision.reason.as_ref().filter(|_| counts) else {
            // It runs, so nothing may say that it does not.
            let spoken = Decision { rung: Rung::Insist, reason: decision.reason.clone() };
            said.text = spoken.text(self.bench.lang);
            said.table = None;
            return Ok(());
        };
        let reason = reason.clone();
        match self.check(session, asked, &reason)? {
            Checked::Holds => {}
            // What cannot be looked at from here may be otherwise by now. What is known of it was said with the failure.
            Checked::Moved | Checked::Unseen => {
                said.text = None;
                said.table = None;
                return Ok(());
            }
        }
        let reason = &reason;
        let suggestion = match self.inquiry.proposal(reason) {
            Some(Proposal::Run(rewritten)) => {
                said.rewritten = Some(rewritten);
                said.text = None;
                said.table = None;
                return Ok(());
            }
            Some(Proposal::Say(words)) => Some(words),
            None => None,
        };
        let is_halted = decision.rung == Rung::Halt && asked.attended;
        said.stance = if is_halted { Stance::Halt } else { Stance::Refuse };
        self.note_refusal(&charge, asked.who.at)?;
        let lang = self.bench.lang;
        let tried = self.desk.standing.all_known(self.connection, session)?.tried(reason, lang);
        let own_help = self.last_advice(session, asked, reason)?;
        let help = suggestion.or(own_help).map(Clean::into_string).or_else(|| reason.remedy(lang));
        let way_out = words::way_out(&key, lang);
        let earlier = words::earlier_errors(&self.other_errors(session, asked, &reason.line)?, lang);
        let refusal = words::refusal(reason, lang);
        let refused = words::joined([
            Some(&*refusal),
            help.as_deref(),
            tried.as_deref(),
            earlier.as_deref(),
            Some(&way_out),
        ]);
        said.text = Some(match is_halted {
            true => words::joined([Some(&*words::halted(&asked.label, lang)), Some(&refused)]),
            false => refused,
        });
        if !is_halted {
            said.table = None;
        }
        said.charge = Some(charge);
        Ok(())
    }

    /// Does the cause of a failure still hold, or the answer of a look that is asked once more? What others saw and did since is
    /// known from their records; all else is looked at.
    fn check(&self, session: i64, asked: &Asked, reason: &Reason) -> Result<Checked, rusqlite::Error> {
        let failed: Option<Failed> = self
            .connection
            .prepare_cached(LAST_KNOWN)?
            .query_row((session, asked.call_print.as_str(), reason.kind.word()), |row| {
                let [asked_at, ended_at]: [i64; 2] = [row.lenient(0)?, row.lenient(1)?];
                Ok(Failed { asked_at: asked_at.unsigned_abs(), ended_at: ended_at.unsigned_abs() })
            })
            .optional()?;
        let Some(failed) = failed else { return Ok(Checked::Unseen) };
        let age = Duration::from_millis(asked.who.at.saturating_sub(failed.ended_at));
        let is_old = self.bench.ladder.tries_again_after().is_some_and(|after| age >= after);
        if is_old || self.others_moved(session, asked, failed)? {
            return Ok(Checked::Moved);
        }
        Ok(self.inquiry.check(reason, failed))
    }

    /// Did another session see the same call go well since, or change something in the same folder?
    fn others_moved(&self, session: i64, asked: &Asked, failed: Failed) -> Result<bool, rusqlite::Error> {
        let mut statement = self.connection.prepare_cached(OTHERS_SINCE)?;
        let parameters = (
            session,
            failed.ended_at.cast_signed(),
            asked.call_print.as_str(),
            &*asked.who.cwd,
            OTHERS as i64,
        );
        let mut rows = statement.query(parameters)?;
        while let Some(row) = rows.next()? {
            let (is_same, tool, input): (bool, String, String) =
                (row.lenient(0)?, row.lenient(1)?, row.lenient(2)?);
            let moves = || {
                let input = serde_json::from_str(&input).unwrap_or(serde_json::Value::Null);
                nature::moves_world(&Call::new(tool, input))
            };
            if is_same || moves() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The advice that went with the failure that a call is refused for: with the last of the same call, or where it never ran,
    /// with the last one that the same rule named.
    fn last_advice(
        &self,
        session: i64,
        asked: &Asked,
        reason: &Reason,
    ) -> Result<Option<Clean>, rusqlite::Error> {
        let same: Option<String> = self
            .connection
            .prepare_cached(LAST_VERDICT)?
            .query_row((session, asked.call_print.as_str(), reason.kind.word()), |row| row.lenient(0))
            .optional()?;
        let verdict = match same {
            Some(verdict) => Some(verdict),
            None => self
                .connection
                .prepare_cached(LAST_OF_RULE)?
                .query_row((session, reason.kind.word(), &reason.rule), |row| row.lenient(0))
                .optional()?,
        };
        let verdict: Option<serde_json::Value> = verdict.and_then(|text| serde_json::from_str(&text).ok());
        let first = verdict.as_ref().and_then(|verdict| verdict["recommendations"][0].as_str());
        Ok(first.map(|text| Clean::stored(text.to_owned())))
    }

    /// The other errors with which the same call failed since it last went well, the latest first.
    pub(crate) fn other_errors(
        &self,
        session: i64,
        asked: &Asked,
        line: &str,
    ) -> Result<Vec<String>, rusqlite::Error> {
        let mut statement = self.connection.prepare_cached(LAST_ERRORS)?;
        let mut rows = statement.query((session, asked.call_print.as_str(), FAILURES_READ))?;
        let mut found: Vec<String> = Vec::new();
        while let Some(row) = rows.next()? {
            let (state, evidence): (String, String) = (row.lenient(0)?, row.lenient(1)?);
            if state != "failed" {
                break;
            }
            if !evidence.is_empty() && evidence != line && !found.contains(&evidence) {
                found.push(evidence);
            }
        }
        Ok(found)
    }

    /// How long it is until the same call can work again, where it passes by itself and nothing moved since.
    fn too_early(
        &self,
        session: i64,
        asked: &Asked,
        world: u32,
    ) -> Result<Option<(Duration, Passing)>, rusqlite::Error> {
        if asked.sight.waits || asked.user_spoke {
            return Ok(None);
        }
        let last: Option<(Option<i64>, Passing)> = self
            .connection
            .prepare_cached(LAST_FAILURE)?
            .query_row((session, asked.call_print.as_str()), |row| {
                let kind: Option<String> = row.lenient(2)?;
                let passing = Passing {
                    world: row.lenient(1)?,
                    kind: kind.and_then(|kind| kind.parse().ok()).unwrap_or(Kind::Unknown),
                };
                Ok((row.lenient(0)?, passing))
            })
            .optional()?;
        Ok(last.and_then(|(again_at, passing)| {
            let left = again_at?.unsigned_abs().checked_sub(asked.who.at)?;
            if !(1..=LONGEST_WAIT_MS).contains(&left) {
                return None;
            }
            let is_still_so = passing.world == Some(world);
            is_still_so.then_some((Duration::from_millis(left), passing))
        }))
    }

    /// A call that comes too early: a short wait is waited for it, and a longer one is told. It is never refused.
    fn hold_back(
        &self,
        session: i64,
        asked: &Asked,
        (wait, passing): (Duration, &Passing),
        said: &mut Said,
    ) -> Result<(), rusqlite::Error> {
        match said.mode {
            Mode::Shadow => return Ok(()),
            Mode::Enforce if wait <= self.bench.hold_max && self.is_paired(session)? => {
                said.stance = Stance::Hold { wait, because: passing.kind };
                return Ok(());
            }
            Mode::Advise | Mode::Enforce => {}
        }
        said.text = Some(self.possible_again(wait, &asked.who));
        Ok(())
    }

    /// When a call may work again, and where that is longer than we would wait for it, how this agent can wait.
    pub(crate) fn possible_again(&self, wait: Duration, who: &Who) -> String {
        let lang = self.bench.lang;
        let host: Option<Host> = who.host.parse().ok();
        let way = host.filter(|_| wait > self.bench.hold_max).map_or(WayToWait::Unknown, Host::way_to_wait);
        let again = words::possible_again(wait, lang);
        words::joined([Some(&*again), words::way_to_wait(way, wait, lang).as_deref()])
    }

    /// Was a call of this session seen both before and after it ran? An installation of which only half works must not block.
    pub(crate) fn is_paired(&self, session: i64) -> Result<bool, rusqlite::Error> {
        self.connection
            .prepare_cached("SELECT paired FROM session WHERE id = ?1")?
            .query_row([session], |row| row.lenient(0))
    }

    pub(crate) fn note_pair(&self, session: i64, who: &Who) -> Result<(), rusqlite::Error> {
        if !self.desk.is_first_pair(who) {
            return Ok(());
        }
        let sql = "UPDATE session SET paired = 1 WHERE id = ?1 AND paired = 0";
        self.connection.prepare_cached(sql)?.execute([session]).map(|_| ())
    }

    /// Was a rule wrong so often that it only speaks?
    pub(crate) fn is_lowered(&self, charge: &str, now: u64) -> Result<bool, rusqlite::Error> {
        let (refusals, alarms) = self.record_of(charge, now)?;
        Ok(alarms >= ALARMS && alarms * WRONG_PART >= refusals)
    }

    /// How often a rule refused, and how often it was wrong, as far as that still counts.
    fn record_of(&self, charge: &str, now: u64) -> Result<(i64, i64), rusqlite::Error> {
        let sql = "SELECT refusals, false_alarms, at FROM charge WHERE rule = ?1";
        let found: Option<(i64, i64, i64)> = self
            .connection
            .prepare_cached(sql)?
            .query_row([charge], |row| Ok((row.lenient(0)?, row.lenient(1)?, row.lenient(2)?)))
            .optional()?;
        Ok(found.map_or((0, 0), |(refusals, alarms, at)| {
            let fades = (now.saturating_sub(at.unsigned_abs()) / FADES_AFTER_MS).min(62);
            (refusals >> fades, alarms >> fades)
        }))
    }

    pub(crate) fn note_refusal(&self, charge: &str, now: u64) -> Result<(), rusqlite::Error> {
        // What has faded is written down as what is left of it: the clock starts anew.
        let (refusals, alarms) = self.record_of(charge, now)?;
        let sql = "INSERT INTO charge (rule, refusals, false_alarms, at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (rule) DO UPDATE
             SET refusals = excluded.refusals, false_alarms = excluded.false_alarms, at = excluded.at";
        self.connection
            .prepare_cached(sql)?
            .execute((charge, refusals + 1, alarms, now.cast_signed()))
            .map(|_| ())
    }

    /// A call went well. Where the same one was refused and nothing has moved since, the refusal was wrong.
    pub(crate) fn look_for_false_alarms(
        &self,
        session: i64,
        call: i64,
        asked: &Asked,
        world: u32,
    ) -> Result<(), rusqlite::Error> {
        let mut statement = self.connection.prepare_cached(REFUSED_BEFORE)?;
        let wrong = statement
            .query_map((session, asked.call_print.as_str(), world, UNPROTECTED), |row| {
                Ok((row.lenient(0)?, row.lenient(1)?))
            })?
            .collect::<Result<Vec<(i64, String)>, _>>()?;
        let at = asked.who.at;
        for (refused, charge) in wrong {
            self.connection
                .prepare_cached("UPDATE call SET false_alarm = 1 WHERE id = ?1")?
                .execute([refused])?;
            self.connection
                .prepare_cached("UPDATE charge SET false_alarms = false_alarms + 1, at = ?2 WHERE rule = ?1")?
                .execute((&charge, at.cast_signed()))?;
            let lowered = self.is_lowered(&charge, at)?;
            let body =
                json!({ "refused": refused, "rule": charge, "label": &*asked.label, "lowered": lowered });
            self.append(at, EventType::FalseAlarm, session, call, body)?;
        }
        Ok(())
    }
}

/// The last call that is the same, if it failed: when it may work again, and why it failed.
const LAST_FAILURE: &str = "SELECT CASE state WHEN 'failed' THEN again_at END, world, kind FROM call
    WHERE session = ?1 AND call_print = ?2 AND state IN ('failed', 'completed') ORDER BY call.id DESC LIMIT 1";

/// When the same call ran last; where it never ran, the last failure of the same kind.
const LAST_KNOWN: &str = "SELECT asked_at, ended_at FROM (
    SELECT 0 AS other, id, asked_at, ended_at FROM call
    WHERE session = ?1 AND call_print = ?2 AND state IN ('failed', 'completed') AND ended_at IS NOT NULL
    UNION ALL
    SELECT 1 AS other, id, asked_at, ended_at FROM call
    WHERE session = ?1 AND state = 'failed' AND kind = ?3 AND ended_at IS NOT NULL)
    ORDER BY other, id DESC LIMIT 1";

/// What other sessions in the same folder did well since a moment, the latest first: the same call, or anything.
const OTHERS_SINCE: &str = "SELECT call.call_print = ?3, call.tool, call_text.input
    FROM call JOIN session ON session.id = call.session JOIN call_text ON call_text.call = call.id
    WHERE call.ended_at > ?2 AND call.session <> ?1 AND call.state = 'completed' AND (call.call_print = ?3 OR session.cwd = ?4)
    ORDER BY call.ended_at DESC LIMIT ?5";

/// What was found out about the last failure of the same call with the same cause.
const LAST_VERDICT: &str = "SELECT verdict FROM call JOIN call_text ON call_text.call = call.id
    WHERE session = ?1 AND call_print = ?2 AND state = 'failed' AND kind = ?3 ORDER BY call.id DESC LIMIT 1";

/// The same of the last failure that a rule named.
const LAST_OF_RULE: &str = "SELECT verdict FROM call JOIN call_text ON call_text.call = call.id
    WHERE session = ?1 AND state = 'failed' AND kind = ?2 AND rule = ?3 ORDER BY call.id DESC LIMIT 1";

/// How the same call ended the last times, with the line that shows the cause.
const LAST_ERRORS: &str = "SELECT state, evidence FROM call JOIN call_text ON call_text.call = call.id
    WHERE session = ?1 AND call_print = ?2 AND state IN ('failed', 'completed') ORDER BY call.id DESC LIMIT ?3";

/// Refusals of the same call since which nothing has moved.
const REFUSED_BEFORE: &str = "SELECT id, charge FROM call
    WHERE session = ?1 AND call_print = ?2 AND state = 'denied' AND world = ?3 AND charge IS NOT NULL
      AND charge <> ?4 AND false_alarm IS NULL";

pub(crate) fn is_allowed(connection: &Connection, key: &str, now: u64) -> Result<bool, rusqlite::Error> {
    connection
        .prepare_cached("SELECT 1 FROM allowance WHERE key = ?1 AND until > ?2")?
        .exists((key, now.cast_signed()))
}

impl Store {
    /// Lets a call run although it would be refused; nothing where no such call was ever refused.
    pub fn allow(&mut self, key: &str, until: u64, now: u64) -> Result<Option<Allowance>, StoreError> {
        self.write_durably(|connection| {
            let label: Option<String> = connection
                .prepare_cached(
                    "SELECT label FROM call JOIN call_text ON call_text.call = call.id
                     WHERE state = 'denied' AND substr(call_print, instr(call_print, ':') + 1, ?2) = ?1
                     ORDER BY call.id DESC LIMIT 1",
                )?
                .query_row((key, KEY_LETTERS), |row| row.lenient(0))
                .optional()?;
            let Some(label) = label else { return Ok(None) };
            connection
                .prepare_cached(
                    "INSERT INTO allowance (key, label, until, at) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (key) DO UPDATE SET until = excluded.until, at = excluded.at, label = excluded.label",
                )?
                .execute((key, &label, until.cast_signed(), now.cast_signed()))?;
            connection.prepare_cached("DELETE FROM allowance WHERE until <= ?1")?.execute([now.cast_signed()])?;
            Ok(Some(Allowance { key: key.to_owned(), label, until }))
        })
    }

    /// Does a person let this call run, whatever speaks against it?
    pub fn is_allowed(&self, key: &str, now: u64) -> Result<bool, StoreError> {
        is_allowed(&self.connection, key, now).map_err(self.wrong())
    }

    /// Takes an allowance back; says whether there was one.
    pub fn revoke(&mut self, key: &str) -> Result<bool, StoreError> {
        self.write_durably(|connection| {
            Ok(connection.prepare_cached("DELETE FROM allowance WHERE key = ?1")?.execute([key])? > 0)
        })
    }

    /// What is allowed now.
    pub fn allowed(&self, now: u64) -> Result<Vec<Allowance>, StoreError> {
        let read = || {
            let mut statement = self
                .connection
                .prepare_cached("SELECT key, label, until FROM allowance WHERE until > ?1 ORDER BY until")?;
            let rows = statement.query_map([now.cast_signed()], |row| {
                Ok(Allowance {
                    key: row.lenient(0)?,
                    label: row.lenient(1)?,
                    until: row.lenient::<i64>(2)?.unsigned_abs(),
                })
            })?;
            rows.collect::<Result<Vec<_>, rusqlite::Error>>()
        };
        read().map_err(self.wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database;

    #[test]
    fn what_a_hook_asks_about_refusals_goes_through_an_index() {
        let connection = database::in_memory().unwrap();
        for sql in [LAST_FAILURE, REFUSED_BEFORE, LAST_VERDICT, LAST_OF_RULE, LAST_ERRORS] {
            let plan = database::plan(&connection, sql);
            assert!(plan.contains("SEARCH call USING INDEX call_by_print (session="), "{sql}: {plan}");
            assert!(!plan.contains("SCAN"), "{sql}: {plan}");
        }
    }
}
