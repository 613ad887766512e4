//! The exact call: tool and input, without what only people read. Two calls with this name in common do the same thing.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Fingerprint;
use crate::Call;
use crate::nature::{is_own_tool, object};
use crate::shell;

/// Fields that tell people about a call and change nothing in it, whatever the tool.
const COSMETIC: &[&str] = &[
    "explanation",
    "thought",
    "thoughts",
    "reasoning",
    "justification",
    "rationale",
    "toolSummary",
    "toolAction",
    "tool_summary",
    "activeForm",
];

/// The same for shells and the tools that agents bring along. Elsewhere a description may be the very thing that is
/// written, as in `create_issue`.
const OWN_COSMETIC: &[&str] = &["description", "brief", "purpose", "reason"];

/// Fields of shells that change how long somebody waits or what is shown, and not what is done.
const SHELL_COSMETIC: &[&str] = &[
    "timeout",
    "timeout_ms",
    "timeoutMs",
    "timeout_seconds",
    "max_output_tokens",
    "yield_time_ms",
    "is_input",
    "isBackground",
    "is_background",
    "run_in_background",
    "security_risk",
    "requires_approval",
    "blocking",
    "safe_to_auto_run",
    "SafeToAutoRun",
    "require_user_approval",
    "login",
    "max_timeout",
    "prefix_rule",
];

/// Names the exact call.
pub fn call(call: &Call) -> Fingerprint {
    of_stripped(call, &stripped(call))
}

/// The same of a call whose input has been stripped already.
pub(super) fn of_stripped(call: &Call, stripped: &Value) -> Fingerprint {
    Fingerprint::of("c2", &[call.tool.as_bytes(), &canonical(stripped)])
}

/// RFC 8785 form of a value.
pub(super) fn canonical(value: &Value) -> Vec<u8> {
    // A number that is out of range is the only thing the canonical form refuses; plain JSON names it as well.
    serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| value.to_string().into_bytes())
}

/// The input without cosmetics: an object, also where it was sent as the text of one.
pub(super) fn stripped(call: &Call) -> Value {
    let input = object(&call.input).into_owned();
    match shell::line(call) {
        Some(line) => {
            let mut fields = match input {
                Value::Object(fields) => without(fields, &[COSMETIC, OWN_COSMETIC, SHELL_COSMETIC].concat()),
                _ => Map::new(),
            };
            fields.retain(|_, value| !is_line(value, &line));
            fields.insert("command".to_owned(), Value::String(collapsed(&line).into_owned()));
            Value::Object(fields)
        }
        None => match input {
            Value::Object(fields) => {
                let own: &[&str] = if is_own_tool(call) { OWN_COSMETIC } else { &[] };
                let kept = without(fields.clone(), &[COSMETIC, own].concat());
                // A tool whose only argument is cosmetic elsewhere (`think`) is told apart by it.
                Value::Object(if kept.is_empty() { without(fields, &[]) } else { kept })
            }
            other => other,
        },
    }
}

/// Tells whether a field carries the line itself, in one of the forms agents send.
fn is_line(value: &Value, line: &str) -> bool {
    match value {
        Value::String(text) => text == line,
        Value::Array(_) => true,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// The fields without those named, and without stray empty ones.
pub(super) fn without(fields: Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let stays = |field: &str, value: &Value| !names.contains(&field) && !field.is_empty() && !is_empty(value);
    fields.into_iter().filter(|(field, value)| stays(field, value)).collect()
}

/// Absence in disguise. An empty text is not: an edit may replace by nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The line without redundant blanks outside quotes. A line with a document in it is only trimmed: blanks are real there.
pub(super) fn collapsed(line: &str) -> Cow<'_, str> {
    let line = line.trim();
    if line.contains("<<")
        || !(line.contains("  ") || line.contains('\t') || line.contains(" \n") || line.contains('\r'))
    {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    let mut quote = None;
    let (mut escaped, mut gap) = (false, false);
    for c in line.chars() {
        let plain = quote.is_none() && !escaped;
        if plain && matches!(c, ' ' | '\t' | '\r') {
            gap = true;
            continue;
        }
        // A gap beside a new line says nothing that the new line does not say.
        let at_line_end = plain && c == '\n' || out.ends_with('\n');
        if std::mem::take(&mut gap) && !at_line_end {
            out.push(' ');
        }
        out.push(c);
        match quote {
            _ if escaped => escaped = false,
            None if c == '\'' || c == '"' => quote = Some(c),
            None | Some('"') if c == '\\' => escaped = true,
            Some(open) if open == c => quote = None,
            None | Some(_) => {}
        }
    }
    Cow::Owned(out)
}
