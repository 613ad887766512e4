//! One word of a command line: quotes, escapes and substitutions. Knows nothing of commands.

/// What a word is made of, besides its text.
#[derive(Debug, Default)]
pub(super) struct Word {
    /// The text without quotes and escapes; substitutions stand as they were written.
    pub text: String,
    /// Whether any part was quoted: a quoted word is never a keyword.
    pub quoted: bool,
}

/// Tells whether a shell ends a word at this byte.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

/// Tells whether a run of plain text ends at this byte.
pub(super) fn is_special(byte: u8) -> bool {
    ends_word(byte) || matches!(byte, b'\'' | b'"' | b'\\' | b'$' | b'`')
}

/// Splits `NAME=value` as an assignment; `NAME+=value` and `NAME[0]=value` are ones, too.
pub(crate) fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let plain = name.strip_suffix('+').unwrap_or(name);
    let plain = plain.split_once('[').map_or(plain, |(plain, _)| plain);
    let starts_well = plain.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    (starts_well && plain.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')).then_some((plain, value))
}

/// The name of a program without its path, and without `.exe`.
pub(super) fn basename(word: &str) -> &str {
    let name = word.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(word);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// The text of a `$'…'` quote, up to its closing quote, and the number of bytes it took.
pub(super) fn ansi_quote(text: &str) -> (String, usize) {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return (out, at + 1),
            '\\' => match chars.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                Some((_, 'r')) => out.push('\r'),
                Some((_, 'e' | 'E')) => out.push('\u{1b}'),
                Some((_, other)) => out.push(other),
                None => {}
            },
            _ => out.push(c),
        }
    }
    (out, text.len())
}
