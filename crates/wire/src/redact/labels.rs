//! Secrets that are known by the name before them: `password=…`, `"apiKey": "…"`, `DEPLOY_TOKEN=…`, `--secret …`,
//! `Authorization: …`.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::{Find, MARK, is_random, run};

/// Names longer than this are no names.
const NAME_LENGTH: usize = 64;

/// So much of a value decides whether it is one; only then is its end looked for. Without this, a text of nothing but
/// labels would be read once for each of them.
const DECIDING_LENGTH: usize = 512;

/// How much a name says about its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Passwords may look like anything.
    Password,
    /// Tokens and keys look made by a machine; without that the name means something else (`sort_key=name`).
    Token,
    /// A header's value is secret behind its scheme.
    Header,
}

/// How a name ends that says its value is secret. Compared in lower case, with `-` and `.` as `_`.
const ENDINGS: &[(&str, Class)] = &[
    ("password", Class::Password),
    ("passwd", Class::Password),
    ("passphrase", Class::Password),
    ("_pwd", Class::Password),
    ("secret", Class::Password),
    ("token", Class::Token),
    ("api_key", Class::Token),
    ("apikey", Class::Token),
    ("_key", Class::Token),
    ("accesskey", Class::Token),
    ("secretkey", Class::Token),
    ("_pat", Class::Token),
    ("credentials", Class::Token),
];

/// Headers that carry a secret, in the same spelling.
const HEADERS: [&str; 7] = [
    "authorization",
    "proxy_authorization",
    "x_api_key",
    "api_key",
    "private_token",
    "x_auth_token",
    "x_access_token",
];

/// What stands before the secret in a header.
const SCHEMES: [&str; 6] = ["bearer ", "basic ", "token ", "digest ", "apikey ", "negotiate "];

/// Words that follow an option's name when somebody talks about it.
const PROSE: [&str; 26] = [
    "option",
    "options",
    "flag",
    "argument",
    "arguments",
    "value",
    "values",
    "parameter",
    "required",
    "requires",
    "must",
    "cannot",
    "should",
    "with",
    "from",
    "that",
    "this",
    "when",
    "and",
    "for",
    "the",
    "not",
    "was",
    "has",
    "but",
    "can",
];

pub(super) fn find(text: &[u8], finds: &mut Vec<Find>) {
    // What stands inside a find is not looked at again.
    let mut done = 0;
    for at in memchr::memchr2_iter(b'=', b':', text) {
        if at < done {
            continue;
        }
        if let Some(found) = assigned(text, at) {
            done = found.end;
            finds.push(found);
        }
    }
    static FLAG: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("--"));
    for at in FLAG.find_iter(text) {
        if let Some(found) = flagged(text, at + 2) {
            finds.push(found);
        }
    }
}

/// `name=value`, `name = "value"`, `"name": "value"`, `Header: value`.
fn assigned(text: &[u8], at: usize) -> Option<Find> {
    let is_colon = text[at] == b':';
    // Comparisons, arrows, paths and URLs are no assignments.
    if matches!(text.get(at + 1), Some(b'=' | b'>' | b':' | b'/')) {
        return None;
    }
    let (name, is_quoted_name) = name_before(text, at)?;
    let class = class(name, is_colon)?;
    let spaces = run(&text[at + 1..], |byte| byte == b' ' || byte == b'\t');
    if class == Class::Header {
        return header(text, at + 1 + spaces);
    }
    let start = at + 1 + spaces;
    let is_spaced = spaces > 0 || text.get(at.wrapping_sub(1)) == Some(&b' ');
    let is_quoted = opening_quote(text, start).is_some();
    let whole = start;
    let (start, end) = beginning_of_value(text, start)?;
    let found = &text[start..end];
    let is_written_out = if is_quoted {
        true
    } else if is_colon {
        // Without quotes a colon is prose or a type, unless the value says otherwise and ends its line.
        !is_quoted_name && spaces > 0 && found.len() >= 8 && is_random(found) && ends_line(text, end)
    } else {
        !is_spaced && !is_code(name, found, text.get(end).copied())
    };
    let (start, end) = (is_written_out && is_secret(class, found)).then(|| value(text, whole))??;
    Some(Find { start, end, kind: class.kind() })
}

/// `--name value`. With a `=` it is an assignment.
fn flagged(text: &[u8], at: usize) -> Option<Find> {
    let length = run(&text[at..text.len().min(at + NAME_LENGTH)], is_name);
    let name = &text[at..at + length];
    let class = class(name, false)?;
    if text.get(at + length) != Some(&b' ') {
        return None;
    }
    let whole = at + length + 1;
    let (start, end) = beginning_of_value(text, whole)?;
    let found = &text[start..end];
    let is_prose = PROSE.iter().any(|word| found.eq_ignore_ascii_case(word.as_bytes()));
    let is_value = !is_prose && !found.starts_with(b"-") && !is_code(name, found, text.get(end).copied());
    let (start, end) = (is_value && is_secret(class, found)).then(|| value(text, whole))??;
    Some(Find { start, end, kind: class.kind() })
}

/// The secret in a header's value, which begins at `at`.
fn header(text: &[u8], at: usize) -> Option<Find> {
    let at = at + opening_quote(text, at).unwrap_or(0);
    let near = &text[at..text.len().min(at + 16)];
    let scheme = SCHEMES.iter().find(|scheme| {
        near.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme.as_bytes()))
    });
    let start = at + scheme.map_or(0, |scheme| scheme.len());
    let is_part = |byte: u8| !byte.is_ascii_whitespace() && !b"\"'`\\,;<>".contains(&byte);
    let found = &text[start..text.len().min(start + DECIDING_LENGTH)];
    let found = &found[..run(found, is_part)];
    // Without a scheme it has to look like a secret: "Authorization: required" is a message.
    let is_secret = found.len() >= 6 && (scheme.is_some() || is_random(found)) && !is_placeholder(found);
    is_secret.then(|| Find { start, end: start + run(&text[start..], is_part), kind: "authorization" })
}

/// The name that ends before `at`, spelled for comparison, and whether it stands in quotes.
fn name_before(text: &[u8], at: usize) -> Option<(&[u8], bool)> {
    let before = &text[at.saturating_sub(NAME_LENGTH)..at];
    let before = before.strip_suffix(b" ").unwrap_or(before);
    let unquoted = before.strip_suffix(b"\"").or_else(|| before.strip_suffix(b"'"));
    let is_quoted = unquoted.is_some();
    let before = unquoted.unwrap_or(before);
    let before = before.strip_suffix(b"\\").unwrap_or(before);
    // Most names are no labels; their last letter tells, and spares the rest.
    if !matches!(before.last()?.to_ascii_lowercase(), b'd' | b'e' | b't' | b'n' | b'y' | b's') {
        return None;
    }
    let length = before.iter().rev().position(|byte| !is_name(*byte)).unwrap_or(before.len());
    (length > 0).then(|| (&before[before.len() - length..], is_quoted))
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// A letter as names are compared: case and kind of joint do not matter.
fn spell(byte: &u8) -> u8 {
    match byte {
        b'-' | b'.' => b'_',
        byte => byte.to_ascii_lowercase(),
    }
}

fn spelled(name: &[u8]) -> Vec<u8> {
    name.iter().map(spell).collect()
}

fn class(name: &[u8], is_colon: bool) -> Option<Class> {
    let name = &name[run(name, |byte| matches!(byte, b'-' | b'_' | b'.'))..];
    let ends_like = |ending: &str| {
        let tail = name.len().checked_sub(ending.len()).map(|at| &name[at..]);
        tail.is_some_and(|tail| tail.iter().map(spell).eq(ending.bytes()))
    };
    if is_colon && HEADERS.iter().any(|header| header.len() == name.len() && ends_like(header)) {
        return Some(Class::Header);
    }
    ENDINGS.iter().find(|(ending, _)| ends_like(ending)).map(|(_, class)| *class)
}

impl Class {
    fn kind(self) -> &'static str {
        match self {
            Class::Password => "password",
            Class::Token | Class::Header => "token",
        }
    }
}

fn is_secret(class: Class, found: &[u8]) -> bool {
    let looks_right = match class {
        Class::Password | Class::Header => found.len() >= 3,
        Class::Token => {
            found.len() >= 8 && is_random(found) && !found.starts_with(b"/") && !found.starts_with(b"~")
        }
    };
    looks_right && !is_placeholder(found)
}

/// As much of the value at `at` as decides.
fn beginning_of_value(text: &[u8], at: usize) -> Option<(usize, usize)> {
    value(&text[..text.len().min(at + DECIDING_LENGTH)], at)
}

/// Where the value at `at` begins and ends: what stands in quotes, or one word.
pub(super) fn value(text: &[u8], at: usize) -> Option<(usize, usize)> {
    if let Some(opening) = opening_quote(text, at) {
        let start = at + opening;
        let quote = text[start - 1];
        let is_escaped = opening == 2;
        let mut end = start;
        while let Some(&byte) = text.get(end) {
            match byte {
                b'\n' => break,
                // An escape hides what follows, unless the quote itself was written with one.
                b'\\' if is_escaped && text.get(end + 1) == Some(&quote) => break,
                b'\\' if !is_escaped => end += 1,
                byte if byte == quote => break,
                _ => {}
            }
            end += 1;
        }
        return Some((start, end.min(text.len())));
    }
    let word = text.get(at..)?;
    if word.starts_with(MARK) {
        return None;
    }
    let length = run(word, |byte| !byte.is_ascii_whitespace() && !b"\"'`,;&|()<>[]{}\\".contains(&byte));
    (length > 0).then_some((at, at + length))
}

/// The length of a quote at `at`, with its escape.
fn opening_quote(text: &[u8], at: usize) -> Option<usize> {
    match (text.get(at), text.get(at + 1)) {
        (Some(b'"' | b'\''), _) => Some(1),
        (Some(b'\\'), Some(b'"' | b'\'')) => Some(2),
        _ => None,
    }
}

fn ends_line(text: &[u8], at: usize) -> bool {
    matches!(text.get(at), None | Some(b'\n' | b'\r'))
}

/// Whether it only says where a secret comes from, or that there is none.
pub(super) fn is_placeholder(found: &[u8]) -> bool {
    const NOTHING: [&str; 8] = ["none", "null", "nil", "true", "false", "undefined", "string", "str"];
    found.starts_with(MARK)
        || found.starts_with(b"$")
        || found.starts_with(b"{")
        || found.starts_with(b"<")
        || found.starts_with(b"%")
        || found.iter().all(|byte| matches!(byte, b'*' | b'x' | b'X' | b'.' | b'-' | b'_' | b'?'))
        || NOTHING.iter().any(|word| found.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether an unquoted value is an expression: a call, an index, or a name much like that of the label.
fn is_code(name: &[u8], found: &[u8], next: Option<u8>) -> bool {
    if matches!(next, Some(b'(' | b'[')) {
        return true;
    }
    let found = spelled(found);
    let is_identifier = found.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    found == name
        || (is_identifier
            && found.contains(&b'_')
            && ENDINGS.iter().any(|(ending, _)| found.ends_with(ending.as_bytes())))
}
