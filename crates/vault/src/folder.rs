//! The folder of the safe: what lies where in it, who may work in it at the same time, and how things get in so that nobody
//! ever sees half of one.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::VaultError;

/// The format of everything in it.
const FORMAT: u32 = 1;
/// How often somebody who waits for a lock looks again.
const PAUSE: Duration = Duration::from_millis(5);
/// Names of what is not finished begin so; nobody looks for them.
const UNFINISHED: &str = ".new-";

/// What snapshots, manifests and packs are called. All share one count.
pub(crate) type Number = u64;

/// The parts of the safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Snapshots,
    Manifests,
    Packs,
    /// What a restore prepares, one folder for each.
    Stages,
}

impl Room {
    const ALL: [Room; 4] = [Room::Snapshots, Room::Manifests, Room::Packs, Room::Stages];

    fn name(self) -> &'static str {
        match self {
            Room::Snapshots => "snapshots",
            Room::Manifests => "manifests",
            Room::Packs => "packs",
            Room::Stages => "stages",
        }
    }
}

/// How somebody works in the safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Beside others who add or look.
    Shared,
    /// Alone: trees are written, or something is removed.
    Alone,
}

/// The folder, checked.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
}

/// Held while somebody is at work. It ends with the process, however that ends.
#[derive(Debug)]
pub(crate) struct Held {
    _file: File,
}

impl Folder {
    /// Makes it where it is not there.
    pub(crate) fn make(path: &Path) -> Result<Folder, VaultError> {
        make_private(path)?;
        let folder = Folder { path: path.to_owned() };
        folder.check()?;
        for room in Room::ALL {
            make_private(&folder.room(room))?;
        }
        if !folder.format_file().exists() {
            folder.replace(&folder.format_file(), format!("{FORMAT}\n").as_bytes())?;
        }
        folder.check_format()?;
        Ok(folder)
    }

    /// As it is; nothing is made.
    pub(crate) fn existing(path: &Path) -> Result<Folder, VaultError> {
        let folder = Folder { path: path.to_owned() };
        // Behind a link there may be nothing yet; it could not be used, either.
        if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
            folder.check()?;
        }
        match fs::symlink_metadata(folder.format_file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(VaultError::Missing { path: path.to_owned() });
            }
            Err(error) => return Err(VaultError::io("look at", path)(error)),
            Ok(_) => {}
        }
        folder.check()?;
        folder.check_format()?;
        Ok(folder)
    }

    fn format_file(&self) -> PathBuf {
        self.path.join("format")
    }

    fn check_format(&self) -> Result<(), VaultError> {
        let path = self.format_file();
        let text = read_own_text(&path).map_err(VaultError::io("read", &path))?;
        match text.trim().parse() {
            Ok(FORMAT) => Ok(()),
            Ok(found) => Err(VaultError::TooNew { path, found, known: FORMAT }),
            Err(_) => Err(VaultError::Damaged { path }),
        }
    }

    /// Nobody else may read or replace what is in it.
    fn check(&self) -> Result<(), VaultError> {
        let not_ours = |why| Err(VaultError::NotOurs { path: self.path.clone(), why });
        let found = fs::symlink_metadata(&self.path).map_err(VaultError::io("look at", &self.path))?;
        if found.is_symlink() {
            return not_ours("it is a symbolic link");
        }
        if !found.is_dir() {
            return not_ours("it is not a folder");
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return not_ours("it belongs to somebody else");
        }
        if found.mode() & 0o077 != 0 {
            fs::set_permissions(&self.path, fs::Permissions::from_mode(0o700))
                .map_err(VaultError::io("close to others", &self.path))?;
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn room(&self, room: Room) -> PathBuf {
        self.path.join(room.name())
    }

    /// Where the thing with a number lies.
    pub(crate) fn numbered(&self, room: Room, number: Number) -> PathBuf {
        self.room(room).join(number.to_string())
    }

    /// What a restore that is under way has set out to do.
    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    /// What a check found damaged.
    pub(crate) fn distrusted(&self) -> PathBuf {
        self.path.join("distrusted")
    }

    /// The numbers of all that is finished in a room, in no order.
    pub(crate) fn numbers(&self, room: Room) -> Result<Vec<Number>, VaultError> {
        Ok(names(&self.room(room))?.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// Waits to work in the safe. `goes_on` is asked while it waits; without it nobody waits for ever.
    pub(crate) fn hold(&self, hold: Hold, mut goes_on: impl FnMut() -> bool) -> Result<Held, VaultError> {
        loop {
            if let Some(held) = self.try_hold(hold)? {
                return Ok(held);
            }
            if !goes_on() {
                return Err(VaultError::Busy { path: self.path.join("lock") });
            }
            thread::sleep(PAUSE);
        }
    }

    /// The same without waiting.
    pub(crate) fn try_hold(&self, hold: Hold) -> Result<Option<Held>, VaultError> {
        let path = self.path.join("lock");
        let file = open_to_write(&path)?;
        let locked = match hold {
            Hold::Shared => file.try_lock_shared(),
            Hold::Alone => file.try_lock(),
        };
        match locked {
            Ok(()) => Ok(Some(Held { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(VaultError::io("lock", &path)(error)),
        }
    }

    /// Held for the moment in which something gets its number and its name. Whoever holds it does nothing else, so it may be
    /// waited for.
    pub(crate) fn desk(&self) -> Result<Desk<'_>, VaultError> {
        let path = self.path.join("desk");
        let file = open_to_write(&path)?;
        file.lock().map_err(VaultError::io("lock", &path))?;
        Ok(Desk { folder: self, _file: file })
    }

    /// A new file under a name that nobody looks for.
    pub(crate) fn unfinished(&self, room: Room) -> Result<(File, PathBuf), VaultError> {
        unfinished_in(&self.room(room))
    }

    /// Gives something finished the name under which it is found.
    pub(crate) fn publish(&self, hidden: &Path, room: Room, number: Number) -> Result<(), VaultError> {
        fs::rename(hidden, self.numbered(room, number)).map_err(VaultError::io("rename", hidden))
    }

    /// Writes a small file so that there is the old one or the new one at any moment, and waits for the disk.
    pub(crate) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), VaultError> {
        let parent = path.parent().unwrap_or(&self.path);
        let (mut file, hidden) = unfinished_in(parent)?;
        let mut write = || {
            file.write_all(bytes)?;
            file.sync_data()?;
            fs::rename(&hidden, path)
        };
        write().map_err(|error| {
            let _nothing_to_remove = fs::remove_file(&hidden);
            VaultError::io("write", path)(error)
        })?;
        settle(parent)
    }

    /// Waits until the names in a room are on the disk.
    pub(crate) fn settle(&self, room: Room) -> Result<(), VaultError> {
        settle(&self.room(room))
    }

    /// Is there anything that is not finished, or never was?
    pub(crate) fn is_littered(&self) -> Result<bool, VaultError> {
        Ok(!self.unfinished_ones()?.is_empty())
    }

    /// Removes what was never finished. Only for those who work alone: then nobody is still at it.
    pub(crate) fn sweep(&self, _alone: &Held) -> Result<(), VaultError> {
        for path in self.unfinished_ones()? {
            match fs::remove_file(&path) {
                // Whoever gets a number does not work alone, and may have finished just now.
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(VaultError::io("remove", &path)(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn unfinished_ones(&self) -> Result<Vec<PathBuf>, VaultError> {
        let rooms = [Room::Snapshots, Room::Manifests, Room::Packs].map(|room| self.room(room));
        let mut found = Vec::new();
        for folder in rooms.iter().chain([&self.path]) {
            let names = names(folder)?.into_iter().filter(|name| name.starts_with(UNFINISHED));
            found.extend(names.map(|name| folder.join(name)));
        }
        Ok(found)
    }

    /// How many bytes all of it takes.
    pub(crate) fn size(&self) -> u64 {
        let sizes = [Room::Snapshots, Room::Manifests, Room::Packs].into_iter().map(|room| {
            let entries = fs::read_dir(self.room(room)).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum::<u64>()
        });
        sizes.sum()
    }

    /// How many bytes can still be written on its disk; nothing where nobody can tell.
    pub(crate) fn free(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.path).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

/// Where things get their numbers, one process at a time.
pub(crate) struct Desk<'a> {
    folder: &'a Folder,
    _file: File,
}

impl Desk<'_> {
    /// A number that is higher than all others.
    pub(crate) fn next(&self) -> Result<Number, VaultError> {
        let path = self.folder.path.join("counter");
        let counted: Option<Number> = match read_own_text(&path) {
            Ok(text) => text.trim().parse().ok(),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => {
                None
            }
            Err(error) => return Err(VaultError::io("read", &path)(error)),
        };
        // The counter is not waited for on its way to the disk: after a loss of power, what is there tells as well.
        let mut last = counted.unwrap_or(0);
        for room in [Room::Snapshots, Room::Manifests, Room::Packs] {
            last = self.folder.numbers(room)?.into_iter().fold(last, Number::max);
        }
        let next = last + 1;
        let text = format!("{next}\n");
        let written = match counted {
            // Nobody else is at the desk, and no number is shorter than the one before it.
            Some(_) => open_to_write(&path)?.write_all_at(text.as_bytes(), 0),
            None => {
                let (mut file, hidden) = unfinished_in(&self.folder.path)?;
                file.write_all(text.as_bytes()).and_then(|()| fs::rename(&hidden, &path))
            }
        };
        written.map_err(VaultError::io("write", &path))?;
        Ok(next)
    }
}

/// Opens a file of the safe to read it. Whatever else stands there, and may have nobody at its other end, is damage
/// (`InvalidData`).
pub(crate) fn open_own(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        // A link, or a socket.
        Err(Errno::LOOP | Errno::NXIO) => return Err(io::ErrorKind::InvalidData.into()),
        file => File::from(file?),
    };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Reads a file of the safe.
pub(crate) fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_own(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or(0));
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same, of a file that holds text.
pub(crate) fn read_own_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_own(path)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn open_to_write(path: &Path) -> Result<File, VaultError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options.open(path).map_err(VaultError::io("open", path))
}

fn names(folder: &Path) -> Result<Vec<String>, VaultError> {
    let list = || fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
    match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(VaultError::io("list", folder)(error)),
        Ok(names) => Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect()),
    }
}

fn settle(path: &Path) -> Result<(), VaultError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(VaultError::io("write", path))
}

/// A new file under a name that nobody looks for. Somebody with our number may have left one of the same name.
fn unfinished_in(folder: &Path) -> Result<(File, PathBuf), VaultError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    loop {
        let path = folder.join(unfinished_name());
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => return Ok((file.map_err(VaultError::io("make", &path))?, path)),
        }
    }
}

fn unfinished_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{UNFINISHED}{}-{count}", std::process::id())
}

/// Makes a folder that only its owner can enter, with all that lead to it.
fn make_private(path: &Path) -> Result<(), VaultError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path).map_err(VaultError::io("make", path))
}
