//! The threat model names the test that proves each defence. A test that is renamed or removed takes its claim with it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const THREATS: usize = 18;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the project")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the project").flatten() {
        let path = entry.path();
        match entry.file_type().expect("what is in a folder has a type") {
            kind if kind.is_dir() && entry.file_name() != "target" => sources(&path, found),
            _ if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            _ => {}
        }
    }
}

/// The functions that a test runner would run: those below `#[test]` and its like, and the cases of `proptest!`.
fn tests_of(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_marked = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[") {
            is_marked |= ["#[test]", "#[tokio::test"].iter().any(|mark| line.starts_with(mark));
            continue;
        }
        let words = line.strip_prefix("async ").unwrap_or(line);
        if let (true, Some(rest)) = (is_marked, words.strip_prefix("fn ")) {
            found.extend(rest.split('(').next().map(str::to_owned));
        }
        is_marked = false;
    }
    found
}

/// The rows of the one table that is numbered.
fn rows(page: &str) -> Vec<Vec<&str>> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| "))
        .map(|line| line.trim_end_matches([' ', '|']).split(" | ").map(str::trim).collect::<Vec<_>>())
        .filter(|row| row[0].parse::<usize>().is_ok())
        .collect()
}

/// What stands between backticks and is no path, command or setting.
fn named(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).filter(|word| {
        word.contains('_') && word.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_')
    })
}

#[test]
fn every_threat_names_tests_that_exist_and_what_remains() {
    let mut files = Vec::new();
    ["crates", "xtask", "fuzz"].iter().for_each(|folder| sources(&root().join(folder), &mut files));
    let tests: BTreeSet<String> =
        files.iter().flat_map(|file| tests_of(&fs::read_to_string(file).unwrap())).collect();
    let page = fs::read_to_string(root().join("docs/threat-model.md")).unwrap();
    let rows = rows(&page);
    let numbers: Vec<String> = rows.iter().map(|row| row[0].to_owned()).collect();
    assert_eq!(numbers, (1..=THREATS).map(|number| number.to_string()).collect::<Vec<_>>());
    for row in rows {
        let [number, threat, defence, proof, remains] = row[..] else { panic!("five cells: {row:?}") };
        assert!(!threat.is_empty() && !defence.is_empty() && !remains.is_empty(), "{number}: an empty cell");
        let proof: Vec<&str> = named(proof).collect();
        assert!(!proof.is_empty(), "{number}: no test");
        let missing: Vec<_> = proof.iter().filter(|test| !tests.contains(**test)).collect();
        assert!(missing.is_empty(), "{number}: no such tests: {missing:?}");
    }
}

#[test]
fn only_what_a_runner_runs_counts_as_a_test() {
    let source = "#[test]\nfn one() {}\nfn helper() {}\n#[tokio::test(flavor = \"x\")]\n#[ignore]\nasync fn two() {}\n";
    assert_eq!(tests_of(source).into_iter().collect::<Vec<_>>(), ["one", "two"]);
}
