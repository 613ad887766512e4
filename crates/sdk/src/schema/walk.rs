//! Walks through arguments along their schema and collects what is wrong, with what is most useful to know of each.
//!
//! Whether arguments are valid is not decided here but by the validator: what this walk does not understand it leaves out.
//! It copies nothing of the arguments but the short beginnings that are quoted, and its steps are counted.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use jsonschema::Validator;
use serde_json::{Map, Number, Value, json};

use super::definitions::{Definitions, either};
use super::expected::{Bound, Expected, Sort, Unit};
use super::mistake::{MISTAKES_MAX, Mistake, Wrong};
use super::near::near;
use super::quote::Step;

/// So many places are looked at before the walk gives up: schemas with many forms inside of forms would take for ever.
const STEPS_MAX: usize = 500_000;
/// A mistake costs as much as so many steps, when it is put into words.
const STEPS_OF_WORDS: usize = 100;
/// Where more forms were tried, the validator has to try as many for its own words, and these cost more.
const FORMS_MAX: usize = 1_000;
/// Of so many forms it is asked which one has the better hint.
const FORMS_COMPARED: usize = 8;
/// Among more unknown fields than this nobody looks for a misspelt one.
pub(super) const UNKNOWN_MAX: usize = 256;

/// One walk through arguments.
pub(super) struct Walk<'s> {
    pub(super) definitions: &'s Definitions,
    compile: &'s dyn Fn(&Value) -> Option<Validator>,
    steps: Cell<usize>,
    forms: Cell<usize>,
    /// Checks for single keywords that only the validator understands.
    checks: RefCell<HashMap<(&'static str, String), Option<Validator>>>,
}

/// What was found on a walk.
pub(super) struct Found {
    pub(super) mistakes: Vec<Mistake>,
    /// All of them, also those that are not listed.
    pub(super) count: usize,
    /// Whether a field is missing in the very value the walk began at.
    pub(super) is_missing: bool,
    /// Whether that value is something else altogether.
    is_off: bool,
    /// How far in the walk began.
    level: usize,
    aim: Aim,
}

/// What a walk is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// To know whether anything is wrong.
    Answer,
    /// To know how much is wrong.
    Count,
    /// To tell so many mistakes.
    Words(usize),
}

/// What a mistake means for the value it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// It is something else altogether.
    Off,
    /// It lacks a field.
    Missing,
    /// It is nearly right.
    Slight,
}

impl Found {
    pub(super) fn new(level: usize) -> Found {
        Found::with(level, Aim::Words(MISTAKES_MAX))
    }

    fn with(level: usize, aim: Aim) -> Found {
        Found { mistakes: Vec::new(), count: 0, is_missing: false, is_off: false, level, aim }
    }

    /// How many mistakes may still be told.
    fn room(&self) -> usize {
        match self.aim {
            Aim::Answer | Aim::Count => 0,
            Aim::Words(most) => most.saturating_sub(self.mistakes.len()),
        }
    }

    /// Whether only the answer counts, and it is known.
    fn is_enough(&self) -> bool {
        self.aim == Aim::Answer && self.count > 0
    }

    /// How far the value is from what was wanted.
    fn distance(&self) -> (bool, bool, usize) {
        (self.is_off, self.is_missing, self.count)
    }

    fn absorb(&mut self, other: Found) {
        self.count += other.count;
        self.is_missing |= other.is_missing && other.level == self.level;
        self.is_off |= other.is_off && other.level == self.level;
        let room = self.room();
        self.mistakes.extend(other.mistakes.into_iter().take(room));
    }
}

impl<'s> Walk<'s> {
    /// `compile` makes validators of schemas with a single keyword.
    pub(super) fn new(
        definitions: &'s Definitions,
        compile: &'s dyn Fn(&Value) -> Option<Validator>,
    ) -> Walk<'s> {
        Walk { definitions, compile, steps: Cell::new(0), forms: Cell::new(0), checks: RefCell::default() }
    }

    /// Whether so many steps were made that what was found need not be all.
    pub(super) fn is_tired(&self) -> bool {
        self.steps.get() >= STEPS_MAX
    }

    /// Makes a step, and says whether it was one too many.
    pub(super) fn is_tired_after_a_step(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        self.is_tired()
    }

    /// What a part of the schema refers to.
    pub(super) fn references(&self, node: &'s Value) -> impl Iterator<Item = &'s Value> + use<'s> {
        let definitions = self.definitions;
        let references =
            ["$ref", "$dynamicRef"].into_iter().filter_map(|keyword| node.get(keyword)?.as_str());
        references.filter_map(|reference| definitions.target(reference))
    }

    /// Whether the validator can put into words what the walk could not.
    pub(super) fn leaves_it_to_the_validator(&self) -> bool {
        self.forms.get() <= FORMS_MAX
    }

    /// Whether nothing is found to be wrong.
    pub(super) fn fits(&self, node: &'s Value, value: &Value) -> bool {
        let mut found = Found::with(0, Aim::Answer);
        self.look(node, node, value, &mut Vec::new(), &mut found);
        found.count == 0
    }

    pub(super) fn add(
        &self,
        found: &mut Found,
        way: &[Step<'_>],
        value: &Value,
        weight: Weight,
        wrong: impl FnOnce() -> Wrong,
    ) {
        found.count += 1;
        if way.len() == found.level {
            found.is_off |= weight == Weight::Off;
            found.is_missing |= weight == Weight::Missing;
        }
        if found.room() == 0 {
            return;
        }
        self.steps.set(self.steps.get() + STEPS_OF_WORDS);
        let mistake = Mistake::at(way, value, &wrong());
        // Two parts of a schema often ask for the same.
        let is_known = |other: &Mistake| other.path == mistake.path && other.expected == mistake.expected;
        match found.mistakes.iter().any(is_known) {
            true => found.count -= 1,
            false => found.mistakes.push(mistake),
        }
    }

    /// Something else was expected in a value of the right kind.
    fn slight(
        &self,
        found: &mut Found,
        way: &[Step<'_>],
        value: &Value,
        expected: impl FnOnce() -> Expected,
    ) {
        self.add(found, way, value, Weight::Slight, || Wrong::Unfit(expected(), None));
    }

    /// Looks at `value`, for which `node` holds. `whole` is all that holds for it, of which `node` is a part.
    pub(super) fn look<'v>(
        &self,
        node: &'s Value,
        whole: &'s Value,
        value: &'v Value,
        way: &mut Vec<Step<'v>>,
        found: &mut Found,
    ) {
        if self.is_tired_after_a_step() || found.is_enough() {
            return;
        }
        match node {
            Value::Bool(false) => {
                return self.add(found, way, value, Weight::Off, || Wrong::Unfit(Expected::Nothing, None));
            }
            Value::Object(_) => {}
            Value::Null | Value::Bool(true) | Value::Number(_) | Value::String(_) | Value::Array(_) => return,
        }
        for target in self.references(node) {
            self.look(target, whole, value, way, found);
        }
        let Some(fields) = self.definitions.words(node) else { return };
        if !self.is_right_sort(node, fields, value, way, found) {
            return;
        }
        for inner in list(fields, "allOf") {
            self.look(inner, whole, value, way, found);
        }
        if fields.contains_key("anyOf") {
            self.look_at_forms(list(fields, "anyOf"), false, value, way, found);
        }
        if fields.contains_key("oneOf") {
            self.look_at_forms(list(fields, "oneOf"), true, value, way, found);
        }
        if let Some(inner) = fields.get("not")
            && self.fits(inner, value)
        {
            self.slight(found, way, value, || Expected::Otherwise);
        }
        if let Some(condition) = fields.get("if") {
            let keyword = if self.fits(condition, value) { "then" } else { "else" };
            if let Some(inner) = fields.get(keyword) {
                self.look(inner, whole, value, way, found);
            }
        }
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => self.look_at_number(fields, number, value, way, found),
            Value::String(text) => self.look_at_text(fields, text, value, way, found),
            Value::Array(entries) => self.look_at_list(fields, entries, value, way, found),
            Value::Object(entries) => self.look_at_object(fields, whole, entries, value, way, found),
        }
    }

    /// Type, allowed values: where these are wrong, nothing else is worth saying.
    fn is_right_sort(
        &self,
        node: &'s Value,
        fields: &'s Map<String, Value>,
        value: &Value,
        way: &[Step<'_>],
        found: &mut Found,
    ) -> bool {
        let allowed: Option<&[Value]> = match (fields.get("const"), fields.get("enum")) {
            (Some(only), _) => Some(std::slice::from_ref(only)),
            (None, Some(Value::Array(several))) => Some(several),
            (None, _) => None,
        };
        if let Some(allowed) = allowed
            && !allowed.iter().any(|one| is_same(one, value))
        {
            let meant = || {
                let words = allowed.iter().filter_map(Value::as_str);
                value.as_str().and_then(|text| near(text, words)).map(str::to_owned)
            };
            self.add(found, way, value, Weight::Off, || {
                Wrong::Unfit(Expected::choice(allowed.iter()), meant())
            });
            return false;
        }
        let sorts = sorts(fields);
        if sorts.is_empty() || sorts.iter().any(|sort| sort.holds(value)) {
            return true;
        }
        self.add(found, way, value, Weight::Off, || Wrong::Unfit(self.definitions.expected(node), None));
        false
    }

    /// Looks at the forms a value may have. If it has none of them, what is wrong with the nearest is told.
    fn look_at_forms<'v>(
        &self,
        forms: &'s [Value],
        is_only_one: bool,
        value: &'v Value,
        way: &mut Vec<Step<'v>>,
        found: &mut Found,
    ) {
        // First all of them are only counted: words for forms nobody meant would cost much.
        let aim = if found.aim == Aim::Answer { Aim::Answer } else { Aim::Count };
        let mut tried: Vec<Found> = Vec::with_capacity(forms.len());
        let mut fitting = 0;
        for form in forms {
            self.forms.set(self.forms.get() + 1);
            let mut inner = Found::with(way.len(), aim);
            self.look(form, form, value, way, &mut inner);
            if inner.count == 0 {
                fitting += 1;
                if !is_only_one {
                    return;
                }
            }
            tried.push(inner);
        }
        match fitting {
            0 => {}
            1 => return,
            _ => return self.slight(found, way, value, || Expected::OneForm),
        }
        if aim == Aim::Answer {
            found.count += 1;
            return;
        }
        if let Some((tag, words)) = self.tag(forms) {
            let given = value.get(tag);
            let chosen = words.iter().position(|word| given.is_some_and(|given| is_same(word, given)));
            match (chosen, given, value) {
                (Some(chosen), _, _) => {
                    let counted = tried.swap_remove(chosen);
                    return found.absorb(self.look_again(&forms[chosen], counted, value, way, found));
                }
                (None, Some(given), _) => {
                    way.push(Step::Field(tag_of(value, tag)));
                    self.add(found, way, given, Weight::Off, || {
                        let texts = words.iter().filter_map(|word| word.as_str());
                        let meant = given.as_str().and_then(|text| near(text, texts)).map(str::to_owned);
                        Wrong::Unfit(Expected::choice(words.into_iter()), meant)
                    });
                    way.pop();
                    return;
                }
                (None, None, Value::Object(entries)) => {
                    return self.add(found, way, value, Weight::Missing, || {
                        let unknown = entries.keys().take(UNKNOWN_MAX).map(String::as_str);
                        let under = near(tag, unknown).map(str::to_owned);
                        Wrong::Missing {
                            field: tag.to_owned(),
                            expected: Expected::choice(words.into_iter()),
                            under,
                        }
                    });
                }
                (None, None, _) => {}
            }
        }
        let Some(least) = tried.iter().map(Found::distance).min() else { return };
        if least.0 {
            return self.add(found, way, value, Weight::Off, || {
                let words = forms.iter().flat_map(|form| self.definitions.choices(form));
                let meant = value.as_str().and_then(|text| near(text, words)).map(str::to_owned);
                Wrong::Unfit(either(forms.iter().map(|form| self.definitions.expected(form))), meant)
            });
        }
        // Of forms that all lack a field the one is meant whose field is there under a similar name.
        let mut nearest = forms.iter().zip(tried).filter(|(_, counted)| counted.distance() == least);
        let Some((first, counted)) = nearest.next() else { return };
        let first = self.look_again(first, counted, value, way, found);
        let has_hint = |found: &Found| found.mistakes.iter().any(|mistake| mistake.hint.is_some());
        let is_open = least.1 && !has_hint(&first);
        let better = nearest
            .take(if is_open { FORMS_COMPARED } else { 0 })
            .map(|(form, counted)| self.look_again(form, counted, value, way, found))
            .find(has_hint);
        found.absorb(better.unwrap_or(first));
    }

    /// Looks at a form that was `counted` a second time, for words, if there is room for them.
    fn look_again<'v>(
        &self,
        form: &'s Value,
        counted: Found,
        value: &'v Value,
        way: &mut Vec<Step<'v>>,
        found: &Found,
    ) -> Found {
        if found.room() == 0 {
            return counted;
        }
        let mut inner = Found::with(way.len(), Aim::Words(found.room()));
        self.look(form, form, value, way, &mut inner);
        inner
    }

    /// The field that tells the forms apart, and its value in each.
    fn tag(&self, forms: &'s [Value]) -> Option<(&'s str, Vec<&'s Value>)> {
        let first = self.definitions.all_of(forms.first()?);
        let names =
            first.iter().filter_map(|fields| fields.get("properties")?.as_object()).flat_map(Map::keys);
        for name in names {
            let words: Option<Vec<&Value>> = forms
                .iter()
                .map(|form| match self.definitions.property(form, name) {
                    Some(property) => {
                        property.get("const").or_else(|| match list(property.as_object()?, "enum") {
                            [only] => Some(only),
                            _ => None,
                        })
                    }
                    None => None,
                })
                .collect();
            if let Some(words) = words {
                return Some((name, words));
            }
        }
        None
    }

    fn look_at_number(
        &self,
        fields: &'s Map<String, Value>,
        number: &Number,
        value: &Value,
        way: &[Step<'_>],
        found: &mut Found,
    ) {
        type Test = fn(Ordering) -> bool;
        const LIMITS: [(&str, &str, Test); 4] = [
            ("minimum", "≥", Ordering::is_ge),
            ("maximum", "≤", Ordering::is_le),
            ("exclusiveMinimum", ">", Ordering::is_gt),
            ("exclusiveMaximum", "<", Ordering::is_lt),
        ];
        for (keyword, sign, test) in LIMITS {
            if let Some(Value::Number(limit)) = fields.get(keyword)
                && !compared(number, limit).is_some_and(test)
            {
                self.slight(found, way, value, || Expected::Limit(sign, limit.clone()));
            }
        }
        if let Some(Value::Number(step)) = fields.get("multipleOf")
            && !self.passes("multipleOf", &Value::Number(step.clone()), value)
        {
            self.slight(found, way, value, || Expected::Multiple(step.clone()));
        }
    }

    fn look_at_text(
        &self,
        fields: &'s Map<String, Value>,
        text: &str,
        value: &Value,
        way: &[Step<'_>],
        found: &mut Found,
    ) {
        let length = || text.chars().count() as u64;
        self.count(fields, ["minLength", "maxLength"], length, Unit::Characters, value, way, found);
        for keyword in ["pattern", "format", "contentEncoding", "contentMediaType"] {
            let Some(wanted @ Value::String(words)) = fields.get(keyword) else { continue };
            if !self.passes(keyword, wanted, value) {
                self.slight(found, way, value, || match keyword {
                    "pattern" => Expected::Pattern(words.clone()),
                    _ => Expected::Format(words.clone()),
                });
            }
        }
    }

    fn look_at_list<'v>(
        &self,
        fields: &'s Map<String, Value>,
        entries: &'v [Value],
        value: &'v Value,
        way: &mut Vec<Step<'v>>,
        found: &mut Found,
    ) {
        let length = || entries.len() as u64;
        self.count(fields, ["minItems", "maxItems"], length, Unit::Entries, value, way, found);
        // Up to draft 2019-09 a list in `items` says what `prefixItems` says now.
        let (first, rest) = match (fields.get("prefixItems"), fields.get("items")) {
            (Some(Value::Array(first)), rest) => (&**first, rest),
            (_, Some(Value::Array(first))) => (&**first, fields.get("additionalItems")),
            (_, rest) => (&[][..], rest),
        };
        for (at, entry) in entries.iter().enumerate() {
            let Some(node) = first.get(at).or(rest) else { break };
            if self.is_tired() || found.is_enough() {
                break;
            }
            way.push(Step::Entry(at));
            self.look(node, node, entry, way, found);
            way.pop();
        }
        if fields.get("uniqueItems") == Some(&Value::Bool(true))
            && !self.passes("uniqueItems", &Value::Bool(true), value)
        {
            self.slight(found, way, value, || Expected::Distinct);
        }
        if let Some(node) = fields.get("contains") {
            let bound = |keyword, other| fields.get(keyword).and_then(Value::as_u64).unwrap_or(other);
            let there = entries.iter().filter(|entry| self.fits(node, entry)).count() as u64;
            if there < bound("minContains", 1) || there > bound("maxContains", u64::MAX) {
                self.slight(found, way, value, || Expected::Containing);
            }
        }
    }

    fn look_at_object<'v>(
        &self,
        fields: &'s Map<String, Value>,
        whole: &'s Value,
        entries: &'v Map<String, Value>,
        value: &'v Value,
        way: &mut Vec<Step<'v>>,
        found: &mut Found,
    ) {
        let length = || entries.len() as u64;
        self.count(fields, ["minProperties", "maxProperties"], length, Unit::Fields, value, way, found);
        let additional = fields.get("additionalProperties");
        let unevaluated = fields.get("unevaluatedProperties");
        let is_closed = [additional, unevaluated].contains(&Some(&Value::Bool(false)));
        self.look_for_missing(fields, whole, entries, is_closed, value, way, found);

        let properties = fields.get("properties").and_then(Value::as_object);
        let patterns = fields.get("patternProperties").and_then(Value::as_object);
        for (name, node) in properties.into_iter().flatten() {
            if let Some((name, entry)) = entries.get_key_value(name) {
                way.push(Step::Field(name));
                self.look(node, node, entry, way, found);
                way.pop();
            }
        }
        let is_of_interest =
            additional.is_some() || patterns.is_some() || fields.contains_key("propertyNames");
        if is_of_interest {
            for (name, entry) in entries {
                if self.is_tired() || found.is_enough() {
                    break;
                }
                way.push(Step::Field(name));
                if let Some(node) = fields.get("propertyNames") {
                    let name = Value::String(name.clone());
                    if !self.fits(node, &name) {
                        self.slight(found, way, entry, || Expected::Keyword("propertyNames".to_owned()));
                    }
                }
                let mut is_known = properties.is_some_and(|properties| properties.contains_key(name));
                for (pattern, node) in patterns.into_iter().flatten() {
                    if self.matches(pattern, name) {
                        is_known = true;
                        self.look(node, node, entry, way, found);
                    }
                }
                match additional {
                    Some(node @ Value::Object(_)) if !is_known => self.look(node, node, entry, way, found),
                    Some(_) | None => {}
                }
                way.pop();
                if additional == Some(&Value::Bool(false)) && !is_known {
                    self.add_unknown(name, whole, entries, value, way, found);
                }
            }
        }
        if unevaluated == Some(&Value::Bool(false)) {
            let known: HashSet<&str> = self.definitions.names(whole).into_iter().collect();
            let all = self.definitions.all_of(whole);
            let is_map = |fields: &&Map<String, Value>| fields.contains_key("patternProperties");
            if !all.iter().any(is_map) {
                for name in entries.keys().filter(|name| !known.contains(name.as_str())) {
                    self.add_unknown(name, whole, entries, value, way, found);
                }
            }
        }
        for (name, node) in fields.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten() {
            if entries.contains_key(name) {
                self.look(node, whole, value, way, found);
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn look_for_missing<'v>(
        &self,
        fields: &'s Map<String, Value>,
        whole: &'s Value,
        entries: &'v Map<String, Value>,
        is_closed: bool,
        value: &'v Value,
        way: &[Step<'v>],
        found: &mut Found,
    ) {
        let dependent = fields.get("dependentRequired").and_then(Value::as_object).into_iter().flatten();
        let dependent = dependent.filter(|(name, _)| entries.contains_key(*name));
        let wanted = list(fields, "required")
            .iter()
            .chain(dependent.flat_map(|(_, names)| names.as_array()).flatten());
        for field in wanted.filter_map(Value::as_str).filter(|field| !entries.contains_key(*field)) {
            self.add_missing(field, whole, entries, is_closed, value, way, found);
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn add_missing<'v>(
        &self,
        field: &str,
        whole: &'s Value,
        entries: &'v Map<String, Value>,
        is_closed: bool,
        value: &'v Value,
        way: &[Step<'v>],
        found: &mut Found,
    ) {
        self.add(found, way, value, Weight::Missing, || {
            let node = self.definitions.property(whole, field);
            let expected = node.map_or(Expected::Any, |node| self.definitions.expected(node));
            // Where unknown fields are a mistake of their own, that one says what was meant.
            let under = if is_closed { None } else { self.under(field, whole, entries) };
            Wrong::Missing { field: field.to_owned(), expected, under: under.map(str::to_owned) }
        });
    }

    /// The unknown field under which a missing one probably stands.
    fn under<'v>(&self, field: &str, whole: &'s Value, entries: &'v Map<String, Value>) -> Option<&'v str> {
        let known: HashSet<&str> = self.definitions.names(whole).into_iter().collect();
        let unknown = entries.keys().map(String::as_str).filter(|name| !known.contains(name));
        near(field, unknown.take(UNKNOWN_MAX))
    }

    fn add_unknown(
        &self,
        name: &str,
        whole: &'s Value,
        entries: &Map<String, Value>,
        value: &Value,
        way: &[Step<'_>],
        found: &mut Found,
    ) {
        self.add(found, way, value, Weight::Slight, || {
            let names = self.definitions.names(whole);
            let absent = names.into_iter().filter(|known| !entries.contains_key(*known));
            Wrong::Unknown { field: name.to_owned(), meant: near(name, absent).map(str::to_owned) }
        });
    }

    #[allow(clippy::too_many_arguments)]
    fn count(
        &self,
        fields: &Map<String, Value>,
        keywords: [&str; 2],
        there: impl Fn() -> u64,
        unit: Unit,
        value: &Value,
        way: &[Step<'_>],
        found: &mut Found,
    ) {
        let [least, most] = keywords.map(|keyword| fields.get(keyword).and_then(Value::as_u64));
        if least.is_none() && most.is_none() {
            return;
        }
        let there = there();
        if let Some(least) = least.filter(|least| there < *least) {
            self.slight(found, way, value, || Expected::Count(Bound::AtLeast, least, unit));
        }
        if let Some(most) = most.filter(|most| there > *most) {
            self.slight(found, way, value, || Expected::Count(Bound::AtMost, most, unit));
        }
    }

    pub(super) fn matches(&self, pattern: &str, name: &str) -> bool {
        self.passes("pattern", &Value::String(pattern.to_owned()), &Value::String(name.to_owned()))
    }

    /// Whether `value` passes a single keyword, as the validator sees it.
    fn passes(&self, keyword: &'static str, wanted: &Value, value: &Value) -> bool {
        let mut checks = self.checks.borrow_mut();
        let key = (keyword, wanted.to_string());
        let check = checks.entry(key).or_insert_with(|| (self.compile)(&json!({ keyword: wanted })));
        check.as_ref().is_none_or(|check| check.is_valid(value))
    }
}

/// The name of a field as the value has it, which lives as long as the value.
fn tag_of<'v>(value: &'v Value, tag: &str) -> &'v str {
    let entry = value.as_object().and_then(|entries| entries.get_key_value(tag));
    entry.map_or("", |(name, _)| name)
}

/// The types that a part of the schema names itself: the others speak for themselves.
pub(super) fn sorts(fields: &Map<String, Value>) -> Vec<Sort> {
    match fields.get("type") {
        Some(Value::String(name)) => Sort::named(name).into_iter().collect(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).filter_map(Sort::named).collect(),
        Some(_) | None => Vec::new(),
    }
}

pub(super) fn list<'s>(fields: &'s Map<String, Value>, keyword: &str) -> &'s [Value] {
    fields.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// For JSON schema `1` and `1.0` are the same.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compared(one, other) == Some(Ordering::Equal),
        _ => one == other,
    }
}

fn compared(one: &Number, other: &Number) -> Option<Ordering> {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}
