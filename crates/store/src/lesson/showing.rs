//! The one place that says whether a lesson is shown to an agent, and why.

use unstuck_judge::lesson::{Caution, Standing};
use unstuck_judge::vocabulary;

use super::{Known, LessonState};

vocabulary! {
    /// Why a lesson is shown, or why it is not.
    Showing {
        /// It is: a person approved it.
        Approved = "approved",
        /// It is: it won here, or in several places.
        Trusted = "trusted",
        /// It is not: it could do harm, and nobody has approved it.
        Cautious = "cautious",
        /// It is not: it won in one other place only.
        Elsewhere = "elsewhere",
        /// It is not: it was learnt on another machine, and has not won here.
        Untried = "untried",
        /// It is not: nobody watched it help.
        Unwatched = "unwatched",
        /// It is not: it lost more often than it won.
        Doubtful = "doubtful",
        /// It is not: it stopped working.
        Quarantined = "quarantined",
        /// It is not: what others showed to be the core of it is a lesson of its own.
        Merged = "merged",
        /// It is not: a person does not want it.
        Forgotten = "forgotten",
        /// It is not: files were edited, and what was changed in them is not known.
        Edits = "edits",
        /// It is not: what helped cannot be read.
        Unreadable = "unreadable",
    }
}

impl Showing {
    /// Is it shown?
    pub fn is_shown(self) -> bool {
        match self {
            Showing::Approved | Showing::Trusted => true,
            Showing::Cautious
            | Showing::Elsewhere
            | Showing::Untried
            | Showing::Unwatched
            | Showing::Doubtful
            | Showing::Quarantined
            | Showing::Merged
            | Showing::Forgotten
            | Showing::Edits
            | Showing::Unreadable => false,
        }
    }
}

impl Known {
    /// Is it shown to an agent that works in the place that was asked about?
    pub(crate) fn showing(&self) -> Showing {
        let is_imported = match self.state {
            LessonState::Forgotten => return Showing::Forgotten,
            LessonState::Merged => return Showing::Merged,
            LessonState::Quarantined => return Showing::Quarantined,
            LessonState::Approved | LessonState::Seen => false,
            LessonState::Imported => true,
        };
        if self.fix.is_empty() {
            return Showing::Unreadable;
        }
        if self.fix.edits() {
            return Showing::Edits;
        }
        match (self.record.standing(), self.state) {
            (Standing::Quarantined, _) => Showing::Quarantined,
            (_, LessonState::Approved) => Showing::Approved,
            // What was thought harmless when it was learnt may be known better by now.
            _ if self.caution || Caution::about(&self.fix).is_some() => Showing::Cautious,
            (Standing::Doubtful, _) => Showing::Doubtful,
            // It has to be seen to work here once; then it is as good as any.
            _ if is_imported && self.wins == 0 => Showing::Untried,
            _ if self.watched == 0 => Showing::Unwatched,
            _ if is_imported && !self.record.won_here => Showing::Untried,
            (Standing::Elsewhere, _) => Showing::Elsewhere,
            (Standing::Trusted, _) => Showing::Trusted,
        }
    }
}
