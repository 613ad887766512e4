//! A command line together with the input that carries it, so that single words of it can be changed and nothing else.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use crate::Call;
use crate::shell::{self, Command, Join, Script, Stream};

/// Fields whose text a POSIX shell reads as a whole. Others (`keystrokes`, `code`) may be read by something else.
const FIELDS: &[&str] = &["command", "cmd", "script", "commandLine", "command_line"];

/// Words in a tool's name that mean a shell with another grammar.
const OTHER_GRAMMARS: &[&str] = &["powershell", "pwsh", "fish", "cmdexe"];

/// A longer line is a data file, and one with more places to change is no line a person would want changed. Both keep a
/// hostile one from taking long.
const TEXT_MAX: usize = 256 << 10;
const COMMANDS_MAX: usize = 1_000;
pub(super) const PLACES_MAX: usize = 64;

/// How the input holds the line.
enum Form {
    /// As the text of the field.
    Text,
    /// As this word of a list: `["bash", "-lc", "…"]`.
    Element(usize),
    /// As a list of words, which stand at these places of the line.
    Words(Vec<Range<usize>>),
}

/// A command line, read, and where it came from.
pub(super) struct Line<'a> {
    call: &'a Call,
    field: &'static str,
    form: Form,
    text: Cow<'a, str>,
    script: Script,
}

/// Words that take the place of others; the range begins and ends with a word.
pub(super) struct Edit {
    pub range: Range<usize>,
    pub words: Vec<String>,
}

impl<'a> Line<'a> {
    /// Reads the line of a call; nothing where the tool is no shell whose grammar we read, or its input is of a shape that
    /// could not be given back as it was.
    pub(super) fn of(call: &'a Call) -> Option<Line<'a>> {
        if shell::name_words(&call.tool).iter().any(|word| OTHER_GRAMMARS.contains(&word.as_str())) {
            return None;
        }
        let (field, value) = shell::carrier(call).filter(|(field, _)| FIELDS.contains(field))?;
        let (form, text) = match value {
            Value::String(text) => (Form::Text, Cow::Borrowed(text.as_str())),
            Value::Array(words) => in_list(words)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
        };
        if text.len() > TEXT_MAX {
            return None;
        }
        let script = Script::parse(&text);
        // Of a very long script the end is not read, so that its last commands would stay as they are.
        if script.commands().len() > COMMANDS_MAX {
            return None;
        }
        Some(Line { call, field, form, text, script })
    }

    pub(super) fn tool(&self) -> &str {
        &self.call.tool
    }

    pub(super) fn input(&self) -> &Value {
        &self.call.input
    }

    pub(super) fn commands(&self) -> &[Command] {
        self.script.commands()
    }

    /// Where some words of a command stand, if each is there as written, with nothing but blanks between.
    pub(super) fn place(&self, command: &Command, words: Range<usize>) -> Option<Range<usize>> {
        let places: Option<Vec<&Range<usize>>> =
            command.places.0.get(words)?.iter().map(Option::as_ref).collect();
        let places = places?;
        let apart = |pair: &[&Range<usize>]| self.text.get(pair[0].end..pair[1].start);
        let adjoin = places.windows(2).all(|pair| apart(pair).is_some_and(|gap| gap.trim().is_empty()));
        Some(places.first()?.start..places.last()?.end).filter(|_| adjoin)
    }

    /// The commands that run this one: those that have its first word among their own.
    pub(super) fn runners(&self, command: &Command) -> impl Iterator<Item = &Command> {
        let first = command.places.0.first().cloned().flatten();
        self.commands().iter().filter(move |other| {
            first.is_some() && other.places.0.iter().skip(1).any(|place| *place == first)
        })
    }

    /// Whether the line gives a name to a function of its own: `name() { …; }`, `function name { …; }`. The words are
    /// searched for anywhere, also where a shell would not read them.
    pub(super) fn defines(&self, name: &str) -> bool {
        let is_part = |sign: char| sign.is_alphanumeric() || "-_./+".contains(sign);
        self.text.match_indices(name).any(|(at, _)| {
            let (before, after) = (&self.text[..at], &self.text[at + name.len()..]);
            if before.ends_with(is_part) || after.starts_with(is_part) {
                return false;
            }
            let has_parens =
                after.trim_start().strip_prefix('(').is_some_and(|after| after.trim_start().starts_with(')'));
            has_parens || before.ends_with([' ', '\t']) && before.trim_end().ends_with("function")
        })
    }

    /// Whether what a command reads was chosen by whoever wrote the line.
    pub(super) fn has_own_input(&self, at: usize) -> bool {
        let commands = self.commands();
        // From `/dev/null` comes no answer.
        let is_fed = |command: &Command| {
            let mut inputs = command.redirections.iter().filter(|each| each.stream == Stream::Input);
            inputs.any(|each| each.target != "/dev/null")
        };
        // A pipe feeds everything in the command after it, however deep that stands.
        let piped = commands[..at].iter().any(|before| before.then == Join::Pipe);
        piped || commands.iter().any(is_fed)
    }

    /// The input with these words changed.
    pub(super) fn edited(&self, mut edits: Vec<Edit>) -> Option<Value> {
        edits.sort_by_key(|edit| edit.range.start);
        let overlap = edits.windows(2).any(|pair| pair[0].range.end > pair[1].range.start);
        if edits.is_empty() || overlap {
            return None;
        }
        let mut input = self.call.input.clone();
        let held = input.get_mut(self.field)?;
        match &self.form {
            Form::Text => *held = Value::String(self.with(&edits)?),
            Form::Element(at) => *held.get_mut(at)? = Value::String(self.with(&edits)?),
            Form::Words(places) => {
                let list = held.as_array_mut()?;
                for edit in edits.iter().rev() {
                    let first = places.iter().position(|place| place.start == edit.range.start)?;
                    let last = places.iter().position(|place| place.end == edit.range.end)?;
                    list.splice(first..=last, edit.words.iter().cloned().map(Value::String));
                }
            }
        }
        Some(input)
    }

    fn with(&self, edits: &[Edit]) -> Option<String> {
        let mut text = String::with_capacity(self.text.len() + 64);
        let mut at = 0;
        for edit in edits {
            text += self.text.get(at..edit.range.start)?;
            let words: Vec<Cow<'_, str>> = edit.words.iter().map(|word| shell::quoted(word)).collect();
            text += &words.join(" ");
            at = edit.range.end;
        }
        text += self.text.get(at..)?;
        Some(text)
    }
}

/// A line that was sent as a list; nothing where something in it is no word.
fn in_list(words: &[Value]) -> Option<(Form, Cow<'_, str>)> {
    let words = words.iter().map(Value::as_str).collect::<Option<Vec<&str>>>()?;
    if let Some(at) = shell::script_in(&words) {
        return Some((Form::Element(at), Cow::Borrowed(words[at])));
    }
    let mut line = String::new();
    let mut places = Vec::with_capacity(words.len());
    for word in words {
        let start = line.len() + usize::from(!line.is_empty());
        line += if line.is_empty() { "" } else { " " };
        line += &shell::quoted(word);
        places.push(start..line.len());
    }
    Some((Form::Words(places), Cow::Owned(line)))
}
