//! Finds the `--set KEY=VALUE` flags of a command line.

use std::ffi::OsString;

/// Every `--set` of the command line in its order. Of flags that may stand before and after the name of a command the parser
/// keeps only those of one place, so once it has found the line to be sound, they are gathered again. What comes after `--`
/// belongs to another command.
pub(crate) fn assignments(args: impl Iterator<Item = OsString>, parsed: &[String]) -> Vec<String> {
    if parsed.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut args = args.filter_map(|arg| arg.into_string().ok()).take_while(|arg| arg != "--");
    while let Some(arg) = args.next() {
        match arg.strip_prefix("--set") {
            Some("") => found.extend(args.next()),
            Some(rest) => found.extend(rest.strip_prefix('=').map(str::to_owned)),
            None => {}
        }
    }
    found
}
