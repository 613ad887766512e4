//! The settings editor: nothing of others changes, and undoing gives back the file.

use std::path::Path;

use serde_json::{Value, json};

// Compiled from its source: the command that it belongs to is no library.
#[path = "../../crates/cli/src/editing/mod.rs"]
#[allow(dead_code, unused_imports, clippy::duplicate_mod, reason = "a fuzzer needs a part of it only")]
mod editing;

use editing::{Dialect, Document, Edit, Entries, Layout, Sheet, Syntax, Wanted};

const OURS: &str = "'/bin/unstuck' hook claude";
const NEW: &str = "unstuck-new";

/// The first byte says in which language and layout the rest is written.
pub fn settings(data: &[u8]) {
    let [choice, text @ ..] = data else { return };
    // A file that names us already is another story: there, something goes.
    if text.windows(7).any(|part| part == b"unstuck") {
        return;
    }
    let dialects = [Dialect::Strict, Dialect::Commented, Dialect::Loose];
    let dialect = dialects[usize::from(choice % 3)];
    let layout = if choice & 4 == 0 { Layout::Grouped } else { Layout::Flat };
    one_sheet(text, Syntax::Toml);
    one_sheet(text, Syntax::Json(dialect));
    hooks(text, dialect, layout);
}

fn read(text: &[u8], dialect: Dialect) -> Option<Document<'static>> {
    Document::read(Path::new("settings.json"), dialect, Some(text)).ok()
}

/// Puts hooks in, twice, and takes them out.
fn hooks(text: &[u8], dialect: Dialect, layout: Layout) {
    let Some(document) = read(text, dialect) else { return };
    if !text.trim_ascii().is_empty() {
        let is_same =
            document.bytes() == text || text.strip_prefix(b"\xef\xbb\xbf").is_some_and(<[u8]>::is_empty);
        assert!(is_same || is_blank(text), "read and written, it is another file");
    }
    let is_ours = |line: &str| line == OURS;
    let entry = match layout {
        Layout::Grouped => json!({"hooks": [{"type": "command", "command": OURS}]}),
        Layout::Flat => json!({"command": OURS}),
    };
    let wanted = ["Pre", "Post"].map(|event| Wanted { event, entry: entry.clone() });
    let entries = Entries { layout, command_key: "command", top: &[], command: OURS, is_ours: &is_ours };
    let Ok(holding) = entries.put(&document, &wanted, &[], None) else { return };
    let there = holding.document.bytes();
    assert!(is_within(document_text(text), &there), "something of others is gone");
    let second = read(&there, dialect).expect("what was written can be read");
    assert_eq!(entries.standing(&second).map(|found| found.len()).ok(), Some(2), "ours are not there");
    let again = entries.put(&second, &wanted, &[], None).expect("what was put once can be put again");
    assert_eq!(again.document.bytes(), there, "the second time changed something");
    let back = entries.take_out(&second, Some(&holding.made)).expect("what was put can be taken out");
    assert_eq!(back.value(), document.value(), "what is left says something else");
    assert!(is_within(&back.bytes(), &there), "taking out has added something");
    if leaves_no_doubt(&document.value()) {
        assert_eq!(back.bytes(), document.bytes(), "what is left is another file");
    }
}

/// Adds a key and takes it away.
fn one_sheet(text: &[u8], syntax: Syntax) {
    let path = Path::new("settings");
    let Ok(sheet) = Sheet::read(path, syntax, Some(text)) else { return };
    let value = [json!([1, "a"]), json!({"command": "x", "args": ["y"]})];
    for value in value {
        let Ok(with) = sheet.edit(&[], &[Edit::Put(NEW, value.clone())]) else { continue };
        let there = with.bytes();
        assert!(is_within(document_text(text), &there), "something of others is gone");
        let second = Sheet::read(path, syntax, Some(&there)).expect("what was written can be read");
        let found = second.value_at(&[NEW.to_owned()]).ok().flatten();
        assert_eq!(found.as_ref(), Some(&value), "it is not there");
        let back = second.edit(&[], &[Edit::Drop(NEW)]).expect("what was put can be taken out");
        let is_json = matches!(syntax, Syntax::Json(_));
        let was_empty = sheet.object_at(&[]).ok().flatten().is_none_or(|all| all == json!({}));
        if !(is_json && was_empty) {
            let (back, before) = (back.bytes(), sheet.bytes());
            assert_eq!(
                String::from_utf8_lossy(&back),
                String::from_utf8_lossy(&before),
                "it is another file"
            );
        }
    }
}

fn is_blank(text: &[u8]) -> bool {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text).trim_ascii().is_empty()
}

/// A file with nothing in it is an empty object; the blanks in it are not kept.
fn document_text(text: &[u8]) -> &[u8] {
    if is_blank(text) { b"" } else { text }
}

/// Are all bytes of `part` in `whole`, in their order? Then nothing was taken away, and nothing moved.
fn is_within(part: &[u8], whole: &[u8]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|byte| rest.any(|other| other == byte))
}

/// Is there nothing empty that we would have to fill? What stood between its brackets only a copy of the file can tell.
fn leaves_no_doubt(value: &Value) -> bool {
    let is_filled = |value: &Value| match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    let hooks = value.get("hooks");
    let lists = ["Pre", "Post"].map(|event| hooks.and_then(|hooks| hooks.get(event)));
    is_filled(value) && hooks.is_none_or(is_filled) && lists.into_iter().flatten().all(is_filled)
}
