//! The ways in which one text can be read: as it stands, with its lines joined, with its codes resolved.
//!
//! A secret may be wrapped over lines, or written in the codes of a URL or of JSON. So the same searches go over the text
//! read in other ways, and what they find is led back to where it stands. A reading never decides what is secret; it only
//! knows where a word may go on behind the end of a line, and there it asks for more than on one line.

use std::ops::{Deref, Range};

use super::run;

/// How two stretches of text came to stand side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    /// The line ended, and nothing says that the word did not.
    Wrap,
    /// A sign says that it goes on: a backslash, a string that is put together, a character that cannot be seen.
    Explicit,
    /// No joint: the byte before stood there in code, or this one does.
    Code,
}

/// A stretch of a reading, and where it comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// Where it begins in the reading.
    at: usize,
    /// Where it begins in the text.
    source: usize,
    /// How long it is in the text, if it is one byte written as a code.
    code: usize,
    joint: Joint,
}

/// A text as the searches see it.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    bytes: &'a [u8],
    pieces: &'a [Piece],
    /// Where a line goes on without a sign that it does.
    wraps: &'a [usize],
}

impl Deref for Text<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

/// How sure it is that a word goes on over the end of a line.
#[derive(Clone, Copy)]
pub(super) enum Hold {
    /// It stands in quotes, so it goes on to the closing one.
    Quoted,
    /// So many bytes belong to it in any case; behind them the rest has to look like one.
    AtLeast(usize),
}

impl<'a> Text<'a> {
    pub(super) fn plain(bytes: &'a [u8]) -> Text<'a> {
        Text { bytes, pieces: &[], wraps: &[] }
    }

    /// The same reading up to `end`.
    pub(super) fn until(self, end: usize) -> Text<'a> {
        Text { bytes: &self.bytes[..end.min(self.bytes.len())], ..self }
    }

    /// The joint at `at`, if a stretch begins there.
    pub(super) fn joint(&self, at: usize) -> Option<Joint> {
        let found = self.pieces.binary_search_by_key(&at, |piece| piece.at).ok()?;
        match self.pieces[found].joint {
            joint @ (Joint::Wrap | Joint::Explicit) => Some(joint),
            Joint::Code => None,
        }
    }

    /// The byte at `at`, if it stands on the same line as the one before it.
    pub(super) fn beside(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied().filter(|_| self.joint(at).is_none())
    }

    /// Whether the line ended before `at` without a sign that it goes on.
    pub(super) fn is_wrapped(&self, at: usize) -> bool {
        self.wraps.binary_search(&at).is_ok()
    }

    /// The part of the line before `at`, at most `reach` long.
    pub(super) fn line_before(&self, at: usize, reach: usize) -> &'a [u8] {
        let from = at.saturating_sub(reach);
        let newline =
            memchr::memrchr(b'\n', &self.bytes[from..at]).map_or(from, |newline| from + newline + 1);
        let wrap = self.wraps[..self.wraps.partition_point(|wrap| *wrap <= at)].last();
        let wrap = wrap.map_or(from, |wrap| from.max(*wrap));
        &self.bytes[newline.max(wrap)..at]
    }

    /// Where the word that begins at `start` ends: all of its bytes pass `test`, and it goes over the end of a line only
    /// if it holds on there.
    pub(super) fn word(&self, start: usize, test: impl Fn(u8) -> bool, hold: Hold) -> usize {
        let mut end = start;
        // One line after the other: what is not taken must not be read to its end for every word.
        let mut next = self.wraps.partition_point(|wrap| *wrap <= start);
        loop {
            let line_end = self.wraps.get(next).map_or(self.bytes.len(), |wrap| self.bytes.len().min(*wrap));
            let length = run(&self.bytes[end..line_end], &test);
            if end > start && !self.goes_on(start, end, end + length, hold) {
                return end;
            }
            end += length;
            if end < line_end || end == self.bytes.len() {
                return end;
            }
            next += 1;
        }
    }

    /// Where `start..end` ends if it goes over the end of a line only where it holds on.
    pub(super) fn hold(&self, start: usize, end: usize, hold: Hold) -> usize {
        let wraps = &self.wraps[self.wraps.partition_point(|wrap| *wrap <= start)..];
        let line_end = |next: usize| wraps.get(next).map_or(end, |wrap| end.min(*wrap));
        let mut lines = wraps.iter().take_while(|wrap| **wrap < end).enumerate();
        let broken = lines.find(|(line, at)| !self.goes_on(start, **at, line_end(line + 1), hold));
        broken.map_or(end, |(_, at)| *at)
    }

    /// Whether the word that begins at `start` goes on with the line `at..line_end`.
    fn goes_on(&self, start: usize, at: usize, line_end: usize, hold: Hold) -> bool {
        let line = &self.bytes[at..line_end];
        match hold {
            Hold::Quoted => !line.iter().any(u8::is_ascii_whitespace),
            Hold::AtLeast(least) => at - start < least || (self.ends_word(line_end) && is_rest(line)),
        }
    }

    /// Where the part of `start..end` that stands on its first line ends.
    pub(super) fn first_line(&self, start: usize, end: usize) -> usize {
        let first = self.wraps.partition_point(|wrap| *wrap <= start);
        self.wraps.get(first).map_or(end, |wrap| end.min(*wrap))
    }

    /// Whether what ends at `at` is not just the beginning of something else, as `2026-01-02T03` before `:` is.
    fn ends_word(&self, at: usize) -> bool {
        self.bytes.get(at).is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'`,;)]}<>&|\\".contains(byte))
            || self.joint(at).is_some()
    }
}

/// Whether `line` begins like the rest of a token: letters and digits, or capitals inside; no word is written so.
fn is_rest(line: &[u8]) -> bool {
    let line = &line[..run(line, |byte| !byte.is_ascii_whitespace() && byte != b';')];
    let has = |test: fn(&u8) -> bool| line.iter().any(test);
    let padding = line.iter().rev().take_while(|byte| **byte == b'=').count();
    if line[..line.len() - padding].iter().any(|byte| matches!(byte, b'=' | b':')) {
        return false;
    }
    (has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic))
        || (line.iter().skip(1).any(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase))
}

/// A text read in another way than it stands.
pub(super) struct Reading {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    wraps: Vec<usize>,
}

/// What a reading does to the text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Joins lines and resolves codes.
    Joined,
    /// Resolves codes only: what stands on one line need not be what it is when glued to the line before.
    Decoded,
    /// Resolves the codes of HTML, and puts strings together that are written in parts on one line.
    Spelled,
}

impl Reading {
    /// Reads `text` in one way, or says that there is nothing to read differently.
    pub(super) fn of(text: &[u8], way: Way) -> Option<Reading> {
        let mut reading = Reading { bytes: Vec::new(), pieces: Vec::new(), wraps: Vec::new() };
        // Everything before `taken` has been read.
        let mut taken = 0;
        let [first, second, third] = way.signs();
        for at in memchr::memchr3_iter(first, second, third, text) {
            if at < taken {
                continue;
            }
            let Some(step) = Step::at(text, at) else { continue };
            match step {
                Step::Join { left, right, joint } if way != Way::Decoded && left >= taken => {
                    reading.copy(text, taken..left);
                    reading.pieces.push(Piece { at: reading.bytes.len(), source: right, code: 0, joint });
                    taken = right;
                }
                Step::Join { .. } => {}
                Step::Byte { byte, length } => {
                    reading.copy(text, taken..at);
                    let code =
                        Piece { at: reading.bytes.len(), source: at, code: length, joint: Joint::Code };
                    reading.pieces.push(code);
                    reading.bytes.push(byte);
                    taken = at + length;
                    let after = Piece { at: reading.bytes.len(), source: taken, code: 0, joint: Joint::Code };
                    reading.pieces.push(after);
                }
            }
        }
        if reading.pieces.is_empty() {
            return None;
        }
        reading.copy(text, taken..text.len());
        // Two pieces at one place are one: the later says where the text goes on, a joint is a joint.
        reading.pieces.dedup_by(|later, earlier| {
            let is_same = later.at == earlier.at;
            if is_same {
                earlier.source = later.source;
                earlier.code = later.code;
                if later.joint != Joint::Code {
                    earlier.joint = later.joint;
                }
            }
            is_same
        });
        let wraps = reading.pieces.iter().filter(|piece| piece.joint == Joint::Wrap);
        reading.wraps = wraps.map(|piece| piece.at).collect();
        Some(reading)
    }

    fn copy(&mut self, text: &[u8], range: Range<usize>) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(text.len());
        }
        self.bytes.extend_from_slice(&text[range]);
    }

    pub(super) fn text(&self) -> Text<'_> {
        Text { bytes: &self.bytes, pieces: &self.pieces, wraps: &self.wraps }
    }

    /// Whether any code was resolved.
    pub(super) fn has_codes(&self) -> bool {
        self.pieces.iter().any(|piece| piece.code > 0)
    }

    /// Where a stretch of the reading stands in the text. It must not be empty.
    pub(super) fn source(&self, range: Range<usize>) -> Range<usize> {
        let start = self.source_of(range.start).0;
        let (last, length) = self.source_of(range.end - 1);
        start..last + length
    }

    /// Where the byte at `at` stands in the text, and how long it is there.
    fn source_of(&self, at: usize) -> (usize, usize) {
        match self.pieces.partition_point(|piece| piece.at <= at) {
            0 => (at, 1),
            after => {
                let piece = self.pieces[after - 1];
                (piece.source + (at - piece.at), piece.code.max(1))
            }
        }
    }
}

/// What a reading makes of one place.
enum Step {
    /// What stands from `left` to `right` is left out.
    Join { left: usize, right: usize, joint: Joint },
    /// A byte that is written as a code.
    Byte { byte: u8, length: usize },
}

impl Way {
    /// The signs with which everything begins that is read in this way.
    fn signs(self) -> [u8; 3] {
        match self {
            Way::Joined | Way::Decoded => [b'\n', b'\\', b'%'],
            Way::Spelled => [b'&', b'+', b'.'],
        }
    }
}

impl Step {
    fn at(text: &[u8], at: usize) -> Option<Step> {
        match text[at] {
            b'\n' => line_end(text, at, at + 1, Joint::Wrap),
            b'\\' => escape(text, at),
            b'%' => percent(text, at),
            b'&' => entity(text, at).or_else(|| concatenation(text, at)),
            _ => concatenation(text, at),
        }
    }
}

/// A character as HTML writes it: `&#61;`, `&#x3d;`, `&quot;`.
fn entity(text: &[u8], at: usize) -> Option<Step> {
    const NAMES: [(&[u8], u8); 9] = [
        (b"quot", b'"'),
        (b"apos", b'\''),
        (b"amp", b'&'),
        (b"lt", b'<'),
        (b"gt", b'>'),
        (b"equals", b'='),
        (b"colon", b':'),
        (b"nbsp", b' '),
        (b"lowbar", b'_'),
    ];
    let near = &text[at + 1..text.len().min(at + 10)];
    let name = &near[..memchr::memchr(b';', near)?];
    let byte = match name.strip_prefix(b"#") {
        None => NAMES.iter().find(|(known, _)| *known == name)?.1,
        Some(digits) => {
            let number = std::str::from_utf8(digits).ok()?;
            let hex = number.strip_prefix(['x', 'X']).map(|digits| u8::from_str_radix(digits, 16));
            hex.unwrap_or_else(|| number.parse()).ok().filter(|byte| (0x20..=0x7e).contains(byte))?
        }
    };
    Some(Step::Byte { byte, length: name.len() + 2 })
}

/// `"one" + "two"`, with the sign at `at` as any language writes it: `+`, `.`, `..`, `&`.
fn concatenation(text: &[u8], at: usize) -> Option<Step> {
    const SPACES: usize = 3;
    let spaces = |text: &[u8]| run(&text[..text.len().min(SPACES)], |byte| byte == b' ');
    let before = &text[..at];
    let blanks = before.iter().rev().take(SPACES).take_while(|byte| **byte == b' ').count();
    let left = closed_quote(&before[..at - blanks])?;
    let sign = at + 1 + usize::from(text[at] == b'.' && text.get(at + 1) == Some(&b'.'));
    let right = opened_quote(text, sign + spaces(text.get(sign..)?))?;
    Some(Step::Join { left, right, joint: Joint::Explicit })
}

/// Indentation longer than this is none.
const INDENTATION: usize = 80;

/// A line that ends at `left` and goes on behind `right`, if both sides are something.
fn line_end(text: &[u8], left: usize, right: usize, joint: Joint) -> Option<Step> {
    let near = &text[right..text.len().min(right + INDENTATION)];
    let right = right + run(near, |byte| byte == b' ' || byte == b'\t');
    let left = left - usize::from(left > 0 && text[left - 1] == b'\r');
    let before = *text[..left].last()?;
    let after = *text.get(right)?;
    if before.is_ascii_whitespace() || after.is_ascii_whitespace() {
        return None;
    }
    let (left, joint) = if before == b'\\' { (left - 1, Joint::Explicit) } else { (left, joint) };
    // `"one" \`, `"one" +` and `"one"` before a line with another string: one string.
    let operand = text[..left].strip_suffix(b"+").unwrap_or(&text[..left]);
    let operand =
        &operand[..operand.len() - operand.iter().rev().take(8).take_while(|byte| **byte == b' ').count()];
    let opening = right + run(&text[right..text.len().min(right + 3)], |byte| byte == b'+' || byte == b' ');
    if let (Some(closed), Some(opened)) = (closed_quote(operand), opened_quote(text, opening)) {
        return Some(Step::Join { left: closed, right: opened, joint: Joint::Explicit });
    }
    Some(Step::Join { left, right, joint })
}

/// Where a quote at the end of `text` begins, with what escapes it.
fn closed_quote(text: &[u8]) -> Option<usize> {
    let text = text.strip_suffix(b"\"").or_else(|| text.strip_suffix(b"'"))?;
    let escapes = text.iter().rev().take(4).take_while(|byte| **byte == b'\\').count();
    Some(text.len() - escapes)
}

/// Where a quote at `at` ends.
fn opened_quote(text: &[u8], at: usize) -> Option<usize> {
    let at = at + run(&text[at..text.len().min(at + 4)], |byte| byte == b'\\');
    matches!(text.get(at), Some(b'"' | b'\'')).then_some(at + 1)
}

/// What a backslash begins: a line end or a character in code.
fn escape(text: &[u8], at: usize) -> Option<Step> {
    let slashes = run(&text[at..text.len().min(at + 16)], |byte| byte == b'\\');
    let code = at + slashes;
    match text.get(code)? {
        b'n' => {
            // Three and more: a backslash and a line end, both escaped.
            let joint = if slashes > 2 { Joint::Explicit } else { Joint::Wrap };
            line_end(text, at, code + 1, joint)
        }
        b'r' => {
            let next = code + 1;
            let slashes = run(&text[next..text.len().min(next + 16)], |byte| byte == b'\\');
            let is_newline = slashes > 0 && text.get(next + slashes) == Some(&b'n');
            is_newline.then(|| line_end(text, at, next + slashes + 1, Joint::Wrap)).flatten()
        }
        b'x' => {
            let byte = hex(text.get(code + 1..code + 3)?)?;
            Some(match byte {
                0x20..=0x7e => Step::Byte { byte, length: slashes + 3 },
                _ => Step::Join { left: at, right: code + 3, joint: Joint::Explicit },
            })
        }
        b'u' if text.get(code + 1) == Some(&b'{') => {
            let digits = run(&text[code + 2..text.len().min(code + 9)], |byte| byte.is_ascii_hexdigit());
            let end = code + 2 + digits;
            let is_whole = digits > 0 && text.get(end) == Some(&b'}');
            is_whole.then_some(Step::Join { left: at, right: end + 1, joint: Joint::Explicit })
        }
        b'u' => {
            let high = hex(text.get(code + 1..code + 3)?)?;
            let low = hex(text.get(code + 3..code + 5)?)?;
            match (high, low) {
                (0, 0x20..=0x7e) => Some(Step::Byte { byte: low, length: slashes + 5 }),
                // The soft hyphen, the zero-width and the bidi characters, the byte order mark.
                (0, 0xad) | (0x20, 0x0b..=0x0f | 0x2a..=0x2e | 0x60..=0x6f) | (0xfe, 0xff) => {
                    Some(Step::Join { left: at, right: code + 5, joint: Joint::Explicit })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// `%3D`, and `%253D`, which was encoded twice.
fn percent(text: &[u8], at: usize) -> Option<Step> {
    let byte = hex(text.get(at + 1..at + 3)?)?;
    let twice = (byte == b'%').then(|| text.get(at + 3..at + 5).and_then(hex)).flatten();
    let (byte, length) = twice.map_or((byte, 3), |byte| (byte, 5));
    match byte {
        0x20..=0x7e => Some(Step::Byte { byte, length }),
        b'\n' => line_end(text, at, at + length, Joint::Wrap),
        _ => None,
    }
}

fn hex(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    match digits {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    }
}

/// The ways in which `text` can be read besides as it stands.
pub(super) fn others(text: &[u8]) -> impl Iterator<Item = Reading> {
    let joined = Reading::of(text, Way::Joined);
    let decoded = joined.as_ref().is_some_and(Reading::has_codes).then(|| Reading::of(text, Way::Decoded));
    joined.into_iter().chain(decoded.flatten()).chain(Reading::of(text, Way::Spelled))
}
