//! Secrets that somebody tells in a sentence: `the password is …`, `密码：…`. Most such sentences only talk about one, so
//! the value has to look like nothing else.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::Find;
use super::labels::is_placeholder;
use super::reading::{Hold, Text};

/// Words for a password that the names of settings do not have, and what joins them to their value. Lower case: in
/// Latin script the first letter may be a capital, so it is left out of the search.
const LATIN: &[(&str, &[&str])] = &[
    ("assword", &[" is ", " is: "]),
    ("asswort", &[" ist ", " lautet ", ": "]),
    ("ennwort", &[" ist ", " lautet ", ": "]),
    ("ot de passe", &[" est ", " : ", ": ", "\u{a0}: ", "\u{202f}: "]),
    ("ontraseña", &[" es ", ": "]),
    ("ontrasena", &[" es ", ": "]),
];

/// The same in scripts without capitals.
const OTHER: &[(&str, &[&str])] = &[
    ("密码", &["：", ": ", ":", "是", "为", "是：", " 是 "]),
    ("密碼", &["：", ": ", ":", "是", "為", "是：", " 是 "]),
    ("口令", &["：", ": "]),
    ("パスワード", &["：", ": ", ":", "は", "は "]),
    ("비밀번호", &[": ", "는 ", "："]),
    ("пароль", &[": ", " — "]),
    ("Пароль", &[": ", " — "]),
];

/// How words begin that have digits and are no passwords.
const KNOWN_WORDS: &[&str] = &[
    "sha", "md5", "base", "utf", "argon", "pbkdf", "bcrypt", "scrypt", "aes", "ed25519", "rsa", "hmac",
    "http", "ipv", "oauth", "x509", "pkcs", "win", "v1", "v2", "v3", "iso", "rfc", "py3", "python", "tls",
    "ssl",
];

type Rows = Vec<(Finder<'static>, usize, &'static [&'static str])>;

fn prepared(rows: &'static [(&'static str, &'static [&'static str])]) -> Rows {
    rows.iter().map(|(word, joints)| (Finder::new(*word), word.len(), *joints)).collect()
}

pub(super) fn find(text: Text<'_>, finds: &mut Vec<Find>) {
    static LATIN_ROWS: LazyLock<Rows> = LazyLock::new(|| prepared(LATIN));
    static OTHER_ROWS: LazyLock<Rows> = LazyLock::new(|| prepared(OTHER));
    let others: &Rows = &OTHER_ROWS;
    let others = if text.is_ascii() { &[][..] } else { &others[..] };
    for (finder, length, joints) in LATIN_ROWS.iter().chain(others) {
        for at in finder.find_iter(&text) {
            let end = at + length;
            // The longest joint wins: `是：` begins with `是`.
            let fits = joints.iter().filter(|joint| text[end..].starts_with(joint.as_bytes()));
            let Some(joint) = fits.max_by_key(|joint| joint.len()) else { continue };
            finds.extend(told(text, end + joint.len()));
        }
    }
}

/// The password that begins at `at`, with or without quotes.
fn told(text: Text<'_>, at: usize) -> Option<Find> {
    let quotes = usize::from(text.get(at).is_some_and(|byte| b"\"'`".contains(byte)));
    let start = at + quotes;
    if text.is_wrapped(at) || text.is_wrapped(start) {
        return None;
    }
    let is_part = |byte: u8| byte.is_ascii_graphic() && !b"\"'`,;()<>[]{}\\|".contains(&byte);
    let end = text.word(start, is_part, Hold::AtLeast(0));
    let word = &text[start..end];
    // A sentence ends in a sign that is no part of its last word.
    let end = end - word.iter().rev().take_while(|byte| b".:?".contains(byte)).count();
    let word = &text[start..end];
    looks_like_password(word).then_some(Find { start, end, kind: "password" })
}

/// Letters with digits between or behind them, and no word, path, address, number or time that has them as well.
fn looks_like_password(word: &[u8]) -> bool {
    let count = |test: fn(&u8) -> bool| word.iter().filter(|byte| test(byte)).count();
    let is_known = KNOWN_WORDS.iter().any(|known| {
        word.get(..known.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(known.as_bytes()))
    });
    let is_other =
        word.contains(&b'/') || word.contains(&b'=') || memchr::memmem::find(word, b"::").is_some();
    (6..=64).contains(&word.len())
        && count(u8::is_ascii_digit) > 0
        && count(u8::is_ascii_alphabetic) >= 2
        && !word[0].is_ascii_punctuation()
        && !is_known
        && !is_other
        && !is_placeholder(word)
}
