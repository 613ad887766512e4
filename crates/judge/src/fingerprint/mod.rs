//! Short names for calls and causes, equal wherever the same thing happens: in another process, on another machine.
//!
//! Each begins with its sort and a version. What goes into one may only change together with its version, because
//! fingerprints are stored and compared across releases.

mod call;
mod cause;
mod intent;

#[cfg(test)]
mod tests;

use std::fmt;

pub use call::call;
pub use cause::{cause, family, mask};
pub use intent::{call_and_intent, intent, intent_of, work};

/// A short printable name such as `c1:k3v…`; equal names stand for the same thing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The name as it is printed and stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes a printed name back, as it was stored.
    pub fn from_stored(text: impl Into<String>) -> Fingerprint {
        Fingerprint(text.into())
    }

    /// Hashes `parts` under `prefix`. A part's length goes in before it, so that no two lists of parts look alike.
    fn of(prefix: &str, parts: &[&[u8]]) -> Fingerprint {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        // 100 bits: enough that a million fingerprints never meet by chance, short enough to read aloud.
        const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let mut text = format!("{prefix}:");
        let hash = hasher.finalize();
        let bits = hash.as_bytes().iter().take(13).fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
        for digit in 0..20 {
            let five = (bits >> (99 - 5 * digit)) & 31;
            text.push(char::from(DIGITS[five as usize]));
        }
        Fingerprint(text)
    }
}

/// Names a list of texts, in order.
pub(crate) fn of_parts(prefix: &str, parts: &[String]) -> Fingerprint {
    Fingerprint::of(prefix, &parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>())
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
