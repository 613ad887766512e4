//! Every rule is checked by its own examples, and the tables by what they promise each other.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::{fs, iter};

use serde_json::{Value, json};
use unstuck_judge::rules::file::{self, FileExample, FileRule};
use unstuck_judge::{Call, Observation, Outcome, Rules};

/// The files with `[[rule]]` rows, with their rows.
fn files() -> Vec<(String, Vec<FileRule>)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../rules");
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).expect("rules/ is there").flatten() {
        let text = fs::read_to_string(entry.path()).expect("a rule file is UTF-8");
        if text.contains("[[rule]]") {
            let (rules, errors) = file::read(&text);
            assert_eq!(errors, [], "{}", entry.path().display());
            files.push((entry.file_name().to_string_lossy().into_owned(), rules));
        }
    }
    files
}

fn observe(example: &FileExample) -> Observation {
    let tool = example.tool.clone().unwrap_or_else(|| "Bash".to_owned());
    let input = serde_json::from_str::<Value>(&example.command).ok().filter(Value::is_object);
    let outcome = match (example.exit, example.outcome.as_deref()) {
        (Some(code), _) => Outcome::Exited { code },
        (None, Some("succeeded")) => Outcome::Succeeded,
        (None, Some("timed_out")) => Outcome::TimedOut,
        (None, Some("interrupted")) => Outcome::Interrupted,
        (None, Some("rejected")) => Outcome::Rejected,
        (None, Some("threw")) => Outcome::Threw,
        (None, Some("reported_failure")) => Outcome::ReportedFailure,
        (None, Some("denied")) => Outcome::Denied,
        (None, Some(_)) => Outcome::NoExitCode,
        (None, None) => Outcome::Exited { code: 1 },
    };
    Observation {
        call: Call::new(tool, input.unwrap_or_else(|| json!({ "command": example.command }))),
        outcome,
        http_status: example.status,
        stdout: example.stdout.clone().into_bytes(),
        stderr: example.stderr.clone().into_bytes(),
        merged: example.text.clone().into_bytes(),
    }
}

#[test]
fn every_example_is_recognised_by_its_own_rule_and_every_counterexample_is_not() {
    let rules = Rules::built_in();
    let mut wrong = Vec::new();
    for (file, rows) in files() {
        for row in rows {
            let wanted = row.example.iter().zip(iter::repeat(true));
            let unwanted = row.not.iter().zip(iter::repeat(false));
            for (example, expected) in wanted.chain(unwanted) {
                let found = rules.diagnose(&observe(example));
                if (found.rule == row.id) != expected {
                    let verb = if expected { "goes to" } else { "is claimed by" };
                    wrong.push(format!("{file}: {}: {example:?} {verb} {:?} ({})", row.id, found.rule, found.kind));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n{} wrong", wrong.join("\n"), wrong.len());
}

#[test]
fn every_rule_has_an_example_and_a_name_of_its_own() {
    let mut seen = BTreeSet::new();
    for (file, rows) in files() {
        for row in rows {
            assert!(!row.example.is_empty(), "{file}: {} has no example", row.id);
            assert!(seen.insert(row.id.clone()), "{file}: {} stands twice", row.id);
        }
    }
}
