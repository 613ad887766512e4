//! Values that look made by a machine, with a word near them that says they are secret.
//!
//! [`super::labels`] reads assignments and believes the name, whatever the value is like. Here it is the other way round: a
//! value that no person would write is found first, and then what stands before it is read backwards, over quotes, signs,
//! line ends and words that only join: `<password>…`, `IDENTIFIED BY '…'`, `set -x TOKEN …`, `your password is now …`,
//! `{"field": "password", "text": "…"}`, `密码是 …`. So a way to write a label need not be known.

use super::commands::is_given_secret;
use super::labels::is_placeholder;
use super::names::{self, Meaning};
use super::random::{is_hash, is_likely, is_mixed, is_random_word, is_unlike_words, is_uuid};
use super::reading::{Hold, Text};
use super::{Find, columns, run};

/// Shorter values may be names with a number.
const LEAST: usize = 12;

/// How far before a value its label is looked for.
const REACH: usize = 120;

/// So many words may stand between a label and its value.
const MOST_WORDS: usize = 7;

/// So much of a value decides what it is.
const DECIDING_LENGTH: usize = 96;

/// The value that begins at `at`, if it looks made by a machine and is labelled.
pub(super) fn find(text: Text<'_>, at: usize) -> Option<Find> {
    let near = &text[at..text.len().min(at + DECIDING_LENGTH)];
    let word = &near[..run(near, |byte| byte.is_ascii_alphanumeric() || b"_-+/.=~".contains(&byte))];
    if word.len() < LEAST || is_placeholder(word) {
        return None;
    }
    // Where a label says that it is secret, it need not look so much like chance.
    let is_random = is_random_word(word);
    if !is_random && !super::is_random(word) {
        return None;
    }
    if !(is_random || is_likely(word)) || is_in_path(text, at, word) {
        return of_issuer(text, at, word).or_else(|| in_link(text, at, word));
    }
    // Code goes on behind a name, and the rest of a line before is no part of a word.
    let first = &text[at..text.first_line(at, at + word.len())];
    if matches!(text.get(at + word.len()), Some(b'(' | b'['))
        || (first.len() < word.len() && first.contains(&b'/'))
    {
        return None;
    }
    let before = &text[at.saturating_sub(REACH)..at];
    let kind = match label(before) {
        // A sentence that speaks of a secret may number something else.
        Some((Meaning::Secret(kind), is_far)) if !(is_far && is_uuid(word)) => kind,
        Some((Meaning::Perhaps(kind), _)) if is_mixed(word) && !is_hash(word) => kind,
        Some(_) | None => {
            let is_known = || {
                columns::are_secret(text, at, word.len())
                    || is_given_secret(text.line_before(at, REACH))
                    || (is_mixed(word)
                        && (is_announced(text, at, word.len()) || is_judged(text, at + word.len())))
            };
            if !is_random || is_hash(word) || !is_known() {
                return of_issuer(text, at, word);
            }
            "password"
        }
    };
    let is_part = |byte: u8| byte.is_ascii_graphic() && !b"\"'`,;&|()<>[]{}\\".contains(&byte);
    let end = text.word(at, is_part, Hold::AtLeast(LEAST));
    let end = end - text[at..end].iter().rev().take_while(|byte| b".:?!".contains(byte)).count();
    Some(Find { start: at, end, kind })
}

/// What is assigned to the name of an issuer, if a token may look so: `algolia: '…'`, `HEROKU = "…"`.
fn of_issuer(text: Text<'_>, at: usize, word: &[u8]) -> Option<Find> {
    const LEAST: usize = 15;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+/=".contains(&byte);
    let word = &word[..run(word, is_part)];
    let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
    let before = &text[at.saturating_sub(REACH)..at];
    // Most words are assigned to nothing.
    let near = before.iter().rev().take(4).find(|byte| !b" \"'`\\/".contains(byte));
    if word.len() < LEAST || !matches!(near, Some(b'=' | b':' | b'>')) {
        return None;
    }
    let glue = Glue::before(before);
    if digits == word.len()
        || digits == word.len()
        || !glue.is_assignment
        || glue.lines > 0
        || glue.length > 8
    {
        return None;
    }
    let (before, signs) = before.split_at(before.len() - glue.length);
    let length = before.iter().rev().take_while(|byte| is_name(**byte)).count();
    let (left, name) = before.split_at(before.len() - length);
    let names = [name, without_signs(left, name)].map(names::trimmed);
    // In a list of what was installed a checksum stands behind a name.
    let is_checksum =
        is_hash(word) && !glue.is_quoted && !signs.contains(&b'=') && !names::is_label(names[0]);
    let has = |test: fn(&u8) -> bool| word.iter().any(test);
    let is_token = is_random_word(word)
        || is_hash(word)
        || is_unlike_words(word)
        || digits * 6 > word.len()
        || (digits > 0 && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase))
        || (digits > 0 && glue.is_quoted && word.iter().all(u8::is_ascii_alphanumeric));
    let end = || text.word(at, is_part, Hold::AtLeast(LEAST));
    (is_token && !is_checksum && names.into_iter().any(names::is_of_issuer)).then(|| Find {
        start: at,
        end: end(),
        kind: "token",
    })
}

/// A name without the end of a colour (`\x1b[31m`) or of an escape (`\n`) that stands before it.
fn without_signs<'n>(left: &[u8], name: &'n [u8]) -> &'n [u8] {
    let digits = run(name, |byte| byte.is_ascii_digit());
    match left.last() {
        Some(b'[') if name.get(digits) == Some(&b'm') => &name[digits + 1..],
        Some(b'\\') if matches!(name.first(), Some(b'n' | b'r' | b't')) => &name[1..],
        Some(_) | None => name,
    }
}

/// What stands in a path behind a label: `/reset-password/…`, `s/DB_PASSWORD/…/`.
fn in_link(text: Text<'_>, at: usize, word: &[u8]) -> Option<Find> {
    const LEAST: usize = 16;
    let path = text[..at].strip_suffix(b"/")?;
    let path = &path[path.len().saturating_sub(48)..];
    let word = &word[..run(word, |byte| byte != b'/' && byte != b'.')];
    let label = &path[path.len() - path.iter().rev().take_while(|byte| is_name(**byte)).count()..];
    let is_secret = word.len() >= LEAST
        && !label.is_empty()
        && is_mixed(word)
        && !is_hash(word)
        && !matches!(text.get(at + word.len()), Some(b'.'))
        && matches!(names::meaning(names::trimmed(label), b"", true), Some(Meaning::Secret(_)));
    is_secret.then_some(Find { start: at, end: at + word.len(), kind: "token" })
}

/// Whether the value stands alone on its line, and the sentence above it says that it is one: `Your new token:`.
fn is_announced(text: Text<'_>, at: usize, length: usize) -> bool {
    const SENTENCE: usize = 200;
    let line = text.line_before(at, REACH);
    let is_end = matches!(text.get(at + length), None | Some(b'\n' | b'\r' | b'"' | b'\\'))
        || text.is_wrapped(at + length);
    let is_joint = |word: &[u8]| word.is_empty() || names::joins(word);
    let mut words = line.split(|byte| !byte.is_ascii_alphanumeric());
    if !is_end || !words.all(is_joint) {
        return false;
    }
    let above = text[at.saturating_sub(REACH + SENTENCE)..at - line.len()].trim_ascii_end();
    let sentence = &above[memchr::memrchr(b'\n', above).map_or(0, |newline| newline + 1)..];
    let is_sentence =
        sentence.len() <= SENTENCE && sentence.last().is_some_and(|last| b".:!)".contains(last));
    let mut words = sentence.split(|byte| !is_name(*byte));
    let mut left: &[u8] = b"";
    is_sentence
        && words.any(|word| {
            let found = matches!(names::meaning(names::trimmed(word), left, false), Some(Meaning::Secret(_)))
                || (left.ends_with(b"API ") && word.starts_with(b"key"));
            left = if word == b"API" { b"API " } else { b"" };
            found
        })
}

/// Whether what stands behind a value says what it was taken for: `'…' is not a valid API key`.
fn is_judged(text: Text<'_>, end: usize) -> bool {
    const WORDS: usize = 40;
    let behind = &text[end..text.len().min(end + WORDS)];
    let behind = &behind[run(behind, |byte| b"\"'`".contains(&byte))..];
    let verdicts = [&b" is not a valid "[..], b" is an invalid ", b" is not the ", b" is the "];
    let Some(rest) = verdicts.iter().find_map(|verdict| behind.strip_prefix(*verdict)) else { return false };
    let rest = &rest[..run(rest, |byte| byte != b'\n')];
    std::str::from_utf8(rest).is_ok_and(|rest| names::kind_of_field(rest).is_some())
}

/// Whether the word at `at` is only a part of a path or of a name.
fn is_in_path(text: Text<'_>, at: usize, word: &[u8]) -> bool {
    // A key in base64 may begin with a sign of paths.
    let is_quoted = |at: usize| at.checked_sub(1).is_some_and(|before| b"\"'= ".contains(&text[before]));
    let is_padded = word.ends_with(b"=");
    match at.checked_sub(1).map(|before| text[before]) {
        Some(b'.' | b'~' | b'%' | b'\\') => true,
        Some(b'+') => !is_quoted(at - 1),
        Some(b'/') if is_quoted(at - 1) && is_padded => false,
        // `user/value` is none.
        Some(b'/') => {
            let before = &text[at.saturating_sub(48)..at - 1];
            let user = before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            let is_user = before.len() == user
                || !matches!(
                    before[before.len() - user - 1],
                    b'/' | b'.' | b'-' | b'_' | b'~' | b'@' | b'+' | b'%'
                );
            !is_user || user == 0 || !is_mixed(word)
        }
        Some(_) | None => false,
    }
}

/// What the words before a value say about it, and whether others stand between.
fn label(before: &[u8]) -> Option<(Meaning, bool)> {
    let mut rest = before;
    let mut words = 0;
    let mut lines = 0;
    // Words that join a label to its value may always stand between; others only behind a word for a password.
    let mut is_far = false;
    loop {
        let glue = Glue::before(rest);
        rest = &rest[..rest.len() - glue.length];
        lines += glue.lines;
        if lines > 2 {
            return None;
        }
        if let Some(meaning) = names::of_other_script(rest) {
            return Some((meaning, is_far));
        }
        let length = rest.iter().rev().take_while(|byte| is_name(**byte)).count();
        let (left, word) = rest.split_at(rest.len() - length);
        let is_option = word.starts_with(b"-");
        let word = names::trimmed(word);
        if word.is_empty() {
            // An arrow or a dash.
            if length == 0 {
                return None;
            }
            rest = left;
            continue;
        }
        let meaning = match glue.is_call && (glue.is_quoted || words > 0) && names::is_login(word) {
            true => Some(Meaning::Secret("password")),
            false => names::meaning(word, left, is_option || (glue.is_assignment && words == 0)),
        };
        match meaning {
            Some(meaning @ Meaning::Secret("password")) => return Some((meaning, is_far)),
            Some(meaning) if !is_far => return Some((meaning, is_far)),
            Some(_) | None => {}
        }
        // A tag that says nothing says no less of what stands before it: `<dt>Key</dt><dd>`.
        let is_tag = (left.ends_with(b"<") || left.ends_with(b"</")) && before.get(rest.len()) == Some(&b'>');
        words += 1;
        if words > MOST_WORDS || lines > 1 {
            return None;
        }
        if !is_tag && !names::joins(word) {
            // A sentence that ended, a list and another assignment have nothing to do with this value.
            let is_word = |byte: &u8| {
                byte.is_ascii_alphabetic() || *byte == b'-' || (*byte == b'.' && glue.is_quoted && words == 1)
            };
            if glue.ends_sentence || !word.iter().all(is_word) || word.len() > 14 || lines > 0 {
                return None;
            }
            // A host says for what the label is.
            is_far |= !word.contains(&b'.');
        }
        rest = left;
    }
}

/// Signs between two words.
#[derive(Default)]
struct Glue {
    length: usize,
    lines: usize,
    is_assignment: bool,
    is_call: bool,
    is_quoted: bool,
    ends_sentence: bool,
}

/// Signs beyond ASCII that stand between a label and its value.
const WIDE_SIGNS: &[&str] = &[
    "：", "＝", "，", "（", "「", "“", "”", "『", "【", "→", "—", "–", "│", "┃", "║", "»", "«", "\u{a0}",
    "\u{202f}", "、", "è", "é", "➜", "➔", "⇒", "…", "·",
];

impl Glue {
    fn before(text: &[u8]) -> Glue {
        const MOST_SIGNS: usize = 48;
        let mut glue = Glue::default();
        while glue.length < MOST_SIGNS {
            let rest = &text[..text.len() - glue.length];
            match rest.last() {
                Some(b'\n') => glue.lines += 1,
                // As in a table of names and values.
                Some(b' ') if rest.ends_with(b"    ") => glue.is_assignment = true,
                Some(b'=' | b':') => glue.is_assignment = true,
                Some(b'(') => glue.is_call = true,
                Some(b';') => glue.ends_sentence = true,
                Some(b'.') if glue.length > 0 => glue.ends_sentence = true,
                Some(b'"' | b'\'') => glue.is_quoted = true,
                Some(
                    b' ' | b'\t' | b'\r' | b'`' | b'>' | b'<' | b'|' | b',' | b'[' | b'{' | b'/' | b'\\',
                ) => {}
                Some(
                    b')' | b']' | b'}' | b'!' | b'*' | b'#' | b'$' | b'@' | b'+' | b'~' | b'?' | b'%' | b'^'
                    | b'&',
                ) => {}
                Some(0x80..) => {
                    let Some(sign) = WIDE_SIGNS.iter().find(|sign| rest.ends_with(sign.as_bytes())) else {
                        break;
                    };
                    glue.is_assignment |= matches!(*sign, "：" | "＝");
                    glue.length += sign.len() - 1;
                }
                Some(_) | None => break,
            }
            glue.length += 1;
        }
        glue
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}
