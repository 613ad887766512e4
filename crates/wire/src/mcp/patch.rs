//! Frames in which one value is exchanged, and all else stays as it came. A large frame is changed where it lies, so that
//! nobody holds it twice.

use std::ops::Range;

use serde_json::Value;
use serde_json::value::RawValue;

use super::fields::Fields;
use super::id::Id;

/// What is said with a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Addition {
    /// As a text of its own, the last one.
    pub text: String,
    /// As a field of the server's own structure, where that is free to have more fields.
    pub structured: Option<(&'static str, Value)>,
}

/// Another text for a part of a frame.
type Edit = (Range<usize>, String);

/// Gives a frame another name. `false` where it has none.
pub fn rename(frame: &mut Vec<u8>, id: &Id) -> bool {
    edit(frame, |text| Some(vec![naming(text, id)?]))
}

/// The same frame under another name. Nothing where it has none.
pub fn renamed(frame: &[u8], id: &Id) -> Option<Vec<u8>> {
    let mut frame = frame.to_vec();
    rename(&mut frame, id).then_some(frame)
}

/// Gives an answer another name, and adds something to its result. `false` where the result is no object.
pub fn add(frame: &mut Vec<u8>, id: &Id, addition: &Addition) -> bool {
    edit(frame, |text| {
        let fields = Fields::read(text)?;
        let result = fields.get("result")?;
        let fields = Fields::of(result)?;
        let block = serde_json::json!({ "type": "text", "text": addition.text }).to_string();
        let mut edits = vec![naming(text, id)?];
        edits.push(match fields.get("content") {
            Some(list) if list.get().starts_with('[') => with_last(text, list, &block)?,
            Some(other) => (place(text, other)?, format!("[{block}]")),
            None => with_last(text, result, &format!("\"content\":[{block}]"))?,
        });
        if let Some((name, more)) = &addition.structured
            && let Some(structure) =
                fields.get("structuredContent").filter(|json| json.get().starts_with('{'))
        {
            edits.push(with_last(text, structure, &format!("{}:{more}", Value::from(*name)))?);
        }
        Some(edits)
    })
}

/// The same call of a tool, with this argument in the place of the one of that name. Nothing where it is none.
pub fn with_argument(frame: &[u8], name: &str, value: &Value) -> Option<Vec<u8>> {
    let mut frame = frame.to_vec();
    let is_changed = edit(&mut frame, |text| {
        let arguments = Fields::read(text)?.within("params")?.get("arguments")?;
        Some(vec![match Fields::of(arguments)?.get(name) {
            Some(old) => (place(text, old)?, value.to_string()),
            None => with_last(text, arguments, &format!("{}:{value}", Value::from(name)))?,
        }])
    });
    is_changed.then_some(frame)
}

/// The same word that a request is taken back, about another one. Nothing where it is none.
pub fn cancelling(frame: &[u8], id: &Id) -> Option<Vec<u8>> {
    let mut frame = frame.to_vec();
    let is_changed = edit(&mut frame, |text| {
        let old = Fields::read(text)?.within("params")?.get("requestId")?;
        Some(vec![(place(text, old)?, id.json().to_owned())])
    });
    is_changed.then_some(frame)
}

/// Changes a frame in these places.
fn edit(frame: &mut Vec<u8>, edits: impl FnOnce(&str) -> Option<Vec<Edit>>) -> bool {
    let Some(mut edits) = std::str::from_utf8(frame).ok().and_then(edits) else { return false };
    // From the end on, what lies before stays where it is.
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    for (range, text) in edits {
        frame.splice(range, text.into_bytes());
    }
    true
}

fn naming(text: &str, id: &Id) -> Option<Edit> {
    Some((place(text, Fields::read(text)?.get("id")?)?, id.json().to_owned()))
}

/// One more at the end of a list or an object.
fn with_last(text: &str, container: &RawValue, more: &str) -> Option<Edit> {
    let range = place(text, container)?;
    let open = container.get().get(..container.get().len() - 1)?.trim_end();
    let between = if open.len() > 1 { "," } else { "" };
    Some((range.start + open.len()..range.end - 1, format!("{between}{more}")))
}

/// Where a value lies in its text.
fn place(text: &str, value: &RawValue) -> Option<Range<usize>> {
    let at = value.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (at + value.get().len() <= text.len()).then(|| at..at + value.get().len())
}
