//! Who waits for what. All that both sides say comes through here: what is understood is looked after, and everything else is
//! passed on as it came.
//!
//! Locks are taken in one order: a lane first, then what is in here. Nothing is put into a lane while this is locked.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot};
use unstuck::CancellationToken;
use unstuck_wire::mcp::{self, ErrorCode, Greeting, Id, Message, Part, ToolCall, ToolList, Welcome};

use super::catalogue::Catalogue;
use super::lane::{Lane, Place};
use super::link::{Asks, Loads, Noise, Outbound, Unanswered};
use super::notes::{Happened, Notes};
use super::outlet::Outlet;

/// A frame in which things lie deeper in each other than this is refused: whoever reads it may not survive it.
const DEEPEST: usize = 500;

/// So many requests that were taken back are remembered.
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
    /// Is it the first page of a list, where it is one?
    is_first_page: bool,
    /// The frame, where it only asks and may be asked again.
    again: Option<Vec<u8>>,
}

/// What came of a request of ours.
pub(super) enum Came {
    /// The frame of an answer, and its place among all that goes to the client.
    Answer(Vec<u8>, Place<Vec<u8>>),
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
    Call(CancellationToken),
}

/// What the server has to hear of a request that the client takes back.
enum TakenBack {
    /// What the client says: it knows the request by the same name.
    AsNamed,
    /// It knows the request by this name.
    Known(Id),
    /// It does not know it, or is told by somebody else.
    Nothing,
}

/// Where the server is.
pub(super) enum Presence {
    /// It can be talked to.
    Up(mpsc::UnboundedSender<Outbound>),
    /// It is being started: what is said to it waits.
    Starting,
    /// It is not there, and is started when somebody wants something of it.
    Away,
    /// It has died too often, and is left alone for a while.
    Shut { why: String, until: tokio::time::Instant },
    /// It will not come back.
    Over(String),
}

/// What has to be said again to a server that was started again.
#[derive(Debug, Clone, Default)]
pub(super) struct Handshake {
    /// The parameters of `initialize`; nothing in the stateless era.
    pub(super) initialize: Option<String>,
    pub(super) is_answered: bool,
    /// The frame of `notifications/initialized`.
    pub(super) initialized: Option<Vec<u8>>,
    /// Requests that change what the server does by itself: the level of its log, and what it tells changes of.
    pub(super) wishes: Vec<(String, Option<String>)>,
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
    in_flight: HashMap<Id, InFlight>,
    /// Requests that were taken back: an answer to one of these comes too late, and that is nothing to tell of.
    taken_back: HashSet<Id>,
    /// How many calls are looked after, up to the last word of their answers.
    carried: usize,
    /// How often calls were asked for when none was under way.
    rounds: u64,
    /// Requests of the server that the client has not answered yet.
    theirs: HashSet<Id>,
    handshake: Handshake,
    greeting: Greeting,
    catalogue: Catalogue,
    /// How far the calls are whose clients want to hear of it.
    progress: HashMap<String, Progress>,
    /// Names that we gave so far.
    names: u64,
    /// How many frames came from the server so far.
    heard: u64,
}

/// The switchboard. All clones are the same one.
pub(super) struct Switchboard {
    state: Mutex<State>,
    /// What goes to the client.
    out: Lane<Vec<u8>>,
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
}

/// What the client said, as far as somebody else has to do something about it.
pub(super) enum Heeded {
    /// It was passed on, or needs nothing.
    Done,
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

    /// Takes back what waits to be said. Tells whether it did.
    fn unsay(&mut self, id: &Id) -> bool {
        let before = self.held.len();
        self.held.retain(|held| held.asks.as_ref().is_none_or(|asks| asks.id != *id));
        self.held.len() < before
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
                carried: 0,
                rounds: 0,
                theirs: HashSet::new(),
                handshake: Handshake::default(),
                greeting: Greeting::default(),
                catalogue: Catalogue::default(),
                progress: HashMap::new(),
                names: 0,
                heard: 0,
            }),
            out: Lane::new(move |frame| outlet.put(frame)),
            relisted: Notify::new(),
            wanted: Notify::new(),
            answered: Notify::new(),
            refusals: Notify::new(),
            mark,
            notes,
            loads: Arc::default(),
        })
    }

    /// The client said something. Calls of tools are left to whoever asks; all else is passed on in its order.
    pub(super) fn hear_client(&self, server: &Lane<Delivery>, frame: Vec<u8>) -> (Heeded, Vec<u8>) {
        if mcp::depth(&frame) > DEEPEST {
            self.refuse_deep(&frame);
            return (Heeded::Done, frame);
        }
        match mcp::read(&frame) {
            Message::Request { id, method, params } => {
                if method == "tools/call"
                    && let Some(call) = params.and_then(ToolCall::of)
                {
                    self.note_greeting(params);
                    let has_twin = self.lock().in_flight.contains_key(&id);
                    return (Heeded::Call { id, call, has_twin }, frame);
                }
                let method = method.into_owned();
                let name = params.and_then(named);
                let mut request = self.register(&id, &method, params.map(|params| params.get()));
                let has_twin = self.lock().in_flight.contains_key(&id);
                let (upstream, frame) = self.under_free_name(&id, frame, has_twin);
                request.again = only_asks(&method).then(|| frame.clone());
                let asks = Some(Asks { id: upstream.clone(), method, name });
                self.lock().in_flight.insert(id, InFlight::PassedOn(upstream));
                let waiting = Some(Waiting::Client(request));
                server.push(Delivery { outbound: Outbound::new(frame, asks), waiting });
            }
            Message::Notification { method, params } => {
                let frame = match &*method {
                    "notifications/cancelled" => match self.cancel(params.map(|params| params.get())) {
                        TakenBack::AsNamed => frame,
                        TakenBack::Known(id) => mcp::cancelled(&id, "the client does not wait any longer"),
                        TakenBack::Nothing => return (Heeded::Done, frame),
                    },
                    "notifications/initialized" => {
                        self.lock().handshake.initialized = Some(frame.clone());
                        frame
                    }
                    _ => frame,
                };
                server.push(Delivery { outbound: Outbound::new(frame, None), waiting: None });
            }
            Message::Answer { id, .. } => {
                // A server that was started again has not asked what the one before did.
                let is_wanted = id.as_ref().is_none_or(|id| self.lock().theirs.remove(id));
                if is_wanted {
                    server.push(Delivery { outbound: Outbound::new(frame, None), waiting: None });
                }
            }
            Message::Batch(parts) => {
                let mut state = self.lock();
                for part in parts {
                    match part {
                        Part::Request(id) => {
                            let request = ClientRequest {
                                id: id.clone(),
                                method: String::new(),
                                is_first_page: false,
                                again: None,
                            };
                            state.in_flight.insert(id.clone(), InFlight::PassedOn(id.clone()));
                            state.waiting.insert(id, Waiting::Client(request));
                        }
                        Part::Answer(id) => drop(state.theirs.remove(&id)),
                        Part::Other => {}
                    }
                }
                drop(state);
                server.push(Delivery { outbound: Outbound::new(frame, None), waiting: None });
            }
            Message::Other | Message::Broken => {
                server.push(Delivery { outbound: Outbound::new(frame, None), waiting: None });
            }
        }
        (Heeded::Done, Vec::new())
    }

    /// Something is said to the server, or waits until it can be. It is the way out of a lane.
    pub(super) fn deliver(&self, delivery: Delivery) {
        let Delivery { outbound, waiting } = delivery;
        // It was taken back while it waited for its turn.
        if matches!(&waiting, Some(Waiting::Us(tell)) if tell.is_closed()) {
            return;
        }
        let outbound = outbound.counted(&self.loads);
        let lost = {
            let mut state = self.lock();
            let why_not = match &state.presence {
                Presence::Up(_) | Presence::Starting | Presence::Away => None,
                Presence::Shut { why, until } => {
                    let left = until.saturating_duration_since(tokio::time::Instant::now());
                    Some((why.clone(), Some(left)))
                }
                Presence::Over(why) => Some((why.clone(), None)),
            };
            match why_not {
                Some((words, retry_after)) => waiting.map(|waiting| {
                    (
                        waiting,
                        Unanswered {
                            words,
                            http_status: None,
                            retry_after,
                            never_reached: true,
                            is_final: true,
                        },
                    )
                }),
                None => {
                    if let (Some(asks), Some(waiting)) = (&outbound.asks, waiting) {
                        state.waiting.insert(asks.id.clone(), waiting);
                    }
                    match &state.presence {
                        Presence::Up(to) => {
                            // Where it is just gone, whoever waits is told by its end.
                            let _it_is_gone = to.send(outbound);
                        }
                        Presence::Away => {
                            state.held.push(outbound);
                            self.wanted.notify_one();
                        }
                        Presence::Starting | Presence::Shut { .. } | Presence::Over(_) => {
                            state.held.push(outbound)
                        }
                    }
                    None
                }
            }
        };
        if let Some((waiting, why)) = lost {
            self.lose(waiting, why);
        }
    }

    /// The server said something.
    pub(super) fn hear_server(&self, frame: Vec<u8>) {
        self.lock().heard += 1;
        if mcp::depth(&frame) > DEEPEST {
            if let Some(id) = Id::in_beginning(&frame).or_else(|| Id::in_end(&frame)) {
                self.refuse(&id, &format!("nested more than {DEEPEST} levels deep"));
            }
            self.notes.tell(Happened::Noise { begins: excerpt(&frame), why: "nested too deep".to_owned() });
            return;
        }
        match mcp::read(&frame) {
            Message::Answer { id: Some(id), came } => {
                let (waiting, is_late) = {
                    let mut state = self.lock();
                    (state.waiting.remove(&id), state.taken_back.remove(&id))
                };
                let Some(waiting) = waiting else {
                    if is_late {
                        return;
                    }
                    self.notes.tell(Happened::Noise {
                        begins: excerpt(&frame),
                        why: "an answer to nothing".to_owned(),
                    });
                    return;
                };
                match waiting {
                    Waiting::Client(request) => {
                        if let Ok(result) = came {
                            self.learn(&request, result);
                        }
                        let renamed = (request.id != id).then(|| mcp::renamed(&frame, &request.id)).flatten();
                        self.lock().in_flight.remove(&request.id);
                        self.out.push(renamed.unwrap_or(frame));
                        self.answered.notify_waiters();
                    }
                    Waiting::Us(tell) => {
                        let place = self.out.reserve();
                        let _nobody_waits_any_more = tell.send(Came::Answer(frame, place));
                    }
                }
            }
            Message::Answer { id: None, .. } | Message::Other => self.out.push(frame),
            Message::Request { id, .. } => {
                self.lock().theirs.insert(id);
                self.out.push(frame);
            }
            Message::Notification { method, params } => {
                match &*method {
                    "notifications/tools/list_changed" => self.lock().catalogue.outdate(),
                    "notifications/progress" if self.goes_back(params.map(|params| params.get())) => return,
                    _ => {}
                }
                self.out.push(frame);
            }
            Message::Batch(parts) => {
                let mut state = self.lock();
                for part in parts {
                    match part {
                        Part::Request(id) => drop(state.theirs.insert(id)),
                        Part::Answer(id) => match state.waiting.remove(&id) {
                            Some(Waiting::Client(request)) => drop(state.in_flight.remove(&request.id)),
                            Some(Waiting::Us(_)) => {
                                // A call that was asked for alone: it has its answer in here.
                                if let Some(InFlight::Call(call)) = state.in_flight.remove(&id) {
                                    call.cancel();
                                }
                            }
                            None => {}
                        },
                        Part::Other => {}
                    }
                }
                drop(state);
                self.out.push(frame);
                self.answered.notify_waiters();
            }
            Message::Broken => {
                self.notes.tell(Happened::Noise { begins: excerpt(&frame), why: "not a message".to_owned() });
            }
        }
    }

    /// Something came that is no frame. Perhaps it tells whose answer it was to be.
    pub(super) fn noise(&self, begins: String, why: Noise) {
        let words = why.in_words();
        if let Some(id) = Id::in_beginning(begins.as_bytes()) {
            self.refuse(&id, &words);
        }
        self.notes.tell(Happened::Noise { begins, why: words });
    }

    /// An answer came that is none.
    pub(super) fn refuse(&self, id: &Id, why: &str) {
        let words = format!("the server's answer was refused: it is {why}");
        let waiting = self.lock().waiting.remove(id);
        match waiting {
            Some(Waiting::Us(tell)) => {
                let _nobody_waits_any_more = tell.send(Came::Refused(words));
            }
            Some(waiting @ Waiting::Client(_)) => {
                let why = Unanswered {
                    words,
                    http_status: None,
                    retry_after: None,
                    never_reached: false,
                    is_final: true,
                };
                self.lose(waiting, why);
            }
            None => {}
        }
    }

    /// A request will have no answer.
    pub(super) fn unanswered(&self, id: &Id, why: Unanswered) {
        let waiting = self.lock().waiting.remove(id);
        if let Some(waiting) = waiting {
            self.lose(waiting, why);
        }
    }

    /// The server is gone, and comes back or not: whoever waits for something that it may have begun is told so. What only
    /// asked is asked again, once, where it comes back.
    pub(super) fn gone(&self, presence: Presence, words: &str) {
        let comes_back = matches!(presence, Presence::Starting);
        let lost = {
            let mut state = self.lock();
            state.presence = presence;
            state.theirs.clear();
            state.taken_back.clear();
            let waiting = std::mem::take(&mut state.waiting);
            let held: HashSet<Id> =
                state.held.iter().filter_map(|held| Some(held.asks.as_ref()?.id.clone())).collect();
            let mut lost = Vec::new();
            for (id, waiting) in waiting {
                match waiting {
                    // It waits to be said, and nobody has heard it.
                    waiting if comes_back && held.contains(&id) => drop(state.waiting.insert(id, waiting)),
                    Waiting::Client(mut request) if comes_back && request.again.is_some() => {
                        let frame = request.again.take().unwrap_or_default();
                        let asks = Some(Asks { id: id.clone(), method: request.method.clone(), name: None });
                        state.held.push(Outbound::new(frame, asks));
                        state.waiting.insert(id, Waiting::Client(request));
                    }
                    waiting => lost.push((waiting, held.contains(&id))),
                }
            }
            if !comes_back {
                state.held.clear();
            }
            lost
        };
        for (waiting, never_reached) in lost {
            let words = words.to_owned();
            self.lose(
                waiting,
                Unanswered { words, http_status: None, retry_after: None, never_reached, is_final: false },
            );
        }
    }

    /// The server is there again, and hears what waited for it.
    pub(super) fn up(&self, to: mpsc::UnboundedSender<Outbound>) {
        let mut state = self.lock();
        for outbound in std::mem::take(&mut state.held) {
            let _it_is_gone = to.send(outbound);
        }
        state.presence = Presence::Up(to);
    }

    /// The server stays away until somebody wants it, or for good.
    pub(super) fn set(&self, presence: Presence) {
        self.lock().presence = presence;
    }

    /// The server stays away until somebody wants it, unless somebody does already.
    pub(super) fn rest(&self) {
        let mut state = self.lock();
        if state.waiting.is_empty() && state.held.is_empty() {
            state.presence = Presence::Away;
        }
    }

    /// Is it left until somebody wants it?
    pub(super) fn is_away(&self) -> bool {
        matches!(self.lock().presence, Presence::Away)
    }

    /// Somebody waits for an answer to a request that is sent past everything else.
    pub(super) fn expect(&self, id: &Id, waiting: Waiting) {
        self.lock().waiting.insert(id.clone(), waiting);
    }

    /// Asks a server for a sign of life. One that is not there is not asked.
    pub(super) fn probe(&self, id: &Id, waiting: Waiting) -> bool {
        let mut state = self.lock();
        let method = if state.handshake.initialize.is_some() { "ping" } else { "server/discover" };
        let asks = Some(Asks { id: id.clone(), method: method.to_owned(), name: None });
        let probe = Outbound::new(mcp::request(id, method, "{}"), asks);
        let is_asked = match &state.presence {
            Presence::Up(to) => to.send(probe).is_ok(),
            Presence::Starting | Presence::Away | Presence::Shut { .. } | Presence::Over(_) => false,
        };
        if is_asked {
            state.waiting.insert(id.clone(), waiting);
        }
        is_asked
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
    pub(super) fn under_free_name(&self, id: &Id, frame: Vec<u8>, has_twin: bool) -> (Id, Vec<u8>) {
        if !has_twin && !self.lock().waiting.contains_key(id) {
            return (id.clone(), frame);
        }
        let name = self.name();
        match mcp::renamed(&frame, &name) {
            Some(renamed) => (name, renamed),
            None => (id.clone(), frame),
        }
    }

    /// A call of the client is under way, until somebody cancels it. Tells in which round it was asked for: as long as one call
    /// is not answered, those that come were asked for together with it.
    pub(super) fn begin_call(&self, id: &Id, token: Option<&String>, call: CancellationToken) -> u64 {
        let mut state = self.lock();
        state.rounds += u64::from(state.carried == 0);
        state.in_flight.insert(id.clone(), InFlight::Call(call));
        state.carried += 1;
        if let Some(token) = token {
            state.progress.insert(token.clone(), Progress::default());
        }
        state.rounds
    }

    /// All is said to the client of a call that was under way.
    pub(super) fn leave_call(&self) {
        let mut state = self.lock();
        state.carried = state.carried.saturating_sub(1);
        drop(state);
        self.answered.notify_waiters();
    }

    /// A call of the client is answered. Nobody else takes it back now.
    pub(super) fn end_call(&self, id: &Id, token: Option<&String>) {
        let mut state = self.lock();
        state.in_flight.remove(id);
        if let Some(token) = token {
            state.progress.remove(token);
        }
        drop(state);
        self.answered.notify_waiters();
    }

    /// Says a frame to the client.
    pub(super) fn say(&self, frame: Vec<u8>) {
        self.out.push(frame);
    }

    /// Tells the client how far a call is, further than before.
    pub(super) fn say_progress(&self, token: &str, message: &str) {
        let progress = {
            let mut state = self.lock();
            let progress = state.progress.entry(token.to_owned()).or_default();
            progress.is_ours = true;
            progress.last += f64::max(0.001, progress.last.abs() / 1_000_000.0);
            progress.last
        };
        self.out.push(mcp::progress(token, progress, message));
    }

    /// Nobody waits for an answer any more. Tells whether the server may have heard the question.
    pub(super) fn forget(&self, id: &Id) -> bool {
        let mut state = self.lock();
        let may_be_heard = state.waiting.remove(id).is_some() && !state.unsay(id);
        if may_be_heard {
            state.take_back(id);
        }
        may_be_heard
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

    /// A client takes a request back. Tells under which name the server knows it, where it does.
    fn cancel(&self, params: Option<&str>) -> TakenBack {
        let params: Option<Value> = params.and_then(|params| serde_json::from_str(params).ok());
        let id = params.and_then(|params| Id::of(&params.get("requestId")?.to_string()));
        let Some(id) = id else { return TakenBack::Nothing };
        let mut state = self.lock();
        match state.in_flight.remove(&id) {
            Some(InFlight::PassedOn(upstream)) => {
                state.waiting.remove(&upstream);
                if state.unsay(&upstream) {
                    return TakenBack::Nothing;
                }
                state.take_back(&upstream);
                if upstream == id { TakenBack::AsNamed } else { TakenBack::Known(upstream) }
            }
            Some(InFlight::Call(call)) => {
                drop(state);
                // Whoever drops the call tells the server of it.
                call.cancel();
                self.answered.notify_waiters();
                TakenBack::Nothing
            }
            None => TakenBack::Nothing,
        }
    }

    fn register(&self, id: &Id, method: &str, params: Option<&str>) -> ClientRequest {
        let mut state = self.lock();
        let text = || params.unwrap_or("{}").to_owned();
        match method {
            "initialize" => {
                state.handshake = Handshake { initialize: Some(text()), ..Handshake::default() };
                if let Some(greeting) = raw(params).map(Greeting::of) {
                    state.greeting = greeting;
                }
            }
            "logging/setLevel" => {
                state.handshake.wishes.retain(|(wish, _)| wish != method);
                state.handshake.wishes.push((method.to_owned(), Some(text())));
            }
            "resources/subscribe" => state.handshake.wishes.push((method.to_owned(), Some(text()))),
            "resources/unsubscribe" => {
                let gone = Some(text());
                state.handshake.wishes.retain(|(wish, of)| wish != "resources/subscribe" || *of != gone);
            }
            _ => {}
        }
        let is_first_page = method == "tools/list" && !text().contains("\"cursor\"");
        ClientRequest { id: id.clone(), method: method.to_owned(), is_first_page, again: None }
    }

    fn note_greeting(&self, params: Option<&serde_json::value::RawValue>) {
        let mut state = self.lock();
        if state.greeting.version.is_none()
            && let Some(greeting) = params.and_then(Greeting::of_request)
        {
            state.greeting = greeting;
        }
    }

    /// Learns from what the server answers to the client.
    fn learn(&self, request: &ClientRequest, result: &serde_json::value::RawValue) {
        match &*request.method {
            "initialize" => {
                let welcome = Welcome::of(result);
                let mut state = self.lock();
                state.handshake.is_answered = true;
                if welcome.version.is_some() {
                    state.greeting.version = welcome.version;
                }
            }
            "tools/list" => {
                if let Some(page) = ToolList::of(result) {
                    self.list(request.is_first_page, page);
                }
            }
            _ => {}
        }
    }

    /// A page of the list of tools was seen.
    pub(super) fn list(&self, is_first: bool, page: ToolList) {
        let listed = self.lock().catalogue.learn(is_first, page);
        if let Some(digests) = listed {
            self.notes.tell(Happened::Listed(digests));
            self.relisted.notify_one();
        }
    }

    /// Is this progress none, because we have told of more already?
    fn goes_back(&self, params: Option<&str>) -> bool {
        let Some(params) = params.and_then(|params| serde_json::from_str::<Value>(params).ok()) else {
            return false;
        };
        let Some(token) = params.get("progressToken").map(Value::to_string) else { return false };
        let mut state = self.lock();
        match (state.progress.get_mut(&token), params.get("progress").and_then(Value::as_f64)) {
            (Some(progress), Some(now)) if progress.is_ours && now <= progress.last => true,
            (Some(progress), Some(now)) => {
                progress.last = now;
                false
            }
            (Some(_) | None, _) => false,
        }
    }

    fn refuse_deep(&self, frame: &[u8]) {
        if let Message::Request { id, .. } = mcp::read(frame) {
            let words = format!("the message is nested more than {DEEPEST} levels deep");
            self.out.push(mcp::failed(Some(&id), ErrorCode::Refused, &words, None));
        }
    }

    fn lose(&self, waiting: Waiting, why: Unanswered) {
        match waiting {
            Waiting::Us(tell) => {
                let _nobody_waits_any_more = tell.send(Came::Lost(why));
            }
            Waiting::Client(request) => {
                self.lock().in_flight.remove(&request.id);
                let words = format!("{} (unstuck)", why.words);
                self.out.push(mcp::failed(Some(&request.id), ErrorCode::ServerGone, &words, None));
                self.answered.notify_waiters();
                if matches!(self.lock().presence, Presence::Over(_)) {
                    self.refusals.notify_one();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Remembers a request that was taken back. Of very many the oldest are forgotten with the others.
    fn take_back(&mut self, id: &Id) {
        if self.taken_back.len() >= TAKEN_BACK {
            self.taken_back.clear();
        }
        self.taken_back.insert(id.clone());
    }
}

/// Does a request only ask, so that it may be asked twice?
fn only_asks(method: &str) -> bool {
    matches!(
        method,
        "ping"
            | "server/discover"
            | "tools/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "prompts/list"
            | "prompts/get"
            | "completion/complete"
    )
}

/// The tool, prompt or resource that a request is about.
fn named(params: &serde_json::value::RawValue) -> Option<String> {
    let params: Value = serde_json::from_str(params.get()).ok()?;
    let name = params.get("name").or_else(|| params.get("uri"))?;
    name.as_str().map(str::to_owned)
}

fn raw(json: Option<&str>) -> Option<&serde_json::value::RawValue> {
    serde_json::from_str(json?).ok()
}

fn excerpt(frame: &[u8]) -> String {
    String::from_utf8_lossy(&frame[..frame.len().min(200)]).into_owned()
}
