//! One layer as a person wrote it: every setting may be there or not, and an unknown one is a mistake.
//!
//! A mistake spoils its own setting and no other, so that whoever cannot stop for it can go on with the rest.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::around::Around;
use super::entry_mistake::EntryMistake;
use super::error::{Misfit, SettingsError, Wanted};
use super::key::Key;
use super::layer::{Layer, Place};
use super::quoted::harmless;
use super::retry_cells::{self, RetryCell};
use super::value::{Shape, Value};
use super::written_agent::WrittenAgent;
use super::written_alert::WrittenAlert;
use crate::nearest::nearest;
use crate::regular_file;

/// No settings file is longer; what is, is something else.
const FILE_MAX: u64 = 1 << 20;

/// What one layer sets, and what is wrong with it.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) values: Vec<(Key, Value, Place)>,
    pub(crate) alerts: Vec<WrittenAlert>,
    pub(crate) agents: Vec<WrittenAgent>,
    pub(crate) retry: Vec<RetryCell>,
    pub(crate) mistakes: Vec<SettingsError>,
}

/// A file's text and where it comes from.
pub(crate) struct Text<'t> {
    path: Option<&'t Path>,
    text: &'t str,
}

impl Text<'_> {
    pub(crate) fn place(&self, at: usize) -> Place {
        match self.path {
            Some(path) => Place::in_text(path.to_owned(), self.text, at),
            None => Place::BuiltIn,
        }
    }

    /// A part of it, as it is written.
    pub(super) fn at(&self, span: std::ops::Range<usize>) -> &str {
        self.text.get(span).unwrap_or_default()
    }
}

impl Written {
    /// Reads a file. One that is not there sets nothing.
    pub(crate) fn in_file(path: &Path, layer: Layer, home: Option<&Path>) -> Written {
        match read(path) {
            Ok(None) => Written::default(),
            Ok(Some(text)) => Written::in_text(&Text { path: Some(path), text: &text }, layer, home),
            Err(mistake) => Written { mistakes: vec![mistake], ..Written::default() },
        }
    }

    /// Reads the file that is built in.
    pub(crate) fn built_in(text: &str) -> Written {
        Written::in_text(&Text { path: None, text }, Layer::BuiltIn, None)
    }

    fn in_text(text: &Text<'_>, layer: Layer, home: Option<&Path>) -> Written {
        let mut written = Written::default();
        // Nobody knows what a file that is half understood was meant to say, so a broken one says nothing at all.
        let table = match DeTable::parse(text.text) {
            Ok(table) => table,
            Err(error) => {
                let place = text.place(error.span().map_or(0, |span| span.start));
                let what = harmless(&error.message().trim().replace('\n', ", "));
                written.mistakes.push(SettingsError::Syntax { place, what });
                return written;
            }
        };
        // Mistakes are told in the order of the file; the map has an order of its own.
        let mut entries: Vec<_> = table.get_ref().iter().collect();
        entries.sort_unstable_by_key(|(name, _)| name.span().start);
        for (name, value) in entries {
            let at = name.span().start;
            match (name.get_ref().as_ref(), value.get_ref()) {
                ("alert", value) => written.take_alerts(text, layer, at, value),
                ("agent", value) => written.take_agents(text, layer, at, value),
                (retry_cells::SECTION, DeValue::Table(table)) => written.take_retry(text, layer, at, table),
                (section, DeValue::Table(table)) if Key::is_section(section) => {
                    let mut entries: Vec<_> = table.iter().collect();
                    entries.sort_unstable_by_key(|(name, _)| name.span().start);
                    for (bare, value) in entries {
                        let name = format!("{section}.{}", bare.get_ref());
                        let place = text.place(bare.span().start);
                        let found = match value.get_ref() {
                            DeValue::String(text) => Found::Text(text),
                            DeValue::Boolean(on) => Found::Flag(*on),
                            DeValue::Integer(number) if number.radix() == 10 => {
                                Found::Number(number.as_str())
                            }
                            other => Found::Other(other.type_str()),
                        };
                        written.take(&name, found, place, home);
                    }
                }
                (name, _) => {
                    let place = text.place(at);
                    let sections = Key::ALL.iter().map(|key| key.row().section()).chain([
                        "alert",
                        "agent",
                        retry_cells::SECTION,
                    ]);
                    let section = nearest(name, sections).map(|section| format!("[{section}]"));
                    let nearest = match value.get_ref() {
                        DeValue::Table(_) | DeValue::Array(_) => section,
                        _ => Key::nearest(name).map(str::to_owned).or(section),
                    };
                    let name = name.to_owned();
                    written.mistakes.push(SettingsError::UnknownKey { place, name, nearest });
                }
            }
        }
        written
    }

    fn take(&mut self, name: &str, found: Found<'_>, place: Place, home: Option<&Path>) {
        let Some(key) = Key::named(name) else {
            let nearest = Key::nearest(name).map(str::to_owned);
            self.mistakes.push(SettingsError::UnknownKey { place, name: name.to_owned(), nearest });
            return;
        };
        let shape = key.row().shape;
        let value = match (shape, found) {
            (Shape::Flag, Found::Flag(on)) => Some(Value::Flag(on)),
            // A file says `true`, not `"true"`; a variable can only say it in text.
            (Shape::Flag, Found::Text(_)) => None,
            // And it says `3`, not `"3"`.
            (shape @ Shape::Count(..), Found::Number(text) | Found::Bare(text)) => shape.read(text, home),
            (Shape::Count(..), Found::Text(_)) => None,
            (shape, Found::Text(text) | Found::Bare(text)) => shape.read(text, home),
            (_, Found::Flag(_) | Found::Number(_) | Found::Other(_)) => None,
        };
        match value {
            Some(value) => self.values.push((key, value, place)),
            None => self.mistakes.push(SettingsError::WrongValue {
                place,
                name: name.to_owned(),
                wanted: Box::new(Wanted::Shape(shape)),
                found: found.misfit(),
            }),
        }
    }

    fn take_alerts(&mut self, text: &Text<'_>, layer: Layer, at: usize, value: &DeValue<'_>) {
        if layer == Layer::Project {
            let name = "alert".to_owned();
            self.mistakes.push(SettingsError::NotForProjects { place: text.place(at), name });
            return;
        }
        let tables = value.as_array().map(|list| {
            list.iter().map(|alert| alert.get_ref().as_table().map(|table| (alert.span().start, table)))
        });
        let Some(tables) = tables.and_then(|tables| tables.collect::<Option<Vec<_>>>()) else {
            self.mistakes.push(SettingsError::WrongValue {
                place: text.place(at),
                name: "alert".to_owned(),
                wanted: Box::new(Wanted::Alerts),
                found: Misfit::OfType(value.type_str()),
            });
            return;
        };
        for (at, table) in tables {
            match WrittenAlert::read(text, layer, at, table) {
                Ok(alert) if self.alerts.iter().any(|other| other.name == alert.name) => {
                    let what = Box::new(EntryMistake::Twice);
                    self.mistakes.push(SettingsError::Alert { place: alert.place, name: alert.name, what });
                }
                Ok(alert) => self.alerts.push(alert),
                Err(mistakes) => self.mistakes.extend(mistakes),
            }
        }
    }

    /// Programs to run. What a project says is never run.
    fn take_agents(&mut self, text: &Text<'_>, layer: Layer, at: usize, value: &DeValue<'_>) {
        if layer == Layer::Project {
            let name = "agent".to_owned();
            self.mistakes.push(SettingsError::NotForProjects { place: text.place(at), name });
            return;
        }
        let wrong = |at: usize, value: &DeValue<'_>| SettingsError::WrongValue {
            place: text.place(at),
            name: "agent".to_owned(),
            wanted: Box::new(Wanted::Agents),
            found: Misfit::OfType(value.type_str()),
        };
        let Some(agents) = value.as_table() else {
            self.mistakes.push(wrong(at, value));
            return;
        };
        for (name, value) in agents {
            let at = name.span().start;
            let read = match value.get_ref().as_table() {
                Some(table) => WrittenAgent::read(text, layer, name.get_ref(), at, table),
                None => Err(vec![wrong(at, value.get_ref())]),
            };
            match read {
                Ok(agent) => self.agents.push(agent),
                Err(mistakes) => self.mistakes.extend(mistakes),
            }
        }
    }

    /// Retries and waits. They bear on all that runs here, so a project does not say them.
    fn take_retry(&mut self, text: &Text<'_>, layer: Layer, at: usize, table: &DeTable<'_>) {
        if layer == Layer::Project {
            let name = retry_cells::SECTION.to_owned();
            self.mistakes.push(SettingsError::NotForProjects { place: text.place(at), name });
            return;
        }
        RetryCell::in_table(text, layer, table).into_iter().for_each(|cell| self.take_cell(cell));
    }

    fn take_cell(&mut self, cell: Result<RetryCell, SettingsError>) {
        match cell {
            Ok(cell) => self.retry.push(cell),
            Err(mistake) => self.mistakes.push(mistake),
        }
    }

    /// What variables set. An empty one counts as not set, as everywhere.
    pub(crate) fn in_environment(around: &Around) -> Written {
        let mut written = Written::default();
        for (name, value) in around.variables.iter().filter(|(_, value)| !value.is_empty()) {
            let place = Place::Variable(name.clone());
            match Key::ALL.iter().find(|key| key.variable() == *name) {
                Some(key) => {
                    // A text that is no UTF-8 fits no shape, so it is refused as it is.
                    let text = value.to_string_lossy();
                    written.take(key.row().name, Found::Bare(&text), place, around.home.as_deref());
                }
                None => written.mistakes.extend(unknown_variable(name, place)),
            }
        }
        written
    }

    /// What `--set KEY=VALUE` flags set; the last one counts.
    pub(crate) fn in_flags(flags: &[String], home: Option<&Path>) -> Written {
        let mut written = Written::default();
        for flag in flags {
            match flag.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
                Some((name, _)) if name == "alert" || name.starts_with("alert.") => {
                    written.mistakes.push(SettingsError::AlertOutsideFile { place: Place::Flag });
                }
                Some((name, _)) if name == "agent" || name.starts_with("agent.") => {
                    written.mistakes.push(SettingsError::AgentOutsideFile { place: Place::Flag });
                }
                Some((name, value)) if name.split('.').next() == Some(retry_cells::SECTION) => {
                    written.take_cell(RetryCell::in_flag(name, value));
                }
                Some((name, value)) => written.take(name, Found::Bare(value), Place::Flag, home),
                None => written.mistakes.push(SettingsError::NoAssignment { written: flag.clone() }),
            }
        }
        written
    }
}

/// What stands where a value should.
#[derive(Clone, Copy)]
enum Found<'f> {
    /// A string of a file.
    Text(&'f str),
    /// What a variable or a flag says.
    Bare(&'f str),
    Flag(bool),
    /// A whole number of a file, as it is written.
    Number(&'f str),
    /// Something no setting is made of, by its type.
    Other(&'static str),
}

impl Found<'_> {
    fn misfit(self) -> Misfit {
        match self {
            Found::Text(text) | Found::Bare(text) => Misfit::Written(text.to_owned()),
            Found::Flag(on) => Misfit::Written(on.to_string()),
            Found::Number(_) => Misfit::OfType("integer"),
            Found::Other(type_name) => Misfit::OfType(type_name),
        }
    }
}

/// A variable of ours that sets nothing. One that does not look like a setting may be somebody else's.
fn unknown_variable(name: &str, place: Place) -> Option<SettingsError> {
    let rest = name.strip_prefix("UNSTUCK_")?;
    let in_section = Key::ALL.iter().any(|key| {
        let section = key.row().section();
        rest.split_once('_').is_some_and(|(first, _)| first.eq_ignore_ascii_case(section))
    });
    let variables: Vec<String> = Key::ALL.iter().map(|key| key.variable()).collect();
    let likeness = |variable: &String| strsim::jaro_winkler(rest, variable.trim_start_matches("UNSTUCK_"));
    let best = variables.iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)))?;
    let is_near = likeness(best) > 0.75;
    let nearest = is_near.then(|| best.clone());
    (in_section || likeness(best) > 0.9).then(|| SettingsError::UnknownKey {
        place,
        name: name.to_owned(),
        nearest,
    })
}

/// Reads a file that may not be there. Whatever else stands in its place (a pipe that nobody writes to, a device, a
/// folder) is looked at before it is opened, because opening it could wait for ever.
fn read(path: &Path) -> Result<Option<String>, SettingsError> {
    let owned = || path.to_owned();
    let unreadable = |source: io::Error| SettingsError::Unreadable { path: owned(), source };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if is_absent(&error) => {
            // A link to nothing was put there by somebody who expects it to be read.
            return match fs::symlink_metadata(path) {
                Ok(_) => Err(unreadable(error)),
                Err(_) => Ok(None),
            };
        }
        Err(error) => return Err(unreadable(error)),
    };
    if !metadata.is_file() {
        return Err(SettingsError::NoFile { path: owned() });
    }
    let mut bytes = Vec::new();
    let file = regular_file::open(path).map_err(unreadable)?;
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(SettingsError::TooLarge { path: owned() });
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let sound = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
            Err(SettingsError::NoText { place: Place::in_text(PathBuf::from(path), &sound, at) })
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
