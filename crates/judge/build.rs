//! Turns the tables under `rules/` into statics, so that a process which starts a hundred times an hour parses none.
#![allow(clippy::print_stdout, reason = "a build script talks to cargo through its output")]
#![allow(clippy::disallowed_methods, reason = "it reads the tables so that the judge need not")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use anchors::{Anchors, WIDTH};
use file::FileRule;
use kind::Kind;

#[allow(dead_code)]
#[path = "src/rules/anchors.rs"]
mod anchors;
#[path = "build/commands.rs"]
mod commands;
#[allow(dead_code)]
#[path = "src/rules/file.rs"]
mod file;
#[allow(dead_code)]
#[path = "src/kind.rs"]
#[allow(unused_imports)]
mod kind;
#[path = "build/ladder.rs"]
mod ladder;
#[path = "build/retry.rs"]
mod retry;

/// Files under `rules/` that hold something else than `[[rule]]` rows.
const OTHER_TABLES: [&str; 6] =
    ["kinds.toml", "remedies.toml", "commands.toml", "retry.toml", "ladder.toml", "ladder-texts.toml"];

fn main() {
    let rules_dir = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../rules");
    let out_dir = env::var("OUT_DIR").expect("cargo sets it");
    println!("cargo::rerun-if-changed={}", rules_dir.display());
    for source in
        ["build.rs", "build", "src/kind.rs", "src/rules/anchors.rs", "src/rules/file.rs", "src/retry/file.rs"]
    {
        println!("cargo::rerun-if-changed={source}");
    }
    commands::generate(&rules_dir, Path::new(&out_dir));
    ladder::compile(&rules_dir, Path::new(&out_dir));
    retry::compile(&rules_dir, Path::new(&out_dir)).expect("rules/retry.toml");
    let code = rules(&rules_dir, Path::new(&out_dir)) + &kinds(&rules_dir) + &remedies(&rules_dir);
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

fn rules(rules_dir: &Path, out_dir: &Path) -> String {
    let rows = read_rules(rules_dir);
    let mut patterns: Vec<(String, bool)> = Vec::new();
    let mut claims: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    let mut code = String::from("pub(crate) static RULES: &[Rule] = &[\n");
    for (index, row) in rows.iter().enumerate() {
        let mut list = |written: &[String], cased: bool| -> Vec<u16> {
            written.iter().map(|pattern| number(&mut patterns, pattern, cased)).collect()
        };
        let any = list(&row.any, row.cased);
        let unless = list(&row.unless, row.cased);
        let with = list(&row.with, row.cased);
        let without = list(&row.without, row.cased);
        let show = list(&row.show, row.cased);
        let command = list(&row.command, false);
        for pattern in &any {
            claims.entry(*pattern).or_default().push(index as u16);
        }
        let kind: Kind = row.kind.parse().expect("checked");
        let stream = row
            .stream
            .as_deref()
            .map(|name| if name == "stdout" { "Stream::Stdout" } else { "Stream::Stderr" });
        let stream = stream.map_or("None".to_owned(), |stream| format!("Some({stream})"));
        writeln!(
            code,
            "Rule {{ id: {}, kind: Kind::{kind:?}, rank: {}, transient: {:?}, fix_by: {}, effect: {}, advice: {},\n  \
             lines: Lines {{ any: {}, unless: {}, with: {}, without: {}, show: {}, last: {}, stream: {stream} }},\n  \
             scope: Scope {{ command: {}, program: {}, last: {}, tool: {}, exit: {}, status: {}, outcome: {}, silent: {}, zero: {} }} }},",
            text(&row.id),
            row.rank.unwrap_or(file::DEFAULT_RANK),
            row.transient,
            word("FixBy", row.fix_by.as_deref()),
            word("Effect", row.effect.as_deref()),
            texts(&row.advice),
            numbers(&any),
            numbers(&unless),
            numbers(&with),
            numbers(&without),
            numbers(&show),
            row.pick.as_deref() == Some("last"),
            numbers(&command),
            texts(&row.program),
            texts(&row.last),
            texts(&row.tool),
            codes(&row.exit),
            numbers(&row.status),
            texts(&row.outcome),
            row.silent,
            row.zero,
        )
        .expect("a string grows");
    }
    code.push_str("];\npub(crate) static PATTERNS: &[Pattern] = &[\n");
    for (pattern, cased) in &patterns {
        let regex = file::as_regex(pattern);
        let source = text(regex.unwrap_or(pattern));
        let is_regex = regex.is_some();
        writeln!(code, "Pattern {{ source: {source}, is_regex: {is_regex}, cased: {cased} }},")
            .expect("a string grows");
    }
    code.push_str("];\npub(crate) static CLAIMS: &[List<u16>] = &[\n");
    for index in 0..patterns.len() {
        let claims = claims.get(&(index as u16)).cloned().unwrap_or_default();
        writeln!(code, "{},", numbers(&claims)).expect("a string grows");
    }
    code.push_str("];\n");
    write_anchors(&rows, &patterns, out_dir);
    code
}

fn write_anchors(rows: &[FileRule], patterns: &[(String, bool)], out_dir: &Path) {
    let mut pairs = Vec::new();
    for (index, (pattern, _)) in patterns.iter().enumerate() {
        match anchors::of_pattern(pattern) {
            Some(anchors) => pairs.extend(anchors.into_iter().map(|anchor| (anchor, index as u16))),
            // Only what is looked for in whole outputs needs an anchor; `unless` and `command` see one line.
            None => {
                let searched = |row: &&FileRule| {
                    [&row.any, &row.with, &row.without, &row.show].iter().any(|list| list.contains(pattern))
                };
                let owner = rows.iter().find(searched);
                assert!(
                    owner.is_none(),
                    "rule {}: pattern {pattern:?} needs {WIDTH} fixed letters in a row in every branch",
                    owner.map_or("", |row| &row.id)
                );
            }
        }
    }
    let built = Anchors::build(&pairs);
    fs::write(out_dir.join("shift.bin"), &built.shift).expect("OUT_DIR can be written");
    fs::write(out_dir.join("heads.bin"), &built.heads).expect("OUT_DIR can be written");
    fs::write(out_dir.join("entries.bin"), &built.entries).expect("OUT_DIR can be written");
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
            "KindRow {{ title: [{:?}, {:?}], transient: {}, fix_by: FixBy::{}, never_again: {}, error_type: {:?}, category: {:?}, tag: {:?}, advice: &{:?} }},",
            row.title.en,
            row.title.zh,
            row.transient,
            variant(&row.fix_by),
            row.again == "never",
            row.error_type,
            row.category,
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

fn number(patterns: &mut Vec<(String, bool)>, pattern: &str, cased: bool) -> u16 {
    let known = patterns.iter().position(|(text, is_cased)| text == pattern && *is_cased == cased);
    known.unwrap_or_else(|| {
        patterns.push((pattern.to_owned(), cased));
        patterns.len() - 1
    }) as u16
}

// The tables are large: short names for functions of one fixed type each keep the compiler quick.

fn text(text: &str) -> String {
    format!("t({text:?})")
}

fn texts(words: &[String]) -> String {
    match words.is_empty() {
        true => "NO_TEXTS".to_owned(),
        false => {
            let words: Vec<String> = words.iter().map(|word| format!("Cow::Borrowed({word:?})")).collect();
            format!("Cow::Borrowed(&[{}])", words.join(","))
        }
    }
}

fn numbers(numbers: &[u16]) -> String {
    match numbers.is_empty() {
        true => "NO_NUMBERS".to_owned(),
        false => format!("n(&{numbers:?})"),
    }
}

fn codes(codes: &[i32]) -> String {
    match codes.is_empty() {
        true => "NO_CODES".to_owned(),
        false => format!("c(&{codes:?})"),
    }
}

fn word(vocabulary: &str, word: Option<&str>) -> String {
    word.map_or("None".to_owned(), |word| format!("Some({vocabulary}::{})", variant(word)))
}

fn variant(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}
