//! What is secret in a text, for texts that are made from it. A secret is known by what stands around it; a part of it that
//! was taken out of there looks like any other word.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::Cleaner;
use crate::redact;

/// Shorter parts could be any word.
const LEAST: usize = 6;
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

    /// Cuts them out of a text that was made from the texts they stood in.
    pub fn cut<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut cut = Cow::Borrowed(text);
        for part in self.0.iter().filter(|part| text.contains(part.as_str())) {
            cut = Cow::Owned(cut.replace(part.as_str(), "[redacted:secret]"));
        }
        cut
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
