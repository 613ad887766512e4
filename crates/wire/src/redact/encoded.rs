//! Secrets in base64, base32 and hexadecimal: what was encoded is read, and if a secret is found there, the code is cut.
//!
//! Where a code begins cannot be seen when something of the same letters stands before it (a path, the line above), so
//! each of the four ways to count is tried. Bytes that are no text are nobody's secret here: a picture stays.

use super::known::Known;
use super::reading::Text;
use super::{Depth, Find, find_all, run};

/// Shorter runs hold nothing that could be told from a word.
const RUN_LENGTH: usize = 20;

/// So many readable characters in a row are no accident.
const TEXT_LENGTH: usize = 12;

/// The value of each letter, of the standard alphabet and of the one for URLs; 255 is none.
const VALUES: [u8; 256] = {
    let mut values = [u8::MAX; 256];
    let mut at: u8 = 0;
    while at < 26 {
        values[(b'A' + at) as usize] = at;
        values[(b'a' + at) as usize] = at + 26;
        if at < 10 {
            values[(b'0' + at) as usize] = at + 52;
        }
        at += 1;
    }
    values[b'+' as usize] = 62;
    values[b'-' as usize] = 62;
    values[b'/' as usize] = 63;
    values[b'_' as usize] = 63;
    values
};

/// Whether `byte` is a letter of base64 in either alphabet.
pub(super) fn is_base64(byte: u8) -> bool {
    VALUES[usize::from(byte)] != u8::MAX
}

/// Whether `code` is a user and a password, as `Basic` wants them.
pub(super) fn is_login(code: &[u8]) -> bool {
    let code = &code[..run(code, is_base64)];
    let mut text = Vec::new();
    decode(code, &mut text);
    code.len() >= 8 && text.contains(&b':') && text.iter().all(|byte| is_readable(*byte) || *byte >= 0x80)
}

pub(super) fn find(text: Text<'_>, known: &Known, depth: Depth, finds: &mut Vec<Find>) {
    let Some(deeper) = depth.deeper() else { return };
    let mut at = 0;
    // A run of this length that begins at `at` or soon after covers its last place, so most of a text is never looked at.
    while let Some(near) = text.get(at..at + RUN_LENGTH) {
        if let Some(gap) = near.iter().rposition(|byte| !is_base64(*byte)) {
            at += gap + 1;
            continue;
        }
        let length = run(&text[at..], is_base64);
        let is_secret = |text: &[u8]| !find_all(text, known, deeper).is_empty();
        find_hex(text, at, length, is_secret, finds);
        find_base32(text, at, length, is_secret, finds);
        if is_mixed(&text[at..at + length]) {
            for offset in 0..4 {
                find_in_run(text, at, length, offset, is_secret, finds);
            }
        }
        at += length;
    }
}

/// Looks for hexadecimal in the run at `at` that reads as text from its first digit to its last.
fn find_hex(
    text: Text<'_>,
    at: usize,
    length: usize,
    is_secret: impl Fn(&[u8]) -> bool,
    finds: &mut Vec<Find>,
) {
    let code = &text[at..at + length];
    let mut start = 0;
    while let Some(rest) = code.get(start..).filter(|rest| rest.len() >= RUN_LENGTH) {
        let digits = run(rest, |byte| byte.is_ascii_hexdigit());
        if digits >= 2 * TEXT_LENGTH {
            // Readable text has no digit above 7 at every other place.
            let is_text = |from: usize| {
                let mut pairs = rest[from..digits].chunks_exact(2);
                pairs.all(|pair| is_readable(byte_of(pair)))
            };
            if let Some(from) = [0, 1].into_iter().find(|from| is_text(*from)) {
                let decoded: Vec<u8> = rest[from..digits].chunks_exact(2).map(byte_of).collect();
                if is_secret(&decoded) {
                    finds.push(Find { start: at + start, end: at + start + digits, kind: "hex" });
                }
            }
        }
        start += digits + 1;
    }
}

fn byte_of(pair: &[u8]) -> u8 {
    let digit =
        |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or(0);
    digit(pair[0]) << 4 | digit(pair[1])
}

/// Looks whether the run at `at` is base32 and reads as text.
fn find_base32(
    text: Text<'_>,
    at: usize,
    length: usize,
    is_secret: impl Fn(&[u8]) -> bool,
    finds: &mut Vec<Find>,
) {
    let code = &text[at..at + length];
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    };
    let mut decoded = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in code {
        let Some(value) = value(*byte) else { return };
        bits = bits << 5 | u32::from(value);
        count += 5;
        if count >= 8 {
            count -= 8;
            let byte = u8::try_from(bits >> count & 0xff).unwrap_or(0);
            if !is_readable(byte) {
                return;
            }
            decoded.push(byte);
        }
    }
    if decoded.len() >= TEXT_LENGTH && is_secret(&decoded) {
        let padding = run(&text[at + length..], |byte| byte == b'=').min(6);
        finds.push(Find { start: at, end: at + length + padding, kind: "base32" });
    }
}

/// Whether both cases occur: in readable text that was encoded they do, in hashes and in most paths they do not.
fn is_mixed(code: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| code.iter().any(test);
    has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
}

/// Looks for readable text in the run at `at`, counted from `offset`, and cuts those letters whose text `is_secret`.
fn find_in_run(
    text: Text<'_>,
    at: usize,
    length: usize,
    offset: usize,
    is_secret: impl Fn(&[u8]) -> bool,
    finds: &mut Vec<Find>,
) {
    let code = &text[at + offset..at + length];
    let groups = code.len() / 4;
    let is_text = |group: usize| {
        let bits = bits(&code[group * 4..group * 4 + 4]);
        bits.to_be_bytes()[1..].iter().all(|byte| is_readable(*byte))
    };
    let mut decoded = Vec::new();
    // Text that is long enough fills three groups in a row, so it is enough to look at every third.
    let mut group = 2;
    while group < groups {
        if !is_text(group) {
            group += 3;
            continue;
        }
        let first = (0..group).rev().take_while(|group| is_text(*group)).last().unwrap_or(group);
        let last = (group..groups).take_while(|group| is_text(*group)).last().unwrap_or(group);
        group = last + 3;
        if last - first < 2 {
            continue;
        }
        // The groups beside may be text in part.
        let from = first.saturating_sub(1) * 4;
        let to = if last + 2 >= groups { code.len() } else { (last + 2) * 4 };
        decoded.clear();
        decode(&code[from..to], &mut decoded);
        let begin = decoded.iter().take(3).rposition(|byte| !is_readable(*byte)).map_or(0, |at| at + 1);
        let readable = &decoded[begin..];
        let readable = &readable[..run(readable, is_readable)];
        if readable.len() < TEXT_LENGTH || !is_secret(readable) {
            continue;
        }
        // What is left of the code beside its text is a few letters that belong to it, if they stand on its line.
        let letters = |bytes: usize| offset + from + bytes * 4;
        let mut start = letters(begin / 3);
        let mut end = letters((begin + readable.len()).div_ceil(3)).min(length);
        if start < 8 {
            start = (1..=letters(begin.div_ceil(3)))
                .rev()
                .find(|place| text.joint(at + place).is_some())
                .unwrap_or(0);
        }
        if length - end < 8 {
            let padded = length + run(&text[at + length..], |byte| byte == b'=').min(2);
            end = (end..length).find(|place| text.joint(at + place).is_some()).unwrap_or(padded);
        }
        finds.push(Find { start: at + start, end: at + end, kind: "base64" });
    }
}

/// The bits of up to four letters, as the lower 24 of a number.
fn bits(letters: &[u8]) -> u32 {
    let value = |letter: &u8| u32::from(VALUES[usize::from(*letter)]);
    letters.iter().fold(0, |bits, letter| bits << 6 | value(letter)) << (6 * (4 - letters.len().min(4)))
}

fn is_readable(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e | b'\n' | b'\r' | b'\t')
}

/// The bytes that `code` stands for. All of it must be letters of base64.
fn decode(code: &[u8], bytes: &mut Vec<u8>) {
    bytes.reserve(code.len() / 4 * 3 + 3);
    for group in code.chunks(4) {
        let whole = group.len() - 1;
        bytes.extend_from_slice(&bits(group).to_be_bytes()[1..=whole]);
    }
}

/// The letters that `bytes` always has in base64 when so many bytes (0, 1 or 2) stand before it in its group of three.
pub(super) fn letters(bytes: &[u8], before: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let mut padded = vec![0; before];
    padded.extend_from_slice(bytes);
    // Only letters all of whose bits come from `bytes` are the same whatever stands around.
    let first = (before * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    let bit = |at: usize| padded.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    (first..last)
        .map(|letter| {
            let value = (0..6).fold(0, |value, at| value << 1 | bit(letter * 6 + at));
            alphabet[usize::from(value)]
        })
        .collect()
}
