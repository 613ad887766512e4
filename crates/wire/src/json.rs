//! Reading one line of JSON that may be slightly broken.
//!
//! What programs print is not always Unicode, and what writes it down as JSON lets that through: half a surrogate pair,
//! a raw control character, bytes of another encoding. A record is not thrown away for that; the broken character is.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use serde_json::{Map, Value};

use crate::mcp::end_of_string;

/// What lies deeper is not read.
const DEPTH_MAX: usize = 100;

/// Why a line could not be read. The caller knows its number and says it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The line is no JSON at all.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// It is JSON, but not an object.
    #[error("expected a JSON object, found {0}")]
    NotAnObject(&'static str),
    /// It is an object, but a field cannot be what it has to be.
    #[error("{field}: {why}")]
    BadField {
        /// The field's name, as it stands in the line.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// It is an object of another shape.
    #[error("does not fit: {0}")]
    Unfit(String),
    /// Nothing in it tells how the call ended.
    #[error(
        "nothing to judge: give at least one of exit_code, signal, http_status, stdout, stderr, text, timed_out, interrupted"
    )]
    NoEvidence,
}

/// Reads `line` as an object. It is copied only if it has to be repaired.
pub(crate) fn read_object<T: for<'line> Deserialize<'line>>(line: &[u8]) -> Result<T, WireError> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    let found = match line.first() {
        Some(b'{') => None,
        // A list would be taken for the fields in their order, so this is checked before anything is read.
        Some(b'[') => Some("a list"),
        Some(b'"') => Some("a string"),
        Some(b't' | b'f') => Some("a truth value"),
        Some(b'n') => Some("null"),
        Some(_) => Some("a number"),
        None => return Err(WireError::NotJson("the line is empty".to_owned())),
    };
    if let Some(found) = found {
        return Err(match serde_json::from_slice::<IgnoredAny>(line) {
            Ok(_) => WireError::NotAnObject(found),
            Err(error) => WireError::NotJson(reason(&error)),
        });
    }
    match serde_json::from_slice(line) {
        Ok(read) => Ok(read),
        // The first error is told even then: its column is that of the line as it came.
        Err(first) => read_repaired(&tame(&repair(line))).ok_or_else(|| explain(&first)),
    }
}

/// Reads an object that had to be repaired. Of several fields of a name the last counts, as most readers have it.
fn read_repaired<T: for<'line> Deserialize<'line>>(line: &[u8]) -> Option<T> {
    if let Ok(read) = serde_json::from_slice(line) {
        return Some(read);
    }
    let fields = serde_json::from_slice::<Map<String, Value>>(line).ok()?;
    serde_json::from_value(Value::Object(fields)).ok()
}

/// Puts `null` in the place of numbers that no machine can hold, and of what lies too deep to be read. What is broken stays so.
fn tame(line: &[u8]) -> Cow<'_, [u8]> {
    let mut tamed = Vec::new();
    let (mut kept, mut at) = (0, 0);
    let (mut depth, mut too_deep) = (0_usize, None);
    let mut replace = |kept: &mut usize, from: usize, to: usize| {
        tamed.extend_from_slice(&line[*kept..from]);
        tamed.extend_from_slice(b"null");
        *kept = to;
    };
    while let Some(&byte) = line.get(at) {
        let from = at;
        at += 1;
        match byte {
            b'"' => at = end_of_string(line, at) + 1,
            b'{' | b'[' => {
                depth += 1;
                if depth > DEPTH_MAX {
                    too_deep.get_or_insert(from);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == DEPTH_MAX
                    && let Some(from) = too_deep.take()
                {
                    replace(&mut kept, from, at);
                }
            }
            b'-' | b'0'..=b'9' if too_deep.is_none() => {
                let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                at += line[at..].iter().take_while(is_part).count();
                let number = str::from_utf8(&line[from..at]).ok().and_then(|text| text.parse::<f64>().ok());
                if number.is_some_and(f64::is_infinite) {
                    replace(&mut kept, from, at);
                }
            }
            _ => {}
        }
    }
    if kept == 0 {
        return Cow::Borrowed(line);
    }
    tamed.extend_from_slice(&line[kept..]);
    Cow::Owned(tamed)
}

fn explain(error: &serde_json::Error) -> WireError {
    match error.classify() {
        Category::Data => WireError::Unfit(reason(error)),
        Category::Syntax | Category::Eof | Category::Io => WireError::NotJson(reason(error)),
    }
}

/// The error's words without its line number: the whole text is one line, and the caller counts differently.
fn reason(error: &serde_json::Error) -> String {
    let words = error.to_string();
    let Some(at) = words.rfind(" at line ") else { return words };
    format!("{} at column {}", &words[..at], error.column())
}

/// Replaces what JSON does not allow inside strings: halves of surrogate pairs, raw control characters, and bytes that
/// are not UTF-8. Borrowed if there was nothing to repair.
fn repair(line: &[u8]) -> Cow<'_, [u8]> {
    let mut repaired = Vec::new();
    let mut kept = 0;
    let mut in_string = false;
    let mut at = 0;
    let mut replace = |kept: &mut usize, from: usize, to: usize, by: &[u8]| {
        repaired.extend_from_slice(&line[*kept..from]);
        repaired.extend_from_slice(by);
        *kept = to;
    };
    while let Some(&byte) = line.get(at) {
        match byte {
            b'"' => {
                in_string = !in_string;
                at += 1;
            }
            b'\\' if in_string => match surrogate(line, at) {
                Some(0xD800..=0xDBFF) if matches!(surrogate(line, at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
                Some(0xD800..=0xDFFF) => {
                    replace(&mut kept, at, at + 6, b"\\ufffd");
                    at += 6;
                }
                Some(_) | None => at += 2,
            },
            0x00..=0x1F if in_string => {
                replace(&mut kept, at, at + 1, format!("\\u{byte:04x}").as_bytes());
                at += 1;
            }
            _ => at += 1,
        }
    }
    let repaired = if kept == 0 {
        Cow::Borrowed(line)
    } else {
        repaired.extend_from_slice(&line[kept..]);
        Cow::Owned(repaired)
    };
    if std::str::from_utf8(&repaired).is_ok() {
        return repaired;
    }
    Cow::Owned(String::from_utf8_lossy(&repaired).into_owned().into_bytes())
}

/// The number of the `\uXXXX` escape at `at`, if there is one.
fn surrogate(line: &[u8], at: usize) -> Option<u16> {
    let digits = line.get(at..at + 6)?.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: impl AsRef<[u8]>, expected: &str) {
        let read = match read_object::<Map<String, Value>>(line.as_ref()) {
            Ok(object) => Value::Object(object).to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn a_healthy_object_is_read_as_it_is() {
        check(r#" {"a":"\ud83d\ude00"} "#, "{\"a\":\"😀\"}");
        check("\u{feff}{\"a\":1}\r\n", r#"{"a":1}"#);
    }

    #[test]
    fn half_a_surrogate_pair_becomes_one_replacement_character() {
        check(r#"{"a":"x\ud800y"}"#, "{\"a\":\"x\u{fffd}y\"}");
        check(r#"{"a":"x\uDC00"}"#, "{\"a\":\"x\u{fffd}\"}");
        check(r#"{"a":"\ud83d\ud83d\ude00"}"#, "{\"a\":\"\u{fffd}😀\"}");
    }

    #[test]
    fn an_escaped_backslash_before_a_u_is_no_surrogate() {
        check(r#"{"a":"\\ud800 \ud800"}"#, "{\"a\":\"\\\\ud800 \u{fffd}\"}");
    }

    #[test]
    fn raw_control_characters_and_foreign_bytes_are_let_through() {
        check("{\"a\":\"x\ty\0\"}", r#"{"a":"x\ty\u0000"}"#);
        check(b"{\"a\":\"caf\xe9\"}", "{\"a\":\"caf\u{fffd}\"}");
    }

    #[test]
    fn what_is_no_object_is_named() {
        check("[1,2]", "expected a JSON object, found a list");
        check("7", "expected a JSON object, found a number");
        check("null", "expected a JSON object, found null");
        check("\"x\"", "expected a JSON object, found a string");
    }

    #[test]
    fn what_is_no_json_is_told_by_its_column() {
        check("", "not JSON: the line is empty");
        check("error: no", "not JSON: expected value at column 1");
        check(r#"{"a": nope}"#, "not JSON: expected ident at column 8");
        check(r#"{"a": "cut"#, "not JSON: EOF while parsing a string at column 10");
    }

    #[test]
    fn what_no_machine_can_hold_is_nothing() {
        check(
            r#"{"a":1e999,"b":-1E+400,"c":1e9,"d":"1e999"}"#,
            r#"{"a":null,"b":null,"c":1000000000.0,"d":"1e999"}"#,
        );
        check(format!(r#"{{"a":{},"b":1}}"#, "9".repeat(400)), r#"{"a":null,"b":1}"#);
    }

    #[test]
    fn what_lies_too_deep_is_nothing() {
        let deep = |open: &str, close: &str| {
            format!(r#"{{"a":{}{},"b":"]}}"}}"#, open.repeat(5_000), close.repeat(5_000))
        };
        for line in [deep("[", "]"), deep(r#"{"}":["#, "]}")] {
            let read = read_object::<Map<String, Value>>(line.as_bytes()).expect("an object");
            assert_eq!(read["b"], "]}");
        }
    }

    #[test]
    fn of_several_fields_of_a_name_the_last_counts() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Named {
            name: String,
        }
        let read = read_object::<Named>(br#"{"name":"a","name":7,"name":"b"}"#);
        assert_eq!(read, Ok(Named { name: "b".to_owned() }));
    }

    #[test]
    fn endless_nesting_is_refused() {
        check("{\"a\":".repeat(100_000), "not JSON: recursion limit exceeded at column 636");
    }
}
