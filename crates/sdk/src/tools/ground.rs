//! The folder that file tools work in: every path is reached from there, and none leads out of it.
//!
//! The system itself keeps to that where it can (`openat2`), so nobody who swaps a folder for a link in between gets further
//! than with a link that lay there from the beginning. Where it cannot, links on the way are not followed at all.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::failure::Failure;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The folder, opened for one call.
#[derive(Debug)]
pub(super) struct Ground {
    folder: OwnedFd,
    /// As it was given.
    given: PathBuf,
    /// Its real place.
    real: PathBuf,
}

/// Something in a folder, by its name.
#[derive(Debug)]
pub(super) struct Spot {
    /// The folder that holds it.
    pub(super) folder: OwnedFd,
    /// Its name there.
    pub(super) name: PathBuf,
    /// The way to it from the ground, for whoever is told.
    pub(super) path: PathBuf,
}

impl Ground {
    /// Opens it.
    pub(super) fn open(given: &Path) -> Result<Ground, Failure> {
        let opened = || -> io::Result<Ground> {
            let real = fs::canonicalize(given)?;
            let folder = rustix::fs::openat(CWD, &real, FOLDER, Mode::empty())?;
            Ok(Ground { folder, given: given.to_owned(), real })
        };
        opened().map_err(|error| failed("open the folder", given, &error))
    }

    /// Its real place.
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// A path as a model writes it, as the way from here. What is meant to lead elsewhere is refused by its words alone.
    pub(super) fn way_to(&self, path: &str) -> Result<PathBuf, Failure> {
        let outside = |why: &str| {
            Failure::invalid(format!(
                "`{path}` {why}: the path must be within the workspace `{}`",
                self.given.display()
            ))
            .in_chinese(format!("`{path}`：路径必须位于工作区 `{}` 内", self.given.display()))
            .recommend_both(
                "give a path relative to the workspace, without `..`",
                "请给出相对于工作区、不含 `..` 的路径",
            )
        };
        if path.is_empty() || path.contains('\0') {
            return Err(outside("is no path"));
        }
        let path = Path::new(path);
        let way = match path.is_absolute() {
            false => path,
            true => path
                .strip_prefix(&self.given)
                .or_else(|_| path.strip_prefix(&self.real))
                .map_err(|_| outside("lies elsewhere"))?,
        };
        let mut plain = PathBuf::new();
        for part in way.components() {
            match part {
                Component::Normal(name) => plain.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(outside("goes up with `..`"));
                }
            }
        }
        Ok(plain)
    }

    /// Opens what a way leads to, links followed as long as they stay here.
    fn reach(&self, way: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let way = if way.as_os_str().is_empty() { Path::new(".") } else { way };
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            match openat2(&self.folder, way, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                // Old kernels do not know it, and some sandboxes forbid what they do not know.
                Err(Errno::NOSYS | Errno::PERM) => {}
                // Something on the way was moved just now: what is true of the next look is as good.
                Err(Errno::AGAIN) => return self.step_by_step(way, flags),
                opened => return Ok(opened?),
            }
        }
        self.step_by_step(way, flags)
    }

    fn step_by_step(&self, way: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let mut folder = self.folder.try_clone()?;
        let mut parts = way.components().map(Component::as_os_str).peekable();
        while let Some(name) = parts.next() {
            let flags = if parts.peek().is_some() { FOLDER } else { flags | OFlags::CLOEXEC };
            folder = rustix::fs::openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(folder)
    }

    /// Opens a folder.
    pub(super) fn folder(&self, way: &Path) -> Result<OwnedFd, Failure> {
        self.reach(way, FOLDER).map_err(|error| failed("open the folder", way, &error))
    }

    /// Opens a file to read it. What is no ordinary file is none: a pipe would be waited on for ever.
    pub(super) fn file(&self, way: &Path) -> Result<File, Failure> {
        let read = |error: &io::Error| match error.kind() {
            io::ErrorKind::NotFound => self.not_found(way, error),
            _ => failed("read", way, error),
        };
        let file =
            File::from(self.reach(way, OFlags::RDONLY | OFlags::NONBLOCK).map_err(|error| read(&error))?);
        let about = file.metadata().map_err(|error| read(&error))?;
        match (about.is_file(), about.is_dir()) {
            (true, _) => Ok(file),
            (false, true) => Err(Failure::expected(format!("`{}` is a directory", way.display()))
                .in_chinese(format!("`{}` 是文件夹", way.display()))
                .recommend_both("list what is in it with fs_glob", "用 fs_glob 列出其中的内容")),
            (false, false) => Err(special(way)),
        }
    }

    /// The place of a file that is to be written: its folder must be there, unless it is to be made.
    pub(super) fn spot(&self, way: &Path, makes_folders: bool) -> Result<Spot, Failure> {
        let Some(name) = way.file_name() else {
            return Err(Failure::invalid(
                "the path names no file: it must be within the workspace, and not be it",
            ));
        };
        let holder = way.parent().unwrap_or(Path::new(""));
        let opened = match self.reach(holder, FOLDER) {
            Err(error) if makes_folders && error.kind() == io::ErrorKind::NotFound => self.make(holder),
            opened => opened,
        };
        let folder = opened.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self
                .not_found(holder, &error)
                .recommend_both("set `create_dirs` to make the folder", "设置 `create_dirs` 以创建该文件夹"),
            _ => failed("open the folder", holder, &error),
        })?;
        Ok(Spot { folder, name: name.into(), path: way.to_owned() })
    }

    /// Makes the folders of a way that are not there yet.
    fn make(&self, way: &Path) -> io::Result<OwnedFd> {
        let mut done = PathBuf::new();
        let mut folder = self.folder.try_clone()?;
        for part in way.components() {
            match rustix::fs::mkdirat(&folder, part.as_os_str(), Mode::from(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            done.push(part);
            folder = self.reach(&done, FOLDER)?;
        }
        Ok(folder)
    }

    /// The real place of something, for whoever has to name it to others. Its own last name is not followed.
    pub(super) fn real_place(&self, way: &Path) -> io::Result<PathBuf> {
        let holder = self.real.join(way.parent().unwrap_or(Path::new("")));
        let holder = fs::canonicalize(holder)?;
        match way.file_name() {
            Some(name) if holder.starts_with(&self.real) => Ok(holder.join(name)),
            Some(_) | None => Err(Errno::XDEV.into()),
        }
    }

    /// Nothing is there: what is called nearly like it is named.
    fn not_found(&self, way: &Path, error: &io::Error) -> Failure {
        let failure = failed("find", way, error);
        let holder = way.parent().unwrap_or(Path::new(""));
        let wanted = way.file_name().unwrap_or_default().to_string_lossy();
        let near = self.reach(holder, FOLDER).ok().and_then(|folder| nearest_name(folder, &wanted));
        match near {
            Some(near) => {
                let near = holder.join(near);
                let near = near.display();
                failure.recommend_both(format!("did you mean `{near}`?"), format!("是否指 `{near}`？"))
            }
            None => failure.recommend_both("look for it with fs_glob", "用 fs_glob 查找"),
        }
    }
}

impl Spot {
    /// What is there, not followed; nothing where there is nothing.
    pub(super) fn look(&self) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The same where only an ordinary file may be. A link is not written through: who means what it leads to can say so.
    pub(super) fn look_for_file(&self) -> Result<Option<Stat>, Failure> {
        let stat = self.look().map_err(|error| failed("look at", &self.path, &error))?;
        let Some(stat) = stat else { return Ok(None) };
        let shown = self.path.display();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Some(stat)),
            FileType::Directory => Err(Failure::expected(format!("`{shown}` is a directory"))
                .in_chinese(format!("`{shown}` 是文件夹"))),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&self.folder, &self.name, Vec::new()).unwrap_or_default();
                let target = target.to_string_lossy().into_owned();
                Err(Failure::expected(format!(
                    "`{shown}` is a symbolic link to `{target}`, and links are not written through"
                ))
                .in_chinese(format!("`{shown}` 是指向 `{target}` 的符号链接，不会通过链接写入"))
                .recommend_both("name the file that it leads to", "请写出它指向的文件"))
            }
            _ => Err(special(&self.path)),
        }
    }

    /// Opens a name beside it to read it, not followed.
    pub(super) fn open(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.folder, name, flags, Mode::empty())?))
    }
}

/// What is there can be waited on for ever.
fn special(path: &Path) -> Failure {
    let path = path.display();
    Failure::expected(format!("`{path}` is not a regular file: a pipe, a socket or a device"))
        .in_chinese(format!("`{path}` 不是普通文件，而是管道、套接字或设备"))
}

/// What the system said, in the words that everybody knows.
pub(super) fn failed(deed: &str, path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    if error.raw_os_error() == Some(Errno::XDEV.raw_os_error()) {
        return Failure::invalid(format!(
            "a link on the way to `{path}` leads out: the path must be within the workspace"
        ))
        .in_chinese(format!("通往 `{path}` 的链接指向工作区之外：路径必须位于工作区内"));
    }
    Failure::expected(format!("could not {deed} `{path}`: {error}")).in_chinese(format!(
        "无法{} `{path}`：{}",
        in_chinese(deed),
        reason(error)
    ))
}

/// The name in a folder that is most like another one, where one is much like it.
fn nearest_name(folder: impl AsFd, wanted: &str) -> Option<String> {
    const LOOKED_AT: usize = 2_000;
    let listing = rustix::fs::Dir::read_from(folder).ok()?;
    let names =
        listing.flatten().take(LOOKED_AT).map(|entry| entry.file_name().to_string_lossy().into_owned());
    let rated = names.map(|name| (strsim::jaro_winkler(&name.to_lowercase(), &wanted.to_lowercase()), name));
    rated.filter(|(likeness, _)| *likeness > 0.85).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// What was to be done, in Chinese.
fn in_chinese(deed: &str) -> &str {
    match deed {
        "find" => "找到",
        "read" | "read back" => "读取",
        "write" => "写入",
        "remove" => "删除",
        "look at" => "查看",
        "open the folder" => "打开文件夹",
        "save" => "保存",
        _ => "处理",
    }
}

/// Why the system did not do it, in Chinese where it is one of the usual reasons.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "文件或文件夹不存在".to_owned(),
        io::ErrorKind::PermissionDenied => "权限不足".to_owned(),
        io::ErrorKind::IsADirectory => "是文件夹".to_owned(),
        io::ErrorKind::NotADirectory => "路径中有一段不是文件夹".to_owned(),
        io::ErrorKind::StorageFull => "磁盘空间不足".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "文件系统为只读".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    /// What is read at the end of a way, by the system and step by step; nothing where it leads nowhere.
    #[track_caller]
    fn check(way: &str, by_system: Option<&str>, step_by_step: Option<&str>) {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("in/deep")).unwrap();
        fs::write(folder.path().join("in/deep/a"), "inside").unwrap();
        symlink(outside.path(), folder.path().join("out")).unwrap();
        symlink("in/deep", folder.path().join("short")).unwrap();
        symlink("../in/deep/a", folder.path().join("in/file")).unwrap();
        let ground = Ground::open(folder.path()).unwrap();
        let text = |opened: io::Result<OwnedFd>| {
            let mut text = String::new();
            opened.and_then(|opened| File::from(opened).read_to_string(&mut text)).ok().map(|_| text)
        };
        let way = Path::new(way);
        let seen = (text(ground.reach(way, OFlags::RDONLY)), text(ground.step_by_step(way, OFlags::RDONLY)));
        assert_eq!((seen.0.as_deref(), seen.1.as_deref()), (by_system, step_by_step), "{}", way.display());
    }

    #[test]
    fn no_way_leads_out_with_or_without_the_help_of_the_system() {
        check("in/deep/a", Some("inside"), Some("inside"));
        check("out/secret", None, None);
        check("in/nothing", None, None);
        // Who cannot tell where a link leads follows none.
        #[cfg(target_os = "linux")]
        check("short/a", Some("inside"), None);
        #[cfg(target_os = "linux")]
        check("in/file", Some("inside"), None);
    }
}
