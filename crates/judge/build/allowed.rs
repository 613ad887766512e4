//! Turns `rules/allowed-steps.toml` into constants: rows of steps, calls and starters, variables, and shapes of words.
//!
//! Names stand in one text for each row, because every pointer in a constant costs each start of the program a little.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileAllowed {
    everywhere: String,
    folders: Vec<String>,
    own: Vec<String>,
    as_root: String,
    rooted: Vec<String>,
    plain_tasks: Vec<String>,
    checking: Vec<String>,
    tool_verbs: Vec<String>,
    step: Vec<FileRow>,
    call: Vec<FileRow>,
    starter: Vec<FileRow>,
    variables: FileVariables,
    shapes: BTreeMap<String, String>,
    checked: BTreeMap<String, Vec<String>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRow {
    run: Vec<String>,
    #[serde(default)]
    flags: String,
    #[serde(default)]
    words: String,
    #[serde(default)]
    ordered: bool,
    #[serde(default)]
    fetched: FileRegistry,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum FileRegistry {
    #[default]
    None,
    Npm,
    Pypi,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileVariables {
    set: String,
}

/// Writes the constants. A shape that is not there, or that is no regular expression, ends the build.
pub(crate) fn compile(rules_dir: &Path, out_dir: &Path) {
    let text = fs::read_to_string(rules_dir.join("allowed-steps.toml")).expect("the file is there");
    let file: FileAllowed =
        toml::from_str(&text).unwrap_or_else(|error| panic!("rules/allowed-steps.toml: {error}"));
    for (name, shape) in &file.shapes {
        regex_lite::Regex::new(&format!("^(?:{shape})$"))
            .unwrap_or_else(|error| panic!("the shape {name}: {error}"));
    }
    let shape = |name: &str| {
        let place = file.shapes.keys().position(|known| known == name);
        place.unwrap_or_else(|| panic!("no shape is called {name}"))
    };
    let mut code = String::new();
    let mut list = |name: &str, words: &[String]| {
        writeln!(code, "const {name}: &[&str] = &{words:?};").expect("a string grows");
    };
    list("FOLDERS", &file.folders);
    list("OWN", &file.own);
    list("ROOTED", &file.rooted);
    list("PLAIN_TASKS", &file.plain_tasks);
    list("CHECKING", &file.checking);
    list("TOOL_VERBS", &file.tool_verbs);
    for (name, words) in &file.checked {
        list(&name.to_uppercase(), words);
    }
    let named = |word: &str| match word.rsplit_once(':') {
        Some((name, value)) if file.shapes.contains_key(value) => format!("{name}\t{}", shape(value)),
        _ => word.to_owned(),
    };
    let as_root: Vec<&str> = file.as_root.split_whitespace().collect();
    let all_named = |words: &str| words.split_whitespace().map(named).collect::<Vec<_>>().join(" ");
    writeln!(code, "const AS_ROOT: &str = {:?};", as_root.join("|")).expect("a string grows");
    writeln!(code, "const EVERYWHERE: &str = {:?};", all_named(&file.everywhere)).expect("a string grows");
    for (name, rows) in [("STEPS", &file.step), ("CALLS", &file.call), ("STARTERS", &file.starter)] {
        writeln!(code, "const {name}: &[Row] = &[").expect("a string grows");
        for row in rows {
            let words: Vec<usize> = row.words.split_whitespace().map(shape).collect();
            writeln!(
                code,
                "    Row {{ run: {:?}, flags: {:?}, words: &{words:?}, ordered: {}, fetched: Registry::{:?} }},",
                row.run.join("\n"),
                all_named(&row.flags),
                row.ordered,
                row.fetched
            )
            .expect("a string grows");
        }
        writeln!(code, "];").expect("a string grows");
    }
    let variables = all_named(&file.variables.set);
    assert_eq!(variables.matches(' ').count() + 1, variables.matches('\t').count(), "a variable has a shape");
    writeln!(code, "const VARIABLES: &str = {variables:?};").expect("a string grows");
    let shapes: Vec<String> =
        file.shapes.iter().map(|(name, shape)| format!("({name:?}, {shape:?})")).collect();
    writeln!(code, "const SHAPES: [(&str, &str); {}] = [{}];", shapes.len(), shapes.join(", "))
        .expect("a string grows");
    fs::write(out_dir.join("allowed.rs"), code).expect("OUT_DIR can be written");
}
