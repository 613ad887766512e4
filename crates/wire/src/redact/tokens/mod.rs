//! Tokens that are known by their shape: a prefix that their issuer chose so that they can be found, or an unusual length.
//!
//! Tokens are long words. So the text is searched for runs of their letters, which skips most of it, and only inside of a
//! run every place is compared with the table.

mod shape;
mod table;

use std::str;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use table::{BY_LENGTH, TOKENS};

use super::reading::{Hold, Text};
use super::{Find, near, random, run};

/// Shorter runs hold no token.
const RUN_LENGTH: usize = 12;

/// The rows of the table with their letters inside of them. Every pointer in a constant costs each start of the program a little,
/// and these would be hundreds.
static ROWS: [Row; TOKENS.len()] = {
    let mut rows = [Row { kind: Inline::of(""), shape: Inline::of("") }; TOKENS.len()];
    let mut at = 0;
    while at < rows.len() {
        rows[at] = Row { kind: Inline::of(TOKENS[at].0), shape: Inline::of(TOKENS[at].1) };
        at += 1;
    }
    rows
};

#[derive(Clone, Copy)]
struct Row {
    kind: Inline<32>,
    shape: Inline<64>,
}

/// A short text that holds its letters itself.
#[derive(Clone, Copy)]
struct Inline<const MOST: usize> {
    length: u8,
    letters: [u8; MOST],
}

impl<const MOST: usize> Inline<MOST> {
    /// A text that is too long for it stops the build.
    const fn of(text: &str) -> Inline<MOST> {
        let text = text.as_bytes();
        let mut letters = [0; MOST];
        let mut at = 0;
        while at < text.len() {
            letters[at] = text[at];
            at += 1;
        }
        Inline { length: text.len() as u8, letters }
    }

    fn bytes(&self) -> &[u8] {
        &self.letters[..usize::from(self.length)]
    }

    fn text(&self) -> &str {
        str::from_utf8(self.bytes()).unwrap_or_default()
    }
}

/// What is of the same use in a table as in a set: a bit for each beginning of three bytes.
const HEADS: [u64; 512] = {
    let mut heads = [0; 512];
    let mut row = 0;
    while row < TOKENS.len() {
        let shape = TOKENS[row].1.as_bytes();
        let head = head(shape[0], shape[1], shape[2]);
        heads[head / 64] |= 1 << (head % 64);
        row += 1;
    }
    let mut row = 0;
    while row < SIGNATURES.len() {
        let sign = SIGNATURES[row];
        let head = head(sign[0], sign[1], sign[2]);
        heads[head / 64] |= 1 << (head % 64);
        row += 1;
    }
    heads
};

/// What Azure writes near the end of its keys, so that they can be found.
const SIGNATURES: [&[u8; 4]; 14] = [
    b"+ABa", b"+ACR", b"+AEh", b"+AMC", b"+ARm", b"+ASb", b"+ASt", b"ACDb", b"AIoT", b"APIM", b"AZEG",
    b"AzCa", b"AzFu", b"AzSe",
];

/// Which bytes a run is made of.
const IN_RUN: [bool; 256] = {
    let mut in_run = [false; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        in_run[byte as usize] = byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'$' | b'+' | b'/' | b':');
        byte += 1;
    }
    in_run
};

const fn head(first: u8, second: u8, third: u8) -> usize {
    (first as usize & 31) << 10 | (second as usize & 31) << 5 | (third as usize & 31)
}

/// Finds tokens, and what only looks like a secret: where both it and another search find something, the other knows the kind.
pub(super) fn find(text: Text<'_>, finds: &mut Vec<Find>, guesses: &mut Vec<Find>) {
    let mut at = 0;
    // A run of this length that begins at `at` or soon after covers its last place, so most of a text is never looked at.
    while let Some(window) = text.get(at..at + RUN_LENGTH) {
        if let Some(gap) = window.iter().rposition(|byte| !IN_RUN[usize::from(*byte)]) {
            at += gap + 1;
            continue;
        }
        let end = at + run(&text[at..], |byte| IN_RUN[usize::from(byte)]);
        at = find_in_run(text, at, end, finds, guesses).max(end);
    }
    find_web_tokens(text, finds);
}

/// Looks at every place of a run, and returns how far there is nothing more to look at.
fn find_in_run(
    text: Text<'_>,
    start: usize,
    end: usize,
    finds: &mut Vec<Find>,
    guesses: &mut Vec<Find>,
) -> usize {
    let mut at = start + colour(text, start);
    let mut is_inside = at > 0 && at == start && is_word(text[at - 1]);
    while at + 3 <= end {
        let bytes = &text[at..at + 3];
        let head = head(bytes[0], bytes[1], bytes[2]);
        let mut found = None;
        if HEADS[head / 64] >> (head % 64) & 1 == 1 {
            found = with_head(text, at).or_else(|| signed(text, start, at));
        }
        // The letter of `\n` is no part of the word behind it.
        let is_escaped = at > 0 && text[at - 1] == b'\\' && matches!(bytes[0], b'n' | b'r' | b't');
        let is_begin = !is_inside && !is_escaped && is_word(bytes[0]);
        if found.is_none() && (is_begin || is_escaped) {
            found = of_length(text, at);
        }
        if found.is_none() && is_begin {
            found = of_unknown_issuer(text, at);
        }
        let guess = if found.is_none() && is_begin { near::find(text, at) } else { None };
        match found.or(guess) {
            Some(find) => {
                at = find.end.max(at + 1);
                is_inside = false;
            }
            None => {
                is_inside = is_word(bytes[0]) && !is_escaped;
                at += 1;
            }
        }
        finds.extend(found);
        guesses.extend(guess);
    }
    at
}

/// The length of the end of a colour's sequence (`\x1b[31m`) at the beginning of a run: what stands behind it is another word.
fn colour(text: Text<'_>, start: usize) -> usize {
    if !text[start.saturating_sub(8)..start].contains(&0x1b) {
        return 0;
    }
    let near = &text[start..text.len().min(start + 8)];
    let digits = run(near, |byte| byte.is_ascii_digit());
    if near.get(digits) == Some(&b'm') { digits + 1 } else { 0 }
}

/// A byte of a word. After one, no other word begins.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The token at `at`, whose shape begins with the three bytes there.
fn with_head(text: Text<'_>, at: usize) -> Option<Find> {
    let head = text.get(at..at + 3)?;
    let first = ROWS.partition_point(|row| &row.shape.bytes()[..3] < head);
    let rows = ROWS[first..].iter().take_while(|row| row.shape.bytes().starts_with(head));
    let mut rows = rows.filter(|row| {
        let prefix = shape::literal(row.shape.bytes());
        // So many `A` begin a token of somebody else.
        text[at..].starts_with(prefix)
            && !text[at..].starts_with(b":AAAAAAAAAA")
            && (is_unmistakable(prefix) || begins_word(text, at))
    });
    rows.find_map(|row| {
        Some(Find { start: at, end: shape::end(row.shape.bytes(), text, at)?, kind: row.kind.text() })
    })
}

/// Whether a prefix is like nothing else, wherever it stands. Others could be the end of a word (`task-…`).
fn is_unmistakable(prefix: &[u8]) -> bool {
    prefix.len() >= 6
        || [&b"gh"[..], b"gl", b"xox"].iter().any(|known| prefix.starts_with(known))
        || !prefix[0].is_ascii_alphanumeric()
}

/// The key with a signature at `at`, in the run from `start` on.
fn signed(text: Text<'_>, start: usize, at: usize) -> Option<Find> {
    const LEAST: usize = 30;
    let is_signature = SIGNATURES.iter().any(|sign| text[at..].starts_with(&sign[..]));
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    let before = || text[start..at].iter().rev().take_while(|byte| is_part(**byte)).count();
    let is_mixed = |key: &[u8]| {
        let has = |test: fn(&u8) -> bool| key.iter().any(test);
        has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
    };
    let length = if is_signature { before() } else { 0 };
    let behind = run(&text[(at + 4).min(text.len())..], is_part);
    let key = &text[at - length..at];
    let signs = run(key, |byte| !byte.is_ascii_alphanumeric());
    if length < LEAST || !(6..=10).contains(&behind) || !is_mixed(&key[signs..]) {
        return None;
    }
    let end = at + 4 + behind;
    let end = end + run(&text[end..], |byte| byte == b'=').min(2);
    Some(Find { start: at - length, end, kind: "azure-key" })
}

/// The token at `at` that is known by the lengths of its parts.
fn of_length(text: Text<'_>, at: usize) -> Option<Find> {
    let near = &text[at..text.len().min(at + 96)];
    let length = run(near, |byte| byte.is_ascii_alphanumeric());
    let mut rows = BY_LENGTH.iter().filter(|(first, _, _)| *first == length);
    let found = rows.find_map(|(_, kind, shape)| {
        Some(Find { start: at, end: shape::end(shape.as_bytes(), text, at)?, kind })
    });
    found.or_else(|| near.starts_with(b"00").then(|| okta(text, at))?)
}

/// `00` and exactly forty more that no number and no hash has.
fn okta(text: Text<'_>, at: usize) -> Option<Find> {
    const LENGTH: usize = 42;
    let near = &text[at..text.len().min(at + LENGTH + 1)];
    let is_token = run(near, is_word) == LENGTH && random::is_mixed(&near[..LENGTH]);
    is_token.then_some(Find { start: at, end: at + LENGTH, kind: "okta-token" })
}

/// How ids and hashes begin that are written like tokens.
const NO_ISSUERS: &[&str] = &[
    "sha",
    "md5",
    "h1",
    "toolu",
    "call",
    "msg",
    "req",
    "resp",
    "chatcmpl",
    "cmpl",
    "run",
    "thread",
    "asst",
    "file",
    "step",
    "batch",
    "evt",
    "id",
    "uid",
    "etag",
    "nonce",
    "hash",
    "digest",
    "integrity",
    "chunk",
    "index",
    "main",
    "vendor",
    "app",
    "page",
    "css",
    "js",
    "img",
    "v",
    "vs",
    "ft",
    "item",
    "rs",
    "fc",
    "ig",
    "session",
    "boundary",
];

/// A short name in lower case, `_` or `-`, and much that is random: most tokens of issuers that nobody has heard of yet.
fn of_unknown_issuer(text: Text<'_>, at: usize) -> Option<Find> {
    const NAME_LENGTH: usize = 24;
    const LEAST: usize = 28;
    const UUID_LENGTH: usize = 36;
    if !text[at].is_ascii_lowercase() {
        return None;
    }
    let near = &text[at..text.len().min(at + 200)];
    let near = &near[..run(near, is_word)];
    let part = near.iter().take(NAME_LENGTH).rposition(|byte| matches!(byte, b'_' | b'-'))? + 1;
    // The last separator behind nothing but names in lower case ends the name.
    let is_name =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    let name = near[..part].iter().position(|byte| !is_name(byte)).unwrap_or(part);
    let name = near[..name].iter().rposition(|byte| matches!(byte, b'_' | b'-'))? + 1;
    let first = &near[..run(near, |byte| byte.is_ascii_alphanumeric())];
    let body = &near[name..];
    let random = &body[..run(body, |byte| byte.is_ascii_alphanumeric())];
    // Such a long one in lower case is a hash, unless it has letters that no hash has.
    let is_both = || random.iter().any(u8::is_ascii_uppercase) && random::is_random_word(random);
    let is_lower = || random.len() >= 40 && random::is_random_word(random) && !random::is_hash(random);
    // GOV.UK and others name a key and number it twice.
    let numbers =
        near.len().checked_sub(2 * UUID_LENGTH + 1).map(|start| near[start..].split_at(UUID_LENGTH));
    if numbers.is_some_and(|(service, key)| random::is_uuid(service) && random::is_uuid(&key[1..])) {
        return Some(Find { start: at, end: at + near.len(), kind: "token" });
    }
    let is_token = random.len() >= LEAST
        && (random::is_mixed(random) || is_both() || is_lower())
        && first.iter().any(u8::is_ascii_lowercase)
        && !NO_ISSUERS.iter().any(|known| {
            first.strip_prefix(known.as_bytes()).is_some_and(|rest| rest.iter().all(u8::is_ascii_digit))
        });
    let end = || text.word(at, is_word, Hold::AtLeast(name + LEAST));
    is_token.then(|| Find { start: at, end: end(), kind: "token" })
}

/// Whether a word begins at `at`. After an escape (`\n`) and after a colour (`\x1b[31m`) one does.
fn begins_word(text: Text<'_>, at: usize) -> bool {
    let before = &text[at.saturating_sub(8)..at];
    let Some((&last, rest)) = before.split_last() else { return true };
    if text.joint(at).is_some() {
        return true;
    }
    !is_word(last)
        || (matches!(last, b'n' | b'r' | b't') && rest.last() == Some(&b'\\'))
        || (last == b'm' && rest.contains(&0x1b))
}

/// JSON web tokens: three parts of base64 between dots, the first of them an object. Encrypted ones have five.
fn find_web_tokens(text: Text<'_>, finds: &mut Vec<Find>) {
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("eyJ"));
    let mut done = 0;
    for start in FINDER.find_iter(&text) {
        if start < done {
            continue;
        }
        let end = text.word(start, |byte| byte == b'.' || is_word(byte), Hold::AtLeast(40));
        done = end;
        let mut parts = text[start..end].split(|byte| *byte == b'.').map(<[u8]>::len);
        let is_token = parts.next() >= Some(10) && parts.next() >= Some(10) && parts.next().is_some();
        if is_token {
            finds.push(Find { start, end, kind: "jwt" });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_shape_can_be_read() {
        let key = |shape: &'static str| {
            let literal = shape::literal(shape.as_bytes());
            (&literal[..3], usize::MAX - literal.len(), shape)
        };
        assert!(TOKENS.windows(2).all(|pair| key(pair[0].1) < key(pair[1].1)));
        for (kind, _) in TOKENS {
            assert!(kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{kind}");
        }
    }
}
