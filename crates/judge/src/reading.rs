//! Reads an output as it streams by and keeps only what can prove a cause.
//!
//! Whatever the size of the output, memory stays bounded: for each rule the first and the last line that it matched, for
//! each pattern the lines that could serve as evidence. A line is looked at closely only when it holds a trigger.
//! Nothing is decided here; `diagnose` weighs what was found.
//!
//! Where somebody waits for what streams by, the beginning of each stream is read as it comes, and of all that follows only
//! the newest part, in the end. Which bytes those are depends on the output alone, never on the time it took.

mod entry;
mod newest;
pub(crate) mod telling;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use memchr::{memchr, memchr2, memrchr2};

use crate::hint::{self, Clock, Hint};
use crate::rules::{Stream, Table};
use newest::Newest;
pub use telling::telling_line;

/// A line longer than this is read in pieces of this size around what was found.
const LINE_MAX: usize = 4 * 1024;
/// A piece of a line without an end is looked at once it is this long.
const CARRY_MAX: usize = 64 * 1024;
/// What of a quoted line is kept.
const QUOTE_MAX: usize = 600;
/// How often one pattern is looked at closely before only the end of the output counts for it.
const LOOKS_MAX: u32 = 500;
/// The last part of each stream is read again for patterns that were cut off by `LOOKS_MAX`.
const TAIL: usize = 8 * 1024;

/// So much of each stream is read as it comes where somebody waits for it to pass.
const READ_IN_PASSING: u64 = 16 << 20;

/// A line of the output that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The line, without colours and surrounding space, shortened if it was very long.
    pub text: String,
    /// Its number in its stream, counted from 1.
    pub line: u64,
    /// Its stream.
    pub stream: Stream,
}

impl Found {
    /// Tells whether the line is an entry of something that is shown: a commit, a row, a passed test, a routine log line.
    pub fn is_entry(&self) -> bool {
        entry::is_entry(&self.text)
    }

    /// Tells whether what stands at this place of the line is said as a complaint, not in the course of a sentence.
    pub(crate) fn complains_at(&self, place: usize) -> bool {
        entry::opens_complaint(self.text.get(..place).unwrap_or_default())
    }
}

/// The first and the last line of those that matched.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) first: Found,
    pub(crate) last: Found,
    pub(crate) pattern: u16,
}

/// What one table of rules found in the output.
#[derive(Debug)]
pub(crate) struct Findings {
    /// For each rule that was proven: the lines that prove it.
    pub(crate) rules: BTreeMap<u16, Span>,
    /// For each pattern that was found: the lines that have it.
    pub(crate) patterns: BTreeMap<u16, Span>,
    /// How often each pattern was looked at; empty as long as none was.
    looks: Vec<u32>,
}

impl Findings {
    fn new() -> Findings {
        Findings { rules: BTreeMap::new(), patterns: BTreeMap::new(), looks: Vec::new() }
    }

    pub(crate) fn has(&self, pattern: u16) -> bool {
        self.patterns.contains_key(&pattern)
    }
}

/// The part of a stream that has not ended in a line break yet, and what was seen of the stream.
#[derive(Debug, Default)]
struct Lane {
    carry: Vec<u8>,
    lines: u64,
    bytes: u64,
    visible: bool,
    tail: Vec<u8>,
    /// What is read when nothing follows it.
    newest: Newest,
}

/// An output being read.
#[derive(Debug)]
pub struct Reading<'r> {
    tables: &'r [Table],
    findings: Vec<Findings>,
    lanes: [Lane; 3],
    hint: Option<Hint>,
    clock: Option<Clock>,
    /// How much of each stream is read as it comes.
    whole: u64,
    lower: String,
}

impl<'r> Reading<'r> {
    /// Starts to read an output with these tables.
    pub fn new(tables: &'r [Table]) -> Reading<'r> {
        Reading {
            tables,
            findings: tables.iter().map(|_| Findings::new()).collect(),
            lanes: Default::default(),
            hint: None,
            clock: None,
            whole: u64::MAX,
            lower: String::new(),
        }
    }

    /// Reads in passing, so that nobody waits for us: of each stream the first 16 MB and at least the last megabyte, but not what
    /// is between them.
    pub fn in_passing(self) -> Reading<'r> {
        Reading { whole: READ_IN_PASSING, ..self }
    }

    /// Tells the time, so that a moment the other side names becomes a wait. A `Date` that it prints itself goes before.
    pub fn at(self, clock: Clock) -> Reading<'r> {
        Reading { clock: Some(clock), ..self }
    }

    /// Reads the next piece of a stream.
    pub fn feed(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let lane = &mut self.lanes[stream as usize];
        let room = usize::try_from(self.whole.saturating_sub(lane.bytes)).unwrap_or(usize::MAX);
        lane.bytes += bytes.len() as u64;
        lane.visible = lane.visible || bytes.iter().any(|byte| !byte.is_ascii_whitespace());
        keep_tail(&mut lane.tail, bytes);
        let (now, later) = bytes.split_at(room.min(bytes.len()));
        self.read(stream, now);
        if !later.is_empty() {
            let lane = &mut self.lanes[stream as usize];
            lane.newest.push(later);
            lane.lines += line_breaks(later);
        }
    }

    /// Reads what waited until nothing follows it.
    fn read_newest(&mut self, stream: Stream) {
        let newest = std::mem::take(&mut self.lanes[stream as usize].newest);
        let [mut older, newer] = newest.parts();
        self.lanes[stream as usize].lines -= line_breaks(older) + line_breaks(newer);
        if newest.is_cut {
            // What stood open before the gap ends there, and what the gap cut in two is no line.
            let open = std::mem::take(&mut self.lanes[stream as usize].carry);
            self.scan(stream, &open);
            let (cut, rest) = older.split_at(memchr(b'\n', older).map_or(older.len(), |at| at + 1));
            self.lanes[stream as usize].lines += line_breaks(cut);
            older = rest;
        }
        self.read(stream, older);
        self.read(stream, newer);
    }

    fn read(&mut self, stream: Stream, bytes: &[u8]) {
        let mut rest = bytes;
        if !self.lanes[stream as usize].carry.is_empty() {
            let end = memchr(b'\n', rest).map(|at| at + 1);
            let (head, tail) = rest.split_at(end.unwrap_or(rest.len()));
            let mut carry = std::mem::take(&mut self.lanes[stream as usize].carry);
            carry.extend_from_slice(head);
            rest = tail;
            if end.is_some() || carry.len() >= CARRY_MAX {
                self.scan(stream, &carry);
                // A word cut in two at the seam is still found: the end of the piece is read again with the next.
                carry.drain(..if end.is_some() { carry.len() } else { carry.len() - QUOTE_MAX });
            }
            self.lanes[stream as usize].carry = carry;
        }
        let whole = memchr::memrchr(b'\n', rest).map_or(0, |at| at + 1);
        let (lines, open) = rest.split_at(whole);
        self.scan(stream, lines);
        match open.len() {
            0 => {}
            1..CARRY_MAX => self.lanes[stream as usize].carry.extend_from_slice(open),
            long => {
                self.scan(stream, open);
                self.lanes[stream as usize].carry.extend_from_slice(&open[long - QUOTE_MAX..]);
            }
        }
    }

    /// Ends the reading: what is left over counts as a line.
    pub(crate) fn close(mut self) -> Seen {
        const STREAMS: [Stream; 3] = [Stream::Stdout, Stream::Stderr, Stream::Merged];
        for stream in STREAMS {
            self.read_newest(stream);
            let rest = std::mem::take(&mut self.lanes[stream as usize].carry);
            self.scan(stream, &rest);
        }
        if self.findings.iter().any(|findings| findings.looks.iter().any(|looks| *looks >= LOOKS_MAX)) {
            self.findings.iter_mut().for_each(|findings| findings.looks.fill(0));
            STREAMS.into_iter().for_each(|stream| self.read_end_again(stream));
        }
        Seen {
            printed: self.lanes.each_ref().map(|lane| lane.visible),
            last_line: [Stream::Stderr, Stream::Merged, Stream::Stdout]
                .into_iter()
                .find_map(|stream| self.last_line(stream)),
            telling_line: [Stream::Stderr, Stream::Merged, Stream::Stdout]
                .into_iter()
                .find_map(|stream| self.telling_line(stream)),
            last_said: STREAMS.map(|stream| self.last_said(stream)),
            findings: self.findings,
            hint: self.hint,
        }
    }

    /// Returns the line of a stream's end that tells most of a failure.
    fn telling_line(&self, stream: Stream) -> Option<Found> {
        let lane = &self.lanes[stream as usize];
        let plain = without_escapes(&lane.tail);
        let text = String::from_utf8_lossy(&plain);
        let (number, line) = telling_line(&text)?;
        let after = text.lines().count().saturating_sub(number + 1) as u64;
        let shown = line.rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or(line);
        // `lane.lines` counts line breaks: a last line without one is not counted yet.
        let open = u64::from(!text.ends_with('\n'));
        let number = (lane.lines + open).saturating_sub(after).max(1);
        Some(Found { text: quote(shown, 0), line: number, stream })
    }

    /// Returns the number of a stream's last line that says anything.
    fn last_said(&self, stream: Stream) -> Option<u64> {
        let lane = &self.lanes[stream as usize];
        let plain = without_escapes(&lane.tail);
        let text = String::from_utf8_lossy(&plain);
        let after = text.lines().rev().position(telling::says_something)? as u64;
        let open = u64::from(!text.ends_with('\n'));
        Some((lane.lines + open).saturating_sub(after))
    }

    /// Reads the whole lines at the end of a stream once more.
    fn read_end_again(&mut self, stream: Stream) {
        let lane = &mut self.lanes[stream as usize];
        let tail = std::mem::take(&mut lane.tail);
        let is_cut = lane.bytes > tail.len() as u64;
        let from = if is_cut { memchr(b'\n', &tail).map_or(tail.len(), |at| at + 1) } else { 0 };
        let end = &tail[from..];
        lane.lines = lane.lines.saturating_sub(line_breaks(end));
        self.scan(stream, end);
        self.lanes[stream as usize].tail = tail;
    }

    fn last_line(&self, stream: Stream) -> Option<Found> {
        let lane = &self.lanes[stream as usize];
        let plain = without_escapes(&lane.tail);
        let after = plain.rsplit(|byte| *byte == b'\n').enumerate();
        let (back, line) = after.into_iter().find(|(_, line)| !line.trim_ascii().is_empty())?;
        // Of a line that was written over itself, such as a progress bar, only what was written last can be seen.
        let seen = line.rsplit(|byte| *byte == b'\r').find(|part| !part.trim_ascii().is_empty())?;
        let number = (lane.lines + 1).saturating_sub(back as u64).max(1);
        Some(Found { text: quote(&String::from_utf8_lossy(seen), 0), line: number, stream })
    }

    /// Looks for triggers in whole lines.
    fn scan(&mut self, stream: Stream, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        if memchr2(0x1b, 0, text).is_some() {
            let plain = without_escapes(text);
            self.scan_plain(stream, &plain);
        } else {
            self.scan_plain(stream, text);
        }
    }

    fn scan_plain(&mut self, stream: Stream, text: &[u8]) {
        let tables = self.tables;
        let base = self.lanes[stream as usize].lines;
        for (index, table) in tables.iter().enumerate() {
            let triggers = table.triggers();
            let (mut counted, mut lines, mut from) = (0, base, 0);
            if !table.loose().is_empty() {
                self.try_loose(index, stream, text, base);
            }
            while let Some(end) = triggers.next(text, from) {
                let start = memrchr2(b'\n', b'\r', &text[..end])
                    .map_or(0, |at| at + 1)
                    .max(end.saturating_sub(LINE_MAX / 2));
                let stop = memchr2(b'\n', b'\r', &text[end..]).map_or(text.len(), |at| end + at);
                let stop = stop.min(end + LINE_MAX / 2);
                lines += line_breaks(&text[counted..start]);
                counted = start;
                self.look(index, stream, &text[start..stop], lines + 1, end - start);
                from = stop;
            }
        }
        self.lanes[stream as usize].lines = base + line_breaks(text);
    }

    /// Tries the patterns without fixed text on every line: only a user's own file has such.
    fn try_loose(&mut self, index: usize, stream: Stream, text: &[u8], base: u64) {
        let table = &self.tables[index];
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = String::from_utf8_lossy(&line[..line.len().min(LINE_MAX)]);
            lower_into(&mut self.lower, &line);
            let number = base + number as u64 + 1;
            let line = Line { text: &line, lower: &self.lower, stream, number, trigger: 0 };
            for pattern in table.loose().iter() {
                self.findings[index].take(table, pattern, line);
            }
        }
    }

    /// Looks at one line closely: every pattern whose anchor it has is tried.
    fn look(&mut self, index: usize, stream: Stream, line: &[u8], number: u64, trigger: usize) {
        let table = &self.tables[index];
        let findings = &mut self.findings[index];
        if findings.looks.is_empty() {
            findings.looks = vec![0; table.pattern_count()];
        }
        let mut wanted: Vec<u16> = Vec::new();
        table.anchors().each(line, |pattern| {
            let looks = &mut findings.looks[usize::from(pattern)];
            if *looks < LOOKS_MAX && !wanted.contains(&pattern) {
                *looks += 1;
                wanted.push(pattern);
            }
        });
        if wanted.is_empty() {
            return;
        }
        let line = String::from_utf8_lossy(line);
        if is_dumped_entry(&line) {
            return;
        }
        lower_into(&mut self.lower, &line);
        let line = Line { text: &line, lower: &self.lower, stream, number, trigger };
        let matching = wanted.into_iter().filter(|pattern| findings.take(table, *pattern, line)).count();
        if matching == 0 {
            return;
        }
        self.clock = hint::corrected(self.clock, line.text);
        self.hint = match (self.hint, hint::in_line(line.text, self.clock)) {
            (Some(before), Some(here)) => Some(before.or(here)),
            (before, here) => before.or(here),
        };
    }
}

/// Everything that is known of an output once it has ended.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) findings: Vec<Findings>,
    pub(crate) hint: Option<Hint>,
    /// Whether anything but white space was printed, by stream.
    pub(crate) printed: [bool; 3],
    /// The last line that was printed, on stderr if there is one.
    pub(crate) last_line: Option<Found>,
    /// The line near the end that tells most, on stderr if there is one.
    pub(crate) telling_line: Option<Found>,
    /// The number of the last line that says anything, by stream.
    pub(crate) last_said: [Option<u64>; 3],
}

impl Seen {
    /// Tells whether no more than so many lines are said after this one.
    pub(crate) fn ends_with(&self, found: &Found, lines: u64) -> bool {
        self.last_said[found.stream as usize].is_none_or(|last| last <= found.line + lines)
    }
}

/// A line that is looked at.
#[derive(Clone, Copy)]
struct Line<'l> {
    text: &'l str,
    /// The same in ASCII lower case.
    lower: &'l str,
    stream: Stream,
    number: u64,
    /// About where in the line it says why it was looked at.
    trigger: usize,
}

impl Findings {
    /// Notes that the line has the pattern, for the pattern itself and for the rules that claim it; says whether it has.
    fn take(&mut self, table: &Table, pattern: u16, line: Line<'_>) -> bool {
        if !table.matches(pattern, line.text, line.lower) {
            return false;
        }
        let found = || Found { text: quote(line.text, line.trigger), line: line.number, stream: line.stream };
        note(self.patterns.entry(pattern), pattern, found);
        for rule in table.claims(pattern) {
            let elsewhere =
                rule.stream().is_some_and(|wanted| line.stream != Stream::Merged && line.stream != wanted);
            if !elsewhere && !rule.unless().any_in(line.text, line.lower) {
                note(self.rules.entry(rule.number()), pattern, found);
            }
        }
        true
    }
}

fn note(place: Entry<'_, u16, Span>, pattern: u16, found: impl Fn() -> Found) {
    match place {
        Entry::Occupied(mut place) => place.get_mut().last = found(),
        Entry::Vacant(place) => {
            place.insert(Span { first: found(), last: found(), pattern });
        }
    }
}

/// Is the line one entry of a dumped table of codes, such as `'429': 'Too Many Requests',` or `'EADDRINUSE',`?
///
/// An HTTP client that prints its error prints its whole configuration too, and that names every failure there is.
fn is_dumped_entry(line: &str) -> bool {
    let entry = line.trim().trim_end_matches(',');
    let Some(inside) = entry.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) else {
        return false;
    };
    let key = inside.split_once("': '").map_or(inside, |(key, _)| key);
    !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Shortens a line to what can be quoted around `trigger`, and to signs that show themselves and do nothing else.
fn quote(line: &str, trigger: usize) -> String {
    let before = &line[..line.floor_char_boundary(trigger)];
    let skipped = match before.char_indices().nth_back(QUOTE_MAX / 2) {
        Some((start, _)) if before.chars().nth(QUOTE_MAX).is_some() => start,
        Some(_) | None => 0,
    };
    let mark = if skipped > 0 { "…" } else { "" };
    let shown: String = line[skipped..].chars().filter(|sign| is_harmless(*sign)).collect();
    let shown = shown.trim().trim_start_matches(BYTE_ORDER_MARK);
    match shown.char_indices().nth(QUOTE_MAX) {
        Some((end, _)) => format!("{mark}{}…", &shown[..end]),
        None => format!("{mark}{shown}"),
    }
}

/// The mark at the start of a file, and what becomes of it where it is not written in UTF-8.
const BYTE_ORDER_MARK: [char; 2] = ['\u{feff}', char::REPLACEMENT_CHARACTER];

/// A quoted line must not steer the terminal it is shown on, nor turn its own text around.
fn is_harmless(sign: char) -> bool {
    let turns_text = matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    sign == '\t' || !(sign.is_control() || turns_text)
}

fn lower_into(lower: &mut String, line: &str) {
    lower.clear();
    lower.push_str(line);
    lower.make_ascii_lowercase();
}

fn line_breaks(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

fn keep_tail(tail: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len() {
        long if long >= TAIL => {
            tail.clear();
            tail.extend_from_slice(&bytes[long - TAIL..]);
        }
        short => {
            if tail.len() + short > 2 * TAIL {
                tail.drain(..tail.len() - TAIL);
            }
            tail.extend_from_slice(bytes);
        }
    }
}

/// Drops terminal escapes, and the NULs that make UTF-16 unreadable.
pub(crate) fn without_escapes(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = memchr2(0x1b, 0, &text[at..]) {
        plain.extend_from_slice(&text[at..at + found]);
        at += found;
        at += match (text[at], text.get(at + 1)) {
            (0, _) => 1,
            (_, Some(b'[')) => {
                let parameters =
                    text[at + 2..].iter().take_while(|byte| (0x20..0x40).contains(*byte)).count();
                (2 + parameters + 1).min(text.len() - at)
            }
            (_, Some(b']')) => {
                let title = text[at + 2..]
                    .iter()
                    .take(512)
                    .take_while(|byte| !matches!(byte, 0x07 | 0x1b | b'\n'))
                    .count();
                let terminator = match (text.get(at + 2 + title), text.get(at + 3 + title)) {
                    (Some(0x07), _) => 1,
                    (Some(0x1b), Some(b'\\')) => 2,
                    (_, _) => 0,
                };
                2 + title + terminator
            }
            (_, Some(_)) => 2,
            (_, None) => 1,
        };
    }
    plain.extend_from_slice(&text[at.min(text.len())..]);
    plain
}
