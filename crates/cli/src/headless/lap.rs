//! What is remembered of one attempt beside how it ended.

/// One attempt of an agent.
#[derive(Debug, Clone)]
pub(crate) struct Lap {
    pub(crate) began: Began,
    /// Did the model say or do anything?
    pub(crate) has_moved: bool,
    pub(crate) answer: String,
    /// The last of what it printed.
    pub(crate) last: String,
}

/// How an attempt began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Began {
    /// In a new session.
    Anew,
    /// In the session that was there.
    Resumed,
}

impl Began {
    /// The word for it in JSON.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Began::Anew => "new",
            Began::Resumed => "resumed",
        }
    }
}
