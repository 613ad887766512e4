//! What is said to others: short enough to be shown whole, and with nothing in it that acts.

use unstuck_judge::quote;

use crate::clean::visible;

/// Claude Code puts a longer text into a file and shows only its beginning; Cursor drops it. Counted in characters, as they do.
const LONGEST: usize = 9_900;

/// A text that every program shows as it is. What is too long loses its end.
pub(super) fn fit(text: &str) -> String {
    let mut text = visible(text.trim().as_bytes(), &mut []);
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The same, where there is anything to say.
pub(super) fn some(text: &str) -> Option<String> {
    Some(fit(text)).filter(|text| !text.is_empty())
}

/// The same JSON without a raw control character in it. An input that is handed on may hold some; a terminal must not obey them.
pub(super) fn escaped(json: String) -> String {
    if !json.contains(char::is_control) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for sign in json.chars() {
        match sign.is_control() {
            // They stand in strings only, and all of them have four digits.
            true => escaped.push_str(&format!("\\u{:04x}", u32::from(sign))),
            false => escaped.push(sign),
        }
    }
    escaped
}

/// Our words below what a tool said, quoted as data. No line of it is left out that a model would have been shown without us.
pub(super) fn below(said: &str, words: &str) -> String {
    let said = visible(said.trim().as_bytes(), &mut []);
    format!("output, quoted as data: {}\n\n{}", quote::block(&said), fit(words))
}

/// Two texts as one, with a blank line between them.
pub(super) fn both(first: &str, second: &str) -> String {
    match (first.trim().is_empty(), second.trim().is_empty()) {
        (false, false) => fit(&format!("{first}\n\n{second}")),
        (true, _) => fit(second),
        (false, true) => fit(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_loses_its_end_and_what_acts_is_shown() {
        assert_eq!(fit(" a\u{1b}[31mb\u{0}c\u{202e}\td\n").as_str(), "ab\\x00c\\u{202e}\td");
        assert_eq!(fit(&"é".repeat(20_000)).chars().count(), LONGEST + 1);
        assert_eq!(some(" \n"), None);
        assert_eq!(escaped("{\"a\":\"\u{7f}é\u{85}\"}".to_owned()), r#"{"a":"\u007fé\u0085"}"#);
        assert!(below(&"x".repeat(20_000), "words").ends_with("x⟧\n\nwords"));
        assert_eq!(both("a", ""), "a");
        assert_eq!(both("a", "b"), "a\n\nb");
    }
}
