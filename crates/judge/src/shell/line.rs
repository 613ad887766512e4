//! The command line of a call, whatever the agent calls its shell and the field it sends the line in.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::Value;

use super::{Join, Script};
use crate::Call;
use crate::nature::commands::Traits;
use crate::nature::object;

/// Words in a tool's name that make it a shell.
const SHELLS: &[&str] =
    &["bash", "sh", "zsh", "fish", "shell", "terminal", "powershell", "pwsh", "console", "shellcommand"];

/// Words that a tool's name may consist of to be a shell, such as `run_command` or `local_exec`. A name with any other
/// word in it (`gdb_command`) takes commands of another language.
const RUNNERS: &[&str] = &[
    "run",
    "exec",
    "execute",
    "command",
    "commands",
    "cmd",
    "local",
    "container",
    "system",
    "os",
    "unix",
    "tool",
    "process",
    "functions",
    "in",
    "the",
    "sandbox",
    "remote",
    "cli",
    "start",
    "a",
];

/// Fields that carry the line, most usual first.
const FIELDS: &[&str] =
    &["command", "cmd", "script", "commandLine", "command_line", "code", "input", "keystrokes"];

/// A call whose command line has been read, so that it is read once however much is asked about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedCall<'a> {
    /// The call as it was sent.
    pub call: &'a Call,
    /// What its line says; nothing if its tool is no shell.
    pub script: Option<Script>,
    /// What is known of a tool that is no shell, once somebody asked.
    pub(crate) traits: OnceCell<Traits>,
}

impl<'a> ParsedCall<'a> {
    /// Reads the line of a call.
    pub fn of(call: &'a Call) -> ParsedCall<'a> {
        let script = line(call).map(|line| Script::parse(&line));
        ParsedCall { call, script, traits: OnceCell::new() }
    }

    /// The call without a last `&`: whether somebody waits for it does not change what it does.
    pub fn in_foreground(mut self) -> ParsedCall<'a> {
        let commands = self.script.as_mut().map(|script| &mut script.commands);
        if let Some(last) = commands.and_then(|commands| commands.last_mut())
            && last.then == Join::Background
        {
            last.then = Join::End;
        }
        self
    }
}

/// Returns the shell command line of a call, or nothing if its tool is no shell.
///
/// A list of words, as some agents send, is put back into one line; `["bash", "-lc", "…"]` yields the script itself.
pub fn line(call: &Call) -> Option<Cow<'_, str>> {
    if !is_shell(&call.tool) {
        return None;
    }
    match object(&call.input) {
        Cow::Borrowed(input) => line_in(input),
        Cow::Owned(input) => line_in(&input).map(|line| Cow::Owned(line.into_owned())),
    }
}

fn line_in(input: &Value) -> Option<Cow<'_, str>> {
    let value = match input {
        Value::Object(fields) => FIELDS.iter().find_map(|field| fields.get(*field))?,
        other => other,
    };
    match value {
        Value::String(line) => Some(Cow::Borrowed(line)),
        Value::Array(words) => Some(joined(words)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Tells whether a tool of this name takes shell command lines.
fn is_shell(tool: &str) -> bool {
    // `mcp__server__tool` is known by its last part.
    let words = name_words(tool.rsplit("__").next().unwrap_or(tool));
    let says_shell = |word: &String| SHELLS.contains(&word.as_str());
    let says_runner = |word: &String| RUNNERS.contains(&word.as_str());
    let runs = |word: &String| ["command", "commands", "cmd", "exec"].contains(&word.as_str());
    // A name such as `KillShell` or `read_terminal_output` is about a shell and takes no line.
    let about = ["kill", "read", "get", "list", "output", "close", "stop", "status"];
    let only_about = words.iter().any(|word| about.contains(&word.as_str()));
    !only_about && (words.iter().any(says_shell) || words.iter().all(says_runner) && words.iter().any(runs))
}

/// The words of a tool's name, lower case: `run_shell_command`, `RunShell` and `mcp__box__run-shell` are split alike.
pub(crate) fn name_words(tool: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in tool.chars().take(200) {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn joined(words: &[Value]) -> Cow<'_, str> {
    let texts: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    match script_in(&texts) {
        Some(at) => Cow::Borrowed(texts[at]),
        None => Cow::Owned(texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(" ")),
    }
}

/// Which of the words is a whole script: the only one, or the one a shell is started with.
pub(crate) fn script_in(words: &[&str]) -> Option<usize> {
    match words {
        [_] => Some(0),
        [shell, flags, _]
            if super::wrappers::is_shell(super::word::basename(shell))
                && flags.starts_with('-')
                && flags.ends_with('c') =>
        {
            Some(2)
        }
        _ => None,
    }
}

/// The field of a shell's input that carries the line, with what it holds.
pub(crate) fn carrier(call: &Call) -> Option<(&'static str, &Value)> {
    let fields = call.input.as_object().filter(|_| is_shell(&call.tool))?;
    FIELDS.iter().find_map(|field| fields.get(*field).map(|value| (*field, value)))
}

/// The folder that a call says it runs in.
pub(crate) fn folder(call: &Call) -> Option<&str> {
    const FIELDS: &[&str] = &["workdir", "cwd", "working_directory", "working_dir", "workingDirectory"];
    // Of other tools, these name what is looked at.
    const OF_SHELLS: &[&str] = &["dir_path", "directory"];
    let of_shells = OF_SHELLS.iter().filter(|_| is_shell(&call.tool));
    FIELDS.iter().chain(of_shells).find_map(|field| call.input.get(field)?.as_str())
}

/// The word with quotes if a shell would read it differently without.
pub(crate) fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:=@%+,~^".contains(&b) || b >= 0x80;
    if !word.is_empty() && word.bytes().all(plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}
