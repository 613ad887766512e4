//! Runs the hook under `strace`, which kills it, or fails one of its calls, at a chosen place.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Fault;
use crate::world::{Reply, World, speak};

/// The calls by which a program meets its files. Those that a platform does not have are left out by strace itself.
const CALLS: [&str; 34] = [
    "openat",
    "read",
    "pread64",
    "write",
    "pwrite64",
    "writev",
    "ftruncate",
    "fallocate",
    "unlink",
    "unlinkat",
    "rename",
    "renameat",
    "renameat2",
    "fcntl",
    "fsync",
    "fdatasync",
    "mmap",
    "flock",
    "mkdir",
    "mkdirat",
    "newfstatat",
    "fstat",
    "statx",
    "readlink",
    "readlinkat",
    "access",
    "faccessat",
    "fchown",
    "fchmod",
    "fchmodat",
    "statfs",
    "lseek",
    "getdents64",
    "close",
];

/// What Rust's runtime calls before anything of ours: whatever comes before it belongs to the system's loader.
const RUNTIME_STARTS: [&str; 2] = ["poll", "ppoll"];

/// Can calls be injected here?
pub enum Strace {
    /// Yes.
    Works,
    /// No, and why.
    Missing(String),
}

/// The n-th call of its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The name of the call.
    pub call: String,
    /// Which of them, counted from 1.
    pub nth: u32,
}

/// What is done to the process there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blow {
    /// It is killed with signal 9.
    Kill,
    /// This one call fails.
    Fails(&'static str),
    /// This call and all later ones of its name fail.
    FailsFromNowOn(&'static str),
}

/// Every blow that is tried at every place.
pub const BLOWS: [Blow; 4] =
    [Blow::Kill, Blow::Fails("ENOSPC"), Blow::Fails("EIO"), Blow::FailsFromNowOn("ENOSPC")];

/// What a run under a blow came to.
pub struct Struck {
    /// What the hook said.
    pub reply: Reply,
    /// The line of the trace that shows the blow; `None` where the place was not reached.
    pub line: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} no. {}", self.call, self.nth)
    }
}

impl fmt::Display for Blow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blow::Kill => write!(f, "killed"),
            Blow::Fails(error) => write!(f, "{error}"),
            Blow::FailsFromNowOn(error) => write!(f, "{error} from there on"),
        }
    }
}

impl Strace {
    /// Looks for it; on a Debian-like machine where we may, it is installed.
    pub fn find() -> Strace {
        if !cfg!(target_os = "linux") {
            return Strace::Missing("strace exists on Linux only".to_owned());
        }
        let works = || {
            let mut command = Command::new("strace");
            command.args(["-qq", "-o", "/dev/null", "true"]).stdout(Stdio::null()).stderr(Stdio::piped());
            command.output().map_err(|error| error.to_string()).and_then(|output| {
                match output.status.success() {
                    true => Ok(()),
                    false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
                }
            })
        };
        let Err(first) = works() else { return Strace::Works };
        if nix::unistd::geteuid().is_root() && Path::new("/usr/bin/apt-get").exists() {
            println!("strace is missing ({first}): apt-get install -y strace");
            let mut install = Command::new("apt-get");
            install.args(["install", "-y", "-qq", "strace"]).env("DEBIAN_FRONTEND", "noninteractive");
            let _it_shows_below = install.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
        match works() {
            Ok(()) => Strace::Works,
            Err(why) => Strace::Missing(format!("strace does not run here: {why}")),
        }
    }
}

/// The places that a hook passes on its way when nothing is done to it, from the first that is ours.
pub fn places(world: &World, input: &[u8]) -> Result<Vec<Place>, Fault> {
    let path = world.aside("trace");
    let all = CALLS.iter().chain(&RUNTIME_STARTS);
    let words =
        strace(&path, &format!("trace={}", all.map(|call| format!("?{call}")).collect::<Vec<_>>().join(",")));
    let reply = speak(world.hook(&words), input, None)?;
    if !reply.status.success() {
        return Err(format!("the hook fails under strace: {reply:?}").into());
    }
    Ok(places_in(&fs::read_to_string(path)?, &world.state().to_string_lossy()))
}

fn places_in(trace: &str, state: &str) -> Vec<Place> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    let mut ours = false;
    let mut places = Vec::new();
    for call in trace.lines().filter_map(call_in) {
        let (name, rest) = call;
        if RUNTIME_STARTS.contains(&name) {
            ours = true;
            continue;
        }
        let nth = counts.entry(name).or_default();
        *nth += 1;
        // Memory that is no file's: no system answers such a request with an error of the disk.
        let is_memory = name == "mmap" && !rest.contains(state);
        if ours && !is_memory {
            places.push(Place { call: name.to_owned(), nth: *nth });
        }
    }
    places
}

/// The name of the call on a line of a trace, and the rest.
pub fn call_in(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ' ');
    let (name, rest) = line.split_once('(')?;
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_').then_some((name, rest))
}

/// Sends `input` to a hook that is struck at this place.
pub fn strike(world: &World, input: &[u8], place: &Place, blow: Blow) -> Result<Struck, Fault> {
    strike_any(world, |before| world.hook(before), input, place, blow)
}

/// Strikes any command; `command` makes it, behind the words that start it.
pub fn strike_any(
    world: &World,
    command: impl Fn(&[String]) -> Command,
    input: &[u8],
    place: &Place,
    blow: Blow,
) -> Result<Struck, Fault> {
    let path = world.aside("trace");
    let Place { call, nth } = place;
    let inject = match blow {
        Blow::Kill => format!("inject={call}:signal=KILL:when={nth}"),
        Blow::Fails(error) => format!("inject={call}:error={error}:when={nth}"),
        Blow::FailsFromNowOn(error) => format!("inject={call}:error={error}:when={nth}+"),
    };
    let mut words = strace(&path, &format!("trace={call}"));
    words.extend(["-e".to_owned(), inject]);
    let reply = speak(command(&words), input, None)?;
    let trace = fs::read_to_string(&path).unwrap_or_default();
    let line = match blow {
        Blow::Kill => trace
            .contains("killed by SIGKILL")
            .then(|| trace.lines().rfind(|line| call_in(line).is_some()).unwrap_or_default().to_owned()),
        Blow::Fails(_) | Blow::FailsFromNowOn(_) => {
            trace.lines().find(|line| line.contains("(INJECTED)")).map(str::to_owned)
        }
    };
    Ok(Struck { reply, line })
}

/// The words that start a program under strace.
pub fn strace(trace: &Path, what: &str) -> Vec<String> {
    ["strace", "-f", "-qq", "-y", "-o", &trace.to_string_lossy(), "-e", what].map(str::to_owned).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_from_the_start_and_named_from_the_runtime_on() {
        let trace = "7  openat(AT_FDCWD, \"/lib/libc.so\") = 3\n\
                     7  poll([{fd=0}], 3, 0) = 0\n\
                     7  openat(AT_FDCWD, \"/s/timeline.db\") = 3</s/timeline.db>\n\
                     7  mmap(NULL, 4096, PROT_READ) = 0x7f\n\
                     7  mmap(NULL, 4096, PROT_READ, MAP_SHARED, 5</s/timeline.db-shm>, 0) = 0x7f\n\
                     7  +++ exited with 0 +++\n";
        let names: Vec<String> = places_in(trace, "/s").iter().map(Place::to_string).collect();
        assert_eq!(names, ["openat no. 2", "mmap no. 2"]);
    }
}
