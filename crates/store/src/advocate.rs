//! What speaks for a call that is about to be refused. Whoever runs calls knows more of the world than its record: files that
//! somebody else changed, and other words for the same thing. It is asked only then, so it may take its time.

use unstuck_judge::Need;
use unstuck_judge::ladder::Reason;
use unstuck_wire::clean::Clean;

use crate::rewritten::Rewritten;

/// Speaks for one call.
pub trait Advocate {
    /// Did something that the call depends on change after a moment, in milliseconds since 1970, without our having seen it?
    fn has_moved(&self, reason: &Reason, since: u64) -> bool;

    /// Another call that could take its place.
    fn proposal(&self, reason: &Reason) -> Option<Proposal> {
        let _ = reason;
        None
    }

    /// Is something still missing that was missing at a moment, in milliseconds since 1970?
    fn stands(&self, need: &Need, since: u64) -> Stands {
        let _ = (need, since);
        Stands::Unsaid
    }

    /// Was the program that it runs exchanged after a moment, in milliseconds since 1970, as an update does?
    fn has_another_version(&self, since: u64) -> bool {
        let _ = since;
        false
    }

    /// The call with these words in place of those, which a person approved; nothing where it cannot run so.
    fn exchanged(&self, from: &str, to: &str) -> Option<Rewritten> {
        let _ = (from, to);
        None
    }
}

/// Whether something is still as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// It was looked at, and is.
    Yes,
    /// It was looked at, and is not.
    No,
    /// It cannot be looked at.
    Unsaid,
}

/// What to do about a call that another could take the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// It runs in its place.
    Run(Rewritten),
    /// It is suggested, in these words.
    Say(Clean),
}
