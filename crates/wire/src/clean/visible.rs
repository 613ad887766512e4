//! Text in which nothing acts and nothing hides.
//!
//! Terminals obey escape sequences, and readers, people and models alike, are misled by characters that turn the order of
//! writing around or cannot be seen. Sequences are dropped; every other such character is written out (`\x00`,
//! `\u{202e}`), so that it is seen that it was there. What comes out holds line ends and tabs and no other control.

use std::fmt::Write;

use unstuck_judge::quote::is_hidden;

use crate::redact::Edge;

/// A sequence whose end is farther away has none.
const SEQUENCE_LENGTH: usize = 4096;

/// Writes `bytes` so that everything is seen, and moves `edges` to where they are afterwards.
pub(crate) fn visible(bytes: &[u8], edges: &mut [Edge]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let before = edges.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let written = text.len();
        let unit = Unit::at(bytes, at);
        let (end, is_verbatim) = match unit {
            Unit::Plain(length) => {
                // All of it is ASCII.
                text.push_str(std::str::from_utf8(&bytes[at..at + length]).unwrap_or_default());
                (at + length, true)
            }
            Unit::Char(sign) => {
                text.push(sign);
                (at + sign.len_utf8(), false)
            }
            Unit::LineEnd(length) => {
                text.push('\n');
                (at + length, false)
            }
            Unit::Sequence(length) => (at + length, false),
            Unit::Hidden(sign) => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{{{:x}}}", u32::from(sign));
                (at + sign.len_utf8(), false)
            }
            Unit::Byte(byte) => {
                let _ = write!(text, "\\x{byte:02x}");
                (at + 1, false)
            }
        };
        for (edge, before) in edges.iter_mut().zip(&before) {
            let place = before.place();
            if (at..end).contains(&place) {
                *edge = before.moved_to(written + if is_verbatim { place - at } else { 0 });
            }
        }
        at = end;
    }
    for (edge, before) in edges.iter_mut().zip(&before) {
        if before.place() >= bytes.len() {
            *edge = before.moved_to(text.len());
        }
    }
    text
}

/// What stands at one place of a text.
enum Unit {
    /// So many bytes of ordinary ASCII, line ends and tabs.
    Plain(usize),
    /// A character beyond ASCII that is what it seems.
    Char(char),
    /// A line end written otherwise.
    LineEnd(usize),
    /// A sequence for a terminal.
    Sequence(usize),
    /// A character that cannot be seen, or changes how others are.
    Hidden(char),
    /// A control character, or a byte that is no text.
    Byte(u8),
}

const ESCAPE: u8 = 0x1b;

impl Unit {
    fn at(bytes: &[u8], at: usize) -> Unit {
        let rest = &bytes[at..];
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        let plain = rest.iter().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
        match rest {
            _ if plain > 0 => Unit::Plain(plain),
            [b'\r', b'\n', ..] => Unit::LineEnd(2),
            [b'\r', ..] => Unit::LineEnd(1),
            [ESCAPE, body @ ..] => sequence(body).map_or(Unit::Byte(ESCAPE), |body| Unit::Sequence(1 + body)),
            [byte @ ..0x80, ..] => Unit::Byte(*byte),
            [first, ..] => match character(rest) {
                None => Unit::Byte(*first),
                // The one-character form of `ESC [`.
                Some('\u{9b}') => Unit::Sequence(2 + controls(&rest[2..])),
                Some(sign) if is_hidden(sign) => Unit::Hidden(sign),
                Some(sign) => Unit::Char(sign),
            },
            [] => Unit::Plain(0),
        }
    }
}

/// The character that `bytes` begin with.
fn character(bytes: &[u8]) -> Option<char> {
    let length = match bytes[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return None,
    };
    std::str::from_utf8(bytes.get(..length)?).ok()?.chars().next()
}

/// The length of the sequence whose bytes behind `ESC` are `body`; none if it is a lone `ESC`.
fn sequence(body: &[u8]) -> Option<usize> {
    match body.first()? {
        b'[' => Some(1 + controls(&body[1..])),
        // Titles, links and other strings, up to their terminator. Without one only the beginning is dropped: the rest
        // may be the text.
        b']' | b'P' | b'X' | b'^' | b'_' => {
            let near = &body[..body.len().min(SEQUENCE_LENGTH)];
            let end = memchr::memchr3(0x07, ESCAPE, b'\n', near);
            Some(match end.map(|end| (end, near[end], near.get(end + 1))) {
                Some((end, 0x07, _)) => end + 1,
                Some((end, ESCAPE, Some(b'\\'))) => end + 2,
                Some(_) | None => 1,
            })
        }
        b' '..=b'/' => {
            let length = body.iter().take(8).take_while(|byte| matches!(byte, b' '..=b'/')).count();
            matches!(body.get(length), Some(b'0'..=b'~')).then_some(length + 1)
        }
        b'0'..=b'~' => Some(1),
        _ => None,
    }
}

/// The length of a control sequence behind its beginning, as far as it goes.
fn controls(body: &[u8]) -> usize {
    let near = &body[..body.len().min(SEQUENCE_LENGTH)];
    let parameters = near.iter().take_while(|byte| matches!(byte, b' '..=b'?')).count();
    // Parameters end where the sequence does, or where it was broken off.
    if matches!(near.get(parameters), Some(b'@'..=b'~')) {
        return parameters + 1;
    }
    near.iter().take_while(|byte| matches!(byte, b'0'..=b'?')).count()
}
