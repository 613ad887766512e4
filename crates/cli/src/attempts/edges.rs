//! The beginning and the end of an output, whatever its length: all that is kept of it.

/// Keeps both ends of what it is fed.
pub(crate) struct Edges {
    head: Vec<u8>,
    tail: Vec<u8>,
    most: (usize, usize),
    /// How much there was in all.
    seen: u64,
}

impl Edges {
    /// Keeps at most this much of either end.
    pub(crate) fn new(head: u64, tail: u64) -> Edges {
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        Edges { head: Vec::new(), tail: Vec::new(), most: (bytes(head), bytes(tail)), seen: 0 }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let (head, tail) = self.most;
        self.seen += bytes.len() as u64;
        let (begins, rest) = bytes.split_at(bytes.len().min(head - self.head.len()));
        self.head.extend_from_slice(begins);
        let rest = &rest[rest.len().saturating_sub(tail)..];
        // Twice as much is held before anything is moved, so that small pieces do not move it each time.
        if self.tail.len() + rest.len() > tail.saturating_mul(2) {
            let kept = tail - rest.len();
            self.tail.drain(..self.tail.len().saturating_sub(kept));
        }
        self.tail.extend_from_slice(rest);
    }

    /// Both ends, with a word between them on what is left out.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        let surplus = self.tail.len().saturating_sub(self.most.1);
        self.tail.drain(..surplus);
        let left_out = self.seen - (self.head.len() + self.tail.len()) as u64;
        let mut bytes = self.head;
        if left_out > 0 {
            bytes.extend_from_slice(format!("\n[{left_out} bytes are not kept]\n").as_bytes());
        }
        bytes.extend_from_slice(&self.tail);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_kept_however_the_pieces_fall() {
        let check = |pieces: &[&str], expected: &str| {
            let mut edges = Edges::new(3, 4);
            pieces.iter().for_each(|piece| edges.feed(piece.as_bytes()));
            assert_eq!(String::from_utf8(edges.into_bytes()).unwrap(), expected, "{pieces:?}");
        };
        check(&[], "");
        check(&["abc"], "abc");
        check(&["ab", "cde", "fg"], "abcdefg");
        check(&["abcdefgh"], "abc\n[1 bytes are not kept]\nefgh");
        check(
            &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"],
            "abc\n[6 bytes are not kept]\njklm",
        );
        check(&["ab", "cdefghijklmnop", "q"], "abc\n[10 bytes are not kept]\nnopq");
    }
}
