//! Finds the name somebody probably meant.

/// The name that looks most like what was written, if one does.
pub(crate) fn nearest<'n>(written: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let close = names
        .map(|name| (strsim::jaro_winkler(written, name), name))
        .filter(|(likeness, _)| *likeness > 0.75);
    close.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, name)| name)
}
