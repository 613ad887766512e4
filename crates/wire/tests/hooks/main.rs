//! The hooks of every agent: what their payloads mean, what is answered, and what becomes of garbage.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod answers;
mod hostile;
mod reading;
mod schema;

use serde_json::Value;
use unstuck_wire::hook::Host;

/// The payloads that an agent sends, with their names.
fn payloads(host: Host) -> Vec<(String, Vec<u8>)> {
    let file = match host {
        Host::Claude => include_str!("../payloads/claude.jsonl"),
        Host::Codex => include_str!("../payloads/codex.jsonl"),
        Host::Gemini => include_str!("../payloads/gemini.jsonl"),
        Host::Qwen => include_str!("../payloads/qwen.jsonl"),
        Host::Opencode => include_str!("../payloads/opencode.jsonl"),
        Host::Copilot => include_str!("../payloads/copilot.jsonl"),
        Host::Cursor => include_str!("../payloads/cursor.jsonl"),
        Host::Generic => "",
    };
    let read = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["name"].as_str().unwrap().to_owned(), line["sent"].to_string().into_bytes())
    };
    file.lines().map(read).collect()
}

/// All agents whose payloads are kept here.
fn hosts() -> impl Iterator<Item = Host> {
    Host::ALL.iter().copied().filter(|host| *host != Host::Generic)
}

/// One payload by its name.
fn payload(host: Host, name: &str) -> Vec<u8> {
    payloads(host).into_iter().find(|(other, _)| other == name).unwrap().1
}
