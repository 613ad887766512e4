//! The agents: which package each is, how its own settings look before we come, how it is started, and how it spells a call.
//!
//! Nothing here is about `unstuck`: that is installed by its own installer, as a person would.

mod claude;
mod codex;
mod copilot;
mod gemini;
mod opencode;
mod qwen;

use std::fs;
use std::path::Path;
use std::process::Command;

pub use claude::CLAUDE;
use serde_json::{Value, json};

use super::model::{Dialect, OutsideCommand, Spelled, Step, ToolCall, Turn, TurnCall};
use super::programs::Package;
use super::stage::Stage;
use crate::Fault;

/// Why some of them cannot be asked.
const SAYS_NOTHING: &str = "it says nothing of an answer that it does not understand";
const NOT_KNOWN: &str = "`unstuck agent` does not know it by itself";
const NOT_READ: &str = "`unstuck scan` does not read what it writes down";
const IS_NOT_TOLD: &str = "no hook of it is told of calls that lack an argument";

const NO_DAY_WORK: &str = "a day's work is played by four agents";

const CHECKS_ITSELF: &str = "it compares arguments with the schema by itself";

/// What every agent is asked to do; what it does is in the script.
const TASK: &str = "Do the scripted work.";

/// A program that lets a model use tools.
pub struct Agent {
    /// What `unstuck install` calls it.
    pub name: &'static str,
    /// Where it comes from.
    pub package: Package,
    /// What is started, below `node_modules`.
    pub program: &'static str,
    /// Further packages that it needs.
    pub needs: &'static [Package],
    /// How it talks to its model.
    pub dialect: Dialect,
    /// Writes the settings that its user has already.
    pub prepare: fn(&Stage) -> Result<(), Fault>,
    /// Starts it on its task.
    pub start: fn(&Stage) -> Command,
    /// Starts it in its last session with what a person says next, where it plays a day's work; if not, why.
    pub resume: Result<fn(&Stage, &str) -> Command, &'static str>,
    /// What `unstuck agent` passes on to it, where it knows the program; if not, why.
    pub headless: Result<&'static [&'static str], &'static str>,
    /// Its own words for a call.
    pub call: fn(&Step, &Path) -> ToolCall,
    /// What of it its hooks can see.
    pub sight: Sight,
    /// How a folder is deleted through it; Codex forbids `rm -f` by itself.
    pub removal: &'static str,
    /// How its model is told of a command whose output the agent itself has lost, which happens to some now and then.
    pub loses_output: Option<&'static str>,
    /// Where below the home it writes its sessions down, where `unstuck scan` reads that; if not, why.
    pub transcripts: Result<&'static str, &'static str>,
    /// The files below the home that an installer may touch.
    pub settings: &'static [&'static str],
    /// How it reaches MCP servers.
    pub serving: Serving,
}

/// How an agent reaches MCP servers.
pub struct Serving {
    /// The file below the home that names them.
    pub file: &'static str,
    /// Writes one down that is started by these words.
    pub add: fn(&Stage, &[String]) -> Result<(), Fault>,
    /// What its model calls a tool of the server.
    pub tool: fn(&str) -> String,
    /// Does it send arguments that do not fit a tool's schema? If not, why.
    pub sends_mistakes: Result<(), &'static str>,
}

/// The one server that is written down.
pub const SERVER: &str = "tide";

/// What an agent lets a hook see and do, where agents differ: `Ok`, or why not.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    /// Does a call that lacks an argument reach a hook?
    pub malformed: Result<(), &'static str>,
    /// Does an edit that finds nothing to replace?
    pub failed_edits: Result<(), &'static str>,
    /// Does it let a hook change a call without allowing it, too?
    pub rewrites: Result<(), &'static str>,
    /// What becomes of a run in which one call is sent again and again.
    pub halt: Halt,
    /// Does the agent say that a hook's answer was no good? Then such a line of its log or of its standard error is this.
    pub complaint: Result<fn(&str) -> bool, &'static str>,
}

/// What becomes of a run that a hook wants stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// It goes on, and the call is refused again and again.
    Refused,
    /// The agent ends it by itself before that, and cannot be told not to.
    Forestalled,
}

impl Agent {
    /// A turn in its own words.
    pub fn spell(&self, turn: &Turn, project: &Path) -> Spelled {
        match turn {
            Turn::Calls(steps) => {
                Spelled::Calls(steps.iter().map(|step| (self.call)(step, project)).collect())
            }
            Turn::Served(tool, arguments) => {
                Spelled::Calls(vec![ToolCall::named((self.serving.tool)(tool), arguments.clone())])
            }
            Turn::AfterCommand { outside, calls } => {
                let outside =
                    outside.clone().map(|line| OutsideCommand { line, folder: project.to_path_buf() });
                Spelled::AfterCommand(
                    outside,
                    calls.iter().map(|call| self.spell_call(call, project)).collect(),
                )
            }
            Turn::Say(text) => Spelled::Say(text),
            Turn::Refused(why) => Spelled::Refused(*why),
        }
    }

    fn spell_call(&self, call: &TurnCall, project: &Path) -> ToolCall {
        match call {
            TurnCall::Own(step) => (self.call)(step, project),
            TurnCall::Served(tool, arguments) => {
                ToolCall::named((self.serving.tool)(tool), arguments.clone())
            }
        }
    }
}

/// All of them.
pub const AGENTS: [&Agent; 6] =
    [&CLAUDE, &codex::CODEX, &gemini::GEMINI, &qwen::QWEN, &opencode::OPENCODE, &copilot::COPILOT];

/// Adds a server to a file of JSON, below this key.
fn add_server(stage: &Stage, file: &str, key: &str, entry: Value) -> Result<(), Fault> {
    let text = fs::read_to_string(stage.home().join(file)).unwrap_or_else(|_| "{}".to_owned());
    let mut settings: Value = serde_json::from_str(&text)?;
    settings[key][SERVER] = entry;
    stage.write_home(file, &format!("{settings:#}\n"))
}

/// A server as most of them write it down.
fn started_by(words: &[String]) -> Value {
    json!({"command": words.first(), "args": words.get(1..).unwrap_or_default()})
}

/// A file of the project by its full name, which all agents accept.
fn full(project: &Path, file: &str) -> String {
    project.join(file).display().to_string()
}
