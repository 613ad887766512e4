//! Secrets in base64: what was encoded is read, and if a secret is found there, the code is cut.
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
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let length = run(&text[at..], is_base64);
        if length >= RUN_LENGTH && is_mixed(&text[at..at + length]) {
            find_in_run(&text, at, length, &mut decoded, known, deeper, finds);
        }
        at += length;
        at += run(&text[at..], |byte| !is_base64(byte));
    }
}

/// Whether both cases occur: in readable text that was encoded they do, in hashes and in most paths they do not.
fn is_mixed(code: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| code.iter().any(test);
    has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
}

fn find_in_run(
    text: &[u8],
    at: usize,
    length: usize,
    decoded: &mut Vec<u8>,
    known: &Known,
    depth: Depth,
    finds: &mut Vec<Find>,
) {
    for offset in 0..4 {
        decoded.clear();
        decode(&text[at + offset..at + length], decoded);
        let mut begin = 0;
        while begin < decoded.len() {
            let readable = run(&decoded[begin..], is_readable);
            if readable >= TEXT_LENGTH
                && !find_all(&decoded[begin..begin + readable], known, depth).is_empty()
            {
                let (mut start, mut end) = (offset + begin / 3 * 4, offset + (begin + readable).div_ceil(3) * 4);
                // What is left of the code beside its text is a few letters that belong to it.
                if start < 8 {
                    start = 0;
                }
                if end + 8 >= length {
                    end = length + run(&text[at + length..], |byte| byte == b'=').min(2);
                }
                finds.push(Find { start: at + start, end: at + end, kind: "base64" });
            }
            begin += readable;
            begin += run(&decoded[begin..], |byte| !is_readable(byte));
        }
    }
}

fn is_readable(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e | b'\n' | b'\r' | b'\t')
}

/// The bytes that `code` stands for. All of it must be letters of base64.
fn decode(code: &[u8], bytes: &mut Vec<u8>) {
    let value = |letter: &u8| u32::from(VALUES[usize::from(*letter)]);
    let mut groups = code.chunks_exact(4);
    bytes.reserve(code.len() / 4 * 3 + 3);
    for group in &mut groups {
        let bits = group.iter().fold(0, |bits, letter| bits << 6 | value(letter));
        let [_, first, second, third] = bits.to_be_bytes();
        bytes.extend_from_slice(&[first, second, third]);
    }
    let rest = groups.remainder();
    let bits = rest.iter().fold(0, |bits, letter| bits << 6 | value(letter)) << (6 * (4 - rest.len()));
    let whole = rest.len().saturating_sub(1);
    bytes.extend_from_slice(&bits.to_be_bytes()[1..=whole]);
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
