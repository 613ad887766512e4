//! What all that is said to a server shares: who asks, what was agreed upon, and who listens.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING,
    USER_AGENT,
};
use hyper::{Method, Response, Uri};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use unstuck_judge::Lang;
use unstuck_wire::mcp::{Glimpse, Id, Sort};

use super::HttpSettings;
use super::carry::Carried;
use super::client::{Client, Left, Letter, Turn, Unsent};
use super::flights::{Awaited, Flights};
use super::naming::{self, LAST_EVENT, Marked, SESSION, Unusable, VERSION};
use super::reading::{self, Came, Said};
use super::refusal::Given;
use super::room;
use crate::mcp::link::{Gone, Heard, Inbound, Noise, Unanswered};
use crate::mcp::loads::Loads;

/// So long may the farewell take.
const FAREWELL: Duration = Duration::from_secs(1);
/// So long it takes at least until there is another session.
const NEXT_SESSION: Duration = Duration::from_millis(250);
/// So much of what is no frame is shown.
const SHOWN: usize = 256;
/// How a stream of events is called.
pub(super) const EVENTS: &str = "text/event-stream";

/// What all requests share.
pub(super) struct Line {
    client: Client,
    url: Uri,
    headers: HeaderMap,
    /// Words that no answer may repeat.
    secrets: Vec<String>,
    pub(super) frame_max: usize,
    pub(super) lang: Lang,
    spoken: Mutex<Spoken>,
    marked: Mutex<Marked>,
    /// How many requests may still set out.
    pub(super) room: Semaphore,
    pub(super) flights: Flights,
    pub(super) heard: mpsc::Sender<Heard>,
    expired: mpsc::Sender<()>,
    /// What is under way to who listens.
    pub(super) inbound: Arc<Loads>,
}

/// What was agreed upon.
#[derive(Debug, Default)]
struct Spoken {
    /// Was there a handshake?
    greeted: bool,
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// Did the server do anything in the session?
    has_served: bool,
    /// The session is over.
    is_over: bool,
}

/// Nobody listens any more.
#[derive(Debug)]
pub(super) struct Unheard;

impl Line {
    pub(super) fn new(
        settings: HttpSettings,
        heard: mpsc::Sender<Heard>,
        expired: mpsc::Sender<()>,
        inbound: Arc<Loads>,
    ) -> Line {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("unstuck/", env!("CARGO_PKG_VERSION"))));
        let mut secrets = Vec::new();
        let ours =
            [ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING, SESSION, VERSION];
        for (name, mut value) in settings.headers {
            if ours.contains(&name) {
                continue;
            }
            value.set_sensitive(true);
            let text = value.to_str().unwrap_or_default();
            let words = text.split_whitespace().filter(|word| word.len() >= 8);
            secrets.extend(words.map(str::to_owned));
            if name == USER_AGENT {
                headers.remove(&name);
            }
            headers.append(name, value);
        }
        Line {
            client: Client::new(settings.connect_limit),
            url: settings.url,
            headers,
            secrets,
            frame_max: settings.frame_max,
            lang: settings.lang,
            spoken: Mutex::default(),
            marked: Mutex::default(),
            room: Semaphore::new(room::for_requests()),
            flights: Flights::default(),
            heard,
            expired,
            inbound,
        }
    }

    fn spoken(&self) -> MutexGuard<'_, Spoken> {
        self.spoken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn marked(&self) -> MutexGuard<'_, Marked> {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Was there no handshake?
    pub(super) fn is_stateless(&self) -> bool {
        !self.spoken().greeted
    }

    /// Takes note of how a frame speaks. Does it stand for itself?
    pub(super) fn speaks(&self, said: &Said, greets: bool) -> bool {
        let mut spoken = self.spoken();
        if greets {
            *spoken = Spoken { greeted: true, ..Spoken::default() };
        }
        if !spoken.greeted
            && let Some(version) = &said.version
        {
            spoken.version = HeaderValue::from_str(version).ok();
        }
        said.version.is_some()
    }

    /// The headers of a request in the session, if there is one, and whether there is one.
    fn session_headers(&self, accept: &'static str) -> (HeaderMap, bool) {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        let spoken = self.spoken();
        if let Some(version) = &spoken.version {
            headers.insert(VERSION, version.clone());
        }
        if let Some(session) = &spoken.session {
            headers.insert(SESSION, session.clone());
        }
        (headers, spoken.session.is_some())
    }

    /// Sends a frame and waits for the beginning of the answer. Tells whether it was sent in a session.
    pub(super) async fn post(
        &self,
        carried: &Carried,
        turn: Option<Turn>,
    ) -> (Result<Response<Incoming>, Unsent>, bool) {
        let (mut headers, in_session) = self.session_headers("application/json, text/event-stream");
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(version) = &carried.said.version
            && let Ok(version) = HeaderValue::from_str(version)
        {
            headers.insert(VERSION, version);
        }
        if carried.said.version.is_some() || self.is_stateless() && headers.contains_key(VERSION) {
            naming::say(&carried.said, &carried.frame, &self.marked(), &mut headers);
        }
        let (body, left) = (carried.frame.clone(), carried.left.clone());
        let letter = Letter { method: Method::POST, headers, body, left, turn };
        (self.client.send(&self.url, letter).await, in_session)
    }

    pub(super) async fn get(&self, after: Option<&str>) -> Result<Response<Incoming>, Unsent> {
        let (mut headers, _) = self.session_headers(EVENTS);
        if let Some(id) = after.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok()) {
            headers.insert(LAST_EVENT, id);
        }
        let letter =
            Letter { method: Method::GET, headers, body: Bytes::new(), left: Left::default(), turn: None };
        self.client.send(&self.url, letter).await
    }

    /// The server answered in the session.
    pub(super) fn has_served(&self) {
        self.spoken().has_served = true;
    }

    /// Is the session over, so that nothing more is sent in it?
    pub(super) fn is_over(&self) -> bool {
        self.spoken().is_over
    }

    /// The server gave a session, or none.
    pub(super) fn enter_session(&self, session: Option<HeaderValue>) {
        self.spoken().session = session;
    }

    /// Passes on a frame, unless it answers what is not under way.
    pub(super) async fn hear(&self, frame: Vec<u8>) -> Result<(), Unheard> {
        let mut text = match String::from_utf8(frame) {
            Ok(text) => text,
            Err(error) => return self.noise(error.as_bytes(), Noise::NotText).await,
        };
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        match reading::came(&text) {
            Came::Several(frames) => {
                for frame in frames {
                    match reading::came(&frame) {
                        Came::Answer(id) => self.hear_answer(frame, &id).await?,
                        Came::Complaint | Came::Several(_) | Came::Other | Came::Nonsense => {
                            self.pass_on(frame).await?;
                        }
                    }
                }
                Ok(())
            }
            Came::Answer(id) => self.hear_answer(text, &id).await,
            Came::Complaint | Came::Other | Came::Nonsense => self.pass_on(text).await,
        }
    }

    async fn hear_answer(&self, mut text: String, id: &Id) -> Result<(), Unheard> {
        let Some(flight) = self.flights.end(id) else { return Ok(()) };
        match flight.waits_for {
            Awaited::Version => {
                let version = reading::chosen_version(&text);
                self.spoken().version = version.and_then(|version| HeaderValue::from_str(&version).ok());
            }
            Awaited::Tools if flight.stateless => {
                let unusable = self.marked().learn(&mut text);
                for Unusable { tool, why } in unusable {
                    self.remark(format!("the tool {tool} cannot be called over HTTP: {why}")).await;
                }
            }
            Awaited::Tools => {}
            Awaited::Nothing => {}
        }
        self.pass_on(text).await
    }

    /// What a server is told of who is asking.
    pub(super) fn given(&self) -> Given {
        Given::by(&self.headers)
    }

    /// Does it answer something that is under way?
    pub(super) fn is_answer(&self, frame: &[u8]) -> bool {
        matches!(str::from_utf8(frame).map(reading::came), Ok(Came::Answer(_)))
    }

    async fn pass_on(&self, text: String) -> Result<(), Unheard> {
        self.say(Heard::Frame(Inbound::counted(on_one_line(text), &self.inbound))).await
    }

    async fn say(&self, heard: Heard) -> Result<(), Unheard> {
        self.heard.send(heard).await.map_err(|_| Unheard)
    }

    pub(super) async fn too_long(&self, begins: &[u8]) {
        let why = Noise::TooLong { most: self.frame_max };
        // Who does not listen needs no news.
        let _ = self.noise(begins, why).await;
        // Whoever waits for an answer is told with the end of it.
        let asked = Glimpse::all(begins).into_iter().filter(|glimpse| glimpse.sort == Sort::Question);
        for glimpse in asked {
            let _ = self.say(Heard::Refused { glimpse, why }).await;
        }
    }

    pub(super) async fn noise(&self, bytes: &[u8], why: Noise) -> Result<(), Unheard> {
        let begins = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned();
        self.say(Heard::Noise { begins, why }).await
    }

    pub(super) async fn remark(&self, words: String) {
        let _ = self.say(Heard::Remark(self.without_secrets(words))).await;
    }

    pub(super) fn without_secrets(&self, words: String) -> String {
        self.secrets.iter().fold(words, |words, secret| words.replace(secret.as_str(), "[redacted]"))
    }

    /// The session is over, and with it all that was under way.
    pub(super) fn expire(&self) {
        self.spoken().is_over = true;
        // Once is enough.
        let _ = self.expired.try_send(());
    }

    /// Tells that the session is over, and of each call that the server did not take because of it. A session in which nothing
    /// was ever done is as bad as a server that died.
    pub(super) async fn tell_of_expiry(&self, untaken: Vec<Id>) {
        for id in untaken {
            // In words that nobody takes for those of a server that may have begun.
            let why = Unanswered {
                words: "the server had forgotten us, and is greeted anew".to_owned(),
                http_status: None,
                retry_after: Some(NEXT_SESSION),
                never_reached: true,
                is_final: false,
            };
            let _ = self.say(Heard::Unanswered { id, why }).await;
        }
        let gone = Gone { words: "the session expired".to_owned(), code: None };
        let has_served = self.spoken().has_served;
        let _ = self.say(if has_served { Heard::Expired(gone) } else { Heard::Gone(gone) }).await;
    }

    /// Tells the server that its session is needed no more.
    pub(super) async fn give_back_session(&self) {
        let (headers, in_session) = self.session_headers("application/json, text/event-stream");
        if in_session && !self.is_over() {
            let letter = Letter {
                method: Method::DELETE,
                headers,
                body: Bytes::new(),
                left: Left::default(),
                turn: None,
            };
            // It is a courtesy.
            let _ = timeout(FAREWELL, self.client.send(&self.url, letter)).await;
        }
    }
}

/// A frame is one line: what a server laid out over several means the same in one, as no string has a line end in it.
fn on_one_line(text: String) -> Vec<u8> {
    let mut frame = text.into_bytes();
    frame.truncate(frame.trim_ascii_end().len());
    frame.drain(..frame.len() - frame.trim_ascii_start().len());
    if let Some(first) = memchr::memchr2(b'\n', b'\r', &frame) {
        frame[first..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    }
    frame
}
