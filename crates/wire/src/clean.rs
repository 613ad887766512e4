//! Text that may be stored and shown. (Placeholder until the real cleaner is merged.)
#![allow(missing_docs)]
use crate::redact::redact;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize)]
pub struct Clean(String);
impl std::ops::Deref for Clean {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}
impl std::fmt::Display for Clean {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}
impl From<&'static str> for Clean {
    fn from(text: &'static str) -> Clean {
        Clean(text.to_owned())
    }
}
impl Clean {
    pub fn stored(text: String) -> Clean {
        Clean(text)
    }
    pub fn into_string(self) -> String {
        self.0
    }
}
#[derive(Debug)]
pub struct Cleaner;
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CleanOutput {
    pub head: Clean,
    pub tail: Clean,
    pub omitted: u64,
}
impl Cleaner {
    pub fn new(_home: Option<&str>, _environment: impl IntoIterator<Item = (String, String)>) -> Cleaner {
        Cleaner
    }
    pub fn line(&self, text: &str, max: usize) -> Clean {
        Clean(redact(text).chars().map(|c| if c.is_control() { ' ' } else { c }).take(max).collect())
    }
    pub fn name(&self, text: &str, max: usize) -> Clean {
        self.line(text, max)
    }
    pub fn text(&self, text: &str, max: usize) -> Clean {
        Clean(redact(text).chars().take(max).collect())
    }
    pub fn json(&self, value: &Value, max: usize) -> Clean {
        self.line(&value.to_string(), max)
    }
    pub fn output(&self, bytes: &[u8], head: usize, _tail: usize) -> CleanOutput {
        CleanOutput {
            head: self.text(&String::from_utf8_lossy(bytes), head),
            tail: Clean::default(),
            omitted: 0,
        }
    }
}
