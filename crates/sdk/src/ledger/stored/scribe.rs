//! Writes what happened as the store wants to have it: judged as far as that needs no memory, and clean.

use std::collections::HashMap;
use std::iter;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use unstuck_judge::ladder::Round;
use unstuck_judge::{Diagnosis, Lang, Observation, Rules};
use unstuck_store::{Asked, Bounds, Ended, Entry, Hears, NAME_MAX, Resend, Sender, Source, Told, Who};
use unstuck_wire::clean::{Clean, Cleaner};
use unstuck_wire::report::Report;
use unstuck_wire::time;

use super::cellar::{Queued, Request, TOGETHER, Written};
use super::{LINE_MAX, PLACE, QUEUE};
use crate::call::{CallId, Session};
use crate::ledger::{Advice, Known, Opening, Printed, diagnosed, is_guess, nature_of};
use crate::policy::Policy;
use crate::record::attempt_id;
use crate::store::Store;

/// So long what nobody waits for waits for others like it, or for something that somebody waits for.
const LINGER: Duration = Duration::from_millis(20);

/// Writes what happened.
pub(super) struct Scribe {
    pub(super) cleaner: Cleaner,
    rules: Rules,
    bounds: Bounds,
    lang: Lang,
    door: Clean,
    source: Source,
    folder: Clean,
    /// This process, as calls name it.
    owner: Clean,
    names: Names,
    /// The tools themselves run in this process, and not behind a server.
    runs_here: bool,
}

/// Names that nearly every call has, of sessions and agents: each is cleaned once.
#[derive(Default)]
struct Names(Mutex<HashMap<String, Clean>>);

impl Names {
    /// Of more it is forgotten.
    const MOST: usize = 1024;

    fn clean(&self, name: &str, cleaner: &Cleaner) -> Clean {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(clean) = known.get(name) {
            return clean.clone();
        }
        if known.len() >= Names::MOST {
            known.clear();
        }
        let clean = cleaner.name(name, NAME_MAX);
        known.insert(name.to_owned(), clean.clone());
        clean
    }
}

/// The end of an attempt, of which it is known what it means.
pub(super) struct Close {
    pub(super) opening: Opening,
    pub(super) observation: Observation,
    pub(super) diagnosis: Diagnosis,
    pub(super) resend: Option<Resend>,
    pub(super) advice: Advice,
    pub(super) took: Duration,
    pub(super) at: u64,
}

/// Something that nobody waits for, as whoever saw it hands it over: the rest of the work is done where it is kept.
pub(super) enum Handed {
    /// A call began to run.
    Began(Opening),
    /// It ended well.
    Ended(Box<Close>),
}

impl Handed {
    /// How many places it takes in the queue.
    pub(super) fn places(&self) -> u32 {
        let printed = match self {
            Handed::Began(_) => 0,
            Handed::Ended(close) => {
                let Observation { stdout, stderr, merged, .. } = &close.observation;
                stdout.len() + stderr.len() + merged.len()
            }
        };
        u32::try_from(1 + printed / PLACE).unwrap_or(u32::MAX).min(QUEUE as u32)
    }
}

/// Calls that began to run and have not ended yet, as they were written: most of that need not be done twice.
#[derive(Default)]
struct Begun(HashMap<(Session, CallId, u32), Asked>);

impl Begun {
    /// Of more it is forgotten.
    const MOST: usize = 4096;

    fn note(&mut self, opening: &Opening, asked: &Asked) {
        if self.0.len() >= Begun::MOST {
            self.0.clear();
        }
        self.0.insert(Begun::name(opening), asked.clone());
    }

    /// The call of an attempt that ended then.
    fn take(&mut self, opening: &Opening, at: u64) -> Option<Asked> {
        let mut asked = self.0.remove(&Begun::name(opening))?;
        asked.who.at = at;
        Some(asked)
    }

    fn name(opening: &Opening) -> (Session, CallId, u32) {
        (opening.call.session.clone(), opening.call.id.clone(), opening.attempt)
    }
}

impl Scribe {
    pub(super) fn new(store: &Store, owner: &str, policy: &Policy) -> Scribe {
        let cleaner = store.cleaner();
        let folder = store.folder.as_ref().map(|folder| cleaner.line(&folder.to_string_lossy(), LINE_MAX));
        Scribe {
            rules: Rules::built_in(),
            bounds: Bounds::default(),
            lang: policy.lang,
            door: Clean::from(store.door),
            source: if store.is_watched { Source::Ran } else { Source::Told },
            folder: folder.unwrap_or_default(),
            owner: cleaner.line(owner, 64),
            names: Names::default(),
            runs_here: !policy.sees_a_part,
            cleaner,
        }
    }

    /// A call that is asked for.
    pub(super) fn asked(&self, opening: &Opening, at: u64) -> Asked {
        let call = &opening.call;
        opening.asked(&self.cleaner, &self.bounds, self.who(&call.session, &call.agent, call.round, at))
    }

    /// What is wrong, as far as that can be seen in what was printed.
    pub(super) fn looked_at(&self, opening: &Opening, printed: Printed) -> (Observation, Diagnosis) {
        let known: Known = printed.known();
        let observation = printed.of(&opening.call.call);
        let diagnosis = diagnosed(&self.rules, &observation, known);
        (observation, diagnosis)
    }

    /// The end of an attempt at a call that was `asked` for.
    pub(super) fn judged(&self, asked: Asked, close: Close) -> (Ended, Report) {
        let Close { opening, observation, diagnosis, resend, advice, took, .. } = close;
        let told = Told {
            asked,
            nature: nature_of(opening.nature, &diagnosis),
            diagnosis,
            said_ok: observation.outcome.said_ok(),
            took_ms: Some(time::span_ms(took)),
            resend,
            observation: &observation,
        };
        let (mut ended, mut report) = told.judged(&self.cleaner, &self.bounds, self.lang);
        if is_guess(&report.diagnosis) {
            ended.doubt();
        }
        ended.tell_by_arguments(self.runs_here);
        advice.go_with(&mut ended, &mut report, &self.cleaner);
        (ended, report)
    }

    /// Writes what nobody waits for, on a thread of its own beside the one that keeps it, until nobody asks any more. All
    /// requests go this way, so they stay in their order. What nobody waits for may wait a little for others like it: together
    /// they cost a fraction, and whoever hands them over does not have to wake anybody.
    pub(super) fn work(&self, requests: &Receiver<Queued>, way: &mpsc::Sender<Queued>) {
        let mut begun = Begun::default();
        let mut is_behind = false;
        while let Ok(first) = requests.recv() {
            if !is_behind && matches!(first.0, Request::Hand(..)) {
                thread::park_timeout(LINGER);
            }
            let mut written = Vec::new();
            // What somebody waits for goes on behind all that came before it.
            let mut waited_for = None;
            for (request, place) in iter::once(first).chain(requests.try_iter()).take(TOGETHER) {
                match request {
                    Request::Hand(handed, call) => {
                        written.push(Written { entry: self.entry(handed, &mut begun), call, place });
                    }
                    other => {
                        waited_for = Some((other, place));
                        break;
                    }
                }
            }
            is_behind = written.len() == TOGETHER;
            // At once: whoever keeps them is woken once, and keeps them together.
            let written = (!written.is_empty()).then_some((Request::Written(written), None));
            for request in written.into_iter().chain(waited_for) {
                if way.send(request).is_err() {
                    return;
                }
            }
        }
    }

    /// What nobody waits for, as it is kept. It runs already, so there is nothing to refuse.
    fn entry(&self, handed: Handed, begun: &mut Begun) -> Entry {
        match handed {
            Handed::Began(opening) => {
                let mut asked = self.asked(&opening, opening.at);
                asked.sender = Sender::Runner;
                begun.note(&opening, &asked);
                Entry::Asked(Box::new(asked))
            }
            Handed::Ended(close) => {
                let asked = begun.take(&close.opening, close.at);
                let asked = asked.unwrap_or_else(|| self.asked(&close.opening, close.at));
                Entry::Ended(Box::new(self.judged(asked, *close).0))
            }
        }
    }

    /// The name of an attempt in the record.
    pub(super) fn key(&self, opening: &Opening) -> Clean {
        self.cleaner.name(attempt_id(&opening.call.id, opening.attempt).as_str(), NAME_MAX)
    }

    /// The name of a session in the record.
    pub(super) fn session(&self, session: &Session) -> Clean {
        self.names.clean(session.as_str(), &self.cleaner)
    }

    pub(super) fn who(&self, session: &Session, agent: &str, round: Option<u64>, at: u64) -> Who {
        Who {
            host: self.door.clone(),
            hook: Clean::default(),
            session: self.session(session),
            agent: self.names.clean(agent, &self.cleaner),
            cwd: self.folder.clone(),
            place: self.folder.clone(),
            owner: self.owner.clone(),
            source: self.source,
            hears: Hears::Everything,
            round: round.map_or(Round::Unsaid, Round::Numbered),
            at,
        }
    }
}
