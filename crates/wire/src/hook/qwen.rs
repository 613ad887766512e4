//! Qwen Code's hooks: the events of Claude Code around the tools of Gemini CLI.
//!
//! It writes that a user spoke before every turn of the model, with nothing in it where nobody did. Words before a call and
//! another input are ignored.

use serde_json::Value;
use unstuck_judge::Outcome;

use super::kin::{self, Ended, Moment, WireBatched, WirePayload};
use super::{Envelope, Happened, Honours, Host, Letter, Reply, shell_report};
use crate::json::WireError;
use crate::scalar;

/// Reads one payload.
pub(super) fn read(bytes: &[u8]) -> Result<Letter, WireError> {
    let mut wire = WirePayload::read(bytes)?;
    let Some(moment) = wire.moment()? else {
        return Ok(wire.letter(Host::Qwen, Vec::new(), Envelope::Mute));
    };
    let events = match moment {
        Moment::PreToolUse => vec![wire.before()?],
        Moment::PermissionRequest => vec![wire.ask()?],
        Moment::PermissionDenied => vec![Happened::Denied { key: wire.key() }],
        Moment::PostToolUse => {
            let mut response = wire.tool_response.take();
            let shown = response.get_mut("llmContent").map(Value::take).unwrap_or(response);
            let ended = ended(wire.is_shell(), Outcome::Succeeded, &scalar::words(shown));
            vec![wire.after(ended)?]
        }
        Moment::PostToolUseFailure if scalar::flag(&wire.is_interrupt) => {
            let error = kin::text(wire.error.take());
            vec![wire.after(Ended::saying(Outcome::Interrupted, error))?]
        }
        Moment::PostToolUseFailure => {
            let error = kin::text(wire.error.take());
            let ended = failed(wire.is_shell(), &error);
            vec![wire.after(ended)?]
        }
        Moment::PostToolBatch => wire.batch().into_iter().filter_map(|call| batched(call).ok()).collect(),
        Moment::UserPromptSubmit if wire.prompt.as_ref().is_none_or(|prompt| prompt.0.trim().is_empty()) => {
            Vec::new()
        }
        Moment::UserPromptSubmit => vec![Happened::User],
        Moment::SessionStart => vec![wire.began()],
        Moment::SubagentStop => wire.agent_done(),
        Moment::SessionEnd => vec![Happened::End],
    };
    Ok(wire.letter(Host::Qwen, events, Envelope::Qwen(moment)))
}

/// How a call ended: by the report of a shell where it is one, else as the event says.
fn ended(is_shell: bool, otherwise: Outcome, text: &str) -> Ended {
    match shell_report::read(text).filter(|_| is_shell) {
        Some((outcome, printed)) => Ended::saying(outcome, printed),
        None => Ended::saying(otherwise, shell_report::unwrapped(text)),
    }
}

/// The same, for what it calls a failure: that outweighs a code of 0.
fn failed(is_shell: bool, error: &str) -> Ended {
    Ended { said_ok: Some(false), ..ended(is_shell, Outcome::ReportedFailure, error) }
}

fn batched(mut call: WireBatched) -> Result<Happened, WireError> {
    let response = call.tool_response.take();
    let parts = response.get("response_parts").and_then(Value::as_array).into_iter().flatten();
    let said = |part: &Value| {
        let answer = part.pointer("/functionResponse/response")?;
        answer.get("error").or_else(|| answer.get("output")).cloned().map(scalar::words)
    };
    let text = parts.filter_map(said).collect::<Vec<_>>().join("\n");
    let is_shell = call.is_shell();
    let ended = match call.status.as_ref().map(|status| &*status.0) {
        Some("success") => ended(is_shell, Outcome::Succeeded, &text),
        Some("cancelled") => Ended::saying(Outcome::Interrupted, text),
        Some("error") => failed(is_shell, &text),
        Some(_) | None => ended(is_shell, Outcome::NoExitCode, &text),
    };
    call.after(ended)
}

/// What it heeds of an answer.
pub(super) fn honours(moment: Moment) -> Honours {
    let none = Honours::default();
    match moment {
        Moment::PreToolUse => Honours { deny: true, ..none },
        Moment::PostToolUse | Moment::PostToolUseFailure | Moment::PostToolBatch | Moment::SessionStart => {
            Honours { tell: true, ..none }
        }
        Moment::PermissionRequest
        | Moment::PermissionDenied
        | Moment::UserPromptSubmit
        | Moment::SubagentStop
        | Moment::SessionEnd => none,
    }
}

/// The answer as it understands it.
pub(super) fn answer(moment: Moment, reply: &Reply) -> Option<String> {
    kin::refuse_or_tell(moment, honours(moment), reply)
}
