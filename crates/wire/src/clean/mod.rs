//! Text that may be kept and shown: without secrets, without anything that acts on a terminal or hides, and bounded.
//!
//! [`Clean`] is a wall. Whatever keeps or shows text from outside asks for this type, and only a [`Cleaner`] makes it from
//! such text. This module reads no environment by itself: what the machine's secrets are is told to it.

mod bound;
mod home;
mod json;
mod secrets;
mod visible;

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};

use serde::{Serialize, Serializer};
use serde_json::Value;

use self::bound::Bound;
use self::home::Home;
pub(crate) use self::visible::visible;
use crate::redact::{Edge, Known, redact_known};

/// Text from which secrets were cut, in which nothing acts or hides, and whose length somebody decided on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Clean(Cow<'static, str>);

impl Clean {
    /// Words of our own.
    pub const fn word(word: &'static str) -> Clean {
        Clean(Cow::Borrowed(word))
    }

    /// What was read back from our own store, where only clean text is kept.
    pub fn stored(text: String) -> Clean {
        Clean(Cow::Owned(text))
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Gives the text away.
    pub fn into_string(self) -> String {
        self.0.into_owned()
    }
}

impl Deref for Clean {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Clean {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for Clean {
    fn from(word: &'static str) -> Clean {
        Clean::word(word)
    }
}

impl fmt::Display for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl Serialize for Clean {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

pub use secrets::Secrets;

/// The beginning and the end of an output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CleanOutput {
    /// How it begins; all of it if nothing was left out.
    pub head: Clean,
    /// How it ends; empty if nothing was left out.
    pub tail: Clean,
    /// How much between them is not kept: bytes of the output, and characters by which the rest grew past its bounds when
    /// it was made visible.
    pub omitted: u64,
}

/// Makes text clean. Built once in a process: it holds what is secret on this machine.
pub struct Cleaner {
    home: Option<Home>,
    known: Known,
}

impl fmt::Debug for Cleaner {
    // What it knows is exactly what must not be told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cleaner").finish_non_exhaustive()
    }
}

/// How much around a stretch of text is read to judge it. Long enough for the key files that people have.
const CONTEXT: usize = 16 * 1024;

/// How often a text is cleaned again after it was made shorter. Once is nearly always enough.
const MOST_ROUNDS: usize = 4;

impl Cleaner {
    /// Takes the home folder, which is written as `~`, and the environment, of which it keeps the values whose names say
    /// that they are secret.
    pub fn new(home: Option<&str>, environment: impl IntoIterator<Item = (String, String)>) -> Cleaner {
        Cleaner { home: home.and_then(Home::new), known: Known::new(environment) }
    }

    /// One line of at most `max` characters; line ends and tabs become spaces.
    pub fn line(&self, text: &str, max: usize) -> Clean {
        let (flat, bound) = (self.flat(text, max), Bound::Line(max));
        // What stayed as it was has been looked at as it is.
        match flat == text && bound.cut(&flat).is_none() {
            true => Clean(Cow::Owned(flat)),
            false => self.settle(flat, bound),
        }
    }

    /// An id or a name from outside, of at most `max` characters. If anything was changed or cut, a print of the original
    /// is appended, so that different names stay different.
    pub fn name(&self, text: &str, max: usize) -> Clean {
        let same = self.line(text, max);
        if *same == *text {
            return same;
        }
        let print = blake3::hash(text.as_bytes()).to_hex();
        let print = format!("~{}", &print[..8]);
        let name = self.line(text, max.saturating_sub(print.len())).into_string() + &print;
        // Beside the print the rest may look like something else; then the print has to do alone.
        let name = if *self.line(&name, max) == *name { name } else { print };
        Clean(Cow::Owned(name))
    }

    /// Text of several lines, of at most `max` characters; of a longer one beginning and end are kept, with a line between
    /// them that says so.
    pub fn text(&self, text: &str, max: usize) -> Clean {
        const BETWEEN: &str = "\n[…]\n";
        let bytes = text.as_bytes();
        let reach = max.saturating_mul(2).saturating_add(64);
        if bytes.len() <= reach.saturating_mul(2) {
            return self.finish(self.stretch(bytes, 0..bytes.len()), Bound::Ends(max, BETWEEN));
        }
        let beginning = self.stretch(bytes, 0..reach);
        let end = self.stretch(bytes, bytes.len() - reach..bytes.len());
        self.settle([&beginning, BETWEEN, &end].concat(), Bound::Ends(max, BETWEEN))
    }

    /// Compact JSON, of at most `max` characters, with every string and every key clean. A longer one is cut in the middle
    /// and is then no JSON any more.
    pub fn json(&self, value: &Value, max: usize) -> Clean {
        self.settle(json::write(self, value, max), Bound::Ends(max, "[…]"))
    }

    /// The first `head` and the last `tail` bytes of an output, each at most as many characters long. What it costs does
    /// not depend on the length of the output.
    pub fn output(&self, bytes: &[u8], head: usize, tail: usize) -> CleanOutput {
        let most = head.saturating_add(tail);
        if bytes.len() <= most {
            let whole = Clean(Cow::Owned(self.stretch(bytes, 0..bytes.len())));
            if whole.chars().nth(most).is_none() {
                return CleanOutput { head: whole, tail: Clean::default(), omitted: 0 };
            }
        }
        let head_end = head.min(bytes.len());
        let tail_start = bytes.len().saturating_sub(tail).max(head_end);
        let first = self.stretch(bytes, 0..head_end);
        let last = self.stretch(bytes, tail_start..bytes.len());
        let excess = |text: &str, most: usize| text.chars().count().saturating_sub(most);
        let omitted = tail_start - head_end + excess(&first, head) + excess(&last, tail);
        CleanOutput {
            head: self.finish(first, Bound::Head(head)),
            tail: self.finish(last, Bound::Tail(tail)),
            omitted: u64::try_from(omitted).unwrap_or(u64::MAX),
        }
    }

    /// As much of `text` as can become `max` characters, in one line.
    fn flat(&self, text: &str, max: usize) -> String {
        let bytes = text.as_bytes();
        let reach = max.saturating_mul(4).saturating_add(64).min(bytes.len());
        let mut lines = self.stretch(bytes, 0..reach);
        if reach < bytes.len() {
            lines.push(bound::ELLIPSIS);
        }
        // A line end that only ends the line is no space in it.
        lines.trim_end_matches('\n').replace(['\n', '\t'], " ")
    }

    /// A stretch of a text, judged with what stands around it: what begins before it or ends after it is known for what it
    /// is.
    fn stretch(&self, bytes: &[u8], keep: Range<usize>) -> String {
        let from = keep.start.saturating_sub(CONTEXT);
        let to = keep.end.saturating_add(CONTEXT).min(bytes.len());
        let mut edges = [Edge::Start(keep.start - from), Edge::End(keep.end - from)];
        let text = visible(&bytes[from..to], &mut edges);
        let text = self.cut(&text, &mut edges).into_owned();
        let [start, end] = edges.map(|edge| text.floor_char_boundary(edge.place()));
        text.get(start..end).unwrap_or_default().to_owned()
    }

    /// Shortens the home folder and cuts out what is secret.
    fn cut<'a>(&self, text: &'a str, edges: &mut [Edge]) -> Cow<'a, str> {
        let shortened = self.home.as_ref().and_then(|home| home.shorten(text, edges));
        match shortened {
            None => redact_known(text, &self.known, edges),
            Some(text) => Cow::Owned(redact_known(&text, &self.known, edges).into_owned()),
        }
    }

    /// Makes a text short. Where something was left out, new neighbours stand side by side, so it is cleaned again.
    fn finish(&self, text: String, bound: Bound) -> Clean {
        match bound.cut(&text) {
            Some(shorter) => self.settle(shorter, bound),
            None => Clean(Cow::Owned(text)),
        }
    }

    /// Cleans a text whose parts were clean where they stood before, until it stays as it is.
    fn settle(&self, mut text: String, bound: Bound) -> Clean {
        for _ in 0..MOST_ROUNDS {
            if let Some(shorter) = bound.cut(&text) {
                text = shorter;
            }
            match self.cut(&text, &mut []) {
                Cow::Borrowed(_) => break,
                Cow::Owned(cleaner) => text = cleaner,
            }
        }
        Clean(Cow::Owned(bound.cut(&text).unwrap_or(text)))
    }
}
