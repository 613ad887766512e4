//! A settings file in the language that its agent reads, and small changes to one entry of it. Pure.

use std::path::Path;

use serde_json::Value;

use super::document::{Dialect, Document};
use super::error::EditError;
use super::fields;
use super::tables::Tables;

/// The language of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    Json(Dialect),
    Toml,
}

/// A small change to an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Edit {
    /// The key has this value, in place of another or at the end.
    Put(&'static str, Value),
    /// The list under the key has these words before all others. Where there is no list, they are one.
    Lead(&'static str, Vec<String>),
    /// The list under the key loses so many words at its front.
    Unlead(&'static str, usize),
    /// The key goes.
    Drop(&'static str),
}

/// A text, and how it is read.
#[derive(Debug, Clone)]
pub(crate) enum Sheet<'p> {
    Json(Document<'p>),
    Toml(Tables<'p>),
}

impl<'p> Sheet<'p> {
    /// Reads a file's bytes. A file that is not there has nothing in it.
    pub(crate) fn read(path: &'p Path, syntax: Syntax, bytes: Option<&[u8]>) -> Result<Sheet<'p>, EditError> {
        Ok(match syntax {
            Syntax::Json(dialect) => Sheet::Json(Document::read(path, dialect, bytes)?),
            Syntax::Toml => Sheet::Toml(Tables::read(path, bytes)?),
        })
    }

    /// The file's bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Sheet::Json(document) => document.bytes(),
            Sheet::Toml(tables) => tables.bytes(),
        }
    }

    /// The value at a place, if there is one.
    pub(crate) fn value_at(&self, place: &[String]) -> Result<Option<Value>, EditError> {
        match self {
            Sheet::Json(document) => fields::value_at(document, place),
            Sheet::Toml(tables) => tables.value_at(place),
        }
    }

    /// The object at a place, if there is one. Something else in its place is a mistake.
    pub(crate) fn object_at(&self, place: &[String]) -> Result<Option<Value>, EditError> {
        match self {
            Sheet::Json(document) => fields::object_at(document, place),
            Sheet::Toml(tables) => tables.object_at(place),
        }
    }

    /// The sheet after changes to the object at a place.
    pub(crate) fn edit(&self, place: &[String], edits: &[Edit]) -> Result<Sheet<'p>, EditError> {
        let mut sheet = self.clone();
        for edit in edits {
            sheet = match &sheet {
                Sheet::Json(document) => Sheet::Json(fields::edit(document, place, edit)?),
                Sheet::Toml(tables) => Sheet::Toml(tables.edit(place, edit)?),
            };
        }
        Ok(sheet)
    }

    /// The text of the value at a place, where it is one piece.
    pub(crate) fn text_at(&self, place: &[String]) -> Option<&str> {
        match self {
            Sheet::Json(document) => {
                let range = fields::range_of(document, place).ok().flatten()?;
                document.text().get(range)
            }
            Sheet::Toml(_) => None,
        }
    }

    /// The sheet with another text in the place of that value.
    pub(crate) fn with_text_at(&self, place: &[String], new: &str) -> Option<Sheet<'p>> {
        match self {
            Sheet::Json(document) => {
                let range = fields::range_of(document, place).ok().flatten()?;
                let text = document.text();
                let text = [text.get(..range.start)?, new, text.get(range.end..)?].concat();
                Some(Sheet::Json(document.with(text)))
            }
            Sheet::Toml(_) => None,
        }
    }
}
