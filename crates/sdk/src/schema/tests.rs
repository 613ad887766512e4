//! What is said about arguments that do not fit, and what is repaired.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use unstuck_judge::Lang;

use super::{Schema, SchemaError, dismantle, size};

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Read {
    /// The file.
    path: String,
    lines: Option<Vec<u32>>,
    encoding: Option<Encoding>,
    #[serde(default)]
    follow: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code)]
enum Encoding {
    Utf8,
    Latin1,
    /// Decided by the first bytes.
    Detected,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Strict {
    path: String,
    count: u8,
    #[serde(default)]
    labels: BTreeMap<String, i64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(dead_code)]
enum Shape {
    Circle { radius: f64 },
    Rectangle { width: f64, height: f64 },
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
enum Target {
    Everything,
    File { path: String, line: u32 },
    Url(String),
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Draw {
    shape: Shape,
    target: Option<Target>,
    group: Vec<Draw>,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Login {
    user: u32,
    password: u32,
    token: Vec<u32>,
}

fn schema<T: JsonSchema>() -> Schema {
    Schema::compile(&schemars::schema_for!(T).to_value()).unwrap()
}

fn written(schema: Value) -> Schema {
    Schema::compile(&schema).unwrap()
}

/// What the model is told, in English.
#[track_caller]
fn check(schema: &Schema, input: Value, expected: &str) {
    let said = match schema.check(&input) {
        Ok(()) => "valid".to_owned(),
        Err(invalid) => invalid.text("t", Lang::En).replace("invalid arguments for `t`: ", ""),
    };
    assert_eq!(said, expected);
}

/// What becomes of arguments, and how.
#[track_caller]
fn check_repair(schema: &Schema, input: Value, expected: &str) {
    let said = match schema.repair(&input) {
        None => "left alone".to_owned(),
        Some((value, repairs)) => {
            assert_eq!(schema.check(&value), Ok(()));
            assert_eq!(schema.repair(&value), None, "a repair leaves nothing to repair");
            let said: Vec<&str> = repairs.iter().map(|repair| repair.text(Lang::En)).collect();
            format!("{value} | {}", said.join("; "))
        }
    };
    assert_eq!(said, expected);
}

const FIELDS: &str = " Its fields: `path` (required), `lines`, `encoding`, `follow`";

#[test]
fn every_field_is_named_with_what_was_expected_and_what_was_there() {
    let read = schema::<Read>();
    check(&read, json!({ "path": "a", "lines": [1, 2], "encoding": "utf8" }), "valid");
    check(&read, json!({ "path": "a", "lines": null, "encoding": null }), "valid");
    check(
        &read,
        json!({ "lines": ["three"], "follow": "yes" }),
        &format!(
            "`path` is missing (expected a text); `lines[0]` expected a whole number, got a text \"three\"; \
             `follow` expected true or false, got a text \"yes\".{FIELDS}"
        ),
    );
    check(
        &read,
        json!({ "path": "a", "lines": [-1] }),
        "`lines[0]` expected a number ≥ 0, got the number -1",
    );
    check(&read, json!({ "path": "a", "lines": 7 }), "`lines` expected a list or null, got the number 7");
    check(&read, json!(["path"]), "the arguments expected an object, got a list of 1");
}

#[test]
fn a_number_that_its_type_cannot_hold_is_found_before_the_type_refuses_it() {
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Limits {
        small: u32,
        signed: Option<i32>,
        large: u64,
    }
    let limits = schema::<Limits>();
    check(&limits, json!({ "small": u32::MAX, "signed": i32::MIN, "large": u64::MAX }), "valid");
    check(
        &limits,
        json!({ "small": 5_000_000_000_u64, "signed": 2_147_483_648_u32, "large": 1e300 }),
        "`small` expected a number ≤ 4294967295, got the number 5000000000; \
         `signed` expected a number ≤ 2147483647, got the number 2147483648; \
         `large` expected a number ≤ 18446744073709551615, got the number 1e+300",
    );
}

#[test]
fn a_missing_field_under_a_similar_name_is_told_even_if_unknown_fields_are_allowed() {
    let said = "`path` is missing (expected a text), did you mean it by";
    check(&schema::<Read>(), json!({ "pth": "a" }), &format!("{said} `pth`?{FIELDS}"));
    check(&schema::<Read>(), json!({ "filePath": "a" }), &format!("{said} `filePath`?{FIELDS}"));
    check(
        &schema::<Read>(),
        json!({ "zebra": "a" }),
        &format!("`path` is missing (expected a text).{FIELDS}"),
    );
}

#[test]
fn an_unknown_field_that_is_refused_says_what_was_meant() {
    check(
        &schema::<Strict>(),
        json!({ "pth": "a", "count": 300, "labels": { "x": "y" } }),
        "`path` is missing (expected a text); `count` expected a number ≤ 255, got the number 300; \
         `labels.x` expected a whole number, got a text \"y\"; unknown field `pth`, did you mean `path`? \
         Its fields: `path` (required), `count` (required), `labels`",
    );
}

#[test]
fn a_value_that_is_not_among_the_allowed_ones_gets_the_nearest() {
    check(
        &schema::<Read>(),
        json!({ "path": "a", "encoding": "utf_8" }),
        "`encoding` expected one of \"utf8\", \"latin1\", \"detected\" or null, got a text \"utf_8\", did you mean `utf8`?",
    );
}

#[test]
fn of_several_forms_the_nearest_one_is_explained() {
    let draw = schema::<Draw>();
    check(
        &draw,
        json!({ "shape": { "kind": "rectangle", "width": "2" }, "group": [] }),
        "`shape.height` is missing (expected a number); `shape.width` expected a number, got a text \"2\"",
    );
    check(
        &draw,
        json!({ "shape": { "kind": "circel", "radius": 1 }, "group": [] }),
        "`shape.kind` expected one of \"circle\", \"rectangle\", got a text \"circel\", did you mean `circle`?",
    );
    check(
        &draw,
        json!({ "shape": { "radius": 1 }, "group": [] }),
        "`shape.kind` is missing (expected one of \"circle\", \"rectangle\")",
    );
    check(
        &draw,
        json!({ "shape": { "kind": "circle", "radius": 1 }, "group": [], "target": { "File": { "path": 1, "line": 2 } } }),
        "`target.File.path` expected a text, got the number 1",
    );
    check(
        &draw,
        json!({ "shape": { "kind": "circle", "radius": 1 }, "group": [], "target": { "Fil": { "path": "a", "line": 2 } } }),
        "`target.File` is missing (expected an object); unknown field `target.Fil`, did you mean `File`?",
    );
    check(
        &draw,
        json!({ "shape": { "kind": "circle", "radius": 1 }, "group": [], "target": "everything" }),
        "`target` expected \"Everything\" or an object or null, got a text \"everything\", did you mean `Everything`?",
    );
    check(
        &draw,
        json!({ "shape": { "kind": "circle", "radius": 1 }, "group": [{ "shape": { "kind": "circle", "radius": 1 } }] }),
        "`group[0].group` is missing (expected a list)",
    );
}

#[test]
fn the_same_is_said_in_chinese() {
    let invalid =
        schema::<Read>().check(&json!({ "pth": 1, "lines": ["three"], "encoding": 5 })).unwrap_err();
    assert_eq!(
        invalid.text("fs_read", Lang::Zh),
        "`fs_read` 的参数无效：缺少 `path`（应为文本），是否误写成了 `pth`？；`lines[0]` 应为整数，实际为文本 \"three\"；\
         `encoding` 应为以下之一：\"utf8\"、\"latin1\"、\"detected\"或null，实际为数字 5。\
         它的字段：`path`（必填）、`lines`、`encoding`、`follow`"
    );
}

#[test]
fn programs_get_the_parts_of_a_mistake() {
    let invalid = schema::<Read>().check(&json!({ "path": "a", "lines": [1, "x"] })).unwrap_err();
    let mistake = &invalid.mistakes[0];
    assert_eq!((&*mistake.path, &*mistake.place), ("/lines/1", "lines[1]"));
    assert_eq!((&*mistake.expected, &*mistake.got, &mistake.hint), ("a whole number", "a text \"x\"", &None));
}

#[test]
fn a_secret_is_never_quoted() {
    let input = json!({ "user": "ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5", "password": "hunter2", "token": ["sesame"] });
    let said = schema::<Login>().check(&input).unwrap_err();
    for text in [said.text("login", Lang::En), said.text("login", Lang::Zh), format!("{said:?}")] {
        for secret in ["hunter2", "sesame", "ghp_aB3"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    let repaired =
        schema::<Login>().repair(&json!({ "user": 1, "password": "4711", "token": ["4712"] })).unwrap();
    let said = format!("{:?}", repaired.1);
    assert!(!said.contains("4711") && !said.contains("4712"), "{said}");
}

#[test]
fn all_keywords_of_a_written_schema_have_words() {
    let rows = [
        (json!({ "maxLength": 2 }), json!("abc"), "at most 2 characters, got a text \"abc\""),
        (json!({ "minItems": 1 }), json!([]), "at least 1 entry, got an empty list"),
        (json!({ "minProperties": 2 }), json!({ "a": 1 }), "at least 2 fields, got an object {a}"),
        (json!({ "pattern": "^a+$" }), json!("b"), "a text that matches ⟦^a+$⟧, got a text \"b\""),
        (json!({ "multipleOf": 0.5 }), json!(0.7), "a multiple of 0.5, got the number 0.7"),
        (json!({ "exclusiveMaximum": 5 }), json!(5), "a number < 5, got the number 5"),
        (json!({ "uniqueItems": true }), json!([1, 1]), "a list without repetitions, got a list of 2"),
        (
            json!({ "contains": { "type": "string" } }),
            json!([1]),
            "a list with the entries its schema asks for, got a list of 1",
        ),
        (json!({ "not": { "type": "string" } }), json!("a"), "something else, got a text \"a\""),
        (json!({ "const": 5 }), json!(6), "5, got the number 6"),
        (json!({ "enum": [1, "a", null] }), json!(2), "one of 1, \"a\", null, got the number 2"),
        (
            json!({ "oneOf": [{ "minimum": 1 }, { "maximum": 9 }] }),
            json!(5),
            "what fits exactly one form, got the number 5",
        ),
        (json!({ "type": ["string", "null"] }), json!(5), "a text or null, got the number 5"),
        (
            json!({ "if": { "type": "string" }, "then": { "minLength": 2 } }),
            json!("a"),
            "at least 2 characters, got a text \"a\"",
        ),
        (
            json!({ "$schema": "http://json-schema.org/draft-07/schema#", "format": "ipv4" }),
            json!("x"),
            "a text of the format \"ipv4\", got a text \"x\"",
        ),
        (json!(false), json!(5), "nothing, got the number 5"),
        (
            json!({ "unevaluatedItems": false }),
            json!([5]),
            "what `unevaluatedItems` of the schema allows, got a list of 1",
        ),
    ];
    for (schema, input, expected) in rows {
        check(&written(schema), input, &format!("the arguments expected {expected}"));
    }
    let rows = [
        (
            json!({ "dependentRequired": { "a": ["b"] } }),
            json!({ "a": 1 }),
            "`b` is missing (expected any value). Its fields: ",
        ),
        (
            json!({ "patternProperties": { "^x": { "type": "string" } } }),
            json!({ "xa": 1 }),
            "`xa` expected a text, got the number 1",
        ),
        (
            json!({ "propertyNames": { "maxLength": 1 } }),
            json!({ "ab": 1 }),
            "`ab` expected what `propertyNames` of the schema allows, got the number 1",
        ),
        (
            json!({ "prefixItems": [{ "type": "string" }], "items": false }),
            json!(["a", 2]),
            "`[1]` expected nothing, got the number 2",
        ),
        (
            json!({ "allOf": [{ "properties": { "a": {} } }], "unevaluatedProperties": false }),
            json!({ "A": 1 }),
            "unknown field `A`, did you mean `a`?",
        ),
        (
            json!({ "$ref": "#/$defs/a~1b", "$defs": { "a/b": { "required": ["x"] } } }),
            json!({}),
            "`x` is missing (expected any value). Its fields: ",
        ),
        (
            json!({ "$ref": "#here", "$defs": { "a": { "$anchor": "here", "items": { "type": "null" } } } }),
            json!([1]),
            "`[0]` expected null, got the number 1",
        ),
    ];
    for (schema, input, expected) in rows {
        check(&written(schema), input, expected.trim_end_matches(". Its fields: "));
    }
}

#[test]
fn a_schema_that_cannot_be_used_says_what_to_do() {
    #[track_caller]
    fn check(schema: Value, expected: &str) {
        let said = Schema::compile(&schema).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
    check(json!({ "type": "strin" }), "broken at `/type`");
    check(json!([]), "broken");
    check(json!({ "pattern": "(" }), "broken");
    check(json!({ "$ref": "https://schemas.example/a.json" }), "nothing is fetched");
    check(json!({ "$ref": "file:///etc/passwd" }), "nothing is fetched");
    check(json!({ "$ref": "#/$defs/none" }), "put what it refers to into `$defs`");
    check(json!({ "$ref": "#" }), "refers to itself");
    check(json!({ "anyOf": [{ "type": "null" }, { "allOf": [{ "$ref": "#" }] }] }), "refers to itself");
    let mut deep = json!({});
    for _ in 0..100_000 {
        deep = Value::Object(Map::from_iter([("not".to_owned(), deep)]));
    }
    assert_eq!(Schema::compile(&deep).unwrap_err(), SchemaError::TooLarge);
    dismantle(deep);
    let chain: Map<String, Value> =
        (0..5_000).map(|at| (at.to_string(), json!({ "$ref": format!("#/$defs/{}", at + 1) }))).collect();
    let mut chained = json!({ "$ref": "#/$defs/0", "$defs": chain });
    chained["$defs"]["5000"] = json!({});
    assert_eq!(Schema::compile(&chained).unwrap_err(), SchemaError::Circular);
}

#[test]
fn a_recursive_schema_checks_deep_data() {
    let tree = written(json!({
        "$ref": "#/$defs/tree",
        "$defs": { "tree": { "type": "object", "properties": { "next": { "anyOf": [{ "$ref": "#/$defs/tree" }, { "type": "null" }] } } } }
    }));
    let nested = |last: Value| (0..127).fold(last, |inner, _| json!({ "next": inner }));
    assert_eq!(size(&nested(json!({})), 1 << 20, 128), Ok(()));
    assert_eq!(tree.check(&nested(json!({}))), Ok(()));
    let said = tree.check(&nested(json!(5))).unwrap_err().text("t", Lang::En);
    assert!(said.ends_with("expected an object or null, got the number 5"), "{said}");
    assert!(said.len() < 300, "{said}");
}

#[test]
fn forms_that_cannot_be_told_apart_do_not_take_for_ever() {
    let twice = written(json!({
        "$ref": "#/$defs/node",
        "$defs": { "node": { "type": "object", "properties": { "a": { "anyOf": [{ "$ref": "#/$defs/node" }, { "$ref": "#/$defs/node" }] } } } }
    }));
    let start = Instant::now();
    for (depth, expected) in [(8, "a.a.a.a.a.a.a.a` expected an object"), (18, "expected")] {
        let input = (0..depth).fold(json!(5), |inner, _| json!({ "a": inner }));
        let said = twice.check(&input).unwrap_err().text("t", Lang::En);
        assert!(said.contains(expected), "{said}");
        assert_eq!(twice.repair(&input), None);
    }
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn huge_arguments_are_checked_in_time_and_told_in_few_words() {
    let read = schema::<Read>();
    let many: Map<String, Value> = (0..10_000).map(|at| (format!("pathx{at}"), json!(at))).collect();
    let strict: Map<String, Value> = many.clone();
    let inputs = [
        (&read, json!({ "path": 1, "lines": "x".repeat(100_000_000) })),
        (&read, json!({ "path": "a", "lines": vec![json!("x"); 1_000_000] })),
        (&read, Value::Object(many)),
        (&schema::<Strict>(), Value::Object(strict)),
        (&read, json!({ "x".repeat(10_000_000): 1 })),
        (&read, json!({ "path": u64::MAX, "lines": [f64::MAX, u64::MAX, -0.0, 1e308, i64::MIN] })),
    ];
    for (schema, input) in inputs {
        let start = Instant::now();
        let invalid = schema.check(&input).unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        let text = invalid.text("fs_read", Lang::En);
        assert!(invalid.mistakes.len() <= 20 && text.len() < 8_000, "{}", text.len());
    }
    let invalid = read.check(&json!({ "path": "a", "lines": vec!["x"; 1_000] })).unwrap_err();
    assert!(invalid.text("t", Lang::En).ends_with("; and 980 more"));
}

#[test]
fn a_pattern_made_to_take_for_ever_ends() {
    let schema = written(json!({ "pattern": "^(?=(a+)+$)(a|aa)+\\1b$" }));
    let start = Instant::now();
    assert!(schema.check(&json!("a".repeat(5_000))).is_err());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn odd_names_are_told_in_codes() {
    let closed = written(json!({ "properties": { "a": {} }, "additionalProperties": false }));
    check(
        &closed,
        json!({ "": 1, "a.b/c": 2, "\u{202e}`\n": 3 }),
        r#"unknown field `[""]`; unknown field `["a.b/c"]`; unknown field `[⟦\u{202e}\u{60}⟧]`"#,
    );
}

#[test]
fn what_says_the_same_is_written_as_it_should_be() {
    let read = schema::<Read>();
    check_repair(&read, json!({ "path": "a", "lines": [1] }), "left alone");
    check_repair(
        &read,
        json!({ "path": 3, "lines": "7", "follow": "True" }),
        r#"{"path":"3","lines":[7],"follow":true} | `path`: the number 3 was written as a text; `lines[0]`: a text "7" was read as what it says; `lines`: a text "7" became a list of one; `follow`: a text "True" was read as what it says"#,
    );
    check_repair(
        &read,
        json!({ "Path": "a", "lines": "[1, \"2\"]", "encoding": "UTF8" }),
        r#"{"path":"a","lines":[1,2],"encoding":"utf8"} | `Path` was renamed to `path`; `lines`: a text ⟦[1, "2"]⟧ was read as what it says; `lines[1]`: a text "2" was read as what it says; `encoding`: a text "UTF8" was spelt "utf8""#,
    );
    check_repair(
        &read,
        json!(r#"{"pth": "a"}"#),
        r#"{"path":"a"} | the arguments: a text ⟦{"pth": "a"}⟧ was read as what it says; `pth` was renamed to `path`"#,
    );
    check_repair(
        &read,
        json!({ "path": "a", "follow": null }),
        r#"{"path":"a"} | `follow`: null was taken as left out"#,
    );
    check_repair(
        &schema::<Strict>(),
        json!({ "path": "a", "count": 3.0 }),
        r#"{"path":"a","count":3} | `count`: the number 3.0 was written as a whole number"#,
    );
    check_repair(
        &schema::<Draw>(),
        json!({ "shape": { "kind": "Circle", "radius": "1.5" }, "group": "[]", "target": "everything" }),
        r#"{"shape":{"kind":"circle","radius":1.5},"group":[],"target":"Everything"} | `shape.kind`: a text "Circle" was spelt "circle"; `shape.radius`: a text "1.5" was read as what it says; `target`: a text "everything" was spelt "Everything"; `group`: a text ⟦[]⟧ was read as what it says"#,
    );
}

#[test]
fn what_could_be_meant_otherwise_or_would_lose_something_is_left_alone() {
    let number = written(json!({ "type": "integer" }));
    for text in ["03", "+3", " 3", "3.5", "three", "", "99999999999999999999", "1e400", "NaN", "0x3"] {
        check_repair(&number, json!(text), "left alone");
    }
    let fraction = written(json!({ "type": "number" }));
    for text in ["0.1000000000000000055511151231257827", "12345678901234567890.5", "Infinity", "-"] {
        check_repair(&fraction, json!(text), "left alone");
    }
    check_repair(&written(json!({ "type": "string" })), json!(1.1), "left alone");
    check_repair(&written(json!({ "type": "string" })), json!(true), "left alone");
    check_repair(&written(json!({ "enum": ["A", "a-"] })), json!("a"), "left alone");
    let read = schema::<Read>();
    check_repair(&read, json!({ "pth": "a", "pahh": "b" }), "left alone");
    check_repair(&read, json!({ "path": null }), "left alone");
    check_repair(&read, json!({ "path": "a", "Path": "b", "lines": "x" }), "left alone");
    check_repair(&written(json!({ "required": ["path", "patch"] })), json!({ "patc": 1 }), "left alone");
    check_repair(&schema::<Strict>(), json!({ "path": "a", "count": 1, "extra": null }), "left alone");
}

/// Do these values for a field of this schema pass where only what is clearly wrong is refused?
#[track_caller]
fn check_lenient(node: Value, values: &[Value], passes: bool) {
    let schema = written(json!({ "type": "object", "properties": { "a": node }, "required": ["a"] }));
    for value in values {
        let wrong = schema.clearly_wrong(&json!({ "a": value }));
        assert_eq!(wrong.is_none(), passes, "{value} for {node}: {wrong:?}");
    }
}

#[test]
fn whatever_the_usual_libraries_read_is_not_clearly_wrong() {
    let words =
        ["y", "N", "t", "F", "Yes", "no", "ON", "off", "TRUE", "false", "0", "1", "1.0", " true ", ""];
    check_lenient(json!({ "type": "boolean" }), &words.map(Value::from), true);
    check_lenient(json!({ "type": "boolean" }), &[json!(0), json!(1), json!(1.0), json!(0.0)], true);
    let numbers = ["5", " 5 ", "+5", "-0.5", "1e3", "1_000", "1_000.5", "0x1F", "0b11", "0o17", "inf", ""];
    for sort in ["integer", "number"] {
        check_lenient(json!({ "type": sort }), &numbers.map(Value::from), true);
        check_lenient(json!({ "type": sort }), &[json!(true), json!(false), json!(3.0), Value::Null], true);
    }
    for format in ["date-time", "date", "time", "duration", "ipv4"] {
        check_lenient(
            json!({ "type": "string", "format": format }),
            &[json!(1_700_000_000), json!(1.5)],
            true,
        );
    }
    let dated = [json!(5)];
    check_lenient(json!({ "type": "string", "allOf": [{ "format": "date" }] }), &dated, true);
    check_lenient(
        json!({ "type": "string", "anyOf": [{ "format": "date" }, { "format": "time" }] }),
        &dated,
        true,
    );
    check_lenient(json!({ "type": ["string", "null"], "format": "date" }), &dated, true);
    check_lenient(json!({ "type": "array" }), &[json!("[1]")], true);
    check_lenient(json!({ "type": "object" }), &[json!("{\"b\": 1}")], true);
    check_lenient(
        json!({ "type": "array", "prefixItems": [{ "title": "X", "type": "integer" }] }),
        &[json!({ "x": 1 })],
        true,
    );
}

#[test]
fn a_type_that_cannot_be_meant_is_clearly_wrong() {
    check_lenient(
        json!({ "type": "boolean" }),
        &[json!("maybe"), json!(2), json!(0.5), json!([true])],
        false,
    );
    let none = ["many", "1,000", "_1", "1__0", "1_", "0x", "0b2", "2024-01-31T00:00:00Z", "true"];
    check_lenient(json!({ "type": "number" }), &none.map(Value::from), false);
    check_lenient(json!({ "type": "integer" }), &[json!([1]), json!({ "a": 1 })], false);
    check_lenient(json!({ "type": "string" }), &[json!(5), json!(true), json!({}), json!(["a"])], false);
    check_lenient(json!({ "type": "string", "format": "date" }), &[json!({}), json!([5])], false);
    check_lenient(json!({ "type": "array" }), &[json!(5), json!("a"), json!({ "a": 1 })], false);
    check_lenient(json!({ "type": "array", "items": { "type": "string" } }), &[json!([5])], false);
    check_lenient(json!({ "type": "object" }), &[json!(5), json!("a"), json!([["a", 1]])], false);
}

#[test]
fn a_field_with_a_default_anywhere_may_be_left_out() {
    #[track_caller]
    fn check(schema: Value, expected: bool) {
        let wrong = written(schema.clone()).clearly_wrong(&json!({}));
        assert_eq!(wrong.is_none(), expected, "{schema}: {wrong:?}");
    }
    let with = |node: Value| {
        json!({ "properties": { "a": node }, "required": ["a"],
            "$defs": { "mode": { "type": "string", "default": "fast" }, "bare": { "type": "string" },
                "chain": { "allOf": [{ "$ref": "#/$defs/mode" }] } } })
    };
    check(with(json!({ "default": null })), true);
    check(with(json!({ "$ref": "#/$defs/mode" })), true);
    check(with(json!({ "$ref": "#/$defs/chain" })), true);
    check(with(json!({ "$ref": "#/$defs/bare", "default": "x" })), true);
    check(with(json!({ "allOf": [{ "$ref": "#/$defs/mode" }] })), true);
    check(with(json!({ "anyOf": [{ "type": "null" }, { "type": "string", "default": "x" }] })), true);
    check(with(json!({ "$ref": "#/$defs/bare" })), false);
    check(with(json!({ "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/bare" }] })), false);
    // Up to draft 7 what stands beside a reference does not count, but it is there for a reason.
    let mut older = with(json!({ "$ref": "#/$defs/bare", "default": "x" }));
    older["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    check(older, true);
    // One part says that it has to be there, another what it is without.
    let parts = json!({ "required": ["a"], "allOf": [
        { "properties": { "a": { "type": "integer" } } }, { "properties": { "a": { "default": 1 } } },
    ] });
    check(parts, true);
    // Where a reference leads to a part with a name of its own, nobody looks.
    let elsewhere = json!({ "properties": { "a": { "$ref": "other" } }, "required": ["a"],
        "$id": "https://schemas.example/root", "$defs": { "b": { "$id": "other", "default": 1 } } });
    check(elsewhere, true);
}

#[test]
fn a_schema_of_a_server_speaks_only_in_quotations() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/injection.jsonl");
    let corpus = std::fs::read_to_string(corpus).unwrap();
    for row in corpus.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let (Some(subject), Some(tell)) = (row["subject"].as_str(), row["tell"].as_str()) else { continue };
        let schema = json!({ "type": "object", "properties": {
                "way": { "enum": [subject, "other"] }, "name": { "type": "string", "format": subject },
                "text": { "type": "string", "pattern": "^x$" }, subject: { "type": "string" } },
            "required": ["way", subject], "additionalProperties": false });
        let schema = Schema::compile(&schema).unwrap();
        for input in
            [json!({}), json!({ "way": "x", "name": 1 }), json!({ "other": 1 }), json!({ subject: 1 })]
        {
            let invalid = schema.check(&input).unwrap_err();
            let mistakes = invalid.mistakes.iter().flat_map(|mistake| {
                let said = [&mistake.path, &mistake.place, &mistake.expected, &mistake.got].map(Clone::clone);
                said.into_iter().chain(mistake.hint.clone())
            });
            for text in [Lang::En, Lang::Zh].map(|lang| invalid.text("t", lang)).into_iter().chain(mistakes) {
                let outside: String = text
                    .split('⟦')
                    .enumerate()
                    .map(|(at, part)| if at == 0 { part } else { part.split_once('⟧').unwrap().1 })
                    .collect();
                assert!(!outside.contains(tell) && !outside.contains('⟧'), "{text}");
            }
        }
    }
}
