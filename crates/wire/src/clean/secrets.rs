//! What is secret in a text, for texts that are made from it. A secret is known by what stands around it; a part of it that
//! was taken out of there looks like any other word.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::Cleaner;
use crate::redact;

/// Shorter parts could be any word.
const LEAST: usize = 6;
/// So much of a longer one is enough to know it by.
const STRETCH: usize = 8;
/// Nobody has more of them in one call; what is more is an attempt to keep us busy.
const MOST: usize = 64;

/// The parts of secrets that stood in some texts.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    // They are exactly what must not be told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Cleaner {
    /// What is secret in a text. Let it be short: all of it is read.
    pub fn secrets_in(&self, text: &[u8]) -> Secrets {
        let mut parts = Vec::new();
        for find in redact::finds(text, &self.known) {
            let secret = String::from_utf8_lossy(&text[find]);
            let edges =
                |sign: char| sign.is_whitespace() || matches!(sign, '"' | '\'' | '\\' | '`' | ',' | ';');
            parts.extend(secret.split(edges).filter(|part| part.len() >= LEAST).map(str::to_owned));
        }
        Secrets(parts).tidy()
    }
}

impl Secrets {
    /// These and others.
    pub fn and(mut self, others: Secrets) -> Secrets {
        self.0.extend(others.0);
        self.tidy()
    }

    /// Longest first, so that no part of one is left because another was cut out of its middle.
    fn tidy(mut self) -> Secrets {
        self.0.sort_by(|one, other| (other.len(), one).cmp(&(one.len(), other)));
        self.0.dedup();
        self.0.truncate(MOST);
        self
    }

    /// Cuts them out of a text that was made from the texts they stood in. Whoever made it may have left out a sign or two,
    /// so a stretch of a secret counts as well.
    pub fn cut<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.0.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut cut = String::new();
        let mut kept = 0;
        let mut at = 0;
        while at < text.len() {
            match self.stretch(&text[at..]) {
                0 => {}
                length => {
                    cut.push_str(&text[kept..at]);
                    cut.push_str("[redacted:secret]");
                    at += length;
                    kept = at;
                    continue;
                }
            }
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
        match kept {
            0 => Cow::Borrowed(text),
            _ => Cow::Owned(cut + &text[kept..]),
        }
    }

    /// How much of the beginning of `text` is a stretch of a secret.
    fn stretch(&self, text: &str) -> usize {
        let lengths = self.0.iter().map(|part| {
            let least = part.len().min(STRETCH);
            let is_in = |length: &usize| text.get(..*length).is_some_and(|begin| part.contains(begin));
            (least..=part.len()).take_while(is_in).last().unwrap_or(0)
        });
        lengths.max().unwrap_or(0)
    }

    /// The same for every text in a value.
    pub fn cut_from(&self, value: &mut Value) {
        if self.0.is_empty() {
            return;
        }
        match value {
            Value::String(text) => *text = self.cut(text).into_owned(),
            Value::Array(list) => list.iter_mut().for_each(|item| self.cut_from(item)),
            Value::Object(fields) => fields.values_mut().for_each(|item| self.cut_from(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, made: &str, expected: &str) {
        let cleaner = Cleaner::new(None, []);
        assert_eq!(cleaner.secrets_in(source.as_bytes()).cut(made), expected);
    }

    #[test]
    fn a_part_of_a_secret_is_known_outside_of_its_surroundings() {
        let source = "X_API_TOKEN=aB3dE5gH7jK9mN1pQ3\n    sT5vW7yZ9bC1dE3fG5 used";
        check(source, "sT5vW7yZ9bC1dE3fG5 used", "[redacted:secret] used");
        check(source, "run T5vW7yZ9bC1dE3fG", "run [redacted:secret]");
        check(source, "dE5gH7jK9, T5vW7yZ9b", "[redacted:secret], [redacted:secret]");
    }

    #[test]
    fn what_was_no_secret_stays() {
        let source = "password=hunter2hunter in /srv/app";
        check(source, "in /srv/app: hunter", "in /srv/app: hunter");
        check("cargo build --release", "cargo build", "cargo build");
    }
}
