//! What of ours is in a text that a model received: told by the fixed words of `rules/ladder-texts.toml`, so that a change of
//! the wording changes no scenario.

use std::fs;

use toml::Table;

use crate::{Fault, project};

/// What every refusal begins with.
pub const REFUSAL: &str = "Blocked by unstuck";

/// The fixed words of every text, with the rung at which it is said.
#[derive(Debug, Clone)]
pub struct Words {
    texts: Vec<(Rung, String)>,
}

/// How much was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// The cause was explained.
    Note,
    /// That a repeat does not help.
    Hint,
    /// The call was refused, or the run was stopped.
    Refusal,
}

impl Words {
    /// Reads them from the rules.
    pub fn read() -> Result<Words, Fault> {
        let table: Table = fs::read_to_string(project::root().join("rules/ladder-texts.toml"))?.parse()?;
        let mut texts = Vec::new();
        for (key, said) in &table {
            let rung = match key.rsplit('.').next() {
                Some("note") => Rung::Note,
                Some("hint" | "insist") => Rung::Hint,
                Some("deny" | "halt") => Rung::Refusal,
                _ => continue,
            };
            let said = said["en"].as_str().ok_or_else(|| format!("{key} has no English text"))?;
            texts.push((rung, longest_fixed(said).to_owned()));
        }
        Ok(Words { texts })
    }

    /// The highest rung that is heard in a text.
    pub fn heard(&self, text: &str) -> Option<Rung> {
        let marked = text.contains(REFUSAL).then_some(Rung::Refusal);
        // Dialects quote newlines and signs in their own ways, but none of them breaks words.
        let said = self.texts.iter().filter(|(_, words)| text.contains(words)).map(|(rung, _)| *rung);
        said.chain(marked).max()
    }
}

/// The longest run of words between two gaps that are filled in later.
fn longest_fixed(text: &str) -> &str {
    let fixed = text.split(['{', '}']).step_by(2);
    fixed.max_by_key(|words| words.len()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_by_its_fixed_words() {
        let words = Words::read().unwrap();
        let hint = "tool result\nThis is failure number 2 with the same cause: x (y). A repeat gives the same result until \
                    something relevant changes; reading, searching and any other approach remain open.";
        assert_eq!(words.heard(hint), Some(Rung::Hint));
        assert_eq!(words.heard("Blocked by unstuck: whatever"), Some(Rung::Refusal));
        assert_eq!(words.heard("gauge 7 disagrees with gauge 4"), None);
    }

    #[test]
    fn no_text_is_known_by_words_so_short_that_others_say_them() {
        for (rung, words) in Words::read().unwrap().texts {
            assert!(words.len() >= 20, "{rung:?}: {words:?}");
        }
    }
}
