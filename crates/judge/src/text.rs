//! Words for people and models, in English and Simplified Chinese. Every text has a key and stands in `rules/`.

use crate::diagnose::Diagnosis;
use crate::kind::{Kind, vocabulary};
use crate::rules::builtin;

/// What of a subject is quoted; a hostile file name must not become a speech.
const SUBJECT_MAX: usize = 120;

vocabulary! {
    /// The language of texts. Keys, kinds and codes stay English.
    Lang {
        /// English.
        En = "en",
        /// Simplified Chinese.
        Zh = "zh",
    }
}

impl Kind {
    /// The cause in a few words, for people.
    pub fn title(self, lang: Lang) -> &'static str {
        self.row().title[lang as usize]
    }
}

/// Returns the text of a remedy, as it is written.
pub fn remedy(key: &str, lang: Lang) -> Option<&'static str> {
    let at = builtin::REMEDIES.binary_search_by(|(other, _)| (*other).cmp(key)).ok()?;
    Some(builtin::REMEDIES[at].1[lang as usize])
}

impl Diagnosis {
    /// Says what to do, most useful first. A remedy about `{it}` is left out where nobody knows what it is.
    pub fn recommendations(&self, lang: Lang) -> Vec<String> {
        let subject = self.subject.as_deref().map(quotable);
        let fill = |text: &'static str| match (text.contains("{it}"), &subject) {
            (false, _) => Some(text.to_owned()),
            (true, Some(subject)) => Some(text.replace("{it}", subject)),
            (true, None) => None,
        };
        let own: Vec<String> =
            self.advice.iter().filter_map(|key| remedy(key, lang).and_then(fill)).collect();
        match own.is_empty() {
            true => {
                self.kind.row().advice.iter().filter_map(|key| remedy(key, lang).and_then(fill)).collect()
            }
            false => own,
        }
    }
}

/// Makes text from an output safe to stand inside our own sentence: one short line, no quotes that could end the quotation.
fn quotable(subject: &str) -> String {
    let clean = subject.chars().map(|sign| if sign.is_control() || sign == '`' { ' ' } else { sign });
    clean.take(SUBJECT_MAX).collect::<String>().trim().to_owned()
}
