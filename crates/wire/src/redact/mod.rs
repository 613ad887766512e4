//! Cutting secrets out of text, before anything is stored or shown.
//!
//! What is cut is replaced by `[redacted:kind]`, so that a reader still sees what stood there. Two ways lead to a find:
//! a token has the shape its issuer gives it, or the words before it say that it is secret. Every search is one pass with
//! bounded looking around, so the time is linear; text without a find is handed back as it is.
//!
//! It errs towards ordinary text: commit hashes, uuids, paths, placeholders and code that only names a password stay.

mod labels;
mod places;
mod shapes;

use std::borrow::Cow;

/// Cuts the secrets out of `text`. Doing it twice is the same as doing it once.
pub fn redact(text: &str) -> Cow<'_, str> {
    match redact_bytes(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // A find begins and ends beside ASCII, so what is left is still UTF-8.
        Cow::Owned(bytes) => Cow::Owned(
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        ),
    }
}

/// Cuts the secrets out of output that need not be UTF-8.
pub fn redact_bytes(text: &[u8]) -> Cow<'_, [u8]> {
    let mut redacted = Cow::Borrowed(text);
    // A cut changes what its neighbours stand beside, so a second look may find more. Each look leaves less to find; the
    // limit is for texts made to defeat it.
    for _ in 0..MOST_LOOKS {
        let finds = find_all(&redacted);
        if finds.is_empty() {
            break;
        }
        redacted = Cow::Owned(cut(&redacted, &finds));
    }
    redacted
}

const MOST_LOOKS: usize = 8;

fn cut(text: &[u8], finds: &[Find]) -> Vec<u8> {
    let mut kept = 0;
    let mut redacted = Vec::with_capacity(text.len());
    for find in finds {
        redacted.extend_from_slice(&text[kept..find.start]);
        redacted.extend_from_slice(MARK);
        redacted.extend_from_slice(find.kind.as_bytes());
        redacted.push(b']');
        kept = find.end;
    }
    redacted.extend_from_slice(&text[kept..]);
    redacted
}

/// What every replacement begins with; nothing that begins so is cut again.
const MARK: &[u8] = b"[redacted:";

/// A secret: where it stands and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Find {
    start: usize,
    end: usize,
    kind: &'static str,
}

/// All finds, in order, none touching another. Where two overlap, the one that knows the kind best comes first.
fn find_all(text: &[u8]) -> Vec<Find> {
    let mut finds = Vec::new();
    shapes::find(text, &mut finds);
    places::find(text, &mut finds);
    labels::find(text, &mut finds);
    // The sort is stable: of two finds at one place the first searched for gives the kind.
    finds.sort_by_key(|find| find.start);
    let mut merged: Vec<Find> = Vec::with_capacity(finds.len());
    for find in finds {
        match merged.last_mut() {
            Some(last) if find.start < last.end => last.end = last.end.max(find.end),
            Some(_) | None => merged.push(find),
        }
    }
    if merged.is_empty() { merged } else { spare_marks(text, &merged) }
}

/// Takes out of `finds` what was cut before.
fn spare_marks(text: &[u8], finds: &[Find]) -> Vec<Find> {
    let mut marks = memchr::memmem::find_iter(text, MARK).filter_map(|start| {
        let kind = start + MARK.len();
        let end = kind + run(&text[kind..], |byte| byte.is_ascii_lowercase() || byte == b'-');
        (end > kind && text.get(end) == Some(&b']')).then_some((start, end + 1))
    });
    let mut spared = Vec::with_capacity(finds.len());
    let mut mark = marks.next();
    for find in finds {
        let mut rest = *find;
        while let Some((start, end)) = mark {
            if end <= rest.start {
                mark = marks.next();
                continue;
            }
            if rest.end <= start {
                break;
            }
            if rest.start < start {
                spared.push(Find { end: start, ..rest });
            }
            rest.start = end;
            if rest.end <= end {
                break;
            }
        }
        if rest.start < rest.end {
            spared.push(rest);
        }
    }
    spared
}

/// Whether `text` looks made by a machine: with a digit, or in both cases.
fn is_random(text: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| text.iter().any(test);
    has(u8::is_ascii_digit) || (has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase))
}

/// The length of the longest prefix of `text` whose bytes all pass `test`.
fn run(text: &[u8], test: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|byte| !test(*byte)).unwrap_or(text.len())
}
