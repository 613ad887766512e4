//! A repository of git is more than its files: some of them name others. What names must never be newer than what it names,
//! and what is named must not go while something may still name it.

use crate::compare::{is_same, pairs};
use crate::entry::Kind;
use crate::git_paths::{GitPart, git_folder, git_part};
use crate::manifest::{Manifest, join};

/// The folder of git in which something is an object, or holds objects.
pub(crate) fn of_object(path: &[u8]) -> Option<&[u8]> {
    git_folder(path).filter(|_| git_part(path) == GitPart::Objects)
}

/// Has nobody touched what names objects since the call that left it so? `excused` says the same though it differs.
pub(crate) fn is_as_left(folder: &[u8], left: &Manifest, have: &Manifest, excused: &[Vec<u8>]) -> bool {
    pairs(left.folder(folder), have.folder(folder)).into_iter().all(|pair| {
        let path = join(folder, pair.name);
        if git_part(&path) == GitPart::Objects || excused.contains(&path) {
            return true;
        }
        let is_folder = pair.is.is_some_and(|is| is.entry.kind() == Kind::Folder);
        is_same(pair.was, pair.is) && (!is_folder || is_as_left(&path, left, have, excused))
    })
}
