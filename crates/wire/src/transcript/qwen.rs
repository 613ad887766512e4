//! Qwen Code's chats (`~/.qwen/projects/*/chats/*.jsonl`, and those of its sub-agents).
//!
//! The lines of Claude Code around the messages of Gemini CLI: calls stand in `assistant` lines, each result in a `tool_result`
//! line of its own. Beside what the model was told, which hooks may have added to, stands what the client knows of the result.

use serde::Deserialize;
use serde_json::Value;
use unstuck_judge::{Call, Outcome};

use super::Use;
use super::pairing::{Answer, Made, Names, Pairing};
use crate::hook::{is_shell, shell_report};
use crate::json::{WireError, read_object};
use crate::recorded::MAIN_AGENT;
use crate::scalar::{self, WireText};
use crate::time;

/// One chat.
#[derive(Debug, Default)]
pub(super) struct QwenReader {
    pub(super) calls: Pairing,
    pub(super) rounds: u64,
    seen_lines: Names,
}

/// A line exactly as it stands in the file; the names are theirs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireLine {
    #[serde(rename = "type")]
    kind: Option<String>,
    subtype: Option<String>,
    provenance: Option<String>,
    uuid: Option<String>,
    session_id: Option<String>,
    timestamp: Option<String>,
    cwd: Option<String>,
    agent_id: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
    message: Option<WireMessage>,
    tool_call_result: Option<WireEnding>,
}

#[derive(Deserialize)]
struct WireMessage {
    #[serde(default)]
    parts: Vec<WirePart>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePart {
    text: Option<WireText>,
    function_call: Option<WireCall>,
    function_response: Option<WireResponse>,
}

#[derive(Deserialize)]
struct WireCall {
    id: Option<String>,
    name: String,
    #[serde(default)]
    args: Value,
}

#[derive(Deserialize)]
struct WireResponse {
    id: Option<String>,
    name: Option<String>,
    #[serde(default)]
    response: Value,
}

/// The client's own view of a result. A sub-agent's has nothing in it but the call.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct WireEnding {
    status: Option<String>,
    execution_status: Option<String>,
    error_type: Option<String>,
    #[serde(default)]
    result_display: Value,
}

impl QwenReader {
    pub(super) fn read(&mut self, line: &[u8]) -> Result<Use, WireError> {
        let line = read_object::<WireLine>(line)?;
        let is_message = matches!(line.kind.as_deref(), Some("assistant" | "user" | "tool_result"));
        let Some(message) = line.message.filter(|_| is_message) else { return Ok(Use::Ignored) };
        if let Some(uuid) = &line.uuid
            && !self.seen_lines.is_new(uuid)
        {
            return Ok(Use::Ignored);
        }
        if let Some(session) = &line.session_id {
            self.calls.name(session);
        }
        if let Some(cwd) = &line.cwd {
            self.calls.works_in(cwd);
        }
        let agent = match (line.is_sidechain, line.agent_id) {
            (true, Some(agent)) => agent,
            (true, None) => "sub".to_owned(),
            (false, _) => MAIN_AGENT.to_owned(),
        };
        let at = line.timestamp.as_deref().and_then(time::millis);
        match line.kind.as_deref() {
            Some("assistant") => self.make_calls(&agent, message, at),
            Some("tool_result") => self.answer_calls(message, line.tool_call_result, at),
            // What the client says in the user's name has a subtype, or says where it comes from.
            Some(_) | None => {
                let is_from_client = line.subtype.is_some()
                    || line.provenance.is_some_and(|provenance| provenance != "real_user");
                if !is_from_client && agent == MAIN_AGENT && message.parts.iter().any(|it| it.text.is_some())
                {
                    self.calls.person_spoke();
                }
            }
        }
        Ok(Use::Taken)
    }

    fn make_calls(&mut self, agent: &str, message: WireMessage, at: Option<u64>) {
        let made: Vec<WireCall> = message.parts.into_iter().filter_map(|part| part.function_call).collect();
        let round = self.rounds;
        self.rounds += u64::from(!made.is_empty());
        for call in made {
            let Some(id) = call.id else { continue };
            let call = Call::new(call.name, call.args);
            self.calls.make(Made { id, agent: agent.to_owned(), call, at, round });
        }
    }

    fn answer_calls(&mut self, message: WireMessage, ending: Option<WireEnding>, at: Option<u64>) {
        let results: Vec<WireResponse> =
            message.parts.into_iter().filter_map(|part| part.function_response).collect();
        // The client's own view is of the one result of its line; with several it would be anybody's.
        let mut ending = ending.filter(|_| results.len() == 1);
        for result in results {
            let Some(id) = result.id.clone() else { continue };
            self.calls.answer(&id, answer(result, ending.take().unwrap_or_default()), at);
        }
    }
}

fn answer(result: WireResponse, ending: WireEnding) -> Answer {
    let said = |key: &str| result.response.get(key).cloned().map(scalar::words);
    let error = said("error");
    let is_error = error.is_some() || ending.status.as_deref() == Some("error");
    let text = error.or_else(|| said("output")).unwrap_or_default();
    let report = || shell_report::read(&text).filter(|_| is_shell(result.name.as_deref()));
    let (outcome, text) = if ending.status.as_deref() == Some("cancelled") {
        (Outcome::Interrupted, text)
    } else if let Some(ended) = shell_ended(&ending.result_display).or_else(report) {
        ended
    } else if is_error {
        (failure(&ending), text)
    } else {
        (Outcome::Succeeded, shell_report::unwrapped(&text).to_owned())
    };
    Answer { said_ok: outcome.said_ok(), merged: text.into_bytes(), ..Answer::silent(outcome) }
}

/// How a command ended and what it printed, by what the client knows; nothing where it was none.
fn shell_ended(display: &Value) -> Option<(Outcome, String)> {
    if display.get("type")?.as_str()? != "shell_result" {
        return None;
    }
    let number = |key: &str| display.get(key)?.as_i64()?.try_into().ok();
    let outcome = match (display.get("outcome")?.as_str(), number("signal"), number("exitCode")) {
        (Some("timed_out"), _, _) => Outcome::TimedOut,
        (Some("cancelled"), _, _) => Outcome::Interrupted,
        (Some(_) | None, Some(signal), _) => Outcome::Signalled { signal },
        (Some(_) | None, None, Some(code)) => Outcome::Exited { code },
        (Some(_) | None, None, None) => Outcome::NoExitCode,
    };
    let said = |key: &str| display.get(key)?.as_str().filter(|said| !said.is_empty());
    let printed: Vec<&str> = [said("output"), said("error")].into_iter().flatten().collect();
    Some((outcome, printed.join("\n")))
}

/// What kind of failure it was, of a call that is no command.
fn failure(ending: &WireEnding) -> Outcome {
    match ending.error_type.as_deref() {
        Some("execution_denied") => Outcome::Denied,
        Some("execution_timeout") => Outcome::TimedOut,
        Some("mcp_tool_error") => Outcome::ReportedFailure,
        Some("invalid_tool_params" | "tool_not_registered") => Outcome::Rejected,
        Some(_) | None if ending.execution_status.as_deref() == Some("not_started") => Outcome::Rejected,
        Some(_) | None => Outcome::Threw,
    }
}
