//! Shapes of words: whether a word is a package, a version, a folder of the project, and nothing else.

use std::sync::OnceLock;

use regex_lite::Regex;

use super::{
    CODE, DOTTED, DOTTED_BEGINNINGS, NO_CODE, PACKAGES, PACKED, PATHS, PLAIN_TASKS, SHAPES, TASKS, TRUSTED,
    says_check,
};
use crate::lesson::caution::{is_in_use, is_plain, names_risk};

/// The shape that only a file of the call in whose place another one runs has.
const SCRIPT: &str = "script";
/// The shape of a task that is left out.
const SKIPPED_TASK: &str = "skippedtask";
/// The shapes of files whose content comes to be seen.
const SHOWN: [&str; 3] = ["shown", "source", "treefile"];
/// The shapes of migrations that a database is brought to, and of commands that could do so. Some take all of it back.
const MIGRATIONS: [&str; 2] = ["migration", "managetask"];
/// The shape of a task that is run without saying so.
const PLAIN_TASK: &str = "plaintask";

/// What the shape of a word may depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around<'a> {
    /// The program that the word is for.
    pub(super) program: &'a str,
    /// How many folders of the project were entered before.
    pub(super) entered: usize,
    /// The words of the call in whose place this one is told; empty for a step.
    pub(super) meant: &'a [String],
}

/// Tells whether a word has the shape with this number.
pub(super) fn fits(shape: usize, word: &str, around: Around<'_>) -> bool {
    static COMPILED: [OnceLock<Option<Regex>>; SHAPES.len()] = [const { OnceLock::new() }; SHAPES.len()];
    let Some((name, pattern)) = SHAPES.get(shape) else { return false };
    let Some(compiled) = COMPILED.get(shape) else { return false };
    let compiled = compiled.get_or_init(|| Regex::new(&format!("^(?:{pattern})$")).ok());
    let is_match = compiled.as_ref().is_some_and(|regex| regex.is_match(word));
    is_match && !is_open(word) && !is_in_use(word, name) && fits_in_meaning(name, word, around)
}

fn fits_in_meaning(name: &str, word: &str, around: Around<'_>) -> bool {
    let ends_in = |endings: &[&str]| endings.iter().any(|ending| word.to_ascii_lowercase().ends_with(ending));
    let starts_plainly = || {
        let first = word.split([':', '.', '-', '_']).next().unwrap_or_default();
        PLAIN_TASKS.contains(&first)
    };
    // What one word of a call may be is said where it stands: those with blanks are texts that are named as a whole.
    (is_plain(word)
        || word.contains(' ')
        || word.is_empty()
        || matches!(name, "substitution" | "stash" | "rcode" | "sdkpackage"))
        && (PATHS.contains(&name) && !word.contains("://") && is_inside(word, around.entered)
            || !PATHS.contains(&name) && !word.contains("../"))
        && (!TASKS.contains(&name) || !names_risk(around.program, word))
        && (!PACKAGES.contains(&name) && name != "npm" || !ends_in(PACKED))
        && (!NO_CODE.contains(&name) || !CODE.iter().any(|ending| word.ends_with(ending)))
        && (name != PLAIN_TASK || starts_plainly())
        && (name != SKIPPED_TASK || !says_check(word))
        && (!SHOWN.contains(&name) || !is_secret(word))
        && (!MIGRATIONS.contains(&name) || !matches!(word, "zero" | "base" | "migrate"))
        && (name != SCRIPT || around.meant.iter().any(|meant| bare(meant) == bare(word)))
}

/// Does it open something to everybody, as an address to listen at?
fn is_open(word: &str) -> bool {
    word.contains("0.0.0.0") || word.contains("[::]") || word.starts_with("0:")
}

/// Does the name of a file say that what is in it is nobody's to see?
fn is_secret(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    says_check(path)
        || lower.split('/').any(|part| part.starts_with('.') && part.len() > 1 && part != "..")
        || ["credential", "key", "private", "id_rsa", "id_ed25519", ".pem", ".p12", ".env", "htpasswd"]
            .iter()
            .any(|part| lower.contains(part))
}

fn bare(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

/// Tells whether a path stays in the project, and leads to nothing that others run or trust.
pub(super) fn is_inside(path: &str, entered: usize) -> bool {
    let path = bare(path).trim_end_matches('/');
    if matches!(path, "" | ".") {
        return true;
    }
    if path.starts_with("/tmp/") || path == "/dev/null" {
        return !path.contains("..");
    }
    if path == ".." {
        return entered > 0;
    }
    let is_own = |part: &str| {
        let is_dotted = part.starts_with('.') && part != ".";
        let is_known = || {
            part == "..."
                || DOTTED.contains(&part)
                || DOTTED_BEGINNINGS.iter().any(|beginning| part.starts_with(beginning))
        };
        !TRUSTED.contains(&part) && (!is_dotted || is_known())
    };
    !path.starts_with(['/', '~', '-']) && path.split(['/', ':']).all(is_own)
}
