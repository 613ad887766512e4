//! The table of commands and tools, and how a row is found in it. Knowledge is in the rule file, not here.

use super::Nature;
use crate::shell::Command;
use crate::words::Words;

/// What is known of a command before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traits {
    /// What it does to the world.
    pub nature: Nature,
    /// Whether its success can change the answer of another call.
    pub moves_world: bool,
    /// Whether it only shows content.
    pub reader: bool,
    /// Whether it passes on what it reads from a pipe.
    pub filter: bool,
    /// Whether running it again and again is waiting.
    pub poller: bool,
    /// Whether it normally prints nothing.
    pub quiet: bool,
    /// Whether it is run for its verdict, so that what it prints is findings and no content.
    pub checks: bool,
}

impl Traits {
    /// A command nobody wrote down may do anything.
    pub const UNKNOWN: Traits = Traits {
        nature: Nature::Unknown,
        moves_world: true,
        reader: false,
        filter: false,
        poller: false,
        quiet: false,
        checks: false,
    };
}

/// Flags that give a command another nature.
struct Change {
    any: &'static [&'static str],
    nature: Nature,
    moves_world: bool,
}

/// Within which limits a command is known to only look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Not with one of these flags.
    pub not_with: Words,
    /// With at most so many words that are no flags.
    pub operands: usize,
    /// It looks at nothing itself; it only stands between those that do.
    pub fills: bool,
}

include!(concat!(env!("OUT_DIR"), "/commands.rs"));

fn find<T: Copy>(table: &[(&str, T)], key: &str) -> Option<T> {
    table.binary_search_by(|(row, _)| row.cmp(&key)).ok().map(|at| table[at].1)
}

/// What is known of a tool with exactly this name, lower case.
pub(crate) fn tool(name: &str) -> Option<Traits> {
    find(TOOLS, name)
}

/// What a verb in a tool's name says about it.
pub(crate) fn verb(word: &str) -> Option<Traits> {
    find(VERBS, word)
}

/// What is known of exactly this program and sub-command.
pub(super) fn row(key: &str) -> Option<Traits> {
    find(COMMANDS, key)
}

/// The limits of exactly this program, with or without sub-commands, where it is known to only look.
pub(super) fn look(key: &str) -> Option<Limits> {
    find(LOOKS, key)
}

/// Is it a tool of an agent, lower case, that is known to only look?
pub(super) fn is_look_tool(name: &str) -> bool {
    find(LOOK_TOOLS, name).is_some()
}

/// The flags of `program` that take the next word as their value.
pub(crate) fn valued(program: &str) -> Words {
    find(VALUED, program).unwrap_or_default()
}

/// The program with as many sub-commands as the table knows: `git commit`, `docker compose up`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// The row's key.
    pub key: String,
    /// What the row says, flags not yet looked at.
    pub traits: Traits,
    /// Whether a row was found at all.
    pub found: bool,
}

/// Finds the row of a command; the longest key wins. A script that has a row of its own stands for the interpreter that
/// runs it: `python manage.py migrate`.
pub(crate) fn known(command: &Command) -> Known {
    let mut program = plain_name(&command.program);
    let mut subs = sub_words(program, command, 2);
    if let Some(script) = subs.first().map(|first| first.rsplit('/').next().unwrap_or(first))
        && matches!(program, "python" | "php" | "ruby" | "node")
        && (script.contains('.') || script == "artisan")
        && COMMANDS.binary_search_by(|(row, _)| row.cmp(&script)).is_ok()
    {
        program = script;
        subs.remove(0);
    }
    for count in (0..=subs.len()).rev() {
        let key = subs[..count].iter().fold(program.to_owned(), |key, sub| key + " " + sub);
        if let Some(traits) = find(COMMANDS, &key) {
            return Known { key, traits, found: true };
        }
    }
    Known { key: program.to_owned(), traits: Traits::UNKNOWN, found: false }
}

/// What a command does, its flags considered.
pub(crate) fn traits(command: &Command) -> Traits {
    let mut known = known(command);
    if let Some(changing) = changing_verb(&known, command) {
        known.traits = changing;
    }
    let rows = find(FLAGS, &known.key).unwrap_or_default();
    match rows.iter().find(|change| change.holds(command, known.traits.nature)) {
        Some(change) => Traits {
            nature: change.nature,
            moves_world: change.moves_world,
            reader: known.traits.reader && change.nature == Nature::ReadOnly,
            ..known.traits
        },
        None => known.traits,
    }
}

impl Change {
    /// Whether a command has one of the flags. What makes it weaker has to be said plainly; what makes it stronger counts
    /// wherever the program itself would find it.
    fn holds(&self, command: &Command, nature: Nature) -> bool {
        if self.nature < nature {
            return command.has_flag(self.any) && !denies(command, self.any);
        }
        let bundles = BUNDLING.contains(&command.program.as_str());
        command.has_flag(self.any)
            || bundles && command.args().iter().any(|word| bundled(word, self.any, valued(&command.program)))
    }
}

/// Programs to which every word with one dash is letters, each of them a flag.
const BUNDLING: &[&str] = &["sed", "gsed", "sort", "rsync", "git"];

/// Whether one of `flags` stands among the letters of a word, before a letter that takes the rest as its value: `-Ei.bak`.
fn bundled(word: &str, flags: &[&str], valued: Words) -> bool {
    let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.starts_with('-')) else {
        return false;
    };
    let is_letter =
        |flag: &str, letter: char| flag.strip_prefix('-').is_some_and(|flag| flag.chars().eq([letter]));
    let is_flag = |letter: char| flags.iter().any(|flag| is_letter(flag, letter));
    let is_valued = |letter: char| valued.iter().any(|flag| is_letter(flag, letter));
    let letters = letters.chars().take_while(|letter| letter.is_ascii_alphabetic());
    letters.take_while(|letter| is_flag(*letter) || !is_valued(*letter)).any(is_flag)
}

/// `--dry-run=none` is given to say that it is not meant.
fn denies(command: &Command, flags: &[&str]) -> bool {
    let is_denied = |word: &String| {
        let (flag, value) = word.split_once('=').unwrap_or((word, ""));
        flags.contains(&flag) && matches!(value, "none" | "false" | "no" | "0")
    };
    command.args().iter().any(is_denied)
}

/// A row that names a group of commands only to look at them (`argocd app`, `pulumi stack`) does not speak for a verb behind
/// it that changes something.
fn changing_verb(known: &Known, command: &Command) -> Option<Traits> {
    let row = known.traits;
    let mut named = known.key.split(' ');
    let names_verb = named.next_back().is_some_and(|word| verb(word).is_some());
    if row.nature != Nature::ReadOnly || row.reader || row.filter || names_verb {
        return None;
    }
    let depth = named.count();
    let words = sub_words(plain_name(&command.program), command, depth + 2);
    words.into_iter().skip(depth).filter_map(verb).find(|traits| traits.moves_world)
}

/// The program's name without a version: `python3.12` is `python`, `gcc-13` is `gcc`.
pub(crate) fn plain_name(program: &str) -> &str {
    if find(COMMANDS, program).is_some() {
        return program;
    }
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    if name.is_empty() { program } else { name }
}

/// The first words that are neither flags nor flags' values: candidates for sub-commands.
pub(crate) fn sub_words<'c>(program: &str, command: &'c Command, most: usize) -> Vec<&'c str> {
    let valued = valued(program);
    let mut subs = Vec::new();
    let mut args = command.args().iter().map(String::as_str);
    while let Some(word) = args.next() {
        if valued.contains(word) {
            args.next();
        } else if !word.starts_with(['-', '+']) && word.len() < 40 {
            subs.push(word);
        }
        if subs.len() == most {
            break;
        }
    }
    subs
}
