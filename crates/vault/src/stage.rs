//! Where a restore makes things ready: a folder on the same filesystem as the place they go to, so that they get there by a
//! rename. That is the safe where it can be, and else a hidden folder beside the tree, noted in the safe first so that
//! nothing of it stays behind.

use std::collections::hash_map::RandomState;
use std::fs::{self as std_fs, DirBuilder};
use std::hash::BuildHasher;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::entry::Kind;
use crate::error::VaultError;
use crate::folder::{Folder, Held, Number, Room, read_own};
use crate::mounts::{self, Home};
use crate::plan::to_path;
use crate::tree;

/// Hidden folders beside trees are called so.
const BESIDE: &str = ".unstuck-restore-";
/// The note of what lies elsewhere. All other names in a stage are numbers.
const NOTE: &str = "elsewhere";
/// So many folders inside each other are open at a time.
const DEEP: usize = 64;

/// One folder in which things are made ready.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) path: PathBuf,
    pub(crate) folder: OwnedFd,
}

/// All of a restore, one for each filesystem; the first lies in the safe.
#[derive(Debug)]
pub(crate) struct Stages {
    pub(crate) all: Vec<Stage>,
    homes: Vec<Home>,
}

/// How things get to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settling {
    /// One by one, so that nobody waits for what others write. Good for a few files.
    Each,
    /// All at once, with everything that waits for this disk. Good for many.
    All,
}

impl Stages {
    /// Makes the stage in the safe.
    pub(crate) fn make(folder: &Folder, number: Number) -> Result<Stages, VaultError> {
        let path = folder.numbered(Room::Stages, number);
        let make = || -> io::Result<OwnedFd> {
            DirBuilder::new().mode(0o700).create(&path)?;
            Ok(fs::open(&path, tree::FOLDER, Mode::empty())?)
        };
        let stage = make().map_err(VaultError::io("make", &path))?;
        spread(&stage);
        let home = Home::of(&stage).map_err(VaultError::io("look at", &path))?;
        Ok(Stages { all: vec![Stage { path, folder: stage }], homes: vec![home] })
    }

    /// Finds those that a restore made. They stay while its steps are not all taken, so one that is not there is on a disk
    /// that is away: nothing is done without it. The one in the safe is found there, wherever the safe is by now.
    pub(crate) fn find(folder: &Folder, number: Number, paths: &[PathBuf]) -> Result<Vec<Stage>, VaultError> {
        let path = folder.numbered(Room::Stages, number);
        let own = match tree::open_folder(path.as_os_str().as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(VaultError::Damaged { path });
            }
            own => own.map_err(VaultError::io("open", &path))?,
        };
        let mut found = vec![Stage { path, folder: own }];
        for path in paths.iter().skip(1) {
            let elsewhere = match tree::open_folder(path.as_os_str().as_bytes()) {
                Err(error) if is_elsewhere(&error) => {
                    return Err(VaultError::Away { path: path.clone(), journal: folder.journal() });
                }
                elsewhere => elsewhere.map_err(VaultError::io("open", path))?,
            };
            found.push(Stage { path: path.clone(), folder: elsewhere });
        }
        Ok(found)
    }

    /// The stage from which something can be renamed to a scope or into it. Makes one where there is none.
    pub(crate) fn near(&mut self, scope: &[u8]) -> Result<usize, VaultError> {
        let (at, folder) = nearest(scope).map_err(VaultError::io("open", &to_path(scope)))?;
        let home = Home::of(&folder).map_err(VaultError::io("look at", &to_path(&at)))?;
        if let Some(number) = self.homes.iter().position(|known| *known == home) {
            return Ok(number);
        }
        let mut error = None;
        for place in [parent(&at), at.as_slice()] {
            match self.make_beside(place, home) {
                Ok(true) => return Ok(self.all.len() - 1),
                Ok(false) => {}
                Err(found) => error = Some(found),
            }
        }
        let nowhere = || VaultError::io("make a stage in", &to_path(&at))(Errno::XDEV.into());
        Err(error.unwrap_or_else(nowhere))
    }

    /// Makes a hidden folder in a folder, if that is at home where it should be.
    fn make_beside(&mut self, place: &[u8], home: Home) -> Result<bool, VaultError> {
        let shown = to_path(place);
        let folder = tree::open_folder(place).map_err(VaultError::io("open", &shown))?;
        if Home::of(&folder).map_err(VaultError::io("look at", &shown))? != home {
            return Ok(false);
        }
        // Nobody can know the name beforehand, and put something of theirs there.
        let path = shown.join(format!("{BESIDE}{:016x}", RandomState::new().hash_one(&shown)));
        self.note(Noted { path: path.clone(), inode: None })?;
        let make = || -> io::Result<OwnedFd> {
            let name = path.file_name().unwrap_or_default();
            fs::mkdirat(&folder, name, Mode::RWXU)?;
            tree::open_child(&folder, name.as_bytes())
        };
        let folder = make().map_err(VaultError::io("make", &path))?;
        let made = fs::fstat(&folder).map_err(|error| VaultError::io("look at", &path)(error.into()))?;
        self.note(Noted { path: path.clone(), inode: Some(made.st_ino) })?;
        spread(&folder);
        self.all.push(Stage { path, folder });
        self.homes.push(home);
        Ok(true)
    }

    /// Notes in the safe that something of ours lies elsewhere, or is about to.
    fn note(&self, new: Noted) -> Result<(), VaultError> {
        let note = self.all[0].path.join(NOTE);
        let write = || {
            let mut all = noted(&self.all[0].path)?;
            all.retain(|noted| noted.path != new.path);
            all.push(new);
            let lines: Vec<Vec<u8>> = all.iter().map(Noted::line).collect();
            let hidden = self.all[0].path.join(format!("{NOTE}-new"));
            std_fs::write(&hidden, lines.join(&0_u8))?;
            std_fs::File::open(&hidden)?.sync_all()?;
            std_fs::rename(&hidden, &note)
        };
        write().map_err(VaultError::io("write", &note))
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.all.iter().map(|stage| stage.path.clone()).collect()
    }

    /// Waits until everything in them is on the disk; only for the names where the files were waited for one by one.
    pub(crate) fn settle(&self, settling: Settling) -> Result<(), VaultError> {
        for stage in &self.all {
            let settled = match settling {
                Settling::Each => fs::fsync(&stage.folder).map_err(io::Error::from),
                Settling::All => settle(&stage.folder),
            };
            settled.map_err(VaultError::io("write", &stage.path))?;
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn settle(folder: impl AsFd) -> io::Result<()> {
    Ok(fs::syncfs(folder)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn settle(_folder: impl AsFd) -> io::Result<()> {
    fs::sync();
    Ok(())
}

/// Asks the filesystem to put what is made here where there is room. Without it, a filesystem looks for room beside what was
/// just deleted, and that can take longer than everything else.
#[cfg(target_os = "linux")]
fn spread(folder: &OwnedFd) {
    use rustix::fs::IFlags;
    if let Ok(flags) = fs::ioctl_getflags(folder) {
        let _it_is_only_slower = fs::ioctl_setflags(folder, flags | IFlags::TOPDIR);
    }
}

#[cfg(not(target_os = "linux"))]
fn spread(_folder: &OwnedFd) {}

/// The folder that contains something; the root contains itself.
pub(crate) fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) | None => b"/",
        Some(at) => &path[..at],
    }
}

/// The name of something in its folder.
pub(crate) fn name(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(path, |at| &path[at + 1..])
}

/// The folder at a path, or the nearest one above it that is there.
fn nearest(path: &[u8]) -> io::Result<(Vec<u8>, OwnedFd)> {
    let mut at = path;
    loop {
        match tree::open_folder(at) {
            Ok(folder) => return Ok((at.to_vec(), folder)),
            Err(error) if at != b"/" && is_elsewhere(&error) => at = parent(at),
            Err(error) => return Err(error),
        }
    }
}

/// Is there no folder that could be opened at a path, whoever asks?
pub(crate) fn is_elsewhere(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM)
    )
}

/// Something of a stage that lies elsewhere.
struct Noted {
    path: PathBuf,
    /// Nothing where it was about to be made.
    inode: Option<u64>,
}

impl Noted {
    fn line(&self) -> Vec<u8> {
        let inode = self.inode.map(|inode| inode.to_string()).unwrap_or_default();
        [inode.as_bytes(), b" ", self.path.as_os_str().as_bytes()].concat()
    }

    fn parse(line: &[u8]) -> Option<Noted> {
        let space = line.iter().position(|byte| *byte == b' ')?;
        let inode = str::from_utf8(&line[..space]).ok()?.parse().ok();
        Some(Noted { path: to_path(&line[space + 1..]), inode })
    }

    /// Removes it if it is what we made; what was about to be made is empty, if it is ours.
    fn remove(&self, above: &OwnedFd) -> io::Result<()> {
        let name = self.path.file_name().unwrap_or_default().as_bytes();
        match self.inode {
            Some(inode) if tree::entry(above, name)?.is_some_and(|now| now.inode == inode) => {
                remove_tree(above, name)
            }
            Some(_) => Ok(()),
            None => match fs::unlinkat(above, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(()),
                done => gone(done),
            },
        }
    }
}

fn noted(stage: &Path) -> io::Result<Vec<Noted>> {
    let text = match read_own(&stage.join(NOTE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    Ok(text.split(|byte| *byte == 0).filter_map(Noted::parse).collect())
}

/// Removes what lies elsewhere of a stage.
pub(crate) fn remove_elsewhere(folder: &Folder, number: Number) -> Result<(), VaultError> {
    let stage = folder.numbered(Room::Stages, number);
    for noted in noted(&stage).map_err(VaultError::io("read", &stage))? {
        let path = &noted.path;
        if !path.file_name().unwrap_or_default().as_bytes().starts_with(BESIDE.as_bytes()) {
            continue;
        }
        // Whatever cannot be reached any more cannot be removed either; it went with the folder that it was in.
        let above = match tree::open_folder(parent(path.as_os_str().as_bytes())) {
            Err(error) if is_elsewhere(&error) => continue,
            above => above.map_err(VaultError::io("open", path))?,
        };
        noted.remove(&above).map_err(VaultError::io("remove", path))?;
    }
    Ok(())
}

/// Removes all stages. Only for those who work alone, when nothing in them is needed.
pub(crate) fn remove_all(folder: &Folder, _alone: &Held) -> Result<(), VaultError> {
    let room = folder.room(Room::Stages);
    let remove = |number: Number| {
        remove_elsewhere(folder, number)?;
        let open = tree::open_folder(room.as_os_str().as_bytes());
        let removed = open.and_then(|room| remove_tree(&room, number.to_string().as_bytes()));
        removed.map_err(VaultError::io("remove", &folder.numbered(Room::Stages, number)))
    };
    // One that cannot be removed keeps none of the others.
    folder.numbers(Room::Stages)?.into_iter().map(remove).fold(Ok(()), Result::and)
}

/// Removes something with everything in it, following no link and entering no mount. It is fine if it is gone.
pub(crate) fn remove_tree(folder: impl AsFd, name: &[u8]) -> io::Result<()> {
    let Some(top) = open_to_remove(folder.as_fd(), name)? else { return Ok(()) };
    let mut removal = Removal { top, lifted: Vec::new(), count: 0 };
    removal.empty(removal.top.try_clone()?.as_fd(), 0)?;
    while let Some(lifted) = removal.lifted.pop() {
        removal.remove(removal.top.try_clone()?.as_fd(), &lifted, 0)?;
    }
    gone(fs::unlinkat(folder, name, AtFlags::REMOVEDIR))
}

/// Opens a folder whose content goes. What is no folder is gone then.
fn open_to_remove(folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<Option<OwnedFd>> {
    let Some(entry) = tree::entry(folder, name)? else { return Ok(None) };
    if entry.kind() != Kind::Folder {
        return gone(fs::unlinkat(folder, name, AtFlags::empty())).map(|()| None);
    }
    if entry.mode & 0o700 != 0o700 {
        let _it_is_no_mount = mounts::open_inside(folder, name, tree::FOLDER | OFlags::PATH)?;
        fs::chmodat(folder, name, Mode::RWXU, AtFlags::empty())?;
    }
    mounts::open_inside(folder, name, tree::FOLDER).map(Some)
}

/// Only so many folders can be open at a time: one that lies deeper is lifted to the top, and removed from there.
struct Removal {
    top: OwnedFd,
    lifted: Vec<Vec<u8>>,
    count: u64,
}

impl Removal {
    fn empty(&mut self, folder: BorrowedFd<'_>, depth: usize) -> io::Result<()> {
        let mut buffer = vec![MaybeUninit::uninit(); 1 << 14];
        let mut names = Vec::new();
        tree::names(folder, &mut buffer, &mut names)?;
        drop(buffer);
        for inside in names.split(|byte| *byte == 0).filter(|inside| !inside.is_empty()) {
            match fs::unlinkat(folder, inside, AtFlags::empty()) {
                Err(Errno::ISDIR | Errno::PERM) => self.remove(folder, inside, depth)?,
                done => gone(done)?,
            }
        }
        Ok(())
    }

    fn remove(&mut self, folder: BorrowedFd<'_>, name: &[u8], depth: usize) -> io::Result<()> {
        let Some(inner) = open_to_remove(folder, name)? else { return Ok(()) };
        if depth == DEEP {
            return self.lift(folder, name);
        }
        self.empty(inner.as_fd(), depth + 1)?;
        gone(fs::unlinkat(folder, name, AtFlags::REMOVEDIR))
    }

    fn lift(&mut self, folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
        loop {
            self.count += 1;
            let lifted = format!("lifted-{}", self.count).into_bytes();
            // An earlier removal may have been interrupted. A folder never takes the place of one that is not empty.
            match fs::renameat(folder, name, &self.top, lifted.as_slice()) {
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                done => {
                    done?;
                    self.lifted.push(lifted);
                    return Ok(());
                }
            }
        }
    }
}

fn gone(done: rustix::io::Result<()>) -> io::Result<()> {
    match done {
        Err(Errno::NOENT) => Ok(()),
        done => Ok(done?),
    }
}
