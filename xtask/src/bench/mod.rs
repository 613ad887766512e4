//! How fast it is, beside others in the same run on the same machine. Times of another machine mean nothing, so nothing here
//! passes or fails.

mod beside;
mod contest;
mod filled;
mod hook;
mod log;
mod look;
mod mcp;
mod memory;
mod run;
mod sdk;
mod store;
mod taught;
mod transcripts;
mod vault;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

pub use contest::Measured;
use contest::{Contestant, Ratio, quantile, take_turns};
use lexopt::prelude::*;
use nix::sys::resource::{UsageWho, getrusage};

use crate::{Fault, e2e, project};

const PAGE: &str = "docs/benchmarks.md";
const MEGABYTE: u64 = 1_000_000;

/// A failure of two kilobytes, as an agent meets it.
const SMALL_FAILURE: &str =
    "fatal: unable to access 'https://example.org/x.git/': Could not resolve host: example.org\n";

#[derive(Debug, Default)]
struct Options {
    quick: bool,
    big: bool,
    write: bool,
    only: Only,
    binary: Option<PathBuf>,
    /// Another build, whose hooks are counted beside ours.
    beside: Option<PathBuf>,
    disk: vault::Disk,
}

/// Which part is measured.
#[derive(Debug, Default, PartialEq, Eq)]
enum Only {
    /// All of it.
    #[default]
    Everything,
    /// What one hook call costs.
    Hook,
    /// What the look before a refusal costs in a large project.
    Look,
    /// What has to do with the store.
    Store,
    /// What lessons cost, and what it costs to find them.
    Memory,
    /// What it costs to reach a server through us.
    Mcp,
    /// What it costs to run a command.
    Run,
    /// What hooks cost in a real agent's turn.
    Turn,
    /// What a call through the library costs.
    Sdk,
    /// What snapshots and restores cost.
    Vault,
}

/// The programs that are measured.
struct Programs {
    unstuck: PathBuf,
    empty: PathBuf,
    count_lines: PathBuf,
    scan_events: PathBuf,
}

/// `cargo xtask bench`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut options = Options::default();
    while let Some(arg) = args.next()? {
        match arg {
            Long("quick") => options.quick = true,
            Long("big") => options.big = true,
            Long("write") => options.write = true,
            Long("store") => options.only = Only::Store,
            Value(part) if part == "hook" => options.only = Only::Hook,
            Value(part) if part == "look" => options.only = Only::Look,
            Value(part) if part == "mcp" => options.only = Only::Mcp,
            Value(part) if part == "memory" => options.only = Only::Memory,
            Value(part) if part == "run" => options.only = Only::Run,
            Value(part) if part == "sdk" => options.only = Only::Sdk,
            Value(part) if part == "turn" => options.only = Only::Turn,
            Value(part) if part == "vault" => options.only = Only::Vault,
            Long("image") => options.disk = vault::Disk::Image,
            Long("beside") => options.beside = Some(args.value()?.into()),
            Long("binary") => options.binary = Some(args.value()?.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    if options.only == Only::Turn {
        return e2e::cost::bench(options.quick);
    }
    if options.only == Only::Vault {
        return vault::bench(&options);
    }
    if options.only == Only::Look {
        return look::bench(&options);
    }
    if options.only == Only::Sdk {
        return sdk::bench(&options);
    }
    if options.only == Only::Mcp {
        return mcp::bench(&options);
    }
    if options.only == Only::Run {
        return run::bench(&options);
    }
    if options.only == Only::Memory {
        return memory::bench(&options);
    }
    if let (Only::Hook, Some(other)) = (&options.only, &options.beside) {
        return beside::bench(&options, other);
    }
    if options.binary.is_some() || options.disk != vault::Disk::Plain {
        return Err("--binary is for `look`, `mcp`, `memory`, `run` and `vault`, --image for `vault`".into());
    }
    let programs = Programs::build()?;
    let mut sections = Vec::new();
    if options.only == Only::Everything || options.only == Only::Hook {
        let report = machine() + &hook::tables(&programs, options.quick)?;
        sections.push(Section { mark: "hook", report: format!("{report}At the end: {}.\n", load()) });
    }
    if options.only != Only::Hook {
        let mut report = machine();
        if options.only == Only::Everything {
            report += &reading_and_judging(&programs, &options)?;
        }
        report += &store::tables(&programs, options.quick)?;
        sections.push(Section { mark: "all else", report });
    }
    for section in &sections {
        println!("{}", section.report);
    }
    match (options.write, options.only) {
        (true, Only::Everything | Only::Hook) => write_page(&sections),
        (
            true,
            Only::Look
            | Only::Store
            | Only::Memory
            | Only::Mcp
            | Only::Run
            | Only::Sdk
            | Only::Turn
            | Only::Vault,
        ) => Err(format!("this part of {PAGE} is not written alone").into()),
        (false, _) => Ok(()),
    }
}

fn reading_and_judging(programs: &Programs, options: &Options) -> Result<String, Fault> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let log = folder.join("build.log");
    log::write(File::create(&log)?, 100 * MEGABYTE)?;
    let mut report = reading(programs, "100 MB", &[&log], if options.quick { 3 } else { 9 })?;
    if options.big {
        report += &reading(programs, "1 GB", &[&*log; 10], if options.quick { 1 } else { 3 })?;
    }
    report += &cold_start(programs, folder, if options.quick { 50 } else { 400 })?;
    report += &ladder()?;
    Ok(report)
}

/// Runs commands one after another and tells how long they took and the most memory one held; a chore of its own because it
/// must have no other children.
pub fn peak_memory(mut args: lexopt::Parser) -> Result<(), Fault> {
    let words: Vec<_> = args.raw_args()?.collect();
    let mut exit = 0;
    let start = Instant::now();
    for command in words.split(|word| word == Measured::THEN) {
        let (program, rest) = command.split_first().ok_or("which program?")?;
        exit = Command::new(program).args(rest).status()?.code().unwrap_or(-1);
        if exit != 0 {
            break;
        }
    }
    let took = start.elapsed();
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss() as u64;
    // Linux counts kilobytes, Apple's systems bytes.
    let peak = if cfg!(target_vendor = "apple") { peak / 1024 } else { peak };
    eprintln!("{}", Measured { took, peak, exit });
    Ok(())
}

impl Programs {
    /// All in the profile that people get.
    fn build() -> Result<Programs, Fault> {
        let example = |name: &str| -> Result<PathBuf, Fault> {
            let built = project::build(&["--release", "--package", "xtask", "--example", name])?;
            built.into_iter().next().ok_or_else(|| format!("cargo built no {name}").into())
        };
        Ok(Programs {
            unstuck: project::unstuck()?,
            empty: example("empty")?,
            count_lines: example("count_lines")?,
            scan_events: example("scan_events")?,
        })
    }
}

fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let model = model.unwrap_or(std::env::consts::ARCH);
    format!("One run on one machine: {model}, {cores} cores, {} at the beginning.\n", load())
}

/// How busy the machine is, with others too.
fn load() -> String {
    let told = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    match told.split_once(' ') {
        Some((load, _)) => format!("load {load}"),
        None => "load unknown".to_owned(),
    }
}

/// Diagnosing a build log from a pipe, beside programs that read the same pipe.
fn reading(programs: &Programs, size: &str, files: &[&Path], rounds: usize) -> Result<String, Fault> {
    let all = [
        Contestant::new("unstuck diagnose", &programs.unstuck, &["diagnose", "--exit-code", "1"]),
        Contestant::new("newline count (memchr)", &programs.count_lines, &[]),
        Contestant::new("wc -l", "wc", &["-l"]),
        Contestant::new("grep -ci error", "grep", &["-ci", "error"]),
    ];
    let times = take_turns(&all, rounds, |contestant| contestant.behind_pipe(files).map(|(took, _)| took))?;
    let mut table = format!(
        "\n### A build log of {size} from a pipe\n\n| program | median | × of the newline count | unstuck is × of it | peak memory |\n\
         |---|---|---|---|---|\n"
    );
    for (contestant, mine) in all.iter().zip(&times) {
        let median = quantile(mine, 0.5).as_secs_f64() * 1000.0;
        let peak = contestant.peak_memory(files)? as f64 / 1024.0;
        let (of_count, of_it) = (Ratio::of(mine, &times[1]), Ratio::of(&times[0], mine));
        writeln!(table, "| {} | {median:.0} ms | {of_count} | {of_it} | {peak:.1} MB |", contestant.name)?;
    }
    let (_, answer) = all[0].behind_pipe(files)?;
    let quotes = if answer.contains(log::ROOT_CAUSE) { "quotes" } else { "does NOT quote" };
    writeln!(
        table,
        "\n{rounds} rounds; median (middle eight tenths). The answer {quotes} the one error in the middle of the log."
    )?;
    Ok(table)
}

/// A cold process on a small failure, beside a program that does nothing.
fn cold_start(programs: &Programs, folder: &Path, rounds: usize) -> Result<String, Fault> {
    let input = folder.join("failure.txt");
    let progress = "remote: Compressing objects: 100% (211/211), done.\n".repeat(38);
    fs::write(&input, progress + SMALL_FAILURE)?;
    let all = [
        Contestant::new("unstuck diagnose", &programs.unstuck, &["diagnose", "--exit-code", "1"]),
        Contestant::new("empty Rust binary", &programs.empty, &[]),
        Contestant::new("true", "true", &[]),
    ];
    let times = take_turns(&all, rounds, |contestant| contestant.on_file(&input))?;
    let mut table = String::from(
        "\n### A cold process on a failure of 2 KB\n\n| program | median | p95 | × of the empty binary |\n|---|---|---|---|\n",
    );
    for (contestant, mine) in all.iter().zip(&times) {
        let ms = |part: f64| quantile(mine, part).as_secs_f64() * 1000.0;
        let ratio = Ratio::of(mine, &times[1]);
        writeln!(table, "| {} | {:.2} ms | {:.2} ms | {ratio} |", contestant.name, ms(0.5), ms(0.95))?;
    }
    writeln!(table, "\n{rounds} rounds in turn; median (middle eight tenths).")?;
    Ok(table)
}

/// One step of the ladder: the example `bench_ladder` of the judge knows how, and prints a line of its own words.
fn ladder() -> Result<String, Fault> {
    const EXAMPLE: &str = "bench_ladder";
    let title = "\n### One step of the ladder with 10,000 keys\n\n";
    if !project::root().join(format!("crates/judge/examples/{EXAMPLE}.rs")).exists() {
        return Ok(format!("{title}Not measured: there is no example `{EXAMPLE}` yet.\n"));
    }
    let built = project::build(&["--release", "--package", "unstuck-judge", "--example", EXAMPLE])?;
    let program = built.first().ok_or("cargo built no ladder benchmark")?;
    let output = Command::new(program).arg("10000").output()?;
    match output.status.success() {
        true => Ok(format!("{title}{}", String::from_utf8_lossy(&output.stdout))),
        false => Err(format!("{EXAMPLE}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// What was measured, and where it stands on the page.
pub struct Section {
    /// The words in its marks.
    pub mark: &'static str,
    /// What stands between them.
    pub report: String,
}

/// Puts each report between the two marks of its section.
pub fn write_page(sections: &[Section]) -> Result<(), Fault> {
    let path = project::root().join(PAGE);
    let mut page = fs::read_to_string(&path)?;
    for Section { mark, report } in sections {
        let (begin, end) =
            (format!("<!-- measured, {mark}: begin -->"), format!("<!-- measured, {mark}: end -->"));
        let marked = page.split_once(&begin).and_then(|(head, rest)| Some((head, rest.split_once(&end)?.1)));
        let (head, tail) = marked.ok_or_else(|| format!("{PAGE} has lost its marks {begin} and {end}"))?;
        page = format!("{head}{begin}\n{report}{end}{tail}");
    }
    Ok(fs::write(path, page)?)
}
