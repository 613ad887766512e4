//! Measures and frees values of any size and depth, and never by recursion: everything else that walks through arguments
//! does, so what is too deep has to be refused here first.

use serde_json::Value;

/// Why arguments are not even looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooLarge {
    /// Written as JSON they are longer than so many bytes.
    Bytes(usize),
    /// They are nested deeper than this.
    Depth(usize),
}

/// Refuses what is too long or too deep, and stops where that is known. The bytes are those of the JSON text without what
/// escapes and the digits of fractions would add.
pub(crate) fn size(input: &Value, max_bytes: usize, max_depth: usize) -> Result<(), TooLarge> {
    enum Rest<'v> {
        List(std::slice::Iter<'v, Value>),
        Fields(serde_json::map::Iter<'v>),
    }
    let mut bytes = 0_usize;
    let mut open: Vec<Rest<'_>> = Vec::new();
    let mut next = Some(input);
    loop {
        if let Some(value) = next.take() {
            // Every value has a comma or a bracket beside it.
            bytes = bytes.saturating_add(1).saturating_add(own_bytes(value));
            let inside = match value {
                Value::Array(list) => Some(Rest::List(list.iter())),
                Value::Object(fields) => Some(Rest::Fields(fields.iter())),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            };
            if let Some(inside) = inside {
                if open.len() >= max_depth {
                    return Err(TooLarge::Depth(max_depth));
                }
                open.push(inside);
            }
        }
        if bytes > max_bytes {
            return Err(TooLarge::Bytes(max_bytes));
        }
        match open.last_mut() {
            None => return Ok(()),
            Some(Rest::List(list)) => next = list.next(),
            Some(Rest::Fields(fields)) => {
                next = fields.next().map(|(name, value)| {
                    bytes = bytes.saturating_add(name.len() + 3);
                    value
                });
            }
        }
        if next.is_none() {
            open.pop();
        }
    }
}

fn own_bytes(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(truth) => 5 - usize::from(*truth),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(whole), _) => digits(whole),
            (None, Some(whole)) => 1 + digits(whole.unsigned_abs()),
            (None, None) => 3,
        },
        Value::String(text) => text.len() + 2,
        // The closing bracket; the opening one stands where others have a comma.
        Value::Array(_) | Value::Object(_) => 1,
    }
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |power| power as usize + 1)
}

/// Drops a value. Its own drop goes down by recursion and would end the process where it is deep enough.
pub(crate) fn dismantle(value: Value) {
    let mut parts = vec![value];
    while let Some(part) = parts.pop() {
        match part {
            Value::Array(list) => parts.extend(list.into_iter().filter(holds_something)),
            Value::Object(fields) => {
                parts.extend(fields.into_iter().map(|(_, value)| value).filter(holds_something))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn holds_something(value: &Value) -> bool {
    match value {
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(Value::Null, |inner, level| match level % 2 {
            0 => Value::Array(vec![inner]),
            _ => Value::Object(Map::from_iter([("a".to_owned(), inner)])),
        })
    }

    #[test]
    fn a_value_of_a_million_levels_is_refused_and_freed_without_recursion() {
        let deep = nested(1_000_000);
        assert_eq!(size(&deep, usize::MAX, 128), Err(TooLarge::Depth(128)));
        assert_eq!(size(&deep, usize::MAX, 1_000_000), Ok(()));
        assert_eq!(size(&deep, 1_000, usize::MAX), Err(TooLarge::Bytes(1_000)));
        dismantle(deep);
    }

    #[test]
    fn the_limit_itself_is_allowed_in_depth_and_in_bytes() {
        for (value, depth) in [(json!(1), 0), (json!([]), 1), (json!({ "a": [1, { "b": null }] }), 3)] {
            assert_eq!(size(&value, usize::MAX, depth), Ok(()), "{value}");
            if depth > 0 {
                assert_eq!(size(&value, usize::MAX, depth - 1), Err(TooLarge::Depth(depth - 1)), "{value}");
            }
        }
    }

    #[test]
    fn bytes_are_about_those_of_the_text() {
        let value = json!({ "path": "src/lib.rs", "lines": [1, -20, 300, u64::MAX], "all": true, "none": null, "o": {} });
        let text = value.to_string().len();
        assert_eq!(size(&value, text + 8, 9), Ok(()));
        assert_eq!(size(&value, text - 8, 9), Err(TooLarge::Bytes(text - 8)));
    }

    #[test]
    fn what_is_wide_is_measured_only_as_far_as_needed() {
        let wide = Value::Array(vec![Value::Null; 5_000_000]);
        let start = std::time::Instant::now();
        assert_eq!(size(&wide, 1_000, 9), Err(TooLarge::Bytes(1_000)));
        assert!(start.elapsed().as_millis() < 50, "{:?}", start.elapsed());
    }
}
