//! How far the ladder may go, for all tools and for single ones.

/// How far the ladder may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Mode {
    /// It only records what it would have said.
    #[default]
    Shadow,
    /// It speaks, and refuses nothing.
    Advise,
    /// It refuses and halts.
    Enforce,
}

/// The mode for each tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modes {
    /// For every tool that is not named.
    pub others: Mode,
    /// For tools by name. A name that ends in `*` means all that begin like it; the first that fits counts.
    pub named: Vec<(String, Mode)>,
}

impl Modes {
    /// One mode for all tools.
    pub fn all(mode: Mode) -> Modes {
        Modes { others: mode, named: Vec::new() }
    }

    /// The mode for a tool.
    pub fn of(&self, tool: &str) -> Mode {
        let fits = |name: &str| match name.strip_suffix('*') {
            Some(begin) => tool.get(..begin.len()).is_some_and(|found| found.eq_ignore_ascii_case(begin)),
            None => tool.eq_ignore_ascii_case(name),
        };
        self.named.iter().find(|(name, _)| fits(name)).map_or(self.others, |(_, mode)| *mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_that_fits_decides() {
        let named = [("WebFetch", Mode::Shadow), ("mcp__db__drop", Mode::Enforce), ("mcp__*", Mode::Advise)];
        let modes = Modes {
            others: Mode::Enforce,
            named: named.map(|(name, mode)| (name.to_owned(), mode)).to_vec(),
        };
        for (tool, expected) in [
            ("Bash", Mode::Enforce),
            ("webfetch", Mode::Shadow),
            ("WebFetcher", Mode::Enforce),
            ("mcp__db__drop", Mode::Enforce),
            ("mcp__db__read", Mode::Advise),
            ("mc", Mode::Enforce),
            ("工具", Mode::Enforce),
        ] {
            assert_eq!(modes.of(tool), expected, "{tool}");
        }
    }
}
