//! What one hook process costs, alone, in a crowd and on a large store; and what looking things up in a large store costs.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use super::contest::{Ratio, quantile, take_turns};
use super::{Programs, filled};
use crate::world::{Call, World, lines};
use crate::{Fault, project};

/// How many processes run at once in the crowd.
const CROWD: usize = 8;

/// Something that reads a payload.
enum Reader<'a> {
    /// `unstuck hook generic` on this world, before a call.
    Before(&'a World),
    /// The same after a call.
    After(&'a World),
    /// Another program with its arguments.
    Other(&'a Path, &'a [&'a str], &'a World),
}

/// A row of a table.
struct Row<'a> {
    name: &'a str,
    reader: Reader<'a>,
}

/// Writes a payload of its own for every run: one that says nothing new would cost nothing.
struct Bench<'a> {
    folder: &'a Path,
    number: u64,
    measure: Measure,
}

/// What is measured of a run.
#[derive(Debug, Clone, Copy)]
enum Measure {
    /// The time until it has ended.
    Wall,
    /// The processor time that it used.
    Processor,
}

/// All tables about the store.
pub fn tables(programs: &Programs, folder: &Path, quick: bool) -> Result<String, Fault> {
    let small = World::new(&programs.unstuck)?;
    let large = filled::world(&programs.unstuck)?;
    let mut report = one_process(programs, &small, folder, if quick { 40 } else { 300 })?;
    report += &on_a_large_store(&small, &large, folder, if quick { 60 } else { 400 })?;
    report += &in_a_crowd(programs, &small, if quick { 30 } else { 150 })?;
    report += &looking_up(programs, &large, if quick { 3 } else { 9 })?;
    Ok(report)
}

impl Bench<'_> {
    fn run(&mut self, reader: &Reader<'_>) -> Result<Duration, Fault> {
        self.number += 1;
        let call = Call::named(filled::SESSION, format!("b{}-{}", std::process::id(), self.number));
        let (mut command, payload) = match reader {
            Reader::Before(world) => (world.hook::<&str>(&[]), call.before()),
            Reader::After(world) => {
                world.send(&[call.before()])?; // Not counted.
                (world.hook::<&str>(&[]), call.after(2))
            }
            Reader::Other(program, args, world) => {
                let mut command = Command::new(program);
                command.args(*args).env("XDG_STATE_HOME", world.state());
                (command, call.after(2))
            }
        };
        let input = self.folder.join("payload.json");
        fs::write(&input, lines(&[payload]))?;
        command.stdin(File::open(&input)?).stdout(Stdio::null()).stderr(Stdio::null());
        let used = processor_time()?;
        let start = Instant::now();
        command.status()?;
        let took = start.elapsed();
        Ok(match self.measure {
            Measure::Wall => took,
            Measure::Processor => processor_time()?.saturating_sub(used),
        })
    }
}

/// What all children used so far.
fn processor_time() -> Result<Duration, Fault> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64;
    Ok(Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time())))
}

fn one_process(programs: &Programs, world: &World, folder: &Path, rounds: usize) -> Result<String, Fault> {
    let tracker = project::root().join("xtask/tracker.sh");
    let (node, bash) = (PathBuf::from("node"), PathBuf::from("bash"));
    let tracker_args = [&*tracker.to_string_lossy()];
    let near = [
        Row { name: "unstuck hook, before a call", reader: Reader::Before(world) },
        Row { name: "unstuck hook, after a failed call", reader: Reader::After(world) },
        Row { name: "empty Rust binary", reader: Reader::Other(&programs.empty, &[], world) },
    ];
    let mut far = vec![Row { name: "unstuck hook, after a failed call", reader: Reader::After(world) }];
    let mut missing = Vec::new();
    match runs("node", &["-e", "0"]) {
        true => far.push(Row { name: "node -e 0", reader: Reader::Other(&node, &["-e", "0"], world) }),
        false => missing.push("node"),
    }
    match runs("jq", &["--version"]) && runs("flock", &["--version"]) {
        true => far.push(Row {
            name: "the same in bash and jq",
            reader: Reader::Other(&bash, &tracker_args, world),
        }),
        false => missing.push("jq or flock"),
    }
    let mut bench = Bench { folder, number: 0, measure: Measure::Wall };
    let near_times = take_turns(&near, rounds, |row| bench.run(&row.reader))?;
    // Apart from the others: a program of fifty milliseconds leaves the processor's caches to none of them.
    let far_times = take_turns(&far, rounds.div_ceil(4), |row| bench.run(&row.reader))?;
    let mut table = String::from(
        "\n### One hook process: read a payload, load the standing, step, append, commit\n\n\
         | program | median | p95 | × of the empty binary | × of the hook after a call |\n|---|---|---|---|---|\n",
    );
    for (row, mine) in near.iter().zip(&near_times) {
        let (of_empty, of_hook) = (Ratio::of(mine, &near_times[2]), Ratio::of(mine, &near_times[1]));
        writeln!(
            table,
            "| {} | {} | {} | {of_empty} | {of_hook} |",
            row.name,
            ms(mine, 0.5),
            ms(mine, 0.95)
        )?;
    }
    for (row, mine) in far.iter().zip(&far_times).skip(1) {
        let of_hook = Ratio::of(mine, &far_times[0]);
        writeln!(table, "| {} | {} | {} | | {of_hook} |", row.name, ms(mine, 0.5), ms(mine, 0.95))?;
    }
    writeln!(table, "\n{rounds} rounds in turn; median (middle eight tenths).{}", without(&missing))?;
    Ok(table)
}

fn on_a_large_store(small: &World, large: &World, folder: &Path, rounds: usize) -> Result<String, Fault> {
    let rows = [
        Row { name: "before a call", reader: Reader::Before(small) },
        Row { name: "before a call", reader: Reader::Before(large) },
        Row { name: "after a failed call", reader: Reader::After(small) },
        Row { name: "after a failed call", reader: Reader::After(large) },
    ];
    let mut bench = Bench { folder, number: 1_000_000, measure: Measure::Processor };
    let times = take_turns(&rows, rounds, |row| bench.run(&row.reader))?;
    let mut table = format!(
        "\n### The same with {} events in the store, by processor time\n\n\
         | hook | in a small store | in the large one | × of the small one, all runs together |\n|---|---|---|---|\n",
        thousands(filled::EVENTS)
    );
    for pair in 0..2 {
        let (small, large) = (&times[pair * 2], &times[pair * 2 + 1]);
        // The log is folded in by every so many-th process, in each store at other times: only sums can be compared.
        let sum = |times: &[Duration]| times.iter().sum::<Duration>().as_secs_f64();
        let ratio = sum(large) / sum(small);
        writeln!(
            table,
            "| {} | {} | {} | {ratio:.2} |",
            rows[pair * 2].name,
            ms(small, 0.5),
            ms(large, 0.5)
        )?;
    }
    writeln!(table, "\n{rounds} rounds in turn.")?;
    Ok(table)
}

fn in_a_crowd(programs: &Programs, world: &World, rounds: usize) -> Result<String, Fault> {
    let hooks = crowd(rounds, |writer, number| {
        let call =
            Call::named(&format!("crowd-{writer}"), format!("x{}-{writer}-{number}", std::process::id()));
        let start = Instant::now();
        let told = world.send(&[call.before()])?.told()?;
        let took = start.elapsed();
        match told.iter().all(|told| told.is_acknowledged()) && told.len() == 1 {
            true => Ok(took),
            false => Err(format!("in the crowd an entry was {told:?}").into()),
        }
    })?;
    let empty = crowd(rounds, |_, _| {
        let mut command = Command::new(&programs.empty);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = Instant::now();
        command.output()?;
        Ok(start.elapsed())
    })?;
    let mut table =
        format!("\n### {CROWD} hook processes at once\n\n| program | p50 | p99 |\n|---|---|---|\n");
    writeln!(table, "| unstuck hook, before a call | {} | {} |", ms(&hooks, 0.5), ms(&hooks, 0.99))?;
    writeln!(table, "| empty Rust binary | {} | {} |", ms(&empty, 0.5), ms(&empty, 0.99))?;
    let ratio = |part| quantile(&hooks, part).as_secs_f64() / quantile(&empty, part).as_secs_f64();
    writeln!(table, "| × | {:.2} | {:.2} |", ratio(0.5), ratio(0.99))?;
    writeln!(table, "\n{CROWD} writers × {rounds} processes, all acknowledged.")?;
    Ok(table)
}

fn crowd(
    rounds: usize,
    run: impl Fn(usize, usize) -> Result<Duration, Fault> + Sync,
) -> Result<Vec<Duration>, Fault> {
    thread::scope(|scope| {
        let run = &run;
        let all: Vec<_> = (0..CROWD)
            .map(|writer| {
                scope.spawn(move || {
                    (0..rounds).map(|number| run(writer, number)).collect::<Result<Vec<_>, _>>()
                })
            })
            .collect();
        let mut times = Vec::new();
        for one in all {
            times.extend(one.join().map_err(|_| "one of the crowd panicked")??);
        }
        Ok(times)
    })
}

fn looking_up(programs: &Programs, world: &World, rounds: usize) -> Result<String, Fault> {
    let timeline = world.store().join("timeline.db");
    let near_the_end = (filled::EVENTS - 100).to_string();
    let middle = (filled::EVENTS / 2).to_string();
    let asked: [(&str, Vec<&str>); 6] = [
        ("plain scan of the table", Vec::new()),
        ("log --since, the last few", vec!["log", "--json", "--since", &near_the_end]),
        ("log --since, the second half", vec!["log", "--json", "--since", &middle]),
        ("log, the last 50", vec!["log"]),
        ("stats", vec!["stats"]),
        ("stats --by tool", vec!["stats", "--by", "tool"]),
    ];
    let times = take_turns(&asked, rounds, |(name, args)| {
        let mut command = match args.is_empty() {
            true => Command::new(&programs.scan_events),
            false => world.command::<&str>(&[], args),
        };
        if args.is_empty() {
            command.arg(&timeline);
        }
        let start = Instant::now();
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        match status.success() {
            true => Ok(start.elapsed()),
            false => Err(format!("{name} failed on the large store").into()),
        }
    })?;
    let mut table = format!(
        "\n### Looking things up among {} events\n\n| question | median | × of the plain scan |\n|---|---|---|\n",
        thousands(filled::EVENTS)
    );
    for ((name, _), mine) in asked.iter().zip(&times) {
        writeln!(table, "| {name} | {} | {} |", ms(mine, 0.5), Ratio::of(mine, &times[0]))?;
    }
    writeln!(
        table,
        "\n{rounds} rounds in turn. The plain scan is `SELECT count(*), sum(length(body)) FROM event`; the second half prints {} lines.",
        thousands(filled::EVENTS / 2)
    )?;
    Ok(table)
}

fn runs(program: &str, args: &[&str]) -> bool {
    let status = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn without(missing: &[&str]) -> String {
    match missing.is_empty() {
        true => String::new(),
        false => format!(" Not measured, because it is not on this machine: {}.", missing.join(", ")),
    }
}

fn ms(times: &[Duration], part: f64) -> String {
    format!("{:.2} ms", quantile(times, part).as_secs_f64() * 1000.0)
}

fn thousands(number: u32) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([7, 1_000, 1_234_567].map(thousands), ["7", "1,000", "1,234,567"]);
    }
}
