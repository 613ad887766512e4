//! What it costs to run a command through `unstuck run`: a start that does nothing, a gigabyte that passes, and the memory that
//! is held meanwhile. The hands alone (the example `through`) stand beside it, to tell what the judging adds.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::contest::{Measured, Ratio, quantile, take_turns};
use super::store::ms;
use super::{MEGABYTE, Options, Section, load, log, machine, write_page};
use crate::world::World;
use crate::{Fault, project};

/// At most so many empty processes on top of the command.
const AIM_START: f64 = 3.0;
/// At least this part of the speed of `cat | cat`.
const AIM_SPEED: f64 = 0.8;
/// At most so many megabytes, however much passes.
const AIM_MEMORY: f64 = 32.0;

/// The command that is measured.
const VERB: &str = "run";

/// Who runs the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Nobody in between; for what passes, a second `cat`.
    Nobody,
    Unstuck,
    /// The hands without judge and store.
    Hands,
    Timeout,
    Bash,
}

struct Stage {
    world: World,
    hands: PathBuf,
}

/// `cargo xtask bench run`.
pub fn bench(options: &Options) -> Result<(), Fault> {
    let binary = options.binary.clone().map_or_else(project::unstuck, Ok)?;
    let hands = project::build(&["--release", "--package", "unstuck-exec", "--example", "through"])?;
    // Copies, as an installer makes them: what the linker wrote takes longer to start.
    let folder = tempfile::tempdir()?;
    let copied = |from: &Path, name: &str| -> Result<PathBuf, Fault> {
        let to = folder.path().join(name);
        fs::copy(from, &to)?;
        Ok(to)
    };
    let hands = copied(hands.first().ok_or("cargo built no example `through`")?, "through")?;
    let stage = Stage { world: World::new(&copied(&binary, "unstuck")?)?, hands };
    let mut report = machine();
    report += &stage.starting(if options.quick { 30 } else { 300 })?;
    let text = stage.world.aside("build.log");
    log::write(File::create(&text)?, if options.quick { 100 * MEGABYTE } else { 1000 * MEGABYTE })?;
    report += &stage.passing(&text, if options.quick { 3 } else { 9 })?;
    report += &stage.holding(&text, if options.big { 10 } else { 1 })?;
    report += &format!("At the end: {}.\n", load());
    println!("{report}");
    match options.write {
        true => write_page(&[Section { mark: "run", report }]),
        false => Ok(()),
    }
}

impl Stage {
    /// `words`, run by `who`.
    fn command(&self, who: Who, words: &[&str]) -> Command {
        let hands = self.hands.to_string_lossy();
        let bare = |before: &[&str]| {
            let mut all = before.iter().chain(words);
            let mut command = Command::new(all.next().unwrap_or(&""));
            command.args(all);
            self.world.surround(&mut command);
            command
        };
        let mut command = match who {
            Who::Nobody => bare(&[]),
            Who::Unstuck => self.world.command::<&str>(&[], &[&[VERB, "--"], words].concat()),
            Who::Hands => bare(&[&hands]),
            Who::Timeout => bare(&["timeout", "10"]),
            Who::Bash => bare(&["bash", "-c"]),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// A command that does nothing.
    fn starting(&self, rounds: usize) -> Result<String, Fault> {
        let all = [Who::Nobody, Who::Timeout, Who::Bash, Who::Hands, Who::Unstuck];
        let times = take_turns(&all, rounds, |who| until_ended(self.command(*who, &["true"])))?;
        let mut table = String::from(
            "\n### A command that does nothing\n\n| command | p50 | p95 | × of `true` |\n|---|---|---|---|\n",
        );
        for (who, mine) in all.iter().zip(&times) {
            let name = match who {
                Who::Nobody => "`true`".to_owned(),
                Who::Timeout => "`timeout 10 true`".to_owned(),
                Who::Bash => "`bash -c true`".to_owned(),
                Who::Hands => "the hands alone".to_owned(),
                Who::Unstuck => format!("`unstuck {VERB} -- true`"),
            };
            let ratio = Ratio::of(mine, &times[0]);
            writeln!(table, "| {name} | {} | {} | {ratio} |", ms(mine, 0.5), ms(mine, 0.95))?;
        }
        let added = Ratio::of(&times[4], &times[0]).median - 1.0;
        writeln!(
            table,
            "\n{rounds} rounds in turn; a ratio is the median (middle eight tenths). Aim: at most {AIM_START} empty processes on \
             top of the command. Measured: {added:.1} ({}).",
            met(added <= AIM_START)
        )?;
        Ok(table)
    }

    /// A build log that passes.
    fn passing(&self, text: &Path, rounds: usize) -> Result<String, Fault> {
        let path = text.to_string_lossy();
        let all = [Who::Nobody, Who::Hands, Who::Unstuck];
        let times = take_turns(&all, rounds, |who| match who {
            Who::Nobody => two_cats(&path),
            Who::Unstuck | Who::Hands | Who::Timeout | Who::Bash => {
                until_ended(self.command(*who, &["cat", &path]))
            }
        })?;
        let bytes = fs::metadata(text)?.len();
        let mut table = format!(
            "\n### A build log of {} MB that passes\n\n| command | median | speed | speed, × of `cat \\| cat` |\n|---|---|---|---|\n",
            bytes / MEGABYTE
        );
        for (who, mine) in all.iter().zip(&times) {
            let name = match who {
                Who::Hands => "the hands alone".to_owned(),
                Who::Unstuck => format!("`unstuck {VERB} -- cat FILE`"),
                Who::Nobody | Who::Timeout | Who::Bash => "`cat FILE \\| cat`".to_owned(),
            };
            let median = quantile(mine, 0.5).as_secs_f64();
            let (speed, ratio) = (bytes as f64 / median / 1e9, Ratio::of(&times[0], mine));
            writeln!(table, "| {name} | {:.0} ms | {speed:.2} GB/s | {ratio} |", median * 1000.0)?;
        }
        let [hands, unstuck] = [1, 2].map(|at: usize| Ratio::of(&times[0], &times[at]).median);
        writeln!(
            table,
            "\n{rounds} rounds in turn. Aim: at least {AIM_SPEED} of the speed of `cat | cat`. Measured: {unstuck:.2} ({}); the \
             hands alone {hands:.2} ({}).",
            met(unstuck >= AIM_SPEED),
            met(hands >= AIM_SPEED)
        )?;
        Ok(table)
    }

    /// The most memory that is held while `times` of it pass.
    fn holding(&self, text: &Path, times: usize) -> Result<String, Fault> {
        let path = text.to_string_lossy();
        let words = [&["cat"][..], &vec![&*path; times][..]].concat();
        let mut told = Vec::new();
        for who in [Who::Hands, Who::Unstuck] {
            // A process of its own for each measurement, because the system only knows the peak over all children.
            let measured = self.command(who, &words);
            let mut chore = Command::new(std::env::current_exe()?);
            chore.arg("peak-memory").arg(measured.get_program()).args(measured.get_args());
            self.world.surround(&mut chore);
            let output = chore.stdin(Stdio::null()).stdout(Stdio::null()).output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            let measured = Measured::read(&said).ok_or_else(|| format!("no peak was told: {said}"))?;
            told.push(measured.peak as f64 / 1024.0);
        }
        let passed = fs::metadata(text)?.len() * times as u64 / MEGABYTE;
        Ok(format!(
            "\n### Memory while {passed} MB pass\n\n`unstuck {VERB}`: {:.1} MB at most; the hands alone: {:.1} MB. Aim: at most \
             {AIM_MEMORY} MB ({}).\n\n",
            told[1],
            told[0],
            met(told[1] <= AIM_MEMORY)
        ))
    }
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

/// Runs it to its end, which must be a good one.
fn until_ended(mut command: Command) -> Result<Duration, Fault> {
    let start = Instant::now();
    let status = command.status()?;
    let took = start.elapsed();
    match status.success() {
        true => Ok(took),
        false => Err(format!("{command:?} failed: {status}").into()),
    }
}

fn two_cats(path: &str) -> Result<Duration, Fault> {
    let start = Instant::now();
    let mut first = Command::new("cat").arg(path).stdout(Stdio::piped()).spawn()?;
    let pipe = first.stdout.take().ok_or("cat has no output")?;
    let mut second = Command::new("cat");
    second.stdin(pipe).stdout(Stdio::null()).status()?;
    drop(second);
    first.wait()?;
    Ok(start.elapsed())
}
