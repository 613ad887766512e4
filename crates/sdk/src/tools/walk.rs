//! Goes through a folder and all below it, without following links, in the order of the names.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use tokio_util::sync::CancellationToken;

use super::aside;
use super::ground::Ground;
use crate::failure::Failure;

/// How deep, how many and how long is looked.
const DEPTH_MAX: usize = 64;
const ENTRIES_MAX: u64 = 500_000;
const TIME_MAX: Duration = Duration::from_secs(30);

/// Why not everything was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Enough was found.
    Enough,
    /// There are too many files.
    TooMany,
    /// It took too long.
    TooLong,
}

impl Cut {
    pub(super) fn words(self) -> &'static str {
        match self {
            Cut::Enough => "there is more: only the first `limit` are shown",
            Cut::TooMany => "there are too many files: not all were looked at",
            Cut::TooLong => "it took too long: not all files were looked at",
        }
    }
}

/// What a walk saw beside the files.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) cut: Option<Cut>,
    /// Folders that were left out: those of git and those that programs make again.
    pub(super) left_out: Vec<String>,
    /// Folders that could not be opened.
    pub(super) closed: u64,
}

/// What to do after a file.
pub(super) enum Then {
    GoOn,
    Stop,
}

/// Goes through `way` and hands each ordinary file to `visit`, with the folder that holds it, its name there, and the way to it.
pub(super) fn walk(
    ground: &Ground,
    way: &Path,
    cancellation: &CancellationToken,
    mut visit: impl FnMut(&OwnedFd, &Path, &Path) -> Result<Then, Failure>,
) -> Result<Walked, Failure> {
    let mut walked = Walked::default();
    let begun = Instant::now();
    let mut seen = 0;
    // One that is open for each level: what is still to do in it, the last one first.
    let mut levels = vec![Level::of(ground.folder(way)?, way.to_owned())];
    while let Some(level) = levels.last_mut() {
        let Some((name, kind)) = level.names.pop() else {
            levels.pop();
            continue;
        };
        seen += 1;
        aside::goes_on(cancellation)?;
        if seen > ENTRIES_MAX || begun.elapsed() > TIME_MAX {
            walked.cut = Some(if seen > ENTRIES_MAX { Cut::TooMany } else { Cut::TooLong });
            return Ok(walked);
        }
        let path = level.path.join(&name);
        match kind {
            FileType::RegularFile => match visit(&level.folder, Path::new(&name), &path)? {
                Then::GoOn => {}
                Then::Stop => {
                    walked.cut = Some(Cut::Enough);
                    return Ok(walked);
                }
            },
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                match rustix::fs::openat(&level.folder, &name, flags, Mode::empty()) {
                    Ok(folder) if is_left_out(&folder, &name) => {
                        walked.left_out.push(path.display().to_string())
                    }
                    Ok(folder) if levels.len() < DEPTH_MAX => levels.push(Level::of(folder, path)),
                    Ok(_) | Err(_) => walked.closed += 1,
                }
            }
            _ => {}
        }
    }
    Ok(walked)
}

/// A folder that is being gone through.
struct Level {
    folder: OwnedFd,
    path: PathBuf,
    names: Vec<(OsString, FileType)>,
}

impl Level {
    fn of(folder: OwnedFd, path: PathBuf) -> Level {
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder).into_iter().flatten().flatten() {
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Not every filesystem says it at once.
                FileType::Unknown => rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                kind => kind,
            };
            names.push((name, kind));
        }
        names.sort_by(|a, b| b.0.cmp(&a.0));
        Level { folder, path, names }
    }
}

/// Nobody looks for their own work there. Whoever does begins there.
fn is_left_out(folder: &OwnedFd, name: &OsString) -> bool {
    let is_tagged = || rustix::fs::statat(folder, "CACHEDIR.TAG", AtFlags::SYMLINK_NOFOLLOW).is_ok();
    name == ".git" || name == "node_modules" || is_tagged()
}
