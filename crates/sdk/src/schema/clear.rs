//! Finds only what is clearly wrong with arguments: a field that has to be there is missing, or a value is of a type that cannot
//! be meant. What a tool may well read although its schema says otherwise is left to the tool.

use serde_json::{Map, Value};

use super::expected::Sort;
use super::mistake::Wrong;
use super::quote::Step;
use super::walk::{Found, Walk, Weight, list, sorts};

impl<'s> Walk<'s> {
    /// Looks at `value`, for which `node` holds. `whole` is all that holds for it, of which `node` is a part. Of forms it may have,
    /// and of what only holds under a condition, nobody can say which is meant: these are not looked at.
    pub(super) fn look_for_clear_mistakes<'v>(
        &self,
        node: &'s Value,
        whole: &'s Value,
        value: &'v Value,
        way: &mut Vec<Step<'v>>,
        found: &mut Found,
    ) {
        if self.is_tired_after_a_step() {
            return;
        }
        for target in self.references(node) {
            self.look_for_clear_mistakes(target, whole, value, way, found);
        }
        let Some(fields) = self.definitions.words(node) else { return };
        let sorts = sorts(fields);
        if !sorts.is_empty() && !sorts.iter().any(|sort| sort.holds(value)) {
            if !sorts.iter().any(|sort| may_be_meant(*sort, value)) {
                self.add(found, way, value, Weight::Off, || {
                    Wrong::Unfit(self.definitions.expected(node), None)
                });
            }
            return;
        }
        for inner in list(fields, "allOf") {
            self.look_for_clear_mistakes(inner, whole, value, way, found);
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            Value::Array(entries) => {
                let node = fields
                    .get("items")
                    .filter(|node| node.is_object() && !fields.contains_key("prefixItems"));
                let Some(node) = node else { return };
                for (at, entry) in entries.iter().enumerate() {
                    way.push(Step::Entry(at));
                    self.look_for_clear_mistakes(node, node, entry, way, found);
                    way.pop();
                }
            }
            Value::Object(entries) => {
                self.look_for_clearly_missing(fields, whole, entries, value, way, found);
                let properties = fields.get("properties").and_then(Value::as_object);
                for (name, node) in properties.into_iter().flatten() {
                    if let Some((name, entry)) = entries.get_key_value(name) {
                        way.push(Step::Field(name));
                        self.look_for_clear_mistakes(node, node, entry, way, found);
                        way.pop();
                    }
                }
            }
        }
    }

    /// What has to be there and is not. Of a field with a default the tool knows what it is without it.
    fn look_for_clearly_missing<'v>(
        &self,
        fields: &'s Map<String, Value>,
        whole: &'s Value,
        entries: &'v Map<String, Value>,
        value: &'v Value,
        way: &[Step<'v>],
        found: &mut Found,
    ) {
        let required = list(fields, "required").iter().filter_map(Value::as_str);
        for field in required.filter(|field| !entries.contains_key(*field)) {
            let has_default =
                self.definitions.property(whole, field).is_some_and(|node| node.get("default").is_some());
            if !has_default {
                self.add_missing(field, whole, entries, false, value, way, found);
            }
        }
    }
}

/// May a tool read a value as something of this type, which it is not?
fn may_be_meant(sort: Sort, value: &Value) -> bool {
    match (sort, value) {
        // Many write it for what they leave out.
        (_, Value::Null) => true,
        (Sort::Truth, Value::Number(number)) => matches!(number.as_u64(), Some(0 | 1)),
        (Sort::Whole, Value::Number(_)) => true,
        (sort, Value::String(text)) => reads_as(sort, text.trim()),
        (
            Sort::Null | Sort::Truth | Sort::Whole | Sort::Number | Sort::Text | Sort::List | Sort::Object,
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_),
        ) => false,
    }
}

/// Can a text be read as something of this type?
fn reads_as(sort: Sort, text: &str) -> bool {
    let is_word = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    let is_json = |holds: fn(&Value) -> bool| serde_json::from_str(text).is_ok_and(|value| holds(&value));
    match sort {
        Sort::Text => true,
        Sort::Null => text.is_empty() || is_word(&["null", "none"]),
        Sort::Truth => is_word(&["true", "false", "yes", "no", "on", "off", "1", "0"]),
        Sort::Whole | Sort::Number => text.parse::<f64>().is_ok(),
        Sort::List => text.starts_with('[') && is_json(Value::is_array),
        Sort::Object => text.starts_with('{') && is_json(Value::is_object),
    }
}
