//! Lines that wait to be taken in: what could not be written to the database in time.
//!
//! A line is one `write` to a file opened for appending, so lines of several processes do not mix; it begins with a line
//! break, so that a line somebody left half-written spoils only itself. Each is taken in exactly once: its id is noted in the
//! transaction that takes it in, and stays noted for longer than any line stands in the spool.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use unstuck_wire::clean::Clean;

use crate::entry::{Entry, OwnFault};
use crate::error::{Deed, StoreError};
use crate::filesystem::Filesystem;
use crate::root::{self, Root};
use crate::stored_entry::{FORMAT, StoredEntry, StoredLine};

/// A spool that nobody takes in must not fill the disk.
const LARGEST: u64 = 256 * 1024 * 1024;
/// A file that has grown to this is put away under a number, so that taking it in never means reading much at once.
const PUT_AWAY: u64 = 256 * 1024;
/// Lines that cannot be read are kept beside the others, up to this much.
const UNREADABLE_MAX: u64 = 1024 * 1024;
const UNREADABLE: &str = "unreadable.txt";
/// How long somebody who holds a file of the spool is waited for. It takes him a moment, unless he was stopped in it.
const LOCK_PATIENCE: Duration = Duration::from_millis(100);
/// How often a file is opened again that was put away or removed meanwhile.
const MOST_TRIES: u32 = 8;
/// How long it is noted what was taken in.
const NOTED_FOR_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// The spool of one folder.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    folder: PathBuf,
    /// The file that all append to. Over a network, appending is not safe between processes: there, each line has a file of
    /// its own.
    common: Option<PathBuf>,
}

/// What was read of one file, to be settled once it has been committed.
pub(crate) struct Taken {
    path: PathBuf,
    content: Vec<u8>,
    /// Lines that nobody will ever be able to read.
    unreadable: Vec<u8>,
    /// All of it is taken in.
    whole: bool,
    /// How many entries were new.
    pub(crate) entries: u64,
}

/// How a waiting line is recorded, and what becomes of one that cannot be.
pub(crate) trait Take {
    fn entry(&self, entry: &Entry) -> Result<(), rusqlite::Error>;
    fn unreadable(&self, line: &str) -> Result<(), rusqlite::Error>;
}

impl Spool {
    /// The spool of a folder.
    pub(crate) fn of(root: &Root) -> Spool {
        let folder = root.spool();
        let common = match root.filesystem() {
            Filesystem::Local => Some(folder.join("spool.jsonl")),
            Filesystem::Network { .. } => None,
        };
        Spool { folder, common }
    }

    /// Appends an entry.
    pub(crate) fn append(&self, entry: &Entry, id: u64, now: u64) -> Result<(), StoreError> {
        let line = StoredLine { v: FORMAT, id: format!("{id:016x}"), entry: StoredEntry::from(entry) };
        let mut bytes = vec![b'\n'];
        serde_json::to_writer(&mut bytes, &line)
            .map_err(|error| StoreError::io(Deed::Write, &self.folder)(error.into()))?;
        bytes.push(b'\n');
        root::make_folder(&self.folder)?;
        if self.common.is_some() && self.size() > LARGEST {
            return Err(StoreError::Full { path: self.folder.clone() });
        }
        let (mut file, path) = self.opened(id, now)?;
        let written = file.write(&bytes).map_err(StoreError::io(Deed::Write, &path))?;
        match written == bytes.len() {
            true => Ok(()),
            false => Err(StoreError::Full { path }),
        }
    }

    /// The file that a line goes to. Files are taken in by name, so those of one line begin with its time.
    fn opened(&self, id: u64, now: u64) -> Result<(File, PathBuf), StoreError> {
        // Whoever was stopped while he held the common file, or spoiled it otherwise, must not stop us.
        if let Some(common) = &self.common
            && let Ok(file) = self.held_in_common(common)
        {
            return Ok((file, common.clone()));
        }
        let own = self.folder.join(format!("{now:015}-{id:016x}.jsonl"));
        let file = held(&own).map_err(StoreError::io(Deed::Open, &own))?;
        Ok((file, own))
    }

    /// The file that all append to, held together with others who append. Who empties it or puts it away holds it alone.
    fn held_in_common(&self, common: &Path) -> io::Result<File> {
        for _ in 0..MOST_TRIES {
            let file = held(common)?;
            if file.metadata()?.len() < PUT_AWAY {
                return Ok(file);
            }
            drop(file);
            self.put_away(common)?;
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Gives the file that all append to a number of its own, so that the next line begins a new one.
    fn put_away(&self, common: &Path) -> io::Result<()> {
        let file = root::private(common)?;
        wait_for(|| file.try_lock())?;
        if !is_still(&file, common) || file.metadata()?.len() < PUT_AWAY {
            return Ok(());
        }
        // Also those that were emptied keep their numbers: a name that is taken must not be taken again.
        let number = |path: PathBuf| path.file_stem()?.to_str()?.strip_prefix("spool-")?.parse::<u64>().ok();
        let names = fs::read_dir(&self.folder)?.flatten().map(|entry| entry.path());
        let mut next = names.filter_map(number).max().unwrap_or(0) + 1;
        let name = |number: u64| self.folder.join(format!("spool-{number:08}.jsonl"));
        while fs::symlink_metadata(name(next)).is_ok() {
            next += 1;
        }
        fs::rename(common, name(next))
    }

    /// Is something waiting?
    pub(crate) fn is_waiting(&self) -> bool {
        !self.files().is_empty()
    }

    /// The files in which something may wait.
    fn files(&self) -> Vec<PathBuf> {
        // A link in the folder's place leads to somebody else's files.
        if fs::symlink_metadata(&self.folder).is_ok_and(|found| !found.is_dir()) {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let holds_lines = |path: &PathBuf| {
            path.extension().is_some_and(|extension| extension == "jsonl")
                && fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0)
        };
        let mut files: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(holds_lines).collect();
        files.sort_unstable();
        files
    }

    /// Takes in up to `most` entries, inside a transaction that holds the write lock.
    pub(crate) fn take_in(
        &self,
        connection: &Connection,
        most: usize,
        now: u64,
        take: &dyn Take,
    ) -> Result<Vec<Taken>, rusqlite::Error> {
        let noted = Noted { connection, now };
        let mut room = most;
        let mut all = Vec::new();
        for path in self.files() {
            if room == 0 {
                break;
            }
            // A file that cannot be read now is there the next time.
            let Ok((content, whole)) = read(&path) else { continue };
            let mut taken = Taken { path, content, unreadable: Vec::new(), whole, entries: 0 };
            taken.read(&noted, &mut room, take)?;
            all.push(taken);
        }
        Ok(all)
    }

    /// Empties what was taken in and committed. What was added since stays for the next one.
    pub(crate) fn settle(&self, all: Vec<Taken>) {
        for taken in all.into_iter().filter(|taken| taken.whole) {
            let _the_next_one_will_see_it_noted = self.empty(&taken);
        }
    }

    fn empty(&self, taken: &Taken) -> io::Result<()> {
        let mut file = root::existing(&taken.path)?;
        wait_for(|| file.try_lock())?;
        let mut now = Vec::new();
        file.read_to_end(&mut now)?;
        if now != taken.content || !is_still(&file, &taken.path) {
            return Ok(());
        }
        if !taken.unreadable.is_empty() {
            let mut file = root::private(&self.folder.join(UNREADABLE))?;
            if file.metadata()?.len() < UNREADABLE_MAX {
                file.write_all(&taken.unreadable)?;
            }
        }
        match self.common.as_ref() == Some(&taken.path) {
            true => file.set_len(0),
            false => fs::remove_file(&taken.path),
        }
    }

    /// How many bytes wait.
    pub(crate) fn size(&self) -> u64 {
        self.files().iter().filter_map(|path| fs::metadata(path).ok()).map(|found| found.len()).sum()
    }
}

impl Taken {
    fn read(&mut self, noted: &Noted<'_>, room: &mut usize, take: &dyn Take) -> Result<(), rusqlite::Error> {
        for line in self.content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let read = serde_json::from_slice::<StoredLine>(line).ok();
            let id = match &read {
                Some(read) => read.id.clone(),
                None if is_of_newer_format(line) => {
                    self.whole = false;
                    continue;
                }
                None => blake3::hash(line).to_hex()[..16].to_owned(),
            };
            let is_known = noted.has(&id)?;
            if !is_known && *room == 0 {
                self.whole = false;
                continue;
            }
            let entry = match read {
                Some(read) if read.v > FORMAT => {
                    self.whole = false;
                    continue;
                }
                Some(read) => read.entry.read(),
                None => None,
            };
            if entry.is_none() {
                self.unreadable.extend_from_slice(line);
                self.unreadable.push(b'\n');
            }
            if is_known {
                continue;
            }
            match entry {
                Some(entry) => take.entry(&entry)?,
                None => take.unreadable(&String::from_utf8_lossy(&line[..line.len().min(80)]))?,
            }
            noted.add(&id)?;
            *room -= 1;
            self.entries += 1;
        }
        Ok(())
    }
}

fn is_of_newer_format(line: &[u8]) -> bool {
    let read = serde_json::from_slice::<serde_json::Value>(line).ok();
    read.and_then(|read| read.get("v")?.as_u64()).is_some_and(|format| format > u64::from(FORMAT))
}

/// The ids that were taken in and may still stand in the spool.
struct Noted<'c> {
    connection: &'c Connection,
    now: u64,
}

impl Noted<'_> {
    /// Was this one taken in?
    fn has(&self, id: &str) -> Result<bool, rusqlite::Error> {
        self.connection.prepare_cached("SELECT 1 FROM taken WHERE id = ?1")?.exists([id])
    }

    fn add(&self, id: &str) -> Result<(), rusqlite::Error> {
        self.connection
            .prepare_cached("INSERT INTO taken (id, at) VALUES (?1, ?2)")?
            .execute((id, self.now.cast_signed()))?;
        Ok(())
    }
}

/// Forgets ids that were taken in so long ago that their lines stand in no spool any more.
pub(crate) fn forget_old(connection: &Connection, now: u64) -> Result<(), rusqlite::Error> {
    connection
        .prepare_cached("DELETE FROM taken WHERE at < ?1")?
        .execute([now.saturating_sub(NOTED_FOR_MS).cast_signed()])?;
    Ok(())
}

/// Reads a file, and says whether all of it can be taken in. Where somebody may be about to write, a last line without an
/// end may still get one.
fn read(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let mut file = root::existing(path)?;
    let alone = file.try_lock().is_ok();
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    let whole = alone || content.ends_with(b"\n");
    if !whole {
        let last = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        content.truncate(last);
    }
    Ok((content, whole))
}

/// Opens a file that is there or is made, and holds it together with others who append to it.
fn held(path: &Path) -> io::Result<File> {
    for _ in 0..MOST_TRIES {
        let file = root::private(path)?;
        wait_for(|| file.try_lock_shared())?;
        if is_still(&file, path) {
            return Ok(file);
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Leaves word of a crash in the folder `root`, from within it: nothing here may fail, wait, or need anything that could be
/// what is broken. `place` is where in the source it happened; what was said there may quote what nobody may keep. `entry` is
/// what was still to be recorded.
pub fn note_crash(root: &Path, now: u64, place: &str, entry: Option<&Entry>) {
    let fault = OwnFault {
        at: now,
        part: Clean::from("crash"),
        // Names of source files are all that stands in it.
        what: Clean::stored(place.chars().filter(char::is_ascii_graphic).take(200).collect()),
    };
    let left: Vec<Entry> = entry.cloned().into_iter().chain([Entry::OwnFault(fault)]).collect();
    leave_word(root, now, &left);
}

/// Leaves word of what this process has no time left to record, in a file of its own. Nothing here may fail or wait.
pub fn leave_word(root: &Path, now: u64, entries: &[Entry]) {
    let process = std::process::id();
    let mut text = String::from("\n");
    for (number, entry) in entries.iter().enumerate() {
        let id = format!("{now:016x}-{process:x}-{number:x}");
        let line = StoredLine { v: FORMAT, id, entry: StoredEntry::from(entry) };
        let Ok(line) = serde_json::to_string(&line) else { continue };
        text += &line;
        text.push('\n');
    }
    if !root.is_dir() || root::make_folder(&root.join("spool")).is_err() {
        return;
    }
    let path = root.join("spool").join(format!("{now:015}-{process}-left.jsonl"));
    let _nobody_is_left_to_tell = root::private(&path).and_then(|mut file| file.write_all(text.as_bytes()));
}

/// Removes files of the spool that are empty. Whoever is about to write to one holds it, or sees that it is gone.
pub(crate) fn remove_empty(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let remove = |path: PathBuf| -> io::Result<bool> {
        let file = root::existing(&path)?;
        if file.try_lock().is_err() || file.metadata()?.len() > 0 || !is_still(&file, &path) {
            return Ok(false);
        }
        fs::remove_file(&path).map(|()| true)
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let lines = paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    lines.filter(|path| remove(path.clone()).unwrap_or(false)).count() as u64
}

/// Tries to get a lock, for a while.
fn wait_for(lock: impl Fn() -> Result<(), TryLockError>) -> io::Result<()> {
    const PAUSE: Duration = Duration::from_millis(2);
    let mut waited = Duration::ZERO;
    loop {
        match lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if waited >= LOCK_PATIENCE => {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Err(TryLockError::WouldBlock) => {
                thread::sleep(PAUSE);
                waited += PAUSE;
            }
        }
    }
}

/// Is this file still the one that stands there, and not one that was put away or removed meanwhile?
#[cfg(unix)]
fn is_still(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same =
        |ours: fs::Metadata, there: fs::Metadata| (ours.dev(), ours.ino()) == (there.dev(), there.ino());
    file.metadata().is_ok_and(|ours| fs::symlink_metadata(path).is_ok_and(|there| same(ours, there)))
}

/// Where files that are open can be neither renamed nor removed.
#[cfg(not(unix))]
fn is_still(_file: &File, _path: &Path) -> bool {
    true
}
