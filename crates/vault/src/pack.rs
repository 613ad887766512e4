//! Packs: many contents in one file, because making a file for each would cost more than everything else. Each content
//! stands behind a header of its own, and an index at the end finds it by its hash; where the index is damaged, the headers
//! still tell. A content may stand in several packs: whoever looks for it takes the first that is sound.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread;

use rustix::io::Errno;

use crate::distrust::Distrust;
use crate::entry::Hash;
use crate::error::VaultError;
use crate::folder::{Folder, Number, Room, open_own};
use crate::threads::lock;

const MAGIC: &[u8; 8] = b"USPACK_1";
const END: &[u8; 8] = b"USPACKED";
/// Hash, length as stored, length as it is, how it is stored, a check.
const HEADER: usize = 32 + 4 + 4 + 4 + 4;
/// A row of the index: the header without its check, and where the content begins.
const ROW: usize = 32 + 4 + 4 + 4 + 8;
/// Count, where the index begins, its hash, the mark of the end.
const TRAILER: usize = 8 + 8 + 32 + 8;

/// Nothing shorter is worth compressing.
const WORTH_COMPRESSING: usize = 512;

/// So much is sent on to the disk at once while more is being written.
const AT_ONCE: u64 = 8 << 20;

/// The longest content that is stored as one.
pub(crate) const LONGEST: usize = 16 << 20;

/// How a content is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    Plain = 0,
    Lz4 = 1,
}

impl Codec {
    fn numbered(number: u32) -> Option<Codec> {
        [Codec::Plain, Codec::Lz4].into_iter().find(|codec| *codec as u32 == number)
    }
}

/// Where a content stands in its pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) hash: Hash,
    stored: u32,
    length: u32,
    codec: Codec,
    offset: u64,
}

impl Place {
    /// What it takes in its pack.
    pub(crate) fn stored(&self) -> u64 {
        u64::from(self.stored) + HEADER as u64
    }

    /// Where it stands: contents that were kept together stand together.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Is it stored as it is?
    pub(crate) fn is_plain(&self) -> bool {
        self.codec == Codec::Plain
    }

    fn header(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..32].copy_from_slice(&self.hash);
        bytes[32..36].copy_from_slice(&self.stored.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.length.to_le_bytes());
        bytes[40..44].copy_from_slice(&(self.codec as u32).to_le_bytes());
        let check = blake3::hash(&bytes[..44]);
        bytes[44..].copy_from_slice(&check.as_bytes()[..4]);
        bytes
    }

    fn row(&self) -> [u8; ROW] {
        let mut bytes = [0; ROW];
        bytes[..44].copy_from_slice(&self.header()[..44]);
        bytes[44..].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    /// Reads the part that headers and rows share.
    fn read(bytes: &[u8], offset: u64) -> Option<Place> {
        let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let (stored, length) = (number(32)?, number(36)?);
        let codec = Codec::numbered(number(40)?)?;
        let fits = stored as usize <= LONGEST && length as usize <= LONGEST;
        fits.then_some(Place { hash: bytes[..32].try_into().ok()?, stored, length, codec, offset })
    }
}

/// Contents on their way into a pack, gathered by one thread.
#[derive(Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// Offsets count from the beginning of the batch.
    places: Vec<Place>,
}

impl Batch {
    /// Adds a content. Compressed where that pays and is asked for.
    pub(crate) fn add(&mut self, hash: Hash, content: &[u8], compress: bool) {
        let packed = match compress && content.len() >= WORTH_COMPRESSING {
            true => Some(lz4_flex::block::compress(content)),
            false => None,
        };
        let (codec, bytes) = match &packed {
            Some(packed) if packed.len() < content.len() / 8 * 7 => (Codec::Lz4, packed.as_slice()),
            Some(_) | None => (Codec::Plain, content),
        };
        let place = Place {
            hash,
            stored: bytes.len() as u32,
            length: content.len() as u32,
            codec,
            offset: (self.bytes.len() + HEADER) as u64,
        };
        self.bytes.extend_from_slice(&place.header());
        self.bytes.extend_from_slice(bytes);
        self.places.push(place);
    }

    /// How many bytes wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// A pack that is being written, by several threads at once.
pub(crate) struct PackWriter {
    file: File,
    path: PathBuf,
    end: AtomicU64,
    places: Mutex<Vec<Place>>,
    is_finished: bool,
    flow: Mutex<Flow>,
    news: Condvar,
}

/// What those who write and whoever sends it on to the disk tell each other.
#[derive(Default)]
struct Flow {
    /// Nobody will write any more.
    is_over: bool,
    /// The system tells only once that something did not get there.
    failed: Option<io::Error>,
}

/// Nobody writes any more, however that came about.
struct Told<'a>(&'a PackWriter);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        lock(&self.0.flow).is_over = true;
        self.0.news.notify_one();
    }
}

/// What is not finished is removed again.
impl Drop for PackWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            let _swept_later = std::fs::remove_file(&self.path);
        }
    }
}

impl PackWriter {
    /// Begins a pack under a name that nobody looks for.
    pub(crate) fn begin(folder: &Folder) -> Result<PackWriter, VaultError> {
        let (file, path) = folder.unfinished(Room::Packs)?;
        file.write_all_at(MAGIC, 0).map_err(VaultError::io("write", &path))?;
        let end = AtomicU64::new(MAGIC.len() as u64);
        let (places, flow, news) = Default::default();
        Ok(PackWriter { file, path, end, places, is_finished: false, flow, news })
    }

    /// Lets others write so many bytes, and sends what they wrote on to the disk meanwhile: then little is left to wait for.
    pub(crate) fn beside<T>(&self, bytes: u64, write: impl FnOnce() -> T) -> T {
        if bytes < AT_ONCE {
            return write();
        }
        thread::scope(|scope| {
            scope.spawn(|| self.send_on());
            let _told_in_any_case = Told(self);
            write()
        })
    }

    fn send_on(&self) {
        let mut sent = 0;
        let mut flow = lock(&self.flow);
        while !flow.is_over && flow.failed.is_none() {
            let written = self.size();
            if written - sent < AT_ONCE {
                flow = self.news.wait(flow).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            sent = written;
            drop(flow);
            let failed = self.file.sync_data().err();
            flow = lock(&self.flow);
            flow.failed = failed;
        }
    }

    /// Writes what has gathered in a batch, and empties it.
    pub(crate) fn write(&self, batch: &mut Batch) -> Result<(), VaultError> {
        if batch.places.is_empty() {
            return Ok(());
        }
        let at = self.end.fetch_add(batch.bytes.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(&batch.bytes, at).map_err(VaultError::io("write", &self.path))?;
        let mut places = lock(&self.places);
        places.extend(batch.places.drain(..).map(|place| Place { offset: place.offset + at, ..place }));
        batch.bytes.clear();
        self.news.notify_one();
        Ok(())
    }

    /// How many bytes are in it.
    pub(crate) fn size(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Writes the index and waits until all of it is on the disk. The name under which it still hides comes back; nothing
    /// where the pack is empty.
    pub(crate) fn finish(mut self) -> Result<Option<PathBuf>, VaultError> {
        let mut places = std::mem::take(&mut *lock(&self.places));
        if places.is_empty() {
            return Ok(None);
        }
        places.sort_unstable_by_key(|place| place.hash);
        let mut tail = Vec::with_capacity(places.len() * ROW + TRAILER);
        for place in &places {
            tail.extend_from_slice(&place.row());
        }
        let hash = blake3::hash(&tail);
        let at = self.end.load(Ordering::Relaxed);
        tail.extend_from_slice(&(places.len() as u64).to_le_bytes());
        tail.extend_from_slice(&at.to_le_bytes());
        tail.extend_from_slice(hash.as_bytes());
        tail.extend_from_slice(END);
        let write = || {
            self.file.write_all_at(&tail, at)?;
            self.file.sync_data()?;
            lock(&self.flow).failed.take().map_or(Ok(()), Err)
        };
        write().map_err(VaultError::io("write", &self.path))?;
        self.is_finished = true;
        Ok(Some(self.path.clone()))
    }
}

/// A pack that can be read.
#[derive(Debug)]
pub(crate) struct Pack {
    pub(crate) number: Number,
    pub(crate) path: PathBuf,
    /// Is its index what was written? Where it is not, it may hold more than it still tells.
    pub(crate) is_whole: bool,
    /// Opened when something is read from it: a safe may have more packs than a process may have open files.
    file: OnceLock<File>,
    /// Rows sorted by hash.
    index: Vec<u8>,
}

impl Pack {
    /// Opens a pack. Where its index is damaged, what its headers still tell is used.
    pub(crate) fn open(path: PathBuf, number: Number) -> Result<Pack, VaultError> {
        let read = || -> io::Result<(File, Option<Vec<u8>>)> {
            let file = open_own(&path)?;
            let index = read_index(&file)?;
            Ok((file, index))
        };
        let (file, index) = read().map_err(VaultError::io("read", &path))?;
        let is_whole = index.is_some();
        let index = match index {
            Some(index) => index,
            None => rebuilt(&file).map_err(VaultError::io("read", &path))?,
        };
        Ok(Pack { number, path, is_whole, file: OnceLock::new(), index })
    }

    /// All contents, in the order of their hashes.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.index.chunks_exact(ROW).filter_map(read_row)
    }

    pub(crate) fn find(&self, hash: &Hash) -> Option<Place> {
        let (mut low, mut high) = (0, self.index.len() / ROW);
        while low < high {
            let middle = (low + high) / 2;
            let row = &self.index[middle * ROW..(middle + 1) * ROW];
            match row[..32].cmp(hash) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return read_row(row),
            }
        }
        None
    }

    /// Reads a content, and tells whether it is what was written.
    pub(crate) fn read(&self, place: &Place, content: &mut Vec<u8>) -> Result<(), VaultError> {
        let damaged = || VaultError::Damaged { path: self.path.clone() };
        content.resize(place.stored as usize, 0);
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let file = open_own(&self.path).map_err(VaultError::io("open", &self.path))?;
                self.file.get_or_init(|| file)
            }
        };
        match file.read_exact_at(content, place.offset) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(damaged()),
            Err(error) => return Err(VaultError::io("read", &self.path)(error)),
            Ok(()) => {}
        }
        if place.codec == Codec::Lz4 {
            *content = lz4_flex::block::decompress(content, place.length as usize).map_err(|_| damaged())?;
        }
        match blake3::hash(content).as_bytes() == &place.hash {
            true => Ok(()),
            false => Err(damaged()),
        }
    }
}

fn read_row(row: &[u8]) -> Option<Place> {
    Place::read(row, u64::from_le_bytes(row.get(44..52)?.try_into().ok()?))
}

/// The index of a pack; nothing where it is damaged.
fn read_index(file: &File) -> io::Result<Option<Vec<u8>>> {
    let size = file.metadata()?.len();
    let Some(trailer_at) = size.checked_sub(TRAILER as u64) else { return Ok(None) };
    let mut trailer = [0; TRAILER];
    file.read_exact_at(&mut trailer, trailer_at)?;
    let number =
        |at: usize| trailer[at..at + 8].iter().rev().fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    let (count, at) = (number(0), number(8));
    let length = trailer_at.checked_sub(at).filter(|length| Some(*length) == count.checked_mul(ROW as u64));
    let Some(length) = length.filter(|_| &trailer[48..] == END) else { return Ok(None) };
    let mut index = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut index, at)?;
    Ok((blake3::hash(&index).as_bytes() == &trailer[16..48]).then_some(index))
}

/// An index made from the headers, as far as they can be read one after the other.
fn rebuilt(file: &File) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    let mut at = MAGIC.len() as u64;
    let mut rows = Vec::new();
    let mut header = [0; HEADER];
    while at + HEADER as u64 <= size {
        file.read_exact_at(&mut header, at)?;
        let is_sound = blake3::hash(&header[..44]).as_bytes()[..4] == header[44..];
        let Some(place) = Place::read(&header, at + HEADER as u64).filter(|_| is_sound) else { break };
        at = place.offset + u64::from(place.stored);
        rows.push(place.row());
    }
    rows.sort_unstable();
    Ok(rows.concat())
}

fn is_short_of_room(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM].iter().any(|short| code == Some(short.raw_os_error()))
}

/// Where a content is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Everywhere,
    /// Only in packs that were opened for something else.
    AtHand,
}

/// All packs of a safe.
#[derive(Debug, Default)]
pub(crate) struct Packs {
    /// The newest first.
    all: Vec<Unopened>,
    distrust: Distrust,
}

/// A pack that is opened when somebody looks into it.
#[derive(Debug)]
struct Unopened {
    number: Number,
    path: PathBuf,
    /// One that cannot be read at all is as good as none: what it held is then missed by name.
    pack: OnceLock<Option<Pack>>,
}

impl Unopened {
    fn open(&self) -> Result<Option<&Pack>, VaultError> {
        if let Some(pack) = self.pack.get() {
            return Ok(pack.as_ref());
        }
        let pack = match Pack::open(self.path.clone(), self.number) {
            // That this process has no room for it says nothing about the pack.
            Err(VaultError::Io { source, deed, path }) if is_short_of_room(&source) => {
                return Err(VaultError::Io { source, deed, path });
            }
            pack => pack.ok(),
        };
        Ok(self.pack.get_or_init(|| pack).as_ref())
    }
}

impl Packs {
    /// All of them, none opened yet.
    pub(crate) fn list(folder: &Folder) -> Result<Packs, VaultError> {
        let mut numbers = folder.numbers(Room::Packs)?;
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        let unopened = |number| {
            let path = folder.numbered(Room::Packs, number);
            Unopened { number, path, pack: OnceLock::new() }
        };
        Ok(Packs { all: numbers.into_iter().map(unopened).collect(), distrust: Distrust::read(folder) })
    }

    /// All of them, opened.
    pub(crate) fn open(folder: &Folder) -> Result<Packs, VaultError> {
        let packs = Packs::list(folder)?;
        packs.all.iter().try_for_each(|pack| pack.open().map(drop))?;
        Ok(packs)
    }

    /// Is a content held, as far as anybody knows?
    pub(crate) fn has(&self, hash: &Hash, look: Look) -> bool {
        let found = |pack: &Unopened| match look {
            Look::Everywhere => pack.open().ok().flatten().and_then(|pack| pack.find(hash)),
            Look::AtHand => pack.pack.get().and_then(|pack| pack.as_ref()?.find(hash)),
        };
        self.all.iter().any(|pack| self.distrust.spares(hash, pack.number) && found(pack).is_some())
    }

    /// Reads a content. The error names the pack in which it is damaged.
    pub(crate) fn read(&self, hash: &Hash, content: &mut Vec<u8>) -> Result<(), VaultError> {
        let mut error = None;
        for pack in &self.all {
            let Some(pack) = pack.open()? else { continue };
            if let Some(place) = pack.find(hash) {
                match pack.read(&place, content) {
                    Ok(()) => return Ok(()),
                    Err(found) => error = Some(found),
                }
            }
        }
        Err(error.unwrap_or_else(|| VaultError::Damaged { path: PathBuf::from("packs") }))
    }

    /// Each one that is open, the newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pack> {
        self.all.iter().filter_map(|pack| pack.pack.get()?.as_ref())
    }
}
