//! A limit that ran out: twice as much, up to what the tool allows.

use serde_json::Value;

use super::line::Line;
use super::{Cause, Change, answer};
use crate::Kind;
use crate::hint::amount;

/// The row of limits that may grow. Times are in milliseconds.
pub(super) struct Limit {
    pub rules: &'static [&'static str],
    pub unless: &'static [&'static str],
    pub max: u64,
    pub fields: &'static [(&'static str, u64)],
    pub tools: &'static [&'static str],
    pub field: &'static str,
    pub default: u64,
}

/// The call with twice the time, where the output names the time that ran out and it is the call's own.
pub(super) fn grown(line: &Line<'_>, cause: Cause<'_>, limit: &Limit) -> Option<Change> {
    let says = cause.kind == Kind::Timeout && limit.rules.contains(&cause.rule);
    // Where a command may have waited for an answer, more time is more waiting.
    if !says || limit.unless.iter().any(|words| cause.line.contains(words)) || answer::may_ask(line) {
        return None;
    }
    let ran_out = named_time(cause.line)?;
    let fields = line.input().as_object()?;
    let (field, unit, current) = match limit.fields.iter().find(|(name, _)| fields.contains_key(*name)) {
        Some((name, _)) => {
            let value = fields.get(*name)?.as_u64()?;
            let units = limit.fields.iter().filter(|(other, _)| other == name).map(|(_, unit)| *unit);
            let fits = |unit: &u64| value.checked_mul(*unit).is_some_and(|ms| is_same(ms, ran_out));
            let unit = units.into_iter().find(fits)?;
            (*name, unit, value * unit)
        }
        None if limit.tools.contains(&line.tool()) && is_same(limit.default, ran_out) => {
            (limit.field, 1, limit.default)
        }
        None => return None,
    };
    let next = current.saturating_mul(2).min(limit.max) / unit;
    if next * unit <= current {
        return None;
    }
    let mut input = line.input().clone();
    input.as_object_mut()?.insert(field.to_owned(), Value::from(next));
    let shown = |value: u64| format!("{field} {value}");
    Some(Change { input, from: shown(current / unit), to: shown(next), at: String::new() })
}

/// The first amount of time in a line, in milliseconds.
fn named_time(line: &str) -> Option<u64> {
    let mut was_digit = false;
    let starts = line.char_indices().filter(|(_, sign)| {
        let is_digit = sign.is_ascii_digit() || *sign == '.';
        !std::mem::replace(&mut was_digit, is_digit) && is_digit
    });
    starts
        .filter_map(|(at, _)| amount::read(&line[at..]))
        .find_map(|(time, _)| u64::try_from(time.as_millis()).ok())
        .filter(|time| *time > 0)
}

/// Whether a limit is the time that ran out. Some agents say only the whole seconds.
fn is_same(limit: u64, ran_out: u64) -> bool {
    limit == ran_out || ran_out.is_multiple_of(1_000) && ran_out > 0 && limit / 1_000 * 1_000 == ran_out
}
