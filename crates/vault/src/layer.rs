//! One manifest on disk: folders with their entries, exactly as they were. It is read as a whole and checked; what stands in it
//! is then found without being unpacked first.

use std::path::Path;

use crate::entry::{Attributes, Entry, Flags, Hash, Moment};
use crate::error::VaultError;
use crate::folder::Number;

const MAGIC: &[u8; 8] = b"USMANIF1";
pub(crate) const HEADER: usize = 8 + 8 + 4 + 4 + 8;
const TRAILER: usize = 32;
/// What one entry takes on disk.
const ENTRY: usize = 100;
/// Where in it stands whether it has attributes.
const EXTRA: usize = 60;
/// An entry without attributes.
const NONE: u32 = u32::MAX;

/// The number of the manifest below, as the beginning of a manifest says it; nobody has checked that it is whole.
pub(crate) fn base_in(beginning: &[u8; HEADER]) -> Option<Number> {
    let base = beginning[8..16].iter().rev().fold(0, |all, byte| all << 8 | Number::from(*byte));
    (base != 0).then_some(base)
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
    number: Number,
    bytes: Vec<u8>,
    base: Number,
    depth: u32,
    /// In the order of their paths.
    folders: Vec<Place>,
}

/// Where the parts of a folder lie in its layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    path: (usize, usize),
    device: u64,
    count: u32,
    entries: usize,
    names: usize,
    attributes: usize,
}

impl Place {
    fn path<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.path.0..self.path.1]
    }
}

impl Layer {
    /// Reads the manifest with a number; `path` is where it came from.
    pub(crate) fn parse(bytes: Vec<u8>, number: Number, path: &Path) -> Result<Layer, VaultError> {
        Layer::checked(bytes, number).ok_or_else(|| VaultError::Damaged { path: path.to_owned() })
    }

    fn checked(bytes: Vec<u8>, number: Number) -> Option<Layer> {
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
            reader.take(length)?;
            let path = (reader.at - length, reader.at);
            let end = (count as usize).checked_mul(ENTRY)?.checked_add(entries)?;
            let in_order = end <= names && names <= attributes && attributes <= body;
            if !in_order {
                return None;
            }
            folders.push(Place { path, device, count, entries, names, attributes });
        }
        // They are written in this order, but nothing goes wrong where they are not.
        if !folders.is_sorted_by_key(|place| place.path(&bytes)) {
            folders.sort_by_key(|place| place.path(&bytes));
        }
        Some(Layer { number, base, depth, folders, bytes })
    }

    /// Its own number.
    pub(crate) fn number(&self) -> Number {
        self.number
    }

    /// The number of the manifest below it; nothing where it stands alone.
    pub(crate) fn base(&self) -> Option<Number> {
        (self.base != 0).then_some(self.base)
    }

    /// How many manifests it is read from, with all those below it.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// How many folders it names.
    pub(crate) fn len(&self) -> usize {
        self.folders.len()
    }

    /// The folder at a path, where it is named here.
    pub(crate) fn folder(&self, path: &[u8]) -> Option<FolderView<'_>> {
        let at = self.folders.binary_search_by(|place| place.path(&self.bytes).cmp(path)).ok()?;
        Some(FolderView { bytes: &self.bytes, place: self.folders[at] })
    }

    /// All folders that it names, with their paths, in the order of these.
    pub(crate) fn folders(&self) -> impl Iterator<Item = (&[u8], FolderView<'_>)> {
        let view =
            |place: &Place| (place.path(&self.bytes), FolderView { bytes: &self.bytes, place: *place });
        self.folders.iter().map(view)
    }

    /// Forgets folders.
    pub(crate) fn retain(&mut self, stays: impl Fn(&[u8]) -> bool) {
        self.folders.retain(|place| stays(place.path(&self.bytes)));
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
    /// A folder in which nothing is.
    pub(crate) const EMPTY: FolderView<'static> = {
        let place = Place { path: (0, 0), device: 0, count: 0, entries: 0, names: 0, attributes: 0 };
        FolderView { bytes: &[], place }
    };

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
    pub(crate) fn is_same(&self, other: &FolderView<'a>) -> bool {
        if std::ptr::eq(self.bytes, other.bytes) && self.place == other.place {
            return true;
        }
        let raw = |folder: &FolderView<'a>| folder.bytes.get(folder.place.entries..folder.place.attributes);
        self.device() == other.device()
            && self.len() == other.len()
            && raw(self) == raw(other)
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

    /// Those of them that are held.
    pub(crate) fn held_folders(&self) -> impl Iterator<Item = Seen<'a>> + use<'a> {
        self.folders().filter(|seen| seen.entry.is_held())
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
    /// The paths of the folders, and what stands in the table of each.
    table: Vec<(Vec<u8>, [u64; 5])>,
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
        Writer { bytes, table: Vec::new(), names: Vec::new(), extras: Vec::new() }
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
        let numbers = [u64::from(count), device, entries as u64, names as u64, attributes as u64];
        self.table.push((path.to_vec(), numbers));
    }

    /// The finished manifest.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let at = self.bytes.len() as u64;
        self.bytes[20..24].copy_from_slice(&(self.table.len() as u32).to_le_bytes());
        self.bytes[24..32].copy_from_slice(&at.to_le_bytes());
        self.table.sort_unstable();
        for (path, [count, rest @ ..]) in &self.table {
            self.bytes.extend_from_slice(&(path.len() as u32).to_le_bytes());
            self.bytes.extend_from_slice(&(*count as u32).to_le_bytes());
            for number in rest {
                self.bytes.extend_from_slice(&number.to_le_bytes());
            }
            self.bytes.extend_from_slice(path);
        }
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

    #[test]
    fn what_is_written_is_read_again_in_the_order_of_the_paths() {
        let entry = Entry { mode: 0o100644, size: 5, hash: [7; 32], ..Entry::ABSENT };
        let attributes = vec![(b"user.a".to_vec(), b"1".to_vec()), (b"user.b".to_vec(), Vec::new())];
        let listing = Listing {
            device: 3,
            entries: vec![
                Listed { name: b"a".to_vec(), entry, attributes },
                Listed { name: b"b\xff".to_vec(), entry, attributes: Attributes::new() },
            ],
        };
        let mut writer = Writer::new(Some((4, 1)));
        writer.folder(b"/t", &listing);
        writer.folder(b"", &Listing::default());
        let layer = Layer::parse(writer.finish(), 9, Path::new("m")).unwrap();
        assert_eq!((layer.number(), layer.base(), layer.depth(), layer.len()), (9, Some(4), 2, 2));
        assert_eq!(layer.folders().map(|(path, _)| path).collect::<Vec<_>>(), [b"".as_slice(), b"/t"]);
        assert_eq!(layer.folder(b"/t").unwrap().to_listing(), listing);
        assert!(layer.folder(b"/u").is_none());
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let mut writer = Writer::new(None);
        let entry = Entry { mode: 0o100644, size: 1, hash: [7; 32], ..Entry::ABSENT };
        let entries = vec![Listed { name: b"/a".to_vec(), entry, attributes: Attributes::new() }];
        writer.folder(b"", &Listing { device: 1, entries });
        let bytes = writer.finish();
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 1;
            assert!(Layer::parse(broken, 1, Path::new("m")).is_err(), "byte {at}");
        }
        for length in 0..bytes.len() {
            assert!(Layer::parse(bytes[..length].to_vec(), 1, Path::new("m")).is_err());
        }
    }
}
