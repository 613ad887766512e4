//! A server on loopback that says exactly what a test wants, and somebody who speaks to it over a link.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use unstuck_wire::mcp::Id;

use super::super::{HttpSettings, open};
use crate::mcp::link::{Asks, Heard, Link, Noise, Outbound};
use crate::mcp::loads::Loads;

/// One request that came to the server.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub(super) fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub(super) fn asks(&self, method: &str) -> bool {
        self.message()["method"] == method
    }

    pub(super) fn id(&self) -> String {
        self.message()["id"].to_string()
    }
}

/// What the server does.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Say(Vec<u8>),
    Wait(u64),
    /// It waits until so many requests have come.
    Until(usize),
    /// It keeps the connection and says nothing.
    Hang,
    Close,
}

pub(super) fn status(line: &str, body: &str) -> Vec<Act> {
    vec![Act::Say(format!("HTTP/1.1 {line}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())]
}

pub(super) fn json(body: &str) -> Vec<Act> {
    status("200 OK\r\nContent-Type: application/json", body)
}

/// The answer to a request: `{"id":…,"result":"ok"}`.
pub(super) fn ok(seen: &Seen) -> Vec<Act> {
    json(&format!(r#"{{"id":{},"result":"ok"}}"#, seen.id()))
}

pub(super) fn events(text: &str) -> Vec<Act> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    vec![Act::Say(format!("{head}{text}").into_bytes()), Act::Close]
}

/// A server, and a link to it.
pub(super) struct Talk {
    pub(super) link: Link,
    pub(super) url: String,
    pub(super) seen: Arc<Mutex<Vec<Seen>>>,
    /// How many connections are open, and how many there were.
    pub(super) connections: Arc<Mutex<(usize, usize)>>,
}

/// Starts a server and opens a link to it.
pub(super) async fn talk(plays: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static) -> Talk {
    talk_with(plays, |_| {}).await
}

pub(super) async fn talk_with(
    plays: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static,
    set: impl Fn(&mut HttpSettings),
) -> Talk {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let seen = Arc::default();
    let connections = Arc::default();
    tokio::spawn(serve(listener, Arc::new(plays), Arc::clone(&seen), Arc::clone(&connections)));
    let mut settings = HttpSettings::new(url.parse().unwrap());
    settings.connect_limit = Duration::from_secs(2);
    set(&mut settings);
    Talk { link: open(settings, Loads::from_server()), url, seen, connections }
}

async fn serve(
    listener: TcpListener,
    plays: Arc<impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static>,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<Mutex<(usize, usize)>>,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (plays, seen, connections) = (Arc::clone(&plays), Arc::clone(&seen), Arc::clone(&connections));
        tokio::spawn(async move {
            {
                let mut counted = connections.lock().unwrap();
                *counted = (counted.0 + 1, counted.1 + 1);
            }
            converse(stream, &*plays, &seen).await;
            connections.lock().unwrap().0 -= 1;
        });
    }
}

async fn converse(stream: TcpStream, plays: &impl Fn(&Seen) -> Vec<Act>, seen: &Mutex<Vec<Seen>>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream).await {
        seen.lock().unwrap().push(request.clone());
        for act in plays(&request) {
            match act {
                Act::Say(bytes) => {
                    if stream.get_mut().write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Act::Wait(millis) => sleep(Duration::from_millis(millis)).await,
                Act::Until(many) => {
                    while seen.lock().unwrap().len() < many {
                        sleep(Duration::from_millis(10)).await;
                    }
                }
                Act::Hang => {
                    // Until the other side hangs up.
                    while stream.read(&mut [0; 64]).await.is_ok_and(|count| count > 0) {}
                    return;
                }
                Act::Close => return,
            }
        }
    }
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut seen = Seen { method, path, headers, body: String::new() };
    let mut body = vec![0; seen.header("content-length").parse().unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    seen.body = String::from_utf8(body).ok()?;
    Some(seen)
}

/// A request in the version that knows no sessions.
pub(super) fn modern(id: &str, method: &str, params: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    let comma = if params.is_empty() { "" } else { "," };
    format!(r#"{{"id":{id},"method":"{method}","params":{{{params}{comma}{meta}}}}}"#)
}

pub(super) const INITIALIZE: &str = r#"{"id":0,"method":"initialize","params":{}}"#;
pub(super) const INITIALIZED: &str = r#"{"method":"notifications/initialized"}"#;

/// What a server with sessions does until it is ready; all else is left to `then`. It offers no stream of its own.
pub(super) fn with_session(
    then: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static {
    move |seen| match seen.method.as_str() {
        "POST" if seen.asks("initialize") => status(
            "200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s1",
            r#"{"id":0,"result":{"protocolVersion":"2025-11-25"}}"#,
        ),
        "POST" if seen.asks("notifications/initialized") => status("202 Accepted", ""),
        "GET" if seen.header("last-event-id").is_empty() => status("405 Method Not Allowed", ""),
        "DELETE" => status("200 OK", ""),
        _ => then(seen),
    }
}

impl Talk {
    /// Says something, as the one in the middle would.
    pub(super) fn say(&self, frame: &str) {
        let message: Value = serde_json::from_str(frame).unwrap_or_default();
        let asks = message["method"].as_str().zip(Id::of(&message["id"].to_string()));
        let asks = asks.map(|(method, id)| Asks { id, method: method.to_owned(), name: None });
        self.link.to.send(Outbound::new(frame.as_bytes().to_vec(), asks)).unwrap();
    }

    /// The next thing that is heard.
    pub(super) async fn hear(&mut self) -> String {
        match timeout(Duration::from_secs(10), self.link.from.recv()).await {
            Err(_) => "silence".to_owned(),
            Ok(None) => "end".to_owned(),
            Ok(Some(heard)) => told(heard),
        }
    }

    /// Is there nothing to be heard for a while?
    pub(super) async fn is_silent(&mut self) -> bool {
        timeout(Duration::from_millis(300), self.link.from.recv()).await.is_err()
    }

    /// Shakes hands with a server that has sessions.
    pub(super) async fn greet(&mut self) {
        self.say(INITIALIZE);
        assert!(self.hear().await.contains("protocolVersion"));
        self.say(INITIALIZED);
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The requests that the server saw, in short.
    pub(super) fn journal(&self) -> Vec<String> {
        let names = ["mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id"];
        let line = |seen: &Seen| {
            let mut line = seen.method.clone();
            if let Some(method) = seen.message()["method"].as_str() {
                let _ = write!(line, " {method}");
            }
            for name in names {
                match seen.header(name) {
                    "" => {}
                    value => drop(write!(line, " {}={value}", name.trim_start_matches("mcp-"))),
                }
            }
            line
        };
        self.seen().iter().map(line).collect()
    }

    /// Waits until something holds.
    pub(super) async fn until(&self, holds: impl Fn(&Talk) -> bool) {
        for _ in 0..500 {
            if holds(self) {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("it never came to that: {:#?}", self.journal());
    }
}

/// What was heard, in one line.
fn told(heard: Heard) -> String {
    match heard {
        Heard::Frame(frame) => String::from_utf8(frame.frame).unwrap(),
        Heard::Noise { begins, why } => {
            let why = match why {
                Noise::TooLong { most } => format!("too long for {most}"),
                Noise::NotText => "no text".to_owned(),
            };
            format!("noise, {why}: {}", &begins[..begins.len().min(16)])
        }
        Heard::Refused { glimpse, why } => {
            format!("{} refused: {}", glimpse.id.as_ref().map_or("null", Id::json), why.in_words())
        }
        Heard::Unanswered { id, why } => {
            let mut line = format!("{id} unanswered: {}", why.words.lines().next().unwrap_or_default());
            if let Some(status) = why.http_status {
                let _ = write!(line, " [{status}]");
            }
            if let Some(wait) = why.retry_after {
                let _ = write!(line, " after {} ms", wait.as_millis());
            }
            line + if why.never_reached { " (never reached)" } else { "" }
        }
        Heard::Remark(words) => format!("remark: {words}"),
        Heard::Expired(gone) => format!("expired: {}", gone.words),
        Heard::Gone(gone) => format!("gone: {}", gone.words),
    }
}
