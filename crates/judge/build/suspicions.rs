//! Compiles `rules/suspicions.toml` into a static table. A row that says too much or too little stops the build.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sign: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    why: Text,
    programs: Vec<String>,
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    unless: Vec<String>,
    looks: Looks,
    #[serde(default)]
    hints: Vec<String>,
    bad: Option<String>,
    good: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    en: String,
    zh: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Looks {
    Lines,
    ErrorPage,
    CutJson,
}

/// Writes `suspicions.rs` into `out`.
pub fn compile(rules: &Path, out: &Path) {
    let text = fs::read_to_string(rules.join("suspicions.toml")).expect("rules/suspicions.toml is there");
    let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("rules/suspicions.toml: {error}"));
    let mut code = String::from("pub(super) static ROWS: &[Row] = &[\n");
    for (at, row) in file.sign.iter().enumerate() {
        let Row { id, why, programs, words, unless, hints, good, .. } = row;
        assert!(file.sign[..at].iter().all(|other| other.id != *id), "{id} stands there twice");
        assert!(!why.en.is_empty() && !why.zh.is_empty(), "{id}: says why in both languages");
        assert!(!programs.is_empty(), "{id}: programs that give it");
        let sign = match (&row.looks, &row.bad) {
            (Looks::Lines, Some(bad)) => {
                assert!(!hints.is_empty(), "{id}: a line without a hint is never looked at");
                format!("Sign::Lines {{ hints: &{hints:?}, bad: {bad:?}, good: {good:?} }}")
            }
            (Looks::Lines, None) => panic!("{id}: lines that are bad"),
            (Looks::ErrorPage | Looks::CutJson, bad) => {
                let says = bad.is_some() || good.is_some() || !hints.is_empty();
                assert!(!says, "{id}: hints, bad and good are of lines");
                let looks = if matches!(row.looks, Looks::CutJson) { "CutJson" } else { "ErrorPage" };
                format!("Sign::{looks}")
            }
        };
        let _ = writeln!(
            code,
            "Row {{ id: {id:?}, programs: &{programs:?}, words: &{words:?}, unless: &{unless:?}, sign: {sign}, \
             why: [{:?}, {:?}] }},",
            why.en, why.zh
        );
    }
    code += "];\n";
    fs::write(out.join("suspicions.rs"), code).expect("OUT_DIR can be written");
}
