//! JSON with every string and every key clean.
//!
//! Beside what a string says by itself, JSON says more by its build: under which name a value is kept, and which option of
//! a command it follows. That is used here, before the whole is read as text once more.

use serde_json::{Map, Number, Value};

use super::{CONTEXT, Cleaner};
use crate::redact::{kind_of_field, kind_of_named, redact_known};

/// Longer strings follow no option.
const ARGUMENT_LENGTH: usize = 4096;

/// Writes `value` as compact JSON. What is far longer than `max` is not written to its end.
pub(super) fn write(cleaner: &Cleaner, value: &Value, max: usize) -> String {
    let most = max.saturating_mul(4).saturating_add(CONTEXT);
    let mut writer = Writer { cleaner, max, most, text: String::new() };
    writer.value(value, None);
    writer.text
}

struct Writer<'a> {
    cleaner: &'a Cleaner,
    /// The longest string.
    max: usize,
    /// Where writing ends.
    most: usize,
    text: String,
}

impl Writer<'_> {
    /// Writes a value that is kept under `name`.
    fn value(&mut self, value: &Value, name: Option<&str>) {
        match value {
            Value::Null | Value::Bool(_) => self.text.push_str(&value.to_string()),
            Value::Number(number) => self.number(number, name),
            Value::String(string) => match name.and_then(|name| kind_of_named(name, string)) {
                Some(kind) => self.mark(kind),
                None => self.string(string),
            },
            Value::Array(values) => self.array(values, name),
            Value::Object(fields) => self.object(fields, name),
        }
    }

    fn is_full(&self) -> bool {
        self.text.len() > self.most
    }

    fn mark(&mut self, kind: &str) {
        self.text.push_str(&format!("\"[redacted:{kind}]\""));
    }

    fn string(&mut self, string: &str) {
        let clean = self.cleaner.text(string, self.max).into_string();
        self.text.push_str(&Value::String(clean).to_string());
    }

    fn number(&mut self, number: &Number, name: Option<&str>) {
        let number = number.to_string();
        // Keys and tokens of digits alone are numbers of something; a password of digits is one.
        match name.and_then(|name| kind_of_named(name, &number)) {
            Some(kind @ "password") => self.mark(kind),
            Some(_) | None => self.text.push_str(&number),
        }
    }

    fn array(&mut self, values: &[Value], name: Option<&str>) {
        self.text.push('[');
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            if self.is_full() {
                break;
            }
            match argument(self.cleaner, &values[..index], value) {
                Some(clean) => self.string(&clean),
                None => self.value(value, name),
            }
        }
        self.text.push(']');
    }

    /// Writes the fields of an object that is kept under `parent`.
    fn object(&mut self, fields: &Map<String, Value>, parent: Option<&str>) {
        // `{"name": "API_KEY", "value": "…"}`
        let named = ["name", "key", "header"].iter().find_map(|key| fields.get(*key)?.as_str());
        self.text.push('{');
        for (index, (key, value)) in fields.iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            if self.is_full() {
                break;
            }
            self.string(key);
            self.text.push(':');
            let name = if key == "value" { named.unwrap_or(key) } else { key };
            match written_into_secret(fields, parent, key, value) {
                Some(kind) => self.mark(kind),
                None => match read_by_command(self.cleaner, fields, key, value) {
                    Some(clean) => self.string(&clean),
                    None => self.value(value, Some(name)),
                },
            }
        }
        self.text.push('}');
    }
}

/// What is written into a field that another key names: `{"selector": "#password", "text": "…"}`.
fn written_into_secret(
    fields: &Map<String, Value>,
    parent: Option<&str>,
    key: &str,
    value: &Value,
) -> Option<&'static str> {
    const VALUES: [&str; 15] = [
        "value",
        "text",
        "content",
        "data",
        "input",
        "answer",
        "val",
        "contents",
        "string",
        "keys",
        "access",
        "v",
        "new_value",
        "newValue",
        "default",
    ];
    const NAMES: [&str; 15] = [
        "name",
        "key",
        "k",
        "header",
        "field",
        "selector",
        "element",
        "label",
        "target",
        "variable",
        "id",
        "placeholder",
        "type",
        "kind",
        "prompt",
    ];
    let value = value.as_str().filter(|_| VALUES.contains(&key))?;
    let names = NAMES.iter().filter_map(|name| fields.get(*name)?.as_str()).chain(parent);
    names.filter_map(|name| kind_of_field(name, value)).next()
}

/// What a command reads, if it takes that for a secret: `{"command": "sudo -S ls", "stdin": "…"}`.
fn read_by_command(
    cleaner: &Cleaner,
    fields: &Map<String, Value>,
    key: &str,
    value: &Value,
) -> Option<String> {
    let value =
        value.as_str().filter(|value| value.len() <= 256 && ["stdin", "input", "keys"].contains(&key))?;
    let command = ["command", "cmd"].iter().find_map(|key| fields.get(*key)?.as_str())?;
    let before = "echo '";
    let behind = format!("' | {}", command.get(..command.len().min(64))?);
    let whole = format!("{before}{}{behind}", value.trim_end());
    let redacted = redact_known(&whole, &cleaner.known, &mut []);
    let clean = redacted.strip_prefix(before)?.strip_suffix(&behind)?;
    (clean != value.trim_end()).then(|| clean.to_owned())
}

/// `value` as an argument behind the others, if it holds a secret that only they tell: `["--token", "…"]`.
fn argument(cleaner: &Cleaner, before: &[Value], value: &Value) -> Option<String> {
    let value = value.as_str().filter(|value| value.len() <= ARGUMENT_LENGTH)?;
    let option = before.last()?.as_str().filter(|option| option.len() <= 64)?;
    let program = before.first()?.as_str().filter(|program| program.len() <= 64)?;
    let before = match (option.starts_with('-'), value.starts_with('-')) {
        (true, _) => format!("{program} {option} "),
        (false, true) => format!("{program} "),
        (false, false) => return None,
    };
    let whole = format!("{before}{value}");
    let redacted = redact_known(&whole, &cleaner.known, &mut []);
    redacted.strip_prefix(&before).filter(|clean| *clean != value).map(str::to_owned)
}
