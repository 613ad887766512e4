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
            let may_be_meant = |sort: &Sort| match may_be_meant(*sort, value) {
                Reading::Taken => true,
                Reading::TakenWhere(says) => self.is_said(whole, says),
                Reading::Refused => false,
            };
            if !sorts.iter().any(may_be_meant) {
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

    /// Does a part of the schema that holds for a value, in one form or another, say it? Also where nobody can tell.
    fn is_said(&self, node: &'s Value, says: fn(&Map<String, Value>) -> bool) -> bool {
        self.definitions.in_any_form(node).into_iter().any(|fields| {
            self.is_tired_after_a_step() || says(fields) || self.definitions.leads_elsewhere(fields)
        })
    }

    /// May the tool know what a field is that was left out?
    fn may_have_default(&self, whole: &'s Value, field: &str) -> bool {
        let objects = self.definitions.in_any_form(whole).into_iter();
        let mut nodes = objects.filter_map(|fields| fields.get("properties")?.get(field));
        nodes.any(|node| {
            self.is_tired_after_a_step() || self.is_said(node, |fields| fields.contains_key("default"))
        })
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
            if !self.may_have_default(whole, field) {
                self.add_missing(field, whole, entries, false, value, way, found);
            }
        }
    }
}

/// What a tool may make of a value that is of another type than its schema says.
enum Reading {
    /// It may read it as what it should be.
    Taken,
    /// It may, where its schema says more of it than the type.
    TakenWhere(fn(&Map<String, Value>) -> bool),
    /// Nobody reads it so.
    Refused,
}

/// May a tool read a value as something of this type, which it is not? What the usual libraries do decides it: pydantic as it is
/// without further settings, and zod where it is told to coerce.
fn may_be_meant(sort: Sort, value: &Value) -> Reading {
    match (sort, value) {
        // Many write it for what they leave out.
        (_, Value::Null) => Reading::Taken,
        (Sort::Truth, Value::Number(number)) => {
            taken_if(number.as_f64().is_some_and(|number| number == 0.0 || number == 1.0))
        }
        // A truth counts as 0 or 1.
        (Sort::Whole | Sort::Number, Value::Bool(_)) => Reading::Taken,
        (Sort::Whole | Sort::Number, Value::Number(_)) => Reading::Taken,
        // Points in time, durations and addresses are texts that can be said as numbers.
        (Sort::Text, Value::Number(_) | Value::Bool(_)) => {
            Reading::TakenWhere(|fields| fields.contains_key("format"))
        }
        // Of a list whose entries have places, the places may have names.
        (Sort::List, Value::Object(_)) => Reading::TakenWhere(|fields| {
            fields.contains_key("prefixItems") || fields.get("items").is_some_and(Value::is_array)
        }),
        (sort, Value::String(text)) => taken_if(reads_as(sort, text.trim())),
        (
            Sort::Null | Sort::Truth | Sort::Whole | Sort::Number | Sort::Text | Sort::List | Sort::Object,
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_),
        ) => Reading::Refused,
    }
}

fn taken_if(holds: bool) -> Reading {
    if holds { Reading::Taken } else { Reading::Refused }
}

/// Can a text be read as something of this type?
fn reads_as(sort: Sort, text: &str) -> bool {
    let is_word = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    let is_json = |holds: fn(&Value) -> bool| serde_json::from_str(text).is_ok_and(|value| holds(&value));
    match sort {
        Sort::Text => true,
        Sort::Null => text.is_empty() || is_word(&["null", "none"]),
        Sort::Truth => {
            let is_number = text.parse::<f64>().is_ok_and(|number| number == 0.0 || number == 1.0);
            text.is_empty()
                || is_number
                || is_word(&["true", "false", "yes", "no", "on", "off", "t", "f", "y", "n"])
        }
        Sort::Whole | Sort::Number => reads_as_number(text),
        Sort::List => text.starts_with('[') && is_json(Value::is_array),
        Sort::Object => text.starts_with('{') && is_json(Value::is_object),
    }
}

/// Numbers may have `_` between their digits, be written to another base, or not at all: some read nothing as 0.
fn reads_as_number(text: &str) -> bool {
    let bases = [("0x", 16), ("0o", 8), ("0b", 2)];
    let is_coded = |(mark, base): (&str, u32)| {
        let digits = text.get(..2).filter(|begins| begins.eq_ignore_ascii_case(mark)).map(|_| &text[2..]);
        digits.is_some_and(|digits| {
            !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(base) || digit == '_')
        })
    };
    let is_grouped = || {
        let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
        let bytes = text.as_bytes();
        let marks = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_');
        let mut between = marks.map(|(at, _)| is_digit(bytes[..at].last()) && is_digit(bytes.get(at + 1)));
        between.all(|holds| holds) && text.replace('_', "").parse::<f64>().is_ok()
    };
    text.is_empty() || text.parse::<f64>().is_ok() || bases.into_iter().any(is_coded) || is_grouped()
}
