//! What changed behind our back. A person edits files, another program installs something: no hook tells of it, but the files
//! themselves do. Only files that a call names are looked at, and for a mere look also what lies in its folder.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use unstuck_judge::ladder::Reason;
use unstuck_judge::rewrite::Machine;
use unstuck_judge::shell::{ParsedCall, Script};
use unstuck_judge::{Call, Kind, Need};
use unstuck_store::Stands;

use crate::machine::ThisMachine;

/// So many names of a call are looked at.
const NAMES: usize = 32;
/// A longer text names no file.
const LONGEST_NAME: usize = 4096;
/// So much of a folder.
const ENTRIES: usize = 512;
/// Clocks of files are coarse, and what a call itself wrote is no change.
const GRAIN: Duration = Duration::from_millis(20);

/// Did something that `call` depends on change after `since`, in milliseconds since 1970?
pub(crate) fn has_moved(call: &Call, folder: &str, reason: &Reason, since: u64) -> bool {
    let since = SystemTime::UNIX_EPOCH + Duration::from_millis(since) + GRAIN;
    let folder = Path::new(folder);
    let parsed = ParsedCall::of(call);
    let targets = parsed.targets();
    let programs = programs(&parsed).filter(|program| program.contains('/')).map(str::to_owned);
    let names: Vec<String> = targets.into_iter().chain(programs).take(NAMES).collect();
    let named = names.iter().filter_map(|name| place(folder, name)).any(|path| is_newer(&path, since));
    let is_missing = reason.kind == Kind::CommandNotFound;
    named
        || is_missing && came_on_path(&parsed, folder, &reason.line, since)
        || reason.track.asks() && holds_newer(folder, since)
}

/// Is a file newer than `since` that the arguments of a tool name, in whichever field?
pub(crate) fn names_newer(input: &Value, folder: &Path, since: SystemTime) -> bool {
    fn texts<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
        match value {
            Value::String(text) if found.len() < NAMES => found.push(text),
            Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
            Value::Object(fields) => fields.values().for_each(|item| texts(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut names = Vec::new();
    texts(input, &mut names);
    let names = names.into_iter().map(|name| name.strip_prefix("file://").unwrap_or(name));
    let paths = names.filter(|name| name.len() <= LONGEST_NAME).filter_map(|name| place(folder, name));
    paths.into_iter().any(|path| is_newer(&path, since + GRAIN))
}

/// Is something that a call needs still missing, as it was at `since`? A program is looked for wherever it could be, a flag is
/// as good as the file of its program, and of other machines nothing can be known from here.
pub(crate) fn stands(need: &Need, folder: &str, home: Option<&Path>, since: u64) -> Stands {
    let folder = Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute());
    let machine = ThisMachine::here(home.map(Path::to_owned), folder);
    match need {
        Need::Program(name) if machine.program(name).is_some() => Stands::No,
        // It is there, and only the agent's shell knows whether it finds it.
        Need::Program(name) if machine.in_project(name).or_else(|| machine.off_path(name)).is_some() => {
            Stands::Unsaid
        }
        Need::Program(_) => Stands::Yes,
        Need::Host(_) => Stands::Unsaid,
        Need::Flag { program, .. } => {
            let since = SystemTime::UNIX_EPOCH + Duration::from_millis(since);
            match machine.program(program) {
                Some(file) if !is_newer(Path::new(&file), since) => Stands::Unsaid,
                Some(_) | None => Stands::No,
            }
        }
    }
}

/// Did a program that `call` starts become another file after `since`, in milliseconds since 1970?
pub(crate) fn has_another_version(call: &Call, folder: &str, since: u64) -> bool {
    let since = SystemTime::UNIX_EPOCH + Duration::from_millis(since);
    let folder = Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute());
    let machine = ThisMachine::here(None, folder);
    let parsed = ParsedCall::of(call);
    let files = programs(&parsed).take(NAMES).filter_map(|program| machine.program(program));
    files.into_iter().any(|file| is_newer(Path::new(&file), since))
}

/// Has a program that the error misses come on the path since? Where the missing one is not named by the call itself, its
/// files may tell.
fn came_on_path(parsed: &ParsedCall<'_>, folder: &Path, line: &str, since: SystemTime) -> bool {
    let machine = ThisMachine::here(None, Some(folder.to_owned()));
    let mut missing = programs(parsed).filter(|program| line.contains(program));
    missing.any(|program| machine.program(program).is_some_and(|path| is_newer(Path::new(&path), since)))
}

/// The programs that a line starts, as it writes them.
fn programs<'a>(parsed: &'a ParsedCall<'_>) -> impl Iterator<Item = &'a str> {
    let commands = parsed.script.iter().flat_map(Script::commands);
    commands.filter_map(|command| command.words.first()).map(String::as_str)
}

/// Where a name lies, if it is one of a file. A name that leads out of our hands (an address, an option) is none.
fn place(folder: &Path, name: &str) -> Option<PathBuf> {
    let is_file = !name.is_empty() && !name.starts_with('-') && !name.contains("://") && !name.contains('\0');
    let path = folder.join(name);
    (is_file && path.is_absolute()).then_some(path)
}

/// A link that was made counts as well as what it leads to.
fn is_newer(path: &Path, since: SystemTime) -> bool {
    [fs::metadata(path), fs::symlink_metadata(path)]
        .into_iter()
        .flatten()
        .any(|about| changed(&about) > since)
}

/// When a file or what is known of it changed last.
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

/// Does a folder hold something that is newer, or its repository?
fn holds_newer(folder: &Path, since: SystemTime) -> bool {
    if !folder.is_absolute() {
        return false;
    }
    let own = [folder.to_owned(), folder.join(".git/HEAD"), folder.join(".git/index")];
    own.iter().any(|path| is_newer(path, since))
        || fs::read_dir(folder)
            .is_ok_and(|entries| entries.flatten().take(ENTRIES).any(|entry| is_newer(&entry.path(), since)))
}
