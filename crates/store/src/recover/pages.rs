//! The pages of a database file that SQLite may refuse to open, with those of its log laid over them. It only reads.
//!
//! SQLite's own recovery is not part of the amalgamation that the driver is built from, and reading through a damaged tree stops
//! at the first page that is gone. So pages are read one by one, and each says by itself what it is.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

/// The size of our pages.
const SIZE: usize = 4096;
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The pages of a database and of its log.
pub(super) struct Pages {
    database: File,
    log: Option<File>,
    count: u32,
    size: usize,
    /// Pages that the log holds newer versions of, and where.
    newer: HashMap<u32, u64>,
    /// Pages of the log that do not fit their checksum: what is read of them counts only where nothing else does.
    doubtful: Vec<u64>,
    /// Which page belongs to which, as far as the file says.
    has_map: bool,
}

/// What the file says a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mapped {
    Root,
    Free,
    Overflow,
    Child(u32),
    Unknown,
}

impl Pages {
    pub(super) fn open(database: &Path) -> io::Result<Pages> {
        let mut log = database.as_os_str().to_owned();
        log.push("-wal");
        let file = File::open(database)?;
        let length = file.metadata()?.len();
        let mut pages = Pages {
            database: file,
            log: File::open(log).ok(),
            count: 0,
            size: SIZE,
            newer: HashMap::new(),
            doubtful: Vec::new(),
            has_map: true,
        };
        let mut header = [0; 100];
        let is_read = read_at(&pages.database, &mut header, 0).is_ok();
        if is_read && header.starts_with(MAGIC) {
            let size = usize::from(u16::from_be_bytes([header[16], header[17]]));
            if size.is_power_of_two() && (512..=32768).contains(&size) && length.is_multiple_of(size as u64) {
                pages.size = size;
            }
            pages.has_map = header[52..56] != [0; 4];
        }
        pages.count = u32::try_from(length.div_ceil(pages.size as u64)).unwrap_or(u32::MAX);
        pages.read_log().ok();
        Ok(pages)
    }

    /// Finds the newest version of each page in the log.
    fn read_log(&mut self) -> io::Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let step = FRAME_HEADER + self.size as u64;
        let frames = log.metadata()?.len().saturating_sub(LOG_HEADER) / step;
        if frames == 0 {
            return Ok(());
        }
        let mut header = [0; LOG_HEADER as usize];
        read_at(log, &mut header, 0)?;
        let is_big = header[3] & 1 == 1;
        let is_known = matches!(word(&header, 0), 0x377f_0682 | 0x377f_0683);
        let mut before = [word(&header, 24), word(&header, 28)];
        let mut salts: Option<[u8; 8]> = is_known.then(|| array(&header[16..24]));
        let mut waiting: Vec<(u32, u64)> = Vec::new();
        let mut frame = vec![0; usize::try_from(step).unwrap_or_default()];
        for number in 0..frames {
            let offset = LOG_HEADER + number * step;
            if read_at(log, &mut frame, offset).is_err() {
                break;
            }
            let salt = array(&frame[8..16]);
            let page_at = offset + FRAME_HEADER;
            if *salts.get_or_insert(salt) != salt {
                // What was written before the log was begun anew.
                continue;
            }
            let stored = [word(&frame, 16), word(&frame, 20)];
            let sum = checksum(is_big, checksum(is_big, before, &frame[..8]), &frame[24..]);
            before = stored;
            let page = word(&frame, 0);
            if sum != stored || page == 0 {
                self.doubtful.push(page_at);
                continue;
            }
            waiting.push((page, page_at));
            // Only what was committed counts.
            if word(&frame, 4) > 0 {
                self.count = self.count.max(waiting.iter().map(|(page, _)| *page).max().unwrap_or(0));
                self.newer.extend(waiting.drain(..));
            }
        }
        Ok(())
    }

    /// The number of the last page.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// How many pages of the log cannot be trusted.
    pub(super) fn doubtful(&self) -> usize {
        self.doubtful.len()
    }

    /// How much of a page is used for content; ours reserve nothing.
    pub(super) fn usable(&self) -> usize {
        self.size
    }

    /// A page as it is now; nothing where it cannot be read.
    pub(super) fn page(&self, number: u32) -> Option<Vec<u8>> {
        let number = number.checked_sub(1)?;
        match (self.newer.get(&(number + 1)), &self.log) {
            (Some(offset), Some(log)) => self.at(log, *offset),
            (Some(_), None) | (None, _) => self.at(&self.database, u64::from(number) * self.size as u64),
        }
    }

    /// A page of the log that does not fit its checksum.
    pub(super) fn doubtful_page(&self, index: usize) -> Option<Vec<u8>> {
        self.at(self.log.as_ref()?, *self.doubtful.get(index)?)
    }

    fn at(&self, file: &File, offset: u64) -> Option<Vec<u8>> {
        let mut page = vec![0; self.size];
        // The last page may be cut off: what is left of it is read.
        let mut filled = 0;
        while filled < page.len() {
            match read_some(file, &mut page[filled..], offset + filled as u64) {
                Ok(0) | Err(_) => break,
                Ok(read) => filled += read,
            }
        }
        (filled > 0).then_some(page)
    }

    /// The root of the tree that a page belongs to; nothing where the file does not say so.
    pub(super) fn root_of(&self, page: u32) -> Option<u32> {
        let mut at = page;
        for _ in 0..32 {
            match self.mapped(at) {
                Mapped::Root => return Some(at),
                Mapped::Child(parent) => at = parent,
                Mapped::Free | Mapped::Overflow | Mapped::Unknown => return None,
            }
        }
        None
    }

    /// Was a page given up, or does it hold the rest of a long row? Whatever stands in it is no row of a table.
    pub(super) fn holds_no_rows(&self, page: u32) -> bool {
        matches!(self.mapped(page), Mapped::Free | Mapped::Overflow)
    }

    fn mapped(&self, page: u32) -> Mapped {
        if page == 1 {
            return Mapped::Root;
        }
        if !self.has_map || page < 3 {
            return Mapped::Unknown;
        }
        let span = u32::try_from(self.size / 5).unwrap_or(u32::MAX) + 1;
        let map = 2 + (page - 2) / span * span;
        if map == page {
            return Mapped::Overflow;
        }
        let Some(content) = self.page(map) else { return Mapped::Unknown };
        let at = 5 * (page - map - 1) as usize;
        let Some(entry) = content.get(at..at + 5) else { return Mapped::Unknown };
        match entry[0] {
            1 => Mapped::Root,
            2 => Mapped::Free,
            3 | 4 => Mapped::Overflow,
            5 => Mapped::Child(word(entry, 1)),
            _ => Mapped::Unknown,
        }
    }
}

/// Four bytes as a number.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |bytes| u32::from_be_bytes(array(bytes)))
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

/// The checksum of the log, going on from another one.
fn checksum(is_big: bool, from: [u32; 2], bytes: &[u8]) -> [u32; 2] {
    let [mut one, mut two] = from;
    for pair in bytes.chunks_exact(8) {
        let read = |at: usize| {
            let bytes = array(&pair[at..at + 4]);
            if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        one = one.wrapping_add(read(0)).wrapping_add(two);
        two = two.wrapping_add(read(4)).wrapping_add(one);
    }
    [one, two]
}

#[cfg(unix)]
fn read_some(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, offset)
}

#[cfg(not(unix))]
fn read_some(mut file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(offset))?;
    file.read(into)
}

fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<()> {
    let mut filled = 0;
    while filled < into.len() {
        match read_some(file, &mut into[filled..], offset + filled as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => filled += read,
        }
    }
    Ok(())
}
