//! Why nothing was run, removed or saved.

use std::path::PathBuf;

use nix::errno::Errno;
use unstuck_judge::Lang;
use unstuck_vault::{Gap, SnapshotId};

use crate::snapshot_page;

/// So many paths are named where some could not be saved.
const NAMED: usize = 5;

/// What stops before anything is touched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtectError {
    #[error("{}", self.in_words(Lang::En))]
    NotAllSaved { missing: Vec<Gap> },
    #[error("somebody writes to {} meanwhile, so nothing was deleted", path.display())]
    ChangedMeanwhile { path: PathBuf },
    #[error("{} may not be deleted ({}), so nothing was", path.display(), why.desc())]
    MayNotGo { path: PathBuf, why: Errno },
    #[error("not all of it could be deleted, and not all of the rest could be put back")]
    NotPutBack { id: SnapshotId },
    #[error("{} is never removed as a whole", path.display())]
    TooWide { path: PathBuf },
    #[error("{} is the root of the work tree here, or holds it", path.display())]
    WorkTree { path: PathBuf },
    #[error("{} names a folder by a dot", path.display())]
    Dots { path: PathBuf },
    #[error("{} is a link, and the slash behind it means what it leads to", path.display())]
    LinkWithSlash { path: PathBuf },
    #[error("there is no git repository around {}", path.display())]
    NoRepository { path: PathBuf },
}

impl ProtectError {
    pub(crate) fn in_words(&self, lang: Lang) -> String {
        match (self, lang) {
            (ProtectError::NotAllSaved { missing }, lang) => not_all_saved(missing, lang),
            (error, Lang::En) => error.to_string(),
            (ProtectError::ChangedMeanwhile { path }, Lang::Zh) => {
                format!("有人正在写入 {}，因此没有删除任何内容", path.display())
            }
            (ProtectError::MayNotGo { path, why }, Lang::Zh) => {
                format!("无法删除 {}（{}），因此没有删除任何内容", path.display(), why.desc())
            }
            (ProtectError::NotPutBack { .. }, Lang::Zh) => "未能全部删除，其余部分也未能全部放回".to_owned(),
            (ProtectError::TooWide { path }, Lang::Zh) => format!("不会整体删除 {}", path.display()),
            (ProtectError::WorkTree { path }, Lang::Zh) => {
                format!("{} 是此处工作树的根目录，或包含它", path.display())
            }
            (ProtectError::Dots { path }, Lang::Zh) => format!("{} 用点号指代文件夹", path.display()),
            (ProtectError::LinkWithSlash { path }, Lang::Zh) => {
                format!("{} 是链接，末尾的斜杠表示它指向的内容", path.display())
            }
            (ProtectError::NoRepository { path }, Lang::Zh) => {
                format!("{} 周围没有 git 仓库", path.display())
            }
        }
    }

    /// What to try.
    pub(crate) fn hint(&self, lang: Lang) -> Option<String> {
        let say = |en: &str, zh: &str| {
            Some(match lang {
                Lang::En => en.to_owned(),
                Lang::Zh => zh.to_owned(),
            })
        };
        match self {
            ProtectError::NotAllSaved { .. } => {
                say("make it readable, or name only what can be saved", "请使其可读，或只指明可以保存的内容")
            }
            ProtectError::MayNotGo { .. } => {
                say("name what may go, or change who may write there", "请指明可以删除的内容，或更改写入权限")
            }
            ProtectError::NotPutBack { id } => say(
                &format!("everything is saved as {id}: `unstuck restore {id}` brings it back"),
                &format!("全部内容已保存为 {id}：`unstuck restore {id}` 可恢复"),
            ),
            ProtectError::ChangedMeanwhile { .. } => {
                say("run it again when nobody writes there", "请在没有写入时再运行一次")
            }
            ProtectError::TooWide { .. } | ProtectError::WorkTree { .. } => {
                say("name what is to go in it", "请指明其中要删除的内容")
            }
            ProtectError::Dots { .. } => say("name the folder itself", "请写出文件夹的名称"),
            ProtectError::LinkWithSlash { .. } => {
                say("without the slash the link goes, and what it leads to stays", "去掉斜杠则只删除链接本身")
            }
            ProtectError::NoRepository { .. } => {
                say("`unstuck snapshot PATH` saves any folder", "`unstuck snapshot PATH` 可保存任何文件夹")
            }
        }
    }

    /// Was it called wrongly? Else it could not do its work.
    pub(crate) fn is_usage(&self) -> bool {
        match self {
            ProtectError::NotAllSaved { .. }
            | ProtectError::ChangedMeanwhile { .. }
            | ProtectError::MayNotGo { .. }
            | ProtectError::NotPutBack { .. } => false,
            ProtectError::TooWide { .. }
            | ProtectError::WorkTree { .. }
            | ProtectError::Dots { .. }
            | ProtectError::LinkWithSlash { .. }
            | ProtectError::NoRepository { .. } => true,
        }
    }
}

fn not_all_saved(missing: &[Gap], lang: Lang) -> String {
    let named: String = missing
        .iter()
        .take(NAMED)
        .map(|gap| {
            format!("\n  {}  ({})", snapshot_page::shown(&gap.path), snapshot_page::reason(gap.reason, lang))
        })
        .collect();
    let more = missing.len().saturating_sub(NAMED);
    let more = match (more, lang) {
        (0, _) => String::new(),
        (more, Lang::En) => format!("\n  and {more} more"),
        (more, Lang::Zh) => format!("\n  另有 {more} 个"),
    };
    match lang {
        Lang::En => format!("not all of it could be saved, so nothing was done:{named}{more}"),
        Lang::Zh => format!("未能全部保存，因此没有执行任何操作：{named}{more}"),
    }
}
