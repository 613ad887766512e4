//! Turns the tables under `rules/` into statics, so that a process which starts a hundred times an hour parses none.
#![allow(clippy::print_stdout, reason = "a build script talks to cargo through its output")]
#![allow(clippy::disallowed_methods, reason = "it reads the tables so that the judge need not")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use kind::{Kind, NotAWord};
use rules::anchors::Ordinary;
use rules::file::FileRule;
use rules::packed::Packed;
use rules::{anchors, file};

#[path = "build/allowed.rs"]
mod allowed;
#[path = "build/commands.rs"]
mod commands;
#[allow(dead_code)]
#[path = "src/kind.rs"]
#[allow(unused_imports)]
mod kind;
#[path = "build/ladder.rs"]
mod ladder;
#[path = "build/lessons.rs"]
mod lessons;
#[path = "build/retry.rs"]
mod retry;
#[path = "build/rewrites.rs"]
mod rewrites;
#[path = "build/risky.rs"]
mod risky;
#[path = "build/suspicions.rs"]
mod suspicions;
/// The modules that the judge itself reads rules with.
#[allow(dead_code)]
#[path = "src/rules"]
mod rules {
    pub(crate) mod anchors;
    pub(crate) mod file;
    pub(crate) mod packed;
    pub(crate) mod shape;
}

/// Files under `rules/` that hold something else than `[[rule]]` rows.
const OTHER_TABLES: [&str; 11] = [
    "allowed-steps.toml",
    "kinds.toml",
    "remedies.toml",
    "commands.toml",
    "retry.toml",
    "rewrites.toml",
    "risky.toml",
    "suspicions.toml",
    "ladder.toml",
    "ladder-texts.toml",
    "lessons.toml",
];

fn main() {
    let rules_dir = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../rules");
    let out_dir = env::var("OUT_DIR").expect("cargo sets it");
    println!("cargo::rerun-if-changed={}", rules_dir.display());
    for source in ["build.rs", "build", "src/kind.rs", "src/rules", "src/retry/file.rs"] {
        println!("cargo::rerun-if-changed={source}");
    }
    commands::generate(&rules_dir, Path::new(&out_dir));
    ladder::compile(&rules_dir, Path::new(&out_dir));
    lessons::compile(&rules_dir, Path::new(&out_dir));
    allowed::compile(&rules_dir, Path::new(&out_dir));
    retry::compile(&rules_dir, Path::new(&out_dir)).expect("rules/retry.toml");
    rewrites::compile(&rules_dir, Path::new(&out_dir));
    risky::compile(&rules_dir, Path::new(&out_dir));
    suspicions::compile(&rules_dir, Path::new(&out_dir));
    pack_rules(&rules_dir, Path::new(&out_dir));
    let code = kinds(&rules_dir) + &remedies(&rules_dir);
    fs::write(Path::new(&out_dir).join("builtin.rs"), code).expect("OUT_DIR can be written");
}

/// Reads every rule file, in the order of their names; a bad row stops the build and names its place.
fn read_rules(rules_dir: &Path) -> Vec<FileRule> {
    let mut paths: Vec<_> =
        fs::read_dir(rules_dir).expect("rules/ is there").flatten().map(|e| e.path()).collect();
    paths.sort();
    let mut rows = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(".toml") || OTHER_TABLES.contains(&&*name) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a rule file is UTF-8");
        let (rules, errors) = file::read(&text);
        let errors: Vec<String> = errors.iter().map(|error| format!("rules/{name}: {error}")).collect();
        assert!(errors.is_empty(), "\n{}\n", errors.join("\n"));
        rows.extend(rules);
    }
    rows
}

/// Packs all rules into one file. What is looked for in whole outputs must have an anchor; `unless` and `command` see one line.
fn pack_rules(rules_dir: &Path, out_dir: &Path) {
    let rows = read_rules(rules_dir);
    for row in &rows {
        for pattern in [&row.any, &row.with, &row.without, &row.show].into_iter().flatten() {
            assert!(
                anchors::of_pattern(pattern).is_some(),
                "rule {}: pattern {pattern:?} needs {} fixed letters in a row in every branch",
                row.id,
                anchors::WIDTH
            );
        }
    }
    let sample = fs::read_to_string(rules_dir.join("ordinary.txt")).expect("rules/ordinary.txt is there");
    let packed = Packed::pack(&rows, &Ordinary::count(&sample));
    fs::write(out_dir.join("rules.bin"), packed.bytes()).expect("OUT_DIR can be written");
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileKind {
    title: FileText,
    transient: bool,
    fix_by: String,
    again: String,
    #[serde(rename = "errorType")]
    error_type: String,
    category: String,
    by_person: Option<String>,
    tag: String,
    advice: Vec<String>,
}

fn kinds(rules_dir: &Path) -> String {
    let text_of_file = fs::read_to_string(rules_dir.join("kinds.toml")).expect("rules/kinds.toml is there");
    let rows: BTreeMap<String, FileKind> = toml::from_str(&text_of_file).expect("rules/kinds.toml");
    let mut code = String::from("pub(crate) static KINDS: &[KindRow] = &[\n");
    for kind in Kind::ALL {
        let row = rows.get(kind.word()).unwrap_or_else(|| panic!("rules/kinds.toml has no row for {kind}"));
        writeln!(
            code,
            "KindRow {{ title: [{:?}, {:?}], transient: {}, fix_by: FixBy::{}, never_again: {}, error_type: {:?}, category: {:?}, by_person: {:?}, tag: {:?}, advice: &{:?} }},",
            row.title.en,
            row.title.zh,
            row.transient,
            variant(&row.fix_by),
            row.again == "never",
            row.error_type,
            row.category,
            row.by_person.as_ref().unwrap_or(&row.category),
            row.tag,
            row.advice,
        )
        .expect("a string grows");
    }
    assert_eq!(rows.len(), Kind::ALL.len(), "rules/kinds.toml has a row for something that is no kind");
    code.push_str("];\n");
    code
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    en: String,
    zh: String,
}

fn remedies(rules_dir: &Path) -> String {
    let mut code = String::from("pub(crate) static REMEDIES: &[(&str, [&str; 2])] = &[\n");
    let text_of_file =
        fs::read_to_string(rules_dir.join("remedies.toml")).expect("rules/remedies.toml is there");
    let rows: BTreeMap<String, FileText> = toml::from_str(&text_of_file).expect("rules/remedies.toml");
    for (key, row) in rows {
        writeln!(code, "({key:?}, [{:?}, {:?}]),", row.en, row.zh).expect("a string grows");
    }
    code.push_str("];\n");
    code
}

fn variant(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}
