//! What speaks for a call that is about to be refused. Whoever runs calls knows more of the world than its record: files that
//! somebody else changed, and other words for the same thing. It is asked only then, so it may take its time.

use unstuck_judge::ladder::Reason;
use unstuck_wire::clean::Clean;

use crate::rewritten::Rewritten;

/// Speaks for one call.
pub trait Advocate {
    /// Did something that the call depends on change after a moment, in milliseconds since 1970, without our having seen it?
    fn has_moved(&self, reason: &Reason, since: u64) -> bool;

    /// Another call that could take its place.
    fn proposal(&self, reason: &Reason) -> Option<Proposal>;
}

/// What to do about a call that another could take the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// It runs in its place.
    Run(Rewritten),
    /// It is suggested, in these words.
    Say(Clean),
}
