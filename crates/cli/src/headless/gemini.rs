//! What Gemini CLI prints with `--output-format stream-json`.

use serde_json::Value;

use super::heard::Heard;

/// What a line tells.
pub(super) fn hear(line: &Value) -> Vec<Heard> {
    match line["type"].as_str() {
        Some("init") => line["session_id"].as_str().map(Heard::session).into_iter().collect(),
        Some("message") if line["role"] == "assistant" => {
            let text = line["content"].as_str().unwrap_or_default().to_owned();
            let said = if line["delta"] == true { Heard::SaidMore(text) } else { Heard::Said(text) };
            vec![Heard::Acted, said]
        }
        // What was said before a tool is used is not the answer.
        Some("tool_use" | "tool_result") => vec![Heard::Acted, Heard::Said(String::new())],
        Some("error") => {
            line["message"].as_str().map(|text| Heard::Trouble(text.to_owned())).into_iter().collect()
        }
        Some("result") if line["status"] == "success" => vec![Heard::EndedWell(None)],
        Some("result") => {
            let reason = line["error"]["message"].as_str().unwrap_or("no reason given");
            vec![Heard::EndedBadly(reason.to_owned())]
        }
        _ => Vec::new(),
    }
}
