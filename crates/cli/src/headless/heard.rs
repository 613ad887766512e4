//! What one line of an agent's output tells, in our words. One file per program knows theirs.

/// One thing that is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The session has this name.
    Session(String),
    /// The model said this; the last that it says is its answer.
    Said(String),
    /// The model said one more piece of the same.
    SaidMore(String),
    /// The model used a tool, or thought about it: the session has moved.
    Acted,
    /// Something went wrong that the program may get over by itself.
    Trouble(String),
    /// The run ended well, with this answer where it is told once more.
    EndedWell(Option<String>),
    /// The run ended badly, for this reason.
    EndedBadly(String),
}

impl Heard {
    /// A session by its name.
    pub(super) fn session(name: &str) -> Heard {
        Heard::Session(name.to_owned())
    }
}
