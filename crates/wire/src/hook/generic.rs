//! The generic door: a small JSON of our own, for agents that have no format we know. `docs/hook-generic.md` describes it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unstuck_judge::{Call, Observation, Outcome};

use super::{Attended, Envelope, Finished, Happened, Host, Letter, NO_SESSION};
use crate::bounded;
use crate::json::{WireError, read_object};
use crate::recorded::MAIN_AGENT;
use crate::redact::redact;
use crate::report::WireReport;
use crate::scalar::{self, WireText};
use crate::time;

/// The payload exactly as it arrives. Fields that nobody knows are passed over.
#[derive(Deserialize)]
struct WirePayload {
    event: Option<WireText>,
    session: Option<WireText>,
    agent: Option<WireText>,
    cwd: Option<WireText>,
    call_id: Option<WireText>,
    #[serde(default)]
    pid: Value,
    #[serde(default)]
    round: Value,
    #[serde(default)]
    at: Value,
    #[serde(default)]
    attended: Value,
    tool: Option<WireText>,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    new_user_turn: Value,
    #[serde(default)]
    ok: Value,
    outcome: Option<WireText>,
    #[serde(default)]
    exit_code: Value,
    #[serde(default)]
    signal: Value,
    #[serde(default)]
    http_status: Value,
    #[serde(default)]
    timed_out: Value,
    #[serde(default)]
    interrupted: Value,
    stdout: Option<WireText>,
    stderr: Option<WireText>,
    output: Option<WireText>,
    error: Option<WireText>,
    #[serde(default)]
    duration_ms: Value,
    #[serde(default)]
    can_retry: Value,
}

/// Reads one payload.
pub fn read(bytes: &[u8]) -> Result<Letter, WireError> {
    read_object::<WirePayload>(bytes)?.try_into()
}

impl TryFrom<WirePayload> for Letter {
    type Error = WireError;

    fn try_from(mut wire: WirePayload) -> Result<Letter, WireError> {
        let text = |text: Option<WireText>, otherwise: &str| match text {
            Some(WireText(text)) if !text.is_empty() => text,
            Some(_) | None => otherwise.to_owned(),
        };
        let word = text(wire.event.take(), "");
        let bad = |why: String| WireError::BadField { field: "event", why };
        // What is merely useful, and cannot be understood, is no reason to lose a call.
        let count = |value: &Value| scalar::count("", value).ok().flatten();
        let pid = count(&wire.pid).and_then(|pid| u32::try_from(pid).ok());
        let key = text(wire.call_id.take(), "");
        Ok(Letter {
            host: Host::Generic,
            hook: String::new(),
            session: text(wire.session.take(), NO_SESSION),
            agent: text(wire.agent.take(), MAIN_AGENT),
            cwd: text(wire.cwd.take(), ""),
            pid: pid.filter(|pid| *pid > 0),
            round: count(&wire.round),
            at: time::moment(&wire.at),
            transcript: None,
            attended: match wire.attended {
                Value::Null => Attended::Unsaid,
                ref said if scalar::flag(said) => Attended::Yes,
                _ => Attended::No,
            },
            envelope: Envelope::Generic,
            whole: bounded::whole(&wire.input),
            is_whole: bounded::fits(&wire.input),
            events: vec![match &*word {
                "before" => {
                    let new_user_turn = scalar::flag(&wire.new_user_turn);
                    Happened::Before { key, call: wire.call()?, new_user_turn }
                }
                "after" => wire.after(key)?,
                "ask" => Happened::Ask { key, call: None },
                "approved" => Happened::Approved { key },
                "denied" => Happened::Denied { key },
                "user" => Happened::User,
                "end" => Happened::End,
                "" => {
                    return Err(bad(
                        "is missing: give before, after, ask, approved, denied, user or end".to_owned()
                    ));
                }
                _ => {
                    let shown = short(&word);
                    return Err(bad(format!(
                        "expected before, after, ask, approved, denied, user or end, found {shown:?}"
                    )));
                }
            }],
        })
    }
}

impl WirePayload {
    fn call(&mut self) -> Result<Call, WireError> {
        let missing = || WireError::BadField { field: "tool", why: "is missing".to_owned() };
        let tool = self.tool.take().filter(|tool| !tool.0.is_empty()).ok_or_else(missing)?;
        let input = match self.input.take() {
            Value::String(text) => scalar::arguments(text),
            input => input,
        };
        Ok(Call::new(tool.0, bounded::input(input)))
    }

    fn after(mut self, key: String) -> Result<Happened, WireError> {
        let outcome = self.ending();
        // A tool that reports an error beside its output said both.
        let mut merged = scalar::bytes(self.output.take());
        let error = scalar::bytes(self.error.take());
        if !merged.is_empty() && !error.is_empty() {
            merged.push(b'\n');
        }
        merged.extend(error);
        let observation = Observation {
            call: self.call()?,
            outcome,
            http_status: scalar::http_status("http_status", &self.http_status).ok().flatten(),
            stdout: bounded::output(scalar::bytes(self.stdout.take())),
            stderr: bounded::output(scalar::bytes(self.stderr.take())),
            merged: bounded::output(merged),
        };
        Ok(Happened::After(Box::new(Finished {
            key,
            said_ok: self.said_ok().or_else(|| outcome.said_ok()),
            observation,
            took_ms: scalar::count("duration_ms", &self.duration_ms).ok().flatten(),
            can_retry: scalar::flag(&self.can_retry),
            runs_on: false,
            new_user_turn: scalar::flag(&self.new_user_turn),
        })))
    }

    /// How it ended, for all that can be understood of it: what is said wrongly is as good as unsaid, and no reason to lose
    /// a result.
    fn ending(&mut self) -> Outcome {
        let code = scalar::exit_code("exit_code", &self.exit_code).ok().flatten();
        let signal = scalar::signal("signal", &self.signal).ok().flatten();
        let said = self.outcome.take().and_then(|WireText(word)| Outcome::from_word(&word));
        // How it was stopped outranks the code it was stopped with.
        if scalar::flag(&self.interrupted) {
            Outcome::Interrupted
        } else if scalar::flag(&self.timed_out) {
            Outcome::TimedOut
        } else if let Some(outcome) = said {
            outcome
        } else if let Some(signal) = signal {
            Outcome::Signalled { signal }
        } else if let Some(code) = code {
            Outcome::Exited { code }
        } else {
            match self.said_ok() {
                Some(true) => Outcome::Succeeded,
                Some(false) => Outcome::ReportedFailure,
                None if self.error.as_ref().is_some_and(|error| !error.0.is_empty()) => Outcome::Threw,
                None => Outcome::NoExitCode,
            }
        }
    }

    /// What the sender calls it, written as a truth, a number or a word.
    fn said_ok(&self) -> Option<bool> {
        match &self.ok {
            Value::Bool(ok) => Some(*ok),
            Value::Number(_) => Some(scalar::flag(&self.ok)),
            Value::String(word) => match &*word.trim().to_ascii_lowercase() {
                "true" | "yes" | "1" => Some(true),
                "false" | "no" | "0" => Some(false),
                _ => None,
            },
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// The beginning of a word that nobody knows. It is cut only after what is secret in it: half a secret looks like none.
fn short(word: &str) -> String {
    redact(word).chars().take(40).collect()
}

/// The answer to a payload exactly as it is printed.
#[derive(Debug, Serialize)]
pub struct WireAnswer<'a> {
    /// The format of the answer.
    pub v: u32,
    /// What is answered.
    pub event: &'a str,
    /// `allow`, `deny` or `halt`.
    pub decision: &'static str,
    /// How long to wait before an allowed call is run: the same one failed a moment ago.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// What the ladder said, whether it was heeded or not.
    pub rung: &'static str,
    /// What the model should be told.
    pub say: Option<&'a str>,
    /// What was tried so far, for the person who decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<&'a str>,
    /// What is to be known about earlier calls whose process is gone.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub notices: &'a [String],
    /// The diagnosis of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<WireReport<'a>>,
    /// Whether the sender should send the call again by itself; only where it said that it would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<WireRetryAdvice>,
    /// The number of the call in the timeline.
    pub call: Option<i64>,
    /// The place in the timeline from which to go on reading.
    pub bookmark: Option<u64>,
    /// What became of the record: `stored`, `recorded`, `spooled` or `lost`.
    pub kept: &'static str,
    /// What unstuck itself could not do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<&'a str>,
}

/// What to do about a failed call, for a sender that sends calls again by itself.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum WireRetryAdvice {
    /// Send it again.
    Again {
        /// Always true.
        again: bool,
        /// After this wait.
        wait_ms: u64,
        /// Which attempt that will be.
        attempt: u32,
        /// How many there are at most.
        of: u32,
        /// By what its time limit should be multiplied.
        limit_factor: f64,
    },
    /// Do not.
    Stop {
        /// Always false.
        again: bool,
        /// Why.
        why: &'static str,
        /// After how long it is worth asking again, where waiting helps.
        come_back_ms: Option<u64>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(payload: &str, expected: &str) {
        let shown = match read(payload.as_bytes()) {
            Ok(read) => {
                let mut key = "";
                let event = match &read.events[0] {
                    Happened::Before { key: called, call, new_user_turn } => {
                        key = called;
                        format!("before {}({}) turn {new_user_turn}", call.tool, call.input)
                    }
                    Happened::After(finished) => {
                        let Finished { observation, said_ok, took_ms, .. } = &**finished;
                        key = &finished.key;
                        format!(
                            "after {}({}) {:?} said {said_ok:?} took {took_ms:?}: {}|{}|{}",
                            observation.call.tool,
                            observation.call.input,
                            observation.outcome,
                            String::from_utf8_lossy(&observation.stdout),
                            String::from_utf8_lossy(&observation.stderr),
                            String::from_utf8_lossy(&observation.merged),
                        )
                    }
                    other => other.word().to_owned(),
                };
                format!("{}/{}/{} {event}", read.session, read.agent, key)
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_call_is_asked_for() {
        check(
            r#"{"event":"before","session":"s","agent":"sub","call_id":"c1","tool":"Bash","input":{"command":"ls"},"new_user_turn":true}"#,
            r#"s/sub/c1 before Bash({"command":"ls"}) turn true"#,
        );
        check(r#"{"event":"before","tool":"x"}"#, "default/main/ before x(null) turn false");
    }

    #[test]
    fn a_result_says_how_it_ended_in_many_ways() {
        let after = |rest: &str| format!(r#"{{"event":"after","tool":"t","input":{{}},{rest}}}"#);
        for (rest, expected) in [
            (r#""exit_code":2,"stderr":"no""#, "Exited { code: 2 } said Some(false) took None: |no|"),
            (
                r#""ok":true,"output":"fine","duration_ms":7"#,
                "Succeeded said Some(true) took Some(7): ||fine",
            ),
            (r#""ok":false,"output":"a","error":"b""#, "ReportedFailure said Some(false) took None: ||a\nb"),
            (r#""error":"boom""#, "Threw said Some(false) took None: ||boom"),
            (r#""outcome":"rejected","error":"bad""#, "Rejected said Some(false) took None: ||bad"),
            (r#""timed_out":true,"exit_code":143"#, "TimedOut said Some(false) took None: ||"),
            (r#""output":"who knows""#, "NoExitCode said None took None: ||who knows"),
            (r#""ok":1"#, "Succeeded said Some(true) took None: ||"),
            (
                r#""ok":"no","exit_code":"n/a","signal":"SIGODD","outcome":"odd""#,
                "ReportedFailure said Some(false) took None: ||",
            ),
        ] {
            check(&after(rest), &format!("default/main/ after t({{}}) {expected}"));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        check("{}", "event: is missing: give before, after, ask, approved, denied, user or end");
        check(
            r#"{"event":"nope"}"#,
            "event: expected before, after, ask, approved, denied, user or end, found \"nope\"",
        );
        check(r#"{"event":"before"}"#, "tool: is missing");
    }

    #[test]
    fn a_moment_is_a_number_or_a_text() {
        for at in [r#""1970-01-01T00:00:02Z""#, "2000", r#""2000""#] {
            let read = read(format!(r#"{{"event":"end","at":{at}}}"#).as_bytes());
            assert_eq!(read.map(|read| read.at), Ok(Some(2000)), "{at}");
        }
        for at in [r#""soon""#, "1e18", "-3", r#""2026-02-30T00:00:00Z""#, "[]"] {
            let read = read(format!(r#"{{"event":"end","at":{at}}}"#).as_bytes());
            assert_eq!(read.map(|read| read.at), Ok(None), "{at}");
        }
    }
}
