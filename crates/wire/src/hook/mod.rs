//! Hooks: what an agent program sends becomes a [`Letter`] here, and a [`Reply`] becomes the answer it understands.
//!
//! One file per agent program. What differs between them stays in its file: how failures look, what an answer may hold, what
//! an agent honours. Nothing here ever answers `allow`: whether a call may run is not for us to say, only that it may not.

mod claude;
pub mod codex;
mod copilot;
mod cursor;
mod gemini;
pub mod generic;
mod kin;
mod opencode;
mod qwen;
mod sender;
pub(crate) mod shell_report;
mod speech;

use serde_json::Value;
use unstuck_judge::ladder::see::OUR_MARK;
use unstuck_judge::ladder::words::WayToWait;
use unstuck_judge::{Call, Observation, Outcome, vocabulary};

use crate::json::WireError;
use crate::mcp;
pub(crate) use kin::is_shell;

/// What the session is called where nobody says.
const NO_SESSION: &str = "default";

vocabulary! {
    /// The agent programs whose hooks we answer.
    Host {
        /// Claude Code.
        Claude = "claude",
        /// Codex CLI.
        Codex = "codex",
        /// Gemini CLI.
        Gemini = "gemini",
        /// Qwen Code.
        Qwen = "qwen",
        /// opencode.
        Opencode = "opencode",
        /// GitHub Copilot CLI.
        Copilot = "copilot",
        /// Cursor.
        Cursor = "cursor",
        /// Any other: it speaks a small JSON of our own.
        Generic = "generic",
    }
}

impl Host {
    /// How a model in this program can wait for longer than we would. Claude Code refuses a long `sleep` in front of a command.
    pub const fn way_to_wait(self) -> WayToWait {
        match self {
            Host::Claude => WayToWait::Background,
            Host::Codex | Host::Gemini | Host::Qwen | Host::Opencode | Host::Copilot | Host::Cursor => {
                WayToWait::Sleep
            }
            // Nobody knows which tools there are behind our own format.
            Host::Generic => WayToWait::Unknown,
        }
    }
}

/// One payload of a hook, in our words.
#[derive(Debug, Clone, PartialEq)]
pub struct Letter {
    /// Who sent it. Not always the one whose door it came through: some programs run the hooks of others.
    pub host: Host,
    /// The sender's own name for the hook; empty where it has none.
    pub hook: String,
    /// The session.
    pub session: String,
    /// Who acts in it.
    pub agent: String,
    /// The working directory; empty where nobody says.
    pub cwd: String,
    /// The file in which the program keeps the conversation.
    pub transcript: Option<String>,
    /// The process that runs the call.
    pub pid: Option<u32>,
    /// The message that holds the call.
    pub round: Option<u64>,
    /// When, in milliseconds since 1970, where the sender says so.
    pub at: Option<u64>,
    /// Is there a person who would answer a question?
    pub attended: Attended,
    /// What happened, in order; nothing where the event is of no interest.
    pub events: Vec<Happened>,
    /// What its own format needs to know for the answer.
    pub(crate) envelope: Envelope,
    /// The whole input of a call that is asked for, where `events` holds it with something left out.
    pub whole: Option<Value>,
    /// Was the input kept whole? One with something left out cannot be sent on.
    pub(crate) is_whole: bool,
}

/// Is there a person who would answer a question?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attended {
    /// Yes.
    Yes,
    /// No: it runs by itself.
    No,
    /// The payload does not say.
    Unsaid,
}

/// What a payload tells.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    /// A call is asked for.
    Before {
        /// The program's name for the call; empty where it gives none.
        key: String,
        /// The call.
        call: Call,
        /// Did the user speak just before it?
        new_user_turn: bool,
    },
    /// A call ended.
    After(Box<Finished>),
    /// A person is asked whether a call may run.
    Ask {
        /// The program's name for the call; empty where it gives none.
        key: String,
        /// The call, where it is told again instead of named.
        call: Option<Call>,
    },
    /// A person allowed the call.
    Approved {
        /// The program's name for the call.
        key: String,
    },
    /// A person, or the host, did not.
    Denied {
        /// The program's name for the call.
        key: String,
    },
    /// A call that went on by itself after its answer, in the background, ended now.
    Later {
        /// The program's name for the call.
        key: String,
        /// How it ended.
        outcome: Outcome,
        /// What is said of it.
        text: String,
    },
    /// The user said something.
    User,
    /// A session begins, or goes on.
    Began(Beginning),
    /// A sub-agent is done: nothing of it can still be running.
    AgentDone,
    /// The session is over.
    End,
}

/// A call that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The program's name for the call; empty where it gives none.
    pub key: String,
    /// The call and its result.
    pub observation: Observation,
    /// What the sender calls it.
    pub said_ok: Option<bool>,
    /// How long it took.
    pub took_ms: Option<u64>,
    /// Would the sender send it again by itself?
    pub can_retry: bool,
    /// Is this only its answer, and it goes on in the background? Then [`Happened::Later`] tells of its end.
    pub runs_on: bool,
    /// Did the user speak just before it?
    pub new_user_turn: bool,
}

impl Finished {
    /// Takes out what we said of the failure ourselves, as the proxy around a server of tools does, so that it is neither read
    /// as the server's words nor said again. Was there something?
    pub fn take_out_our_account(&mut self) -> bool {
        let seen = &mut self.observation;
        let outputs = [&mut seen.stdout, &mut seen.stderr, &mut seen.merged];
        // All three are looked through, whatever is found in the first.
        outputs.into_iter().filter_map(|output| take_out_account(output).then_some(())).count() > 0
    }
}

/// Takes our account of a failure out of an output, as long as something else is left in it.
fn take_out_account(output: &mut Vec<u8>) -> bool {
    let is_ours = |line: &&[u8]| mcp::is_our_account(line);
    let lines: Vec<&[u8]> = output.split(|byte| *byte == b'\n').collect();
    if !lines.iter().any(is_ours) {
        return false;
    }
    let rest = lines.into_iter().filter(|line| !is_ours(line)).collect::<Vec<_>>().join(&b'\n');
    if !rest.trim_ascii().is_empty() {
        *output = rest;
    }
    true
}

/// How a session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// For the first time, or with all that was said before.
    Whole,
    /// After its memory was cut short: what was told before is forgotten.
    Shortened,
}

impl Happened {
    /// The word for it, as it stands in our own payloads.
    pub fn word(&self) -> &'static str {
        match self {
            Happened::Before { .. } => "before",
            Happened::After(_) => "after",
            Happened::Ask { .. } => "ask",
            Happened::Approved { .. } => "approved",
            Happened::Denied { .. } => "denied",
            Happened::Later { .. } => "later",
            Happened::User => "user",
            Happened::Began(_) => "began",
            Happened::AgentDone => "agent_done",
            Happened::End => "end",
        }
    }
}

/// What is said to an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Nothing.
    Silent,
    /// Facts, for the model.
    Tell {
        /// The facts.
        text: String,
        /// What was tried, for the person; empty where no person is needed.
        table: String,
    },
    /// The call may not run.
    Deny {
        /// Why, and what is possible.
        reason: String,
    },
    /// A person should decide whether the call may run.
    Ask {
        /// Why.
        reason: String,
    },
    /// The run should stop here.
    Halt {
        /// Why.
        reason: String,
        /// What was tried, for the person.
        table: String,
    },
    /// The call should run with another input.
    Rewrite {
        /// The whole new input.
        input: Value,
        /// What was changed, and why, for model and person.
        text: String,
    },
    /// The call should be sent again at once, and only that result be shown.
    Again {
        /// The tool.
        tool: String,
        /// Its input.
        input: Value,
        /// What is said of it.
        text: String,
    },
}

/// What a program heeds of an answer to this payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Honours {
    /// Facts reach the model.
    pub tell: bool,
    /// A call can be refused.
    pub deny: bool,
    /// A person can be asked.
    pub ask: bool,
    /// The run can be stopped.
    pub halt: bool,
    /// The input can be exchanged without our saying that the call is allowed.
    pub rewrite: bool,
    /// The call can be sent again from the hook.
    pub again: bool,
}

/// What a format needs to know of a payload to answer it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Envelope {
    /// Our own format is answered line by line: see [`generic::WireAnswer`].
    Generic,
    /// Nothing is said to this event.
    Mute,
    /// Claude Code.
    Claude(kin::Moment),
    /// Codex CLI.
    Codex(kin::Moment),
    /// Gemini CLI.
    Gemini(gemini::Event),
    /// Qwen Code.
    Qwen(kin::Moment),
    /// opencode, through our plugin.
    Opencode(opencode::Event),
    /// GitHub Copilot CLI.
    Copilot(copilot::Style, kin::Moment),
    /// Cursor.
    Cursor(cursor::Event),
}

/// Reads one payload that came through the door of an agent. [`Letter::host`] says who really sent it.
pub fn read(door: Host, bytes: &[u8]) -> Result<Letter, WireError> {
    match sender::of(door, bytes)? {
        Host::Claude => claude::read(bytes),
        Host::Codex => codex::read(bytes),
        Host::Gemini => gemini::read(bytes),
        Host::Qwen => qwen::read(bytes),
        Host::Opencode => opencode::read(bytes),
        Host::Copilot => copilot::read(bytes),
        Host::Cursor => cursor::read(bytes),
        Host::Generic => generic::read(bytes),
    }
}

impl Letter {
    /// What the sender heeds.
    pub fn honours(&self) -> Honours {
        let honours = match &self.envelope {
            Envelope::Generic => Honours { tell: true, deny: true, halt: true, ..Honours::default() },
            Envelope::Mute => Honours::default(),
            Envelope::Claude(moment) => claude::honours(*moment),
            Envelope::Codex(moment) => codex::honours(*moment),
            Envelope::Gemini(event) => gemini::honours(event),
            Envelope::Qwen(moment) => qwen::honours(*moment),
            Envelope::Opencode(event) => opencode::honours(*event),
            Envelope::Copilot(_, moment) => copilot::honours(*moment),
            Envelope::Cursor(event) => cursor::honours(*event),
        };
        let Honours { rewrite, again, .. } = honours;
        Honours { rewrite: rewrite && self.is_whole, again: again && self.is_whole, ..honours }
    }

    /// The answer in the sender's format, as one JSON object; nothing where there is nothing to say, or no way to say it.
    /// What the sender does not heed is said in the nearest way that it does.
    pub fn answer(&self, reply: &Reply) -> Option<String> {
        let told;
        let reply = match reply {
            // Nothing is changed behind the model's back.
            Reply::Rewrite { text, .. } | Reply::Again { text, .. } if text.trim().is_empty() => return None,
            // An input that is no object, or is not what was sent, would be refused, or worse, obeyed.
            Reply::Rewrite { text, input } | Reply::Again { text, input, .. }
                if !self.is_whole || !input.is_object() =>
            {
                told = Reply::tell(text.clone());
                &told
            }
            Reply::Silent
            | Reply::Tell { .. }
            | Reply::Deny { .. }
            | Reply::Ask { .. }
            | Reply::Halt { .. }
            | Reply::Rewrite { .. }
            | Reply::Again { .. } => reply,
        };
        let answer = match &self.envelope {
            Envelope::Generic | Envelope::Mute => None,
            Envelope::Claude(moment) => claude::answer(*moment, reply),
            Envelope::Codex(moment) => codex::answer(*moment, reply),
            Envelope::Gemini(event) => gemini::answer(event, reply),
            Envelope::Qwen(moment) => qwen::answer(*moment, reply),
            Envelope::Opencode(event) => opencode::answer(*event, reply),
            Envelope::Copilot(style, moment) => copilot::answer(*style, *moment, reply),
            Envelope::Cursor(event) => cursor::answer(*event, reply),
        };
        answer.map(speech::escaped)
    }
}

impl Reply {
    /// Facts for the model, and nothing for a person.
    pub fn tell(text: String) -> Reply {
        Reply::Tell { text, table: String::new() }
    }

    /// The table for a person, of a reply that has one.
    fn table(&self) -> Option<String> {
        match self {
            Reply::Tell { table, .. } => speech::some(table),
            Reply::Silent
            | Reply::Deny { .. }
            | Reply::Ask { .. }
            | Reply::Halt { .. }
            | Reply::Rewrite { .. }
            | Reply::Again { .. } => None,
        }
    }

    /// Should the call it answers not run, as far as we have a say?
    fn is_against_the_call(&self) -> bool {
        match self {
            Reply::Deny { .. } | Reply::Ask { .. } | Reply::Halt { .. } => true,
            Reply::Silent | Reply::Tell { .. } | Reply::Rewrite { .. } | Reply::Again { .. } => false,
        }
    }

    /// What there is to say to the model, whatever else is to be done.
    fn words(&self) -> Option<&str> {
        match self {
            Reply::Silent => None,
            Reply::Tell { text, .. } | Reply::Rewrite { text, .. } | Reply::Again { text, .. } => Some(text),
            // A refusal without words is still one.
            Reply::Deny { reason } | Reply::Ask { reason } | Reply::Halt { reason, .. }
                if reason.trim().is_empty() =>
            {
                Some(OUR_MARK)
            }
            Reply::Deny { reason } | Reply::Ask { reason } | Reply::Halt { reason, .. } => Some(reason),
        }
    }

    /// The same where the run cannot be stopped: then the model is told what was tried, so that it can tell the person.
    fn told(&self) -> Option<String> {
        match self {
            Reply::Halt { table, .. } => Some(speech::both(self.words()?, table)),
            Reply::Silent
            | Reply::Tell { .. }
            | Reply::Deny { .. }
            | Reply::Ask { .. }
            | Reply::Rewrite { .. }
            | Reply::Again { .. } => speech::some(self.words()?),
        }
    }
}
