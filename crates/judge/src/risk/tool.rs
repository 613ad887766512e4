//! What tools that are no shells put at risk, by the fields of their input.

use serde_json::Value;

use super::found::{Found, Manner};
use super::row::{self, ROWS, Row, Takes};
use super::target::Folder;
use super::whereabouts::Place;
use crate::Call;
use crate::nature::{last_part, object, patched_files};

/// How many paths of one call are looked at.
const PATHS_MAX: usize = 1_024;

/// Adds what a call of such a tool puts at risk.
pub(super) fn look(call: &Call, found: &mut Found) {
    let rows = row::of_tool(&last_part(&call.tool).to_lowercase());
    if rows.is_empty() {
        return;
    }
    let input = object(&call.input);
    let Some(at) = rows.iter().copied().find(|at| fits(&ROWS[*at], &input)) else { return };
    let here = [Place::Known(Folder::default())];
    let row = &ROWS[at];
    let mut paths = Vec::new();
    for takes in row.takes {
        match takes {
            Takes::Fields => in_fields(&input, row.fields, &mut paths),
            Takes::Patches => {
                let texts = row.fields.iter().filter_map(|field| input.get(field)?.as_str());
                paths.extend(texts.chain(input.as_str()).flat_map(patched_files));
            }
            // Only commands have words.
            Takes::Operands
            | Takes::OperandsOrFolder
            | Takes::AfterFirst
            | Takes::Last
            | Takes::Over
            | Takes::Move
            | Takes::StartPaths
            | Takes::Values
            | Takes::UrlNames
            | Takes::Patched
            | Takes::Folder
            | Takes::Repository
            | Takes::GitFolder
            | Takes::GitState
            | Takes::Named
            | Takes::Workspace => {}
        }
    }
    for path in paths.iter().take(PATHS_MAX) {
        let path = path.strip_prefix("file://").unwrap_or(path);
        found.add_path(path, &here, Manner::surely(at));
    }
}

fn fits(row: &Row, input: &Value) -> bool {
    let is = |(field, values): &(&str, &[&str])| match input.get(field) {
        Some(Value::String(text)) => values.contains(&text.as_str()),
        Some(Value::Bool(yes)) => values.contains(&if *yes { "true" } else { "false" }),
        Some(Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_)) | None => false,
    };
    row.input.is_empty() || row.input.iter().any(is)
}

/// The paths in some fields, also of the objects in a list. A text of several lines is no path.
fn in_fields(input: &Value, fields: &[&str], paths: &mut Vec<String>) {
    for value in fields.iter().filter_map(|field| input.get(field)) {
        match value {
            Value::String(text) => paths.extend(path(text)),
            Value::Array(items) => {
                for item in items.iter().take(PATHS_MAX) {
                    match item {
                        Value::String(text) => paths.extend(path(text)),
                        Value::Object(_) => in_fields(item, fields, paths),
                        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
    }
}

fn path(text: &str) -> Option<String> {
    (!text.is_empty() && !text.contains('\n')).then(|| text.to_owned())
}
