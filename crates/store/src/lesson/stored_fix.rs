//! A fix as it is kept and exported: JSON with English keys.

use serde_json::{Value, json};
use unstuck_judge::lesson::{Change, Deed, Fix};

/// Writes a fix.
pub fn fix_to_json(fix: &Fix) -> String {
    let deed = |deed: &Deed| match deed {
        Deed::Ran { line } => json!({ "ran": line }),
        Deed::Edited { file, lines } => json!({ "edited": file, "lines": lines }),
        Deed::Called { tool, target } => json!({ "called": tool, "target": target }),
    };
    let change = fix.change.as_ref().map(|change| json!({ "from": change.from, "to": change.to }));
    json!({ "deeds": fix.deeds.iter().map(deed).collect::<Vec<_>>(), "change": change }).to_string()
}

/// Reads one; nothing where it is none.
pub fn fix_from_json(text: &str) -> Option<Fix> {
    let value: Value = serde_json::from_str(text).ok()?;
    let word = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let deed = |value: &Value| {
        let lines = value.get("lines").and_then(Value::as_u64).and_then(|lines| u32::try_from(lines).ok());
        let ran = || Some(Deed::Ran { line: word(value, "ran")? });
        let edited = || Some(Deed::Edited { file: word(value, "edited")?, lines: lines.unwrap_or(0) });
        let called = || {
            Some(Deed::Called {
                tool: word(value, "called")?,
                target: word(value, "target").unwrap_or_default(),
            })
        };
        ran().or_else(edited).or_else(called)
    };
    let deeds = value.get("deeds")?.as_array()?.iter().map(deed).collect::<Option<Vec<_>>>()?;
    let change = match value.get("change") {
        None | Some(Value::Null) => None,
        Some(change) => Some(Change { from: word(change, "from")?, to: word(change, "to")? }),
    };
    Some(Fix { deeds, change })
}
