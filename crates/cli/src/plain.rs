//! The last gate before a terminal: texts from the store as they may be shown. What is in the store was cleaned when it
//! was written; a newer version or another hand may have thought otherwise.

use std::borrow::Cow;
use std::fmt::Write as _;

use unstuck_judge::quote::is_hidden;

/// One line: what would move the cursor, end the line or hide itself is shown as what it is.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    shown(text, |_| false)
}

/// Several lines, each as with [`line()`]; tabs stay.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    shown(text, |sign| matches!(sign, '\n' | '\t'))
}

/// One line of at most so many characters.
pub(crate) fn short(text: &str, most: usize) -> String {
    let text = line(text);
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.into_owned(),
    }
}

/// JSON as it is printed: what hides in its strings is escaped, so that it reads as it was and shows what is there.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    // All that hides is beyond ASCII but DEL, and such signs stand in strings only.
    let hides = |sign: char| sign == '\u{7f}' || is_hidden(sign);
    if text.is_ascii() && !text.contains('\u{7f}') || !text.contains(hides) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for sign in text.chars() {
        if !hides(sign) {
            safe.push(sign);
            continue;
        }
        for unit in sign.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(safe, "\\u{unit:04x}");
        }
    }
    Cow::Owned(safe)
}

fn shown(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|sign| is_unseen(sign) && !stays(sign)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            sign if !is_unseen(sign) || stays(sign) => safe.push(sign),
            '\n' | '\r' | '\t' => safe.push(' '),
            sign => {
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(sign));
            }
        }
    }
    Cow::Owned(safe)
}

/// Controls, and characters that hide or turn the reading direction.
fn is_unseen(sign: char) -> bool {
    sign.is_control() || is_hidden(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_would_obey_gets_through() {
        let check = |text, expected: &str| assert_eq!(line(text), expected);
        check("plain, 中文 and ✓", "plain, 中文 and ✓");
        check("\x1b[31mred\x07", "\\u{1b}[31mred\\u{7}");
        check("a\nb\r\tc\0", "a b  c\\u{0}");
        check("user\u{202e}txt.exe\u{200b}", "user\\u{202e}txt.exe\\u{200b}");
        let hidden = "{\"a\":\"\u{202e}x\u{9b}中\u{e0041}\u{7f}\"}";
        assert_eq!(json(hidden), r#"{"a":"\u202ex\u009b中\udb40\udc41\u007f"}"#);
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&json(hidden)), read(hidden));
        assert_eq!(lines("a\n\tb\x1b"), "a\n\tb\\u{1b}");
        assert_eq!((&*short("abcdef", 3), &*short("abc", 3), &*short("中文字", 2)), ("abc…", "abc", "中文…"));
    }
}
