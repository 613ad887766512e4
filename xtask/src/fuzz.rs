//! Throws garbage at each fuzz target for a while.
//!
//! This is libFuzzer, guided by coverage, on the stable toolchain: the compiler's coverage pass is reached through flags
//! that stable knows. Only the address sanitizer would need nightly, and the code under test has no `unsafe`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lexopt::prelude::*;

use crate::{Fault, project};

const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// No input may take longer, or more memory, than this.
const SECONDS_PER_INPUT: u32 = 10;
const MEGABYTES: u32 = 512;

/// `cargo xtask fuzz`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut seconds: u64 = 30;
    let mut wanted: Vec<String> = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            Long("seconds") => seconds = args.value()?.parse()?,
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
    let built = build(&chosen, &workshop)?;
    let seeds = workshop.join("seeds");
    let [writer] = &project::build(&["--package", "unstuck-fuzz", "--bin", "seeds"])?[..] else {
        return Err("cargo built no seed writer".into());
    };
    if !Command::new(writer).arg(project::root()).arg(&seeds).status()?.success() {
        return Err("the seeds could not be written".into());
    }
    let mut broken = Vec::new();
    for (target, binary) in chosen.iter().zip(&built) {
        let story = fuzz(target, binary, &workshop, seconds)?;
        println!("{target:<14}{story}");
        if let Story::Broke { .. } = story {
            broken.push(&**target);
        }
    }
    match broken.is_empty() {
        true => Ok(()),
        false => Err(format!("broken: {}", broken.join(", ")).into()),
    }
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

fn fuzz(target: &str, binary: &Path, workshop: &Path, seconds: u64) -> Result<Story, Fault> {
    let found = project::root().join("fuzz/found");
    let before = inputs(&found, target)?;
    let learned = workshop.join("corpus").join(target);
    fs::create_dir_all(&learned)?;
    let output = Command::new(binary)
        .arg(&learned)
        .arg(workshop.join("seeds").join(target))
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
