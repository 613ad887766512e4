//! Lines in and lines out: JSON Lines without a limit on their number, and with a clear one on their length.

use std::io::{self, BufRead};

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::plain;

/// A line longer than this is named and passed over; nothing that long is one call.
const LINE_MAX: usize = 256 * 1024 * 1024;

/// One line of the input.
pub(crate) struct Line<'a> {
    /// Counted from 1.
    pub(crate) number: u64,
    /// The line without its end, or why it cannot be used.
    pub(crate) text: Result<&'a [u8], String>,
    /// Where the next one begins, in bytes.
    pub(crate) end: u64,
    /// Has it an end, or may somebody still be writing it?
    pub(crate) is_whole: bool,
}

/// Reads lines into one buffer. Empty lines are passed over.
pub(crate) struct Lines<'r> {
    input: &'r mut dyn BufRead,
    buffer: Vec<u8>,
    number: u64,
    longest: usize,
    passed: u64,
}

impl<'r> Lines<'r> {
    pub(crate) fn new(input: &'r mut dyn BufRead) -> Lines<'r> {
        Lines { input, buffer: Vec::new(), number: 0, longest: LINE_MAX, passed: 0 }
    }

    /// The same for an input of which so many bytes were read before, and with another limit on the length of a line.
    pub(crate) fn from(input: &'r mut dyn BufRead, passed: u64, longest: usize) -> Lines<'r> {
        Lines { longest, passed, ..Lines::new(input) }
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            self.buffer.clear();
            let (mut any, mut dropped, mut is_whole) = (false, false, false);
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
                dropped = dropped || self.buffer.len() + text.len() > self.longest;
                if !dropped {
                    self.buffer.extend_from_slice(text);
                }
                let used = end.map_or(piece.len(), |at| at + 1);
                self.input.consume(used);
                self.passed += used as u64;
                is_whole = end.is_some();
                if end.is_some() {
                    break;
                }
            }
            if !any {
                return Ok(None);
            }
            self.number += 1;
            if dropped {
                let what = format!(
                    "longer than {} MB; pipe an output of that size in by itself",
                    self.longest >> 20
                );
                let end = self.passed;
                return Ok(Some(Line { number: self.number, text: Err(what), end, is_whole }));
            }
            if !self.buffer.trim_ascii().is_empty() {
                let (number, end) = (self.number, self.passed);
                return Ok(Some(Line { number, text: Ok(&self.buffer), end, is_whole }));
            }
        }
    }
}

/// One value as one line of JSON. Characters that hide are escaped.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).map(|line| plain::json(&line).into_owned() + "\n").unwrap_or_default()
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
