//! How a token's shape is written, and whether a text has it.

use std::str;

use crate::redact::random::is_mixed;
use crate::redact::reading::{Hold, Text};
use crate::redact::{is_random, run};

/// So much more than the least of an open end decides whether it is a token's; only then is the end looked for.
const DECIDING_LENGTH: usize = 40;

/// An open part inside of a shape is no longer than this.
const PART_LENGTH: usize = 512;

/// A part of a shape.
#[derive(Clone, Copy)]
enum Part<'s> {
    Literal(&'s [u8]),
    /// So many bytes of an alphabet; more if it is open.
    Random {
        alphabet: u8,
        least: usize,
        is_open: bool,
    },
}

/// The parts of a shape, in order.
struct Parts<'s>(&'s [u8]);

impl<'s> Iterator for Parts<'s> {
    type Item = Part<'s>;

    fn next(&mut self) -> Option<Part<'s>> {
        let Some(code) = self.0.strip_prefix(b"<") else {
            let length = memchr::memchr(b'<', self.0).unwrap_or(self.0.len());
            let (literal, rest) = self.0.split_at(length);
            self.0 = rest;
            return (!literal.is_empty()).then_some(Part::Literal(literal));
        };
        let (code, rest) = code.split_at(memchr::memchr(b'>', code)?);
        self.0 = &rest[1..];
        let (alphabet, count) = code.split_first()?;
        let digits = count.strip_suffix(b"+");
        let least = str::from_utf8(digits.unwrap_or(count)).ok()?.parse().ok()?;
        Some(Part::Random { alphabet: *alphabet, least, is_open: digits.is_some() })
    }
}

/// The literal beginning of a shape.
pub(super) fn literal(shape: &[u8]) -> &[u8] {
    let length = memchr::memchr(b'<', shape).unwrap_or(shape.len());
    &shape[..length]
}

/// Where the token of this shape that begins at `start` ends.
pub(super) fn end(shape: &[u8], text: Text<'_>, start: usize) -> Option<usize> {
    let mut parts = Parts(shape);
    let mut at = start;
    while let Some(part) = parts.next() {
        let is_last = parts.0.is_empty();
        at = match part {
            Part::Literal(literal) => text.get(at..)?.starts_with(literal).then_some(at + literal.len())?,
            Part::Random { alphabet, least, is_open: false } => {
                let body = text.get(at..at + least)?;
                let goes_on = || text.get(at + least).is_some_and(|byte| has(alphabet, *byte));
                let is_whole = !is_last || !goes_on() || text.joint(at + least).is_some();
                (is_whole && body.iter().all(|byte| has(alphabet, *byte))).then_some(at + least)?
            }
            Part::Random { alphabet, least, is_open: true } if is_last => {
                let word = |text: Text<'_>| text.word(at, |byte| has(alphabet, byte), Hold::AtLeast(least));
                let near = word(text.until(at + least + DECIDING_LENGTH));
                let beginning = literal(shape).len();
                let is_long_enough =
                    near >= at + least && is_token(beginning, &text[start + beginning..near]);
                let end = is_long_enough.then(|| word(text))?;
                // A sentence ends behind its last word.
                return Some(end - usize::from(text.get(end - 1) == Some(&b'.')));
            }
            Part::Random { alphabet, least, is_open: true } => {
                let near = text.get(at..text.len().min(at + PART_LENGTH))?;
                let length = run(near, |byte| has(alphabet, byte));
                (length >= least).then_some(at + length)?
            }
        };
    }
    let beginning = literal(shape).len();
    // Nothing else is written in capitals of just that number.
    let is_exact = shape.windows(2).any(|two| two == b"<u") && !shape.ends_with(b"+>");
    (is_exact || is_token(beginning, &text[start + beginning..at])).then_some(at)
}

/// A token is random and has a long stretch without a separator; a name in kebab case is not and has not. The longer its
/// `beginning`, the more that says by itself.
fn is_token(beginning: usize, body: &[u8]) -> bool {
    let long = match beginning {
        ..5 => 8,
        5 => 6,
        6..16 => 4,
        16.. => 0,
    };
    let has_long_part = || body.split(|byte| !byte.is_ascii_alphanumeric()).any(|part| part.len() >= long);
    is_random(body) && (has_long_part() || is_mixed(body))
}

/// Whether `byte` is of an alphabet.
pub(super) fn has(alphabet: u8, byte: u8) -> bool {
    match alphabet {
        b'd' => byte.is_ascii_digit(),
        b'h' => byte.is_ascii_hexdigit(),
        b'l' => byte.is_ascii_lowercase() || byte.is_ascii_digit(),
        b'u' => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
        // Hexadecimal with `-`, capitals with `-`.
        b'k' => byte.is_ascii_hexdigit() || byte == b'-',
        b'y' => byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-',
        // Words, URLs, base64, and both of them with what else issuers use.
        b'v' => byte.is_ascii_alphanumeric() || byte == b'_',
        b'b' => byte.is_ascii_alphanumeric() || b"_-".contains(&byte),
        b's' => byte.is_ascii_alphanumeric() || b"+/=".contains(&byte),
        b't' => byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte),
        b'x' => byte.is_ascii_alphanumeric() || b"_-.=~".contains(&byte),
        b'q' => byte.is_ascii_alphanumeric() || b"_-/@.".contains(&byte),
        b'z' => byte.is_ascii_alphanumeric() || b"_-./%+=~:@".contains(&byte),
        // Base58, and how some tokens begin.
        b'c' => byte.is_ascii_alphanumeric() && !b"0OIl".contains(&byte),
        b'm' => b"MNO".contains(&byte),
        b'e' => b"KL".contains(&byte),
        // Letters and digits.
        _ => byte.is_ascii_alphanumeric(),
    }
}
