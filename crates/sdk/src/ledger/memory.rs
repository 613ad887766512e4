//! What is remembered where there is no store: as long as the toolbox lives, and of bounded size.
//!
//! Judging a call costs more than many a tool does. So as long as all goes well and nothing is repeated, successes are only
//! put on a pile, and the ladder reads that pile when something happens that it could have a word on.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use unstuck_judge::ladder::{
    self, Decision, Event as Step, Moment, Print, Round, Rung, Settings, Standing, words,
};
use unstuck_judge::{Kind, Lang, Observation, Outcome, Rules, retry, shell};
use unstuck_store::{
    Asked, Bounds, Brakes, CallState, Checked, Ended, EventType, Finding, Hears, KNOWS_FOR_MS, Mode,
    NAME_MAX, Resend, Retry, Retrying, Said, Source, Stance, Told, Who, body, is_same_note,
};
use unstuck_wire::clean::{Clean, Cleaner};
use unstuck_wire::report::Report;
use unstuck_wire::time;

use super::looked::{self, Where};
use super::{
    After, Before, Closing, Known, Opening, Printed, diagnosed, has_failed, is_guess, nature_of, text_after,
};
use crate::bus::{Body, Event, EventBus};
use crate::call::Session;
use crate::policy::Policy;
use crate::record::{CallRecord, Records};

/// How many successes are remembered unread.
const PILE: usize = 512;
/// And about how many bytes of them.
const PILE_BYTES: usize = 4 * 1024 * 1024;
/// So many notes are remembered, to say none of them again.
const NOTES: usize = 32;
/// How many sessions are remembered; the one that was silent for longest goes first.
const SESSIONS: usize = 1024;
/// A longer wait is told and not enforced.
const LONGEST_WAIT_MS: u64 = 15 * 60 * 1000;
/// The longest wait of a call that comes too early; beyond that it is refused, with the time at which it may come again.
const HOLD_MAX: Duration = Duration::from_secs(10);

/// The memory of a toolbox without a store.
pub(crate) struct Memory {
    policy: Arc<Policy>,
    settings: Settings,
    rules: Rules,
    cleaner: Cleaner,
    bus: EventBus,
    hasher: RandomState,
    sessions: Mutex<HashMap<Session, Kept>>,
    /// How often a session was looked up.
    uses: AtomicU64,
    records: Records,
}

struct Kept {
    desk: Arc<Mutex<Desk>>,
    used: u64,
}

/// What is known of one session.
struct Desk {
    standing: Standing,
    /// Successes that the ladder has not read yet, and how often each call is among them.
    pile: VecDeque<Past>,
    /// About how many bytes they hold.
    weight: usize,
    seen: HashMap<u64, u32>,
    /// Something failed or was repeated: from now on everything is judged as it comes.
    is_awake: bool,
    brakes: HashMap<String, Brakes>,
    /// How calls ended last.
    last: HashMap<Print, Last>,
    /// What agents were told lately, the latest last.
    notes: VecDeque<Note>,
}

/// What an agent was told.
struct Note {
    agent: String,
    text: String,
    at: u64,
}

/// A success that nobody has read yet.
struct Past {
    key: u64,
    weight: usize,
    opening: Opening,
    printed: Printed,
}

/// How a call ended last.
struct Last {
    at: u64,
    /// Why it failed, where that passes by itself.
    passing: Option<Passing>,
}

struct Passing {
    again_at: u64,
    world: u32,
    kind: Kind,
}

impl Memory {
    pub(crate) fn new(policy: Arc<Policy>, bus: EventBus) -> Memory {
        Memory {
            settings: policy.ladder_settings(),
            policy,
            rules: Rules::built_in(),
            cleaner: Cleaner::new(None, []),
            bus,
            hasher: RandomState::new(),
            sessions: Mutex::default(),
            uses: AtomicU64::new(0),
            records: Records::default(),
        }
    }

    /// A call is asked for, or another attempt at it begins.
    pub(crate) fn before(&self, opening: &Opening) -> Before {
        if opening.attempt > 1 {
            self.begins(opening);
            return Before::default();
        }
        let desk = self.desk(opening);
        let mut desk = lock(&desk);
        if !desk.is_awake && desk.seen.contains_key(&self.key(opening)) {
            self.wake(&mut desk);
        }
        if !desk.is_awake {
            drop(desk);
            self.begins(opening);
            return Before::default();
        }
        let asked = self.asked(opening, opening.at);
        let step = Step::Asked(asked.sight(), moment(opening));
        let decision = ladder::step(&self.settings, &mut desk.standing, step);
        let said = self.settle(&desk, &asked, opening.call.input(), decision);
        drop(desk);
        match said.stance {
            Stance::Go | Stance::Hold { .. } => self.begins(opening),
            Stance::Refuse | Stance::Halt => self.refused(opening, &asked, &said),
        }
        if let Stance::Hold { wait, because } = said.stance {
            self.announce(opening, &asked, (opening.attempt, None, wait), because);
        }
        if !said.stance.refuses() {
            self.advised(opening, "before", &said, opening.at);
        }
        let Said { stance, text, table, mode, .. } = said;
        Before { stance, text: text.filter(|_| mode > Mode::Shadow), table, sealed: Vec::new() }
    }

    /// An attempt ended.
    pub(crate) fn after(&self, closing: Closing) -> After {
        let opening = closing.opening.clone();
        let desk = self.desk(&opening);
        let mut desk = lock(&desk);
        // What a command says when it ends well may be the story of a failure.
        let is_plain = shell::line(&opening.call.call).is_none() && closing.printed.http_status.is_none();
        let is_fine = is_plain && closing.printed.outcome == Outcome::Succeeded;
        if is_fine && !desk.is_awake && opening.attempt == 1 {
            desk.put_by(self.key(&opening), opening.clone(), closing.printed);
            drop(desk);
            self.ends(&opening, CallState::Completed, closing.took, closing.at, "");
            return After::default();
        }
        self.wake(&mut desk);
        let resend = closing.resend();
        let Closing { printed, advice, took, at, .. } = closing;
        let (outcome, known) = (printed.outcome, printed.known());
        let observation = printed.of(&opening.call.call);
        let (mut ended, mut report) = self.judged(&opening, &observation, known, Some((resend, took)), at);
        advice.go_with(&mut ended, &mut report, &self.cleaner);
        let retry = desk.pull(&self.policy.retry, &opening, &ended);
        let failed = has_failed(&ended, &report, outcome);
        let state = match (failed, outcome) {
            (_, Outcome::Denied) => CallState::Denied,
            (true, _) => CallState::Failed,
            (false, _) => CallState::Completed,
        };
        let mut said = Said { mode: self.policy.modes.of(opening.call.recorded_as()), ..Said::default() };
        // Only what is left in the end is the agent's.
        if !matches!(retry, Some(Retry::Again { .. })) {
            let step = Step::Ended(ended.asked.sight(), ended.ending(), moment(&opening));
            let world = desk.standing.world.count;
            let decision = ladder::step(&self.settings, &mut desk.standing, step);
            desk.note_last(&ended, at, world);
            said.text = decision.text(self.policy.lang);
            said.decision = Some(decision);
        }
        said.text = text_after(&said, &report.diagnosis);
        let is_note = said.decision.as_ref().is_some_and(|decision| decision.rung == Rung::Note);
        if is_note && said.text.as_deref().is_some_and(|text| !desk.is_news(opening.call.agent(), text, at)) {
            said.text = None;
        }
        drop(desk);
        if let Some(finding) = ended.finding.as_ref().filter(|_| state == CallState::Failed) {
            self.failed(&opening, finding, &ended, &said);
        }
        let shown = report.diagnosis.evidence.as_ref().filter(|_| state != CallState::Completed);
        self.ends(&opening, state, took, at, shown.map_or("", |found| &*found.text));
        self.advised(&opening, "after", &said, at);
        if let Some(Retry::Again { wait, attempt, of, .. }) = retry {
            self.announce(&opening, &ended.asked, (attempt, Some(of), wait), report.diagnosis.kind);
        }
        After { retry, failed, report: failed.then_some(report), text: said.text }
    }

    /// The user said something: what was refused may be tried again.
    pub(crate) fn user_spoke(&self, session: &Session) {
        let desk = self.desk_of(session);
        let _nothing_to_say = ladder::step(&self.settings, &mut lock(&desk).standing, Step::UserSpoke);
    }

    /// A person or a hook decided about a call.
    pub(crate) fn ruled(&self, opening: &Opening, state: CallState, note: &str, at: u64) {
        self.records.moved(&opening.call, opening.attempt, at, state, note);
        if state == CallState::ApprovalRequired {
            let asked = self.asked(opening, at);
            let body = body::ruled(&asked.label, "hook", &self.cleaner.line(note, NAME_MAX));
            self.publish(opening, EventType::Ask, at, Body::Json(body));
        }
    }

    /// Nobody waits for a call any more.
    pub(crate) fn interrupted(&self, opening: &Opening, at: u64) {
        let took = Duration::from_millis(at.saturating_sub(opening.at));
        self.ends(opening, CallState::Failed, took, at, "interrupted: nobody waited for it any more");
    }

    /// The records of a session.
    pub(crate) fn records(&self, session: &Session) -> Vec<CallRecord> {
        self.records.of(session)
    }

    fn desk(&self, opening: &Opening) -> Arc<Mutex<Desk>> {
        self.desk_of(&opening.call.session)
    }

    fn desk_of(&self, session: &Session) -> Arc<Mutex<Desk>> {
        let mut sessions = lock(&self.sessions);
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        if let Some(kept) = sessions.get_mut(session) {
            kept.used = now;
            return Arc::clone(&kept.desk);
        }
        if sessions.len() >= SESSIONS {
            let oldest = sessions.iter().min_by_key(|(_, kept)| kept.used).map(|(name, _)| name.clone());
            oldest.map(|name| sessions.remove(&name));
        }
        let desk = Arc::new(Mutex::new(Desk::new()));
        sessions.insert(session.clone(), Kept { desk: Arc::clone(&desk), used: now });
        desk
    }

    /// What stands for a call on the pile.
    fn key(&self, opening: &Opening) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        opening.compared.tool.hash(&mut hasher);
        hash(&opening.compared.input, &mut hasher);
        hasher.finish()
    }

    /// Reads the pile: from now on everything is judged as it comes.
    fn wake(&self, desk: &mut Desk) {
        desk.is_awake = true;
        desk.seen = HashMap::new();
        desk.weight = 0;
        for Past { opening, printed, .. } in mem::take(&mut desk.pile) {
            let observation = printed.of(&opening.call.call);
            let asked = self.asked(&opening, opening.at);
            let moment = moment(&opening);
            let _went_well =
                ladder::step(&self.settings, &mut desk.standing, Step::Asked(asked.sight(), moment));
            let (ended, _) = self.judged(&opening, &observation, Known::default(), None, opening.at);
            let step = Step::Ended(ended.asked.sight(), ended.ending(), moment);
            let world = desk.standing.world.count;
            let _went_well = ladder::step(&self.settings, &mut desk.standing, step);
            desk.note_last(&ended, opening.at, world);
        }
    }

    fn asked(&self, opening: &Opening, at: u64) -> Asked {
        let call = &opening.call;
        let who = Who {
            host: Clean::from("sdk"),
            hook: Clean::default(),
            session: self.cleaner.name(call.session.as_str(), NAME_MAX),
            agent: self.cleaner.name(&call.agent, NAME_MAX),
            cwd: Clean::default(),
            place: Clean::default(),
            owner: Clean::default(),
            source: Source::Ran,
            hears: Hears::Everything,
            round: round(opening),
            at,
        };
        opening.asked(&self.cleaner, &Bounds::default(), who)
    }

    /// Judges a result, with how it may be sent again and how long it took where that still matters.
    fn judged(
        &self,
        opening: &Opening,
        observation: &Observation,
        known: Known,
        fresh: Option<(Resend, Duration)>,
        at: u64,
    ) -> (Ended, Report) {
        let diagnosis = diagnosed(&self.rules, observation, known);
        let told = Told {
            asked: self.asked(opening, at),
            observation,
            nature: nature_of(opening.nature, &diagnosis),
            diagnosis,
            said_ok: observation.outcome.said_ok(),
            took_ms: fresh.map(|(_, took)| time::span_ms(took)),
            resend: fresh.map(|(resend, _)| resend),
        };
        let (mut ended, report) = told.judged(&self.cleaner, &Bounds::default(), self.policy.lang);
        if is_guess(&report.diagnosis) {
            ended.doubt();
        }
        ended.tell_by_arguments(!self.policy.sees_a_part);
        (ended, report)
    }

    /// Settles what becomes of a call that the ladder has something to say about.
    fn settle(&self, desk: &Desk, asked: &Asked, input: &Value, decision: Decision) -> Said {
        let (mode, lang) = (self.policy.modes.of(&asked.tool), self.policy.lang);
        let mut said = Said { mode, text: decision.text(lang), ..Said::default() };
        let (sight, at) = (asked.sight(), asked.who.at);
        let last = desk.last.get(&sight.exact);
        if decision.rung < Rung::Deny {
            let passing = last.and_then(|last| last.passing.as_ref()).filter(|passing| {
                let is_still_so = passing.world == desk.standing.world.count && !sight.waits;
                is_still_so && (1..=LONGEST_WAIT_MS).contains(&passing.again_at.saturating_sub(at))
            });
            if let Some(passing) = passing {
                hold_back(passing, at, lang, &mut said);
            }
            return Said { decision: Some(decision), ..said };
        }
        let reason = decision.reason.as_ref();
        let age = last.map(|last| Duration::from_millis(at.saturating_sub(last.at)));
        let is_old =
            self.settings.tries_again_after().is_some_and(|after| age.is_some_and(|age| age >= after));
        let works = if self.policy.sees_a_part { Where::Elsewhere } else { Where::Here };
        let checked = match (reason, last) {
            _ if is_old => Checked::Moved,
            (Some(reason), Some(last)) => {
                let since = SystemTime::UNIX_EPOCH + Duration::from_millis(last.at);
                looked::check(input, reason, works, None, since)
            }
            (Some(_), None) | (None, _) => Checked::Unseen,
        };
        match (mode, checked) {
            (Mode::Enforce, Checked::Moved) => said.text = None,
            // It runs, so nothing may say that it does not.
            (Mode::Shadow | Mode::Advise, _) | (Mode::Enforce, Checked::Unseen) => {
                said.text = Decision { rung: Rung::Insist, reason: decision.reason.clone() }.text(lang);
            }
            (Mode::Enforce, Checked::Holds) => {
                let tried = reason.and_then(|reason| desk.standing.tried(reason, lang));
                let help = reason.and_then(|reason| reason.remedy(lang));
                said.text = Some(words::joined([said.text.as_deref(), help.as_deref(), tried.as_deref()]));
                said.stance = match decision.rung {
                    Rung::Halt => Stance::Halt,
                    Rung::Observe | Rung::Note | Rung::Hint | Rung::Insist | Rung::Deny => Stance::Refuse,
                };
                said.table = (said.stance == Stance::Halt).then(|| desk.standing.table(lang));
            }
        }
        Said { decision: Some(decision), ..said }
    }
}

/// What is told of it on the bus, in the very shapes in which a store would write it.
impl Memory {
    fn publish(&self, opening: &Opening, kind: EventType, at: u64, body: Body) {
        self.bus.publish(Event::new(kind, at, None, Some(Arc::clone(&opening.call)), body));
    }

    fn begins(&self, opening: &Opening) {
        self.records.asked(&opening.call, opening.attempt, opening.at);
        if opening.runs {
            self.records.moved(&opening.call, opening.attempt, opening.at, CallState::Executing, "");
        }
        self.publish(opening, EventType::ToolStart, opening.at, Body::Started { attempt: opening.attempt });
    }

    fn ends(&self, opening: &Opening, state: CallState, took: Duration, at: u64, note: &str) {
        self.records.moved(&opening.call, opening.attempt, at, state, note);
        let body = Body::Ended { ok: state == CallState::Completed, state, took_ms: time::span_ms(took) };
        self.publish(opening, EventType::ToolEnd, at, body);
    }

    fn failed(&self, opening: &Opening, finding: &Finding, ended: &Ended, said: &Said) {
        let (at, lang) = (ended.asked.who.at, self.policy.lang);
        let body = body::failed(None, &ended.asked, finding, ended.took_ms, said, lang);
        self.publish(opening, EventType::ToolError, at, Body::Json(body));
        self.publish(opening, EventType::Error, at, Body::Json(body::error(finding, lang)));
    }

    fn refused(&self, opening: &Opening, asked: &Asked, said: &Said) {
        let at = opening.at;
        self.records.asked(&opening.call, opening.attempt, at);
        let note = said.text.as_deref().unwrap_or_default();
        self.records.moved(&opening.call, opening.attempt, at, CallState::Denied, note);
        self.publish(opening, EventType::ToolDenied, at, Body::Json(body::denied(asked, said)));
        if said.table.is_some() {
            self.publish(opening, EventType::Halt, at, Body::Json(body::halted(said)));
        }
    }

    fn advised(&self, opening: &Opening, when: &str, said: &Said, at: u64) {
        if said.text.is_some() {
            let body = body::advised(said, when, said.mode > Mode::Shadow);
            self.publish(opening, EventType::ToolAdvice, at, Body::Json(body));
        }
    }

    fn announce(
        &self,
        opening: &Opening,
        asked: &Asked,
        planned: (u32, Option<u32>, Duration),
        because: Kind,
    ) {
        let (attempt, of, wait) = planned;
        let (who, key, wait_ms) = (asked.who.clone(), asked.key.clone(), time::span_ms(wait));
        let retrying = Retrying { who, key, attempt, of, wait_ms, because };
        let body = body::retrying(&retrying, None, self.policy.lang);
        self.publish(opening, EventType::ToolRetry, asked.who.at, Body::Json(body));
    }
}

impl Desk {
    fn new() -> Desk {
        Desk {
            standing: Standing::new(),
            pile: VecDeque::new(),
            weight: 0,
            seen: HashMap::new(),
            is_awake: false,
            brakes: HashMap::new(),
            last: HashMap::new(),
            notes: VecDeque::new(),
        }
    }

    /// Was the agent not told the same lately? Then it counts as told.
    fn is_news(&mut self, agent: &str, text: &str, at: u64) -> bool {
        self.notes.retain(|note| at.saturating_sub(note.at) <= KNOWS_FOR_MS);
        let is_known = |note: &Note| note.agent == agent && is_same_note(&note.text, text);
        if self.notes.iter().any(is_known) {
            return false;
        }
        if self.notes.len() == NOTES {
            self.notes.pop_front();
        }
        self.notes.push_back(Note { agent: agent.to_owned(), text: text.to_owned(), at });
        true
    }

    /// Puts a success on the pile.
    fn put_by(&mut self, key: u64, opening: Opening, printed: Printed) {
        let weight = printed.stdout.len() + weight(opening.call.input());
        self.weight += weight;
        while (self.pile.len() >= PILE || self.weight > PILE_BYTES)
            && let Some(oldest) = self.pile.pop_front()
        {
            self.weight -= oldest.weight;
            if let Slot::Occupied(mut slot) = self.seen.entry(oldest.key) {
                *slot.get_mut() -= 1;
                if *slot.get() == 0 {
                    slot.remove();
                }
            }
        }
        *self.seen.entry(key).or_default() += 1;
        self.pile.push_back(Past { key, weight, opening, printed });
    }

    /// Remembers how a call ended, and when it may work again where that passes by itself.
    fn note_last(&mut self, ended: &Ended, at: u64, world: u32) {
        if self.last.len() >= PILE {
            let mut times: Vec<u64> = self.last.values().map(|last| last.at).collect();
            times.sort_unstable();
            let middle = times[times.len() / 2];
            self.last.retain(|_, last| last.at > middle);
        }
        let passing = ended.finding.as_ref().zip(ended.again_after).map(|(finding, wait)| Passing {
            again_at: at + wait,
            world,
            kind: finding.kind(),
        });
        self.last.insert(ended.asked.sight().exact, Last { at, passing });
    }

    /// Tells the brakes how an attempt ended, and asks the policy what follows from a failure.
    fn pull(&mut self, policy: &retry::Policy, opening: &Opening, ended: &Ended) -> Option<Retry> {
        let tool = opening.call.recorded_as();
        if !self.brakes.contains_key(tool) {
            self.brakes.insert(tool.to_owned(), Brakes::new(policy));
        }
        // A model may invent any number of tools.
        if self.brakes.len() > PILE {
            self.brakes.retain(|name, _| name == tool);
        }
        let (brakes, ask) = (self.brakes.get_mut(tool)?, ended.retry.as_ref()?);
        brakes.pull(policy, ended, ask, opening.at)
    }
}

/// A call that comes too early: it waits, is refused with the time at which it may come again, or at least told.
fn hold_back(passing: &Passing, now: u64, lang: Lang, said: &mut Said) {
    let wait = Duration::from_millis(passing.again_at.saturating_sub(now));
    match said.mode {
        Mode::Shadow => {}
        Mode::Enforce if wait <= HOLD_MAX => said.stance = Stance::Hold { wait, because: passing.kind },
        Mode::Advise | Mode::Enforce => said.text = Some(words::possible_again(wait, lang)),
    }
}

fn moment(opening: &Opening) -> Moment {
    let agent = if &*opening.call.agent == "main" { "" } else { &*opening.call.agent };
    Moment { agent: Print::of(&["agent", agent]), round: round(opening), at: opening.at }
}

fn round(opening: &Opening) -> Round {
    opening.call.round.map_or(Round::Unsaid, Round::Numbered)
}

/// Whoever panicked while he held it left it whole: nothing here is changed in two steps that belong together.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// About how many bytes arguments hold: long texts are what counts, and they stand on top.
fn weight(input: &Value) -> usize {
    let long = |value: &Value| value.as_str().map_or(64, str::len);
    match input {
        Value::Object(fields) => fields.values().map(long).sum(),
        Value::Array(list) => list.len().saturating_mul(64),
        other => long(other),
    }
}

/// A value as it goes into a hash, without a copy of it.
fn hash(value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::Null => 0_u8.hash(hasher),
        Value::Bool(yes) => (1_u8, yes).hash(hasher),
        Value::Number(number) => (2_u8, number).hash(hasher),
        Value::String(text) => (3_u8, text).hash(hasher),
        Value::Array(list) => {
            (4_u8, list.len()).hash(hasher);
            list.iter().for_each(|item| hash(item, hasher));
        }
        Value::Object(fields) => {
            (5_u8, fields.len()).hash(hasher);
            for (name, item) in fields {
                name.hash(hasher);
                hash(item, hasher);
            }
        }
    }
}
