//! Putting contents away: what the walk found new is read, named by its hash, and written into one pack. Files that change
//! meanwhile are read again; what never holds still is marked, not guessed.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use rustix::fs::{SeekFrom, fstat, seek};
use rustix::io::Errno;

use crate::entry::{Entry, Flags, HOLE, Hash, Kind, Moment};
use crate::error::VaultError;
use crate::git_paths::{GitPart, git_folder, git_part};
use crate::layer::Listed;
use crate::pack::{Batch, LONGEST, Look, PackWriter, Packs};
use crate::threads::{at_once, lock, threads};
use crate::tree;
use crate::walk::{Fresh, is_gone};
use crate::watch::{Progress, Stage, Watch};

/// The length of one part of a big file.
pub(crate) const CHUNK: usize = 1 << 20;
/// What is longer is kept in parts.
pub(crate) const BIG: u64 = 4 << 20;
/// What gathers before it is written.
const BATCH: usize = 4 << 20;
/// How often a file that changes is read before it is given up.
const TRIES: usize = 3;
/// So few files are read faster than threads begin.
const WORTH_SHARING: usize = 8;
/// Whoever watches is asked once in so many files or parts.
const ASK_EVERY: u64 = 64;

/// Where contents go.
pub(crate) enum Destination<'a> {
    /// Into a pack, unless a pack holds them already.
    Pack { writer: &'a PackWriter, held: &'a Packs, look: Look, compress: bool },
    /// Nowhere: only their hashes are wanted.
    Nowhere,
}

/// Reads contents.
pub(crate) struct Reading<'a> {
    destination: Destination<'a>,
    begun: Moment,
    watch: &'a dyn Watch,
    /// What has been written, or is about to be.
    written: Mutex<HashSet<Hash>>,
    is_over: AtomicBool,
    is_unsettled: AtomicBool,
    /// Repositories in which git was at work meanwhile.
    disturbed: Mutex<BTreeSet<Vec<u8>>>,
    done: AtomicU64,
    of: AtomicU64,
    bytes: AtomicU64,
}

/// What became of one file.
enum Outcome {
    Kept,
    /// It is to be kept in parts.
    Big,
    /// Something else is there by now, or nothing.
    Gone,
    Lost(Flags),
}

/// What one thread needs again and again.
#[derive(Default)]
struct Desk {
    batch: Batch,
    content: Vec<u8>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(destination: Destination<'a>, begun: Moment, watch: &'a dyn Watch) -> Reading<'a> {
        Reading {
            destination,
            begun,
            watch,
            written: Mutex::default(),
            is_over: AtomicBool::new(false),
            is_unsettled: AtomicBool::new(false),
            disturbed: Mutex::default(),
            done: AtomicU64::new(0),
            of: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Reads everything that is unread.
    pub(crate) fn read(&self, fresh: Vec<Fresh>) -> Result<Vec<Fresh>, VaultError> {
        let unread: usize = fresh.iter().map(|fresh| fresh.unread.len()).sum();
        self.of.fetch_add(unread as u64, Ordering::Relaxed);
        self.is_unsettled.store(false, Ordering::Relaxed);
        lock(&self.disturbed).clear();
        let (waiting, mut done): (Vec<Fresh>, Vec<Fresh>) =
            fresh.into_iter().partition(|fresh| !fresh.unread.is_empty());
        let waiting = Mutex::new(waiting);
        let threads = if unread > WORTH_SHARING { threads() } else { 1 };
        for part in self.together(threads, |desk| self.folders(&waiting, desk))? {
            done.extend(part);
        }
        for fresh in &mut done {
            for number in std::mem::take(&mut fresh.unread) {
                self.big(&fresh.path, &mut fresh.listing.entries[number])?;
            }
        }
        Ok(done)
    }

    /// Has something gone while it was read, or was git at work? Then the tree has to be looked at again.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.is_unsettled.load(Ordering::Relaxed)
    }

    /// The folders of git that changed while they were read.
    pub(crate) fn disturbed(&self) -> BTreeSet<Vec<u8>> {
        lock(&self.disturbed).clone()
    }

    /// Lets all threads do the same, and writes what each of them gathered.
    fn together<T: Send>(
        &self,
        threads: usize,
        work: impl Fn(&mut Desk) -> Result<T, VaultError> + Sync,
    ) -> Result<Vec<T>, VaultError> {
        let one = || {
            let mut desk = Desk::default();
            let done = work(&mut desk).and_then(|done| self.flush(&mut desk.batch).map(|()| done));
            if done.is_err() {
                self.is_over.store(true, Ordering::Relaxed);
            }
            done
        };
        let all = at_once(threads, one);
        // What stopped the first one is the reason; that the others were ended then is none.
        let (ended, all): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|part| matches!(part, Err(VaultError::Stopped)));
        all.into_iter().chain(ended).collect()
    }

    /// One thread: takes folder after folder.
    fn folders(&self, waiting: &Mutex<Vec<Fresh>>, desk: &mut Desk) -> Result<Vec<Fresh>, VaultError> {
        let mut done = Vec::new();
        loop {
            // The lock must be free again while the folder is read.
            let next = lock(waiting).pop();
            let Some(mut fresh) = next else { return Ok(done) };
            self.folder(&mut fresh, desk)?;
            done.push(fresh);
        }
    }

    /// Reads the small files and links of a folder; big files stay unread.
    fn folder(&self, fresh: &mut Fresh, desk: &mut Desk) -> Result<(), VaultError> {
        let mut big = Vec::new();
        let git = git_of(&fresh.path).map(<[u8]>::to_vec);
        let mut opened: Option<OwnedFd> = None;
        for number in std::mem::take(&mut fresh.unread) {
            let listed = &mut fresh.listing.entries[number];
            let (at, name) = place(&fresh.path, &listed.name);
            let folder = match &opened {
                Some(folder) if !fresh.path.is_empty() => Ok(folder),
                // The scopes themselves lie in different folders.
                Some(_) | None => tree::open_folder(at).map(|folder| &*opened.insert(folder)),
            };
            let name = name.to_vec();
            let outcome = match folder {
                Err(_) => Outcome::Gone,
                Ok(folder) => match listed.entry.kind() {
                    Kind::Link => self.link(folder, &name, listed, desk)?,
                    Kind::File if listed.entry.size > BIG => Outcome::Big,
                    Kind::File => self.small(folder, &name, listed, git.as_deref(), desk)?,
                    Kind::Absent | Kind::Folder | Kind::Fifo | Kind::Special => Outcome::Kept,
                },
            };
            match outcome {
                Outcome::Kept => self.tell()?,
                Outcome::Big => big.push(number),
                Outcome::Gone => self.gone(listed),
                Outcome::Lost(flag) => lose(listed, flag),
            }
        }
        fresh.unread = big;
        Ok(())
    }

    fn link(
        &self,
        folder: &OwnedFd,
        name: &[u8],
        listed: &mut Listed,
        desk: &mut Desk,
    ) -> Result<Outcome, VaultError> {
        let Ok(target) = tree::target(folder, name) else { return Ok(Outcome::Gone) };
        listed.entry.hash = self.put(&target, &mut desk.batch)?;
        Ok(Outcome::Kept)
    }

    fn small(
        &self,
        folder: &OwnedFd,
        name: &[u8],
        listed: &mut Listed,
        git: Option<&[u8]>,
        desk: &mut Desk,
    ) -> Result<Outcome, VaultError> {
        for _ in 0..TRIES {
            let file = match self.open(folder, name, listed, git) {
                Ok(file) => file,
                Err(outcome) => return Ok(outcome),
            };
            if listed.entry.size > BIG {
                return Ok(Outcome::Big);
            }
            desk.content.clear();
            // One more than there should be tells whether it grew.
            let mut limited = (&file).take(listed.entry.size + 1);
            if limited.read_to_end(&mut desk.content).is_err() {
                return Ok(Outcome::Lost(Flags::UNREADABLE));
            }
            let is_whole = desk.content.len() as u64 == listed.entry.size;
            if is_whole && self.is_still(&file, listed) {
                listed.entry.hash = self.put(&desk.content, &mut desk.batch)?;
                self.bytes.fetch_add(listed.entry.size, Ordering::Relaxed);
                return Ok(Outcome::Kept);
            }
        }
        Ok(Outcome::Lost(Flags::UNSTABLE))
    }

    /// Opens a file and brings its entry up to date with what is opened.
    fn open(
        &self,
        folder: &OwnedFd,
        name: &[u8],
        listed: &mut Listed,
        git: Option<&[u8]>,
    ) -> Result<File, Outcome> {
        let unless_gone = |error: io::Error| match is_gone(&error) {
            true => Outcome::Gone,
            false => Outcome::Lost(Flags::UNREADABLE),
        };
        let file = File::from(tree::open_file(folder, name).map_err(unless_gone)?);
        let mut now = fstat(&file).map(|stat| Entry::of(&stat)).map_err(|errno| unless_gone(errno.into()))?;
        if now.kind() != Kind::File {
            return Err(Outcome::Gone);
        }
        if !now.has_same_stat(&listed.entry) {
            // A reference must not be newer than the objects that were listed.
            if let Some(git) = git {
                self.is_unsettled.store(true, Ordering::Relaxed);
                lock(&self.disturbed).insert(git.to_vec());
            }
            now.mark_racy(self.begun);
            listed.entry = now;
        }
        let attributes = tree::attributes(&file).map_err(|_| Outcome::Lost(Flags::UNREADABLE))?;
        listed.entry.flags = match attributes.is_empty() {
            true => listed.entry.flags.without(Flags::ATTRIBUTES),
            false => listed.entry.flags.with(Flags::ATTRIBUTES),
        };
        listed.attributes = attributes;
        Ok(file)
    }

    /// Has a file not changed while it was read?
    fn is_still(&self, file: &File, listed: &Listed) -> bool {
        fstat(file).is_ok_and(|stat| Entry::of(&stat).has_same_stat(&listed.entry))
    }

    /// Keeps a big file in parts, which all threads share.
    fn big(&self, at: &[u8], listed: &mut Listed) -> Result<(), VaultError> {
        let (at, name) = place(at, &listed.name);
        let (at, name) = (at.to_vec(), name.to_vec());
        let git = git_of(&at);
        for _ in 0..TRIES {
            let file = tree::open_folder(&at).map_err(|_| Outcome::Gone);
            let file = match file.and_then(|folder| self.open(&folder, &name, listed, git)) {
                Ok(file) => file,
                Err(Outcome::Lost(flag)) => {
                    lose(listed, flag);
                    return Ok(());
                }
                Err(Outcome::Gone | Outcome::Kept | Outcome::Big) => {
                    self.gone(listed);
                    return Ok(());
                }
            };
            let Some(hashes) = self.parts(&file, &listed.entry)? else {
                lose(listed, Flags::UNREADABLE);
                return Ok(());
            };
            if self.is_still(&file, listed) {
                let mut batch = Batch::default();
                listed.entry.hash = self.put(&hashes.concat(), &mut batch)?;
                listed.entry.flags = listed.entry.flags.with(Flags::CHUNKED);
                self.flush(&mut batch)?;
                return self.tell();
            }
        }
        lose(listed, Flags::UNSTABLE);
        Ok(())
    }

    /// The hashes of all parts of a file; nothing where it cannot be read.
    fn parts(&self, file: &File, entry: &Entry) -> Result<Option<Vec<Hash>>, VaultError> {
        let count = usize::try_from(entry.size.div_ceil(CHUNK as u64)).unwrap_or(usize::MAX);
        if count > LONGEST / HOLE.len() {
            return Ok(None);
        }
        let has_data = match entry.flags.has(Flags::SPARSE) {
            true => with_data(file, entry.size, count),
            false => vec![true; count],
        };
        let next = AtomicUsize::new(0);
        let is_unreadable = AtomicBool::new(false);
        let parts = self.together(threads(), |desk| {
            let mut hashed: Vec<(usize, Hash)> = Vec::new();
            desk.content.resize(CHUNK, 0);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count || is_unreadable.load(Ordering::Relaxed) {
                    return Ok(hashed);
                }
                if !has_data[number] {
                    continue;
                }
                let from = number as u64 * CHUNK as u64;
                let length = usize::try_from(entry.size - from).unwrap_or(CHUNK).min(CHUNK);
                let content = &mut desk.content[..length];
                if file.read_exact_at(content, from).is_err() {
                    is_unreadable.store(true, Ordering::Relaxed);
                    continue;
                }
                if content.iter().all(|byte| *byte == 0) {
                    continue;
                }
                hashed.push((number, self.put(&desk.content[..length], &mut desk.batch)?));
                self.bytes.fetch_add(length as u64, Ordering::Relaxed);
                if (number as u64).is_multiple_of(ASK_EVERY) {
                    self.ask()?;
                }
            }
        })?;
        // What was cut short meanwhile cannot be read, and is tried again.
        let mut hashes = vec![HOLE; count];
        for (number, hash) in parts.into_iter().flatten() {
            hashes[number] = hash;
        }
        let is_short = is_unreadable.load(Ordering::Relaxed)
            && fstat(file).is_ok_and(|stat| Entry::of(&stat).size >= entry.size);
        Ok((!is_short).then_some(hashes))
    }

    /// Names a content, and keeps it where nobody does yet.
    fn put(&self, content: &[u8], batch: &mut Batch) -> Result<Hash, VaultError> {
        let hash = *blake3::hash(content).as_bytes();
        match &self.destination {
            Destination::Nowhere => {}
            Destination::Pack { held, look, compress, .. } => {
                if lock(&self.written).insert(hash) && !held.has(&hash, *look) {
                    batch.add(hash, content, *compress);
                }
                if batch.len() >= BATCH {
                    self.flush(batch)?;
                }
            }
        }
        Ok(hash)
    }

    fn flush(&self, batch: &mut Batch) -> Result<(), VaultError> {
        match &self.destination {
            Destination::Pack { writer, .. } => writer.write(batch),
            Destination::Nowhere => Ok(()),
        }
    }

    fn gone(&self, listed: &mut Listed) {
        self.is_unsettled.store(true, Ordering::Relaxed);
        lose(listed, Flags::UNSTABLE);
    }

    /// One more is done.
    fn tell(&self) -> Result<(), VaultError> {
        match self.done.fetch_add(1, Ordering::Relaxed).is_multiple_of(ASK_EVERY) {
            true => self.ask(),
            false => Ok(()),
        }
    }

    fn ask(&self) -> Result<(), VaultError> {
        let number = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let progress = Progress {
            stage: Stage::Keeping,
            done: number(&self.done),
            of: number(&self.of),
            bytes: number(&self.bytes),
        };
        let goes_on = !self.is_over.load(Ordering::Relaxed) && self.watch.goes_on(progress);
        goes_on.then_some(()).ok_or(VaultError::Stopped)
    }
}

/// What could not be kept is marked, and never taken for known.
fn lose(listed: &mut Listed, flag: Flags) {
    listed.entry.flags = listed.entry.flags.with(flag);
    listed.entry.hash = HOLE;
}

/// The folder that an entry lies in, and its name there. A scope is named by its whole path.
fn place<'p>(folder: &'p [u8], name: &'p [u8]) -> (&'p [u8], &'p [u8]) {
    match (folder, name.iter().rposition(|byte| *byte == b'/')) {
        ([], Some(0)) => (b"/", &name[1..]),
        ([], Some(at)) => (&name[..at], &name[at + 1..]),
        (folder, _) => (folder, name),
    }
}

/// The folder of git that a folder lies in, where git notes which commit is where.
fn git_of(path: &[u8]) -> Option<&[u8]> {
    git_folder(path).filter(|_| git_part(path) != GitPart::Objects)
}

/// Which parts of a sparse file hold anything. Where the system cannot tell, all of them may.
fn with_data(file: &File, size: u64, count: usize) -> Vec<bool> {
    let mut has_data = vec![false; count];
    let mut at = 0;
    while at < size {
        let data = match seek(file.as_fd(), SeekFrom::Data(at)) {
            Ok(data) => data,
            // There is none behind it.
            Err(Errno::NXIO) => return has_data,
            Err(_) => return vec![true; count],
        };
        let Ok(hole) = seek(file.as_fd(), SeekFrom::Hole(data)) else { return vec![true; count] };
        let (first, last) = (data / CHUNK as u64, hole.min(size).saturating_sub(1) / CHUNK as u64);
        for number in first..=last {
            if let Some(part) = has_data.get_mut(usize::try_from(number).unwrap_or(usize::MAX)) {
                *part = true;
            }
        }
        at = hole.max(data + 1);
    }
    has_data
}
