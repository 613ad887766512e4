//! Documents in, documents out; and files as they lie on a disk.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const OURS: &str = "'/bin/unstuck' hook claude";
const OLDER: &str = "'/old/unstuck' hook claude";

fn with_entries<T>(act: impl FnOnce(&Entries<'_>) -> T) -> T {
    let is_ours = |line: &str| line == OURS || line == OLDER;
    let top = [];
    act(&Entries {
        layout: Layout::Grouped,
        command_key: "command",
        top: &top,
        command: OURS,
        is_ours: &is_ours,
    })
}

fn wanted() -> Vec<Wanted> {
    let entry = json!({"hooks": [{"type": "command", "command": OURS}]});
    ["Pre", "Post"].map(|event| Wanted { event, entry: entry.clone() }).into()
}

fn read(text: &[u8], dialect: Dialect) -> Result<Document<'static>, EditError> {
    Document::read(Path::new("settings.json"), dialect, Some(text))
}

/// Puts our entries in, once and twice; and takes them out.
fn there_and_back(text: &[u8], dialect: Dialect) -> Result<(Vec<u8>, Vec<u8>), EditError> {
    let document = read(text, dialect)?;
    with_entries(|entries| {
        let holding = entries.put(&document, &wanted(), &[], None)?;
        let there = holding.document.bytes();
        let again = entries.put(&read(&there, dialect)?, &wanted(), &[], None)?.document.bytes();
        assert_eq!(show(&again), show(&there), "the second time changed something");
        let back = entries.take_out(&read(&there, dialect)?, Some(&holding.made))?.bytes();
        Ok((there, back))
    })
}

fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Everything of others that stands in a document.
fn of_others(mut value: Value) -> Value {
    if let Some(hooks) = value.get_mut("hooks").and_then(Value::as_object_mut) {
        for groups in hooks.values_mut().filter_map(Value::as_array_mut) {
            groups.retain(|group| group["hooks"][0]["command"] != OURS);
        }
    }
    value
}

/// Puts us into a text, shows it, and fails unless taking us out gives back the text.
#[track_caller]
fn check(before: &str, dialect: Dialect, expected: &str) {
    let (there, back) = there_and_back(before.as_bytes(), dialect).unwrap();
    let entry = |spaced: bool| {
        let entry = wanted().remove(0).entry.to_string();
        if spaced { entry.replace("\":", "\": ").replace(",\"", ", \"") } else { entry }
    };
    let short = show(&there).replace(&entry(true), "OURS").replace(&entry(false), "OURS");
    assert_eq!(short, expected);
    assert_eq!(show(&back), before);
}

#[test]
fn a_file_on_one_line_stays_on_one_line() {
    check(r#"{"a":1}"#, Dialect::Strict, r#"{"a":1,"hooks":{"Pre":[OURS],"Post":[OURS]}}"#);
    check(r#"{"a": 1}"#, Dialect::Strict, r#"{"a": 1, "hooks": {"Pre": [OURS], "Post": [OURS]}}"#);
    check(
        r#"{"hooks":{"Pre":[{"x":1}]},"z":2}"#,
        Dialect::Strict,
        r#"{"hooks":{"Pre":[{"x":1},OURS],"Post":[OURS]},"z":2}"#,
    );
}

#[test]
fn a_hand_is_followed_in_indentation_and_ends_of_lines() {
    let (there, _) = there_and_back(b"{\r\n\t\"a\": 1\r\n}\r\n", Dialect::Strict).unwrap();
    let there = show(&there);
    assert!(
        there.starts_with(
            "{\r\n\t\"a\": 1,\r\n\t\"hooks\": {\r\n\t\t\"Pre\": [\r\n\t\t\t{\r\n\t\t\t\t\"hooks\": ["
        ),
        "{there:?}"
    );
    assert!(there.ends_with("\r\n\t}\r\n}\r\n"), "{there:?}");
    assert_eq!(there.matches('\n').count(), there.matches("\r\n").count());
    let (there, _) = there_and_back("\u{feff}{\n    \"a\": 1\n}".as_bytes(), Dialect::Strict).unwrap();
    let there = show(&there);
    assert!(there.starts_with("\u{feff}{\n    \"a\": 1,\n    \"hooks\": {\n        \"Pre\": ["), "{there:?}");
    assert!(there.ends_with("\n    }\n}"), "{there:?}");
}

#[test]
fn comments_stay_where_they_are() {
    let before = "// top\n{\n  \"a\": 1, // one, and\n  /* two */ \"b\": [1, /* , */ 2] // last\n  // end\n}\n// bottom\n";
    let (there, back) = there_and_back(before.as_bytes(), Dialect::Commented).unwrap();
    let there = show(&there);
    assert!(there.contains("\"b\": [1, /* , */ 2], // last\n"), "{there}");
    assert!(
        there.contains("// one, and\n  /* two */ \"b\"") && there.ends_with("\n  // end\n}\n// bottom\n"),
        "{there}"
    );
    assert_eq!(show(&back), before);
    let before = "{\n  \"hooks\": {\n    // mine\n    \"Pre\": [\n      {\"x\": 1} // keep\n    ]\n  }\n}\n";
    let (_, back) = there_and_back(before.as_bytes(), Dialect::Commented).unwrap();
    assert_eq!(show(&back), before);
    let before = "{ // nothing yet\n}\n";
    let (there, back) = there_and_back(before.as_bytes(), Dialect::Commented).unwrap();
    assert!(show(&there).starts_with("{ // nothing yet\n  \"hooks\": {\n"), "{}", show(&there));
    assert_eq!(read(&back, Dialect::Commented).unwrap().value(), json!({}));
    assert!(show(&back).contains("// nothing yet"));
}

#[test]
fn what_cannot_be_read_in_full_stops_with_its_place() {
    let cases = [
        ("{\n  \"a\": 1 // no\n}", Dialect::Strict, "settings.json:2:10: Comments"),
        ("{\n  \"a\": 1,\n}", Dialect::Strict, "settings.json:2:9: Trailing commas"),
        ("{\n  \"a\": 1,\n}", Dialect::Commented, "settings.json:2:"),
        ("{\"a\": 1", Dialect::Strict, "settings.json:1:1: Unterminated object"),
        ("{\"a\": 01}", Dialect::Commented, "settings.json:1:"),
        ("{'a': 1}", Dialect::Commented, "settings.json:1:2: "),
        ("{a: 1}", Dialect::Commented, "settings.json:1:2: "),
        ("{\"a\": \"\u{1}\"}", Dialect::Strict, "settings.json:1:7: control character"),
        ("{} {}", Dialect::Strict, "settings.json:1:4: "),
        ("[]", Dialect::Strict, "settings.json:1:1: the whole file is not an object"),
        ("null", Dialect::Strict, "settings.json:1:1: the whole file is not an object"),
        ("\"{}\"", Dialect::Commented, "settings.json:1:1: the whole file is not an object"),
        ("// only this\n", Dialect::Commented, "settings.json:1:1: "),
        ("{\n \"hooks\": []\n}", Dialect::Strict, "settings.json:2:11: hooks is not an object"),
        ("{\"hooks\": null}", Dialect::Strict, "settings.json:1:11: hooks is not an object"),
        ("{\"hooks\": {\"Pre\": {}}}", Dialect::Strict, "settings.json:1:19: hooks.Pre is not a list"),
        ("{\"hooks\": {}, \"hooks\": {}}", Dialect::Strict, "settings.json:1:15: hooks stands here twice"),
        (
            "{\"hooks\": {\"x\": [],\n\"x\": []}}",
            Dialect::Strict,
            "settings.json:2:1: hooks.x stands here twice",
        ),
    ];
    for (text, dialect, expected) in cases {
        let error = there_and_back(text.as_bytes(), dialect).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
    let error = there_and_back(b"{\"a\": \"\xff\"}", Dialect::Strict).unwrap_err().to_string();
    assert_eq!(error, "settings.json is not UTF-8 text");
    let deep = format!("{}1{}", "{\"a\":".repeat(20_000), "}".repeat(20_000));
    for dialect in [Dialect::Strict, Dialect::Commented] {
        assert!(there_and_back(deep.as_bytes(), dialect).is_err());
    }
}

#[test]
fn keys_that_stand_twice_elsewhere_are_nobodys_business() {
    let (_, back) = there_and_back(b"{\"a\":1,\"a\":2,\"b\":{\"c\":1,\"c\":2}}", Dialect::Strict).unwrap();
    assert_eq!(show(&back), "{\"a\":1,\"a\":2,\"b\":{\"c\":1,\"c\":2}}");
}

#[test]
fn an_older_line_is_mended_in_place_and_what_its_owner_changed_stays() {
    let before = json!({"hooks": {"Pre": [
        {"matcher": "Bash", "hooks": [{"command": OLDER, "timeout": 99}, {"command": "theirs"}]},
    ], "Gone": [{"hooks": [{"command": OLDER}]}]}});
    let document = read(before.to_string().as_bytes(), Dialect::Strict).unwrap();
    let after = with_entries(|entries| entries.put(&document, &wanted(), &[], None)).unwrap().document;
    let expected = json!({"hooks": {"Pre": [
        {"matcher": "Bash", "hooks": [{"command": OURS, "timeout": 99}, {"command": "theirs"}]},
    ], "Post": [wanted()[1].entry]}});
    assert_eq!(after.value(), expected);
    let out = with_entries(|entries| entries.take_out(&after, None)).unwrap();
    assert_eq!(
        out.value(),
        json!({"hooks": {"Pre": [{"matcher": "Bash", "hooks": [{"command": "theirs"}]}]}})
    );
    let kept = with_entries(|entries| entries.put(&document, &wanted(), &["Gone"], None)).unwrap().document;
    assert_eq!(kept.value()["hooks"]["Gone"][0]["hooks"][0]["command"], OURS);
}

#[test]
fn two_of_ours_under_one_event_become_one() {
    let group = json!({"hooks": [{"command": OURS}]});
    let before =
        json!({"hooks": {"Pre": [group, {"hooks": [{"command": "theirs"}]}, group], "Post": [group]}});
    let document = read(before.to_string().as_bytes(), Dialect::Strict).unwrap();
    let after = with_entries(|entries| entries.put(&document, &wanted(), &[], None)).unwrap().document;
    assert_eq!(after.value()["hooks"]["Pre"], json!([group, {"hooks": [{"command": "theirs"}]}]));
}

#[test]
fn what_others_add_around_us_stays_when_we_go() {
    let (there, _) = there_and_back(b"{\n  \"a\": 1\n}\n", Dialect::Strict).unwrap();
    let mut value: Value = serde_json::from_slice(&there).unwrap();
    value["hooks"]["Pre"].as_array_mut().unwrap().push(json!({"hooks": [{"command": "later"}]}));
    value["hooks"]["Pre"].as_array_mut().unwrap().insert(0, json!({"hooks": [{"command": "sooner"}]}));
    value["z"] = json!(true);
    let now = serde_json::to_string_pretty(&value).unwrap();
    let document = read(now.as_bytes(), Dialect::Strict).unwrap();
    let made = ["/hooks", "/hooks/Pre", "/hooks/Post"].map(str::to_owned);
    let back = with_entries(|entries| entries.take_out(&document, Some(&made))).unwrap();
    let expected = json!({
        "a": 1,
        "hooks": {"Pre": [{"hooks": [{"command": "sooner"}]}, {"hooks": [{"command": "later"}]}]},
        "z": true,
    });
    assert_eq!(show(&back.bytes()), serde_json::to_string_pretty(&expected).unwrap());
}

#[test]
fn a_file_that_changed_since_it_was_read_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.json");
    for (before, after) in [
        (Some("{}"), After::Bytes(b"ours".to_vec())),
        (Some("{}"), After::Gone),
        (None, After::Bytes(b"ours".to_vec())),
    ] {
        let _may_not_be_there = fs::remove_file(&path);
        if let Some(before) = before {
            fs::write(&path, before).unwrap();
        }
        let found = Found::look(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert_eq!(put(&found, &after).unwrap(), Put::Changed, "{before:?} {after:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was left behind");
    }
    let found = Found::look(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(put(&found, &After::Bytes(b"ours".to_vec())).unwrap(), Put::Changed);
    assert!(!path.exists());
}

#[cfg(unix)]
#[test]
fn rights_and_owner_stay() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.json");
    for mode in [0o600, 0o640, 0o644, 0o755] {
        fs::write(&path, "{}").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        // Only root can give a file away; everybody else checks that it stays their own.
        let _nobody = chown(&path, Some(65_534), Some(65_534));
        let before = fs::metadata(&path).unwrap();
        assert_eq!(put(&Found::look(&path).unwrap(), &After::Bytes(b"[]".to_vec())).unwrap(), Put::Done);
        let after = fs::metadata(&path).unwrap();
        assert_eq!((after.mode() & 0o7777, after.uid(), after.gid()), (mode, before.uid(), before.gid()));
        assert_eq!(fs::read(&path).unwrap(), b"[]");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn copies_are_kept_in_number_and_none_that_is_needed_goes() {
    let folder = tempfile::tempdir().unwrap();
    let backups = Backups::in_folder(folder.path());
    let of = Path::new("/somewhere/settings.json");
    let first = backups.keep(of, b"first", 1).unwrap();
    let second = backups.keep(of, b"second", 2).unwrap();
    assert_eq!(backups.keep(of, b"second", 3).unwrap(), second, "the same content is kept once");
    for at in 4..30 {
        backups.keep(of, format!("{at}").as_bytes(), at).unwrap();
    }
    backups.keep(Path::new("/elsewhere/settings.json"), b"other", 1).unwrap();
    backups.thin_out(of, std::slice::from_ref(&first));
    assert!(first.exists() && !second.exists());
    assert_eq!(fs::read_dir(first.parent().unwrap()).unwrap().count(), 10 + 1 + 1);
    assert_eq!(backups.read(&first).unwrap(), b"first");
}

/// Any JSON.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any_text().prop_map(Value::from),
        Just(json!({})),
        Just(json!([])),
        Just(json!({"hooks": [{"type": "command", "command": "theirs"}]})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any_text(), inner), 0..4).prop_map(object),
        ]
    })
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,6}",
        ".{0,12}",
        Just("//x/*,{}[]\"\\".to_owned()),
        Just("hooks".to_owned()),
        Just("\u{1f4a9}工具\u{2028}".to_owned()),
    ]
}

fn object(fields: Vec<(String, Value)>) -> Value {
    Value::Object(fields.into_iter().collect())
}

/// Settings that an agent could read: `hooks`, where it stands, is an object of lists.
pub(crate) fn any_settings() -> impl Strategy<Value = Value> {
    let event = prop_oneof![Just("Pre".to_owned()), Just("Post".to_owned()), "[A-Z][a-z]{2,6}"];
    let lists = prop::collection::vec(any_value(), 0..3).prop_map(Value::from);
    let hooks = prop::collection::vec((event, lists), 0..4).prop_map(object);
    let fields = prop::collection::vec(
        (any_text().prop_filter("not hooks", |name| name != "hooks"), any_value()),
        0..4,
    );
    (fields, prop::option::of(hooks), any::<prop::sample::Index>()).prop_map(|(mut fields, hooks, index)| {
        if let Some(hooks) = hooks {
            fields.insert(index.index(fields.len() + 1), ("hooks".to_owned(), hooks));
        }
        object(fields)
    })
}

/// How somebody may write JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hand {
    indent: Option<&'static str>,
    crlf: bool,
    bom: bool,
    ends: &'static str,
}

pub(crate) fn any_hand() -> impl Strategy<Value = Hand> {
    let indent = prop::sample::select(vec![None, Some("  "), Some("    "), Some("\t"), Some("")]);
    let ends = prop::sample::select(vec!["", "\n", "\n\n", "  "]);
    (indent, any::<bool>(), any::<bool>(), ends).prop_map(|(indent, crlf, bom, ends)| Hand {
        indent,
        crlf,
        bom,
        ends,
    })
}

pub(crate) fn written(value: &Value, hand: Hand) -> Vec<u8> {
    let mut text = match hand.indent {
        None => value.to_string(),
        Some(indent) => {
            let mut bytes = Vec::new();
            let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
            serde::Serialize::serialize(
                value,
                &mut serde_json::Serializer::with_formatter(&mut bytes, formatter),
            )
            .unwrap();
            String::from_utf8(bytes).unwrap()
        }
    };
    text.push_str(hand.ends);
    if hand.crlf {
        text = text.replace('\n', "\r\n");
    }
    if hand.bom {
        text.insert(0, '\u{feff}');
    }
    text.into_bytes()
}

/// Is there nothing empty that we would have to fill? What stood between its brackets only a copy of the file can tell.
fn leaves_no_doubt(value: &Value) -> bool {
    let is_filled = |value: &Value| match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    };
    let hooks = value.get("hooks");
    let lists = ["Pre", "Post"].map(|event| hooks.and_then(|hooks| hooks.get(event)));
    is_filled(value) && hooks.is_none_or(is_filled) && lists.into_iter().flatten().all(is_filled)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_stands_in_a_file_stays_and_comes_back(value in any_settings(), hand in any_hand()) {
        let before = written(&value, hand);
        let (there, back) = there_and_back(&before, Dialect::Strict).unwrap();
        let seen: Value = serde_json::from_slice(there.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&there)).unwrap();
        let mut others = of_others(seen);
        for event in ["Pre", "Post"] {
            let was_there = value.get("hooks").is_some_and(|hooks| hooks.get(event).is_some());
            if let (false, Some(hooks)) = (was_there, others["hooks"].as_object_mut()) {
                prop_assert_eq!(hooks.remove(event), Some(json!([])));
            }
        }
        if value.get("hooks").is_none() {
            prop_assert_eq!(others.as_object_mut().unwrap().remove("hooks"), Some(json!({})));
        }
        prop_assert_eq!(&others, &value);
        prop_assert_eq!(read(&back, Dialect::Strict).unwrap().value(), value.clone());
        if leaves_no_doubt(&value) {
            prop_assert_eq!(show(&back), show(&before));
        }
        let (_, back) = there_and_back(&before, Dialect::Commented).unwrap();
        prop_assert_eq!(read(&back, Dialect::Commented).unwrap().value(), value);
    }

    #[test]
    fn no_text_makes_the_editor_stumble(text in "[{}\\[\\],:\"a1/* \n\r\\\\hooks]{0,60}") {
        for dialect in [Dialect::Strict, Dialect::Commented] {
            if let Ok((there, back)) = there_and_back(text.as_bytes(), dialect) {
                prop_assert!(read(&there, dialect).is_ok() && read(&back, dialect).is_ok());
            }
        }
    }
}

#[test]
fn a_list_that_ends_with_a_comma_ends_with_one_ever_after() {
    let check = |text: &str, expected: &str| {
        let sheet =
            Sheet::read(Path::new("/s"), Syntax::Json(Dialect::Loose), Some(text.as_bytes())).unwrap();
        let new = sheet.edit(&[], &[Edit::Put("new", json!([1]))]).unwrap();
        assert_eq!(String::from_utf8(new.bytes()).unwrap(), expected);
        let again = Sheet::read(Path::new("/s"), Syntax::Json(Dialect::Loose), Some(&new.bytes())).unwrap();
        let back = again.edit(&[], &[Edit::Drop("new")]).unwrap();
        assert_eq!(String::from_utf8(back.bytes()).unwrap(), text);
    };
    check("{\"a\": 1,}", "{\"a\": 1, \"new\": [1],}");
    check("{\n  \"a\": 1,\n}\n", "{\n  \"a\": 1,\n  \"new\": [\n    1\n  ],\n}\n");
    check("{\n  \"a\": 1, // c\n}", "{\n  \"a\": 1, // c\n  \"new\": [\n    1\n  ],\n}");
    check("{\n  \"a\": 1 // c\n}", "{\n  \"a\": 1, // c\n  \"new\": [\n    1\n  ]\n}");
    check(
        "{\n  \"a\": 1 /* c */, /* d */\n  // e\n}",
        "{\n  \"a\": 1 /* c */, /* d */\n  \"new\": [\n    1\n  ],\n  // e\n}",
    );
    let strict = Sheet::read(Path::new("/s"), Syntax::Json(Dialect::Commented), Some(b"{\"a\": 1,}"));
    assert!(strict.is_err());
}

#[test]
fn a_copy_that_either_list_needs_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str| Written {
        file: folder.path().join("settings.json"),
        agent: "gemini".to_owned(),
        at_ms: 1,
        before: Before::Copy(folder.path().join(name)),
        left: hash(b"x"),
        made: Vec::new(),
        folders: Vec::new(),
        commands: Vec::new(),
        servers: Vec::new(),
    };
    for (book, name) in [(Book::Hooks, "one"), (Book::Servers, "two")] {
        Ledger::lock(folder.path(), book).unwrap().note(written(name)).unwrap();
    }
    for book in [Book::Hooks, Book::Servers] {
        let mut copies = Ledger::read(folder.path(), book).unwrap().copies();
        copies.sort_unstable();
        assert_eq!(copies, [folder.path().join("one"), folder.path().join("two")]);
        assert_eq!(Ledger::read(folder.path(), book).unwrap().all().len(), 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_before_a_list_go_as_they_came(
        value in any_settings(),
        hand in any_hand(),
        list in prop::option::of(prop::collection::vec(any_text(), 0..3)),
        words in prop::collection::vec(any_text(), 1..4),
    ) {
        let mut value = value;
        if let Some(list) = &list {
            value["words"] = json!(list);
        }
        let before = written(&value, hand);
        let read = |bytes: &[u8]| Sheet::read(Path::new("/s"), Syntax::Json(Dialect::Strict), Some(bytes)).unwrap();
        let led = read(&before).edit(&[], &[Edit::Lead("words", words.clone())]).unwrap();
        let mut seen = read(&led.bytes()).object_at(&[]).unwrap().unwrap();
        let all: Vec<String> = words.iter().chain(list.iter().flatten()).cloned().collect();
        prop_assert_eq!(&seen["words"], &json!(all));
        let unled = read(&led.bytes()).edit(&[], &[Edit::Unlead("words", words.len())]).unwrap();
        let back = match &list {
            Some(_) => unled,
            None => unled.edit(&[], &[Edit::Drop("words")]).unwrap(),
        };
        // What stood between empty brackets only a copy of the file can tell.
        if list.is_some() || value != json!({}) {
            prop_assert_eq!(String::from_utf8(back.bytes()).unwrap(), String::from_utf8(before).unwrap());
        }
        match &list {
            Some(list) => seen["words"] = json!(list),
            None => drop(seen.as_object_mut().unwrap().shift_remove("words")),
        }
        prop_assert_eq!(seen, value);
    }
}
