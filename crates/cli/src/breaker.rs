//! Hooks whose store fails them again and again leave it alone for a while: entries go straight to the spool, and the agent
//! waits for nothing. A small file in the state folder remembers that. A healthy hook pays one look at a file that is not there.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::regular_file;

const FILE: &str = "store-rests";
const FILE_MAX: u64 = 64;
/// So many hooks in a row open the circuit.
const MOST: u32 = 3;
/// How long the first rest is, in milliseconds; each failed attempt after it doubles it.
const FIRST_MS: u64 = 30_000;
const LONGEST_MS: u64 = 600_000;

/// The circuit between a hook and its store.
pub(crate) struct Breaker {
    path: Option<PathBuf>,
    /// Hooks in a row that failed before this one.
    before: u32,
    /// Faults in a row in this process.
    here: u32,
    until: u64,
    is_noted: bool,
}

impl Breaker {
    /// The circuit as the hooks before this one left it.
    pub(crate) fn at(folder: Option<&Path>) -> Breaker {
        let path = folder.map(|folder| folder.join(FILE));
        let is_noted = path.as_ref().is_some_and(|path| fs::symlink_metadata(path).is_ok());
        let noted = path.as_ref().filter(|_| is_noted).and_then(|path| regular_file::text(path, FILE_MAX));
        let (before, until) = noted.as_deref().and_then(read).unwrap_or_default();
        Breaker { path, before, here: 0, until, is_noted }
    }

    /// Does the store rest? A rest that ends later than any does was written by a clock that was wrong.
    pub(crate) fn is_open(&self, now: u64) -> bool {
        self.faults() >= MOST
            && (now.saturating_add(1)..=now.saturating_add(LONGEST_MS)).contains(&self.until)
    }

    /// Until when it rests, in milliseconds since 1970, and after how many faults in a row.
    pub(crate) fn rest(&self, now: u64) -> Option<(u64, u32)> {
        self.is_open(now).then_some((self.until, self.faults()))
    }

    /// The store failed, or this process came to no end. A process counts once, unless it fails again and again by itself.
    pub(crate) fn fault(&mut self, now: u64) {
        self.here += 1;
        let faults = self.faults();
        if faults >= MOST {
            let doubled = FIRST_MS.saturating_mul(1 << (faults - MOST).min(8));
            self.until = now.saturating_add(doubled.min(LONGEST_MS));
        }
        let Some(path) = &self.path else { return };
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
            options.mode(0o600).custom_flags(flags.bits());
        }
        // What cannot be written only costs the next hook its patience.
        let written = options.open(path).and_then(|mut file| write!(file, "{faults} {}", self.until));
        self.is_noted |= written.is_ok();
    }

    /// The store works.
    pub(crate) fn success(&mut self) {
        (self.before, self.here) = (0, 0);
        if let Some(path) = self.path.as_ref().filter(|_| self.is_noted) {
            self.is_noted = fs::remove_file(path).is_err();
        }
    }

    fn faults(&self) -> u32 {
        self.before.saturating_add(self.here.min(1)).max(self.here)
    }
}

fn read(text: &str) -> Option<(u32, u64)> {
    let (faults, until) = text.trim().split_once(' ')?;
    Some((faults.parse().ok()?, until.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_faults_in_a_row_open_it_and_one_success_closes_it() {
        let folder = tempfile::tempdir().unwrap();
        let next = || Breaker::at(Some(folder.path()));
        let fails = |now| next().fault(now);
        for now in [1, 2] {
            fails(now);
            assert!(!next().is_open(now));
        }
        fails(3);
        assert_eq!(next().rest(3), Some((30_003, 3)));
        assert!(!next().is_open(30_003), "the next hook tries again");
        fails(30_003);
        assert_eq!(next().rest(30_004), Some((90_003, 4)), "twice as long");
        next().success();
        assert!(!next().is_open(30_005) && !folder.path().join(FILE).exists());
        fails(30_006);
        assert!(!next().is_open(30_006));
    }

    #[test]
    fn a_process_counts_once_unless_it_fails_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let mut one = Breaker::at(Some(folder.path()));
        one.fault(1);
        one.fault(1);
        assert_eq!(Breaker::at(Some(folder.path())).before, 2, "two of its own");
        assert!(!one.is_open(1));
        one.fault(1);
        assert!(one.is_open(1));
    }

    #[test]
    fn what_no_hook_wrote_opens_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "x", "9", "9 x", "-1 5", "9 99999999999999", "99999999999999 5"] {
            fs::write(folder.path().join(FILE), text).unwrap();
            assert!(!Breaker::at(Some(folder.path())).is_open(4), "{text}");
        }
    }
}
