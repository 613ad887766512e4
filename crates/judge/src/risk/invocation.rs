//! One command as its program reads it: which rows are for it, its flags, their values and its operands.

use super::row::{self, ROWS, Row, WHOLE};
use crate::nature::commands::{self, sub_words};
use crate::shell::Command;
use crate::words::Words;

/// A command that some row is for.
pub(super) struct Invocation<'c> {
    pub program: &'c str,
    rows: &'static [usize],
    valued: [Words; 2],
    /// The words before the sub-command.
    head: &'c [String],
    /// The words after it.
    tail: &'c [String],
    /// Whether the first word is letters without a dash, as `tar` has it.
    dashless: bool,
}

impl<'c> Invocation<'c> {
    /// Reads a command; nothing where no row is for it.
    pub(super) fn of(command: &'c Command) -> Option<Invocation<'c>> {
        let program = plain(&command.program)?;
        let subs = sub_words(program, command, 2);
        let (key, count, rows) = (0..=subs.len()).rev().find_map(|count| {
            let key = subs[..count].iter().fold(program.to_owned(), |key, sub| key + " " + sub);
            row::of_run(&key).map(|rows| (key, count, rows))
        })?;
        let args = command.args();
        let last_sub = count.checked_sub(1).map(|last| subs[last]);
        let at = last_sub.and_then(|sub| args.iter().position(|word| std::ptr::eq(word.as_str(), sub)));
        let (head, tail) = at.map_or((&args[..0], args), |at| (&args[..at], &args[at + 1..]));
        let own = row::valued(&key).or_else(|| row::valued(program)).unwrap_or_default();
        // Before the sub-command the flags of the program itself stand; after it, those of another program, as it were.
        let general = if count == 0 { commands::valued(program) } else { Words::default() };
        let dashless = matches!(program, "tar" | "gtar" | "bsdtar")
            && tail.first().is_some_and(|word| !word.starts_with('-'));
        Some(Invocation { program, rows, valued: [own, general], head, tail, dashless })
    }

    /// Whether a row may be for a command.
    pub(super) fn is_known(command: &Command) -> bool {
        plain(&command.program).is_some()
    }

    /// The first row that fits, with its place in the table. `said` tells whether a text stands in what the command is given.
    pub(super) fn row(&self, said: impl Fn(&str) -> bool) -> Option<(usize, &'static Row)> {
        self.rows.iter().map(|at| (*at, &ROWS[*at])).find(|(_, row)| {
            (row.any.is_empty() || row.any.iter().any(|flag| self.gives(flag)))
                && !row.without.iter().any(|flag| self.gives(flag) || self.gives_on(flag))
                && !(row.bare && self.operands().next().is_some())
                && (row.says.is_empty() || row.says.iter().any(|text| said(text)))
                && !row.unless.iter().any(|text| said(text))
        })
    }

    fn is_valued(&self, flag: &str) -> bool {
        self.valued.iter().any(|list| list.contains(flag))
    }

    /// The letters of a word with one dash, up to and with the first that takes a value, and whatever stands after that.
    fn letters<'w>(&self, at: usize, word: &'w str) -> Option<(&'w str, &'w str)> {
        let letters = match word.strip_prefix('-') {
            Some(letters) => letters,
            None if at == 0 && self.dashless => word,
            None => return None,
        };
        if letters.is_empty() || letters.starts_with('-') || WHOLE.contains(&self.program) {
            return None;
        }
        let ends = |(_, letter): &(usize, char)| self.is_valued(&format!("-{letter}"));
        let end = letters.char_indices().find(ends).map_or(letters.len(), |(at, c)| at + c.len_utf8());
        Some(letters.split_at(end))
    }

    /// Whether a flag is given before `--`.
    pub(super) fn gives(&self, flag: &str) -> bool {
        let (name, value) = flag.split_once(' ').map_or((flag, None), |(name, value)| (name, Some(value)));
        let own = self.tail.iter().take_while(|word| *word != "--");
        own.enumerate().any(|(at, word)| {
            let next = || self.tail.get(at + 1).map(String::as_str);
            let is_value = at > 0 && self.is_valued(&self.tail[at - 1]);
            !is_value && self.carries(at, word, name) && value.is_none_or(|value| next() == Some(value))
        })
    }

    /// Whether a long flag is handed on after `--`: `cargo fmt -- --check`.
    fn gives_on(&self, flag: &str) -> bool {
        flag.starts_with("--") && self.tail.iter().skip_while(|word| *word != "--").any(|word| word == flag)
    }

    fn carries(&self, at: usize, word: &str, flag: &str) -> bool {
        if word == flag {
            return true;
        }
        if flag.starts_with("--") {
            return word.strip_prefix(flag).is_some_and(|rest| rest.starts_with('='));
        }
        let mut letter = flag.chars().skip(1);
        match (letter.next(), letter.next()) {
            (Some(letter), None) => {
                self.letters(at, word).is_some_and(|(letters, _)| letters.contains(letter))
            }
            (Some(_), Some(_)) | (None, _) => false,
        }
    }

    /// Whether a flag takes the next word.
    fn takes_next(&self, at: usize, word: &str) -> bool {
        self.is_valued(word)
            || self.letters(at, word).is_some_and(|(letters, rest)| {
                let last = letters.chars().next_back().map(|letter| format!("-{letter}"));
                // `tar czf` names its flags first and their values after them.
                rest.is_empty() && last.is_some_and(|last| self.is_valued(&last))
                    || self.dashless && at == 0 && !rest.is_empty()
            })
    }

    /// The words that are neither flags nor their values. Where git is given a `--`, only what follows it.
    pub(super) fn operands(&self) -> impl Iterator<Item = &'c str> {
        let divider = self.tail.iter().position(|word| word == "--").unwrap_or(self.tail.len());
        let only_after = self.program == "git" && divider < self.tail.len();
        let (before, after) = self.tail.split_at(divider);
        let mut operands: Vec<&'c str> = Vec::new();
        let mut at = 0;
        while let Some(word) = before.get(at).filter(|_| !only_after) {
            let is_flag = word.starts_with('-') || at == 0 && self.dashless;
            if is_flag {
                at += usize::from(self.takes_next(at, word));
            } else {
                operands.push(word);
            }
            at += 1;
        }
        operands.extend(after.iter().skip(1).map(String::as_str));
        operands.into_iter().filter(|word| !word.is_empty())
    }

    /// The operands without the first, which is no file; it may stand in a flag as well.
    pub(super) fn operands_after_first(&self) -> impl Iterator<Item = &'c str> {
        let in_flag = ["-e", "-f", "--expression", "--file", "--reference"];
        let first = usize::from(!in_flag.iter().any(|flag| self.gives(flag)));
        self.operands().skip(first)
    }

    /// The values of some flags; `of=` is the start of a word.
    pub(super) fn values(&self, flags: &[&str]) -> Vec<&'c str> {
        values(self.tail, flags, |at, word| self.letters(at, word))
    }

    /// What a command makes beside the files it names: they are called so with an ending, or without it where they have it. Which
    /// files a pattern means, and so what is made beside them, is not known.
    pub(super) fn suffixed(&self, words: impl Iterator<Item = &'c str>, suffixes: &[&str]) -> Vec<String> {
        let endings: Vec<&str> = suffixes.iter().filter_map(|suffix| self.ending(suffix)).collect();
        let named = words.filter(|word| !word.contains(['*', '?', '[', '$']));
        let other = |word: &str, ending: &str| match word.strip_suffix(ending) {
            Some(without) => without.to_owned(),
            None => format!("{word}{ending}"),
        };
        named.flat_map(|word| endings.iter().map(move |ending| other(word, ending))).collect()
    }

    /// An ending as it stands in the table, or as it is glued to a flag that stands there: `-i.bak`, `--in-place=.bak`.
    fn ending<'e>(&'e self, suffix: &'e str) -> Option<&'e str> {
        let Some(flag) = suffix.strip_prefix('-') else { return Some(suffix) };
        let own = self.tail.iter().take_while(|word| *word != "--").enumerate();
        let mut glued = own.filter_map(|(at, word)| match flag.starts_with('-') {
            true => word.strip_prefix(suffix)?.strip_prefix('='),
            false => {
                let at = self.letters(at, word)?.0.find(flag)?;
                word.get(1 + at + flag.len()..)
            }
        });
        glued.find(|ending| !ending.is_empty() && !ending.contains(['*', '/']))
    }

    /// The folder that the program is told to work in, step by step.
    pub(super) fn folders(&self) -> Vec<&'c str> {
        let flags = row::folder_flags(self.program);
        if flags.is_empty() {
            return Vec::new();
        }
        let mut found = values(self.head, flags, |_, _| None);
        // `-C` of `git commit` is another one than that of `git`.
        if self.program != "git" {
            found.extend(self.values(flags));
        }
        found.into_iter().map(folder_of).collect()
    }

    /// The folders that flags of git name besides: its own one, and a work tree, which is named from there.
    pub(super) fn named_to_git(&self) -> Vec<String> {
        const SETTING: &str = "core.worktree=";
        let own = values(self.head, &["--git-dir"], |_, _| None).into_iter().map(str::to_owned);
        let set = values(self.head, &["-c"], |_, _| None).into_iter();
        let is_tree =
            |set: &&str| set.get(..SETTING.len()).is_some_and(|key| key.eq_ignore_ascii_case(SETTING));
        own.chain(set.filter(is_tree).map(|set| match &set[SETTING.len()..] {
            tree if tree.starts_with('/') => tree.to_owned(),
            tree => format!(".git/{tree}"),
        }))
        .collect()
    }

    /// Where `find` starts.
    pub(super) fn start_paths(&self) -> impl Iterator<Item = &'c str> {
        start_paths(self.program, self.tail)
    }
}

/// The name under which some row knows the program: `python3.12` is `python`.
fn plain(program: &str) -> Option<&str> {
    if row::knows(program) {
        return Some(program);
    }
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    (!name.is_empty() && name != program && row::knows(name)).then_some(name)
}

/// `--manifest-path crates/a/Cargo.toml` means the folder of the file.
fn folder_of(value: &str) -> &str {
    match value.strip_suffix("Cargo.toml") {
        Some("") => ".",
        Some(folder) => folder,
        None => value,
    }
}

fn values<'c>(
    words: &'c [String],
    flags: &[&str],
    letters: impl for<'w> Fn(usize, &'w str) -> Option<(&'w str, &'w str)>,
) -> Vec<&'c str> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().take_while(|(_, word)| *word != "--") {
        for flag in flags {
            let next = || words.get(at + 1).map(String::as_str);
            let value = match word.strip_prefix(flag) {
                Some("") if flag.ends_with('=') => None,
                Some("") => next(),
                Some(rest) if flag.ends_with('=') => Some(rest),
                Some(rest) if flag.starts_with("--") => rest.strip_prefix('='),
                Some(rest) => Some(rest),
                None => letters(at, word).and_then(|(letters, rest)| {
                    let is_it = flag.len() == 2 && letters.ends_with(&flag[1..]);
                    match (is_it, rest) {
                        (false, _) => None,
                        (true, "") => next(),
                        // `tar cfz a.tgz`: the letters come first, then the values.
                        (true, _) if !word.starts_with('-') => next(),
                        (true, rest) => Some(rest),
                    }
                }),
            };
            found.extend(value.filter(|value| *value != "-"));
        }
    }
    found
}

/// Where `find` or `fd` looks.
pub(super) fn start_paths<'c>(program: &str, args: &'c [String]) -> impl Iterator<Item = &'c str> {
    let mut words = args.iter().map(String::as_str);
    let mut paths: Vec<&'c str> = Vec::new();
    if matches!(program, "fd" | "fdfind") {
        let valued = row::valued("fd").unwrap_or_default();
        while let Some(word) = words.next().filter(|word| !runs_each(word)) {
            match word {
                flag if valued.contains(flag) => drop(words.next()),
                flag if flag.starts_with('-') => {}
                path => paths.push(path),
            }
        }
        // The first is the pattern.
        paths = paths.into_iter().skip(1).collect();
    } else {
        let leads = |word: &&str| matches!(*word, "-H" | "-L" | "-P") || word.starts_with("-O");
        paths.extend(words.skip_while(leads).take_while(|word| !word.starts_with(['-', '(', '!'])));
    }
    if paths.is_empty() {
        paths.push(".");
    }
    paths.into_iter()
}

/// The flags of `find` and `fd` that run a command for what is found.
pub(super) fn runs_each(flag: &str) -> bool {
    matches!(flag, "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "--exec" | "-X" | "--exec-batch")
}
