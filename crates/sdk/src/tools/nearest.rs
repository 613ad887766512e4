//! The lines of a file that are most like a text that is not in it.

/// How many lines are looked at, and how much of each.
const LINES_MAX: usize = 20_000;
const LINE_MAX: usize = 300;
/// How much is quoted.
const QUOTED: usize = 12;

/// Some lines of a file.
pub(super) struct Near {
    /// The first one, counted from 1.
    pub(super) line: usize,
    pub(super) text: String,
}

/// The line that a byte stands in, counted from 1.
pub(super) fn line_at(bytes: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', &bytes[..at]).count() + 1
}

/// The lines most like `wanted`: where its first line that says something nearly stands, as many as it has.
pub(super) fn lines(bytes: &[u8], wanted: &str) -> Option<Near> {
    let (skipped, first) = wanted.lines().enumerate().find(|(_, line)| !line.trim().is_empty())?;
    let first = short(first.trim());
    let text = String::from_utf8_lossy(bytes);
    let likeness = |line: &str| match short(line.trim()) {
        "" => 0.0,
        line if line == first => 2.0,
        line => strsim::sorensen_dice(line, first),
    };
    let rated = text.lines().take(LINES_MAX).map(likeness).enumerate();
    // Of several that are as like, the first one.
    let (best, _) = rated.filter(|(_, like)| *like > 0.5).reduce(|a, b| if b.1 > a.1 { b } else { a })?;
    let start = best.saturating_sub(skipped);
    let count = wanted.lines().count().clamp(1, QUOTED);
    let quoted: Vec<&str> = text.lines().skip(start).take(count).map(short).collect();
    Some(Near { line: start + 1, text: quoted.join("\n") })
}

fn short(line: &str) -> &str {
    &line[..line.floor_char_boundary(LINE_MAX)]
}
