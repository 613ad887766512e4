//! A server that is reached over HTTP forgets sessions, is started again in the middle of an answer, and refuses tokens.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, wait_for};
use crate::world::World;

/// A server with sessions, whose tools are played by a test.
struct Host {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// How many sessions there were. Only the last one is known.
    sessions: u64,
    /// The tools that were called, in their order.
    called: Vec<String>,
    /// Nobody is let in.
    wants_login: bool,
    /// It takes no connections and ends those that it has.
    is_down: bool,
}

/// What a tool does.
#[derive(Clone, Copy)]
enum Plays {
    /// It answers.
    Answers,
    /// It begins a stream that can be taken up. Then the server is down for a while, and comes back without any memory.
    Dies,
}

impl Host {
    fn start(plays: fn(&str, usize) -> Plays) -> Host {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = Host { address: listener.local_addr().unwrap(), state: Arc::default() };
        host.serve(listener, plays);
        host
    }

    fn serve(&self, listener: TcpListener, plays: fn(&str, usize) -> Plays) {
        let (state, address) = (Arc::clone(&self.state), self.address);
        thread::spawn(move || {
            let mut listener = Some(listener);
            loop {
                let accepted = listener.as_ref().unwrap().accept();
                if state.lock().unwrap().is_down {
                    drop((accepted, listener.take()));
                    thread::sleep(Duration::from_secs(1));
                    listener = Some(TcpListener::bind(address).unwrap());
                    let mut state = state.lock().unwrap();
                    state.is_down = false;
                    state.sessions += 1;
                    continue;
                }
                if let Ok((stream, _)) = accepted {
                    let state = Arc::clone(&state);
                    thread::spawn(move || converse(stream, &state, plays));
                }
            }
        });
    }

    fn client(&self, world: &World, args: &[&str]) -> Client {
        let url = format!("http://{}/mcp", self.address);
        let mut command = world.command(&[&["mcp", "--name", "host", "--url", &url], args].concat());
        command.env("HOST_TOKEN", "a-token-of-no-worth");
        Client::by(command)
    }

    /// A client that knows the tools.
    fn ready(&self, world: &World) -> Client {
        let mut client = self.client(world, &[]);
        client.introduce("tester");
        client.ask("tools/list", json!({}));
        client
    }

    fn forget_session(&self) {
        self.state.lock().unwrap().sessions += 1;
    }

    fn called(&self) -> Vec<String> {
        self.state.lock().unwrap().called.clone()
    }
}

fn converse(stream: TcpStream, state: &Mutex<State>, plays: fn(&str, usize) -> Plays) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let is_post = line.starts_with("POST");
        let (mut length, mut session) = (0, None);
        loop {
            line.clear();
            stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().ok()?,
                "mcp-session-id" => session = value.trim().parse::<u64>().ok(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
        let mut known = state.lock().unwrap();
        if known.is_down {
            return None;
        }
        let method = asked["method"].as_str().unwrap_or_default();
        let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
        let (status, more, body) = match method {
            _ if known.wants_login => ("401 Unauthorized", String::new(), Value::Null),
            "initialize" => {
                known.sessions += 1;
                let welcome = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                    "serverInfo": { "name": "host", "version": "1" } });
                ("200 OK", format!("Mcp-Session-Id: {}\r\n", known.sessions), answer(welcome))
            }
            _ if session != Some(known.sessions) => ("404 Not Found", String::new(), Value::Null),
            _ if !is_post => ("405 Method Not Allowed", String::new(), Value::Null),
            "tools/list" => {
                let tool = |name: &str, annotations: Value| json!({ "name": name, "inputSchema": { "type": "object" }, "annotations": annotations });
                let tools = [
                    tool("look", json!({ "readOnlyHint": true })),
                    tool("write", json!({})),
                    tool("erase", json!({ "destructiveHint": true })),
                ];
                ("200 OK", String::new(), answer(json!({ "tools": tools })))
            }
            "tools/call" => {
                let name = asked["params"]["name"].as_str()?.to_owned();
                let times = known.called.iter().filter(|called| **called == name).count();
                known.called.push(name.clone());
                match plays(&name, times) {
                    Plays::Answers => {
                        let said = json!({ "content": [{ "type": "text", "text": format!("{name} done") }] });
                        ("200 OK", String::new(), answer(said))
                    }
                    Plays::Dies => {
                        let begins = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
                                      retry: 50\nid: 1\ndata:\n\n";
                        stream.get_mut().write_all(begins.as_bytes()).ok()?;
                        known.is_down = true;
                        // Whoever waits for the next connection looks up.
                        drop(TcpStream::connect(stream.get_ref().local_addr().ok()?));
                        return None;
                    }
                }
            }
            _ => ("202 Accepted", String::new(), Value::Null),
        };
        drop(known);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let length = body.len();
        let said = format!("HTTP/1.1 {status}\r\n{kind}{more}Content-Length: {length}\r\n\r\n{body}");
        stream.get_mut().write_all(said.as_bytes()).ok()?;
    }
}

#[test]
fn calls_that_find_their_session_over_are_sent_again_in_the_next_one_also_if_they_write() {
    let world = World::empty();
    let host = Host::start(|_, _| Plays::Answers);
    let mut client = host.ready(&world);
    assert_eq!(client.works("write", json!({ "n": 0 })), "write done");
    // A server that died so often would be left alone.
    for n in 1..=7 {
        host.forget_session();
        let ids = [n, n + 100].map(|n| client.send_call("write", json!({ "n": n })));
        for id in ids {
            let answer = client.answer(id);
            assert_eq!(
                answer["result"]["content"],
                json!([{ "type": "text", "text": "write done" }]),
                "{answer}"
            );
        }
    }
    assert_eq!(host.called().len(), 15, "each is done once");
}

#[test]
fn of_a_call_that_is_never_sent_twice_it_is_told_that_nothing_was_done() {
    let world = World::empty();
    let host = Host::start(|_, _| Plays::Answers);
    let mut client = host.ready(&world);
    host.forget_session();
    let told = client.fails("erase", json!({}));
    assert_eq!(told["retryable"], true, "{told}");
    let said = told.to_string();
    assert!(said.contains("never reached the server"), "{said}");
    assert!(!said.contains("may have") && !said.contains("took effect"), "{said}");
    assert_eq!(client.works("erase", json!({})), "erase done");
}

#[test]
fn a_list_that_finds_its_session_over_is_asked_for_again() {
    let world = World::empty();
    let host = Host::start(|_, _| Plays::Answers);
    let mut client = host.ready(&world);
    host.forget_session();
    assert_eq!(client.ask("tools/list", json!({}))["tools"].as_array().unwrap().len(), 3);
}

#[test]
fn a_call_that_only_looks_is_sent_again_when_its_server_dies_in_the_middle() {
    let world = World::empty();
    let host = Host::start(|_, times| if times == 0 { Plays::Dies } else { Plays::Answers });
    let mut client = host.ready(&world);
    assert_eq!(client.works("look", json!({})), "look done");
    assert_eq!(host.called(), ["look", "look"]);
}

#[test]
fn a_call_that_may_write_is_not_sent_again_when_its_server_dies_in_the_middle() {
    let world = World::empty();
    let host = Host::start(|_, times| if times == 0 { Plays::Dies } else { Plays::Answers });
    let mut client = host.ready(&world);
    let told = client.fails("write", json!({}));
    assert!(told["recommendations"][0].as_str().unwrap().contains("may have done its work"), "{told}");
    wait_for("it does not come back", || !host.state.lock().unwrap().is_down);
    assert_eq!(host.called(), ["write"]);
}

#[test]
fn a_token_that_is_refused_is_told_apart_from_one_that_is_missing() {
    let world = World::empty();
    let host = Host::start(|_, _| Plays::Answers);
    host.state.lock().unwrap().wants_login = true;
    let told = |args: &[&str]| {
        let mut client = host.client(&world, args);
        let id = client.send("initialize", json!({ "protocolVersion": "2025-06-18", "capabilities": {} }));
        client.answer(id)["error"]["message"].to_string()
    };
    let (with, without) = (told(&["--bearer-env", "HOST_TOKEN"]), told(&[]));
    assert!(with.contains("refused the token") && !with.contains("a-token"), "{with}");
    assert!(without.contains("a token with `--bearer-env`"), "{without}");
}
