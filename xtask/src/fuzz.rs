//! Throws garbage at each fuzz target for a while.
//!
//! This is libFuzzer, guided by coverage, on the stable toolchain: the compiler's coverage pass is reached through flags
//! that stable knows. Only the address sanitizer would need nightly, and the code under test has no `unsafe`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lexopt::prelude::*;

use crate::{Fault, project};

const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// No input may take longer, or more memory, than this.
const SECONDS_PER_INPUT: u32 = 10;
const MEGABYTES: u32 = 512;

/// `cargo xtask fuzz`.
///
/// What a run learns lies in a folder outside of git (`target/fuzz/corpus`, or `--corpus`), and the next one goes on from it.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut seconds: u64 = 30;
    let mut wanted: Vec<String> = Vec::new();
    let mut corpus = None;
    let mut hours = None;
    while let Some(arg) = args.next()? {
        match arg {
            Long("seconds") => seconds = args.value()?.parse()?,
            Long("hours") => hours = Some(args.value()?.parse::<f64>()?),
            Long("corpus") => corpus = Some(PathBuf::from(args.value()?)),
            Value(target) => wanted.push(target.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let known = targets()?;
    if let Some(unknown) = wanted.iter().find(|target| !known.contains(target)) {
        return Err(format!("there is no target {unknown:?}, only {}", known.join(", ")).into());
    }
    let chosen = if wanted.is_empty() { known } else { wanted };
    let workshop = workshop()?;
    let corpus = corpus.unwrap_or_else(|| workshop.join("corpus"));
    // Hours are shared: all targets take turns, a while each, so that none waits for the last hour.
    let (rounds, seconds) = match hours {
        None => (1, seconds),
        Some(hours) => turns(hours, chosen.len()),
    };
    let built = build(&chosen, &workshop)?;
    let seeds = workshop.join("seeds");
    let [writer] = &project::build(&["--package", "unstuck-fuzz", "--bin", "seeds"])?[..] else {
        return Err("cargo built no seed writer".into());
    };
    if !Command::new(writer).arg(project::root()).arg(&seeds).status()?.success() {
        return Err("the seeds could not be written".into());
    }
    let mut broken = BTreeSet::new();
    for round in 1..=rounds {
        for (target, binary) in chosen.iter().zip(&built) {
            if broken.contains(target) {
                continue;
            }
            let story =
                fuzz(target, binary, &workshop.join("seeds").join(target), &corpus.join(target), seconds)?;
            let round = if rounds > 1 { format!("{round}/{rounds}  ") } else { String::new() };
            println!("{round}{target:<14}{story}");
            if let Story::Broke { .. } = story {
                broken.insert(target.clone());
            }
        }
    }
    let broken: Vec<String> = broken.into_iter().collect();
    match broken.is_empty() {
        true => Ok(()),
        false => Err(format!("broken: {}", broken.join(", ")).into()),
    }
}

/// How often each of so many targets has its turn within these hours, and for how many seconds.
fn turns(hours: f64, targets: usize) -> (u64, u64) {
    const TURN: u64 = 600;
    let each =
        Duration::try_from_secs_f64(hours * 3600.0).unwrap_or_default().as_secs() / targets.max(1) as u64;
    let rounds = each.div_ceil(TURN).max(1);
    (rounds, (each / rounds).max(1))
}

/// The targets are the files in `fuzz/targets`.
fn targets() -> Result<Vec<String>, Fault> {
    let files = fs::read_dir(project::root().join("fuzz/targets"))?.flatten().map(|entry| entry.path());
    let mut names: Vec<String> =
        files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

/// Where instrumented builds and what the fuzzer learns are kept, apart from ordinary builds.
fn workshop() -> Result<PathBuf, Fault> {
    Ok(project::target()?.join("fuzz"))
}

/// Builds the targets, in their order. The explicit platform keeps the coverage flags away from build scripts.
fn build(targets: &[String], workshop: &Path) -> Result<Vec<PathBuf>, Fault> {
    let version = Command::new("rustc").arg("-vV").output()?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
    let mut command =
        project::cargo(&["build", "--profile=fuzz", "--package=unstuck-fuzz", "--features=libfuzzer"]);
    command.args(["--target", host]).arg("--target-dir").arg(workshop).env("RUSTFLAGS", COVERAGE);
    command.args(targets.iter().flat_map(|target| ["--bin".to_owned(), format!("fuzz-{target}")]));
    if !command.status()?.success() {
        return Err("the fuzz targets do not build (libFuzzer needs a C++ compiler)".into());
    }
    let folder = workshop.join(host).join("fuzz");
    Ok(targets.iter().map(|target| folder.join(format!("fuzz-{target}"))).collect())
}

/// How a target fared.
enum Story {
    Held { executions: u64, per_second: u64, peak_mb: u64 },
    Broke { why: String, inputs: Vec<PathBuf> },
}

impl std::fmt::Display for Story {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Story::Held { executions, per_second, peak_mb } => {
                write!(f, "held  {executions:>9} executions  {per_second:>7}/s  peak {peak_mb} MB")
            }
            Story::Broke { why, inputs } => {
                write!(f, "BROKE {why}")?;
                inputs
                    .iter()
                    .try_for_each(|input| write!(f, "\n{:14}      input saved as {}", "", input.display()))
            }
        }
    }
}

fn fuzz(target: &str, binary: &Path, seeds: &Path, learned: &Path, seconds: u64) -> Result<Story, Fault> {
    let found = project::root().join("fuzz/found");
    let before = inputs(&found, target)?;
    fs::create_dir_all(learned)?;
    fs::create_dir_all(seeds)?;
    let output = Command::new(binary)
        .arg(learned)
        .arg(seeds)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={SECONDS_PER_INPUT}"))
        .arg(format!("-rss_limit_mb={MEGABYTES}"))
        .arg(format!("-artifact_prefix={}/{target}-", found.display()))
        .args(["-max_len=16384", "-print_final_stats=1", "-verbosity=1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()?;
    let log = String::from_utf8_lossy(&output.stderr);
    let stat = |name: &str| {
        let line =
            log.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    };
    if output.status.success() {
        return Ok(Story::Held {
            executions: stat("number_of_executed_units"),
            per_second: stat("average_exec_per_sec"),
            peak_mb: stat("peak_rss_mb"),
        });
    }
    let at = log.lines().position(|line| line.contains("panicked at") || line.contains("ERROR: libFuzzer"));
    let why = log.lines().skip(at.unwrap_or(0)).take(3).collect::<Vec<_>>().join(" ");
    let inputs = inputs(&found, target)?.into_iter().filter(|input| !before.contains(input)).collect();
    Ok(Story::Broke { why, inputs })
}

/// The inputs saved for a target.
fn inputs(found: &Path, target: &str) -> Result<Vec<PathBuf>, Fault> {
    let files = fs::read_dir(found)?.flatten().map(|entry| entry.path());
    let mine =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(target));
    Ok(files.filter(mine).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_shared_in_turns_of_ten_minutes() {
        assert_eq!(turns(14.0, 14), (6, 600));
        assert_eq!(turns(0.5, 14), (1, 128));
        assert_eq!(turns(1.0, 1), (6, 600));
        assert_eq!(turns(0.0, 14), (1, 1));
    }
}
