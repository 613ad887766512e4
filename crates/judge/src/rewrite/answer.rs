//! A program that asks "shall I?" where nobody answers: the flag with which it does not ask.

use super::line::{Edit, Line, PLACES_MAX};
use super::row::{Act, After, BESIDE, ROWS, THROUGH, THROUGH_ANSWERS, WAITED};
use super::{Cause, Change, Machine, missing};
use crate::Kind;
use crate::shell::Command;

/// One row of commands that ask.
pub(super) struct Asks {
    pub run: &'static [(&'static str, &'static str)],
    pub flags: &'static [&'static str],
    pub after: After,
    pub given: &'static [&'static str],
    pub not_flags: &'static [&'static str],
    pub not_operands: &'static [&'static str],
    pub not_says: &'static [&'static str],
    pub alone: bool,
    pub says: &'static [&'static str],
    pub vague: &'static [&'static str],
    pub rules: &'static [&'static str],
}

/// The call with the flag, where the output shows the question, or where the command outlived its time and no other one
/// in its line could have.
pub(super) fn given(line: &Line<'_>, cause: Cause<'_>, asks: &Asks, machine: &dyn Machine) -> Option<Change> {
    let says = |words: &[&str]| words.iter().any(|words| cause.line.contains(words));
    let asked = says(asks.says) || asks.rules.contains(&cause.rule);
    let maybe_asked = says(asks.vague) || cause.kind == Kind::Timeout && WAITED.contains(&cause.rule);
    if !asked && !maybe_asked || says(asks.not_says) {
        return None;
    }
    let runs = |command: &Command| known(command, asks.run);
    let candidates: Vec<usize> =
        (0..line.commands().len()).filter(|at| runs(&line.commands()[*at]).is_some()).collect();
    let alike = candidates.iter().map(|at| runs(&line.commands()[*at])).collect::<Vec<_>>();
    if candidates.len() > PLACES_MAX {
        return None;
    }
    let (program, subcommand) = alike.first().copied().flatten()?;
    if alike.iter().any(|other| *other != Some((program, subcommand))) || others_ask(line, asks) {
        return None;
    }
    if !asked && !candidates.iter().all(|at| stands_alone(line, &line.commands()[*at])) {
        return None;
    }
    // Whatever is called so here need not be the program that asks.
    if missing::may_be_another(line, program) || candidates.iter().any(|at| asks.warns(&line.commands()[*at]))
    {
        return None;
    }
    let at = machine.program(program)?;
    let mut edits = Vec::new();
    for number in candidates {
        let command = &line.commands()[number];
        let certain = line.runners(command).all(|runner| {
            let program = runner.program.as_str();
            THROUGH.contains(&program) || THROUGH_ANSWERS.contains(&program)
        });
        if !certain || line.has_own_input(number) {
            return None;
        }
        if command.has_flag(asks.given) || asks.alone && command.operands().nth(1).is_some() {
            continue;
        }
        let word = match asks.after {
            After::Program => 0,
            After::Subcommand => command.words.iter().position(|word| word == subcommand)?,
        };
        let flags = asks.flags.iter().map(|flag| (*flag).to_owned());
        let words = std::iter::once(command.words[word].clone()).chain(flags).collect();
        edits.push(Edit { range: line.place(command, word..word + 1)?, words });
    }
    let to = match asks.after {
        After::Program => format!("{program} {} {subcommand}", asks.flags.join(" ")),
        After::Subcommand => format!("{program} {subcommand} {}", asks.flags.join(" ")),
    };
    Some(Change { input: line.edited(edits)?, from: format!("{program} {subcommand}"), to, at })
}

impl Asks {
    /// Whether the command's own words make its question a warning: it may take away what nobody named.
    fn warns(&self, command: &Command) -> bool {
        let is_like =
            |word: &str, pattern: &&str| match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
                (Some(begin), _) => word.starts_with(begin),
                (None, Some(end)) => word.len() > end.len() && word.ends_with(end),
                (None, None) => word == *pattern || command.has_flag(&[*pattern]),
            };
        command.args().iter().any(|word| {
            let patterns = if word.starts_with('-') { self.not_flags } else { self.not_operands };
            patterns.iter().any(|pattern| is_like(word, pattern))
        })
    }
}

/// The program and the sub-command of a command, if they are among `run`. A program that is named by its path is the same
/// one; a word before the sub-command that could be a flag's value makes it another.
fn known(
    command: &Command,
    run: &'static [(&'static str, &'static str)],
) -> Option<(&'static str, &'static str)> {
    let subcommand = command.operands().next()?;
    run.iter().copied().find(|(program, sub)| *program == command.program && *sub == subcommand)
}

/// Whether a command that can ask stands in the line, with or without a flag against it.
pub(super) fn may_ask(line: &Line<'_>) -> bool {
    let asks = |command: &Command| {
        ROWS.iter().any(|row| match &row.act {
            Act::Answer { run, .. } => known(command, run).is_some(),
            Act::Rename { .. } | Act::Find { .. } | Act::Grow { .. } => false,
        })
    };
    line.commands().iter().any(asks)
}

/// Whether a command of another row stands in the line, so that nobody knows which of them asked.
fn others_ask(line: &Line<'_>, asks: &Asks) -> bool {
    let other = |command: &Command| {
        ROWS.iter().any(|row| match &row.act {
            Act::Answer { run, given, .. } => {
                *run != asks.run && known(command, run).is_some() && !command.has_flag(given)
            }
            Act::Rename { .. } | Act::Find { .. } | Act::Grow { .. } => false,
        })
    };
    line.commands().iter().any(other)
}

/// Whether nothing else in the line could have asked or taken long: only what runs the command, what is quick, and other
/// sub-commands of the same program.
fn stands_alone(line: &Line<'_>, command: &Command) -> bool {
    let runners: Vec<&Command> = line.runners(command).collect();
    line.commands().iter().all(|other| {
        other.program == command.program
            || other.program.is_empty()
            || BESIDE.contains(&other.program.as_str())
            || runners.iter().any(|runner| std::ptr::eq(*runner, other))
    })
}
