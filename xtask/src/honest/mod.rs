//! Plays stretches of honest work through the real hooks, and counts what stood in their way: calls that worked and were
//! called failures, calls that would have worked and were refused, and words that nobody needed.

mod host;
mod play;
mod stretch;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use lexopt::prelude::*;
use play::{Outcome, Turn};
use serde_json::json;
use stretch::Played;

use crate::score::figure::{self, Better, Figure, share};
use crate::score::recorded;
use crate::{Fault, project};

const STRETCHES: &str = "traces/honest";
/// So many are played at once: most of the time they wait.
const AT_ONCE: usize = 6;
/// Words that nobody needed, as a share of the failing calls.
const NEEDLESS_AIM: f64 = 0.05;

#[derive(Debug, Default)]
struct Options {
    only: Option<String>,
    binary: Option<PathBuf>,
    errors: Option<usize>,
    json: bool,
    keep: bool,
    words: bool,
    record: bool,
}

/// `cargo xtask honest`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut options = Options::default();
    while let Some(arg) = args.next()? {
        match arg {
            Long("only") => options.only = Some(args.value()?.string()?),
            Long("binary") => options.binary = Some(args.value()?.into()),
            Long("errors") => options.errors = Some(args.value()?.parse()?),
            Long("json") => options.json = true,
            Long("keep") => options.keep = true,
            Long("words") => options.words = true,
            Long("record") => options.record = true,
            other => return Err(other.unexpected().into()),
        }
    }
    if options.record && options.only.is_some() {
        return Err("only the whole suite is recorded".into());
    }
    let report = suite(&options)?;
    report.print(&options);
    if options.record {
        recorded::write(&[(STRETCHES.to_owned(), report.figures())])?;
    }
    match report.below_aims() {
        below if below.is_empty() => Ok(()),
        below => Err(below.join("; ").into()),
    }
}

/// Fails where honest work was hindered, or more was said than what is recorded.
pub fn check() -> Result<String, Fault> {
    let start = Instant::now();
    let report = suite(&Options::default())?;
    report.print(&Options::default());
    let mut faults = report.below_aims();
    faults.extend(recorded::compare(&[(STRETCHES.to_owned(), report.figures())])?);
    match faults.is_empty() {
        true => Ok(format!(
            "{} stretches of honest work in {:.0} s{}",
            report.stretches,
            start.elapsed().as_secs_f64(),
            report.left_out()
        )),
        false => Err(faults.join("; ").into()),
    }
}

fn suite(options: &Options) -> Result<Report, Fault> {
    let binary = match &options.binary {
        Some(binary) => fs::canonicalize(binary)?,
        None => project::unstuck()?,
    };
    let all = stretch::read_all(&project::root().join(STRETCHES))?;
    let chosen: Vec<Played> = all
        .into_iter()
        .filter(|played| options.only.as_ref().is_none_or(|only| played.name.contains(only.as_str())))
        .collect();
    if chosen.is_empty() {
        return Err("no stretch has such a name".into());
    }
    let (chosen, missing): (Vec<Played>, Vec<Played>) = chosen.into_iter().partition(can_be_played);
    let next = AtomicUsize::new(0);
    let played = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(stretch) = chosen.get(at) else { break };
                    let outcome = play::play(stretch, &binary, options.keep);
                    played.lock().unwrap_or_else(PoisonError::into_inner).push((at, outcome));
                }
            });
        }
    });
    let mut played = played.into_inner().unwrap_or_else(PoisonError::into_inner);
    played.sort_by_key(|(at, _)| *at);
    let mut report = Report { missing: missing.len(), ..Report::default() };
    for (at, outcome) in played {
        report.take(&chosen[at], outcome?, options);
    }
    Ok(report)
}

fn can_be_played(played: &Played) -> bool {
    let is_there = |program: &String| Command::new(program).arg("--version").output().is_ok();
    played.stretch.needs.iter().all(is_there)
}

/// What was seen in all stretches.
#[derive(Debug, Default)]
struct Report {
    stretches: usize,
    /// Stretches that need a program which is not installed.
    missing: usize,
    calls: usize,
    failing: usize,
    false_claims: usize,
    false_refusals: usize,
    /// Refusals of calls that fail again, where the stretch does not say that they may be refused.
    early_refusals: usize,
    /// The same where it does.
    refusals: usize,
    needless: usize,
    letters: usize,
    unscripted: usize,
    misses: Vec<String>,
    words: Vec<String>,
}

impl Report {
    fn take(&mut self, played: &Played, outcome: Outcome, options: &Options) {
        self.stretches += 1;
        let name = &played.name;
        for line in &outcome.unscripted {
            self.unscripted += 1;
            self.misses.push(format!("not as written: {name}, {line}"));
        }
        // What was said with a failure, by who was told.
        let mut told = BTreeSet::new();
        let mut said_same = false;
        for turn in &outcome.turns {
            self.calls += 1;
            self.failing += usize::from(turn.fails);
            self.letters += turn.before.len() + turn.after.len();
            let place = format!("{name}, step {}, `{}`", turn.step, turn.shown);
            if options.words {
                self.words.push(shown(&place, turn));
            }
            let recorded = outcome.recorded.get(&turn.key);
            match &turn.refusal {
                Some(reason) if !turn.fails => {
                    self.false_refusals += 1;
                    self.misses.push(format!("refused, and it works: {place}\n    {}", short(reason)));
                }
                Some(_) if turn.may_refuse => self.refusals += 1,
                Some(reason) => {
                    self.early_refusals += 1;
                    self.misses.push(format!("refused, and it fails: {place}\n    {}", short(reason)));
                }
                None => {}
            }
            for (words, is_after) in [(&turn.before, false), (&turn.after, true)] {
                if words.is_empty() {
                    continue;
                }
                if turn.fails {
                    if !told.insert((turn.actor.clone(), without_numbers(words))) {
                        self.needless += 1;
                        self.misses.push(format!("said before: {place}\n    {}", short(words)));
                    }
                    continue;
                }
                let is_failed = recorded.is_some_and(|row| row["ok"] == false || !row["verdict"].is_null());
                let claims = is_after && (is_failed || speaks_of_failure(words));
                let may_be_said = turn.may_say.as_ref().is_some_and(|part| words.contains(part.as_str()));
                if claims {
                    self.false_claims += 1;
                    self.misses
                        .push(format!("called a failure, and it worked: {place}\n    {}", short(words)));
                } else if !may_be_said || said_same {
                    self.needless += 1;
                    self.misses.push(format!("said of what works: {place}\n    {}", short(words)));
                } else {
                    said_same = true;
                }
            }
        }
        for (step, words) in &outcome.beside {
            self.needless += 1;
            self.misses.push(format!("said beside: {name}, step {step}\n    {}", short(words)));
        }
        if let Some(folder) = &outcome.kept {
            self.misses.push(format!("kept: {name} in {}", folder.display()));
        }
    }

    fn figures(&self) -> Vec<Figure> {
        let count = |number: usize| Some(number as f64);
        vec![
            Figure::new("stretches", count(self.stretches), Better::Neither),
            Figure::new("calls", count(self.calls), Better::Neither),
            Figure::new("failing_calls", count(self.failing), Better::Neither),
            Figure::new("false_claims", count(self.false_claims), Better::Lower),
            Figure::new("false_refusals", count(self.false_refusals), Better::Lower),
            Figure::new("early_refusals", count(self.early_refusals), Better::Lower),
            Figure::new("refusals", count(self.refusals), Better::Neither),
            Figure::new(
                "needless_words",
                share(self.needless, self.failing).or(count(self.needless)),
                Better::Lower,
            ),
            Figure::new("letters_per_call", share(self.letters, self.calls), Better::Neither),
        ]
    }

    /// What has to be reached, whatever was recorded.
    fn below_aims(&self) -> Vec<String> {
        let share = share(self.needless, self.failing).unwrap_or_default();
        let aims = [
            (self.unscripted > 0, format!("{} steps did not go as they are written", self.unscripted)),
            (self.false_claims > 0, format!("{} calls that worked were called failures", self.false_claims)),
            (self.false_refusals > 0, format!("{} calls that work were refused", self.false_refusals)),
            (self.early_refusals > 0, format!("{} calls were refused that may be made", self.early_refusals)),
            (share > NEEDLESS_AIM, format!("needless words in {share:.3} of the failing calls")),
        ];
        aims.into_iter().filter(|(missed, _)| *missed).map(|(_, line)| line).collect()
    }

    fn left_out(&self) -> String {
        match self.missing {
            0 => String::new(),
            missing => format!(", {missing} left out for want of a program"),
        }
    }

    fn print(&self, options: &Options) {
        if options.json {
            let figures = figure::to_json(&self.figures());
            println!("{:#}", json!({"figures": figures, "misses": self.misses, "words": self.words}));
            return;
        }
        println!("{STRETCHES}{}", self.left_out());
        for figure in self.figures() {
            println!("  {:<22}{figure:>8}", figure.name);
        }
        self.words.iter().for_each(|line| println!("{line}"));
        let errors = options.errors.unwrap_or(self.misses.len());
        for miss in self.misses.iter().take(errors) {
            println!("  {miss}");
        }
        if errors < self.misses.len() {
            println!("  … and {} more", self.misses.len() - errors);
        }
    }
}

/// A call with all that was said of it.
fn shown(place: &str, turn: &Turn) -> String {
    let truth = if turn.fails { "fails" } else { "works" };
    let mut lines = vec![format!("{truth}: {place}")];
    let said = [
        ("refused", turn.refusal.as_deref()),
        ("before", Some(&*turn.before)),
        ("after", Some(&*turn.after)),
    ];
    for (when, words) in said {
        if let Some(words) = words.filter(|words| !words.is_empty()) {
            lines.push(format!("    {when}: {}", words.replace('\n', "\n      ")));
        }
    }
    lines.join("\n")
}

/// Do words take a call for a failure? Those about answers that stay the same do not.
fn speaks_of_failure(words: &str) -> bool {
    const PARTS: [&str; 6] = ["failed", "failing", "failure", "ends the same way", "the cause", "same cause"];
    PARTS.iter().any(|part| words.contains(part))
}

/// The beginning of a text, on one line.
fn short(words: &str) -> String {
    const LETTERS: usize = 500;
    words.replace('\n', " / ").chars().take(LETTERS).collect()
}

/// Words that differ only in numbers say the same.
fn without_numbers(words: &str) -> String {
    words.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// The stretches' folder, for whoever reads them without playing.
#[cfg(test)]
fn stretches() -> Vec<Played> {
    stretch::read_all(&project::root().join(STRETCHES)).expect("the stretches can be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_two_hundred_stretches_and_every_one_has_a_call() {
        let stretches = stretches();
        assert!(stretches.len() >= 200, "{}", stretches.len());
        for played in stretches {
            assert!(
                played.stretch.steps.iter().any(|step| step.full().call.is_some()
                    || step.full().tool.is_some()
                    || step.full().read.is_some()),
                "{}",
                played.name
            );
        }
    }

    #[test]
    fn words_that_differ_in_numbers_are_the_same_words() {
        assert_eq!(without_numbers("failure number 2 in 3 s"), without_numbers("failure number 13 in 41 s"));
        assert_ne!(without_numbers("`a` failed"), without_numbers("`b` failed"));
    }
}
