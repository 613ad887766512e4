//! `unstuck problems`: failures that come again, grouped by cause.

use unstuck_judge::{Kind, Lang};
use unstuck_store::{Problem, ProblemState};

use crate::cellar::{self, Cellar};
use crate::columns::{self, Side};
use crate::commands::show::find_problem;
use crate::exit::{CommandError, ExitStatus};
use crate::moment;
use crate::nearest::nearest;
use crate::plain;
use crate::problem_page::{TREND, WireStandingProblem, sparkline, state_word};
use crate::ui::Ui;

/// How much of a fingerprint is shown; it is enough to name the problem.
const SHORT: usize = 11;

/// Show recurring problems, grouped by cause
///
/// A problem is new for a day, then known; resolved when you say so or when it was not met for 14 days; regressed when it
/// comes back after that. Resolved ones are shown with --all.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  unstuck problems                        what is not resolved, what came back first
  unstuck problems --state new --json     machine-readable, with the numbers of 14 days
  unstuck problems resolve e1:k3fq        it is fixed; tell me if it comes back
  unstuck show e1:k3fq                    everything about one of them"
)]
pub(crate) struct ProblemsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Resolved ones too
    #[arg(long)]
    all: bool,
    /// Only problems in this state
    #[arg(long, value_parser = ["regressed", "new", "known", "resolved"])]
    state: Option<String>,
    /// Only problems of this kind
    #[arg(long)]
    kind: Option<String>,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Say that a problem is resolved; it is `regressed` if it comes back
    Resolve {
        /// Its fingerprint, or enough of it
        #[arg(value_name = "PROBLEM")]
        cause: String,
        /// The problem as it stands then, as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Take that back
    Reopen {
        /// Its fingerprint, or enough of it
        #[arg(value_name = "PROBLEM")]
        cause: String,
        /// The problem as it stands then, as one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &ProblemsArgs) -> Result<ExitStatus, CommandError> {
    match &args.action {
        None => list(ui, cellar, args),
        Some(Action::Resolve { cause, json }) => judge(ui, cellar, cause, Word::Resolved, *json),
        Some(Action::Reopen { cause, json }) => judge(ui, cellar, cause, Word::Open, *json),
    }
}

fn list(ui: &mut Ui, cellar: &Cellar, args: &ProblemsArgs) -> Result<ExitStatus, CommandError> {
    if let Some(kind) = args.kind.as_ref().filter(|kind| kind.parse::<Kind>().is_err()) {
        let nearest = nearest(kind, Kind::ALL.iter().map(|kind| kind.word())).map(str::to_owned);
        return Err(CommandError::NoSuchKind { kind: kind.clone(), nearest });
    }
    let store = cellar.to_read()?;
    let (now, ages) = (cellar::now(), cellar.problem_ages());
    let asked: Option<ProblemState> = args.state.as_deref().and_then(|word| word.parse().ok());
    let is_wanted = |state: ProblemState| match asked {
        Some(asked) => state == asked,
        None => args.all || state != ProblemState::Resolved,
    };
    let problems = store.problems()?.into_iter();
    let with_state = problems.map(|it| (ProblemState::of(&it.times, now, &ages), it));
    let of_kind = |it: &Problem| args.kind.as_ref().is_none_or(|kind| it.kind == *kind);
    let mut wanted: Vec<_> = with_state.filter(|(state, it)| is_wanted(*state) && of_kind(it)).collect();
    // The store hands them over by count, and this keeps that order within a state.
    wanted.sort_by_key(|(state, _)| *state);
    let trends = store.problem_trends(now, TREND)?;
    let silent = vec![0; TREND];
    let rows = wanted.iter().map(|(state, it)| (*state, it, trends.get(&it.cause).unwrap_or(&silent)));
    if args.json {
        for (state, problem, trend) in rows {
            ui.json(&WireStandingProblem::new(problem, state, trend))?;
        }
        return Ok(ExitStatus::Success);
    }
    let lang = ui.lang();
    if wanted.is_empty() {
        ui.remark(match lang {
            Lang::En => "no such problems; --all shows resolved ones too\n",
            Lang::Zh => "没有符合的问题；--all 也会列出已解决的\n",
        })?;
        return Ok(ExitStatus::Success);
    }
    let lines = rows.map(|(state, problem, trend)| line(state, problem, trend, now, lang));
    let table: Vec<Vec<String>> = std::iter::once(head(lang)).chain(lines).collect();
    let (left, right) = (Side::Left, Side::Right);
    ui.say(&columns::table(&[left, left, right, left, left, left, left, left, left], &table))?;
    Ok(ExitStatus::Success)
}

fn head(lang: Lang) -> Vec<String> {
    let names = match lang {
        Lang::En => ["problem", "state", "count", "last", "first", "14 days", "kind", "tools", "shown by"],
        Lang::Zh => ["问题", "状态", "次数", "最近", "首次", "14 天", "类别", "工具", "表现"],
    };
    names.map(str::to_owned).to_vec()
}

fn line(state: ProblemState, problem: &Problem, trend: &[u64], now: u64, lang: Lang) -> Vec<String> {
    vec![
        plain::line(&problem.cause).chars().take(SHORT).collect(),
        state_word(state, lang).to_owned(),
        problem.count.to_string(),
        moment::ago(problem.times.last_at, now, lang),
        moment::ago(problem.times.first_at, now, lang),
        sparkline(trend),
        plain::line(&problem.kind).into_owned(),
        plain::short(&problem.tools.join(","), 24),
        plain::short(&problem.title, 80),
    ]
}

/// What a person says about a problem.
#[derive(Clone, Copy)]
enum Word {
    Resolved,
    Open,
}

fn judge(
    ui: &mut Ui,
    cellar: &Cellar,
    asked: &str,
    word: Word,
    json: bool,
) -> Result<ExitStatus, CommandError> {
    // Whether there is a store at all is asked first, so that a mistyped command makes none.
    let problem = find_problem(&cellar.to_read()?, asked)?;
    let mut store = cellar.to_write()?;
    let now = cellar::now();
    match word {
        Word::Resolved => store.resolve_problem(&problem.cause, now)?,
        Word::Open => store.reopen_problem(&problem.cause)?,
    }
    let problem = find_problem(&store, &problem.cause)?;
    let state = ProblemState::of(&problem.times, now, &cellar.problem_ages());
    if json {
        let trend = store.problem_trend(&problem.cause, now, TREND)?;
        ui.json(&WireStandingProblem::new(&problem, state, &trend))?;
        return Ok(ExitStatus::Success);
    }
    let (lang, cause) = (ui.lang(), &problem.cause);
    let text = match (word, state, lang) {
        // Nobody called it resolved: it was not met for so long that it is taken for resolved.
        (Word::Open, ProblemState::Resolved, Lang::En) => {
            format!("{cause} stays resolved: it was not met for a long time\n")
        }
        (Word::Open, ProblemState::Resolved, Lang::Zh) => format!("{cause} 仍为已解决：已很久没有出现\n"),
        (_, state, Lang::En) => {
            format!("{cause} is {}: {}\n", state.word(), plain::short(&problem.title, 100))
        }
        (_, state, Lang::Zh) => {
            format!("{cause} {}：{}\n", state_word(state, lang), plain::short(&problem.title, 100))
        }
    };
    ui.say(&text)?;
    Ok(ExitStatus::Success)
}
