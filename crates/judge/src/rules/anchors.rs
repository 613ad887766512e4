//! Finds the lines worth reading: one pass over the output, whatever the number of rules.
//!
//! Every pattern has an *anchor*: six bytes that any line it matches must contain, chosen to be rare in ordinary output.
//! Ten thousand anchors are too many to run through a text quickly, so there is a second, much smaller set of *triggers*
//! that covers all patterns: a line without a trigger has no pattern and is never looked at.
//!
//! Both sets are searched alike. Of any six bytes in a row, four bytes in a row start at a place that three divides; so
//! it is enough to look at every third place whether the four bytes there are part of an anchor, which one bit tells.
//! Letter case is folded for ASCII. The tables are plain bytes, so the build script can write them into the binary.

use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::file::as_regex;

/// The length of an anchor.
pub const WIDTH: usize = 6;
/// The length of the part of an anchor that is looked up.
const BLOCK: usize = 4;
/// How far apart the places are at which a block is looked up.
const STRIDE: usize = WIDTH - BLOCK + 1;
/// The table has at least this many bits for each block that is part of an anchor, so that few are looked up in vain.
const SPARSE: usize = 32;
/// The bits of the number of the bucket that lists a block's anchors.
const BUCKET_BITS: u32 = 15;
/// The length of an entry: an anchor, the number of its pattern, and where in the anchor the block stands.
const ENTRY: usize = WIDTH + 3;

/// The search tables, as bytes (numbers little-endian), so that they can stand in the binary as they are.
#[derive(Debug, Clone, Copy)]
pub struct Anchors<'t> {
    /// A bit for each block: is it part of an anchor?
    pub bits: &'t [u8],
    /// For each bucket, four bytes: where its anchors start in `entries`; the next head is the end.
    pub heads: &'t [u8],
    /// The anchors, grouped by bucket.
    pub entries: &'t [u8],
}

/// Makes one number of a block. Case is folded roughly but fast; equal letters stay equal.
fn fold(block: [u8; BLOCK]) -> u32 {
    u32::from_le_bytes(block) | 0x2020_2020
}

/// Spreads folded blocks; the upper bits are the best spread.
fn spread(folded: u32) -> u32 {
    folded.wrapping_mul(0x9E37_79B1)
}

/// The bit that stands for a folded block in a table of so many bytes, which is a power of two.
fn number_of(folded: u32, table_bytes: usize) -> usize {
    (spread(folded) >> 11) as usize & (8 * table_bytes).wrapping_sub(1)
}

fn bucket_of(folded: u32) -> usize {
    (spread(folded) >> (32 - BUCKET_BITS)) as usize
}

/// Makes one number of a window, case folded as in [`fold`]: what is only nearly equal is told apart by its pattern.
fn folded(window: &[u8; WIDTH]) -> u64 {
    let [a, b, c, d, e, f] = *window;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) | 0x2020_2020_2020
}

/// Builds the tables for `(anchor, pattern)` pairs: bits, heads and entries.
pub fn build(pairs: &[([u8; WIDTH], u16)]) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let mut bits = vec![0_u8; (SPARSE * STRIDE * pairs.len() / 8).next_power_of_two().clamp(4, 1 << 18)];
    let mut grouped: Vec<(usize, [u8; WIDTH], u16, u8)> = Vec::with_capacity(STRIDE * pairs.len());
    for (anchor, pattern) in pairs {
        for offset in 0..STRIDE {
            let block = fold([anchor[offset], anchor[offset + 1], anchor[offset + 2], anchor[offset + 3]]);
            let number = number_of(block, bits.len());
            bits[number / 8] |= 1 << (number % 8);
            grouped.push((bucket_of(block), *anchor, *pattern, offset as u8));
        }
    }
    grouped.sort_unstable();
    grouped.dedup();
    let mut heads = vec![0_u32; (1 << BUCKET_BITS) + 1];
    grouped.iter().for_each(|(bucket, ..)| heads[bucket + 1] += 1);
    for bucket in 0..1 << BUCKET_BITS {
        heads[bucket + 1] += heads[bucket];
    }
    let heads = heads.into_iter().flat_map(u32::to_le_bytes).collect();
    let entries = grouped.iter().flat_map(|(_, anchor, pattern, offset)| {
        anchor.iter().copied().chain(pattern.to_le_bytes()).chain([*offset])
    });
    (bits, heads, entries.collect())
}

impl<'t> Anchors<'t> {
    /// Returns the position behind the next anchor in `text` that starts at or behind `from`.
    pub fn next(self, text: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        loop {
            at = self.next_block(text, at)?;
            if let Some((end, _)) = self.around(text, at).next() {
                return Some(end);
            }
            at += STRIDE;
        }
    }

    /// Calls `found` with the pattern of every anchor in `text`.
    pub fn each(self, text: &[u8], mut found: impl FnMut(u16)) {
        let mut at = 0;
        while let Some(block) = self.next_block(text, at) {
            self.around(text, block).for_each(|(_, pattern)| found(pattern));
            at = block + STRIDE;
        }
    }

    /// Steps through the places until the block at one of them may be part of an anchor.
    fn next_block(self, text: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        // Eight bytes hold the blocks of two places, so they are fetched and folded together.
        while let Some(bytes) = text.get(at..at + 8) {
            let bytes: [u8; 8] = bytes.try_into().ok()?;
            let both = u64::from_le_bytes(bytes) | 0x2020_2020_2020_2020;
            if self.may_be(both as u32) {
                return Some(at);
            }
            if self.may_be((both >> (8 * STRIDE)) as u32) {
                return Some(at + STRIDE);
            }
            at += 2 * STRIDE;
        }
        while let Some(block) = text.get(at..at + BLOCK) {
            if self.may_be(fold([block[0], block[1], block[2], block[3]])) {
                return Some(at);
            }
            at += STRIDE;
        }
        None
    }

    /// Tells whether a block may be part of an anchor.
    fn may_be(self, folded: u32) -> bool {
        let number = number_of(folded, self.bits.len());
        let word = self.bits.get(number / 32 * 4..number / 32 * 4 + 4);
        word.is_some_and(|word| {
            u32::from_le_bytes([word[0], word[1], word[2], word[3]]) >> (number % 32) & 1 != 0
        })
    }

    /// The anchors that the block at this place is really part of: where each ends, and its pattern.
    fn around<'a>(self, text: &'a [u8], at: usize) -> impl Iterator<Item = (usize, u16)> + use<'a, 't> {
        let bucket = bucket_of(fold([text[at], text[at + 1], text[at + 2], text[at + 3]]));
        let range = ENTRY * self.head(bucket)..ENTRY * self.head(bucket + 1);
        self.entries[range].chunks_exact(ENTRY).filter_map(move |entry| {
            let start = at.checked_sub(usize::from(entry[ENTRY - 1]))?;
            let window: &[u8; WIDTH] = text.get(start..start + WIDTH)?.try_into().ok()?;
            let same = folded(window) == folded(entry[..WIDTH].try_into().ok()?);
            same.then(|| (start + WIDTH, u16::from_le_bytes([entry[WIDTH], entry[WIDTH + 1]])))
        })
    }

    fn head(self, bucket: usize) -> usize {
        let at = 4 * bucket;
        u32::from_le_bytes([self.heads[at], self.heads[at + 1], self.heads[at + 2], self.heads[at + 3]])
            as usize
    }
}

/// How often each anchor and each block would stand in output that is printed when nothing is wrong.
#[derive(Debug, Default)]
pub struct Ordinary {
    windows: HashMap<[u8; WIDTH], u32>,
    blocks: HashMap<[u8; BLOCK], u32>,
}

impl Ordinary {
    /// Counts a sample of such output.
    #[allow(dead_code, reason = "only the build script has a sample")]
    pub fn count(sample: &str) -> Ordinary {
        let sample = sample.to_ascii_lowercase();
        let mut counted = Ordinary::default();
        windows(&sample).for_each(|window| *counted.windows.entry(window).or_default() += 1);
        let blocks = sample.as_bytes().windows(BLOCK).filter_map(|block| block.try_into().ok());
        blocks.for_each(|block| *counted.blocks.entry(block).or_default() += 1);
        counted
    }

    /// What it costs to have this window as a trigger: lines looked at in vain, and blocks looked up in vain.
    fn price(&self, window: &[u8; WIDTH]) -> u64 {
        let looks = self.windows.get(window).copied().unwrap_or(0);
        let blocks = window.windows(BLOCK).filter_map(|block| self.blocks.get(block));
        u64::from(1 + 30 * looks + 5 * blocks.sum::<u32>())
    }

    /// Estimates how common a window is: what stands in the sample is much more so than anything else; letters count by
    /// their share in English, digits and signs as rarer.
    fn cost(&self, window: &[u8; WIDTH]) -> u32 {
        const BY_SHARE: &[u8] = b" etaoinsrhldcumfpgwybvkxjqz";
        let share = |byte: &u8| {
            BY_SHARE.iter().position(|common| common == byte).map_or(4, |place| 30 - place as u32)
        };
        1000 * self.windows.get(window).copied().unwrap_or(0) + window.iter().map(share).sum::<u32>()
    }
}

fn windows(text: &str) -> impl Iterator<Item = [u8; WIDTH]> {
    text.as_bytes().windows(WIDTH).filter_map(|window| window.try_into().ok())
}

/// For each branch of a pattern, the windows that every line it matches must contain (plain text is one branch).
/// Nothing is returned where some line could match without any six fixed bytes.
pub fn of_pattern(pattern: &str) -> Option<Vec<Vec<[u8; WIDTH]>>> {
    let branches: Vec<Vec<[u8; WIDTH]>> = match as_regex(pattern) {
        None => vec![windows(&pattern.to_ascii_lowercase()).collect()],
        Some(source) => {
            let runs = |branch: &str| fixed_runs(branch).iter().flat_map(|run| windows(run)).collect();
            branches(source).into_iter().map(runs).collect()
        }
    };
    branches.iter().all(|windows| !windows.is_empty()).then_some(branches)
}

/// Picks the window that is least likely to stand in an ordinary line.
pub fn rarest(windows: &[[u8; WIDTH]], ordinary: &Ordinary) -> Option<[u8; WIDTH]> {
    windows.iter().copied().min_by_key(|window| ordinary.cost(window))
}

/// Picks few windows so that every branch has one of them: again and again the one that serves most branches for what it
/// costs in lines that are looked at in vain.
pub fn cover(branches: &[Vec<[u8; WIDTH]>], ordinary: &Ordinary) -> Vec<[u8; WIDTH]> {
    let mut serves: BTreeMap<[u8; WIDTH], Vec<usize>> = BTreeMap::new();
    for (branch, windows) in branches.iter().enumerate() {
        windows.iter().for_each(|window| serves.entry(*window).or_default().push(branch));
    }
    let worth = |count: usize, window: &[u8; WIDTH]| 1_000_000 * count as u64 / ordinary.price(window);
    let mut queue: BinaryHeap<(u64, [u8; WIDTH])> =
        serves.iter().map(|(window, branches)| (worth(branches.len(), window), *window)).collect();
    let mut open = vec![true; branches.len()];
    let mut chosen = Vec::new();
    while let Some((promised, window)) = queue.pop() {
        let served = serves.entry(window).or_default();
        served.retain(|branch| open[*branch]);
        match worth(served.len(), &window) {
            _ if served.is_empty() => {}
            // Others have taken some of what it served: it has to queue again.
            now if now < promised => queue.push((now, window)),
            _ => {
                served.iter().for_each(|branch| open[*branch] = false);
                chosen.push(window);
            }
        }
    }
    chosen
}

/// Splits a regular expression at its outermost `|`.
fn branches(source: &str) -> Vec<&str> {
    let (mut depth, mut class, mut escaped, mut start) = (0_u32, false, false, 0);
    let mut found = Vec::new();
    for (at, sign) in source.char_indices() {
        match (escaped, class, sign) {
            (true, _, _) => escaped = false,
            (false, _, '\\') => escaped = true,
            (false, true, ']') => class = false,
            (false, true, _) => {}
            (false, false, '[') => class = true,
            (false, false, '(') => depth += 1,
            (false, false, ')') => depth = depth.saturating_sub(1),
            (false, false, '|') if depth == 0 => {
                found.push(&source[start..at]);
                start = at + 1;
            }
            (false, false, _) => {}
        }
    }
    found.push(&source[start..]);
    found
}

/// Lists fixed text, in lower case, that stands in every line a regular expression matches.
#[allow(dead_code, reason = "the build script compiles no expressions")]
pub fn fixed_text(source: &str) -> Vec<String> {
    match branches(source)[..] {
        [only] => fixed_runs(only).into_iter().filter(|run| run.len() > 1).collect(),
        [..] => Vec::new(),
    }
}

/// Lists the runs of fixed text outside of groups and classes in one branch, in lower case.
fn fixed_runs(branch: &str) -> Vec<String> {
    let mut runs = vec![String::new()];
    let (mut depth, mut class) = (0_u32, false);
    let mut signs = branch.chars().peekable();
    while let Some(sign) = signs.next() {
        let fixed = match sign {
            '\\' => match signs.next() {
                Some(next) if !next.is_alphanumeric() => Some(next),
                Some(letter) => {
                    // The digits of an escape such as `\x27` are no text of their own.
                    let digits = match letter {
                        'x' => 2,
                        'u' => 4,
                        'U' => 8,
                        _ => 0,
                    };
                    if signs.peek() != Some(&'{') {
                        signs.by_ref().take(digits).for_each(drop);
                    }
                    None
                }
                None => None,
            },
            '[' if !class => {
                class = true;
                None
            }
            ']' if class => {
                class = false;
                None
            }
            '(' if !class => {
                depth += 1;
                None
            }
            ')' if !class => {
                depth = depth.saturating_sub(1);
                None
            }
            '{' if !class => {
                let _count = signs.by_ref().find(|sign| *sign == '}');
                None
            }
            '.' | '^' | '$' | '*' | '+' | '?' => None,
            plain => Some(plain),
        };
        let optional = matches!(signs.peek(), Some('?' | '*' | '{'));
        match fixed {
            Some(sign) if depth == 0 && !class && !optional => {
                if let Some(run) = runs.last_mut() {
                    run.push(sign.to_ascii_lowercase());
                }
            }
            Some(_) | None => runs.push(String::new()),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_of_a_pattern_stand_in_every_line_it_matches() {
        let check = |pattern: &str, expected: &[&str]| {
            let found = of_pattern(pattern).unwrap_or_default();
            let found = found.iter().filter_map(|windows| rarest(windows, &Ordinary::default()));
            let found: Vec<_> = found.map(|anchor| String::from_utf8_lossy(&anchor).into_owned()).collect();
            assert_eq!(found, expected, "{pattern}");
        };
        check("killed", &["killed"]);
        check("short", &[]);
        check(r"/^error\[e\d+\]/", &["error["]);
        check(r"/colou?r mode|no such thing/", &["r mode", "o such"]);
        check(r"/(foobar|foobaz)/", &[]);
        check(r"/a{3}bcdefgh/", &["bcdefg"]);
        check(r"/file \x27.+\x27 gone/", &[]);
    }

    #[test]
    fn a_window_that_stands_in_ordinary_output_is_avoided() {
        let ordinary = Ordinary::count("0 failed, 12 passed");
        let windows = of_pattern("failed to fetch").unwrap_or_default();
        let anchor = rarest(&windows[0], &ordinary).unwrap_or_default();
        assert!(!b"0 failed, 12 passed".windows(WIDTH).any(|window| window == anchor));
    }

    #[test]
    fn a_cover_serves_every_branch_with_few_windows() {
        let patterns = ["file not found", "host not found", "killed"];
        let branches: Vec<_> = patterns.iter().filter_map(|pattern| of_pattern(pattern)).flatten().collect();
        let chosen = cover(&branches, &Ordinary::default());
        assert_eq!(chosen.len(), 2);
        assert!(branches.iter().all(|windows| windows.iter().any(|window| chosen.contains(window))));
    }

    #[test]
    fn every_place_of_every_anchor_is_found_whatever_its_case() {
        let pairs = [(*b"denied", 0), (*b"killed", 1), (*b"illedx", 2)];
        let (bits, heads, entries) = build(&pairs);
        for shift in 0..4 {
            let text = format!("{}Access DENIED; xkilledX and denied", "-".repeat(shift));
            let mut found = Vec::new();
            Anchors { bits: &bits, heads: &heads, entries: &entries }
                .each(text.as_bytes(), |pattern| found.push(pattern));
            found.sort_unstable();
            assert_eq!(found, [0, 0, 1, 2]);
        }
    }
}
