//! A repository of git is more than its files: some of them name others. What names must never be newer than what it names,
//! and what is named must not go while something may still name it.

use crate::compare::{is_same, pairs};
use crate::entry::Kind;
use crate::manifest::{Manifest, join};

const GIT: &[u8] = b".git";
const OBJECTS: &[u8] = b"objects";

/// The folder of git in which something is an object, or holds objects.
pub(crate) fn of_object(path: &[u8]) -> Option<&[u8]> {
    let begin = path.windows(GIT.len() + 2).position(|part| part == b"/.git/")?;
    let (git, inside) = path.split_at(begin + 1 + GIT.len());
    inside.split(|byte| *byte == b'/').any(|part| part == OBJECTS).then_some(git)
}

/// Has nobody touched what names objects since the call that left it so? `excused` says the same though it differs.
pub(crate) fn is_as_left(folder: &[u8], left: &Manifest, have: &Manifest, excused: &[Vec<u8>]) -> bool {
    pairs(left.folder(folder), have.folder(folder)).into_iter().all(|pair| {
        let path = join(folder, pair.name);
        if pair.name == OBJECTS || excused.contains(&path) {
            return true;
        }
        let is_folder = pair.is.is_some_and(|is| is.entry.kind() == Kind::Folder);
        is_same(pair.was, pair.is) && (!is_folder || is_as_left(&path, left, have, excused))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_belong_to_the_repository_around_them() {
        let of = |path: &str| of_object(path.as_bytes()).map(|git| String::from_utf8_lossy(git).into_owned());
        assert_eq!(of("/p/.git/objects/ab/c").as_deref(), Some("/p/.git"));
        assert_eq!(of("/p/.git/modules/m/objects/pack").as_deref(), Some("/p/.git"));
        for path in ["/p/.git/refs/heads/objects2", "/p/objects/x", "/p/.github/objects/x", "/p/.git"] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
