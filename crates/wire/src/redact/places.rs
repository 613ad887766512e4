//! Secrets that are known by the place they stand in: a URL, a key file, a header.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::encoded::{is_base64, is_login};
use super::labels::is_placeholder;
use super::reading::{Hold, Text};
use super::{Find, is_random, random, run};

struct Finders {
    putty: Finder<'static>,
    key_type: Finder<'static>,
    pem: Finder<'static>,
    pem_end: Finder<'static>,
    url: Finder<'static>,
    bearer: Finder<'static>,
    basic: Finder<'static>,
}

static FINDERS: LazyLock<Finders> = LazyLock::new(|| Finders {
    putty: Finder::new("Private-Lines:"),
    key_type: Finder::new("\"kty"),
    pem: Finder::new("-----BEGIN "),
    pem_end: Finder::new("-----END "),
    url: Finder::new("://"),
    bearer: Finder::new("earer "),
    basic: Finder::new("asic "),
});

pub(super) fn find(text: Text<'_>, finds: &mut Vec<Find>) {
    find_private_keys(text, finds);
    find_putty_keys(text, finds);
    find_web_keys(text, finds);
    find_url_passwords(text, finds);
    find_bearer_tokens(text, finds);
    find_logins(text, finds);
}

/// From `BEGIN … PRIVATE KEY` to its `END`; without one, to the end of the text: the rest may well be the key. An `END`
/// without a beginning, as in the last lines of an output, takes the lines before it that can be part of a key.
fn find_private_keys(text: Text<'_>, finds: &mut Vec<Find>) {
    let mut done = 0;
    for start in FINDERS.pem.find_iter(&text) {
        if start < done || !is_private_key(&text[start + 11..]) {
            continue;
        }
        find_ends_of_keys(text, done, start, finds);
        let end = FINDERS.pem_end.find(&text[start..]).map_or(text.len(), |at| end_of_key(text, start + at));
        finds.push(Find { start, end, kind: "private-key" });
        done = end;
    }
    find_ends_of_keys(text, done, text.len(), finds);
}

/// Whether the words behind `BEGIN` or `END` say that it is a private key.
fn is_private_key(title: &[u8]) -> bool {
    let title = &title[..title.len().min(53)];
    let is_title = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ';
    let title = &title[..run(title, is_title)];
    title.ends_with(b"PRIVATE KEY") || title.ends_with(b"PRIVATE KEY BLOCK")
}

/// Where the line of an `END` that begins at `at` ends.
fn end_of_key(text: Text<'_>, at: usize) -> usize {
    let title = at + 9;
    let title = title + run(&text[title..], |byte| byte != b'-' && byte != b'\n');
    title + run(&text[title..], |byte| byte == b'-')
}

/// Ends of keys in `from..to`, where no beginning stands.
fn find_ends_of_keys(text: Text<'_>, from: usize, to: usize, finds: &mut Vec<Find>) {
    let mut done = from;
    for at in FINDERS.pem_end.find_iter(&text[from..to]).map(|at| from + at) {
        if !is_private_key(&text[at + 9..]) {
            continue;
        }
        let start = start_of_key(text, done, at);
        let end = end_of_key(text, at);
        finds.push(Find { start, end, kind: "private-key" });
        done = end;
    }
}

/// Where the lines of a key that ends at `end` begin, not before `from`.
fn start_of_key(text: Text<'_>, from: usize, end: usize) -> usize {
    const LINE_LENGTH: usize = 2_000;
    let mut start = end;
    while start > from {
        // What stands between two lines: their end, written as it is or as an escape, and quotes.
        let gap = |byte: &u8| byte.is_ascii_whitespace() || b"\\\"',+".contains(byte);
        let near = &text[from.max(start.saturating_sub(LINE_LENGTH))..start];
        let spaces = near.iter().rev().take_while(|byte| gap(byte)).count();
        let near = &near[..near.len() - spaces];
        let length = near.iter().rev().take_while(|byte| is_base64(**byte) || **byte == b'=').count();
        let line = &near[near.len() - length..];
        // `n` of an escaped line end is no part of the line before it, but may be taken for one.
        let is_line = match length {
            0 => false,
            1..16 => start == end || line == b"n",
            16.. => length > 40 || is_random(line),
        };
        if !is_line || (start != end && spaces == 0) {
            break;
        }
        start -= spaces + length;
    }
    start
}

/// The lines of a key that PuTTY keeps, and what signs them.
fn find_putty_keys(text: Text<'_>, finds: &mut Vec<Find>) {
    for at in FINDERS.putty.find_iter(&text) {
        let start = at + FINDERS.putty.needle().len();
        let is_part = |byte: u8| is_base64(byte) || byte.is_ascii_whitespace() || b"=\\:".contains(&byte);
        let end = start + run(&text[start..], is_part);
        if end - start > 24 {
            finds.push(Find { start, end, kind: "private-key" });
        }
    }
}

/// The private numbers of a JSON web key: `{"kty": "RSA", "d": "…"}`.
fn find_web_keys(text: Text<'_>, finds: &mut Vec<Find>) {
    const REACH: usize = 4096;
    const NUMBERS: [&[u8]; 7] = [b"d", b"p", b"q", b"dp", b"dq", b"qi", b"k"];
    let mut done = 0;
    for at in FINDERS.key_type.find_iter(&text) {
        let from = done.max(at.saturating_sub(REACH));
        let to = text.len().min(at + REACH);
        for colon in memchr::memchr_iter(b':', &text[from..to]).map(|colon| from + colon) {
            let name = text[from..colon].trim_ascii_end();
            let Some(name) = name.strip_suffix(b"\"") else { continue };
            let name =
                &name[name.len() - name.iter().rev().take(3).take_while(|byte| **byte != b'"').count()..];
            let start = colon + 1 + run(&text[colon + 1..to], |byte| byte == b' ' || byte == b'"');
            let end = start + run(&text[start..], |byte| is_base64(byte) || byte == b'=');
            if NUMBERS.contains(&name) && end - start >= 20 {
                finds.push(Find { start, end, kind: "private-key" });
            }
        }
        done = to;
    }
}

/// `scheme://user:password@host`.
fn find_url_passwords(text: Text<'_>, finds: &mut Vec<Find>) {
    const USER_LENGTH: usize = 512;
    const TOKEN_LENGTH: usize = 16;
    for at in FINDERS.url.find_iter(&text) {
        let start = at + 3;
        let near = &text[start..text.len().min(start + USER_LENGTH)];
        let authority =
            &near[..run(near, |byte| !byte.is_ascii_whitespace() && !b"/?#\"'<>`\\".contains(&byte))];
        let Some(at_sign) = memchr::memrchr(b'@', authority) else { continue };
        // A token may stand in the place of the user: `https://token@host`, `https://token:x-oauth-basic@host`.
        let user = &authority[..run(&authority[..at_sign], |byte| byte != b':')];
        if user.len() >= TOKEN_LENGTH && random::is_random_word(user) && !is_placeholder(user) {
            finds.push(Find { start, end: start + user.len(), kind: "url-password" });
        }
        let Some(colon) = memchr::memchr(b':', &authority[..at_sign]) else { continue };
        let password = &authority[colon + 1..at_sign];
        // Where both are numbers of one length, both are halves of a key.
        let is_half = |part: &[u8]| part.len() >= 8 && part.iter().all(u8::is_ascii_hexdigit);
        if is_half(user) && is_half(password) && user.len() == password.len() {
            finds.push(Find { start, end: start + user.len(), kind: "url-password" });
        }
        // A port at the end of a line, and an address at the beginning of the next.
        let digits = start + colon + 1 + run(password, |byte| byte.is_ascii_digit());
        if text.is_wrapped(digits) {
            continue;
        }
        // `guest:guest` is what everybody has.
        let is_default = password == user && password.iter().all(u8::is_ascii_lowercase);
        if !password.is_empty() && !is_placeholder(password) && !is_default {
            finds.push(Find { start: start + colon + 1, end: start + at_sign, kind: "url-password" });
        }
    }
}

/// `Bearer` and something that only a machine would write.
fn find_bearer_tokens(text: Text<'_>, finds: &mut Vec<Find>) {
    for at in FINDERS.bearer.find_iter(&text) {
        let start = at + 6;
        let is_bearer = matches!(text.get(at.wrapping_sub(1)), Some(b'B' | b'b'));
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._~+/=-".contains(&byte);
        let end = text.word(start, is_part, Hold::AtLeast(12));
        if is_bearer && end - start >= 12 && is_random(&text[start..end]) {
            finds.push(Find { start, end, kind: "bearer-token" });
        }
    }
}

/// `Basic` and a user and password in base64.
fn find_logins(text: Text<'_>, finds: &mut Vec<Find>) {
    for at in FINDERS.basic.find_iter(&text) {
        let start = at + 5;
        let is_basic = matches!(text.get(at.wrapping_sub(1)), Some(b'B' | b'b'));
        let end = text.word(start, |byte| is_base64(byte) || byte == b'=', Hold::AtLeast(8));
        if is_basic && is_login(&text[start..end]) {
            finds.push(Find { start, end, kind: "authorization" });
        }
    }
}
