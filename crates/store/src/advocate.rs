//! What speaks for a call that is about to be refused. Whoever runs calls knows more of the world than its record: files that
//! somebody else changed, and other words for the same thing. It is asked only then, and while nobody holds the database: the
//! transaction that has a question is given up, and begun anew when the answer is there.

use std::cell::RefCell;

use unstuck_judge::Need;
use unstuck_judge::ladder::Reason;
use unstuck_wire::clean::Clean;

use crate::rewritten::Rewritten;

/// So often a transaction is begun anew for one entry. A question that is still open then stays without an answer.
pub(crate) const ROUNDS: usize = 5;

/// When a call ran last: when it failed, or was answered as it would be now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    /// When it was asked for, in milliseconds since 1970.
    pub asked_at: u64,
    /// When it ended.
    pub ended_at: u64,
}

/// What a look at the cause of a failure shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// It was looked at, and is as it was when the call failed.
    Holds,
    /// It is not as it was.
    Moved,
    /// It cannot be looked at, or not in time.
    Unseen,
}

/// Speaks for one call.
pub trait Advocate {
    /// Does the cause of a failure still hold, or the answer of a look that is asked once more? Looked at now.
    fn check(&self, reason: &Reason, failed: Failed) -> Checked;

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

/// Something that only the advocate knows.
#[derive(Debug, Clone, PartialEq)]
enum Question {
    Check(Reason, Failed),
    Proposal(Reason),
    Stands(Need, u64),
    AnotherVersion(u64),
    Exchanged(String, String),
}

/// What it answered.
#[derive(Debug, Clone)]
enum Finding {
    Check(Checked),
    Proposal(Option<Proposal>),
    Stands(Stands),
    AnotherVersion(bool),
    Exchanged(Option<Rewritten>),
}

/// What is found out for one entry. A question whose answer is not known yet is noted, and answered as if nobody knew.
#[derive(Default)]
pub(crate) struct Inquiry<'a> {
    advocate: Option<&'a dyn Advocate>,
    found: RefCell<Vec<(Question, Finding)>>,
    open: RefCell<Vec<Question>>,
}

impl<'a> Inquiry<'a> {
    pub(crate) fn with(advocate: Option<&'a dyn Advocate>) -> Inquiry<'a> {
        Inquiry { advocate, ..Inquiry::default() }
    }

    /// Has something been asked that has no answer yet?
    pub(crate) fn is_open(&self) -> bool {
        !self.open.borrow().is_empty()
    }

    /// Answers what was asked.
    pub(crate) fn look(&self) {
        let Some(advocate) = self.advocate else { return };
        for question in self.open.take() {
            let finding = match &question {
                Question::Check(reason, failed) => Finding::Check(advocate.check(reason, *failed)),
                Question::Proposal(reason) => Finding::Proposal(advocate.proposal(reason)),
                Question::Stands(need, since) => Finding::Stands(advocate.stands(need, *since)),
                Question::AnotherVersion(since) => {
                    Finding::AnotherVersion(advocate.has_another_version(*since))
                }
                Question::Exchanged(from, to) => Finding::Exchanged(advocate.exchanged(from, to)),
            };
            self.found.borrow_mut().push((question, finding));
        }
    }

    pub(crate) fn check(&self, reason: &Reason, failed: Failed) -> Checked {
        match self.ask(Question::Check(reason.clone(), failed)) {
            Some(Finding::Check(checked)) => checked,
            _ => Checked::Unseen,
        }
    }

    pub(crate) fn proposal(&self, reason: &Reason) -> Option<Proposal> {
        match self.ask(Question::Proposal(reason.clone())) {
            Some(Finding::Proposal(proposal)) => proposal,
            _ => None,
        }
    }

    pub(crate) fn stands(&self, need: &Need, since: u64) -> Stands {
        match self.ask(Question::Stands(need.clone(), since)) {
            Some(Finding::Stands(stands)) => stands,
            _ => Stands::Unsaid,
        }
    }

    pub(crate) fn has_another_version(&self, since: u64) -> bool {
        matches!(self.ask(Question::AnotherVersion(since)), Some(Finding::AnotherVersion(true)))
    }

    pub(crate) fn exchanged(&self, from: &str, to: &str) -> Option<Rewritten> {
        match self.ask(Question::Exchanged(from.to_owned(), to.to_owned())) {
            Some(Finding::Exchanged(rewritten)) => rewritten,
            _ => None,
        }
    }

    fn ask(&self, question: Question) -> Option<Finding> {
        self.advocate?;
        let known = |(other, _): &&(Question, Finding)| *other == question;
        let found = self.found.borrow().iter().find(known).map(|(_, finding)| finding.clone());
        if found.is_none() {
            self.open.borrow_mut().push(question);
        }
        found
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
