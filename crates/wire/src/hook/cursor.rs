//! Cursor's hooks, as its documentation describes them; nobody has seen them at work here. It also runs the hooks that were
//! installed for Claude Code, so its events are known by its own names and by those.

use serde::Serialize;
use serde_json::Value;
use unstuck_judge::Outcome;

use super::kin::{self, Ended, WirePayload};
use super::{Envelope, Happened, Honours, Host, Letter, Reply, speech};
use crate::json::WireError;
use crate::scalar;

/// An event that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A call is asked for.
    Before,
    /// A call ended, well or not.
    After,
    /// A session begins.
    Start,
}

/// Reads one payload. A shell's and a tool server's own events tell the same calls again and are passed over.
pub(super) fn read(bytes: &[u8]) -> Result<Letter, WireError> {
    let mut wire = WirePayload::read(bytes)?;
    let (events, envelope) = match wire.event()? {
        "preToolUse" | "PreToolUse" => (vec![wire.before()?], Envelope::Cursor(Event::Before)),
        "postToolUse" | "PostToolUse" => {
            let ended = success(&mut wire);
            (vec![wire.after(ended)?], Envelope::Cursor(Event::After))
        }
        "postToolUseFailure" | "PostToolUseFailure" => {
            let ended = failure(&mut wire);
            (vec![wire.after(ended)?], Envelope::Cursor(Event::After))
        }
        "beforeSubmitPrompt" | "UserPromptSubmit" => (vec![Happened::User], Envelope::Mute),
        "sessionStart" | "SessionStart" => (vec![wire.began()], Envelope::Cursor(Event::Start)),
        "subagentStop" | "SubagentStop" => (wire.agent_done(), Envelope::Mute),
        "sessionEnd" | "SessionEnd" => (vec![Happened::End], Envelope::Mute),
        _ => (Vec::new(), Envelope::Mute),
    };
    Ok(wire.letter(Host::Cursor, events, envelope))
}

/// Its result is a JSON text: `{"output":"…","exitCode":0}` of a shell.
fn success(wire: &mut WirePayload) -> Ended {
    let output = match wire.tool_output.take() {
        Value::Null => wire.tool_response.take(),
        Value::String(text) => scalar::arguments(text),
        other => other,
    };
    let code = output.get("exitCode").and_then(|code| scalar::exit_code("exitCode", code).ok().flatten());
    let text = match output.get("output") {
        Some(text) => scalar::words(text.clone()),
        None => kin::result(output),
    };
    Ended::saying(code.map_or(Outcome::Succeeded, |code| Outcome::Exited { code }), text)
}

fn failure(wire: &mut WirePayload) -> Ended {
    let error = kin::text(wire.error_message.take().or(wire.error.take()));
    let code = error.lines().last().and_then(|line| line.rsplit_once("ommand failed with exit code "));
    let code = code.and_then(|(_, code)| code.trim_end_matches('.').parse().ok());
    let outcome = match (wire.failure_type.as_ref().map(|kind| &*kind.0), code) {
        _ if scalar::flag(&wire.is_interrupt) => Outcome::Interrupted,
        (Some("timeout"), _) => Outcome::TimedOut,
        (Some("permission_denied"), _) => Outcome::Denied,
        (_, Some(code)) => Outcome::Exited { code },
        (_, None) => Outcome::ReportedFailure,
    };
    Ended::saying(outcome, error)
}

/// What it heeds of an answer.
pub(super) fn honours(event: Event) -> Honours {
    match event {
        // Another input is documented only beside our word that the call is allowed.
        Event::Before => Honours { deny: true, ..Honours::default() },
        Event::After | Event::Start => Honours { tell: true, ..Honours::default() },
    }
}

/// An answer as it is printed; the names are theirs.
#[derive(Default, Serialize)]
struct WireAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
}

/// The answer as it understands it.
pub(super) fn answer(event: Event, reply: &Reply) -> Option<String> {
    let words = reply.told()?;
    let deny = |person: Option<String>, model: String| WireAnswer {
        permission: Some("deny"),
        user_message: person,
        agent_message: Some(model),
        ..WireAnswer::default()
    };
    let answer = match event {
        Event::Before => match reply {
            Reply::Deny { .. } | Reply::Ask { .. } => deny(Some(words.clone()), words),
            Reply::Halt { table, .. } => deny(speech::some(table), words),
            Reply::Silent | Reply::Tell { .. } | Reply::Rewrite { .. } | Reply::Again { .. } => return None,
        },
        Event::After | Event::Start => {
            WireAnswer { additional_context: Some(words), ..WireAnswer::default() }
        }
    };
    serde_json::to_string(&answer).ok()
}
