//! The layers a setting can come from, and the exact place within one. Nothing is read here.

use std::fmt;
use std::path::PathBuf;

use super::quoted::harmless_path;

/// Where settings come from, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    BuiltIn,
    System,
    User,
    Project,
    Environment,
    Flags,
}

impl Layer {
    /// The word for it, in JSON and to people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Layer::BuiltIn => "built-in",
            Layer::System => "system",
            Layer::User => "user",
            Layer::Project => "project",
            Layer::Environment => "environment",
            Layer::Flags => "flags",
        }
    }
}

/// Where exactly something is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    BuiltIn,
    /// Line and column are counted from 1, the column in characters.
    InFile {
        path: PathBuf,
        line: usize,
        column: usize,
    },
    Variable(String),
    Flag,
}

impl Place {
    /// The place of a byte of a file's text.
    pub(crate) fn in_text(path: PathBuf, text: &str, at: usize) -> Place {
        let before = &text[..text.floor_char_boundary(at)];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Place::InFile { path, line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::BuiltIn => f.write_str("built-in"),
            Place::InFile { path, line, column } => write!(f, "{}:{line}:{column}", harmless_path(path)),
            Place::Variable(name) => f.write_str(name),
            Place::Flag => f.write_str("--set"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_lines_and_characters_from_one() {
        let check = |text: &str, at: usize, expected: &str| {
            assert_eq!(Place::in_text(PathBuf::from("f"), text, at).to_string(), expected);
        };
        check("", 0, "f:1:1");
        check("a\nb", 2, "f:2:1");
        check("# 中文\nx", 7, "f:1:4");
        check("ab", 99, "f:1:3");
    }
}
