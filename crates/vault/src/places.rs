//! A set of paths that tells what lies at, above or below them.

use std::cmp::Ordering;

use crate::manifest::is_at_or_below;

/// Paths in such an order that whatever lies in a folder comes right after it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    paths: Vec<Vec<u8>>,
}

impl Places {
    pub(crate) fn of(paths: impl IntoIterator<Item = Vec<u8>>) -> Places {
        let mut paths: Vec<Vec<u8>> = paths.into_iter().collect();
        paths.sort_unstable_by(|a, b| by_parts(a, b));
        Places { paths }
    }

    /// Those that lie in none of the others.
    pub(crate) fn topmost(mut self) -> Places {
        self.paths.dedup_by(|path, above| is_at_or_below(path, above));
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.paths.iter()
    }

    /// Is a path one of them, or inside one? Only where none of them lies in another.
    pub(crate) fn cover(&self, path: &[u8]) -> bool {
        let next = self.paths.partition_point(|place| by_parts(place, path) != Ordering::Greater);
        next > 0 && is_at_or_below(path, &self.paths[next - 1])
    }

    /// Is a path one of them, or does one lie inside it?
    pub(crate) fn reach_into(&self, path: &[u8]) -> bool {
        let at = self.paths.partition_point(|place| by_parts(place, path) == Ordering::Less);
        self.paths.get(at).is_some_and(|place| path.is_empty() || is_at_or_below(place, path))
    }
}

/// A slash comes before all that a name can hold.
fn by_parts(a: &[u8], b: &[u8]) -> Ordering {
    let differs = a.iter().zip(b).position(|(a, b)| a != b);
    let rank = |byte: u8| if byte == b'/' { 0 } else { byte };
    match differs {
        Some(at) => rank(a[at]).cmp(&rank(b[at])),
        None => a.len().cmp(&b.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_folder_is_told_from_what_is_called_alike() {
        let paths =
            ["/t/b", "/t/a", "/t/a-b", "/t/a/x/y", "/t/a b", "/u"].map(|path| path.as_bytes().to_vec());
        let all = Places::of(paths);
        let within = |path: &str| all.reach_into(path.as_bytes());
        assert!(
            within("") && within("/") && within("/t") && within("/t/a") && within("/t/a/x") && within("/u")
        );
        assert!(
            !within("/t/a/y")
                && !within("/t/a/x/y/z")
                && !within("/t/c")
                && !within("/v")
                && !within("/t/a-")
        );
        let top = all.topmost();
        assert_eq!(top.iter().count(), 5, "one lies in another");
        let covered = |path: &str| top.cover(path.as_bytes());
        assert!(
            covered("/t/a")
                && covered("/t/a/x")
                && covered("/t/a-b/c")
                && covered("/t/a b/c")
                && covered("/u/v/w")
        );
        assert!(!covered("/t") && !covered("/t/a-c") && !covered("/t/ab") && !covered("/") && !covered(""));
        assert!(!Places::default().cover(b"/t") && !Places::default().reach_into(b""));
    }
}
