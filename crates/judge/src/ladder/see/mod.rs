//! Reads calls and results into what the ladder compares. All knowledge of shells, tools and outputs ends here.

mod ending;
mod input;
mod manner;
mod stopped;

pub use ending::ending;
pub(crate) use stopped::needed_commands;

use std::borrow::Cow;

use serde_json::Value;

use super::sight::{Manner, Print, Sight, Speaker};
use crate::call::Call;
use crate::fingerprint::{self, Fingerprint};
use crate::nature::{self, Looks};
use crate::shell::{self, ParsedCall};

/// How our own refusals begin, so that they are not taken for failures when a host hands them back as results.
pub const OUR_MARK: &str = "Blocked by unstuck";

/// Lists are there to compare, not to keep.
const LISTED: usize = 16;
const NAMES: usize = 64;
/// More words of a command line tell nobody more.
const LABEL_WORDS: usize = 100;

/// Reads a call.
pub fn sight(call: &Call) -> Sight {
    sight_and_prints(call).0
}

/// Reads a call, and names it and what it is meant to do.
pub fn sight_and_prints(call: &Call) -> (Sight, [Fingerprint; 2]) {
    let parsed = ParsedCall::of(call);
    let (call_print, intent_print) = fingerprint::call_and_intent(&parsed);
    let script = parsed.script.as_ref();
    let targets: Vec<String> =
        parsed.targets().into_iter().take(LISTED).map(|path| input::tidy(&path)).collect();
    let creates = script.is_none() && manner::creates(call);
    let mut roots = stopped::needed(&parsed, creates);
    roots.truncate(LISTED);
    let (manner, looks) = match (manner::of(&parsed), parsed.looks()) {
        (_, Looks::Known) => (Manner::Looks, Looks::Known),
        (manner @ (Manner::Looks | Manner::Runs), looks) => (manner, looks),
        (manner @ (Manner::Changes(_) | Manner::Waits | Manner::Unclear), _) => (manner, Looks::MayWrite),
    };
    let approach = parsed.approach();
    let polls = manner::polls(&parsed);
    let waits = script.is_some_and(manner::sleeps);
    let trivial = manner == Manner::Looks && script.is_some_and(manner::cannot_fail);
    let speaker = if script.is_some() { Speaker::Shell } else { Speaker::Tool };
    let dir = input::dir(&parsed);
    let plain = input::plainer(call);
    let fields = input::field_names(&call.input);
    let plain_print = match &plain {
        Cow::Borrowed(_) => Cow::Borrowed(&call_print),
        Cow::Owned(plain) => Cow::Owned(fingerprint::call(plain)),
    };
    let exact = Print::of(&["exact", plain_print.as_str(), &fields]);
    // What a look asks is all there is to it, filters and pages included; a variant of it is another question.
    let intent = match (speaker, manner) {
        (Speaker::Shell, Manner::Looks) => exact,
        (Speaker::Shell, _) => {
            Print::of(&["intent", fingerprint::intent_of(&parsed.in_foreground()).as_str()])
        }
        (Speaker::Tool, _) => {
            let meant = match (&plain, input::without_prose(&plain)) {
                (Cow::Borrowed(_), Cow::Borrowed(_)) => Cow::Borrowed(&intent_print),
                (_, other) => Cow::Owned(fingerprint::intent(&other)),
            };
            Print::of(&["intent", meant.as_str(), &fields])
        }
    };
    let sight = Sight {
        label: label(call, &approach),
        tool_name: call.tool.clone(),
        tool: Print::of(&["tool", &call.tool]),
        exact,
        intent,
        approach: Print::of(&["approach", &approach]),
        roots,
        manner,
        looks,
        speaker,
        dir,
        names: names(targets.iter().map(String::as_str)),
        targets: targets.iter().map(|target| Print::of(&["target", target])).collect(),
        creates,
        polls,
        waits,
        trivial,
    };
    (sight, [call_print, intent_print])
}

/// The call in one line: a command line as it was written, a request as its method and address, of other tools what they are
/// asked about. What is secret in it
/// is cut out by whoever keeps it, so only what is far too long is cut here, between words.
fn label(call: &Call, approach: &str) -> String {
    let field = |name: &str| call.input.get(name).and_then(Value::as_str);
    match (shell::line(call), field("method"), field("url")) {
        (Some(line), _, _) => line.split_whitespace().take(LABEL_WORDS).collect::<Vec<_>>().join(" "),
        (None, Some(method), Some(url)) => format!("{} {}", nature::shorter(method), nature::shorter(url)),
        (None, _, _) => match approach.split_once(' ') {
            // As a shell line has it: a name with spaces in it is one word, and no sentence.
            Some((tool, about)) if about.contains(char::is_whitespace) => {
                format!("{tool} \"{}\"", nature::shorter(about))
            }
            Some(_) | None => nature::shorter(approach).to_owned(),
        },
    }
}

/// The names in some texts, for comparing: whole words of three letters or more.
fn names<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<Print> {
    let mut found = Vec::new();
    for text in texts {
        for word in text.split(|sign: char| !sign.is_alphanumeric() && sign != '_' && sign != '-') {
            if word.len() >= 3 && found.len() < NAMES {
                let print = Print::of(&["name", word]);
                if !found.contains(&print) {
                    found.push(print);
                }
            }
        }
    }
    found
}
