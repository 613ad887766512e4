//! Tests and values, and what is said of them.

use serde_json::json;
use unstuck_judge::Lang;

use super::JsonTest;

fn said(test: &str) -> String {
    let value = json!({
        "ok": true, "bad": false, "none": null, "count": 3, "ratio": 0.5, "name": "abc", "a.b": 1,
        "items": [{"id": 1, "tags": ["x"]}, {"id": 2, "tags": []}], "empty": [], "a": {"b": ["x", "y"]},
        "flags": [true, true], "big": 9007199254740993_i64,
    });
    match JsonTest::parse(test) {
        Err(error) => error.in_words(Lang::En),
        Ok(test) => test.holds(&value, Lang::En).err().unwrap_or_else(|| "holds".to_owned()),
    }
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (test, expected) in cases {
        assert_eq!(said(test), *expected, "{test}");
    }
}

#[test]
fn a_test_holds_where_all_that_comes_out_is_true() {
    for test in [
        ".",
        ".ok",
        ".items|length > 0",
        ".items | length == 2",
        ".a.b[0] == \"x\"",
        ".a.b[-1]==\"y\"",
        ".count >= 3 and .count < 4",
        ".bad or .ok",
        ".bad | not",
        ".none == null",
        ".items[].id",
        ".items[] | .id > 0",
        ".[\"a.b\"] == 1",
        ".\"a.b\" == 1",
        ".items[0].tags[0] == \"x\"",
        ".name | contains(\"bc\")",
        ".name|startswith(\"ab\")",
        "has(\"ok\")",
        ".items|has(1)",
        ".flags | all",
        ".flags|any",
        ".ratio == 0.5",
        ".count == 3.0",
        ".a | keys | length == 1",
        ".items | type == \"array\"",
        "(.ok) and (.items|length>1)",
        ".missing.deeper == null",
        ".name != \"x\"",
        ".name > \"abb\"",
        ".big == 9007199254740993",
        ".items.[0].id == 1",
        ".empty|length == 0",
    ] {
        assert_eq!(said(test), "holds", "{test}");
    }
}

#[test]
fn what_is_there_instead_is_said() {
    check(&[
        (".bad", "it is false"),
        (".missing", "it is null"),
        (".count > 5", "it is 3"),
        (".empty | length > 0", "it is 0"),
        (".items | length > 5", "it is 2"),
        (".a.b[0] == \"z\"", "it is \"x\""),
        (".empty[]", "there is nothing in it"),
        (".items[].tags[0] == \"x\"", "it is null"),
        (".items[] | .id < 2", "it is 2"),
        (".big == 9007199254740992", "it is 9007199254740993"),
        (".count.x", "`.x` cannot be asked of number"),
        (".name[0]", "`[0]` cannot be asked of string"),
        (".count | length", "`length` cannot be asked of number"),
        (".ok | any", "`any` cannot be asked of boolean"),
    ]);
    let test = JsonTest::parse(".count > 5").unwrap();
    assert_eq!(test.holds(&json!({"count": 3}), Lang::Zh), Err("实际为 3".to_owned()));
}

#[test]
fn a_text_that_is_no_test_is_refused_with_its_place() {
    let no_test =
        |why: &str, test: &str, at: usize| format!("`{test}` is no test of JSON: {why} at character {at}");
    for (test, why, at) in [
        ("", "expected a path such as `.items`, a value or a function", 1),
        ("items", "`items` is not known", 1),
        (".items|lenght > 0", "`lenght` is not known", 8),
        (".a = 1", "a single `=` is not supported", 4),
        (".a == ", "expected a path such as `.items`, a value or a function", 7),
        (".a[", "expected a number, a text or `]`", 4),
        (".a[0", "expected `]`", 5),
        (".a[0:2]", "a slice is not supported", 5),
        (".a[0.5]", "expected a whole number", 4),
        ("..", "`..` is not supported", 1),
        (".a // 1", "`//` is not supported", 4),
        (".a + 1", "arithmetic is not supported", 4),
        (".a?", "`?` is not supported", 3),
        (".a, .b", "`,` is not supported", 3),
        (".a == {}", "expected a path such as `.items`, a value or a function", 7),
        (".a == \"x", "the text has no closing quote", 7),
        ("(.a", "expected `)`", 4),
        (".a)", "expected `|`, a comparison, or the end", 3),
        ("has(.a)", "expected a text or a number", 5),
        ("has", "expected `(`", 4),
        ("contains(1)", "expected a text", 9),
        (".a .b", "expected `|`, a comparison, or the end", 4),
        (".é.ü == -", "expected a number", 9),
    ] {
        assert_eq!(said(test), no_test(why, test, at), "{test}");
    }
    assert!(said(&"(".repeat(10_000)).contains("too many brackets"));
    let zh = JsonTest::parse(".a = 1").unwrap_err().in_words(Lang::Zh);
    assert!(zh.contains("不是有效的 JSON 测试") && zh.contains('4'), "{zh}");
}
