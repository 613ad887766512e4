//! A rule for when somebody is told: a value only. Who counts, and who delivers, is elsewhere.

use std::time::Duration;

use unstuck_judge::{Kind, Lang};

/// When an alert fires, on what, and whom it tells beside the timeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AlertRule {
    pub(crate) name: String,
    pub(crate) enabled: bool,
    pub(crate) when: AlertWhen,
    /// The window that is looked at; the alert fires once in each.
    pub(crate) within: Duration,
    pub(crate) only: AlertFilter,
    /// What it says, in English and Chinese.
    say: [String; 2],
    /// A program and its arguments; empty where none is run.
    pub(crate) command: Vec<String>,
    pub(crate) webhook: Option<String>,
}

/// What is counted, and how much is too much.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AlertWhen {
    /// More failures than this.
    Failures { more_than: u64 },
    /// The share of failures grew by this factor over the window before; fewer calls than these prove nothing.
    Rate { factor: f64, least_calls: u64 },
    /// More events of this type than this.
    Event { event: String, more_than: u64 },
}

/// What is counted at all. What is not named does not matter.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AlertFilter {
    pub(crate) kind: Option<Kind>,
    pub(crate) error_type: Option<&'static str>,
    pub(crate) tool: Option<String>,
    pub(crate) agent: Option<String>,
}

impl AlertRule {
    /// A rule that says `say`, in English and Chinese, and tells the timeline alone.
    pub(crate) fn new(name: String, when: AlertWhen, within: Duration, say: [String; 2]) -> AlertRule {
        let only = AlertFilter::default();
        AlertRule { name, enabled: true, when, within, only, say, command: Vec::new(), webhook: None }
    }

    pub(crate) fn say(&self, lang: Lang) -> &str {
        &self.say[lang as usize]
    }
}
