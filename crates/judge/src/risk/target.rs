//! What a call puts at risk, as far as its words tell. Values only: what is there, a machine has to say.

/// Something that may be changed or lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What.
    pub at: At,
    /// Whether folders inside that a program can make again (`target/`, `node_modules/`) are at risk as well.
    pub rebuildable: bool,
    /// Where nothing is there: whether it is no target at all (a word that may be no path), or one that the call makes, so
    /// that to take the call back is to remove it. Where nothing of all targets is there, nothing is at risk.
    pub only_if_there: bool,
    /// Where it is a link: whether what it leads to is changed, too. Who removes a link leaves that alone.
    pub through_links: bool,
    /// Whether a `*` in it stands for hidden names as well, as `shopt -s dotglob` has it.
    pub hidden: bool,
}

/// The place of a target, relative to the folder the call is made in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// A file or a folder with all that is in it. The path may begin with `~/`, or with one of [`PLACES`].
    Path {
        /// Where the path begins.
        from: Folder,
        /// The path.
        path: String,
    },
    /// What a pattern of the shell stands for, or the file that is called like it: `*.rs`, `app/[id]/page.tsx`.
    Glob {
        /// Where the pattern begins.
        from: Folder,
        /// The pattern.
        pattern: String,
    },
    /// What is written over by `cp` or `mv`: the target, or what is called like a source in it where it is a folder.
    Over {
        /// Where the paths begin.
        from: Folder,
        /// What is copied or moved; each may be a pattern.
        sources: Vec<String>,
        /// Over what.
        to: String,
        /// Whether the sources are gone afterwards.
        moves: bool,
    },
    /// The work tree of a git repository, and what git keeps of it.
    Repository {
        /// A folder in the work tree.
        from: Folder,
    },
    /// Only what git keeps: commits, branches, the index, the stash.
    GitFolder {
        /// A folder in the work tree.
        from: Folder,
    },
    /// The same but for the commits and files themselves, which git adds to and removes only when it clears up.
    GitState {
        /// A folder in the work tree.
        from: Folder,
    },
    /// Files of these names, in this folder or the nearest above it in the same project.
    Named {
        /// The folder.
        from: Folder,
        /// The names; `*` stands for anything.
        names: &'static [&'static str],
    },
    /// The words do not tell: the project as a whole, in which the call is made.
    Workspace {
        /// A folder in it.
        from: Folder,
    },
}

/// Variables that name a folder on every machine that has them.
pub const PLACES: &[&str] = &["$RUNNER_TEMP", "$TMPDIR"];

/// Does it mean the same wherever one is?
pub(super) fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '~']) || PLACES.iter().any(|place| path.starts_with(place))
}

/// A folder, as the steps that lead to it from the one the call is made in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folder {
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// One `cd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where to: a path, which may be absolute or begin with `~` or one of [`PLACES`].
    pub to: String,
    /// Whether the call goes on where it was if there is no such folder. If not, nothing there is at risk.
    pub or_stay: bool,
}

impl Folder {
    /// This folder, left for another one.
    #[must_use]
    pub fn then(&self, to: &str) -> Folder {
        let mut steps = if is_absolute(to) { Vec::new() } else { self.steps.clone() };
        steps.push(Step { to: to.to_owned(), or_stay: false });
        Folder { steps }
    }
}
