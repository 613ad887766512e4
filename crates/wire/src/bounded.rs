//! Inputs and outputs of a size that can be judged while an agent waits. What is left out leaves a print, so that inputs
//! which differ only there still differ.

use serde_json::{Map, Value};

use crate::scalar;

/// A longer text is cut in its middle.
const TEXT_MAX: usize = 64 * 1024;
/// The longest command line that a shell is given: 128 kB on Linux, 1 MB on macOS.
const ARGUMENT_MAX: usize = 1024 * 1024;
/// Of a list or an object with more entries the first are kept.
const ENTRIES_MAX: usize = 2048;
/// Of a longer output beginning and end are kept.
const OUTPUT_MAX: usize = 8 * 1024 * 1024;
/// So much of them is the beginning. What went wrong stands at the end.
const OUTPUT_HEAD: usize = 2 * 1024 * 1024;

/// No secret is longer than this without a gap in it.
const LONGEST_WORD: usize = 8 * 1024;

/// Whether an input can be judged as it is, with nothing left out.
pub(crate) fn fits(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= TEXT_MAX,
        Value::Array(list) => list.len() <= ENTRIES_MAX && list.iter().all(fits),
        Value::Object(fields) => fields.len() <= ENTRIES_MAX && fields.values().all(fits),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// The whole of an input of which something will be left out, where it is no longer than what a system hands to a program.
pub(crate) fn whole(value: &Value) -> Option<Value> {
    let is_wanted = !fits(value) && length(value) <= ARGUMENT_MAX;
    is_wanted.then(|| match value {
        Value::String(text) => scalar::arguments(text.clone()),
        input => input.clone(),
    })
}

/// How many bytes of text it holds, and entries.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(|value| 1 + length(value)).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| 1 + name.len() + length(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

/// An input that can be judged.
pub(crate) fn input(value: Value) -> Value {
    match value {
        Value::String(long) if long.len() > TEXT_MAX => Value::String(text(&long)),
        Value::Array(mut list) => {
            let rest = list.split_off(list.len().min(ENTRIES_MAX));
            let mut list: Vec<Value> = list.into_iter().map(input).collect();
            if !rest.is_empty() {
                list.push(Value::String(left_out(Value::Array(rest).to_string().as_bytes())));
            }
            Value::Array(list)
        }
        Value::Object(fields) => {
            let mut fields = fields.into_iter();
            let mut kept: Map<String, Value> =
                fields.by_ref().take(ENTRIES_MAX).map(|(name, value)| (name, input(value))).collect();
            let rest: Map<String, Value> = fields.collect();
            if !rest.is_empty() {
                kept.insert(
                    "…".to_owned(),
                    Value::String(left_out(Value::Object(rest).to_string().as_bytes())),
                );
            }
            Value::Object(kept)
        }
        other => other,
    }
}

fn text(long: &str) -> String {
    let (head, tail) = edges(long.as_bytes(), TEXT_MAX / 2, long.len() - TEXT_MAX / 4);
    let (head, tail) = (long.floor_char_boundary(head), long.ceil_char_boundary(tail));
    format!("{}\n{}\n{}", &long[..head], left_out(&long.as_bytes()[head..tail]), &long[tail..])
}

/// Where the middle is taken out that lies from `head` to `tail`: between words, because half of a secret looks like none.
/// Where there is no such place nearby, so much more is left out that nothing of one is kept.
fn edges(bytes: &[u8], head: usize, tail: usize) -> (usize, usize) {
    let is_gap = |byte: &u8| byte.is_ascii_whitespace();
    let before = head.saturating_sub(LONGEST_WORD);
    let after = (tail + LONGEST_WORD).min(bytes.len());
    let head = bytes[before..head].iter().rposition(is_gap).map_or(before, |at| before + at);
    let tail = bytes[tail..after].iter().position(is_gap).map_or(after, |at| tail + at);
    (head, tail)
}

/// What stands where something was left out.
fn left_out(what: &[u8]) -> String {
    format!("[… {} bytes, {}]", what.len(), &blake3::hash(what).to_hex()[..16])
}

/// An output that can be judged.
pub(crate) fn output(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() > OUTPUT_MAX {
        let (head, tail) = edges(&bytes, OUTPUT_HEAD, bytes.len() - (OUTPUT_MAX - OUTPUT_HEAD));
        bytes.splice(head..tail, *b"\n[...]\n");
    }
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_of_ordinary_size_stays_as_it_is() {
        let value = json!({ "command": "x".repeat(TEXT_MAX), "list": [1, null, { "a": true }] });
        assert_eq!(input(value.clone()), value);
        assert!(fits(&value));
        assert_eq!(output(vec![7; OUTPUT_MAX]).len(), OUTPUT_MAX);
    }

    #[test]
    fn no_word_is_cut_in_two() {
        let secret = "ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5";
        for at in [TEXT_MAX / 2 - 9, TEXT_MAX / 2, 200_000 - TEXT_MAX / 4 - 9] {
            let long = format!("{} {secret} {}", "x ".repeat(at / 2), "y".repeat(200_000 - at));
            let kept = text(&long);
            assert!(kept.contains(secret) || !kept.contains("ghp_") && !kept.contains("E3fG5"), "{at}");
        }
        let mut bytes = vec![b'.'; 20 * 1024 * 1024];
        bytes[OUTPUT_HEAD - 9..][..secret.len()].copy_from_slice(secret.as_bytes());
        let kept = output(bytes);
        assert_eq!(memchr::memmem::find(&kept, b"ghp_"), None);
    }

    #[test]
    fn what_is_huge_becomes_small_and_keeps_what_tells_it_from_others() {
        let huge = |middle: char| {
            let text = format!("{}{middle}{}", "é".repeat(100_000), "z".repeat(100_000));
            let list: Vec<Value> =
                (0..5000).map(|number| json!(number)).chain([json!(middle.to_string())]).collect();
            let fields: Map<String, Value> =
                (0..5000).map(|number| (format!("k{number}"), json!(middle.to_string()))).collect();
            input(json!({ "text": text, "list": list, "fields": fields }))
        };
        assert!(
            !fits(&json!({ "a": ["z".repeat(TEXT_MAX + 1)] })) && !fits(&json!(vec![0; ENTRIES_MAX + 1]))
        );
        assert_eq!(huge('a'), huge('a'));
        assert_ne!(huge('a')["text"], huge('b')["text"]);
        assert_ne!(huge('a')["list"], huge('b')["list"]);
        assert!(huge('a').to_string().len() < 2 * TEXT_MAX + 64 * ENTRIES_MAX);
        assert!(output(vec![b'x'; 20 * 1024 * 1024]).len() < OUTPUT_MAX + 64);
    }
}
