//! The older words of the field for the same things, computed from the diagnosis and `rules/kinds.toml`, and never asked.

use crate::diagnose::Diagnosis;
use crate::kind::{Kind, Stage};
use crate::verdict::{Again, FixBy, Verdict};

/// Four older vocabularies. A word is `None` where the old vocabulary has none for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aliases {
    /// `validation`, `runtime`, `logical`, `aborted` or `exception`.
    pub error_type: Option<&'static str>,
    /// `temporary`, `code`, `environment` or `unrecoverable`.
    pub category: Option<&'static str>,
    /// `success`, `network_err`, `timeout`, `rate_limited`, `parse_err`, `permission_err`, `exec_failed` or `api_err`.
    pub tag: &'static str,
    /// May the same call run again, now or later? `None` while the cause is unknown.
    pub retryable: Option<bool>,
}

impl Aliases {
    /// Translates a diagnosis and its verdict.
    pub fn of(diagnosis: &Diagnosis, verdict: &Verdict) -> Aliases {
        let row = diagnosis.kind.row();
        let word = |word: &'static str| Some(word).filter(|word| !word.is_empty());
        Aliases {
            error_type: match diagnosis.stage {
                Some(Stage::Rejected) => Some("validation"),
                Some(Stage::Interrupted | Stage::TimedOut) => Some("aborted"),
                Some(Stage::Threw | Stage::Reported | Stage::Exited) | None => word(row.error_type),
            },
            category: match (diagnosis.transient, diagnosis.fix_by, row.category) {
                (true, _, _) => Some("temporary"),
                // What could have healed by waiting, but will not here, needs the environment to change.
                (false, _, "temporary") => Some("environment"),
                (false, FixBy::Person, _) => word(row.by_person),
                (false, _, other) => word(other),
            },
            tag: row.tag,
            retryable: match (diagnosis.kind, verdict.again) {
                (Kind::Unknown, _) => None,
                (_, Again::Now | Again::After(_)) => Some(true),
                (_, Again::IfChanged | Again::Never) => Some(false),
            },
        }
    }
}
