//! Finds the lines worth reading: one pass over the output, whatever the number of rules.
//!
//! Every pattern has an *anchor*: six bytes that any line it matches must contain, chosen to be rare in ordinary output.
//! Ten thousand anchors are too many to skip through a text quickly, so there is a second, much smaller set of *triggers*
//! that covers all patterns: a line without a trigger has no pattern and is never looked at. Both sets are searched after
//! Wu and Manber, by up to four bytes a step. Letter case is folded for ASCII. The tables are plain bytes, so the build
//! script can write them into the binary.

use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::file::as_regex;

/// The length of an anchor.
pub const WIDTH: usize = 6;
/// How many bytes decide about a skip.
const BLOCK: usize = 3;
/// The number of different blocks told apart.
const BLOCKS: usize = 1 << 15;

/// The length of an entry: an anchor and the number of its pattern.
const ENTRY: usize = WIDTH + 2;

/// The search tables, as bytes (numbers little-endian), so that they can stand in the binary as they are.
#[derive(Debug, Clone, Copy)]
pub struct Anchors<'t> {
    /// For each block: how far the window may move.
    pub shift: &'t [u8],
    /// For each block, two bytes: where its anchors start in `entries`; the next head is the end.
    pub heads: &'t [u8],
    /// The anchors, grouped by their last block, each with the number of the pattern it belongs to.
    pub entries: &'t [u8],
}

/// Folds case roughly but fast; equal letters stay equal.
fn block_at(window_end: &[u8; BLOCK]) -> usize {
    let [a, b, c] = window_end.map(|byte| usize::from(byte | 0x20));
    ((a << 10) ^ (b << 5) ^ c) & (BLOCKS - 1)
}

/// Builds the tables for `(anchor, pattern)` pairs: shift, heads and entries.
pub fn build(pairs: &[([u8; WIDTH], u16)]) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let mut shift = vec![(WIDTH - BLOCK + 1) as u8; BLOCKS];
    let mut grouped: Vec<(usize, ([u8; WIDTH], u16))> = Vec::with_capacity(pairs.len());
    for pair in pairs {
        for end in BLOCK..=WIDTH {
            let block = block_at(&[pair.0[end - 3], pair.0[end - 2], pair.0[end - 1]]);
            shift[block] = shift[block].min((WIDTH - end) as u8);
            if end == WIDTH {
                grouped.push((block, *pair));
            }
        }
    }
    grouped.sort_unstable();
    grouped.dedup();
    let mut heads = vec![0_u16; BLOCKS + 1];
    for (block, _) in &grouped {
        heads[block + 1] += 1;
    }
    for block in 0..BLOCKS {
        heads[block + 1] += heads[block];
    }
    let heads = heads.into_iter().flat_map(u16::to_le_bytes).collect();
    let entries =
        grouped.iter().flat_map(|(_, (anchor, pattern))| anchor.iter().copied().chain(pattern.to_le_bytes()));
    (shift, heads, entries.collect())
}

impl<'t> Anchors<'t> {
    /// Returns the position after the next anchor in `text` at or behind `from`, as the end of its window.
    pub fn next(self, text: &[u8], from: usize) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let mut end = from + WIDTH;
        while let Some(window_end) = text.get(end - BLOCK..end) {
            let block = block_at(&[window_end[0], window_end[1], window_end[2]]);
            match self.shift[block] {
                0 => {
                    if self.at(&text[end - WIDTH..end], block).next().is_some() {
                        return Some(end);
                    }
                    end += 1;
                }
                skip => end += usize::from(skip),
            }
        }
        None
    }

    /// Calls `found` with the pattern of every anchor in `text`, in order of position.
    pub fn each(self, text: &[u8], mut found: impl FnMut(u16)) {
        let mut from = 0;
        while let Some(end) = self.next(text, from) {
            let window = &text[end - WIDTH..end];
            self.at(window, block_at(&[window[3], window[4], window[5]])).for_each(&mut found);
            from = end - WIDTH + 1;
        }
    }

    fn at<'a>(self, window: &'a [u8], block: usize) -> impl Iterator<Item = u16> + use<'a, 't> {
        let range = ENTRY * self.head(block)..ENTRY * self.head(block + 1);
        let same = move |entry: &&[u8]| entry.iter().zip(window).all(|(a, b)| *a == b.to_ascii_lowercase());
        let entries = self.entries[range].chunks_exact(ENTRY);
        entries.filter(same).map(|entry| u16::from_le_bytes([entry[WIDTH], entry[WIDTH + 1]]))
    }

    fn head(self, block: usize) -> usize {
        usize::from(u16::from_le_bytes([self.heads[2 * block], self.heads[2 * block + 1]]))
    }
}

/// How often each six bytes stand in output that is printed when nothing is wrong.
#[derive(Debug, Default)]
pub struct Ordinary(HashMap<[u8; WIDTH], u32>);

impl Ordinary {
    /// Counts a sample of such output.
    pub fn count(sample: &str) -> Ordinary {
        let mut counts = HashMap::new();
        windows(&sample.to_ascii_lowercase()).for_each(|window| *counts.entry(window).or_default() += 1);
        Ordinary(counts)
    }

    /// Estimates how common a window is: what stands in the sample is much more so than anything else; letters count by
    /// their share in English, digits and signs as rarer.
    fn cost(&self, window: &[u8; WIDTH]) -> u32 {
        const BY_SHARE: &[u8] = b" etaoinsrhldcumfpgwybvkxjqz";
        let share = |byte: &u8| {
            BY_SHARE.iter().position(|common| common == byte).map_or(4, |place| 30 - place as u32)
        };
        1000 * self.0.get(window).copied().unwrap_or(0) + window.iter().map(share).sum::<u32>()
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
    let price = |window: &[u8; WIDTH]| u64::from(1 + 30 * ordinary.0.get(window).copied().unwrap_or(0));
    let worth = |count: usize, window: &[u8; WIDTH]| 1_000_000 * count as u64 / price(window);
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

/// Lists the runs of fixed text outside of groups and classes in one branch, in lower case.
fn fixed_runs(branch: &str) -> Vec<String> {
    let mut runs = vec![String::new()];
    let (mut depth, mut class) = (0_u32, false);
    let mut signs = branch.chars().peekable();
    while let Some(sign) = signs.next() {
        let fixed = match sign {
            '\\' => match signs.next() {
                Some(next) if !next.is_alphanumeric() => Some(next),
                Some(_) | None => None,
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
        let (shift, heads, entries) = build(&pairs);
        let mut found = Vec::new();
        Anchors { shift: &shift, heads: &heads, entries: &entries }
            .each(b"Access DENIED; xkilledX and denied", |pattern| found.push(pattern));
        assert_eq!(found, [0, 1, 2, 0]);
    }
}
