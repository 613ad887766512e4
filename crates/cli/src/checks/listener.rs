//! Hears the output of a command while it passes, and keeps what the checks will ask for. Memory stays flat: JSON is followed
//! without being kept, but for so much of it as a test can be asked about.

use memchr::memchr;
use regex_lite::Regex;
use unstuck_judge::rules::Stream;
use unstuck_judge::suspicion::{JsonText, Suspicion, Watch};

/// The longest JSON that a test is asked about.
pub(super) const BODY_MAX: usize = 8 << 20;
/// Of a longer line only so much is compared with a pattern at once.
const LINE_MAX: usize = 64 * 1024;

/// What is heard of one attempt.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(super) json: Option<Json>,
    pub(super) patterns: Vec<Pattern>,
    pub(super) watch: Watch,
    /// Lines whose end has not come yet, of each stream.
    open: [Vec<u8>; 3],
}

/// Standard output as JSON.
#[derive(Debug)]
pub(super) struct Json {
    pub(super) text: JsonText,
    /// As much of it as is kept; nothing where nobody asks what is in it.
    pub(super) body: Option<Vec<u8>>,
}

/// A pattern, and whether a line had it.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) wanted: Regex,
    pub(super) is_met: bool,
}

impl Listener {
    pub(super) fn new(json: Option<bool>, patterns: &[Regex], watch: Watch) -> Listener {
        let json = json.map(|keeps| Json { text: JsonText::default(), body: keeps.then(Vec::new) });
        let patterns = patterns.iter().map(|wanted| Pattern { wanted: wanted.clone(), is_met: false });
        Listener { json, patterns: patterns.collect(), watch, open: Default::default() }
    }

    /// Hears the next piece of a stream.
    pub(crate) fn feed(&mut self, stream: Stream, bytes: &[u8]) {
        // On a terminal nobody can tell the streams apart.
        if let (Stream::Stdout | Stream::Merged, Some(json)) = (stream, &mut self.json) {
            json.text.feed(bytes);
            if let Some(body) = &mut json.body {
                // One byte more tells that there was more.
                let room = (BODY_MAX + 1).saturating_sub(body.len());
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
        }
        self.watch.feed(stream, bytes);
        if self.patterns.iter().any(|pattern| !pattern.is_met) {
            self.compare(stream, bytes);
        }
    }

    fn compare(&mut self, stream: Stream, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = memchr(b'\n', rest) {
            let mut line = std::mem::take(&mut self.open[stream as usize]);
            line.extend_from_slice(&rest[..end]);
            self.look_at(&line);
            rest = &rest[end + 1..];
        }
        self.open[stream as usize].extend_from_slice(rest);
        if self.open[stream as usize].len() > LINE_MAX {
            let line = std::mem::take(&mut self.open[stream as usize]);
            self.look_at(&line);
            // What is cut in two at the seam is still found in the next piece.
            self.open[stream as usize].extend_from_slice(&line[line.len() - LINE_MAX / 16..]);
        }
    }

    fn look_at(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches('\r');
        for pattern in self.patterns.iter_mut().filter(|pattern| !pattern.is_met) {
            pattern.is_met = pattern.wanted.is_match(line);
        }
    }

    /// Everything was heard. What is left over counts as a line.
    pub(super) fn end(mut self) -> (Option<Json>, Vec<Pattern>, Option<Suspicion>) {
        for line in std::mem::take(&mut self.open) {
            if !line.is_empty() {
                self.look_at(&line);
            }
        }
        (self.json, self.patterns, self.watch.conclude())
    }
}
