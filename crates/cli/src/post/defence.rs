//! What speaks for a call that is about to be refused: files that somebody else changed meanwhile, and other words for it.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use unstuck_judge::ladder::Reason;
use unstuck_judge::rewrite::Rewrite;
use unstuck_judge::{Call, Condition, Lang, Need, fingerprint, rewrite};
use unstuck_store::{Advocate, Checked, Failed, Proposal, Rewritten, Stands};
use unstuck_wire::clean::Cleaner;
use unstuck_wire::hook::Honours;

use super::reply;
use crate::outside;
use crate::rewriter::{Because, Rewriter};
use crate::same_name;
use crate::settings::RewriteMode;

/// Speaks for one call.
pub(super) struct Defence<'a> {
    pub(super) call: &'a Call,
    /// The working folder.
    pub(super) folder: String,
    pub(super) home: Option<&'a Path>,
    /// Is it asked for now?
    pub(super) is_live: bool,
    pub(super) honours: Honours,
    pub(super) rewriter: Option<Rc<Rewriter>>,
    pub(super) cleaner: &'a Cleaner,
    pub(super) lang: Lang,
    /// What was found to run in its place.
    pub(super) found: RefCell<Option<Rewrite>>,
}

impl Advocate for Defence<'_> {
    fn check(&self, reason: &Reason, failed: Failed) -> Checked {
        match self.is_live {
            true => outside::check(self.call, &self.folder, self.home, reason, failed),
            // Of what happened long ago the files of today tell nothing: nothing else is taken to have changed.
            false => Checked::Holds,
        }
    }

    /// Where the person wants it and the program heeds it, other words run in place of the call.
    fn proposal(&self, reason: &Reason) -> Option<Proposal> {
        if let (Condition::NoPath(missing), true) = (&reason.condition, self.is_live) {
            let place = same_name::told(missing, self.call, &self.folder, self.home, self.lang);
            if let Some(place) = place {
                return Some(Proposal::Say(self.cleaner.line(&place, 300)));
            }
        }
        let (rewrite, mode) =
            self.rewriter.as_ref()?.propose(self.call, Because::of(reason), &self.folder)?;
        if mode != RewriteMode::Auto || !self.honours.rewrite {
            return Some(Proposal::Say(self.cleaner.line(&rewrite.text(self.lang), 300)));
        }
        Some(Proposal::Run(self.to_run(rewrite)))
    }

    fn stands(&self, need: &Need, since: u64) -> Stands {
        match self.is_live {
            true => outside::stands(need, &self.folder, self.home, since),
            false => Stands::Unsaid,
        }
    }

    fn has_another_version(&self, since: u64) -> bool {
        self.is_live && outside::has_another_version(self.call, &self.folder, since)
    }

    fn exchanged(&self, from: &str, to: &str) -> Option<Rewritten> {
        let wanted = self.rewriter.as_ref().is_some_and(|rewriter| rewriter.settings.is_on());
        // What was cut out of the words when they were kept cannot be run.
        let is_whole = !to.contains("[redacted:");
        if !(wanted && is_whole && self.honours.rewrite) {
            return None;
        }
        rewrite::learned(self.call, from, to).map(|rewrite| self.to_run(rewrite))
    }
}

impl Defence<'_> {
    /// Keeps what runs in place of the call, and says what is written down of it.
    fn to_run(&self, rewrite: Rewrite) -> Rewritten {
        let told = || self.cleaner.line(&reply::rewritten(&rewrite, self.lang), 600);
        let rewritten = Rewritten {
            row: rewrite.row,
            from: self.cleaner.line(&rewrite.from, 200),
            to: self.cleaner.line(&rewrite.to, 200),
            call: fingerprint::call(&Call::new(&self.call.tool, rewrite.input.clone())),
            tell_later: (!self.honours.tell).then(told),
        };
        self.found.replace(Some(rewrite));
        rewritten
    }
}
