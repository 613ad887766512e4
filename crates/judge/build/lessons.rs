//! Turns `rules/lessons.toml` into constants: a file for each part, a constant for each list, under its own name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum FileList {
    Words(Vec<String>),
    /// Words that mean something behind another one.
    Behind(BTreeMap<String, Vec<String>>),
}

/// Writes the constants. A list that nobody uses is dead code, and one that is missing does not compile.
pub(crate) fn compile(rules_dir: &Path, out_dir: &Path) {
    let text = fs::read_to_string(rules_dir.join("lessons.toml")).expect("rules/lessons.toml is there");
    let parts: BTreeMap<String, BTreeMap<String, FileList>> =
        toml::from_str(&text).unwrap_or_else(|error| panic!("rules/lessons.toml: {error}"));
    for (part, lists) in parts {
        let mut code = String::new();
        for (name, list) in lists {
            let name = name.to_uppercase();
            let written = match list {
                FileList::Words(words) => writeln!(code, "const {name}: &[&str] = &{words:?};"),
                FileList::Behind(rows) => {
                    let rows: Vec<String> =
                        rows.iter().map(|(word, behind)| format!("({word:?}, &{behind:?})")).collect();
                    writeln!(code, "const {name}: &[(&str, &[&str])] = &[{}];", rows.join(", "))
                }
            };
            written.expect("a string grows");
        }
        fs::write(out_dir.join(part).with_extension("rs"), code).expect("OUT_DIR can be written");
    }
}
