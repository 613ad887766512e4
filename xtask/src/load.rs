//! Proof under load: many writers at once, some of them killed, while readers follow. Nothing may be lost, counted wrongly,
//! shown twice or shown out of order.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lexopt::prelude::*;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::ledger::{Found, Ledger};
use crate::world::{Call, Told, World, lines, speak};
use crate::{Fault, project};

/// How long a follower may take to show what has been written.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much of it.
#[derive(Debug, Clone, Copy)]
struct Size {
    writers: usize,
    /// Hook processes per writer: half of them before a call, half after it.
    processes: usize,
    seed: u64,
}

const SHORT: Size = Size { writers: 16, processes: 20, seed: 1 };
const FULL: Size = Size { writers: 32, processes: 1000, seed: 1 };

/// `cargo xtask load`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut size = SHORT;
    let mut binary = None;
    while let Some(arg) = args.next()? {
        match arg {
            Long("full") => size = Size { seed: size.seed, ..FULL },
            Long("binary") => binary = Some(PathBuf::from(args.value()?)),
            Long("seed") => size.seed = args.value()?.parse()?,
            other => return Err(other.unexpected().into()),
        }
    }
    let unstuck = binary.map_or_else(project::unstuck, Ok)?;
    println!("{}", all(&unstuck, size)?);
    Ok(())
}

/// The short form, for `cargo xtask check`.
pub fn check() -> Result<String, Fault> {
    all(&project::unstuck()?, SHORT)
}

fn all(unstuck: &Path, size: Size) -> Result<String, Fault> {
    let start = Instant::now();
    let events = writers_and_readers(unstuck, size)?;
    println!(
        "{} writers × {} processes: {events} events, none lost, none twice, counts exact, no gap; {:.1} s",
        size.writers,
        size.processes,
        start.elapsed().as_secs_f64()
    );
    let start = Instant::now();
    let (sent, kept) = killed_writers(unstuck, size)?;
    println!(
        "the same with a third of the processes killed: {kept} of {sent} entries acknowledged, all of them there; {:.1} s",
        start.elapsed().as_secs_f64()
    );
    parallel_failures_all_count(unstuck)?;
    println!("10 failures of one call at once count as 10");
    turns_are_seen(unstuck)?;
    println!("a run of A, B, A, B is seen");
    Ok(format!("{} writers × {} processes, {events} events", size.writers, size.processes))
}

/// Many writers, none disturbed, with two kinds of readers at their heels. Returns the number of events.
fn writers_and_readers(unstuck: &Path, size: Size) -> Result<u64, Fault> {
    let world = World::new(unstuck)?;
    // Readers need something to open.
    let first = Call::named("first", "first".to_owned());
    let told = world.send(&[first.before(), first.after(0)])?.told()?;
    let mut ledger = Ledger::default();
    ledger.note(&first.mark, &told);
    let follower = Follower::start(&world)?;
    let done = AtomicBool::new(false);
    let (written, visited) = thread::scope(|scope| {
        let visitor = scope.spawn(|| visit(&world, &done));
        let written = write_all(&world, size, None);
        done.store(true, Ordering::Relaxed);
        (written, visitor.join())
    });
    ledger.join(written?);
    let entries = (size.writers * size.processes + 2) as u64;
    if ledger.acknowledged() != entries {
        return Err(format!("{} of {entries} entries were acknowledged", ledger.acknowledged()).into());
    }
    take_in(&world, &mut ledger)?;
    let found = Found::in_copy_of(&world.store())?;
    ledger.compare(&found)?;
    if found.events != found.last_seq {
        return Err(format!("{} events, and the last is number {}", found.events, found.last_seq).into());
    }
    counts(&world, size)?;
    let mut visited = visited.map_err(|_| "the visitor panicked")??;
    visited.extend(since(&world, visited.last().copied().unwrap_or(0))?);
    in_order("log --since, again and again", &visited, found.last_seq)?;
    in_order("log --follow", &follower.until(found.last_seq)?, found.last_seq)?;
    Ok(found.events)
}

/// The same while a third of the processes are killed at some moment of their short lives. Returns how many entries were
/// sent and how many acknowledged.
fn killed_writers(unstuck: &Path, size: Size) -> Result<(u64, u64), Fault> {
    let world = World::new(unstuck)?;
    let mut ledger = write_all(&world, size, Some(size.seed))?;
    let kept = ledger.acknowledged();
    take_in(&world, &mut ledger)?;
    let found = Found::in_copy_of(&world.store())?;
    ledger.compare(&found)?;
    Ok(((size.writers * size.processes) as u64, kept))
}

/// What still waits in the spool is taken in by whoever comes next, a little by each.
fn take_in(world: &World, ledger: &mut Ledger) -> Result<(), Fault> {
    let reply = world.run(&["heartbeat"])?;
    if !reply.status.success() {
        return Err(format!("unstuck heartbeat: {reply:?}").into());
    }
    let last = Call::named("last", "last".to_owned());
    let told = world.send(&[last.before(), last.after(0)])?.told()?;
    if told != [Told::Recorded; 2] {
        return Err(format!("after the rush all is quiet, and an entry is {told:?}").into());
    }
    ledger.note(&last.mark, &told);
    Ok(())
}

fn write_all(world: &World, size: Size, kill: Option<u64>) -> Result<Ledger, Fault> {
    thread::scope(|scope| {
        let writers: Vec<_> = (0..size.writers)
            .map(|writer| {
                let dice = kill.map(|seed| Dice(seed.wrapping_add(writer as u64 * 7919)));
                scope.spawn(move || write(world, writer, size.processes / 2, dice))
            })
            .collect();
        let mut ledger = Ledger::default();
        for writer in writers {
            ledger.join(writer.join().map_err(|_| "a writer panicked")??);
        }
        Ok(ledger)
    })
}

/// One agent: a process before each call, and one after it. Every third call fails.
fn write(world: &World, writer: usize, calls: usize, mut dice: Option<Dice>) -> Result<Ledger, Fault> {
    let mut ledger = Ledger::default();
    for number in 0..calls {
        let call = Call::named(&format!("writer-{writer}"), format!("w{writer}-{number}"));
        let mut told = Vec::new();
        for payload in [call.before(), call.after(if number % 3 == 0 { 2 } else { 0 })] {
            let life = dice
                .as_mut()
                .and_then(|dice| (dice.below(3) == 0).then(|| Duration::from_micros(dice.below(6000))));
            let reply = speak(world.hook::<&str>(&[]), &lines(&[payload]), life)?;
            // A killed process may have answered before; whoever read that answer believes it.
            let answer = reply.answers()?.first().map(Told::of).unwrap_or_default();
            if life.is_none()
                && (!reply.status.success() || !reply.stderr.is_empty() || !answer.is_acknowledged())
            {
                return Err(format!("{}: {reply:?}", call.mark).into());
            }
            told.push(answer);
        }
        ledger.note(&call.mark, &told);
    }
    Ok(ledger)
}

/// What `stats` counts for each session must be what was sent.
fn counts(world: &World, size: Size) -> Result<(), Fault> {
    let reply = world.run(&["export", "--jsonl", "--only", "calls"])?;
    let mut counted: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for call in reply.answers()?.iter().filter(|row| row["type"] == "call") {
        let session = call["session"].as_str().unwrap_or_default().to_owned();
        let (calls, failed) = counted.entry(session).or_default();
        *calls += 1;
        *failed += usize::from(call["state"] == "failed");
    }
    let calls = size.processes / 2;
    for writer in 0..size.writers {
        let session = format!("writer-{writer}");
        let found = counted.get(&session).copied().unwrap_or_default();
        if found != (calls, calls.div_ceil(3)) {
            return Err(
                format!("{session}: {calls} calls were sent, {found:?} (all, failed) are exported").into()
            );
        }
    }
    Ok(())
}

/// Comes back again and again with the last bookmark it has seen.
fn visit(world: &World, done: &AtomicBool) -> Result<Vec<u64>, Fault> {
    let mut seen = Vec::new();
    while !done.load(Ordering::Relaxed) {
        seen.extend(since(world, seen.last().copied().unwrap_or(0))?);
        thread::sleep(Duration::from_millis(20));
    }
    Ok(seen)
}

fn since(world: &World, bookmark: u64) -> Result<Vec<u64>, Fault> {
    let reply = world.run(&["log", "--json", "--since", &bookmark.to_string()])?;
    if !reply.status.success() {
        return Err(format!("unstuck log: {reply:?}").into());
    }
    Ok(reply.answers()?.iter().filter_map(|event| event["seq"].as_u64()).collect())
}

/// `unstuck log --follow`, read as it prints.
struct Follower {
    child: Child,
    reader: thread::JoinHandle<Vec<u64>>,
    last: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl Follower {
    fn start(world: &World) -> Result<Follower, Fault> {
        let mut command = world.command::<&str>(&[], &["log", "--follow", "--json", "--since", "0"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let last = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let told = last.clone();
        let reader = thread::spawn(move || {
            let mut seen = Vec::new();
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let event: Value = serde_json::from_str(&line).unwrap_or_default();
                let seq = event["seq"].as_u64().unwrap_or(0);
                seen.push(seq);
                told.store(seq, Ordering::Relaxed);
            }
            seen
        });
        Ok(Follower { child, reader, last })
    }

    /// Waits until it has shown this event, ends it, and returns all that it has shown.
    fn until(mut self, last: u64) -> Result<Vec<u64>, Fault> {
        let start = Instant::now();
        while self.last.load(Ordering::Relaxed) < last && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(20));
        }
        self.child.kill()?;
        self.child.wait()?;
        self.reader.join().map_err(|_| "the follower's reader panicked".into())
    }
}

fn in_order(reader: &str, seen: &[u64], last: u64) -> Result<(), Fault> {
    match seen.iter().copied().eq(1..=last) {
        true => Ok(()),
        false => {
            let wrong = seen.iter().zip(1..).find(|(seq, place)| *seq != place);
            Err(format!("{reader} saw {} events of {last}; the first that is wrong: {wrong:?}", seen.len())
                .into())
        }
    }
}

/// One call, failing ten times at the same moment under ten ids.
fn parallel_failures_all_count(unstuck: &Path) -> Result<(), Fault> {
    let world = World::new(unstuck)?;
    thread::scope(|scope| {
        let all: Vec<_> = (0..10)
            .map(|number| {
                let world = &world;
                scope.spawn(move || world.send(&[failing("rush", &format!("c{number}"), "npm ci")])?.told())
            })
            .collect();
        for one in all {
            let told = one.join().map_err(|_| "a sender panicked")??;
            if !told.iter().all(|told| told.is_acknowledged()) || told.len() != 1 {
                return Err(format!("{told:?}").into());
            }
        }
        Ok::<(), Fault>(())
    })?;
    let reply = world.run(&["problems", "--json"])?;
    let counts: Vec<Option<u64>> = reply.answers()?.iter().map(|problem| problem["count"].as_u64()).collect();
    if counts != [Some(10)] {
        return Err(format!("10 failures of one call at once are counted as {counts:?}").into());
    }
    let attempts = attempts(&world)?;
    match attempts.iter().copied().eq(1..=10) {
        true => Ok(()),
        false => Err(format!("10 failures of one call are its attempts {attempts:?}").into()),
    }
}

fn attempts(world: &World) -> Result<Vec<u64>, Fault> {
    let rows = world.run(&["export", "--jsonl", "--only", "calls"])?.answers()?;
    let mut attempts: Vec<u64> =
        rows.iter().filter(|row| row["type"] == "call").filter_map(|call| call["attempt"].as_u64()).collect();
    attempts.sort_unstable();
    Ok(attempts)
}

/// Two calls that fail in turn, each in a process of its own: whoever keeps one slot per session never sees it.
fn turns_are_seen(unstuck: &Path) -> Result<(), Fault> {
    let world = World::new(unstuck)?;
    let mut rungs = Vec::new();
    for turn in 0..6 {
        let command = if turn % 2 == 0 { "npm ci" } else { "npm run build" };
        let reply = world.send(&[failing("turns", &format!("c{turn}"), command)])?;
        let answers = reply.answers()?;
        rungs.push(answers.first().and_then(|answer| answer["rung"].as_str()).unwrap_or_default().to_owned());
    }
    match rungs[4..].iter().any(|rung| ["hint", "insist"].contains(&&**rung)) {
        true => Ok(()),
        false => Err(format!("A, B, A, B, A, B was answered with {rungs:?}").into()),
    }
}

fn failing(session: &str, id: &str, command: &str) -> Value {
    json!({
        "event": "after", "session": session, "call_id": id, "tool": "Bash", "input": {"command": command},
        "exit_code": 1, "stderr": format!("npm error code ENOENT in {command}"), "duration_ms": 900,
    })
}
