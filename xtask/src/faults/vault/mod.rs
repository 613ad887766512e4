//! Proof under fault for the safe: snapshots, restores and removals are killed and failed at their system calls, disks fill up,
//! bits flip, trees change while they are read; and after every blow what was acknowledged is there to the last byte, and
//! the tree is what it was or what it was to become.

mod crowd;
mod disk;
#[path = "../../../../crates/vault/tests/properties/listing.rs"]
mod listing;
mod million;
mod mischief;
mod stage;
mod sweep;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use lexopt::prelude::*;

use super::strace::Strace;
use crate::{Fault, project};

/// Blows per scene in the short form.
const SAMPLE: usize = 16;
/// How much of what did not hold is shown.
const SHOWN: usize = 10;

/// What is to be done.
struct Options {
    /// Blows per scene; all of them where there is none.
    sample: Option<usize>,
    /// Only every n-th blow.
    every: usize,
    /// Random stories beside; none are told in the short form, the tests of the safe do that.
    cases: Option<u32>,
    seed: u64,
    only: Option<String>,
    big: bool,
    binary: Option<PathBuf>,
}

const PARTS: [&str; 4] = ["sweep", "mischief", "disk", "crowd"];

/// `cargo xtask faults vault`: complete, unless it is told otherwise.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut options =
        Options { sample: None, every: 1, cases: None, seed: 1, only: None, big: false, binary: None };
    while let Some(arg) = args.next()? {
        match arg {
            Long("every") => options.every = args.value()?.parse::<usize>()?.max(1),
            Long("short") => options.sample = Some(SAMPLE),
            Long("cases") => options.cases = Some(args.value()?.parse()?),
            Long("seed") => options.seed = args.value()?.parse()?,
            Long("only") => options.only = Some(args.value()?.string()?),
            Long("big") => options.big = true,
            Long("binary") => options.binary = Some(args.value()?.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    let unstuck = options.binary.clone().map_or_else(project::unstuck, Ok)?;
    if options.big {
        return million::run(&unstuck);
    }
    all(&unstuck, &options).map(|remark| println!("{remark}"))
}

/// The short form, for `cargo xtask check`.
pub fn check(unstuck: &Path) -> Result<String, Fault> {
    let sample = Some(SAMPLE);
    all(unstuck, &Options { sample, every: 1, cases: None, seed: 1, only: None, big: false, binary: None })
}

fn all(unstuck: &Path, options: &Options) -> Result<String, Fault> {
    let wanted = |part: &str| options.only.as_ref().is_none_or(|only| only == part);
    if !PARTS.into_iter().any(wanted) {
        return Err(format!("--only takes {}", PARTS.join(", ")).into());
    }
    let mut remarks = Vec::new();
    let mut broken = Vec::new();
    if wanted("sweep") {
        match Strace::find() {
            Strace::Missing(why) => remarks.push(format!("SKIPPED, no call was failed: {why}")),
            Strace::Works => {
                let mut blows = 0;
                for scene in sweep::SCENES {
                    let start = Instant::now();
                    let tally = sweep::sweep(unstuck, scene, options.sample, options.every, options.seed)?;
                    println!(
                        "{}: {} places, {} blows, {} broke something; {} acknowledged, {} not; {:.1} s",
                        scene.name(),
                        tally.places,
                        tally.struck,
                        tally.broken.len(),
                        tally.acknowledged,
                        tally.struck - tally.acknowledged,
                        start.elapsed().as_secs_f64(),
                    );
                    blows += tally.struck;
                    broken.extend(tally.broken);
                }
                remarks.push(format!("{blows} blows"));
            }
        }
    }
    let is_short = options.sample.is_some();
    for (part, run) in [
        ("mischief", mischief::run as fn(&Path, bool) -> Result<String, Fault>),
        ("disk", disk::run),
        ("crowd", crowd::run),
    ] {
        if wanted(part) {
            let start = Instant::now();
            let remark = run(unstuck, is_short).map_err(|wrong| format!("{part}: {wrong}"))?;
            println!("{part}: {remark} ({:.1} s)", start.elapsed().as_secs_f64());
            remarks.push(remark);
        }
    }
    if let Some(cases) = options.cases {
        stories(cases)?;
        remarks.push(format!("{cases} random stories"));
    }
    match broken.is_empty() {
        true => Ok(remarks.join("; ")),
        false => {
            let first: Vec<&str> = broken.iter().take(SHOWN).map(String::as_str).collect();
            Err(format!("{} blows broke something:\n{}", broken.len(), first.join("\n")).into())
        }
    }
}

/// The random stories of the safe's own tests, as many as are wanted.
fn stories(cases: u32) -> Result<(), Fault> {
    let mut cargo: Command =
        project::cargo(&["test", "--release", "--package", "unstuck-vault", "--test", "properties"]);
    match cargo.env("UNSTUCK_VAULT_CASES", cases.to_string()).status()?.success() {
        true => Ok(()),
        false => Err("a random story came out wrong".into()),
    }
}
