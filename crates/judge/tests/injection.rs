//! No word of an output leaves its quotation: every rule that reads a subject is tried with every subject of
//! `corpus/injection.jsonl`, the hostile ones and the honest ones.
#![allow(clippy::disallowed_methods, reason = "the tests read the rule files and the corpus themselves")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;
use unstuck_judge::ladder::see::sight;
use unstuck_judge::ladder::words;
use unstuck_judge::ladder::{Decision, Reason, Rung, Track};
use unstuck_judge::lesson;
use unstuck_judge::quote;
use unstuck_judge::rules::file::{self, FileRule};
use unstuck_judge::rules::{Shape, Table};
use unstuck_judge::{Call, Condition, Diagnosis, Kind, Lang, Rules, remedy};

#[derive(Deserialize)]
struct Row {
    subject: String,
    hostile: bool,
    /// What of a hostile subject must not stand outside of a quotation.
    #[serde(default)]
    tell: String,
    /// The shape that an honest subject has.
    shape: Option<String>,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn corpus() -> Vec<Row> {
    let text = fs::read_to_string(root().join("corpus/injection.jsonl")).expect("the corpus is there");
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

/// Every rule that reads a subject.
fn capturing() -> Vec<FileRule> {
    let files = fs::read_dir(root().join("rules")).expect("rules/ is there").flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let rules = texts.filter(|text| text.contains("[[rule]]")).flat_map(|text| file::read(&text).0);
    rules
        .filter(|rule| rule.any.iter().chain(&rule.show).any(|pattern| pattern.contains("(?P<it>")))
        .collect()
}

/// The text without its quotations, and whether each of them is closed once and holds no other.
fn outside(text: &str) -> Result<String, String> {
    let (mut bare, mut is_inside) = (String::new(), false);
    for sign in text.chars() {
        match (sign, is_inside) {
            ('⟦', false) => is_inside = true,
            ('⟧', true) => is_inside = false,
            ('⟦' | '⟧', _) => return Err(format!("a broken fence: {text}")),
            (_, true) => {}
            (sign, false) => bare.push(sign),
        }
    }
    if is_inside { Err(format!("an open fence: {text}")) } else { Ok(bare) }
}

/// What is wrong with a text that was made from a hostile subject.
fn escape(text: &str, row: &Row) -> Option<String> {
    if let Some(sign) =
        text.chars().find(|sign| sign.is_control() && *sign != '\n' || quote::is_hidden(*sign))
    {
        return Some(format!("U+{:04X} in {text:?}", u32::from(sign)));
    }
    match outside(text) {
        Err(broken) => Some(broken),
        Ok(bare) => bare.contains(&row.tell).then(|| format!("{:?} speaks in {text:?}", row.tell)),
    }
}

/// What to do about a failure, and what it is about.
fn advised(diagnosis: &Diagnosis, lang: Lang) -> Vec<String> {
    let mut all = diagnosis.recommendations(lang);
    all.extend(diagnosis.named(lang));
    all.extend(diagnosis.bare_name().map(String::from));
    all
}

/// What the ladder says of a failure that shows `line` and is about `subject`.
fn told(kind: Kind, line: &str, subject: &str, lang: Lang) -> Vec<String> {
    let conditions = [
        Condition::NoProgram(subject.to_owned()),
        Condition::NoPath(subject.to_owned()),
        Condition::PathTaken(subject.to_owned()),
        Condition::SameFiles(vec![subject.to_owned()]),
        Condition::Unseen,
    ];
    let mut all = Vec::new();
    for condition in conditions {
        let (track, line) = (Track::Repeat, line.to_owned());
        let reason = Reason { track, count: 2, kind, rule: "x.y".to_owned(), line, condition, passes: false };
        all.push(words::refusal(&reason, lang));
        all.push(words::foreseen(&reason, true, lang));
        all.push(words::stopped_unasked(&reason, lang));
        for rung in [Rung::Note, Rung::Hint, Rung::Insist] {
            all.extend(Decision { rung, reason: Some(reason.clone()) }.text(lang));
        }
    }
    all.extend(words::earlier_errors(&[line.to_owned(), subject.to_owned()], lang));
    all
}

fn with_subject(unknown: &Diagnosis, rule: &FileRule, subject: &str) -> Diagnosis {
    let shape = rule.it.as_deref().map_or(Shape::Name, |word| word.parse().expect("a shape"));
    Diagnosis {
        kind: rule.kind.parse().expect("a kind"),
        rule: rule.id.clone(),
        subject: Some(subject.to_owned()),
        shape,
        advice: rule.advice.clone(),
        ..unknown.clone()
    }
}

fn unknown() -> Diagnosis {
    Rules::built_in().diagnose(&file::FileExample::default().observation())
}

#[test]
fn the_corpus_is_large_and_honest_about_what_it_holds() {
    let rows = corpus();
    let hostile = rows.iter().filter(|row| row.hostile).count();
    assert!(hostile >= 100 && rows.len() - hostile >= 100, "{hostile} of {}", rows.len());
    let subjects: BTreeSet<&str> = rows.iter().map(|row| &*row.subject).collect();
    assert_eq!(subjects.len(), rows.len(), "a subject stands twice");
    for row in &rows {
        assert_eq!(row.hostile, row.subject.contains(&row.tell) && !row.tell.is_empty(), "{}", row.subject);
        assert_eq!(row.hostile, row.shape.is_none(), "{}", row.subject);
    }
}

#[test]
fn no_rule_lets_a_hostile_subject_speak() {
    let (rows, unknown, mut escapes) = (corpus(), unknown(), Vec::new());
    for rule in capturing() {
        for row in rows.iter().filter(|row| row.hostile) {
            let diagnosis = with_subject(&unknown, &rule, &row.subject);
            for text in [Lang::En, Lang::Zh].into_iter().flat_map(|lang| advised(&diagnosis, lang)) {
                escapes.extend(escape(&text, row).map(|what| format!("{}: {what}", rule.id)));
            }
        }
    }
    assert!(escapes.is_empty(), "{} escapes\n{}", escapes.len(), escapes[..escapes.len().min(20)].join("\n"));
}

#[test]
fn no_line_of_an_output_speaks_on_the_ladder() {
    for row in corpus().iter().filter(|row| row.hostile) {
        for text in [Lang::En, Lang::Zh]
            .map(|lang| told(Kind::PathNotFound, &row.subject, &row.subject, lang))
            .concat()
        {
            assert_eq!(escape(&text, row), None);
        }
    }
}

#[test]
fn no_output_lets_a_hostile_subject_speak() {
    let (rules, rows) = (Rules::built_in(), corpus());
    let (mut escapes, mut planted) = (Vec::new(), 0);
    for rule in capturing() {
        for example in &rule.example {
            let Some(subject) = rules.diagnose(&example.observation()).subject.filter(|it| it.len() > 2)
            else {
                continue;
            };
            planted += 1;
            // Each subject is tried in every third example.
            let turn = rows.iter().filter(|row| row.hostile).skip(planted % 3).step_by(3);
            for row in turn {
                let mut hostile = example.clone();
                for text in [&mut hostile.text, &mut hostile.stdout, &mut hostile.stderr] {
                    *text = text.replace(&subject, &row.subject);
                }
                let found = rules.diagnose(&hostile.observation());
                let line = found.evidence.as_ref().map_or("", |found| &*found.text);
                let about = found.subject.as_deref().unwrap_or_default();
                let ladder = told(found.kind, line, about, Lang::En);
                for text in ladder.into_iter().chain(advised(&found, Lang::En)) {
                    escapes.extend(
                        escape(&text, row).map(|what| format!("{} → {}: {what}", rule.id, found.rule)),
                    );
                }
            }
        }
    }
    assert!(planted >= 60, "only {planted} examples have a subject");
    assert!(escapes.is_empty(), "{} escapes\n{}", escapes.len(), escapes[..escapes.len().min(20)].join("\n"));
}

#[test]
fn an_honest_subject_is_named_by_every_rule_that_can_speak_of_it() {
    let (unknown, rules) = (unknown(), capturing());
    for row in corpus().iter().filter(|row| !row.hostile) {
        let shape: Shape = row.shape.as_deref().and_then(|word| word.parse().ok()).expect("a shape");
        assert!(shape == Shape::Text || shape.fits(&row.subject), "{:?} is no {shape}", row.subject);
        for rule in &rules {
            let diagnosis = with_subject(&unknown, rule, &row.subject);
            for lang in [Lang::En, Lang::Zh] {
                let told = diagnosis.recommendations(lang);
                // What any text about it names is named, between backticks or as a quotation.
                let speaks = |key: &&String| {
                    remedy(key, lang).is_some_and(|text| text.contains(" {it}") || text.contains("{it} "))
                };
                let wanted = rule.advice.iter().filter(speaks).count();
                let named = [format!("`{}`", row.subject), format!("⟦{}⟧", row.subject)];
                let names = |text: &&String| named.iter().any(|name| text.contains(name));
                let count = told.iter().filter(names).count();
                assert!(count >= wanted, "{}: {:?}: {told:?}", rule.id, row.subject);
                if diagnosis.shape == shape && shape != Shape::Text {
                    assert_eq!(diagnosis.named(lang), Some(named[0].clone()), "{}", rule.id);
                }
            }
        }
    }
}

#[test]
fn a_remedy_fills_in_no_command_that_installs() {
    for rule in capturing() {
        let texts = rule.advice.iter().flat_map(|key| [Lang::En, Lang::Zh].map(|lang| remedy(key, lang)));
        for text in texts.flatten() {
            let commands = text.split('`').skip(1).step_by(2).filter(|command| command.contains("{it}"));
            for command in commands {
                assert!(command.starts_with("--allow-"), "{}: an output would fill in `{command}`", rule.id);
            }
        }
    }
}

#[test]
fn a_users_rule_declares_a_known_shape_and_reads_what_it_declares() {
    let check = |rule: &str, expected: &str| {
        let (_, errors) =
            Table::from_toml(&format!("[[rule]]\nid = \"own.x\"\nkind = \"unknown\"\n{rule}\n"));
        let what = errors.first().map(|error| error.what.clone()).unwrap_or_default();
        assert!(what.contains(expected) && errors.is_empty() == expected.is_empty(), "{what}");
    };
    check(r#"any = ['/frob: (?P<it>\S+) is gone/']"#, "");
    check("it = \"path\"\nany = ['/frob: (?P<it>\\S+) is gone/']", "");
    check(
        "it = \"sentence\"\nany = ['/frob: (?P<it>\\S+) is gone/']",
        "`it` \"sentence\" is not one of name, word, path",
    );
    check("it = \"path\"\nany = [\"frob is gone\"]", "no pattern has a group");
}

#[test]
fn a_call_with_a_hostile_file_name_is_quoted() {
    for row in corpus().iter().filter(|row| row.hostile && row.subject.contains(' ')) {
        let (single, double) = (row.subject.replace('\'', "_"), row.subject.replace('"', "_"));
        let calls = [
            Call::new("Read", json!({ "file_path": row.subject })),
            Call::new("mcp__notes__open", json!({ "path": row.subject })),
            Call::new("WebFetch", json!({ "url": row.subject })),
            Call::shell(format!("cat '{single}'")),
            Call::shell(format!("git checkout \"{double}\"")),
        ];
        for call in calls {
            let label = sight(&call).label;
            for lang in [Lang::En, Lang::Zh] {
                assert_eq!(escape(&words::halted(&label, lang), row), None, "{call:?}");
                assert_eq!(escape(&words::table_of_looks(&label, 3, lang), row), None, "{call:?}");
            }
        }
    }
}

#[test]
fn a_lesson_quotes_the_calls_it_tells_of() {
    for row in corpus().iter().filter(|row| row.hostile) {
        let fix = lesson::Fix {
            deeds: vec![
                lesson::Deed::Edited { file: row.subject.clone(), lines: 3 },
                lesson::Deed::Called { tool: "mcp__x__y".to_owned(), target: row.subject.clone() },
            ],
            ..Default::default()
        };
        for lang in [Lang::En, Lang::Zh] {
            let told = lesson::words::how(&fix, lang);
            assert_eq!(escape(&told, row), None, "{told}");
        }
    }
}
