//! The content of a file as the safe holds it: whole, or part by part with holes where there is nothing but zeros. No more
//! than one part is in memory at a time, and each is checked when it is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::entry::{Entry, Flags, HOLE};
use crate::error::VaultError;
use crate::keep::CHUNK;
use crate::pack::Packs;

/// What filesystems store at once: so much of nothing but zeros is left out.
const BLOCK: usize = 4096;

/// Does it go on?
pub(crate) type GoesOn = bool;

/// Which parts are meant: every so many, beginning with one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) first: usize,
    pub(crate) of: usize,
}

impl Share {
    pub(crate) const ALL: Share = Share { first: 0, of: 1 };
}

/// Reads the parts of a content one after the other, each with where it begins; holes are passed over.
pub(crate) fn each_part(
    packs: &Packs,
    entry: &Entry,
    share: Share,
    mut see: impl FnMut(u64, &[u8]) -> Result<GoesOn, VaultError>,
) -> Result<(), VaultError> {
    let mut content = Vec::new();
    if entry.size == 0 {
        return Ok(());
    }
    packs.read(&entry.hash, &mut content)?;
    if !entry.flags.has(Flags::CHUNKED) {
        if share.first == 0 {
            see(0, &content)?;
        }
        return Ok(());
    }
    let parts = std::mem::take(&mut content);
    let shared = parts.as_chunks::<32>().0.iter().enumerate().skip(share.first).step_by(share.of);
    for (number, part) in shared.filter(|(_, part)| **part != HOLE) {
        let at = number as u64 * CHUNK as u64;
        packs.read(part, &mut content)?;
        if content.len() as u64 > entry.size.saturating_sub(at) {
            return Err(VaultError::Damaged { path: PathBuf::from("packs") });
        }
        if !see(at, &content)? {
            break;
        }
    }
    Ok(())
}

/// The first bytes of a content, at most so many.
pub(crate) fn beginning(packs: &Packs, entry: &Entry, most: usize) -> Result<Vec<u8>, VaultError> {
    let end = usize::try_from(entry.size).unwrap_or(usize::MAX).min(most);
    let mut found = Vec::new();
    each_part(packs, entry, Share::ALL, |at, part| {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if at < end {
            found.resize(at, 0);
            found.extend_from_slice(part);
        }
        Ok(at < end)
    })?;
    found.resize(end, 0);
    Ok(found)
}

/// Writes a part of a file. Where the file has holes, what is zero is left to them.
pub(crate) fn write(file: &File, entry: &Entry, at: u64, part: &[u8]) -> io::Result<()> {
    if !entry.flags.has(Flags::SPARSE) {
        return file.write_all_at(part, at);
    }
    let is_empty = |from: usize| part[from..part.len().min(from + BLOCK)].iter().all(|byte| *byte == 0);
    let mut from = 0;
    while from < part.len() {
        let is_hole = is_empty(from);
        let mut to = from + BLOCK;
        while to < part.len() && is_empty(to) == is_hole {
            to += BLOCK;
        }
        if !is_hole {
            file.write_all_at(&part[from..to.min(part.len())], at + from as u64)?;
        }
        from = to;
    }
    Ok(())
}
