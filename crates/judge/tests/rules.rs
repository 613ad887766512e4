//! Every rule is checked by its own examples, and the tables by what they promise each other.
#![allow(clippy::disallowed_methods, reason = "the tests read the rule files themselves")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use unstuck_judge::rules::file::{self, FileRule};
use unstuck_judge::rules::{Stream, Table};
use unstuck_judge::{Call, Lang, Outcome, Rules, remedy};

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

#[test]
fn a_rule_says_whose_failure_form_it_is() {
    let rules = Rules::built_in();
    let rule = |id: &str| {
        let known = rules.tables().iter().flat_map(Table::rules).find(|rule| rule.id() == id);
        known.unwrap_or_else(|| panic!("no rule {id}"))
    };
    // Its own words, those of its program, those of its file.
    assert!(rule("jest.failed").is_form_of("jest"));
    assert!(!rule("jest.failed").is_form_of("grep"));
    assert!(rule("git.pathspec").is_form_of("git"));
    assert!(rule("rust.compile").is_form_of("cargo") && rule("rust.compile").is_form_of("cargo-clippy"));
    assert!(!rule("rust.compile").is_form_of("gh"));
    // Whatever a project's own files start may speak through these.
    assert!(rule("jest.failed").is_form_of("npm") && rule("jest.failed").is_form_of("run-tests.sh"));
    // What everybody may print is nobody's.
    assert!(!rule("errno.no-such-file").is_form_of("npm"));
    assert!(rule("shell.command-not-found").is_form_of("anything"));
}

#[test]
fn a_user_s_file_says_it_for_its_rules() {
    let text = r#"
speaks_for = ["mytool"]

[[rule]]
id = "my.one"
kind = "logical"
any = ["mytool: it broke"]

[[rule]]
id = "my.two"
kind = "logical"
program = ["other"]
any = ["other: it broke"]

[[rule]]
id = "my.three"
kind = "logical"
speaks_for = []
any = ["anything broke"]
"#;
    let (table, errors) = Table::from_toml(text);
    assert_eq!(errors, []);
    let said: Vec<Vec<&str>> = table.rules().map(|rule| rule.speaks_for().iter().collect()).collect();
    assert_eq!(said, [vec!["mytool"], vec!["other"], vec![]]);
}

#[test]
fn where_no_exit_code_is_known_a_rule_for_one_speaks_only_of_successes_that_words_tell() {
    let check = |kind: &str, words: &str, expected: bool| {
        let (table, errors) =
            Table::from_toml(&format!("[[rule]]\nid = \"my.one\"\nkind = \"{kind}\"\nexit = [0]\n{words}\n"));
        assert_eq!(errors, []);
        let mut rules = Rules::built_in();
        rules.put_first(table);
        let mut reading = rules.read();
        reading.feed(Stream::Stdout, b"frob: all gears turn\n");
        let told = rules.conclude(reading, &Call::shell("frob"), Outcome::NoExitCode, None);
        assert_eq!(told.rule == "my.one", expected, "{told:?}");
    };
    check("not_an_error", "any = [\"all gears turn\"]", true);
    check("logical", "any = [\"all gears turn\"]", false);
    check("not_an_error", "program = [\"frob\"]", false);
}
