//! Scores diagnoses of single failures against their labels (see `corpus/LABELS.md`).
//!
//! A missing or broken prediction counts as kind `unknown`, not transient, no retry.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::figure::{Better, Figure, rounded, share};

/// Every kind the macro average runs over; `unknown` is never the truth.
const KINDS: [&str; 20] = [
    "network",
    "timeout",
    "rate_limited",
    "server_error",
    "resource_busy",
    "auth",
    "permission",
    "command_not_found",
    "path_not_found",
    "missing_dependency",
    "code_error",
    "test_failure",
    "validation",
    "conflict",
    "out_of_resources",
    "parse_error",
    "aborted",
    "crash",
    "logical",
    "not_an_error",
];

/// The fields of a corpus row that the judge may see; all others are labels or notes.
const SEEN: [&str; 8] = ["id", "tool", "command", "exit_code", "http_status", "stdout", "stderr", "text"];

/// What `unstuck diagnose --jsonl` is given for these rows.
pub fn questions(gold: &[Value]) -> String {
    let ask = |row: &Value| {
        let seen = SEEN.iter().filter_map(|field| Some(((*field).to_owned(), row.get(*field)?.clone())));
        Value::Object(seen.collect()).to_string() + "\n"
    };
    gold.iter().map(ask).collect()
}

/// A failure whose kind was not recognised.
#[derive(Debug)]
pub struct Miss {
    id: String,
    truth: String,
    taken_for: String,
    root_line: String,
}

impl std::fmt::Display for Miss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line: String = self.root_line.chars().take(90).collect();
        write!(f, "{} | {} | {} | {line}", self.id, self.truth, self.taken_for)
    }
}

/// How well a corpus was diagnosed.
#[derive(Debug)]
pub struct Score {
    /// The numbers, in the order in which they are shown.
    pub figures: Vec<Figure>,
    /// Lenient F1 of each kind.
    per_kind: Vec<(&'static str, f64)>,
    /// Right answers, leniently, of all with this tag.
    by_tag: BTreeMap<String, (usize, usize)>,
    /// Kinds that were taken for others, the most frequent first.
    confusions: Vec<(String, usize)>,
    /// What was not recognised, even leniently.
    pub misses: Vec<Miss>,
}

impl Score {
    /// All of it, as `--json` prints it.
    pub fn json(&self) -> Value {
        let mut all: Map<String, Value> =
            self.figures.iter().map(|figure| (figure.name.clone(), json!(figure.value))).collect();
        let tags = self.by_tag.iter().map(|(tag, (right, of))| (tag.clone(), json!(format!("{right}/{of}"))));
        all.insert("by_tag".to_owned(), Value::Object(tags.collect()));
        let kinds = self.per_kind.iter().map(|(kind, f1)| ((*kind).to_owned(), json!(f1)));
        all.insert("per_kind".to_owned(), Value::Object(kinds.collect()));
        all.insert("confusions".to_owned(), json!(self.confusion_lines()));
        Value::Object(all)
    }

    /// The most frequent confusions, in words.
    pub fn confusion_lines(&self) -> Vec<String> {
        self.confusions.iter().take(12).map(|(pair, count)| format!("{pair}: {count}")).collect()
    }
}

/// How often a kind was found, claimed wrongly and overlooked.
#[derive(Debug, Default)]
struct Tally {
    found: usize,
    wrong: usize,
    overlooked: usize,
}

impl Tally {
    fn f1(&self) -> f64 {
        let twice = 2 * self.found;
        share(twice, twice + self.wrong + self.overlooked).unwrap_or(0.0)
    }
}

#[derive(Debug, Default)]
struct Tallies(HashMap<String, Tally>);

impl Tallies {
    fn count(&mut self, truth: &str, said: &str, hit: bool) {
        let truth = self.0.entry(truth.to_owned()).or_default();
        match hit {
            true => truth.found += 1,
            false => {
                truth.overlooked += 1;
                self.0.entry(said.to_owned()).or_default().wrong += 1;
            }
        }
    }

    fn f1(&self, kind: &str) -> f64 {
        self.0.get(kind).map_or(0.0, Tally::f1)
    }

    /// The mean over the kinds that occur in the labels.
    fn macro_f1(&self) -> f64 {
        let occurs =
            |kind: &&&str| self.0.get(**kind).is_some_and(|tally| tally.found + tally.overlooked > 0);
        let kinds: Vec<f64> = KINDS.iter().filter(occurs).map(|kind| self.f1(kind)).collect();
        kinds.iter().sum::<f64>() / kinds.len().max(1) as f64
    }
}

/// Scores predictions against the labels.
pub fn score(gold: &[Value], predictions: &[Value]) -> Score {
    let by_id: HashMap<&Value, &Value> =
        predictions.iter().filter_map(|prediction| Some((prediction.get("id")?, prediction))).collect();
    let (mut strict, mut lenient) = (Tallies::default(), Tallies::default());
    let mut by_tag: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut confusions: Vec<(String, usize)> = Vec::new();
    let mut misses = Vec::new();
    let (mut right, mut dangerous, mut missed, mut worth_retrying) = (0, 0, 0, 0);
    let (mut both, mut said_transient, mut is_transient) = (0, 0, 0);
    let (mut with_root, mut root_hit) = (0, 0);
    for row in gold {
        let said = by_id.get(&row["id"]).copied().unwrap_or(&Value::Null);
        let truth = row["kind"].as_str().unwrap_or_default();
        let kind = said["kind"].as_str().filter(|kind| !kind.is_empty()).unwrap_or("unknown");
        let hit = kind == truth || list(&row["alt_kinds"]).any(|other| other == kind);
        strict.count(truth, kind, kind == truth);
        lenient.count(truth, kind, hit);
        right += usize::from(hit);
        for tag in list(&row["tags"]) {
            let (right, of) = by_tag.entry(tag.to_owned()).or_default();
            *right += usize::from(hit);
            *of += 1;
        }
        let root_line = row["root_line"].as_str().unwrap_or_default();
        if !hit {
            count(&mut confusions, format!("{truth} taken for {kind}"));
            let id = row["id"].as_str().unwrap_or_default().to_owned();
            misses.push(Miss {
                id,
                truth: truth.to_owned(),
                taken_for: kind.to_owned(),
                root_line: root_line.to_owned(),
            });
        }
        let (transient, claimed) = (is_true(&row["transient"]), is_true(&said["transient"]));
        is_transient += usize::from(transient);
        said_transient += usize::from(claimed);
        both += usize::from(transient && claimed);
        let resend = matches!(said["retry"]["same_call"].as_str(), Some("now" | "after"));
        dangerous += usize::from(resend && !transient);
        worth_retrying += usize::from(is_true(&row["retry_same"]));
        missed += usize::from(is_true(&row["retry_same"]) && !resend);
        if !root_line.is_empty() {
            with_root += 1;
            root_hit += usize::from(evidence_hit(said["evidence"].as_str().unwrap_or_default(), root_line));
        }
    }
    confusions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let part = |part: usize, whole: usize| Some(share(part, whole).unwrap_or(0.0));
    let figures = vec![
        Figure::new("n", Some(gold.len() as f64), Better::Neither),
        Figure::new("macro_f1", Some(strict.macro_f1()), Better::Higher),
        Figure::new("macro_f1_lenient", Some(lenient.macro_f1()), Better::Higher),
        Figure::new("accuracy_lenient", part(right, gold.len()), Better::Higher),
        Figure::new("transient_precision", part(both, said_transient), Better::Higher),
        Figure::new("transient_recall", part(both, is_transient), Better::Higher),
        Figure::new("dangerous_retries", Some(dangerous as f64), Better::Lower),
        Figure::new("missed_retries", Some(missed as f64), Better::Lower),
        Figure::new("missed_rate", part(missed, worth_retrying), Better::Lower),
        Figure::new("evidence_hit", part(root_hit, with_root), Better::Higher),
    ];
    let per_kind = KINDS.iter().map(|kind| (*kind, rounded(lenient.f1(kind)))).collect();
    Score { figures, per_kind, by_tag, confusions, misses }
}

fn list(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn is_true(value: &Value) -> bool {
    value == &Value::Bool(true)
}

fn count(counts: &mut Vec<(String, usize)>, key: String) {
    match counts.iter_mut().find(|(known, _)| *known == key) {
        Some((_, count)) => *count += 1,
        None => counts.push((key, 1)),
    }
}

/// One line quotes the other, whatever their spaces and letter case.
fn evidence_hit(evidence: &str, root_line: &str) -> bool {
    let squash = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let (said, truth) = (squash(evidence), squash(root_line));
    !said.is_empty() && !truth.is_empty() && (truth.contains(&said) || said.contains(&truth))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: &str, transient: bool) -> Value {
        json!({"id": "a", "kind": kind, "alt_kinds": ["logical"], "tags": ["long"], "transient": transient,
               "retry_same": transient, "root_line": "curl: (6) Could not  resolve", "tool": "Bash"})
    }

    /// Checks one figure of a corpus of one row.
    #[track_caller]
    fn check(gold: Value, said: Value, figure: &str, expected: f64) {
        let score = score(&[gold], &[said]);
        let found = score.figures.iter().find(|found| found.name == figure).unwrap();
        assert_eq!(found.value, Some(expected), "{score:#?}");
    }

    #[test]
    fn a_defensible_kind_counts_only_leniently() {
        check(row("network", true), json!({"id": "a", "kind": "logical"}), "macro_f1_lenient", 1.0);
        check(row("network", true), json!({"id": "a", "kind": "logical"}), "macro_f1", 0.0);
    }

    #[test]
    fn a_missing_prediction_is_unknown_and_misses_the_retry() {
        check(row("network", true), json!({"id": "b", "kind": "network"}), "macro_f1", 0.0);
        check(row("network", true), json!({"error": "line 1"}), "missed_rate", 1.0);
    }

    #[test]
    fn saying_retry_for_what_cannot_heal_is_dangerous() {
        let said = json!({"id": "a", "kind": "auth", "retry": {"same_call": "after"}});
        check(row("auth", false), said.clone(), "dangerous_retries", 1.0);
        check(row("auth", true), said, "dangerous_retries", 0.0);
    }

    #[test]
    fn evidence_may_quote_a_part_of_the_line() {
        let said = json!({"id": "a", "kind": "network", "evidence": "could not resolve"});
        check(row("network", true), said, "evidence_hit", 1.0);
    }

    #[test]
    fn labels_are_never_part_of_the_question() {
        assert_eq!(questions(&[row("network", true)]), "{\"id\":\"a\",\"tool\":\"Bash\"}\n");
    }
}
