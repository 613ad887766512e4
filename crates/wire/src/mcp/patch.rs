//! Frames in which one value is exchanged, and all else stays as it came.

use serde_json::value::RawValue;

use super::fields::Fields;
use super::id::Id;

/// The same frame under another name. Nothing where it has none.
pub fn renamed(frame: &[u8], id: &Id) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(frame).ok()?;
    let fields: Fields<'_> = serde_json::from_str(text).ok()?;
    exchanged(text, fields.get("id")?, id.json())
}

/// The same answer under another name, with another result. Nothing where it has none.
pub fn answering(frame: &[u8], id: &Id, result: &str) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(frame).ok()?;
    let fields: Fields<'_> = serde_json::from_str(text).ok()?;
    renamed(&exchanged(text, fields.get("result")?, result)?, id)
}

/// The same call of a tool with other arguments. Nothing where it is none.
pub fn rearranged(frame: &[u8], arguments: &str) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(frame).ok()?;
    let fields: Fields<'_> = serde_json::from_str(text).ok()?;
    let params: Fields<'_> = serde_json::from_str(fields.get("params")?.get()).ok()?;
    exchanged(text, params.get("arguments")?, arguments)
}

/// The same word that a request is taken back, about another one. Nothing where it is none.
pub fn cancelling(frame: &[u8], id: &Id) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(frame).ok()?;
    let fields: Fields<'_> = serde_json::from_str(text).ok()?;
    let params: Fields<'_> = serde_json::from_str(fields.get("params")?.get()).ok()?;
    exchanged(text, params.get("requestId")?, id.json())
}

/// The text with another value in the place of this one, which lies within it.
fn exchanged(text: &str, old: &RawValue, new: &str) -> Option<Vec<u8>> {
    let at = old.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let (before, rest) = text.split_at_checked(at)?;
    let after = rest.get(old.get().len()..)?;
    Some([before, new, after].concat().into_bytes())
}
