//! The list of a snapshot: every folder with its entries, exactly as they were. The next snapshot compares the tree with it, so
//! it is also what makes an unchanged tree cheap.
//!
//! Folders are found by their absolute path. The scopes themselves are the entries of a folder without a path, named by
//! their whole path; from there all others are reached. A manifest may hold only the folders that changed since another one:
//! then the two are read as one.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use crate::entry::Kind;
use crate::error::VaultError;
use crate::folder::{Folder, Number, Room, read_own};
use crate::layer::{FolderView, Layer, Seen};
use crate::places::Places;

/// So many manifests are read as one at most.
pub(crate) const LONGEST_CHAIN: u32 = 16;

/// The path of something in a folder.
pub(crate) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + 1 + name.len());
    path.extend_from_slice(folder);
    if !folder.is_empty() && folder != b"/" {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Is `path` the same as `above`, or inside it?
pub(crate) fn is_at_or_below(path: &[u8], above: &[u8]) -> bool {
    match path.strip_prefix(above) {
        Some(rest) => rest.is_empty() || rest[0] == b'/' || above == b"/",
        None => false,
    }
}

/// A manifest with all those below it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manifest {
    /// The lowest first.
    levels: Vec<Arc<Level>>,
}

/// A layer on top of others.
#[derive(Debug)]
struct Level {
    layer: Layer,
    /// Folders that are not held any more from here on. Nobody keeps what was in them, so nobody may go by what lower layers
    /// say of them.
    gone: Places,
}

impl Manifest {
    /// Reads the manifest with a number, and all those below it.
    pub(crate) fn read(folder: &Folder, number: Number) -> Result<Manifest, VaultError> {
        Manifest::read_beside(folder, number, None)
    }

    /// The same; what another one was read from is not read again.
    pub(crate) fn read_beside(
        folder: &Folder,
        number: Number,
        known: Option<&Manifest>,
    ) -> Result<Manifest, VaultError> {
        let levels = known.map_or(&[][..], |known| &known.levels);
        let mut layers = Vec::new();
        let mut next = Some(number);
        let mut manifest = Manifest::default();
        while let Some(number) = next {
            if let Some(at) = levels.iter().position(|level| level.layer.number() == number) {
                manifest.levels = levels[..=at].to_vec();
                break;
            }
            let path = folder.numbered(Room::Manifests, number);
            let bytes = match read_own(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(VaultError::Damaged { path });
                }
                bytes => bytes.map_err(VaultError::io("read", &path))?,
            };
            let layer = Layer::parse(bytes, number, &path)?;
            next = layer.base();
            // Each is younger than the one below it, so there is no way round in a circle.
            if next.is_some_and(|below| below >= number) {
                return Err(VaultError::Damaged { path });
            }
            layers.push(layer);
        }
        Ok(layers.into_iter().rev().fold(manifest, Manifest::on_top))
    }

    /// The same with another layer on top.
    pub(crate) fn on_top(mut self, mut layer: Layer) -> Manifest {
        // A list that stands alone names only what it reaches.
        let gone = match self.levels.is_empty() {
            true => Places::default(),
            false => Places::of(self.gone(&layer)).topmost(),
        };
        if !gone.is_empty() {
            layer.retain(|path| !gone.cover(path));
        }
        self.levels.push(Arc::new(Level { layer, gone }));
        self
    }

    /// The folders that are no longer held with a layer on top: those that stood in a list that it replaces, and those that it
    /// names itself although the list around them does not hold them.
    fn gone(&self, layer: &Layer) -> Vec<Vec<u8>> {
        let mut gone = Vec::new();
        for (path, folder) in layer.folders() {
            let Some(before) = self.folder(path) else { continue };
            // Most lists name the same folders in the same order as before.
            if !before.held_folders().map(|seen| seen.name).eq(folder.held_folders().map(|seen| seen.name)) {
                let now: HashSet<&[u8]> = folder.held_folders().map(|seen| seen.name).collect();
                let missing = before.held_folders().filter(|seen| !now.contains(seen.name));
                gone.extend(missing.map(|seen| join(path, seen.name)));
            }
        }
        let scopes = layer.folder(b"").or_else(|| self.folder(b""));
        let mut held_in: HashMap<&[u8], HashSet<&[u8]>> = HashMap::new();
        for (path, _) in layer.folders().filter(|(path, _)| !path.is_empty()) {
            let scope = scopes.and_then(|scopes| scopes.iter().find(|scope| scope.name == path));
            let at = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            let around: &[u8] = if at == 0 { b"/" } else { &path[..at] };
            let is_held = match (scope, layer.folder(around)) {
                (Some(scope), _) => scope.entry.is_held(),
                (None, Some(folder)) => held_in
                    .entry(around)
                    .or_insert_with(|| folder.held_folders().map(|seen| seen.name).collect())
                    .contains(&path[at + 1..]),
                (None, None) => true,
            };
            if !is_held {
                gone.push(path.to_vec());
            }
        }
        gone
    }

    /// How many manifests it is read from.
    pub(crate) fn depth(&self) -> u32 {
        self.levels.last().map_or(0, |level| level.layer.depth())
    }

    /// The numbers of the manifests below it.
    pub(crate) fn bases(&self) -> impl Iterator<Item = Number> {
        self.levels.iter().filter_map(|level| level.layer.base())
    }

    /// The folder at a path, as it was.
    pub(crate) fn folder(&self, path: &[u8]) -> Option<FolderView<'_>> {
        for level in self.levels.iter().rev() {
            if let Some(folder) = level.layer.folder(path) {
                return Some(folder);
            }
            if level.gone.cover(path) {
                return None;
            }
        }
        None
    }

    /// About how many folders it holds.
    pub(crate) fn folder_count(&self) -> usize {
        self.levels.first().map_or(0, |level| level.layer.len())
    }

    /// The scopes, each with its whole path.
    pub(crate) fn scopes(&self) -> FolderView<'_> {
        self.folder(b"").unwrap_or(FolderView::EMPTY)
    }

    /// What was at a path; nothing where the manifest does not say.
    pub(crate) fn find(&self, path: &[u8]) -> Option<Seen<'_>> {
        let scopes = self.scopes();
        let mut seen = scopes.iter().find(|scope| is_at_or_below(path, scope.name))?;
        let mut at = seen.name.to_vec();
        let rest = path.get(at.len()..)?;
        for name in rest.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            if seen.entry.kind() != Kind::Folder || !seen.entry.is_held() {
                return None;
            }
            seen = self.folder(&at)?.iter().find(|seen| seen.name == name)?;
            at = join(&at, name);
        }
        Some(seen)
    }

    /// Visits everything that it holds, folders before what is in them; the path comes with each.
    pub(crate) fn visit<E>(&self, mut see: impl FnMut(&[u8], &Seen<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
        while let Some(path) = waiting.pop() {
            let Some(folder) = self.folder(&path) else { continue };
            for seen in folder.iter() {
                let whole = join(&path, seen.name);
                see(&whole, &seen)?;
                // What a layer below says of a folder that is no longer held is not part of this one.
                if seen.entry.kind() == Kind::Folder && seen.entry.is_held() {
                    waiting.push(whole);
                }
            }
        }
        Ok(())
    }
}

/// Where lists that share their lower layers may differ. Nothing is known where they have nothing in common.
#[derive(Debug, Clone, Default)]
pub(crate) struct Apart {
    /// Folders of which they may say different things, and those that one of them does not hold.
    known: Option<(Places, Places)>,
}

impl Apart {
    pub(crate) fn of(lists: &[&Manifest]) -> Apart {
        let [first, others @ ..] = lists else { return Apart::default() };
        let is_shared = |at: usize, level: &Arc<Level>| {
            others.iter().all(|other| other.levels.get(at).is_some_and(|theirs| Arc::ptr_eq(level, theirs)))
        };
        let shared = first.levels.iter().enumerate().take_while(|(at, level)| is_shared(*at, level)).count();
        if shared == 0 {
            return Apart::default();
        }
        let own = || lists.iter().flat_map(|list| &list.levels[shared..]);
        let gone = Places::of(own().flat_map(|level| level.gone.iter().cloned())).topmost();
        let named = own().flat_map(|level| level.layer.folders().map(|(path, _)| path.to_vec()));
        Apart { known: Some((Places::of(named.chain(gone.iter().cloned())), gone)) }
    }

    /// Does nothing differ in a folder, nor anywhere below it?
    pub(crate) fn is_same_below(&self, path: &[u8]) -> bool {
        self.known.as_ref().is_some_and(|(named, gone)| !named.reach_into(path) && !gone.cover(path))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::entry::{Attributes, Entry, Flags};
    use crate::layer::{Listed, Listing, Writer};

    fn listed(name: &str, size: u64) -> Listed {
        let entry = Entry { mode: 0o100644, size, hash: [7; 32], ..Entry::ABSENT };
        Listed { name: name.as_bytes().to_vec(), entry, attributes: Attributes::new() }
    }

    fn folder(name: &str) -> Listed {
        let entry = Entry { mode: 0o040755, ..Entry::ABSENT };
        Listed { name: name.as_bytes().to_vec(), entry, attributes: Attributes::new() }
    }

    fn lost(name: &str) -> Listed {
        let mut listed = folder(name);
        listed.entry.flags = Flags::UNREADABLE;
        listed
    }

    fn written(base: Option<(u64, u32)>, folders: &[(&str, Vec<Listed>)]) -> Layer {
        let mut writer = Writer::new(base);
        for (path, entries) in folders {
            writer.folder(path.as_bytes(), &Listing { device: 3, entries: entries.clone() });
        }
        Layer::parse(writer.finish(), 1, Path::new("m")).unwrap()
    }

    fn all(manifest: &Manifest) -> Vec<String> {
        let mut seen = Vec::new();
        manifest
            .visit(|path, here| {
                seen.push(format!("{} {}", String::from_utf8_lossy(path), here.entry.size));
                Ok::<(), ()>(())
            })
            .unwrap();
        seen
    }

    fn below() -> Manifest {
        Manifest::default().on_top(written(
            None,
            &[
                ("", vec![folder("/t")]),
                ("/t", vec![listed("a", 1), folder("old")]),
                ("/t/old", vec![listed("b", 2), folder("deep")]),
                ("/t/old/deep", vec![listed("c", 3)]),
            ],
        ))
    }

    #[test]
    fn a_path_is_found_from_its_scope() {
        let manifest = below();
        assert_eq!(manifest.find(b"/t/old/b").unwrap().entry.size, 2);
        assert_eq!(manifest.find(b"/t").unwrap().entry.mode, 0o040755);
        assert!(manifest.find(b"/t/x").is_none() && manifest.find(b"/u").is_none());
    }

    #[test]
    fn a_layer_on_top_says_what_changed() {
        let manifest =
            below().on_top(written(Some((4, 1)), &[("/t/old", vec![listed("b", 9), folder("deep")])]));
        assert_eq!((manifest.depth(), manifest.bases().collect::<Vec<_>>()), (2, vec![4]));
        assert_eq!(
            all(&manifest),
            ["/t 0", "/t/a 1", "/t/old 0", "/t/old/b 9", "/t/old/deep 0", "/t/old/deep/c 3"]
        );
    }

    #[test]
    fn what_is_no_longer_held_is_not_known_any_more() {
        let without = below().on_top(written(Some((4, 1)), &[("/t", vec![listed("a", 9)])]));
        assert_eq!(all(&without), ["/t 0", "/t/a 9"]);
        let unread = below().on_top(written(Some((4, 1)), &[("/t", vec![lost("old")])]));
        for manifest in [without, unread] {
            assert!(manifest.folder(b"/t/old").is_none() && manifest.folder(b"/t/old/deep").is_none());
            let again =
                written(Some((5, 2)), &[("/t", vec![folder("old")]), ("/t/old", vec![listed("n", 4)])]);
            let again = manifest.on_top(again);
            assert_eq!(all(&again), ["/t 0", "/t/old 0", "/t/old/n 4"]);
            assert!(again.folder(b"/t/old/deep").is_none());
        }
    }

    #[test]
    fn what_a_layer_names_and_does_not_hold_is_not_known_either() {
        let stale = written(Some((4, 1)), &[("/t", vec![listed("a", 1)]), ("/t/new", vec![listed("n", 1)])]);
        assert!(below().on_top(stale).folder(b"/t/new").is_none());
    }

    #[test]
    fn lists_that_share_layers_differ_only_above_them() {
        let below = below();
        let above = below.clone().on_top(written(Some((4, 1)), &[("/t/old", vec![listed("b", 9)])]));
        let apart = Apart::of(&[&below, &above]);
        let same = |path: &str| apart.is_same_below(path.as_bytes());
        assert!(!same("") && !same("/") && !same("/t") && !same("/t/old"));
        assert!(!same("/t/old/deep") && !same("/t/old/deep/er"), "it is gone in one of them");
        assert!(same("/t/older") && same("/t/ol") && same("/u"));
        assert!(Apart::of(&[&below, &below]).is_same_below(b""));
        assert!(
            !Apart::of(&[&below, &self::below()]).is_same_below(b"/u"),
            "nothing is shared, nothing is known"
        );
    }
}
