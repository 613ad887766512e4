//! Small values that others write in several ways: a code as a text, a signal by its name, an output as a list.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor, value};
use serde_json::Value;

use crate::json::WireError;
use crate::redact::redact;

/// A text. What should have been one but is not keeps its JSON text; null is told apart by `Option`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WireText(pub(crate) String);

impl<'de> Deserialize<'de> for WireText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WireText, D::Error> {
        /// Takes strings as they come, without the detour over a `Value`: they may be a hundred megabytes.
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = String;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_str<E>(self, text: &str) -> Result<String, E> {
                Ok(text.to_owned())
            }
            fn visit_string<E>(self, text: String) -> Result<String, E> {
                Ok(text)
            }
            fn visit_bool<E>(self, value: bool) -> Result<String, E> {
                Ok(value.to_string())
            }
            fn visit_u64<E>(self, value: u64) -> Result<String, E> {
                Ok(value.to_string())
            }
            fn visit_i64<E>(self, value: i64) -> Result<String, E> {
                Ok(value.to_string())
            }
            fn visit_f64<E>(self, value: f64) -> Result<String, E> {
                Ok(Value::from(value).to_string())
            }
            fn visit_unit<E>(self) -> Result<String, E> {
                Ok(String::new())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<String, A::Error> {
                Ok(Value::deserialize(value::SeqAccessDeserializer::new(list))?.to_string())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<String, A::Error> {
                Ok(Value::deserialize(value::MapAccessDeserializer::new(map))?.to_string())
            }
        }
        deserializer.deserialize_any(Any).map(WireText)
    }
}

/// The bytes of a text that may be missing.
pub(crate) fn bytes(text: Option<WireText>) -> Vec<u8> {
    text.map(|text| text.0.into_bytes()).unwrap_or_default()
}

/// A whole number, written as one, as a text, or as a decimal with nothing behind the point. `None` if nothing is said.
fn whole(field: &'static str, value: &Value) -> Result<Option<i64>, WireError> {
    let number = match value {
        Value::Null => return Ok(None),
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) => text.trim().parse().ok(),
        // The cast saturates, and what does not come back the same is refused.
        Value::Number(number) => number.as_i64().or_else(|| {
            number
                .as_f64()
                .map(|float| (float, float as i64))
                .filter(|(a, b)| *a == *b as f64)
                .map(|(_, b)| b)
        }),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    number.map(Some).ok_or_else(|| bad(field, value, "a whole number"))
}

/// An exit code. Windows reports some as numbers above `i32::MAX`; they are the same 32 bits.
pub(crate) fn exit_code(field: &'static str, value: &Value) -> Result<Option<i32>, WireError> {
    let Some(code) = whole(field, value)? else { return Ok(None) };
    let code = i32::try_from(code).or_else(|_| u32::try_from(code).map(u32::cast_signed));
    code.map(Some).map_err(|_| bad(field, value, "an exit code"))
}

/// A signal, by its number or its name. 0 is what some programs write for none.
pub(crate) fn signal(field: &'static str, value: &Value) -> Result<Option<i32>, WireError> {
    if let Value::String(text) = value {
        let name = text.trim().to_ascii_uppercase();
        let name = name.strip_prefix("SIG").unwrap_or(&name);
        if let Some((number, _)) = SIGNALS.iter().find(|(_, names)| names.contains(&name)) {
            return Ok(Some(*number));
        }
    }
    match whole(field, value) {
        Ok(Some(0)) | Ok(None) => Ok(None),
        Ok(Some(number)) if (1..=127).contains(&number) => Ok(i32::try_from(number).ok()),
        Ok(Some(_)) | Err(_) => Err(bad(field, value, "a signal's number or name")),
    }
}

/// An HTTP status. 0 is what some programs write when there was no answer.
pub(crate) fn http_status(field: &'static str, value: &Value) -> Result<Option<u16>, WireError> {
    match whole(field, value)? {
        None | Some(0) => Ok(None),
        Some(status @ 100..=999) => Ok(u16::try_from(status).ok()),
        Some(_) => Err(bad(field, value, "an HTTP status")),
    }
}

/// A flag. Only what clearly says yes is one.
pub(crate) fn flag(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => matches!(text.trim().to_ascii_lowercase().as_str(), "true" | "yes" | "1"),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// A count that may be missing.
pub(crate) fn count(field: &'static str, value: &Value) -> Result<Option<u64>, WireError> {
    let Some(number) = whole(field, value)? else { return Ok(None) };
    u64::try_from(number).map(Some).map_err(|_| bad(field, value, "a number from 0 up"))
}

/// The arguments of a call. Some write the object as a text; then it is read.
pub(crate) fn arguments(text: String) -> Value {
    if !text.trim_start().starts_with('{') {
        return Value::String(text);
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(object) => object,
        Err(_) => Value::String(text),
    }
}

/// The text of a content: itself, or its parts, one per line.
pub(crate) fn words(content: Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text,
        Value::Array(parts) => {
            let part = |part: Value| match part.get("text") {
                Some(Value::String(text)) => text.clone(),
                Some(_) | None => {
                    format!("[{}]", part.get("type").and_then(Value::as_str).unwrap_or("nothing"))
                }
            };
            parts.into_iter().map(part).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

fn bad(field: &'static str, value: &Value, expected: &str) -> WireError {
    // Before it is cut: half a secret looks like none.
    let mut shown = redact(&value.to_string()).into_owned();
    if let Some((cut, _)) = shown.char_indices().nth(40) {
        shown.truncate(cut);
        shown.push('…');
    }
    WireError::BadField { field, why: format!("expected {expected}, found {shown}") }
}

/// The names of signals, with the numbers they have on Linux.
const SIGNALS: &[(i32, &[&str])] = &[
    (1, &["HUP"]),
    (2, &["INT"]),
    (3, &["QUIT"]),
    (4, &["ILL"]),
    (5, &["TRAP"]),
    (6, &["ABRT", "IOT"]),
    (7, &["BUS"]),
    (8, &["FPE"]),
    (9, &["KILL"]),
    (10, &["USR1"]),
    (11, &["SEGV"]),
    (12, &["USR2"]),
    (13, &["PIPE"]),
    (14, &["ALRM"]),
    (15, &["TERM"]),
    (16, &["STKFLT"]),
    (17, &["CHLD", "CLD"]),
    (18, &["CONT"]),
    (19, &["STOP"]),
    (20, &["TSTP"]),
    (21, &["TTIN"]),
    (22, &["TTOU"]),
    (23, &["URG"]),
    (24, &["XCPU"]),
    (25, &["XFSZ"]),
    (26, &["VTALRM"]),
    (27, &["PROF"]),
    (28, &["WINCH"]),
    (29, &["IO", "POLL"]),
    (30, &["PWR"]),
    (31, &["SYS"]),
];
