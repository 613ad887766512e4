//! Lines of any length, in pieces of any length. What is held is bounded, whatever comes.

use memchr::{memchr, memchr2};

use super::glimpse::{Glimpse, Scanner};

/// Cuts what comes into frames: one to a line, blank lines left out.
#[derive(Debug)]
pub struct Framer {
    held: Vec<u8>,
    most: usize,
    /// The line is too long already: only the names of its messages are read.
    skipped: Option<Scanner>,
}

/// What was cut off.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// A frame, without its line end.
    Frame(Vec<u8>),
    /// The beginning of a line that is longer than the limit. The rest of it is left out.
    TooLong(Vec<u8>),
    /// A message in that line, as soon as its name is known. There is at least one, in the end without a name.
    Within(Glimpse),
}

/// So much is shown of a line that is too long.
const SHOWN: usize = 200;

impl Framer {
    /// Takes lines of at most so many bytes.
    pub fn new(most: usize) -> Framer {
        Framer { held: Vec::new(), most, skipped: None }
    }

    /// Takes in what came, and hands on what is complete.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Piece)) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.take(&bytes[..end], &mut each);
            bytes = &bytes[end + 1..];
            self.end(&mut each);
        }
        self.take(bytes, &mut each);
    }

    /// How much of a line is held that has no end yet.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Nothing more comes. A last line without an end is one all the same.
    pub fn finish(&mut self, mut each: impl FnMut(Piece)) {
        self.end(&mut each);
    }

    fn end(&mut self, each: &mut impl FnMut(Piece)) {
        if let Some(mut scanner) = self.skipped.take() {
            return scanner.finish(&mut |glimpse| each(Piece::Within(glimpse)));
        }
        let frame = std::mem::take(&mut self.held);
        if !frame.trim_ascii().is_empty() {
            each(Piece::Frame(frame));
        }
    }

    fn take(&mut self, bytes: &[u8], each: &mut impl FnMut(Piece)) {
        if self.skipped.is_none() && self.held.len() + bytes.len() <= self.most {
            // With room for the line end that it gets again.
            self.held.reserve(bytes.len() + 1);
            self.held.extend_from_slice(bytes);
            return;
        }
        let scanner = match &mut self.skipped {
            Some(scanner) => scanner,
            None => {
                let held = std::mem::take(&mut self.held);
                let begins = held.iter().chain(bytes).take(SHOWN).copied().collect();
                each(Piece::TooLong(begins));
                let scanner = self.skipped.insert(Scanner::default());
                scanner.feed(&held, &mut |glimpse| each(Piece::Within(glimpse)));
                scanner
            }
        };
        scanner.feed(bytes, &mut |glimpse| each(Piece::Within(glimpse)));
    }
}

/// How deep lists and objects lie in each other, at most, as far as brackets tell. It reads any bytes.
pub fn depth(frame: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut at = 0;
    while let Some(byte) = frame.get(at) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = end_of_string(frame, at + 1),
            _ => {}
        }
        at += 1;
    }
    deepest
}

/// Where the quote stands that ends the string which begins here.
pub(crate) fn end_of_string(frame: &[u8], mut at: usize) -> usize {
    while let Some(found) = frame.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if frame[at] == b'"' {
            return at;
        }
        at += 2;
    }
    frame.len()
}
