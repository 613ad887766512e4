//! The knowledge, loaded: rules with their patterns, ready for one pass over an output.
//!
//! The built-in table is packed by the build script and costs nothing to load; a user's file is packed at run time into
//! the same shape. A regular expression is compiled when a line first has its anchor, not before.

pub(crate) mod anchors;
pub(crate) mod builtin;
mod example;
pub mod file;
mod packed;
mod runners;
mod shape;

use std::sync::OnceLock;

use regex_lite::Regex;

use crate::kind::Kind;
use crate::verdict::{Effect, FixBy};
use anchors::{Anchors, Ordinary};
pub use example::Surprise;
use file::RuleError;
use packed::{ListOf, Marks, Numbers, Packed, TOOL_MARK, mark};
use runners::runs_others;
pub use shape::Shape;

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

/// A set of rules that is searched in one pass.
#[derive(Debug)]
pub struct Table {
    packed: Packed,
    /// One place for each regular expression, made when the first of them is compiled: most outputs need none.
    compiled: OnceLock<Vec<OnceLock<Option<Box<Compiled>>>>>,
}

/// A regular expression, and fixed text that every line it matches must contain.
#[derive(Debug)]
struct Compiled {
    regex: Regex,
    needs: Vec<String>,
}

/// One row of knowledge, as it stands in its table.
#[derive(Debug, Clone, Copy)]
pub struct Rule<'t> {
    table: &'t Table,
    number: u16,
    marks: Marks,
}

/// A pattern as it is looked for in one line.
#[derive(Debug, Clone, Copy)]
pub struct Pattern<'t> {
    /// The text, or the source of a regular expression.
    pub source: &'t str,
    /// Whether `source` is a regular expression.
    pub is_regex: bool,
    /// Whether the line is seen as printed instead of in lower case.
    pub cased: bool,
}

impl Table {
    /// The rules that come with the program.
    pub fn built_in() -> Table {
        Table::new(builtin::RULES)
    }

    /// Reads a user's rule file. What can be used is used; the rest is named.
    pub fn from_toml(text: &str) -> (Table, Vec<RuleError>) {
        let (rows, errors) = file::read(text);
        (Table::new(Packed::pack(&rows, &Ordinary::default())), errors)
    }

    fn new(packed: Packed) -> Table {
        Table { packed, compiled: OnceLock::new() }
    }

    /// The rules, in the order in which they were read.
    pub fn rules(&self) -> impl Iterator<Item = Rule<'_>> {
        (0..self.packed.rule_count() as u16).map(|number| self.rule(number))
    }

    pub(crate) fn rule(&self, number: u16) -> Rule<'_> {
        Rule { table: self, number, marks: self.packed.marks(number) }
    }

    pub(crate) fn pattern_count(&self) -> usize {
        self.packed.pattern_count()
    }

    /// What marks a line as worth a look.
    pub(crate) fn triggers(&self) -> Anchors<'_> {
        self.packed.triggers()
    }

    /// What marks a pattern as worth a try on a line.
    pub(crate) fn anchors(&self) -> Anchors<'_> {
        self.packed.anchors()
    }

    /// The patterns without fixed text; only a user's own file has such.
    pub(crate) fn loose(&self) -> Numbers<'_> {
        self.packed.loose()
    }

    /// The rules that need no text.
    pub(crate) fn textless(&self) -> impl Iterator<Item = Rule<'_>> {
        self.packed.textless().iter().map(|number| self.rule(number))
    }

    /// The rules that a line with this pattern may prove.
    pub(crate) fn claims(&self, pattern: u16) -> impl Iterator<Item = Rule<'_>> {
        self.packed.claims(pattern).iter().map(|number| self.rule(number))
    }

    fn pattern(&self, number: u16) -> Pattern<'_> {
        let (source, is_regex, cased) = self.packed.pattern(number);
        Pattern { source, is_regex, cased }
    }

    /// Tells whether the line has the pattern. `lower` is the line in ASCII lower case.
    pub(crate) fn matches(&self, pattern: u16, line: &str, lower: &str) -> bool {
        let row = self.pattern(pattern);
        let text = if row.cased { line } else { lower };
        match self.compiled(pattern, row) {
            // Looking for fixed text is many times faster than stepping through an expression in vain.
            Some(Compiled { regex, needs }) => {
                needs.iter().all(|run| lower.contains(run)) && regex.is_match(text)
            }
            None => !row.is_regex && text.contains(row.source),
        }
    }

    /// Returns where in the line the pattern begins.
    pub(crate) fn place(&self, pattern: u16, line: &str, lower: &str) -> Option<usize> {
        let row = self.pattern(pattern);
        let text = if row.cased { line } else { lower };
        match self.compiled(pattern, row) {
            Some(Compiled { regex, .. }) => regex.find(text).map(|found| found.start()),
            None => text.find(row.source),
        }
    }

    /// Returns what the pattern's group `it` names in the line: the file, program or module the failure is about.
    pub(crate) fn subject<'l>(&self, pattern: u16, line: &'l str, lower: &str) -> Option<&'l str> {
        let row = self.pattern(pattern);
        let text = if row.cased { line } else { lower };
        let found = self.compiled(pattern, row)?.regex.captures(text)?.name("it")?;
        line.get(found.range())
    }

    fn compiled(&self, pattern: u16, row: Pattern<'_>) -> Option<&Compiled> {
        let compile = || {
            let regex = Regex::new(row.source).ok()?;
            Some(Box::new(Compiled { regex, needs: anchors::fixed_text(row.source) }))
        };
        let place = Some(self.packed.regex_place(pattern)).filter(|_| row.is_regex)?;
        let places =
            || std::iter::repeat_with(OnceLock::new).take(self.packed.regex_count()).collect::<Vec<_>>();
        self.compiled.get_or_init(places).get(place)?.get_or_init(compile).as_deref()
    }
}

impl<'t> Rule<'t> {
    /// Its name.
    pub fn id(self) -> &'t str {
        self.table.packed.id(self.number)
    }

    /// The cause it proves.
    pub fn kind(self) -> Kind {
        Kind::ALL.get(usize::from(self.marks.kind)).copied().unwrap_or(Kind::Unknown)
    }

    /// How sure and specific it is; the highest wins.
    pub fn rank(self) -> u8 {
        self.marks.rank
    }

    /// May the same call work later by itself? `None`: as its kind says.
    pub fn transient(self) -> Option<bool> {
        self.has(mark::TRANSIENT_SAID).then(|| self.has(mark::TRANSIENT))
    }

    /// Who can fix it. `None`: as its kind says.
    pub fn fix_by(self) -> Option<FixBy> {
        FixBy::ALL.get(usize::from(self.marks.fix_by).checked_sub(1)?).copied()
    }

    /// What the call has done already. `None`: as the call's nature says.
    pub fn effect(self) -> Option<Effect> {
        Effect::ALL.get(usize::from(self.marks.effect).checked_sub(1)?).copied()
    }

    /// The shape of what it reads as its subject.
    pub fn shape(self) -> Shape {
        Shape::ALL.get(usize::from(self.marks.shape)).copied().unwrap_or(Shape::Text)
    }

    /// Nothing may have been printed.
    pub fn silent(self) -> bool {
        self.has(mark::SILENT)
    }

    /// It counts although the call says that it went well.
    pub fn zero(self) -> bool {
        self.has(mark::ZERO)
    }

    /// The cause lies in a service or on another machine.
    pub fn elsewhere(self) -> bool {
        self.has(mark::ELSEWHERE)
    }

    /// Nothing follows the line where the program ended so.
    pub fn ends(self) -> bool {
        self.has(mark::ENDS)
    }

    /// Of several matching lines the last is quoted.
    pub fn quotes_last(self) -> bool {
        self.has(mark::LAST)
    }

    /// Only this stream counts, where they are known apart.
    pub fn stream(self) -> Option<Stream> {
        match (self.has(mark::STDOUT), self.has(mark::STDERR)) {
            (true, _) => Some(Stream::Stdout),
            (false, true) => Some(Stream::Stderr),
            (false, false) => None,
        }
    }

    /// One of these on one line shows the cause. Empty: the rule needs no text.
    pub fn any(self) -> Patterns<'t> {
        self.patterns(ListOf::Any)
    }

    /// None of these on that line.
    pub fn unless(self) -> Patterns<'t> {
        self.patterns(ListOf::Unless)
    }

    /// One of these somewhere.
    pub fn with(self) -> Patterns<'t> {
        self.patterns(ListOf::With)
    }

    /// None of these anywhere.
    pub fn without(self) -> Patterns<'t> {
        self.patterns(ListOf::Without)
    }

    /// Better evidence than the line that matched, best first.
    pub fn show(self) -> Patterns<'t> {
        self.patterns(ListOf::Show)
    }

    /// One of these in the command line.
    pub fn command(self) -> Patterns<'t> {
        self.patterns(ListOf::Command)
    }

    /// The command line runs one of these.
    pub fn programs(self) -> Words<'t> {
        self.words(ListOf::Program, Part::Whole)
    }

    /// The exit code is that of one of these.
    pub fn last(self) -> Words<'t> {
        self.words(ListOf::Last, Part::Whole)
    }

    /// The programs whose own failure form this is; a trailing `*` stands for any rest. Empty: it is nobody's in particular.
    pub fn speaks_for(self) -> Words<'t> {
        self.words(ListOf::SpeaksFor, Part::Whole)
    }

    /// Tells whether a program prints this form of failure as its own, or runs programs that do (`make`, `npm`, `sh`).
    pub fn is_form_of(self, program: &str) -> bool {
        let mut programs = self.speaks_for().iter();
        match programs.next() {
            None => false,
            Some(_) if runs_others(program) => true,
            Some(first) => std::iter::once(first).chain(programs).any(|name| same_name(name, program)),
        }
    }

    /// Tells whether the rule names this very program as one that prints this form of failure.
    pub fn is_named_by(self, program: &str) -> bool {
        self.speaks_for().iter().any(|name| same_name(name, program))
    }

    /// The tool is one of these; a trailing `*` stands for any rest.
    pub fn tools(self) -> Words<'t> {
        self.words(ListOf::ToolAndOutcome, Part::BeforeMark)
    }

    /// The call ended in one of these ways.
    pub fn outcomes(self) -> Words<'t> {
        self.words(ListOf::ToolAndOutcome, Part::AfterMark)
    }

    /// Keys of remedies. Empty: its kind's.
    pub fn advice(self) -> Words<'t> {
        self.words(ListOf::Advice, Part::Whole)
    }

    /// The exit code is one of these.
    pub fn exits(self) -> impl Iterator<Item = i32> + 't {
        let mut halves = self.numbers(ListOf::Exit).iter();
        std::iter::from_fn(move || {
            let (low, high) = (halves.next()?, halves.next()?);
            Some((u32::from(low) | u32::from(high) << 16) as i32)
        })
    }

    /// The HTTP status is one of these.
    pub fn statuses(self) -> impl Iterator<Item = u16> + 't {
        self.numbers(ListOf::Status).iter()
    }

    pub(crate) fn number(self) -> u16 {
        self.number
    }

    fn has(self, bit: u32) -> bool {
        self.marks.bits & bit != 0
    }

    fn numbers(self, list: ListOf) -> Numbers<'t> {
        self.table.packed.list(self.number, list)
    }

    fn patterns(self, list: ListOf) -> Patterns<'t> {
        Patterns { table: self.table, numbers: self.numbers(list) }
    }

    fn words(self, list: ListOf, part: Part) -> Words<'t> {
        Words { table: self.table, numbers: self.numbers(list), part }
    }
}

/// A trailing `*` stands for any rest.
pub(crate) fn same_name(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// A list of patterns of a rule.
#[derive(Debug, Clone, Copy)]
pub struct Patterns<'t> {
    table: &'t Table,
    numbers: Numbers<'t>,
}

impl<'t> Patterns<'t> {
    /// Whether the list asks for nothing.
    pub fn is_empty(self) -> bool {
        self.numbers.is_empty()
    }

    /// The patterns, in order.
    pub fn iter(self) -> impl Iterator<Item = Pattern<'t>> {
        self.numbers.iter().map(move |number| self.table.pattern(number))
    }

    pub(crate) fn numbers(self) -> impl Iterator<Item = u16> + 't {
        self.numbers.iter()
    }

    /// Tells whether the line has one of the patterns.
    pub(crate) fn any_in(self, line: &str, lower: &str) -> bool {
        self.numbers.iter().any(|pattern| self.table.matches(pattern, line, lower))
    }
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Whole,
    BeforeMark,
    AfterMark,
}

/// A list of words of a rule.
#[derive(Debug, Clone, Copy)]
pub struct Words<'t> {
    table: &'t Table,
    numbers: Numbers<'t>,
    part: Part,
}

impl<'t> Words<'t> {
    /// Whether the list asks for nothing.
    pub fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }

    /// The words, in order.
    pub fn iter(self) -> impl Iterator<Item = &'t str> {
        let mut behind = false;
        let wanted = move |number: &u16| {
            behind |= *number == TOOL_MARK;
            *number != TOOL_MARK
                && match self.part {
                    Part::Whole => true,
                    Part::BeforeMark => !behind,
                    Part::AfterMark => behind,
                }
        };
        self.numbers.iter().filter(wanted).map(move |number| self.table.packed.word(number))
    }
}
