//! Quotes what stands in arguments: short, on one line, with codes for signs that cannot be seen, and never a secret.

use std::fmt::Write;

use serde_json::Value;
use unstuck_judge::Lang;
use unstuck_judge::quote::{self as judge, is_hidden, is_name};
use unstuck_wire::redact::redact;

/// So much of a value is quoted.
const VALUE_MAX: usize = 60;
/// So much of a name is quoted.
const NAME_MAX: usize = 64;
/// So much of a sentence is quoted.
const LINE_MAX: usize = 300;
/// So much is searched for secrets before it is cut: half of a secret looks like none.
const SEARCHED: usize = 2_048;
/// So many steps of a path are told, the last ones.
const STEPS_MAX: usize = 16;

/// One step on the way from the arguments to a value inside of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step<'v> {
    Field(&'v str),
    Entry(usize),
}

/// What there was instead, in a few words.
pub(super) fn got(value: &Value, way: &[Step<'_>], lang: Lang) -> String {
    let zh = lang == Lang::Zh;
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => {
            let kind = if zh { "数字" } else { "the number" };
            if is_secret(way) { kind.to_owned() } else { format!("{kind} {number}") }
        }
        Value::String(text) => {
            let kind = if zh { "文本" } else { "a text" };
            match (is_secret(way), zh) {
                (true, true) => format!("{kind}（不予显示）"),
                (true, false) => format!("{kind} (not shown)"),
                (false, _) => format!("{kind} {}", quoted(text)),
            }
        }
        Value::Array(list) => match (list.len(), zh) {
            (0, true) => "空列表".to_owned(),
            (0, false) => "an empty list".to_owned(),
            (length, true) => format!("含 {length} 项的列表"),
            (length, false) => format!("a list of {length}"),
        },
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().take(3).map(|field| name(field)).collect();
            let rest = if fields.len() > names.len() { ", …" } else { "" };
            match (fields.len(), zh) {
                (0, true) => "空对象".to_owned(),
                (0, false) => "an empty object".to_owned(),
                (_, true) => format!("对象 {{{}{rest}}}", names.join(", ")),
                (_, false) => format!("an object {{{}{rest}}}", names.join(", ")),
            }
        }
    }
}

/// A text in quotes; as data where it could be a sentence.
pub(super) fn quoted(text: &str) -> String {
    match is_word(text) {
        true => format!("\"{}\"", harmless(text, VALUE_MAX, '"')),
        false => fenced(text, VALUE_MAX),
    }
}

/// A name as it can stand between backticks. A schema comes from a server: what is no word is quoted as data there.
pub(super) fn name(text: &str) -> String {
    match is_word(text) {
        true => harmless(text, NAME_MAX, '`'),
        false => fenced(text, NAME_MAX),
    }
}

fn fenced(text: &str, most: usize) -> String {
    judge::fenced(&redact(&text[..text.floor_char_boundary(SEARCHED)]), most)
}

/// Tells whether a text is one word and no sentence. Scripts without blanks say a sentence in a few letters, and some letters
/// look like those of ASCII.
fn is_word(text: &str) -> bool {
    let is_short = text.len() <= NAME_MAX && text.is_ascii();
    let is_plain = is_plain(text) && text.rfind('$').is_none_or(|at| at == 0);
    text.is_empty() || is_name(text) || is_short && is_plain
}

/// A whole sentence of somebody else.
pub(super) fn line(text: &str) -> String {
    harmless(text, LINE_MAX, '\n')
}

/// A value of the schema, such as one of the words it allows.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(_) => "[…]".to_owned(),
        Value::Object(_) => "{…}".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn harmless(text: &str, most: usize, closing: char) -> String {
    let near = &text[..text.floor_char_boundary(SEARCHED)];
    let shown = redact(near);
    let mut safe = String::new();
    let mut signs = shown.chars();
    for sign in signs.by_ref().take(most) {
        if sign.is_control() || sign == closing || is_hidden(sign) {
            match sign {
                '\n' => safe.push_str("\\n"),
                '\t' => safe.push_str("\\t"),
                '"' => safe.push_str("\\\""),
                other => safe.extend(other.escape_unicode()),
            }
        } else {
            safe.push(sign);
        }
    }
    if signs.next().is_some() || near.len() < text.len() {
        safe.push('…');
    }
    safe
}

/// Whether a name on the way says that what it holds is secret. Redaction knows such names by what it does with a value
/// that looks like one.
fn is_secret(way: &[Step<'_>]) -> bool {
    const LIKE_A_SECRET: &str = "aB3dE5gH7jK9mN1pQ3sT";
    way.iter().any(|step| match step {
        Step::Field(field) if field.len() <= SEARCHED => {
            let said = format!("{}: \"{LIKE_A_SECRET}\"", literal(&Value::String((*field).to_owned())));
            !redact(&said).contains(LIKE_A_SECRET)
        }
        Step::Field(_) | Step::Entry(_) => false,
    })
}

/// The way as a JSON pointer, its names in full up to a limit. A name that could be a sentence is quoted as data.
pub(super) fn pointer(way: &[Step<'_>]) -> String {
    let mut pointer = String::new();
    for step in told(way, &mut pointer, "/…") {
        match step {
            Step::Field(field) => {
                let field = name(field).replace('~', "~0").replace('/', "~1").replace('`', "\\u{60}");
                pointer.push('/');
                pointer.push_str(&field);
            }
            // Writing to a string cannot fail.
            Step::Entry(at) => drop(write!(pointer, "/{at}")),
        }
    }
    pointer
}

/// The way as people write it: `a.b[2].c`.
pub(super) fn readable(way: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in told(way, &mut text, "…") {
        match step {
            Step::Field(field) if is_plain(field) && is_word(field) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(&name(field));
            }
            Step::Field(field) => drop(write!(text, "[{}]", quoted(field).replace('`', "\\u{60}"))),
            Step::Entry(at) => drop(write!(text, "[{at}]")),
        }
    }
    text
}

fn told<'w, 'v>(way: &'w [Step<'v>], text: &mut String, left_out: &str) -> &'w [Step<'v>] {
    match way.len().checked_sub(STEPS_MAX) {
        None | Some(0) => way,
        Some(more) => {
            text.push_str(left_out);
            &way[more..]
        }
    }
}

/// Whether a name can stand in a path without quotes.
fn is_plain(field: &str) -> bool {
    !field.is_empty()
        && field.chars().all(|sign| sign.is_alphanumeric() || matches!(sign, '_' | '-' | '$' | '@'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_way_is_told_as_people_write_it_and_as_a_pointer() {
        let way = [Step::Field("a"), Step::Field("b"), Step::Entry(2), Step::Field("c")];
        assert_eq!((&*readable(&way), &*pointer(&way)), ("a.b[2].c", "/a/b/2/c"));
        let odd = [Step::Field(""), Step::Field("a.b/c~d"), Step::Field("\u{202e}\n`")];
        assert_eq!(readable(&odd), r#"[""]["a.b/c~d"][⟦\u{202e} \u{60}⟧]"#);
        assert_eq!(pointer(&[Step::Field("x. Now obey"), Step::Entry(0)]), "/⟦x. Now obey⟧/0");
        assert_eq!(pointer(&odd), "//a.b~1c~0d/⟦\\u{202e} \\u{60}⟧");
        assert!(readable(&[Step::Field("a"); 10_000]).len() < 100);
    }

    #[test]
    fn what_is_quoted_is_short_harmless_and_no_secret() {
        let say = |value: Value, field: &str| got(&value, &[Step::Field(field)], Lang::En);
        assert_eq!(say(json!("three"), "lines"), "a text \"three\"");
        assert_eq!(say(json!("a\u{202e}\u{1b}\"\n"), "x"), r#"a text ⟦a\u{202e}\u{1b}"⟧"#);
        assert_eq!(say(json!("hunter2"), "password"), "a text (not shown)");
        assert_eq!(say(json!(12345), "api_key"), "the number");
        assert_eq!(say(json!("sesame"), "accessToken"), "a text (not shown)");
        assert!(say(json!("x".repeat(10_000_000)), "a").len() < 100);
        assert!(!say(json!("use ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"), "a").contains("ghp_aB3"));
        assert_eq!(say(json!({ "a": 1, "b": 2, "c": 3, "d": 4 }), "a"), "an object {a, b, c, …}");
    }
}
