//! A client of an MCP server on pipes, as plain as can be: lines out, lines in, and nobody waits for ever.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};

use crate::Fault;

/// Nothing that is asked here takes longer.
pub const LONGEST_ANSWER: Duration = Duration::from_secs(30);

/// A server that was started, and the talk with it.
pub struct Session {
    child: Child,
    to: Option<ChildStdin>,
    from: ChildStdout,
    /// What was read, from `begin` on not yet taken.
    read: Vec<u8>,
    begin: usize,
    /// Room for one read, made once: to clear it every time would take longer than a call.
    just_read: Box<[u8]>,
}

impl Session {
    /// Starts a server; nothing is said yet.
    pub fn start(mut command: Command) -> Result<Session, Fault> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let (to, from) = (child.stdin.take(), child.stdout.take().ok_or("no standard output")?);
        Ok(Session { child, to, from, read: Vec::new(), begin: 0, just_read: vec![0; 65_536].into() })
    }

    /// The handshake; returns what the server answered.
    pub fn greet(&mut self, version: &str, capabilities: &Value) -> Result<Value, Fault> {
        let client = json!({"name": "chore", "version": "1.0.0"});
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client});
        let answer = self.ask(0, "initialize", &params)?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(answer)
    }

    /// Asks, and waits for the answer; what else comes meanwhile is not looked at.
    pub fn ask(&mut self, id: u64, method: &str, params: &Value) -> Result<Value, Fault> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let end = Instant::now() + LONGEST_ANSWER;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.line(left)?.ok_or_else(|| format!("nobody answers {method}"))?;
            let frame: Value = serde_json::from_slice(line)?;
            if frame["id"] == id && frame.get("method").is_none() {
                return Ok(frame);
            }
        }
    }

    /// Says one frame.
    pub fn send(&mut self, frame: &Value) -> Result<(), Fault> {
        self.send_bytes(format!("{frame}\n").as_bytes())
    }

    /// Says these bytes.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        Ok(self.to.as_mut().ok_or("its standard input is closed")?.write_all(bytes)?)
    }

    /// The next line without its end; nothing when none comes in time, and a fault when none can come any more.
    pub fn line(&mut self, within: Duration) -> Result<Option<&[u8]>, Fault> {
        let end = Instant::now() + within;
        let mut looked = self.begin;
        loop {
            if let Some(length) = self.read[looked..].iter().position(|byte| *byte == b'\n') {
                let (from, to) = (self.begin, looked + length);
                self.begin = to + 1;
                return Ok(Some(&self.read[from..to]));
            }
            if self.begin > 0 {
                self.read.drain(..self.begin);
                self.begin = 0;
            }
            looked = self.read.len();
            let left = end.saturating_duration_since(Instant::now());
            if !self.is_ready(left)? {
                return Ok(None);
            }
            let count = self.from.read(&mut self.just_read)?;
            if count == 0 {
                return Err("the server closed its output".into());
            }
            self.read.extend_from_slice(&self.just_read[..count]);
        }
    }

    /// Is there something to read in this time?
    fn is_ready(&self, within: Duration) -> Result<bool, Fault> {
        let mut wanted = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
        let limit = PollTimeout::try_from(within.as_millis().min(60_000) as u64)?;
        Ok(poll(&mut wanted, limit)? > 0)
    }

    /// The most memory that the process held so far, in megabytes, where the system tells.
    pub fn peak_memory(&self) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let told = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(told.trim().trim_end_matches("kB").trim().parse::<f64>().ok()? / 1024.0)
    }

    /// Closes its input, and ends it where that is not enough.
    pub fn end(&mut self) {
        self.to = None;
        for _ in 0..200 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // It may just have ended by itself.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}
