//! Writes the pages under `docs/` that are made from tables.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use lexopt::prelude::*;
use toml::{Table, Value};

use crate::{Fault, accept, project};

const MADE_BY: &str = "<!-- Made from rules/ by `cargo xtask gen`; change the tables, not this page. -->";

/// `cargo xtask gen`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    match args.next()? {
        None => pages()?.into_iter().try_for_each(|(path, text)| Ok(fs::write(path, text)?)),
        Some(Long("check")) => check().map(|note| println!("{note}")),
        Some(other) => Err(other.unexpected().into()),
    }
}

/// Fails where a page is not what the tables would make it today.
pub fn check() -> Result<String, Fault> {
    let pages = pages()?;
    for (path, text) in &pages {
        if fs::read_to_string(path).unwrap_or_default() != *text {
            return Err(format!("{} is out of date: run `cargo xtask gen`", path.display()).into());
        }
    }
    Ok(format!("{} pages up to date", pages.len()))
}

fn pages() -> Result<[(PathBuf, String); 4], Fault> {
    let docs = project::root().join("docs");
    Ok([
        (docs.join("kinds.md"), kinds()?),
        (docs.join("rules-list.md"), rules_list()?),
        (docs.join("risky.md"), risky()?),
        (docs.join("requirements.md"), accept::page()?),
    ])
}

/// The kinds with all that follows from a kind alone, in the order of the table.
fn kinds() -> Result<String, Fault> {
    let text = fs::read_to_string(project::root().join("rules/kinds.toml"))?;
    let table: Table = text.parse()?;
    let mut page = format!(
        "{MADE_BY}\n# Kinds\n\n\
         What a cause is called, and what follows from it where no rule knows better: may the same call work later by\n\
         itself, who can fix it, may it run again otherwise; then the older words of the field for the same thing, which stay\n\
         visible as aliases.\n\n\
         | kind | transient | fix by | again | `errorType` | `category` | `tag` |\n|---|---|---|---|---|---|---|\n"
    );
    // A TOML table does not keep its order, but the file has one that means something.
    let order = text.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    for kind in order {
        let row =
            table.get(kind).and_then(Value::as_table).ok_or_else(|| format!("kinds.toml: no row {kind}"))?;
        let cell = |key: &str| match row.get(key) {
            Some(Value::String(word)) => word.clone(),
            Some(Value::Boolean(true)) => "yes".to_owned(),
            Some(_) | None => String::new(),
        };
        let columns = ["transient", "fix_by", "again", "errorType", "category", "tag"];
        writeln!(page, "| `{kind}` | {} |", columns.map(cell).join(" | "))?;
    }
    Ok(page)
}

/// Every rule by file: its id and its kind.
fn rules_list() -> Result<String, Fault> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(project::root().join("rules"))?.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let mut sections = String::new();
    let mut contents = String::new();
    let mut total = 0;
    for path in paths {
        let text = fs::read_to_string(&path)?;
        let table: Table = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
        let Some(rules) = table.get("rule").and_then(Value::as_array) else { continue };
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let field =
            |rule: &Value, key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kinds: BTreeSet<String> = rules.iter().map(|rule| field(rule, "kind")).collect();
        total += rules.len();
        let list = kinds.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ");
        writeln!(contents, "| [{name}](#{name}) | {} | {list} |", rules.len())?;
        writeln!(sections, "\n## {name}\n| rule | kind |\n|---|---|")?;
        for rule in rules {
            writeln!(sections, "| `{}` | `{}` |", field(rule, "id"), field(rule, "kind"))?;
        }
    }
    Ok(format!(
        "{MADE_BY}\n# The built-in rules\n\n{total} rules. `unstuck rules show ID` prints one of them in full; [rules](rules.md) tells how to \
         read and write them.\n\n| file | rules | kinds |\n|---|---|---|\n{contents}{sections}"
    ))
}

/// Which calls put files at risk, in the order of the table.
fn risky() -> Result<String, Fault> {
    let table: Table = fs::read_to_string(project::root().join("rules/risky.toml"))?.parse()?;
    let mut page = format!(
        "{MADE_BY}\n# Calls that put files at risk\n\n\
         Before such a call runs, the files that it would touch are put into the safe. What is not there is not at risk, and\n\
         `--help`, `--version` and `--dry-run` make any command harmless. A command in a container, on another machine or under\n\
         another root touches other files than ours. Where the words do not tell which files are meant (a variable that the line\n\
         does not set, `xargs rm`), it is the whole project. Rows marked *edits* count only with `protect = \"edits\"`. The same\n\
         list is printed by `unstuck rules risky`.\n\n\
         | row | what may be lost | calls | at risk |\n|---|---|---|---|\n"
    );
    let rows = table.get("risk").and_then(Value::as_array).ok_or("risky.toml has no rows")?;
    for row in rows {
        let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
        let words = |key: &str| -> Vec<String> {
            let list = row.get(key).and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(|word| format!("`{word}`")).collect()
        };
        let joined = |lead: &str, key: &str, join: &str| match words(key) {
            words if words.is_empty() => String::new(),
            words => format!("{lead}{}", words.join(join)),
        };
        let why = row.get("why").and_then(|why| why.get("en")).and_then(Value::as_str).unwrap_or_default();
        let redirect = match text("redirect") {
            "write" => "`> FILE`",
            "append" => "`>> FILE`",
            _ => "",
        };
        let calls = [
            joined("", "run", ", "),
            redirect.to_owned(),
            joined("the tools ", "tools", ", "),
            joined("; with ", "any", " or "),
            joined("; without ", "without", " and "),
            if row.get("says").is_some() {
                "; the code says that it writes".to_owned()
            } else {
                String::new()
            },
            if row.get("input").is_some() { "; as its input says".to_owned() } else { String::new() },
        ];
        let edits = if text("counts") == "edits" { " (*edits*)" } else { "" };
        let takes = match (redirect.is_empty(), joined("", "names", ", ")) {
            (false, _) => "the file".to_owned(),
            (true, names) if !names.is_empty() => names,
            (true, _) => words("takes").iter().map(|takes| in_words(takes)).collect::<Vec<_>>().join(", "),
        };
        writeln!(page, "| `{}`{edits} | {why} | {} | {takes} |", text("id"), calls.concat())?;
    }
    Ok(page)
}

/// What is at risk, as a person would say it.
fn in_words(takes: &str) -> &str {
    match takes.trim_matches('`') {
        "operands" | "after-first" | "fields" => "the files it names",
        "operands-or-folder" => "the files it names, or the folder",
        "last" | "over" | "values" | "url-names" => "the file it writes",
        "move" => "what it moves, and what it writes over",
        "start-paths" => "what lies below the folders it names",
        "patched" | "patches" => "the files that the patch names",
        "folder" => "the folder",
        "repository" => "the work tree and what git keeps",
        "git-folder" => "what git keeps",
        "git-index" | "git-index-too" => "the index of git",
        "suffixed" => "what it makes beside them",
        "git-state" => "what git keeps, but for its objects",
        "workspace" => "the project",
        other => other,
    }
}
