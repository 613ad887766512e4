//! The file of recorded figures: a table for each set, of which no figure may become worse.

use std::fs;
use std::path::PathBuf;

use super::figure::{self, Figure};
use crate::{Fault, project};

/// Where it lies, from the project's root.
pub const FILE: &str = "corpus/recorded.toml";
const HEAD: &str = "# Written by `cargo xtask score --record` and `cargo xtask honest --record`; no figure may become worse than this.\n";

fn path() -> PathBuf {
    project::root().join(FILE)
}

/// Writes the figures of these sets, and keeps those of others.
pub fn write(measured: &[(String, Vec<Figure>)]) -> Result<(), Fault> {
    let before = fs::read_to_string(path())?;
    let mut tables: Vec<(String, String)> = before.split("\n[").skip(1).map(named).collect();
    for (name, figures) in measured {
        let table = figure::to_toml(name, figures);
        match tables.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = table,
            None => tables.push((name.clone(), table)),
        }
    }
    let tables = tables.into_iter().map(|(_, table)| format!("\n{table}"));
    Ok(fs::write(path(), [HEAD.to_owned()].into_iter().chain(tables).collect::<String>())?)
}

/// A table as it stands in the file, with its name.
fn named(table: &str) -> (String, String) {
    let name = table.split_once(']').map_or(table, |(name, _)| name).trim_matches('"');
    (name.to_owned(), format!("[{}\n", table.trim_end()))
}

/// Names every figure that is worse than the recorded one.
pub fn compare(measured: &[(String, Vec<Figure>)]) -> Result<Vec<String>, Fault> {
    let recorded: toml::Table = fs::read_to_string(path())?.parse()?;
    let mut drops = Vec::new();
    for (name, figures) in measured {
        drops.extend(figure::compare(name, figures, &recorded)?);
    }
    Ok(drops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_file_is_split_at_its_tables_and_nothing_is_lost() {
        let text = fs::read_to_string(path()).unwrap();
        let tables: String =
            text.split("\n[").skip(1).map(named).map(|(_, table)| format!("\n{table}")).collect();
        assert_eq!(text, format!("{HEAD}{tables}"));
    }
}
