//! A set of rules as one run of bytes.
//!
//! The built-in rules are packed by the build script and stand in the binary as they are: nothing is parsed, allocated or
//! relocated when the program starts. A user's file is packed at run time by the same code, so there is one shape to read.
//!
//! Layout: a header of `SECTIONS` pairs (start, length), then the sections. All numbers are little-endian `u32`, lists are
//! runs of `u16`, and every text is written once.

use std::borrow::Cow;
use std::collections::HashMap;

use super::anchors::{self, Anchors, Ordinary, WIDTH};
use super::file::{self, FileRule};
use super::shape::Shape;
use crate::kind::Kind;

const SECTIONS: usize = 13;
const HEADER: usize = SECTIONS * 8;
/// Numbers in a rule's record: its name, its marks, and start and length of each of its lists.
const RULE_NUMBERS: usize = 2 + 2 * LISTS;
const LISTS: usize = 13;
/// Numbers in a pattern's record: its text and marks, where the rules that claim it are listed, and its place among the
/// regular expressions.
const PATTERN_NUMBERS: usize = 4;

/// Who can fix it, in the order of their numbers here.
pub const FIX_BY: [&str; 5] = ["wait", "model", "environment", "person", "nobody"];
/// What was done, in the order of their numbers here.
pub const EFFECT: [&str; 3] = ["nothing", "maybe", "applied"];

/// The sections, in the order in which they stand.
#[derive(Clone, Copy)]
enum Section {
    Rules,
    Patterns,
    /// Rules that need no text.
    Textless,
    /// Patterns with no fixed text.
    Loose,
    Lists,
    /// Start and length of every text.
    Words,
    Text,
    /// The search tables of all anchors, three sections.
    Anchors,
    /// The search tables of the triggers, three sections.
    Triggers = Section::Anchors as isize + 3,
}

/// The lists of a rule, in the order of its record.
#[derive(Clone, Copy)]
pub enum ListOf {
    /// Patterns: one of these on one line.
    Any,
    /// Patterns: none of these on that line.
    Unless,
    /// Patterns: one of these somewhere.
    With,
    /// Patterns: none of these anywhere.
    Without,
    /// Patterns of better evidence.
    Show,
    /// Patterns in the command line.
    Command,
    /// HTTP statuses.
    Status,
    /// Exit codes, two numbers each.
    Exit,
    /// Programs that run.
    Program,
    /// Programs whose exit code it is.
    Last,
    /// Tools, then outcomes, kept apart by `TOOL_MARK`.
    ToolAndOutcome,
    /// Remedies.
    Advice,
    /// Programs whose own failure form this is.
    SpeaksFor,
}

/// Separates tools from outcomes in their common list.
pub const TOOL_MARK: u16 = u16::MAX;

/// Yes-or-no marks of a rule, as bits.
pub mod mark {
    /// Quote the last of several matching lines.
    pub const LAST: u32 = 1;
    /// Nothing was printed.
    pub const SILENT: u32 = 2;
    /// It counts although the call says that it went well.
    pub const ZERO: u32 = 4;
    /// It says whether it is transient …
    pub const TRANSIENT_SAID: u32 = 8;
    /// … and what.
    pub const TRANSIENT: u32 = 16;
    /// Only stdout counts.
    pub const STDOUT: u32 = 32;
    /// Only stderr counts.
    pub const STDERR: u32 = 64;
    /// Nothing follows the line where the program ended so.
    pub const ENDS: u32 = 128;
    /// The cause lies in a service or on another machine. Packed as the highest bit of the kind.
    pub const ELSEWHERE: u32 = 256;
}

/// Packed rules.
#[derive(Debug, Clone)]
pub struct Packed {
    bytes: Cow<'static, [u8]>,
}

/// A record's marks, unpacked.
#[derive(Debug, Clone, Copy)]
pub struct Marks {
    /// Index of the kind.
    pub kind: u8,
    /// The rank.
    pub rank: u8,
    /// Index of who can fix it, plus one; 0 where the rule says nothing.
    pub fix_by: u8,
    /// Index of what was done, plus one; 0 where the rule says nothing.
    pub effect: u8,
    /// Index of the shape of what it reads.
    pub shape: u8,
    /// Bits of [`mark`].
    pub bits: u32,
}

impl Packed {
    /// Takes bytes that [`Packed::pack`] wrote.
    pub const fn from_static(bytes: &'static [u8]) -> Packed {
        Packed { bytes: Cow::Borrowed(bytes) }
    }

    /// Packs rows, in their order. Their patterns are anchored on what is rare in `ordinary` output.
    pub fn pack(rows: &[FileRule], ordinary: &Ordinary) -> Packed {
        Packer::default().pack(rows, ordinary)
    }

    /// How many rules there are.
    pub fn rule_count(&self) -> usize {
        self.section(Section::Rules).len() / (4 * RULE_NUMBERS)
    }

    /// How many patterns there are.
    pub fn pattern_count(&self) -> usize {
        self.section(Section::Patterns).len() / (4 * PATTERN_NUMBERS)
    }

    /// A rule's name.
    pub fn id(&self, rule: u16) -> &str {
        self.word(number(self.record(rule), 0) as u16)
    }

    /// A rule's marks.
    pub fn marks(&self, rule: u16) -> Marks {
        let packed = number(self.record(rule), 1);
        let [kind, rank, both, bits] = packed.to_le_bytes();
        let elsewhere = u32::from(kind >> 7) * mark::ELSEWHERE;
        Marks {
            kind: kind & 127,
            rank,
            fix_by: both & 7,
            effect: both >> 3 & 3,
            shape: both >> 5,
            bits: u32::from(bits) | elsewhere,
        }
    }

    /// One of a rule's lists.
    pub fn list(&self, rule: u16, list: ListOf) -> Numbers<'_> {
        let record = self.record(rule);
        let at = 2 + 2 * list as usize;
        self.numbers(number(record, at), number(record, at + 1))
    }

    /// How many of the patterns are regular expressions.
    pub fn regex_count(&self) -> usize {
        let last = self.pattern_count().checked_sub(1);
        last.map_or(0, |last| self.regex_place(last as u16) + usize::from(self.pattern(last as u16).1))
    }

    /// How many regular expressions stand before this pattern.
    pub fn regex_place(&self, pattern: u16) -> usize {
        number(self.pattern_record(pattern), 3) as usize
    }

    /// A pattern's text, whether it is a regular expression, and whether it sees the line as printed.
    pub fn pattern(&self, pattern: u16) -> (&str, bool, bool) {
        let first = number(self.pattern_record(pattern), 0);
        (self.word(first as u16), first & (1 << 16) != 0, first & (1 << 17) != 0)
    }

    /// The rules that a line with this pattern may prove.
    pub fn claims(&self, pattern: u16) -> Numbers<'_> {
        let record = self.pattern_record(pattern);
        self.numbers(number(record, 1), number(record, 2))
    }

    /// The rules that need no text.
    pub fn textless(&self) -> Numbers<'_> {
        Numbers(self.section(Section::Textless))
    }

    /// The patterns that must be tried on every line.
    pub fn loose(&self) -> Numbers<'_> {
        Numbers(self.section(Section::Loose))
    }

    /// The search tables of all anchors.
    pub fn anchors(&self) -> Anchors<'_> {
        self.search_tables(Section::Anchors)
    }

    /// The search tables of the triggers: a line without one has no anchor that matters.
    pub fn triggers(&self) -> Anchors<'_> {
        self.search_tables(Section::Triggers)
    }

    fn search_tables(&self, first: Section) -> Anchors<'_> {
        let [bits, heads, entries] = [0, 1, 2].map(|offset| self.section_at(first as usize + offset));
        Anchors { bits, heads, entries }
    }

    /// A text by its number.
    pub fn word(&self, word: u16) -> &str {
        let words = self.section(Section::Words);
        let (start, length) =
            (number(words, 2 * usize::from(word)), number(words, 2 * usize::from(word) + 1));
        let text = &self.section(Section::Text)[start as usize..(start + length) as usize];
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// The bytes as they are written into the binary.
    #[allow(dead_code, reason = "the build script asks for them")]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn section(&self, section: Section) -> &[u8] {
        self.section_at(section as usize)
    }

    fn section_at(&self, place: usize) -> &[u8] {
        let (start, length) = (number(&self.bytes, 2 * place), number(&self.bytes, 2 * place + 1));
        &self.bytes[start as usize..(start + length) as usize]
    }

    fn record(&self, rule: u16) -> &[u8] {
        &self.section(Section::Rules)[4 * RULE_NUMBERS * usize::from(rule)..]
    }

    fn pattern_record(&self, pattern: u16) -> &[u8] {
        &self.section(Section::Patterns)[4 * PATTERN_NUMBERS * usize::from(pattern)..]
    }

    fn numbers(&self, start: u32, length: u32) -> Numbers<'_> {
        let lists = self.section(Section::Lists);
        Numbers(&lists[2 * start as usize..2 * (start + length) as usize])
    }
}

fn number(bytes: &[u8], index: usize) -> u32 {
    let at = 4 * index;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// A list of small numbers inside packed rules.
#[derive(Debug, Clone, Copy)]
pub struct Numbers<'p>(&'p [u8]);

impl<'p> Numbers<'p> {
    /// Whether the list asks for nothing.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The numbers, in order.
    pub fn iter(self) -> impl Iterator<Item = u16> + 'p {
        self.0.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
    }
}

/// By what patterns are found.
struct Hooks {
    /// Patterns that must be tried on every line.
    loose: Vec<u16>,
    anchors: Vec<([u8; WIDTH], u16)>,
    triggers: Vec<([u8; WIDTH], u16)>,
}

/// Gathers texts, patterns and lists, each written once.
#[derive(Default)]
struct Packer {
    words: HashMap<String, u16>,
    spans: Vec<u32>,
    text: Vec<u8>,
    patterns: Vec<(u16, bool, bool)>,
    pattern_numbers: HashMap<(String, bool), u16>,
    lists: Vec<u16>,
    list_starts: HashMap<Vec<u16>, u32>,
}

impl Packer {
    fn pack(mut self, rows: &[FileRule], ordinary: &Ordinary) -> Packed {
        let mut records: Vec<u32> = Vec::new();
        let mut claims: HashMap<u16, Vec<u16>> = HashMap::new();
        let mut textless = Vec::new();
        // A rule is named by a u16; nobody writes more than fit, and what does not fit is not used.
        for (index, row) in rows.iter().take(usize::from(u16::MAX)).enumerate() {
            let rule = index as u16;
            let lists = self.lists_of(row);
            lists[ListOf::Any as usize]
                .iter()
                .for_each(|pattern| claims.entry(*pattern).or_default().push(rule));
            if row.any.is_empty() {
                textless.push(rule);
            }
            records.push(u32::from(self.word(&row.id)));
            records.push(marks_of(row));
            for list in lists {
                records.push(self.list(&list));
                records.push(list.len() as u32);
            }
        }
        let Hooks { loose, anchors, triggers } = self.hooks(rows, ordinary);
        let [anchors, triggers] = [anchors, triggers].map(|pairs| anchors::build(&pairs));
        let (mut pattern_records, mut regexes): (Vec<u32>, u32) = (Vec::new(), 0);
        for (index, (word, is_regex, cased)) in self.patterns.clone().into_iter().enumerate() {
            let claims = claims.remove(&(index as u16)).unwrap_or_default();
            pattern_records.push(u32::from(word) | u32::from(is_regex) << 16 | u32::from(cased) << 17);
            pattern_records.push(self.list(&claims));
            pattern_records.push(claims.len() as u32);
            pattern_records.push(regexes);
            regexes += u32::from(is_regex);
        }
        let numbers =
            |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        let shorts =
            |shorts: &[u16]| shorts.iter().flat_map(|short| short.to_le_bytes()).collect::<Vec<u8>>();
        let sections: [Vec<u8>; SECTIONS] = [
            numbers(&records),
            numbers(&pattern_records),
            shorts(&textless),
            shorts(&loose),
            shorts(&self.lists),
            numbers(&self.spans),
            self.text,
            anchors.0,
            anchors.1,
            anchors.2,
            triggers.0,
            triggers.1,
            triggers.2,
        ];
        let mut header = Vec::with_capacity(HEADER);
        let mut start = HEADER as u32;
        for section in &sections {
            header.extend(start.to_le_bytes());
            header.extend((section.len() as u32).to_le_bytes());
            start += section.len() as u32;
        }
        Packed { bytes: Cow::Owned([header, sections.concat()].concat()) }
    }

    /// All lists of a row, in the order of [`ListOf`].
    fn lists_of(&mut self, row: &FileRule) -> [Vec<u16>; LISTS] {
        let mut patterns = |list: &[String]| self.pattern_list(list, row.cased);
        let [any, unless, with, without, show] =
            [&row.any, &row.unless, &row.with, &row.without, &row.show].map(|list| patterns(list));
        let command = self.pattern_list(&row.command, false);
        let exit =
            row.exit.iter().flat_map(|code| [*code as u32 as u16, (*code as u32 >> 16) as u16]).collect();
        let mut tools = self.word_list(&row.tool);
        tools.push(TOOL_MARK);
        tools.extend(self.word_list(&row.outcome));
        let program = self.word_list(&row.program);
        let last = self.word_list(&row.last);
        let advice = self.word_list(&row.advice);
        let speaks_for = self.word_list(row.speaks_for.as_deref().unwrap_or_default());
        let status = row.status.clone();
        [any, unless, with, without, show, command, status, exit, program, last, tools, advice, speaks_for]
    }

    /// Finds out by what each pattern that is searched in whole outputs can be found. `unless` and `command` see one line.
    fn hooks(&self, rows: &[FileRule], ordinary: &Ordinary) -> Hooks {
        let searched = rows.iter().flat_map(|row| {
            let lists = [&row.any, &row.with, &row.without, &row.show];
            lists.into_iter().flatten().map(|pattern| (pattern.clone(), row.cased))
        });
        let mut written: Vec<_> = searched
            .filter_map(|key| self.pattern_numbers.get(&key).map(|number| (*number, key.0)))
            .collect();
        written.sort_unstable();
        written.dedup();
        let (mut loose, mut anchors, mut all_branches) = (Vec::new(), Vec::new(), Vec::new());
        for (number, text) in written {
            match anchors::of_pattern(&text) {
                Some(branches) => {
                    let rarest = branches.iter().filter_map(|windows| anchors::rarest(windows, ordinary));
                    anchors.extend(rarest.map(|anchor| (anchor, number)));
                    all_branches.extend(branches);
                }
                None => loose.push(number),
            }
        }
        let triggers =
            anchors::cover(&all_branches, ordinary).into_iter().map(|window| (window, 0)).collect();
        Hooks { loose, anchors, triggers }
    }

    fn pattern_list(&mut self, patterns: &[String], cased: bool) -> Vec<u16> {
        patterns.iter().map(|pattern| self.pattern(pattern, cased)).collect()
    }

    fn pattern(&mut self, pattern: &str, cased: bool) -> u16 {
        if let Some(known) = self.pattern_numbers.get(&(pattern.to_owned(), cased)) {
            return *known;
        }
        let regex = file::as_regex(pattern);
        let word = self.word(regex.unwrap_or(pattern));
        let number = self.patterns.len().min(usize::from(u16::MAX)) as u16;
        self.patterns.push((word, regex.is_some(), cased));
        self.pattern_numbers.insert((pattern.to_owned(), cased), number);
        number
    }

    fn word_list(&mut self, words: &[String]) -> Vec<u16> {
        words.iter().map(|word| self.word(word)).collect()
    }

    fn word(&mut self, word: &str) -> u16 {
        if let Some(known) = self.words.get(word) {
            return *known;
        }
        let number = (self.spans.len() / 2).min(usize::from(u16::MAX)) as u16;
        self.spans.extend([self.text.len() as u32, word.len() as u32]);
        self.text.extend_from_slice(word.as_bytes());
        self.words.insert(word.to_owned(), number);
        number
    }

    /// Where a list starts; equal lists are written once.
    fn list(&mut self, list: &[u16]) -> u32 {
        if let Some(known) = self.list_starts.get(list) {
            return *known;
        }
        let start = self.lists.len() as u32;
        self.lists.extend_from_slice(list);
        self.list_starts.insert(list.to_vec(), start);
        start
    }
}

fn marks_of(row: &FileRule) -> u32 {
    let place = |words: &[&str], word: &Option<String>| {
        word.as_ref()
            .and_then(|word| words.iter().position(|other| other == word))
            .map_or(0, |place| place as u32 + 1)
    };
    let kind = row.kind.parse::<Kind>().unwrap_or(Kind::Unknown) as u32;
    let bits = [
        (row.pick.as_deref() == Some("last"), mark::LAST),
        (row.silent, mark::SILENT),
        (row.zero, mark::ZERO),
        (row.transient.is_some(), mark::TRANSIENT_SAID),
        (row.transient == Some(true), mark::TRANSIENT),
        (row.stream.as_deref() == Some("stdout"), mark::STDOUT),
        (row.stream.as_deref() == Some("stderr"), mark::STDERR),
        (row.ends, mark::ENDS),
    ];
    let bits: u32 = bits.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum();
    let rank = u32::from(row.rank.unwrap_or(file::DEFAULT_RANK));
    let elsewhere = u32::from(row.elsewhere == Some(true)) << 7;
    let shape = row.it.as_deref().map_or(Shape::Name, |word| word.parse().unwrap_or(Shape::Text)) as u32;
    kind | elsewhere
        | rank << 8
        | (place(&FIX_BY, &row.fix_by) | place(&EFFECT, &row.effect) << 3 | shape << 5) << 16
        | bits << 24
}
