//! Comparing two lists: what stands at the same name in both, and whether it is the same. It looks at nothing but the lists.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::entry::{Entry, Flags, Kind};
use crate::layer::{FolderView, Seen};
use crate::manifest::{Manifest, is_at_or_below};
use crate::plan::{self, Lists};
use crate::restored::Change;

/// One name, and what stands there in each of two lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) was: Option<Seen<'a>>,
    pub(crate) is: Option<Seen<'a>>,
}

/// Brings the entries of two folders together by their names.
pub(crate) fn pairs<'a>(was: Option<FolderView<'a>>, is: Option<FolderView<'a>>) -> Vec<Pair<'a>> {
    let was: Vec<Seen<'a>> = was.iter().flat_map(FolderView::iter).collect();
    let is: Vec<Seen<'a>> = is.iter().flat_map(FolderView::iter).collect();
    // The system names them in the same order each time, so most stand at the same place in both.
    let in_step = was.iter().zip(&is).take_while(|(was, is)| was.name == is.name).count();
    let pair = |(was, is): (&Seen<'a>, &Seen<'a>)| Pair { name: was.name, was: Some(*was), is: Some(*is) };
    let mut pairs: Vec<Pair<'a>> = was.iter().zip(&is).take(in_step).map(pair).collect();
    let mut left: HashMap<&[u8], Seen<'a>> = is[in_step..].iter().map(|is| (is.name, *is)).collect();
    for was in &was[in_step..] {
        pairs.push(Pair { name: was.name, was: Some(*was), is: left.remove(was.name) });
    }
    let others = is[in_step..].iter().filter(|is| left.contains_key(is.name));
    pairs.extend(others.map(|is| Pair { name: is.name, was: None, is: Some(*is) }));
    pairs
}

/// Is something there? A scope can be named where nothing is.
pub(crate) fn there(seen: Option<Seen<'_>>) -> Option<Seen<'_>> {
    seen.filter(|seen| seen.entry.kind() != Kind::Absent)
}

/// How one thing differs from what it was; nothing where it does not.
pub(crate) fn change(was: &Seen<'_>, is: &Seen<'_>) -> Option<Change> {
    let kind = was.entry.kind();
    if kind != is.entry.kind() {
        return Some(Change::Retyped);
    }
    let has_content = matches!(kind, Kind::File | Kind::Link);
    if has_content && !has_same_content(&was.entry, &is.entry) {
        return Some(Change::Modified);
    }
    let is_touched = !was.entry.has_same_marks(&is.entry) || was.attributes != is.attributes;
    is_touched.then_some(Change::Touched)
}

/// Is the content of both the same?
pub(crate) fn has_same_content(was: &Entry, is: &Entry) -> bool {
    let is_chunked = |entry: &Entry| entry.flags.has(Flags::CHUNKED);
    let is_empty = was.size == 0 && is.size == 0;
    is_empty || (was.size == is.size && was.hash == is.hash && is_chunked(was) == is_chunked(is))
}

/// Are both the same? When somebody last added to a folder makes it no other one, and what is not held is only known by its
/// kind.
pub(crate) fn is_same(a: Option<Seen<'_>>, b: Option<Seen<'_>>) -> bool {
    match (there(a), there(b)) {
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
        (Some(a), Some(b)) if a.entry.kind() == Kind::Folder || !a.entry.is_held() || !b.entry.is_held() => {
            a.entry.kind() == b.entry.kind() && has_same_owner(&a, &b)
        }
        (Some(a), Some(b)) => change(&a, &b).is_none(),
    }
}

/// Mode, owner and attributes, but not the time.
pub(crate) fn has_same_owner(a: &Seen<'_>, b: &Seen<'_>) -> bool {
    let marks = |entry: &Entry| (entry.mode, entry.uid, entry.gid);
    marks(&a.entry) == marks(&b.entry) && a.attributes == b.attributes
}

/// Does anything that both lists hold differ, or does one hold what the other does not?
pub(crate) fn differs(was: &Manifest, is: &Manifest) -> bool {
    let chosen = Chosen::default();
    let lists = Lists { want: was, have: is, left: None, force: false, excused: &[], chosen: &chosen };
    !plan::plan(lists).told.is_empty()
}

/// Which part of a snapshot is meant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chosen {
    paths: Vec<Vec<u8>>,
}

/// How a path lies to what is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It is chosen.
    Inside,
    /// Something below it is.
    Above,
    Outside,
}

impl Chosen {
    pub(crate) fn of(paths: &[PathBuf]) -> Chosen {
        // Said with or without a slash at the end, it is the same folder.
        let plain = |path: &PathBuf| path.components().collect::<PathBuf>().as_os_str().as_bytes().to_vec();
        Chosen { paths: paths.iter().map(plain).collect() }
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.paths.is_empty()
    }

    pub(crate) fn reach(&self, path: &[u8]) -> Reach {
        if self.is_everything() || self.paths.iter().any(|chosen| is_at_or_below(path, chosen)) {
            return Reach::Inside;
        }
        match self.paths.iter().any(|chosen| is_at_or_below(chosen, path)) {
            true => Reach::Above,
            false => Reach::Outside,
        }
    }

    /// What is chosen below a path.
    pub(crate) fn below<'a>(&'a self, path: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.paths.iter().map(Vec::as_slice).filter(move |chosen| is_at_or_below(chosen, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_reaches_what_is_below_it_and_passes_what_is_above() {
        let chosen = Chosen::of(&[PathBuf::from("/t/src/"), PathBuf::from("/t/a")]);
        let reach = |path: &str| chosen.reach(path.as_bytes());
        assert_eq!([reach("/t/src"), reach("/t/src/x/y"), reach("/t/a")], [Reach::Inside; 3]);
        assert_eq!([reach("/t"), reach("/")], [Reach::Above; 2]);
        assert_eq!([reach("/t/srcs"), reach("/u"), reach("/t/ab")], [Reach::Outside; 3]);
        assert_eq!(Chosen::default().reach(b"/x"), Reach::Inside);
    }
}
