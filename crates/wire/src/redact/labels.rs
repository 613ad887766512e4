//! Secrets that are known by the name before them: `password=…`, `"apiKey": "…"`, `DEPLOY_TOKEN=…`, `--secret …`,
//! `Authorization: …`.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::reading::{Hold, Text};
use super::{Find, MARK, is_random, names, random, run};

/// Names longer than this are no names.
const NAME_LENGTH: usize = 64;

/// So much of a value decides whether it is one; only then is its end looked for. Without this, a text of nothing but
/// labels would be read once for each of them.
const DECIDING_LENGTH: usize = 128;

/// How much a name says about its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Passwords may look like anything.
    Password,
    /// Tokens and keys look made by a machine; without that the name means something else (`sort_key=name`).
    Token,
    /// Keys of many kinds (`sort_key=id`): like tokens, but nothing is taken from the next line to make them look like one.
    Key,
    /// Names that mean other things as well (`tests_pass=120`): a short value counts if it is more than a number.
    Loose,
    /// A header's value is secret behind its scheme.
    Header,
    /// Cookies are names and values, all of them secret together.
    Cookie,
    /// The parameter of a URL that proves who asks: long and random.
    Proof,
}

/// How a name ends that says its value is secret. Compared in lower case, with `-` and `.` as `_`.
const ENDINGS: &[(&str, Class)] = &[
    ("password", Class::Password),
    ("passwd", Class::Password),
    ("passwort", Class::Password),
    ("kennwort", Class::Password),
    ("passphrase", Class::Password),
    ("passcode", Class::Password),
    ("_pwd", Class::Password),
    ("secret", Class::Password),
    ("_pass", Class::Loose),
    ("_pw", Class::Loose),
    ("token", Class::Token),
    ("api_key", Class::Token),
    ("apikey", Class::Token),
    ("access_key", Class::Token),
    ("secret_key", Class::Token),
    ("private_key", Class::Token),
    ("signing_key", Class::Token),
    ("encryption_key", Class::Token),
    ("auth_key", Class::Token),
    ("account_key", Class::Token),
    ("master_key", Class::Token),
    ("_key", Class::Key),
    ("accesskey", Class::Token),
    ("secretkey", Class::Token),
    ("_pat", Class::Token),
    ("credentials", Class::Token),
    ("credential", Class::Token),
    ("accountkey", Class::Token),
    ("privatekey", Class::Token),
    ("signingkey", Class::Token),
    ("encryptionkey", Class::Token),
    ("authkey", Class::Token),
    ("cookie", Class::Cookie),
];

/// Names that say so only if they are whole: `bypass=…` is something else.
const WHOLE_NAMES: [&str; 6] = ["pass", "pwd", "pw", "userpass", "passw", "sshpass"];

/// The names of a URL's parameters, behind `?` or `&`, that say so nowhere else.
const PARAMETERS: [&str; 8] =
    ["sig", "signature", "x_amz_signature", "x_goog_signature", "x_amz_credential", "code", "key", "auth"];

/// Headers that carry a secret, in the same spelling.
const HEADERS: [&str; 9] = [
    "authorization",
    "x_auth_key",
    "x_functions_key",
    "proxy_authorization",
    "x_api_key",
    "api_key",
    "private_token",
    "x_auth_token",
    "x_access_token",
];

/// What stands before the secret in a header.
const SCHEMES: [&str; 6] = ["bearer ", "basic ", "token ", "digest ", "apikey ", "negotiate "];

/// Words that follow an option's name when somebody talks about it.
const PROSE: [&str; 31] = [
    "to",
    "via",
    "in",
    "is",
    "or",
    "option",
    "options",
    "flag",
    "argument",
    "arguments",
    "value",
    "values",
    "parameter",
    "required",
    "requires",
    "must",
    "cannot",
    "should",
    "with",
    "from",
    "that",
    "this",
    "when",
    "and",
    "for",
    "the",
    "not",
    "was",
    "has",
    "but",
    "can",
];

pub(super) fn find(text: Text<'_>, finds: &mut Vec<Find>) {
    // What stands inside a find is not looked at again.
    let mut done = 0;
    for at in memchr::memchr2_iter(b'=', b':', &text) {
        if at < done {
            continue;
        }
        if let Some(found) = assigned(text, at) {
            done = found.end;
            finds.push(found);
        }
    }
    static FLAG: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("--"));
    for at in FLAG.find_iter(&text) {
        if let Some(found) = flagged(text, at + 2) {
            finds.push(found);
        }
    }
}

/// `name=value`, `name = "value"`, `"name": "value"`, `Header: value`.
fn assigned(text: Text<'_>, at: usize) -> Option<Find> {
    let is_colon = text[at] == b':';
    // Comparisons, arrows, paths and URLs are no assignments.
    if matches!(text.get(at + 1), Some(b'=' | b'>' | b':')) || (is_colon && text.get(at + 1) == Some(&b'/')) {
        return None;
    }
    let (name, is_quoted_name) = name_before(&text, at)?;
    let before_name = || text.get(at.wrapping_sub(name.len() + 1)).copied();
    let class = class(name, is_colon).or_else(|| {
        (!is_colon && matches!(before_name(), Some(b'?' | b'&')) && is_parameter(name))
            .then_some(Class::Proof)
    })?;
    let spaces = run(&text[at + 1..], |byte| byte == b' ' || byte == b'\t');
    let start = at + 1 + spaces;
    match class {
        Class::Header => return header(text, start),
        Class::Cookie => return cookie(text, start, before_name()),
        Class::Password | Class::Token | Class::Key | Class::Loose | Class::Proof => {}
    }
    let is_spaced = spaces > 0 || text.get(at.wrapping_sub(1)) == Some(&b' ');
    let is_quoted = opening_quote(text, start).is_some();
    // A line that ends in a label says nothing about the next one, unless it is an entry of JSON.
    if text.is_wrapped(start) && !(is_quoted && is_colon) {
        return None;
    }
    // A quote that opened before the name closes here: `read -p 'Password: ' line`.
    if !is_quoted_name && spaces > 0 && is_quoted && before_name() == text.get(start).copied() {
        return None;
    }
    let whole = start;
    let (start, end) = beginning_of_value(text, start)?;
    let found = &text[start..end];
    if !is_colon && is_path(found) {
        return None;
    }
    if class == Class::Key && !is_quoted && !is_random(&text[start..text.first_line(start, end)]) {
        return None;
    }
    let is_written_out = if is_quoted {
        true
    } else if is_colon {
        // Without quotes a colon is prose or a type, unless the value says otherwise and ends its line, or ends the
        // string in which the name began (`-H 'X-Custom-Token: …'`).
        let ends_string =
            || text.get(end).is_some_and(|end| b"\"'".contains(end) && before_name() == Some(*end));
        let ends = ends_line(text, end) || ends_string();
        !is_quoted_name && spaces > 0 && found.len() >= 8 && is_random(found) && ends
    } else {
        // As in a file of settings, or so long that no name is like it.
        let is_setting = || {
            is_no_name(found)
                && (begins_line(&text, at, name) && ends_line(text, end)
                    || found.len() >= 20 && class != Class::Key)
        };
        !is_code(name, found, text.beside(end)) && (!is_spaced || is_setting())
    };
    let (start, end) = (is_written_out && is_secret(class, found)).then(|| value(text, whole))??;
    Some(Find { start, end, kind: class.kind() })
}

/// Does the line begin with `name`, as it does in a file of settings (`secret_key = …`)?
fn begins_line(text: &[u8], at: usize, name: &[u8]) -> bool {
    let before = &text[..at];
    let before = before.strip_suffix(b" ").unwrap_or(before);
    let Some(before) = before.strip_suffix(name) else { return false };
    let blanks = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    matches!(before[..before.len() - blanks].last(), None | Some(b'\n' | b'\r'))
}

/// Is this surely not the name of a variable? In code, names stand behind `token = ` as well.
fn is_no_name(value: &[u8]) -> bool {
    if value.iter().any(|byte| b"_.()[]{}".contains(byte)) {
        return false;
    }
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    let turns = value.windows(2).filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    value.len() >= 8 && mixed || value.len() >= 20 && turns.count() >= 3
}

fn is_parameter(name: &[u8]) -> bool {
    PARAMETERS.iter().any(|parameter| name.iter().map(spell).eq(parameter.bytes()))
}

/// `--name value`. With a `=` it is an assignment.
fn flagged(text: Text<'_>, at: usize) -> Option<Find> {
    let length = run(&text[at..text.len().min(at + NAME_LENGTH)], is_name);
    let name = &text[at..at + length];
    let class = class(name, false)?;
    if text.get(at + length) != Some(&b' ') {
        return None;
    }
    let whole = at + length + 1;
    if class == Class::Cookie {
        return cookie(text, whole, None);
    }
    let (start, end) = beginning_of_value(text, whole)?;
    let found = &text[start..end];
    let is_value = !is_prose(found) && !found.starts_with(b"-") && !is_code(name, found, text.beside(end));
    let (start, end) = (is_value && is_secret(class, found)).then(|| value(text, whole))??;
    Some(Find { start, end, kind: class.kind() })
}

/// The secret in a header's value, which begins at `at`.
fn header(text: Text<'_>, at: usize) -> Option<Find> {
    let is_next_line = text.is_wrapped(at);
    let at = at + opening_quote(text, at).unwrap_or(0);
    let near = &text[at..text.len().min(at + 16)];
    let scheme = SCHEMES.iter().find(|scheme| {
        near.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme.as_bytes()))
    });
    let start = at + scheme.map_or(0, |scheme| scheme.len());
    let is_part = |byte: u8| !byte.is_ascii_whitespace() && !b"\"'`\\,;<>".contains(&byte);
    let found = text.until(start + DECIDING_LENGTH);
    let found = &text[start..found.word(start, is_part, Hold::AtLeast(6))];
    // Without a scheme it has to look like a secret: "Authorization: required" is a message.
    let is_secret = found.len() >= 6
        && (scheme.is_some() || (is_random(found) && !is_next_line))
        && !is_placeholder(found);
    is_secret.then(|| Find { start, end: text.word(start, is_part, Hold::AtLeast(6)), kind: "authorization" })
}

/// The cookies that begin at `at`, to the end of their line or of their quotes.
fn cookie(text: Text<'_>, at: usize, quote: Option<u8>) -> Option<Find> {
    let opening = opening_quote(text, at);
    let start = at + opening.unwrap_or(0);
    let quote = opening.map(|_| text[start - 1]).or(quote.filter(|quote| b"\"'".contains(quote)));
    let is_part = |byte: u8| {
        !matches!(byte, b'\n' | b'\r' | b'\\' | b'<' | b'>')
            && quote.map_or(!b"\"'`".contains(&byte), |quote| byte != quote)
    };
    let near = &text[start..text.len().min(start + DECIDING_LENGTH)];
    let near = &near[..run(near, is_part)];
    let (name, value) = near.split_at(memchr::memchr(b'=', near)?);
    let value = &value[1..];
    let value = &value[..run(value, |byte| !byte.is_ascii_whitespace() && byte != b';')];
    let is_cookie = !name.is_empty()
        && name.len() <= NAME_LENGTH
        && name.iter().all(|byte| is_name(*byte))
        && value.len() >= 4
        && !is_placeholder(value);
    is_cookie.then(|| Find { start, end: text.word(start, is_part, Hold::AtLeast(0)), kind: "cookie" })
}

/// The name that ends before `at`, spelled for comparison, and whether it stands in quotes.
fn name_before(text: &[u8], at: usize) -> Option<(&[u8], bool)> {
    let before = &text[at.saturating_sub(NAME_LENGTH)..at];
    let before = before.strip_suffix(b" ").unwrap_or(before);
    let unquoted = before.strip_suffix(b"\"").or_else(|| before.strip_suffix(b"'"));
    let is_quoted = unquoted.is_some();
    let before = unquoted.unwrap_or(before);
    let escapes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
    let before = &before[..before.len() - escapes];
    // Most names are no labels; their last letter tells, and spares the rest.
    if !matches!(
        before.last()?.to_ascii_lowercase(),
        b'd' | b'e' | b't' | b'n' | b'y' | b's' | b'h' | b'l' | b'g' | b'w'
    ) {
        return None;
    }
    let length = before.iter().rev().position(|byte| !is_name(*byte)).unwrap_or(before.len());
    let (left, name) = before.split_at(before.len() - length);
    // The letter of `\n` is no part of the name.
    let is_escaped = left.ends_with(b"\\") && name.len() > 1 && matches!(name[0], b'n' | b'r' | b't');
    let name = if is_escaped { &name[1..] } else { name };
    (length > 0).then_some((name, is_quoted))
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// A letter as names are compared: case and kind of joint do not matter.
fn spell(byte: &u8) -> u8 {
    match byte {
        b'-' | b'.' => b'_',
        byte => byte.to_ascii_lowercase(),
    }
}

fn spelled(name: &[u8]) -> Vec<u8> {
    name.iter().map(spell).collect()
}

fn class(name: &[u8], is_colon: bool) -> Option<Class> {
    if WHOLE_NAMES.iter().any(|whole| name.len() == whole.len() && name.iter().map(spell).eq(whole.bytes())) {
        return Some(Class::Loose);
    }
    // As `.npmrc` has it. Behind other words it is no secret (`--jobserver-auth=…`).
    if name == b"_auth" {
        return Some(Class::Token);
    }
    let name = &name[run(name, |byte| matches!(byte, b'-' | b'_' | b'.'))..];
    let ends_like = |ending: &str| {
        let tail = name.len().checked_sub(ending.len()).map(|at| &name[at..]);
        tail.is_some_and(|tail| tail.iter().map(spell).eq(ending.bytes()))
    };
    // What everybody may know.
    if [&b"public"[..], b"pub_", b"PUBLIC", b"existingSecret"].iter().any(|public| name.starts_with(public)) {
        return None;
    }
    if is_colon && HEADERS.iter().any(|header| header.len() == name.len() && ends_like(header)) {
        return Some(Class::Header);
    }
    let class = ENDINGS.iter().find(|(ending, _)| ends_like(ending)).map(|(_, class)| *class)?;
    (class != Class::Key || !names::is_public(name)).then_some(class)
}

/// Whether a variable's name says that its value is secret. Its words count: `GIT_AUTHOR_NAME` is about an author.
pub(super) fn is_secret_variable(name: &[u8]) -> bool {
    /// Words that are enough wherever they stand in a word.
    const PARTS: [&str; 9] = [
        "TOKEN",
        "SECRET",
        "PASSW",
        "PASSPHRASE",
        "PASSCODE",
        "CREDENTIAL",
        "COOKIE",
        "APIKEY",
        "PRIVATEKEY",
    ];
    /// Words that have to stand alone.
    const WORDS: [&str; 8] = ["KEY", "KEYS", "AUTH", "AUTHORIZATION", "PASS", "PWD", "PAT", "JWT"];
    /// Last words that say it is about the secret and not the secret.
    const ABOUT: [&str; 10] =
        ["FILE", "PATH", "DIR", "NAME", "URL", "URI", "TYPE", "HOST", "USER", "ENDPOINT"];
    let name = spelled(name).to_ascii_uppercase();
    let words = || name.split(|byte| *byte == b'_');
    let is = |word: &[u8], list: &[&str]| list.iter().any(|other| other.as_bytes() == word);
    let is_about = words().next_back().is_some_and(|last| is(last, &ABOUT));
    !is_about
        && name != b"PWD"
        && name != b"OLDPWD"
        && (PARTS.iter().any(|part| memchr::memmem::find(&name, part.as_bytes()).is_some())
            || words().any(|word| is(word, &WORDS)))
}

/// What a value is when all that is known is the name it is kept under, as in a table of names and values.
pub(crate) fn kind_of_named(name: &str, value: &str) -> Option<&'static str> {
    let Some(class) = class(name.as_bytes(), true) else {
        return kind_of_other(name, value);
    };
    let looks_right = match class {
        Class::Header => is_random(value.as_bytes()) && value.len() >= 6,
        Class::Password | Class::Token | Class::Key | Class::Loose | Class::Cookie | Class::Proof => true,
    };
    (looks_right && is_secret(class, value.as_bytes())).then(|| class.kind())
}

/// The same for names that say so only where values are kept under names: `pin`, `otp`, `密码`.
fn kind_of_other(name: &str, value: &str) -> Option<&'static str> {
    const SHORT: [&str; 4] = ["pin", "otp", "totp", "cvv"];
    let word = value.as_bytes();
    let is_one_word = word.len() >= 4 && !word.iter().any(u8::is_ascii_whitespace) && !is_placeholder(word);
    if SHORT.iter().any(|short| name.eq_ignore_ascii_case(short)) {
        return (is_one_word && word.iter().any(u8::is_ascii_digit)).then_some("password");
    }
    let is_label = || match name.is_ascii() {
        true => random::is_mixed(word) && !random::is_hash(word) && names::is_label(name.as_bytes()),
        false => names::kind_of_field(name).is_some(),
    };
    let is_strong =
        || random::is_random_word(word) && word.len() >= 12 && names::kind_of_field(name).is_some();
    (is_one_word && (is_label() || is_strong())).then_some("password")
}

/// Whether what is written into a field of this name is secret: `#password`, `Password field`.
pub(crate) fn kind_of_field(name: &str, value: &str) -> Option<&'static str> {
    let word = value.as_bytes();
    let is_value = word.len() >= 4 && is_random(word) && !is_placeholder(word) && !word.contains(&b' ');
    is_value.then(|| names::kind_of_field(name))?
}

impl Class {
    fn kind(self) -> &'static str {
        match self {
            Class::Password | Class::Loose => "password",
            Class::Token | Class::Key | Class::Header | Class::Proof => "token",
            Class::Cookie => "cookie",
        }
    }
}

fn is_secret(class: Class, found: &[u8]) -> bool {
    let looks_right = match class {
        Class::Password | Class::Header | Class::Cookie => found.len() >= 3,
        Class::Loose => {
            found.len() >= 6
                && is_random(found)
                && !found.iter().all(u8::is_ascii_digit)
                && !found.starts_with(b"/")
                && !found.starts_with(b"~")
        }
        Class::Proof => found.len() >= 16 && is_random(found),
        Class::Token | Class::Key => {
            found.len() >= 8 && is_random(found) && !is_path(found) && !found.starts_with(b"~")
        }
    };
    looks_right && !is_placeholder(found)
}

/// Whether a value is a path, and not a key in base64 that begins like one.
fn is_path(found: &[u8]) -> bool {
    found.starts_with(b"/")
        && !found.ends_with(b"=")
        && !found.ends_with(b"%3D")
        && !random::is_mixed(&found[1..])
}

/// As much of the value at `at` as decides.
fn beginning_of_value(text: Text<'_>, at: usize) -> Option<(usize, usize)> {
    value(text.until(at + DECIDING_LENGTH), at)
}

/// Where the value at `at` begins and ends: what stands in quotes, or one word.
pub(super) fn value(text: Text<'_>, at: usize) -> Option<(usize, usize)> {
    if let Some(opening) = opening_quote(text, at) {
        let start = at + opening;
        let quote = text[start - 1];
        let mut end = start;
        while let Some(&byte) = text.get(end) {
            match byte {
                b'\n' => break,
                // An escape hides what follows, unless the quote itself was written with as many.
                b'\\' => {
                    let escapes = run(&text[end..], |byte| byte == b'\\');
                    let is_quote = text.get(end + escapes) == Some(&quote);
                    if is_quote && (escapes < opening || (opening == 1 && escapes % 2 == 0)) {
                        end += if opening == 1 { escapes } else { 0 };
                        break;
                    }
                    end += escapes;
                }
                byte if byte == quote => break,
                _ => {}
            }
            end += 1;
        }
        return Some((start, text.hold(start, end.min(text.len()), Hold::Quoted)));
    }
    let word = text.get(at..)?;
    if word.starts_with(MARK) {
        return None;
    }
    // A colour ends behind it.
    let is_part =
        |byte: u8| !byte.is_ascii_whitespace() && byte != 0x1b && !b"\"'`,;&|()<>[]{}\\".contains(&byte);
    let end = text.word(at, is_part, Hold::AtLeast(0));
    (end > at).then_some((at, end))
}

/// The length of a quote at `at`, with its escapes.
fn opening_quote(text: Text<'_>, at: usize) -> Option<usize> {
    const MOST_ESCAPES: usize = 16;
    let near = &text[at.min(text.len())..text.len().min(at + MOST_ESCAPES)];
    let escapes = run(near, |byte| byte == b'\\');
    matches!(near.get(escapes), Some(b'"' | b'\'')).then_some(escapes + 1)
}

fn ends_line(text: Text<'_>, at: usize) -> bool {
    matches!(text.get(at), None | Some(b'\n' | b'\r')) || text.is_wrapped(at)
}

/// Whether a word behind an option is one with which somebody talks about it.
pub(super) fn is_prose(found: &[u8]) -> bool {
    PROSE.iter().any(|word| found.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether a name says that what it stands for is secret: `aws_secret_access_key`, `//registry.example/:_authToken`.
pub(super) fn names_secret(name: &[u8]) -> bool {
    let name = name.rsplit(|byte| b":/".contains(byte)).next().unwrap_or(name);
    match class(name, false) {
        Some(Class::Password | Class::Token | Class::Loose) => true,
        Some(Class::Key | Class::Header | Class::Cookie | Class::Proof) | None => false,
    }
}

/// Whether it only says where a secret comes from, or that there is none.
pub(super) fn is_placeholder(found: &[u8]) -> bool {
    const NOTHING: [&str; 24] = [
        "none",
        "secretstr",
        "null",
        "nil",
        "true",
        "false",
        "undefined",
        "string",
        "str",
        "redacted",
        "hidden",
        "masked",
        "omitted",
        "changeme",
        "required",
        "yes",
        "no",
        "optional",
        "sensitive",
        "password",
        "passwd",
        "pass",
        "token",
        "secret",
    ];
    found.starts_with(MARK)
        || found.starts_with(b"$")
        || found.starts_with(b"{")
        || found.starts_with(b"<")
        || (found.starts_with(b"%") && found.ends_with(b"%"))
        || found.starts_with(b".*")
        || found.starts_with(b"[^")
        || random::is_address(found)
        || found.starts_with(b"YOUR_")
        || found.starts_with(b"REDACTED")
        || found.starts_with(b"process.env.")
        || found.starts_with(b"[MASKED]")
        || found.starts_with(b"[FILTERED]")
        || found.starts_with(b"your-")
        || found.starts_with(b"your_")
        || found.starts_with("…".as_bytes())
        || found.starts_with("[…]".as_bytes())
        || found.iter().all(|byte| matches!(byte, b'*' | b'x' | b'X' | b'.' | b'-' | b'_' | b'?'))
        || NOTHING.iter().any(|word| found.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether an unquoted value is an expression: a call, an index, or a name much like that of the label.
fn is_code(name: &[u8], found: &[u8], next: Option<u8>) -> bool {
    if matches!(next, Some(b'(' | b'[')) {
        return true;
    }
    let found = spelled(found);
    let is_identifier = found.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    found == name
        || (is_identifier
            && found.contains(&b'_')
            && ENDINGS.iter().any(|(ending, _)| found.ends_with(ending.as_bytes())))
}
