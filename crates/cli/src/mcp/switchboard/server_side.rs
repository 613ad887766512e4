//! What the server says: its answers go to whoever waits for them, and everything else to the client.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use memchr::memmem;
use serde_json::value::RawValue;
use unstuck_wire::mcp::{self, ErrorCode, Fields, Glimpse, Id, Message, Part, Sort, ToolList, Welcome};

use super::presence::Presence;
use super::{Came, ClientRequest, DEEPEST, Switchboard, Waiting, too_deep};
use crate::mcp::link::{Inbound, Noise, Unanswered};
use crate::mcp::loads::Load;
use crate::mcp::notes::Happened;

/// So long an answer may take that follows one that could not be read.
const SECOND_TRY: Duration = Duration::from_millis(500);

/// What some systems put before every text.
const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

impl Switchboard {
    /// The server said something.
    pub(in crate::mcp) fn hear_server(self: &Arc<Switchboard>, heard: Inbound) {
        let (mut frame, load) = heard.apart();
        self.lock().heard += 1;
        if mcp::depth(&frame) > DEEPEST {
            Glimpse::all(&frame).iter().for_each(|glimpse| self.refuse_server(glimpse, &too_deep()));
            self.notes.noise(excerpt(&frame), "nested too deep".to_owned());
            return;
        }
        let message = mcp::read(&frame);
        if !matches!(message, Message::Other | Message::Broken) {
            self.lock().has_spoken = true;
        }
        match message {
            Message::Answer { id: Some(id), came } => {
                let (waiting, is_late, is_unread) = {
                    let mut state = self.lock();
                    let waiting = state.waiting.remove(&id);
                    state.doubtful.remove(&id);
                    let is_unread = waiting.is_none() && state.take_unread(&id, None);
                    (waiting, state.taken_back.remove(&id), is_unread)
                };
                let Some(waiting) = waiting else {
                    if is_unread {
                        self.out.push((frame, load));
                        return;
                    }
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
                        if request.id != id {
                            mcp::rename(&mut frame, &request.id);
                        }
                        self.lock().land_passed_on(&request.id, &id);
                        self.out.push((frame, load));
                        self.answered.notify_waiters();
                    }
                    Waiting::Us(tell) => {
                        let place = self.out.reserve();
                        let _nobody_waits_any_more = tell.send(Came::Answer((frame, load).into(), place));
                    }
                }
            }
            Message::Answer { id: None, .. } => {
                self.lock().hear_complaint();
                self.out.push((frame, load));
            }
            Message::Request { id, .. } => {
                let is_free = self.lock().questions.is_free(&id);
                let mut name = id.clone();
                if !is_free {
                    let ours = self.name();
                    if mcp::rename(&mut frame, &ours) {
                        name = ours;
                    }
                }
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
                if !self.is_batch_of_client(&parts) {
                    return self.hear_apart(&frame);
                }
                let mut state = self.lock();
                for part in parts {
                    match part {
                        Part::Request(id) => state.questions.ask(id.clone(), id),
                        Part::Answer(id) if state.take_unread(&id, None) => {}
                        Part::Answer(id) => {
                            if let Some(Waiting::Client(request)) = state.waiting.remove(&id) {
                                state.land_passed_on(&request.id, &id);
                            }
                        }
                        Part::Other => {}
                    }
                }
                drop(state);
                self.out.push((frame, load));
                self.answered.notify_waiters();
            }
            Message::Other | Message::Broken => self.hear_noise(frame, load),
        }
    }

    /// Can a batch pass as it came? Only where it asks something, or the client asked for all of it in batches and each answer
    /// is the only one.
    fn is_batch_of_client(&self, parts: &[Part]) -> bool {
        let state = self.lock();
        let mut seen = HashSet::new();
        let all_pass = parts.iter().all(|part| match part {
            Part::Request(id) => state.questions.is_free(id) && seen.insert((true, id)),
            Part::Answer(id) => {
                let is_asked = match state.waiting.get(id) {
                    Some(Waiting::Client(request)) => request.batch.is_some(),
                    Some(Waiting::Us(_)) | None => false,
                };
                (is_asked || state.unread.contains_key(id)) && seen.insert((false, id))
            }
            Part::Other => true,
        });
        all_pass && (parts.is_empty() || !seen.is_empty())
    }

    /// Hears each message of a batch as if it had come alone.
    fn hear_apart(self: &Arc<Switchboard>, frame: &[u8]) {
        for part in mcp::apart(frame).unwrap_or_default() {
            let part = part.get().as_bytes().to_vec();
            match part.first() {
                Some(b'[') => self.notes.noise(excerpt(&part), "not a message".to_owned()),
                _ => self.hear_server(Inbound::counted(part, &self.inbound)),
            }
        }
    }

    /// The server said something that is no message. It may be one in bytes that are no text, which clients read all the same; it may
    /// tell whose answer it was to be; and what calls itself a message is for the client to read.
    fn hear_noise(self: &Arc<Switchboard>, frame: Vec<u8>, load: Option<Load>) {
        let is_json = matches!(mcp::read(&frame), Message::Other);
        let readable = match frame.strip_prefix(&BYTE_ORDER_MARK) {
            Some(rest) => Some(rest.to_vec()),
            None if std::str::from_utf8(&frame).is_err() => {
                Some(String::from_utf8_lossy(&frame).into_owned().into_bytes())
            }
            None => None,
        };
        if let Some(readable) = readable.filter(|text| !matches!(mcp::read(text), Message::Broken)) {
            self.hear_server((readable, load).into());
            return;
        }
        let is_marked = memmem::find(&frame, br#""jsonrpc""#).is_some();
        let awaited: Vec<Id> = Glimpse::all(&frame)
            .into_iter()
            .filter(|glimpse| match glimpse.sort {
                Sort::Answer => true,
                Sort::Unsaid => is_marked,
                Sort::Question => false,
            })
            .filter_map(|glimpse| glimpse.id)
            .filter(|id| self.lock().waiting.contains_key(id))
            .collect();
        if awaited.is_empty() && is_json && is_marked {
            self.out.push((frame, load));
            return;
        }
        let why = if is_json { "neither a result nor an error" } else { "no JSON that can be read" };
        awaited.into_iter().for_each(|id| self.refuse_soon(id, why));
        self.notes.noise(excerpt(&frame), "not a message".to_owned());
    }

    /// What came for a request is no answer. One that is may still follow; where none does, there is none.
    fn refuse_soon(self: &Arc<Switchboard>, id: Id, why: &'static str) {
        let heard = {
            let mut state = self.lock();
            let heard = state.heard;
            state.doubtful.insert(id.clone(), heard);
            heard
        };
        let board = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(SECOND_TRY).await;
            let is_still_so = {
                let mut state = board.lock();
                let is_still_so = state.doubtful.get(&id) == Some(&heard);
                is_still_so && state.doubtful.remove(&id).is_some()
            };
            if is_still_so {
                board.refuse(&id, why);
            }
        });
    }

    /// Something came that is no frame.
    pub(in crate::mcp) fn noise(&self, begins: String, why: Noise) {
        self.notes.noise(begins, why.in_words());
    }

    /// A message of the server cannot be passed on. Whoever waits for something because of it is told so.
    pub(in crate::mcp) fn refuse_server(&self, glimpse: &Glimpse, why: &str) {
        match glimpse {
            Glimpse { sort: Sort::Question, id: Some(id) } => {
                self.reply(mcp::failed(Some(id), ErrorCode::Refused, why, None));
            }
            Glimpse { sort: Sort::Answer | Sort::Unsaid, id: Some(id) } => self.refuse(id, why),
            Glimpse { sort: Sort::Question | Sort::Answer | Sort::Unsaid, id: None } => {}
        }
    }

    /// An answer came that is none.
    fn refuse(&self, id: &Id, why: &str) {
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
                self.lose(Some(id), waiting, why);
            }
            None => {}
        }
    }

    /// A request will have no answer.
    pub(in crate::mcp) fn unanswered(&self, id: &Id, why: Unanswered) {
        let waiting = self.lock().waiting.remove(id);
        if let Some(waiting) = waiting {
            self.lose(Some(id), waiting, why);
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
        let Some(params) = params.and_then(Fields::read) else { return false };
        let Some(token) = params.get("progressToken").map(|token| token.get().to_owned()) else {
            return false;
        };
        let progress = params.get("progress").and_then(|progress| progress.get().parse().ok());
        let mut state = self.lock();
        match (state.progress.get_mut(&token), progress) {
            (Some(progress), Some(now)) if progress.is_ours && now <= progress.last => true,
            (Some(progress), Some(now)) => {
                progress.last = now;
                false
            }
            (Some(_) | None, _) => false,
        }
    }

    pub(super) fn lose(&self, name: Option<&Id>, waiting: Waiting, why: Unanswered) {
        match waiting {
            Waiting::Us(tell) => {
                let _nobody_waits_any_more = tell.send(Came::Lost(why));
            }
            Waiting::Client(request) => {
                if let Some(name) = name {
                    self.lock().land_passed_on(&request.id, name);
                }
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
