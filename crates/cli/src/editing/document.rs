//! A settings file as text: what it says, and how its owner writes. Pure.

use std::path::Path;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::de::IgnoredAny;

use super::error::{EditError, Shape};

const BOM: char = '\u{feff}';

/// What may stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// JSON and nothing else.
    Strict,
    /// JSON in which comments may stand. Commas after the last value still may not: the agents that strip comments cannot
    /// read them.
    Commented,
    /// JSON in which comments may stand, and commas after the last value.
    Loose,
}

/// A text, and the habits of whoever wrote it.
#[derive(Debug, Clone)]
pub(crate) struct Document<'p> {
    path: &'p Path,
    dialect: Dialect,
    has_bom: bool,
    habits: Habits,
    text: String,
}

/// How its owner writes. Our own lines follow it, and are never taken for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Habits {
    /// What ends a line.
    pub(super) newline: &'static str,
    /// What one level is indented by: what the first key is, or two spaces.
    pub(super) unit: String,
    /// Is there a space behind a colon?
    pub(super) is_spaced: bool,
    /// Does everything stand on one line?
    pub(super) is_one_line: bool,
}

impl<'p> Document<'p> {
    /// Reads a file's bytes. A file that is not there, or has nothing in it, is an empty object.
    pub(crate) fn read(
        path: &'p Path,
        dialect: Dialect,
        bytes: Option<&[u8]>,
    ) -> Result<Document<'p>, EditError> {
        let bytes = bytes.unwrap_or_default();
        let Ok(text) = str::from_utf8(bytes) else {
            return Err(EditError::NotText { path: path.to_owned() });
        };
        let bare = text.strip_prefix(BOM);
        let (has_bom, text) = (bare.is_some(), bare.unwrap_or(text));
        let text = match text.trim_ascii().is_empty() {
            true => "{}\n",
            false => text,
        };
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let habits = Habits { newline, unit: "  ".to_owned(), is_spaced: true, is_one_line: false };
        let mut document = Document { path, dialect, has_bom, habits, text: text.to_owned() };
        document.habits = document.check()?;
        Ok(document)
    }

    pub(super) fn habits(&self) -> &Habits {
        &self.habits
    }

    /// The same file with another text.
    pub(super) fn with(&self, text: String) -> Document<'p> {
        Document { text, ..self.clone() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The file's bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.text.len() + 3);
        if self.has_bom {
            bytes.extend_from_slice(BOM.to_string().as_bytes());
        }
        bytes.extend_from_slice(self.text.as_bytes());
        bytes
    }

    /// The value as others see it.
    pub(crate) fn value(&self) -> serde_json::Value {
        self.with_root(|root| Ok(object_value(root))).unwrap_or_default()
    }

    /// Hands the root to `look`.
    pub(super) fn with_root<T>(
        &self,
        look: impl FnOnce(&Object<'_>) -> Result<T, EditError>,
    ) -> Result<T, EditError> {
        let parsed = parse_to_ast(&self.text, &CollectOptions::default(), &self.options());
        let parsed = parsed.map_err(|error| {
            self.malformed(error.line_display(), error.column_display(), error.kind().to_string())
        })?;
        match &parsed.value {
            Some(Value::Object(root)) => look(root),
            Some(other) => Err(self.wrong_shape(other.range().start, "the whole file", Shape::Object)),
            None => Err(self.malformed(1, 1, "there is nothing but comments".to_owned())),
        }
    }

    /// Fails unless the agent could read it, too; tells how it is written.
    fn check(&self) -> Result<Habits, EditError> {
        let habits = self.with_root(|root| {
            let Some(first) = root.properties.first() else { return Ok(self.habits.clone()) };
            let unit = self.indent_before(first.range.start).filter(|indent| !indent.is_empty());
            let colon = &self.text[first.name.range().end..first.value.range().start];
            Ok(Habits {
                unit: unit.unwrap_or(&self.habits.unit).to_owned(),
                is_spaced: !colon.ends_with(':'),
                is_one_line: !self.text[root.range.start..first.range.start].contains('\n'),
                ..self.habits
            })
        })?;
        match self.dialect {
            Dialect::Commented | Dialect::Loose => {}
            // A second opinion, by the rules to the letter: of control characters in texts, for example.
            Dialect::Strict => {
                serde_json::from_str::<IgnoredAny>(&self.text)
                    .map_err(|error| self.malformed(error.line(), error.column(), in_short(&error)))?;
            }
        }
        Ok(habits)
    }

    fn options(&self) -> ParseOptions {
        ParseOptions {
            allow_comments: matches!(self.dialect, Dialect::Commented | Dialect::Loose),
            allow_loose_object_property_names: false,
            allow_trailing_commas: self.dialect == Dialect::Loose,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        }
    }

    /// What stands on the line before this place, if that is only white space.
    pub(super) fn indent_before(&self, at: usize) -> Option<&str> {
        let begin = self.text[..at].rfind('\n').map(|newline| newline + 1)?;
        let before = &self.text[begin..at];
        before.bytes().all(|byte| matches!(byte, b' ' | b'\t')).then_some(before)
    }

    /// How far the line that holds this place is indented.
    pub(super) fn indent_of_line(&self, at: usize) -> &str {
        let begin = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = &self.text[begin..at];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    pub(super) fn wrong_shape(&self, at: usize, place: &str, shape: Shape) -> EditError {
        let (line, column) = self.line_and_column(at);
        EditError::WrongShape { path: self.path.to_owned(), line, column, place: place.to_owned(), shape }
    }

    pub(super) fn twice(&self, at: usize, place: &str) -> EditError {
        let (line, column) = self.line_and_column(at);
        EditError::Twice { path: self.path.to_owned(), line, column, place: place.to_owned() }
    }

    fn malformed(&self, line: usize, column: usize, what: String) -> EditError {
        EditError::Malformed { path: self.path.to_owned(), line, column, what }
    }

    fn line_and_column(&self, at: usize) -> (usize, usize) {
        let before = &self.text[..at];
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[begin..].chars().count() + 1)
    }
}

/// What the parser says, without the place, which is told apart.
fn in_short(error: &serde_json::Error) -> String {
    let said = error.to_string();
    said.rsplit_once(" at line ").map_or(said.clone(), |(what, _)| what.to_owned())
}

/// A value of the tree as a plain one.
pub(super) fn plain_value(value: &Value<'_>) -> serde_json::Value {
    match value {
        Value::StringLit(text) => text.value.clone().into_owned().into(),
        Value::NumberLit(number) => serde_json::from_str(number.value).unwrap_or_default(),
        Value::BooleanLit(yes) => yes.value.into(),
        Value::Object(object) => object_value(object),
        Value::Array(list) => list.elements.iter().map(plain_value).collect(),
        Value::NullKeyword(_) => serde_json::Value::Null,
    }
}

pub(super) fn object_value(object: &Object<'_>) -> serde_json::Value {
    let field = |field: &jsonc_parser::ast::ObjectProp<'_>| {
        (field.name.as_str().to_owned(), plain_value(&field.value))
    };
    serde_json::Value::Object(object.properties.iter().map(field).collect())
}
