//! opencode, through the plugin that we install: opencode itself has no hooks, and the words here are ours on both sides.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unstuck_judge::{Call, Outcome};

use super::kin::{self, Ended};
use super::{Attended, Envelope, Happened, Honours, Host, Letter, NO_SESSION, Reply};
use crate::bounded;
use crate::json::{WireError, read_object};
use crate::recorded::MAIN_AGENT;
use crate::scalar::{self, WireText};

/// What the plugin sends.
#[derive(Deserialize)]
struct WirePayload {
    hook_event_name: Option<WireText>,
    #[serde(rename = "sessionID")]
    session: Option<WireText>,
    #[serde(rename = "parentID")]
    parent: Option<WireText>,
    cwd: Option<WireText>,
    #[serde(rename = "callID")]
    call_id: Option<WireText>,
    tool: Option<WireText>,
    #[serde(default)]
    args: Value,
    output: Option<WireText>,
    error: Option<WireText>,
    #[serde(default)]
    metadata: Value,
}

/// An event that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A call is asked for.
    Before,
    /// A call ended, well or not.
    After,
}

/// What opencode says instead of a result, by how it begins to say so.
const INSTEAD: [(&str, Outcome); 4] = [
    ("The user rejected permission", Outcome::Denied),
    ("The user has specified a rule which prevents", Outcome::Denied),
    ("Tool execution aborted", Outcome::Interrupted),
    ("The arguments provided to the tool are invalid", Outcome::Rejected),
];

/// Its words for a command that printed nothing.
const NOTHING: &str = "(no output)";

/// Reads one payload.
pub(super) fn read(bytes: &[u8]) -> Result<Letter, WireError> {
    let mut wire = read_object::<WirePayload>(bytes)?;
    let missing = || WireError::BadField { field: "hook_event_name", why: "is missing".to_owned() };
    let event = wire.hook_event_name.take().filter(|name| !name.0.is_empty()).ok_or_else(missing)?.0;
    let is_whole = bounded::fits(&wire.args);
    let whole = bounded::whole(&wire.args);
    // A sub-agent is a session of its own there; for us it is an agent in the session that started it.
    let parent = kin::text(wire.parent.take());
    let own = kin::text(wire.session.take());
    let is_sub = !parent.is_empty() && parent != own;
    let (events, envelope) = match &*event {
        "tool.execute.before" => {
            let key = kin::text(wire.call_id.take());
            let before = Happened::Before { key, call: wire.call()?, new_user_turn: false };
            (vec![before], Envelope::Opencode(Event::Before))
        }
        "tool.execute.after" => (vec![wire.after()?], Envelope::Opencode(Event::After)),
        "message.part.updated" | "tool.error" if wire.error.is_some() => {
            (vec![wire.failed()?], Envelope::Opencode(Event::After))
        }
        "chat.message" => (if is_sub { Vec::new() } else { vec![Happened::User] }, Envelope::Mute),
        "session.deleted" if is_sub => (vec![Happened::AgentDone], Envelope::Mute),
        "session.deleted" => (vec![Happened::End], Envelope::Mute),
        _ => (Vec::new(), Envelope::Mute),
    };
    let (session, agent) = if is_sub { (parent, own) } else { (own, MAIN_AGENT.to_owned()) };
    Ok(Letter {
        host: Host::Opencode,
        hook: event,
        session: if session.is_empty() { NO_SESSION.to_owned() } else { session },
        agent: if agent.is_empty() { MAIN_AGENT.to_owned() } else { agent },
        cwd: kin::text(wire.cwd),
        transcript: None,
        pid: None,
        round: None,
        at: None,
        attended: Attended::Unsaid,
        events,
        envelope,
        whole,
        is_whole,
    })
}

impl WirePayload {
    fn call(&mut self) -> Result<Call, WireError> {
        let missing = || WireError::BadField { field: "tool", why: "is missing".to_owned() };
        let tool = self.tool.take().filter(|tool| !tool.0.is_empty()).ok_or_else(missing)?;
        Ok(Call::new(tool.0, bounded::input(self.args.take())))
    }

    fn finish(&mut self, ended: Ended) -> Result<Happened, WireError> {
        let key = kin::text(self.call_id.take());
        Ok(Happened::After(Box::new(ended.of(key, self.call()?, None))))
    }

    fn after(&mut self) -> Result<Happened, WireError> {
        let output = kin::text(self.output.take());
        // A tool that does not exist is handed to one of this name, which says so.
        if self.tool.as_ref().is_some_and(|tool| tool.0 == "invalid") {
            if let Some(Value::String(tool)) = self.args.get("tool").cloned() {
                self.tool = Some(WireText(tool));
            }
            return self.finish(Ended::saying(Outcome::Rejected, output));
        }
        let exit = self.metadata.get("exit");
        let output = if exit.is_some() && output.trim() == NOTHING { String::new() } else { output };
        let code = exit.and_then(|code| scalar::exit_code("exit", code).ok().flatten());
        let outcome = match (code, exit) {
            (Some(code), _) => Outcome::Exited { code },
            (None, Some(_)) if output.contains("exceeding timeout") => Outcome::TimedOut,
            (None, Some(_)) if output.contains("User aborted the command") => Outcome::Interrupted,
            (None, Some(_)) => Outcome::NoExitCode,
            (None, None) => Outcome::Succeeded,
        };
        self.finish(Ended::saying(outcome, output))
    }

    fn failed(&mut self) -> Result<Happened, WireError> {
        let error = kin::text(self.error.take());
        let instead = INSTEAD.iter().find(|(words, _)| error.starts_with(words));
        self.finish(Ended::saying(instead.map_or(Outcome::Threw, |(_, outcome)| *outcome), error))
    }
}

/// What the plugin heeds of an answer.
pub(super) fn honours(event: Event) -> Honours {
    match event {
        Event::Before => Honours { deny: true, rewrite: true, ..Honours::default() },
        Event::After => Honours { tell: true, ..Honours::default() },
    }
}

/// What the plugin reads.
#[derive(Default, Serialize)]
struct WireAnswer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    deny: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    say: Option<String>,
}

/// The answer as the plugin understands it.
pub(super) fn answer(event: Event, reply: &Reply) -> Option<String> {
    let words = reply.told()?;
    let answer = match event {
        Event::Before => match reply {
            Reply::Deny { .. } | Reply::Ask { .. } | Reply::Halt { .. } => {
                WireAnswer { deny: Some(words), ..WireAnswer::default() }
            }
            Reply::Rewrite { input, .. } => WireAnswer { args: Some(input), ..WireAnswer::default() },
            Reply::Silent | Reply::Tell { .. } | Reply::Again { .. } => return None,
        },
        Event::After => WireAnswer { say: Some(words), ..WireAnswer::default() },
    };
    serde_json::to_string(&answer).ok()
}
