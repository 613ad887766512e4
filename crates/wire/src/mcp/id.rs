//! The name of a request.

use std::fmt;
use std::hash::{Hash, Hasher};

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
