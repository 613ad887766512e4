//! One line of `unstuck replay --jsonl`: a call of a recorded run, with its result.

use serde::Deserialize;
use serde_json::Value;
use unstuck_judge::{Call, Observation, Outcome};

use crate::json::{WireError, read_object};
use crate::scalar::{self, WireText};
use crate::time;

/// The agent a call belongs to when the record names none.
pub const MAIN_AGENT: &str = "main";

/// A call of a recorded run. Every format of a run becomes a sequence of these.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCall {
    /// Which run it belongs to.
    pub trace: String,
    /// Its place in the run.
    pub index: u64,
    /// The host's name for it; empty where the record gives none.
    pub id: String,
    /// Who made it: [`MAIN_AGENT`], or a sub-agent by its name.
    pub agent: String,
    /// The call and how it ended.
    pub observation: Observation,
    /// Whether the host called it a success. A host may be wrong in both directions.
    pub said_ok: Option<bool>,
    /// Whether a person spoke since the call before.
    pub new_user_turn: bool,
    /// When it was made, in milliseconds; from 1970 or from the start of the run, as the record counts.
    pub at: Option<u64>,
    /// How long it took, where the record says so.
    pub took_ms: Option<u64>,
    /// Calls of one answer of the model share a round: none of them could see the others' results.
    pub round: Option<u64>,
    /// The folder it was made in; empty where the record names none.
    pub cwd: String,
}

/// The line exactly as it arrives. A field `mutates` may stand in it, too; nobody reads it.
#[derive(Deserialize)]
struct WireRecorded {
    trace: Option<WireText>,
    #[serde(default)]
    i: Value,
    tool: Option<WireText>,
    #[serde(default)]
    input: Value,
    ok: Option<bool>,
    #[serde(default)]
    exit_code: Value,
    output: Option<WireText>,
    #[serde(default)]
    new_user_turn: Value,
    #[serde(default)]
    ts: Value,
    #[serde(default)]
    round: Value,
    agent: Option<WireText>,
    id: Option<WireText>,
    #[serde(default)]
    duration_ms: Value,
    cwd: Option<WireText>,
}

/// Reads one line.
pub fn read(line: &[u8]) -> Result<RecordedCall, WireError> {
    read_object::<WireRecorded>(line)?.try_into()
}

impl TryFrom<WireRecorded> for RecordedCall {
    type Error = WireError;

    fn try_from(wire: WireRecorded) -> Result<RecordedCall, WireError> {
        let missing = |field| WireError::BadField { field, why: "is missing".to_owned() };
        let tool = wire.tool.ok_or_else(|| missing("tool"))?.0;
        let index = scalar::count("i", &wire.i)?.ok_or_else(|| missing("i"))?;
        let input = match wire.input {
            Value::String(text) => scalar::arguments(text),
            input => input,
        };
        let outcome = match (scalar::exit_code("exit_code", &wire.exit_code)?, wire.ok) {
            (Some(code), _) => Outcome::Exited { code },
            (None, Some(true)) => Outcome::Succeeded,
            (None, Some(false)) => Outcome::ReportedFailure,
            (None, None) => Outcome::NoExitCode,
        };
        let observation = Observation {
            call: Call::new(tool, input),
            outcome,
            http_status: None,
            stdout: Vec::new(),
            stderr: Vec::new(),
            merged: scalar::bytes(wire.output),
        };
        Ok(RecordedCall {
            trace: wire.trace.map(|trace| trace.0).unwrap_or_default(),
            index,
            id: wire.id.map(|id| id.0).unwrap_or_default(),
            took_ms: scalar::count("duration_ms", &wire.duration_ms)?,
            agent: wire.agent.map_or_else(|| MAIN_AGENT.to_owned(), |agent| agent.0),
            observation,
            said_ok: wire.ok,
            new_user_turn: scalar::flag(&wire.new_user_turn),
            at: moment(&wire.ts),
            round: scalar::count("round", &wire.round)?,
            cwd: wire.cwd.map(|cwd| cwd.0).unwrap_or_default(),
        })
    }
}

/// Seconds as a number, or a moment as a text. A time nobody understands is no reason to lose a call.
fn moment(ts: &Value) -> Option<u64> {
    match ts {
        Value::String(text) => time::millis(text),
        // The cast saturates at the ends, and a negative time is none.
        Value::Number(seconds) => seconds
            .as_f64()
            .filter(|seconds| *seconds >= 0.0)
            .map(|seconds| (seconds * 1000.0).round() as u64)
            .filter(|at| *at <= time::LAST),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let shown = match read(line.as_bytes()) {
            Ok(call) => {
                let seen = &call.observation;
                format!(
                    "{}#{} {} {}({}) {:?} said {:?} turn {} at {:?} round {:?}: {}",
                    call.trace,
                    call.index,
                    call.agent,
                    seen.call.tool,
                    seen.call.input,
                    seen.outcome,
                    call.said_ok,
                    call.new_user_turn,
                    call.at,
                    call.round,
                    String::from_utf8_lossy(&seen.merged)
                )
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_full_line_is_read_and_mutates_is_not() {
        check(
            r#"{"trace":"t","i":3,"tool":"Bash","input":{"command":"ls"},"ok":false,"exit_code":2,"output":"no","mutates":{"x":[]},"new_user_turn":true,"ts":1.5,"round":2,"agent":"sub"}"#,
            r#"t#3 sub Bash({"command":"ls"}) Exited { code: 2 } said Some(false) turn true at Some(1500) round Some(2): no"#,
        );
    }

    #[test]
    fn without_a_code_the_host_is_believed_as_far_as_it_goes() {
        check(
            r#"{"trace":"t","i":0,"tool":"Read","input":{},"ok":true,"exit_code":null}"#,
            "t#0 main Read({}) Succeeded said Some(true) turn false at None round None: ",
        );
        check(
            r#"{"trace":"t","i":0,"tool":"Read","input":{},"ok":false}"#,
            "t#0 main Read({}) ReportedFailure said Some(false) turn false at None round None: ",
        );
        check(
            r#"{"trace":7,"i":"0","tool":"Read","input":null,"ok":null}"#,
            "7#0 main Read(null) NoExitCode said None turn false at None round None: ",
        );
    }

    #[test]
    fn input_and_output_may_be_texts_or_not() {
        check(
            r#"{"trace":"t","i":0,"tool":"x","input":"{\"a\":1}","ok":true,"output":{"b":2},"ts":"1970-01-01T00:00:01Z"}"#,
            r#"t#0 main x({"a":1}) Succeeded said Some(true) turn false at Some(1000) round None: {"b":2}"#,
        );
        check(
            r#"{"trace":"t","i":0,"tool":"x","input":"plain","ok":true,"output":null,"ts":-1}"#,
            r#"t#0 main x("plain") Succeeded said Some(true) turn false at None round None: "#,
        );
    }

    #[test]
    fn what_a_call_needs_is_named_when_it_is_missing() {
        check(r#"{"trace":"t","i":0}"#, "tool: is missing");
        check(r#"{"trace":"t","tool":"x"}"#, "i: is missing");
        check(r#"{"trace":"t","tool":"x","i":-1}"#, "i: expected a number from 0 up, found -1");
        check(
            r#"{"trace":"t","tool":"x","i":1,"ok":"yes"}"#,
            "does not fit: invalid type: string \"yes\", expected a boolean at column 40",
        );
    }
}
