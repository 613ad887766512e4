//! What is known of one name in a folder: all that makes it what it is, and all that tells whether it is still the same.

use rustix::fs::{FileType, Stat};

/// The name of a content: its blake3 hash.
pub(crate) type Hash = [u8; 32];

/// The hash of nothing but zeros, in a list of chunks: nothing is stored for it.
pub(crate) const HOLE: Hash = [0; 32];

/// A moment as filesystems know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Moment {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// What something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing is there. Only a scope can be that.
    Absent,
    File,
    Folder,
    Link,
    Fifo,
    /// A socket or a device: noted, never copied.
    Special,
}

/// What is special about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags(pub(crate) u16);

impl Flags {
    /// It changed so shortly before it was looked at that its times cannot tell whether it changed again.
    pub(crate) const RACY: Flags = Flags(1);
    /// Its hash is the one of the list of its chunks' hashes.
    pub(crate) const CHUNKED: Flags = Flags(2);
    /// It takes less of the disk than its size says.
    pub(crate) const SPARSE: Flags = Flags(4);
    /// It has extended attributes.
    pub(crate) const ATTRIBUTES: Flags = Flags(8);
    /// A folder that can be made again: what is in it is not held.
    pub(crate) const REBUILDABLE: Flags = Flags(16);
    /// Never to be taken.
    pub(crate) const NEVER: Flags = Flags(32);
    /// It could not be read.
    pub(crate) const UNREADABLE: Flags = Flags(64);
    /// Something else is mounted there.
    pub(crate) const MOUNTED: Flags = Flags(128);
    /// It changed each time it was read.
    pub(crate) const UNSTABLE: Flags = Flags(256);

    /// All that says that the content is not held.
    const NOT_HELD: u16 = 16 | 32 | 64 | 128 | 256;

    pub(crate) fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) fn with(self, flag: Flags) -> Flags {
        Flags(self.0 | flag.0)
    }

    pub(crate) fn without(self, flag: Flags) -> Flags {
        Flags(self.0 & !flag.0)
    }
}

/// One name in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Kind and permissions, as `stat` gives them; 0 where nothing is there.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) links: u32,
    pub(crate) size: u64,
    pub(crate) mtime: Moment,
    pub(crate) ctime: Moment,
    pub(crate) inode: u64,
    pub(crate) flags: Flags,
    /// Of a file's content or a link's target; zero where there is none.
    pub(crate) hash: Hash,
}

impl Entry {
    /// A scope at which nothing is there.
    pub(crate) const ABSENT: Entry = Entry {
        mode: 0,
        uid: 0,
        gid: 0,
        links: 0,
        size: 0,
        mtime: Moment { seconds: 0, nanos: 0 },
        ctime: Moment { seconds: 0, nanos: 0 },
        inode: 0,
        flags: Flags(0),
        hash: HOLE,
    };

    /// What the system says; the content is not known yet.
    #[allow(clippy::unnecessary_cast, reason = "the numbers' types differ from one system to the next")]
    pub(crate) fn of(stat: &Stat) -> Entry {
        let mtime = Moment { seconds: stat.st_mtime as i64, nanos: stat.st_mtime_nsec as u32 };
        let ctime = Moment { seconds: stat.st_ctime as i64, nanos: stat.st_ctime_nsec as u32 };
        let mode = stat.st_mode as u32;
        let is_file = FileType::from_raw_mode(mode as _) == FileType::RegularFile;
        let sparse = is_file && (stat.st_blocks as u64).saturating_mul(512) < stat.st_size as u64;
        Entry {
            mode,
            uid: stat.st_uid,
            gid: stat.st_gid,
            links: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
            size: stat.st_size as u64,
            mtime,
            ctime,
            inode: stat.st_ino as u64,
            flags: if sparse { Flags::SPARSE } else { Flags::default() },
            hash: HOLE,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        if self.mode == 0 {
            return Kind::Absent;
        }
        match FileType::from_raw_mode(self.mode as _) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link,
            FileType::Fifo => Kind::Fifo,
            _ => Kind::Special,
        }
    }

    /// Is its content, or what is in it, held?
    pub(crate) fn is_held(&self) -> bool {
        self.flags.0 & Flags::NOT_HELD == 0 && self.kind() != Kind::Special
    }

    /// Has nothing touched it since, as far as the system tells? What was racy then may have changed unseen.
    pub(crate) fn is_untouched(&self, now: &Entry) -> bool {
        !self.flags.has(Flags::RACY) && self.has_same_stat(now)
    }

    /// Does the system say the same of both?
    pub(crate) fn has_same_stat(&self, other: &Entry) -> bool {
        self.inode == other.inode
            && self.ctime == other.ctime
            && self.mtime == other.mtime
            && self.size == other.size
            && self.mode == other.mode
            && self.uid == other.uid
            && self.gid == other.gid
    }

    /// Mode, owner and time are the same. The times of links are compared as well.
    pub(crate) fn has_same_marks(&self, other: &Entry) -> bool {
        self.mode == other.mode && self.uid == other.uid && self.gid == other.gid && self.mtime == other.mtime
    }

    /// Marks it where its times are too near to `begun` to tell of a later change. Filesystems that know only whole seconds
    /// need a wider berth.
    pub(crate) fn mark_racy(&mut self, begun: Moment) {
        let is_coarse = self.mtime.nanos == 0 && self.ctime.nanos == 0;
        let berth: i128 = if is_coarse { 2_000_000_000 } else { 20_000_000 };
        let nanos = |moment: Moment| i128::from(moment.seconds) * 1_000_000_000 + i128::from(moment.nanos);
        if nanos(self.mtime.max(self.ctime)) + berth >= nanos(begun) {
            self.flags = self.flags.with(Flags::RACY);
        }
    }
}

/// The extended attributes of something, sorted by name. Access lists are among them.
pub(crate) type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, nanos: u32) -> Entry {
        let moment = Moment { seconds, nanos };
        Entry { mode: 0o100644, mtime: moment, ctime: moment, ..Entry::ABSENT }
    }

    #[test]
    fn what_changed_just_now_is_racy_and_never_untouched() {
        let mut entry = at(1000, 990_000_000);
        entry.mark_racy(Moment { seconds: 1001, nanos: 0 });
        assert!(entry.flags.has(Flags::RACY));
        assert!(!entry.is_untouched(&entry));
    }

    #[test]
    fn whole_seconds_get_a_wider_berth() {
        for (seconds, nanos, racy) in [(999, 0, true), (998, 0, false), (999, 5, false), (1002, 5, true)] {
            let mut entry = at(seconds, nanos);
            entry.mark_racy(Moment { seconds: 1000, nanos: 500_000_000 });
            assert_eq!(entry.flags.has(Flags::RACY), racy, "{seconds}.{nanos}");
        }
    }
}
