//! `rules/commands.toml` as a sorted static table: what programs, sub-commands and tools do. A mistake in the file
//! stops the build and names its row.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    commands: Vec<Commands>,
    flags: Vec<Flags>,
    valued: BTreeMap<String, Vec<String>>,
    tools: Vec<Tools>,
    looks: Vec<Looks>,
}

/// Commands and tools that are known to only look, however they are called within these limits.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Looks {
    #[serde(default)]
    run: Vec<String>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    not_with: Vec<String>,
    operands: Option<usize>,
    #[serde(default)]
    fills: bool,
}

/// Commands that are alike: each is a program, or a program with one or two sub-commands.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commands {
    what: String,
    run: Vec<String>,
    nature: Nature,
    #[serde(default)]
    moves_world: bool,
    #[serde(default)]
    reader: bool,
    #[serde(default)]
    filter: bool,
    #[serde(default)]
    poller: bool,
    #[serde(default)]
    quiet: bool,
    #[serde(default)]
    checks: bool,
}

/// Flags that give a command another nature.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flags {
    run: Vec<String>,
    any: Vec<String>,
    nature: Nature,
    #[serde(default)]
    moves_world: bool,
}

/// Tools that agents bring along, or verbs in the names of tools.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tools {
    what: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    nature: Nature,
    #[serde(default)]
    moves_world: bool,
    #[serde(default)]
    poller: bool,
}

#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
enum Nature {
    ReadOnly,
    Idempotent,
    Writes,
    Unknown,
}

/// Writes `commands.rs` into `out`.
pub fn generate(rules: &Path, out: &Path) {
    let path = rules.join("commands.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut code = String::new();

    let mut rows = BTreeMap::new();
    for group in &file.commands {
        let traits = format!(
            "Traits {{ nature: Nature::{:?}, moves_world: {}, reader: {}, filter: {}, poller: {}, quiet: {}, checks: {} }}",
            group.nature,
            group.moves_world,
            group.reader,
            group.filter,
            group.poller,
            group.quiet,
            group.checks
        );
        assert!(!group.what.is_empty(), "a group of commands says what they do");
        for run in &group.run {
            let earlier = rows.insert(run.as_str(), traits.clone());
            assert!(earlier.is_none(), "{}: `{run}` stands in two groups", path.display());
        }
    }
    table(&mut code, "COMMANDS", "Traits", &rows);

    let mut flags: BTreeMap<&str, String> = BTreeMap::new();
    for group in &file.flags {
        for run in &group.run {
            let list = flags.entry(run.as_str()).or_default();
            let _ = write!(
                list,
                "Change {{ any: &{:?}, nature: Nature::{:?}, moves_world: {} }}, ",
                group.any, group.nature, group.moves_world
            );
        }
    }
    let flags = flags.into_iter().map(|(run, list)| (run, format!("&[{list}]"))).collect();
    table(&mut code, "FLAGS", "&[Change]", &flags);

    let valued = file.valued.iter().map(|(program, flags)| (program.as_str(), words(flags))).collect();
    table(&mut code, "VALUED", "Words", &valued);

    let (mut names, mut verbs) = (BTreeMap::new(), BTreeMap::new());
    for group in &file.tools {
        assert!(!group.what.is_empty(), "a group of tools says what they do");
        let traits = format!(
            "Traits {{ nature: Nature::{:?}, moves_world: {}, reader: false, filter: false, poller: {}, quiet: false, checks: false }}",
            group.nature, group.moves_world, group.poller
        );
        for (map, words) in [(&mut names, &group.names), (&mut verbs, &group.verbs)] {
            for word in words {
                let earlier = map.insert(word.as_str(), traits.clone());
                assert!(earlier.is_none(), "{}: tool word `{word}` stands in two groups", path.display());
            }
        }
    }
    table(&mut code, "TOOLS", "Traits", &names);
    table(&mut code, "VERBS", "Traits", &verbs);

    let (mut looks, mut look_tools) = (BTreeMap::new(), BTreeMap::new());
    for group in &file.looks {
        let limits = format!(
            "Limits {{ not_with: {}, operands: {}, fills: {} }}",
            words(&group.not_with),
            group.operands.map_or("usize::MAX".to_owned(), |most| most.to_string()),
            group.fills
        );
        for run in &group.run {
            let earlier = looks.insert(run.as_str(), limits.clone());
            assert!(earlier.is_none(), "{}: `{run}` stands in two groups of looks", path.display());
        }
        for tool in &group.tools {
            look_tools.insert(tool.as_str(), "()".to_owned());
        }
    }
    table(&mut code, "LOOKS", "Limits", &looks);
    table(&mut code, "LOOK_TOOLS", "()", &look_tools);

    std::fs::write(out.join("commands.rs"), code).expect("the folder for generated files is writable");
}

/// A list of words that holds no pointer for each.
fn words(list: &[String]) -> String {
    assert!(!list.iter().any(|word| word.contains(' ')), "{list:?}: words have no blanks");
    format!("Words({:?})", list.join(" "))
}

/// Writes one table, sorted by key as `BTreeMap` keeps it.
fn table(code: &mut String, name: &str, value: &str, rows: &BTreeMap<&str, String>) {
    let _ = writeln!(code, "static {name}: &[(&str, {value})] = &[");
    for (key, row) in rows {
        let _ = writeln!(code, "    ({key:?}, {row}),");
    }
    code.push_str("];\n");
}
