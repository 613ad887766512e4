//! Puts new content into the place of a file at once, and only if what is replaced is what was looked at before.
//!
//! The content is written beside the file first. Then the two change places, what came out is compared with what was expected,
//! and if somebody else was quicker they change back: nobody's work is lost. It must never write into the file itself.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::aside;
use super::ground::{Ground, Spot, failed};
use crate::call::unique;
use crate::failure::Failure;

/// What was in a place when it was looked at.
#[derive(Debug)]
pub(super) enum Before {
    /// Nothing.
    Nothing,
    /// A file of which the outside is known.
    File(Stat),
    /// A file of which every byte is known.
    Read(Stat, Vec<u8>),
}

/// One of our own calls at a time works on a file.
pub(super) fn alone_at(spot: &Spot) -> MutexGuard<'static, ()> {
    static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];
    let mut hasher = DefaultHasher::new();
    let folder = rustix::fs::fstat(&spot.folder).map(|stat| (stat.st_dev, stat.st_ino)).ok();
    (folder, &spot.name).hash(&mut hasher);
    let at = usize::try_from(hasher.finish() % LOCKS.len() as u64).unwrap_or_default();
    LOCKS[at].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces what is in a place, and looks whether it is really there afterwards.
pub(super) fn replace(
    ground: &Ground,
    spot: &Spot,
    before: &Before,
    content: &[u8],
    cancellation: &CancellationToken,
) -> Result<(), Failure> {
    let draft = Draft::write(spot, before, content).map_err(|error| failed("write", &spot.path, &error))?;
    draft.put(before, cancellation)?;
    verify(ground, &spot.path, content)
}

/// New content that lies beside its place.
struct Draft<'a> {
    spot: &'a Spot,
    name: String,
    /// Which file it is.
    file: u64,
}

impl<'a> Draft<'a> {
    /// Writes it, with the mode and the owner that the file has.
    fn write(spot: &'a Spot, before: &Before, content: &[u8]) -> io::Result<Draft<'a>> {
        let mut draft = Draft { spot, name: format!(".{:016x}.draft", unique()), file: 0 };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let replaced = before.stat();
        // What others may not read is not shown to them in between.
        let mode = Mode::from(if replaced.is_some() { 0o600 } else { 0o666 });
        let mut file = File::from(rustix::fs::openat(&spot.folder, &*draft.name, flags, mode)?);
        file.write_all(content)?;
        if let Some(stat) = replaced {
            // Only the owner of a machine may give files away; for everybody else they stay their own.
            let _as_far_as_allowed =
                rustix::fs::fchown(&file, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)));
            rustix::fs::fchmod(&file, Mode::from_raw_mode(stat.st_mode))?;
        }
        file.sync_data()?;
        draft.file = draft.number()?;
        Ok(draft)
    }

    /// Puts it into its place.
    fn put(self, before: &Before, cancellation: &CancellationToken) -> Result<(), Failure> {
        aside::goes_on(cancellation)?;
        let placed = match before {
            Before::Nothing => self.put_where_nothing_is(),
            Before::File(_) | Before::Read(..) => self.exchange(before),
        };
        match placed {
            Ok(true) => Ok(()),
            Ok(false) => Err(changed_meanwhile(&self.spot.path)),
            Err(error) => Err(failed("write", &self.spot.path, &error)),
        }
    }

    fn put_where_nothing_is(&self) -> io::Result<bool> {
        #[cfg(any(target_os = "linux", target_vendor = "apple"))]
        match self.rename(rustix::fs::RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => return Ok(false),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            renamed => return Ok(renamed.map(|()| true)?),
        }
        self.replace_if_still(&Before::Nothing)
    }

    fn exchange(&self, before: &Before) -> io::Result<bool> {
        #[cfg(any(target_os = "linux", target_vendor = "apple"))]
        {
            use rustix::fs::RenameFlags;
            match self.rename(RenameFlags::EXCHANGE) {
                // It is gone since.
                Err(Errno::NOENT) => return Ok(false),
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                Err(error) => return Err(error.into()),
                Ok(()) if before.is_still(self.spot, OsStr::new(&self.name)) => return Ok(true),
                Ok(()) => return self.give_back().map(|()| false),
            }
        }
        self.replace_if_still(before)
    }

    /// The next best where two files cannot change places: a look right before.
    fn replace_if_still(&self, before: &Before) -> io::Result<bool> {
        match before.is_still(self.spot, self.spot.name.as_os_str()) {
            true => self.replace(),
            false => Ok(false),
        }
    }

    /// Puts back what was taken out of the place by mistake. Somebody may put something newer there meanwhile, and then that
    /// comes out instead: it goes back in, until what comes out is what was put there last.
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    fn give_back(&self) -> io::Result<()> {
        const OFTEN_ENOUGH: usize = 1_000;
        let mut put_last = self.file;
        for _ in 0..OFTEN_ENOUGH {
            let going_in = self.number()?;
            self.rename(rustix::fs::RenameFlags::EXCHANGE)?;
            if self.number()? == put_last {
                return Ok(());
            }
            put_last = going_in;
        }
        Ok(())
    }

    /// Which file lies beside the place.
    fn number(&self) -> io::Result<u64> {
        Ok(rustix::fs::statat(&self.spot.folder, &*self.name, AtFlags::SYMLINK_NOFOLLOW)?.st_ino)
    }

    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    fn rename(&self, flags: rustix::fs::RenameFlags) -> Result<(), Errno> {
        let folder = &self.spot.folder;
        rustix::fs::renameat_with(folder, &*self.name, folder, &self.spot.name, flags)
    }

    fn replace(&self) -> io::Result<bool> {
        let folder = &self.spot.folder;
        rustix::fs::renameat(folder, &*self.name, folder, &self.spot.name)?;
        Ok(true)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // Nothing is left of it where it took its place alone.
        let _it_may_be_gone = rustix::fs::unlinkat(&self.spot.folder, &*self.name, AtFlags::empty());
    }
}

impl Before {
    /// What is there, known from outside.
    pub(super) fn look(spot: &Spot) -> Result<Before, Failure> {
        Ok(spot.look_for_file()?.map_or(Before::Nothing, Before::File))
    }

    pub(super) fn stat(&self) -> Option<&Stat> {
        match self {
            Before::Nothing => None,
            Before::File(stat) | Before::Read(stat, _) => Some(stat),
        }
    }

    /// Is what lies at this name what was looked at?
    fn is_still(&self, spot: &Spot, name: &OsStr) -> bool {
        let now = || -> io::Result<bool> {
            match self {
                Before::Nothing => Ok(spot.look()?.is_none()),
                Before::File(then) => {
                    let now = rustix::fs::statat(&spot.folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    let outside = |stat: &Stat| {
                        (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec)
                    };
                    Ok(outside(&now) == outside(then))
                }
                Before::Read(_, bytes) => holds(spot.open(name)?, bytes),
            }
        };
        now().unwrap_or(false)
    }
}

/// The last look: what is at the path now is what was meant to be.
fn verify(ground: &Ground, way: &Path, meant: &[u8]) -> Result<(), Failure> {
    match holds(ground.file(way)?, meant) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let words = format!(
                "`{}` was changed on disk by somebody else right after it was written",
                way.display()
            );
            Err(Failure::expected(words)
                .in_chinese(format!("`{}` 写入之后立即被他人改动", way.display()))
                .recommend_both(
                    "read the file again with fs_read, and see what it holds now",
                    "用 fs_read 重新读取文件，查看当前内容",
                ))
        }
        Err(error) => Err(failed("read back", way, &error)),
    }
}

/// Does a file hold exactly this?
pub(super) fn holds(mut file: File, meant: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; 64 * 1024];
    let mut rest = meant;
    loop {
        let read = match file.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        match (read, rest.split_at_checked(read)) {
            (0, _) => return Ok(rest.is_empty()),
            (_, Some((same, behind))) if same == &buffer[..read] => rest = behind,
            (_, Some(_) | None) => return Ok(false),
        }
    }
}

fn changed_meanwhile(path: &Path) -> Failure {
    let words =
        format!("`{}`: the file has been modified since it was read, by somebody else", path.display());
    Failure::expected(words)
        .in_chinese(format!("`{}`：文件在读取之后被他人改动", path.display()))
        .recommend_both(
            "read the file again with fs_read, and make the change in what it holds now",
            "用 fs_read 重新读取文件，在当前内容上修改",
        )
}

#[cfg(test)]
mod tests;
