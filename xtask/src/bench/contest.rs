//! Contestants that run in turn, so that whatever else the machine does hits all of them alike.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Fault;
use crate::dice::Dice;

/// A program that is measured, and what it reads.
pub struct Contestant {
    /// What the table calls it.
    pub name: &'static str,
    /// The program and its arguments.
    pub words: Vec<PathBuf>,
}

impl Contestant {
    /// A contestant by its program and arguments.
    pub fn new(name: &'static str, program: impl Into<PathBuf>, args: &[&str]) -> Contestant {
        Contestant {
            name,
            words: [program.into()].into_iter().chain(args.iter().map(PathBuf::from)).collect(),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }

    /// Runs it at the end of `cat files |`; returns the time until both have ended, and its answer.
    ///
    /// The answer is read through a pipe: grep does not even look at its input when nobody wants to know.
    pub fn behind_pipe(&self, files: &[&Path]) -> Result<(Duration, String), Fault> {
        through_pipe(self.command(), files, Stdio::null()).map(|(took, answer, _)| (took, answer))
    }

    /// Runs it on a file as its standard input; returns the time until it has ended.
    pub fn on_file(&self, input: &Path) -> Result<Duration, Fault> {
        let input = File::open(input)?;
        let start = Instant::now();
        self.command().stdin(input).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        Ok(start.elapsed())
    }

    /// The most memory it held at once behind the same pipe, in kilobytes.
    pub fn peak_memory(&self, files: &[&Path]) -> Result<u64, Fault> {
        // A process of its own for each measurement, because the system only knows the peak over all children.
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("peak-memory").args(&self.words);
        let (_, _, said) = through_pipe(command, files, Stdio::piped())?;
        Ok(Measured::read(&said).ok_or("no peak was told")?.peak)
    }
}

/// What the measuring process tells on standard error.
pub struct Measured {
    /// From the start of the first command to the end of the last.
    pub took: Duration,
    /// The most memory that one of them held, in kilobytes.
    pub peak: u64,
    /// How the last one ended; a signal is -1.
    pub exit: i32,
}

impl Measured {
    /// The word between two commands.
    pub const THEN: &str = "&&";
    const MARK: &str = "measured:";

    /// Finds it among other lines.
    pub fn read(said: &str) -> Option<Measured> {
        let line = said.lines().find_map(|line| line.strip_prefix(Measured::MARK))?;
        let mut words = line.split_whitespace();
        let took = Duration::from_nanos(words.next()?.parse().ok()?);
        Some(Measured { took, peak: words.next()?.parse().ok()?, exit: words.next()?.parse().ok()? })
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", Measured::MARK, self.took.as_nanos(), self.peak, self.exit)
    }
}

fn through_pipe(
    mut command: Command,
    files: &[&Path],
    stderr: Stdio,
) -> Result<(Duration, String, String), Fault> {
    let start = Instant::now();
    let mut cat = Command::new("cat").args(files).stdout(Stdio::piped()).spawn()?;
    let pipe = cat.stdout.take().ok_or("cat has no output")?;
    let mut child = command.stdin(pipe).stdout(Stdio::piped()).stderr(stderr).spawn()?;
    // The command keeps our end of the pipe open; a reader that ends early must be noticed by cat.
    drop(command);
    let mut answer = String::new();
    if let Some(stdout) = &mut child.stdout {
        stdout.read_to_string(&mut answer)?;
    }
    let mut said = String::new();
    if let Some(stderr) = &mut child.stderr {
        stderr.read_to_string(&mut said)?;
    }
    child.wait()?;
    cat.wait()?;
    Ok((start.elapsed(), answer, said))
}

/// Lets all run `rounds` times in turn, each round in an order of its own, so that nobody always follows the one that leaves
/// the processor's caches cold; returns what was measured of each.
pub fn take_turns<T, S>(
    all: &[T],
    rounds: usize,
    mut run: impl FnMut(&T) -> Result<S, Fault>,
) -> Result<Vec<Vec<S>>, Fault> {
    let mut measured: Vec<Vec<S>> = all.iter().map(|_| Vec::with_capacity(rounds)).collect();
    for contestant in all {
        run(contestant)?; // Warms caches; not counted.
    }
    let mut dice = Dice(11);
    let mut order: Vec<usize> = (0..all.len()).collect();
    for _ in 0..rounds {
        for place in (1..order.len()).rev() {
            order.swap(place, dice.below(place as u64 + 1) as usize);
        }
        for &index in &order {
            measured[index].push(run(&all[index])?);
        }
    }
    Ok(measured)
}

/// How one contestant compares with another, round by round.
pub struct Ratio {
    /// The middle one.
    pub median: f64,
    low: f64,
    high: f64,
}

impl Ratio {
    /// Divides the times of each round; the spread is that of the middle eight tenths.
    pub fn of(times: &[Duration], others: &[Duration]) -> Ratio {
        let mut ratios: Vec<f64> = times
            .iter()
            .zip(others)
            .map(|(time, other)| time.as_secs_f64() / other.as_secs_f64().max(1e-9))
            .collect();
        ratios.sort_by(f64::total_cmp);
        Ratio { median: at(&ratios, 0.5), low: at(&ratios, 0.1), high: at(&ratios, 0.9) }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.2}–{:.2})", self.median, self.low, self.high)
    }
}

/// The time below which this part of all runs lies.
pub fn quantile(times: &[Duration], part: f64) -> Duration {
    let mut seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    seconds.sort_by(f64::total_cmp);
    Duration::from_secs_f64(at(&seconds, part))
}

/// The figure below which this part of all lies.
pub fn at(sorted: &[f64], part: f64) -> f64 {
    let index = (sorted.len().saturating_sub(1) as f64 * part).round() as usize;
    sorted.get(index).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        let times = |numbers: [u64; 3]| numbers.map(Duration::from_millis);
        let ratio = Ratio::of(&times([20, 40, 900]), &times([10, 20, 300]));
        assert_eq!(ratio.to_string(), "2.00 (2.00–3.00)");
    }

    #[test]
    fn everybody_runs_once_in_every_round_and_after_everybody_else() {
        let (rounds, all) = (50, ['a', 'b', 'c']);
        let mut order = Vec::new();
        let measured = take_turns(&all, rounds, |name| {
            order.push(*name);
            Ok(*name)
        });
        assert_eq!(measured.unwrap(), all.map(|name| vec![name; rounds]));
        for round in order.chunks(all.len()) {
            assert!(all.iter().all(|name| round.contains(name)), "{round:?}");
        }
        for one in all {
            for other in all.iter().filter(|other| **other != one) {
                assert!(order.windows(2).any(|pair| pair == [one, *other]), "{other} never follows {one}");
            }
        }
    }
}
