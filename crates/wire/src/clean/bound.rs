//! Making clean text short. A mark that says what was cut out is never cut itself: half a mark would be read as a value.

use crate::redact::MARK;

/// Stands where something was left out.
pub(super) const ELLIPSIS: char = '…';

/// How text of several lines is made short.
#[derive(Clone, Copy)]
pub(super) enum Bound {
    /// The beginning stays.
    Head(usize),
    /// The beginning stays, followed by an ellipsis.
    Line(usize),
    /// The end stays.
    Tail(usize),
    /// Beginning and end stay, with this between them.
    Ends(usize, &'static str),
}

impl Bound {
    /// Makes `text` as short as it says, counted in characters.
    pub(super) fn cut(self, text: &str) -> Option<String> {
        match self {
            Bound::Head(most) => is_longer(text, most).then(|| head(text, most).to_owned()),
            Bound::Line(most) => is_longer(text, most).then(|| {
                let mut line = head(text, most.saturating_sub(1)).trim_end().to_owned();
                line.extend((most > 0).then_some(ELLIPSIS));
                line
            }),
            Bound::Tail(most) => is_longer(text, most).then(|| tail(text, most).to_owned()),
            Bound::Ends(most, between) => {
                let Some(room) = most.checked_sub(between.chars().count()).filter(|room| *room > 8) else {
                    return Bound::Line(most).cut(text);
                };
                is_longer(text, most).then(|| {
                    let end = tail(text, room / 2);
                    let beginning = head(text, room - room / 2);
                    [beginning, between, end].concat()
                })
            }
        }
    }
}

/// Whether `text` has more characters than `most`.
fn is_longer(text: &str, most: usize) -> bool {
    text.len() > most && text.chars().nth(most).is_some()
}

fn head(text: &str, most: usize) -> &str {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    &text[..mark_around(text, end).map_or(end, |(start, _)| start)]
}

fn tail(text: &str, most: usize) -> &str {
    let Some(last) = most.checked_sub(1) else { return "" };
    let start = text.char_indices().nth_back(last).map_or(0, |(at, _)| at);
    &text[mark_around(text, start).map_or(start, |(_, end)| end)..]
}

/// The mark that `at` stands in.
fn mark_around(text: &str, at: usize) -> Option<(usize, usize)> {
    const LONGEST_MARK: usize = 48;
    let text = text.as_bytes();
    let from = at.saturating_sub(LONGEST_MARK);
    let near = &text[from..text.len().min(at + LONGEST_MARK)];
    let is_kind = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'-';
    memchr::memmem::find_iter(near, MARK).find_map(|start| {
        let kind = start + MARK.len();
        let end = kind + near[kind..].iter().take_while(|byte| is_kind(byte)).count();
        let is_mark = near.get(end) == Some(&b']');
        (is_mark && from + start < at && at <= from + end).then_some((from + start, from + end + 1))
    })
}
