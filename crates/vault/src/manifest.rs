//! The list of a snapshot: every folder with its entries, exactly as they were. It is read as a whole, and the next snapshot
//! compares the tree with it, so it is also what makes an unchanged tree cheap.
//!
//! Folders are found by their absolute path. The scopes themselves are the entries of a folder without a path, named by
//! their whole path; from there all others are reached. A manifest may hold only the folders that changed since another one:
//! then the two are read as one.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::entry::{Attributes, Entry, Flags, Hash, Moment};
use crate::error::VaultError;
use crate::folder::{Folder, Number, Room, read_own};

const MAGIC: &[u8; 8] = b"USMANIF1";
pub(crate) const HEADER: usize = 8 + 8 + 4 + 4 + 8;
const TRAILER: usize = 32;
/// What one entry takes on disk.
const ENTRY: usize = 100;
/// Where in it stands whether it has attributes.
const EXTRA: usize = 60;
/// So many manifests are read as one at most.
pub(crate) const LONGEST_CHAIN: u32 = 16;
/// An entry without attributes.
const NONE: u32 = u32::MAX;

/// The number of the manifest below, as the beginning of a manifest says it; nobody has checked that it is whole.
pub(crate) fn base_in(beginning: &[u8; HEADER]) -> Option<Number> {
    let base = beginning[8..16].iter().rev().fold(0, |all, byte| all << 8 | Number::from(*byte));
    (base != 0).then_some(base)
}

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

/// One folder as it is about to be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// The filesystem it lies on.
    pub(crate) device: u64,
    /// In the order in which the system names them.
    pub(crate) entries: Vec<Listed>,
}

/// One entry of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: Vec<u8>,
    pub(crate) entry: Entry,
    /// Empty where there are none.
    pub(crate) attributes: Attributes,
}

/// One manifest as it was read.
#[derive(Debug)]
pub(crate) struct Layer {
    bytes: Vec<u8>,
    base: u64,
    depth: u32,
    folders: Vec<(Vec<u8>, Place)>,
}

/// Where the parts of a folder lie in its layer.
#[derive(Debug, Clone, Copy)]
struct Place {
    layer: u32,
    device: u64,
    count: u32,
    entries: usize,
    names: usize,
    attributes: usize,
}

/// A manifest with all those below it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manifest {
    layers: Vec<Arc<Layer>>,
    folders: HashMap<Vec<u8>, Place>,
}

impl Layer {
    /// Reads a manifest; `path` is where it came from.
    pub(crate) fn parse(bytes: Vec<u8>, path: &Path) -> Result<Layer, VaultError> {
        Layer::checked(bytes).ok_or_else(|| VaultError::Damaged { path: path.to_owned() })
    }

    fn checked(bytes: Vec<u8>) -> Option<Layer> {
        let body = bytes.len().checked_sub(TRAILER).filter(|body| *body >= HEADER)?;
        if &bytes[..8] != MAGIC || blake3::hash(&bytes[..body]).as_bytes() != &bytes[body..] {
            return None;
        }
        let mut reader = Reader { bytes: &bytes[..body], at: 8 };
        let (base, depth, count) = (reader.u64()?, reader.u32()?, reader.u32()?);
        reader.at = usize::try_from(reader.u64()?).ok()?;
        let mut folders = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let (length, count, device) = (reader.u32()? as usize, reader.u32()?, reader.u64()?);
            let mut offset = || usize::try_from(reader.u64()?).ok();
            let (entries, names, attributes) = (offset()?, offset()?, offset()?);
            let path = reader.take(length)?.to_vec();
            let end = (count as usize).checked_mul(ENTRY)?.checked_add(entries)?;
            let in_order = end <= names && names <= attributes && attributes <= body;
            if !in_order {
                return None;
            }
            folders.push((path, Place { layer: 0, device, count, entries, names, attributes }));
        }
        Some(Layer { base, depth, folders, bytes })
    }

    /// The number of the manifest below it; nothing where it stands alone.
    pub(crate) fn base(&self) -> Option<u64> {
        (self.base != 0).then_some(self.base)
    }
}

impl Manifest {
    /// Reads layers as one: the lowest first.
    pub(crate) fn of(layers: Vec<Layer>) -> Manifest {
        layers.into_iter().fold(Manifest::default(), Manifest::on_top)
    }

    /// Reads the manifest with a number, and all those below it.
    pub(crate) fn read(folder: &Folder, number: Number) -> Result<Manifest, VaultError> {
        let mut layers = Vec::new();
        let mut next = Some(number);
        while let Some(number) = next {
            let path = folder.numbered(Room::Manifests, number);
            let bytes = match read_own(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(VaultError::Damaged { path });
                }
                bytes => bytes.map_err(VaultError::io("read", &path))?,
            };
            let layer = Layer::parse(bytes, &path)?;
            next = layer.base();
            // Each is younger than the one below it, so there is no way round in a circle.
            if next.is_some_and(|below| below >= number) {
                return Err(VaultError::Damaged { path });
            }
            layers.push(layer);
        }
        layers.reverse();
        Ok(Manifest::of(layers).pruned())
    }

    /// The same without what layers below say of folders that are gone or no longer held. Nobody keeps their contents, so
    /// nobody may go by their lists.
    pub(crate) fn pruned(mut self) -> Manifest {
        if self.layers.len() < 2 {
            return self;
        }
        let layers = self.layers.clone();
        let mut reached = HashMap::with_capacity(self.folders.len());
        let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
        while let Some(path) = waiting.pop() {
            let Some((path, place)) = self.folders.remove_entry(&path) else { continue };
            let view = FolderView { bytes: &layers[place.layer as usize].bytes, place };
            let held = view.folders().filter(|seen| seen.entry.is_held());
            waiting.extend(held.map(|seen| join(&path, seen.name)));
            reached.insert(path, place);
        }
        self.folders = reached;
        self
    }

    /// How many manifests it is read from.
    pub(crate) fn depth(&self) -> u32 {
        self.layers.last().map_or(0, |layer| layer.depth)
    }

    /// The numbers of the manifests below it.
    pub(crate) fn bases(&self) -> impl Iterator<Item = Number> {
        self.layers.iter().filter_map(|layer| layer.base())
    }

    /// The folder at a path, as it was.
    pub(crate) fn folder(&self, path: &[u8]) -> Option<FolderView<'_>> {
        let place = *self.folders.get(path)?;
        Some(FolderView { bytes: &self.layers[place.layer as usize].bytes, place })
    }

    /// The same with another layer on top.
    pub(crate) fn on_top(mut self, mut layer: Layer) -> Manifest {
        let number = self.layers.len() as u32;
        let folders = std::mem::take(&mut layer.folders).into_iter();
        self.folders.extend(folders.map(|(path, place)| (path, Place { layer: number, ..place })));
        self.layers.push(Arc::new(layer));
        self
    }

    /// How many folders it holds, unreachable ones included.
    pub(crate) fn folder_count(&self) -> usize {
        self.folders.len()
    }

    /// The scopes, each with its whole path.
    pub(crate) fn scopes(&self) -> FolderView<'_> {
        const NOWHERE: Place = Place { layer: 0, device: 0, count: 0, entries: 0, names: 0, attributes: 0 };
        self.folder(b"").unwrap_or(FolderView { bytes: &[], place: NOWHERE })
    }

    /// What was at a path; nothing where the manifest does not say.
    pub(crate) fn find(&self, path: &[u8]) -> Option<Seen<'_>> {
        let scopes = self.scopes();
        let mut seen = scopes.iter().find(|scope| is_at_or_below(path, scope.name))?;
        let mut at = seen.name.to_vec();
        let rest = path.get(at.len()..)?;
        for name in rest.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            if seen.entry.kind() != crate::entry::Kind::Folder || !seen.entry.is_held() {
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
                if seen.entry.kind() == crate::entry::Kind::Folder && seen.entry.is_held() {
                    waiting.push(whole);
                }
            }
        }
        Ok(())
    }
}

/// Is `path` the same as `above`, or inside it?
pub(crate) fn is_at_or_below(path: &[u8], above: &[u8]) -> bool {
    match path.strip_prefix(above) {
        Some(rest) => rest.is_empty() || rest[0] == b'/' || above == b"/",
        None => false,
    }
}

/// A folder in a manifest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FolderView<'a> {
    bytes: &'a [u8],
    place: Place,
}

/// One entry in a manifest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) entry: Entry,
    /// How its attributes are written; read them with [`attributes`].
    pub(crate) attributes: &'a [u8],
}

impl<'a> FolderView<'a> {
    pub(crate) fn device(&self) -> u64 {
        self.place.device
    }

    pub(crate) fn len(&self) -> usize {
        self.place.count as usize
    }

    /// The entry with a number; nothing past the end, or where it is not as it should be.
    pub(crate) fn get(&self, number: usize) -> Option<Seen<'a>> {
        if number >= self.len() {
            return None;
        }
        let at = self.place.entries + number * ENTRY;
        let mut reader = Reader { bytes: self.bytes.get(at..at + ENTRY)?, at: 0 };
        let (mode, uid, gid, links) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
        let (size, mtime, ctime, inode) = (reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?);
        let (mtime_nanos, ctime_nanos) = (reader.u32()?, reader.u32()?);
        let (name, extra) = (reader.u32()? as usize, reader.u32()?);
        let (flags, length) = (reader.u16()?, usize::from(reader.u16()?));
        let hash: Hash = reader.take(32)?.try_into().ok()?;
        let name = self.place.names.checked_add(name)?;
        let attributes = match extra {
            NONE => &[],
            extra => {
                let from = self.place.attributes.checked_add(extra as usize)?;
                let length = u32::from_le_bytes(self.bytes.get(from..from + 4)?.try_into().ok()?) as usize;
                self.bytes.get(from + 4..from.checked_add(4)?.checked_add(length)?)?
            }
        };
        Some(Seen {
            name: self.bytes.get(name..name.checked_add(length)?)?,
            attributes,
            entry: Entry {
                mode,
                uid,
                gid,
                links,
                size,
                mtime: Moment { seconds: mtime as i64, nanos: mtime_nanos },
                ctime: Moment { seconds: ctime as i64, nanos: ctime_nanos },
                inode,
                flags: Flags(flags),
                hash,
            },
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Seen<'a>> + use<'a> {
        let folder = *self;
        (0..folder.len()).map_while(move |number| folder.get(number))
    }

    /// Do both say the very same? It is told without reading the entries one by one, so `false` may also mean that nobody knows.
    pub(crate) fn is_same(&self, other: &FolderView<'_>) -> bool {
        let raw = |folder: &FolderView<'_>| Some(folder.place.entries..folder.place.attributes);
        let mine = raw(self).and_then(|range| self.bytes.get(range));
        let others = raw(other).and_then(|range| other.bytes.get(range));
        self.device() == other.device()
            && self.len() == other.len()
            && mine == others
            && !self.has_attributes()
    }

    fn has_attributes(&self) -> bool {
        let extra =
            |number: usize| self.bytes.get(self.place.entries + number * ENTRY + EXTRA..).map(|at| &at[..4]);
        (0..self.len()).any(|number| extra(number) != Some(&NONE.to_le_bytes()[..]))
    }

    /// The folders in it, told without reading all of the other entries.
    pub(crate) fn folders(&self) -> impl Iterator<Item = Seen<'a>> + use<'a> {
        let folder = *self;
        let is_folder = move |number: &usize| {
            let at = folder.place.entries + number * ENTRY;
            let mode = folder.bytes.get(at..at + 4).and_then(|mode| mode.try_into().ok());
            mode.is_some_and(|mode| u32::from_le_bytes(mode) & 0o170_000 == 0o040_000)
        };
        (0..folder.len()).filter(is_folder).map_while(move |number| folder.get(number))
    }

    /// The whole folder, to be written again.
    pub(crate) fn to_listing(self) -> Listing {
        let listed = |seen: Seen<'_>| Listed {
            name: seen.name.to_vec(),
            entry: seen.entry,
            attributes: attributes(seen.attributes),
        };
        Listing { device: self.device(), entries: self.iter().map(listed).collect() }
    }
}

/// Attributes as they are written in a manifest.
pub(crate) fn attributes(bytes: &[u8]) -> Attributes {
    let mut reader = Reader { bytes, at: 0 };
    let mut found = Attributes::new();
    while let Some(length) = reader.u32() {
        let Some(name) = reader.take(length as usize) else { break };
        let Some(value) = reader.u32().and_then(|length| reader.take(length as usize)) else { break };
        found.push((name.to_vec(), value.to_vec()));
    }
    found
}

/// Writes a manifest.
pub(crate) struct Writer {
    bytes: Vec<u8>,
    table: Vec<u8>,
    count: u32,
    names: Vec<u8>,
    extras: Vec<u8>,
}

impl Writer {
    /// On top of `base`, whose depth is given with it; alone where there is none.
    pub(crate) fn new(base: Option<(u64, u32)>) -> Writer {
        let (base, depth) = base.map_or((0, 1), |(base, depth)| (base, depth + 1));
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&base.to_le_bytes());
        bytes.extend_from_slice(&depth.to_le_bytes());
        bytes.resize(HEADER, 0);
        Writer { bytes, table: Vec::new(), count: 0, names: Vec::new(), extras: Vec::new() }
    }

    /// Adds a folder.
    pub(crate) fn folder(&mut self, path: &[u8], listing: &Listing) {
        self.begin();
        let at = self.bytes.len();
        for Listed { name, entry, attributes } in &listing.entries {
            let mut extra = Vec::new();
            for (name, value) in attributes {
                extra.extend_from_slice(&(name.len() as u32).to_le_bytes());
                extra.extend_from_slice(name);
                extra.extend_from_slice(&(value.len() as u32).to_le_bytes());
                extra.extend_from_slice(value);
            }
            self.entry(name, entry, &extra);
        }
        self.end(path, listing.device, listing.entries.len() as u32, at);
    }

    /// Adds a folder of another manifest as it is.
    pub(crate) fn same_folder(&mut self, path: &[u8], folder: FolderView<'_>) {
        self.begin();
        let at = self.bytes.len();
        let mut count = 0;
        for seen in folder.iter() {
            self.entry(seen.name, &seen.entry, seen.attributes);
            count += 1;
        }
        self.end(path, folder.device(), count, at);
    }

    fn begin(&mut self) {
        self.names.clear();
        self.extras.clear();
    }

    fn entry(&mut self, name: &[u8], entry: &Entry, attributes: &[u8]) {
        let bytes = &mut self.bytes;
        for number in [entry.mode, entry.uid, entry.gid, entry.links] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for number in [entry.size, entry.mtime.seconds as u64, entry.ctime.seconds as u64, entry.inode] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let extra = match attributes.is_empty() {
            true => NONE,
            false => self.extras.len() as u32,
        };
        for number in [entry.mtime.nanos, entry.ctime.nanos, self.names.len() as u32, extra] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&entry.flags.0.to_le_bytes());
        bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&entry.hash);
        self.names.extend_from_slice(name);
        if !attributes.is_empty() {
            self.extras.extend_from_slice(&(attributes.len() as u32).to_le_bytes());
            self.extras.extend_from_slice(attributes);
        }
    }

    fn end(&mut self, path: &[u8], device: u64, count: u32, entries: usize) {
        let names = self.bytes.len();
        self.bytes.extend_from_slice(&self.names);
        let attributes = self.bytes.len();
        self.bytes.extend_from_slice(&self.extras);
        let table = &mut self.table;
        table.extend_from_slice(&(path.len() as u32).to_le_bytes());
        table.extend_from_slice(&count.to_le_bytes());
        for number in [device, entries as u64, names as u64, attributes as u64] {
            table.extend_from_slice(&number.to_le_bytes());
        }
        table.extend_from_slice(path);
        self.count += 1;
    }

    /// The finished manifest.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let table = self.bytes.len() as u64;
        self.bytes[20..24].copy_from_slice(&self.count.to_le_bytes());
        self.bytes[24..32].copy_from_slice(&table.to_le_bytes());
        self.bytes.append(&mut self.table);
        let hash = blake3::hash(&self.bytes);
        self.bytes.extend_from_slice(hash.as_bytes());
        self.bytes
    }
}

/// Reads numbers one after the other; nothing past the end.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let found = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(found)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, size: u64, attributes: Attributes) -> Listed {
        let entry = Entry { mode: 0o100644, size, hash: [7; 32], ..Entry::ABSENT };
        Listed { name: name.as_bytes().to_vec(), entry, attributes }
    }

    fn folder(name: &str) -> Listed {
        let entry = Entry { mode: 0o040755, ..Entry::ABSENT };
        Listed { name: name.as_bytes().to_vec(), entry, attributes: Attributes::new() }
    }

    fn written(base: Option<(u64, u32)>, folders: &[(&str, Vec<Listed>)]) -> Layer {
        let mut writer = Writer::new(base);
        for (path, entries) in folders {
            writer.folder(path.as_bytes(), &Listing { device: 3, entries: entries.clone() });
        }
        Layer::parse(writer.finish(), Path::new("m")).unwrap()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let attributes = vec![(b"user.a".to_vec(), b"1".to_vec()), (b"user.b".to_vec(), Vec::new())];
        let entries = vec![listed("a", 5, attributes), listed("b\u{ff}", 6, Attributes::new())];
        let layer = written(None, &[("", vec![folder("/t")]), ("/t", entries.clone())]);
        let manifest = Manifest::of(vec![layer]);
        let view = manifest.folder(b"/t").unwrap();
        assert_eq!(view.to_listing(), Listing { device: 3, entries });
        assert_eq!(manifest.find(b"/t/a").unwrap().entry.size, 5);
        assert_eq!(manifest.find(b"/t").unwrap().entry.mode, 0o040755);
        assert!(manifest.find(b"/t/c").is_none() && manifest.find(b"/u").is_none());
    }

    #[test]
    fn a_layer_on_top_says_what_changed() {
        let below = written(
            None,
            &[
                ("", vec![folder("/t")]),
                ("/t", vec![listed("a", 1, Attributes::new()), folder("old")]),
                ("/t/old", vec![listed("b", 2, Attributes::new())]),
            ],
        );
        let above = written(Some((4, 1)), &[("/t", vec![listed("a", 9, Attributes::new())])]);
        assert_eq!(above.base(), Some(4));
        let manifest = Manifest::of(vec![below, above]);
        assert_eq!(manifest.depth(), 2);
        let mut seen = Vec::new();
        manifest
            .visit(|path, seen_here| {
                seen.push(format!("{} {}", String::from_utf8_lossy(path), seen_here.entry.size));
                Ok::<(), ()>(())
            })
            .unwrap();
        assert_eq!(seen, ["/t 0", "/t/a 9"]);
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let mut writer = Writer::new(None);
        writer.folder(b"", &Listing { device: 1, entries: vec![listed("/a", 1, Attributes::new())] });
        let bytes = writer.finish();
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 1;
            assert!(Layer::parse(broken, Path::new("m")).is_err(), "byte {at}");
        }
        for length in 0..bytes.len() {
            assert!(Layer::parse(bytes[..length].to_vec(), Path::new("m")).is_err());
        }
    }
}
