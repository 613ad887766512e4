//! What Codex prints with `exec --json`.

use serde_json::Value;

use super::heard::Heard;

/// What a line tells.
pub(super) fn hear(line: &Value) -> Vec<Heard> {
    let message = |error: &Value| error["message"].as_str().unwrap_or("no reason given").to_owned();
    match line["type"].as_str() {
        Some("thread.started") => line["thread_id"].as_str().map(Heard::session).into_iter().collect(),
        Some("item.started" | "item.updated" | "item.completed") => item(&line["item"]),
        Some("error") => vec![Heard::Trouble(message(line))],
        Some("turn.completed") => vec![Heard::EndedWell(None)],
        Some("turn.failed") => vec![Heard::EndedBadly(message(&line["error"]))],
        _ => Vec::new(),
    }
}

fn item(item: &Value) -> Vec<Heard> {
    match item["type"].as_str() {
        Some("agent_message") => {
            let text = item["text"].as_str().map(|text| Heard::Said(text.to_owned()));
            [Heard::Acted].into_iter().chain(text).collect()
        }
        Some("error") => {
            item["message"].as_str().map(|text| Heard::Trouble(text.to_owned())).into_iter().collect()
        }
        Some(_) => vec![Heard::Acted],
        None => Vec::new(),
    }
}
