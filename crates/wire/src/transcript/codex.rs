//! Codex rollouts (`~/.codex/sessions/**/rollout-*.jsonl`).
//!
//! An envelope (`type`, `payload`) around each item; the first rollouts had none. Calls and their outputs are
//! `response_item`s tied by `call_id`; how a call really ended often stands only in an event between the two.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};
use unstuck_judge::{Call, Outcome};

use super::Use;
use super::pairing::{Answer, Made, Pairing};
use crate::json::{WireError, read_object};
use crate::recorded::MAIN_AGENT;
use crate::scalar;
use crate::time;

/// One rollout.
#[derive(Debug)]
pub(super) struct CodexReader {
    pub(super) calls: Pairing,
    agent: String,
    /// How calls ended by what events say, until their outputs come.
    endings: HashMap<String, Ending>,
    pub(super) rounds: u64,
    /// Calls made before any output comes are made together.
    round_is_open: bool,
}

impl Default for CodexReader {
    fn default() -> CodexReader {
        CodexReader {
            calls: Pairing::default(),
            agent: MAIN_AGENT.to_owned(),
            endings: HashMap::new(),
            rounds: 0,
            round_is_open: false,
        }
    }
}

/// How a call ended, in the words of an event.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Code(i32),
    Ok(bool),
}

/// A line as it stands in the file. Without an envelope the line is the item.
#[derive(Deserialize)]
struct WireLine {
    timestamp: Option<Value>,
    #[serde(rename = "type")]
    kind: Option<Value>,
    payload: Option<Value>,
}

/// Anything an envelope may hold; the names are theirs. What is not of use to us is not listed.
#[derive(Deserialize)]
struct WireItem {
    #[serde(rename = "type")]
    kind: Option<String>,
    id: Option<String>,
    session_id: Option<String>,
    cwd: Option<String>,
    thread_source: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    arguments: Option<Value>,
    input: Option<String>,
    action: Option<Value>,
    output: Option<Value>,
    role: Option<String>,
    content: Option<Value>,
    item: Option<Value>,
    exit_code: Option<i32>,
    success: Option<bool>,
    status: Option<String>,
    result: Option<Value>,
}

impl CodexReader {
    pub(super) fn read(&mut self, line: &[u8]) -> Result<Use, WireError> {
        let envelope = read_object::<WireLine>(line)?;
        let kind = envelope.kind.as_ref().and_then(Value::as_str).map(str::to_owned);
        let at = envelope.timestamp.as_ref().and_then(Value::as_str).and_then(time::millis);
        let item: WireItem = match envelope.payload {
            Some(payload) => {
                serde_json::from_value(payload).map_err(|error| WireError::Unfit(error.to_string()))?
            }
            None => read_object(line)?,
        };
        // Where it works is said with the session and with each turn; elsewhere it is said of other things.
        if let (Some("session_meta" | "turn_context") | None, Some(cwd)) = (kind.as_deref(), &item.cwd) {
            self.calls.works_in(cwd);
        }
        match (kind.as_deref(), item.kind.as_deref()) {
            (Some("session_meta"), _) | (None, None) => Ok(self.begin(&item)),
            (Some("event_msg"), Some(event)) => {
                let event = event.to_owned();
                Ok(self.event(&event, item))
            }
            // The item itself, with its envelope or without.
            (Some(_), Some(kind)) => {
                let kind = kind.to_owned();
                Ok(self.item(&kind, item, at))
            }
            (_, None) | (None, Some(_)) => Ok(Use::Ignored),
        }
    }

    fn begin(&mut self, item: &WireItem) -> Use {
        let Some(id) = &item.id else { return Use::Ignored };
        self.calls.name(item.session_id.as_ref().unwrap_or(id));
        if item.thread_source.as_deref() == Some("subagent") {
            self.agent.clone_from(id);
        }
        Use::Taken
    }

    fn item(&mut self, kind: &str, item: WireItem, at: Option<u64>) -> Use {
        match kind {
            "function_call" | "custom_tool_call" | "local_shell_call" => self.make(kind, item, at),
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                self.round_is_open = false;
                let Some(id) = item.call_id else { return Use::Ignored };
                let ending = self.endings.remove(&id);
                self.calls.answer(&id, answer(item.output.unwrap_or(Value::Null), ending), at);
            }
            "message" if item.role.as_deref() == Some("user") => {
                let words = scalar::words(item.content.unwrap_or(Value::Null));
                // What the client says in the user's name is wrapped in tags, or is the project's instructions.
                if words.is_empty() || words.starts_with(['<', '#']) {
                    return Use::Ignored;
                }
                self.person_spoke();
            }
            _ => return Use::Ignored,
        }
        Use::Taken
    }

    fn make(&mut self, kind: &str, item: WireItem, at: Option<u64>) {
        let Some(id) = item.call_id.or(item.id) else { return };
        if !self.round_is_open {
            self.rounds += 1;
            self.round_is_open = true;
        }
        let name = item.name.unwrap_or_else(|| kind.trim_end_matches("_call").to_owned());
        let tool = match item.namespace {
            Some(namespace) => format!("{namespace}__{name}"),
            None => name,
        };
        let input = match (item.arguments, item.input, item.action) {
            (Some(Value::String(text)), _, _) => scalar::arguments(text),
            (Some(arguments), _, _) => arguments,
            (None, Some(text), _) => json!({ "input": text }),
            (None, None, Some(action)) => action,
            (None, None, None) => Value::Null,
        };
        let round = self.rounds - 1;
        self.calls.make(Made { id, agent: self.agent.clone(), call: Call::new(tool, input), at, round });
    }

    fn event(&mut self, event: &str, item: WireItem) -> Use {
        match event {
            "user_message" => self.person_spoke(),
            "turn_aborted" => self.calls.interrupted(&self.agent.clone()),
            "exec_command_end" | "patch_apply_end" | "mcp_tool_call_end" => self.ended(item),
            "item_completed" => {
                let Some(Ok(done)) = item.item.map(serde_json::from_value::<WireItem>) else {
                    return Use::Ignored;
                };
                if done.kind.as_deref() == Some("UserMessage") {
                    self.person_spoke();
                } else {
                    self.ended(done);
                }
            }
            _ => return Use::Ignored,
        }
        Use::Taken
    }

    /// Keeps how a call ended until its output comes.
    fn ended(&mut self, item: WireItem) {
        let Some(id) = item.call_id.or(item.id) else { return };
        let result = item.result.as_ref();
        let reported =
            result.and_then(|result| result.get("isError").or_else(|| result.get("Ok")?.get("isError")));
        let ending = if let Some(code) = item.exit_code {
            Ending::Code(code)
        } else if let Some(success) = item.success {
            Ending::Ok(success)
        } else if result.is_some_and(|result| result.get("Err").is_some())
            || reported == Some(&Value::Bool(true))
        {
            Ending::Ok(false)
        } else {
            match item.status.as_deref() {
                Some("completed") => Ending::Ok(true),
                Some("failed" | "declined") => Ending::Ok(false),
                Some(_) | None => return,
            }
        };
        self.endings.insert(id, ending);
    }

    fn person_spoke(&mut self) {
        if self.agent == MAIN_AGENT {
            self.calls.person_spoke();
        }
    }
}

/// What the host says instead of running a call, by how it begins to say so. First match wins.
const WORDINGS: &[(&str, Outcome)] = &[
    ("failed to parse function arguments", Outcome::Rejected),
    ("unsupported call", Outcome::Rejected),
    ("unsupported custom tool call", Outcome::Rejected),
    ("apply_patch verification failed", Outcome::Rejected),
    ("aborted by user", Outcome::Interrupted),
    ("aborted", Outcome::Interrupted),
    ("rejected by user", Outcome::Denied),
    ("exec command rejected by user", Outcome::Denied),
    ("patch rejected by user", Outcome::Denied),
    ("Command blocked by PreToolUse hook", Outcome::Denied),
];

/// Reads an output: JSON with metadata, a text with a head, or a bare text; and what an event said about it.
fn answer(output: Value, ending: Option<Ending>) -> Answer {
    let (whole, success, code) = unwrap(output);
    let head = Head::of(&whole);
    let body = &whole[head.length..];
    let code = code.or(head.code).or(match ending {
        Some(Ending::Code(code)) => Some(code),
        Some(Ending::Ok(_)) | None => None,
    });
    let ok = match (ending, success) {
        (Some(Ending::Ok(ok)), _) => Some(ok),
        (Some(Ending::Code(_)) | None, ok) => ok,
    };
    let worded = WORDINGS.iter().find(|(words, _)| whole.starts_with(words)).map(|(_, outcome)| *outcome);
    // What the host counted outranks words: those may be the command's own.
    let outcome = match (code, ok) {
        _ if head.is_running => Outcome::NoExitCode,
        (Some(0), _) => Outcome::Exited { code: 0 },
        (Some(_) | None, _) if body.starts_with("command timed out after ") => Outcome::TimedOut,
        (Some(code), _) => Outcome::Exited { code },
        (None, Some(true)) => Outcome::Succeeded,
        (None, Some(false)) => worded.unwrap_or(Outcome::ReportedFailure),
        (None, None) => worded.unwrap_or(Outcome::NoExitCode),
    };
    Answer { said_ok: outcome.said_ok(), merged: body.as_bytes().to_vec(), ..Answer::silent(outcome) }
}

/// How a call ended by what its output says of itself, and what it printed.
pub(crate) fn ending(output: Value) -> (Outcome, String) {
    let answer = answer(output, None);
    (answer.outcome, String::from_utf8_lossy(&answer.merged).into_owned())
}

/// The text of an output, and what its wrapping says of success and exit code.
fn unwrap(output: Value) -> (String, Option<bool>, Option<i32>) {
    let code_of = |value: &Value| value.pointer("/metadata/exit_code")?.as_i64()?.try_into().ok();
    match output {
        Value::String(whole) if whole.starts_with('{') => match serde_json::from_str::<Value>(&whole) {
            Ok(mut inner)
                if inner.get("output").is_some_and(Value::is_string) && inner.get("metadata").is_some() =>
            {
                let code = code_of(&inner);
                (scalar::words(inner["output"].take()), None, code)
            }
            Ok(_) | Err(_) => (whole, None, None),
        },
        Value::Object(mut fields) => {
            let success = fields.get("success").and_then(Value::as_bool);
            let inner = fields
                .remove("content")
                .or_else(|| fields.remove("body"))
                .or_else(|| fields.remove("output"));
            match inner {
                Some(inner) => (scalar::words(inner), success, code_of(&Value::Object(fields))),
                None => (Value::Object(fields).to_string(), success, None),
            }
        }
        output => (scalar::words(output), None, None),
    }
}

/// The lines a host puts before what a command printed.
#[derive(Default)]
struct Head {
    length: usize,
    code: Option<i32>,
    is_running: bool,
}

impl Head {
    /// Reads the head, up to and with its `Output:` line. A text that does not begin like one has none.
    fn of(whole: &str) -> Head {
        const BEGINNINGS: [&str; 3] = ["Exit code: ", "Wall time: ", "Chunk ID: "];
        const LINES: usize = 8;
        if !BEGINNINGS.iter().any(|words| whole.starts_with(words)) {
            return Head::default();
        }
        let mut head = Head::default();
        for line in whole.split_inclusive('\n').take(LINES) {
            head.length += line.len();
            let line = line.trim_end();
            if line == "Output:" {
                return head;
            }
            let code =
                line.strip_prefix("Exit code: ").or_else(|| line.strip_prefix("Process exited with code "));
            head.code = head.code.or_else(|| code?.parse().ok());
            head.is_running |= line.starts_with("Process running with session ID");
        }
        Head::default()
    }
}
