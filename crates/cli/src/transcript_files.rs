//! Finds the transcripts in folders: each file once, however many names lead to it, and no circle of links walked twice.
//! What cannot be looked at is told, and is no reason to stop.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use unstuck_judge::ladder::Print;
use unstuck_wire::hook::Host;

use crate::agents::{AGENTS, Places};
use crate::bill::{Bill, Trouble};
use crate::exit::CommandError;
use crate::regular_file;

/// By so much of its beginning, and of the end of what was read, a file is known again.
const KNOWN_BY: u64 = 512;

/// A file to read.
pub(crate) struct TranscriptFile {
    pub(crate) path: PathBuf,
    /// What names it wherever it is moved to.
    pub(crate) name: String,
    pub(crate) size: u64,
}

/// Where the agents on this machine write their sessions down.
pub(crate) fn usual_folders() -> Vec<PathBuf> {
    let places = Places::here();
    let inside = |host: Host| match host {
        Host::Claude | Host::Qwen => &["projects"][..],
        Host::Codex => &["sessions", "archived_sessions"],
        Host::Gemini => &["tmp"],
        Host::Opencode | Host::Copilot | Host::Cursor | Host::Generic => &[],
    };
    let folders = AGENTS.iter().flat_map(|agent| {
        let home = places.folder(agent);
        inside(agent.host).iter().filter_map(move |inside| Some(home.as_ref()?.join(inside)))
    });
    folders.filter(|folder| folder.is_dir()).collect()
}

/// The files that were named, and the transcripts in the folders that were named, in the order of their names.
pub(crate) fn find(named: &[PathBuf], bill: &mut Bill) -> Result<Vec<TranscriptFile>, CommandError> {
    let mut search = Search { met: HashSet::new(), found: Vec::new() };
    for path in named {
        let unreadable = |source| CommandError::Unreadable { path: path.clone(), source };
        let about = fs::metadata(path).map_err(unreadable)?;
        // Whoever opens a pipe may wait for ever, and cannot go back in it.
        if !about.is_dir() && !about.is_file() {
            return Err(unreadable(io::Error::other("it is neither a file nor a folder")));
        }
        match about.is_dir() {
            true => {
                // What was named must be readable; what is below it need not be.
                fs::read_dir(path).map_err(unreadable)?;
                search.walk(path, &about, bill);
            }
            false => {
                regular_file::open(path).map_err(unreadable)?;
                search.take(path.clone(), &about);
            }
        }
    }
    Ok(search.found)
}

struct Search {
    met: HashSet<String>,
    found: Vec<TranscriptFile>,
}

impl Search {
    fn walk(&mut self, folder: &Path, about: &Metadata, bill: &mut Bill) {
        if !self.met.insert(name(folder, about)) {
            return bill.trouble(Trouble::Circle, || folder.display().to_string());
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return bill.trouble(trouble(&error), || format!("{}: {error}", folder.display())),
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            match fs::metadata(&path) {
                Ok(about) if about.is_dir() => self.walk(&path, &about, bill),
                Ok(about) if about.is_file() && is_transcript(&path) => self.take(path, &about),
                Ok(_) => {}
                Err(error) if is_transcript(&path) => {
                    bill.trouble(trouble(&error), || format!("{}: {error}", path.display()));
                }
                Err(_) => {}
            }
        }
    }

    fn take(&mut self, path: PathBuf, about: &Metadata) {
        let name = name(&path, about);
        if self.met.insert(name.clone()) {
            self.found.push(TranscriptFile { path, name, size: about.len() });
        }
    }
}

/// What kind of trouble an error is.
pub(crate) fn trouble(error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::NotFound => Trouble::Gone,
        _ => Trouble::Unreadable,
    }
}

fn is_transcript(path: &Path) -> bool {
    let is_old_chat = || {
        let is_in = |folder: &str| path.parent().is_some_and(|parent| parent.ends_with(folder));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        is_document(path) && is_in("chats") && name.starts_with("session-")
    };
    path.extension().is_some_and(|extension| extension == "jsonl") || is_old_chat()
}

/// May it be one piece of JSON, as old versions of Gemini CLI wrote it anew with each message?
pub(crate) fn is_document(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

#[cfg(unix)]
fn name(_: &Path, about: &Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    format!("{}:{}", about.dev(), about.ino())
}

/// Where files have no numbers, their place has to do.
#[cfg(not(unix))]
fn name(path: &Path, _: &Metadata) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    format!("{:x}", Print::of(&["path", &path.to_string_lossy()]).0)
}

/// A print of a file up to `size`: of its beginning, and of the last bytes before that. Who only writes on leaves both as they
/// are; who writes the file anew does not.
pub(crate) fn print(path: &Path, size: u64) -> io::Result<u64> {
    let mut file = regular_file::open(path)?;
    let (mut beginning, mut end) = (Vec::new(), Vec::new());
    (&mut file).take(KNOWN_BY.min(size)).read_to_end(&mut beginning)?;
    let last = KNOWN_BY.min(size);
    file.seek(SeekFrom::Start(size - last))?;
    file.take(last).read_to_end(&mut end)?;
    Ok(Print::of_bytes(&[&beginning, &end]).0)
}
