//! What keeps us from editing a file, by what its owner can do about it; in both languages. Every variant leaves the file as
//! it was.

use std::io;
use std::path::{Path, PathBuf};

use unstuck_judge::Lang;

/// Why a file was not edited.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    #[error("{}:{line}:{column}: {what}", path.display())]
    Malformed { path: PathBuf, line: usize, column: usize, what: String },
    #[error("{} is not UTF-8 text", path.display())]
    NotText { path: PathBuf },
    #[error("{}:{line}:{column}: {place} is not {}", path.display(), shape.word(Lang::En))]
    WrongShape { path: PathBuf, line: usize, column: usize, place: String, shape: Shape },
    #[error("{}:{line}:{column}: {place} stands here twice", path.display())]
    Twice { path: PathBuf, line: usize, column: usize, place: String },
    #[error("{} has {bytes} bytes, which is no settings file", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("{} is read-only", path.display())]
    ReadOnly { path: PathBuf },
    #[error("{} is a link to a file that is not there", path.display())]
    LeadsNowhere { path: PathBuf },
    #[error("{} is not a file", path.display())]
    NotAFile { path: PathBuf },
    #[error("{} has {names} names (hard links), and replacing it would part them", path.display())]
    ManyNames { path: PathBuf, names: u64 },
    #[error("{} belongs to another user, and could not stay theirs", path.display())]
    Theirs { path: PathBuf },
    #[error("{} was changed by hand since we wrote it, or was never ours", path.display())]
    NotOurs { path: PathBuf },
    #[error("another program keeps changing {}", path.display())]
    KeepsChanging { path: PathBuf },
    #[error("{} is empty since a moment ago, and another program may be about to write it", path.display())]
    JustEmptied { path: PathBuf },
    #[error("another program has written its own copy of {} over ours, twice", path.display())]
    WrittenBack { path: PathBuf },
    #[error("no space is left for {}", path.display())]
    Full { path: PathBuf },
    #[error("could not {} {}: {source}", deed.word(Lang::En), path.display())]
    Io { deed: Deed, path: PathBuf, source: io::Error },
    #[error("another `unstuck install` or `uninstall` is at work")]
    Busy,
    #[error("{} cannot be read: {what}", path.display())]
    BadLedger { path: PathBuf, what: String },
}

/// What a value should have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    List,
}

impl Shape {
    fn word(self, lang: Lang) -> &'static str {
        match (self, lang) {
            (Shape::Object, Lang::En) => "an object",
            (Shape::List, Lang::En) => "a list",
            (Shape::Object, Lang::Zh) => "对象",
            (Shape::List, Lang::Zh) => "数组",
        }
    }
}

/// What was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Read,
    Write,
    Make,
    Remove,
    Lock,
}

impl Deed {
    fn word(self, lang: Lang) -> &'static str {
        match (self, lang) {
            (Deed::Read, Lang::En) => "read",
            (Deed::Write, Lang::En) => "write",
            (Deed::Make, Lang::En) => "make",
            (Deed::Remove, Lang::En) => "remove",
            (Deed::Lock, Lang::En) => "lock",
            (Deed::Read, Lang::Zh) => "读取",
            (Deed::Write, Lang::Zh) => "写入",
            (Deed::Make, Lang::Zh) => "创建",
            (Deed::Remove, Lang::Zh) => "删除",
            (Deed::Lock, Lang::Zh) => "锁定",
        }
    }
}

impl EditError {
    /// What an input or output error means for the file at `path`.
    pub(crate) fn io(deed: Deed, path: &Path) -> impl FnOnce(io::Error) -> EditError {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                EditError::Full { path }
            }
            io::ErrorKind::ReadOnlyFilesystem => EditError::ReadOnly { path },
            _ => EditError::Io { deed, path, source },
        }
    }

    /// What went wrong, for a person.
    pub(crate) fn in_words(&self, lang: Lang) -> String {
        match lang {
            Lang::En => self.to_string(),
            Lang::Zh => self.in_chinese(),
        }
    }

    fn in_chinese(&self) -> String {
        match self {
            EditError::Malformed { path, line, column, what } => {
                format!("{}:{line}:{column}：{what}", path.display())
            }
            EditError::NotText { path } => format!("{} 不是 UTF-8 文本", path.display()),
            EditError::WrongShape { path, line, column, place, shape } => {
                format!("{}:{line}:{column}：{place} 不是{}", path.display(), shape.word(Lang::Zh))
            }
            EditError::Twice { path, line, column, place } => {
                format!("{}:{line}:{column}：{place} 在此重复出现", path.display())
            }
            EditError::TooLarge { path, bytes } => {
                format!("{} 有 {bytes} 字节，不会是设置文件", path.display())
            }
            EditError::ReadOnly { path } => format!("{} 是只读的", path.display()),
            EditError::LeadsNowhere { path } => format!("{} 是链接，但所指文件不存在", path.display()),
            EditError::NotAFile { path } => format!("{} 不是文件", path.display()),
            EditError::ManyNames { path, names } => {
                format!("{} 有 {names} 个名字（硬链接），替换会使它们分离", path.display())
            }
            EditError::Theirs { path } => format!("{} 属于其他用户，且无法保持其归属", path.display()),
            EditError::NotOurs { path } => {
                format!("{} 在我们写入之后被人修改过，或本来就不是我们的", path.display())
            }
            EditError::KeepsChanging { path } => format!("另一个程序不断修改 {}", path.display()),
            EditError::JustEmptied { path } => {
                format!("{} 刚刚变为空文件，另一个程序可能正要写入", path.display())
            }
            EditError::WrittenBack { path } => {
                format!("另一个程序两次用自己的副本覆盖了我们写入的 {}", path.display())
            }
            EditError::Full { path } => format!("没有空间可存放 {}", path.display()),
            EditError::Io { deed, path, source } => {
                format!("无法{} {}：{source}", deed.word(Lang::Zh), path.display())
            }
            EditError::Busy => "另一个 `unstuck install` 或 `uninstall` 正在运行".to_owned(),
            EditError::BadLedger { path, what } => format!("无法读懂 {}：{what}", path.display()),
        }
    }

    /// What to try.
    pub(crate) fn hint(&self, lang: Lang) -> Option<String> {
        let (en, zh) = match self {
            EditError::Malformed { .. } | EditError::NotText { .. } => (
                "nothing was changed; mend the file there, then run it again",
                "未作任何更改；请修正该处，然后再运行一次",
            ),
            EditError::WrongShape { .. } | EditError::Twice { .. } => (
                "nothing was changed, because it is not clear where our lines belong; mend it there, then run it again",
                "未作任何更改，因为不清楚我们的内容应放在哪里；请修正该处，然后再运行一次",
            ),
            EditError::TooLarge { .. } => ("check what this file is", "请检查这是什么文件"),
            EditError::ReadOnly { .. } => (
                "make it writable, or, where another tool manages it, add there what `--dry-run` shows",
                "请将其设为可写；若由其他工具管理，请在该工具中加入 `--dry-run` 所示内容",
            ),
            EditError::LeadsNowhere { .. } => {
                ("make the file it leads to, or remove the link", "请创建它所指的文件，或删除该链接")
            }
            EditError::NotAFile { .. } => ("move it out of the way", "请将其移开"),
            EditError::ManyNames { .. } => (
                "replace the hard link by a symbolic one, or add by hand what `--dry-run` shows",
                "请改用符号链接，或手动加入 `--dry-run` 所示内容",
            ),
            EditError::Theirs { .. } => ("run it as the owner of that file", "请以该文件所有者的身份运行"),
            EditError::NotOurs { .. } => (
                "keep what you need of it, then remove it and run this again",
                "请保留所需内容，删除该文件后再运行一次",
            ),
            EditError::KeepsChanging { .. } | EditError::WrittenBack { .. } => (
                "close the agent that uses this file, then run it again",
                "请关闭使用该文件的代理，然后再运行一次",
            ),
            EditError::JustEmptied { .. } => {
                ("wait ten seconds, then run it again", "请等待十秒，然后再运行一次")
            }
            EditError::Full { .. } => {
                ("free some space on that disk, then run it again", "请腾出磁盘空间，然后再运行一次")
            }
            EditError::Busy => ("wait for it, then run it again", "请等它结束，然后再运行一次"),
            EditError::BadLedger { .. } => (
                "move that file away: our entries are still known by their command lines",
                "请移走该文件：我们的条目仍可凭其命令行识别",
            ),
            EditError::Io { .. } => return None,
        };
        Some(match lang {
            Lang::En => en.to_owned(),
            Lang::Zh => zh.to_owned(),
        })
    }
}
