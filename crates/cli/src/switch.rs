//! Is unstuck off for now? A variable switches it off where it is set, a file in the state folder pauses it everywhere for a
//! while. Hooks ask this before anything else, so the usual answer costs one look at a file that is not there.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use unstuck_wire::time;

/// The variable that switches everything off.
pub(crate) const VARIABLE: &str = "UNSTUCK_DISABLE";
/// No pause is longer, so that nobody forgets one for ever.
pub(crate) const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// Holds when a pause ends, in milliseconds since 1970.
const FILE: &str = "paused-until";
/// More is not read: it would be something else.
const FILE_MAX: usize = 32;

/// Whether unstuck does anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    On,
    /// The variable says so.
    Disabled,
    /// Until this moment, in milliseconds since 1970.
    Paused(u64),
}

impl Switch {
    /// How it stands now. A pause that is over is forgotten.
    pub(crate) fn at(folder: Option<&Path>, now: u64) -> Switch {
        match folder {
            _ if is_disabled() => Switch::Disabled,
            Some(folder) => paused(folder, now).map_or(Switch::On, Switch::Paused),
            None => Switch::On,
        }
    }

    /// The word for it in JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Switch::On => "on",
            Switch::Disabled => "disabled",
            Switch::Paused(_) => "paused",
        }
    }
}

/// Does the variable switch everything off? Hooks ask it before they read any settings.
pub(crate) fn is_disabled() -> bool {
    env::var_os(VARIABLE).is_some_and(|value| switches_off(&value))
}

fn switches_off(value: &OsStr) -> bool {
    match value.to_str() {
        Some(value) => !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "0" | "false"),
        None => true,
    }
}

/// Until when it is paused. What is over, or longer than any pause, or no time at all, is removed.
fn paused(folder: &Path, now: u64) -> Option<u64> {
    let path = folder.join(FILE);
    let bytes = match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() && found.len() <= FILE_MAX as u64 => fs::read(&path).ok()?,
        Ok(found) if found.is_file() => Vec::new(),
        Ok(_) | Err(_) => return None,
    };
    let until = str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let last = now.saturating_add(time::span_ms(LONGEST));
    let until = until.filter(|until| (now.saturating_add(1)..=last).contains(until));
    if until.is_none() {
        let _the_next_one_tries_again = fs::remove_file(&path);
    }
    until
}

/// Pauses until a moment, in a folder that is there. A process that is looking meanwhile sees the old pause or the new one.
pub(crate) fn pause(folder: &Path, until: u64) -> io::Result<()> {
    let new = new_file(folder);
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new)?;
    // A person's word survives a power cut.
    let written = writeln!(file, "{until}")
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&new, folder.join(FILE)));
    let _not_every_system_opens_folders = fs::File::open(folder).and_then(|folder| folder.sync_all());
    written.inspect_err(|_| {
        let _nothing_more_to_do = fs::remove_file(&new);
    })
}

fn new_file(folder: &Path) -> PathBuf {
    folder.join(format!("{FILE}.{}", std::process::id()))
}

/// Ends a pause. Says whether there was one.
pub(crate) fn resume(folder: &Path, now: u64) -> io::Result<bool> {
    let was = paused(folder, now).is_some();
    match fs::remove_file(folder.join(FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(was),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_switches_off_unless_it_says_no() {
        for (value, off) in [
            ("1", true),
            ("yes", true),
            ("true", true),
            ("", false),
            ("0", false),
            ("False", false),
            (" ", false),
        ] {
            assert_eq!(switches_off(OsStr::new(value)), off, "{value:?}");
        }
    }

    #[test]
    fn a_pause_holds_until_its_end_and_is_then_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |now| paused(folder.path(), now);
        assert_eq!(at(1000), None);
        pause(folder.path(), 5000).unwrap();
        assert_eq!((at(1000), at(4999)), (Some(5000), Some(5000)));
        pause(folder.path(), 9000).unwrap();
        assert_eq!(at(5000), Some(9000));
        assert_eq!(at(9000), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_pause_can_be_ended() {
        let folder = tempfile::tempdir().unwrap();
        pause(folder.path(), 5000).unwrap();
        assert!(resume(folder.path(), 1000).unwrap());
        assert!(!resume(folder.path(), 1000).unwrap());
    }

    #[test]
    fn what_is_no_time_pauses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        let far = (time::span_ms(LONGEST) + 1001).to_string();
        for text in ["", "soon", "-5", "18446744073709551616", &far, &"9".repeat(FILE_MAX + 1)] {
            fs::write(&file, text).unwrap();
            assert_eq!(paused(folder.path(), 1000), None, "{text:?}");
            assert!(!file.exists(), "{text:?}");
        }
        fs::create_dir(&file).unwrap();
        assert_eq!(paused(folder.path(), 1000), None);
    }
}
