//! What the store costs: many hook processes at once, and looking things up among a million events.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::contest::{Ratio, quantile, take_turns};
use super::{Programs, filled};
use crate::Fault;
use crate::world::{Call, World};

/// How many processes run at once in the crowd.
const CROWD: usize = 8;

/// All tables about the store.
pub fn tables(programs: &Programs, quick: bool) -> Result<String, Fault> {
    let small = World::new(&programs.unstuck)?;
    let large = filled::world(&programs.unstuck)?;
    let mut report = in_a_crowd(programs, &small, if quick { 30 } else { 150 })?;
    report += &looking_up(programs, &large, if quick { 3 } else { 9 })?;
    Ok(report)
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

/// The time below which this part of all runs lies, in words.
pub fn ms(times: &[Duration], part: f64) -> String {
    format!("{:.2} ms", quantile(times, part).as_secs_f64() * 1000.0)
}

/// A number as people write it.
pub fn thousands(number: u32) -> String {
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
