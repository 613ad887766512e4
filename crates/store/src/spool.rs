//! Lines that wait to be taken in: what could not be written to the database in time.
//!
//! A line is one `write` to a file opened for appending, so lines of several processes do not mix; it begins with a line
//! break, so that a line somebody left half-written spoils only itself. Each is taken in exactly once: its id is noted in the
//! transaction that takes it in, and stays noted as long as the line stands in the spool.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use unstuck_wire::clean::Clean;

use crate::entry::{Entry, OwnFault};
use crate::error::StoreError;
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
            .map_err(|error| StoreError::io("write", &self.folder)(error.into()))?;
        bytes.push(b'\n');
        root::make_folder(&self.folder)?;
        if self.size() > LARGEST {
            return Err(StoreError::Full { path: self.folder.clone() });
        }
        let (mut file, path) = self.opened(id, now)?;
        let written = file.write(&bytes).map_err(StoreError::io("write", &path))?;
        match written == bytes.len() {
            true => Ok(()),
            false => Err(StoreError::Full { path }),
        }
    }

    /// The file that a line goes to. Files are taken in by name, so those of one line begin with its time.
    fn opened(&self, id: u64, now: u64) -> Result<(File, PathBuf), StoreError> {
        if let Some(common) = &self.common {
            match self.held_in_common(common) {
                Ok(file) => return Ok((file, common.clone())),
                // Whoever was stopped while he held it must not stop us.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(StoreError::io("open", common)(error)),
            }
        }
        let own = self.folder.join(format!("{now:015}-{id:016x}.jsonl"));
        let file = root::private(&own).map_err(StoreError::io("open", &own))?;
        Ok((file, own))
    }

    /// The file that all append to, held together with others who append. Who empties it or puts it away holds it alone.
    fn held_in_common(&self, common: &Path) -> io::Result<File> {
        loop {
            let file = root::private(common)?;
            wait_for(|| file.try_lock_shared())?;
            if !is_still(&file, common) {
                continue;
            }
            if file.metadata()?.len() < PUT_AWAY {
                return Ok(file);
            }
            drop(file);
            self.put_away(common)?;
        }
    }

    /// Gives the file that all append to a number of its own, so that the next line begins a new one.
    fn put_away(&self, common: &Path) -> io::Result<()> {
        let file = root::private(common)?;
        wait_for(|| file.try_lock())?;
        if !is_still(&file, common) || file.metadata()?.len() < PUT_AWAY {
            return Ok(());
        }
        let number = |path: PathBuf| path.file_stem()?.to_str()?.strip_prefix("spool-")?.parse::<u64>().ok();
        let last = self.files().into_iter().filter_map(number).max().unwrap_or(0);
        fs::rename(common, self.folder.join(format!("spool-{:08}.jsonl", last + 1)))
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
        take: &dyn Take,
    ) -> Result<Vec<Taken>, rusqlite::Error> {
        let mut noted = Noted { connection, seen: HashSet::new() };
        let mut room = most;
        let mut all = Vec::new();
        for path in self.files() {
            if room == 0 {
                return Ok(all);
            }
            // A file that cannot be read now is there the next time.
            let mut content = Vec::new();
            let read = root::existing(&path).and_then(|mut file| file.read_to_end(&mut content));
            if read.is_err() {
                continue;
            }
            let mut taken = Taken { path, content, unreadable: Vec::new(), whole: true, entries: 0 };
            taken.read(&mut noted, &mut room, take)?;
            all.push(taken);
        }
        if all.iter().all(|taken| taken.whole) {
            noted.forget_what_is_gone()?;
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
        if !taken.unreadable.is_empty() {
            let mut file = root::private(&self.folder.join(UNREADABLE))?;
            if file.metadata()?.len() < UNREADABLE_MAX {
                file.write_all(&taken.unreadable)?;
            }
        }
        let mut file = root::existing(&taken.path)?;
        wait_for(|| file.try_lock())?;
        let mut now = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut now)?;
        if now == taken.content {
            file.set_len(0)?;
        }
        Ok(())
    }

    /// How many bytes wait.
    pub(crate) fn size(&self) -> u64 {
        self.files().iter().filter_map(|path| fs::metadata(path).ok()).map(|found| found.len()).sum()
    }
}

impl Taken {
    fn read(
        &mut self,
        noted: &mut Noted<'_>,
        room: &mut usize,
        take: &dyn Take,
    ) -> Result<(), rusqlite::Error> {
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
    /// Those that stood in what was read.
    seen: HashSet<String>,
}

impl Noted<'_> {
    /// Was this one taken in?
    fn has(&mut self, id: &str) -> Result<bool, rusqlite::Error> {
        let is_new = self.seen.insert(id.to_owned());
        let mut statement = self.connection.prepare_cached("SELECT 1 FROM taken WHERE id = ?1")?;
        Ok(!is_new || statement.exists([id])?)
    }

    fn add(&mut self, id: &str) -> Result<(), rusqlite::Error> {
        self.connection.prepare_cached("INSERT INTO taken (id) VALUES (?1)")?.execute([id])?;
        Ok(())
    }

    /// Only for those who have read all there is: what they have not seen stands in the spool no more.
    fn forget_what_is_gone(&self) -> Result<(), rusqlite::Error> {
        let mut statement = self.connection.prepare_cached("SELECT id FROM taken")?;
        let noted: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let mut statement = self.connection.prepare_cached("DELETE FROM taken WHERE id = ?1")?;
        for id in noted.iter().filter(|id| !self.seen.contains(*id)) {
            statement.execute([id])?;
        }
        Ok(())
    }
}

/// Leaves word of a crash in the folder `root`, from within it: nothing here may fail, wait, or need anything that could be
/// what is broken. `place` is where in the source it happened; what was said there may quote what nobody may keep.
pub fn note_crash(root: &Path, now: u64, place: &str) {
    let fault = OwnFault {
        at: now,
        part: Clean::from("crash"),
        // Names of source files are all that stands in it.
        what: Clean::stored(place.chars().filter(char::is_ascii_graphic).take(200).collect()),
    };
    let entry = StoredEntry::from(&Entry::OwnFault(fault));
    let line = StoredLine { v: FORMAT, id: format!("{now:016x}"), entry };
    let Ok(text) = serde_json::to_string(&line) else { return };
    if !root.is_dir() || root::make_folder(&root.join("spool")).is_err() {
        return;
    }
    let path = root.join("spool").join(format!("{now:015}-crash.jsonl"));
    let _nobody_is_left_to_tell =
        root::private(&path).and_then(|mut file| file.write_all(format!("\n{text}\n").as_bytes()));
}

/// Removes files of the spool that are empty. Nobody can be about to write to one: it is held alone while it goes.
pub(crate) fn remove_empty(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let remove = |path: PathBuf| -> io::Result<bool> {
        let file = root::existing(&path)?;
        if file.try_lock().is_err() || file.metadata()?.len() > 0 {
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
