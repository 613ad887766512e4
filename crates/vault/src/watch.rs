//! Whoever waits for a long piece of work: is told how far it is, and may end it.

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Files are looked at.
    Looking,
    /// Files are read and put away.
    Keeping,
    /// What differs is made ready beside the tree.
    Preparing,
    /// It is put into its place.
    Placing,
    /// What was written is read again.
    Verifying,
    /// What nobody needs any more is removed.
    Removing,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// How many files or records are done.
    pub done: u64,
    /// How many there are in all; 0 while nobody knows.
    pub of: u64,
    /// How many bytes were read or written.
    pub bytes: u64,
}

/// Watches over a piece of work. Asked every few hundred files, by any of several threads.
pub trait Watch: Sync {
    /// Tells how far it is; `false` ends it as soon as that leaves everything whole.
    fn goes_on(&self, progress: Progress) -> bool;
}

/// Nobody watches: it goes on until it is done.
pub struct Unwatched;

impl Watch for Unwatched {
    fn goes_on(&self, _progress: Progress) -> bool {
        true
    }
}
