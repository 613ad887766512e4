//! What a path is to git, told by its name alone: a repository gets its objects before anything that names them, is read in
//! the order in which git writes it, and writes its index again whenever it is asked how things stand.

/// The part of a repository that a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GitPart {
    /// None: it is outside of all.
    Outside,
    /// A whole `.git`.
    Whole,
    /// Where the objects are, also those of a submodule.
    Objects,
    /// What tells which object is where: references, the index, settings.
    Notes,
}

/// The part of a repository that a path belongs to.
pub(crate) fn git_part(path: &[u8]) -> GitPart {
    let mut parts = path.split(|byte| *byte == b'/').skip_while(|part| *part != b".git");
    if parts.next().is_none() {
        return GitPart::Outside;
    }
    let mut is_whole = true;
    for part in parts {
        is_whole = false;
        match part {
            b"objects" => return GitPart::Objects,
            // A branch may be called so, too.
            b"refs" | b"logs" => return GitPart::Notes,
            _ => {}
        }
    }
    if is_whole { GitPart::Whole } else { GitPart::Notes }
}

/// The `.git` that a path is, or lies in.
pub(crate) fn git_folder(path: &[u8]) -> Option<&[u8]> {
    let mut end = 0;
    for part in path.split(|byte| *byte == b'/') {
        end += part.len();
        if part == b".git" {
            return Some(&path[..end]);
        }
        end += 1;
    }
    None
}

/// Is a file an index?
pub(crate) fn is_git_index(path: &[u8]) -> bool {
    git_part(path) == GitPart::Notes && path.ends_with(b"/index")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_the_part_of_a_repository() {
        let cases = [
            ("/t/src/objects", GitPart::Outside),
            ("/t/.github/objects", GitPart::Outside),
            ("/t/.git", GitPart::Whole),
            ("/t/.git/objects", GitPart::Objects),
            ("/t/.git/objects/ab/cd", GitPart::Objects),
            ("/t/.git/modules/sub/objects/ab", GitPart::Objects),
            ("/t/.git/HEAD", GitPart::Notes),
            ("/t/.git/refs/heads/objects", GitPart::Notes),
            ("/t/.git/logs/refs/heads/objects", GitPart::Notes),
        ];
        for (path, expected) in cases {
            assert_eq!(git_part(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn what_lies_in_a_repository_knows_which() {
        let folder = |path: &'static str| git_folder(path.as_bytes());
        assert_eq!(folder("/t/.git/modules/m/HEAD"), Some(b"/t/.git".as_slice()));
        assert_eq!(folder("/t/.git"), Some(b"/t/.git".as_slice()));
        assert_eq!(folder("/t/.github/x"), None);
    }

    #[test]
    fn an_index_is_one_of_git() {
        let indexes = ["/t/.git/index", "/t/.git/worktrees/w/index", "/t/.git/modules/sub/index"];
        assert_eq!(indexes.map(|path| is_git_index(path.as_bytes())), [true; 3]);
        let others = ["/t/index", "/t/.git/refs/heads/indexes", "/t/.git/objects/index"];
        assert_eq!(others.map(|path| is_git_index(path.as_bytes())), [false; 3]);
    }
}
