//! Contents that a check found damaged. Files that still have them are sound, and would never be read again because nothing
//! about them changed; so what was known up to that check is not gone by any more, and what is damaged does not count as held.

use std::collections::HashSet;

use crate::entry::Hash;
use crate::error::VaultError;
use crate::folder::{Folder, Number, Room, read_own_text};

/// What is not relied on.
#[derive(Debug, Default)]
pub(crate) struct Distrust {
    /// Packs and lists up to this number are meant; 0 where nothing was ever damaged.
    upto: Number,
    damaged: HashSet<Hash>,
}

impl Distrust {
    /// What earlier checks noted. A note that cannot be read names nothing.
    pub(crate) fn read(folder: &Folder) -> Distrust {
        let text = read_own_text(&folder.distrusted()).unwrap_or_default();
        let mut lines = text.lines();
        let upto = lines.next().and_then(|line| line.parse().ok()).unwrap_or(0);
        let hash = |line: &str| blake3::Hash::from_hex(line).ok().map(|hash| *hash.as_bytes());
        Distrust { upto, damaged: lines.filter_map(hash).collect() }
    }

    /// Notes what a check found.
    pub(crate) fn note<'a>(
        folder: &Folder,
        damaged: impl Iterator<Item = &'a Hash>,
    ) -> Result<(), VaultError> {
        let mut noted = Distrust::read(folder);
        for room in [Room::Manifests, Room::Packs] {
            noted.upto = folder.numbers(room)?.into_iter().fold(noted.upto, Number::max);
        }
        noted.damaged.extend(damaged);
        let hashes = noted.damaged.iter().map(|hash| format!("{}\n", blake3::Hash::from_bytes(*hash)));
        let text = format!("{}\n{}", noted.upto, hashes.collect::<String>());
        folder.replace(&folder.distrusted(), text.as_bytes())
    }

    /// May a list be gone by?
    pub(crate) fn spares_list(&self, number: Number) -> bool {
        number > self.upto
    }

    /// May a content in a pack count as held?
    pub(crate) fn spares(&self, hash: &Hash, pack: Number) -> bool {
        pack > self.upto || !self.damaged.contains(hash)
    }
}
