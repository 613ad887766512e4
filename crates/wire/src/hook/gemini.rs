//! Gemini CLI's hooks.
//!
//! It names no calls, and calls one hook after a tool however that ended. Words beside a result with an error are lost, so there
//! the error is said again with our words below it. It can send a call again from the hook; what it then sends says so, which is
//! the guard against doing that for ever.

use serde::Serialize;
use serde_json::Value;
use unstuck_judge::Outcome;

use super::kin::{Ended, WirePayload};
use super::{Envelope, Happened, Honours, Host, Letter, Reply, shell_report, speech};
use crate::json::WireError;
use crate::scalar;

/// An event, with what its answer depends on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// A call is asked for.
    BeforeTool,
    /// A call ended.
    AfterTool {
        /// What the model is shown in place of a result.
        error: Option<String>,
        /// Was it sent by the model, and not from a hook?
        first: bool,
    },
    /// The user spoke.
    BeforeAgent,
    /// A session begins.
    SessionStart,
}

/// Reads one payload.
pub(super) fn read(bytes: &[u8]) -> Result<Letter, WireError> {
    let mut wire = WirePayload::read(bytes)?;
    let (events, envelope) = match wire.event()? {
        "BeforeTool" => (vec![wire.before()?], Envelope::Gemini(Event::BeforeTool)),
        "AfterTool" => {
            let first = wire.original_request_name.is_none();
            let mut ended = ended(wire.is_shell(), wire.tool_response.take());
            ended.0.can_retry = first && ended.0.said_ok == Some(false);
            (vec![wire.after(ended.0)?], Envelope::Gemini(Event::AfterTool { error: ended.1, first }))
        }
        "BeforeAgent" => (vec![Happened::User], Envelope::Gemini(Event::BeforeAgent)),
        "SessionStart" => (vec![wire.began()], Envelope::Gemini(Event::SessionStart)),
        "SessionEnd" => (vec![Happened::End], Envelope::Mute),
        _ => (Vec::new(), Envelope::Mute),
    };
    Ok(wire.letter(Host::Gemini, events, envelope))
}

/// How a call ended, and the error that the model is shown.
fn ended(is_shell: bool, mut response: Value) -> (Ended, Option<String>) {
    let mut error = response.get_mut("error").map(Value::take).unwrap_or_default();
    let shown = response.get_mut("llmContent").map(Value::take).map(scalar::words).unwrap_or_default();
    if !error.is_null() {
        let kind = error.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let message = error.get_mut("message").map(Value::take).map(scalar::words);
        let message = message.unwrap_or_else(|| scalar::words(error));
        let outcome = match &*kind {
            "mcp_tool_error" => Outcome::ReportedFailure,
            "invalid_tool_params" | "tool_not_registered" => Outcome::Rejected,
            "policy_violation" => Outcome::Denied,
            _ => Outcome::Threw,
        };
        return (Ended::saying(outcome, message.clone()), Some(message));
    }
    match shell_report::read(&shown).filter(|_| is_shell) {
        Some((outcome, printed)) => (Ended::saying(outcome, printed), None),
        None => (Ended::saying(Outcome::Succeeded, shell_report::unwrapped(&shown)), None),
    }
}

/// What it heeds of an answer.
pub(super) fn honours(event: &Event) -> Honours {
    let none = Honours::default();
    match event {
        // Words before a call are ignored.
        Event::BeforeTool => Honours { deny: true, halt: true, rewrite: true, ..none },
        Event::AfterTool { first, .. } => Honours { tell: true, halt: true, again: *first, ..none },
        Event::BeforeAgent | Event::SessionStart => Honours { tell: true, ..none },
    }
}

/// An answer as it is printed; the names are theirs.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WireAnswer<'a> {
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    goes_on: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<WireSpecific<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireSpecific<'a> {
    hook_event_name: &'static str,
    #[serde(rename = "tool_input", skip_serializing_if = "Option::is_none")]
    tool_input: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail_tool_call_request: Option<WireTail<'a>>,
}

/// A call that is sent at once, and whose result takes the place of the one before.
#[derive(Serialize)]
struct WireTail<'a> {
    name: &'a str,
    args: &'a Value,
}

impl WireSpecific<'_> {
    fn at(event: &Event) -> Self {
        let hook_event_name = match event {
            Event::BeforeTool => "BeforeTool",
            Event::AfterTool { .. } => "AfterTool",
            Event::BeforeAgent => "BeforeAgent",
            Event::SessionStart => "SessionStart",
        };
        WireSpecific {
            hook_event_name,
            tool_input: None,
            additional_context: None,
            tail_tool_call_request: None,
        }
    }
}

impl<'a> WireAnswer<'a> {
    fn of(specific: WireSpecific<'a>) -> WireAnswer<'a> {
        WireAnswer { hook_specific_output: Some(specific), ..WireAnswer::default() }
    }

    fn tell(event: &Event, words: String) -> WireAnswer<'a> {
        WireAnswer::of(WireSpecific { additional_context: Some(words), ..WireSpecific::at(event) })
    }

    fn deny(reason: String) -> WireAnswer<'a> {
        WireAnswer { decision: Some("deny"), reason: Some(reason), ..WireAnswer::default() }
    }
}

/// The answer as it understands it.
pub(super) fn answer(event: &Event, reply: &Reply) -> Option<String> {
    let words = speech::some(reply.words()?)?;
    let system_message = reply.table();
    let halted = |words: String| {
        let stop_reason = reply.told();
        WireAnswer { goes_on: Some(false), stop_reason, ..WireAnswer::deny(words) }
    };
    let answer = match event {
        Event::BeforeTool => match reply {
            Reply::Deny { .. } | Reply::Ask { .. } => WireAnswer::deny(words),
            Reply::Halt { .. } => halted(words),
            Reply::Rewrite { input, .. } => WireAnswer {
                system_message: Some(words),
                ..WireAnswer::of(WireSpecific { tool_input: Some(input), ..WireSpecific::at(event) })
            },
            Reply::Silent | Reply::Tell { .. } | Reply::Again { .. } => return None,
        },
        Event::AfterTool { error, first } => match reply {
            Reply::Halt { .. } => halted(words),
            Reply::Again { tool, input, .. } if *first => {
                let tail_tool_call_request = Some(WireTail { name: tool, args: input });
                WireAnswer::of(WireSpecific { tail_tool_call_request, ..WireSpecific::at(event) })
            }
            Reply::Silent
            | Reply::Tell { .. }
            | Reply::Deny { .. }
            | Reply::Ask { .. }
            | Reply::Rewrite { .. }
            | Reply::Again { .. } => {
                let answer = match error {
                    Some(error) => WireAnswer::deny(speech::below(error, &words)),
                    None => WireAnswer::tell(event, words),
                };
                WireAnswer { system_message, ..answer }
            }
        },
        Event::BeforeAgent | Event::SessionStart => WireAnswer::tell(event, reply.told()?),
    };
    serde_json::to_string(&answer).ok()
}
