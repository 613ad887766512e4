//! A scripted MCP server on standard input and output, for tests, measurements and real agents: it fails, stalls, dies and talks
//! nonsense when it is asked to, keeps a log of all that reached it, and speaks both eras of the protocol.
//!
//! It is quick and simple on purpose: one thread reads, every frame is answered with one write, and only what takes its time
//! gets a thread of its own. It must never depend on the code that it tests.

mod calls;
mod catalog;
mod conformance;
mod state;
mod voice;

use std::collections::HashSet;
use std::env;
use std::fs::File;
use std::io::{self, BufRead};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use state::State;
use voice::Voice;

/// Versions with a handshake, the newest first.
const WITH_HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The one without.
const STATELESS: &str = "2026-07-28";

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// Which eras of the protocol it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Handshake,
    Stateless,
    Both,
}

/// What it was started with.
#[derive(Debug, Clone)]
struct Flags {
    /// Counters that survive a restart.
    state: Option<PathBuf>,
    /// Every request that came, one line of JSON each.
    log: Option<PathBuf>,
    era: Era,
    /// From the second start on, a tool says something else of itself.
    rug: bool,
    /// So many tools on a page of the list.
    page: usize,
    /// Only these tools are offered.
    only: Vec<String>,
    /// The first so many starts end at once.
    die_at_start: u64,
    /// It takes so long before it reads anything.
    slow_start: Duration,
    /// A file that only one at a time may hold; one that cannot have it ends at once.
    lock: Option<PathBuf>,
    /// It ends without a complaint as soon as it has answered a call.
    one_call: bool,
    /// It offers what the official conformance suite asks for, and nothing else.
    conformance: bool,
    /// It puts each answer into a list.
    lists: bool,
    /// What it calls itself.
    name: String,
}

/// What all threads share.
struct Peer {
    flags: Flags,
    voice: Voice,
    state: State,
    /// Tools that came later.
    grown: Mutex<Vec<Value>>,
    /// Requests that the client does not want any more.
    cancelled: Mutex<HashSet<String>>,
    /// Our own requests, and whom their answers are for: the id of the call that waits.
    asked: Mutex<Vec<(String, Value)>>,
    /// Calls that are answered together, and then never again.
    farewells: Mutex<Vec<Value>>,
    logs: Mutex<bool>,
    /// Has the client turned out to be one of the era without a handshake?
    stateless: AtomicBool,
}

fn main() -> io::Result<()> {
    let flags = Flags::read(env::args().skip(1)).map_err(io::Error::other)?;
    let state = State::open(flags.state.clone(), flags.log.clone())?;
    state.note(&json!({"start": state.start(), "args": env::args().skip(1).collect::<Vec<_>>()}))?;
    Voice::remark(&format!("{}: start {}", flags.name, state.start()));
    if state.start() <= flags.die_at_start {
        Voice::remark("fatal: it does not come up");
        leave(3);
    }
    let held = flags.lock.as_ref().map(File::create).transpose()?;
    if held.as_ref().is_some_and(|file| file.try_lock().is_err()) {
        state.note(&json!({"refused": "another one holds the lock"}))?;
        Voice::remark("fatal: another one holds the lock");
        leave(9);
    }
    thread::sleep(flags.slow_start);
    let voice = Voice::new(flags.lists);
    let peer = Arc::new(Peer {
        flags,
        voice,
        state,
        grown: Mutex::default(),
        cancelled: Mutex::default(),
        asked: Mutex::default(),
        farewells: Mutex::default(),
        logs: Mutex::new(false),
        stateless: AtomicBool::new(false),
    });
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        match serde_json::from_slice::<Value>(&line) {
            Ok(frame) => peer.take(frame)?,
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(error) => {
                peer.state.note(&json!({"unreadable": String::from_utf8_lossy(&line)}))?;
                let error = json!({"code": -32700, "message": format!("Parse error: {error}")});
                peer.voice.say(&json!({"jsonrpc": "2.0", "id": null, "error": error}))?;
            }
        }
        line.clear();
    }
    peer.state.note(&json!({"end": "standard input was closed"}))
}

impl Flags {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Flags, String> {
        let mut flags = Flags {
            state: None,
            log: None,
            era: Era::Both,
            rug: false,
            page: usize::MAX,
            only: Vec::new(),
            die_at_start: 0,
            slow_start: Duration::ZERO,
            lock: None,
            one_call: false,
            conformance: false,
            lists: false,
            name: "peer".to_owned(),
        };
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or(format!("{flag} wants a value"));
            let number = |text: String| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
            match flag.as_str() {
                "--state" => flags.state = Some(value()?.into()),
                "--log" => flags.log = Some(value()?.into()),
                "--rug" => flags.rug = true,
                "--conformance" => flags.conformance = true,
                "--lists" => flags.lists = true,
                "--page" => flags.page = number(value()?)?.max(1) as usize,
                "--only" => flags.only = value()?.split(',').map(str::to_owned).collect(),
                "--die-at-start" => flags.die_at_start = number(value()?)?,
                "--slow-start" => flags.slow_start = Duration::from_millis(number(value()?)?),
                "--lock" => flags.lock = Some(value()?.into()),
                "--one-call" => flags.one_call = true,
                "--name" => flags.name = value()?,
                "--era" => {
                    flags.era = match value()?.as_str() {
                        "handshake" => Era::Handshake,
                        "stateless" => Era::Stateless,
                        "both" => Era::Both,
                        other => return Err(format!("there is no era {other:?}")),
                    }
                }
                _ => return Err(format!("there is no flag {flag:?}")),
            }
        }
        Ok(flags)
    }
}

impl Peer {
    /// One frame from the client.
    fn take(self: &Arc<Peer>, frame: Value) -> io::Result<()> {
        let (id, method) = (frame.get("id").cloned(), frame["method"].as_str());
        match (method, id) {
            (Some(method), Some(id)) => self.request(id, method, &frame["params"]),
            (Some(method), None) => self.notification(method, &frame["params"]),
            (None, Some(id)) => self.answered(&id, &frame),
            (None, None) => self.state.note(&json!({ "strange": frame })),
        }
    }

    fn request(self: &Arc<Peer>, id: Value, method: &str, params: &Value) -> io::Result<()> {
        if is_stateless(params) {
            self.stateless.store(true, Ordering::Relaxed);
        }
        if method == "tools/call" {
            calls::take(self, id, params)?;
            if self.flags.one_call {
                leave(0);
            }
            return Ok(());
        }
        self.state.note(&json!({"id": id, "method": method, "params": params}))?;
        let handshake = self.flags.era != Era::Stateless;
        match method {
            "initialize" if handshake => {
                let wanted = params["protocolVersion"].as_str().unwrap_or_default();
                let version =
                    WITH_HANDSHAKE.iter().find(|known| **known == wanted).unwrap_or(&WITH_HANDSHAKE[0]);
                self.result(
                    &id,
                    json!({"protocolVersion": version, "capabilities": catalog::capabilities(),
                    "serverInfo": {"name": self.flags.name, "version": "1.0.0"}, "instructions": "Ask for what you need."}),
                )
            }
            "server/discover" if self.flags.era != Era::Handshake => {
                let asked = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
                match asked {
                    Some(STATELESS) | None => self.result(
                        &id,
                        json!({"resultType": "complete", "supportedVersions": [STATELESS],
                        "capabilities": catalog::capabilities(), "instructions": "Ask for what you need.",
                        "ttlMs": 60_000, "cacheScope": "private",
                        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": self.flags.name, "version": "1.0.0"}}}),
                    ),
                    Some(other) => self.voice.say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32022,
                        "message": format!("Unsupported protocol version {other}"),
                        "data": {"supported": [STATELESS], "requested": other}}})),
                }
            }
            "ping" if handshake => self.result(&id, json!({})),
            "logging/setLevel" if handshake => {
                *lock(&self.logs) = true;
                self.result(&id, json!({}))
            }
            "tools/list" => self.tools(&id, params),
            "resources/list" => self.result(&id, self.suits(conformance::resources, catalog::resources)()),
            "resources/templates/list" => {
                self.result(&id, self.suits(conformance::templates, catalog::templates)())
            }
            "resources/read" => match self.resource(params["uri"].as_str().unwrap_or_default()) {
                Some(found) => self.result(&id, found),
                None => {
                    let data = json!({"uri": params["uri"]});
                    self.voice.say(&json!({"jsonrpc": "2.0", "id": id,
                        "error": {"code": -32002, "message": "Resource not found", "data": data}}))
                }
            },
            "resources/subscribe" | "resources/unsubscribe" => {
                self.result(&id, json!({}))?;
                self.voice.notify("notifications/resources/updated", &json!({"uri": params["uri"]}))
            }
            "prompts/list" => self.result(&id, self.suits(conformance::prompts, catalog::prompts)()),
            "prompts/get" => {
                match self.prompt(params["name"].as_str().unwrap_or_default(), &params["arguments"]) {
                    Some(found) => self.result(&id, found),
                    None => self.error(&id, INVALID_PARAMS, "Unknown prompt"),
                }
            }
            "completion/complete" => self.result(
                &id,
                json!({"completion": {"values": ["tide", "tidal"], "total": 2, "hasMore": false}}),
            ),
            // A request of a time to come, which nobody between us can know.
            "vendor/anything" => {
                self.result(&id, json!({"saw": params, "vendorField": [1, 2.50, null, {"b": 1, "a": 2}]}))
            }
            unknown => self.error(&id, METHOD_NOT_FOUND, &format!("Method not found: {unknown}")),
        }
    }

    fn notification(&self, method: &str, params: &Value) -> io::Result<()> {
        self.state.note(&json!({"notification": method, "params": params}))?;
        if method == "notifications/cancelled" {
            lock(&self.cancelled).insert(params["requestId"].to_string());
        }
        Ok(())
    }

    /// The client answers what we asked: the call that waits for it has its result.
    fn answered(&self, id: &Value, frame: &Value) -> io::Result<()> {
        self.state.note(&json!({"answer": frame}))?;
        let mut asked = lock(&self.asked);
        let Some(place) = asked.iter().position(|(own, _)| id == own) else { return Ok(()) };
        let (_, call) = asked.swap_remove(place);
        drop(asked);
        let said = frame.get("result").or(frame.get("error")).cloned().unwrap_or_default();
        self.text(&call, &format!("the client says {said}"))
    }

    fn tools(&self, id: &Value, params: &Value) -> io::Result<()> {
        let rugged = self.flags.rug && self.state.start() > 1;
        let mut all = match self.flags.conformance {
            true => conformance::tools(),
            false => catalog::tools(rugged),
        };
        all.extend(lock(&self.grown).iter().cloned());
        if !self.flags.only.is_empty() {
            all.retain(|tool| self.flags.only.iter().any(|name| tool["name"] == **name));
        }
        let from: usize = params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let page: Vec<Value> = all.iter().skip(from).take(self.flags.page).cloned().collect();
        let mut list = json!({ "tools": page });
        let next = from.saturating_add(self.flags.page);
        if next < all.len() {
            list["nextCursor"] = json!(next.to_string());
        }
        self.result(id, list)
    }

    /// Which of two: what the suite wants, or our own.
    fn suits(&self, suite: fn() -> Value, own: fn() -> Value) -> fn() -> Value {
        if self.flags.conformance { suite } else { own }
    }

    fn resource(&self, uri: &str) -> Option<Value> {
        if self.flags.conformance { conformance::resource(uri) } else { catalog::resource(uri) }
    }

    fn prompt(&self, name: &str, arguments: &Value) -> Option<Value> {
        match self.flags.conformance {
            true => conformance::prompt(name, arguments),
            false => catalog::prompt(name, arguments),
        }
    }

    fn result(&self, id: &Value, mut result: Value) -> io::Result<()> {
        if self.stateless.load(Ordering::Relaxed) && result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
            let is_list = ["tools", "resources", "resourceTemplates", "prompts", "contents"];
            if is_list.iter().any(|key| result.get(key).is_some()) {
                result["ttlMs"] = json!(60_000);
                result["cacheScope"] = json!("private");
            }
        }
        self.voice.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn error(&self, id: &Value, code: i64, message: &str) -> io::Result<()> {
        self.voice.say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
    }

    /// A tool's result that is one text.
    fn text(&self, id: &Value, text: &str) -> io::Result<()> {
        self.result(id, json!({"content": [{"type": "text", "text": text}]}))
    }

    /// A tool's failure that is one text.
    fn failure(&self, id: &Value, text: &str) -> io::Result<()> {
        self.result(id, json!({"content": [{"type": "text", "text": text}], "isError": true}))
    }

    fn is_cancelled(&self, id: &Value) -> bool {
        lock(&self.cancelled).contains(&id.to_string())
    }
}

/// Does this request come from a client of the era without a handshake?
fn is_stateless(params: &Value) -> bool {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] == STATELESS
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the process at once, with whatever is under way.
#[expect(clippy::exit, reason = "a server that dies is what is wanted")]
fn leave(code: i32) -> ! {
    std::process::exit(code)
}
