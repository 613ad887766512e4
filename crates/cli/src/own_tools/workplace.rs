//! Where a tool of ours works: with which settings, and how far it may reach.

use std::path::{Path, PathBuf};

use unstuck::{Failure, ToolContext};
use unstuck_judge::{Lang, quote};
use unstuck_vault::{Progress, Snapshot, Watch};

use crate::cellar::Cellar;
use crate::exit::{CommandError, ExitStatus};
use crate::whereabouts::{self, Here};

/// Where the tools work.
pub(crate) struct Workplace {
    /// Settings of this run.
    flags: Vec<String>,
    /// A person lets them reach beyond the folder they were started in.
    anywhere: bool,
    lang: Lang,
}

impl Workplace {
    pub(crate) fn new(flags: &[String], anywhere: bool) -> Workplace {
        let lang = Cellar::for_hooks(flags).settings.language().model;
        Workplace { flags: flags.to_vec(), anywhere, lang }
    }

    /// The way to the store, with the settings as they are now.
    pub(super) fn cellar(&self) -> Cellar {
        Cellar::for_hooks(&self.flags)
    }

    /// The language of what is said to models.
    pub(super) fn lang(&self) -> Lang {
        self.lang
    }

    /// May everything be reached?
    pub(super) fn reaches_everything(&self) -> bool {
        self.anywhere
    }

    /// The folder it was started in.
    pub(super) fn folder(&self) -> Result<PathBuf, CommandError> {
        whereabouts::folder()
    }

    /// An error in words that a model can act on.
    pub(super) fn failure(&self, error: &CommandError) -> Failure {
        let said = error.in_words(self.lang);
        let failure = match error.status() {
            // Somebody named what is not there, or asked for what cannot be.
            ExitStatus::No | ExitStatus::Usage => Failure::invalid(said),
            ExitStatus::Success | ExitStatus::Unwell | ExitStatus::Failed | ExitStatus::Command(_) => {
                Failure::expected(said)
            }
        };
        match error.hint(self.lang) {
            Some(hint) => failure.recommend(hint),
            None => failure,
        }
    }

    /// Fails where a path lies elsewhere.
    pub(super) fn must_hold(&self, here: &Here, path: &Path) -> Result<(), Failure> {
        match self.anywhere || here.holds(path) {
            true => Ok(()),
            false => Err(self.outside(here, path)),
        }
    }

    /// Fails where a snapshot holds something that lies elsewhere.
    pub(super) fn must_hold_all_of(&self, here: &Here, snapshot: &Snapshot) -> Result<(), Failure> {
        snapshot.scopes.iter().try_for_each(|scope| self.must_hold(here, &scope.path))
    }

    fn outside(&self, here: &Here, path: &Path) -> Failure {
        let [path, folder] =
            [path, here.project()].map(|path| quote::bare(&path.to_string_lossy()).into_owned());
        let (said, advice) = match self.lang {
            Lang::En => (
                format!("{path} lies outside {folder}, and this server does not reach further"),
                "name paths inside that folder, or ask the user to start the server with --anywhere",
            ),
            Lang::Zh => (
                format!("{path} 在 {folder} 之外，此服务器不会触及那里"),
                "请使用该文件夹内的路径，或请用户以 --anywhere 启动服务器",
            ),
        };
        Failure::invalid(said).recommend(advice)
    }
}

/// Whoever waits for the safe stops it by giving up the call.
pub(super) struct Waiting(pub(super) ToolContext);

impl Watch for Waiting {
    fn goes_on(&self, _progress: Progress) -> bool {
        !self.0.is_cancelled()
    }
}
