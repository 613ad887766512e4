//! The rows of `rules/rewrites.toml`, as they are compiled in.

use super::Machine;

/// One transform.
#[derive(Debug)]
pub(super) struct Row {
    pub name: &'static str,
    pub act: Act,
}

/// What a row does.
#[derive(Debug)]
pub(super) enum Act {
    /// Another name for the same program. Without `rules`, the cause must be that the program is missing.
    Rename {
        from: &'static [&'static str],
        to: &'static [&'static str],
        rules: &'static [&'static str],
        lacks: &'static [Fact],
        needs: &'static [Fact],
    },
    /// The full path of a program that is not on PATH.
    Find { place: Place },
    /// A flag with which a program does not ask, and others that keep it to what it was told.
    Answer {
        run: &'static [(&'static str, &'static str)],
        flags: &'static [&'static str],
        after: After,
        given: &'static [&'static str],
        /// Flags with which the question is a warning; `*` at the end stands for anything.
        not_flags: &'static [&'static str],
        /// Signs at an end of an operand that make it something to take away: `*-`, `!*`.
        not_operands: &'static [&'static str],
        /// Words in the evidence with which the question is a warning.
        not_says: &'static [&'static str],
        /// Only a command without further operands.
        alone: bool,
        says: &'static [&'static str],
        /// Words that others say as well.
        vague: &'static [&'static str],
        rules: &'static [&'static str],
    },
    /// Twice the time that ran out.
    Grow {
        rules: &'static [&'static str],
        unless: &'static [&'static str],
        max: u64,
        fields: &'static [(&'static str, u64)],
        tools: &'static [&'static str],
        field: &'static str,
        default: u64,
    },
}

/// Where a program is looked for besides PATH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the project.
    Project,
    /// Where programs usually are.
    Usual,
}

/// The word that a flag is put after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Program,
    Subcommand,
}

/// Something that is or is not so on a machine.
#[derive(Debug)]
pub(super) enum Fact {
    Program(&'static str),
    Behind(&'static str, &'static str),
    Module(&'static str, &'static str),
    Plugin(&'static str, &'static str),
}

impl Fact {
    pub(super) fn holds(&self, machine: &dyn Machine) -> bool {
        match self {
            Fact::Program(name) => machine.program(name).is_some(),
            Fact::Behind(name, prefix) => machine.behind(name).is_some_and(|file| file.starts_with(prefix)),
            Fact::Module(python, module) => machine.has_module(python, module),
            Fact::Plugin(program, plugin) => machine.has_plugin(program, plugin),
        }
    }
}

/// The tables themselves; their names are those of the file.
mod table {
    use super::{Act, After, Fact, Place, Row};

    include!(concat!(env!("OUT_DIR"), "/rewrites.rs"));
}

pub(super) use table::{
    BESIDE, MISSING_AFTER, MISSING_BEFORE, MOVING, NEVER, ROWS, SETTING, TEXT_ANSWER, TEXT_FIND, TEXT_GROW,
    TEXT_RENAME, THROUGH, THROUGH_ANSWERS, UNSETTLING, VARIABLES, WAITED,
};
