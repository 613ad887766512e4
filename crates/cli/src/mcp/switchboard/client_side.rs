//! What the client says: its requests are remembered, and its calls are left to whoever carries them out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use unstuck_wire::mcp::{self, ErrorCode, Fields, Glimpse, Greeting, Id, Message, Part, Sort, ToolCall};

use super::presence::Handshake;
use super::{
    Begun, ClientRequest, DEEPEST, Delivery, Heeded, InFlight, Progress, Switchboard, Waiting, Withdrawal,
    too_deep,
};
use crate::mcp::lane::Lane;
use crate::mcp::link::{Asks, Outbound};

/// What the server has to hear of a request that the client takes back.
enum TakenBack {
    /// What the client says: it knows the request by the same name, or does not know it.
    AsNamed,
    /// It knows the request by this name.
    Known(Id),
    /// It has not heard the request, or is told by somebody else.
    Nothing,
}

impl Switchboard {
    /// The client said something. Calls of tools are left to whoever asks; all else is passed on in its order.
    pub(in crate::mcp) fn hear_client(&self, server: &Lane<Delivery>, frame: Bytes) -> (Heeded, Bytes) {
        if mcp::depth(&frame) > DEEPEST {
            let words = format!("the message is {}", too_deep());
            Glimpse::all(&frame).iter().for_each(|glimpse| self.refuse_client(glimpse, &words));
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
                self.lock().take_off(id, InFlight::PassedOn(upstream));
                let waiting = Some(Waiting::Client(request));
                server.push(Delivery { outbound: Outbound::new(frame, asks), waiting });
            }
            Message::Notification { method, params } => {
                let frame = match &*method {
                    "notifications/cancelled" => match self.cancel(params, &frame, server) {
                        TakenBack::AsNamed => frame,
                        TakenBack::Known(id) => mcp::cancelling(&frame, &id).map_or(frame, Bytes::from),
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
                let frame = match id {
                    None => Some(frame),
                    Some(name) => match self.lock().questions.answer(&name) {
                        Some(servers) if servers != name => mcp::renamed(&frame, &servers).map(Bytes::from),
                        Some(_) => Some(frame),
                        // A server that was started again has not asked what the one before did.
                        None => None,
                    },
                };
                if let Some(frame) = frame {
                    server.push(Delivery { outbound: Outbound::new(frame, None), waiting: None });
                }
            }
            Message::Batch(parts) => {
                let (mut asked, mut lost, mut ids) = (Vec::new(), Vec::new(), Vec::new());
                let mut state = self.lock();
                state.unlooked += 1;
                let number = state.unlooked;
                let why_not = state.presence.why_not();
                for part in parts {
                    match part {
                        Part::Request(id) => {
                            let request = ClientRequest {
                                id: id.clone(),
                                method: String::new(),
                                page: None,
                                again: None,
                                batch: Some(number),
                            };
                            ids.push(id.clone());
                            match &why_not {
                                Some(why) => lost.push((Waiting::Client(request), why.clone())),
                                // The answer to the other one comes alone.
                                None if state.has_taken(&id) => state.note_unread(id),
                                None => {
                                    state.take_off(id.clone(), InFlight::PassedOn(id.clone()));
                                    state.wait_for(id.clone(), Waiting::Client(request));
                                    asked.push(id);
                                }
                            }
                        }
                        Part::Answer(id) => drop(state.questions.answer(&id)),
                        Part::Other => {}
                    }
                }
                drop(state);
                lost.into_iter().for_each(|(waiting, why)| self.lose(None, waiting, why));
                server.push(Delivery { outbound: Outbound::batch(frame, asked), waiting: None });
                return (Heeded::Unlooked { number, ids }, Bytes::new());
            }
            Message::Other | Message::Broken => {
                // The server may read it all the same.
                let mut state = self.lock();
                state.unlooked += 1;
                let number = state.unlooked;
                let asked = Glimpse::all(&frame).into_iter().filter(|glimpse| glimpse.sort != Sort::Answer);
                let ids: Vec<Id> = asked.filter_map(|glimpse| glimpse.id).collect();
                if let Some(why) = state.presence.why_not() {
                    drop(state);
                    let words = format!("{} (unstuck)", why.words);
                    let refused = |id| mcp::failed(Some(id), ErrorCode::ServerGone, &words, None);
                    ids.iter().for_each(|id| self.out.push(refused(id)));
                    return (Heeded::Done, Bytes::new());
                }
                ids.iter().for_each(|id| state.note_unread(id.clone()));
                drop(state);
                server.push(Delivery { outbound: Outbound::new(frame, None), waiting: None });
                return (Heeded::Unlooked { number, ids }, Bytes::new());
            }
        }
        (Heeded::Done, Bytes::new())
    }

    /// Requests that were passed on without a look have had their time. Those that are not answered are told so.
    pub(in crate::mcp) fn expire(&self, number: u64, ids: &[Id], limit: Duration) {
        for id in ids {
            let mut state = self.lock();
            let is_its_own =
                |waiting: &Waiting| matches!(waiting, Waiting::Client(asked) if asked.batch == Some(number));
            let is_due = match state.waiting.get(id).is_some_and(is_its_own) {
                true => {
                    state.waiting.remove(id);
                    state.land_passed_on(id, id);
                    true
                }
                false => state.take_unread(id, Some(number)),
            };
            if !is_due {
                continue;
            }
            state.take_back(id);
            drop(state);
            let words = format!("no answer within {} s (unstuck)", limit.as_secs_f64());
            self.out.push(mcp::failed(Some(id), ErrorCode::ServerGone, &words, None));
            self.reply(mcp::cancelled(id, &words));
            self.answered.notify_waiters();
        }
    }

    /// A call of the client is under way.
    pub(in crate::mcp) fn begin_call(&self, id: &Id, token: Option<&String>) -> Begun {
        let mut state = self.lock();
        state.rounds += u64::from(state.carried == 0);
        let withdrawal = Arc::<Withdrawal>::default();
        state.take_off(id.clone(), InFlight::Call(Arc::clone(&withdrawal)));
        state.carried += 1;
        if let Some(token) = token {
            state.progress.insert(token.clone(), Progress::default());
        }
        Begun { round: state.rounds, withdrawal }
    }

    /// All is said to the client of a call that was under way.
    pub(in crate::mcp) fn leave_call(&self) {
        let mut state = self.lock();
        state.carried = state.carried.saturating_sub(1);
        drop(state);
        self.answered.notify_waiters();
    }

    /// A call of the client is answered. Nobody else takes it back now.
    pub(in crate::mcp) fn end_call(&self, id: &Id, token: Option<&String>, call: &Arc<Withdrawal>) {
        let mut state = self.lock();
        // Another one may have its name.
        let _it_was_taken_back =
            state.land(id, |request| matches!(request, InFlight::Call(other) if Arc::ptr_eq(other, call)));
        if let Some(token) = token {
            state.progress.remove(token);
        }
        drop(state);
        self.answered.notify_waiters();
    }

    /// Tells the client how far a call is, further than before.
    pub(in crate::mcp) fn say_progress(&self, token: &str, message: &str) {
        let progress = {
            let mut state = self.lock();
            let progress = state.progress.entry(token.to_owned()).or_default();
            progress.is_ours = true;
            progress.last += f64::max(0.001, progress.last.abs() / 1_000_000.0);
            progress.last
        };
        self.out.push(mcp::progress(token, progress, message));
    }

    /// A client takes a request back. Tells under which name the server knows it, where it does.
    fn cancel(&self, params: Option<&RawValue>, said: &[u8], server: &Lane<Delivery>) -> TakenBack {
        let Some(id) = params.and_then(mcp::cancels) else { return TakenBack::AsNamed };
        let mut state = self.lock();
        match state.land(&id, |_| true) {
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
                // Whoever drops the call tells the server of it, in this place.
                call.withdraw(said.to_vec(), server.reserve());
                self.answered.notify_waiters();
                TakenBack::Nothing
            }
            None => TakenBack::AsNamed,
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
            "logging/setLevel" => state.handshake.wish("logging/setLevel", None, text()),
            "resources/subscribe" => {
                state.handshake.wish("resources/subscribe", raw(params).and_then(named), text());
            }
            "resources/unsubscribe" => {
                state.handshake.forget("resources/subscribe", &raw(params).and_then(named));
            }
            _ => {}
        }
        let page = params.filter(|_| method == "tools/list").and_then(Fields::read);
        let page = page.and_then(|params| Some(params.text("cursor")?.into_owned()));
        ClientRequest { id: id.clone(), method: method.to_owned(), page, again: None, batch: None }
    }

    fn note_greeting(&self, params: Option<&RawValue>) {
        let mut state = self.lock();
        if state.greeting.version.is_none()
            && let Some(greeting) = params.and_then(Greeting::of_request)
        {
            state.greeting = greeting;
        }
    }

    /// A message of the client cannot be passed on. Whoever waits for something because of it is told so.
    pub(in crate::mcp) fn refuse_client(&self, glimpse: &Glimpse, why: &str) {
        match glimpse {
            // The name of an answer is the server's, and means another request here.
            Glimpse { sort: Sort::Answer, id } => {
                id.iter().for_each(|name| self.refuse_answer(name, why));
            }
            Glimpse { sort: Sort::Question | Sort::Unsaid, id } => {
                self.out.push(mcp::failed(id.as_ref(), ErrorCode::Refused, why, None));
            }
        }
    }

    /// The client has answered what the server asked, and it cannot be passed on.
    fn refuse_answer(&self, name: &Id, why: &str) {
        let asked = self.lock().questions.answer(name);
        if let Some(servers) = asked {
            self.reply(mcp::failed(Some(&servers), ErrorCode::Refused, why, None));
        }
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
fn named(params: &RawValue) -> Option<String> {
    let params = Fields::of(params)?;
    Some(params.text("name").or_else(|| params.text("uri"))?.into_owned())
}

fn raw(json: Option<&str>) -> Option<&RawValue> {
    serde_json::from_str(json?).ok()
}
