//! Does a process still run? A number alone does not tell, because numbers are used again: the time of its start is kept
//! beside it.

use std::fs;

/// The process with this number, as it is kept: `pid:start`. One that is gone already has no start. Empty where nobody can
/// tell.
pub fn owner(pid: u32) -> String {
    match start(pid) {
        Some(start) => format!("{pid}:{start}"),
        None if can_tell() => format!("{pid}:"),
        None => String::new(),
    }
}

/// Does the process that [`owner`] named still run? Where nobody can tell, it does.
pub fn is_alive(owner: &str) -> bool {
    let Some((pid, then)) = owner.split_once(':') else { return true };
    let Ok(pid) = pid.parse() else { return true };
    match start(pid) {
        Some(now) => now == then,
        None => !can_tell(),
    }
}

/// When a process started, in ticks since the machine did.
fn start(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything, so counting begins behind the last one.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let start = fields.nth(18)?;
    (state != "Z" && state != "X").then(|| start.to_owned())
}

/// Only where the system shows its processes as files.
fn can_tell() -> bool {
    fs::exists("/proc/self/stat").unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_one_with_another_start_does_not() {
        let own = owner(std::process::id());
        assert!(is_alive(&own), "{own}");
        if can_tell() {
            let (pid, _) = own.split_once(':').unwrap();
            assert!(!is_alive(&format!("{pid}:1")));
            assert!(!is_alive(&owner(u32::MAX)));
        }
    }

    #[test]
    fn what_names_no_process_is_not_called_dead() {
        assert!(is_alive("") && is_alive("x:1") && is_alive("17"));
    }
}
