//! Lines that wait to be taken in: what could not be written to the database in time.
//!
//! A line is one `write` to a file opened for appending, so lines of several processes do not mix; it begins with a line
//! break, so that a line somebody left half-written spoils only itself. Each is taken in exactly once: its id is noted in the
//! transaction that takes it in, and stays noted as long as the line stands in the spool.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::entry::Entry;
use crate::error::StoreError;
use crate::filesystem::Filesystem;
use crate::root::{self, Root};
use crate::stored_entry::{FORMAT, StoredEntry, StoredLine};

/// A spool that nobody takes in must not fill the disk.
const LARGEST: u64 = 256 * 1024 * 1024;
/// Lines that cannot be read are kept beside the others, up to this much.
const UNREADABLE_MAX: u64 = 1024 * 1024;
const UNREADABLE: &str = "unreadable.txt";

/// The spool of one folder.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    folder: PathBuf,
    file: PathBuf,
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
    /// The spool of a folder. Over a network, appending is not safe between processes: there, each has a file of its own.
    pub(crate) fn of(root: &Root, process: u64) -> Spool {
        let folder = root.spool();
        let name = match root.filesystem() {
            Filesystem::Local => "spool.jsonl".to_owned(),
            Filesystem::Network { .. } => format!("{process:016x}.jsonl"),
        };
        Spool { file: folder.join(name), folder }
    }

    /// Appends an entry.
    pub(crate) fn append(&self, entry: &Entry, id: u64) -> Result<(), StoreError> {
        let line = StoredLine { v: FORMAT, id: format!("{id:016x}"), entry: StoredEntry::from(entry) };
        let mut bytes = vec![b'\n'];
        serde_json::to_writer(&mut bytes, &line)
            .map_err(|error| StoreError::io("write", &self.file)(error.into()))?;
        bytes.push(b'\n');
        root::make_folder(&self.folder)?;
        let wrong = |verb| StoreError::io(verb, &self.file);
        let mut file = root::private(&self.file).map_err(wrong("open"))?;
        // Whoever empties the spool holds it alone for a moment.
        file.lock_shared().map_err(wrong("lock"))?;
        if file.metadata().map_err(wrong("look at"))?.len() > LARGEST {
            return Err(StoreError::Full { path: self.file.clone() });
        }
        let written = file.write(&bytes).map_err(wrong("write"))?;
        match written == bytes.len() {
            true => Ok(()),
            false => Err(StoreError::Full { path: self.file.clone() }),
        }
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
        let mut noted = Noted::load(connection)?;
        let mut room = most;
        let mut all = Vec::new();
        for path in self.files() {
            // A file that cannot be read now is there the next time.
            let mut content = Vec::new();
            let read = root::existing(&path).and_then(|mut file| file.read_to_end(&mut content));
            if read.is_err() {
                continue;
            }
            let mut taken = Taken { path, content, unreadable: Vec::new(), whole: true, entries: 0 };
            taken.read(connection, &mut noted, &mut room, take)?;
            all.push(taken);
        }
        noted.forget_what_is_gone(connection)?;
        Ok(all)
    }

    /// Empties what was taken in and committed. What was added since stays for the next one.
    pub(crate) fn settle(&self, all: Vec<Taken>) {
        for taken in all.into_iter().filter(|taken| taken.whole) {
            let _the_next_one_will_see_it_noted = self.empty(&taken);
        }
    }

    fn empty(&self, taken: &Taken) -> std::io::Result<()> {
        if !taken.unreadable.is_empty() {
            let mut file = root::private(&self.folder.join(UNREADABLE))?;
            if file.metadata()?.len() < UNREADABLE_MAX {
                file.write_all(&taken.unreadable)?;
            }
        }
        let mut file = root::existing(&taken.path)?;
        file.lock()?;
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
        connection: &Connection,
        noted: &mut Noted,
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
            let is_known = noted.has(&id);
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
            noted.add(connection, id)?;
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
struct Noted {
    before: HashSet<String>,
    seen: HashSet<String>,
}

impl Noted {
    fn load(connection: &Connection) -> Result<Noted, rusqlite::Error> {
        let mut statement = connection.prepare_cached("SELECT id FROM taken")?;
        let before = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(Noted { before, seen: HashSet::new() })
    }

    fn has(&mut self, id: &str) -> bool {
        !self.seen.insert(id.to_owned()) || self.before.contains(id)
    }

    fn add(&mut self, connection: &Connection, id: String) -> Result<(), rusqlite::Error> {
        connection.prepare_cached("INSERT INTO taken (id) VALUES (?1)")?.execute([id])?;
        Ok(())
    }

    fn forget_what_is_gone(&self, connection: &Connection) -> Result<(), rusqlite::Error> {
        let mut statement = connection.prepare_cached("DELETE FROM taken WHERE id = ?1")?;
        for id in self.before.difference(&self.seen) {
            statement.execute([id])?;
        }
        Ok(())
    }
}

/// Removes files of the spool that are empty. Only where no process can be about to write to one of its own.
pub(crate) fn remove_empty(folder: &Path, keep: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let is_empty = |path: &PathBuf| path != keep && fs::metadata(path).is_ok_and(|found| found.len() == 0);
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(is_empty)
        .filter(|path| fs::remove_file(path).is_ok())
        .count() as u64
}
