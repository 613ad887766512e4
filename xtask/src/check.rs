//! Everything that must hold before a change goes in. CI runs exactly this; it needs the stable toolchain and
//! nothing else, apart from real agents and servers, which are downloaded for CI and for who asks for them.

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use lexopt::prelude::*;

use crate::supply::{self, Advice};
use crate::{Fault, accept, e2e, faults, generate, honest, licences, load, mcp, project, score, soak};

/// One thing that must hold.
struct Step {
    name: &'static str,
    run: fn() -> Result<Held, Fault>,
}

/// What there is to say about a step that held.
#[derive(Default)]
struct Held {
    /// Stands beside it in the table.
    remark: String,
    /// Lines of another program, repeated below the table exactly as it printed them.
    quoted: Vec<String>,
}

impl From<String> for Held {
    fn from(remark: String) -> Held {
        Held { remark, ..Held::default() }
    }
}

/// The cheap ones first: most mistakes are found in the first minute.
const STEPS: [Step; 13] = [
    Step { name: "format", run: || cargo(&["fmt", "--all", "--check"], &[]) },
    Step { name: "generated pages", run: || generate::check().map(Held::from) },
    Step { name: "requirements", run: || accept::check().map(Held::from) },
    Step { name: "licences", run: || licences::check().map(Held::from) },
    Step { name: "advisories", run: known_weaknesses },
    Step {
        name: "clippy",
        run: || {
            twice(
                |which| [&["clippy", "--locked", "--all-targets"], which, &["--", "-D", "warnings"]].concat(),
                &[],
            )
        },
    },
    Step { name: "tests", run: tests },
    Step {
        name: "documentation",
        run: || {
            twice(
                |which| [&["doc", "--locked", "--no-deps"], which].concat(),
                &[("RUSTDOCFLAGS", "-D warnings")],
            )
        },
    },
    Step {
        name: "scores",
        run: || score::check().map(|()| "no figure is worse than recorded".to_owned().into()),
    },
    Step { name: "honest work", run: || honest::check().map(Held::from) },
    Step { name: "load", run: || load::check().map(Held::from) },
    Step { name: "faults", run: || faults::check().map(Held::from) },
    Step { name: "soak", run: || soak::check().map(Held::from) },
];

/// What a few minutes show while somebody works: no test that starts the program, no release build.
const QUICK: [Step; 5] = [
    Step { name: "format", run: || cargo(&["fmt", "--all", "--check"], &[]) },
    Step { name: "generated pages", run: || generate::check().map(Held::from) },
    Step {
        name: "clippy",
        run: || cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"], &[]),
    },
    Step {
        name: "unit tests",
        run: || cargo(&["test", "--quiet", "--locked", "--workspace", "--lib", "--bins"], &[]),
    },
    Step {
        name: "corpora",
        run: || cargo(&["test", "--quiet", "--locked", "--package", "unstuck-fuzz"], &[]),
    },
];

/// Real servers and real agents: several hundred megabytes once, and minutes.
const OTHERS: [Step; 2] = [
    Step { name: "servers", run: || mcp::check().map(quoted) },
    Step { name: "agents", run: || e2e::check().map(quoted) },
];

/// What stands in their place.
const NO_OTHERS: [Step; 2] = [
    Step {
        name: "servers",
        run: || Ok("SKIPPED: no real MCP server was asked; --agents, or CI=true, does".to_owned().into()),
    },
    Step {
        name: "agents",
        run: || Ok("SKIPPED: no real agent was asked; --agents, or CI=true, does".to_owned().into()),
    },
];

fn quoted(closing: String) -> Held {
    Held { quoted: vec![closing], ..Held::default() }
}

/// How a step ended.
enum Ending {
    Held(Held),
    Failed(Fault),
    NotReached,
}

/// `cargo xtask check`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let (mut keep_going, mut quick) = (false, false);
    let mut agents = env::var("CI").is_ok_and(|value| value == "true");
    while let Some(arg) = args.next()? {
        match arg {
            Long("keep-going") => keep_going = true,
            Long("agents") => agents = true,
            Long("quick") => quick = true,
            other => return Err(other.unexpected().into()),
        }
    }
    let mut endings: Vec<(&Step, Ending, Duration)> = Vec::new();
    let last = if agents { &OTHERS } else { &NO_OTHERS };
    let steps: Vec<&Step> = if quick { QUICK.iter().collect() } else { STEPS.iter().chain(last).collect() };
    let start_of_all = Instant::now();
    for (number, step) in (1..).zip(&steps) {
        let failed = endings.iter().any(|(_, ending, _)| matches!(ending, Ending::Failed(_)));
        let start = Instant::now();
        let ending = match failed && !keep_going {
            true => Ending::NotReached,
            false => {
                let minutes = start_of_all.elapsed().as_secs_f64() / 60.0;
                println!("── {number} of {}, after {minutes:.1} minutes: {}", steps.len(), step.name);
                (step.run)().map_or_else(Ending::Failed, Ending::Held)
            }
        };
        endings.push((step, ending, start.elapsed()));
    }
    report(&endings)
}

fn report(endings: &[(&Step, Ending, Duration)]) -> Result<(), Fault> {
    println!("\n{:<18}{:>8}", "step", "minutes");
    let mut failed = Vec::new();
    let mut quoted: Vec<&String> = Vec::new();
    for (step, ending, took) in endings {
        let minutes = took.as_secs_f64() / 60.0;
        match ending {
            Ending::Held(held) => {
                println!("{:<18}{minutes:>8.1}  ok  {}", step.name, held.remark);
                quoted.extend(&held.quoted);
            }
            Ending::Failed(fault) => {
                println!("{:<18}{minutes:>8.1}  FAILED: {fault}", step.name);
                failed.push(step.name);
            }
            Ending::NotReached => println!("{:<18}{:>8}  not reached", step.name, "-"),
        }
    }
    let total: Duration = endings.iter().map(|(_, _, took)| *took).sum();
    println!("{:<18}{:>8.1}", "all", total.as_secs_f64() / 60.0);
    quoted.iter().for_each(|line| println!("{line}"));
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("failed: {}", failed.join(", ")).into()),
    }
}

/// The programs with what they ship, and the library with all its features: together, cargo would give to the programs what
/// only features of the library ask for.
const HALVES: [&[&str]; 2] =
    [&["--workspace", "--exclude", "unstuck"], &["--package", "unstuck", "--all-features"]];

/// Runs a command of cargo for both.
fn twice(args: impl Fn(&[&'static str]) -> Vec<&'static str>, env: &[(&str, &str)]) -> Result<Held, Fault> {
    HALVES.iter().try_fold(Held::default(), |_, which| cargo(&args(which), env))
}

fn cargo(args: &[&str], env: &[(&str, &str)]) -> Result<Held, Fault> {
    let mut command = project::cargo(args);
    command.envs(env.iter().copied());
    match command.status()?.success() {
        true => Ok(Held::default()),
        false => Err(format!("cargo {}", args.join(" ")).into()),
    }
}

/// All tests, those in documentation too; cargo's own summary lines are repeated at the end.
fn tests() -> Result<Held, Fault> {
    let mut summary = Vec::new();
    let mut all_passed = true;
    for which in HALVES {
        let (lines, passed) =
            project::tee(project::cargo(&[&["test", "--locked", "--no-fail-fast"], which].concat()))?;
        summary.extend(lines.into_iter().filter(|line| line.starts_with("test result:")));
        all_passed &= passed;
    }
    match all_passed {
        true => Ok(Held { remark: left_out(), quoted: summary }),
        false => Err(format!("cargo test\n{}", summary.join("\n")).into()),
    }
}

/// What the tests could not try on this machine.
fn left_out() -> String {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let missing: Vec<&str> = ["node", "script"].into_iter().filter(|program| !is_there(program)).collect();
    match missing.is_empty() {
        true => String::new(),
        false => format!("skipped: those that need {}, which is not installed", missing.join(" and ")),
    }
}

fn known_weaknesses() -> Result<Held, Fault> {
    Ok(match supply::advice()? {
        Advice::Clean => Held::default(),
        Advice::Gap(why) => format!("GAP: not looked up: {why}").into(),
    })
}
