//! What people and programs do to a tree: small deeds, each aimed at whatever happens to be there.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

/// Names that trip programs up.
const NAMES: [&[u8]; 14] = [
    b"a",
    b"b",
    b"c",
    b"d",
    b"e",
    b"with space",
    b"\xff\xfe",
    "名".as_bytes(),
    b".hidden",
    b"-rf",
    b"new\nline",
    b"*",
    b"node_modules",
    b"Cargo.toml",
];

/// Picks something that is there: the number is taken modulo how many there are.
type Pick = u16;

/// One deed. Where there is nothing to do it to, nothing is done.
#[derive(Debug, Clone)]
pub enum Deed {
    Write {
        folder: Pick,
        name: Pick,
        size: Size,
        seed: u8,
    },
    /// A new content of the same length, with the old time put back.
    Forge {
        file: Pick,
        seed: u8,
    },
    Append {
        file: Pick,
        length: u16,
    },
    Truncate {
        file: Pick,
        to: u16,
    },
    /// Bytes in the middle of a file change.
    Patch {
        file: Pick,
        at: u32,
        seed: u8,
    },
    /// Written beside and renamed over, as editors do.
    Replace {
        file: Pick,
        size: Size,
        seed: u8,
    },
    MakeFolder {
        folder: Pick,
        name: Pick,
    },
    MakeLink {
        folder: Pick,
        name: Pick,
        target: Pick,
    },
    MakeFifo {
        folder: Pick,
        name: Pick,
    },
    /// A few files as git has them.
    MakeRepository {
        folder: Pick,
        seed: u8,
    },
    HardLink {
        file: Pick,
        folder: Pick,
        name: Pick,
    },
    Rename {
        from: Pick,
        folder: Pick,
        name: Pick,
    },
    Swap {
        one: Pick,
        other: Pick,
    },
    Delete {
        what: Pick,
    },
    /// A folder goes and a file comes in its place, or the other way round.
    Retype {
        what: Pick,
    },
    Mode {
        what: Pick,
        mode: u16,
    },
    Time {
        what: Pick,
        seconds: u32,
        nanos: u32,
    },
    SetAttribute {
        what: Pick,
        name: Pick,
        value: Vec<u8>,
    },
    DropAttribute {
        what: Pick,
        name: Pick,
    },
    Owner {
        what: Pick,
        owner: u16,
    },
    /// A file is moved away and comes back, untouched.
    ThereAndBack {
        what: Pick,
    },
}

/// How long a file is.
#[derive(Debug, Clone, Copy)]
pub enum Size {
    Empty,
    Small(u16),
    Blocks(u16),
    /// Kept in parts.
    Big(u32),
    /// Mostly holes.
    Sparse(u32),
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![
        3 => Just(Size::Empty),
        20 => (1..200_u16).prop_map(Size::Small),
        6 => (1..40_u16).prop_map(Size::Blocks),
        1 => (0..900_000_u32).prop_map(Size::Big),
        1 => (0..9_000_000_u32).prop_map(Size::Sparse),
    ]
}

/// Any deed.
pub fn deed() -> impl Strategy<Value = Deed> {
    let pick = any::<Pick>;
    prop_oneof![
        8 => (pick(), pick(), size(), any::<u8>()).prop_map(|(folder, name, size, seed)| Deed::Write { folder, name, size, seed }),
        4 => (pick(), any::<u8>()).prop_map(|(file, seed)| Deed::Forge { file, seed }),
        2 => (pick(), any::<u16>()).prop_map(|(file, length)| Deed::Append { file, length }),
        2 => (pick(), any::<u16>()).prop_map(|(file, to)| Deed::Truncate { file, to }),
        3 => (pick(), any::<u32>(), any::<u8>()).prop_map(|(file, at, seed)| Deed::Patch { file, at, seed }),
        3 => (pick(), size(), any::<u8>()).prop_map(|(file, size, seed)| Deed::Replace { file, size, seed }),
        5 => (pick(), pick()).prop_map(|(folder, name)| Deed::MakeFolder { folder, name }),
        3 => (pick(), pick(), pick()).prop_map(|(folder, name, target)| Deed::MakeLink { folder, name, target }),
        1 => (pick(), pick()).prop_map(|(folder, name)| Deed::MakeFifo { folder, name }),
        1 => (pick(), any::<u8>()).prop_map(|(folder, seed)| Deed::MakeRepository { folder, seed }),
        3 => (pick(), pick(), pick()).prop_map(|(file, folder, name)| Deed::HardLink { file, folder, name }),
        4 => (pick(), pick(), pick()).prop_map(|(from, folder, name)| Deed::Rename { from, folder, name }),
        2 => (pick(), pick()).prop_map(|(one, other)| Deed::Swap { one, other }),
        4 => pick().prop_map(|what| Deed::Delete { what }),
        2 => pick().prop_map(|what| Deed::Retype { what }),
        2 => (pick(), 0..0o10000_u16).prop_map(|(what, mode)| Deed::Mode { what, mode }),
        2 => (pick(), any::<u32>(), 0..1_000_000_000_u32).prop_map(|(what, seconds, nanos)| Deed::Time { what, seconds, nanos }),
        2 => (pick(), pick(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(what, name, value)| Deed::SetAttribute { what, name, value }),
        1 => (pick(), pick()).prop_map(|(what, name)| Deed::DropAttribute { what, name }),
        1 => (pick(), 0..9_u16).prop_map(|(what, owner)| Deed::Owner { what, owner }),
        1 => pick().prop_map(|what| Deed::ThereAndBack { what }),
    ]
}

/// Deeds among which many give a file another name, or change what all of its names show.
pub fn tying_deed() -> impl Strategy<Value = Deed> {
    let pick = any::<Pick>;
    prop_oneof![
        6 => deed(),
        3 => (pick(), pick(), pick()).prop_map(|(file, folder, name)| Deed::HardLink { file, folder, name }),
        1 => (pick(), 0..0o10000_u16).prop_map(|(what, mode)| Deed::Mode { what, mode }),
        1 => pick().prop_map(|what| Deed::Delete { what }),
    ]
}

/// What is in a tree, in a fixed order. The tree itself is the first folder.
struct There {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
    all: Vec<PathBuf>,
}

impl There {
    fn of(tree: &Path) -> io::Result<There> {
        let mut there = There { folders: vec![tree.to_owned()], files: Vec::new(), all: Vec::new() };
        let mut at = 0;
        while let Some(folder) = there.folders.get(at).cloned() {
            at += 1;
            let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                let kind = entry.file_type()?;
                there.all.push(entry.path());
                if kind.is_dir() {
                    there.folders.push(entry.path());
                } else if kind.is_file() {
                    there.files.push(entry.path());
                }
            }
        }
        Ok(there)
    }
}

fn pick(from: &[PathBuf], number: Pick) -> Option<&Path> {
    let at = usize::from(number).checked_rem(from.len())?;
    from.get(at).map(PathBuf::as_path)
}

/// Does one deed in a tree.
pub fn perform(tree: &Path, deed: &Deed) -> io::Result<()> {
    let there = There::of(tree)?;
    let new = |folder: Pick, name: Pick| {
        let name = NAMES[usize::from(name) % NAMES.len()];
        let path = pick(&there.folders, folder).unwrap_or(tree).join(OsStr::from_bytes(name));
        (fs::symlink_metadata(&path).is_err()).then_some(path)
    };
    let file = |number: Pick| pick(&there.files, number);
    let any = |number: Pick| pick(&there.all, number);
    match deed {
        Deed::Write { folder, name, size, seed } => {
            new(*folder, *name).map(|path| write(&path, *size, *seed))
        }
        Deed::Forge { file: number, seed } => file(*number).map(|path| forge(path, *seed)),
        Deed::Append { file: number, length } => file(*number).map(|path| {
            OpenOptions::new().append(true).open(path)?.write_all(&noise(u64::from(*length % 5000), 1))
        }),
        Deed::Truncate { file: number, to } => file(*number)
            .map(|path| OpenOptions::new().write(true).open(path)?.set_len(u64::from(*to % 9000))),
        Deed::Patch { file: number, at, seed } => file(*number).map(|path| {
            let length = fs::metadata(path)?.len();
            let at = u64::from(*at).checked_rem(length).unwrap_or(0);
            OpenOptions::new().write(true).open(path)?.write_all_at(&[*seed; 3], at)
        }),
        Deed::Replace { file: number, size, seed } => file(*number).map(|path| {
            let beside = path.with_file_name(".beside");
            write(&beside, *size, *seed)?;
            fs::rename(beside, path)
        }),
        Deed::MakeFolder { folder, name } => new(*folder, *name).map(fs::create_dir),
        Deed::MakeLink { folder, name, target } => new(*folder, *name).map(|path| {
            let target = NAMES[usize::from(*target) % NAMES.len()];
            symlink(Path::new("..").join(OsStr::from_bytes(target)), path)
        }),
        Deed::MakeFifo { folder, name } => new(*folder, *name)
            .map(|path| Ok(rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o640), 0)?)),
        Deed::MakeRepository { folder, seed } => pick(&there.folders, *folder)
            // A link that leads nowhere stands in the way as well.
            .filter(|path| path.join(".git").symlink_metadata().is_err())
            .map(|path| repository(path, *seed)),
        Deed::HardLink { file: number, folder, name } => {
            file(*number).zip(new(*folder, *name)).map(|(path, new)| fs::hard_link(path, new))
        }
        Deed::Rename { from, folder, name } => any(*from)
            .zip(new(*folder, *name))
            .filter(|(from, to)| !to.starts_with(from))
            .map(|(from, to)| fs::rename(from, to)),
        Deed::Swap { one, other } => any(*one)
            .zip(any(*other))
            .filter(|(one, other)| !one.starts_with(other) && !other.starts_with(one))
            .map(|(one, other)| {
                Ok(rustix::fs::renameat_with(CWD, one, CWD, other, rustix::fs::RenameFlags::EXCHANGE)?)
            }),
        Deed::Delete { what } => any(*what).map(remove),
        Deed::Retype { what } => any(*what).map(retype),
        Deed::Mode { what, mode } => any(*what).filter(|path| !path.is_symlink()).map(|path| {
            // Whoever is not root must still be able to look.
            fs::set_permissions(path, fs::Permissions::from_mode(u32::from(*mode) | 0o700))
        }),
        Deed::Time { what, seconds, nanos } => {
            any(*what).map(|path| set_time(path, i64::from(*seconds), *nanos))
        }
        Deed::SetAttribute { what, name, value } => {
            any(*what).filter(|path| has_attributes(path)).map(|path| {
                let name = format!("user.{}", name % 3);
                tolerated(rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()))
            })
        }
        Deed::DropAttribute { what, name } => any(*what).filter(|path| has_attributes(path)).map(|path| {
            match rustix::fs::lremovexattr(path, format!("user.{}", name % 3)) {
                Err(rustix::io::Errno::NODATA) => Ok(()),
                done => tolerated(done),
            }
        }),
        Deed::Owner { what, owner } => any(*what)
            .filter(|_| rustix::process::geteuid().is_root())
            .map(|path| lchown(path, Some(u32::from(*owner)), Some(u32::from(*owner) + 1))),
        Deed::ThereAndBack { what } => any(*what).map(|path| {
            let away = tree.join(".away");
            fs::rename(path, &away)?;
            fs::rename(away, path)
        }),
    }
    .unwrap_or(Ok(()))
}

fn has_attributes(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() || found.is_dir())
}

/// Not every filesystem has attributes.
fn tolerated(done: rustix::io::Result<()>) -> io::Result<()> {
    match done {
        Err(rustix::io::Errno::NOTSUP) => Ok(()),
        done => Ok(done?),
    }
}

/// Bytes that depend on nothing but the seed and their place.
fn noise(length: u64, seed: u8) -> Vec<u8> {
    let mut state = u64::from(seed) * 0x9e37_79b9 + length;
    let mut byte = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Every other kilobyte can be compressed.
        if state >> 63 == 0 { b'x' } else { (state >> 33) as u8 }
    };
    (0..length).map(&mut byte).collect()
}

fn write(path: &Path, size: Size, seed: u8) -> io::Result<()> {
    let mut file = File::create(path)?;
    match size {
        Size::Empty => Ok(()),
        Size::Small(length) => file.write_all(&noise(u64::from(length), seed)),
        Size::Blocks(count) => file.write_all(&noise(u64::from(count) * 1024, seed)),
        Size::Big(more) => {
            let part = noise(1 << 16, seed);
            let length = (4 << 20) + u64::from(more);
            for _ in 0..length >> 16 {
                file.write_all(&part)?;
            }
            file.write_all(&part[..(length & 0xffff) as usize])
        }
        Size::Sparse(length) => {
            file.set_len(u64::from(length))?;
            file.seek(SeekFrom::Start(u64::from(length) / 2))?;
            file.write_all(&noise(100, seed))
        }
    }
}

fn forge(path: &Path, seed: u8) -> io::Result<()> {
    let before = fs::metadata(path)?;
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(&noise(before.len().min(3000), seed), 0)?;
    file.set_modified(before.modified()?)
}

fn repository(folder: &Path, seed: u8) -> io::Result<()> {
    let git = folder.join(".git");
    for part in ["objects/ab", "objects/pack", "refs/heads", "refs/tags"] {
        fs::create_dir_all(git.join(part))?;
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
    fs::write(git.join("refs/heads/main"), format!("{seed:040x}\n"))?;
    fs::write(git.join("index"), noise(500, seed))?;
    let object = git.join("objects/ab").join(format!("{seed:038x}"));
    fs::write(&object, noise(300, seed))?;
    fs::set_permissions(&object, fs::Permissions::from_mode(0o444))
}

pub fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

fn retype(path: &Path) -> io::Result<()> {
    let is_folder = fs::symlink_metadata(path)?.is_dir();
    remove(path)?;
    match is_folder {
        true => fs::write(path, "was a folder"),
        false => {
            fs::create_dir(path)?;
            fs::write(path.join("inside"), "was a file")
        }
    }
}

fn set_time(path: &Path, seconds: i64, nanos: u32) -> io::Result<()> {
    let moment = Timespec { tv_sec: seconds, tv_nsec: i64::from(nanos) };
    let times = Timestamps { last_access: moment, last_modification: moment };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The time as it is now.
#[allow(clippy::disallowed_methods, reason = "whoever asks for snapshots has a clock")]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// Longer than any test takes.
pub const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);
