//! `[retry]`: cells of the table of retries and waits, as `rules/retry.toml` has them, laid over the built-in one.
//!
//! Each cell is read by itself, so that a mistake spoils its own cell and no other.

use toml::de::{DeTable, DeValue};
use unstuck_judge::retry::Policy;

use super::error::SettingsError;
use super::layer::{Layer, Place};
use super::quoted::harmless;
use super::written::Text;

/// The section they stand in.
pub(crate) const SECTION: &str = "retry";

/// One cell, such as `kinds.network.retries`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RetryCell {
    /// Its name below `retry`, with the parts quoted that need it.
    path: String,
    /// Its value, as TOML has it.
    value: String,
    pub(crate) layer: Layer,
    pub(crate) place: Place,
}

impl RetryCell {
    /// The name that a person reads.
    pub(crate) fn name(&self) -> String {
        format!("{SECTION}.{}", self.path)
    }

    /// The value that a person reads.
    pub(crate) fn value(&self) -> &str {
        self.value.trim_matches('"')
    }

    /// The cell as a policy file of its own.
    pub(crate) fn text(&self) -> String {
        format!("{} = {}", self.path, self.value)
    }

    /// Reads what a file says in its section.
    pub(super) fn in_table(
        file: &Text<'_>,
        layer: Layer,
        table: &DeTable<'_>,
    ) -> Vec<Result<RetryCell, SettingsError>> {
        let mut cells = Vec::new();
        collect(file, layer, "", table, &mut cells);
        // The number of retries sets the most of them as well, unless that has its own cell.
        cells.sort_by_key(|cell| !cell.path.ends_with(".retries"));
        cells.into_iter().map(RetryCell::checked).collect()
    }

    /// Reads `--set retry.kinds.network.retries=4`. A text needs no quotes there.
    pub(super) fn in_flag(name: &str, value: &str) -> Result<RetryCell, SettingsError> {
        let path = name.strip_prefix(SECTION).and_then(|rest| rest.strip_prefix('.')).unwrap_or_default();
        let is_bare = DeTable::parse(&format!("cell = {value}")).is_ok();
        let value = if is_bare { value.to_owned() } else { format!("{value:?}") };
        let cell = RetryCell { path: path.to_owned(), value, layer: Layer::Flags, place: Place::Flag };
        cell.checked()
    }

    fn checked(self) -> Result<RetryCell, SettingsError> {
        match Policy::built_in().overlaid(&self.text()) {
            Ok(_) => Ok(self),
            Err(error) => {
                let what = harmless(&error.what.trim().replace('\n', ", "));
                Err(SettingsError::Retry { name: self.name(), place: self.place, what })
            }
        }
    }
}

fn collect(file: &Text<'_>, layer: Layer, path: &str, table: &DeTable<'_>, cells: &mut Vec<RetryCell>) {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_unstable_by_key(|(name, _)| name.span().start);
    for (name, value) in entries {
        let part = part(name.get_ref());
        let path = if path.is_empty() { part } else { format!("{path}.{part}") };
        match value.get_ref() {
            DeValue::Table(table) => collect(file, layer, &path, table, cells),
            _ => cells.push(RetryCell {
                path,
                value: file.at(value.span()).to_owned(),
                layer,
                place: file.place(name.span().start),
            }),
        }
    }
}

/// A part of a name, as TOML writes it.
fn part(name: &str) -> String {
    let is_bare = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-');
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => format!("{name:?}"),
    }
}
