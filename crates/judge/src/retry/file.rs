//! The shape of `retry.toml` as a person writes it: every cell may be left out, and no unknown key is let in.
//!
//! The build script compiles the built-in table through this same file, so it must know nothing of the rest of the crate:
//! kinds are still words here.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

/// No row, tool or agent gets more retries than this.
pub const MOST_RETRIES: u8 = 5;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    pub deadline: Option<Span>,
    pub jitter: Option<JitterWord>,
    pub spread: Option<Span>,
    #[serde(default)]
    pub kinds: BTreeMap<Spanned<String>, KindTable>,
    #[serde(default)]
    pub tools: BTreeMap<String, Retries>,
    #[serde(default)]
    pub agents: BTreeMap<String, Retries>,
    #[serde(default)]
    pub hints: HintTable,
    #[serde(default)]
    pub budget: BudgetTable,
    #[serde(default)]
    pub host: HostTable,
    #[serde(default)]
    pub breaker: BreakerTable,
    #[serde(default)]
    pub past_yield: YieldTable,
}

/// One row of the matrix.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindTable {
    pub retries: Option<Retries>,
    pub most_retries: Option<Retries>,
    pub first_wait: Option<Span>,
    pub longest_wait: Option<Span>,
    pub limit_growth: Option<Growth>,
    pub cost: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HintTable {
    pub longest_wait: Option<Span>,
    pub longest_believed: Option<Span>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetTable {
    pub max: Option<u32>,
    pub regain: Option<u32>,
    pub refund_percent: Option<Percent>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTable {
    pub retries: Option<u32>,
    pub per: Option<Span>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BreakerTable {
    pub window: Option<Window>,
    pub least_calls: Option<Window>,
    pub trip_percent: Option<Percent>,
    pub open: Option<Span>,
    pub longest_open: Option<Span>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct YieldTable {
    pub least_tries: Option<u32>,
    pub give_up_percent: Option<Percent>,
    pub good_enough_percent: Option<Percent>,
    pub worth_more_percent: Option<Percent>,
    pub probe_after: Option<Span>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JitterWord {
    Additive,
    Full,
    Equal,
    Decorrelated,
}

/// A number of retries that is not above [`MOST_RETRIES`].
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "u64")]
pub struct Retries(pub u8);

impl TryFrom<u64> for Retries {
    type Error = String;
    fn try_from(count: u64) -> Result<Retries, String> {
        within(count, 0, MOST_RETRIES).map(Retries)
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "u64")]
pub struct Percent(pub u8);

impl TryFrom<u64> for Percent {
    type Error = String;
    fn try_from(percent: u64) -> Result<Percent, String> {
        within(percent, 0, 100).map(Percent)
    }
}

/// A count of calls that the breaker can hold.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "u64")]
pub struct Window(pub u8);

impl TryFrom<u64> for Window {
    type Error = String;
    fn try_from(calls: u64) -> Result<Window, String> {
        within(calls, 1, 16).map(Window)
    }
}

/// A factor between 1 and 10, kept in thousandths.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "f64")]
pub struct Growth(pub u32);

impl TryFrom<f64> for Growth {
    type Error = String;
    fn try_from(factor: f64) -> Result<Growth, String> {
        match (1.0..=10.0).contains(&factor) {
            true => Ok(Growth((factor * 1000.0).round() as u32)),
            false => Err(format!("{factor} is not between 1 and 10")),
        }
    }
}

/// A time such as `250ms`, `3s`, `10m` or `24h`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Duration);

impl TryFrom<String> for Span {
    type Error = String;
    fn try_from(text: String) -> Result<Span, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let millis = match unit {
            "ms" => Some(1),
            "s" => Some(1_000),
            "m" => Some(60_000),
            "h" => Some(3_600_000),
            _ => None,
        };
        let span = number.parse::<u64>().ok().zip(millis).and_then(|(number, unit)| number.checked_mul(unit));
        match span {
            Some(span) => Ok(Span(Duration::from_millis(span))),
            None => Err(format!("`{text}` is not a time such as 250ms, 3s, 10m or 24h")),
        }
    }
}

/// What is wrong with a policy file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct PolicyError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, naming the key.
    pub what: String,
}

impl PolicyError {
    /// Points at the byte `at` of `text`.
    pub fn at(text: &str, at: usize, what: String) -> PolicyError {
        let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        PolicyError { line, what }
    }
}

/// Reads a policy file, whole or partial.
pub fn read(text: &str) -> Result<PolicyFile, PolicyError> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        PolicyError::at(text, at, error.message().to_owned())
    })
}

fn within(number: u64, least: u8, most: u8) -> Result<u8, String> {
    match u8::try_from(number) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        Ok(_) | Err(_) => Err(format!("{number} is not between {least} and {most}")),
    }
}
