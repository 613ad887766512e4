//! `unstuck show`: one call's life, one recurring problem, or one snapshot.

use unstuck_store::{Problem, Store, StoredCall};
use unstuck_vault::{Snapshot, SnapshotId, VaultError};

use super::lessons;
use crate::call_page::CallPage;
use crate::cellar::{self, Cellar};
use crate::exit::{Among, CommandError, ExitStatus};
use crate::plain;
use crate::problem_page::ProblemPage;
use crate::safe::Safe;
use crate::snapshot_page::{self, WireSnapshot};
use crate::ui::Ui;

/// What a problem's name begins with.
const CAUSE: &str = "e1:";
/// A problem may be named by no less than this much of the rest.
const LEAST: usize = 4;
/// How many candidates are listed.
const LISTED: u32 = 10;

/// Show one call's life, one recurring problem, or one snapshot
///
/// A call is named by its number (12 or #12), by the name its host gives it, or by enough of that. A problem is named by its
/// fingerprint (e1:…) or enough of it. A snapshot is named s41.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck show 12                  states, attempts, diagnosis, what was said and why, output
  unstuck show toolu_01AbC         the same, by the name the agent's program gives it
  unstuck show e1:k3fq             one problem: how often, where, since when, what helps
  unstuck show L12                 one lesson: what helped, where, how often, and whether it is shown
  unstuck show s41                 one snapshot: when, why, what it covers and what is not in it
  unstuck show --json 12           one JSON object")]
pub(crate) struct ShowArgs {
    /// A call, a problem, a lesson or a snapshot
    #[arg(value_name = "CALL|PROBLEM|LESSON|ID")]
    what: String,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &ShowArgs) -> Result<ExitStatus, CommandError> {
    let (now, lang) = (cellar::now(), ui.lang());
    if let Some(snapshot) = find_snapshot(cellar, args.what.trim())? {
        match args.json {
            true => ui.json(&WireSnapshot::new(&snapshot))?,
            false => ui.say(&snapshot_page::page(&snapshot, now, lang))?,
        }
        return Ok(ExitStatus::Success);
    }
    if lessons::show_named(ui, cellar, args.what.trim(), args.json)? {
        return Ok(ExitStatus::Success);
    }
    let store = cellar.to_read()?;
    match find(&store, args.what.trim())? {
        Found::Call(call) => {
            let page = CallPage::read(&store, *call)?;
            let vault = Safe::of(cellar).if_there().ok().flatten();
            let saved = page.snapshot().and_then(|id| vault?.snapshot(id).ok());
            let page = page.with_snapshot(saved);
            match args.json {
                true => ui.json(&page.to_wire())?,
                false => ui.say(&page.text(now, lang))?,
            }
        }
        Found::Problem(problem) => {
            let page = ProblemPage::read(&store, problem, now, &cellar.problem_ages(), lang)?;
            match args.json {
                true => ui.json(&page.to_wire())?,
                false => ui.say(&page.text(now, lang))?,
            }
        }
    }
    Ok(ExitStatus::Success)
}

/// The snapshot that goes by this name. What is no snapshot may be a call.
fn find_snapshot(cellar: &Cellar, asked: &str) -> Result<Option<Snapshot>, CommandError> {
    let (Some(_), Ok(id)) = (asked.strip_prefix('s'), asked.parse::<SnapshotId>()) else { return Ok(None) };
    let Some(vault) = Safe::of(cellar).if_there()? else { return Ok(None) };
    match vault.snapshot(id) {
        Err(VaultError::NoSuchSnapshot { .. }) => Ok(None),
        snapshot => Ok(Some(snapshot?)),
    }
}

enum Found {
    Call(Box<StoredCall>),
    Problem(Problem),
}

fn find(store: &Store, asked: &str) -> Result<Found, CommandError> {
    // Our own number is tried first: it is what every list of ours shows.
    if let Ok(number) = asked.strip_prefix('#').unwrap_or(asked).parse()
        && let Some(call) = store.call(number)?
    {
        return Ok(Found::Call(Box::new(call)));
    }
    let mut calls = store.calls_named(asked, LISTED)?;
    let exactly = calls.len() == 1 && calls[0].key == asked;
    let problems = if exactly { Vec::new() } else { problems_like(store, asked)? };
    match (calls.len(), problems.len()) {
        (0, 0) if asked.starts_with(CAUSE) && is_too_short(asked) => {
            Err(CommandError::TooShort { asked: asked.to_owned(), least: LEAST })
        }
        (0, 0) => Err(CommandError::NothingCalled { asked: asked.to_owned() }),
        (1, 0) => Ok(Found::Call(Box::new(calls.remove(0)))),
        (0, 1) => problems
            .into_iter()
            .next()
            .map(Found::Problem)
            .ok_or_else(|| CommandError::NothingCalled { asked: asked.to_owned() }),
        (_, _) => {
            let calls = calls.iter().map(|call| {
                let (key, label) = (plain::short(&call.key, 60), plain::short(&call.label, 60));
                format!("#{}  {key}  {}  {label}", call.id, plain::short(&call.session, 20))
            });
            let problems_listed = problems.iter().take(LISTED as usize).map(candidate);
            let candidates = calls.chain(problems_listed).collect();
            let more = problems.len().saturating_sub(LISTED as usize);
            let among = Among::CallsAndProblems;
            Err(CommandError::Ambiguous { asked: asked.to_owned(), among, candidates, more })
        }
    }
}

/// The problems that somebody may mean, with or without the beginning that all have.
fn problems_like(store: &Store, asked: &str) -> Result<Vec<Problem>, CommandError> {
    match is_too_short(asked) {
        true => Ok(Vec::new()),
        false => Ok(store.problems_like(&format!("{CAUSE}{}", rest(asked)))?),
    }
}

/// A problem's name without the beginning that all have.
fn rest(asked: &str) -> &str {
    asked.strip_prefix(CAUSE).unwrap_or(asked)
}

/// So little of a name fits too many problems to mean one.
fn is_too_short(asked: &str) -> bool {
    rest(asked).chars().count() < LEAST
}

fn candidate(problem: &Problem) -> String {
    format!("{}  {}  {}", problem.cause, problem.kind, plain::short(&problem.title, 60))
}

/// The one problem that somebody means.
pub(crate) fn find_problem(store: &Store, asked: &str) -> Result<Problem, CommandError> {
    let asked = asked.trim();
    if is_too_short(asked) {
        return Err(CommandError::TooShort { asked: asked.to_owned(), least: LEAST });
    }
    let mut problems = problems_like(store, asked)?;
    match (problems.pop(), problems.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(last), false) => {
            problems.push(last);
            let candidates: Vec<String> = problems.iter().take(LISTED as usize).map(candidate).collect();
            let more = problems.len() - candidates.len();
            Err(CommandError::Ambiguous { asked: asked.to_owned(), among: Among::Problems, candidates, more })
        }
        (None, _) => Err(CommandError::NoSuchProblem { asked: asked.to_owned() }),
    }
}
