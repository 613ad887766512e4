//! One line of `unstuck diagnose --jsonl`: a failed call as somebody else recorded it.

use serde::Deserialize;
use serde_json::{Value, json};
use unstuck_judge::{Call, Observation, Outcome};

use crate::json::{WireError, read_object};
use crate::scalar::{self, WireText};

/// A failure to be judged, and the name its sender knows it by.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Whatever stood in `id`, to be echoed; null if nothing did.
    pub id: Value,
    /// The call and how it ended.
    pub observation: Observation,
}

/// The line exactly as it arrives. Every field may be missing, null, or written in another way than we would.
#[derive(Deserialize)]
struct WireFailure {
    #[serde(default)]
    id: Value,
    tool: Option<WireText>,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    command: Value,
    #[serde(default)]
    exit_code: Value,
    #[serde(default)]
    signal: Value,
    #[serde(default)]
    http_status: Value,
    stdout: Option<WireText>,
    stderr: Option<WireText>,
    text: Option<WireText>,
    #[serde(default)]
    timed_out: Value,
    #[serde(default)]
    interrupted: Value,
}

/// Reads one line.
pub fn read(line: &[u8]) -> Result<Failure, WireError> {
    read_object::<WireFailure>(line)?.try_into()
}

impl TryFrom<WireFailure> for Failure {
    type Error = WireError;

    fn try_from(wire: WireFailure) -> Result<Failure, WireError> {
        let code = scalar::exit_code("exit_code", &wire.exit_code)?;
        let signal = scalar::signal("signal", &wire.signal)?;
        let http_status = scalar::http_status("http_status", &wire.http_status)?;
        let is_silent = wire.stdout.is_none() && wire.stderr.is_none() && wire.text.is_none();
        // How it was stopped outranks the code it was stopped with.
        let outcome = if scalar::flag(&wire.interrupted) {
            Outcome::Interrupted
        } else if scalar::flag(&wire.timed_out) {
            Outcome::TimedOut
        } else if let Some(signal) = signal {
            Outcome::Signalled { signal }
        } else if let Some(code) = code {
            Outcome::Exited { code }
        } else if is_silent && http_status.is_none() {
            return Err(WireError::NoEvidence);
        } else {
            Outcome::NoExitCode
        };
        let observation = Observation {
            call: call(wire.tool, wire.input, wire.command),
            outcome,
            http_status,
            stdout: scalar::bytes(wire.stdout),
            stderr: scalar::bytes(wire.stderr),
            merged: scalar::bytes(wire.text),
        };
        Ok(Failure { id: wire.id, observation })
    }
}

/// The call, from its input or, where there is none, from its command: a shell's command line, or another tool's input
/// as a text.
fn call(tool: Option<WireText>, input: Value, command: Value) -> Call {
    let tool = tool.map(|tool| tool.0).unwrap_or_default();
    let input = match (input, command) {
        (Value::Null, Value::Null) => Value::Null,
        (Value::Null, Value::String(command)) => match scalar::arguments(command) {
            Value::String(line) => json!({ "command": line }),
            input => input,
        },
        (Value::Null, command) => json!({ "command": command }),
        (Value::String(input), _) => match scalar::arguments(input) {
            // Without a tool's name a plain text can only be a command line.
            Value::String(line) if tool.is_empty() => json!({ "command": line }),
            input => input,
        },
        (input, _) => input,
    };
    let is_command = tool.is_empty() && input.get("command").is_some();
    Call::new(if is_command { "Bash".to_owned() } else { tool }, input)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows what was read in one line: outcome, tool, input, status, then the three outputs that are not empty.
    fn show(line: impl AsRef<[u8]>) -> String {
        let failure = match read(line.as_ref()) {
            Ok(failure) => failure,
            Err(error) => return error.to_string(),
        };
        let seen = failure.observation;
        let mut shown = format!("{:?} {}({})", seen.outcome, seen.call.tool, seen.call.input);
        if failure.id != Value::Null {
            shown = format!("{} {shown}", failure.id);
        }
        if let Some(status) = seen.http_status {
            shown += &format!(" http={status}");
        }
        for (name, bytes) in [("out", seen.stdout), ("err", seen.stderr), ("text", seen.merged)] {
            if !bytes.is_empty() {
                shown += &format!(" {name}={:?}", String::from_utf8_lossy(&bytes));
            }
        }
        shown
    }

    #[track_caller]
    fn check(line: impl AsRef<[u8]>, expected: &str) {
        assert_eq!(show(line), expected);
    }

    #[test]
    fn a_shell_command_becomes_the_input_of_a_shell() {
        check(
            r#"{"id":"a","tool":"Bash","command":"ls x","exit_code":2,"stdout":"","stderr":"no\n","text":"","kind":"ignored"}"#,
            r#""a" Exited { code: 2 } Bash({"command":"ls x"}) err="no\n""#,
        );
        check(r#"{"command":"ls","exit_code":1}"#, r#"Exited { code: 1 } Bash({"command":"ls"})"#);
        check(
            r#"{"tool":"shell","command":["ls","-l"],"exit_code":1}"#,
            r#"Exited { code: 1 } shell({"command":["ls","-l"]})"#,
        );
    }

    #[test]
    fn a_command_that_is_an_object_as_a_text_becomes_the_input() {
        check(
            r#"{"tool":"Edit","command":"{\"file_path\": \"/x\", \"n\": 1}","text":"no"}"#,
            r#"NoExitCode Edit({"file_path":"/x","n":1}) text="no""#,
        );
        check(
            r#"{"tool":"Bash","command":"{ ls; }","exit_code":1}"#,
            r#"Exited { code: 1 } Bash({"command":"{ ls; }"})"#,
        );
    }

    #[test]
    fn an_input_outranks_a_command() {
        check(
            r#"{"tool":"T","input":{"a":1},"command":"x","text":"t"}"#,
            r#"NoExitCode T({"a":1}) text="t""#,
        );
        check(r#"{"tool":"T","input":"{\"a\":1}","text":"t"}"#, r#"NoExitCode T({"a":1}) text="t""#);
        check(r#"{"tool":"T","input":"plain","text":"t"}"#, r#"NoExitCode T("plain") text="t""#);
    }

    #[test]
    fn a_code_may_be_a_text_and_null_is_no_code() {
        check(r#"{"exit_code":"127"}"#, "Exited { code: 127 } (null)");
        check(r#"{"exit_code":3221225477}"#, "Exited { code: -1073741819 } (null)");
        check(r#"{"exit_code":1.0}"#, "Exited { code: 1 } (null)");
        check(r#"{"exit_code":null,"text":"x"}"#, r#"NoExitCode (null) text="x""#);
        check(r#"{"exit_code":"one"}"#, "exit_code: expected a whole number, found \"one\"");
        check(r#"{"exit_code":1.5}"#, "exit_code: expected a whole number, found 1.5");
        check(r#"{"exit_code":99999999999}"#, "exit_code: expected an exit code, found 99999999999");
    }

    #[test]
    fn a_signal_may_be_a_number_or_a_name() {
        for line in [
            r#"{"signal":9}"#,
            r#"{"signal":"9"}"#,
            r#"{"signal":"SIGKILL"}"#,
            r#"{"signal":"kill","exit_code":137}"#,
        ] {
            check(line, "Signalled { signal: 9 } (null)");
        }
        check(r#"{"signal":"","exit_code":1}"#, "Exited { code: 1 } (null)");
        check(
            r#"{"signal":"SIGNIFICANT"}"#,
            "signal: expected a signal's number or name, found \"SIGNIFICANT\"",
        );
    }

    #[test]
    fn being_stopped_outranks_the_code() {
        check(r#"{"exit_code":143,"timed_out":true}"#, "TimedOut (null)");
        check(r#"{"exit_code":130,"timed_out":true,"interrupted":1}"#, "Interrupted (null)");
        check(r#"{"exit_code":1,"timed_out":false,"interrupted":null}"#, "Exited { code: 1 } (null)");
    }

    #[test]
    fn an_http_status_alone_is_evidence() {
        check(r#"{"tool":"http","http_status":"429"}"#, "NoExitCode http(null) http=429");
        check(r#"{"http_status":70000}"#, "http_status: expected an HTTP status, found 70000");
    }

    #[test]
    fn an_output_that_is_no_text_keeps_its_json() {
        check(
            r#"{"stdout":{"b":[1,null]},"stderr":["x"],"text":4.5}"#,
            r#"NoExitCode (null) out="{\"b\":[1,null]}" err="[\"x\"]" text="4.5""#,
        );
        check(r#"{"stdout":true,"stderr":null}"#, r#"NoExitCode (null) out="true""#);
    }

    #[test]
    fn half_a_surrogate_pair_does_not_lose_the_line() {
        check(r#"{"id":[1],"text":"bad \ud800 end"}"#, "[1] NoExitCode (null) text=\"bad \u{fffd} end\"");
    }

    #[test]
    fn a_line_without_evidence_says_what_is_missing() {
        assert!(
            show(r#"{"id":1,"tool":"Bash","command":"ls"}"#)
                .starts_with("nothing to judge: give at least one of exit_code")
        );
        check(r#"{"stdout":""}"#, "NoExitCode (null)");
    }

    #[test]
    fn what_is_no_record_is_an_error_in_words() {
        check("oops", "not JSON: expected value at column 1");
        check("[]", "expected a JSON object, found a list");
    }
}
