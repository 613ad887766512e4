//! The database file itself is damaged: single bytes, whole pages, its end, its log. Nothing may crash, hang or lose in silence what
//! is not damaged, and `recover` must leave a sound store behind.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;

use crate::Fault;
use crate::dice::Dice;
use crate::world::{Call, Reply, World, lines, speak};

/// Cases in the short form.
const SHORT: u64 = 40;
/// And in the long one.
const FULL: u64 = 3000;
/// Longer than this no command may take, in seconds.
const PATIENCE: &str = "60";
/// At most so many calls stand in one page of their table, or lose a part that stands in one.
const CALLS_IN_PAGE: usize = 80;
const PAGE: usize = 4096;

/// How it went.
pub struct Damaged {
    pub cases: u64,
    /// Calls that came back, and calls whose pages were damaged.
    pub kept: usize,
    pub lost: usize,
}

/// Damages a store in many ways.
pub fn run(unstuck: &Path, full: bool, seed: u64) -> Result<Damaged, Fault> {
    let template = template(unstuck)?;
    let before = calls(&template, "what is whole")?;
    let mut broken = Vec::new();
    let cases = if full { FULL } else { SHORT };
    let (mut kept, mut lost) = (0, 0);
    for case in 0..cases {
        let world = World::like(unstuck, &template.state())?;
        let mut dice = Dice(seed.wrapping_mul(1_000_003).wrapping_add(case));
        let (what, pages) = damage(&world, &mut dice)?;
        match check(&world, &before, pages) {
            Ok(left) => {
                kept += left;
                lost += before.len() - left;
            }
            Err(fault) => broken.push(format!("case {case} of seed {seed} ({what}): {fault}")),
        }
    }
    match broken.len() {
        0 => Ok(Damaged { cases, kept, lost }),
        count => {
            broken.truncate(12);
            Err(format!("{count} of {cases} damaged files broke something:\n{}", broken.join("\n")).into())
        }
    }
}

/// A store with many pages, a part of it in the log.
fn template(unstuck: &Path) -> Result<World, Fault> {
    let world = World::in_memory(unstuck)?;
    for session in 0..12 {
        let mut payloads = Vec::new();
        for number in 0..12 {
            let call = Call::named(&format!("session-{session}"), format!("call-{session}-{number}"));
            let mut after = call.after((number % 3).min(1));
            after["stderr"] = format!("{}: {}", call.mark, "much was printed here\n".repeat(80)).into();
            payloads.extend([call.before(), after]);
        }
        let reply = world.send(&payloads)?;
        if !reply.status.success() {
            return Err(format!("the template: {reply:?}").into());
        }
    }
    let connection = Connection::open(database(&world))?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    drop(connection);
    let call = Call::named("last", "call-last".to_owned());
    world.send(&[call.before(), call.after(1)])?;
    Ok(world)
}

fn database(world: &World) -> PathBuf {
    world.store().join("timeline.db")
}

/// Damages the file or its log. Returns what was done, and how many pages that touches at most.
fn damage(world: &World, dice: &mut Dice) -> Result<(String, usize), Fault> {
    let path = match dice.below(6) {
        0 => world.store().join("timeline.db-wal"),
        _ => database(world),
    };
    fs::remove_file(world.store().join("timeline.db-shm")).ok();
    let mut bytes = fs::read(&path)?;
    let pages = (bytes.len() / PAGE).max(1);
    let page = |dice: &mut Dice| {
        // The first page holds the header and the list of tables.
        let number = if dice.below(8) == 0 { 0 } else { dice.below(pages as u64) as usize };
        let end = ((number + 1) * PAGE).min(bytes.len());
        number * PAGE..end
    };
    let (what, touched) = match dice.below(7) {
        0 => {
            let count = 1 + dice.below(8) as usize;
            for _ in 0..count {
                let at = dice.below(bytes.len() as u64) as usize;
                bytes[at] = dice.next() as u8;
            }
            (format!("{count} bytes"), count)
        }
        1 => {
            let at = dice.below(100.min(bytes.len() as u64)) as usize;
            bytes[at] ^= 1 << dice.below(8);
            (format!("a bit of byte {at}"), 0)
        }
        2 => {
            let range = page(dice);
            bytes[range.clone()].fill(0);
            (format!("{range:?} zeroed"), 1)
        }
        3 => {
            let range = page(dice);
            bytes[range.clone()].iter_mut().for_each(|byte| *byte = dice.next() as u8);
            (format!("{range:?} random"), 1)
        }
        4 => {
            let (one, other) = (page(dice), page(dice));
            let copy = bytes[one.clone()].to_vec();
            let length = copy.len().min(other.len());
            bytes[other.start..other.start + length].copy_from_slice(&copy[..length]);
            (format!("{other:?} is {one:?}"), 1)
        }
        5 => {
            let length = dice.below(bytes.len() as u64) as usize;
            let gone = (bytes.len() - length) / PAGE + 1;
            bytes.truncate(length);
            (format!("cut to {length}"), gone)
        }
        _ => {
            // Part of a sector, as a disk returns it.
            let at = (dice.below(bytes.len() as u64) as usize) / 512 * 512;
            let end = (at + 512).min(bytes.len());
            bytes[at..end].fill(0xff);
            (format!("the sector at {at}"), 1)
        }
    };
    fs::write(&path, bytes)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The log holds many pages of one transaction, which go together.
    let touched = if name.ends_with("-wal") { touched + 8 } else { touched };
    Ok((format!("{name}, {what}"), touched))
}

/// Runs a command to its end.
fn said(world: &World, args: &[&str], input: &[u8]) -> Result<Reply, Fault> {
    let reply = speak(world.command(&["timeout", "-s", "KILL", PATIENCE], args), input, None)?;
    let is_ended = matches!(reply.status.code(), Some(0 | 1 | 6 | 125));
    match is_ended && !reply.stderr.contains("panicked") {
        true => Ok(reply),
        false => Err(format!("`{}` crashed or hung: {reply:?}", args.join(" ")).into()),
    }
}

/// The names of all calls that an export shows.
fn calls(world: &World, when: &str) -> Result<Vec<String>, Fault> {
    let exported = said(world, &["export", "--jsonl", "--only", "calls"], b"")?;
    let name = |line: &str| {
        let row: Value = serde_json::from_str(line).ok()?;
        row["call_id"].as_str().filter(|name| name.starts_with("call-")).map(str::to_owned)
    };
    let calls: Vec<String> = exported.stdout.lines().filter_map(name).collect();
    match exported.status.success() {
        true => Ok(calls),
        false => Err(format!("the export of {when}: {exported:?}").into()),
    }
}

/// Returns how many calls came back.
fn check(world: &World, before: &[String], pages: usize) -> Result<usize, Fault> {
    for args in [&["export", "--jsonl"][..], &["log", "--json"], &["stats", "--json"]] {
        said(world, args, b"")?;
    }
    let doctor = said(world, &["doctor", "claude", "--json"], b"")?;
    serde_json::from_str::<Value>(&doctor.stdout).map_err(|_| format!("the doctor: {doctor:?}"))?;
    let call = Call::named("fresh", "fresh".to_owned());
    let hook = said(world, &["hook", "generic"], &lines(&[call.before(), call.after(0)]))?;
    if !hook.status.success() || !hook.stderr.is_empty() || hook.answers()?.len() != 2 {
        return Err(format!("the hook: {hook:?}").into());
    }
    if hook.told()?.iter().any(|told| !told.is_acknowledged()) {
        return Err(format!("the hook loses an entry: {hook:?}").into());
    }
    said(world, &["gc"], b"")?;
    let recovered = said(world, &["recover", "--json"], b"")?;
    if !recovered.status.success() {
        return Err(format!("nothing is recovered: {recovered:?}").into());
    }
    let after = calls(world, "what is recovered")?;
    let left = before.iter().filter(|name| after.contains(name)).count();
    if before.len() - left > pages * CALLS_IN_PAGE {
        return Err(format!("{left} of {} calls are left: {recovered:?}", before.len()).into());
    }
    if left < before.len()
        && recovered
            .stdout
            .contains("\"damaged\":false,\"set_aside\":null,\"vouched\":false,\"databases\":[]")
    {
        // What the log held may go with its last transactions, as after a power cut.
        let is_the_last = before.iter().all(|name| after.contains(name) || name == "call-last");
        if !is_the_last {
            return Err(format!("{left} of {} calls are left, and nothing says so", before.len()).into());
        }
    }
    let again = world.send(&[Call::named("again", "again".to_owned()).before()])?;
    if again.told()?.iter().any(|told| !told.is_acknowledged()) {
        return Err(format!("the hook afterwards: {again:?}").into());
    }
    // Bytes that are others and can be read are what the chain is for: the doctor names them, and nothing brings them back.
    super::power::is_sound(world, &super::power::READABLE)?;
    Ok(left)
}
