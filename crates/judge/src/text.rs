//! Words for people and models, in English and Simplified Chinese. Every text has a key and stands in `rules/`.

use std::borrow::Cow;

use crate::diagnose::Diagnosis;
use crate::kind::{Kind, vocabulary};
use crate::quote;
use crate::rules::builtin;

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
    /// Returns what the failure is about, as it can stand in a sentence: a name, or a quotation marked as data.
    pub fn named(&self, lang: Lang) -> Option<String> {
        self.subject.as_deref().map(|subject| quote::subject(subject, self.shape, lang))
    }

    /// Returns what the failure is about, for a field of its own: the bare name, or a quotation where it is no name of its shape.
    pub fn bare_name(&self) -> Option<Cow<'_, str>> {
        let subject = self.subject.as_deref()?;
        Some(match self.shape.fits(subject) {
            true => Cow::Borrowed(subject),
            false => Cow::Owned(quote::fenced(subject, quote::LINE)),
        })
    }

    /// Says what to do, most useful first. A remedy about `{it}` is left out where nobody knows what it is, and one with `{it}`
    /// in a command where it is no plain name.
    pub fn recommendations(&self, lang: Lang) -> Vec<String> {
        let filled = |key: &str| self.filled(remedy(key, lang)?, lang);
        let own: Vec<String> = self.advice.iter().filter_map(|key| filled(key)).collect();
        match own.is_empty() {
            true => self.kind.row().advice.iter().filter_map(|key| filled(key)).collect(),
            false => own,
        }
    }

    /// Fills a remedy in. What stands between backticks there is a command.
    fn filled(&self, text: &str, lang: Lang) -> Option<String> {
        if !text.contains("{it}") {
            return Some(text.to_owned());
        }
        let subject = self.subject.as_deref().filter(|subject| !subject.is_empty())?;
        let named = quote::subject(subject, self.shape, lang);
        let part = |(index, part): (usize, &str)| match (index % 2 == 1, part.contains("{it}")) {
            (_, false) => Some(part.to_owned()),
            (false, true) => Some(part.replace("{it}", &named)),
            (true, true) if self.shape.fits_command(subject) => Some(part.replace("{it}", subject)),
            (true, true) => None,
        };
        let parts: Option<Vec<String>> = text.split('`').enumerate().map(part).collect();
        parts.map(|parts| parts.join("`"))
    }
}
