//! The rows of rewrites that a person opted into, as one line of text: `all`, or `python-to-python3, apt-yes`.

use std::fmt;

use unstuck_judge::rewrite;

/// Rows of rewrites by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RewriteRows {
    All,
    Only(Vec<&'static str>),
}

impl RewriteRows {
    /// Reads a list as a person writes it. Nothing comes back where one of the names is no row: a name that means nothing
    /// would let its writer believe that something happens.
    pub(crate) fn read(text: &str) -> Option<RewriteRows> {
        if text.trim() == "all" {
            return Some(RewriteRows::All);
        }
        let row = |name: &str| rewrite::names().find(|row| *row == name.trim());
        text.split(',').map(row).collect::<Option<Vec<_>>>().map(RewriteRows::Only)
    }

    /// Whether a row is among them.
    pub(crate) fn contains(&self, row: &str) -> bool {
        match self {
            RewriteRows::All => true,
            RewriteRows::Only(rows) => rows.contains(&row),
        }
    }
}

impl fmt::Display for RewriteRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RewriteRows::All => f.pad("all"),
            RewriteRows::Only(rows) => f.pad(&rows.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_rows_that_there_are_and_is_shown_as_it_is_written() {
        for (text, shown) in [
            ("all", Some("all")),
            ("apt-yes", Some("apt-yes")),
            (" python-to-python3 ,apt-yes", Some("python-to-python3, apt-yes")),
            ("", None),
            ("apt-yes,", None),
            ("python", None),
            ("apt-yes, sudo", None),
        ] {
            assert_eq!(RewriteRows::read(text).map(|rows| rows.to_string()).as_deref(), shown, "{text:?}");
        }
    }

    #[test]
    fn a_row_that_was_not_named_is_not_among_them() {
        assert!(RewriteRows::All.contains("apt-yes"));
        let some = RewriteRows::read("apt-yes, dnf-yes").unwrap();
        assert!(some.contains("dnf-yes") && !some.contains("python-to-python3"));
    }
}
