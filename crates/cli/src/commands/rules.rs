//! `unstuck rules`: look at the knowledge, and try one's own.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use unstuck_judge::risk::{self, Counts};
use unstuck_judge::rules::file::{self, FileRule};
use unstuck_judge::rules::{Pattern, Patterns, Rule, Table};
use unstuck_judge::{Kind, Rules, remedy};

use crate::exit::{CommandError, ExitStatus};
use crate::knowledge;
use crate::nearest::nearest;
use crate::ui::Ui;

/// Look at the rules that name causes, and test your own
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck rules list --kind network            every rule that proves a network failure
  unstuck rules show git.not-a-repository      what it looks for and what it advises
  unstuck rules risky                          before which calls files are put into the safe
  unstuck rules test my-rules.toml             check a rule file and run its examples")]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List all rules, your own first
    List {
        /// Only rules that prove this kind
        #[arg(long)]
        kind: Option<String>,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
        /// Use these rules before all others
        #[arg(long, value_name = "FILE")]
        rules: Vec<PathBuf>,
    },
    /// Show one rule: what it looks for, and what it advises
    Show {
        /// The rule's id
        id: String,
        /// One JSON object
        #[arg(long)]
        json: bool,
        /// Use these rules before all others
        #[arg(long, value_name = "FILE")]
        rules: Vec<PathBuf>,
    },
    /// List the calls before which files are put into the safe
    Risky {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Check a rule file: every mistake with its line, and every example run
    Test {
        /// The rule file
        file: PathBuf,
    },
}

pub(crate) fn run(ui: &mut Ui, args: &RulesArgs) -> Result<ExitStatus, CommandError> {
    match &args.action {
        Action::List { kind, json, rules } => list(ui, kind.as_deref(), *json, rules),
        Action::Show { id, json, rules } => show(ui, id, *json, rules),
        Action::Risky { json } => risky(ui, *json),
        Action::Test { file } => test(ui, file),
    }
}

/// A rule as it is shown, in JSON and to people.
#[derive(Serialize)]
struct ShownRule<'r> {
    id: &'r str,
    kind: &'static str,
    rank: u8,
    source: &'static str,
    any: Vec<String>,
    unless: Vec<String>,
    with: Vec<String>,
    without: Vec<String>,
    show: Vec<String>,
    command: Vec<String>,
    program: Vec<&'r str>,
    last: Vec<&'r str>,
    speaks_for: Vec<&'r str>,
    elsewhere: bool,
    tool: Vec<&'r str>,
    outcome: Vec<&'r str>,
    exit: Vec<i32>,
    status: Vec<u16>,
    silent: bool,
    zero: bool,
    transient: Option<bool>,
    advice: Vec<&'r str>,
}

impl<'r> ShownRule<'r> {
    fn new(rule: Rule<'r>, source: &'static str) -> ShownRule<'r> {
        let written = |pattern: Pattern<'_>| match pattern.is_regex {
            true => format!("/{}/", pattern.source),
            false => pattern.source.to_owned(),
        };
        let list = |patterns: Patterns<'_>| patterns.iter().map(written).collect();
        ShownRule {
            id: rule.id(),
            kind: rule.kind().word(),
            rank: rule.rank(),
            source,
            any: list(rule.any()),
            unless: list(rule.unless()),
            with: list(rule.with()),
            without: list(rule.without()),
            show: list(rule.show()),
            command: list(rule.command()),
            program: rule.programs().iter().collect(),
            last: rule.last().iter().collect(),
            speaks_for: rule.speaks_for().iter().collect(),
            elsewhere: rule.elsewhere(),
            tool: rule.tools().iter().collect(),
            outcome: rule.outcomes().iter().collect(),
            exit: rule.exits().collect(),
            status: rule.statuses().collect(),
            silent: rule.silent(),
            zero: rule.zero(),
            transient: rule.transient(),
            advice: rule.advice().iter().collect(),
        }
    }
}

/// All rules in the order in which they are asked. The last table is the built-in one.
fn all(rules: &Rules) -> impl Iterator<Item = ShownRule<'_>> {
    let built_in = rules.tables().len() - 1;
    rules.tables().iter().enumerate().flat_map(move |(index, table)| {
        let source = if index == built_in { "built-in" } else { "user" };
        table.rules().map(move |rule| ShownRule::new(rule, source))
    })
}

fn list(ui: &mut Ui, kind: Option<&str>, json: bool, files: &[PathBuf]) -> Result<ExitStatus, CommandError> {
    let rules = knowledge::load(ui, files)?;
    let kind = match kind.map(|word| word.parse::<Kind>().map_err(|_| word)) {
        None => None,
        Some(Ok(kind)) => Some(kind.word()),
        Some(Err(word)) => {
            let nearest = nearest(word, Kind::ALL.iter().map(|kind| kind.word())).map(str::to_owned);
            return Err(CommandError::NoSuchKind { kind: word.to_owned(), nearest });
        }
    };
    let mut any = false;
    for rule in all(&rules).filter(|rule| kind.is_none_or(|kind| rule.kind == kind)) {
        any = true;
        match json {
            true => ui.json(&rule)?,
            false => {
                ui.say(&format!("{:<44} {:<18} {:>2}  {}\n", rule.id, rule.kind, rule.rank, rule.source))?
            }
        }
    }
    Ok(if any { ExitStatus::Success } else { ExitStatus::No })
}

/// A row of the risky calls as it is shown in JSON.
#[derive(Serialize)]
struct ShownRisk {
    id: &'static str,
    counts: &'static str,
    why: &'static str,
}

fn risky(ui: &mut Ui, json: bool) -> Result<ExitStatus, CommandError> {
    for (id, counts, why) in risk::rows() {
        let why = why[ui.lang() as usize];
        let counts = match counts {
            Counts::Always => "always",
            Counts::Edits => "edits",
        };
        match json {
            true => ui.json(&ShownRisk { id, counts, why })?,
            false => ui.say(&format!("{id:<24} {counts:<7} {why}\n"))?,
        }
    }
    Ok(ExitStatus::Success)
}

fn show(ui: &mut Ui, id: &str, json: bool, files: &[PathBuf]) -> Result<ExitStatus, CommandError> {
    let rules = knowledge::load(ui, files)?;
    let Some(rule) = all(&rules).find(|rule| rule.id == id) else {
        let nearest = nearest(id, all(&rules).map(|rule| rule.id)).map(str::to_owned);
        return Err(CommandError::NoSuchRule { id: id.to_owned(), nearest });
    };
    match json {
        true => ui.json(&rule)?,
        false => {
            let text = in_words(&rule, ui);
            ui.say(&text)?;
        }
    }
    Ok(ExitStatus::Success)
}

fn in_words(rule: &ShownRule<'_>, ui: &Ui) -> String {
    let mut text = format!("{}: {} (rank {}, {})\n", rule.id, rule.kind, rule.rank, rule.source);
    let mut section = |name: &str, items: &[String]| {
        for (index, item) in items.iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            let _ = writeln!(text, "  {name:<10} {item}");
        }
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let flag = |on: bool, word: &str| if on { vec![word.to_owned()] } else { Vec::new() };
    section("any", &rule.any);
    section("unless", &rule.unless);
    section("with", &rule.with);
    section("without", &rule.without);
    section("show", &rule.show);
    section("command", &rule.command);
    section("program", &words(&rule.program));
    section("last", &words(&rule.last));
    section("speaks_for", &words(&rule.speaks_for));
    section("elsewhere", &flag(rule.elsewhere, "the cause lies in a service or on another machine"));
    section("tool", &words(&rule.tool));
    section("outcome", &words(&rule.outcome));
    section("exit", &rule.exit.iter().map(ToString::to_string).collect::<Vec<_>>());
    section("status", &rule.status.iter().map(ToString::to_string).collect::<Vec<_>>());
    section("silent", &flag(rule.silent, "nothing was printed"));
    section("zero", &flag(rule.zero, "counts although the call says that it went well"));
    section("transient", &rule.transient.map(|yes| yes.to_string()).into_iter().collect::<Vec<_>>());
    let advice: Vec<String> =
        rule.advice.iter().filter_map(|key| remedy(key, ui.lang())).map(str::to_owned).collect();
    section("advice", &advice);
    text
}

fn test(ui: &mut Ui, path: &Path) -> Result<ExitStatus, CommandError> {
    let text = knowledge::read(path)?;
    let (rows, errors) = file::read(&text);
    let mut rules = Rules::built_in();
    rules.put_first(Table::from_toml(&text).0);
    for error in &errors {
        ui.say(&format!("{}: {error}\n", path.display()))?;
    }
    let (mut examples, mut surprises, mut without_remedy) = (0, 0, 0);
    for row in &rows {
        examples += row.example.len() + row.not.len();
        surprises += try_examples(ui, row, &rules)?;
        if row.example.is_empty() {
            ui.say(&format!("{}: has no example: nothing proves that it works\n", row.id))?;
        }
        let lang = ui.lang();
        for key in row.advice.iter().filter(|key| remedy(key, lang).is_none()) {
            without_remedy += 1;
            ui.say(&format!("{}: no remedy is called {key}\n", row.id))?;
        }
    }
    let count = (rows.len(), errors.len());
    ui.say(&format!(
        "rules read: {}, not read: {}; examples as promised: {} of {examples}\n",
        count.0,
        count.1,
        examples - surprises
    ))?;
    let is_sound = errors.is_empty() && surprises + without_remedy == 0;
    Ok(if is_sound { ExitStatus::Success } else { ExitStatus::No })
}

/// Runs the examples of one rule and tells of those that came out otherwise.
fn try_examples(ui: &mut Ui, row: &FileRule, rules: &Rules) -> Result<usize, CommandError> {
    let surprises = row.surprises(rules);
    for surprise in &surprises {
        let found = &surprise.found;
        let by = if found.rule.is_empty() { "no rule" } else { &found.rule };
        let shown = [
            &surprise.example.text,
            &surprise.example.stderr,
            &surprise.example.stdout,
            &surprise.example.command,
        ];
        let shown = shown
            .into_iter()
            .find(|text| !text.is_empty())
            .map_or("", |text| text.lines().next().unwrap_or(""));
        let wanted = if surprise.expected { "should be recognised" } else { "should not be claimed" };
        ui.say(&format!("{}: {wanted}: {shown:?} is {} by {by}\n", row.id, found.kind))?;
    }
    Ok(surprises.len())
}
