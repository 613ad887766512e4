//! A program that is not there: by another name, or at another place.

use std::ops::Range;

use super::line::{Edit, Line, PLACES_MAX};
use super::row::{
    MISSING_AFTER, MISSING_BEFORE, MOVING, NEVER, Place, SETTING, THROUGH, UNSETTLING, VARIABLES,
};
use super::{Cause, Change, Machine};
use crate::Kind;
use crate::shell::Command;

/// The call with `from` replaced by `to`, where the cause is that `from` is missing and `holds` says the rest.
pub(super) fn renamed(
    line: &Line<'_>,
    cause: Cause<'_>,
    from: &'static [&'static str],
    to: &'static [&'static str],
    rules: &[&str],
    holds: impl Fn() -> bool,
    machine: &dyn Machine,
) -> Option<Change> {
    let (program, new_program) = (from.first()?, to.first()?);
    let said = match rules {
        [] => says_missing(cause, program),
        rules => rules.contains(&cause.rule),
    };
    if !said || !holds() {
        return None;
    }
    let places = certain_places(line, from)?;
    let words: Vec<String> = to.iter().map(|word| (*word).to_owned()).collect();
    let edits = places.into_iter().map(|range| Edit { range, words: words.clone() }).collect();
    let at = machine.program(new_program)?;
    Some(Change { input: line.edited(edits)?, from: from.join(" "), to: to.join(" "), at })
}

/// The call with a program that is not on PATH replaced by its full path.
pub(super) fn found(
    line: &Line<'_>,
    cause: Cause<'_>,
    place: Place,
    machine: &dyn Machine,
) -> Option<Change> {
    let commands = line.commands();
    // The project of another folder has other programs.
    if place == Place::Project && commands.iter().any(|command| MOVING.contains(&command.program.as_str())) {
        return None;
    }
    let mut names = commands.iter().filter_map(|command| command.words.first());
    let name = names.find(|name| is_bare_name(name) && says_missing(cause, name))?;
    if names.any(|other| other != name && is_bare_name(other) && says_missing(cause, other)) {
        return None;
    }
    if NEVER.contains(&name.as_str()) || machine.program(name).is_some() {
        return None;
    }
    let path = match place {
        Place::Project => machine.in_project(name),
        Place::Usual => machine.off_path(name),
    }?;
    let places = certain_places(line, &[name])?;
    let edits = places.into_iter().map(|range| Edit { range, words: vec![path.clone()] }).collect();
    Some(Change { input: line.edited(edits)?, from: name.clone(), to: path.clone(), at: path })
}

/// A program's name as PATH is searched for it; anything else in its place is a path or an expansion.
fn is_bare_name(word: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
    !word.starts_with(['-', '.']) && !word.is_empty() && word.bytes().all(inner)
}

/// Whether the cause is that this very program is missing. A shell that complains has its own name in the line, too.
pub(super) fn says_missing(cause: Cause<'_>, program: &str) -> bool {
    if cause.kind != Kind::CommandNotFound {
        return false;
    }
    let program = program.to_lowercase();
    let quotes = ['\'', '"', '`', '‘', '’', '“', '”'];
    let is_part = |sign: char| sign.is_alphanumeric() || "-_./+".contains(sign);
    cause.line.match_indices(&program).any(|(at, _)| {
        let (before, after) = (&cause.line[..at], &cause.line[at + program.len()..]);
        if before.ends_with(is_part)
            || after.starts_with(|sign: char| sign.is_alphanumeric() || "-_/+".contains(sign))
        {
            return false;
        }
        let after = after.strip_prefix(quotes).unwrap_or(after);
        let before = before.strip_suffix(quotes).unwrap_or(before).trim_end();
        MISSING_AFTER.iter().any(|words| after.starts_with(words))
            || MISSING_BEFORE.iter().any(|words| before.ends_with(words))
            || before.ends_with("spawn") && after.starts_with(" enoent")
    })
}

/// Every place where `words` begin a command. Nothing where one of them is not certain, because a line that is half put
/// right fails in another way.
fn certain_places(line: &Line<'_>, words: &[&str]) -> Option<Vec<Range<usize>>> {
    let is_defined = words.first().is_some_and(|name| line.defines(name));
    if is_defined || line.commands().iter().any(unsettles) {
        return None;
    }
    let begins = |command: &&Command| {
        command.words.len() >= words.len() && command.words.iter().zip(words).all(|(is, wanted)| is == wanted)
    };
    if line.commands().iter().filter(begins).count() > PLACES_MAX {
        return None;
    }
    line.commands()
        .iter()
        .filter(begins)
        .map(|command| {
            let here = line.runners(command).all(|runner| THROUGH.contains(&runner.program.as_str()));
            line.place(command, 0..words.len()).filter(|_| here)
        })
        .collect()
}

/// Whether another PATH than the one we know may hold after or within a command.
fn unsettles(command: &Command) -> bool {
    UNSETTLING.contains(&command.program.as_str()) || sets_path(command)
}

/// Whether a name may stand for something else in a line than for the program on PATH.
pub(super) fn may_be_another(line: &Line<'_>, program: &str) -> bool {
    const NAMING: &[&str] = &["alias", "hash", "enable", "eval"];
    let names = |command: &Command| NAMING.contains(&command.program.as_str()) || sets_path(command);
    line.defines(program) || line.commands().iter().any(names)
}

/// Whether a command gives, or takes away, a variable that decides which program is found.
fn sets_path(command: &Command) -> bool {
    let decides = |name: &str| VARIABLES.contains(&name);
    let sets =
        |word: &String| word.split_once('=').is_some_and(|(name, _)| decides(name.trim_end_matches('+')));
    // `unset PATH`, `printf -vPATH`, `read -r PATH`.
    let names = |word: &String| {
        let name = word.strip_prefix("-v").unwrap_or(word);
        decides(name.split(['=', '[']).next().unwrap_or_default())
    };
    let clears = |word: &String| {
        ["-i", "-", "--ignore-environment", "-C"].contains(&word.as_str())
            || ["-u", "-S", "--unset", "--split-string", "--chdir"].iter().any(|flag| word.starts_with(flag))
    };
    let args = command.args();
    command.assignments.iter().any(|(name, _)| decides(name))
        || args.iter().any(sets)
        || SETTING.contains(&command.program.as_str()) && args.iter().any(names)
        || command.program == "env" && args.iter().any(clears)
}
