//! The name of a request.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::framing;

/// The name of a request, as it stands in its message. Numbers and strings are never the same; but a string in other signs is
/// the same name, and so is a number that has been through a program which counts in floating point.
#[derive(Clone)]
pub struct Id {
    json: Box<str>,
    /// The string that it is, where its signs have to be read; else it is told by them.
    read: Option<Box<str>>,
    /// Can it only be spelled in this way?
    is_plain: bool,
}

/// What all spellings of a name have in common.
#[derive(PartialEq, Eq, Hash)]
enum Same<'a> {
    Text(&'a str),
    /// The bits of the number.
    Number(u64),
}

/// Where something stands last.
fn memmem(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).rposition(|part| part == wanted)
}

/// Whole numbers of so few digits are the same for everybody.
const EXACT: usize = 15;

impl Id {
    /// The JSON text of a name; nothing where it is none: `null` names nobody.
    pub fn of(json: &str) -> Option<Id> {
        let is_plain = match json.as_bytes().first() {
            Some(b'"') => !json.contains('\\'),
            Some(b'0'..=b'9') => json.len() <= EXACT && json.bytes().all(|sign| sign.is_ascii_digit()),
            Some(b'-') => false,
            _ => return None,
        };
        let read = if is_plain { None } else { serde_json::from_str(json).ok() };
        Some(Id { json: json.into(), read, is_plain })
    }

    /// A name that is a string.
    pub fn text(name: &str) -> Id {
        let json: Box<str> = serde_json::Value::from(name).to_string().into();
        let is_plain = !json.contains('\\');
        Id { json, read: (!is_plain).then(|| name.into()), is_plain }
    }

    /// The name at the end of a message of which only that is there. Nothing where it does not tell for certain.
    pub(super) fn in_end(ends: &[u8]) -> Option<Id> {
        let ends = ends.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
        let at = memmem(ends, br#""id""#)?;
        let value = ends.get(at + 4..)?.trim_ascii_start().strip_prefix(b":")?.trim_ascii();
        // What stands in front of it must be the end of another field: within a string it would be no name.
        let is_field = matches!(ends.get(..at)?.trim_ascii_end().last(), Some(b',' | b'{'));
        let id = Id::at_beginning(&[value, b","].concat())?;
        (is_field && id.json().len() == value.len()).then_some(id)
    }

    /// The name at the beginning of something, where it ends there, too.
    pub(super) fn at_beginning(value: &[u8]) -> Option<Id> {
        let value = value.trim_ascii_start();
        let end = match value.first()? {
            b'"' => framing::end_of_string(value, 1) + 1,
            _ => value.iter().position(|sign| b",} \t".contains(sign))?,
        };
        Id::of(std::str::from_utf8(value.get(..end)?).ok()?)
    }

    /// Its JSON text.
    pub fn json(&self) -> &str {
        &self.json
    }

    fn same(&self) -> Same<'_> {
        match (&self.read, self.json.strip_prefix('"')) {
            (Some(text), _) => Same::Text(text),
            (None, Some(rest)) => Same::Text(rest.strip_suffix('"').unwrap_or(rest)),
            // There is one zero.
            (None, None) => Same::Number((self.json.parse::<f64>().unwrap_or_default() + 0.0).to_bits()),
        }
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Id) -> bool {
        match self.is_plain && other.is_plain {
            true => self.json == other.json,
            false => self.same() == other.same(),
        }
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.same().hash(state);
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Id").field(&self.json).finish()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json)
    }
}
