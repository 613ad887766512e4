//! Secrets that are known by their value: what the variables of this machine hold whose names say that it is secret.
//!
//! They are looked for as they are, as JSON writes them, and in base64. It is one pass whatever their number, and they are
//! prepared only when the first text is read: most processes start and end without one.

use std::sync::OnceLock;

use super::encoded::letters;
use super::labels::{is_placeholder, is_secret_variable};
use super::reading::Text;
use super::{Find, is_random};

/// Shorter values are too likely to be words.
const VALUE_LENGTH: usize = 8;

/// So many values are kept at most, the first ones.
const MOST_VALUES: usize = 128;

/// A line of a value of several lines counts alone from this length on.
const LINE_LENGTH: usize = 16;

/// JSON in JSON is looked into so often.
const MOST_ESCAPED: usize = 5;

/// So many spaces of a value may be line ends.
const MOST_SPACES: usize = 8;

/// How much of a needle is looked at first: as many bytes as a slot is made of.
const BEGIN: usize = 4;

/// The values that must never be told.
#[derive(Default)]
pub(crate) struct Known {
    values: Vec<String>,
    needles: OnceLock<Needles>,
}

/// Values in all their spellings.
struct Needles {
    /// Sorted by the slot of their beginning, the longest first in each.
    sorted: Vec<(u16, Vec<u8>)>,
    /// Which slots are taken.
    slots: [u64; SLOTS / 64],
}

const SLOTS: usize = 4096;

impl Known {
    /// Keeps the values of the variables whose names say that they are secret.
    pub(crate) fn new(environment: impl IntoIterator<Item = (String, String)>) -> Known {
        let secret = environment.into_iter().filter(|(name, value)| {
            let is_long_enough = value.trim().len() >= VALUE_LENGTH;
            is_long_enough && is_secret_variable(name.as_bytes()) && is_telling(value.trim().as_bytes())
        });
        let values = secret.map(|(_, value)| value.trim().to_owned()).take(MOST_VALUES).collect();
        Known { values, needles: OnceLock::new() }
    }

    pub(super) fn find(&self, text: Text<'_>, finds: &mut Vec<Find>) {
        if self.values.is_empty() {
            return;
        }
        let needles = self.needles.get_or_init(|| Needles::new(&self.values));
        let mut done = 0;
        let mut begin = 0;
        for (last, byte) in text.iter().enumerate() {
            begin = begin << 8 | u32::from(*byte);
            let slot = slot(begin);
            if needles.slots[usize::from(slot) / 64] >> (slot % 64) & 1 == 0 {
                continue;
            }
            let Some(at) = (last + 1).checked_sub(BEGIN).filter(|at| *at >= done) else { continue };
            let first = needles.sorted.partition_point(|(other, _)| *other < slot);
            let same = needles.sorted[first..].iter().take_while(|(other, _)| *other == slot);
            let found = same.map(|(_, needle)| needle).find(|needle| text[at..].starts_with(needle));
            if let Some(needle) = found {
                done = at + needle.len();
                finds.push(Find { start: at, end: done, kind: "environment" });
            }
        }
    }
}

impl Needles {
    fn new(values: &[String]) -> Needles {
        const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const FOR_URLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut sorted = Vec::new();
        let mut keep = |needle: Vec<u8>| {
            if needle.len() >= BEGIN {
                let begin = needle[..BEGIN].iter().fold(0, |begin, byte| begin << 8 | u32::from(*byte));
                sorted.push((slot(begin), needle));
            }
        };
        for value in values {
            let lines = value.lines().filter(|line| {
                line.len() < value.len() && line.len() >= LINE_LENGTH && !line.starts_with("-----")
            });
            for spelled in lines.chain([value.as_str()]) {
                for before in 0..3 {
                    keep(letters(spelled.as_bytes(), before, STANDARD));
                    keep(letters(spelled.as_bytes(), before, FOR_URLS));
                }
                // Where lines are joined, a line end may stand for a space.
                for (space, _) in spelled.match_indices(' ').take(MOST_SPACES) {
                    keep([&spelled.as_bytes()[..space], &spelled.as_bytes()[space + 1..]].concat());
                }
                let mut json = spelled.to_owned();
                for _ in 0..MOST_ESCAPED {
                    keep(json.as_bytes().to_vec());
                    let quoted = serde_json::Value::from(json.as_str()).to_string();
                    let escaped = quoted.get(1..quoted.len() - 1).unwrap_or_default();
                    if json == escaped {
                        break;
                    }
                    json = escaped.to_owned();
                }
            }
        }
        sorted.sort_by(|(slot, needle), (other_slot, other)| {
            (slot, other.len(), needle).cmp(&(other_slot, needle.len(), other))
        });
        sorted.dedup();
        let mut slots = [0; SLOTS / 64];
        for (slot, _) in &sorted {
            slots[usize::from(*slot) / 64] |= 1 << (slot % 64);
        }
        Needles { sorted, slots }
    }
}

/// The slot of a beginning: equal beginnings have the same.
fn slot(begin: u32) -> u16 {
    u16::try_from(begin.wrapping_mul(0x9e37_79b1) >> 20).unwrap_or(0)
}

/// Whether a value can be a secret at all: paths, addresses, numbers and plain words are none, or would be cut out of texts
/// that have nothing to do with it.
fn is_telling(value: &[u8]) -> bool {
    let is_place = value.starts_with(b"/")
        || value.starts_with(b"~")
        || value.starts_with(b"./")
        || value.get(1..3).is_some_and(|drive| drive == b":\\")
        || (memchr::memmem::find(value, b"://").is_some() && !value.contains(&b'@'));
    let is_number = value.iter().all(|byte| byte.is_ascii_digit() || b".,-+:_ ".contains(byte));
    let is_word = value.len() < 16 && !is_random(value) && value.iter().all(u8::is_ascii_alphabetic);
    !is_place && !is_number && !is_word && !is_placeholder(value)
}
