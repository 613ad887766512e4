//! Looking at a tree: every folder is listed, and every entry compared with what is known of it. Several threads share the
//! folders. The system names the entries of a folder in the same order each time, so what is expected next usually comes
//! next, and an unchanged folder costs nothing but the questions to the system.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::entry::{Entry, Flags, Kind, Moment};
use crate::error::VaultError;
use crate::git_paths::{GitPart, git_part};
use crate::layer::{FolderView, Listed, Listing, attributes};
use crate::manifest::{Manifest, join};
use crate::policy::{self, Policy};
use crate::threads::{at_once, lock, threads};
use crate::tree;
use crate::watch::{Progress, Stage, Watch};

/// So few folders are looked at faster than threads begin.
const WORTH_SHARING: usize = 16;
/// Whoever watches is asked once in so many folders.
const ASK_EVERY: u64 = 64;

/// A folder that is not as it is known.
#[derive(Debug)]
pub(crate) struct Fresh {
    pub(crate) path: Vec<u8>,
    pub(crate) listing: Listing,
    /// Which of its entries have a content that nobody knows yet.
    pub(crate) unread: Vec<usize>,
}

/// What was seen of a tree.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub(crate) fresh: Vec<Fresh>,
    /// Files, links and folders.
    pub(crate) entries: u64,
    /// The sum of the sizes of the files.
    pub(crate) bytes: u64,
    /// What the unread ones would take.
    pub(crate) unread: u64,
    /// Entries that are not held.
    pub(crate) gaps: Vec<(Vec<u8>, Flags, Kind)>,
    /// Folders that went while they were looked at.
    pub(crate) vanished: Vec<Vec<u8>>,
    /// Folders that could not be opened.
    pub(crate) closed: Vec<Vec<u8>>,
}

/// Which folders are looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Extent<'a> {
    /// All that the scopes reach.
    Everything,
    /// These, and those that nothing is known of; in all others nothing changed.
    Only(&'a [Vec<u8>]),
}

/// Looks at all scopes, as far as they are to be looked at.
pub(crate) fn walk(
    scopes: &[Vec<u8>],
    extent: Extent<'_>,
    known: &Manifest,
    policy: &Policy<'_>,
    begun: Moment,
    watch: &dyn Watch,
) -> Result<Walked, VaultError> {
    let walker = Walker {
        extent,
        mounts: tree::mounts_below(scopes),
        known,
        policy,
        begun,
        watch,
        queue: Mutex::default(),
        news: Condvar::new(),
        is_over: AtomicBool::new(false),
        looked_at: AtomicU64::new(0),
    };
    let mut walked = walker.scopes(scopes)?;
    let threads = match extent {
        Extent::Only(folders) if folders.len() < WORTH_SHARING => 1,
        Extent::Everything | Extent::Only(_) => threads(),
    };
    at_once(threads, || walker.work()).into_iter().try_for_each(|part| {
        walked.add(part?);
        Ok(())
    })?;
    Ok(walked)
}

impl Walked {
    fn add(&mut self, part: Walked) {
        let Walked { fresh, entries, bytes, unread, gaps, vanished, closed } = part;
        self.fresh.extend(fresh);
        self.entries += entries;
        self.bytes += bytes;
        self.unread += unread;
        self.gaps.extend(gaps);
        self.vanished.extend(vanished);
        self.closed.extend(closed);
    }
}

/// A folder that waits to be looked at.
struct Waiting {
    path: Vec<u8>,
    device: u64,
    /// Everything in it is taken.
    is_free: bool,
}

/// The folders that wait, and how many are still being looked at.
#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// Where git keeps its objects: looked at when all else was, so that no reference is newer than they are.
    late: Vec<Waiting>,
    at_work: usize,
}

struct Walker<'a> {
    extent: Extent<'a>,
    /// Where something else is mounted.
    mounts: HashSet<Vec<u8>>,
    known: &'a Manifest,
    policy: &'a Policy<'a>,
    begun: Moment,
    watch: &'a dyn Watch,
    queue: Mutex<Queue>,
    news: Condvar,
    is_over: AtomicBool,
    looked_at: AtomicU64,
}

/// What one thread needs again and again.
struct Desk {
    buffer: Vec<MaybeUninit<u8>>,
    names: Vec<u8>,
    /// Each name's end, what is there now, what it takes of the disk, and where it is known.
    seen: Vec<(usize, Entry, u64, Option<usize>)>,
    walked: Walked,
    next: Vec<Waiting>,
}

impl Walker<'_> {
    /// The scopes themselves, as the entries of the folder without a path.
    fn scopes(&self, scopes: &[Vec<u8>]) -> Result<Walked, VaultError> {
        let known = self.known.folder(b"");
        let mut walked = Walked::default();
        let mut fresh = Fresh { path: Vec::new(), listing: Listing::default(), unread: Vec::new() };
        let mut is_same = known.is_some_and(|known| known.len() == scopes.len());
        let mut waiting = Vec::new();
        for (number, path) in scopes.iter().enumerate() {
            let (mut entry, blocks, device, folder) = match scope(path) {
                Ok(Some((folder, entry, blocks, device))) => (entry, blocks, device, Some(folder)),
                Ok(None) => (Entry::ABSENT, 0, 0, None),
                Err(error) => {
                    use std::os::unix::ffi::OsStrExt;
                    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
                    return Err(VaultError::io("look at", path)(error));
                }
            };
            if self.policy.is_never(path) || self.policy.is_own(path) {
                entry.flags = entry.flags.with(Flags::NEVER);
            }
            let in_place = known.and_then(|known| known.get(number)).filter(|old| old.name == path);
            is_same &= in_place.is_some();
            // What is a scope now may have been inside one before.
            let old = in_place.or_else(|| self.known.find(path));
            let mut listed = Listed { name: path.clone(), entry, attributes: Vec::new() };
            match old {
                Some(old) if self.is_same(&old.entry, &listed.entry) => {
                    listed.entry = old.entry;
                    listed.attributes = attributes(old.attributes);
                }
                Some(_) | None => {
                    is_same = false;
                    let folder = folder.as_ref().map(AsFd::as_fd);
                    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                    if let Some(folder) = folder.filter(|_| entry.kind() == Kind::Folder) {
                        add_folder_attributes(folder, name, &mut listed);
                    }
                    listed.entry.mark_racy_unless_folder(self.begun);
                    if needs_reading(&listed.entry) {
                        walked.unread += blocks;
                        fresh.unread.push(number);
                    }
                }
            }
            walked.count(path, &listed.entry);
            if self.is_looked_at(path, &listed.entry) {
                let is_free = policy::is_inside_rebuildable(path);
                waiting.push(Waiting { path: path.clone(), device, is_free });
            }
            fresh.listing.entries.push(listed);
        }
        if !is_same {
            walked.fresh.push(fresh);
        }
        let mut queue = lock(&self.queue);
        queue.waiting = waiting;
        if let Extent::Only(folders) = self.extent {
            let known = folders.iter().filter_map(|path| Some((path, self.known.folder(path)?)));
            let device = |(path, known): (&Vec<u8>, FolderView<'_>)| Waiting {
                path: path.clone(),
                device: known.device(),
                is_free: policy::is_inside_rebuildable(path),
            };
            queue.waiting.extend(known.map(device));
        }
        drop(queue);
        Ok(walked)
    }

    /// One thread: takes folder after folder until there is none left and nobody could find more.
    fn work(&self) -> Result<Walked, VaultError> {
        let mut desk = Desk {
            buffer: vec![MaybeUninit::uninit(); 64 << 10],
            names: Vec::new(),
            seen: Vec::new(),
            walked: Walked::default(),
            next: Vec::new(),
        };
        let mut done = false;
        while let Some(folder) = self.take(done, &mut desk.next) {
            done = true;
            self.look_at(folder, &mut desk);
            let looked_at = self.looked_at.fetch_add(1, Ordering::Relaxed);
            if looked_at.is_multiple_of(ASK_EVERY) {
                let progress = Progress { stage: Stage::Looking, done: desk.walked.entries, of: 0, bytes: 0 };
                if !self.watch.goes_on(progress) {
                    self.is_over.store(true, Ordering::Relaxed);
                    self.news.notify_all();
                }
            }
        }
        match self.is_over.load(Ordering::Relaxed) {
            true => Err(VaultError::Stopped),
            false => Ok(desk.walked),
        }
    }

    /// The next folder, after handing in those that were found; waits while others may still find some.
    fn take(&self, was_at_work: bool, found: &mut Vec<Waiting>) -> Option<Waiting> {
        let mut queue = lock(&self.queue);
        queue.at_work -= usize::from(was_at_work);
        let more = found.len();
        for folder in found.drain(..) {
            match is_git_objects(&folder.path) {
                true => queue.late.push(folder),
                false => queue.waiting.push(folder),
            }
        }
        if more > 1 || queue.at_work == 0 {
            self.news.notify_all();
        }
        loop {
            if self.is_over.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(folder) = queue.waiting.pop() {
                queue.at_work += 1;
                return Some(folder);
            }
            if queue.at_work == 0 {
                self.news.notify_all();
                if queue.late.is_empty() {
                    return None;
                }
                queue.waiting = std::mem::take(&mut queue.late);
                continue;
            }
            queue = self.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn look_at(&self, folder: Waiting, desk: &mut Desk) {
        let opened = tree::open_folder(&folder.path)
            .and_then(|opened| tree::names(&opened, &mut desk.buffer, &mut desk.names).map(|()| opened));
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) if is_gone(&error) => return desk.walked.vanished.push(folder.path),
            Err(_) => return desk.walked.closed.push(folder.path),
        };
        let known = self.known.folder(&folder.path);
        let found = desk.next.len();
        let Some(is_same) = self.compare(&folder, &opened, known, desk) else {
            desk.next.truncate(found);
            return desk.walked.closed.push(folder.path);
        };
        if !is_same {
            let fresh = self.list(&folder, &opened, known, desk);
            desk.walked.fresh.push(fresh);
        }
    }

    /// Asks the system about each entry. Tells whether the whole folder is as it is known; nothing where the system does not
    /// answer, because what cannot be seen must not be taken for gone.
    fn compare(
        &self,
        folder: &Waiting,
        opened: &OwnedFd,
        known: Option<FolderView<'_>>,
        desk: &mut Desk,
    ) -> Option<bool> {
        let mut is_same = known.is_some_and(|known| known.device() == folder.device);
        let known_len = known.map_or(0, |known| known.len());
        let mut expected = 0;
        let mut by_name: Option<HashMap<&[u8], usize>> = None;
        let mut matched = 0;
        let mut start = 0;
        desk.seen.clear();
        while let Ok(name) = CStr::from_bytes_until_nul(&desk.names[start..]) {
            start += name.to_bytes_with_nul().len();
            // What went between listing and looking was never there.
            let Some(stat) = tree::stat(opened, name).ok()? else { continue };
            let mut entry = Entry::of(&stat);
            let bare = name.to_bytes();
            let is_elsewhere = entry.kind() == Kind::Folder && device(&stat) != folder.device;
            let is_mount = || !self.mounts.is_empty() && self.mounts.contains(&join(&folder.path, bare));
            if is_elsewhere || is_mount() {
                entry.flags = entry.flags.with(Flags::MOUNTED);
            } else {
                let flags = self.policy.flags(opened, &folder.path, bare, &entry, folder.is_free);
                entry.flags = entry.flags.with(flags);
            }
            let found = known.and_then(|known| {
                let next = known.get(expected).filter(|old| old.name == bare);
                let found = match next {
                    Some(old) => Some((expected, old)),
                    None => {
                        is_same = false;
                        let index = by_name.get_or_insert_with(|| {
                            known.iter().enumerate().map(|(at, old)| (old.name, at)).collect()
                        });
                        index.get(bare).and_then(|at| Some((*at, known.get(*at)?)))
                    }
                };
                expected = found.map_or(expected, |(at, _)| at + 1);
                found
            });
            matched += usize::from(found.is_some());
            let (old, at) = match found {
                Some((at, old)) if self.is_same(&old.entry, &entry) => (Some(old.entry), Some(at)),
                Some(_) | None => (None, None),
            };
            is_same &= old.is_some();
            let entry = old.unwrap_or(entry);
            let path = || join(&folder.path, bare);
            if entry.kind() == Kind::Folder {
                let path = path();
                if self.is_looked_at(&path, &entry) {
                    desk.next.push(Waiting { path, device: folder.device, is_free: folder.is_free });
                }
            }
            desk.walked.count_at(path, &entry);
            desk.seen.push((start, entry, blocks(&stat), at));
        }
        Some(is_same && matched == known_len)
    }

    /// Writes down a folder that changed.
    fn list(
        &self,
        folder: &Waiting,
        opened: &OwnedFd,
        known: Option<FolderView<'_>>,
        desk: &mut Desk,
    ) -> Fresh {
        let mut fresh = Fresh {
            path: folder.path.clone(),
            listing: Listing { device: folder.device, entries: Vec::with_capacity(desk.seen.len()) },
            unread: Vec::new(),
        };
        for (number, (end, entry, blocks, at)) in desk.seen.iter().enumerate() {
            let (names, _) = desk.names.split_at(*end - 1);
            let name = names.rsplit(|byte| *byte == 0).next().unwrap_or_default();
            let old = known.zip(*at).and_then(|(known, at)| known.get(at));
            let mut listed = Listed { name: name.to_vec(), entry: *entry, attributes: Vec::new() };
            match old {
                Some(old) => listed.attributes = attributes(old.attributes),
                None if entry.kind() == Kind::Folder => add_folder_attributes(opened, name, &mut listed),
                None => {
                    listed.entry.mark_racy_unless_folder(self.begun);
                    if needs_reading(entry) {
                        desk.walked.unread += blocks;
                        fresh.unread.push(number);
                    }
                }
            }
            fresh.listing.entries.push(listed);
        }
        fresh
    }

    /// Is what lies in an entry looked at, too?
    fn is_looked_at(&self, path: &[u8], entry: &Entry) -> bool {
        let is_meant = match self.extent {
            Extent::Everything => true,
            Extent::Only(_) => self.known.folder(path).is_none(),
        };
        is_meant && entry.kind() == Kind::Folder && entry.is_held()
    }

    /// Is an entry still what is known of it, and taken or left out for the same reason?
    fn is_same(&self, old: &Entry, now: &Entry) -> bool {
        const BY_NAME: u16 = Flags::REBUILDABLE.0 | Flags::NEVER.0 | Flags::MOUNTED.0;
        const LOST: u16 = Flags::UNREADABLE.0 | Flags::UNSTABLE.0;
        let same_rule = old.flags.0 & BY_NAME == now.flags.0 & BY_NAME;
        same_rule && old.flags.0 & LOST == 0 && old.is_untouched(now)
    }
}

impl Walked {
    fn count(&mut self, path: &[u8], entry: &Entry) {
        self.count_at(|| path.to_vec(), entry);
    }

    fn count_at(&mut self, path: impl FnOnce() -> Vec<u8>, entry: &Entry) {
        match entry.kind() {
            Kind::Absent => return,
            Kind::File => self.bytes += entry.size,
            Kind::Folder | Kind::Link | Kind::Fifo | Kind::Special => {}
        }
        self.entries += 1;
        if !entry.is_held() {
            self.gaps.push((path(), entry.flags, entry.kind()));
        }
    }
}

impl Entry {
    /// Folders are listed each time, so nothing in them can change unseen.
    fn mark_racy_unless_folder(&mut self, begun: Moment) {
        if self.kind() != Kind::Folder {
            self.mark_racy(begun);
        }
    }
}

/// Is there a content that has to be read?
fn needs_reading(entry: &Entry) -> bool {
    matches!(entry.kind(), Kind::File | Kind::Link) && entry.is_held()
}

fn add_folder_attributes(folder: impl AsFd, name: &[u8], listed: &mut Listed) {
    if !listed.entry.is_held() {
        return;
    }
    let found = match tree::open_child(folder, name).and_then(tree::attributes) {
        Ok(found) => found,
        // That is found out when it is listed.
        Err(error) if is_gone(&error) => return,
        Err(_) => {
            listed.entry.flags = listed.entry.flags.with(Flags::UNREADABLE);
            return;
        }
    };
    if !found.is_empty() {
        listed.entry.flags = listed.entry.flags.with(Flags::ATTRIBUTES);
    }
    listed.attributes = found;
}

/// What is at a scope: the folder that holds it, the entry, what it takes of the disk and the filesystem it lies on.
fn scope(path: &[u8]) -> io::Result<Option<(OwnedFd, Entry, u64, u64)>> {
    let at = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    let parent: &[u8] = if at == 0 { b"/" } else { &path[..at] };
    let folder = match tree::open_folder(parent) {
        Err(error) if is_gone(&error) => return Ok(None),
        folder => folder?,
    };
    let found = tree::stat(&folder, &path[at + 1..])?;
    Ok(found.map(|stat| (folder, Entry::of(&stat), blocks(&stat), device(&stat))))
}

/// Is a folder the one that holds all objects of a repository?
fn is_git_objects(path: &[u8]) -> bool {
    git_part(path) == GitPart::Objects && path.ends_with(b"/objects")
}

#[allow(clippy::unnecessary_cast, reason = "the numbers' types differ from one system to the next")]
fn device(stat: &rustix::fs::Stat) -> u64 {
    stat.st_dev as u64
}

/// What keeping it could take: holes take nothing.
#[allow(clippy::unnecessary_cast, reason = "the numbers' types differ from one system to the next")]
fn blocks(stat: &rustix::fs::Stat) -> u64 {
    (stat.st_size as u64).min((stat.st_blocks as u64).saturating_mul(512).max(4096))
}

/// Something else is there by now, or nothing.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    error.kind() == io::ErrorKind::NotFound
        || [rustix::io::Errno::NOTDIR, rustix::io::Errno::LOOP]
            .iter()
            .any(|gone| code == Some(gone.raw_os_error()))
}
