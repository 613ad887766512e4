//! Quotes what somebody else may have written: a project's file and the names of its folders come from strangers, and what
//! they say must not steer a terminal.

use std::path::Path;

/// How much of a text is quoted.
const QUOTE_MAX: usize = 80;

/// The text, short and harmless.
pub(crate) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(QUOTE_MAX).collect();
    let rest = if short.len() < text.len() { "…" } else { "" };
    if text.is_empty() { "\"\"".to_owned() } else { harmless(&short) + rest }
}

/// The text with codes in the place of signs that steer a terminal, turn the reading direction or cannot be seen.
pub(crate) fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign.is_control() || is_unseen(sign) {
            true => safe.extend(sign.escape_unicode()),
            false => safe.push(sign),
        }
    }
    safe
}

/// The path, harmless and in full: somebody wants to open it.
pub(crate) fn harmless_path(path: &Path) -> String {
    harmless(&path.to_string_lossy())
}

fn is_unseen(sign: char) -> bool {
    matches!(sign, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_cannot_steer_a_terminal_and_stays_short() {
        assert_eq!(quoted("keep-events"), "keep-events");
        assert_eq!(quoted("a\u{1b}[31m\nb"), "a\\u{1b}[31m\\u{a}b");
        assert_eq!(quoted("a\u{202e}b\u{200b}"), "a\\u{202e}b\\u{200b}");
        assert_eq!(quoted("中文"), "中文");
        assert_eq!(quoted(&"x".repeat(1000)).chars().count(), 81);
        assert_eq!(quoted(""), "\"\"");
    }
}
