//! A settings file in TOML: small changes to one table of it; comments, order and everything else stay. Pure.

use std::path::Path;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::error::{EditError, Shape};
use super::sheet::Edit;

const BOM: char = '\u{feff}';

/// So deep, objects have a name of their own; below it they are written in one line.
const NAMED: usize = 2;

/// A text in TOML.
#[derive(Debug, Clone)]
pub(crate) struct Tables<'p> {
    path: &'p Path,
    has_bom: bool,
    /// Every line ends like on Windows, and is given back so.
    has_returns: bool,
    /// Its last line has no end, and is given back so.
    lacks_end: bool,
    text: String,
}

impl<'p> Tables<'p> {
    /// Reads a file's bytes. What would not come back to the byte is not taken.
    pub(super) fn read(path: &'p Path, bytes: Option<&[u8]>) -> Result<Tables<'p>, EditError> {
        let Ok(text) = str::from_utf8(bytes.unwrap_or_default()) else {
            return Err(EditError::NotText { path: path.to_owned() });
        };
        let bare = text.strip_prefix(BOM);
        let (has_bom, text) = (bare.is_some(), bare.unwrap_or(text));
        let has_returns = text.contains("\r\n");
        let lacks_end = !text.is_empty() && !text.ends_with('\n');
        let plain = text.replace("\r\n", "\n") + if lacks_end { "\n" } else { "" };
        let tables = Tables { path, has_bom, has_returns, lacks_end, text: plain };
        let document = tables.document()?;
        let is_whole = tables.with(&document).bytes() == bytes.unwrap_or_default();
        match is_whole {
            true => Ok(tables),
            false => Err(tables.malformed(1, 1, "its lines do not all end alike".to_owned())),
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let text = match self.lacks_end {
            true => self.text.strip_suffix('\n').unwrap_or(&self.text),
            false => &self.text,
        };
        let text = match self.has_returns {
            true => text.replace('\n', "\r\n"),
            false => text.to_owned(),
        };
        let bom = if self.has_bom { BOM.to_string() } else { String::new() };
        (bom + &text).into_bytes()
    }

    /// The value at a place, if there is one.
    pub(super) fn value_at(&self, place: &[String]) -> Result<Option<serde_json::Value>, EditError> {
        let table: serde_json::Value = toml::from_str(&self.text).unwrap_or_default();
        Ok(place.iter().try_fold(&table, |value, key| value.get(key)).cloned())
    }

    /// The table at a place, if there is one.
    pub(super) fn object_at(&self, place: &[String]) -> Result<Option<serde_json::Value>, EditError> {
        match self.value_at(place)? {
            Some(other) if !other.is_object() => Err(self.wrong_shape(&place.join("."), Shape::Object)),
            found => Ok(found),
        }
    }

    /// The text after a change to the table at a place. Where there is no such table, nothing changes.
    pub(super) fn edit(&self, place: &[String], edit: &Edit) -> Result<Tables<'p>, EditError> {
        let mut document = self.document()?;
        let mut table: &mut dyn TableLike = document.as_table_mut();
        for (depth, key) in place.iter().enumerate() {
            let Some(item) = table.get_mut(key) else { return Ok(self.clone()) };
            let Some(next) = item.as_table_like_mut() else {
                return Err(self.wrong_shape(&place[..=depth].join("."), Shape::Object));
            };
            table = next;
        }
        match edit {
            Edit::Put(key, plain) => {
                let mut new = value(plain);
                let is_named = place.len() < NAMED && plain.is_object();
                match table.get_mut(key) {
                    Some(Item::Value(old)) => {
                        *new.decor_mut() = old.decor().clone();
                        *old = new;
                    }
                    Some(_) | None if is_named => drop(table.insert(key, named_tables(plain, place.len()))),
                    Some(_) | None => drop(table.insert(key, Item::Value(new))),
                }
            }
            Edit::Lead(key, words) => match table.get_mut(key) {
                Some(item) => match item.as_array_mut() {
                    Some(list) => lead(list, words),
                    None => return Err(self.wrong_shape(key, Shape::List)),
                },
                None => drop(
                    table
                        .insert(key, Item::Value(words.iter().map(String::as_str).collect::<Array>().into())),
                ),
            },
            Edit::Unlead(key, count) => {
                if let Some(list) = table.get_mut(key).and_then(Item::as_array_mut) {
                    unlead(list, *count);
                }
            }
            Edit::Drop(key) => drop(table.remove(key)),
        }
        Ok(self.with(&document))
    }

    fn with(&self, document: &DocumentMut) -> Tables<'p> {
        Tables { text: document.to_string(), ..self.clone() }
    }

    fn document(&self) -> Result<DocumentMut, EditError> {
        self.text.parse::<DocumentMut>().map_err(|error| {
            let at = error.span().map_or(0, |span| span.start).min(self.text.len());
            let before = self.text.get(..at).unwrap_or_default();
            let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
            let (line, column) = (before.matches('\n').count() + 1, before[begin..].chars().count() + 1);
            self.malformed(line, column, error.message().lines().collect::<Vec<_>>().join(", "))
        })
    }

    fn malformed(&self, line: usize, column: usize, what: String) -> EditError {
        EditError::Malformed { path: self.path.to_owned(), line, column, what }
    }

    fn wrong_shape(&self, place: &str, shape: Shape) -> EditError {
        EditError::WrongShape {
            path: self.path.to_owned(),
            line: 1,
            column: 1,
            place: place.to_owned(),
            shape,
        }
    }
}

/// An object that has a name of its own, as people write it: `[mcp_servers.x]`.
fn named_tables(plain: &serde_json::Value, depth: usize) -> Item {
    let mut table = Table::new();
    // A name that only leads to others needs no line.
    table.set_implicit(depth + 1 < NAMED);
    for (name, field) in plain.as_object().into_iter().flatten() {
        match depth + 1 < NAMED && field.is_object() {
            true => drop(table.insert(name, named_tables(field, depth + 1))),
            false => drop(table.insert(name, Item::Value(value(field)))),
        }
    }
    Item::Table(table)
}

/// What stands before a value in a list, as text.
fn prefix(value: &Value) -> String {
    value.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default().to_owned()
}

/// Puts words at the front of a list, separated as its own are.
fn lead(list: &mut Array, words: &[String]) {
    let first = list.get(0).map(prefix);
    let between = match first.as_deref().map(|first| first.rsplit_once('\n')) {
        Some(Some((_, indent))) => format!("\n{indent}"),
        Some(None) | None => " ".to_owned(),
    };
    if let Some(old) = list.get_mut(0) {
        old.decor_mut().set_prefix(&between);
    }
    for (index, word) in words.iter().enumerate() {
        let mut word = Value::from(word.as_str());
        word.decor_mut().set_prefix(match index {
            0 => first.as_deref().unwrap_or_default(),
            _ => &between,
        });
        list.insert_formatted(index, word);
    }
}

/// Takes so many words from the front of a list: the reverse of [`lead`].
fn unlead(list: &mut Array, count: usize) {
    let first = list.get(0).map(prefix);
    for _ in 0..count.min(list.len()) {
        list.remove(0);
    }
    if let (Some(first), Some(new)) = (first, list.get_mut(0)) {
        new.decor_mut().set_prefix(first);
    }
}

/// A plain value as TOML writes it. What TOML has no word for is left out.
fn value(plain: &serde_json::Value) -> Value {
    match plain {
        serde_json::Value::Null => Value::from(""),
        serde_json::Value::Bool(yes) => Value::from(*yes),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::from(whole),
            None => Value::from(number.as_f64().unwrap_or_default()),
        },
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(list) => Value::Array(list.iter().map(value).collect()),
        serde_json::Value::Object(fields) => {
            let mut table = InlineTable::new();
            for (name, field) in fields {
                table.insert(name, value(field));
            }
            Value::InlineTable(table)
        }
    }
}
