//! What a hook costs in a real agent's turn: Claude Code makes the same calls without hooks, with hooks that do nothing and
//! with `unstuck`, in turns within one run. The time is taken by the model: from one request to the next.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lexopt::prelude::*;

use super::agents::CLAUDE;
use super::isolate::{self, Behind};
use super::model::{Turn, shell};
use super::programs::Cache;
use super::stage::{Stage, Tools};
use crate::{Fault, project};

/// Calls in one session.
const CALLS: usize = 20;

/// `cargo xtask bench turn`: downloads and builds, then measures behind the wall.
pub fn bench(quick: bool) -> Result<(), Fault> {
    Cache::find()?.fetch(&super::packages(&[&CLAUDE]))?;
    let unstuck = project::unstuck()?;
    let empty = project::build(&["--release", "--package", "xtask", "--example", "empty"])?;
    let empty = empty.first().ok_or("cargo built no empty program")?;
    let rounds = if quick { "2" } else { "8" };
    let text = |path: &PathBuf| path.to_str().map(str::to_owned).ok_or("a path is not UTF-8");
    let words = ["turn-cost", &text(&unstuck)?, &text(empty)?, rounds];
    match isolate::again(&words)? {
        Behind::Ended { well: true, .. } => Ok(()),
        Behind::Ended { well: false, .. } => Err("the turns could not be measured".into()),
        Behind::NoWall => measure(unstuck, empty.clone(), rounds.parse()?),
    }
}

/// The part behind the wall: the binary, an empty program, how many rounds.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let (unstuck, empty) = (args.value()?.into(), args.value()?.into());
    measure(unstuck, empty, args.value()?.parse()?)
}

fn measure(unstuck: PathBuf, empty: PathBuf, rounds: usize) -> Result<(), Fault> {
    // No MCP server takes part.
    let tools =
        Tools { cache: Cache::find()?, unstuck, scripted: PathBuf::new(), keep: false, day: Arc::default() };
    let (bare, idle, ours) =
        (Stage::bare(&CLAUDE, &tools)?, Stage::set(&CLAUDE, &tools)?, Stage::set(&CLAUDE, &tools)?);
    fs::copy(&empty, idle.unstuck())?;
    let contestants = [("no hooks", &bare), ("hooks that do nothing", &idle), ("unstuck", &ours)];
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..rounds {
        for ((_, stage), times) in contestants.iter().zip(&mut times) {
            // Calls that differ, as in life; the last turn has no next request.
            let calls = (0..CALLS).map(|call| shell(format!("echo water level {call}")));
            let run = stage.play(&calls.chain([Turn::Say("done")]).collect::<Vec<_>>())?;
            if run.received.pace.len() != CALLS {
                return Err(format!(
                    "only {} of {CALLS} calls were made: {}",
                    run.received.pace.len(),
                    run.stderr
                )
                .into());
            }
            times.extend(run.received.pace);
        }
    }
    let middle = |times: &[Duration], part: usize| {
        let mut times = times.to_vec();
        times.sort();
        times[times.len() * part / 100].as_secs_f64() * 1e3
    };
    let none = middle(&times[0], 50);
    println!(
        "one Bash call in Claude Code {}, {} turns each, in turns\n",
        CLAUDE.package.version,
        rounds * CALLS
    );
    println!("| | p50 ms | p95 ms | added at p50 | ratio |\n|---|---:|---:|---:|---:|");
    for ((name, _), times) in contestants.iter().zip(&times) {
        let median = middle(times, 50);
        println!(
            "| {name} | {median:.1} | {:.1} | {:+.1} | {:.2} |",
            middle(times, 95),
            median - none,
            median / none
        );
    }
    Ok(())
}
