//! Reads a schema as it is written: where its references lead, and what it says about one place.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::expected::{Expected, Sort};

/// A schema that leads from one place to itself, or through more references than this, is refused.
const WAY_MAX: usize = 200;
/// So deep the words about an expected value go.
const WORDS_DEEP: usize = 6;

/// The written schema of a tool.
#[derive(Debug)]
pub(super) struct Definitions {
    root: Value,
    /// Up to draft 7 nothing that stands beside a reference counts.
    is_alone: bool,
    /// Where the named places are, as JSON pointers.
    anchors: HashMap<String, String>,
    /// Parts with a name of their own resolve references by themselves. They are not followed here, only checked.
    has_parts: bool,
}

/// Keywords with one schema about the same value.
const SAME_PLACE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords with a list of schemas about the same value.
const SAME_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with one schema about values inside.
const INSIDE: [&str; 8] = [
    "items",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Keywords with named schemas about values inside.
const INSIDE_MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

impl Definitions {
    pub(super) fn new(root: Value, is_alone: bool) -> Definitions {
        let mut definitions = Definitions { root, is_alone, anchors: HashMap::new(), has_parts: false };
        let mut anchors = HashMap::new();
        let mut has_parts = false;
        let mut open = vec![(String::new(), &definitions.root)];
        while let Some((pointer, node)) = open.pop() {
            if let Value::Object(fields) = node {
                for keyword in ["$anchor", "$dynamicAnchor"] {
                    if let Some(Value::String(anchor)) = fields.get(keyword) {
                        anchors.insert(anchor.clone(), pointer.clone());
                    }
                }
                has_parts |= !pointer.is_empty() && matches!(fields.get("$id"), Some(Value::String(_)));
            }
            let inside: Vec<(String, &Value)> = match node {
                Value::Object(fields) => fields.iter().map(|(name, value)| (escaped(name), value)).collect(),
                Value::Array(list) => {
                    list.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect()
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
            };
            open.extend(inside.into_iter().map(|(step, value)| (format!("{pointer}/{step}"), value)));
        }
        definitions.anchors = anchors;
        definitions.has_parts = has_parts;
        definitions
    }

    pub(super) fn root(&self) -> &Value {
        &self.root
    }

    /// Where a reference leads, if it stays within the schema.
    pub(super) fn target(&self, reference: &str) -> Option<&Value> {
        if self.has_parts {
            return None;
        }
        let own = self.root.get("$id").and_then(Value::as_str).map_or("", |id| id.trim_end_matches('#'));
        let fragment = reference.strip_prefix(own).unwrap_or(reference).strip_prefix('#')?;
        match fragment {
            "" => Some(&self.root),
            pointer if pointer.starts_with('/') => self.root.pointer(&decoded(pointer)),
            anchor => self.root.pointer(self.anchors.get(anchor)?),
        }
    }

    fn references<'s>(&'s self, fields: &'s Map<String, Value>) -> impl Iterator<Item = &'s Value> {
        let written = ["$ref", "$dynamicRef"].into_iter().filter_map(|keyword| fields.get(keyword)?.as_str());
        written.filter_map(|reference| self.target(reference))
    }

    /// Does a part of the schema refer to something that is not followed here?
    pub(super) fn leads_elsewhere(&self, fields: &Map<String, Value>) -> bool {
        let mut written =
            ["$ref", "$dynamicRef"].into_iter().filter_map(|keyword| fields.get(keyword)?.as_str());
        written.any(|reference| self.target(reference).is_none())
    }

    /// The objects of the schema that all hold for the value at `node`: itself, what it refers to, what it combines.
    pub(super) fn all_of<'s>(&'s self, node: &'s Value) -> Vec<&'s Map<String, Value>> {
        let mut all = Vec::new();
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            let Value::Object(fields) = node else { continue };
            if all.len() > WAY_MAX {
                break;
            }
            open.extend(self.references(fields));
            if self.is_alone && fields.contains_key("$ref") {
                continue;
            }
            all.push(fields);
            if let Some(Value::Array(list)) = fields.get("allOf") {
                open.extend(list.iter().rev());
            }
        }
        all
    }

    /// What `node` says by its own words, without references where those stand alone.
    pub(super) fn words<'s>(&self, node: &'s Value) -> Option<&'s Map<String, Value>> {
        node.as_object().filter(|fields| !(self.is_alone && fields.contains_key("$ref")))
    }

    /// The schemas that hold for the same value as `node`, whether all or some of them.
    fn same_place<'s>(&'s self, node: &'s Value) -> Vec<&'s Value> {
        let Value::Object(fields) = node else { return Vec::new() };
        let mut same: Vec<&Value> = self.references(fields).collect();
        same.extend(SAME_PLACE.iter().filter_map(|keyword| fields.get(*keyword)));
        let lists = SAME_PLACE_LISTS.iter().filter_map(|keyword| fields.get(*keyword)?.as_array());
        same.extend(lists.flatten());
        same.extend(
            fields.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(Map::values),
        );
        same
    }

    fn inside<'s>(&'s self, node: &'s Value) -> Vec<&'s Value> {
        let Value::Object(fields) = node else { return Vec::new() };
        let mut inside: Vec<&Value> = INSIDE.iter().filter_map(|keyword| fields.get(*keyword)).collect();
        let lists =
            ["prefixItems", "items"].into_iter().filter_map(|keyword| fields.get(keyword)?.as_array());
        inside.extend(lists.flatten());
        let maps = INSIDE_MAPS.iter().filter_map(|keyword| fields.get(*keyword)?.as_object());
        inside.extend(maps.flat_map(Map::values));
        inside
    }

    /// Whether following the schema at one place never ends, or nearly never.
    pub(super) fn is_circular(&self) -> bool {
        let mut heights: HashMap<*const Value, Height> = HashMap::new();
        let mut seen = HashSet::new();
        let mut open = vec![&self.root];
        while let Some(node) = open.pop() {
            if !seen.insert(std::ptr::from_ref(node)) {
                continue;
            }
            if self.height(node, &mut heights, 0).is_none() {
                return true;
            }
            open.extend(self.same_place(node));
            open.extend(self.inside(node));
        }
        false
    }

    /// How long the longest way is that stays at the place of `node`; nothing if it leads back.
    fn height(&self, node: &Value, heights: &mut HashMap<*const Value, Height>, way: usize) -> Option<usize> {
        match heights.get(&std::ptr::from_ref(node)) {
            Some(Height::Open) => return None,
            Some(Height::Known(height)) => return (way + height <= WAY_MAX).then_some(*height),
            None if way > WAY_MAX => return None,
            None => {}
        }
        heights.insert(std::ptr::from_ref(node), Height::Open);
        let mut height = 0;
        for next in self.same_place(node) {
            height = height.max(1 + self.height(next, heights, way + 1)?);
        }
        heights.insert(std::ptr::from_ref(node), Height::Known(height));
        Some(height)
    }

    /// The types that `node` allows; nothing where it does not say.
    pub(super) fn sorts(&self, node: &Value) -> Option<Vec<Sort>> {
        let mut allowed: Option<Vec<Sort>> = None;
        for fields in self.all_of(node) {
            let Some(sorts) = fields.get("type").and_then(written_sorts) else { continue };
            allowed = Some(match allowed {
                None => sorts,
                Some(before) => before.into_iter().filter(|sort| sorts.contains(sort)).collect(),
            });
        }
        allowed
    }

    /// The names of all fields that an object at `node` may have in one form or another, in the order of the schema.
    pub(super) fn names<'s>(&'s self, node: &'s Value) -> Vec<&'s str> {
        let objects = self.in_any_form(node).into_iter();
        let properties = objects.filter_map(|fields| fields.get("properties")?.as_object());
        let mut known = HashSet::new();
        properties.flat_map(Map::keys).map(String::as_str).filter(|name| known.insert(*name)).collect()
    }

    /// The words that a text at `node` may be in one form or another.
    pub(super) fn choices<'s>(&'s self, node: &'s Value) -> Vec<&'s str> {
        let objects = self.in_any_form(node).into_iter();
        let several = |fields: &'s Map<String, Value>| {
            fields.get("enum").and_then(Value::as_array).into_iter().flatten()
        };
        objects
            .flat_map(|fields| several(fields).chain(fields.get("const")))
            .filter_map(Value::as_str)
            .collect()
    }

    /// All objects of the schema that hold for the value at `node` in one form or another.
    pub(super) fn in_any_form<'s>(&'s self, node: &'s Value) -> Vec<&'s Map<String, Value>> {
        let mut objects = Vec::new();
        let mut seen = HashSet::new();
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            if let (Value::Object(fields), true) = (node, seen.insert(std::ptr::from_ref(node))) {
                objects.push(fields);
                open.extend(self.same_place(node).into_iter().rev());
            }
        }
        objects
    }

    /// The names of the fields an object at `node` has to have.
    pub(super) fn required<'s>(&'s self, node: &'s Value) -> Vec<&'s str> {
        let lists = self.all_of(node).into_iter().filter_map(|fields| fields.get("required")?.as_array());
        lists.flatten().filter_map(Value::as_str).collect()
    }

    /// What the field `name` of an object at `node` has to be.
    pub(super) fn property<'s>(&'s self, node: &'s Value, name: &str) -> Option<&'s Value> {
        self.all_of(node).into_iter().find_map(|fields| fields.get("properties")?.get(name))
    }

    /// What `node` wants, in words.
    pub(super) fn expected(&self, node: &Value) -> Expected {
        self.expected_within(node, 0)
    }

    fn expected_within(&self, node: &Value, depth: usize) -> Expected {
        if node == &Value::Bool(false) {
            return Expected::Nothing;
        }
        for fields in self.all_of(node) {
            if let Some(value) = fields.get("const") {
                return Expected::choice([value].into_iter());
            }
            if let Some(Value::Array(values)) = fields.get("enum") {
                return Expected::choice(values.iter());
            }
            let forms = ["anyOf", "oneOf"].into_iter().find_map(|keyword| fields.get(keyword)?.as_array());
            if let (Some(forms), true) = (forms, depth < WORDS_DEEP) {
                return either(forms.iter().map(|form| self.expected_within(form, depth + 1)));
            }
        }
        self.sorts(node).map_or(Expected::Any, Expected::Sorts)
    }
}

enum Height {
    Open,
    Known(usize),
}

fn written_sorts(written: &Value) -> Option<Vec<Sort>> {
    match written {
        Value::String(name) => Sort::named(name).map(|sort| vec![sort]),
        Value::Array(names) => Some(names.iter().filter_map(|name| Sort::named(name.as_str()?)).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Several expectations as one, each said once. Choices and types are joined.
pub(super) fn either(several: impl IntoIterator<Item = Expected>) -> Expected {
    let mut choices: Vec<String> = Vec::new();
    let mut more_choices = 0;
    let mut sorts: Vec<Sort> = Vec::new();
    let mut others: Vec<Expected> = Vec::new();
    let mut open: Vec<Expected> = several.into_iter().collect();
    open.reverse();
    while let Some(one) = open.pop() {
        match one {
            Expected::Either(inner) => open.extend(inner.into_iter().rev()),
            Expected::Choice(values, more) => {
                more_choices += more;
                for value in values {
                    if !choices.contains(&value) {
                        choices.push(value);
                    }
                }
            }
            Expected::Sorts(some) => {
                for sort in some {
                    if !sorts.contains(&sort) {
                        sorts.push(sort);
                    }
                }
            }
            other if others.contains(&other) => {}
            other => others.push(other),
        }
    }
    let mut joined = Vec::new();
    if !choices.is_empty() {
        joined.push(Expected::Choice(choices, more_choices).shortened());
    }
    if !sorts.is_empty() {
        joined.push(Expected::Sorts(sorts));
    }
    joined.extend(others);
    match joined.len() {
        1 => joined.remove(0),
        _ => Expected::Either(joined),
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A pointer within an address has codes for some signs.
fn decoded(pointer: &str) -> String {
    let bytes = pointer.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = pointer.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (byte, code) {
            (b'%', Some(code)) => {
                decoded.push(code);
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
