//! Cutting secrets out of text, before anything is stored or shown.
//!
//! What is cut is replaced by `[redacted:kind]`, so that a reader still sees what stood there. Three ways lead to a find:
//! a token has the shape its issuer gives it, the words before it say that it is secret, or its value is known. The text
//! is searched as it stands, with its lines joined, and with its codes resolved. Every search is one pass with bounded
//! looking around, so the time is linear; text without a find is handed back as it is.
//!
//! It errs towards ordinary text: commit hashes, uuids, paths, placeholders and code that only names a password stay.

mod columns;
mod commands;
mod encoded;
mod known;
mod labels;
mod names;
mod near;
mod places;
mod prose;
mod random;
mod reading;
mod tokens;

use std::borrow::Cow;
use std::ops::Range;

pub(crate) use known::Known;
pub(crate) use labels::{kind_of_field, kind_of_named};
use reading::Text;

/// Cuts the secrets out of `text`. Doing it twice is the same as doing it once.
pub fn redact(text: &str) -> Cow<'_, str> {
    redact_known(text, &Known::default(), &mut [])
}

/// Cuts the secrets out of output that need not be UTF-8.
pub fn redact_bytes(text: &[u8]) -> Cow<'_, [u8]> {
    redact_bytes_known(text, &Known::default(), &mut [])
}

/// Cuts the secrets out of `text`, also those that are `known`, and moves `edges` to where they are afterwards.
pub(crate) fn redact_known<'a>(text: &'a str, known: &Known, edges: &mut [Edge]) -> Cow<'a, str> {
    match redact_bytes_known(text.as_bytes(), known, edges) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // A find begins and ends beside ASCII, so what is left is still UTF-8.
        Cow::Owned(bytes) => Cow::Owned(
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        ),
    }
}

fn redact_bytes_known<'a>(text: &'a [u8], known: &Known, edges: &mut [Edge]) -> Cow<'a, [u8]> {
    let mut redacted = Cow::Borrowed(text);
    // A cut changes what its neighbours stand beside, so a second look may find more. Each look leaves less to find; the
    // limit is for texts made to defeat it.
    for _ in 0..MOST_LOOKS {
        let finds = find_all(&redacted, known, Depth::Outside);
        if finds.is_empty() {
            break;
        }
        redacted = Cow::Owned(cut(&redacted, &finds, edges));
    }
    redacted
}

const MOST_LOOKS: usize = 8;

/// A place in a text that is followed while the text changes around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    /// Something begins here: if it stands inside of what is cut, the mark belongs to it.
    Start(usize),
    /// Something ends here: likewise.
    End(usize),
}

impl Edge {
    /// Follows one change: `start..end` became what stands from `at` to `until`. `before` is where the edge was at first.
    fn follow(&mut self, before: Edge, start: usize, end: usize, at: usize, until: usize) {
        let moved = |place: usize, inside: usize| if place < end { inside } else { until + (place - end) };
        match before {
            Edge::Start(place) if place > start => *self = Edge::Start(moved(place, at)),
            Edge::End(place) if place > start => *self = Edge::End(moved(place, until)),
            Edge::Start(_) | Edge::End(_) => {}
        }
    }

    pub(crate) fn place(self) -> usize {
        match self {
            Edge::Start(place) | Edge::End(place) => place,
        }
    }

    /// The same edge elsewhere.
    pub(crate) fn moved_to(self, place: usize) -> Edge {
        match self {
            Edge::Start(_) => Edge::Start(place),
            Edge::End(_) => Edge::End(place),
        }
    }
}

fn cut(text: &[u8], finds: &[Find], edges: &mut [Edge]) -> Vec<u8> {
    let changes = finds.iter().map(|find| (find.start, find.end, [MARK, find.kind.as_bytes(), b"]"]));
    splice(text, changes, edges)
}

/// Replaces stretches of `text`, given in order, and moves `edges` to where they are afterwards.
pub(crate) fn splice<'a>(
    text: &[u8],
    changes: impl Iterator<Item = (usize, usize, [&'a [u8]; 3])>,
    edges: &mut [Edge],
) -> Vec<u8> {
    let mut kept = 0;
    let mut spliced = Vec::with_capacity(text.len());
    let before = edges.to_vec();
    for (start, end, parts) in changes {
        spliced.extend_from_slice(&text[kept..start]);
        let at = spliced.len();
        spliced.extend(parts.iter().copied().flatten());
        kept = end;
        for (edge, before) in edges.iter_mut().zip(&before) {
            edge.follow(*before, start, end, at, spliced.len());
        }
    }
    spliced.extend_from_slice(&text[kept..]);
    spliced
}

/// What every replacement begins with; nothing that begins so is cut again.
pub(crate) const MARK: &[u8] = b"[redacted:";

/// A secret: where it stands and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Find {
    start: usize,
    end: usize,
    kind: &'static str,
}

/// How often something was decoded to get to a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    Outside,
    Decoded,
    DecodedTwice,
}

impl Depth {
    fn deeper(self) -> Option<Depth> {
        match self {
            Depth::Outside => Some(Depth::Decoded),
            Depth::Decoded => Some(Depth::DecodedTwice),
            Depth::DecodedTwice => None,
        }
    }
}

/// All finds, in order, none touching another. Where two overlap, the one that knows the kind best comes first.
fn find_all(text: &[u8], known: &Known, depth: Depth) -> Vec<Find> {
    let (mut finds, mut guesses) = (Vec::new(), Vec::new());
    find_in(Text::plain(text), known, depth, &mut finds, &mut guesses);
    let (mut other_finds, mut other_guesses) = (Vec::new(), Vec::new());
    for reading in reading::others(text) {
        find_in(reading.text(), known, depth, &mut other_finds, &mut other_guesses);
        for (others, all) in [(&mut other_finds, &mut finds), (&mut other_guesses, &mut guesses)] {
            all.extend(others.drain(..).filter(|find: &Find| find.start < find.end).map(|find| {
                let source = reading.source(find.start..find.end);
                Find { start: source.start, end: source.end, kind: find.kind }
            }));
        }
    }
    finds.append(&mut guesses);
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

/// Where the secrets of a text stand.
pub(crate) fn finds(text: &[u8], known: &Known) -> Vec<Range<usize>> {
    find_all(text, known, Depth::Outside).into_iter().map(|find| find.start..find.end).collect()
}

fn find_in(text: Text<'_>, known: &Known, depth: Depth, finds: &mut Vec<Find>, guesses: &mut Vec<Find>) {
    tokens::find(text, finds, guesses);
    places::find(text, finds);
    commands::find(text, finds);
    prose::find(text, finds);
    labels::find(text, finds);
    known.find(text, finds);
    encoded::find(text, known, depth, finds);
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
