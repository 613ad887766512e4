//! Runs as agents write them down themselves, read line by line into the calls they hold.
//!
//! A transcript is somebody else's diary: kinds of lines nobody told us about and lines cut short are counted, never a
//! reason to stop.

mod claude;
pub(crate) mod codex;
mod gemini;
mod pairing;
mod qwen;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::json::{WireError, read_object};
use crate::recorded::{self, RecordedCall};
use claude::ClaudeReader;
use codex::CodexReader;
use gemini::GeminiReader;
use pairing::Pairing;
use qwen::QwenReader;

/// Who wrote the run down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One call per line, as `unstuck replay --jsonl` defines it.
    Recorded,
    /// A Claude Code transcript.
    Claude,
    /// A Codex rollout.
    Codex,
    /// A chat of Gemini CLI.
    Gemini,
    /// A chat of Qwen Code.
    Qwen,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 5] =
        [Format::Recorded, Format::Claude, Format::Codex, Format::Gemini, Format::Qwen];
}

/// What became of the lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lines with something in them.
    pub lines: u64,
    /// Lines that are no JSON, or lack what their kind must have.
    pub broken: u64,
    /// Healthy lines of a kind that holds no calls, or that nobody told us about.
    pub ignored: u64,
}

/// What one line was good for.
enum Use {
    /// It belongs to the run.
    Taken,
    /// It says nothing about calls.
    Ignored,
}

/// Tells the format by a run's first lines; `None` if none of them gives it away.
pub fn sniff<'line>(first_lines: impl IntoIterator<Item = &'line [u8]>) -> Option<Format> {
    first_lines.into_iter().find_map(|line| read_object::<WireSample>(line).ok()?.format())
}

/// Just enough of a line to tell whose it is.
#[derive(Deserialize)]
struct WireSample {
    trace: Option<IgnoredAny>,
    i: Option<IgnoredAny>,
    #[serde(rename = "sessionId")]
    session: Option<IgnoredAny>,
    #[serde(rename = "leafUuid")]
    leaf: Option<IgnoredAny>,
    #[serde(rename = "projectHash")]
    project: Option<IgnoredAny>,
    #[serde(rename = "$set")]
    set: Option<IgnoredAny>,
    #[serde(rename = "type", default)]
    kind: Value,
    #[serde(default)]
    message: Value,
    #[serde(rename = "systemPayload")]
    system: Option<IgnoredAny>,
    payload: Option<IgnoredAny>,
    record_type: Option<IgnoredAny>,
    call_id: Option<IgnoredAny>,
    instructions: Option<IgnoredAny>,
}

impl WireSample {
    fn format(&self) -> Option<Format> {
        if self.trace.is_some() && self.i.is_some() {
            return Some(Format::Recorded);
        }
        if self.session.is_some() && self.project.is_some() || self.set.is_some() {
            return Some(Format::Gemini);
        }
        // The envelope of Claude Code, around messages in parts.
        if self.session.is_some() && (self.message.get("parts").is_some() || self.system.is_some()) {
            return Some(Format::Qwen);
        }
        if self.session.is_some() || self.leaf.is_some() {
            return Some(Format::Claude);
        }
        let kind = self.kind.as_str().unwrap_or_default();
        let is_codex = self.payload.is_some() && !kind.is_empty()
            // The first rollouts had no envelope.
            || self.record_type.is_some()
            || self.call_id.is_some()
            || self.instructions.is_some();
        is_codex.then_some(Format::Codex)
    }
}

/// Reads one run, line by line.
#[derive(Debug)]
pub struct Reader {
    tally: Tally,
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Recorded { ready: Vec<RecordedCall> },
    Claude(ClaudeReader),
    Codex(CodexReader),
    Gemini(GeminiReader),
    Qwen(QwenReader),
}

impl Reader {
    /// A reader for one run in `format`.
    pub fn new(format: Format) -> Reader {
        let inner = match format {
            Format::Recorded => Inner::Recorded { ready: Vec::new() },
            Format::Claude => Inner::Claude(ClaudeReader::default()),
            Format::Codex => Inner::Codex(CodexReader::default()),
            Format::Gemini => Inner::Gemini(GeminiReader::default()),
            Format::Qwen => Inner::Qwen(QwenReader::default()),
        };
        Reader { tally: Tally::default(), inner }
    }

    /// Goes on in a run of which the first `read` bytes were read some other time. What was made together is known by its
    /// number, and no two places in a run have the same.
    pub fn go_on_from(&mut self, read: u64) {
        match &mut self.inner {
            Inner::Recorded { .. } => {}
            Inner::Claude(reader) => reader.rounds = read,
            Inner::Codex(reader) => reader.rounds = read,
            Inner::Gemini(reader) => reader.rounds = read,
            Inner::Qwen(reader) => reader.rounds = read,
        }
    }

    /// Says where the run works, where somebody knows that before its own lines tell.
    pub fn works_in(&mut self, cwd: &str) {
        if let Some(calls) = self.pairing() {
            calls.works_in(cwd);
        }
    }

    /// Does no call wait for its result? Whoever goes on reading here some other time misses nothing.
    pub fn is_at_rest(&self) -> bool {
        match &self.inner {
            Inner::Recorded { ready } => ready.is_empty(),
            Inner::Claude(reader) => reader.calls.is_at_rest(),
            Inner::Codex(reader) => reader.calls.is_at_rest(),
            Inner::Gemini(reader) => reader.calls.is_at_rest(),
            Inner::Qwen(reader) => reader.calls.is_at_rest(),
        }
    }

    fn pairing(&mut self) -> Option<&mut Pairing> {
        match &mut self.inner {
            Inner::Recorded { .. } => None,
            Inner::Claude(reader) => Some(&mut reader.calls),
            Inner::Codex(reader) => Some(&mut reader.calls),
            Inner::Gemini(reader) => Some(&mut reader.calls),
            Inner::Qwen(reader) => Some(&mut reader.calls),
        }
    }

    /// Reads the next line. An error concerns this line only; reading may go on.
    pub fn read(&mut self, line: &[u8]) -> Result<(), WireError> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        self.tally.lines += 1;
        let used = match &mut self.inner {
            Inner::Recorded { ready } => recorded::read(line).map(|call| {
                ready.push(call);
                Use::Taken
            }),
            Inner::Claude(reader) => reader.read(line),
            Inner::Codex(reader) => reader.read(line),
            Inner::Gemini(reader) => reader.read(line),
            Inner::Qwen(reader) => reader.read(line),
        };
        if let Some(calls) = self.pairing() {
            calls.pass(line.len() as u64);
        }
        match used {
            Ok(Use::Taken) => Ok(()),
            Ok(Use::Ignored) => {
                self.tally.ignored += 1;
                Ok(())
            }
            Err(error) => {
                self.tally.broken += 1;
                Err(error)
            }
        }
    }

    /// Takes the calls whose results are known by now, in the order in which each agent made them.
    pub fn take(&mut self) -> Vec<RecordedCall> {
        match &mut self.inner {
            Inner::Recorded { ready } => std::mem::take(ready),
            Inner::Claude(reader) => reader.calls.take(),
            Inner::Codex(reader) => reader.calls.take(),
            Inner::Gemini(reader) => reader.calls.take(),
            Inner::Qwen(reader) => reader.calls.take(),
        }
    }

    /// Ends the run: takes all that is left. A call that never got its result ended in a way nobody told.
    pub fn finish(self) -> (Vec<RecordedCall>, Tally) {
        let left = match self.inner {
            Inner::Recorded { ready } => ready,
            Inner::Claude(reader) => reader.calls.finish(),
            Inner::Codex(reader) => reader.calls.finish(),
            Inner::Gemini(reader) => reader.calls.finish(),
            Inner::Qwen(reader) => reader.calls.finish(),
        };
        (left, self.tally)
    }

    /// Leaves the run where it is: takes what is known. A call without a result may still get one.
    pub fn leave(self) -> Vec<RecordedCall> {
        match self.inner {
            Inner::Recorded { ready } => ready,
            Inner::Claude(reader) => reader.calls.leave(),
            Inner::Codex(reader) => reader.calls.leave(),
            Inner::Gemini(reader) => reader.calls.leave(),
            Inner::Qwen(reader) => reader.calls.leave(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expected: Option<Format>) {
        assert_eq!(sniff(lines.iter().map(|line| line.as_bytes())), expected);
    }

    #[test]
    fn each_format_gives_itself_away() {
        check(&[r#"{"trace":"t","i":0,"tool":"x","input":{},"ok":true}"#], Some(Format::Recorded));
        check(&[r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s"}"#], Some(Format::Claude));
        check(&[r#"{"type":"summary","summary":"x","leafUuid":"u"}"#], Some(Format::Claude));
        check(&[r#"{"timestamp":"t","type":"session_meta","payload":{"id":"s"}}"#], Some(Format::Codex));
        check(
            &[r#"{"id":"s","timestamp":"t","instructions":null,"git":{}}"#, r#"{"record_type":"state"}"#],
            Some(Format::Codex),
        );
        check(
            &[r#"{"sessionId":"s","projectHash":"h","startTime":"t","kind":"main"}"#],
            Some(Format::Gemini),
        );
        check(
            &[r#"{"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"x"}]}}"#],
            Some(Format::Qwen),
        );
    }

    #[test]
    fn broken_and_foreign_lines_do_not_decide() {
        check(&["", "// a comment", "[]", r#"{"x":1}"#, r#"{"sessionId":"s"}"#], Some(Format::Claude));
        check(&["", r#"{"text":"a failure","exit_code":1}"#], None);
    }
}
