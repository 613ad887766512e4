//! Lists of words in constants.

/// Words in one text, with blanks between them. A slice would hold a pointer for each of them, and every pointer in a constant
/// costs each start of the program a little.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Words(pub &'static str);

impl Words {
    pub(crate) fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.split_ascii_whitespace()
    }

    pub(crate) fn contains(self, word: &str) -> bool {
        self.iter().any(|one| one == word)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}
