//! Real agents with scripted models: `unstuck` is installed into each by its own installer, and every scenario asserts on
//! what the *model* received, and on what was executed.
//!
//! Nothing of an agent is imitated here; what one of them cannot do is said in the table and counted as skipped.

mod agents;
pub mod cost;
mod day;
mod headless;
mod heard;
pub mod isolate;
mod model;
pub mod programs;
mod protected;
mod remembered;
mod scenarios;
mod served;
mod stage;
mod table;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use agents::{AGENTS, Agent};
use heard::Words;
use isolate::Behind;
use lexopt::prelude::*;
use programs::{Cache, Package};
use scenarios::{SCENARIOS, Scenario};
use stage::Tools;
use table::{Cell, Ending};

use crate::{Fault, mcp, project};

/// How often a scenario is played where an agent loses outputs.
const TRIES: usize = 3;

/// So many agents run at once: they are large programs, and times on a crowded machine fail scenarios that are right.
const AT_ONCE: usize = 2;

/// What is to be done.
#[derive(Debug, Clone, Default)]
struct Options {
    only: Option<String>,
    scenario: Option<String>,
    binary: Option<PathBuf>,
    scripted: Option<PathBuf>,
    keep: bool,
    list: bool,
    /// Does every agent play every session of the day's work?
    day_all: bool,
    /// Is this the run behind the wall already?
    inside: bool,
}

/// What is played, with whom.
struct Choice {
    agents: Vec<&'static Agent>,
    scenarios: Vec<&'static Scenario>,
}

impl Options {
    /// Those that were asked for; a name that nobody has is a fault.
    fn choice(&self) -> Result<Choice, Fault> {
        // `day-` stands for every scenario that begins so.
        let fits = |name: &str, wanted: &Option<String>| {
            wanted
                .as_deref()
                .is_none_or(|wanted| wanted == name || (wanted.ends_with('-') && name.starts_with(wanted)))
        };
        let agents: Vec<&Agent> = AGENTS.into_iter().filter(|one| fits(one.name, &self.only)).collect();
        let scenarios: Vec<&Scenario> =
            SCENARIOS.iter().filter(|one| fits(one.name, &self.scenario)).collect();
        match agents.is_empty() || scenarios.is_empty() {
            false => Ok(Choice { agents, scenarios }),
            true => Err("there is no such agent or scenario; --list shows all".into()),
        }
    }
}

/// `cargo xtask e2e`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut options = Options::default();
    while let Some(arg) = args.next()? {
        match arg {
            Long("only") => options.only = Some(args.value()?.string()?),
            Long("scenario") => options.scenario = Some(args.value()?.string()?),
            Long("binary") => options.binary = Some(args.value()?.into()),
            Long("scripted") => options.scripted = Some(args.value()?.into()),
            Long("keep") => options.keep = true,
            Long("day-all") => options.day_all = true,
            Long("list") => options.list = true,
            Long("inside") => options.inside = true,
            other => return Err(other.unexpected().into()),
        }
    }
    match (options.list, options.inside) {
        (true, _) => list(),
        (false, true) => perform(&options).map(drop)?,
        (false, false) => all(&options).map(drop)?,
    }
    Ok(())
}

/// The whole of it, for `cargo xtask check`; returns the closing line.
pub fn check() -> Result<String, Fault> {
    all(&Options::default())
}

fn list() {
    for agent in AGENTS {
        println!("{:<16}{}@{}", agent.name, agent.package.package, agent.package.version);
    }
    println!();
    SCENARIOS.iter().for_each(|scenario| println!("{:<16}{}", scenario.name, scenario.states));
}

/// What these agents need from npm.
fn packages(agents: &[&Agent]) -> Vec<Package> {
    let of = |agent: &&Agent| std::iter::once(agent.package).chain(agent.needs.iter().copied());
    std::iter::once(programs::NODE).chain(agents.iter().flat_map(of)).collect()
}

/// Downloads and builds while there is a network, then goes behind the wall.
fn all(options: &Options) -> Result<String, Fault> {
    Cache::find()?.fetch(&packages(&options.choice()?.agents))?;
    let binary = options.binary.clone().map_or_else(project::unstuck, Ok)?.canonicalize()?;
    let scripted = options.scripted.clone().map_or_else(mcp::scripted_server, Ok)?;
    let mut words =
        vec!["e2e", "--inside", "--binary", binary.to_str().ok_or("the binary's path is not UTF-8")?];
    words.extend(["--scripted", scripted.to_str().ok_or("the server's path is not UTF-8")?]);
    words.extend(options.keep.then_some("--keep"));
    words.extend(options.day_all.then_some("--day-all"));
    for (name, value) in [("--only", &options.only), ("--scenario", &options.scenario)] {
        words.extend(value.iter().flat_map(|value| [name, value.as_str()]));
    }
    match isolate::again(&words)? {
        Behind::Ended { well: true, last_line } => Ok(last_line),
        Behind::Ended { well: false, last_line } => Err(format!("real agents: {last_line}").into()),
        Behind::NoWall => {
            perform(&Options { binary: Some(binary), scripted: Some(scripted), ..options.clone() })
        }
    }
}

fn perform(options: &Options) -> Result<String, Fault> {
    let Choice { agents, scenarios } = options.choice()?;
    let unstuck = options.binary.clone().ok_or("which binary?")?;
    let scripted = options.scripted.clone().ok_or("which MCP server?")?;
    let tools = Tools { cache: Cache::find()?, unstuck, scripted, keep: options.keep, day: Arc::default() };
    let words = Words::read()?;
    let start = Instant::now();
    // All agents with one scenario, then with the next, so that the slow ones are not all left for last.
    let pairs = scenarios.iter().flat_map(|scenario| agents.iter().map(move |agent| (*agent, *scenario)));
    let waiting: Mutex<VecDeque<(&'static Agent, &'static Scenario)>> = Mutex::new(pairs.collect());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let cells = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((agent, scenario)) = next() {
                    let cell = one(agent, scenario, &tools, &words, options);
                    cell.tell();
                    cells.lock().unwrap_or_else(PoisonError::into_inner).push(cell);
                }
            });
        }
    });
    let cells = cells.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (mut failed, mut closing) = table::show(&agents, &scenarios, &cells);
    if let Some(day) = tools.day.close() {
        failed += usize::from(day.is_err());
        closing += &format!("; {}", day.unwrap_or_else(|line| line));
    }
    println!("in {:.0} s\n{closing}", start.elapsed().as_secs_f64());
    if failed == 0 { Ok(closing) } else { Err(format!("{failed} scenarios failed").into()) }
}

fn one(
    agent: &'static Agent,
    scenario: &'static Scenario,
    tools: &Tools,
    words: &Words,
    options: &Options,
) -> Cell {
    let start = Instant::now();
    // One scenario or one agent that is asked for is played whole.
    let named = options.scenario.as_ref().is_some_and(|wanted| !wanted.ends_with('-'));
    let all = options.day_all || options.only.is_some() || named;
    let left_out = day::left_out(agent, scenario.name).filter(|_| !all);
    let ending = match (scenario.applies)(agent).and(left_out.map_or(Ok(()), Err)) {
        Err(why) => Ending::Skipped(why),
        Ok(()) => play(agent, scenario, tools, words),
    };
    Cell { agent, scenario, ending, took: start.elapsed() }
}

/// Plays a scenario; once more where it failed and the agent itself had lost what a command printed, so that nobody could
/// have known.
fn play(agent: &'static Agent, scenario: &'static Scenario, tools: &Tools, words: &Words) -> Ending {
    for _ in 1..TRIES {
        match (scenario.play)(agent, tools, words) {
            Ok(()) => return Ending::Passed,
            Err(fault) => {
                let fault = fault.to_string();
                if !agent.loses_output.is_some_and(|sign| fault.contains(sign)) {
                    return Ending::Failed(fault);
                }
                println!("{:<10}{:<16} again: it lost what a command printed", agent.name, scenario.name);
            }
        }
    }
    (scenario.play)(agent, tools, words)
        .map_or_else(|fault| Ending::Failed(fault.to_string()), |()| Ending::Passed)
}
