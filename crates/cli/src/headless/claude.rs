//! What Claude Code prints with `--output-format stream-json`.

use serde_json::Value;

use super::heard::Heard;

/// What a line tells.
pub(super) fn hear(line: &Value) -> Vec<Heard> {
    let mut heard: Vec<Heard> = line["session_id"].as_str().map(Heard::session).into_iter().collect();
    match line["type"].as_str() {
        // What the program itself has to say for a model that did not answer.
        Some("assistant") if is_made_up(line) => heard.extend(texts(line).map(Heard::Trouble)),
        Some("assistant") => {
            heard.push(Heard::Acted);
            heard.extend(texts(line).map(Heard::Said));
        }
        Some("result") => {
            let text = line["result"].as_str().map(str::to_owned);
            heard.push(match line["is_error"] == true || line["subtype"] != "success" {
                false => Heard::EndedWell(text),
                true => Heard::EndedBadly(reason(line, text)),
            });
        }
        Some("system") if line["subtype"] == "api_retry" => {
            heard.push(Heard::Trouble(line.to_string()));
        }
        _ => {}
    }
    heard
}

fn is_made_up(line: &Value) -> bool {
    line["message"]["model"] == "<synthetic>" || line.get("error").is_some_and(|error| !error.is_null())
}

fn texts(line: &Value) -> impl Iterator<Item = String> {
    let blocks = line["message"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    blocks
        .iter()
        .filter(|block| block["type"] == "text")
        .filter_map(|block| block["text"].as_str())
        .map(str::to_owned)
}

/// Why it ended badly: its own words, or the name it has for that.
fn reason(line: &Value, text: Option<String>) -> String {
    let errors = line["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let errors = errors.iter().filter_map(Value::as_str).map(str::to_owned);
    let said: Vec<String> = text.into_iter().chain(errors).filter(|text| !text.is_empty()).collect();
    match said.is_empty() {
        true => line["subtype"].as_str().unwrap_or("no reason given").to_owned(),
        false => said.join("\n"),
    }
}
