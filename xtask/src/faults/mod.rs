//! Proof under fault: the hook is killed and its file system calls are failed, one after another, and after every single blow
//! nothing that was acknowledged may be missing, nothing may be damaged, and the next run must work.

mod chaos;
mod file;
mod full_disk;
mod memory;
mod power;
mod secrets;
mod strace;
pub mod sweep;
mod vault;

use std::path::{Path, PathBuf};
use std::time::Instant;

use full_disk::FullDisk;
use lexopt::prelude::*;
use memory::Memory;
use power::Power;
use strace::Strace;
use sweep::{SCENES, Tally};

use crate::{Fault, project};

/// Blows per scene in the short form.
const SAMPLE: usize = 60;

/// Failed allocations in the short form.
const ALLOCATIONS: usize = 120;

/// How much of what did not hold is shown.
const SHOWN: usize = 20;

/// What is to be done.
struct Options {
    full: bool,
    seed: u64,
    only: Option<String>,
    binary: Option<PathBuf>,
}

impl Options {
    fn short() -> Options {
        Options { full: false, seed: 1, only: None, binary: None }
    }
}

/// `cargo xtask faults`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut options = Options::short();
    while let Some(arg) = args.next()? {
        match arg {
            Value(part) if part == "vault" => return vault::run(args),
            Long("full") => options.full = true,
            Long("seed") => options.seed = args.value()?.parse()?,
            Long("binary") => options.binary = Some(args.value()?.into()),
            Long("only") => options.only = Some(args.value()?.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let unstuck = options.binary.clone().map_or_else(project::unstuck, Ok)?;
    all(&unstuck, &options).map(|remark| println!("{remark}"))
}

/// The short form, for `cargo xtask check`.
pub fn check() -> Result<String, Fault> {
    let unstuck = project::unstuck()?;
    Ok(format!("{}; the safe: {}", all(&unstuck, &Options::short())?, vault::check(&unstuck)?))
}

fn all(unstuck: &Path, options: &Options) -> Result<String, Fault> {
    let wanted = |part: &str| options.only.as_ref().is_none_or(|only| only == part);
    let mut remarks = Vec::new();
    match (wanted("sweep") || wanted("chaos")).then(Strace::find) {
        Some(Strace::Missing(why)) => remarks.push(format!("SKIPPED, no call was failed: {why}")),
        Some(Strace::Works) => {
            let mut blows = 0;
            let mut broken = Vec::new();
            if wanted("sweep") {
                for scene in SCENES {
                    let start = Instant::now();
                    let sample = (!options.full).then_some(SAMPLE);
                    let tally = sweep::sweep(unstuck, scene, sample, options.seed)?;
                    blows += tally.struck;
                    tell(scene.name(), start, &tally);
                    broken.extend(tally.broken);
                }
            }
            if wanted("chaos") {
                let start = Instant::now();
                let rounds = if options.full { 600 } else { 60 };
                let tally = chaos::run(unstuck, rounds, options.seed)?;
                blows += tally.struck;
                tell("one store, blow after blow", start, &tally);
                broken.extend(tally.broken);
            }
            held(&broken)?;
            remarks.push(format!("{blows} blows"));
        }
        None => {}
    }
    if wanted("power") {
        let start = Instant::now();
        match power::run(unstuck, options.full, options.seed)? {
            Power::Held { cuts, deeds, promised } => {
                println!(
                    "the power goes: {cuts} cuts in a story of {deeds} changes to files and {promised} promises, all kept ({:.1} s)",
                    start.elapsed().as_secs_f64()
                );
                remarks.push(format!("{cuts} power cuts"));
            }
            Power::Skipped(why) => {
                println!("the power goes: SKIPPED, {why}");
                remarks.push(format!("power cuts SKIPPED: {why}"));
            }
        }
    }
    if wanted("file") {
        let start = Instant::now();
        let file::Damaged { cases, kept, lost } = file::run(unstuck, options.full, options.seed)?;
        println!(
            "damaged files: {cases}; {kept} calls came back, {lost} stood in what was damaged ({:.1} s)",
            start.elapsed().as_secs_f64()
        );
        remarks.push(format!("{cases} damaged files"));
    }
    if wanted("disk") {
        match full_disk::run(unstuck)? {
            FullDisk::Held { acknowledged, refused } => {
                println!(
                    "a full disk: {acknowledged} entries acknowledged and kept, {refused} refused in words"
                );
                remarks.push("a full disk".to_owned());
            }
            FullDisk::Skipped(why) => {
                println!("a full disk: SKIPPED, {why}");
                remarks.push(format!("full disk SKIPPED: {why}"));
            }
        }
    }
    if wanted("memory") {
        let start = Instant::now();
        match memory::run(unstuck, (!options.full).then_some(ALLOCATIONS), options.seed)? {
            Memory::Held(tally) => {
                tell("out of memory", start, &tally);
                held(&tally.broken)?;
                remarks.push(format!("{} failed allocations", tally.struck));
            }
            Memory::Skipped(why) => {
                println!("out of memory: SKIPPED, {why}");
                remarks.push(format!("out of memory SKIPPED: {why}"));
            }
        }
    }
    if wanted("secrets") {
        let start = Instant::now();
        let planted = secrets::run(unstuck, options.full)?;
        println!("planted secrets: {planted} ({:.1} s)", start.elapsed().as_secs_f64());
        remarks.push(planted.to_string());
    }
    match remarks.is_empty() {
        true => Err("--only takes sweep, chaos, power, file, disk, memory or secrets".into()),
        false => Ok(remarks.join("; ")),
    }
}

/// Fails where something did not hold.
fn held(broken: &[String]) -> Result<(), Fault> {
    if broken.is_empty() {
        return Ok(());
    }
    let first: Vec<&str> = broken.iter().take(SHOWN).map(String::as_str).collect();
    Err(format!("{} blows broke something:\n{}", broken.len(), first.join("\n")).into())
}

/// Prints a row.
fn tell(name: &str, start: Instant, tally: &Tally) {
    println!(
        "{name}: {} places, {} blows, {} broke something; of the struck entries {} were acknowledged and {} were not; \
         the slowest took {:.1} s ({}); {:.1} s",
        tally.places,
        tally.struck,
        tally.broken.len(),
        tally.acknowledged,
        tally.unacknowledged,
        tally.slowest.0.as_secs_f64(),
        tally.slowest.1,
        start.elapsed().as_secs_f64(),
    );
}
