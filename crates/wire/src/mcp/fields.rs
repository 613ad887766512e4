//! The fields of an object where they lie.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// An object with more fields is not read.
const FIELDS_MAX: usize = 100_000;

/// The fields of an object, in their order. What they hold is not looked at.
#[derive(Debug)]
pub struct Fields<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Those of an object; nothing where it is none.
    pub fn of(json: &'a RawValue) -> Option<Fields<'a>> {
        Fields::read(json.get())
    }

    /// Those of an object in a text that holds nothing else.
    pub fn read(json: &'a str) -> Option<Fields<'a>> {
        serde_json::from_str(json).ok()
    }

    /// Those of a field that is an object itself.
    pub fn within(&self, name: &str) -> Option<Fields<'a>> {
        Fields::of(self.get(name)?)
    }

    /// Of several fields of a name the last, as most readers have it.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(field, _)| field == name).map(|(_, value)| *value)
    }

    /// The text of a field that is a string.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text(self.get(name)?)
    }

    /// What a field that is true or false says.
    pub(super) fn truth(&self, name: &str) -> Option<bool> {
        match self.get(name)?.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
}

/// A string where it lies, or its copy where it has to be read.
pub(super) fn text(json: &RawValue) -> Option<Cow<'_, str>> {
    let json = json.get();
    let inside = json.strip_prefix('"')?.strip_suffix('"')?;
    match inside.contains('\\') {
        false => Some(Cow::Borrowed(inside)),
        true => serde_json::from_str(json).ok().map(Cow::Owned),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Fields<'a>, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(name) = map.next_key::<Name<'de>>()? {
                    if fields.len() == FIELDS_MAX {
                        return Err(serde::de::Error::custom("too many fields"));
                    }
                    fields.push((name.0, map.next_value()?));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// The name of a field, borrowed where it can be. (A bare `Cow` is always copied.)
struct Name<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Name<'a>, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Read)
    }
}
