//! What came of an attempt, as the judge wants to hear it and as the model is to see it.

use std::io::{self, Write};

use serde_json::{Value, json};
use unstuck_judge::{Effect, Lang, Outcome};

use crate::failure::{Account, Manner};
use crate::hook::Attempted;
use crate::ledger::Printed;
use crate::schema::Mistake;

/// The most of an answer that is compared with others; of the rest a number stands for it.
const PRINTED_MAX: usize = 256 * 1024;
/// The most of a message or a stream that a model is shown with a failure.
const SHOWN_MAX: usize = 16 * 1024;

/// What came of an attempt, or of one that was not made.
#[derive(Debug)]
pub(crate) enum Event {
    /// It was made.
    Came(Attempted),
    /// It was not: the arguments do not fit.
    Invalid { text: String, mistakes: Vec<Mistake> },
    /// It was not: there is no such tool, and this is what to do instead.
    Unknown { text: String, advice: Vec<String> },
    /// It was not: somebody said no.
    Denied(String),
}

impl Event {
    /// The arguments do not fit, and no field of them is to blame alone.
    pub(crate) fn invalid(text: String) -> Event {
        Event::Invalid { text, mistakes: Vec::new() }
    }
}

/// The same in words.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) printed: Printed,
    /// What is said to be wrong; empty where nothing is.
    pub(crate) error: String,
    /// What the tool recommends.
    pub(crate) advice: Vec<String>,
    /// The rules have nothing to add to that.
    pub(crate) is_all_advice: bool,
    pub(crate) mistakes: Vec<Mistake>,
    /// What the tool answered.
    pub(crate) output: Value,
    /// It is not sent again by us.
    pub(crate) not_again: bool,
}

impl Observed {
    /// Reads what came. `ok_is_data` says that a result may well say `"ok": false`.
    pub(crate) fn of(event: Event, ok_is_data: bool, lang: Lang) -> Observed {
        match event {
            Event::Came(Ok(output)) => match Told::by(&output).filter(|_| !ok_is_data) {
                None => Observed {
                    printed: streams(&output),
                    error: String::new(),
                    advice: Vec::new(),
                    is_all_advice: false,
                    mistakes: Vec::new(),
                    output,
                    not_again: false,
                },
                Some(told) => {
                    Observed { advice: told.advice, output, ..Observed::in_words(told.outcome, told.error) }
                }
            },
            Event::Came(Err(failure)) => Observed::failed(failure.into_account(), lang),
            Event::Invalid { text, mistakes } => {
                Observed { mistakes, ..Observed::in_words(Outcome::Rejected, text) }
            }
            Event::Unknown { text, advice } => {
                Observed { advice, is_all_advice: true, ..Observed::in_words(Outcome::Rejected, text) }
            }
            Event::Denied(why) => Observed::in_words(Outcome::Denied, why),
        }
    }

    fn in_words(outcome: Outcome, words: String) -> Observed {
        Observed {
            printed: Printed {
                merged: excerpt(words.as_bytes(), PRINTED_MAX).into_bytes(),
                ..Printed::nothing(outcome)
            },
            error: excerpt(words.as_bytes(), SHOWN_MAX),
            advice: Vec::new(),
            is_all_advice: false,
            mistakes: Vec::new(),
            output: Value::Null,
            not_again: false,
        }
    }

    fn failed(failure: Account, lang: Lang) -> Observed {
        let outcome = match failure.manner {
            Manner::Expected => Outcome::ReportedFailure,
            Manner::Unexpected | Manner::Panicked => Outcome::Threw,
            Manner::Invalid => Outcome::Rejected,
            Manner::Exited(code) => Outcome::Exited { code },
            Manner::Signalled(signal) => Outcome::Signalled { signal },
            Manner::TimedOut => Outcome::TimedOut,
            Manner::Interrupted => Outcome::Interrupted,
        };
        let has_streams = !failure.stdout.is_empty() || !failure.stderr.is_empty();
        let words = if has_streams { failure.hint() } else { failure.text() };
        let merged = excerpt(words.as_bytes(), PRINTED_MAX).into_bytes();
        let http_status = failure.http_status;
        let effect = match (failure.nothing_done, failure.may_have_acted) {
            (true, _) => Some(Effect::Nothing),
            (false, true) => Some(Effect::Maybe),
            (false, false) => None,
        };
        // Whoever says when it may be asked again says that it passes by itself.
        let comes_back = failure.passes || failure.retry_after.is_some();
        // What a command printed is what the model can act on.
        let shown = || match (has_streams, failure.manner) {
            (false, _) => Value::Null,
            (true, manner) => {
                let code = if let Manner::Exited(code) = manner { Some(code) } else { None };
                json!({ "exit_code": code, "stdout": excerpt(&failure.stdout, SHOWN_MAX), "stderr": excerpt(&failure.stderr, SHOWN_MAX) })
            }
        };
        let output = failure.data.clone().unwrap_or_else(shown);
        let error = failure.said(lang);
        let Account { stdout, stderr, .. } = failure;
        Observed {
            printed: Printed { outcome, http_status, stdout, stderr, merged, comes_back, effect },
            error: excerpt(error.as_bytes(), SHOWN_MAX),
            advice: failure.recommendations.into_iter().map(|advice| advice.in_language(lang)).collect(),
            is_all_advice: false,
            mistakes: Vec::new(),
            output,
            not_again: failure.not_again,
        }
    }
}

/// A result that tells of a failure itself.
struct Told {
    outcome: Outcome,
    error: String,
    advice: Vec<String>,
}

impl Told {
    fn by(output: &Value) -> Option<Told> {
        let fields = output.as_object()?;
        let is_set = |name: &str| fields.get(name) == Some(&Value::Bool(true));
        let outcome = match (fields.get("ok"), is_set("_validationError"), is_set("_thrownError")) {
            (Some(Value::Bool(true)), _, _) => return None,
            (_, true, _) => Outcome::Rejected,
            (_, false, true) => Outcome::Threw,
            (Some(Value::Bool(false)), false, false) => Outcome::ReportedFailure,
            (_, false, false) => return None,
        };
        let error = ["error", "message", "reason"].iter().find_map(|name| fields.get(*name));
        let error = match error {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => "the tool says that it failed, and not why".to_owned(),
        };
        let advice = fields.get("recommendations").and_then(Value::as_array).into_iter().flatten();
        let advice = advice.filter_map(Value::as_str).map(str::to_owned).collect();
        Some(Told { outcome, error, advice })
    }
}

/// A text as the model is shown it: of a long one beginning and end.
fn excerpt(text: &[u8], most: usize) -> String {
    match text.len() > most {
        false => String::from_utf8_lossy(text).into_owned(),
        true => {
            let (head, tail) = (&text[..most / 2], &text[text.len() - most / 2..]);
            let cut = text.len() - most;
            format!("{}\n[… {cut} bytes …]\n{}", String::from_utf8_lossy(head), String::from_utf8_lossy(tail))
        }
    }
}

/// What a success prints: its streams where it has them, like a command, and otherwise all of it.
fn streams(output: &Value) -> Printed {
    let nothing = Printed::nothing(Outcome::Succeeded);
    match (output["stdout"].as_str(), output["stderr"].as_str()) {
        (Some(stdout), Some(stderr)) => {
            Printed { stdout: stdout.as_bytes().to_vec(), stderr: stderr.as_bytes().to_vec(), ..nothing }
        }
        _ => Printed { stdout: printed(output), ..nothing },
    }
}

/// An answer as text, as a person would see it, and no more than is compared.
fn printed(output: &Value) -> Vec<u8> {
    let mut text = Bounded { kept: Vec::new(), beyond: 0 };
    let _never_fails = match output {
        Value::String(words) => text.write_all(words.as_bytes()),
        other => serde_json::to_writer(&mut text, other).map_err(io::Error::from),
    };
    if text.beyond != 0 {
        let rest = format!("…{:016x}", text.beyond);
        text.kept.extend_from_slice(rest.as_bytes());
    }
    text.kept
}

/// Keeps the beginning, and a number that stands for all the rest.
struct Bounded {
    kept: Vec<u8>,
    beyond: u64,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = PRINTED_MAX.saturating_sub(self.kept.len()).min(bytes.len());
        self.kept.extend_from_slice(&bytes[..room]);
        for byte in &bytes[room..] {
            // FNV-1a: whether two rests are the same, nothing more.
            self.beyond = (self.beyond ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3) | 1 << 63;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
