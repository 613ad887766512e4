//! Who waits for what. All that both sides say comes through here: what is understood is looked after, and everything else is
//! passed on as it came.
//!
//! Locks are taken in one order: a lane first, then what is in here. Nothing is put into a lane while this is locked.

mod client_side;
mod presence;
mod questions;
mod server_side;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};
use unstuck::CancellationToken;
use unstuck_wire::mcp::{self, Greeting, Id, ToolCall};

use super::catalogue::Catalogue;
use super::lane::{Lane, Place};
use super::link::{Inbound, Outbound, Unanswered};
use super::loads::Loads;
use super::notes::Notes;
use super::outlet::Outlet;
pub(super) use presence::{Handshake, Presence};
use questions::Questions;

/// A frame in which things lie deeper in each other than this is refused: whoever reads it may not survive it.
const DEEPEST: usize = 500;

/// Such a frame, as it stands behind "it is".
fn too_deep() -> String {
    format!("nested more than {DEEPEST} levels deep")
}

/// So many requests that were taken back, or could not be read, are remembered.
const TAKEN_BACK: usize = 10_000;

/// What is said to the server, and who waits for the answer.
pub(super) struct Delivery {
    pub(super) outbound: Outbound,
    pub(super) waiting: Option<Waiting>,
}

/// Who waits for an answer of the server.
pub(super) enum Waiting {
    /// The client, which gets it as it comes.
    Client(ClientRequest),
    /// We do.
    Us(oneshot::Sender<Came>),
}

/// A request of the client that is passed on.
pub(super) struct ClientRequest {
    /// What the client calls it.
    id: Id,
    method: String,
    /// Where the page of a list begins that it asks for; nothing for the first one.
    page: Option<String>,
    /// The frame, where it only asks and may be asked again.
    again: Option<Bytes>,
    /// The number of the batch that it came in.
    batch: Option<u64>,
}

/// What came of a request of ours.
pub(super) enum Came {
    /// The frame of an answer, and its place among all that goes to the client.
    Answer(Inbound, Place<Inbound>),
    /// One that is none, and why.
    Refused(String),
    /// There will be none.
    Lost(Unanswered),
}

/// A request of the client that is not answered yet.
enum InFlight {
    /// It was passed on under this name.
    PassedOn(Id),
    /// It is a call that is looked after.
    Call(Arc<Withdrawal>),
}

/// A call that is under way.
pub(super) struct Begun {
    /// As long as one call is not answered, those that come were asked for together with it: calls of one round were asked for
    /// before anybody saw what came of the others.
    pub(super) round: u64,
    pub(super) withdrawal: Arc<Withdrawal>,
}

/// Whether the client takes a call back, and in which words.
#[derive(Default)]
pub(super) struct Withdrawal {
    pub(super) token: CancellationToken,
    /// The frame of the client.
    said: OnceLock<Vec<u8>>,
    /// Its place among all that is said to the server.
    place: Mutex<Option<Place<Delivery>>>,
}

impl Withdrawal {
    fn withdraw(&self, said: Vec<u8>, place: Place<Delivery>) {
        let _it_is_the_first = self.said.set(said);
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
        self.token.cancel();
    }

    /// The place among all that is said to the server where the client took it back.
    pub(super) fn take_place(&self) -> Option<Place<Delivery>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What is to be said to a server that knows the call by this name, and is not to go on with it.
    pub(super) fn words(&self, name: &Id) -> Vec<u8> {
        let said = self.said.get().and_then(|said| mcp::cancelling(said, name));
        said.unwrap_or_else(|| mcp::cancelled(name, "nobody waits for it any longer"))
    }
}

/// How far a call is, as its client was told.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    last: f64,
    /// We said something of it ourselves: nothing that goes back is passed on.
    is_ours: bool,
}

struct State {
    presence: Presence,
    /// What waits until the server is there.
    held: Vec<Outbound>,
    waiting: HashMap<Id, Waiting>,
    /// Several may have one name.
    in_flight: HashMap<Id, Vec<InFlight>>,
    /// Requests that were taken back: an answer to one of these comes too late, and that is nothing to tell of.
    taken_back: HashSet<Id>,
    /// Requests of the client that were passed on without a look, by the number of their frame: the answer is passed on as well.
    /// Without a number the server has said already that it cannot read it either.
    unread: HashMap<Id, Vec<Option<u64>>>,
    /// How many frames of the client were passed on without a look, batches among them.
    unlooked: u64,
    /// Requests for which something came that could not be read, and how many frames had come then.
    doubtful: HashMap<Id, u64>,
    /// How many calls are looked after, up to the last word of their answers.
    carried: usize,
    /// How often calls were asked for when none was under way.
    rounds: u64,
    /// What the server asks the client.
    questions: Questions,
    handshake: Handshake,
    greeting: Greeting,
    catalogue: Catalogue,
    /// How far the calls are whose clients want to hear of it.
    progress: HashMap<String, Progress>,
    /// Names that we gave so far.
    names: u64,
    /// How many frames came from the server so far.
    heard: u64,
    /// Was any of them a message?
    has_spoken: bool,
}

/// The switchboard. All clones are the same one.
pub(super) struct Switchboard {
    state: Mutex<State>,
    /// What goes to the client.
    out: Lane<Inbound>,
    /// The tools have changed: whoever calls them has to know.
    pub(super) relisted: Notify,
    /// Somebody wants a server that is away.
    pub(super) wanted: Notify,
    /// Something was answered.
    answered: Notify,
    /// Somebody was told that the server will not come back.
    refusals: Notify,
    /// A random part of the names that we give.
    mark: String,
    pub(super) notes: Notes,
    /// How much is under way to the server.
    pub(super) loads: Arc<Loads>,
    /// And how much to the client.
    pub(super) inbound: Arc<Loads>,
}

/// What the client said, as far as somebody else has to do something about it.
pub(super) enum Heeded {
    /// It was passed on, or needs nothing.
    Done,
    /// It was passed on without a look, with these requests in it, under this number.
    Unlooked { number: u64, ids: Vec<Id> },
    /// A call of a tool is to be carried out.
    Call {
        id: Id,
        call: ToolCall,
        /// Is another request of the same name under way?
        has_twin: bool,
    },
}

impl State {
    /// Has every request of the client its answer?
    fn is_settled(&self) -> bool {
        let is_clients = |waiting: &Waiting| matches!(waiting, Waiting::Client(_));
        self.carried == 0 && self.in_flight.is_empty() && !self.waiting.values().any(is_clients)
    }

    /// A request of the client is under way.
    fn take_off(&mut self, id: Id, request: InFlight) {
        self.in_flight.entry(id).or_default().push(request);
    }

    /// The last request of a name that is so is not under way any more.
    fn land(&mut self, id: &Id, is_so: impl Fn(&InFlight) -> bool) -> Option<InFlight> {
        let of_that_name = self.in_flight.get_mut(id)?;
        let place = of_that_name.iter().rposition(is_so)?;
        let landed = of_that_name.remove(place);
        if of_that_name.is_empty() {
            self.in_flight.remove(id);
        }
        Some(landed)
    }

    /// A request that was passed on under a name is not under way any more.
    fn land_passed_on(&mut self, id: &Id, name: &Id) {
        let _it_was_taken_back =
            self.land(id, |request| matches!(request, InFlight::PassedOn(other) if other == name));
    }

    /// Is a request of this name under way, or about to be?
    fn has_taken(&self, id: &Id) -> bool {
        self.waiting.contains_key(id) || self.in_flight.contains_key(id) || self.unread.contains_key(id)
    }

    /// Somebody waits for the answer to a request. Whatever was known of an earlier one of that name is not about this one.
    fn wait_for(&mut self, id: Id, waiting: Waiting) {
        self.doubtful.remove(&id);
        self.unread.remove(&id);
        self.waiting.insert(id, waiting);
    }

    /// Takes back what waits to be said. Tells whether it did.
    fn unsay(&mut self, id: &Id) -> bool {
        let before = self.held.len();
        self.held.retain(|held| held.asks.as_ref().is_none_or(|asks| asks.id != *id));
        self.held.len() < before
    }

    /// Remembers a request that was taken back. Of very many the oldest are forgotten with the others.
    fn take_back(&mut self, id: &Id) {
        if self.taken_back.len() >= TAKEN_BACK {
            self.taken_back.clear();
        }
        self.taken_back.insert(id.clone());
    }

    /// Remembers a request that is passed on without having been read.
    fn note_unread(&mut self, id: Id) {
        if self.unread.len() >= TAKEN_BACK {
            self.unread.clear();
        }
        let of_that_name = self.unread.entry(id).or_default();
        if of_that_name.len() < TAKEN_BACK {
            of_that_name.push(Some(self.unlooked));
        }
    }

    /// Takes out a request that was passed on without having been read, one of this number where that matters. Tells whether
    /// there was one.
    fn take_unread(&mut self, id: &Id, number: Option<u64>) -> bool {
        let Some(of_that_name) = self.unread.get_mut(id) else { return false };
        let place = match number {
            None => Some(0),
            Some(_) => of_that_name.iter().position(|other| *other == number),
        };
        let taken = place.map(|place| of_that_name.remove(place));
        if of_that_name.is_empty() {
            self.unread.remove(id);
        }
        taken.is_some()
    }

    /// The server complains of a message without saying of which: most likely of the first that nobody could read.
    fn hear_complaint(&mut self) {
        let first = self.unread.values().flatten().flatten().min().copied();
        let all = self.unread.values_mut().flatten();
        all.filter(|number| **number == first).for_each(|number| *number = None);
    }
}

impl Switchboard {
    pub(super) fn new(outlet: Outlet, notes: Notes, mark: String) -> Arc<Switchboard> {
        Arc::new(Switchboard {
            state: Mutex::new(State {
                presence: Presence::Starting,
                held: Vec::new(),
                waiting: HashMap::new(),
                in_flight: HashMap::new(),
                taken_back: HashSet::new(),
                unread: HashMap::new(),
                unlooked: 0,
                doubtful: HashMap::new(),
                carried: 0,
                rounds: 0,
                questions: Questions::default(),
                handshake: Handshake::default(),
                greeting: Greeting::default(),
                catalogue: Catalogue::default(),
                progress: HashMap::new(),
                names: 0,
                heard: 0,
                has_spoken: false,
            }),
            out: Lane::new(move |frame: Inbound| outlet.put(frame)),
            relisted: Notify::new(),
            wanted: Notify::new(),
            answered: Notify::new(),
            refusals: Notify::new(),
            mark,
            notes,
            loads: Loads::to_server(),
            inbound: Loads::from_server(),
        })
    }

    /// What has to be said again to a new server.
    pub(super) fn handshake(&self) -> Handshake {
        self.lock().handshake.clone()
    }

    /// What the client calls itself, and which revision it speaks.
    pub(super) fn greeting(&self) -> Greeting {
        self.lock().greeting.clone()
    }

    /// How many frames came from the server so far.
    pub(super) fn heard(&self) -> u64 {
        self.lock().heard
    }

    /// Has the server ever said anything that is a message?
    pub(super) fn has_spoken(&self) -> bool {
        self.lock().has_spoken
    }

    /// Looks at the catalogue, or changes it.
    pub(super) fn with_catalogue<T>(&self, look: impl FnOnce(&mut Catalogue) -> T) -> T {
        look(&mut self.lock().catalogue)
    }

    /// A name for a request of ours that nobody else gives.
    pub(super) fn name(&self) -> Id {
        let mut state = self.lock();
        state.names += 1;
        Id::text(&format!("unstuck-{}-{}", self.mark, state.names))
    }

    /// The same frame, under a name that no other request has that is under way.
    pub(super) fn under_free_name(&self, id: &Id, frame: Bytes, has_twin: bool) -> (Id, Bytes) {
        let is_free = {
            let state = self.lock();
            // An answer to one that was taken back, or that nobody could read, may still come.
            let may_still_come = state.taken_back.contains(id) || state.unread.contains_key(id);
            !has_twin && !state.waiting.contains_key(id) && !may_still_come
        };
        if is_free {
            return (id.clone(), frame);
        }
        let name = self.name();
        match mcp::renamed(&frame, &name) {
            Some(renamed) => (name, renamed.into()),
            None => (id.clone(), frame),
        }
    }

    /// Answers the server, where it is still there.
    fn reply(&self, frame: Vec<u8>) {
        match &self.lock().presence {
            Presence::Up(to) => {
                let _it_is_gone = to.send(Outbound::new(frame, None));
            }
            Presence::Starting | Presence::Away | Presence::Shut { .. } | Presence::Over(_) => {}
        }
    }

    /// Says a frame to the client.
    pub(super) fn say(&self, frame: Vec<u8>) {
        self.out.push(frame);
    }

    /// Comes back when every request of the client is answered.
    pub(super) async fn settled(&self) {
        loop {
            let answered = self.answered.notified();
            if self.lock().is_settled() {
                return;
            }
            // Nobody tells of requests that are dropped unanswered, so somebody looks.
            let _looked_at_again = tokio::time::timeout(Duration::from_millis(200), answered).await;
        }
    }

    /// Comes back when a request was answered with a refusal, because the server will not come back.
    pub(super) async fn refused(&self) {
        self.refusals.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
