//! The rows of `rules/risky.toml`, as they are compiled in, and how they are found.

use super::Counts;
use crate::words::Words;

/// One row.
#[derive(Debug, PartialEq)]
pub(super) struct Row {
    pub id: &'static str,
    pub why: [&'static str; 2],
    pub counts: Counts,
    pub any: &'static [&'static str],
    pub without: &'static [&'static str],
    pub bare: bool,
    pub says: &'static [&'static str],
    pub unless: &'static [&'static str],
    pub input: &'static [(&'static str, &'static [&'static str])],
    pub rebuildable: bool,
    pub links: bool,
    pub takes: &'static [Takes],
    pub values: &'static [&'static str],
    pub suffixes: &'static [&'static str],
    pub names: &'static [&'static str],
    pub fields: &'static [&'static str],
}

/// What a row says is at risk; the file tells what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Operands,
    OperandsOrFolder,
    AfterFirst,
    Last,
    Over,
    Move,
    StartPaths,
    Values,
    UrlNames,
    Patched,
    Folder,
    Repository,
    GitFolder,
    GitState,
    GitIndex,
    GitIndexToo,
    Suffixed,
    Named,
    Workspace,
    Fields,
    Patches,
}

include!(concat!(env!("OUT_DIR"), "/risky.rs"));

fn find<T: Copy>(table: &[(&str, T)], key: &str) -> Option<T> {
    table.binary_search_by(|(row, _)| row.cmp(&key)).ok().map(|at| table[at].1)
}

/// Whether some row begins with this program.
pub(super) fn knows(program: &str) -> bool {
    let at = RUNS.partition_point(|(key, _)| *key < program);
    RUNS.get(at).is_some_and(|(key, _)| {
        key.strip_prefix(program).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

/// The rows of exactly this program with its sub-commands, in their order.
pub(super) fn of_run(key: &str) -> Option<&'static [usize]> {
    find(RUNS, key)
}

/// The rows of exactly this tool, in their order.
pub(super) fn of_tool(name: &str) -> &'static [usize] {
    find(TOOLS, name).unwrap_or_default()
}

/// The flags with which a program is told its folder.
pub(super) fn folder_flags(program: &str) -> &'static [&'static str] {
    find(FOLDERS, program).unwrap_or_default()
}

/// The flags that take the next word as their value.
pub(super) fn valued(key: &str) -> Option<Words> {
    find(VALUED, key)
}
