//! The knowledge, loaded: rules with their patterns, ready for one pass over an output.
//!
//! The built-in table is written by the build script and costs nothing to load; a user's file is read at run time into
//! the same shape. A regular expression is compiled when a line first has its anchor, not before.

pub(crate) mod anchors;
pub(crate) mod builtin;
mod example;
pub mod file;

use std::borrow::Cow;
use std::sync::OnceLock;

use regex_lite::Regex;

use crate::kind::Kind;
use crate::verdict::{Effect, FixBy};
use anchors::Anchors;
pub use example::Surprise;
use file::{FileRule, RuleError, as_regex};

/// A piece of text, built in or read from a user's file.
pub type Text = Cow<'static, str>;
/// A list, built in or read from a user's file.
pub type List<T> = Cow<'static, [T]>;

/// One row of knowledge.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name.
    pub id: Text,
    /// The cause it proves.
    pub kind: Kind,
    /// How sure and specific it is; the highest wins.
    pub rank: u8,
    /// What it looks for in the output.
    pub lines: Lines,
    /// What must hold for the call as a whole.
    pub scope: Scope,
    /// May the same call work later by itself? `None`: as its kind says.
    pub transient: Option<bool>,
    /// Who can fix it. `None`: as its kind says.
    pub fix_by: Option<FixBy>,
    /// What the call has done already. `None`: as the call's nature says.
    pub effect: Option<Effect>,
    /// Keys of remedies. Empty: its kind's.
    pub advice: List<Text>,
}

/// What a rule looks for in the output; the numbers name patterns of the table.
#[derive(Debug, Clone)]
pub struct Lines {
    /// One of these on one line shows the cause. Empty: the rule needs no text.
    pub any: List<u16>,
    /// None of these on that line.
    pub unless: List<u16>,
    /// One of these somewhere.
    pub with: List<u16>,
    /// None of these anywhere.
    pub without: List<u16>,
    /// Better evidence than the line that matched, best first.
    pub show: List<u16>,
    /// Quote the last of several matching lines.
    pub last: bool,
    /// Only this stream counts, where they are known apart.
    pub stream: Option<Stream>,
}

/// What must hold for the call as a whole; an empty list asks nothing.
#[derive(Debug, Clone)]
pub struct Scope {
    /// One of these in the command line.
    pub command: List<u16>,
    /// The command line runs one of these.
    pub program: List<Text>,
    /// The exit code is that of one of these.
    pub last: List<Text>,
    /// The tool; a trailing `*` stands for any rest.
    pub tool: List<Text>,
    /// The exit code.
    pub exit: List<i32>,
    /// The HTTP status.
    pub status: List<u16>,
    /// How the call ended.
    pub outcome: List<Text>,
    /// Nothing was printed.
    pub silent: bool,
    /// It counts although the call says that it went well.
    pub zero: bool,
}

/// A stream of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Both, not known apart.
    Merged,
}

/// A pattern as it is looked for in one line.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// The text, or the source of a regular expression.
    pub source: Text,
    /// Whether `source` is a regular expression.
    pub is_regex: bool,
    /// Whether the line is seen as printed instead of in lower case.
    pub cased: bool,
}

/// A set of rules that is searched in one pass.
#[derive(Debug)]
pub struct Table {
    rules: List<Rule>,
    patterns: List<Pattern>,
    /// For each pattern: the rules that have it in `any`.
    claims: List<List<u16>>,
    /// Patterns with no fixed text; they are tried on every line.
    loose: List<u16>,
    anchors: Anchors,
    compiled: Vec<OnceLock<Option<Regex>>>,
}

impl Table {
    /// The rules that come with the program.
    pub fn built_in() -> Table {
        let compiled = std::iter::repeat_with(OnceLock::new).take(builtin::PATTERNS.len()).collect();
        Table {
            rules: Cow::Borrowed(builtin::RULES),
            patterns: Cow::Borrowed(builtin::PATTERNS),
            claims: Cow::Borrowed(builtin::CLAIMS),
            loose: Cow::Borrowed(&[]),
            anchors: builtin::anchors(),
            compiled,
        }
    }

    /// Reads a user's rule file. What can be used is used; the rest is named.
    pub fn from_toml(text: &str) -> (Table, Vec<RuleError>) {
        let (rows, errors) = file::read(text);
        (Table::from_rows(&rows), errors)
    }

    fn from_rows(rows: &[FileRule]) -> Table {
        let mut interned = Interned::default();
        let rules: Vec<Rule> = rows.iter().map(|row| interned.rule(row)).collect();
        let Interned { patterns } = interned;
        let mut claims = vec![Vec::new(); patterns.len()];
        for (index, rule) in rules.iter().enumerate() {
            for pattern in rule.lines.any.iter() {
                claims[usize::from(*pattern)].push(index as u16);
            }
        }
        let (mut loose, mut pairs) = (Vec::new(), Vec::new());
        for (index, (pattern, _)) in patterns.iter().enumerate() {
            match anchors::of_pattern(pattern) {
                Some(anchors) => pairs.extend(anchors.into_iter().map(|anchor| (anchor, index as u16))),
                None => loose.push(index as u16),
            }
        }
        let compiled = std::iter::repeat_with(OnceLock::new).take(patterns.len()).collect();
        Table {
            rules: rules.into(),
            patterns: patterns.iter().map(|(source, cased)| Pattern::new(source, *cased)).collect(),
            claims: claims.into_iter().map(Cow::Owned).collect(),
            loose: loose.into(),
            anchors: Anchors::build(&pairs),
            compiled,
        }
    }

    /// The rules, in the order in which they were read.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The pattern's source as the rule file writes it.
    pub fn pattern(&self, index: u16) -> &Pattern {
        &self.patterns[usize::from(index)]
    }

    pub(crate) fn pattern_count(&self) -> usize {
        self.patterns.len()
    }

    pub(crate) fn anchors(&self) -> &Anchors {
        &self.anchors
    }

    pub(crate) fn loose(&self) -> &[u16] {
        &self.loose
    }

    /// The rules that a line with this pattern may prove.
    pub(crate) fn claims(&self, pattern: u16) -> &[u16] {
        &self.claims[usize::from(pattern)]
    }

    /// Tells whether the line has the pattern. `lower` is the line in ASCII lower case.
    pub(crate) fn matches(&self, pattern: u16, line: &str, lower: &str) -> bool {
        let row = self.pattern(pattern);
        let text = if row.cased { line } else { lower };
        match self.regex(pattern) {
            Some(regex) => regex.is_match(text),
            None => !row.is_regex && text.contains(&*row.source),
        }
    }

    /// Returns what the pattern's group `it` names in the line: the file, program or module the failure is about.
    pub(crate) fn subject<'t>(&self, pattern: u16, line: &'t str, lower: &str) -> Option<&'t str> {
        let text = if self.pattern(pattern).cased { line } else { lower };
        let found = self.regex(pattern)?.captures(text)?.name("it")?;
        line.get(found.range())
    }

    fn regex(&self, pattern: u16) -> Option<&Regex> {
        let row = self.pattern(pattern);
        let compile = || row.is_regex.then(|| Regex::new(&row.source).ok()).flatten();
        self.compiled[usize::from(pattern)].get_or_init(compile).as_ref()
    }
}

impl Pattern {
    fn new(written: &str, cased: bool) -> Pattern {
        let regex = as_regex(written);
        let source = regex.unwrap_or(written).to_owned();
        Pattern { source: source.into(), is_regex: regex.is_some(), cased }
    }
}

/// Gives each different pattern one number.
#[derive(Default)]
struct Interned {
    patterns: Vec<(String, bool)>,
}

impl Interned {
    fn list(&mut self, patterns: &[String], cased: bool) -> List<u16> {
        patterns.iter().map(|pattern| self.number(pattern, cased)).collect()
    }

    fn number(&mut self, pattern: &str, cased: bool) -> u16 {
        let known = self.patterns.iter().position(|(text, is_cased)| text == pattern && *is_cased == cased);
        let number = known.unwrap_or_else(|| {
            self.patterns.push((pattern.to_owned(), cased));
            self.patterns.len() - 1
        });
        u16::try_from(number).unwrap_or(u16::MAX)
    }

    fn rule(&mut self, row: &FileRule) -> Rule {
        let texts =
            |words: &[String]| words.iter().map(|word| Cow::Owned(word.clone())).collect::<List<Text>>();
        Rule {
            id: row.id.clone().into(),
            kind: row.kind.parse().unwrap_or(Kind::Unknown),
            rank: row.rank.unwrap_or(file::DEFAULT_RANK),
            lines: Lines {
                any: self.list(&row.any, row.cased),
                unless: self.list(&row.unless, row.cased),
                with: self.list(&row.with, row.cased),
                without: self.list(&row.without, row.cased),
                show: self.list(&row.show, row.cased),
                last: row.pick.as_deref() == Some("last"),
                stream: match row.stream.as_deref() {
                    Some("stdout") => Some(Stream::Stdout),
                    Some("stderr") => Some(Stream::Stderr),
                    Some(_) | None => None,
                },
            },
            scope: Scope {
                command: self.list(&row.command, false),
                program: texts(&row.program),
                last: texts(&row.last),
                tool: texts(&row.tool),
                exit: row.exit.clone().into(),
                status: row.status.clone().into(),
                outcome: texts(&row.outcome),
                silent: row.silent,
                zero: row.zero,
            },
            transient: row.transient,
            fix_by: row.fix_by.as_deref().and_then(|word| word.parse().ok()),
            effect: row.effect.as_deref().and_then(|word| word.parse().ok()),
            advice: texts(&row.advice),
        }
    }
}
