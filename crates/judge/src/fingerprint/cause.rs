//! The cause of a failure: the kind and the error line without what changes from run to run. Two failures with this
//! name in common have one root cause, whatever call met it.

use super::Fingerprint;
use crate::shell;
use crate::{Call, Kind};

/// Names the cause that `line` shows.
pub fn cause(family: &str, kind: Kind, line: &str) -> Fingerprint {
    Fingerprint::of("e1", &[family.to_lowercase().as_bytes(), kind.word().as_bytes(), mask(line).as_bytes()])
}

/// The family of tools whose failures can have one cause in common: all shells are one.
pub fn family(call: &Call) -> String {
    if shell::line(call).is_some() { "shell".to_owned() } else { call.tool.to_lowercase() }
}

/// How much of a line tells: past that it is data.
const LONGEST: usize = 600;

/// Rewrites an error line so that runs of one cause look alike: times, paths, numbers, ids and ports become signs, while
/// words, names and error codes stay.
pub fn mask(line: &str) -> String {
    let plain = without_ansi(line);
    let mut out = String::new();
    let line = without_shell_prefix(plain.trim());
    let codes_matter = tells_codes(line);
    for token in spaced(line).split_whitespace() {
        let masked = mask_token(token, codes_matter);
        let repeats_sign = masked.starts_with('<') && out.ends_with(masked.as_str());
        if masked.is_empty() || repeats_sign {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&masked);
    }
    out
}

/// The first stretch of the line without colour and control codes.
fn without_ansi(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                match chars.next() {
                    Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                    Some(']') => while chars.next().is_some_and(|c| c != '\u{7}' && c != '\u{1b}') {},
                    Some(_) | None => {}
                };
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
        if out.len() >= LONGEST {
            break;
        }
    }
    out
}

/// `bash: line 1: cargo: command not found` and `/bin/sh: 1: cargo: not found` say the same as without their beginning.
fn without_shell_prefix(line: &str) -> &str {
    let Some((shell, rest)) = line.split_once(": ") else { return line };
    let name = shell.rsplit('/').next().unwrap_or(shell);
    if !matches!(name, "bash" | "sh" | "zsh" | "dash" | "ash" | "-bash" | "-sh" | "ksh") {
        return line;
    }
    match rest.split_once(": ") {
        Some((number, rest)) if number.trim_start_matches("line ").bytes().all(|b| b.is_ascii_digit()) => {
            rest
        }
        Some(_) | None => rest,
    }
}

/// Tells whether a line speaks of statuses or exit codes, so that the numbers in it say what happened.
fn tells_codes(line: &str) -> bool {
    const SIGNS: &[&str] = &[
        "http",
        "status",
        "code",
        "api",
        "error 4",
        "error 5",
        "server",
        "service",
        "unavailable",
        "forbidden",
        "not found",
        "too many",
        "gateway",
        "request",
    ];
    let line = line.to_lowercase();
    SIGNS.iter().any(|sign| line.contains(sign))
}

/// The line with blanks for quotes and brackets, which say nothing by themselves. A sign that is quoted is named
/// (`expected ';'`), so it stays.
fn spaced(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        let word_before = at > 0 && chars[at - 1].is_alphanumeric();
        let word_after = chars.get(at + 1).is_some_and(|next| next.is_alphanumeric());
        match c {
            '\'' | '’' if word_before && word_after => out.push('\''),
            '"' | '\'' | '`' | '‘' | '“' | '»' | '«' => {
                let sign: String = chars[at + 1..]
                    .iter()
                    .take(3)
                    .take_while(|next| next.is_ascii_punctuation() && !QUOTES.contains(next))
                    .collect();
                let closes = chars.get(at + 1 + sign.len()).is_some_and(|next| QUOTES.contains(next));
                out.push(' ');
                if !sign.is_empty() && closes && !word_before {
                    out.push_str(&sign);
                    out.push(' ');
                    at += sign.len() + 1;
                }
            }
            '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | ',' | ';' | '’' | '”' => out.push(' '),
            c => out.push(c),
        }
        at += 1;
    }
    out
}

const QUOTES: &[char] = &['"', '\'', '`', '‘', '’', '“', '”', '«', '»'];

fn mask_token(token: &str, codes_matter: bool) -> String {
    let core = token.trim_end_matches(['.', ':', '!', '?']).trim_start_matches(':');
    if core.is_empty() {
        return String::new();
    }
    if codes_matter && is_code(core) {
        return core.to_owned();
    }
    if let Some(masked) = address(core) {
        return masked;
    }
    if let Some(sign) = sign_of(core) {
        return sign.to_owned();
    }
    if let Some(masked) = path(core) {
        return masked;
    }
    if let Some((name, value)) = core.split_once('=').filter(|(name, _)| !name.is_empty()) {
        return format!("{}={}", mask_word(name), mask_token(value, codes_matter));
    }
    mask_word(core)
}

/// The sign for a word that is nothing but a value.
fn sign_of(word: &str) -> Option<&'static str> {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    let all = |allowed: &dyn Fn(u8) -> bool| word.bytes().all(allowed);
    let hex = |b: u8| b.is_ascii_hexdigit();
    let is_uuid =
        word.len() == 36 && word.bytes().filter(|b| *b == b'-').count() == 4 && all(&|b| hex(b) || b == b'-');
    if is_uuid {
        return Some("<id>");
    }
    // `12:05` may be a time, and is a line and its column just as well.
    let is_pair = digits + 1 == word.len() && word.contains(':');
    let is_time = digits >= 4
        && !is_pair
        && all(&|b| b.is_ascii_digit() || b":-./+,TZ".contains(&b))
        && word.contains([':', '-', '/', 'T']);
    if is_time && word.bytes().next().is_some_and(|b| b.is_ascii_digit() || b == b'+') {
        return Some("<time>");
    }
    let prefixed = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    if prefixed.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(hex)) {
        return Some("<hex>");
    }
    let is_hash = word.len() >= 7 && all(&hex) && word.bytes().any(|b| b.is_ascii_alphabetic());
    if is_hash {
        return Some("<hex>");
    }
    let number = word.trim_start_matches(['-', '+', '~', '#', '$']);
    let unit =
        number.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '_' | ':' | '/'));
    let starts_well = number.bytes().next().is_some_and(|b| b.is_ascii_digit());
    (starts_well && (unit.is_empty() || is_unit(unit))).then_some("<n>")
}

/// Units of time and size, and what else is glued to a number.
fn is_unit(unit: &str) -> bool {
    const UNITS: &[&str] = &[
        "%", "ms", "s", "sec", "secs", "seconds", "m", "min", "mins", "minutes", "h", "hours", "us", "µs",
        "ns", "b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "k", "g", "bytes", "x", "px", "st", "nd",
        "rd", "th", "d",
    ];
    UNITS.contains(&unit.to_lowercase().as_str())
        || unit.trim_start_matches(['m', 'h', 's', '.']).bytes().all(|b| b.is_ascii_digit())
}

/// HTTP statuses of failures, and exit codes with a meaning of their own.
fn is_code(word: &str) -> bool {
    const CODES: &[&str] = &[
        "400", "401", "402", "403", "404", "405", "406", "407", "408", "409", "410", "411", "412", "413",
        "415", "418", "422", "423", "424", "425", "426", "428", "429", "431", "451", "500", "501", "502",
        "503", "504", "507", "508", "520", "521", "522", "523", "524", "525", "529", "127", "126", "137",
        "139",
    ];
    CODES.contains(&word)
}

/// A URL keeps its host: two hosts that are down are two causes. One without a host is a path.
fn address(word: &str) -> Option<String> {
    if let Some((scheme, rest)) = word.split_once("://") {
        let scheme = scheme.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or(scheme);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        return (!host.is_empty()).then(|| format!("{}://{}", scheme.to_lowercase(), host.to_lowercase()));
    }
    // `127.0.0.1:5432` and `localhost:3000` keep their host, a port is a number.
    let (host, port) = word.split_once(':').unwrap_or((word, ""));
    let is_port = port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
    let is_ip = host.split('.').count() == 4 && host.split('.').all(|part| part.parse::<u8>().is_ok());
    (is_port && (is_ip || host == "localhost")).then(|| host.to_lowercase())
}

/// A path keeps its last part, and loses the place in it: what is missing is told by its name, not by where a checkout lies.
/// Names that only tools make up are lost, too.
fn path(word: &str) -> Option<String> {
    let looks_like = word.contains('/') || word.contains('\\') && word.chars().any(char::is_alphanumeric);
    let file = without_place(word);
    if !looks_like {
        // `src.rs:10:5` is a place in a file without a folder.
        return (file.len() < word.len() && file.contains('.')).then(|| mask_word(file));
    }
    let name = file.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
    let passing = ["/tmp/", "/var/folders/", "\\Temp\\", "/proc/"].iter().any(|place| word.contains(place))
        && made_up(name);
    if name.is_empty() || passing {
        return Some("<path>".to_owned());
    }
    if name.bytes().all(|b| b.is_ascii_digit()) {
        // `foo/2` is told by what stands before the number.
        let before = file[..file.len() - name.len()].trim_end_matches(['/', '\\']);
        return Some(format!("{}/<n>", mask_word(before.rsplit(['/', '\\']).next().unwrap_or_default())));
    }
    Some(mask_word(name))
}

/// The word without `:10:5` or `(10,5)` at its end.
fn without_place(word: &str) -> &str {
    let is_place = |c: char| c.is_ascii_digit() || matches!(c, ':' | ',' | '(' | ')');
    let file = word.trim_end_matches(is_place);
    match word[file.len()..].chars().next() {
        Some(':' | '(') => file,
        Some(_) | None => word,
    }
}

/// Names such as `tmp8x1k2a`: letters and digits mixed, as nobody writes them.
fn made_up(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    let switches = stem
        .as_bytes()
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit())
        .count();
    switches >= 2 || name.starts_with("tmp")
}

/// A plain word, lower case. Numbers in it are masked, except where the word is a code (`E0308`, `TS2307`) or a name with
/// a digit in it (`python3`, `libssl1`).
fn mask_word(word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let len = rest[start..].bytes().take_while(u8::is_ascii_digit).count();
        let before = rest[..start].chars().next_back().or(out.chars().next_back());
        let after = rest[start + len..].chars().next();
        let in_name =
            before.is_some_and(|c| c.is_alphabetic() || c == '_') || after.is_some_and(char::is_alphabetic);
        out.push_str(&rest[..start].to_lowercase());
        out.push_str(if in_name && len <= 5 { &rest[start..start + len] } else { "<n>" });
        rest = &rest[start + len..];
    }
    out.push_str(&rest.to_lowercase());
    out
}
