//! The end of a text that may have no end: what does not fit goes, whole lines first.

/// Keeps at most so many bytes, the last ones.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    most: usize,
}

impl Tail {
    pub(crate) fn of(most: usize) -> Tail {
        Tail { bytes: Vec::new(), most }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.most)..];
        self.bytes.extend_from_slice(bytes);
        // Cut only now and then, so that many small pieces do not each move all of it.
        if self.bytes.len() > self.most * 2 {
            self.cut();
        }
    }

    pub(crate) fn push_line(&mut self, line: &str) {
        self.push(line.as_bytes());
        self.push(b"\n");
    }

    fn cut(&mut self) {
        let begin = self.bytes.len().saturating_sub(self.most);
        if begin > 0 {
            let line = self.bytes[begin..].iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            self.bytes.drain(..begin + line);
        }
    }

    pub(crate) fn bytes(&mut self) -> &[u8] {
        self.cut();
        &self.bytes
    }

    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_lines_stay() {
        let mut tail = Tail::of(10);
        ["one\n", "two\n", "three\n", "four\n"].iter().for_each(|line| tail.push(line.as_bytes()));
        assert_eq!(tail.text(), "four\n");
    }

    #[test]
    fn one_long_line_keeps_its_end() {
        let mut tail = Tail::of(4);
        tail.push(b"0123456789");
        assert_eq!(tail.text(), "6789");
    }
}
