//! The lines of a file, one after the other, however large it is: no more of a line is kept than anybody reads.

use std::io::{self, BufRead, BufReader, Read};

/// How much of a file tells whether it is text.
const LOOKED_AT: usize = 8 * 1024;

/// Reads line after line.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    most: usize,
}

/// One line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Its bytes with what ends it, up to the most that is kept.
    pub(super) bytes: Vec<u8>,
    /// How many bytes of it were left out.
    pub(super) left_out: u64,
}

impl<R: Read> Lines<R> {
    /// Keeps at most so many bytes of each line.
    pub(super) fn new(input: R, most: usize) -> Lines<R> {
        Lines { input: BufReader::with_capacity(64 * 1024, input), most }
    }

    /// Does it begin like something that is no text?
    pub(super) fn is_binary(&mut self) -> io::Result<bool> {
        let start = self.input.fill_buf()?;
        Ok(start[..start.len().min(LOOKED_AT)].contains(&0))
    }

    /// Reads the next line into `line`; `false` at the end.
    pub(super) fn next(&mut self, line: &mut Line) -> io::Result<bool> {
        line.bytes.clear();
        line.left_out = 0;
        let mut is_there = false;
        loop {
            let found = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                found => found?,
            };
            if found.is_empty() {
                return Ok(is_there);
            }
            is_there = true;
            let end = memchr::memchr(b'\n', found).map(|at| at + 1);
            let part = &found[..end.unwrap_or(found.len())];
            let room = self.most.saturating_sub(line.bytes.len()).min(part.len());
            line.bytes.extend_from_slice(&part[..room]);
            line.left_out += (part.len() - room) as u64;
            let read = part.len();
            self.input.consume(read);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}
