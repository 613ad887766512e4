//! A client that acts by itself: it greets, asks for the tools, and calls each of them once. The conformance suite starts it with
//! the address of a server of its own; it gets there through `unstuck mcp --url`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::session::{LONGEST_ANSWER, Session};
use crate::Fault;

/// Calls every tool behind this address.
pub fn call_all(unstuck: &Path, url: &str) -> Result<(), Fault> {
    let mut command = Command::new(unstuck);
    command.args(["mcp", "--url", url]).stderr(Stdio::inherit());
    let mut session = Session::start(command)?;
    session.greet("2025-11-25", &json!({"elicitation": {"form": {"applyDefaults": true}}}))?;
    let listed = session.ask(1, "tools/list", &json!({}))?;
    let tools = listed["result"]["tools"].as_array().cloned().unwrap_or_default();
    for (place, tool) in tools.iter().enumerate() {
        let id = place as u64 + 2;
        let params = json!({"name": tool["name"], "arguments": arguments(&tool["inputSchema"])});
        session.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))?;
        answered(&mut session, id)?;
    }
    // A server that closes its streams is to see whether we come back.
    std::thread::sleep(Duration::from_millis(200));
    session.end();
    Ok(())
}

/// Waits for an answer; a question in between is answered with its own defaults.
fn answered(session: &mut Session, id: u64) -> Result<(), Fault> {
    loop {
        let line = session.line(LONGEST_ANSWER)?.ok_or("no answer came")?;
        let frame: Value = serde_json::from_slice(line)?;
        match (frame["method"].as_str(), frame.get("id")) {
            (Some(_), Some(asked)) => {
                let wanted =
                    frame["params"]["requestedSchema"]["properties"].as_object().cloned().unwrap_or_default();
                let content: Map<String, Value> = wanted
                    .into_iter()
                    .filter_map(|(name, field)| Some((name, field.get("default")?.clone())))
                    .collect();
                let result = json!({"action": "accept", "content": content});
                session.send(&json!({"jsonrpc": "2.0", "id": asked, "result": result}))?;
            }
            (None, Some(own)) if *own == id => return Ok(()),
            (Some(_) | None, _) => {}
        }
    }
}

/// Something that fits what a tool requires.
fn arguments(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let fitting = |field: &Value| match field["type"].as_str() {
        Some("number" | "integer") => json!(5),
        Some("boolean") => json!(true),
        _ => json!("tide"),
    };
    Value::Object(properties.iter().map(|(name, field)| (name.clone(), fitting(field))).collect())
}
