//! What may be told of a fix without a person's approval: rows of programs, their flags and the shapes of their words.
//!
//! It only ever says yes. What no row knows waits for a person, in whatever form it is written.

mod shape;

use std::borrow::Cow;

use super::caution::is_in_use;
use crate::shell::{Command, Join, Role, Script, assignment};
use shape::{Around, fits, is_inside};

// The rows of `rules/allowed-steps.toml`.
include!(concat!(env!("OUT_DIR"), "/allowed.rs"));

/// Programs whose name may carry a version: `python3.12`.
const VERSIONED: &[&str] = &["pip", "python", "pypy", "ruby", "gem", "php", "make", "cmake"];
/// Interpreters, and files that they only start.
const RUN_BY: &[(&str, &[&str])] =
    &[("python", &["manage.py", "./manage.py", "setup.py"]), ("php", &["artisan", "bin/console"])];
/// Programs that may read what another one prints.
const READERS: &[&str] = &["tail", "head", "cat", "grep", "tee", "less", "wc", "sort"];
/// Devices that what is printed may go to.
const SINKS: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];
/// Programs that may print for another one: they say yes.
const SAYERS: &[&str] = &["yes", "echo", "printf"];

/// A program with its sub-words, and what may stand behind it.
struct Row {
    /// For each way to write it a line: its words, with `|` between alternatives. `*name` stands for a word of that shape.
    run: &'static str,
    /// To be read by [`named`].
    flags: &'static str,
    /// The numbers of the shapes of its other words.
    words: &'static [usize],
    ordered: bool,
    /// The registry where the package of this name is the usual one.
    fetched: Registry,
}

/// Where a package comes from that is fetched to be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registry {
    None,
    Npm,
    Pypi,
}

/// A flag or a variable, and the number of the shape of its value.
struct Named {
    name: &'static str,
    value: Option<usize>,
}

fn named(list: &'static str) -> impl Iterator<Item = Named> {
    list.split_terminator(' ').map(|word| match word.split_once('\t') {
        Some((name, shape)) => Named { name, value: shape.parse().ok() },
        None => Named { name: word, value: None },
    })
}

/// Is a word one of these, between which `|` stands?
fn is_among(alternatives: &str, word: &str) -> bool {
    alternatives.split('|').any(|one| one == word)
}

/// What is put together while it runs, but can only become one thing: a number, or the project's own folder.
const FORESEEABLE: &[(&str, &str)] = &[
    ("$(nproc)", "4"),
    ("$(getconf _NPROCESSORS_ONLN)", "4"),
    ("$(sysctl -n hw.ncpu)", "4"),
    ("$(sysctl -n hw.logicalcpu)", "4"),
    ("$(pwd)", "."),
    ("${PWD}", "."),
    ("$PWD", "."),
];

/// Tells whether a line may be told as a step.
pub(super) fn is_step(line: &str) -> bool {
    let line = &foreseen(line);
    let script = Script::parse(line);
    is_readable(line) && all_allowed(script.commands(), &[STEPS], None)
}

/// Tells whether a call may be told in the place of another one, whatever that one was.
pub(super) fn is_call(to: &str) -> bool {
    let to = &foreseen(to);
    is_readable(to) && all_allowed(Script::parse(to).commands(), &[STEPS, CALLS], None)
}

/// A line, with what can be foreseen in the place of what is put together.
fn foreseen(line: &str) -> Cow<'_, str> {
    match line.contains('$') {
        false => Cow::Borrowed(line),
        true => {
            let begun = Cow::Borrowed(line);
            FORESEEABLE.iter().fold(begun, |line, (from, to)| match line.contains(from) {
                true => Cow::Owned(line.replace(from, to)),
                false => line,
            })
        }
    }
}

/// Tells whether a call may be told in the place of another one, whose words were meant anyway.
pub(super) fn is_call_for(from: &str, to: &str) -> bool {
    let to = &foreseen(to);
    let script = Script::parse(to);
    let meant = Script::parse(from);
    is_same_tool(from, to) || is_readable(to) && all_allowed(script.commands(), &[STEPS, CALLS], meant.last())
}

/// Tells whether another tool may be told of: the first word of its own name says what it does.
pub(super) fn is_tool(tool: &str) -> bool {
    let name = tool.rsplit("__").next().unwrap_or(tool);
    let spaced: String =
        name.chars().flat_map(|sign| [sign.is_uppercase().then_some(' '), Some(sign)]).flatten().collect();
    let lower = spaced.to_lowercase();
    let mut words = lower.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
    words.next().is_some_and(|first| TOOL_VERBS.contains(&first))
}

/// Tells whether a variable may be set to this value.
fn is_variable(name: &str, value: &str) -> bool {
    let around = Around { program: "", entered: 0, meant: &[] };
    named(VARIABLES).any(|row| {
        let is_named = match row.name.contains('*') {
            true => is_like(row.name, name) && !says_check(name),
            false => row.name == name,
        };
        is_named && row.value.is_some_and(|shape| fits(shape, value, around))
    })
}

/// Does a name say that a check is switched on or off?
fn says_check(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    CHECKING.iter().any(|word| upper.contains(word))
}

/// Does a name fit a pattern in which `*` stands for letters, digits and `_`?
fn is_like(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut last = "";
    for part in parts {
        last = part;
        match (part.is_empty(), rest.find(part)) {
            (true, _) => {}
            (false, Some(at)) => rest = &rest[at + part.len()..],
            (false, None) => return false,
        }
    }
    (last.is_empty() || rest.is_empty() || name.ends_with(last))
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// What is put together while it runs, or goes on over several lines, cannot be read beforehand.
fn is_readable(line: &str) -> bool {
    // Behind such a sign stand words for whoever reads it, not for the shell.
    let is_remark = line.starts_with('#') || line.contains(" #");
    !is_remark
        && !line.chars().any(char::is_control)
        && !["$", "`", "<(", ">(", "<<", "\\"].iter().any(|sign| line.contains(sign))
}

/// The same tool, with other fields.
fn is_same_tool(from: &str, to: &str) -> bool {
    let is_name = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
    };
    let parts =
        |line: &'_ str| line.split_once(" with ").map(|(tool, rest)| (tool.to_owned(), rest.to_owned()));
    match (parts(from), parts(to)) {
        (Some((tool, _)), Some((same, rest))) => {
            tool == same
                && is_name(&tool)
                && rest.split(", ").all(|field| is_name(field) && field.len() <= 40)
        }
        _ => false,
    }
}

fn all_allowed(commands: &[Command], tables: &[&[Row]], meant: Option<&Command>) -> bool {
    let mut entered = 0;
    let mut fetcher = Registry::None;
    for (at, command) in commands.iter().enumerate() {
        let looked = Looked { command, entered, fetcher, meant: meant.filter(|_| at + 1 == commands.len()) };
        let next = commands.get(at + 1);
        let before = at.checked_sub(1).and_then(|at| commands.get(at));
        let is_fed = before.is_some_and(|before| before.then == Join::Pipe);
        let feeds = command.then == Join::Pipe;
        let is_read = !is_fed || READERS.contains(&&*command.program) || before.is_some_and(says_yes);
        let is_allowed = match (command.role, command.then, next) {
            (Role::Inner | Role::Defined, _, _) => false,
            (Role::Wrapper, Join::Wraps, Some(inner)) => looked.starts(inner),
            (Role::Wrapper, _, _) => false,
            (Role::Plain, _, _) if command.program == "export" => exports_plainly(command),
            (Role::Plain, _, _) => feeds && says_yes(command) || tables.iter().any(|rows| looked.is_in(rows)),
        };
        let has_set = |(name, value): &(String, String)| {
            let is_meant = looked.meant.is_some_and(|meant| {
                meant.assignments.iter().any(|(known, set)| known == name && set == value)
            });
            // A variable may keep git from running the checks that a project has.
            let is_told = || {
                command.program != "git"
                    || ["GIT_", "LC_", "LANG"].iter().any(|start| name.starts_with(start))
            };
            // What others use is built here at most.
            let is_built = || command.words.iter().any(|word| word.starts_with("build"));
            is_meant || is_told() && is_variable(name, value) && (!is_in_use(value, "") || is_built())
        };
        if !is_allowed || !is_read || !command.assignments.iter().all(has_set) || !looked.redirects_plainly()
        {
            return false;
        }
        fetcher = match looked.fetches_from() {
            Registry::None if command.then == Join::Wraps => fetcher,
            registry => registry,
        };
        entered += usize::from(command.program == "cd");
    }
    !commands.is_empty()
}

/// Does it only set variables that may be set?
fn exports_plainly(command: &Command) -> bool {
    let is_told = |word: &String| assignment(word).is_some_and(|(name, value)| is_variable(name, value));
    !command.args().is_empty() && command.args().iter().all(is_told)
}

/// Does it only answer what another program asks?
fn says_yes(command: &Command) -> bool {
    let is_answer = |word: &String| matches!(&**word, "y" | "Y" | "yes" | "n" | "no" | "-n" | "-e");
    SAYERS.contains(&&*command.program) && command.args().iter().all(is_answer)
}

/// A command as it is looked at.
struct Looked<'a> {
    command: &'a Command,
    entered: usize,
    /// The registry that whoever starts it fetches it from.
    fetcher: Registry,
    /// The call in whose place it is told.
    meant: Option<&'a Command>,
}

impl Looked<'_> {
    /// The words behind the program, and the program as rows name it.
    fn words(&self) -> Option<(String, &[String])> {
        let [written, args @ ..] = &self.command.words[..] else { return None };
        let program = self.command.program.as_str();
        let is_known_path = || {
            OWN.contains(&&**written) || FOLDERS.iter().any(|folder| *written == format!("{folder}{program}"))
        };
        if ROOTED.contains(&&**written) {
            return Some((written.clone(), args));
        }
        let is_meant = || self.meant.is_some_and(|meant| meant.words.contains(written));
        if written.contains('/') && !is_known_path() && !is_meant() {
            return None;
        }
        let bare = program.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
        let program = if VERSIONED.contains(&bare) { bare } else { program };
        // What is fetched may be told with its version.
        let program = match program.rsplit_once('@') {
            Some((name, version))
                if self.fetcher != Registry::None && !name.is_empty() && is_version(version) =>
            {
                name
            }
            _ => program,
        };
        let file = args.first().and_then(|file| {
            let (_, files) = RUN_BY.iter().find(|(interpreter, _)| *interpreter == program)?;
            files.contains(&&**file).then(|| file.rsplit('/').next().unwrap_or(file).to_owned())
        });
        match file {
            Some(file) => Some((file, args.get(1..).unwrap_or_default())),
            None => Some((program.to_owned(), args)),
        }
    }

    fn is_in(&self, rows: &[Row]) -> bool {
        let Some((program, args)) = self.words() else { return false };
        rows.iter()
            .filter(|row| self.fetcher == Registry::None || row.fetched == self.fetcher)
            .any(|row| row.run.lines().any(|run| self.fits(row, run, &program, args)))
    }

    /// Does it start the next command, and do nothing else?
    fn starts(&self, inner: &Command) -> bool {
        let Some((program, args)) = self.words() else { return false };
        let Some(own) = args.len().checked_sub(inner.words.len()) else { return false };
        let (own, rest) = args.split_at(own);
        let sets = own.iter().filter_map(|word| assignment(word));
        let own: Vec<String> = own.iter().filter(|word| assignment(word).is_none()).cloned().collect();
        let is_plain_root = || {
            let first = inner.words.first().filter(|word| word.contains('/'));
            is_among(AS_ROOT, first.unwrap_or(&inner.program))
        };
        rest == inner.words
            && (program != "sudo" || is_plain_root())
            && sets.into_iter().all(|(name, value)| is_variable(name, value))
            && STARTERS.iter().any(|row| row.run.lines().any(|run| self.fits(row, run, &program, &own)))
    }

    /// The registry that it fetches from what it starts.
    fn fetches_from(&self) -> Registry {
        let is_named = |run: &str| {
            let words = &self.command.words;
            run.split(' ')
                .enumerate()
                .all(|(at, one_of)| words.get(at).is_some_and(|word| is_among(one_of, word)))
        };
        let mut rows = STARTERS.iter().filter(|row| row.fetched != Registry::None);
        match self.command.role {
            Role::Wrapper => {
                rows.find(|row| row.run.lines().any(is_named)).map_or(Registry::None, |row| row.fetched)
            }
            Role::Plain | Role::Inner | Role::Defined => Registry::None,
        }
    }

    /// Does a row hold every word of it?
    fn fits(&self, row: &Row, run: &str, program: &str, args: &[String]) -> bool {
        let mut subs = run.split(' ');
        let first = subs.next().unwrap_or_default();
        let is_any = first == "*" && self.meant.is_some_and(|meant| meant.program == self.command.program);
        if !is_any && (program == "*" || !is_among(first, program)) {
            return false;
        }
        let subs: Vec<&str> = subs.collect();
        let none = Vec::new();
        let meant = self.meant.map_or(&none, |meant| &meant.words);
        let around = Around { program, entered: self.entered, meant };
        let (mut sub, mut operand, mut at) = (0, 0, 0);
        while let Some(word) = args.get(at) {
            let is_sub = subs.get(sub).is_some_and(|one_of| {
                one_of.split('|').any(|name| match name.strip_prefix('*') {
                    Some(shape) => fits_named(shape, word, around),
                    None => name == word,
                })
            });
            if is_sub {
                (sub, at) = (sub + 1, at + 1);
                continue;
            }
            if let Some(taken) = flag(row, args, at, around) {
                at += taken;
                continue;
            }
            let is_meant = self.meant.is_some_and(|meant| meant.args().contains(word));
            let is_value = || {
                let before = at.checked_sub(1).and_then(|at| args.get(at));
                let is_flag = before.is_some_and(|flag| flag.starts_with('-') && meant.contains(flag));
                is_flag && word.parse::<f64>().is_ok()
            };
            let is_word = || {
                let is_flag = word.starts_with('-') && word != "-";
                let shapes = match (row.ordered, row.words.len()) {
                    (true, count) if count > 0 => &row.words[operand.min(count - 1)..][..1],
                    _ => row.words,
                };
                let is_early = sub < subs.len() && !word.starts_with('+');
                !is_flag && !is_early && shapes.iter().any(|shape| fits(*shape, word, around))
            };
            if !is_meant && !is_value() && !is_word() {
                return false;
            }
            (operand, at) = (operand + 1, at + 1);
        }
        sub == subs.len()
    }

    /// Does it write nothing but logs, and read nothing from outside the project?
    fn redirects_plainly(&self) -> bool {
        let around = Around { program: "", entered: self.entered, meant: &[] };
        self.command.redirections.iter().all(|to| match to.writes_file() {
            true => fits_named("logfile", &to.target, around),
            // Some names of devices are machines elsewhere.
            false => SINKS.contains(&&*to.target) || is_inside(&to.target, self.entered),
        })
    }
}

fn is_version(word: &str) -> bool {
    fits_named("version", word, Around { program: "", entered: 0, meant: &[] })
}

fn fits_named(shape: &str, word: &str, around: Around<'_>) -> bool {
    SHAPES.iter().position(|(name, _)| *name == shape).is_some_and(|shape| fits(shape, word, around))
}

/// How many words a flag of the row takes that stands here; nothing where none does.
fn flag(row: &Row, args: &[String], at: usize, around: Around<'_>) -> Option<usize> {
    let word = args.get(at)?;
    let flags = || named(EVERYWHERE).chain(named(row.flags));
    let is_bare = |word: &str| flags().any(|flag| flag.value.is_none() && flag.name == word);
    if is_bare(word) {
        return Some(1);
    }
    for flag in flags() {
        let Some(shape) = flag.value else { continue };
        if flag.name == word && args.get(at + 1).is_some_and(|value| fits(shape, value, around)) {
            return Some(2);
        }
        let (name, value) = word.split_once('=').map_or((&**word, None), |(name, value)| (name, Some(value)));
        let is_named =
            name == flag.name || flag.name.contains('*') && is_like(flag.name, name) && !says_check(name);
        if is_named && value.is_some_and(|value| fits(shape, value, around)) {
            return Some(1);
        }
        // `-j4`. Behind a single dash letters may be another, longer flag.
        let attached = word.strip_prefix(flag.name).filter(|_| !flag.name.starts_with("--"));
        let is_value = |value: &&str| {
            value.starts_with(|sign: char| sign.is_ascii_digit()) || matches!(flag.name, "-I" | "-G")
        };
        if attached.filter(is_value).is_some_and(|value| fits(shape, value, around)) {
            return Some(1);
        }
    }
    // `-yq`, where the program has no long flags behind a single dash.
    let letters = word.strip_prefix('-').filter(|rest| (2..=4).contains(&rest.len()))?;
    let is_long =
        |flag: Named| !flag.name.starts_with("--") && !flag.name.contains('=') && flag.name.len() > 4;
    let is_bundle =
        letters.bytes().all(|letter| letter.is_ascii_alphabetic()) && !named(row.flags).any(is_long);
    let (first, last) = letters.split_at(letters.len() - letters.chars().last()?.len_utf8());
    if !is_bundle || !first.chars().all(|letter| is_bare(&format!("-{letter}"))) {
        return None;
    }
    // The last one may take a value: `-qb name`.
    let last = format!("-{last}");
    let takes = |flag: Named| {
        let value = args.get(at + 1);
        flag.name == last && flag.value.zip(value).is_some_and(|(shape, value)| fits(shape, value, around))
    };
    if is_bare(&last) { Some(1) } else { flags().any(takes).then_some(2) }
}
