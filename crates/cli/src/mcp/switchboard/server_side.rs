//! What the server says: its answers go to whoever waits for them, and everything else to the client.

use serde_json::Value;
use serde_json::value::RawValue;
use unstuck_wire::mcp::{self, ErrorCode, Glimpse, Id, Message, Part, Sort, ToolList, Welcome};

use super::presence::Presence;
use super::{Came, ClientRequest, DEEPEST, InFlight, Switchboard, Waiting, too_deep};
use crate::mcp::link::{Inbound, Noise, Unanswered};
use crate::mcp::notes::Happened;

impl Switchboard {
    /// The server said something.
    pub(in crate::mcp) fn hear_server(&self, heard: Inbound) {
        let (frame, load) = heard.apart();
        self.lock().heard += 1;
        if mcp::depth(&frame) > DEEPEST {
            match mcp::read(&frame) {
                Message::Answer { id: Some(id), .. } => self.refuse(&id, &too_deep()),
                Message::Request { id, .. } => {
                    self.reply(mcp::failed(Some(&id), ErrorCode::Refused, &too_deep(), None));
                }
                Message::Answer { id: None, .. }
                | Message::Notification { .. }
                | Message::Batch(_)
                | Message::Other
                | Message::Broken => {}
            }
            self.notes.noise(excerpt(&frame), "nested too deep".to_owned());
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
                    self.notes.noise(excerpt(&frame), "an answer to nothing".to_owned());
                    return;
                };
                match waiting {
                    Waiting::Client(request) => {
                        if let Ok(result) = came {
                            self.learn(&request, result);
                        }
                        let renamed = (request.id != id).then(|| mcp::renamed(&frame, &request.id)).flatten();
                        self.lock().in_flight.remove(&request.id);
                        self.out.push((renamed.unwrap_or(frame), load));
                        self.answered.notify_waiters();
                    }
                    Waiting::Us(tell) => {
                        let place = self.out.reserve();
                        let _nobody_waits_any_more = tell.send(Came::Answer((frame, load).into(), place));
                    }
                }
            }
            Message::Answer { id: None, .. } | Message::Other => self.out.push((frame, load)),
            Message::Request { id, .. } => {
                let is_free = self.lock().questions.is_free(&id);
                let (name, frame) = match is_free {
                    true => (id.clone(), frame),
                    false => self.renamed(&id, frame),
                };
                self.lock().questions.ask(name, id);
                self.out.push((frame, load));
            }
            Message::Notification { method, params } => {
                let known_as = match &*method {
                    "notifications/tools/list_changed" => {
                        self.lock().catalogue.outdate();
                        None
                    }
                    "notifications/progress" if self.goes_back(params.map(|params| params.get())) => return,
                    "notifications/cancelled" => params.and_then(|params| self.withdrawn(params)),
                    _ => None,
                };
                let renamed = known_as.and_then(|name| mcp::cancelling(&frame, &name));
                self.out.push((renamed.unwrap_or(frame), load));
            }
            Message::Batch(parts) => {
                let mut state = self.lock();
                for part in parts {
                    match part {
                        Part::Request(id) => state.questions.ask(id.clone(), id),
                        Part::Answer(id) => match state.waiting.remove(&id) {
                            Some(Waiting::Client(request)) => drop(state.in_flight.remove(&request.id)),
                            Some(Waiting::Us(_)) => {
                                // A call that was asked for alone: it has its answer in here.
                                if let Some(InFlight::Call(call)) = state.in_flight.remove(&id) {
                                    call.token.cancel();
                                }
                            }
                            None => {}
                        },
                        Part::Other => {}
                    }
                }
                drop(state);
                self.out.push((frame, load));
                self.answered.notify_waiters();
            }
            Message::Broken => self.notes.noise(excerpt(&frame), "not a message".to_owned()),
        }
    }

    /// Something came that is no frame. Perhaps it tells whose answer it was to be.
    pub(in crate::mcp) fn noise(&self, begins: String, why: Noise) {
        let words = why.in_words();
        // A request has a name as well, but nobody waits for it here.
        match Glimpse::of(begins.as_bytes()) {
            Glimpse { sort: Sort::Answer | Sort::Unsaid, id: Some(id) } => self.refuse(&id, &words),
            Glimpse { sort: Sort::Question | Sort::Answer | Sort::Unsaid, .. } => {}
        }
        self.notes.noise(begins, words);
    }

    /// An answer came that is none.
    pub(in crate::mcp) fn refuse(&self, id: &Id, why: &str) {
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
    pub(in crate::mcp) fn unanswered(&self, id: &Id, why: Unanswered) {
        let waiting = self.lock().waiting.remove(id);
        if let Some(waiting) = waiting {
            self.lose(waiting, why);
        }
    }

    /// Learns from what the server answers to the client.
    fn learn(&self, request: &ClientRequest, result: &RawValue) {
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
                    self.list(request.page.as_deref(), page);
                }
            }
            _ => {}
        }
    }

    /// A page of the list of tools was seen.
    pub(in crate::mcp) fn list(&self, begins_at: Option<&str>, page: ToolList) {
        let listed = self.lock().catalogue.learn(begins_at, page);
        if let Some(digests) = listed {
            self.notes.tell(Happened::Listed(digests));
            self.relisted.notify_one();
        }
    }

    /// The server takes back what it asked. Tells by which other name the client knows it.
    fn withdrawn(&self, params: &RawValue) -> Option<Id> {
        let id = mcp::cancels(params)?;
        self.lock().questions.withdraw(&id).filter(|name| *name != id)
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

    pub(super) fn lose(&self, waiting: Waiting, why: Unanswered) {
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
}

fn excerpt(frame: &[u8]) -> String {
    String::from_utf8_lossy(&frame[..frame.len().min(200)]).into_owned()
}
