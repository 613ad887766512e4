//! Values that look made by a machine, with a word near them that says they are secret.
//!
//! [`super::labels`] reads assignments and believes the name, whatever the value is like. Here it is the other way round: a
//! value that no person would write is found first, and then what stands before it is read backwards, over quotes, signs,
//! line ends and words that only join: `<password>…`, `IDENTIFIED BY '…'`, `set -x TOKEN …`, `your password is now …`,
//! `{"field": "password", "text": "…"}`, `密码是 …`. So a way to write a label need not be known.

use super::commands::is_given_secret;
use super::labels::is_placeholder;
use super::names::{self, Meaning};
use super::random::{is_hash, is_mixed, is_random_word};
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
    if word.len() < LEAST || !is_random_word(word) || is_placeholder(word) || is_in_path(text, at, word) {
        return None;
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
        Some(Meaning::Secret(kind)) => kind,
        Some(Meaning::Perhaps(kind)) if is_mixed(word) && !is_hash(word) => kind,
        Some(Meaning::Perhaps(_)) | None => {
            let is_known =
                || columns::are_secret(text, at, word.len()) || is_given_secret(text.line_before(at, REACH));
            (!is_hash(word) && is_known()).then_some("password")?
        }
    };
    let is_part = |byte: u8| byte.is_ascii_graphic() && !b"\"'`,;&|()<>[]{}\\".contains(&byte);
    let end = text.word(at, is_part, Hold::AtLeast(LEAST));
    let end = end - text[at..end].iter().rev().take_while(|byte| b".:?!".contains(byte)).count();
    Some(Find { start: at, end, kind })
}

/// Whether the word at `at` is only a part of a path or of a name.
fn is_in_path(text: Text<'_>, at: usize, word: &[u8]) -> bool {
    match at.checked_sub(1).map(|before| text[before]) {
        Some(b'.' | b'~' | b'+' | b'%' | b'\\') => true,
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

/// What the words before a value say about it.
fn label(before: &[u8]) -> Option<Meaning> {
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
            return Some(meaning);
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
        let meaning = match glue.is_call && glue.is_quoted && names::is_login(word) {
            true => Some(Meaning::Secret("password")),
            false => names::meaning(word, left, is_option || (glue.is_assignment && words == 0)),
        };
        match meaning {
            Some(Meaning::Secret("password")) => return meaning,
            Some(_) if !is_far => return meaning,
            Some(_) | None => {}
        }
        words += 1;
        if words > MOST_WORDS || lines > 1 {
            return None;
        }
        if !names::joins(word) {
            // A sentence that ended, a list and another assignment have nothing to do with this value.
            if glue.ends_sentence || !word.iter().all(u8::is_ascii_alphabetic) || word.len() > 14 || lines > 0
            {
                return None;
            }
            is_far = true;
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
    "\u{202f}", "、", "è", "é",
];

impl Glue {
    fn before(text: &[u8]) -> Glue {
        const MOST_SIGNS: usize = 48;
        let mut glue = Glue::default();
        while glue.length < MOST_SIGNS {
            let rest = &text[..text.len() - glue.length];
            match rest.last() {
                Some(b'\n') => glue.lines += 1,
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
