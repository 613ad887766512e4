//! The least that looking at a tree can cost: `walk_tree stat FOLDER` lists every folder and asks for the state of every entry,
//! `walk_tree read FOLDER` also reads every byte. It keeps nothing and compares nothing.
#![allow(clippy::print_stdout, reason = "the counts are its only answer")]

use std::error::Error;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, open, openat, statat};
use rustix::io::pread;

type Fault = Box<dyn Error + Send + Sync>;

/// A larger file is read in pieces of this size, so that it keeps all threads busy.
const PIECE: u64 = 16 << 20;

/// What is still to be done; paths are relative to the folder that was asked for.
enum Work {
    Folder(CString),
    Piece(CString, u64, u64),
}

struct Walk {
    root: OwnedFd,
    reads: bool,
    work: Mutex<Vec<Work>>,
    /// How much of the work has not ended yet.
    open: AtomicUsize,
    entries: AtomicU64,
    bytes: AtomicU64,
}

fn main() -> Result<(), Fault> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let [how, folder] = words.as_slice() else { return Err("walk_tree stat|read FOLDER".into()) };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let walk = Walk {
        root: open(folder.as_os_str(), flags, Mode::empty())?,
        reads: how == "read",
        work: Mutex::new(vec![Work::Folder(c".".to_owned())]),
        open: AtomicUsize::new(1),
        entries: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    };
    let threads = thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(|| walk.run())).collect();
        all.into_iter().try_for_each(|one| one.join().map_err(|_| "a thread panicked")?)
    })?;
    println!("{} entries, {} bytes", walk.entries.into_inner(), walk.bytes.into_inner());
    Ok(())
}

impl Walk {
    fn run(&self) -> Result<(), Fault> {
        let mut listing = vec![MaybeUninit::uninit(); 64 << 10];
        let mut buffer = vec![0; 256 << 10];
        while self.open.load(Ordering::Acquire) > 0 {
            let next = self.work.lock().map_err(|_| "a thread panicked")?.pop();
            match next {
                None => {
                    thread::yield_now();
                    continue;
                }
                Some(Work::Folder(path)) => self.folder(&path, &mut listing, &mut buffer)?,
                Some(Work::Piece(path, from, to)) => {
                    let file = openat(&self.root, &path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
                    self.read(&file, from, to, &mut buffer)?;
                }
            }
            self.open.fetch_sub(1, Ordering::Release);
        }
        Ok(())
    }

    fn folder(
        &self,
        path: &CString,
        listing: &mut [MaybeUninit<u8>],
        buffer: &mut [u8],
    ) -> Result<(), Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(&self.root, path, flags, Mode::empty())?;
        let mut entries = RawDir::new(&folder, listing);
        let (mut count, mut found) = (0, Vec::new());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            count += 1;
            let state = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let below = || CString::new([path.to_bytes(), b"/", name.to_bytes()].concat());
            let size = state.st_size as u64;
            match FileType::from_raw_mode(state.st_mode) {
                FileType::Directory => found.push(Work::Folder(below()?)),
                FileType::RegularFile if self.reads && size > PIECE => {
                    for from in (0..size).step_by(PIECE as usize) {
                        found.push(Work::Piece(below()?, from, (from + PIECE).min(size)));
                    }
                }
                FileType::RegularFile if self.reads => {
                    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    self.read(&openat(&folder, name, flags, Mode::empty())?, 0, u64::MAX, buffer)?;
                }
                _ => {}
            }
        }
        self.entries.fetch_add(count, Ordering::Relaxed);
        if !found.is_empty() {
            self.open.fetch_add(found.len(), Ordering::Release);
            self.work.lock().map_err(|_| "a thread panicked")?.append(&mut found);
        }
        Ok(())
    }

    fn read(&self, file: &OwnedFd, mut from: u64, to: u64, buffer: &mut [u8]) -> Result<(), Fault> {
        let begin = from;
        while from < to {
            let wanted = (to - from).min(buffer.len() as u64) as usize;
            match pread(file, &mut buffer[..wanted], from)? {
                0 => break,
                read => from += read as u64,
            }
        }
        self.bytes.fetch_add(from - begin, Ordering::Relaxed);
        Ok(())
    }
}
