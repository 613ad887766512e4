//! A rule for when somebody is told: a value only. Who counts, and who delivers, is elsewhere.

use std::time::Duration;

use unstuck_judge::{Kind, Lang};
use unstuck_wire::time;

/// When an alert fires, on what, and whom it tells beside the timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertRule {
    /// Unique among all rules.
    pub name: String,
    /// One that is switched off stays in the list, so that it can be seen.
    pub enabled: bool,
    /// What is counted, and how much is too much.
    pub when: AlertWhen,
    /// The window that is looked at; the alert fires once in each.
    pub within: Duration,
    /// What is counted at all.
    pub only: AlertFilter,
    /// What it says, in English and Chinese.
    say: [String; 2],
    /// A program and its arguments; empty where none is run.
    pub command: Vec<String>,
    /// An http or https address.
    pub webhook: Option<String>,
}

/// What is counted, and how much is too much.
#[derive(Debug, Clone, PartialEq)]
pub enum AlertWhen {
    /// More failures than this.
    Failures {
        /// Fires above this number.
        more_than: u64,
    },
    /// The share of failures grew by this factor over the window before; fewer calls than these prove nothing.
    Rate {
        /// Above 1.
        factor: f64,
        /// In the window.
        least_calls: u64,
    },
    /// More events of this type than this.
    Event {
        /// The type of event.
        event: String,
        /// Fires above this number.
        more_than: u64,
    },
}

/// What is counted at all. What is not named does not matter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AlertFilter {
    /// The cause.
    pub kind: Option<Kind>,
    /// The older word for where a failure lies: validation, runtime, logical, aborted or exception.
    pub error_type: Option<&'static str>,
    /// The tool's name.
    pub tool: Option<String>,
    /// The agent's name.
    pub agent: Option<String>,
}

impl AlertRule {
    /// A rule that says `say`, in English and Chinese, and tells the timeline alone.
    pub fn new(name: String, when: AlertWhen, within: Duration, say: [String; 2]) -> AlertRule {
        let only = AlertFilter::default();
        AlertRule { name, enabled: true, when, within, only, say, command: Vec::new(), webhook: None }
    }

    /// How long a window is, in milliseconds; never nothing.
    pub(crate) fn window_ms(&self) -> u64 {
        time::span_ms(self.within).max(1)
    }

    /// Where the window of a moment begins; windows are counted from 1970.
    pub fn window_at(&self, moment: u64) -> u64 {
        moment - moment % self.window_ms()
    }

    /// What it says.
    pub fn say(&self, lang: Lang) -> &str {
        &self.say[lang as usize]
    }
}
