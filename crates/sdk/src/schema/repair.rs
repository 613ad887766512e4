//! Repairs arguments where it is plain what was meant.
//!
//! A repair changes how something is written, never what it says: nothing is invented, and nothing is dropped but a `null`
//! in the place of a field that may be left out. What could be meant in two ways stays as it is.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};
use unstuck_judge::Lang;

use super::definitions::Definitions;
use super::expected::{Sort, is_whole, pick};
use super::near::{Likeness, likeness};
use super::quote::{self, Step};
use super::walk::{UNKNOWN_MAX, Walk};

/// Deeper inside nothing is repaired: JSON within a text could go on and on.
const DEPTH_MAX: usize = 64;
/// One repair can make room for another. What is not settled after so many rounds is left alone.
const ROUNDS_MAX: usize = 4;
/// With more digits a fraction is not kept exactly.
const EXACT_DIGITS: usize = 15;
/// Up to here every whole number that is written as a fraction is exact.
const EXACT_WHOLE: f64 = 9_007_199_254_740_992.0;

/// One thing that was written differently in arguments, so that they fit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// Where, as a JSON pointer.
    pub path: String,
    /// The same as people write it.
    pub place: String,
    /// What was done, in each language.
    said: [String; 2],
}

impl Repair {
    /// What was done, in one sentence.
    pub fn text(&self, lang: Lang) -> &str {
        &self.said[lang as usize]
    }
}

/// What a repair does.
enum Change<'c> {
    /// A text was read as what it says.
    Read,
    /// A number was written as a text.
    Wrote,
    /// A fraction without a fraction was written as a whole number.
    Rounded,
    /// One value became a list of one.
    Wrapped,
    /// A `null` was taken for a field that is left out.
    LeftOut,
    /// A field got its right name.
    Renamed(&'c str),
    /// A word got its right spelling.
    Respelt(&'c str),
}

/// A step of a way whose value is being changed.
#[derive(Clone)]
enum Turn {
    Field(String),
    Entry(usize),
}

/// Repairs `value` as far as possible. Nothing if there is nothing to repair, or no end of it.
pub(super) fn repair(definitions: &Definitions, walk: &Walk<'_>, value: &mut Value) -> Option<Vec<Repair>> {
    let mut repairs = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let before = repairs.len();
        let mut mending = Mending { definitions, walk, way: Vec::new(), repairs };
        mending.mend(definitions.root(), value);
        repairs = mending.repairs;
        if walk.is_tired() {
            return None;
        }
        if repairs.len() == before {
            return (!repairs.is_empty()).then_some(repairs);
        }
    }
    None
}

struct Mending<'m, 's> {
    definitions: &'s Definitions,
    walk: &'m Walk<'s>,
    way: Vec<Turn>,
    repairs: Vec<Repair>,
}

impl<'s> Mending<'_, 's> {
    fn mend(&mut self, node: &'s Value, value: &mut Value) {
        if self.way.len() > DEPTH_MAX || self.walk.is_tired() {
            return;
        }
        self.mend_sort(node, value);
        for fields in self.definitions.all_of(node) {
            for keyword in ["anyOf", "oneOf"] {
                if let Some(Value::Array(forms)) = fields.get(keyword) {
                    self.mend_form(forms, value);
                }
            }
            self.mend_word(fields, value);
        }
        match value {
            Value::Array(entries) => self.mend_list(node, entries),
            Value::Object(entries) => self.mend_object(node, entries),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Does something inside of what has `turn` as its next step.
    fn within(&mut self, turn: Turn, act: impl FnOnce(&mut Self)) {
        self.way.push(turn);
        act(self);
        self.way.pop();
    }

    fn note(&mut self, before: &Value, change: &Change<'_>) {
        let way: Vec<Step<'_>> = self.way.iter().map(Turn::step).collect();
        let place = quote::readable(&way);
        let said = [Lang::En, Lang::Zh].map(|lang| {
            let it = match &*place {
                "" => pick(lang, "the arguments", "参数整体").to_owned(),
                place => format!("`{place}`"),
            };
            change.say(&it, &quote::got(before, &way, lang), lang)
        });
        let path = quote::pointer(&way);
        self.repairs.push(Repair { path, place, said });
    }

    /// Writes a value as the type that is wanted, if it says the same then.
    fn mend_sort(&mut self, node: &'s Value, value: &mut Value) {
        let Some(sorts) = self.definitions.sorts(node) else { return };
        let wants = |sort: Sort| sorts.contains(&sort);
        if let Value::Number(number) = &*value
            && wants(Sort::Whole)
            && !wants(Sort::Number)
            && let Some(whole) = whole(number)
        {
            self.note(value, &Change::Rounded);
            *value = Value::Number(whole);
            return;
        }
        if sorts.iter().any(|sort| sort.holds(value)) {
            return;
        }
        let read = match &*value {
            Value::String(text) => read(text, &sorts),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        };
        if let Some(read) = read {
            self.note(value, &Change::Read);
            *value = read;
            return;
        }
        if let Value::Number(number) = &*value
            && wants(Sort::Text)
            && (number.is_i64() || number.is_u64())
        {
            let text = number.to_string();
            self.note(value, &Change::Wrote);
            *value = Value::String(text);
            return;
        }
        if wants(Sort::List) && !value.is_null() {
            self.wrap(node, value);
        }
    }

    /// Makes a list of one of a value that could be its entry.
    fn wrap(&mut self, node: &'s Value, value: &mut Value) {
        let mut entry = value.clone();
        let known = self.repairs.len();
        let entries: Vec<&Value> =
            self.definitions.all_of(node).into_iter().filter_map(|fields| entry_node(fields, 0)).collect();
        self.within(Turn::Entry(0), |mending| {
            for node in &entries {
                mending.mend(node, &mut entry);
            }
        });
        let fits = entries.iter().all(|node| self.walk.fits(node, &entry));
        if !fits {
            self.repairs.truncate(known);
            return;
        }
        self.note(value, &Change::Wrapped);
        *value = Value::Array(vec![entry]);
    }

    /// Gives an allowed word its right spelling.
    fn mend_word(&mut self, fields: &'s Map<String, Value>, value: &mut Value) {
        let Value::String(text) = &*value else { return };
        let several = fields.get("enum").and_then(Value::as_array).into_iter().flatten();
        let words: Vec<&str> = several.chain(fields.get("const")).filter_map(Value::as_str).collect();
        if words.contains(&text.as_str()) {
            return;
        }
        let mut alike = words.into_iter().filter(|word| likeness(text, word) == Some(Likeness::Spelling));
        if let (Some(word), None) = (alike.next(), alike.next()) {
            self.note(value, &Change::Respelt(word));
            *value = Value::String(word.to_owned());
        }
    }

    /// Brings a value into one of several forms, if only one comes into question.
    fn mend_form(&mut self, forms: &'s [Value], value: &mut Value) {
        if forms.iter().any(|form| self.walk.fits(form, value)) {
            return;
        }
        let mut possible: Vec<(Value, Vec<Repair>)> = Vec::new();
        for form in forms {
            let mut tried = value.clone();
            let mut mending = Mending {
                definitions: self.definitions,
                walk: self.walk,
                way: self.way.clone(),
                repairs: Vec::new(),
            };
            mending.mend(form, &mut tried);
            if !mending.repairs.is_empty() && self.walk.fits(form, &tried) {
                possible.push((tried, mending.repairs));
            }
        }
        possible.sort_by_key(|(_, repairs)| repairs.len());
        let is_plain = match &*possible {
            [] => false,
            [_] => true,
            [first, second, ..] => first.0 == second.0 || first.1.len() < second.1.len(),
        };
        if is_plain && let Some((mended, repairs)) = possible.into_iter().next() {
            *value = mended;
            self.repairs.extend(repairs);
        }
    }

    fn mend_list(&mut self, node: &'s Value, entries: &mut [Value]) {
        for fields in self.definitions.all_of(node) {
            for (at, entry) in entries.iter_mut().enumerate() {
                let Some(node) = entry_node(fields, at) else { break };
                self.within(Turn::Entry(at), |mending| mending.mend(node, entry));
            }
        }
    }

    fn mend_object(&mut self, node: &'s Value, entries: &mut Map<String, Value>) {
        let all = self.definitions.all_of(node);
        self.mend_names(node, entries);
        let required = self.definitions.required(node);
        for fields in &all {
            let properties = fields.get("properties").and_then(Value::as_object);
            for (name, node) in properties.into_iter().flatten() {
                let is_void = entries.get(name).is_some_and(Value::is_null);
                if is_void && !required.contains(&name.as_str()) && !self.walk.fits(node, &Value::Null) {
                    self.within(Turn::Field(name.clone()), |mending| {
                        mending.note(&Value::Null, &Change::LeftOut);
                    });
                    entries.shift_remove(name);
                } else if let Some(entry) = entries.get_mut(name) {
                    self.within(Turn::Field(name.clone()), |mending| mending.mend(node, entry));
                }
            }
            if let Some(node @ Value::Object(_)) = fields.get("additionalProperties") {
                let others = entries
                    .iter_mut()
                    .filter(|(name, _)| properties.is_none_or(|known| !known.contains_key(*name)));
                for (name, entry) in others {
                    self.within(Turn::Field(name.clone()), |mending| mending.mend(node, entry));
                }
            }
        }
    }

    /// Gives fields their right names: those that are only spelt otherwise, and those that are missing under their own.
    fn mend_names(&mut self, node: &'s Value, entries: &mut Map<String, Value>) {
        let all = self.definitions.all_of(node);
        // Where any name may stand, names are data.
        let is_map = |fields: &&Map<String, Value>| {
            fields.contains_key("patternProperties")
                || matches!(fields.get("additionalProperties"), Some(Value::Object(_)))
        };
        if all.iter().any(is_map) {
            return;
        }
        let names = self.definitions.names(node);
        let known: HashSet<&str> = names.iter().copied().collect();
        let required = self.definitions.required(node);
        for is_typo_allowed in [false, true] {
            let unknown: Vec<&str> =
                entries.keys().map(String::as_str).filter(|name| !known.contains(name)).collect();
            if unknown.is_empty() || unknown.len() > UNKNOWN_MAX {
                return;
            }
            let absent = if is_typo_allowed { &required } else { &names };
            let absent: Vec<&str> =
                absent.iter().copied().filter(|name| !entries.contains_key(*name)).collect();
            let is_meant = |written: &str, name: &str| match likeness(written, name) {
                Some(Likeness::Spelling) => true,
                Some(Likeness::Typo(_)) => is_typo_allowed,
                Some(Likeness::Part) | None => false,
            };
            let mut renamed: Vec<(String, String)> = Vec::new();
            for name in absent.iter().take(UNKNOWN_MAX) {
                let Some(written) = only(unknown.iter().copied().filter(|one| is_meant(one, name))) else {
                    continue;
                };
                if only(absent.iter().filter(|other| is_meant(written, other))).is_some() {
                    renamed.push((written.to_owned(), (*name).to_owned()));
                }
            }
            for (written, name) in renamed {
                self.within(Turn::Field(written.clone()), |mending| {
                    mending.note(&Value::Null, &Change::Renamed(&name));
                });
                *entries = std::mem::take(entries)
                    .into_iter()
                    .map(|(other, value)| (if other == written { name.clone() } else { other }, value))
                    .collect();
            }
        }
    }
}

/// The one thing there is, if there is only one.
fn only<T>(mut some: impl Iterator<Item = T>) -> Option<T> {
    let first = some.next()?;
    some.next().is_none().then_some(first)
}

impl Turn {
    fn step(&self) -> Step<'_> {
        match self {
            Turn::Field(name) => Step::Field(name),
            Turn::Entry(at) => Step::Entry(*at),
        }
    }
}

impl Change<'_> {
    fn say(&self, it: &str, before: &str, lang: Lang) -> String {
        let zh = lang == Lang::Zh;
        match self {
            Change::Read if zh => format!("{it}：{before} 已按其内容读取"),
            Change::Read => format!("{it}: {before} was read as what it says"),
            Change::Wrote if zh => format!("{it}：{before} 已写成文本"),
            Change::Wrote => format!("{it}: {before} was written as a text"),
            Change::Rounded if zh => format!("{it}：{before} 已写成整数"),
            Change::Rounded => format!("{it}: {before} was written as a whole number"),
            Change::Wrapped if zh => format!("{it}：{before} 已放入只含一项的列表"),
            Change::Wrapped => format!("{it}: {before} became a list of one"),
            Change::LeftOut if zh => format!("{it}：null 视为未填写"),
            Change::LeftOut => format!("{it}: null was taken as left out"),
            Change::Renamed(name) if zh => format!("{it} 已改名为 `{}`", quote::name(name)),
            Change::Renamed(name) => format!("{it} was renamed to `{}`", quote::name(name)),
            Change::Respelt(word) if zh => format!("{it}：{before} 已改写为 {}", quote::quoted(word)),
            Change::Respelt(word) => format!("{it}: {before} was spelt {}", quote::quoted(word)),
        }
    }
}

/// What the entry of a list at a position has to be.
fn entry_node(fields: &Map<String, Value>, at: usize) -> Option<&Value> {
    match (fields.get("prefixItems"), fields.get("items")) {
        (Some(Value::Array(first)), rest) => first.get(at).or(rest),
        (_, Some(Value::Array(first))) => first.get(at).or(fields.get("additionalItems")),
        (_, rest) => rest,
    }
}

/// A whole number that is written as a fraction, as it should be written.
fn whole(number: &Number) -> Option<Number> {
    let fraction = number.as_f64().filter(|_| number.is_f64())?;
    let is_exact = is_whole(number) && fraction.abs() <= EXACT_WHOLE;
    // It is whole and small enough, so nothing is cut off.
    #[allow(clippy::cast_possible_truncation)]
    is_exact.then(|| Number::from(fraction as i64))
}

/// What a text says, if it is of a type that is wanted.
fn read(text: &str, sorts: &[Sort]) -> Option<Value> {
    let wants = |sort: Sort| sorts.contains(&sort);
    if wants(Sort::Truth) {
        for truth in [true, false] {
            if text.eq_ignore_ascii_case(if truth { "true" } else { "false" }) {
                return Some(Value::Bool(truth));
            }
        }
    }
    if wants(Sort::Whole) || wants(Sort::Number) {
        let number = exact(text).filter(|number| wants(Sort::Number) || is_whole(number));
        if let Some(number) = number {
            return Some(Value::Number(number));
        }
    }
    let is_wanted = match text.trim_start().as_bytes().first() {
        Some(b'{') => wants(Sort::Object),
        Some(b'[') => wants(Sort::List),
        Some(_) | None => false,
    };
    is_wanted.then(|| serde_json::from_str(text).ok()).flatten()
}

/// The number a text is, if it can be kept with all its digits.
fn exact(text: &str) -> Option<Number> {
    let whole = text.parse::<u64>().map(Number::from).or_else(|_| text.parse::<i64>().map(Number::from));
    let written = |number: &Number| number.to_string() == text;
    if let Some(number) = whole.ok().filter(|number: &Number| written(number)) {
        return Some(number);
    }
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let is_short = text.len() <= 2 * EXACT_DIGITS && digits <= EXACT_DIGITS;
    let number: Number =
        serde_json::from_str(text).ok().filter(|_| is_short && text.contains(['.', 'e', 'E']))?;
    number.as_f64().is_some_and(f64::is_finite).then_some(number)
}
