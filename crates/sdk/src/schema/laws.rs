//! What holds for every schema and all arguments.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};
use unstuck_judge::Lang;

use super::walk::Walk;
use super::{Schema, dismantle, options, size};

const NAMES: [&str; 8] = ["path", "Path", "pth", "lines", "line", "file_path", "", "a.b"];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3_i64..4).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(vec![0.5, 1.0, -2.0, 1e300]).prop_map(Value::from),
        word().prop_map(Value::from),
    ]
}

fn word() -> impl Strategy<Value = String> {
    let plain = ["a", "A", "b", "aa", "3", "-1", "true", "False", "0.5", "1e3", "007"];
    prop_oneof![4 => select(plain.map(str::to_owned).to_vec()), 1 => "\\PC{0,6}", 1 => any::<String>()]
}

/// Arguments without JSON inside of texts.
fn plain_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            btree_map(select(&NAMES[..]), inner, 0..5).prop_map(object),
        ]
    })
}

/// Arguments, some of them as a text.
fn value() -> impl Strategy<Value = Value> {
    (plain_value(), 0..6).prop_map(|(value, written)| match (written, value) {
        (0, value) => Value::String(value.to_string()),
        (1, Value::Object(entries)) => {
            entries.into_iter().map(|(name, value)| (name, Value::String(value.to_string()))).collect()
        }
        (_, value) => value,
    })
}

fn object(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
}

fn leaf() -> impl Strategy<Value = Value> {
    let sort = select(vec!["null", "boolean", "integer", "number", "string", "array", "object"]);
    prop_oneof![
        4 => sort.clone().prop_map(|sort| json!({ "type": sort })),
        1 => subsequence(vec!["null", "integer", "string", "array"], 1..4).prop_map(|sorts| json!({ "type": sorts })),
        1 => scalar().prop_map(|only| json!({ "const": only })),
        1 => Just(json!({ "enum": ["a", "B", 1, null] })),
        1 => (-3..3).prop_map(|least| json!({ "minimum": least })),
        1 => Just(json!({ "exclusiveMaximum": 1, "multipleOf": 0.5 })),
        1 => (0..3).prop_map(|most| json!({ "maxLength": most, "minItems": most })),
        1 => Just(json!({ "pattern": "^[ab]+$" })),
        1 => Just(json!({ "uniqueItems": true, "maxProperties": 2 })),
        1 => any::<bool>().prop_map(Value::Bool),
        2 => Just(json!({ "$ref": "#/$defs/here" })),
        1 => Just(json!({ "$ref": "#" })),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let node = leaf().prop_recursive(4, 30, 4, |inner| {
        let several = vec(inner.clone(), 1..4);
        let properties = btree_map(select(&NAMES[..]), inner.clone(), 0..4).prop_map(object);
        let required = subsequence(NAMES.to_vec(), 0..3);
        let closed = prop_oneof![Just(Value::Bool(true)), Just(Value::Bool(false)), inner.clone()];
        prop_oneof![
            6 => (properties.clone(), required.clone(), closed, any::<bool>()).prop_map(|(properties, required, closed, typed)| {
                let mut node = json!({ "properties": properties, "required": required, "additionalProperties": closed });
                if typed {
                    node["type"] = json!("object");
                }
                node
            }),
            1 => (properties, required).prop_map(|(properties, required)| {
                json!({ "type": "object", "properties": properties, "dependentRequired": { "path": required } })
            }),
            3 => inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            1 => (inner.clone(), inner.clone()).prop_map(|(first, rest)| json!({ "prefixItems": [first], "items": rest })),
            1 => inner.clone().prop_map(|contains| json!({ "contains": contains })),
            2 => several.clone().prop_map(|forms| json!({ "anyOf": forms })),
            2 => several.clone().prop_map(|forms| json!({ "oneOf": forms })),
            1 => several.prop_map(|all| json!({ "allOf": all })),
            1 => inner.clone().prop_map(|not| json!({ "not": not })),
            1 => vec(inner.clone(), 3).prop_map(|all| json!({ "if": all[0], "then": all[1], "else": all[2] })),
            1 => inner.clone().prop_map(|node| json!({ "patternProperties": { "^p": node } })),
            1 => inner.prop_map(|names| json!({ "propertyNames": names })),
        ]
    });
    (node.clone(), node).prop_map(|(root, here)| match root {
        Value::Object(mut fields) => {
            fields.insert("$defs".to_owned(), json!({ "here": here }));
            Value::Object(fields)
        }
        other => other,
    })
}

/// All that is said in arguments, without how it is written and where.
fn said(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(entries) => entries.iter().flat_map(said).collect(),
        Value::Object(entries) => entries.values().flat_map(said).collect(),
        Value::Number(number) => vec![number.as_f64().map_or(String::new(), |number| format!("{number:e}"))],
        Value::Bool(truth) => vec![truth.to_string()],
        Value::String(text) => vec![match text.parse::<f64>() {
            Ok(number) if number.is_finite() => format!("{number:e}"),
            Ok(_) | Err(_) => text.to_lowercase().replace(['_', '-', '.', ' ', '/', ':'], ""),
        }],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_answer_is_that_of_the_validator_and_the_words_are_few(schema in schema(), values in vec(value(), 6)) {
        let Ok(compiled) = Schema::compile(&schema) else { return Ok(()) };
        let validator = jsonschema::validator_for(&schema).unwrap();
        let compile = |schema: &Value| options(None).build(schema).ok();
        for value in values {
            let checked = compiled.check(&value);
            prop_assert_eq!(checked.is_ok(), validator.is_valid(&value));
            let walk = Walk::new(&compiled.definitions, &compile);
            let fits = walk.fits(compiled.definitions.root(), &value);
            prop_assert!(fits == checked.is_ok() || walk.is_tired(), "the walk sees it otherwise: {}", value);
            let Err(invalid) = checked else { continue };
            prop_assert!((1..=20).contains(&invalid.mistakes.len()));
            for lang in [Lang::En, Lang::Zh] {
                let text = invalid.text("tool", lang);
                prop_assert!(text.len() < 20_000 && !text.chars().any(char::is_control), "{}", text);
            }
        }
    }

    #[test]
    fn a_repair_is_valid_and_leaves_nothing_to_repair(schema in schema(), values in vec(value(), 6)) {
        let Ok(compiled) = Schema::compile(&schema) else { return Ok(()) };
        for value in values {
            let Some((repaired, repairs)) = compiled.repair(&value) else { continue };
            prop_assert!(!repairs.is_empty() && repaired != value);
            prop_assert_eq!(compiled.check(&repaired), Ok(()));
            prop_assert_eq!(compiled.repair(&repaired), None);
        }
    }

    #[test]
    fn a_repair_says_what_was_said(schema in schema(), values in vec(plain_value(), 6)) {
        let Ok(compiled) = Schema::compile(&schema) else { return Ok(()) };
        for value in values {
            let Some((repaired, _)) = compiled.repair(&value) else { continue };
            let (mut before, mut after) = (said(&value), said(&repaired));
            before.sort();
            after.sort();
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn size_and_text_agree_but_for_escapes_and_fractions(value in plain_value()) {
        let text = value.to_string();
        let is_plain = !text.contains(['\\', '.', 'e']);
        prop_assert!(size(&value, 2 * text.len() + 8, 64).is_ok());
        if is_plain {
            prop_assert!(text.len() < 16 || size(&value, text.len() / 2, 64).is_err(), "{}", text);
        }
        dismantle(value);
    }

    #[test]
    fn any_json_is_a_schema_or_a_reason(schema in value()) {
        if let Err(error) = Schema::compile(&schema) {
            let said = error.to_string();
            prop_assert!(said.len() < 1_000 && said.contains(';'), "{}", said);
        }
    }
}
