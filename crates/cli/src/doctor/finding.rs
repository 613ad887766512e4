//! What was found: how bad it is, what it concerns, and what to do. Values only.

use unstuck_judge::{Lang, vocabulary};

vocabulary! {
    /// How bad it is.
    Severity {
        /// It is as it should be.
        Ok = "ok",
        /// Worth knowing; nothing has to be done.
        Note = "note",
        /// Something does not work as it should.
        Warning = "warning",
        /// Something does not work at all.
        Error = "error",
    }
}

impl Severity {
    pub(crate) fn in_words(self, lang: Lang) -> &'static str {
        match (self, lang) {
            (severity, Lang::En) => severity.word(),
            (Severity::Ok, Lang::Zh) => "正常",
            (Severity::Note, Lang::Zh) => "提示",
            (Severity::Warning, Lang::Zh) => "警告",
            (Severity::Error, Lang::Zh) => "错误",
        }
    }

    /// Should a person do something about it?
    pub(crate) fn is_bad(self) -> bool {
        match self {
            Severity::Ok | Severity::Note => false,
            Severity::Warning | Severity::Error => true,
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// `unstuck`, `store`, or the agent it concerns.
    pub(crate) about: String,
    /// The word for what was looked at, in JSON.
    pub(crate) check: &'static str,
    pub(crate) what: String,
    /// What to do about it, where something helps.
    pub(crate) todo: Option<String>,
}
