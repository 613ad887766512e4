//! How a call came to be known. Whoever may write to a door may also forge what comes through it, so a lesson keeps with
//! each of its wins how that win came to be known, and only what was watched counts for showing it.

use unstuck_judge::vocabulary;

vocabulary! {
    /// How a call came to be known, the surest way first.
    #[derive(Default)]
    Source {
        /// Unstuck ran it itself, or stood between the agent and its server.
        Ran = "ran",
        /// A hook told of it, and the agent program itself started that hook.
        Hook = "hook",
        /// A door to which anybody may write.
        Told = "told",
        /// A file.
        File = "file",
        /// An older version, which did not write it down.
        #[default]
        Unknown = "unknown",
    }
}

/// The words of [`Source::is_watched`], for a condition in SQL.
pub(crate) const WATCHED: &str = "('ran', 'hook')";

impl Source {
    /// Did unstuck see the call itself?
    pub fn is_watched(self) -> bool {
        match self {
            Source::Ran | Source::Hook => true,
            Source::Told | Source::File | Source::Unknown => false,
        }
    }

    /// The less sure one of two.
    #[must_use]
    pub fn and(self, other: Source) -> Source {
        self.max(other)
    }

    /// The source that a word of the store names; one that only a newer version knows is not known.
    pub(crate) fn stored(word: &str) -> Source {
        word.parse().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_watched_is_what_the_condition_names() {
        for source in Source::ALL {
            assert_eq!(WATCHED.contains(&format!("'{}'", source.word())), source.is_watched(), "{source:?}");
        }
        assert_eq!(Source::Hook.and(Source::File), Source::File);
        assert_eq!(Source::Ran.and(Source::Hook), Source::Hook);
    }
}
