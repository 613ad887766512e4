//! The audit record of every call: one entry in, the tables moved by it, an answer out. All of it inside one transaction.
//!
//! Hosts repeat themselves (the same hook in two settings files, a result delivered twice): an entry that brings nothing new
//! changes nothing.

use std::borrow::Cow;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use unstuck_judge::ladder::{Decision, Event, Moment, Rung, Settings, Sight, Track, Upshot, see, words};
use unstuck_judge::retry::{Policy, Seen};
use unstuck_judge::{Call, Lang, Outcome};
use unstuck_wire::clean::Clean;
use unstuck_wire::time;

use crate::advocate::Inquiry;
use crate::brake::{self, Attempt, Pulled, Retry};
use crate::call_row::{Closing, Found, NewCall, Written, asked_part};
use crate::chain::Record;
use crate::desk::Desk;
use crate::entry::{
    Asked, Ended, Finding, Hears, HookFault, OwnFault, RetryAsk, Retrying, Ruling, Sender, Which, Who,
};
use crate::event::{self, Bookmark, EventType, NewEvent};
use crate::lesson::{Foreseen, OUR_TOOLS};
use crate::mode::{Mode, Modes};
use crate::problem_state::{ProblemAges, ProblemState};
use crate::rewritten::Rewritten;
use crate::rows::Lenient;
use crate::stance::Stance;
use crate::standing::Step;
use crate::state::CallState;
use crate::{body, life, problem, rewritten, seal};

/// The most that is said with a result, in characters. A model that is told too much hears nothing.
const SAID_MAX: usize = 600;

/// After so many failures alike of a call that cannot be refused the run is stopped, and after every third one more.
const UNASKED_MAX: u32 = 6;

/// For so long an agent is taken to know what it was told.
pub const KNOWS_FOR_MS: u64 = 10 * 60 * 1000;
/// What an agent was told of its calls since a moment, among the latest events of its session.
const SAID_LATELY: &str = "SELECT event.body
    FROM (SELECT seq, at, type, call, body FROM event WHERE session = ?1 ORDER BY seq DESC LIMIT 200) AS event
    JOIN call ON call.id = event.call
    WHERE event.type = 'tool:advice' AND call.agent = ?2 AND event.at >= ?3
    ORDER BY event.seq DESC";

/// Are two notes the same up to their numbers?
pub fn is_same_note(one: &str, other: &str) -> bool {
    let without_numbers = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
    without_numbers(one) == without_numbers(other)
}

/// By what an entry is judged.
#[derive(Debug, Clone)]
pub struct Bench {
    /// The numbers of the ladder.
    pub ladder: Settings,
    /// How far it may go.
    pub modes: Modes,
    /// Which failures are sent again, how often and when.
    pub retry: Cow<'static, Policy>,
    /// The language of what is said to the model.
    pub lang: Lang,
    /// How long a call that comes too early may be held instead of refused.
    pub hold_max: Duration,
    /// After how long a call that nobody heard of again is taken for dead, in milliseconds.
    pub seal_after: u64,
    /// What makes a problem new, and what makes it resolved.
    pub problems: ProblemAges,
}

/// What is said about an entry.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Said {
    /// The call's number.
    pub call: Option<i64>,
    /// What the ladder decided; it counts as far as the mode lets it.
    pub decision: Option<Decision>,
    /// How far it may go with this tool.
    pub mode: Mode,
    /// What becomes of the call.
    pub stance: Stance,
    /// The rule behind a refusal.
    pub charge: Option<String>,
    /// What was exchanged in a call that would have been refused.
    pub rewritten: Option<Rewritten>,
    /// The same in words, for the model.
    pub text: Option<String>,
    /// What is said before a call of which only earlier sessions knew something.
    pub foreseen: Option<String>,
    /// What helped against a failure before.
    pub remembered: Option<String>,
    /// What was tried, for the person who has to decide.
    pub table: Option<String>,
    /// Calls that were found dead.
    pub sealed: Vec<seal::Sealed>,
    /// The last event that was written.
    pub bookmark: Option<Bookmark>,
    /// Whether whoever runs the call should send it again by itself.
    pub retry: Option<Retry>,
    /// The names of the snapshots that were taken before it, where it is told of twice or has just ended.
    pub snapshots: Vec<String>,
}

/// One entry being written.
pub(crate) struct Clerk<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) desk: &'a Desk<'a>,
    pub(crate) bench: &'a Bench,
    /// Does the process that this names still run?
    pub(crate) is_alive: &'a dyn Fn(&str) -> bool,
    /// Late entries come from the spool: what they asked has been answered already, with silence.
    pub(crate) late: bool,
    /// Knows what the record does not tell.
    pub(crate) inquiry: &'a Inquiry<'a>,
}

impl Clerk<'_> {
    pub(crate) fn asked(&self, asked: &Asked) -> Result<Said, rusqlite::Error> {
        let who = &asked.who;
        let mode = self.bench.modes.of(&asked.tool);
        let was_idle = asked.sender == Sender::Agent && self.was_idle(who)?;
        let session = self.session(who)?;
        if asked.runs && self.desk.is_brief(asked) {
            return self.begun(session, asked, mode);
        }
        if let Some(found) = self.find(session, &asked.key)? {
            // Some agents give the same names again; what was saved before another call of that name protects none but that.
            let is_told_twice = !found.state.is_final() && found.call_print == asked.call_print.as_str();
            let snapshots = if is_told_twice { life::snapshots(&found.life) } else { Vec::new() };
            let mut said = Said { call: Some(found.id), mode, snapshots, ..Said::default() };
            if found.state == CallState::Denied && found.charge.is_some() {
                // Whoever asks twice gets the same answer twice.
                said.text = life::last_note(&found.life);
                said.decision = Some(Decision { rung: found.rung_before, reason: None });
                said.stance = match found.rung_before {
                    Rung::Halt if asked.attended => Stance::Halt,
                    Rung::Halt => Stance::Refuse,
                    Rung::Observe | Rung::Note | Rung::Hint | Rung::Insist | Rung::Deny => Stance::Refuse,
                };
                said.table = self.table(session, found.rung_before)?;
            }
            return Ok(said);
        }
        if asked.sender == Sender::Runner {
            return self.sent_again(session, asked, mode);
        }
        let mut said = self.user_spoke_if(asked.user_spoke, session, who)?;
        if was_idle {
            self.begin_anew(session)?;
        }
        said.mode = mode;
        said.sealed.extend(self.dead_calls(session, who)?);
        // The agent has gone on by the time a late entry is read: nothing was refused.
        let attempt = self.attempt(session, asked)?;
        let mut world = None;
        let mut foreseen = Foreseen::Nothing;
        if !self.late {
            let event = Event::Asked(&asked.sight, self.moment(who));
            let moved = self.decide(session, event, &mut said)?;
            self.settle(session, asked, attempt, moved, &mut said)?;
            foreseen = self.foresee(session, asked, attempt, &mut said)?;
            world = Some(moved);
        }
        let rung = match (&said.rewritten, &said.decision) {
            // What runs is not what would have been refused.
            (Some(_), _) => Rung::Insist,
            (None, decision) => decision.as_ref().map_or(Rung::Observe, |decision| decision.rung),
        };
        let refused = said.stance.refuses();
        let state = match (refused, asked.runs) {
            (true, _) => CallState::Denied,
            (false, true) => CallState::Executing,
            (false, false) => CallState::Pending,
        };
        let mut life = life::begun(who.at);
        let note = said.text.as_deref().filter(|_| refused);
        if state != CallState::Pending {
            life::add(&mut life, who.at, state, note.unwrap_or_default());
        }
        let charge = said.charge.as_deref();
        let new = NewCall { state, attempt, rung, charge, world, life: &life };
        let call = self.insert(session, asked, &new)?;
        said.call = Some(call);
        self.note_foreseen(session, call, asked, foreseen, &said)?;
        let unheard = said.foreseen.as_ref().filter(|_| who.hears == Hears::Nothing && mode > Mode::Shadow);
        if let Some(text) = unheard.filter(|_| !refused) {
            self.tell_with_result(call, text)?;
        }
        if refused {
            self.denied(session, call, asked, &mut said)?;
        } else {
            said.bookmark = Some(self.started(session, call, attempt, asked)?);
            if let Some(rewritten) = &said.rewritten {
                self.note_rewritten(call, &mut life, who.at, rewritten)?;
                let body = rewritten.body(self.bench.lang);
                said.bookmark = Some(self.append(who.at, EventType::ToolRewritten, session, call, body)?);
            }
            if let Stance::Hold { wait, because } = said.stance {
                let retrying = Retrying {
                    who: who.clone(),
                    key: asked.key.clone(),
                    attempt,
                    of: None,
                    wait_ms: time::span_ms(wait),
                    because,
                };
                said.bookmark = Some(self.announce_retry(session, Some(call), &retrying, None)?);
            }
            self.advised(session, call, who, "before", &mut said)?;
        }
        Ok(said)
    }

    /// A call that runs already, and whose end is known: it is written when it ends. That another one has its name is found out
    /// then, and all are written one by one.
    fn begun(&self, session: i64, asked: &Asked, mode: Mode) -> Result<Said, rusqlite::Error> {
        let (at, state, rung_before) = (asked.who.at, CallState::Executing, Rung::Observe);
        let attempts = self.next_attempt(session, asked)?;
        let (attempt, is_first) = (attempts.unwrap_or(1), attempts.is_none());
        let Some(id) = self.desk.number(self.connection)? else {
            return self.sent_again(session, asked, mode);
        };
        let mut life = life::begun(at);
        life::add(&mut life, at, state, "");
        let bookmark = Some(self.started(session, id, attempt, asked)?);
        let found = Found {
            id,
            state,
            asked_at: at,
            attempt,
            rung_before,
            charge: None,
            untold: None,
            life,
            call_print: asked.call_print.as_str().to_owned(),
            written: Written::Not { is_first },
        };
        self.desk.put_draft(session, asked, found);
        Ok(Said { call: Some(id), mode, bookmark, ..Said::default() })
    }

    /// Another attempt at a call that was let pass. The agent did not ask for it, so there is nothing to say to it.
    fn sent_again(&self, session: i64, asked: &Asked, mode: Mode) -> Result<Said, rusqlite::Error> {
        let attempt = self.attempt(session, asked)?;
        let (state, rung) = (CallState::Executing, Rung::Observe);
        let mut life = life::begun(asked.who.at);
        life::add(&mut life, asked.who.at, state, "");
        let new = NewCall { state, attempt, rung, charge: None, world: None, life: &life };
        let call = self.insert(session, asked, &new)?;
        let bookmark = Some(self.started(session, call, attempt, asked)?);
        Ok(Said { call: Some(call), mode, bookmark, ..Said::default() })
    }

    pub(crate) fn ended(&self, ended: &Ended) -> Result<Said, rusqlite::Error> {
        let asked = &ended.asked;
        let who = &asked.who;
        let session = self.session(who)?;
        let state = match (&ended.ending.upshot, ended.outcome) {
            (Upshot::OurDenial, _) | (_, Outcome::Denied) => CallState::Denied,
            (Upshot::Failed(_), _) => CallState::Failed,
            (Upshot::Fine, _) => CallState::Completed,
        };
        let found = match (self.desk.take_draft(asked), asked.key.is_empty()) {
            (Some(draft), _) => Some(draft),
            (None, false) => self.find(session, &asked.key)?,
            (None, true) => self.find_nameless(session, asked)?,
        };
        let mut said = Said::default();
        let found = match found {
            Some(found) => found,
            None => {
                said = self.user_spoke_if(asked.user_spoke, session, who)?;
                // A host that only tells of results has no other contact at which dead calls could be found.
                said.sealed.extend(self.dead_calls(session, who)?);
                self.late_arrival(session, ended)?
            }
        };
        if found.state.was_let_pass() {
            self.note_pair(session, who)?;
        }
        said.call = Some(found.id);
        said.mode = self.bench.modes.of(&asked.tool);
        said.snapshots = life::snapshots_still_open(&found.life);
        if found.state.may_become(state) {
            self.close(session, &found, ended, state, &mut said)?;
        }
        Ok(said)
    }

    /// A call whose beginning nobody recorded.
    fn late_arrival(&self, session: i64, ended: &Ended) -> Result<Found, rusqlite::Error> {
        let mut asked = ended.asked.clone();
        asked.who.at = asked.who.at.saturating_sub(ended.took_ms.unwrap_or(0));
        let life = life::begun(asked.who.at);
        let (state, rung) = (CallState::Pending, Rung::Observe);
        let attempt = self.attempt(session, &asked)?;
        let new = NewCall { state, attempt, rung, charge: None, world: None, life: &life };
        let id = self.insert(session, &asked, &new)?;
        Ok(Found {
            id,
            state,
            asked_at: asked.who.at,
            attempt,
            rung_before: rung,
            charge: None,
            untold: None,
            life,
            call_print: asked.call_print.as_str().to_owned(),
            written: Written::Late,
        })
    }

    fn close(
        &self,
        session: i64,
        found: &Found,
        ended: &Ended,
        state: CallState,
        said: &mut Said,
    ) -> Result<(), rusqlite::Error> {
        let (asked, at) = (&ended.asked, ended.asked.who.at);
        // Whatever name it ends under, what ran was another call than the one that was asked for.
        let is_rewritten = state == CallState::Completed && life::is_rewritten(&found.life);
        // A call that was not allowed to run says nothing about the far side.
        let ask = ended.retry.as_ref().filter(|_| state != CallState::Denied);
        let attempt = Attempt { session, call: found.id, number: found.attempt, asked_at: found.asked_at };
        // An agent that hears everything asked once, however often its call is sent: only the last attempt counts for it.
        // So it is where the hook sends it again: the model sees only how it goes on.
        let is_one_of_many = |ask: &&RetryAsk| {
            ask.from_hook.is_some() || ask.series.is_some() && asked.who.hears == Hears::Everything
        };
        let early = match ask.filter(is_one_of_many) {
            Some(ask) => Some(brake::pull(self, &attempt, ended, ask)?),
            None => None,
        };
        let goes_on = ended.was_sent_again || early.as_ref().is_some_and(Pulled::goes_on);
        let world = match goes_on {
            true => self.desk.standing.world(self.connection, session)?,
            false => {
                let own = is_rewritten.then(|| rewritten::own_sight(&asked.sight, &found.call_print));
                let sight = own.as_ref().unwrap_or(&asked.sight);
                let event = Event::Ended(sight, &ended.ending, self.moment(&asked.who));
                self.decide(session, event, said)?
            }
        };
        if is_rewritten {
            self.step(session, Event::StillFails(&self.asked_sight(found)?))?;
        }
        if asks_us(asked) && said.stance == Stance::Go {
            // Our own words explain themselves.
            said.text = None;
        }
        if self.late {
            // Nobody hears it any more.
            said.decision = None;
            said.text = None;
        }
        let is_old_news = said.decision.as_ref().is_some_and(|decision| {
            let kind = decision.reason.as_ref().map(|reason| reason.kind);
            decision.rung == Rung::Note && found.attempt > 1 && kind.is_some_and(words::explains_itself)
        });
        let earlier = self.earlier_errors(session, asked, said)?;
        let text = said.text.take().filter(|_| !is_old_news);
        said.text = text.map(|text| self.with_advice(&text, earlier.as_deref(), ended));
        let is_note = said.decision.as_ref().is_some_and(|decision| decision.rung == Rung::Note);
        if is_note
            && let Some(text) = &said.text
            && self.was_said(session, &asked.who, text)?
        {
            said.text = None;
        }
        if let Some(untold) = found.untold.as_ref().filter(|_| !self.late) {
            said.text = Some(words::joined([Some(&**untold), said.text.as_deref()]));
        }
        let decision = said.decision.as_ref().filter(|decision| decision.is_for_a_person());
        if let Some(reason) = decision.and_then(|decision| decision.reason.as_ref()) {
            let known = self.desk.standing.all_known(self.connection, session)?;
            said.table = Some(known.table_of(reason, self.bench.lang));
        }
        // What was not allowed to run did not fail.
        let finding = ended.finding.as_ref().filter(|_| state == CallState::Failed);
        let repeat = match finding {
            Some(finding) => self.is_repeat(session, asked, finding)?,
            None => false,
        };
        // A record that has only one time for both says nothing of what lay between.
        let took = ended.took_ms.or(at.checked_sub(found.asked_at).filter(|took| *took > 0));
        let mut life = found.life.clone();
        let evidence = finding.map_or("", |finding| &*finding.evidence);
        life::add(&mut life, at, state, evidence);
        let rung = said.decision.as_ref().map_or(Rung::Observe, |decision| decision.rung);
        let closing = Closing { state, took, repeat, rung, world, life: &life };
        match found.written {
            Written::Yes | Written::Late => self.write_ending(found.id, ended, &closing)?,
            Written::Not { .. } => self.write_whole(session, found, ended, &closing)?,
        }
        let record = self.ended_record(found, ended, &closing);
        let is_no_news = state == CallState::Completed && self.is_untroubled(session)?;
        if !is_no_news {
            self.judge_run(session, found.id, asked, state)?;
        }
        match finding {
            Some(finding) => {
                self.note_missing(session, asked, finding)?;
                self.failed(session, found.id, asked, finding, took, said)?;
                let hears = match asked.who.hears {
                    _ if self.late || goes_on => Hears::Nothing,
                    Hears::Everything if said.mode == Mode::Shadow => Hears::Nothing,
                    hears => hears,
                };
                said.remembered = self.recall(session, found.id, asked, finding, hears)?;
                if let Some(remembered) = &said.remembered {
                    said.text = Some(words::joined([said.text.as_deref(), Some(&**remembered)]));
                }
            }
            None if state == CallState::Completed => {
                if !is_no_news {
                    self.learn(session, found.id, asked)?;
                    self.connection
                        .prepare_cached(
                            "UPDATE call SET recovered_at = ?3
                             WHERE session = ?1 AND intent_print = ?2 AND state = 'failed' AND recovered_at IS NULL",
                        )?
                        .execute((session, asked.intent_print.as_str(), at.cast_signed()))?;
                }
                if !is_rewritten {
                    self.forget_missing(asked)?;
                }
                // What was never asked for before was never refused.
                if !is_rewritten && found.written != (Written::Not { is_first: true }) {
                    self.look_for_false_alarms(session, found.id, asked, world)?;
                }
            }
            None => {}
        }
        let body = body::ended(state, took);
        let new =
            NewEvent { at, kind: EventType::ToolEnd, session: Some(session), call: Some(found.id), body };
        said.bookmark = Some(event::append_with(self.connection, &new, Some(&record))?);
        if let Some(ask) = ask {
            let pulled = match early {
                Some(pulled) => pulled,
                None => brake::pull(self, &attempt, ended, ask)?,
            };
            if let Some((retrying, seen)) = &pulled.announced {
                self.announce_retry(session, Some(found.id), retrying, *seen)?;
            }
            // Whoever makes all the attempts for itself goes by the policy alone.
            let is_unheard = ask.series.is_some() && asked.who.hears != Hears::Everything;
            if is_unheard || goes_on {
                said.text = None;
            }
            said.retry = pulled.retry;
        }
        self.halt_unasked(session, found, asked, said)?;
        self.advised(session, found.id, &asked.who, "after", said)
    }

    /// The call as it was asked for, whatever ran in its place.
    fn asked_sight(&self, found: &Found) -> Result<Sight, rusqlite::Error> {
        let sql =
            "SELECT tool, input FROM call JOIN call_text ON call_text.call = call.id WHERE call.id = ?1";
        let (tool, input): (String, String) = self
            .connection
            .prepare_cached(sql)?
            .query_row([found.id], |row| Ok((row.lenient(0)?, row.lenient(1)?)))?;
        let input = serde_json::from_str(&input).unwrap_or(Value::Null);
        Ok(see::sight(&Call::new(tool, input)))
    }

    /// A call that no hook is asked about before cannot be refused. Where one goes on failing alike and a person is there, the
    /// run is stopped.
    fn halt_unasked(
        &self,
        session: i64,
        found: &Found,
        asked: &Asked,
        said: &mut Said,
    ) -> Result<(), rusqlite::Error> {
        let who = &asked.who;
        let is_unasked = asked.attended
            && asked.runs
            && found.state == CallState::Pending
            && said.mode == Mode::Enforce
            && who.hears == Hears::Everything;
        let decision = said.decision.as_ref().filter(|decision| is_unasked && decision.rung >= Rung::Hint);
        let reason = decision.and_then(|decision| decision.reason.as_ref());
        let Some(reason) = reason.filter(|r| r.count >= UNASKED_MAX && r.count.is_multiple_of(3)) else {
            return Ok(());
        };
        said.text = Some(words::stopped_unasked(reason, self.bench.lang));
        said.table = self.table(session, Rung::Halt)?;
        said.stance = Stance::Halt;
        let body = body::halted(said);
        said.bookmark = Some(self.append(who.at, EventType::Halt, session, found.id, body)?);
        Ok(())
    }

    /// The events of a failure, and the problem it belongs to.
    fn failed(
        &self,
        session: i64,
        call: i64,
        asked: &Asked,
        finding: &Finding,
        took: Option<u64>,
        said: &Said,
    ) -> Result<(), rusqlite::Error> {
        let at = asked.who.at;
        let body = body::failed(Some(call), asked, finding, took, said, self.bench.lang);
        self.append(at, EventType::ToolError, session, call, body)?;
        self.append(at, EventType::Error, session, call, body::error(finding, self.bench.lang))?;
        // That we said no to an agent is no problem of the machine.
        if asks_us(asked) {
            return Ok(());
        }
        let news = match problem::met(self.connection, finding, &asked.tool, at, &self.bench.problems)? {
            None => return Ok(()),
            Some(ProblemState::Regressed) => EventType::ProblemRegressed,
            Some(ProblemState::New | ProblemState::Known | ProblemState::Resolved) => EventType::ProblemNew,
        };
        let body = json!({
            "cause": finding.cause.as_str(), "kind": finding.kind.word(), "title": &*finding.evidence,
        });
        self.append(at, news, session, call, body)?;
        Ok(())
    }

    pub(crate) fn retrying(&self, retrying: &Retrying) -> Result<Said, rusqlite::Error> {
        let session = self.session(&retrying.who)?;
        let found = self.find(session, &retrying.key)?.map(|found| found.id);
        let bookmark = self.announce_retry(session, found, retrying, None)?;
        Ok(Said { call: found, bookmark: Some(bookmark), ..Said::default() })
    }

    /// The event that tells of a wait before it begins, and what was `seen` of such retries where it follows from that.
    pub(crate) fn announce_retry(
        &self,
        session: i64,
        call: Option<i64>,
        retrying: &Retrying,
        seen: Option<Seen>,
    ) -> Result<Bookmark, rusqlite::Error> {
        let body = body::retrying(retrying, seen, self.bench.lang);
        let kind = EventType::ToolRetry;
        event::append(
            self.connection,
            &NewEvent { at: retrying.who.at, kind, session: Some(session), call, body },
        )
    }

    pub(crate) fn ruled(
        &self,
        who: &Who,
        which: &Which,
        ruling: Ruling,
        (by, note): (&Clean, &Clean),
    ) -> Result<Said, rusqlite::Error> {
        let session = self.session(who)?;
        let state = match ruling {
            Ruling::Required => CallState::ApprovalRequired,
            Ruling::Approved => CallState::Approved,
            Ruling::Denied => CallState::Denied,
            Ruling::Begun => CallState::Executing,
        };
        let found = match which {
            Which::Key(key) => self.find(session, key)?,
            Which::Same(print) => self.find_same(session, who, print)?,
        };
        let Some(found) = found else { return Ok(Said::default()) };
        let mut said = Said { call: Some(found.id), ..Said::default() };
        if !found.state.may_become(state) {
            return Ok(said);
        }
        let mut life = found.life;
        life::add(&mut life, who.at, state, note);
        self.connection
            .prepare_cached("UPDATE call SET state = ?2, ended_at = ?3 WHERE id = ?1")?
            .execute((found.id, state.word(), state.is_final().then_some(who.at.cast_signed())))?;
        self.connection
            .prepare_cached("UPDATE call_text SET life = ?2 WHERE call = ?1")?
            .execute((found.id, life))?;
        let event = match ruling {
            Ruling::Required => Some(EventType::Ask),
            Ruling::Approved | Ruling::Begun => None,
            Ruling::Denied => Some(EventType::ToolDenied),
        };
        if let Some(event) = event {
            let body = body::ruled(&self.label(found.id)?, by, note);
            said.bookmark = Some(self.append_with_row(who.at, event, session, found.id, body)?);
        }
        Ok(said)
    }

    /// The user speaks. What is under way goes on, as far as anybody knows.
    pub(crate) fn user_spoke(&self, who: &Who) -> Result<Said, rusqlite::Error> {
        let session = self.session(who)?;
        self.user_spoke_if(true, session, who)
    }

    fn user_spoke_if(&self, spoke: bool, session: i64, who: &Who) -> Result<Said, rusqlite::Error> {
        let mut said = Said { mode: self.bench.modes.others, ..Said::default() };
        if spoke {
            seal::note_user(self.connection, session, &who.agent, who.at, self.bench.lang)?;
            said.sealed = self.untold(session, who)?;
            let _nothing = self.step(session, Event::UserSpoke)?;
        }
        Ok(said)
    }

    /// After a break nobody knows what still holds: answers may be asked for again, and what was refused is said once more
    /// before it is refused again.
    fn begin_anew(&self, session: i64) -> Result<(), rusqlite::Error> {
        self.desk.standing.forget_answers(self.connection, session)?;
        self.step(session, Event::UserSpoke).map(|_| ())
    }

    /// A call that was answered and went on by itself ended now. That it failed is all that is new.
    pub(crate) fn ended_later(
        &self,
        who: &Who,
        key: &Clean,
        outcome: Outcome,
        line: &Clean,
    ) -> Result<Said, rusqlite::Error> {
        let session = self.session(who)?;
        let Some(found) = self.find(session, key)? else { return Ok(Said::default()) };
        let snapshots = life::snapshots(&found.life);
        let mut said = Said { call: Some(found.id), snapshots, ..Said::default() };
        if found.state != CallState::Completed || outcome.said_ok() != Some(false) {
            return Ok(said);
        }
        let mut life = found.life;
        life::add(&mut life, who.at, CallState::Failed, line);
        self.connection
            .prepare_cached(
                "UPDATE call SET state = 'failed', ok = 0, ended_at = ?2, outcome = ?3, code = ?4, kind = 'unknown'
                 WHERE id = ?1",
            )?
            .execute((found.id, who.at.cast_signed(), outcome.word(), outcome.number()))?;
        self.connection
            .prepare_cached("UPDATE call_text SET life = ?2, evidence = ?3 WHERE call = ?1")?
            .execute((found.id, life, &**line))?;
        let body = json!({
            "call": { "id": found.id, "key": &**key, "label": self.label(found.id)?, "state": "failed" },
            "error": &**line, "kind": "unknown", "errorType": null, "retryable": null,
        });
        said.bookmark = Some(self.append_with_row(who.at, EventType::ToolError, session, found.id, body)?);
        Ok(said)
    }

    /// A session begins, or goes on: what ran when it was left has been given up.
    pub(crate) fn began(&self, who: &Who) -> Result<Said, rusqlite::Error> {
        let session = self.session(who)?;
        self.begin_anew(session)?;
        seal::all_of(self.connection, session, who.at, self.bench.lang)?;
        Ok(Said { sealed: self.untold(session, who)?, mode: self.bench.modes.others, ..Said::default() })
    }

    /// A session goes on in another process: what ran in those that are gone has been given up, and nothing else.
    pub(crate) fn resumed(&self, who: &Who) -> Result<Vec<seal::Sealed>, rusqlite::Error> {
        let session = self.session(who)?;
        self.begin_anew(session)?;
        self.dead_calls(session, who)
    }

    /// The conversation was cut short: what an agent was told is told again.
    pub(crate) fn shortened(&self, who: &Who) -> Result<Said, rusqlite::Error> {
        let session = self.session(who)?;
        self.begin_anew(session)?;
        let known = self.desk.standing.all_known(self.connection, session)?;
        let mode = self.bench.modes.others;
        Ok(Said { text: known.reminder(self.bench.lang), mode, ..Said::default() })
    }

    /// A sub-agent is done, and with it all that it ran.
    pub(crate) fn agent_done(&self, who: &Who) -> Result<Said, rusqlite::Error> {
        let session = self.session(who)?;
        if who.is_main() {
            return Ok(Said::default());
        }
        seal::all_of_agent(self.connection, session, &who.agent, who.at, self.bench.lang)?;
        Ok(Said::default())
    }

    pub(crate) fn over(&self, who: &Who) -> Result<Said, rusqlite::Error> {
        let session = self.session(who)?;
        seal::all_of(self.connection, session, who.at, self.bench.lang)?;
        Ok(Said { sealed: self.untold(session, who)?, mode: self.bench.modes.others, ..Said::default() })
    }

    pub(crate) fn own_fault(&self, fault: &OwnFault) -> Result<Said, rusqlite::Error> {
        let (kind, body) = (EventType::OwnFault, body::own_fault(fault));
        let new = NewEvent { at: fault.at, kind, session: None, call: None, body };
        Ok(Said { bookmark: Some(event::append(self.connection, &new)?), ..Said::default() })
    }

    /// A hook of the user's failed: an error of their own, told beside those of the calls.
    pub(crate) fn hook_fault(&self, fault: &HookFault) -> Result<Said, rusqlite::Error> {
        let session = self.session(&fault.who)?;
        let call = self.find(session, &fault.key)?.map(|found| found.id);
        let (kind, body) = (EventType::Error, body::hook_fault(fault));
        let new = NewEvent { at: fault.who.at, kind, session: Some(session), call, body };
        Ok(Said { bookmark: Some(event::append(self.connection, &new)?), ..Said::default() })
    }

    /// What the ladder says; returns how often the session's world had moved before.
    fn decide(&self, session: i64, event: Event<'_>, said: &mut Said) -> Result<u32, rusqlite::Error> {
        let label = match &event {
            Event::Asked(sight, _) | Event::Ended(sight, ..) => sight.label.clone(),
            Event::UserSpoke | Event::StillFails(_) => String::new(),
        };
        let Step { decision, world } = self.step(session, event)?;
        said.text = decision.text(self.bench.lang);
        said.table = match (&decision.reason, decision.rung) {
            (Some(reason), Rung::Halt) if reason.track.asks() => {
                Some(words::table_of_looks(&label, reason.count, self.bench.lang))
            }
            (_, rung) => self.table(session, rung)?,
        };
        said.decision = Some(decision);
        Ok(world)
    }

    /// Moves a session by one event.
    fn step(&self, session: i64, event: Event<'_>) -> Result<Step, rusqlite::Error> {
        self.desk.standing.step(self.connection, session, &self.bench.ladder, event)
    }

    /// What the ladder says, and when the same call may work again, and what may help, as far as there is room.
    /// The errors that the same call had before, where a hint is given about it.
    fn earlier_errors(
        &self,
        session: i64,
        asked: &Asked,
        said: &Said,
    ) -> Result<Option<String>, rusqlite::Error> {
        let decision = said.decision.as_ref().filter(|decision| decision.rung >= Rung::Hint);
        let reason = decision.and_then(|decision| decision.reason.as_ref());
        match reason.filter(|reason| matches!(reason.track, Track::Repeat | Track::Variant)) {
            Some(reason) => {
                let errors = self.other_errors(session, asked, &reason.line)?;
                Ok(words::earlier_errors(&errors, self.bench.lang))
            }
            None => Ok(None),
        }
    }

    fn with_advice(&self, text: &str, earlier: Option<&str>, ended: &Ended) -> String {
        let mut said = text.to_owned();
        let again = ended
            .again_after
            .filter(|wait| *wait > 0)
            .map(|wait| self.possible_again(Duration::from_millis(wait), &ended.asked.who));
        for sentence in
            earlier.into_iter().chain(again.as_deref()).chain(ended.advice.iter().map(|advice| &**advice))
        {
            if said.chars().count() + 1 + sentence.chars().count() <= SAID_MAX {
                said = words::joined([Some(&*said), Some(sentence)]);
            }
        }
        said
    }

    /// Was the agent told the same lately, up to numbers? The cause of one more failure in these words is known to it.
    fn was_said(&self, session: i64, who: &Who, text: &str) -> Result<bool, rusqlite::Error> {
        let mut statement = self.connection.prepare_cached(SAID_LATELY)?;
        let since = who.at.saturating_sub(KNOWS_FOR_MS);
        let mut rows = statement.query((session, &*who.agent, since.cast_signed()))?;
        while let Some(row) = rows.next()? {
            let body: String = row.lenient(0)?;
            let body: Value = serde_json::from_str(&body).unwrap_or_default();
            let before = body["text"].as_str().unwrap_or_default();
            if body["spoken"] == true && is_same_note(before, text) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What was tried, for the person who has to decide about a run that is halted.
    fn table(&self, session: i64, rung: Rung) -> Result<Option<String>, rusqlite::Error> {
        match rung {
            Rung::Halt => {
                let known = self.desk.standing.all_known(self.connection, session)?;
                Ok(Some(known.table(self.bench.lang)))
            }
            Rung::Observe | Rung::Note | Rung::Hint | Rung::Insist | Rung::Deny => Ok(None),
        }
    }

    fn moment(&self, who: &Who) -> Moment {
        Moment { agent: who.agent_print(), round: who.round, at: who.at }
    }

    fn started(
        &self,
        session: i64,
        call: i64,
        attempt: u32,
        asked: &Asked,
    ) -> Result<Bookmark, rusqlite::Error> {
        let (at, kind, body) = (asked.who.at, EventType::ToolStart, body::started(asked, attempt));
        let record = Record::asked(&asked_part(asked, at.cast_signed()));
        let new = NewEvent { at, kind, session: Some(session), call: Some(call), body };
        event::append_with(self.connection, &new, Some(&record))
    }

    /// The events of a call that was refused.
    fn denied(&self, session: i64, call: i64, asked: &Asked, said: &mut Said) -> Result<(), rusqlite::Error> {
        let at = asked.who.at;
        let body = body::denied(asked, said);
        said.bookmark = Some(self.append_with_row(at, EventType::ToolDenied, session, call, body)?);
        if said.table.is_some() {
            said.bookmark = Some(self.append(at, EventType::Halt, session, call, body::halted(said))?);
        }
        Ok(())
    }

    /// The event of what the ladder said without refusing anything.
    fn advised(
        &self,
        session: i64,
        call: i64,
        who: &Who,
        when: &str,
        said: &mut Said,
    ) -> Result<(), rusqlite::Error> {
        if said.text.is_some() {
            // What only earlier sessions knew is a notice.
            let is_heard = match who.hears {
                Hears::Everything => true,
                Hears::Notices => said.foreseen.is_some(),
                Hears::Nothing | Hears::Memory => false,
            };
            let body = body::advised(said, when, said.mode != Mode::Shadow && is_heard);
            said.bookmark = Some(self.append(who.at, EventType::ToolAdvice, session, call, body)?);
        }
        Ok(())
    }

    /// What the session has not been told yet; nobody hears the answer to a late entry.
    fn untold(&self, session: i64, who: &Who) -> Result<Vec<seal::Sealed>, rusqlite::Error> {
        match matches!(who.hears, Hears::Notices | Hears::Everything) && !self.late {
            true => seal::untold(self.connection, session),
            false => Ok(Vec::new()),
        }
    }

    /// Dead calls of which the session is to be told: those found now, and those found while it was silent.
    fn dead_calls(&self, session: i64, who: &Who) -> Result<Vec<seal::Sealed>, rusqlite::Error> {
        let death =
            seal::Death { before: who.at.saturating_sub(self.bench.seal_after), is_alive: self.is_alive };
        seal::dead_of(self.connection, session, &death, who.at, self.bench.lang)?;
        self.untold(session, who)
    }

    pub(crate) fn append(
        &self,
        at: u64,
        kind: EventType,
        session: i64,
        call: i64,
        body: Value,
    ) -> Result<Bookmark, rusqlite::Error> {
        let new = NewEvent { at, kind, session: Some(session), call: Some(call), body };
        event::append(self.connection, &new)
    }

    /// The same for an event after which the row of its call says something new, and which is too rare to know it by heart.
    pub(crate) fn append_with_row(
        &self,
        at: u64,
        kind: EventType,
        session: i64,
        call: i64,
        body: Value,
    ) -> Result<Bookmark, rusqlite::Error> {
        let record = Record::of_row(self.connection, call)?;
        let new = NewEvent { at, kind, session: Some(session), call: Some(call), body };
        event::append_with(self.connection, &new, record.as_ref())
    }
}

/// Is something asked of unstuck itself?
fn asks_us(asked: &Asked) -> bool {
    let program = asked.label.split_whitespace().next().unwrap_or_default();
    asked.tool.starts_with(OUR_TOOLS) || program.rsplit('/').next() == Some("unstuck")
}
