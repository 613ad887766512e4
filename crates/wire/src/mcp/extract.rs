//! What is read of values that are too large to be held a second time: their beginning, their end, and a digest.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A larger value is not read as a whole.
pub(super) const READ_MAX: usize = 1024 * 1024;
/// How much of a larger one is kept, at most.
const KEPT: usize = 256 * 1024;
/// Maximum length of a string in it.
const STRING_MAX: usize = 64 * 1024;
/// What an entry takes by itself.
const ENTRY: usize = 64;
/// Deeper in a large value nothing is kept.
const DEPTH_MAX: usize = 8;
/// Maximum number of its own fields that are kept.
const FIELDS_MAX: usize = 1000;
/// No escaped character takes more room.
const ESCAPE_MAX: usize = 12;
/// The field that says that something was left out.
const LEFT_OUT: &str = "(left out)";

/// A text whole where it is not too long, else its beginning and its end.
pub(super) fn ends(text: &str) -> Cow<'_, str> {
    match text.len() <= READ_MAX {
        true => Cow::Borrowed(text),
        false => Cow::Owned(joined(head(text, STRING_MAX), tail(text, STRING_MAX), text.len())),
    }
}

/// The text of a JSON string, as [`ends`] has it.
pub(super) fn string(json: &str) -> Option<Cow<'_, str>> {
    let inside = json.strip_prefix('"')?.strip_suffix('"')?;
    if !inside.contains('\\') {
        return Some(ends(inside));
    }
    if inside.len() <= READ_MAX {
        return serde_json::from_str(json).ok().map(Cow::Owned);
    }
    let read = |part: &str| serde_json::from_str::<String>(&format!("\"{part}\"")).ok();
    let (begins, ends) = (head(inside, STRING_MAX), tail(inside, STRING_MAX));
    // A cut may fall into an escaped character.
    let begins = (0..ESCAPE_MAX).find_map(|less| read(head(begins, begins.len().saturating_sub(less))));
    let ends = (0..ESCAPE_MAX).find_map(|less| read(tail(ends, ends.len().saturating_sub(less))));
    Some(Cow::Owned(joined(&begins.unwrap_or_default(), &ends.unwrap_or_default(), inside.len())))
}

/// A number that stands for a text.
pub(super) fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().chars().take(16).collect()
}

/// A value whole where it is not too large. Else what is kept of it has the same fields; strings in it are shortened, what has no room
/// is `null`, and one more field tells two of them apart.
pub(super) fn value(json: &RawValue) -> Option<Value> {
    let text = json.get();
    if text.len() <= READ_MAX {
        return serde_json::from_str(text).ok();
    }
    let mut room = KEPT;
    let mut kept = Part { room: &mut room, depth: 0 }.read(json).unwrap_or_default();
    if let Value::Object(fields) = &mut kept {
        let left_out = format!("{} bytes in all, blake3 {}", text.len(), digest(text));
        fields.insert(LEFT_OUT.to_owned(), left_out.into());
    }
    Some(kept)
}

/// Reads what is kept of a part of a value, one entry after the other.
struct Part<'a> {
    /// How many more bytes are kept.
    room: &'a mut usize,
    depth: usize,
}

impl Part<'_> {
    /// Nothing where there is no room for it.
    fn read(self, json: &RawValue) -> Option<Value> {
        let text = json.get();
        match text.as_bytes().first()? {
            b'"' => {
                let text = string(text)?;
                let text = match text.len() > STRING_MAX {
                    true => joined(head(&text, STRING_MAX / 4), tail(&text, STRING_MAX / 4), text.len()),
                    false => text.into_owned(),
                };
                *self.room = self.room.checked_sub(text.len())?;
                Some(text.into())
            }
            b'{' | b'[' if self.depth < DEPTH_MAX => {
                serde_json::Deserializer::from_str(text).deserialize_any(self).ok()
            }
            b'{' | b'[' => None,
            _ => {
                *self.room = self.room.checked_sub(text.len())?;
                serde_json::from_str(text).ok()
            }
        }
    }

    fn entry<E: Error>(&mut self, json: &RawValue) -> Result<Value, E> {
        let entry = Part { room: self.room, depth: self.depth + 1 }.read(json);
        match (entry, self.depth) {
            (Some(entry), _) => Ok(entry),
            // All its own fields are named, so that none seems to be missing.
            (None, 0) => Ok(Value::Null),
            (None, _) => Err(E::custom("no room")),
        }
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some((name, field)) = map.next_entry::<Cow<'de, str>, &RawValue>()? {
            if kept.len() < FIELDS_MAX {
                *self.room = self.room.saturating_sub(name.len() + ENTRY);
                let field = self.entry(field)?;
                kept.insert(head(&name, STRING_MAX).to_owned(), field);
            } else if self.depth > 0 {
                return Err(A::Error::custom("no room"));
            }
        }
        Ok(Value::Object(kept))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        while let Some(entry) = list.next_element::<&RawValue>()? {
            *self.room = self.room.checked_sub(ENTRY).ok_or_else(|| A::Error::custom("no room"))?;
            kept.push(self.entry(entry)?);
        }
        Ok(Value::Array(kept))
    }
}

fn joined(begins: &str, ends: &str, bytes: usize) -> String {
    format!("{begins} … ({bytes} bytes in all) … {ends}")
}

/// How a text begins, in at most so many bytes.
fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// And how it ends.
fn tail(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: String) -> Box<RawValue> {
        RawValue::from_string(json).expect("it is JSON")
    }

    #[test]
    fn what_is_small_is_read_whole() {
        let json = r#"{"a":[1,2.50,{"b":"\u0061"}],"c":null}"#;
        assert_eq!(value(&raw(json.to_owned())), serde_json::from_str(json).ok());
        assert_eq!(string(r#""a\u0062""#).as_deref(), Some("ab"));
        assert_eq!(string("7"), None);
    }

    #[test]
    fn what_is_large_keeps_its_fields_and_little_else() {
        let long = "tide ".repeat(500_000);
        let many = vec!["1"; 2_000_000].join(",");
        let json = |mark: &str| {
            raw(format!(
                r#"{{"text":"{long}{mark}","list":[{many}],"in":{{"deep":["{long}"],"n":1}},"flag":true,"name":"x","deep":{}{}}}"#,
                "[".repeat(100_000),
                "]".repeat(100_000)
            ))
        };
        let kept = value(&json("a")).expect("it is read");
        assert!(kept.to_string().len() < 2 * KEPT, "{}", kept.to_string().len());
        assert!(kept["text"].as_str().is_some_and(|text| text.starts_with("tide ") && text.ends_with("a")));
        assert_eq!((&kept["list"], &kept["deep"]), (&Value::Null, &Value::Null));
        assert_eq!(kept.as_object().map(Map::len), Some(7));
        assert_ne!(kept[LEFT_OUT], value(&json("b")).expect("it is read")[LEFT_OUT]);
    }

    #[test]
    fn a_string_may_be_cut_anywhere() {
        for unit in ["\\u00e4", "\\\"", "\\\\", "\u{e4}", "\\ud83d\\ude00", "a\\n"] {
            for shift in 0..13 {
                let json = format!("\"{}{}\"", "x".repeat(shift), unit.repeat(800_000));
                let text = string(&json).expect("it is a string");
                assert!(text.len() < 3 * STRING_MAX && text.len() > STRING_MAX / 4, "{unit} {shift}");
            }
        }
        let text = "x".repeat(READ_MAX) + "\u{e4}";
        assert!(ends(&text).ends_with('\u{e4}') && ends(&text).len() < 3 * STRING_MAX);
    }
}
