//! What was done between a failure and its end. Two fixes of one cause teach what both have in common: a step that only one
//! of them took was not what helped.

use super::aim;
use super::deed::Deed;
use crate::Call;
use crate::fingerprint::{self, Fingerprint};

/// What was seen to help.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fix {
    /// What was done, in order, each once.
    pub deeds: Vec<Deed>,
    /// How the call itself was changed.
    pub change: Option<Change>,
}

/// A call that failed, and the one that went well in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What failed.
    pub from: String,
    /// What went well.
    pub to: String,
}

impl Fix {
    /// Reads what was done: `between` are the calls that went well after `failed` and before `worked`, in order.
    pub fn seen<'c>(failed: &Call, between: impl IntoIterator<Item = &'c Call>, worked: &Call) -> Fix {
        let own = aim::own_words(worked);
        let mut deeds: Vec<Deed> = Vec::new();
        let done = between.into_iter().flat_map(Deed::of);
        // What stood before the call in its own line was done for it.
        let before = Deed::of(worked).into_iter().filter(|deed| match deed {
            Deed::Ran { line } => {
                own.as_ref().is_some_and(|own| !line.ends_with(own.as_str()) && !own.contains(line.as_str()))
            }
            Deed::Edited { .. } | Deed::Called { .. } => false,
        });
        for deed in done.chain(before) {
            if !deeds.iter().any(|known| known.is_like(&deed)) {
                deeds.push(deed);
            }
        }
        let change = aim::changed(failed, worked, deeds.is_empty());
        Fix { deeds, change }
    }

    /// What calls did, whatever they were for.
    pub fn done<'c>(calls: impl IntoIterator<Item = &'c Call>) -> Fix {
        Fix { deeds: calls.into_iter().flat_map(Deed::of).collect(), change: None }
    }

    /// Are all its deeds among those of `other`, whatever became of the call itself?
    pub fn deeds_are_within(&self, other: &Fix) -> bool {
        self.deeds.iter().all(|deed| other.deeds.iter().any(|done| done.is_like(deed)))
    }

    /// Was nothing done? Then it passed by itself.
    pub fn is_empty(&self) -> bool {
        self.deeds.is_empty() && self.change.is_none()
    }

    /// The name by which the same fix is known again.
    pub fn print(&self) -> Fingerprint {
        let mut parts: Vec<String> = self
            .deeds
            .iter()
            .map(|deed| match deed {
                Deed::Ran { line } => format!("ran {line}"),
                Deed::Edited { file, .. } => format!("edited {file}"),
                Deed::Called { tool, target } => format!("called {tool} {target}"),
            })
            .collect();
        parts.extend(self.change.as_ref().map(|change| format!("changed {} {}", change.from, change.to)));
        fingerprint::of_parts("f1", &parts)
    }

    /// Is all of it among what was done in `other`?
    pub fn is_within(&self, other: &Fix) -> bool {
        self.deeds_are_within(other) && (self.change.is_none() || self.change == other.change)
    }

    /// What both have in common; nothing where that is nothing.
    pub fn common(&self, other: &Fix) -> Option<Fix> {
        let shared = |deed: &&Deed| other.deeds.iter().any(|done| done.is_like(deed));
        let deeds: Vec<Deed> = self.deeds.iter().filter(shared).cloned().collect();
        let change = self.change.clone().filter(|change| other.change.as_ref() == Some(change));
        let common = Fix { deeds, change };
        (!common.is_empty()).then_some(common)
    }

    /// Does it say how to change files? What was changed in them is not known, so it helps nobody who was not there.
    pub fn edits(&self) -> bool {
        self.deeds.iter().any(|deed| matches!(deed, Deed::Edited { .. }))
    }
}
