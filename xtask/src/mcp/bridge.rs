//! Streamable HTTP in front of a server on pipes, so that a suite which only knows URLs can test what only knows pipes.
//!
//! It understands nothing but ids: a request's answer goes back on the stream of its own POST, and whatever else the server says
//! meanwhile goes on the newest one. It is a test's bridge on loopback: no resuming, no stream for GET.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::Value;

use crate::Fault;

/// Starts the server of a new session.
type Starter = Box<dyn Fn() -> Command + Send + Sync>;

/// A request by its id, and where its stream is fed.
type Waiting = (String, Sender<String>);

/// A bridge that is open.
pub struct Bridge {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    starter: Starter,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    count: AtomicU64,
    done: AtomicBool,
}

/// One client's server.
struct Session {
    child: Mutex<Child>,
    to: Mutex<Option<ChildStdin>>,
    /// Who waits, the newest last. Nothing once the server is gone.
    waiting: Mutex<Option<Vec<Waiting>>>,
}

/// A request as far as it matters here.
struct Asked {
    method: String,
    host: String,
    origin: Option<String>,
    session: Option<String>,
    body: String,
}

impl Bridge {
    /// Opens one on any port of loopback.
    pub fn open(starter: Starter) -> Result<Bridge, Fault> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            starter,
            sessions: Mutex::default(),
            count: AtomicU64::new(0),
            done: AtomicBool::new(false),
        });
        let bridge = Bridge { port, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.done.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    // Who asked may be gone by now.
                    let _unheard = shared.serve(&stream);
                });
            }
        });
        Ok(bridge)
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.shared.done.store(true, Ordering::Relaxed);
        lock(&self.shared.sessions).drain().for_each(|(_, session)| session.end());
        // The listener wakes up once more and sees that it is over.
        let _woken = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl Shared {
    fn serve(&self, stream: &TcpStream) -> Result<(), Fault> {
        let asked = read(stream)?;
        let is_local =
            |name: &str| ["127.0.0.1", "localhost", "[::1]"].iter().any(|local| name.starts_with(local));
        let origin = asked.origin.as_deref().and_then(|origin| origin.split_once("//")).map(|(_, host)| host);
        if !is_local(&asked.host) || origin.is_some_and(|origin| !is_local(origin)) {
            return plain(stream, "403 Forbidden");
        }
        let known = asked.session.as_ref().and_then(|id| lock(&self.sessions).get(id).cloned());
        match asked.method.as_str() {
            "DELETE" => {
                let gone = asked.session.and_then(|id| lock(&self.sessions).remove(&id));
                gone.inspect(|session| session.end());
                return plain(stream, "200 OK");
            }
            "POST" => {}
            _ => return plain(stream, "405 Method Not Allowed"),
        }
        let Ok(frame) = serde_json::from_str::<Value>(&asked.body) else {
            return plain(stream, "400 Bad Request");
        };
        let is_hello = frame["method"] == "initialize" || frame["method"] == "server/discover";
        let (name, session) = match (known, asked.session) {
            (Some(session), Some(name)) => (name, session),
            (None, None) if is_hello => self.begin()?,
            (None, Some(_)) => return plain(stream, "404 Not Found"),
            (None | Some(_), None) => return plain(stream, "400 Bad Request"),
        };
        let line = frame.to_string();
        let Some(id) = frame.get("id").filter(|_| frame.get("method").is_some()) else {
            session.say(&line)?;
            return plain(stream, "202 Accepted");
        };
        let id = id.to_string();
        let (feed, fed) = mpsc::channel();
        match lock(&session.waiting).as_mut() {
            Some(waiting) => waiting.push((id.clone(), feed)),
            None => return plain(stream, "502 Bad Gateway"),
        }
        session.say(&line)?;
        let mut out = stream;
        write!(
            out,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nConnection: close\r\n\
             Mcp-Session-Id: {name}\r\n\r\n"
        )?;
        // It ends with the answer, or with the server.
        for said in fed {
            write!(out, "event: message\ndata: {said}\n\n")?;
            out.flush()?;
        }
        if let Some(waiting) = lock(&session.waiting).as_mut() {
            waiting.retain(|(waiting, _)| *waiting != id);
        }
        Ok(())
    }

    fn begin(&self) -> Result<(String, Arc<Session>), Fault> {
        let mut command = (self.starter)();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let from = child.stdout.take().ok_or("no standard output")?;
        let to = Mutex::new(child.stdin.take());
        let session =
            Arc::new(Session { child: Mutex::new(child), to, waiting: Mutex::new(Some(Vec::new())) });
        let name = format!("session-{}", self.count.fetch_add(1, Ordering::Relaxed));
        lock(&self.sessions).insert(name.clone(), Arc::clone(&session));
        let heard = Arc::clone(&session);
        thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                heard.hear(&line);
            }
            *lock(&heard.waiting) = None;
        });
        Ok((name, session))
    }
}

impl Session {
    fn say(&self, line: &str) -> Result<(), Fault> {
        let mut to = lock(&self.to);
        Ok(to.as_mut().ok_or("the session is over")?.write_all(format!("{line}\n").as_bytes())?)
    }

    /// One line of the server.
    fn hear(&self, line: &str) {
        let Ok(frame) = serde_json::from_str::<Value>(line) else { return };
        let mut waiting = lock(&self.waiting);
        let Some(waiting) = waiting.as_mut() else { return };
        let is_answer = frame.get("method").is_none();
        let id = frame["id"].to_string();
        let place = match is_answer {
            true => waiting.iter().position(|(wanted, _)| *wanted == id),
            false => waiting.len().checked_sub(1),
        };
        let Some(place) = place else { return };
        // Who asked may not listen any more.
        let _unheard = waiting[place].1.send(line.to_owned());
        if is_answer {
            // With its sender the stream ends.
            waiting.remove(place);
        }
    }

    fn end(&self) {
        *lock(&self.to) = None;
        let mut child = lock(&self.child);
        for _ in 0..100 {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(std::time::Duration::from_millis(10));
        }
        // It may just have ended by itself.
        let _gone = child.kill();
        let _reaped = child.wait();
    }
}

fn read(stream: &TcpStream) -> Result<Asked, Fault> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let method = line.split(' ').next().unwrap_or_default().to_owned();
    let mut asked = Asked { method, host: String::new(), origin: None, session: None, body: String::new() };
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim().to_owned();
        match name.to_ascii_lowercase().as_str() {
            "host" => asked.host = value,
            "origin" => asked.origin = Some(value),
            "mcp-session-id" => asked.session = Some(value),
            "content-length" => length = value.parse()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    asked.body = String::from_utf8(body)?;
    Ok(asked)
}

fn plain(mut stream: &TcpStream, status: &str) -> Result<(), Fault> {
    Ok(write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
