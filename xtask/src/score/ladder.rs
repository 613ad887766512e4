//! Scores what was done about repeated calls on recorded runs (see `traces/scenarios/README.md`).
//!
//! A hint may be computed from call i's own result, a denial only from what came before it. A halt ends the run: every
//! later call counts as not executed. A note that comes with a failing result is no intervention.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::figure::{self, Better, Figure, share};
use crate::Fault;

/// What was done about one call, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Allow,
    Hint,
    Deny,
    Halt,
}

impl Action {
    /// Reads a line of `unstuck replay --jsonl`.
    fn of(row: &Value) -> Action {
        match (row["before"].as_str(), row["after"].as_str()) {
            (Some("halt"), _) => Action::Halt,
            (Some("deny"), _) => Action::Deny,
            (Some("hint" | "insist"), _) | (_, Some("hint" | "insist")) => Action::Hint,
            _ => Action::Allow,
        }
    }
}

/// How strict an action must be to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// A hint, or anything stricter.
    Hint,
    /// A denial, or a halt.
    Deny,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Hint => "hint",
            Level::Deny => "deny",
        }
    }

    fn least(self) -> Action {
        match self {
            Level::Hint => Action::Hint,
            Level::Deny => Action::Deny,
        }
    }
}

/// The decisions on one run that were more than to allow, by the call's number.
type Decisions = BTreeMap<i64, Action>;

/// The label of one run.
#[derive(Debug)]
struct Label {
    trace: String,
    set: String,
    /// The first pointless call of a run that got stuck.
    step_in_at: Option<i64>,
    pointless: BTreeSet<i64>,
    legit_repeats: Vec<i64>,
}

impl Label {
    fn read(row: &Value) -> Result<Label, Fault> {
        let numbers = |field: &str| row[field].as_array().into_iter().flatten().filter_map(Value::as_i64);
        let trace = row["trace"].as_str().ok_or("a label names no trace")?.to_owned();
        let stuck = row["stuck"] == Value::Bool(true);
        let step_in_at = row["step_in_at"].as_i64();
        if stuck != step_in_at.is_some() {
            return Err(
                format!("{trace}: only a stuck run has a call to step in at, and each has one").into()
            );
        }
        Ok(Label {
            set: row["set"].as_str().unwrap_or("R").to_owned(),
            step_in_at,
            pointless: numbers("pointless").collect(),
            legit_repeats: numbers("legit_repeats").collect(),
            trace,
        })
    }
}

/// What `unstuck replay --jsonl` is given: the calls without what it has to find out by itself.
pub fn questions(calls: &[Value]) -> String {
    let ask = |call: &Value| {
        let mut call = call.clone();
        if let Some(fields) = call.as_object_mut() {
            fields.shift_remove("mutates");
        }
        call.to_string() + "\n"
    };
    calls.iter().map(ask).collect()
}

/// How well one group of runs was handled.
#[derive(Debug)]
pub struct Score {
    /// Which runs: `all`, or the name of a set or source.
    pub group: String,
    /// The numbers at the level of hints, then those of denials.
    pub figures: Vec<Figure>,
}

impl Score {
    /// All of it, as `--json` prints it.
    pub fn json(&self) -> Value {
        figure::to_json(&self.figures)
    }
}

/// Scores decisions against the labels: all runs first, then each set, then each source of several.
pub fn score(labels: &[Value], calls: &[Value], decisions: &[Value]) -> Result<Vec<Score>, Fault> {
    let labels = labels.iter().map(Label::read).collect::<Result<Vec<_>, _>>()?;
    let mut lengths: HashMap<&str, i64> = HashMap::new();
    for call in calls {
        *lengths.entry(call["trace"].as_str().unwrap_or_default()).or_default() += 1;
    }
    let mut decided: HashMap<&str, Decisions> = HashMap::new();
    for row in decisions {
        let (Some(trace), Some(i)) = (row["trace"].as_str(), row["i"].as_i64()) else { continue };
        let action = Action::of(row);
        if action > Action::Allow && lengths.contains_key(trace) {
            let strictest = decided.entry(trace).or_default().entry(i).or_insert(action);
            *strictest = action.max(*strictest);
        }
    }
    let group = |name: &str, belongs: &dyn Fn(&Label) -> bool| {
        let members: Vec<&Label> = labels.iter().filter(|label| belongs(label)).collect();
        let both = [Level::Hint, Level::Deny]
            .into_iter()
            .flat_map(|level| measure(&members, &lengths, &decided, level));
        Score { group: name.to_owned(), figures: both.collect() }
    };
    let source = |label: &Label| label.trace.split('/').next().unwrap_or_default().to_owned();
    let sets: BTreeSet<&str> = labels.iter().map(|label| &*label.set).collect();
    let sources: BTreeSet<String> = labels.iter().map(source).collect();
    let mut scores = vec![group("all", &|_| true)];
    scores.extend(sets.iter().map(|set| group(set, &|label| label.set == **set)));
    if sources.len() > 1 {
        scores.extend(sources.iter().map(|name| group(name, &|label| source(label) == *name)));
    }
    Ok(scores)
}

/// Counts of one group at one level; each pair is a part and its whole.
#[derive(Debug, Default)]
struct Counts {
    stuck: usize,
    recalled: usize,
    on_target: usize,
    delays: Vec<i64>,
    pointless: (usize, usize),
    legit: (usize, usize),
    clean_runs: (usize, usize),
    clean_calls: (usize, usize),
    actions: (usize, usize),
    lost: (usize, usize),
    slips: (usize, usize),
}

fn measure(
    labels: &[&Label],
    lengths: &HashMap<&str, i64>,
    decided: &HashMap<&str, Decisions>,
    level: Level,
) -> Vec<Figure> {
    let nothing = Decisions::new();
    let mut counts = Counts::default();
    for label in labels {
        let length = lengths.get(&*label.trace).copied().unwrap_or(0);
        counts.add(label, length, decided.get(&*label.trace).unwrap_or(&nothing), level);
    }
    counts.figures(level)
}

impl Counts {
    fn add(&mut self, label: &Label, length: i64, decisions: &Decisions, level: Level) {
        let pointless = |i: i64| label.pointless.contains(&i);
        let halted = decisions.iter().find(|(_, action)| **action == Action::Halt).map(|(i, _)| *i);
        let behind_halt = |i: i64| halted.is_some_and(|halted| i > halted);
        let acted: Vec<i64> = decisions
            .iter()
            .filter(|(i, action)| **action >= level.least() && !behind_halt(**i))
            .map(|(i, _)| *i)
            .collect();
        let honest_lost = match halted {
            Some(halted) => (halted + 1..length).filter(|i| !pointless(*i)).count(),
            None => 0,
        };
        let justified = |i: i64| pointless(i) || label.step_in_at == Some(i + 1);
        add(&mut self.actions, acted.iter().filter(|i| justified(**i)).count(), acted.len());
        let length = usize::try_from(length).unwrap_or(0);
        match label.step_in_at {
            Some(step_in_at) => {
                self.stuck += 1;
                add(&mut self.lost, honest_lost, length);
                self.recalled += usize::from(acted.iter().any(|i| *i <= step_in_at + 1));
                let window = step_in_at - 1..=step_in_at + 1;
                self.on_target += usize::from(acted.iter().any(|i| window.contains(i)));
                self.delays.extend(acted.iter().find(|i| **i >= step_in_at - 1).map(|i| i - step_in_at));
            }
            None => {
                let bad = acted.iter().filter(|i| !pointless(**i)).count();
                add(&mut self.clean_runs, usize::from(bad > 0), 1);
                // What lies behind a halt was interrupted, too.
                add(&mut self.clean_calls, bad + honest_lost, length);
                if label.pointless.len() == 1 {
                    add(&mut self.slips, usize::from(acted.iter().any(|i| pointless(*i))), 1);
                }
            }
        }
        let interrupted = |i: &&i64| acted.contains(i) || behind_halt(**i);
        add(
            &mut self.legit,
            label.legit_repeats.iter().filter(interrupted).count(),
            label.legit_repeats.len(),
        );
        let denied =
            |i: &&i64| decisions.get(i).is_some_and(|action| *action >= Action::Deny) || behind_halt(**i);
        add(&mut self.pointless, label.pointless.iter().filter(denied).count(), label.pointless.len());
    }

    fn figures(mut self, level: Level) -> Vec<Figure> {
        let of = |(part, whole): (usize, usize)| share(part, whole);
        let stuck = |part: usize| share(part, self.stuck);
        let per_hundred = of(self.clean_calls).map(|part| two_digits(100.0 * part));
        let reached = stuck(self.delays.len());
        let named =
            |name: &str, value, better| Figure::new(format!("{}_{name}", level.word()), value, better);
        let mut figures = vec![
            named("stuck", Some(self.stuck as f64), Better::Neither),
            named("recall", stuck(self.recalled), Better::Higher),
            named("on_target", stuck(self.on_target), Better::Higher),
            named("reached", reached, Better::Higher),
            named("delay", median(&mut self.delays), Better::Neither),
            named("fi_legit", of(self.legit), Better::Lower),
            named("fi_trace", of(self.clean_runs), Better::Lower),
            named("fi_100", per_hundred, Better::Lower),
            named("precision", of(self.actions), Better::Neither),
            named("actions", Some(self.actions.1 as f64), Better::Neither),
            named("slips", of(self.slips), Better::Neither),
        ];
        match level {
            Level::Hint => {}
            Level::Deny => {
                figures.push(named("prevented", of(self.pointless), Better::Higher));
                figures.push(named("lost", of(self.lost), Better::Lower));
            }
        }
        figures
    }
}

fn add(pair: &mut (usize, usize), part: usize, whole: usize) {
    pair.0 += part;
    pair.1 += whole;
}

fn two_digits(value: f64) -> f64 {
    format!("{value:.2}").parse().unwrap_or(value)
}

fn median(numbers: &mut [i64]) -> Option<f64> {
    numbers.sort_unstable();
    let upper = *numbers.get(numbers.len() / 2)?;
    let lower = numbers[(numbers.len() - 1) / 2];
    Some((lower + upper) as f64 / 2.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks one figure on a run of six calls; each decision is `i=before/after`.
    #[track_caller]
    fn check(stuck: bool, decisions: &str, figure: &str, expected: f64) {
        let step_in_at = if stuck { json!(2) } else { Value::Null };
        let pointless = if stuck { json!([2, 3]) } else { json!([]) };
        let label = json!({"trace": "t/a", "stuck": stuck, "step_in_at": step_in_at, "pointless": pointless, "legit_repeats": [5]});
        let calls: Vec<Value> = (0..6).map(|i| json!({"trace": "t/a", "i": i})).collect();
        let decide = |word: &str| {
            let (i, said) = word.split_once('=').unwrap();
            let (before, after) = said.split_once('/').unwrap();
            json!({"trace": "t/a", "i": i.parse::<i64>().unwrap(), "before": before, "after": after})
        };
        let decisions: Vec<Value> = decisions.split_whitespace().map(decide).collect();
        let scores = score(&[label], &calls, &decisions).unwrap();
        let found = scores[0].figures.iter().find(|found| found.name == figure).unwrap();
        assert_eq!(found.value, Some(expected), "{scores:#?}");
    }

    #[test]
    fn a_note_is_no_intervention() {
        check(true, "1=allow/note", "hint_actions", 0.0);
    }

    #[test]
    fn a_hint_on_target_falls_at_most_one_call_beside_the_label() {
        check(true, "1=allow/hint", "hint_on_target", 1.0);
        check(true, "3=insist/none", "hint_on_target", 1.0);
        check(true, "0=allow/hint", "hint_on_target", 0.0);
        check(true, "0=allow/hint", "hint_recall", 1.0);
        check(true, "4=allow/hint", "hint_on_target", 0.0);
    }

    #[test]
    fn a_halt_prevents_what_follows_and_loses_the_honest_calls_behind_it() {
        check(true, "2=halt/none", "deny_prevented", 1.0);
        check(true, "2=halt/none", "deny_lost", 0.333);
        check(true, "2=halt/none", "deny_fi_legit", 1.0);
    }

    #[test]
    fn any_step_into_a_clean_run_is_false() {
        check(false, "4=deny/none", "deny_fi_trace", 1.0);
        check(false, "4=deny/none", "hint_fi_100", 16.67);
        check(false, "2=halt/none", "deny_fi_100", 66.67);
    }

    #[test]
    fn what_can_change_the_world_is_not_told() {
        let call = json!({"trace": "t", "i": 0, "mutates": true, "ok": false});
        assert_eq!(questions(&[call]), "{\"trace\":\"t\",\"i\":0,\"ok\":false}\n");
    }
}
