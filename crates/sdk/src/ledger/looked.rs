//! Looks at the cause of a failure before a call is refused for it, as far as the arguments of the call name files.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use unstuck_judge::Condition;
use unstuck_judge::ladder::Reason;
use unstuck_store::Checked;

/// So many names of a call are looked at.
const NAMES: usize = 32;
/// A longer text names no file.
const LONGEST: usize = 4096;
/// Clocks of files are coarse, and what a call itself wrote is no change.
const GRAIN: Duration = Duration::from_millis(5);

/// Where a tool works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// In this process.
    Here,
    /// Behind a server, which may run in a container or on another machine.
    Elsewhere,
}

/// Does the cause of a failure still hold, or the answer of a look? A path that is kept is written with `~` for the home. Where a server does not share
/// even its folder with us, nothing is known of it.
pub(super) fn check(
    input: &Value,
    reason: &Reason,
    works: Where,
    home: Option<&Path>,
    since: SystemTime,
) -> Checked {
    if reason.track.asks() {
        return same_answer(input, works, since);
    }
    let condition = &reason.condition;
    let is_there = |path: &str| fs::symlink_metadata(at_home(path, home)).is_ok();
    let as_it_was = match condition {
        Condition::NoPath(path) if works == Where::Elsewhere && !has_folder(&at_home(path, home)) => {
            return Checked::Unseen;
        }
        Condition::NoPath(path) => !is_there(path),
        Condition::PathTaken(path) => is_there(path),
        Condition::SameNamed => !names_newer(input, since),
        Condition::Unseen
        | Condition::NoProgram(_)
        | Condition::PortClosed(_)
        | Condition::PortTaken(_)
        | Condition::SameFiles(_)
        | Condition::SamePackages(_) => return Checked::Unseen,
    };
    if as_it_was { Checked::Holds } else { Checked::Moved }
}

/// Would a look be answered as it was? That can be told where its arguments name files of this machine, and nothing else can.
fn same_answer(input: &Value, works: Where, since: SystemTime) -> Checked {
    let mut names = Vec::new();
    texts(input, &mut names);
    let is_file = |name: &&str| fs::metadata(name).is_ok_and(|about| about.is_file());
    match names_newer(input, since) {
        true => Checked::Moved,
        false if works == Where::Here && names.iter().any(is_file) => Checked::Holds,
        false => Checked::Unseen,
    }
}

fn at_home(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_), None) | (None, _) => PathBuf::from(path),
    }
}

/// Is the folder there in which it would lie?
fn has_folder(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.as_os_str().is_empty() || folder.is_dir())
}

/// Is a file newer than `since` that the arguments of a tool name, in whichever field?
pub(crate) fn names_newer(input: &Value, since: SystemTime) -> bool {
    let mut names = Vec::new();
    texts(input, &mut names);
    names.iter().any(|name| is_newer(Path::new(name), since + GRAIN))
}

/// The texts among the arguments that may name a file.
fn texts<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => {
            let name = text.strip_prefix("file://").unwrap_or(text);
            let is_name =
                !name.is_empty() && name.len() <= LONGEST && !name.contains("://") && !name.contains('\0');
            if is_name && found.len() < NAMES {
                found.push(name);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|item| texts(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A link that was made counts as well as what it leads to.
fn is_newer(path: &Path, since: SystemTime) -> bool {
    [fs::metadata(path), fs::symlink_metadata(path)]
        .into_iter()
        .flatten()
        .any(|about| changed(&about) > since)
}

/// When a file, or what is known of it, changed last.
fn changed(about: &Metadata) -> SystemTime {
    let modified = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    #[cfg(unix)]
    let modified = {
        use std::os::unix::fs::MetadataExt;
        let nanos = u32::try_from(about.ctime_nsec()).unwrap_or(0);
        modified.max(SystemTime::UNIX_EPOCH + Duration::new(about.ctime().unsigned_abs(), nanos))
    };
    modified
}
