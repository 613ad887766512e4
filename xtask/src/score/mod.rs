//! Runs the release binary over labelled failures and labelled runs, and says how well it judged them.

mod corpus;
pub mod figure;
mod ladder;
mod lessons;
pub mod recorded;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use figure::Figure;
use lexopt::prelude::*;
use serde_json::{Map, Value, json};

use crate::{Fault, project};

/// The sets that come with the project, and whose figures are recorded.
const OWN_CORPORA: [&str; 2] = ["corpus/dev.jsonl", "corpus/wider.jsonl"];
const OWN_TRACES: &str = "traces/scenarios";
/// Sessions that follow one another, and what is tried against what they remember.
const OWN_LESSONS: &str = "traces/lessons";

#[derive(Debug, Default)]
struct Options {
    corpora: Vec<PathBuf>,
    traces: Vec<PathBuf>,
    lessons: Vec<PathBuf>,
    attacks: Vec<PathBuf>,
    binary: Option<PathBuf>,
    save: Option<PathBuf>,
    errors: usize,
    json: bool,
    then: Then,
}

/// What to do with the figures once they are printed.
#[derive(Debug, Default, Clone, Copy)]
enum Then {
    #[default]
    Nothing,
    Check,
    Record,
}

/// `cargo xtask score`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut options = Options::default();
    while let Some(arg) = args.next()? {
        match arg {
            Long("corpus") => options.corpora.push(args.value()?.into()),
            Long("traces") => options.traces.push(args.value()?.into()),
            Long("lessons") => options.lessons.push(args.value()?.into()),
            Long("attacks") => options.attacks.push(args.value()?.into()),
            Long("binary") => options.binary = Some(args.value()?.into()),
            Long("save") => options.save = Some(args.value()?.into()),
            Long("errors") => options.errors = args.value()?.parse()?,
            Long("json") => options.json = true,
            Long("check") => options.then = Then::Check,
            Long("record") => options.then = Then::Record,
            other => return Err(other.unexpected().into()),
        }
    }
    score(options)
}

/// Fails where a figure of the project's own sets is worse than the recorded one.
pub fn check() -> Result<(), Fault> {
    score(Options { then: Then::Check, ..Options::default() })
}

fn score(mut options: Options) -> Result<(), Fault> {
    let own_only = [&options.corpora, &options.traces, &options.lessons, &options.attacks]
        .iter()
        .all(|sets| sets.is_empty());
    match (own_only, options.then) {
        (true, _) => {
            options.corpora.extend(OWN_CORPORA.map(PathBuf::from));
            options.traces.push(OWN_TRACES.into());
            options.lessons.push(Path::new(OWN_LESSONS).join("scenarios.jsonl"));
            options.lessons.push(Path::new(OWN_LESSONS).join("more.jsonl"));
            options.attacks.push(Path::new(OWN_LESSONS).join("attacks.jsonl"));
            options.attacks.push(Path::new(OWN_LESSONS).join("more-attacks.jsonl"));
        }
        (false, Then::Nothing) => {}
        (false, Then::Check | Then::Record) => return Err("only the project's own sets are recorded".into()),
    }
    let judge = Judge::new(&options)?;
    let mut measured: Vec<(String, Vec<Figure>)> = Vec::new();
    let (mut corpora, mut runs) = (Map::new(), Map::new());
    for path in &options.corpora {
        let name = path.display().to_string();
        let gold = read(path)?;
        let said = judge.ask("diagnose", &name, corpus::questions(&gold))?;
        let score = corpus::score(&gold, &said);
        if !options.json {
            print_corpus(&name, &score, options.errors);
        }
        corpora.insert(name.clone(), score.json());
        measured.push((name, score.figures));
    }
    for dir in &options.traces {
        let name = dir.display().to_string();
        let (labels, calls) = (read(&dir.join("labels.jsonl"))?, read(&dir.join("calls.jsonl"))?);
        let said = judge.ask("replay", &name, ladder::questions(&calls))?;
        let scores = ladder::score(&labels, &calls, &said)?;
        if !options.json {
            print_ladder(&name, &scores);
        }
        let groups = scores.iter().map(|score| (score.group.clone(), score.json()));
        runs.insert(name.clone(), Value::Object(groups.collect()));
        measured.extend(scores.into_iter().next().map(|all| (name, all.figures)));
    }
    let mut below = Vec::new();
    if !options.lessons.is_empty() || !options.attacks.is_empty() {
        let (mut scenarios, attacks) = (read_all(&options.lessons)?, read_all(&options.attacks)?);
        if own_only {
            let (calls, offers) =
                (Path::new(OWN_TRACES).join("calls.jsonl"), Path::new(OWN_LESSONS).join("runs.jsonl"));
            scenarios.extend(lessons::twice(&read(&calls)?, &read(&offers)?));
        }
        let score = lessons::score(&judge.binary, &scenarios, &attacks)?;
        if !options.json {
            print_figures(OWN_LESSONS, &score.figures);
            for miss in &score.misses {
                println!("  {miss}");
            }
        }
        runs.insert(OWN_LESSONS.to_owned(), figure::to_json(&score.figures));
        below = lessons::below_aims(&score.figures);
        measured.push((OWN_LESSONS.to_owned(), score.figures));
    }
    if options.json {
        println!("{:#}", json!({ "corpora": corpora, "traces": runs }));
    }
    if !below.is_empty() {
        return Err(format!("{OWN_LESSONS} is below its aims:\n  {}", below.join("\n  ")).into());
    }
    match options.then {
        Then::Nothing => Ok(()),
        Then::Record => recorded::write(&measured),
        Then::Check => {
            let drops = recorded::compare(&measured)?;
            match drops.is_empty() {
                true => Ok(()),
                false => {
                    Err(format!("worse than recorded in {}:\n  {}", recorded::FILE, drops.join("\n  "))
                        .into())
                }
            }
        }
    }
}

/// The binary under judgement, in a home of its own: a person's rules and settings must not change the figures.
struct Judge {
    binary: PathBuf,
    home: tempfile::TempDir,
    save: Option<PathBuf>,
}

impl Judge {
    fn new(options: &Options) -> Result<Judge, Fault> {
        let binary = match &options.binary {
            Some(binary) => fs::canonicalize(binary)?,
            None => project::unstuck()?,
        };
        Ok(Judge { binary, home: tempfile::tempdir()?, save: options.save.clone() })
    }

    /// Has `unstuck <verb> --jsonl` answer the questions.
    fn ask(&self, verb: &str, source: &str, questions: String) -> Result<Vec<Value>, Fault> {
        let mut command = Command::new(&self.binary);
        command.args([verb, "--jsonl"]).env("HOME", self.home.path()).env_remove("XDG_CONFIG_HOME");
        let answers = project::pipe_through(&mut command, questions)?;
        if let Some(dir) = &self.save {
            fs::create_dir_all(dir)?;
            let name: String = source.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
            fs::write(dir.join(format!("{verb}-{}.jsonl", name.trim_matches('-'))), &answers)?;
        }
        Ok(project::json_lines(&answers))
    }
}

fn read(path: &Path) -> Result<Vec<Value>, Fault> {
    let path = project::root().join(path);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let rows = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    rows.map(|(at, line)| {
        serde_json::from_str(line).map_err(|error| format!("{}:{}: {error}", path.display(), at + 1).into())
    })
    .collect()
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<Value>, Fault> {
    let sets: Vec<Vec<Value>> = paths.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    Ok(sets.concat())
}

fn print_corpus(name: &str, score: &corpus::Score, errors: usize) {
    print_figures(name, &score.figures);
    for line in score.confusion_lines() {
        println!("  {line}");
    }
    for miss in score.misses.iter().take(errors) {
        println!("  {miss}");
    }
}

fn print_figures(name: &str, figures: &[Figure]) {
    println!("{name}");
    for figure in figures {
        println!("  {:<22}{figure:>8}", figure.name);
    }
}

fn print_ladder(name: &str, scores: &[ladder::Score]) {
    println!("{name}");
    print!("  {:<20}", "");
    for score in scores {
        print!("{:>10}", score.group);
    }
    println!();
    let Some(first) = scores.first() else { return };
    for (row, figure) in first.figures.iter().enumerate() {
        print!("  {:<20}", figure.name);
        for score in scores {
            print!("{:>10}", score.figures[row]);
        }
        println!();
    }
}
