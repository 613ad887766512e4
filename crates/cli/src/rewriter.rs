//! Calls that can be put right without a guess, as the settings allow it on this machine.

use std::path::PathBuf;

use unstuck_judge::ladder::Reason;
use unstuck_judge::rewrite::{self, Rewrite};
use unstuck_judge::{Call, Kind};

use crate::machine::ThisMachine;
use crate::settings::{RewriteMode, RewriteSettings};

/// Looks for a call that can take the place of one that fails.
pub(crate) struct Rewriter {
    pub(crate) settings: RewriteSettings,
    pub(crate) home: Option<PathBuf>,
}

/// A failure, as it is diagnosed now or was kept of an earlier call.
#[derive(Clone, Copy)]
pub(crate) struct Because<'a> {
    pub(crate) kind: Kind,
    pub(crate) rule: &'a str,
    /// The line that shows it.
    pub(crate) line: Option<&'a str>,
}

impl<'a> Because<'a> {
    /// What was kept of an earlier call.
    pub(crate) fn of(reason: &'a Reason) -> Because<'a> {
        Because { kind: reason.kind, rule: &reason.rule, line: Some(&reason.line) }
    }
}

impl Rewriter {
    /// A proposal, and how far it may go; none where the settings want none.
    pub(crate) fn propose(
        &self,
        call: &Call,
        because: Because<'_>,
        folder: &str,
    ) -> Option<(Rewrite, RewriteMode)> {
        let folder = Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute());
        let machine = ThisMachine::here(self.home.clone(), folder);
        let rewrite = rewrite::propose(call, because.kind, because.rule, because.line, &machine)?;
        match self.settings.of(rewrite.row) {
            RewriteMode::Off => None,
            mode @ (RewriteMode::Suggest | RewriteMode::Auto) => Some((rewrite, mode)),
        }
    }
}
