//! The newest part of a stream, whatever its length: what waits to be read until nothing follows it. It looks at nothing.

/// Keeps at least this much of what came last, and at most twice as much: so little stays in the cache of a processor, and what
/// passes is hardly held up by being copied.
pub(super) const KEPT: usize = 1 << 20;

/// The last bytes of a stream, in two parts: the older one is dropped as a whole when the newer one is full, so that every
/// byte is moved only once.
#[derive(Debug, Default)]
pub(super) struct Newest {
    older: Vec<u8>,
    newer: Vec<u8>,
    /// Was anything dropped?
    pub(super) is_cut: bool,
}

impl Newest {
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.newer.len() == KEPT {
                self.is_cut |= !self.older.is_empty();
                std::mem::swap(&mut self.older, &mut self.newer);
                self.newer.clear();
            }
            // Filled to the brim, so that what is kept does not depend on the pieces in which it came.
            let (now, rest) = bytes.split_at(bytes.len().min(KEPT - self.newer.len()));
            self.newer.extend_from_slice(now);
            bytes = rest;
        }
    }

    /// What is kept, in its order.
    pub(super) fn parts(&self) -> [&[u8]; 2] {
        [&self.older, &self.newer]
    }
}
