//! GitHub Copilot CLI's hooks, in both of its styles: with names of its own, where the payload does not even say which event it
//! is, and with the names of Claude Code, in which it also runs the hooks that were installed for that.
//!
//! It names no calls. A shell command that failed is a success to it, with the exit code in the last line. A hook that fails
//! denies the call.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unstuck_judge::{Call, Outcome};

use super::kin::{self, Ended, Moment, Stop, WirePayload, WireSpecific};
use super::{Attended, Envelope, Happened, Honours, Host, Letter, NO_SESSION, Reply};
use crate::bounded;
use crate::json::{WireError, read_object};
use crate::recorded::MAIN_AGENT;
use crate::scalar::{self, WireText};
use crate::time;

/// Whose names a payload uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Copilot's own, `toolName`.
    Own,
    /// Those of Claude Code, `tool_name`.
    Claude,
}

/// A payload with names of its own.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireOwn {
    hook_name: Option<WireText>,
    session_id: Option<WireText>,
    #[serde(default)]
    timestamp: Value,
    cwd: Option<WireText>,
    tool_name: Option<WireText>,
    #[serde(default)]
    tool_args: Value,
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    tool_result: Value,
    error: Option<WireText>,
    prompt: Option<WireText>,
    source: Option<WireText>,
    reason: Option<WireText>,
}

/// Reads one payload.
pub(super) fn read(bytes: &[u8]) -> Result<Letter, WireError> {
    let wire = WirePayload::read(bytes)?;
    match wire.hook_event_name {
        Some(_) => read_claude(wire),
        None => read_own(read_object(bytes)?),
    }
}

fn read_claude(mut wire: WirePayload) -> Result<Letter, WireError> {
    let Some(moment) = wire.moment()? else {
        return Ok(wire.letter(Host::Copilot, Vec::new(), Envelope::Mute));
    };
    let events = match moment {
        Moment::PreToolUse => vec![wire.before()?],
        Moment::PermissionRequest => vec![wire.ask()?],
        Moment::PostToolUse => {
            let result = wire.tool_result.take();
            vec![wire.after(ended(result))?]
        }
        Moment::PostToolUseFailure => {
            let error = kin::text(wire.error.take());
            vec![wire.after(failed(error))?]
        }
        Moment::UserPromptSubmit => vec![Happened::User],
        Moment::SessionStart => vec![wire.began()],
        Moment::SubagentStop => wire.agent_done(),
        Moment::SessionEnd => vec![Happened::End],
        Moment::PermissionDenied | Moment::PostToolBatch => Vec::new(),
    };
    Ok(wire.letter(Host::Copilot, events, Envelope::Copilot(Style::Claude, moment)))
}

fn read_own(mut wire: WireOwn) -> Result<Letter, WireError> {
    let is_whole = bounded::fits(&wire.tool_args) && bounded::fits(&wire.tool_input);
    let whole = bounded::whole(&wire.tool_args).or_else(|| bounded::whole(&wire.tool_input));
    let is_ask = wire.hook_name.as_ref().is_some_and(|name| name.0 == "permissionRequest");
    // Which event it is shows only in what it holds.
    let found = if is_ask {
        let mut call = wire.call()?;
        // A tool of a tool server is called otherwise here than before and after the call.
        call.tool = call.tool.replace('/', "-");
        Some((Happened::Ask { key: String::new(), call: Some(call) }, Moment::PermissionRequest))
    } else if wire.tool_name.is_some() && !wire.tool_result.is_null() {
        let ended = ended(wire.tool_result.take());
        Some((wire.after(ended)?, Moment::PostToolUse))
    } else if wire.tool_name.is_some() && wire.error.is_some() {
        let error = kin::text(wire.error.take());
        Some((wire.after(failed(error))?, Moment::PostToolUseFailure))
    } else if wire.tool_name.is_some() {
        let before = Happened::Before { key: String::new(), call: wire.call()?, new_user_turn: false };
        Some((before, Moment::PreToolUse))
    } else if wire.prompt.is_some() {
        Some((Happened::User, Moment::UserPromptSubmit))
    } else if wire.source.is_some() {
        Some((Happened::Began(super::Beginning::Whole), Moment::SessionStart))
    } else if wire.reason.is_some() {
        Some((Happened::End, Moment::SessionEnd))
    } else {
        None
    };
    let (hook, events, envelope) = match found {
        Some((happened, moment)) => (own_name(moment), vec![happened], Envelope::Copilot(Style::Own, moment)),
        None => (String::new(), Vec::new(), Envelope::Mute),
    };
    let session = kin::text(wire.session_id);
    Ok(Letter {
        host: Host::Copilot,
        hook,
        session: if session.is_empty() { NO_SESSION.to_owned() } else { session },
        agent: MAIN_AGENT.to_owned(),
        cwd: kin::text(wire.cwd),
        transcript: None,
        pid: None,
        round: None,
        at: time::moment(&wire.timestamp),
        attended: Attended::Unsaid,
        events,
        envelope,
        whole,
        is_whole,
    })
}

/// Its own name for an event, in its own style.
fn own_name(moment: Moment) -> String {
    if moment == Moment::UserPromptSubmit {
        return "userPromptSubmitted".to_owned();
    }
    let (first, rest) = moment.word().split_at(1);
    first.to_ascii_lowercase() + rest
}

impl WireOwn {
    fn call(&mut self) -> Result<Call, WireError> {
        let missing = || WireError::BadField { field: "toolName", why: "is missing".to_owned() };
        let tool = self.tool_name.take().filter(|tool| !tool.0.is_empty()).ok_or_else(missing)?;
        let input = match (self.tool_args.take(), self.tool_input.take()) {
            (Value::Null, input) => input,
            (Value::String(text), _) => scalar::arguments(text),
            (args, _) => args,
        };
        Ok(Call::new(tool.0, bounded::input(input)))
    }

    fn after(&mut self, ended: Ended) -> Result<Happened, WireError> {
        Ok(Happened::After(Box::new(ended.of(String::new(), self.call()?, None))))
    }
}

/// Reads a result, in either style.
fn ended(mut result: Value) -> Ended {
    let mut field = |one: &str, other: &str| {
        let field = if result.get(one).is_some() { one } else { other };
        result.get_mut(field).map(Value::take).map(scalar::words).unwrap_or_default()
    };
    let kind = field("resultType", "result_type");
    let text = field("textResultForLlm", "text_result_for_llm");
    match (&*kind, exit_line(&text)) {
        ("rejected" | "denied", _) => Ended::saying(Outcome::Denied, text),
        (_, Some((printed, code))) => Ended::saying(Outcome::Exited { code }, printed),
        ("failure", None) => Ended::saying(Outcome::ReportedFailure, text),
        (_, None) => Ended::saying(Outcome::Succeeded, text),
    }
}

/// Splits off the last line, `<shellId: 1 completed with exit code 3>`.
fn exit_line(text: &str) -> Option<(&str, i32)> {
    let text = text.trim_end();
    let (printed, line) = text.rsplit_once('\n').unwrap_or(("", text));
    let line = line.strip_prefix('<')?.strip_suffix('>')?;
    let (before, code) = line.rsplit_once(" with exit code ")?;
    let is_its_own = before.starts_with("shellId: ") || before == "exited";
    Some((printed, code.parse().ok().filter(|_| is_its_own)?))
}

fn failed(error: String) -> Ended {
    let never_ran = error.starts_with("Tool '") && error.ends_with("does not exist.")
        || error.starts_with('"') && error.contains("\": ");
    Ended::saying(if never_ran { Outcome::Rejected } else { Outcome::Threw }, error)
}

/// What it heeds of an answer.
pub(super) fn honours(moment: Moment) -> Honours {
    let none = Honours::default();
    match moment {
        Moment::PreToolUse => Honours { tell: true, deny: true, rewrite: true, ..none },
        Moment::PostToolUse | Moment::PostToolUseFailure => Honours { tell: true, ..none },
        Moment::PermissionRequest
        | Moment::PermissionDenied
        | Moment::PostToolBatch
        | Moment::UserPromptSubmit
        | Moment::SessionStart
        | Moment::SubagentStop
        | Moment::SessionEnd => none,
    }
}

/// An answer with names of its own.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WireAnswer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_args: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
}

impl WireAnswer<'_> {
    fn tell(words: String) -> Self {
        WireAnswer { additional_context: Some(words), ..WireAnswer::default() }
    }
}

/// The answer as it understands it. After a call it heeds only its own shape, whatever the style.
pub(super) fn answer(style: Style, moment: Moment, reply: &Reply) -> Option<String> {
    let words = reply.told()?;
    let answer = match moment {
        Moment::PostToolUse | Moment::PostToolUseFailure => WireAnswer::tell(words),
        Moment::PreToolUse => return before(style, reply, words),
        Moment::PermissionRequest
        | Moment::PermissionDenied
        | Moment::PostToolBatch
        | Moment::UserPromptSubmit
        | Moment::SessionStart
        | Moment::SubagentStop
        | Moment::SessionEnd => return None,
    };
    serde_json::to_string(&answer).ok()
}

/// The answer before a call, in the style it was asked in.
fn before(style: Style, reply: &Reply, words: String) -> Option<String> {
    let moment = Moment::PreToolUse;
    let updated_input = match reply {
        Reply::Rewrite { input, .. } => Some(input),
        Reply::Silent
        | Reply::Tell { .. }
        | Reply::Deny { .. }
        | Reply::Ask { .. }
        | Reply::Halt { .. }
        | Reply::Again { .. } => None,
    };
    match (style, reply.is_against_the_call()) {
        (Style::Claude, true) => kin::WireAnswer::stop(moment, Stop::Deny, &words).print(),
        (Style::Claude, false) => {
            let additional_context = Some(words);
            let specific = WireSpecific { updated_input, additional_context, ..WireSpecific::at(moment) };
            kin::WireAnswer::of(specific).print()
        }
        (Style::Own, true) => serde_json::to_string(&WireAnswer {
            permission_decision: Some(Stop::Deny.word()),
            permission_decision_reason: Some(words),
            ..WireAnswer::default()
        })
        .ok(),
        (Style::Own, false) => {
            serde_json::to_string(&WireAnswer { modified_args: updated_input, ..WireAnswer::tell(words) })
                .ok()
        }
    }
}
