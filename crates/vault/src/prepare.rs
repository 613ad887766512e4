//! Making ready what a restore needs: every file, link and folder that will be put into a tree is built in a stage first,
//! with its final marks. Nothing of a user's is touched here. What the safe holds damaged is found here, before anything
//! depends on it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::compare::{Chosen, Reach};
use crate::content::{self, Share};
use crate::deed::{Deed, FolderMark, Keeper, Op};
use crate::entry::{Entry, Flags, Kind};
use crate::error::VaultError;
use crate::layer::{FolderView, Seen};
use crate::manifest::{Manifest, join};
use crate::marks::Marks;
use crate::pack::Packs;
use crate::plan::to_path;
use crate::restored::{Kept, KeptBecause};
use crate::stage::{Settling, Stages, name, parent};
use crate::threads::{lock, threads};
use crate::tree;
use crate::watch::{Progress, Stage as Doing, Watch};

/// Whoever watches is asked once in so many files.
const ASK_EVERY: u64 = 128;
/// For fewer deeds nobody else is called to help.
const WORTH_SHARING: usize = 8;

/// Several read and write a file that is longer.
const WORTH_SPLITTING: u64 = 32 << 20;
/// So many are waited for one by one on their way to the disk.
const FEW: usize = 16;

/// What was made ready.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// The inode that waits for each deed; nothing where the deed needs none.
    pub(crate) inodes: HashMap<usize, u64>,
    /// What cannot be made, because what the safe holds of it is damaged.
    pub(crate) kept: Vec<Kept>,
    /// Folders that get their last marks in their place: to be moved, they have to be writable.
    pub(crate) folders: Vec<FolderMark>,
    pub(crate) written: u64,
}

/// What the work is about.
pub(crate) struct Preparing<'a> {
    pub(crate) packs: &'a Packs,
    pub(crate) want: &'a Manifest,
    pub(crate) chosen: &'a Chosen,
    pub(crate) stages: &'a Stages,
    /// For each deed: the stage that it uses.
    pub(crate) places: &'a [usize],
    pub(crate) ops: &'a [Op],
    /// Names that files with several names have now, by the stage near them and the inode they had.
    pub(crate) keepers: HashMap<(usize, u64), Keeper>,
    /// How many things there are in all, for whoever watches.
    pub(crate) of: u64,
    pub(crate) watch: &'a dyn Watch,
}

enum Job {
    Op(usize),
    Folder { op: usize, path: Vec<u8>, at: Vec<u8> },
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    at_work: usize,
    error: Option<VaultError>,
}

struct Shared<'a> {
    about: &'a Preparing<'a>,
    settling: Settling,
    queue: Mutex<Queue>,
    news: Condvar,
    is_over: AtomicBool,
    files: AtomicU64,
    bytes: AtomicU64,
    found: Mutex<Found>,
    /// The name under which each file with several names is made first.
    first: Mutex<HashMap<(usize, u64), First>>,
}

/// What further names of a file are made from.
#[derive(Clone)]
enum First {
    /// A name in the tree that stays.
    Present(Keeper),
    /// A path in the stage.
    Made(Vec<u8>),
}

#[derive(Default)]
struct Found {
    prepared: Prepared,
    /// Folders that get their marks when everything in them is made: the stage, the path in it, the marks.
    folders: Vec<(usize, Vec<u8>, Marks)>,
    /// Further names of files, made when all first ones are.
    further: Vec<Further>,
    /// Moved folders that get their last marks in their place, with the number of their deed.
    moved: Vec<(usize, FolderMark)>,
}

struct Further {
    op: usize,
    path: Vec<u8>,
    at: Vec<u8>,
    entry: Entry,
    attributes: Vec<u8>,
    first: First,
}

/// Makes everything ready. When it returns, all of it is on the disk.
pub(crate) fn prepare(about: &Preparing<'_>) -> Result<Prepared, VaultError> {
    let job = |(number, op)| is_made(op).then_some(Job::Op(number));
    let mut jobs: Vec<Job> = about.ops.iter().enumerate().filter_map(job).collect();
    jobs.reverse();
    let has_trees = about.ops.iter().any(|op| is_made(op) && is_tree(op));
    let helpers = match has_trees || jobs.len() > WORTH_SHARING {
        true => threads(),
        false => 1,
    };
    let settling = if has_trees || jobs.len() > FEW { Settling::All } else { Settling::Each };
    let shared = Shared {
        about,
        settling,
        queue: Mutex::new(Queue { jobs, at_work: 0, error: None }),
        news: Condvar::new(),
        is_over: AtomicBool::new(false),
        files: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        found: Mutex::default(),
        first: Mutex::new(
            about.keepers.iter().map(|(key, keeper)| (*key, First::Present(keeper.clone()))).collect(),
        ),
    };
    thread::scope(|scope| {
        for _ in 1..helpers {
            scope.spawn(|| shared.work());
        }
        shared.work();
    });
    if let Some(error) = lock(&shared.queue).error.take() {
        return Err(error);
    }
    loop {
        let further = lock(&shared.found).further.pop();
        match further {
            Some(further) => shared.further(&further)?,
            None => break,
        }
    }
    let bytes = shared.bytes.load(Ordering::Relaxed);
    let found = shared.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Found { mut prepared, folders, moved, .. } = found;
    prepared.written = bytes;
    finish_folders(about, folders)?;
    about.stages.settle(settling)?;
    for (number, _) in about.ops.iter().enumerate().filter(|(_, op)| is_made(op)) {
        let stage = &about.stages.all[about.places[number]];
        let found =
            tree::entry(&stage.folder, &slot(number)).map_err(VaultError::io("look at", &stage.path))?;
        prepared.inodes.extend(found.map(|found| (number, found.inode)));
    }
    for (number, mark) in moved {
        let inode = prepared.inodes.get(&number).copied().unwrap_or(0);
        prepared.folders.push(FolderMark { inode, ..mark });
    }
    Ok(prepared)
}

/// Does a deed need something to be made?
fn is_made(op: &Op) -> bool {
    match op.deed {
        Deed::Place | Deed::Exchange => true,
        Deed::Remove | Deed::Touch => false,
    }
}

fn is_tree(op: &Op) -> bool {
    op.want.as_ref().is_some_and(|(entry, _)| entry.kind() == Kind::Folder)
}

/// The name in its stage under which a deed finds what is ready.
pub(crate) fn slot(op: usize) -> Vec<u8> {
    op.to_string().into_bytes()
}

impl Shared<'_> {
    fn work(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if self.is_over.load(Ordering::Relaxed) || (queue.jobs.is_empty() && queue.at_work == 0) {
                self.news.notify_all();
                return;
            }
            let Some(job) = queue.jobs.pop() else {
                queue = self.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            queue.at_work += 1;
            drop(queue);
            let done = match job {
                Job::Op(number) => self.op(number),
                Job::Folder { op, path, at } => self.folder(op, &path, &at),
            };
            queue = lock(&self.queue);
            queue.at_work -= 1;
            if let Err(error) = done {
                queue.error.get_or_insert(error);
                self.is_over.store(true, Ordering::Relaxed);
            }
            self.news.notify_all();
        }
    }

    fn add(&self, job: Job) {
        lock(&self.queue).jobs.push(job);
        self.news.notify_one();
    }

    fn op(&self, number: usize) -> Result<(), VaultError> {
        let op = &self.about.ops[number];
        let Some((entry, attributes)) = &op.want else { return Ok(()) };
        let stage = &self.about.stages.all[self.about.places[number]];
        let slot = slot(number);
        let seen = Seen { name: &slot, entry: *entry, attributes };
        self.thing(number, &stage.folder, &op.path, &slot, &seen)
    }

    /// Everything in a folder that is made whole.
    fn folder(&self, op: usize, path: &[u8], at: &[u8]) -> Result<(), VaultError> {
        let stage = &self.about.stages.all[self.about.places[op]];
        let folder = fs::openat(&stage.folder, at, tree::FOLDER, Mode::empty())
            .map_err(|error| VaultError::io("open", &stage.path)(error.into()))?;
        for seen in self.about.want.folder(path).iter().flat_map(FolderView::iter) {
            let below = join(path, seen.name);
            if !seen.entry.is_held() || self.about.chosen.reach(&below) == Reach::Outside {
                continue;
            }
            self.thing(op, &folder, &below, &join(at, seen.name), &seen)?;
        }
        Ok(())
    }

    /// Makes one thing: `path` is where it goes, `at` where in the stage it is made.
    fn thing(
        &self,
        op: usize,
        folder: &OwnedFd,
        path: &[u8],
        at: &[u8],
        seen: &Seen<'_>,
    ) -> Result<(), VaultError> {
        self.ask()?;
        if let Some(first) = self.first(op, at, seen) {
            let (path, at, attributes) = (path.to_vec(), at.to_vec(), seen.attributes.to_vec());
            lock(&self.found).further.push(Further { op, path, at, entry: seen.entry, attributes, first });
            return Ok(());
        }
        let marks = Marks::of(seen);
        match self.make(folder, path, seen, &marks) {
            Ok(()) => {}
            Err(VaultError::Damaged { .. }) => {
                let kept = Kept { path: to_path(path), because: KeptBecause::Damaged };
                lock(&self.found).prepared.kept.push(kept);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        if seen.entry.kind() == Kind::Folder {
            let place = self.about.places[op];
            let is_top = !at.contains(&b'/');
            let mut found = lock(&self.found);
            match is_top && marks.mode & 0o200 == 0 {
                true => {
                    found
                        .moved
                        .push((op, FolderMark { path: path.to_vec(), inode: 0, marks: marks.clone() }));
                    let mode = marks.mode | 0o700;
                    found.folders.push((place, at.to_vec(), Marks { mode, ..marks }));
                }
                false => found.folders.push((place, at.to_vec(), marks)),
            }
            drop(found);
            self.add(Job::Folder { op, path: path.to_vec(), at: at.to_vec() });
        }
        Ok(())
    }

    /// The name of which this is a further one; nothing where it has one name only, or is the first of several.
    fn first(&self, op: usize, at: &[u8], seen: &Seen<'_>) -> Option<First> {
        if seen.entry.links < 2 || seen.entry.kind() == Kind::Folder {
            return None;
        }
        let mut known = lock(&self.first);
        let key = (self.about.places[op], seen.entry.inode);
        let first = known.get(&key).cloned();
        if first.is_none() {
            known.insert(key, First::Made(at.to_vec()));
        }
        first
    }

    /// Makes a further name of a file; where that cannot be, a file like it.
    fn further(&self, further: &Further) -> Result<(), VaultError> {
        let stage = &self.about.stages.all[self.about.places[further.op]];
        let (new, flags) = (further.at.as_slice(), AtFlags::empty());
        let linked = match &further.first {
            First::Made(old) => fs::linkat(&stage.folder, old.as_slice(), &stage.folder, new, flags),
            First::Present(keeper) => link_present(keeper, &stage.folder, new)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        };
        match linked {
            Ok(()) => return Ok(()),
            // The disk gave out.
            Err(error @ (Errno::IO | Errno::NOSPC | Errno::DQUOT)) => {
                return Err(VaultError::io("prepare", &to_path(&further.path))(error.into()));
            }
            // Some filesystems know no further names, some files have too many, and some are not ours to name.
            Err(_) => {}
        }
        let open = || match further.at.contains(&b'/') {
            true => fs::openat(&stage.folder, parent(new), tree::FOLDER, Mode::empty()),
            false => fs::openat(&stage.folder, ".", tree::FOLDER, Mode::empty()),
        };
        let folder = open().map_err(|error| VaultError::io("open", &stage.path)(error.into()))?;
        let links = match further.first {
            // The name that was to stay is of no use: this one is the first then.
            First::Present(_) => {
                let key = (self.about.places[further.op], further.entry.inode);
                let mut known = lock(&self.first);
                if matches!(known.get(&key), Some(First::Present(_))) {
                    known.remove(&key);
                }
                further.entry.links
            }
            // Standing alone now, it is made like any other.
            First::Made(_) => 1,
        };
        let entry = Entry { links, ..further.entry };
        let seen = Seen { name: name(new), entry, attributes: &further.attributes };
        self.thing(further.op, &folder, &further.path, new, &seen)
    }

    fn ask(&self) -> Result<(), VaultError> {
        let done = self.files.fetch_add(1, Ordering::Relaxed);
        let bytes = self.bytes.load(Ordering::Relaxed);
        let progress = Progress { stage: Doing::Preparing, done, of: self.about.of, bytes };
        match !done.is_multiple_of(ASK_EVERY) || self.about.watch.goes_on(progress) {
            true => Ok(()),
            false => Err(VaultError::Stopped),
        }
    }

    fn make(&self, folder: &OwnedFd, path: &[u8], seen: &Seen<'_>, marks: &Marks) -> Result<(), VaultError> {
        let shown = to_path(path);
        let failed = || VaultError::io("prepare", &shown);
        let denied = |error: Errno| failed()(error.into());
        match seen.entry.kind() {
            Kind::File => {
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = fs::openat(folder, seen.name, flags, Mode::RUSR | Mode::WUSR).map_err(denied)?;
                let file = File::from(file);
                if let Err(error) = self.write(&file, &seen.entry, &shown) {
                    let _the_stage_goes_anyway = fs::unlinkat(folder, seen.name, AtFlags::empty());
                    return Err(error);
                }
                marks.give(&file).map_err(failed())?;
                match self.settling {
                    Settling::Each => file.sync_all().map_err(failed()),
                    Settling::All => Ok(()),
                }
            }
            Kind::Link => {
                let mut target = Vec::new();
                self.about.packs.read(&seen.entry.hash, &mut target)?;
                fs::symlinkat(target.as_slice(), folder, seen.name).map_err(denied)?;
                marks.give_by_name(folder, seen.name, false).map(drop).map_err(failed())
            }
            Kind::Folder => fs::mkdirat(folder, seen.name, Mode::RWXU).map_err(denied),
            Kind::Fifo => {
                fs::mkfifoat(folder, seen.name, Mode::RUSR).map_err(denied)?;
                marks.give_by_name(folder, seen.name, true).map(drop).map_err(failed())
            }
            Kind::Absent | Kind::Special => Ok(()),
        }
    }

    /// Writes the content of a file.
    fn write(&self, file: &File, entry: &Entry, shown: &Path) -> Result<(), VaultError> {
        let written = || VaultError::io("write", shown);
        if entry.flags.has(Flags::CHUNKED) || entry.flags.has(Flags::SPARSE) {
            file.set_len(entry.size).map_err(written())?;
        }
        let some = &|share: Share| {
            let mut parts = 0;
            content::each_part(self.about.packs, entry, share, |at, part| {
                content::write(file, entry, at, part).map_err(written())?;
                self.bytes.fetch_add(part.len() as u64, Ordering::Relaxed);
                parts += 1;
                if parts % ASK_EVERY == 0 {
                    self.ask()?;
                }
                Ok(true)
            })
        };
        let of = if entry.size >= WORTH_SPLITTING { threads() } else { 1 };
        thread::scope(|scope| {
            let others: Vec<_> =
                (1..of).map(|first| scope.spawn(move || some(Share { first, of }))).collect();
            let own = some(Share { first: 0, of });
            let joined = others.into_iter().map(|other| other.join().unwrap_or(Err(VaultError::Stopped)));
            joined.fold(own, Result::and)
        })
    }
}

/// Gives a file of the present a name in a stage. Whatever took its place meanwhile gets none.
fn link_present(keeper: &Keeper, stage: &OwnedFd, new: &[u8]) -> io::Result<()> {
    let folder = tree::open_folder(parent(&keeper.path))?;
    fs::linkat(folder, name(&keeper.path), stage, new, AtFlags::empty())?;
    let (linked, is) = (tree::entry(stage, new)?, &keeper.is);
    let is_it = |linked: Entry| (linked.inode, linked.size, linked.mtime) == (is.inode, is.size, is.mtime);
    match linked.is_some_and(is_it) {
        true => Ok(()),
        false => {
            fs::unlinkat(stage, new, AtFlags::empty())?;
            Err(Errno::STALE.into())
        }
    }
}

/// Marks the folders in the stages, those inside others first.
fn finish_folders(
    about: &Preparing<'_>,
    mut folders: Vec<(usize, Vec<u8>, Marks)>,
) -> Result<(), VaultError> {
    let depth = |at: &[u8]| at.iter().filter(|byte| **byte == b'/').count();
    folders.sort_by_key(|(_, at, _)| std::cmp::Reverse(depth(at)));
    for (place, at, marks) in folders {
        let stage = &about.stages.all[place];
        let mark = || -> io::Result<()> {
            let folder = fs::openat(&stage.folder, at.as_slice(), tree::FOLDER, Mode::empty())?;
            marks.give(&folder).map(drop)
        };
        mark().map_err(VaultError::io("prepare", &stage.path))?;
    }
    Ok(())
}
