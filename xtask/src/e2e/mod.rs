//! Real agents with scripted models: `unstuck` is installed into each by its own installer, and every scenario asserts on
//! what the *model* received, and on what was executed.
//!
//! Nothing of an agent is imitated here; what one of them cannot do is said in the table and counted as skipped.

mod agents;
mod heard;
mod isolate;
mod model;
mod programs;
mod scenarios;
mod stage;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use agents::{AGENTS, Agent};
use heard::Words;
use lexopt::prelude::*;
use programs::{Cache, Package};
use scenarios::{Applies, SCENARIOS, Scenario};
use stage::Tools;

use crate::{Fault, project};

/// So many agents run at once: they are large programs, and times on a crowded machine fail scenarios that are right.
const AT_ONCE: usize = 2;

/// What is to be done.
#[derive(Debug, Default)]
struct Options {
    only: Option<String>,
    scenario: Option<String>,
    binary: Option<PathBuf>,
    keep: bool,
    list: bool,
    /// Is this the run behind the wall already?
    inside: bool,
}

/// `cargo xtask e2e`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut options = Options::default();
    while let Some(arg) = args.next()? {
        match arg {
            Long("only") => options.only = Some(args.value()?.string()?),
            Long("scenario") => options.scenario = Some(args.value()?.string()?),
            Long("binary") => options.binary = Some(args.value()?.into()),
            Long("keep") => options.keep = true,
            Long("list") => options.list = true,
            Long("inside") => options.inside = true,
            other => return Err(other.unexpected().into()),
        }
    }
    if options.list {
        AGENTS.iter().for_each(|agent| {
            println!("{:<10} {}@{}", agent.name, agent.package.package, agent.package.version)
        });
        SCENARIOS.iter().for_each(|scenario| println!("{:<18} {}", scenario.name, scenario.states));
        return Ok(());
    }
    match options.inside {
        true => perform(&options).map(drop),
        false => all(&options),
    }
}

/// The whole of it, for `cargo xtask check`.
pub fn check() -> Result<String, Fault> {
    all(&Options::default()).map(|()| "every agent that installs".to_owned())
}

/// Downloads and builds while there is a network, then goes behind the wall.
fn all(options: &Options) -> Result<(), Fault> {
    let agents = chosen(AGENTS, options.only.as_deref(), |agent| agent.name, "agent")?;
    chosen(SCENARIOS.each_ref(), options.scenario.as_deref(), |scenario| scenario.name, "scenario")?;
    let packages: Vec<Package> = std::iter::once(programs::NODE)
        .chain(
            agents.iter().flat_map(|agent| std::iter::once(agent.package).chain(agent.needs.iter().copied())),
        )
        .collect();
    Cache::find()?.fetch(&packages)?;
    let binary = options.binary.clone().map_or_else(project::unstuck, Ok)?.canonicalize()?;
    let binary = binary.to_str().ok_or("the binary's path is not UTF-8")?;
    let mut words = vec!["e2e", "--inside", "--binary", binary];
    words.extend(options.keep.then_some("--keep"));
    for (name, value) in [("--only", &options.only), ("--scenario", &options.scenario)] {
        words.extend(value.iter().flat_map(|value| [name, value.as_str()]));
    }
    match isolate::again(&words)? {
        Some(status) if status.success() => Ok(()),
        Some(_) => Err("a real agent did not behave as it should (see above)".into()),
        None => {
            println!("no namespace of its own on this machine: the agents run with the network as it is");
            perform(&Options {
                binary: Some(binary.into()),
                only: options.only.clone(),
                scenario: options.scenario.clone(),
                keep: options.keep,
                list: false,
                inside: true,
            })
        }
    }
}

/// Those that were asked for; a name that nobody has is a fault.
fn chosen<T: Copy, const N: usize>(
    all: [T; N],
    name: Option<&str>,
    called: fn(T) -> &'static str,
    what: &str,
) -> Result<Vec<T>, Fault> {
    let Some(name) = name else { return Ok(all.to_vec()) };
    let found: Vec<T> = all.into_iter().filter(|one| called(*one) == name).collect();
    match found.is_empty() {
        false => Ok(found),
        true => Err(format!("there is no {what} {name:?}; --list shows all").into()),
    }
}

/// How one scenario ended with one agent.
enum Ending {
    Passed,
    Failed(String),
    Skipped(&'static str),
}

/// One cell of the table.
struct Cell {
    agent: &'static Agent,
    scenario: &'static Scenario,
    ending: Ending,
    took: Duration,
}

fn perform(options: &Options) -> Result<(), Fault> {
    let agents = chosen(AGENTS, options.only.as_deref(), |agent| agent.name, "agent")?;
    let scenarios =
        chosen(SCENARIOS.each_ref(), options.scenario.as_deref(), |scenario| scenario.name, "scenario")?;
    let unstuck = options.binary.clone().ok_or("which binary?")?;
    let tools = Tools { cache: Cache::find()?, unstuck, keep: options.keep };
    let words = Words::read()?;
    let start = Instant::now();
    // Agents side by side, so that the slow ones do not all come last.
    let pairs = scenarios.iter().flat_map(|scenario| agents.iter().map(move |agent| (*agent, *scenario)));
    let waiting: Mutex<VecDeque<(&'static Agent, &'static Scenario)>> = Mutex::new(pairs.collect());
    let cells = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((agent, scenario)) = next(&waiting) {
                    let cell = one(agent, scenario, &tools, &words);
                    tell(&cell);
                    cells.lock().unwrap_or_else(PoisonError::into_inner).push(cell);
                }
            });
        }
    });
    let cells = cells.into_inner().unwrap_or_else(PoisonError::into_inner);
    report(&agents, &scenarios, &cells, start.elapsed())
}

fn next(
    waiting: &Mutex<VecDeque<(&'static Agent, &'static Scenario)>>,
) -> Option<(&'static Agent, &'static Scenario)> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

fn one(agent: &'static Agent, scenario: &'static Scenario, tools: &Tools, words: &Words) -> Cell {
    let start = Instant::now();
    let ending = match (scenario.applies)(agent) {
        Applies::No(why) => Ending::Skipped(why),
        Applies::Yes => match (scenario.play)(agent, tools, words) {
            Ok(()) => Ending::Passed,
            Err(fault) => Ending::Failed(fault.to_string()),
        },
    };
    Cell { agent, scenario, ending, took: start.elapsed() }
}

fn tell(cell: &Cell) {
    let (agent, scenario, seconds) = (cell.agent.name, cell.scenario.name, cell.took.as_secs_f64());
    match &cell.ending {
        Ending::Passed => println!("{agent:<10}{scenario:<18}{seconds:>6.1} s  passed"),
        Ending::Failed(why) => println!("{agent:<10}{scenario:<18}{seconds:>6.1} s  FAILED: {why}"),
        Ending::Skipped(why) => println!("{agent:<10}{scenario:<18}{:>8}  skipped: {why}", "-"),
    }
}

fn report(
    agents: &[&'static Agent],
    scenarios: &[&'static Scenario],
    cells: &[Cell],
    took: Duration,
) -> Result<(), Fault> {
    print!("\n{:<18}", "");
    agents.iter().for_each(|agent| print!("{:<10}", agent.name));
    println!();
    for scenario in scenarios {
        print!("{:<18}", scenario.name);
        for agent in agents {
            let cell = cells
                .iter()
                .find(|cell| cell.agent.name == agent.name && cell.scenario.name == scenario.name);
            print!(
                "{:<10}",
                match cell.map(|cell| &cell.ending) {
                    Some(Ending::Passed) => "pass",
                    Some(Ending::Failed(_)) => "FAIL",
                    Some(Ending::Skipped(_)) => "n/a",
                    None => "?",
                }
            );
        }
        println!();
    }
    let count = |wanted: fn(&Ending) -> bool| cells.iter().filter(|cell| wanted(&cell.ending)).count();
    let failed = count(|ending| matches!(ending, Ending::Failed(_)));
    println!("in {:.0} s", took.as_secs_f64());
    println!(
        "{} passed, {failed} failed, {} skipped",
        count(|ending| matches!(ending, Ending::Passed)),
        count(|ending| matches!(ending, Ending::Skipped(_)))
    );
    match failed {
        0 => Ok(()),
        _ => Err(format!("{failed} scenarios failed").into()),
    }
}
