//! The line by which an agent calls us. It stays the same for ever: Codex asks its user again after any change, and other
//! entries are known as ours by it. It succeeds and says nothing where the program is gone.

use std::path::{Path, PathBuf};

use unstuck_wire::hook::Host;

/// The line for `/bin/sh`.
pub(crate) fn command_line(program: &str, host: Host) -> String {
    format!("'{}'{}", program.replace('\'', r"'\''"), behind(host))
}

/// The program that a line of ours calls. Nothing but the whole line counts: one that only holds it is somebody else's.
pub(crate) fn program_of(line: &str, host: Host) -> Option<PathBuf> {
    let quoted = line.strip_suffix(&behind(host))?.strip_prefix('\'')?.strip_suffix('\'')?;
    let path = quoted.replace(r"'\''", "'");
    let is_exact = command_line(&path, host) == line;
    let name = Path::new(&path).file_stem().unwrap_or_default();
    (is_exact && Path::new(&path).is_absolute() && name == "unstuck").then(|| PathBuf::from(path))
}

fn behind(host: Host) -> String {
    format!(" hook {} 2>/dev/null || :", host.word())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        assert_eq!(program_of(line, Host::Claude), expected.map(PathBuf::from), "{line}");
    }

    #[test]
    fn a_line_of_ours_is_known_with_any_path() {
        for path in ["/usr/bin/unstuck", "/home/o'neil/bin/unstuck", "/a b/$(c)/unstuck", "/工具/unstuck"] {
            check(&command_line(path, Host::Claude), Some(path));
        }
    }

    #[test]
    fn a_line_that_only_looks_like_ours_is_not() {
        check("'/usr/bin/unstuck' hook claude 2>/dev/null || : # mine", None);
        check("time '/usr/bin/unstuck' hook claude 2>/dev/null || :", None);
        check("'/usr/bin/unstuck' hook codex 2>/dev/null || :", None);
        check("'/usr/bin/unstuck-too' hook claude 2>/dev/null || :", None);
        check("'unstuck' hook claude 2>/dev/null || :", None);
        check("'/a' && '/usr/bin/unstuck' hook claude 2>/dev/null || :", None);
        check("unstuck hook claude", None);
    }
}
