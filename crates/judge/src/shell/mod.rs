//! A small, forgiving reader of shell command lines.
//!
//! It answers what a command line runs, in which order, and what its exit code can prove. It never fails and never
//! expands anything: variables stay as they are written, and text that no shell would accept still yields the
//! commands a person would see in it. It must stay linear, because agents send megabytes on one line.

mod line;
mod parse;
mod traits;
mod word;
mod wrappers;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub use line::{ParsedCall, line};
pub(crate) use line::{carrier, folder, name_words, quoted, script_in};
pub(crate) use traits::Asks;
pub(crate) use word::assignment;

/// How a command is joined to the one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// `;` or a new line: the next one runs in any case.
    Always,
    /// `&&`: the next one runs if this one succeeded.
    And,
    /// `||`: the next one runs if this one failed.
    Or,
    /// `|` or `|&`: the next one reads what this one prints.
    Pipe,
    /// `&`: nobody waits for it.
    Background,
    /// It runs the next one: `timeout 5 npm test`, `bash -c '…'`.
    Wraps,
    /// Nothing follows.
    End,
}

/// What a command is to the script it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It runs where it stands.
    Plain,
    /// It only starts the command after it.
    Wrapper,
    /// Another command consumes it: `$(…)`, backticks, `<(…)`, `find -exec`.
    Inner,
    /// It stands in the body of a function.
    Defined,
}

/// The end of a command that a redirection moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// What it reads.
    Input,
    /// What it prints.
    Output,
    /// What it complains.
    Error,
    /// Output and complaints together.
    Both,
    /// A descriptor above 2.
    Other,
}

/// What a redirection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// `>`: the file is made anew.
    Write,
    /// `>>`, `<>`: the file may grow.
    Append,
    /// `<`: the file is read.
    Read,
    /// `2>&1`: one stream follows another.
    Duplicate,
    /// `<<EOF` and `<<<`: the text stands in the script itself.
    Document,
}

/// One redirection of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// What is moved.
    pub stream: Stream,
    /// How.
    pub flow: Flow,
    /// The file, the descriptor, or the text of a document.
    pub target: String,
}

impl Redirection {
    /// Tells whether it makes or changes a file that stays.
    pub fn writes_file(&self) -> bool {
        matches!(self.flow, Flow::Write | Flow::Append) && !is_stream(&self.target)
    }
}

/// Is it a device that only takes what is written, and keeps nothing? What lies in `/dev/shm`, and disks, are no such ones.
pub(crate) fn is_stream(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/dev/") else { return false };
    let folders = ["fd/", "pts/", "tcp/", "udp/", "tty"];
    matches!(
        name,
        "null"
            | "zero"
            | "full"
            | "random"
            | "urandom"
            | "stdin"
            | "stdout"
            | "stderr"
            | "console"
            | "ptmx"
            | "kmsg"
    ) || folders.iter().any(|folder| name.starts_with(folder))
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program's name without its path; empty for a command of assignments only.
    pub program: String,
    /// All words without their quotes, the program as it was written first.
    pub words: Vec<String>,
    /// Where the words stand.
    pub(crate) places: Places,
    /// `NAME=value` before the program.
    pub assignments: Vec<(String, String)>,
    /// Its redirections, in order.
    pub redirections: Vec<Redirection>,
    /// How it is joined to the next command.
    pub then: Join,
    /// What it is to the script.
    pub role: Role,
    /// How deep it is nested; 0 is the script itself.
    pub depth: u16,
    /// The brackets it stands in.
    pub(crate) group: Group,
    /// The loops whose body begins with it: the variable of each, and the words it goes through.
    pub(crate) loops: Vec<(String, Vec<String>)>,
    /// An exit code of 0 of the whole script says nothing about this command: it stands before a pipe, a `;` or a `||`, in a
    /// loop, in a condition, or in the background.
    pub hidden: bool,
}

/// The innermost brackets, script or wrapper that a command stands in. Two of the same depth are told apart by their start.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Group {
    /// How many commands were read before it.
    pub(crate) start: usize,
    /// Whether a `cd` in it is over at its end: `(…)`, `$(…)`, `bash -c '…'`.
    pub(crate) isolated: bool,
}

/// A command is the same wherever it stands.
impl PartialEq for Group {
    fn eq(&self, _: &Group) -> bool {
        true
    }
}

impl Eq for Group {}

/// Where each word of a command stands in the text that was read, in bytes. Nothing for a word that reads otherwise than it
/// is written (quotes, escapes), and for words of a script inside the script (`bash -c '…'`), which has its own text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(pub(crate) Vec<Option<Range<usize>>>);

/// A command is the same wherever it stands.
impl PartialEq for Places {
    fn eq(&self, _: &Places) -> bool {
        true
    }
}

impl Eq for Places {}

impl Command {
    /// The words after the program.
    pub fn args(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Tells whether one of `flags` is among the words. A long flag may carry a value (`--flag=value`), a short one
    /// may stand among others (`-xzf`).
    pub fn has_flag(&self, flags: &[&str]) -> bool {
        self.args()
            .iter()
            .take_while(|word| *word != "--")
            .any(|word| flags.iter().any(|flag| carries(word, flag)))
    }

    /// The words after the program that are no flags.
    pub fn operands(&self) -> impl Iterator<Item = &str> {
        self.args().iter().map(String::as_str).filter(|word| !word.starts_with('-') || *word == "-")
    }
}

/// Tells whether `word` gives `flag`, alone, with a value, or in a bundle of short flags.
fn carries(word: &str, flag: &str) -> bool {
    if word == flag {
        return true;
    }
    match flag.strip_prefix("--") {
        Some(_) => word.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')),
        None => {
            let (Some(flag), Some(bundle)) = (flag.strip_prefix('-'), word.strip_prefix('-')) else {
                return false;
            };
            // Only short bundles of letters are read as such: `-name` of find is one word, not four flags.
            flag.len() == 1
                && bundle.len() <= 4
                && bundle.bytes().all(|b| b.is_ascii_alphabetic())
                && bundle.contains(flag)
        }
    }
}

/// A command line, read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    commands: Vec<Command>,
    last: Option<usize>,
    hides_failure: bool,
}

impl Script {
    /// Reads a command line. Whatever the text is, the answer is what a person would see in it.
    pub fn parse(text: &str) -> Script {
        parse::read(text)
    }

    /// All simple commands in the order they are written. What another command consumes stands before it, what a
    /// wrapper runs stands after it.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// All programs that are run, wrappers included: `timeout 5 npm test` runs `timeout` and `npm`.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().map(|command| command.program.as_str()).filter(|program| !program.is_empty())
    }

    /// The command whose exit code is the script's.
    pub fn last(&self) -> Option<&Command> {
        self.commands.get(self.last?)
    }

    /// Tells whether an exit code of 0 leaves open how the main work went: a pipeline without `pipefail`, `|| true`,
    /// a list without `set -e`, a loop.
    pub fn hides_failure(&self) -> bool {
        self.hides_failure
    }

    /// How many commands at its end only say something.
    pub fn last_words(&self) -> u64 {
        let says = |command: &&Command| matches!(command.program.as_str(), "echo" | "printf");
        self.commands.iter().rev().take_while(says).count() as u64
    }

    /// The programs whose failure an exit code of 0 would not show, without those that only look or only say something: what
    /// those print is content.
    pub fn hidden_workers(&self) -> impl Iterator<Item = &Command> {
        self.workers().filter(|command| command.hidden)
    }

    /// The commands that do something, and not only look or say something.
    pub fn workers(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| {
            command.role != Role::Defined
                && !command.program.is_empty()
                && !traits::is_trivial(command)
                && !traits::only_looks(command)
        })
    }

    /// The commands that ask for something, and show no content of files: of what they print only the beginning can be their
    /// own complaint, and of a check all of it.
    pub(crate) fn askers(&self) -> impl Iterator<Item = (&Command, Asks)> {
        self.commands
            .iter()
            .filter(|command| command.role != Role::Defined)
            .filter_map(|command| Some((command, traits::asks(command)?)))
    }

    /// Tells whether the line has words of its own ready for a failure: `command -v x || echo missing`.
    pub(crate) fn answers_for_failure(&self) -> bool {
        let answers = |command: &Command| matches!(command.program.as_str(), "echo" | "printf");
        self.commands.windows(2).any(|pair| pair[0].then == Join::Or && answers(&pair[1]))
    }

    /// Tells whether another way is tried where one fails, so that the words of the first do not tell how it ended.
    pub(crate) fn has_second_way(&self) -> bool {
        let works = |command: &Command| !traits::is_trivial(command) && !traits::shows(command);
        self.commands.windows(2).any(|pair| pair[0].then == Join::Or && works(&pair[1]))
    }

    /// Tells whether what is printed reaches the end from its beginning: nothing but `head` and the like stands behind a pipe.
    pub(crate) fn shows_beginning(&self) -> bool {
        const FROM_THE_START: [&str; 6] = ["cat", "head", "less", "more", "tee", "true"];
        let behind = self.commands.windows(2).filter(|pair| pair[0].then == Join::Pipe);
        behind.into_iter().all(|pair| FROM_THE_START.contains(&pair[1].program.as_str()))
    }

    /// Tells whether all output is content that is only shown, so that the words in it prove nothing.
    pub fn is_reader(&self) -> bool {
        traits::is_reader(&self.commands)
    }

    /// The hosts that the words name, lower case, each once: of URLs, of `localhost:8080`, of `git@host:path`.
    pub fn url_hosts(&self) -> Vec<String> {
        traits::url_hosts(&self.commands)
    }
}
