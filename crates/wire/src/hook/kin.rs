//! What Claude Code and the programs that took after it have in common: the fields of a payload, the names of the events, and
//! the shape of an answer. Which of it a program sends and heeds stands in the program's own file.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use unstuck_judge::shell;
use unstuck_judge::{Call, Observation, Outcome, vocabulary};

use super::{
    Attended, Beginning, Envelope, Finished, Happened, Honours, Host, Letter, NO_SESSION, Reply, speech,
};
use crate::bounded;
use crate::json::{WireError, read_object};
use crate::recorded::MAIN_AGENT;
use crate::scalar::{self, WireText};
use crate::time;

vocabulary! {
    /// The events of Claude Code that tell us something, by its own names.
    Moment {
        /// A call is asked for.
        PreToolUse = "PreToolUse",
        /// A person is to be asked.
        PermissionRequest = "PermissionRequest",
        /// Nobody was asked, and the answer is no.
        PermissionDenied = "PermissionDenied",
        /// A call went well, as far as the program knows.
        PostToolUse = "PostToolUse",
        /// A call failed.
        PostToolUseFailure = "PostToolUseFailure",
        /// All calls of one answer are done.
        PostToolBatch = "PostToolBatch",
        /// Somebody wrote, most often a person.
        UserPromptSubmit = "UserPromptSubmit",
        /// A session begins, goes on, or lost its memory.
        SessionStart = "SessionStart",
        /// A sub-agent is done.
        SubagentStop = "SubagentStop",
        /// A session is over.
        SessionEnd = "SessionEnd",
    }
}

/// A payload as it arrives; the names are theirs. Fields that nobody knows are passed over, and what is merely useful may be
/// of any type.
#[derive(Deserialize)]
pub(super) struct WirePayload {
    pub(super) hook_event_name: Option<WireText>,
    session_id: Option<WireText>,
    conversation_id: Option<WireText>,
    transcript_path: Option<WireText>,
    cwd: Option<WireText>,
    #[serde(default)]
    timestamp: Value,
    permission_mode: Option<WireText>,
    agent_id: Option<WireText>,
    pub(super) agent_type: Option<WireText>,
    tool_name: Option<WireText>,
    #[serde(default)]
    tool_input: Value,
    tool_use_id: Option<WireText>,
    tool_call_id: Option<WireText>,
    #[serde(default)]
    pub(super) tool_response: Value,
    #[serde(default)]
    pub(super) tool_result: Value,
    #[serde(default)]
    pub(super) tool_output: Value,
    pub(super) error: Option<WireText>,
    pub(super) error_message: Option<WireText>,
    pub(super) failure_type: Option<WireText>,
    #[serde(default)]
    pub(super) is_interrupt: Value,
    #[serde(default)]
    pub(super) duration_ms: Value,
    #[serde(default)]
    pub(super) duration: Value,
    #[serde(default)]
    tool_calls: Value,
    pub(super) prompt: Option<WireText>,
    source: Option<WireText>,
    pub(super) original_request_name: Option<IgnoredAny>,
    /// Was the input small enough to be kept whole?
    #[serde(skip, default = "yes")]
    is_whole: bool,
    #[serde(skip)]
    whole: Option<Value>,
}

fn yes() -> bool {
    true
}

/// One call of a batch, with what the model is shown of it.
#[derive(Deserialize)]
pub(super) struct WireBatched {
    tool_name: Option<WireText>,
    #[serde(default)]
    tool_input: Value,
    tool_use_id: Option<WireText>,
    tool_call_id: Option<WireText>,
    pub(super) status: Option<WireText>,
    #[serde(default)]
    pub(super) tool_response: Value,
}

/// So many calls of one answer are read; no model makes more.
const BATCH_MAX: usize = 256;

impl WirePayload {
    pub(super) fn read(bytes: &[u8]) -> Result<WirePayload, WireError> {
        read_object(bytes)
    }

    /// What the event is called.
    pub(super) fn event(&self) -> Result<&str, WireError> {
        let missing = || WireError::BadField { field: "hook_event_name", why: "is missing".to_owned() };
        self.hook_event_name.as_ref().map(|name| &*name.0).filter(|name| !name.is_empty()).ok_or_else(missing)
    }

    /// The event, where it is one that tells us something.
    pub(super) fn moment(&self) -> Result<Option<Moment>, WireError> {
        Ok(self.event()?.parse().ok())
    }

    /// The program's name for the call. Where there are two, the one that the model knows it by: it is the same in every event.
    pub(super) fn key(&mut self) -> String {
        text(self.tool_call_id.take().or(self.tool_use_id.take()))
    }

    pub(super) fn tool(&self) -> Option<&str> {
        self.tool_name.as_ref().map(|tool| &*tool.0)
    }

    pub(super) fn is_shell(&self) -> bool {
        is_shell(self.tool())
    }

    pub(super) fn call(&mut self) -> Result<Call, WireError> {
        self.is_whole = bounded::fits(&self.tool_input);
        self.whole = bounded::whole(&self.tool_input);
        call(self.tool_name.take(), self.tool_input.take())
    }

    pub(super) fn before(&mut self) -> Result<Happened, WireError> {
        Ok(Happened::Before { key: self.key(), call: self.call()?, new_user_turn: false })
    }

    pub(super) fn ask(&mut self) -> Result<Happened, WireError> {
        Ok(Happened::Ask { key: self.key(), call: Some(self.call()?) })
    }

    pub(super) fn after(&mut self, ended: Ended) -> Result<Happened, WireError> {
        let took_ms = count(&self.duration_ms).or_else(|| count(&self.duration));
        Ok(Happened::After(Box::new(ended.of(self.key(), self.call()?, took_ms))))
    }

    /// The calls of a batch. One that is no object is none.
    pub(super) fn batch(&mut self) -> Vec<WireBatched> {
        let Value::Array(calls) = self.tool_calls.take() else { return Vec::new() };
        calls.into_iter().take(BATCH_MAX).filter_map(|call| serde_json::from_value(call).ok()).collect()
    }

    pub(super) fn began(&self) -> Happened {
        let is_cut = self.source.as_ref().is_some_and(|source| source.0 == "compact");
        Happened::Began(if is_cut { Beginning::Shortened } else { Beginning::Whole })
    }

    /// That a sub-agent is done. One without a name is nobody: taken for the main agent, it would end calls that still run.
    pub(super) fn agent_done(&self) -> Vec<Happened> {
        self.agent().map(|_| Happened::AgentDone).into_iter().collect()
    }

    /// The sub-agent that acts, where one does.
    fn agent(&self) -> Option<&str> {
        self.agent_id.as_ref().map(|agent| &*agent.0).filter(|agent| !agent.is_empty())
    }

    /// Whether somebody would answer a question, by how the program asks for permission. A mode in which it asks says nothing:
    /// it may run without a person all the same.
    pub(super) fn attended(&self) -> Attended {
        match self.permission_mode.as_ref().map(|mode| &*mode.0) {
            Some("bypassPermissions" | "dontAsk" | "yolo") => Attended::No,
            Some(_) | None => Attended::Unsaid,
        }
    }

    /// The letter, of which only the events are left to say.
    pub(super) fn letter(self, host: Host, events: Vec<Happened>, envelope: Envelope) -> Letter {
        let session =
            text(self.session_id.clone().filter(|id| !id.0.is_empty()).or(self.conversation_id.clone()));
        Letter {
            host,
            hook: text(self.hook_event_name.clone()),
            session: if session.is_empty() { NO_SESSION.to_owned() } else { session },
            agent: self.agent().unwrap_or(MAIN_AGENT).to_owned(),
            attended: self.attended(),
            cwd: text(self.cwd),
            transcript: self.transcript_path.map(|path| path.0).filter(|path| !path.is_empty()),
            pid: None,
            round: None,
            at: time::moment(&self.timestamp),
            events,
            envelope,
            whole: self.whole,
            is_whole: self.is_whole,
        }
    }
}

impl WireBatched {
    pub(super) fn after(mut self, ended: Ended) -> Result<Happened, WireError> {
        let key = text(self.tool_call_id.take().or(self.tool_use_id.take()));
        let call = call(self.tool_name, self.tool_input)?;
        Ok(Happened::After(Box::new(ended.of(key, call, None))))
    }

    pub(super) fn is_shell(&self) -> bool {
        is_shell(self.tool_name.as_ref().map(|tool| &*tool.0))
    }
}

/// Whether a tool of this name takes command lines.
pub(crate) fn is_shell(tool: Option<&str>) -> bool {
    tool.is_some_and(|tool| shell::line(&Call::new(tool, Value::String("true".to_owned()))).is_some())
}

fn call(tool: Option<WireText>, input: Value) -> Result<Call, WireError> {
    let missing = || WireError::BadField { field: "tool_name", why: "is missing".to_owned() };
    let tool = tool.filter(|tool| !tool.0.is_empty()).ok_or_else(missing)?;
    let input = match input {
        Value::String(text) => scalar::arguments(text),
        input => input,
    };
    Ok(Call::new(tool.0, bounded::input(input)))
}

pub(super) fn text(text: Option<WireText>) -> String {
    text.map(|text| text.0).unwrap_or_default()
}

pub(super) fn count(value: &Value) -> Option<u64> {
    scalar::count("", value).ok().flatten()
}

/// How a call ended, before it is known which.
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) said_ok: Option<bool>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) merged: String,
    pub(super) can_retry: bool,
    /// Does it go on in the background?
    pub(super) runs_on: bool,
}

impl Ended {
    /// An ending with a text of which the streams are not known apart.
    pub(super) fn saying(outcome: Outcome, merged: impl Into<String>) -> Ended {
        let merged = merged.into();
        let said_ok = outcome.said_ok();
        let (stdout, stderr) = (String::new(), String::new());
        Ended { outcome, said_ok, stdout, stderr, merged, can_retry: false, runs_on: false }
    }

    pub(super) fn of(self, key: String, call: Call, took_ms: Option<u64>) -> Finished {
        let Ended { outcome, said_ok, can_retry, runs_on, .. } = self;
        let observation = Observation {
            call,
            outcome,
            http_status: None,
            stdout: bounded::output(self.stdout.into_bytes()),
            stderr: bounded::output(self.stderr.into_bytes()),
            merged: bounded::output(self.merged.into_bytes()),
        };
        Finished { key, observation, said_ok, took_ms, can_retry, runs_on, new_user_turn: false }
    }
}

/// The words of a result, whose shape depends on the tool: a text, a list of parts, an object around one of them, or an object
/// of its own, which keeps its JSON.
pub(super) fn result(response: Value) -> String {
    match response {
        Value::Object(mut fields) => {
            let file = fields.get_mut("file").and_then(|file| file.get_mut("content")).map(Value::take);
            let content =
                fields.get_mut("content").filter(|it| it.is_string() || it.is_array()).map(Value::take);
            match file.or(content) {
                Some(content) => scalar::words(content),
                None => Value::Object(fields).to_string(),
            }
        }
        other => scalar::words(other),
    }
}

/// An answer in the shape that Claude Code gave it. Codex refuses an answer with a single field that it does not know, so
/// nothing is written that was not asked for.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireAnswer<'a> {
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub(super) goes_on: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hook_specific_output: Option<WireSpecific<'a>>,
}

/// The part of an answer that only its event knows. Without the name of the event the whole answer is dropped.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireSpecific<'a> {
    pub(super) hook_event_name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) permission_decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) permission_decision_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decision: Option<WireRuling>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) updated_input: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) additional_context: Option<String>,
}

/// The answer to a question for permission.
#[derive(Debug, Serialize)]
pub(super) struct WireRuling {
    pub(super) behavior: &'static str,
    pub(super) message: String,
}

impl<'a> WireAnswer<'a> {
    /// An answer with what only its event knows.
    pub(super) fn of(specific: WireSpecific<'a>) -> WireAnswer<'a> {
        WireAnswer { hook_specific_output: Some(specific), ..WireAnswer::default() }
    }

    /// Facts for the model; nothing where there are none.
    pub(super) fn tell(moment: Moment, text: &str) -> Option<WireAnswer<'a>> {
        let additional_context = Some(speech::some(text)?);
        Some(WireAnswer::of(WireSpecific { additional_context, ..WireSpecific::at(moment) }))
    }

    /// A call that may not run as it is: `deny`, or `ask` for one about which a person should decide. There is no third word.
    pub(super) fn stop(moment: Moment, word: Stop, reason: &str) -> WireAnswer<'a> {
        WireAnswer::of(WireSpecific {
            permission_decision: Some(word.word()),
            permission_decision_reason: Some(speech::fit(reason)),
            ..WireSpecific::at(moment)
        })
    }

    /// The answer as it is printed.
    pub(super) fn print(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

/// The answer to a program that can be kept from a call and told facts, and knows nothing else: what it heeds decides. What
/// would ask a person or stop the run becomes a refusal, or where it is too late for that, words.
pub(super) fn refuse_or_tell(moment: Moment, honours: Honours, reply: &Reply) -> Option<String> {
    let told = reply.told()?;
    if honours.deny && reply.is_against_the_call() {
        WireAnswer::stop(moment, Stop::Deny, &told).print()
    } else if honours.tell {
        WireAnswer::tell(moment, &told)?.print()
    } else {
        None
    }
}

impl<'a> WireSpecific<'a> {
    pub(super) fn at(moment: Moment) -> WireSpecific<'a> {
        WireSpecific { hook_event_name: moment.word(), ..WireSpecific::default() }
    }
}

vocabulary! {
    /// How a call is kept from running.
    Stop {
        /// It does not run.
        Deny = "deny",
        /// It does not run unless a person says so.
        Ask = "ask",
    }
}
