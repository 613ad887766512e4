//! What the words of a line stand for: variables that the line itself sets, braces, and what nobody can tell.

use std::collections::BTreeMap;

/// What a word may stand for. More than a few readings are as good as none.
const READINGS_MAX: usize = 32;

/// What a word stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    /// One of these texts, in which nothing is left to expand but patterns and `~`.
    Texts(Vec<String>),
    /// A name that is new: `$(mktemp -d)`. Nothing that was there before is at risk.
    New,
    /// Nobody can tell.
    Unknown,
}

/// The variables that a line has set so far.
#[derive(Debug, Default)]
pub(super) struct Names<'c> {
    values: BTreeMap<&'c str, Meaning>,
}

impl<'c> Names<'c> {
    /// Notes an assignment.
    pub(super) fn set(&mut self, name: &'c str, value: &str) {
        let new = self.meaning(value);
        self.note(name, new);
    }

    /// What a variable may hold that the line has set, as far as that is known.
    pub(super) fn texts_of(&self, name: &str) -> &[String] {
        match self.values.get(name) {
            Some(Meaning::Texts(texts)) => texts,
            Some(Meaning::New | Meaning::Unknown) | None => &[],
        }
    }

    /// Notes the variable of a loop: it has each of these values.
    pub(super) fn set_each(&mut self, name: &'c str, words: &[String]) {
        let mut texts = Vec::new();
        for word in words {
            match self.meaning(word) {
                Meaning::Texts(more) if texts.len() + more.len() <= READINGS_MAX => texts.extend(more),
                Meaning::New => {}
                Meaning::Texts(_) | Meaning::Unknown => return self.note(name, Meaning::Unknown),
            }
        }
        let is_known = !texts.is_empty();
        self.note(name, if is_known { Meaning::Texts(texts) } else { Meaning::Unknown });
    }

    /// A variable that is set twice may have either value: which branch ran is not known.
    fn note(&mut self, name: &'c str, new: Meaning) {
        let known = match (self.values.remove(name), new) {
            (None, new) => new,
            (Some(Meaning::Texts(mut old)), Meaning::Texts(new)) if old.len() + new.len() <= READINGS_MAX => {
                old.extend(new);
                Meaning::Texts(old)
            }
            (Some(Meaning::New), Meaning::New) => Meaning::New,
            (Some(Meaning::Texts(_) | Meaning::New | Meaning::Unknown), _) => Meaning::Unknown,
        };
        self.values.insert(name, known);
    }

    /// What a word stands for, its braces opened.
    pub(super) fn meaning(&self, word: &str) -> Meaning {
        if !word.contains(['$', '`', '{']) {
            return Meaning::Texts(vec![word.to_owned()]);
        }
        let mut texts = vec![String::new()];
        let mut rest = word;
        while let Some(at) = rest.find(['$', '`']) {
            texts.iter_mut().for_each(|text| text.push_str(&rest[..at]));
            let (found, len) = self.substituted(&rest[at..], at == 0 && texts[0].is_empty());
            match found {
                Meaning::Texts(values) => {
                    let pairs =
                        texts.iter().flat_map(|text| values.iter().map(move |v| format!("{text}{v}")));
                    texts = pairs.take(READINGS_MAX).collect();
                }
                Meaning::New => return Meaning::New,
                // With something fixed before it, a pattern tells enough: `build/$name.o`. But `build/$name` may be all of the
                // folder, hidden files too, where there is no such name.
                Meaning::Unknown if texts.iter().all(|text| !text.is_empty() && text != "/") => {
                    let ends = matches!(rest.as_bytes().get(at + len), None | Some(b'/'));
                    let pattern = |text: &str| if ends && text.ends_with('/') { "**" } else { "*" };
                    texts.iter_mut().for_each(|text| text.push_str(pattern(text)));
                }
                Meaning::Unknown => return Meaning::Unknown,
            }
            rest = &rest[at + len..];
        }
        texts.iter_mut().for_each(|text| text.push_str(rest));
        Meaning::Texts(texts.iter().flat_map(|text| braces(text)).take(READINGS_MAX).collect())
    }

    /// What stands at the start of a text that begins with `$` or a backtick, and how long it is.
    fn substituted(&self, text: &str, leads: bool) -> (Meaning, usize) {
        let literal = |text: &str| Meaning::Texts(vec![text.to_owned()]);
        if let Some(inside) = text.strip_prefix('`') {
            let end = inside.find('`').unwrap_or(inside.len());
            return (said_by(&inside[..end]), (end + 2).min(text.len()));
        }
        if text.starts_with("$(") {
            let end = closing(text, '(', ')');
            return (said_by(text[2..end].trim_end_matches(')')), end);
        }
        let (name, len) = match text.strip_prefix("${") {
            Some(inside) => {
                let end = inside.find('}').unwrap_or(inside.len());
                (&inside[..end], (end + 3).min(text.len()))
            }
            None => {
                let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
                let end = text.bytes().skip(1).take_while(is_part).count();
                (&text[1..=end], end + 1)
            }
        };
        let plain = name.split([':', '-', '?']).next().unwrap_or_default();
        match plain {
            "" if text.len() > 1 && text[1..].starts_with(['@', '*', '#', '?', '$', '!']) => {
                (Meaning::Unknown, 2)
            }
            "" => (literal("$"), 1),
            "HOME" if leads => (literal("~"), len),
            "PWD" if leads => (literal("."), len),
            "TMPDIR" | "RUNNER_TEMP" if leads && !self.values.contains_key(plain) => {
                // `${TMPDIR:-/tmp}`: nobody knows here whether it is set.
                let otherwise = name[plain.len()..].trim_start_matches(':').strip_prefix('-');
                let texts = [format!("${plain}")].into_iter().chain(otherwise.map(str::to_owned));
                (Meaning::Texts(texts.collect()), len)
            }
            _ => (self.values.get(plain).cloned().unwrap_or(Meaning::Unknown), len),
        }
    }
}

/// What a few commands print that everybody knows.
fn said_by(script: &str) -> Meaning {
    let script = script.trim();
    match script.split_whitespace().next() {
        Some("pwd") if script == "pwd" => Meaning::Texts(vec![".".to_owned()]),
        Some("mktemp") => Meaning::New,
        Some(_) | None => Meaning::Unknown,
    }
}

/// Where the bracket that opens in `text` is closed, in bytes.
fn closing(text: &str, open: char, close: char) -> usize {
    let mut depth = 0_u32;
    for (at, sign) in text.char_indices() {
        if sign == open {
            depth += 1;
        } else if sign == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at + 1;
            }
        }
    }
    text.len()
}

/// `{a,b}` as its parts, `{1..9}` as a pattern. `{}` stands as it is.
fn braces(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        let found = text.char_indices().filter(|(_, sign)| *sign == '{').find_map(|(start, _)| {
            let end = start + closing(&text[start..], '{', '}');
            let inside = text.get(start + 1..end.checked_sub(1)?)?;
            (inside.contains(',') || inside.contains("..")).then_some((start, end, inside))
        });
        match found {
            Some((start, end, inside)) if done.len() + open.len() < READINGS_MAX => {
                let parts: Vec<&str> = if inside.contains(',') { split(inside) } else { vec!["*"] };
                let whole = |part: &&str| format!("{}{part}{}", &text[..start], &text[end..]);
                open.extend(parts.iter().rev().map(whole));
            }
            Some(_) | None => done.push(text),
        }
    }
    done
}

/// The parts between the commas that stand in no further brace.
fn split(inside: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    inside
        .split(move |sign| {
            depth += i32::from(sign == '{') - i32::from(sign == '}');
            sign == ',' && depth == 0
        })
        .collect()
}
