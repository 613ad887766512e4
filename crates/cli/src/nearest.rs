//! Finds the name somebody probably meant.

/// The name that looks most like what was written, if one does.
pub(crate) fn nearest<'n>(written: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let close = names
        .map(|name| (strsim::jaro_winkler(written, name), name))
        .filter(|(likeness, name)| *likeness > 0.75 && is_close(written, name));
    close.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, name)| name)
}

/// Is it the beginning of the name, or is most of it the same?
fn is_close(written: &str, name: &str) -> bool {
    let longest = written.chars().count().max(name.chars().count());
    name.starts_with(written) || strsim::osa_distance(written, name) * 5 <= longest * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_another_word_is_not() {
        let names = || ["codex", "claude", "node.port", "npm.no-script", "copilot"].into_iter();
        for (written, expected) in [
            ("cluade", Some("claude")),
            ("codx", Some("codex")),
            ("npm.no-scipt", Some("npm.no-script")),
            ("cop", Some("copilot")),
            ("vscode", None),
            ("nope", None),
        ] {
            assert_eq!(nearest(written, names()), expected, "{written}");
        }
    }
}
