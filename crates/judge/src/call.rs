//! What an agent asked for and how it ended. Values only; nothing here judges.

use serde_json::Value;

/// What an agent asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool's name as the agent knows it.
    pub tool: String,
    /// The arguments as they were sent.
    pub input: Value,
}

impl Call {
    /// Makes a call of `tool` with `input`.
    pub fn new(tool: impl Into<String>, input: Value) -> Call {
        Call { tool: tool.into(), input }
    }

    /// Makes a call of a shell with one command line.
    pub fn shell(command: impl Into<String>) -> Call {
        Call::new("Bash", serde_json::json!({ "command": command.into() }))
    }
}

/// How a call ended. A missing exit code has its own name; it is never taken for 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The host says that it went well, without an exit code.
    Succeeded,
    /// A process ended with this code, 0 included.
    Exited {
        /// The exit code.
        code: i32,
    },
    /// A process was ended by this signal.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// The host's or the caller's time limit ran out.
    TimedOut,
    /// A person or the host stopped it.
    Interrupted,
    /// It never ran.
    Rejected,
    /// The tool threw.
    Threw,
    /// The tool answered that it failed.
    ReportedFailure,
    /// We, the host or a person said no before it ran.
    Denied,
    /// It ended, and nobody said how.
    NoExitCode,
}

impl Outcome {
    /// The words for how a call ended, without the numbers some of them carry.
    const WORDS: [(&'static str, Outcome); 8] = [
        ("succeeded", Outcome::Succeeded),
        ("timed_out", Outcome::TimedOut),
        ("interrupted", Outcome::Interrupted),
        ("rejected", Outcome::Rejected),
        ("threw", Outcome::Threw),
        ("reported_failure", Outcome::ReportedFailure),
        ("denied", Outcome::Denied),
        ("no_exit_code", Outcome::NoExitCode),
    ];

    /// The word as it stands in rule files.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Exited { .. } => "exited",
            Outcome::Signalled { .. } => "signalled",
            other => {
                Outcome::WORDS.iter().find(|(_, outcome)| *outcome == other).map_or("", |(word, _)| word)
            }
        }
    }

    /// The exit code or the signal, where there is one.
    pub fn number(self) -> Option<i32> {
        match self {
            Outcome::Exited { code } => Some(code),
            Outcome::Signalled { signal } => Some(signal),
            Outcome::Succeeded
            | Outcome::TimedOut
            | Outcome::Interrupted
            | Outcome::Rejected
            | Outcome::Threw
            | Outcome::ReportedFailure
            | Outcome::Denied
            | Outcome::NoExitCode => None,
        }
    }

    /// Does the call say that it went well? `None` where nobody said anything.
    pub fn said_ok(self) -> Option<bool> {
        match self {
            Outcome::Succeeded | Outcome::Exited { code: 0 } => Some(true),
            Outcome::NoExitCode => None,
            Outcome::Exited { .. }
            | Outcome::Signalled { .. }
            | Outcome::TimedOut
            | Outcome::Interrupted
            | Outcome::Rejected
            | Outcome::Threw
            | Outcome::ReportedFailure
            | Outcome::Denied => Some(false),
        }
    }

    /// Reads a word that needs no number beside it.
    pub fn from_word(word: &str) -> Option<Outcome> {
        Outcome::WORDS.iter().find(|(other, _)| *other == word).map(|(_, outcome)| *outcome)
    }
}

/// A call with its outcome and what it printed.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The call.
    pub call: Call,
    /// How it ended.
    pub outcome: Outcome,
    /// The HTTP status the tool reported beside its output.
    pub http_status: Option<u16>,
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: Vec<u8>,
    /// What it printed, where the streams are not known apart.
    pub merged: Vec<u8>,
}
