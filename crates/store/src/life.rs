//! The life of a call: a JSON list of the states it went through, with their times and notes.

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use unstuck_judge::Lang;

use crate::state::CallState;

/// A life that has just begun.
pub(crate) fn begun(at: u64) -> String {
    json!([{ "at": at, "state": CallState::Pending.word() }]).to_string()
}

/// Adds a state.
pub(crate) fn add(life: &mut String, at: u64, state: CallState, note: &str) {
    let mut step = json!({ "at": at, "state": state.word() });
    if !note.is_empty() {
        step["note"] = Value::from(note);
    }
    push(life, step);
}

/// Adds that its files were saved before it runs.
pub(crate) fn protect(life: &mut String, at: u64, snapshot: &str) {
    push(life, json!({ "at": at, "state": CallState::Executing.word(), "snapshot": snapshot }));
}

/// Adds that it runs in other words than it was asked for.
pub(crate) fn note_rewritten(life: &mut String, at: u64) {
    push(life, json!({ "at": at, "state": CallState::Executing.word(), "rewritten": true }));
}

/// Did it run in other words than it was asked for?
pub(crate) fn is_rewritten(life: &str) -> bool {
    life.contains(r#""rewritten":true"#)
}

/// Adds that the user spoke while it stood there.
pub(crate) fn note_user(life: &mut String, at: u64, state: CallState, lang: Lang) {
    let note = match lang {
        Lang::En => "the user spoke meanwhile",
        Lang::Zh => "其间用户发言",
    };
    push(life, json!({ "at": at, "state": state.word(), "note": note, "user": true }));
}

/// Did the user speak before it ended?
pub(crate) fn heard_user(life: &str) -> bool {
    life.contains(r#""user":true"#)
}

/// The snapshots that were taken before it.
pub(crate) fn snapshots(life: &str) -> Vec<String> {
    named(&steps(life))
}

/// Those of them that were taken since the last time it ended: the same name may be given to another call later.
pub(crate) fn snapshots_still_open(life: &str) -> Vec<String> {
    let is_end = |step: &Value| {
        let state = step.get("state").and_then(Value::as_str);
        state.and_then(|word| word.parse().ok()).is_some_and(CallState::is_final)
    };
    named(steps(life).rsplit(is_end).next().unwrap_or_default())
}

/// What happened to it, if a snapshot was taken. Hardly any call has one, so the usual answer is found without reading.
fn steps(life: &str) -> Vec<Value> {
    match life.contains(r#""snapshot":"#) {
        true => serde_json::from_str(life).unwrap_or_default(),
        false => Vec::new(),
    }
}

fn named(steps: &[Value]) -> Vec<String> {
    steps.iter().filter_map(|step| Some(step.get("snapshot")?.as_str()?.to_owned())).collect()
}

/// Adds a step. What cannot be read any more is kept as a note, so that nothing is lost.
fn push(life: &mut String, step: Value) {
    let steps = serde_json::from_str::<Vec<IgnoredAny>>(life).map(|steps| steps.len());
    *life = match (steps, life.trim_end().strip_suffix(']')) {
        (Ok(0), _) => json!([step]).to_string(),
        (Ok(_), Some(steps)) => format!("{steps},{step}]"),
        (Ok(_), None) | (Err(_), _) => json!([{ "note": life.as_str() }, step]).to_string(),
    };
}

/// What was noted last.
pub(crate) fn last_note(life: &str) -> Option<String> {
    let list: Vec<Value> = serde_json::from_str(life).ok()?;
    list.iter().rev().find_map(|step| Some(step.get("note")?.as_str()?.to_owned()))
}
