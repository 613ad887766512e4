//! Tells cause from coincidence: what was done between a failure and its end need not be what ended it. In doubt a deed is
//! not credited; a lesson that is missed costs a minute, a wrong one costs trust.

use super::deed::{self, Deed};
use super::fix::{Change, Fix};
use crate::nature::{Nature, commands};
use crate::shell::{Command, Role, Script};
use crate::{Call, Kind, shell};

/// A failure, as far as a deed can have to do with it.
#[derive(Debug, Clone, Copy)]
pub struct Trouble<'a> {
    /// The call that failed.
    pub call: &'a Call,
    /// What it is.
    pub kind: Kind,
    /// The line that showed it. It only decides what is left out; no word of it gets into a fix.
    pub shown: &'a str,
}

/// What ends failures of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Healer {
    /// Work on the code: whatever else was done, the code is what was wrong.
    Edits,
    /// Time: it passes by itself.
    Time,
    /// Something that is done.
    Deeds,
}

impl Healer {
    pub(super) fn of(kind: Kind) -> Healer {
        match kind {
            Kind::CodeError | Kind::TestFailure => Healer::Edits,
            Kind::Network | Kind::Timeout | Kind::RateLimited | Kind::ServerError => Healer::Time,
            Kind::ResourceBusy
            | Kind::Auth
            | Kind::Permission
            | Kind::CommandNotFound
            | Kind::PathNotFound
            | Kind::MissingDependency
            | Kind::CheckFailed
            | Kind::Validation
            | Kind::Conflict
            | Kind::OutOfResources
            | Kind::ParseError
            | Kind::Aborted
            | Kind::Crash
            | Kind::Logical
            | Kind::NotAnError
            | Kind::Unknown => Healer::Deeds,
        }
    }
}

// The lists of `rules/lessons.toml`.
include!(concat!(env!("OUT_DIR"), "/bearing.rs"));

/// A shorter word has to be met as a whole, a longer one also within another: `yaml` in `pyyaml`.
const WITHIN: usize = 4;

impl Fix {
    /// What of it can have ended the trouble.
    pub fn that_bears_on(&self, trouble: &Trouble<'_>) -> Fix {
        let named = Named::by(trouble);
        let is_credited = |deed: &&Deed| match deed {
            Deed::Ran { line } => !is_making(line) && named.bears(line, trouble),
            Deed::Edited { file, .. } => !is_prose(file) || named.is_in(file),
            Deed::Called { .. } => Healer::of(trouble.kind) == Healer::Deeds,
        };
        // What was only made out of what is there ends a failure that names it, or where nothing else was done.
        let is_alone = self.change.is_none() && !self.deeds.iter().any(|deed| is_credited(&deed));
        let is_made = |line: &str| {
            is_making(line) && (named.subject_is_in(line) || is_alone && named.is_made_by(line, trouble))
        };
        let counts = |deed: &&Deed| is_credited(deed) || ran(deed).is_some_and(is_made);
        let mut deeds: Vec<Deed> = self.deeds.iter().filter(counts).cloned().collect();
        // Who brought in what was missing, by its name, needed neither an edit of a file that neither of them speaks of nor a
        // program of which nothing is known.
        let is_missing = matches!(trouble.kind, Kind::CommandNotFound | Kind::MissingDependency);
        let lines: Vec<String> = deeds.iter().filter_map(ran).map(str::to_owned).collect();
        let brings_in = |line: &String| is_known(line) && !is_filing(line) && named.subject_is_in(line);
        // A call that was changed tells itself what helped.
        if self.change.is_some() {
            deeds.retain(|deed| ran(deed).is_none_or(is_known));
        }
        if is_missing && lines.iter().any(brings_in) {
            deeds.retain(|deed| match deed {
                Deed::Edited { file, .. } => {
                    let name = file.rsplit('/').next().unwrap_or(file);
                    named.is_in(file) || lines.iter().any(|line| line.contains(name))
                }
                Deed::Ran { line } => is_known(line) || named.subject_is_in(line),
                Deed::Called { .. } => true,
            });
        }
        // Tests that fail are not mended by what they are told; where they run, and with what set, is another matter.
        let only_around = |change: &Change| {
            let told = |line: &str| Script::parse(line).last().map(|last| last.words.clone());
            told(&change.from) == told(&change.to)
        };
        let is_credited = |change: &Change| trouble.kind != Kind::TestFailure || only_around(change);
        let change = self.change.clone().filter(is_credited);
        Fix { deeds, change }
    }
}

fn ran(deed: &Deed) -> Option<&str> {
    match deed {
        Deed::Ran { line } => Some(line),
        Deed::Edited { .. } | Deed::Called { .. } => None,
    }
}

/// The words by which a failure names what it is about.
struct Named {
    /// Those of the line that showed it.
    subject: Vec<String>,
    /// Those of the call.
    call: Vec<String>,
    is_local: bool,
    /// Somebody is there and does not take it: what is to answer may not run.
    is_refused: bool,
}

impl Named {
    fn by(trouble: &Trouble<'_>) -> Named {
        let line = shell::line(trouble.call).unwrap_or_default();
        let flagless = line.split_whitespace().filter(|word| !word.starts_with('-'));
        Named {
            subject: words(trouble.shown),
            call: flagless.flat_map(words).collect(),
            is_refused: trouble.shown.to_lowercase().contains("refused"),
            is_local: LOCAL.iter().any(|sign| trouble.shown.contains(sign) || line.contains(sign)),
        }
    }

    fn bears(&self, line: &str, trouble: &Trouble<'_>) -> bool {
        let is_filer = is_filing(line);
        match Healer::of(trouble.kind) {
            // A file that is written by a command is an edit whose content is not told.
            Healer::Edits => !is_filer || fills_in(line),
            Healer::Time => {
                !is_filer && (self.is_local || self.is_in(line) || self.is_refused && starts_service(line))
            }
            Healer::Deeds => !is_filer || self.is_in(line) || fills_in(line),
        }
    }

    /// Can what a line makes be what a failure misses, although neither names the other?
    fn is_made_by(&self, line: &str, trouble: &Trouble<'_>) -> bool {
        match Healer::of(trouble.kind) {
            Healer::Edits => {
                trouble.kind == Kind::CodeError && GENERATING.iter().any(|word| line.contains(word))
            }
            Healer::Time => false,
            Healer::Deeds => true,
        }
    }

    fn is_in(&self, line: &str) -> bool {
        let told = words(line);
        self.subject.iter().chain(&self.call).any(|word| told.contains(word))
    }

    fn subject_is_in(&self, line: &str) -> bool {
        let told = words(line);
        let is_met = |word: &String| {
            told.iter().any(|other| other == word || word.len() >= WITHIN && other.contains(word.as_str()))
        };
        self.subject.iter().any(is_met)
    }
}

fn starts_service(line: &str) -> bool {
    let script = Script::parse(line);
    script.commands().iter().any(|command| command.operands().take(3).any(|word| STARTING.contains(&word)))
}

/// Is it written for people?
fn is_prose(file: &str) -> bool {
    [".md", ".rst", ".adoc"].iter().any(|ending| file.ends_with(ending))
}

/// Does it make something out of what is there, and nothing else?
fn is_making(line: &str) -> bool {
    let script = Script::parse(line);
    let mut commands =
        script.commands().iter().filter(|command| !is_starter(command) && command.program != "cd");
    commands.clone().next().is_some() && commands.all(deed::makes)
}

/// Does it bring in what belongs to every copy of a project: settings out of a template, parts that are kept elsewhere?
fn fills_in(line: &str) -> bool {
    let script = Script::parse(line);
    script.commands().iter().any(|command| {
        let mut operands = command.operands();
        match command.program.as_str() {
            "git" => operands.next().is_some_and(|word| matches!(word, "submodule" | "lfs")),
            "cp" | "ln" | "install" => {
                operands.any(|file| TEMPLATES.iter().any(|ending| file.ends_with(ending)))
            }
            _ => false,
        }
    })
}

/// Does it only put files where they are wanted?
fn is_filing(line: &str) -> bool {
    let script = Script::parse(line);
    let main = script.commands().iter().find(|command| !is_starter(command));
    main.is_some_and(is_filer)
}

/// Is it known what the programs of a line do?
fn is_known(line: &str) -> bool {
    let script = Script::parse(line);
    let mut own = script.commands().iter().filter(|command| !is_starter(command));
    own.all(|command| commands::traits(command).nature != Nature::Unknown)
}

pub(super) fn is_filer(command: &Command) -> bool {
    FILERS.contains(&command.program.as_str()) || command.program == "git"
}

fn is_starter(command: &Command) -> bool {
    command.role == Role::Wrapper
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|sign: char| !sign.is_alphanumeric()).map(str::to_lowercase);
    // A sign of some scripts says as much as several letters.
    let says_something = |word: &String| word.len() >= 3 && !PLAIN.contains(&word.as_str());
    words.filter(says_something).collect()
}

/// Is a failure about another thing than the one that was learnt from, although both read alike otherwise? A port that is asked
/// for and a version that is wanted tell which one is meant.
pub fn is_about_another(learnt: &str, met: &str) -> bool {
    let differs = |of: fn(&str) -> Vec<&str>| {
        let (learnt, met) = (of(learnt), of(met));
        !learnt.is_empty() && !met.is_empty() && learnt != met
    };
    differs(ports) || differs(versions)
}

/// Numbers behind the name of a machine. What lies above is given by chance.
fn ports(line: &str) -> Vec<&str> {
    let ends = line.match_indices(':').filter_map(|(at, _)| {
        let is_host = line[..at].ends_with(|sign: char| sign.is_alphanumeric() || sign == ']' || sign == '*');
        let rest = &line[at + 1..];
        let digits = &rest[..rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len())];
        // A line has a column behind it.
        let behind = rest[digits.len()..].strip_prefix(':');
        let is_last = !behind.is_some_and(|behind| behind.starts_with(|sign: char| sign.is_ascii_digit()));
        let is_chosen = digits.parse::<u16>().is_ok_and(|port| (80..32_768).contains(&port));
        (is_host && is_last && is_chosen && names_machine(&line[..at])).then_some(digits)
    });
    let said = line.match_indices("port ").filter_map(|(at, word)| {
        let rest = &line[at + word.len()..];
        let digits = &rest[..rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len())];
        (!digits.is_empty()).then_some(digits)
    });
    ends.chain(said).collect()
}

/// Does it end with the name of a machine, and not of a file?
fn names_machine(before: &str) -> bool {
    let name = before
        .rsplit(|sign: char| sign.is_whitespace() || "/@\"'(=".contains(sign))
        .next()
        .unwrap_or_default();
    let last = name.rsplit('.').next().unwrap_or_default();
    name == "localhost"
        || name.contains(']')
        || name == "*"
        || last.parse::<u8>().is_ok()
        || !name.contains('.') && !name.is_empty() && before.contains("://")
}

/// Versions that are asked for: `>=3.11`, `^18`.
fn versions(line: &str) -> Vec<&str> {
    let is_part = |sign: char| sign.is_ascii_digit() || sign == '.';
    let words = line.split(|sign: char| sign.is_whitespace() || "\"'`,()".contains(sign));
    let wanted = words.filter_map(|word| {
        let number = word.trim_start_matches(['>', '<', '=', '^', '~']);
        let is_wanted = number.len() < word.len() && number.starts_with(|sign: char| sign.is_ascii_digit());
        is_wanted.then(|| &number[..number.find(|sign| !is_part(sign)).unwrap_or(number.len())])
    });
    wanted.collect()
}
