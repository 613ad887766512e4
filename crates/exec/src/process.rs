//! What another process of this machine is: its name, its command line and who started it.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

/// More of a command line is not read.
const LINE_MAX: usize = 4096;
/// More of an environment is not read.
const ENVIRONMENT_MAX: u64 = 4 << 20;

/// A process, as the system tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The process that started it.
    pub parent: u32,
    /// The name it goes by.
    pub name: String,
    /// Its words, with a blank between them.
    pub line: String,
}

/// The process that started this one.
#[cfg(unix)]
pub fn parent() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

/// The process that started this one: nobody can tell here.
#[cfg(not(unix))]
pub fn parent() -> Option<u32> {
    None
}

/// The process with this number; nothing where there is none, or nobody can tell.
pub fn look(pid: u32) -> Option<Process> {
    match fs::read(format!("/proc/{pid}/cmdline")) {
        Ok(words) => of_files(pid, &words),
        Err(_) => of_ps(pid),
    }
}

/// The file that a process runs; nothing where nobody can tell.
pub fn program(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The first of these variables that a process was started with, and that is not empty. Only its own user may see them.
pub fn variable_of(pid: u32, names: &[&'static str]) -> Option<&'static str> {
    let mut told = Vec::new();
    File::open(format!("/proc/{pid}/environ")).ok()?.take(ENVIRONMENT_MAX).read_to_end(&mut told).ok()?;
    let is_set = |name: &str| {
        let value =
            |each: &[u8]| each.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::is_empty);
        told.split(|byte| *byte == 0).find_map(value) == Some(false)
    };
    names.iter().copied().find(|name| is_set(name))
}

fn of_files(pid: u32, words: &[u8]) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything.
    let (begin, rest) = stat.rsplit_once(')')?;
    let (_, name) = begin.split_once('(')?;
    let parent = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let words = &words[..words.len().min(LINE_MAX)];
    let line = String::from_utf8_lossy(words).trim_end_matches('\0').replace('\0', " ");
    Some(Process { parent, name: name.to_owned(), line })
}

/// Where processes are no files, a program tells of them.
#[cfg(all(unix, not(target_os = "linux")))]
fn of_ps(pid: u32) -> Option<Process> {
    let ask = |what: &str| {
        let asked = std::process::Command::new("/bin/ps").args(["-o", what, "-p", &pid.to_string()]).output();
        let said = asked.ok().filter(|said| said.status.success())?;
        Some(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    };
    let both = ask("ppid=,args=")?;
    let (parent, line) = both.split_once(' ')?;
    let name = ask("ucomm=").unwrap_or_default();
    Some(Process {
        parent: parent.parse().ok()?,
        name,
        line: line.trim_start().chars().take(LINE_MAX).collect(),
    })
}

#[cfg(not(all(unix, not(target_os = "linux"))))]
fn of_ps(_: u32) -> Option<Process> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_with_the_one_that_started_it() {
        let own = look(std::process::id()).unwrap();
        assert_eq!(Some(own.parent), parent());
        let first = std::env::args().next().unwrap();
        assert!(own.line.starts_with(&first), "{own:?}");
        assert_eq!(look(u32::MAX), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_process_was_started_with_is_found() {
        let mut child = std::process::Command::new("/bin/sleep");
        child.arg("60").env_clear().envs([("EMPTY", ""), ("XSET", "1"), ("SET", "a=b")]);
        let mut child = child.spawn().unwrap();
        let found = ["SET", "EMPTY", "ET"].map(|name| variable_of(child.id(), &["UNSET", name]));
        child.kill().and_then(|()| child.wait()).unwrap();
        assert_eq!(found, [Some("SET"), None, None]);
        assert_eq!(variable_of(u32::MAX, &["SET"]), None);
    }
}
