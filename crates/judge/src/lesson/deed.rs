//! One thing that an agent did between a failure and its end, as it is remembered: commands in their own words, edits by
//! file and size and never by content.

use serde_json::Value;

use super::aim::prepares;
use crate::Call;
use crate::nature::{self, commands, script};
use crate::shell::{Command, Flow, Join, ParsedCall, Redirection, Role, Script, Stream, is_stream, quoted};

// The lists of `rules/lessons.toml`.
include!(concat!(env!("OUT_DIR"), "/deed.rs"));

/// The longest line that is remembered. A longer one is a program, not a step.
const LINE_MAX: usize = 300;

/// Something that was done and that changed the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Deed {
    /// A command, without what only surrounds it.
    Ran {
        /// As a shell would read it.
        line: String,
    },
    /// A file was written or changed.
    Edited {
        /// Which.
        file: String,
        /// About how many lines.
        lines: u32,
    },
    /// Another tool was called.
    Called {
        /// Which.
        tool: String,
        /// What it acted on; empty where it does not say.
        target: String,
    },
}

impl Deed {
    /// What a call did, one by one: nothing for one that only looks, builds or tests.
    pub fn of(call: &Call) -> Vec<Deed> {
        let parsed = ParsedCall::of(call);
        match &parsed.script {
            Some(script) => of_script(script),
            None if !parsed.moves_world() => Vec::new(),
            None => vec![of_tool(call, &parsed)],
        }
    }

    /// Is it the same thing? An edit of the same file is, whatever its size.
    pub fn is_like(&self, other: &Deed) -> bool {
        match (self, other) {
            (Deed::Edited { file, .. }, Deed::Edited { file: other, .. }) => file == other,
            (Deed::Ran { .. } | Deed::Edited { .. } | Deed::Called { .. }, _) => self == other,
        }
    }
}

fn of_tool(call: &Call, parsed: &ParsedCall<'_>) -> Deed {
    let target = parsed.targets().into_iter().next().unwrap_or_default();
    let input = nature::object(&call.input);
    let lines = lines_written(&input);
    match (lines, target.is_empty()) {
        (Some(lines), false) => Deed::Edited { file: target, lines },
        (Some(_) | None, _) => Deed::Called { tool: call.tool.clone(), target },
    }
}

/// About how many lines an edit puts in place; nothing where it is no edit.
fn lines_written(input: &Value) -> Option<u32> {
    const FIELDS: &[&str] = &[
        "new_string",
        "new_str",
        "newText",
        "new_text",
        "replacement",
        "content",
        "file_text",
        "new_source",
    ];
    let of = |value: &Value| {
        let text = FIELDS.iter().find_map(|field| value.get(field)?.as_str())?;
        Some(u32::try_from(text.lines().count()).unwrap_or(u32::MAX))
    };
    match input.get("edits").and_then(Value::as_array) {
        Some(edits) => Some(edits.iter().filter_map(of).fold(0, u32::saturating_add)),
        None => of(input),
    }
}

/// The commands of a line that change or make something, each with those that only start it, and a pipeline as a whole.
fn of_script(script: &Script) -> Vec<Deed> {
    let mut deeds = Vec::new();
    // The words of whoever starts a command hold those of the command.
    let mut starter: Option<&Command> = None;
    let mut entered: Option<String> = None;
    let mut pipeline: Vec<String> = Vec::new();
    let mut counts = false;
    for command in script.commands() {
        if matches!(command.role, Role::Defined | Role::Inner) {
            continue;
        }
        if command.then == Join::Wraps && command.role == Role::Wrapper {
            starter = starter.or(Some(command));
            continue;
        }
        if let Some(edit) = of_document(command) {
            deeds.push(edit);
            continue;
        }
        if command.program == "cd" {
            // A whole path mostly leads to where one is anyway, unless anybody can have put something there.
            let is_below = |folder: &&str| {
                let is_whole = folder.starts_with(['/', '~', '$', '-']);
                !is_whole || ANYBODYS.iter().any(|place| folder.starts_with(place))
            };
            entered =
                command.operands().next().filter(is_below).map(|folder| format!("cd {} && ", quoted(folder)));
            continue;
        }
        let is_shown = !pipeline.is_empty() && SHOWING.contains(&command.program.as_str());
        if !is_shown {
            pipeline.push(written(starter.take().unwrap_or(command)).join(" "));
        }
        counts |= !only_looks(command)
            && (script::changes(command) && stays(command) || makes(command) || switches(command));
        if command.then == Join::Pipe {
            continue;
        }
        let line = std::mem::take(&mut pipeline).join(" | ");
        if std::mem::take(&mut counts) && line.len() <= LINE_MAX {
            let end = if command.then == Join::Background { " &" } else { "" };
            deeds.push(Deed::Ran { line: format!("{}{line}{end}", entered.as_deref().unwrap_or_default()) });
        }
    }
    deeds
}

/// What is set here is over with the line it stands in.
fn stays(command: &Command) -> bool {
    !matches!(command.program.as_str(), "" | "pushd" | "popd" | "export" | "set" | "unset")
}

/// Does it choose the version or the environment that everything after it runs in?
fn switches(command: &Command) -> bool {
    prepares(command) && stays(command) && !matches!(command.program.as_str(), "source" | ".")
}

/// Does it make something out of what is there? It changes nothing that was written by hand, so it is only for those that miss
/// what it makes.
pub(super) fn makes(command: &Command) -> bool {
    let known = commands::traits(command);
    let is_quiet = known.moves_world || known.reader || known.filter || known.quiet || known.poller;
    let words = || {
        let subject = std::iter::once(command.program.as_str()).chain(command.operands().take(3));
        subject.flat_map(|word| word.split(|sign: char| !sign.is_alphanumeric()))
    };
    let is_task = words().any(|word| MAKING.contains(&word));
    !is_quiet && is_task && !tries(command)
}

/// Does it only try whether something holds?
pub(super) fn tries(command: &Command) -> bool {
    let mut subject = std::iter::once(command.program.as_str()).chain(command.operands().take(3));
    subject.any(|word| word.split(|sign: char| !sign.is_alphanumeric()).any(|word| TRYING.contains(&word)))
}

/// Does it only ask for what is there?
fn only_looks(command: &Command) -> bool {
    let asks = command.operands().take(3).any(|word| LOOKING.contains(&word));
    let only_flags = || command.operands().count() == usize::from(command.program == "git");
    // `npm run` alone tells what there is.
    let names_nothing = || command.program == "npm" && command.args() == ["run"];
    asks || names_nothing()
        || LOOKERS.contains(&command.program.as_str())
        || command.args().iter().any(|word| LOOKING_FLAGS.contains(&word.as_str())) && only_flags()
}

/// Does what a call printed say that there was nothing to do?
pub fn was_idle(output: &str) -> bool {
    let lower = output.to_lowercase();
    let says = |list: &[&str]| list.iter().any(|words| lower.contains(words));
    says(IDLE) && !says(BUSY)
}

/// A file whose text stands in the line itself, behind `<<`: an edit in other words.
fn of_document(command: &Command) -> Option<Deed> {
    let copies = matches!(command.program.as_str(), "cat" | "tee");
    let text = command.redirections.iter().find(|each| each.flow == Flow::Document).filter(|_| copies)?;
    let into = command.redirections.iter().find(|each| each.writes_file()).map(|each| each.target.as_str());
    let file = into.or_else(|| command.operands().next().filter(|_| command.program == "tee"))?;
    let lines = u32::try_from(text.target.lines().count()).unwrap_or(u32::MAX);
    Some(Deed::Edited { file: file.to_owned(), lines })
}

/// A command as a shell would read it, with the files it writes.
pub(super) fn written(command: &Command) -> Vec<String> {
    let set = command.assignments.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
    let words = command.words.iter().map(|word| quoted(word).into_owned());
    let to_file = |to: &&Redirection| to.writes_file() && !is_stream(&to.target);
    let files = command.redirections.iter().filter(to_file).map(|to| format!("> {}", quoted(&to.target)));
    // What it complains goes where it prints, which matters only if that is a file.
    let follows = |to: &&Redirection| to.flow == Flow::Duplicate && to.stream == Stream::Error;
    let is_filed = command.redirections.iter().any(|to| to_file(&to));
    let both = command.redirections.iter().filter(|to| is_filed && follows(to)).map(|_| "2>&1".to_owned());
    set.chain(words).chain(files).chain(both).collect()
}
