//! What a command started and what has left its group since, as agents let their tools do: it hears nothing of what the
//! group is told. Known from the system's list of processes, which only Linux has as files; elsewhere nobody is found.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// A process, and when it began: its number alone may be another's before long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kin {
    pid: i32,
    born: u64,
}

impl Kin {
    /// Signals it, where it is still there.
    pub(super) fn tell(self, signal: Signal) {
        if self.is_there() {
            // It may end just now, which is what is wanted.
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }

    /// Has it not ended yet?
    pub(super) fn is_there(self) -> bool {
        Process::look(self.pid).is_some_and(|process| process.born == self.born && !process.is_dead)
    }
}

/// Is anybody of this group still at work? Who has ended and is only waiting to be collected counts for the system, but
/// not here: a first process that collects orphans late would make everybody wait for the dead.
pub(super) fn lives(group: Pid) -> bool {
    let is_alive = |process: &Process| process.group == group.as_raw() && !process.is_dead;
    killpg(group, None).is_ok() && Process::all().is_none_or(|all| all.iter().any(is_alive))
}

/// All who descend from a process and are in another group than this one. Who has cut all ties (a daemon) is not found.
pub(super) fn outside(root: Pid, group: Pid) -> Vec<Kin> {
    let all = Process::all().unwrap_or_default();
    let mut family = vec![root.as_raw()];
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        let children = all.iter().filter(|process| process.parent == parent).map(|process| process.pid);
        let new: Vec<i32> = children.filter(|pid| !family.contains(pid)).collect();
        family.extend(new);
        at += 1;
    }
    let is_outside = |process: &&Process| {
        process.group != group.as_raw() && process.pid != root.as_raw() && family.contains(&process.pid)
    };
    all.iter().filter(is_outside).map(|process| Kin { pid: process.pid, born: process.born }).collect()
}

/// One line of the list.
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    born: u64,
    is_dead: bool,
}

impl Process {
    /// The whole list, where there is one.
    #[cfg(target_os = "linux")]
    fn all() -> Option<Vec<Process>> {
        let folders = std::fs::read_dir("/proc").ok()?.flatten();
        let pids = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
        let all: Vec<Process> = pids.filter_map(Process::look).collect();
        // We ourselves are always there: an empty list is none.
        (!all.is_empty()).then_some(all)
    }

    #[cfg(target_os = "linux")]
    fn look(pid: i32) -> Option<Process> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may hold anything, blanks and brackets as well.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Process {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            born: fields.get(19)?.parse().ok()?,
            is_dead: matches!(fields.first(), Some(&("Z" | "X"))),
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn all() -> Option<Vec<Process>> {
        None
    }

    #[cfg(not(target_os = "linux"))]
    fn look(_pid: i32) -> Option<Process> {
        None
    }
}
