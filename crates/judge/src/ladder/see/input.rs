//! The arguments of a call without what is cosmetic in them.

use std::borrow::Cow;

use serde_json::Value;

use crate::call::Call;
use crate::ladder::preset;
use crate::ladder::sight::{Dir, Print};
use crate::shell::{self, ParsedCall};

/// The call with its paths tidied, and with one way to write "nothing".
pub(super) fn plainer(call: &Call) -> Cow<'_, Call> {
    let Value::Object(fields) = &call.input else { return Cow::Borrowed(call) };
    let plainer = |(field, value): (&String, &Value)| match value {
        Value::String(text) if text.is_empty() => Some(Value::Null),
        Value::String(text) if names_path(field) => Some(Value::String(tidy(text))).filter(|it| it != value),
        Value::Object(inner) if inner.is_empty() => Some(Value::Null),
        Value::Array(items) if items.is_empty() => Some(Value::Null),
        _ => None,
    };
    let plain: Vec<Option<Value>> = fields.iter().map(plainer).collect();
    if plain.iter().all(Option::is_none) {
        return Cow::Borrowed(call);
    }
    let plain = fields.iter().zip(plain).map(|((field, value), plain)| {
        let value = plain.unwrap_or_else(|| value.clone());
        (field.clone(), value)
    });
    Cow::Owned(Call::new(call.tool.clone(), Value::Object(plain.collect())))
}

/// The call without arguments that only say why, as long as something is left.
pub(super) fn without_prose(call: &Call) -> Cow<'_, Call> {
    let Value::Object(fields) = &call.input else { return Cow::Borrowed(call) };
    let kept = || fields.iter().filter(|(field, _)| !is_prose(field));
    match kept().count() {
        0 => Cow::Borrowed(call),
        count if count == fields.len() => Cow::Borrowed(call),
        _ => {
            let kept = kept().map(|(field, value)| (field.clone(), value.clone()));
            Cow::Owned(Call::new(call.tool.clone(), Value::Object(kept.collect())))
        }
    }
}

/// Which arguments are given at all. To leave out an argument is a real change, to leave it empty another way is not.
pub(super) fn field_names(input: &Value) -> String {
    let Value::Object(fields) = input else { return String::new() };
    let mut names: Vec<&str> = fields.keys().map(String::as_str).filter(|field| !is_prose(field)).collect();
    names.sort_unstable();
    names.iter().map(|name| format!("{name}=")).collect()
}

fn is_prose(field: &str) -> bool {
    preset::prose_fields().contains(&field.to_lowercase().as_str())
}

/// The paths among the arguments, tidied.
pub(super) fn paths(input: &Value) -> impl Iterator<Item = String> {
    let fields = input.as_object().into_iter().flatten();
    fields.filter(|(field, _)| names_path(field)).filter_map(|(_, value)| value.as_str()).map(tidy)
}

fn names_path(field: &str) -> bool {
    let field = field.to_lowercase();
    field.ends_with("path")
        || matches!(field.as_str(), "file" | "filename" | "file_name" | "directory" | "dir")
}

/// The directory a call runs in: that of a leading `cd`, or of an argument.
pub(super) fn dir(parsed: &ParsedCall<'_>) -> Dir {
    let first = parsed.script.as_ref().and_then(|script| script.commands().first());
    let moved = first.filter(|command| matches!(command.program.as_str(), "cd" | "pushd"));
    let moved = moved.and_then(|command| command.operands().next());
    moved
        .or_else(|| shell::folder(parsed.call))
        .map_or(Dir::Unsaid, |path| Dir::Named(Print::of(&["dir", &tidy(path)])))
}

/// A path without detours.
pub(super) fn tidy(path: &str) -> String {
    let absolute = path.starts_with('/');
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if absolute { format!("/{}", parts.join("/")) } else { parts.join("/") }
}
