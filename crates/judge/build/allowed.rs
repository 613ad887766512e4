//! Turns `rules/allowed-steps.toml` into constants: rows of steps, calls and starters, variables, and shapes of words.

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
    fetched: bool,
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
    let flag = |word: &str| match word.rsplit_once(':') {
        Some((name, value)) if name.starts_with('-') && file.shapes.contains_key(value) => {
            format!("Flag {{ name: {name:?}, value: Some({}) }}", shape(value))
        }
        _ => format!("Flag {{ name: {word:?}, value: None }}"),
    };
    let flags = |words: &str| words.split_whitespace().map(flag).collect::<Vec<_>>().join(", ");
    writeln!(code, "const EVERYWHERE: &[Flag] = &[{}];", flags(&file.everywhere)).expect("a string grows");
    for (name, rows) in [("STEPS", &file.step), ("CALLS", &file.call), ("STARTERS", &file.starter)] {
        writeln!(code, "const {name}: &[Row] = &[").expect("a string grows");
        for row in rows {
            let run: Vec<String> = row
                .run
                .iter()
                .map(|run| {
                    let words =
                        run.split(' ').map(|word| format!("&{:?}", word.split('|').collect::<Vec<_>>()));
                    format!("&[{}]", words.collect::<Vec<_>>().join(", "))
                })
                .collect();
            let words: Vec<usize> = row.words.split_whitespace().map(shape).collect();
            writeln!(
                code,
                "    Row {{ run: &[{}], flags: &[{}], words: &{words:?}, ordered: {}, fetched: {} }},",
                run.join(", "),
                flags(&row.flags),
                row.ordered,
                row.fetched
            )
            .expect("a string grows");
        }
        writeln!(code, "];").expect("a string grows");
    }
    let variables: Vec<String> = file
        .variables
        .set
        .split_whitespace()
        .map(|variable| {
            let (name, value) = variable.split_once(':').expect("a variable has a shape");
            format!("({name:?}, {})", shape(value))
        })
        .collect();
    writeln!(code, "const VARIABLES: &[(&str, usize)] = &[{}];", variables.join(", "))
        .expect("a string grows");
    let shapes: Vec<String> =
        file.shapes.iter().map(|(name, shape)| format!("({name:?}, {shape:?})")).collect();
    writeln!(code, "const SHAPES: [(&str, &str); {}] = [{}];", shapes.len(), shapes.join(", "))
        .expect("a string grows");
    fs::write(out_dir.join("allowed.rs"), code).expect("OUT_DIR can be written");
}
