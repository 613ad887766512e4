//! Carrying out what the journal says, name by name. Only here does a user's tree change, and only by renames and marks
//! inside the folders that the journal names: each is opened so that no link leads out of it. What is no longer what was
//! saved is put back and kept. All of it can be done again without harm.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{self, AtFlags, Mode, RenameFlags};
use rustix::io::Errno;

use crate::deed::{Deed, FolderMark};
use crate::entry::{Entry, Kind, Moment};
use crate::error::VaultError;
use crate::journal::{Journal, Old, Step};
use crate::manifest::{Manifest, join};
use crate::marks::{self, Marks};
use crate::mounts;
use crate::plan::to_path;
use crate::prepare::slot;
use crate::restored::{Kept, KeptBecause};
use crate::stage::{Stage, is_elsewhere, name, parent};
use crate::tree;
use crate::watch::{Progress, Stage as Doing, Watch};

/// Whoever watches is told once in so many steps.
const TELL_EVERY: usize = 128;

/// Why a step was not taken.
enum Hindrance {
    Kept(KeptBecause),
    /// The disk gave out: nothing further is tried.
    Stop(io::Error),
}

impl From<Errno> for Hindrance {
    fn from(error: Errno) -> Hindrance {
        match error {
            Errno::EXIST | Errno::NOENT | Errno::STALE => Hindrance::Kept(KeptBecause::ChangedMeanwhile),
            Errno::ACCESS
            | Errno::PERM
            | Errno::ROFS
            | Errno::XDEV
            | Errno::BUSY
            | Errno::LOOP
            | Errno::NOTDIR
            | Errno::ISDIR
            | Errno::NOTEMPTY
            | Errno::INVAL
            | Errno::OPNOTSUPP
            | Errno::NAMETOOLONG
            | Errno::TXTBSY
            | Errno::MLINK => Hindrance::Kept(KeptBecause::Refused),
            error => Hindrance::Stop(error.into()),
        }
    }
}

impl From<io::Error> for Hindrance {
    fn from(error: io::Error) -> Hindrance {
        match Errno::from_io_error(&error) {
            Some(error) => error.into(),
            None => Hindrance::Stop(error),
        }
    }
}

/// Takes all steps. The numbers of those that were not taken come back, with the reason.
pub(crate) fn apply(
    journal: &Journal,
    stages: &[Stage],
    present: &Manifest,
    watch: &dyn Watch,
) -> Result<Vec<(usize, KeptBecause)>, VaultError> {
    for path in &journal.above {
        make_above(path)?;
    }
    let mut hands = Hands { journal, present, folder: None };
    let mut kept = Vec::new();
    for (done, step) in journal.steps.iter().enumerate() {
        if done % TELL_EVERY == 0 {
            let of = journal.steps.len() as u64;
            // What has begun goes on to its end.
            let _it_goes_on =
                watch.goes_on(Progress { stage: Doing::Placing, done: done as u64, of, bytes: 0 });
        }
        let Some(stage) = stages.get(step.stage) else { continue };
        match hands.take(step, stage) {
            Ok(()) => {}
            Err(Hindrance::Kept(because)) => kept.push((step.number, because)),
            Err(Hindrance::Stop(error)) => return Err(stopped(&step.path, error)),
        }
    }
    Ok(kept)
}

fn stopped(path: &[u8], source: io::Error) -> VaultError {
    let deed = "finish the restore (the next command goes on with it) at";
    VaultError::Io { deed, path: to_path(path), source }
}

/// Makes a folder above a scope again. Where somebody made it meanwhile, that is fine.
fn make_above(path: &[u8]) -> Result<(), VaultError> {
    let folder = match tree::open_folder(parent(path)) {
        Err(error) if is_elsewhere(&error) => return Ok(()),
        folder => folder.map_err(|error| stopped(path, error))?,
    };
    match fs::mkdirat(&folder, name(path), Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST | Errno::ACCESS | Errno::PERM | Errno::ROFS) => Ok(()),
        Err(error) => Err(stopped(path, error.into())),
    }
}

/// Gives folders their marks, when everything in them is done. Those that did not get them come back, with the reason.
pub(crate) fn mark_folders(folders: &[FolderMark]) -> Result<Vec<Kept>, VaultError> {
    let mut kept = Vec::new();
    for FolderMark { path, inode, marks } in folders {
        match mark_folder(path, *inode, marks) {
            Ok(()) => {}
            Err(Hindrance::Kept(because)) => kept.push(Kept { path: to_path(path), because }),
            Err(Hindrance::Stop(error)) => return Err(stopped(path, error)),
        }
    }
    Ok(kept)
}

fn mark_folder(path: &[u8], inode: u64, marks: &Marks) -> Result<(), Hindrance> {
    let folder = match tree::open_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let above = tree::open_folder(parent(path))?;
            marks::open_closed(&above, name(path), inode, 0o700)?
        }
        folder => folder?,
    };
    match fs::fstat(&folder)?.st_ino == inode {
        true => Ok(marks.replace(&folder)?),
        false => Err(Hindrance::Kept(KeptBecause::ChangedMeanwhile)),
    }
}

/// What takes the steps, one after the other.
struct Hands<'a> {
    journal: &'a Journal,
    present: &'a Manifest,
    /// The folder of the last step: many have the same.
    folder: Option<(&'a [u8], OwnedFd)>,
}

impl<'a> Hands<'a> {
    fn take(&mut self, step: &'a Step, stage: &Stage) -> Result<(), Hindrance> {
        let above = parent(&step.path);
        if self.folder.as_ref().is_none_or(|(path, _)| *path != above) {
            self.folder = Some((above, tree::open_folder(above)?));
        }
        let Some((_, folder)) = &self.folder else { return Ok(()) };
        let at = At { step, stage, folder, name: name(&step.path), slot: slot(step.number), hands: self };
        match step.deed {
            Deed::Place => at.place(),
            Deed::Exchange => at.exchange(),
            Deed::Remove => at.remove(),
            Deed::Touch => at.touch(),
        }
    }
}

/// Where a step is taken.
struct At<'a> {
    step: &'a Step,
    stage: &'a Stage,
    folder: &'a OwnedFd,
    name: &'a [u8],
    slot: Vec<u8>,
    hands: &'a Hands<'a>,
}

impl At<'_> {
    fn place(&self) -> Result<(), Hindrance> {
        match self.waiting()? {
            Some(waiting) if Some(waiting.inode) == self.step.new => {
                self.openly(|| rename(&self.stage.folder, &self.slot, self.folder, self.name))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn exchange(&self) -> Result<(), Hindrance> {
        let aside = [&self.slot[..], b"-old"].concat();
        let Some(waiting) = self.waiting()? else { return Ok(()) };
        if tree::entry(&self.stage.folder, &aside)?.is_some() {
            return self.place_over(&aside);
        }
        if Some(waiting.inode) == self.step.new {
            self.check_present()?;
            let swapped = self.openly(|| self.swap());
            if matches!(swapped, Err(Hindrance::Kept(KeptBecause::Refused))) && !can_exchange(self.stage) {
                self.openly(|| rename(self.folder, self.name, &self.stage.folder, &aside))?;
                return self.place_over(&aside);
            }
            swapped?;
        }
        self.check_landed(&self.slot, || self.swap())
    }

    /// Puts what is ready where something was taken away, if that is what was saved.
    fn place_over(&self, aside: &[u8]) -> Result<(), Hindrance> {
        self.check_landed(aside, || rename(&self.stage.folder, aside, self.folder, self.name))?;
        self.place()
    }

    fn remove(&self) -> Result<(), Hindrance> {
        if self.waiting()?.is_none() {
            match self.check_present() {
                // It went by itself, or went in an earlier try.
                Err(Hindrance::Kept(KeptBecause::ChangedMeanwhile)) if self.is_gone()? => return Ok(()),
                checked => checked?,
            }
            self.openly(|| rename(self.folder, self.name, &self.stage.folder, &self.slot))?;
        }
        self.check_landed(&self.slot, || rename(&self.stage.folder, &self.slot, self.folder, self.name))
    }

    fn touch(&self) -> Result<(), Hindrance> {
        let changed = Hindrance::Kept(KeptBecause::ChangedMeanwhile);
        let (Some(marks), Some(old)) = (&self.step.marks, self.step.old) else { return Ok(()) };
        let Some(now) = tree::entry(self.folder, self.name)? else { return Err(changed) };
        let is_it = now.inode == old.inode && now.size == old.size;
        if !is_it || (now.mtime != time(&old) && now.mtime != marks.mtime) {
            return Err(changed);
        }
        match now.kind() {
            Kind::File => {
                let file = match tree::open_file(self.folder, self.name) {
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        marks::open_closed(self.folder, self.name, now.inode, now.mode)?
                    }
                    file => file?,
                };
                match fs::fstat(&file)?.st_ino == old.inode {
                    true => Ok(marks.replace(&file)?),
                    false => Err(changed),
                }
            }
            Kind::Link => Ok(marks.give_to_link(self.folder, self.name)?),
            Kind::Fifo => Ok(marks.give_to_pipe(self.folder, self.name, now.inode)?),
            Kind::Folder | Kind::Special | Kind::Absent => Ok(()),
        }
    }

    fn waiting(&self) -> io::Result<Option<Entry>> {
        tree::entry(&self.stage.folder, &self.slot)
    }

    fn is_gone(&self) -> io::Result<bool> {
        Ok(tree::entry(self.folder, self.name)?.is_none())
    }

    fn swap(&self) -> Result<(), Errno> {
        let (stage, flags) = (&self.stage.folder, RenameFlags::EXCHANGE);
        fs::renameat_with(stage, self.slot.as_slice(), self.folder, self.name, flags)
    }

    /// Is there still what was saved?
    fn check_present(&self) -> Result<(), Hindrance> {
        let now = tree::entry(self.folder, self.name)?;
        match (now, self.step.old) {
            (Some(now), Some(old)) if is_still(&now, &old) => Ok(()),
            _ => Err(Hindrance::Kept(KeptBecause::ChangedMeanwhile)),
        }
    }

    /// Is what came out of the tree what was saved? What is not goes back.
    fn check_landed(&self, slot: &[u8], back: impl FnOnce() -> Result<(), Errno>) -> Result<(), Hindrance> {
        let (Some(landed), Some(old)) = (tree::entry(&self.stage.folder, slot)?, self.step.old) else {
            return Ok(());
        };
        let is_still = is_still(&landed, &old);
        let is_whole = match landed.kind() == Kind::Folder && is_still {
            true => self.hands.is_whole_tree(&self.stage.folder, slot, &self.step.path),
            false => Ok(is_still),
        };
        let because = match is_whole {
            Ok(true) => return Ok(()),
            Ok(false) => KeptBecause::ChangedMeanwhile,
            Err(Hindrance::Kept(because)) => because,
            Err(stop @ Hindrance::Stop(_)) => return Err(stop),
        };
        back()?;
        if landed.kind() == Kind::Folder && landed.mode != old.mode {
            // It was opened to be moved.
            let folder = tree::open_child(self.folder, self.name)?;
            fs::fchmod(&folder, Mode::from_raw_mode(old.mode & 0o7777))?;
        }
        Err(Hindrance::Kept(because))
    }

    /// Does something in a folder; where that may not be written, but gets its marks at the end, it is opened first. A folder
    /// that is moved has to be writable itself.
    fn openly(&self, mut deed: impl FnMut() -> Result<(), Errno>) -> Result<(), Hindrance> {
        let first = deed();
        if first != Err(Errno::ACCESS) {
            return Ok(first?);
        }
        let is_marked = self.hands.journal.folders.iter().any(|mark| mark.path == parent(&self.step.path));
        if is_marked {
            fs::fchmod(self.folder, Mode::RWXU)?;
        }
        let moves_folder = self.step.old.is_some_and(|old| old.mode & 0o170_000 == 0o040_000);
        let inner = if moves_folder { tree::open_child(self.folder, self.name).ok() } else { None };
        let mode = inner.as_ref().map(fs::fstat).transpose()?.map(|stat| stat.st_mode & 0o7777);
        if let Some(inner) = &inner {
            let _it_is_tried_anyway = fs::fchmod(inner, Mode::RWXU);
        }
        let second = deed();
        if let (Err(_), Some(inner), Some(mode)) = (second, &inner, mode) {
            fs::fchmod(inner, Mode::from_raw_mode(mode))?;
        }
        Ok(second?)
    }
}

/// Renames where nothing is.
fn rename(from: &OwnedFd, old: &[u8], to: &OwnedFd, new: &[u8]) -> Result<(), Errno> {
    match fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // Some filesystems know no such wish: then it is asked first.
        Err(Errno::INVAL | Errno::NOSYS) => match fs::statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => fs::renameat(from, old, to, new),
            Err(error) => Err(error),
            Ok(_) => Err(Errno::EXIST),
        },
        done => done,
    }
}

/// Can two names change places on this filesystem? Tried with names of our own.
fn can_exchange(stage: &Stage) -> bool {
    let (one, other) = ("exchange-1", "exchange-2");
    let make = |name: &str| fs::mkdirat(&stage.folder, name, Mode::RWXU);
    let _they_may_be_there = (make(one), make(other));
    fs::renameat_with(&stage.folder, one, &stage.folder, other, RenameFlags::EXCHANGE).is_ok()
}

fn time(old: &Old) -> Moment {
    Moment { seconds: old.seconds, nanos: old.nanos }
}

/// Is something what was saved, as far as the system tells?
fn is_still(now: &Entry, old: &Old) -> bool {
    const KIND: u32 = 0o170_000;
    let is_it = now.inode == old.inode && now.mode & KIND == old.mode & KIND;
    is_it && (now.kind() == Kind::Folder || (now.size == old.size && now.mtime == time(old)))
}

impl Hands<'_> {
    /// Is everything in a folder what was saved, nothing more and nothing less? A folder with a mount in it is refused.
    /// Each folder is opened on its own from the stage, however deep it lies: only so many can be open at a time.
    fn is_whole_tree(&self, stage: &OwnedFd, slot: &[u8], path: &[u8]) -> Result<bool, Hindrance> {
        let mut waiting = vec![(slot.to_vec(), path.to_vec())];
        let mut buffer = vec![MaybeUninit::uninit(); 1 << 14];
        let mut names = Vec::new();
        while let Some((at, path)) = waiting.pop() {
            let Some(list) = self.present.folder(&path) else { return Ok(false) };
            let folder = mounts::open_inside(stage, &at, tree::FOLDER)?;
            tree::names(&folder, &mut buffer, &mut names)?;
            if names.iter().filter(|byte| **byte == 0).count() != list.len() {
                return Ok(false);
            }
            for seen in list.iter() {
                match tree::entry(&folder, seen.name)? {
                    Some(now) if is_still(&now, &Old::of(&seen.entry)) => {}
                    Some(_) | None => return Ok(false),
                }
                if seen.entry.kind() == Kind::Folder {
                    waiting.push((join(&at, seen.name), join(&path, seen.name)));
                }
            }
        }
        Ok(true)
    }
}
