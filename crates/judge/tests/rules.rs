//! Every rule is checked by its own examples, and the tables by what they promise each other.
#![allow(clippy::disallowed_methods, reason = "the tests read the rule files themselves")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use unstuck_judge::rules::file::{self, FileRule};
use unstuck_judge::{Lang, Rules, remedy};

/// Every `[[rule]]` of the built-in files, with the name of its file.
fn rows() -> Vec<(String, FileRule)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../rules");
    let mut rows = Vec::new();
    for entry in fs::read_dir(dir).expect("rules/ is there").flatten() {
        let text = fs::read_to_string(entry.path()).expect("a rule file is UTF-8");
        if text.contains("[[rule]]") {
            let (rules, errors) = file::read(&text);
            assert_eq!(errors, [], "{}", entry.path().display());
            rows.extend(
                rules.into_iter().map(|rule| (entry.file_name().to_string_lossy().into_owned(), rule)),
            );
        }
    }
    rows
}

#[test]
fn every_example_is_recognised_by_its_own_rule_and_every_counterexample_is_not() {
    let rules = Rules::built_in();
    let mut wrong = Vec::new();
    for (file, row) in rows() {
        for surprise in row.surprises(&rules) {
            let verb = if surprise.expected { "goes to" } else { "is claimed by" };
            let found = &surprise.found;
            wrong.push(format!(
                "{file}: {}: {:?} {verb} {:?} ({})",
                row.id, surprise.example, found.rule, found.kind
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n{} wrong", wrong.join("\n"), wrong.len());
}

#[test]
fn every_rule_has_an_example_and_a_name_of_its_own() {
    let mut seen = BTreeSet::new();
    for (file, row) in rows() {
        assert!(!row.example.is_empty(), "{file}: {} has no example", row.id);
        assert!(seen.insert(row.id.clone()), "{file}: {} stands twice", row.id);
    }
}

#[test]
fn every_remedy_that_a_rule_names_exists_and_one_about_it_has_a_rule_that_reads_it() {
    for (file, row) in rows() {
        for key in &row.advice {
            let text = remedy(key, Lang::En).unwrap_or_else(|| panic!("{file}: {}: no remedy {key}", row.id));
            let reads_it = row.any.iter().any(|pattern| pattern.contains("(?P<it>"));
            assert!(
                reads_it || !text.contains("{it}"),
                "{file}: {}: {key} speaks of it, and nothing reads it",
                row.id
            );
        }
    }
}
