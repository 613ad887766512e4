//! What a risky call would touch on this machine: its targets as absolute paths that the safe can take.
//!
//! It looks at names, links and a few small files of git, and never runs or changes anything. A folder that is too much to
//! be taken as a whole (`/`, the home, `/usr`) is never widened to: it is said, so that somebody can be asked.

use std::path::{Path, PathBuf};

use unstuck_judge::risk::Risk;
use unstuck_vault::Rebuildable;

/// What of this machine a call puts at risk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AtRisk {
    /// Nothing that is there.
    Nothing,
    /// These paths.
    Scopes {
        /// Absolute, each once, links in their parents followed.
        paths: Vec<PathBuf>,
        /// What becomes of folders in them that can be made again.
        rebuildable: Rebuildable,
    },
    /// More than can be taken as a whole.
    TooWide {
        /// The folder.
        path: PathBuf,
    },
}

/// Finds what `risk` means for a call that is made in `cwd`.
pub(crate) fn at_risk(risk: &Risk, cwd: &Path, home: Option<&Path>) -> AtRisk {
    let _ = (risk, cwd, home);
    AtRisk::Nothing
}
