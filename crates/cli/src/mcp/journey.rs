//! The way of one call: from the frame of the client, through the toolbox, to the server and back, perhaps more than once.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;
use tokio::sync::oneshot;
use unstuck::schemars::{JsonSchema, Schema, SchemaGenerator};
use unstuck::{Annotations, Failure, Tool, ToolContext};
use unstuck_wire::mcp::{self, Id, Message, RpcError, ToolResult};

use super::Proxy;
use super::lane::Place;
use super::link::{Asks, Inbound, Outbound, Unanswered};
use super::switchboard::{Begun, Came, Delivery, Waiting, Withdrawal};

/// A tool of the server, as the toolbox has it: whoever calls it asks the server.
pub(super) struct Forwarded {
    /// What it is called in the toolbox.
    pub(super) shelved_as: String,
    pub(super) schema: Value,
    pub(super) annotations: Annotations,
    /// Is it not known to be harmless when it is called twice?
    pub(super) may_act: bool,
    pub(super) proxy: Arc<Proxy>,
}

/// The arguments, which go to the server as they came: nobody has to read them here.
pub(super) struct Unread;

impl<'de> Deserialize<'de> for Unread {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unread, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Unread)
    }
}

impl JsonSchema for Unread {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Unread".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::default()
    }
}

impl Tool for Forwarded {
    type Args = Unread;
    type Output = Value;

    fn name(&self) -> &str {
        &self.shelved_as
    }

    fn annotations(&self) -> Annotations {
        self.annotations.clone()
    }

    fn schema(&self) -> Value {
        self.schema.clone()
    }

    async fn call(&self, _: Unread, context: ToolContext) -> Result<Value, Failure> {
        match self.proxy.journey(context.call().id().as_str()) {
            Some(journey) => {
                let came = journey.attempt(&self.proxy, context.attempt()).await;
                came.map_err(|failure| if self.may_act { failure.unproven() } else { failure.failure })
            }
            // Nobody calls it but with a frame of the client.
            None => Err(Failure::unexpected("the call is gone")),
        }
    }
}

/// A call of the client under way.
pub(super) struct Journey {
    /// What the client calls it.
    pub(super) id: Id,
    /// The call as it came.
    frame: Bytes,
    /// The tool, as the server calls it.
    tool: String,
    arguments: Option<Value>,
    /// The name under which the client wants to hear of progress.
    pub(super) token: Option<String>,
    /// Is another request of the same name under way?
    has_twin: bool,
    pub(super) begun: Begun,
    /// There where the tool is an agent.
    agent: Option<Behind>,
    progress: Mutex<Progress>,
}

/// An agent behind the tool.
pub(super) struct Behind {
    /// The field that says which session of it is to go on, where the tool has one.
    pub(super) session_field: Option<String>,
}

/// How far it is.
#[derive(Default)]
struct Progress {
    /// Its place among all that is said to the server.
    place: Option<Place<Delivery>>,
    /// Which attempt it is.
    attempt: u32,
    /// What came of it, and its place among all that is said to the client.
    came: Option<(Inbound, Place<Inbound>)>,
    /// The session that the last attempt has begun.
    session: Option<String>,
}

impl Journey {
    pub(super) fn new(
        id: Id,
        frame: Bytes,
        call: mcp::ToolCall,
        place: Place<Delivery>,
        agent: Option<Behind>,
        has_twin: bool,
        begun: Begun,
    ) -> Journey {
        Journey {
            id,
            frame,
            tool: call.tool,
            arguments: call.arguments,
            token: call.progress_token,
            has_twin,
            begun,
            agent,
            progress: Mutex::new(Progress { place: Some(place), ..Progress::default() }),
        }
    }

    /// The arguments as the toolbox looks at them: of very large ones only a part.
    pub(super) fn input(&self) -> Value {
        self.arguments.clone().unwrap_or_else(|| Value::Object(Default::default()))
    }

    /// What came last from the server, and its place among all that is said to the client.
    pub(super) fn take_answer(&self) -> Option<(Inbound, Place<Inbound>)> {
        self.lock().came.take()
    }

    /// It is sent again: what came before is not the answer, and nobody waits behind it.
    pub(super) fn set_aside_before(&self, attempt: u32) {
        let mut progress = self.lock();
        // Whoever tells us may be late.
        if progress.attempt < attempt {
            progress.came = None;
        }
    }

    /// Sends it to the server, and waits for what comes of it.
    async fn attempt(&self, proxy: &Arc<Proxy>, number: u32) -> Result<Value, Failed> {
        let (place, session) = {
            let mut progress = self.lock();
            (progress.attempt, progress.came) = (number, None);
            (progress.place.take(), progress.session.clone())
        };
        let (name, frame) = match number {
            1 => proxy.board.under_free_name(&self.id, self.frame.clone(), self.has_twin),
            _ => {
                let name = proxy.board.name();
                let frame = mcp::renamed(&self.frame, &name).map_or_else(|| self.frame.clone(), Bytes::from);
                (name, self.in_session(frame, session))
            }
        };
        let (tell, told) = oneshot::channel();
        let asks =
            Some(Asks { id: name.clone(), method: "tools/call".to_owned(), name: Some(self.tool.clone()) });
        let delivery = Delivery { outbound: Outbound::new(frame, asks), waiting: Some(Waiting::Us(tell)) };
        let given_up = GivenUp { proxy, withdrawal: &self.begun.withdrawal, name: Some(name) };
        match place {
            Some(place) => place.fill(delivery),
            None => proxy.server.push(delivery),
        }
        let came = told.await;
        given_up.came();
        match came {
            Ok(Came::Answer(frame, place)) => {
                let read = self.read(proxy, &frame.frame);
                self.lock().came = Some((frame, place));
                read.map_err(Failed::somehow)
            }
            Ok(Came::Refused(words)) => Err(Failed::somehow(Failure::expected(words))),
            Ok(Came::Lost(why)) => Err(lost(why)),
            Err(_) => {
                Err(Failed::somehow(Failure::unexpected("connection closed: nobody is there to answer")))
            }
        }
    }

    /// What an answer means.
    fn read(&self, proxy: &Proxy, frame: &[u8]) -> Result<Value, Failure> {
        let Message::Answer { came, .. } = mcp::read(frame) else { return Ok(Value::Null) };
        match came {
            Ok(raw) => {
                let result = ToolResult::of(raw);
                let words = result.words.into_owned();
                // Many an agent behind a tool tells of its failure in its own words only.
                let has_failed = result.is_error || self.agent.is_some() && mcp::tells_failure(&words);
                match (result.is_complete, has_failed) {
                    (false, _) => Ok(no_answer(proxy)),
                    (true, false) => Ok(Value::String(match result.more {
                        None => words,
                        Some(more) => format!("{words} (and more: {more})"),
                    })),
                    (true, true) => {
                        self.note_session([&words, raw.get()]);
                        Err(Failure::expected(words))
                    }
                }
            }
            Err(raw) => {
                let error = RpcError::of(raw);
                self.note_session([&error.message, raw.get()]);
                match error.is_plain_failure() {
                    // What the protocol itself says of it is for the client alone.
                    false => Ok(no_answer(proxy)),
                    true => Err(Failure::unexpected(in_words(&error))),
                }
            }
        }
    }

    /// Remembers the session that a failed attempt has begun, where the next one can go on with it.
    fn note_session(&self, told: [&str; 2]) {
        let Some(field) = self.session_field() else { return };
        let Some(session) = told.iter().find_map(|words| mcp::session_in(words, field)) else { return };
        let given = self.arguments.as_ref().and_then(|arguments| arguments.get(field));
        // What the client says itself stands.
        let is_free = given.is_none_or(|given| given.is_null() || given.as_str() == Some(""));
        if is_free {
            self.lock().session = Some(session);
        }
    }

    /// The same call, as part of the session that the attempt before has begun.
    fn in_session(&self, frame: Bytes, session: Option<String>) -> Bytes {
        let (Some(field), Some(session)) = (self.session_field(), session) else { return frame };
        mcp::with_argument(&frame, field, &session.into()).map_or(frame, Bytes::from)
    }

    fn session_field(&self) -> Option<&str> {
        self.agent.as_ref()?.session_field.as_deref()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is not the answer to a call, or not yet, is the same as nothing else that came.
fn no_answer(proxy: &Proxy) -> Value {
    Value::String(format!("no answer yet: {}", proxy.board.name()))
}

/// An error of the protocol in the words in which clients tell of it.
fn in_words(error: &RpcError) -> String {
    format!("MCP error {}: {}", error.code, without_code(error))
}

/// What the server says of an error beside its code.
pub(super) fn without_code(error: &RpcError) -> String {
    match &error.data {
        None => error.message.clone(),
        Some(data) => format!("{}\n{data}", error.message),
    }
}

/// A failure, and whether the server may have done the work all the same.
struct Failed {
    failure: Failure,
    is_proof: bool,
}

impl Failed {
    /// Nobody can tell from it what the server has done: words are no proof.
    fn somehow(failure: Failure) -> Failed {
        Failed { failure, is_proof: false }
    }

    /// The failure of a tool that must not be called twice.
    fn unproven(self) -> Failure {
        if self.is_proof { self.failure } else { self.failure.may_have_acted() }
    }
}

/// A request that will have no answer, as a failure.
fn lost(why: Unanswered) -> Failed {
    let Unanswered { words, http_status, retry_after, never_reached, is_final } = why;
    let mut failure = match (http_status, never_reached) {
        // What a status means the judge knows.
        (Some(status), _) => Failure::unexpected(words).http_status(status),
        (None, true) => {
            Failure::unexpected(format!("connection refused: the call never reached the server: {words}"))
                .passes()
        }
        (None, false) => {
            Failure::unexpected(format!("connection closed before an answer came: {words}")).passes()
        }
    };
    if let Some(wait) = retry_after {
        failure = failure.retry_after(wait);
    }
    if never_reached {
        failure = failure.nothing_done();
    }
    let failure = if is_final { failure.not_again() } else { failure };
    // Whoever is told that there were too many requests knows that this one was not taken.
    Failed { failure, is_proof: never_reached || http_status == Some(429) }
}

/// An attempt that nobody waits for any more is taken back.
struct GivenUp<'a> {
    proxy: &'a Arc<Proxy>,
    withdrawal: &'a Withdrawal,
    name: Option<Id>,
}

impl GivenUp<'_> {
    fn came(mut self) {
        self.name = None;
    }
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        if self.proxy.board.forget(&name) {
            let outbound = Outbound::new(self.withdrawal.words(&name), None);
            let delivery = Delivery { outbound, waiting: None };
            match self.withdrawal.take_place() {
                Some(place) => place.fill(delivery),
                None => self.proxy.server.push(delivery),
            }
            self.proxy.doubts.look(&self.proxy.board);
        }
    }
}
