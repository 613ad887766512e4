//! A long run: writers that never stop, processes that are killed, disks that fill up, databases of older formats. What is
//! acknowledged is there at the end of every round, what is purged gives its space back, and memory, file sizes and waiting
//! times are written down and drawn.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lexopt::prelude::*;
use serde_json::json;

use crate::dice::Dice;
use crate::ledger::{Found, Ledger};
use crate::world::{Call, Told, World, lines, speak};
use crate::{Fault, project};

const WRITERS: u64 = 8;
/// A round ends with the proof of what was promised in it.
const ROUND: Duration = Duration::from_secs(300);
/// One process of so many is killed at some moment of its life.
const KILLED: u64 = 10;
/// The state may take so much when all is purged.
const EMPTY: u64 = 4 << 20;
/// A process that follows the log may take so much more at the end than after the first round.
const GROWTH: u64 = 16 << 20;
/// What a small file system holds, where one can be mounted.
const DISK: &str = "256m";

/// What was seen at one moment.
#[derive(Debug, Clone, Copy)]
struct Sample {
    seconds: f64,
    calls: u64,
    bytes: u64,
    /// Memory of a process that follows the log since the beginning of the round.
    follower: u64,
    median_ms: f64,
    slowest_ms: f64,
}

/// `cargo xtask soak`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut length = Duration::from_secs(600);
    let mut out = project::target()?.join("soak");
    let mut binary = None;
    while let Some(arg) = args.next()? {
        match arg {
            Long("hours") => {
                length = Duration::try_from_secs_f64(args.value()?.parse::<f64>()? * 3600.0)?;
            }
            Long("out") => out = PathBuf::from(args.value()?),
            Long("binary") => binary = Some(PathBuf::from(args.value()?)),
            other => return Err(other.unexpected().into()),
        }
    }
    let unstuck = binary.map_or_else(project::unstuck, Ok)?;
    println!("{}", all(&unstuck, length, &out)?);
    Ok(())
}

/// The short form, for `cargo xtask check`.
pub fn check() -> Result<String, Fault> {
    all(&project::unstuck()?, Duration::from_secs(30), &project::target()?.join("soak"))
}

fn all(unstuck: &Path, length: Duration, out: &Path) -> Result<String, Fault> {
    let world = World::new(unstuck)?;
    fs::create_dir(world.state())?;
    let state = world.state();
    let disk = Disk::mount(&state);
    let rounds = length.as_secs().div_ceil(ROUND.as_secs()).max(1);
    let each = length / u32::try_from(rounds)?;
    let start = Instant::now();
    let mut samples = Vec::new();
    let (mut acknowledged, mut killed, mut refused) = (0, 0, 0);
    let mut upgraded = 0;
    for round in 0..rounds {
        upgraded += upgrade(&world, round)?;
        let tally = one_round(&world, round, each, &disk, start, &mut samples)?;
        acknowledged += tally.acknowledged;
        killed += tally.killed;
        refused += tally.refused;
        let left = emptied(&world)?;
        println!(
            "round {} of {rounds}: {} entries acknowledged, all there; {} kB left when purged",
            round + 1,
            tally.acknowledged,
            left / 1024
        );
    }
    let [first, .., last] = &samples[..] else { return Err("nothing was sampled".into()) };
    if last.follower > first.follower.max(8 << 20) + GROWTH {
        return Err(format!("a follower grew from {} to {} bytes", first.follower, last.follower).into());
    }
    fs::create_dir_all(out)?;
    fs::write(out.join("soak.csv"), csv(&samples))?;
    fs::write(out.join("soak.svg"), svg(&samples))?;
    let highest = |of: fn(&Sample) -> f64| samples.iter().map(of).fold(0.0, f64::max);
    Ok(format!(
        "{acknowledged} entries acknowledged, none lost; {killed} processes killed, {refused} entries refused on a full disk{}, \
         {upgraded} rows brought from older formats; most state {:.1} MB, follower {:.1} MB, median ≤ {:.1} ms; {}",
        if disk.is_some() { "" } else { " (GAP: no small file system can be mounted here)" },
        highest(|sample| sample.bytes as f64) / 1e6,
        highest(|sample| sample.follower as f64) / 1e6,
        highest(|sample| sample.median_ms),
        out.join("soak.svg").display(),
    ))
}

/// What became of a round.
#[derive(Default)]
struct Tally {
    acknowledged: u64,
    killed: u64,
    refused: u64,
}

fn one_round(
    world: &World,
    round: u64,
    length: Duration,
    disk: &Option<Disk<'_>>,
    start: Instant,
    samples: &mut Vec<Sample>,
) -> Result<Tally, Fault> {
    let done = AtomicBool::new(false);
    let (calls, killed, refused) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let waits = Mutex::new(Vec::new());
    // Where nothing is recorded yet there is nothing to follow.
    world.send(&[json!({ "event": "user", "session": "nobody" })])?;
    let mut follower = Follower::start(world)?;
    let mut ledger = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (done, calls, killed, refused, waits) = (&done, &calls, &killed, &refused, &waits);
                scope.spawn(move || -> Result<Ledger, Fault> {
                    let mut ledger = Ledger::default();
                    let mut dice = Dice(round.wrapping_mul(7919).wrapping_add(writer));
                    for number in 0.. {
                        if done.load(Ordering::Relaxed) {
                            break;
                        }
                        let call = Call::named(&format!("w{writer}"), format!("r{round}w{writer}-{number}"));
                        let mut told = Vec::new();
                        for payload in [call.before(), call.after(if number % 3 == 0 { 2 } else { 0 })] {
                            let life =
                                (dice.below(KILLED) == 0).then(|| Duration::from_micros(dice.below(6000)));
                            let begin = Instant::now();
                            let reply = speak(world.hook::<&str>(&[]), &lines(&[payload]), life)?;
                            let answer = reply.answers()?.first().map(Told::of).unwrap_or_default();
                            match life {
                                Some(_) => killed.fetch_add(1, Ordering::Relaxed),
                                None if !reply.status.success() => {
                                    return Err(format!("{}: {reply:?}", call.mark).into());
                                }
                                None => {
                                    let mut waits = waits.lock().map_err(|_| "a writer panicked")?;
                                    waits.push(begin.elapsed().as_secs_f64() * 1e3);
                                    refused.fetch_add(u64::from(!answer.is_acknowledged()), Ordering::Relaxed)
                                }
                            };
                            told.push(answer);
                        }
                        ledger.note(&call.mark, &told);
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(ledger)
                })
            })
            .collect();
        let begin = Instant::now();
        let mut watch = || -> Result<(), Fault> {
            let pause = (length / 20).min(Duration::from_secs(5));
            while begin.elapsed() < length {
                thread::sleep(pause);
                // Somebody else takes all the room that is left, for a tenth of the round.
                let share = begin.elapsed().as_secs_f64() / length.as_secs_f64();
                if let Some(disk) = disk {
                    disk.fill((0.5..0.6).contains(&share))?;
                }
                let mut waits = std::mem::take(&mut *waits.lock().map_err(|_| "a writer panicked")?);
                waits.sort_by(f64::total_cmp);
                samples.push(Sample {
                    seconds: start.elapsed().as_secs_f64(),
                    calls: calls.load(Ordering::Relaxed),
                    bytes: bytes_in(&world.store()),
                    follower: follower.memory(),
                    median_ms: waits.get(waits.len() / 2).copied().unwrap_or(0.0),
                    slowest_ms: waits.last().copied().unwrap_or(0.0),
                });
            }
            disk.as_ref().map_or(Ok(()), |disk| disk.fill(false))
        };
        let watched = watch();
        done.store(true, Ordering::Relaxed);
        let mut ledger = Ledger::default();
        for writer in writers {
            ledger.join(writer.join().map_err(|_| "a writer panicked")??);
        }
        watched.map(|()| ledger)
    })?;
    follower.end()?;
    // What waits in the spool is taken in by whoever comes next.
    for _ in 0..100 {
        let reply = world.run(&["heartbeat"])?;
        if !reply.status.success() {
            return Err(format!("unstuck heartbeat: {reply:?}").into());
        }
        if !reply.stdout.contains("waiting") {
            break;
        }
    }
    let last = Call::named("last", format!("r{round}-last"));
    ledger.note(&last.mark, &world.send(&[last.before(), last.after(0)])?.told()?);
    ledger.compare(&Found::in_copy_of(&world.store())?)?;
    let [killed, refused] = [killed, refused].map(AtomicU64::into_inner);
    Ok(Tally { acknowledged: ledger.acknowledged(), killed, refused })
}

/// Opens a database of an older format, and records a call in it. Returns how many rows were brought over.
fn upgrade(world: &World, round: u64) -> Result<u64, Fault> {
    let name = format!("format-{}.db", round % 3 + 1);
    let old = project::root().join("crates/store/tests/data").join(name);
    let store = world.store();
    if store.exists() {
        fs::remove_dir_all(&store)?;
    }
    // It makes its folder as it wants it.
    world.send(&[Call::named("first", "first".to_owned()).before()])?;
    for ending in ["", "-wal", "-shm"] {
        let _it_need_not_be_there = fs::remove_file(store.join(format!("timeline.db{ending}")));
    }
    fs::copy(old, store.join("timeline.db"))?;
    let probe = Call::named("probe", "probe".to_owned());
    let told = world.send(&[probe.before(), probe.after(0)])?.told()?;
    let calls = world.run(&["export", "--jsonl", "--only", "calls"])?.answers()?;
    let old = calls.iter().filter(|row| row["type"] == "call" && row["session"] != "probe").count() as u64;
    if told != [Told::Recorded; 2] || old == 0 {
        return Err(format!("after an upgrade {old} old calls are there, and a new one is {told:?}").into());
    }
    // Old calls have no marks, and one that never ended outlives a purge: the round begins with nothing.
    fs::remove_dir_all(&store)?;
    Ok(old)
}

/// Removes all that is kept, and returns what is left on the disk.
fn emptied(world: &World) -> Result<u64, Fault> {
    thread::sleep(Duration::from_millis(5));
    let reply = world.run(&["purge", "--before", "0s", "--backups"])?;
    if !reply.status.success() {
        return Err(format!("unstuck purge: {reply:?}").into());
    }
    let left = bytes_in(&world.store());
    match left <= EMPTY {
        true => Ok(left),
        false => Err(format!("{left} bytes are left when all is purged").into()),
    }
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => bytes_in(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}

/// `unstuck log --follow`, which reads all the while.
struct Follower(Child);

impl Follower {
    fn start(world: &World) -> Result<Follower, Fault> {
        let mut command = world.command::<&str>(&[], &["log", "--follow", "--json", "--since", "0"]);
        Ok(Follower(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?))
    }

    /// Its memory in bytes, where the system tells it.
    fn memory(&mut self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }

    fn end(mut self) -> Result<(), Fault> {
        if let Some(status) = self.0.try_wait()? {
            return Err(format!("log --follow ended by itself: {status}").into());
        }
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

/// A small file system of its own, where we may mount one.
struct Disk<'a>(&'a Path);

impl Disk<'_> {
    fn mount(folder: &Path) -> Option<Disk<'_>> {
        if !cfg!(target_os = "linux") || !nix::unistd::geteuid().is_root() {
            return None;
        }
        let size = format!("size={DISK},mode=0700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(Disk(folder))
    }

    /// Takes all the room, or gives it back.
    fn fill(&self, is_full: bool) -> Result<(), Fault> {
        let filler = self.0.join("filler");
        if !is_full {
            return if filler.exists() { Ok(fs::remove_file(filler)?) } else { Ok(()) };
        }
        let mut file = fs::OpenOptions::new().create(true).append(true).open(filler)?;
        for size in [1 << 20, 4096] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        Ok(())
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _nothing_more_can_be_done = Command::new("umount").arg(self.0).status();
    }
}

fn csv(samples: &[Sample]) -> String {
    let mut text = "seconds,calls,state_bytes,follower_bytes,median_ms,slowest_ms\n".to_owned();
    for Sample { seconds, calls, bytes, follower, median_ms, slowest_ms } in samples {
        let _a_string_takes_all =
            writeln!(text, "{seconds:.1},{calls},{bytes},{follower},{median_ms:.2},{slowest_ms:.2}");
    }
    text
}

/// A panel for each figure, one below the other.
fn svg(samples: &[Sample]) -> String {
    type Figure = fn(&Sample) -> f64;
    const PANELS: [(&str, Figure); 4] = [
        ("state, MB", |sample| sample.bytes as f64 / 1e6),
        ("memory of a follower, MB", |sample| sample.follower as f64 / 1e6),
        ("a hook call, median, ms", |sample| sample.median_ms),
        ("a hook call, slowest, ms", |sample| sample.slowest_ms),
    ];
    let (width, height) = (760.0, 120.0);
    let end = samples.last().map_or(1.0, |sample| sample.seconds.max(1.0));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 {}\" font-family=\"sans-serif\" font-size=\"12\">\n",
        PANELS.len() * 160
    );
    for (panel, (title, of)) in PANELS.iter().enumerate() {
        let top = panel as f64 * 160.0 + 25.0;
        let most = samples.iter().map(of).fold(f64::MIN_POSITIVE, f64::max);
        let point = |sample: &Sample| {
            let x = 20.0 + sample.seconds / end * width;
            let y = top + height - of(sample) / most * height;
            format!("{x:.1},{y:.1}")
        };
        let points: Vec<String> = samples.iter().map(point).collect();
        let _a_string_takes_all = writeln!(
            text,
            "<text x=\"20\" y=\"{}\">{title} (most: {most:.1}, over {:.0} s)</text>\n\
             <rect x=\"20\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#ccc\"/>\n\
             <polyline fill=\"none\" stroke=\"#06c\" points=\"{}\"/>",
            top - 6.0,
            end,
            points.join(" ")
        );
    }
    text + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_written_down_and_drawn() {
        let sample =
            Sample { seconds: 1.0, calls: 2, bytes: 3_000_000, follower: 4, median_ms: 5.0, slowest_ms: 6.0 };
        assert_eq!(csv(&[sample]).lines().nth(1), Some("1.0,2,3000000,4,5.00,6.00"));
        let drawn = svg(&[sample, Sample { seconds: 2.0, bytes: 6_000_000, ..sample }]);
        assert!(drawn.starts_with("<svg") && drawn.ends_with("</svg>\n"), "{drawn}");
        assert!(drawn.contains("400.0,85.0 780.0,25.0"), "{drawn}");
    }
}
