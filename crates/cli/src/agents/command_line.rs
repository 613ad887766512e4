//! The line by which an agent calls us. It stays the same for ever: Codex asks its user again after any change, and other
//! entries are known as ours by it. It succeeds and says nothing where the program is gone.
//!
//! Anybody can write such a line into a file. That it looks like ours is enough to take it out, and never enough to run it.

use std::path::{Path, PathBuf};

use unstuck_wire::hook::Host;

use super::own_program::{is_named_like_us, is_this_program};
use crate::editing::Written;

/// The line for `/bin/sh`.
pub(crate) fn command_line(program: &str, host: Host) -> String {
    format!("'{}'{}", program.replace('\'', r"'\''"), behind(host))
}

/// Returns the program that a line of ours calls: one of our name, this very program, or one that was noted when the line was
/// written. Nothing but the whole line counts: one that only holds it is somebody else's.
pub(crate) fn program_of(line: &str, host: Host, known: Option<&Written>) -> Option<PathBuf> {
    let program = program_in(line, host)?;
    let is_ours = is_named_like_us(&program) || is_noted(line, known) || is_this_program(&program);
    is_ours.then_some(program)
}

/// Returns whether the ledger says that we wrote this line, byte for byte, into that file.
pub(crate) fn is_noted(line: &str, known: Option<&Written>) -> bool {
    known.is_some_and(|known| known.commands.iter().any(|each| each == line))
}

/// Returns the program of any line that has the form of ours.
fn program_in(line: &str, host: Host) -> Option<PathBuf> {
    let quoted = line.strip_suffix(&behind(host))?.strip_prefix('\'')?.strip_suffix('\'')?;
    let path = quoted.replace(r"'\''", "'");
    let is_exact = command_line(&path, host) == line;
    (is_exact && Path::new(&path).is_absolute()).then(|| PathBuf::from(path))
}

pub(super) fn behind(host: Host) -> String {
    format!(" hook {} 2>/dev/null || :", host.word())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        assert_eq!(program_of(line, Host::Claude, None), expected.map(PathBuf::from), "{line}");
    }

    #[test]
    fn a_line_of_ours_is_known_with_any_path() {
        for path in [
            "/usr/bin/unstuck",
            "/home/o'neil/bin/unstuck",
            "/a b/$(c)/unstuck",
            "/工具/unstuck",
            "/x/unstuck-0.1.0",
        ] {
            check(&command_line(path, Host::Claude), Some(path));
        }
    }

    #[test]
    fn this_program_is_known_by_itself_and_any_other_by_what_was_noted() {
        let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        check(&command_line(&own, Host::Claude), Some(&own));
        let line = command_line("/opt/tools/u", Host::Claude);
        let known =
            Written { commands: vec![line.clone()], ..Written::nothing_yet("/x/settings.json", "claude") };
        assert_eq!(program_of(&line, Host::Claude, Some(&known)), Some(PathBuf::from("/opt/tools/u")));
        check(&line, None);
    }

    #[test]
    fn a_line_that_only_looks_like_ours_is_not() {
        check("'/usr/bin/unstuck' hook claude 2>/dev/null || : # mine", None);
        check("time '/usr/bin/unstuck' hook claude 2>/dev/null || :", None);
        check("'/usr/bin/unstuck' hook codex 2>/dev/null || :", None);
        check("'/usr/bin/unstuckable' hook claude 2>/dev/null || :", None);
        check("'/usr/bin/rtk' hook claude 2>/dev/null || :", None);
        check("'unstuck' hook claude 2>/dev/null || :", None);
        check("'/a' && '/usr/bin/unstuck' hook claude 2>/dev/null || :", None);
        check("unstuck hook claude", None);
    }
}
