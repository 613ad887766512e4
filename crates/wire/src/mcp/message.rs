//! What kind of message a frame is. It is read no further than that takes, and where it lies.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::fields::Fields;
use super::id::Id;

/// A message between a client and a server.
#[derive(Debug)]
pub enum Message<'a> {
    /// It wants an answer.
    Request {
        /// Its name.
        id: Id,
        /// What it asks for.
        method: Cow<'a, str>,
        /// With what.
        params: Option<&'a RawValue>,
    },
    /// It wants none.
    Notification {
        /// What it tells.
        method: Cow<'a, str>,
        /// With what.
        params: Option<&'a RawValue>,
    },
    /// It is one.
    Answer {
        /// Whose; nothing where the other side could not read whose.
        id: Option<Id>,
        /// The result, or an error.
        came: Result<&'a RawValue, &'a RawValue>,
    },
    /// Several at once, as one revision of the protocol had it.
    Batch(Vec<Part>),
    /// JSON that is none of these.
    Other,
    /// No JSON at all.
    Broken,
}

/// What is in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A request of this name.
    Request(Id),
    /// An answer to this one.
    Answer(Id),
    /// Neither.
    Other,
}

/// Reads what a frame is.
pub fn read(frame: &[u8]) -> Message<'_> {
    let Ok(text) = std::str::from_utf8(frame) else { return Message::Broken };
    match text.trim_start().as_bytes().first() {
        Some(b'{') => match serde_json::from_str::<Fields<'_>>(text) {
            Ok(message) => message.into(),
            Err(_) => Message::Broken,
        },
        Some(b'[') => match parts(text) {
            Some(parts) => Message::Batch(parts.into_iter().map(Part::of).collect()),
            None => Message::Broken,
        },
        Some(_) | None => other_or_broken(text),
    }
}

/// The messages of a batch, each as it came. Nothing where it is none.
pub fn apart(frame: &[u8]) -> Option<Vec<&RawValue>> {
    parts(std::str::from_utf8(frame).ok()?)
}

fn parts(text: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(text).ok()
}

/// The request that `notifications/cancelled` with these parameters takes back.
pub fn cancels(params: &RawValue) -> Option<Id> {
    let params: Fields<'_> = serde_json::from_str(params.get()).ok()?;
    Id::of(params.get("requestId")?.get())
}

fn other_or_broken(text: &str) -> Message<'_> {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Message::Other,
        Err(_) => Message::Broken,
    }
}

impl<'a> From<Fields<'a>> for Message<'a> {
    fn from(fields: Fields<'a>) -> Message<'a> {
        let id = fields.get("id").and_then(|id| Id::of(id.get()));
        let params = fields.get("params");
        match (fields.text("method"), id, fields.get("result"), fields.get("error")) {
            (Some(method), Some(id), _, _) => Message::Request { id, method, params },
            (Some(method), None, _, _) => Message::Notification { method, params },
            (None, id, Some(result), _) => Message::Answer { id, came: Ok(result) },
            (None, id, None, Some(error)) => Message::Answer { id, came: Err(error) },
            (None, _, None, None) => Message::Other,
        }
    }
}

impl Part {
    fn of(part: &RawValue) -> Part {
        let Some(fields) = Fields::of(part) else { return Part::Other };
        match Message::from(fields) {
            Message::Request { id, .. } => Part::Request(id),
            Message::Answer { id: Some(id), .. } => Part::Answer(id),
            Message::Answer { id: None, .. }
            | Message::Notification { .. }
            | Message::Batch(_)
            | Message::Other
            | Message::Broken => Part::Other,
        }
    }
}
