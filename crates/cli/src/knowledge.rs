//! Gathers the rules: `--rules` files first, then the user's own folder, then what is built in.

use std::fs;
use std::path::{Path, PathBuf};

use unstuck_judge::Rules;
use unstuck_judge::rules::Table;

use crate::exit::CommandError;
use crate::regular_file;
use crate::settings::config_folder;
use crate::ui::Ui;

/// Maximum size of one file of rules.
const FILE_MAX: u64 = 16 << 20;

/// Loads all rules. Mistakes in a file are named on standard error; the rest of it is used.
pub(crate) fn load(ui: &mut Ui, files: &[PathBuf]) -> Result<Rules, CommandError> {
    let mut rules = Rules::built_in();
    // What comes last stands first, so the weakest layer is added first.
    for path in user_files() {
        match add(ui, &mut rules, &path) {
            // Nobody asked for this file by name, so it alone is left out.
            Err(error @ CommandError::Unreadable { .. }) => ui.remark(&format!("unstuck: {error}\n"))?,
            result => result?,
        }
    }
    for path in files.iter().rev() {
        add(ui, &mut rules, path)?;
    }
    Ok(rules)
}

/// Loads the user's rules and the built-in ones, and says nothing: what is wrong with a file is handed back.
pub(crate) fn load_quietly() -> (Rules, Vec<String>) {
    let mut rules = Rules::built_in();
    let mut mistakes = Vec::new();
    for path in user_files() {
        match read(&path) {
            Ok(text) => {
                let (table, errors) = Table::from_toml(&text);
                mistakes.extend(errors.iter().map(|error| format!("{}: {error}", path.display())));
                rules.put_first(table);
            }
            Err(error) => mistakes.push(error.to_string()),
        }
    }
    (rules, mistakes)
}

fn add(ui: &mut Ui, rules: &mut Rules, path: &Path) -> Result<(), CommandError> {
    let (table, errors) = Table::from_toml(&read(path)?);
    for error in errors {
        ui.remark(&format!("unstuck: {}: {error}\n", path.display()))?;
    }
    rules.put_first(table);
    Ok(())
}

/// Reads a rule file; a byte that is no UTF-8 spoils its own rule, not the file.
pub(crate) fn read(path: &Path) -> Result<String, CommandError> {
    let bytes = regular_file::read(path, FILE_MAX)
        .map_err(|source| CommandError::Unreadable { path: path.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The rule files of the user's configuration folder, weakest first.
fn user_files() -> Vec<PathBuf> {
    let Some(folder) = config_folder() else { return Vec::new() };
    let Ok(entries) = fs::read_dir(folder.join("rules")) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort_unstable_by(|one, other| other.cmp(one));
    files
}
