//! Gemini CLI's chats (`~/.gemini/tmp/*/chats/*.jsonl`, and `session-*.json` of its old versions).
//!
//! A head names the session; then one line per message, written anew under the same id whenever something is added to it. A
//! call stands in the message that made it once it has ended, with its result; the same result follows in a line of the
//! user's. Lines with `$set` change what was said of the session, and may repeat all of its messages. Old versions wrote one
//! document, a head with all messages in it, anew with each message.

use serde::Deserialize;
use serde_json::Value;
use unstuck_judge::{Call, Outcome};

use super::Use;
use super::pairing::{Answer, Made, Pairing};
use crate::hook::{is_shell, shell_report};
use crate::json::{WireError, read_object};
use crate::recorded::MAIN_AGENT;
use crate::{scalar, time};

/// One chat.
#[derive(Debug, Default)]
pub(super) struct GeminiReader {
    pub(super) calls: Pairing,
    pub(super) rounds: u64,
    /// The message that the last call stood in.
    last: String,
}

/// A line exactly as it stands in the file; the names are theirs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireLine {
    session_id: Option<String>,
    #[serde(default)]
    directories: Vec<String>,
    #[serde(rename = "$set")]
    set: Option<WireSet>,
    id: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    timestamp: Option<String>,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    tool_calls: Vec<WireToolCall>,
    /// In the head of a document.
    #[serde(default)]
    messages: Vec<WireLine>,
}

#[derive(Deserialize)]
struct WireSet {
    #[serde(default)]
    directories: Vec<String>,
}

#[derive(Deserialize)]
struct WireToolCall {
    id: String,
    name: String,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    result: Value,
    status: Option<String>,
    timestamp: Option<String>,
}

impl GeminiReader {
    pub(super) fn read(&mut self, line: &[u8]) -> Result<Use, WireError> {
        let mut line = read_object::<WireLine>(line)?;
        let messages = std::mem::take(&mut line.messages);
        let used = self.take_in(line);
        for message in messages {
            self.take_in(message);
        }
        Ok(used)
    }

    fn take_in(&mut self, line: WireLine) -> Use {
        let directories = line.set.map_or(line.directories, |set| set.directories);
        if let Some(first) = directories.first() {
            self.calls.works_in(first);
        }
        let at = line.timestamp.as_deref().and_then(time::millis);
        match (line.kind.as_deref(), line.session_id) {
            (None, Some(session)) => self.calls.name(&session),
            (Some("gemini"), _) if !line.tool_calls.is_empty() => {
                self.make_calls(&line.id.unwrap_or_default(), line.tool_calls, at);
            }
            (Some("user"), _) if is_typed(&line.content) => self.calls.person_spoke(),
            (None | Some(_), _) => return Use::Ignored,
        }
        Use::Taken
    }

    fn make_calls(&mut self, message: &str, made: Vec<WireToolCall>, at: Option<u64>) {
        if self.last != message {
            message.clone_into(&mut self.last);
            self.rounds += 1;
        }
        for call in made {
            let Some(answer) = answer(&call.name, call.status.as_deref(), call.result) else { continue };
            self.calls.make(Made {
                id: call.id.clone(),
                agent: MAIN_AGENT.to_owned(),
                call: Call::new(call.name, call.args),
                at,
                round: self.rounds - 1,
            });
            self.calls.answer(&call.id, answer, call.timestamp.as_deref().and_then(time::millis));
        }
    }
}

/// Whether a person wrote this. The client speaks in the user's name when it hands back results and when it sets the scene.
fn is_typed(content: &Value) -> bool {
    let is_result = |part: &Value| part.get("functionResponse").is_some();
    if content.as_array().is_some_and(|parts| parts.iter().any(is_result)) {
        return false;
    }
    let words = scalar::words(content.clone());
    !words.is_empty() && !words.starts_with("<session_context>")
}

/// How a call ended; nothing while it has not.
fn answer(tool: &str, status: Option<&str>, mut result: Value) -> Option<Answer> {
    let response = result.pointer_mut("/0/functionResponse/response").map(Value::take).unwrap_or_default();
    let said = |key: &str| response.get(key).cloned().map(|said| own_words(scalar::words(said)));
    let (outcome, text) = match (status, said("error"), said("output")) {
        (Some("cancelled"), error, output) => (Outcome::Interrupted, error.or(output).unwrap_or_default()),
        (Some("error"), error, output) => {
            let text = error.or(output).unwrap_or_else(|| scalar::words(response));
            (refusal(&text), text)
        }
        (Some("success"), _, Some(output)) => {
            match shell_report::read(&output).filter(|_| is_shell(Some(tool))) {
                Some(ended) => ended,
                None => (Outcome::Succeeded, shell_report::unwrapped(&output).to_owned()),
            }
        }
        (Some("success"), _, None) => (Outcome::Succeeded, scalar::words(response)),
        (Some(_) | None, _, _) => return None,
    };
    Some(Answer { said_ok: outcome.said_ok(), merged: text.into_bytes(), ..Answer::silent(outcome) })
}

/// What the tool itself said. Behind it stands what hooks had to say, in marks that they cannot write themselves.
fn own_words(mut said: String) -> String {
    let hooks = said.trim_end().strip_suffix("</hook_context>").and_then(|said| said.rfind("<hook_context>"));
    if let Some(hooks) = hooks {
        said.truncate(said[..hooks].trim_end().len());
    }
    said
}

/// What kind of refusal an error is. Which one it was is not written down, so its wording has to tell.
fn refusal(text: &str) -> Outcome {
    let never_ran =
        text.starts_with("params ") || text.starts_with("Tool \"") && text.contains("\" not found");
    match never_ran {
        true => Outcome::Rejected,
        false if text.starts_with("MCP tool ") => Outcome::ReportedFailure,
        false if text.starts_with("Tool execution blocked") => Outcome::Denied,
        false => Outcome::Threw,
    }
}
