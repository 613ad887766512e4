//! Lines in and lines out: JSON Lines without a limit on their number, and with a clear one on their length.

use std::io::{self, BufRead};

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A line longer than this is named and passed over; nothing that long is one call.
const LINE_MAX: usize = 256 * 1024 * 1024;

/// One line of the input.
pub(crate) struct Line<'a> {
    /// Counted from 1.
    pub(crate) number: u64,
    /// The line without its end, or why it cannot be used.
    pub(crate) text: Result<&'a [u8], String>,
}

/// Reads lines into one buffer. Empty lines are passed over.
pub(crate) struct Lines<'r> {
    input: &'r mut dyn BufRead,
    buffer: Vec<u8>,
    number: u64,
}

impl<'r> Lines<'r> {
    pub(crate) fn new(input: &'r mut dyn BufRead) -> Lines<'r> {
        Lines { input, buffer: Vec::new(), number: 0 }
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            self.buffer.clear();
            let (mut any, mut dropped) = (false, false);
            loop {
                let piece = match self.input.fill_buf() {
                    Ok(piece) => piece,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                if piece.is_empty() {
                    break;
                }
                any = true;
                let end = memchr::memchr(b'\n', piece);
                let text = &piece[..end.unwrap_or(piece.len())];
                dropped = dropped || self.buffer.len() + text.len() > LINE_MAX;
                if !dropped {
                    self.buffer.extend_from_slice(text);
                }
                let used = end.map_or(piece.len(), |at| at + 1);
                self.input.consume(used);
                if end.is_some() {
                    break;
                }
            }
            if !any {
                return Ok(None);
            }
            self.number += 1;
            if dropped {
                let what =
                    format!("longer than {} MB; pipe an output of that size in by itself", LINE_MAX >> 20);
                return Ok(Some(Line { number: self.number, text: Err(what) }));
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(Some(Line { number: self.number, text: Ok(&self.buffer) }));
            }
        }
    }
}

/// One value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).map(|line| line + "\n").unwrap_or_default()
}

/// JSON that stands in the store as a text, passed on as it was written if it fits on a line.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum WireJson<'a> {
    Unread(&'a RawValue),
    Read(Value),
    /// It was cut, and is JSON no more.
    Text(&'a str),
}

impl<'a> WireJson<'a> {
    pub(crate) fn new(text: &'a str) -> WireJson<'a> {
        match serde_json::from_str::<&RawValue>(text) {
            Ok(whole) if !text.contains(['\n', '\r']) => WireJson::Unread(whole),
            Ok(_) => serde_json::from_str(text).map_or(WireJson::Text(text), WireJson::Read),
            Err(_) => WireJson::Text(text),
        }
    }
}

/// Words as one command line that a shell would split into the same words.
pub(crate) fn quoted(words: &[String]) -> String {
    let safe = |sign: char| sign.is_ascii_alphanumeric() || "-_=+./,:@%^~".contains(sign);
    let quote = |word: &String| match !word.is_empty() && word.chars().all(safe) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}
