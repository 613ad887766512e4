//! What a command printed: the beginning and the end, and how much lay between.

use std::collections::VecDeque;

/// How much of each is kept.
const HEAD: usize = 16 * 1024;
const TAIL: usize = 32 * 1024;

/// One stream.
#[derive(Debug, Default)]
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Capture {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at((HEAD - self.head.len()).min(bytes.len()));
        self.head.extend_from_slice(first);
        let rest = match rest.len().checked_sub(TAIL) {
            None => rest,
            Some(beyond) => {
                self.left_out += beyond as u64;
                &rest[beyond..]
            }
        };
        let over = (self.tail.len() + rest.len()).saturating_sub(TAIL);
        self.tail.drain(..over);
        self.left_out += over as u64;
        self.tail.extend(rest);
    }

    /// All that is kept, with a line in the place of what is not.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut all = self.head;
        if self.left_out > 0 {
            all.extend_from_slice(format!("\n[… {} bytes left out …]\n", self.left_out).as_bytes());
        }
        all.extend(self.tail);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(chunks: &[&[u8]], left_out: usize) {
        let mut capture = Capture::default();
        chunks.iter().for_each(|chunk| capture.take(chunk));
        let whole = chunks.concat();
        let expected = match left_out {
            0 => whole.clone(),
            left_out => {
                let between = format!("\n[… {left_out} bytes left out …]\n");
                [&whole[..HEAD], between.as_bytes(), &whole[whole.len() - TAIL..]].concat()
            }
        };
        assert!(capture.into_bytes() == expected, "{left_out}");
    }

    #[test]
    fn the_beginning_and_the_end_are_kept_and_the_rest_is_counted() {
        let numbers: Vec<u8> = (0..=u8::MAX).cycle().take(200_000).collect();
        check(&[], 0);
        check(&[&numbers[..HEAD + TAIL]], 0);
        check(&[&numbers[..HEAD + TAIL + 1]], 1);
        check(&[&numbers], numbers.len() - HEAD - TAIL);
        check(&numbers.chunks(7).collect::<Vec<_>>(), numbers.len() - HEAD - TAIL);
        check(&[&numbers[..5], &numbers[5..100_000], &numbers[100_000..]], numbers.len() - HEAD - TAIL);
    }
}
