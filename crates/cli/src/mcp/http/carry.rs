//! How one frame goes: sent, answered or refused, and taken up again where the connection broke.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use hyper::{Response, StatusCode};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use unstuck_wire::mcp::Id;

use super::client::{Left, Turn, Unsent};
use super::flights::Stage;
use super::line::{EVENTS, Line};
use super::naming::SESSION;
use super::reading::{self, Came, Said};
use super::refusal::{self, TOLD};
use super::stream::{Ended, Events, Whole, beginning, whole};
use crate::attempts::clock;
use crate::mcp::link::{Heard, Noise, Unanswered};

/// So long the rest waits until the server has taken that we are ready.
const READY_LIMIT: Duration = Duration::from_secs(10);
/// And so long the server may take to say that it heard something.
const TOLD_LIMIT: Duration = Duration::from_secs(60);
/// So often a broken stream is taken up in vain.
const RESUMED_MAX: u32 = 5;
/// The wait before a stream is taken up, where the server does not say it, and the bounds of what it may say.
const RESUME_WAIT: Duration = Duration::from_secs(1);
const RESUME_WAIT_MAX: Duration = Duration::from_secs(30);
const RESUME_WAIT_MIN: Duration = Duration::from_millis(50);
/// A stream that lived so long was a real one.
const LONG_LIVED: Duration = Duration::from_secs(10);

/// A frame on its way.
pub(super) struct Carried {
    pub(super) frame: Bytes,
    pub(super) said: Said,
    pub(super) number: u64,
    pub(super) left: Left,
    pub(super) turn: Option<Turn>,
    /// Lets the next frame go.
    pub(super) passed: Option<oneshot::Sender<()>>,
}

/// A request, by whom its answer is waited for.
struct Asked {
    id: Id,
    number: u64,
    stateless: bool,
}

impl Line {
    /// Sends a request and hears its answer.
    pub(super) async fn ask(self: Arc<Self>, mut carried: Carried, id: Id, stateless: bool) {
        let _room = match self.room.try_acquire() {
            Ok(room) => Some(room),
            // Who waits for a place lets those go before that need none: it may be an answer that makes one free.
            Err(_) => {
                carried.turn = None;
                self.room.acquire().await.ok()
            }
        };
        let asked = Asked { id, number: carried.number, stateless };
        // It never leaves, and whoever ends the session tells so.
        if self.is_over() {
            return;
        }
        let turn = carried.turn.take();
        let (sent, in_session) = self.post(&carried, turn).await;
        let response = match sent {
            Ok(response) => response,
            Err(unsent) => return self.give_up(&asked, unsent.into()).await,
        };
        let greets = carried.said.method.as_deref() == Some("initialize");
        if greets && response.status().is_success() {
            self.enter_session(response.headers().get(SESSION).cloned());
        }
        drop(carried.passed.take());
        // A long stream need not hold what was said.
        drop(carried);
        if !response.status().is_success() {
            return self.refused(response, &asked, in_session).await;
        }
        self.flights.set(&asked.id, asked.number, Stage::Taken);
        if in_session {
            self.has_served();
        }
        match kind(&response) {
            Content::Events => self.follow(response.into_body(), &asked).await,
            Content::Json => self.take_whole(response, &asked).await,
            Content::Nothing => {
                let why = "the server took the request and sent no answer";
                self.give_up(&asked, unanswered(why.to_owned(), response.status())).await;
            }
            Content::Other(what) => {
                let status = response.status();
                let said = refusal::said(&beginning(response.into_body(), TOLD).await);
                let why = format!(
                    "the server answered with {what}, which is no message: {}",
                    refusal::quoted(&said)
                );
                self.give_up(&asked, unanswered(why, status)).await;
            }
        }
    }

    /// Sends what nobody answers.
    pub(super) async fn tell(&self, mut carried: Carried) {
        let ready = carried.said.method.as_deref() == Some("notifications/initialized");
        let passed = carried.passed.take();
        let turn = carried.turn.take();
        let mut posting = pin!(self.post(&carried, turn));
        let (sent, in_session) = match timeout(READY_LIMIT, &mut posting).await {
            Ok(posted) => {
                drop(passed);
                posted
            }
            Err(_) => {
                drop(passed);
                match timeout(TOLD_LIMIT, posting).await {
                    Ok(posted) => posted,
                    // It may well have heard it.
                    Err(_) => return,
                }
            }
        };
        let what = match &carried.said.method {
            Some(method) => method.clone(),
            None => "an answer".to_owned(),
        };
        match sent {
            Err(unsent) => self.remark(format!("{what} did not arrive: {}", unsent.words)).await,
            Ok(response) if !response.status().is_success() => {
                let status = response.status();
                let body = beginning(response.into_body(), TOLD).await;
                if in_session && refusal::ends_session(status, &body) {
                    return self.expire();
                }
                let said = refusal::said(&body);
                self.remark(format!("{what} was refused: HTTP {} {said}", status.as_u16())).await;
            }
            Ok(response) => {
                match kind(&response) {
                    Content::Events => {
                        let mut events = Events::new(self.frame_max);
                        if let Ended::TooLong(begins) =
                            events.pass_on(response.into_body(), self, || true).await
                        {
                            self.too_long(&begins).await;
                        }
                    }
                    Content::Json | Content::Nothing | Content::Other(_) => {
                        beginning(response.into_body(), TOLD).await;
                    }
                }
                if ready && !self.is_stateless() {
                    self.listen().await;
                }
            }
        }
    }

    /// Hears what the server says on its own, for as long as it offers to.
    async fn listen(&self) {
        let mut events = Events::new(self.frame_max);
        let mut failures = 0;
        loop {
            let begun = Instant::now();
            match self.get(events.last_id.as_deref()).await {
                Ok(response) if response.status().is_success() && kind(&response) == Content::Events => {
                    events.moved = false;
                    match events.pass_on(response.into_body(), self, || false).await {
                        Ended::Over(_) => {}
                        Ended::TooLong(begins) => self.too_long(&begins).await,
                        Ended::Unheard => return,
                    }
                    if events.moved || begun.elapsed() > LONG_LIVED {
                        failures = 0;
                    }
                }
                Ok(response) if response.status().is_server_error() || response.status().as_u16() == 429 => {}
                // It offers none. That the session is over is better learned from what is answered there.
                Ok(_) => return,
                Err(_) => {}
            }
            sleep(pause(events.retry, failures)).await;
            failures += 1;
        }
    }

    /// Hears a stream until it has answered, and takes it up again where it breaks, if the server can do that.
    async fn follow(&self, body: Incoming, asked: &Asked) {
        let mut events = Events::new(self.frame_max);
        let mut body = Some(body);
        let mut in_vain = 0;
        let mut why = String::new();
        // The last reason alone is worth telling.
        let mut not_resumed = String::new();
        loop {
            if let Some(body) = body.take() {
                events.moved = false;
                let done = || !self.flights.has(&asked.id, asked.number);
                match events.pass_on(body, self, done).await {
                    Ended::Over(words) => why = words,
                    Ended::TooLong(begins) => {
                        self.too_long(&begins).await;
                        let words = format!("an event of the answer is longer than {} bytes", self.frame_max);
                        return self.give_up(asked, unanswered(words, StatusCode::OK)).await;
                    }
                    Ended::Unheard => return,
                }
                if events.moved {
                    in_vain = 0;
                    not_resumed.clear();
                }
            }
            if !self.flights.has(&asked.id, asked.number) {
                return;
            }
            let resumable = !asked.stateless && events.last_id.is_some() && in_vain < RESUMED_MAX;
            if !resumable {
                return self.give_up(asked, cut_off(why + &not_resumed)).await;
            }
            sleep(pause(events.retry, in_vain)).await;
            in_vain += 1;
            match self.get(events.last_id.as_deref()).await {
                Ok(response) if response.status().is_success() && kind(&response) == Content::Events => {
                    body = Some(response.into_body());
                }
                Ok(response) if response.status().as_u16() == 404 => return self.expire(),
                Ok(response) if response.status().is_client_error() => {
                    return self.give_up(asked, cut_off(why)).await;
                }
                Ok(_) => {}
                Err(unsent) => not_resumed = format!(", and could not be taken up: {}", unsent.words),
            }
        }
    }

    /// Hears an answer that comes as a whole.
    async fn take_whole(&self, response: Response<Incoming>, asked: &Asked) {
        let status = response.status();
        let why = match whole(response.into_body(), self.frame_max, &self.inbound).await {
            Whole::Read(body) => {
                let said = || refusal::quoted(&refusal::said(&body));
                match str::from_utf8(&body).map(|text| reading::came(text.trim_start_matches('\u{feff}'))) {
                    Err(_) => {
                        if self.noise(&body, Noise::NotText).await.is_err() {
                            return;
                        }
                        "the answer is no text".to_owned()
                    }
                    Ok(Came::Nonsense) => format!("the answer is no message: {}", said()),
                    Ok(Came::Complaint) => said(),
                    Ok(Came::Answer(_) | Came::Several(_) | Came::Other) => {
                        let words = format!("the server answered something else: {}", said());
                        if self.hear(body).await.is_err() {
                            return;
                        }
                        words
                    }
                }
            }
            Whole::TooLong(body) => {
                self.too_long(&body).await;
                format!("the answer is longer than {} bytes", self.frame_max)
            }
            Whole::Broken(why) => {
                let why = format!("transfer closed with outstanding read data: {why}");
                return self.give_up(asked, cut_off(why)).await;
            }
        };
        self.give_up(asked, unanswered(why, status)).await;
    }

    /// The server did not do what it was asked. Some say why in a message, and that is the answer.
    async fn refused(&self, response: Response<Incoming>, asked: &Asked, in_session: bool) {
        let (head, body) = response.into_parts();
        let body = beginning(body, self.frame_max.min(1 << 20)).await;
        let answers =
            str::from_utf8(&body).is_ok_and(|text| reading::came(text) == Came::Answer(asked.id.clone()));
        // A request may be about a session of another kind. Where the server says whose answer it is, it is that and no more.
        let is_own_fault = answers && head.status == StatusCode::BAD_REQUEST;
        if in_session && !is_own_fault && refusal::ends_session(head.status, &body) {
            self.flights.set(&asked.id, asked.number, Stage::Untaken);
            return self.expire();
        }
        if answers && self.hear(body.clone()).await.is_err() {
            return;
        }
        let given = self.given();
        let why = refusal::refusal(head.status, &head.headers, &body, given, clock::here(), self.lang);
        self.give_up(asked, why).await;
    }

    /// Tells that a request has no answer, if it had none.
    async fn give_up(&self, asked: &Asked, mut why: Unanswered) {
        if self.flights.end_own(&asked.id, asked.number) {
            why.words = self.without_secrets(why.words);
            let _ = self.heard.send(Heard::Unanswered { id: asked.id.clone(), why }).await;
        }
    }
}

/// What an answer is made of.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    Json,
    Events,
    Nothing,
    Other(String),
}

fn kind(response: &Response<Incoming>) -> Content {
    let packed = response.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    if let Some(packed) = packed.filter(|name| !name.eq_ignore_ascii_case("identity")) {
        return Content::Other(format!("content encoding {packed}"));
    }
    let said = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        EVENTS => Content::Events,
        "application/json" => Content::Json,
        other if other.ends_with("+json") => Content::Json,
        "" if matches!(response.status().as_u16(), 202 | 204) => Content::Nothing,
        "" | "text/plain" => Content::Json,
        other => Content::Other(other.to_owned()),
    }
}

/// How long to wait before a stream is taken up for the n-th time in vain.
fn pause(said: Option<Duration>, in_vain: u32) -> Duration {
    let doubled = said.unwrap_or(RESUME_WAIT).saturating_mul(2_u32.saturating_pow(in_vain.min(16)));
    doubled.clamp(RESUME_WAIT_MIN, RESUME_WAIT_MAX)
}

/// An answer that broke off. Its status was that of a success and says nothing: it is the connection that failed, and that passes.
fn cut_off(words: String) -> Unanswered {
    Unanswered { words, http_status: None, retry_after: None, never_reached: false, is_final: false }
}

fn unanswered(words: String, status: StatusCode) -> Unanswered {
    Unanswered {
        words,
        http_status: Some(status.as_u16()),
        retry_after: None,
        never_reached: false,
        is_final: false,
    }
}

impl From<Unsent> for Unanswered {
    fn from(unsent: Unsent) -> Unanswered {
        Unanswered {
            words: unsent.words,
            http_status: unsent.status,
            retry_after: None,
            never_reached: unsent.never_reached,
            is_final: false,
        }
    }
}
