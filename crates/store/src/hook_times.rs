//! How long our own hooks take, as they themselves measure it: eight bytes for each run at the end of a file, because a
//! process knows its own time only when it is done with the database. Times are statistics: what cannot be written is left
//! out.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::Duration;

use crate::root::{Root, private};
use crate::store::Store;

/// One run: microseconds, with the highest bit for the phase, and the minute since 1970.
const RECORD: usize = 8;
/// A file of so many bytes begins anew; the one before it is kept.
const FULL: u64 = 128 * 1024;
const AFTER: u32 = 1 << 31;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before a call.
    Before,
    /// At any other time.
    After,
}

/// How long the runs of one phase took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spread {
    /// How many there were.
    pub count: u64,
    /// Half of them took no longer.
    pub p50: Duration,
    /// Of twenty, nineteen took no longer.
    pub p95: Duration,
}

/// How long our hooks took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HookTimes {
    /// Before calls.
    pub before: Spread,
    /// At other times.
    pub after: Spread,
}

/// Writes down how long a run took.
pub(crate) fn note(root: &Root, phase: Phase, took: Duration, now: u64) {
    let path = root.hook_times();
    let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX).min(AFTER - 1);
    let first = match phase {
        Phase::Before => micros,
        Phase::After => micros | AFTER,
    };
    let minute = u32::try_from(now / 60_000).unwrap_or(u32::MAX);
    let mut record = [0; RECORD];
    record[..4].copy_from_slice(&first.to_le_bytes());
    record[4..].copy_from_slice(&minute.to_le_bytes());
    let Ok(mut file) = private(&path) else { return };
    if file.write_all(&record).is_ok() && file.metadata().is_ok_and(|meta| meta.len() >= FULL) {
        let _another_process_did_it = fs::rename(&path, root.old_hook_times());
    }
}

impl Store {
    /// How long our hooks took since a moment, in milliseconds since 1970.
    pub fn hook_times(&self, since: u64) -> HookTimes {
        read(self.root(), since)
    }
}

/// Reads what was written down since `since`, in milliseconds since 1970.
fn read(root: &Root, since: u64) -> HookTimes {
    let since = u32::try_from(since / 60_000).unwrap_or(u32::MAX);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for path in [root.old_hook_times(), root.hook_times()] {
        for record in records(&path) {
            let (first, minute) = record.split_at(4);
            let number = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).unwrap_or(0);
            if number(minute) < since {
                continue;
            }
            let took = number(first);
            match took & AFTER {
                0 => before.push(took),
                _ => after.push(took & !AFTER),
            }
        }
    }
    HookTimes { before: spread(before), after: spread(after) }
}

/// The records of a file, the last ones where it is longer than it should ever be.
fn records(path: &std::path::Path) -> Vec<[u8; RECORD]> {
    let read = || -> std::io::Result<Vec<u8>> {
        // A pipe in its place has no end.
        let length = fs::symlink_metadata(path)?;
        let mut file = match length.is_file() {
            true => File::open(path)?,
            false => return Ok(Vec::new()),
        };
        let length = length.len();
        file.seek(SeekFrom::Start(length.saturating_sub(2 * FULL)))?;
        let mut bytes = Vec::new();
        file.take(2 * FULL).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().unwrap_or_default().as_chunks().0.to_vec()
}

fn spread(mut times: Vec<u32>) -> Spread {
    times.sort_unstable();
    let at = |part: usize| {
        let place = (times.len().saturating_sub(1)) * part / 100;
        Duration::from_micros(times.get(place).copied().unwrap_or(0).into())
    };
    Spread { count: times.len() as u64, p50: at(50), p95: at(95) }
}
