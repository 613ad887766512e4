//! A client of `unstuck mcp`: a real process on pipes, and nobody ever waits for it without a limit.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::World;

/// Whatever takes longer does not come any more, also on a machine that has much to do.
pub(super) const LIMIT: Duration = Duration::from_secs(40);

/// Somebody who talks to a server through unstuck.
pub(super) struct Client {
    child: Child,
    to: Option<Sender<Vec<u8>>>,
    writes: Option<JoinHandle<()>>,
    lines: Receiver<Vec<u8>>,
    remarks: Arc<Mutex<String>>,
    asked: u64,
    /// What came while something else was waited for.
    pub(super) aside: Vec<Value>,
}

/// The scripted server.
pub(super) fn peer() -> String {
    let exe = std::env::current_exe().unwrap();
    let path = exe.parent().and_then(|deps| deps.parent()).unwrap().join("examples/mcp_peer");
    assert!(path.exists(), "{} is missing: cargo build --package unstuck-cli --examples", path.display());
    path.to_str().unwrap().to_owned()
}

impl Client {
    /// Starts the proxy in front of any command.
    pub(super) fn start(world: &World, args: &[&str], server: &[&str]) -> Client {
        Client::with_variables(world, args, server, &[])
    }

    pub(super) fn with_variables(
        world: &World,
        args: &[&str],
        server: &[&str],
        variables: &[(&str, &str)],
    ) -> Client {
        let mut command = world.command(&[&["mcp"], args, &["--"], server].concat());
        command.envs(variables.iter().copied());
        Client::by(command)
    }

    /// Starts a command that is the proxy, or becomes it.
    pub(super) fn by(mut command: Command) -> Client {
        let mut child = command.spawn().unwrap();
        let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let (to, frames) = channel::<Vec<u8>>();
        let writes = thread::spawn(move || write_all(&mut stdin, &frames));
        let (tell, lines) = channel();
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                if tell.send(std::mem::take(&mut line)).is_err() {
                    // It is not read any more, and not held up either.
                    return;
                }
            }
        });
        let remarks = Arc::<Mutex<String>>::default();
        let heard = Arc::clone(&remarks);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stderr.read(&mut buffer) {
                heard.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
        });
        Client { child, to: Some(to), writes: Some(writes), lines, remarks, asked: 0, aside: Vec::new() }
    }

    /// Starts the proxy in front of the scripted server, whose log and counters lie in the world.
    pub(super) fn of_peer(world: &World, args: &[&str], flags: &[&str]) -> Client {
        let (peer, log, state) = (peer(), at(world, "peer.log"), at(world, "peer.state"));
        let named = ["--name", "peer"];
        let server = [&[&*peer, "--log", &log, "--state", &state], flags].concat();
        Client::start(world, &[&named, args].concat(), &server)
    }

    /// The same, introduced and with the list of tools read.
    pub(super) fn ready(world: &World, args: &[&str], flags: &[&str]) -> Client {
        let mut client = Client::of_peer(world, args, flags);
        client.introduce("tester");
        client.ask("tools/list", json!({}));
        client
    }

    pub(super) fn introduce(&mut self, name: &str) -> Value {
        let welcome = self.ask(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": { "sampling": {}, "elicitation": {} },
                "clientInfo": { "name": name, "version": "1.2.3" } }),
        );
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        welcome
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says a line.
    pub(super) fn say(&self, line: &str) {
        self.write([line.as_bytes(), b"\n"].concat());
    }

    /// Writes any bytes, in one piece.
    pub(super) fn write(&self, bytes: Vec<u8>) {
        self.to.as_ref().unwrap().send(bytes).unwrap();
    }

    /// The next line, as it came; nothing where none comes.
    pub(super) fn line_within(&mut self, limit: Duration) -> Option<String> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => Some(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned()),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// The next line.
    #[track_caller]
    pub(super) fn line(&mut self) -> String {
        let line = self.line_within(LIMIT);
        line.unwrap_or_else(|| panic!("nothing came; it wrote to standard error:\n{}", self.remarks()))
    }

    /// The next frame.
    #[track_caller]
    pub(super) fn hear(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Fails if anything comes.
    #[track_caller]
    pub(super) fn hears_nothing_for(&mut self, time: Duration) {
        if let Some(line) = self.line_within(time) {
            panic!("this came: {line}");
        }
    }

    /// Asks without waiting. Returns the number of the question.
    pub(super) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    pub(super) fn send_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// The answer to a question; whatever else comes is put aside.
    #[track_caller]
    pub(super) fn answer(&mut self, id: u64) -> Value {
        if let Some(place) = self.aside.iter().position(|frame| is_answer(frame, id)) {
            return self.aside.remove(place);
        }
        let until = Instant::now() + LIMIT;
        while Instant::now() < until {
            let frame = self.hear();
            if is_answer(&frame, id) {
                return frame;
            }
            self.aside.push(frame);
        }
        panic!("no answer to {id}");
    }

    /// The result of a request.
    #[track_caller]
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer(id);
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    /// The result of a call.
    #[track_caller]
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// What a call that works says.
    #[track_caller]
    pub(super) fn works(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], json!(true), "{result}");
        text(&result, 0)
    }

    /// What unstuck says of a call that fails: the last block, which is the envelope.
    #[track_caller]
    pub(super) fn fails(&mut self, tool: &str, arguments: Value) -> Value {
        envelope(&self.call(tool, arguments))
    }

    /// What was written to standard error so far.
    pub(super) fn remarks(&self) -> String {
        self.remarks.lock().unwrap().clone()
    }

    /// Nothing more is said.
    pub(super) fn close(&mut self) {
        drop(self.to.take());
        drop(self.writes.take());
    }

    /// Waits for the end. The exit code, and what came last.
    #[track_caller]
    pub(super) fn end(mut self) -> (i32, Vec<String>) {
        self.close();
        let code = self.exit_within(LIMIT);
        let mut rest = Vec::new();
        while let Some(line) = self.line_within(Duration::from_secs(2)) {
            rest.push(line);
        }
        (code, rest)
    }

    /// The exit code of one that ends by itself.
    #[track_caller]
    pub(super) fn exit_within(&mut self, limit: Duration) -> i32 {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
            }
            assert!(Instant::now() < until, "it does not end: {}", self.remarks());
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.pid().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
        // One that is asked to end ends its server, too; one that does not even do that is killed.
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            self.signal("TERM");
            let until = Instant::now() + Duration::from_secs(10);
            while Instant::now() < until && self.child.try_wait().is_ok_and(|status| status.is_none()) {
                thread::sleep(Duration::from_millis(5));
            }
        }
        let _it_has_ended = self.child.kill();
        let _it_has_been_waited_for = self.child.wait();
    }
}

fn write_all(stdin: &mut ChildStdin, frames: &Receiver<Vec<u8>>) {
    for frame in frames {
        if stdin.write_all(&frame).is_err() {
            return;
        }
    }
}

fn is_answer(frame: &Value, id: u64) -> bool {
    frame["id"] == id && frame.get("method").is_none()
}

/// A setting of the proxy.
pub(super) fn with_setting(world: World, name: &str, value: &str) -> World {
    world.with("config/unstuck/config.toml", format!("[mcp]\n{name} = \"{value}\"\n"))
}

/// Nothing is refused, however often it fails.
pub(super) fn without_ladder(world: World) -> World {
    world.with("config/unstuck/config.toml", "[ladder]\nmode = \"shadow\"\n")
}

pub(super) fn at(world: &World, path: &str) -> String {
    world.path(path).to_str().unwrap().to_owned()
}

/// One text of a result.
#[track_caller]
pub(super) fn text(result: &Value, block: usize) -> String {
    let text = result["content"][block]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text {block}: {result}")).to_owned()
}

/// What unstuck adds to a failure.
#[track_caller]
pub(super) fn envelope(result: &Value) -> Value {
    assert_eq!(result["isError"], json!(true), "{result}");
    let last = result["content"].as_array().unwrap().len() - 1;
    let envelope: Value = serde_json::from_str(&text(result, last)).unwrap();
    for key in ["ok", "error", "errorType", "retryable", "recommendations"] {
        assert!(envelope.get(key).is_some(), "{key} is not in {envelope}");
    }
    envelope
}

/// What reached the server so far.
pub(super) fn seen(world: &World) -> Vec<Value> {
    let log = fs::read_to_string(world.path("peer.log")).unwrap_or_default();
    log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The calls of a tool that reached the server.
pub(super) fn seen_calls(world: &World, tool: &str) -> Vec<Value> {
    seen(world).into_iter().filter(|line| line["tool"] == tool).collect()
}

/// Waits until something is so.
#[track_caller]
pub(super) fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}
