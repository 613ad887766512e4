//! What went wrong, in Chinese. Names, paths and what the operating system said stay as they are. Nothing is decided here.

use std::io;

use unstuck_judge::{Lang, quote};
use unstuck_store::{DEEDS_MAX, Deed, Foreign, LineError, StoreError, WORDS_MAX};
use unstuck_vault::VaultError;

use super::{CommandError, NoPlace};

pub(super) fn command_error(error: &CommandError) -> String {
    match error {
        CommandError::NothingToRead => "没有可读取的内容：标准输入是终端".to_owned(),
        CommandError::NoSuchRule { id, .. } => format!("没有名为 {id} 的规则"),
        CommandError::NoSuchKind { kind, .. } => format!("没有名为 {kind} 的类别"),
        CommandError::NoSuchSetting { name, .. } => format!("没有名为 {name} 的设置"),
        CommandError::Settings(error) => error.in_words(Lang::Zh),
        CommandError::NoPlace(NoPlace::WorkingFolderGone) => "此文件无处可放：工作文件夹已不存在".to_owned(),
        CommandError::NoPlace(NoPlace::NoConfigHome) => {
            "此文件无处可放：XDG_CONFIG_HOME 和 HOME 都没有指向文件夹".to_owned()
        }
        CommandError::NotMade { path, source } => format!("无法创建 {}：{source}", path.display()),
        CommandError::NoSuchEditor { editor } => format!("无法启动编辑器 {editor}：没有这个程序"),
        CommandError::NoEditor { editor, why } => format!("无法启动编辑器 {editor}：{why}"),
        CommandError::NoSuchProgram { name, .. } => format!("没有名为 {name} 的智能体程序"),
        CommandError::NotReadOnly { word } => format!("{word} 允许智能体写入，而 --read-only 禁止写入"),
        CommandError::NoHeaderVariable { name } => format!("变量 {name} 未设置，或不能用作请求头"),
        CommandError::LongPrompt { most_mb } => format!("提示超过 {most_mb} MB"),
        CommandError::NoSessionName { name } => format!("{name} 不是会话名称"),
        CommandError::NoWayToResume { agent } => format!("{agent} 无法继续会话：其设置没有说明方法"),
        CommandError::NoSuchAlert { name, .. } => format!("没有名为 {name} 的告警"),
        CommandError::NoSuchSession { name, .. } => format!("没有名为 {} 的会话", quote::bare(name)),
        CommandError::NothingCalled { asked } => format!("没有名为 {} 的调用或问题", quote::bare(asked)),
        CommandError::NoSuchProblem { asked } => format!("没有名为 {} 的问题", quote::bare(asked)),
        CommandError::NoSuchLesson { asked } => format!("没有名为 {} 的经验", quote::bare(asked)),
        CommandError::UnreadableLesson { id } => format!("L{id} 的解决办法已无法读取"),
        CommandError::NoLessonLine { path, line, why } => {
            format!("{}:{line}：不是经验：{}；没有导入任何内容", path.display(), line_error(why))
        }
        CommandError::ManyLessons { path, most } => {
            format!("{} 不是经验文件：超过 {most}；没有导入任何内容", path.display())
        }
        CommandError::NoFix(why) => format!("这不是经验：{}；没有任何改动", line_error(why)),
        CommandError::NoDraft(why) => format!("这不是经验：{why}；没有任何改动"),
        CommandError::TooShort { asked, .. } => format!("{asked} 太短，不足以指明一个问题"),
        CommandError::Ambiguous { asked, candidates, more, among: _ } => {
            let list = candidates.join("\n  ");
            let rest = if *more == 0 { String::new() } else { format!("\n  另有 {more} 个") };
            format!("{} 可能指以下之一：\n  {list}{rest}", quote::bare(asked))
        }
        CommandError::Unreadable { path, source } => {
            format!("无法读取 {}：{source}", quote::bare(&path.to_string_lossy()))
        }
        CommandError::Input(source) => format!("无法读取标准输入：{source}"),
        CommandError::Output(source) => format!("无法写出：{source}"),
        CommandError::Store(error) => store_error(error),
        CommandError::NotKept { why } => format!("无法记录：{why}"),
        CommandError::NoHome => "没有可以存放数据的文件夹：XDG_STATE_HOME 和 HOME 都没有设置".to_owned(),
        CommandError::NoSuchRefusal { key } => format!("没有名为 {key} 的被拒绝的调用"),
        CommandError::NoPerson => "这会解除限制，而终端前没有人：智能体不能自行解除".to_owned(),
        CommandError::InsideAgent { sign } => {
            format!("这会解除限制，而它由智能体启动（{}）：智能体不能自行解除", sign.in_words(Lang::Zh))
        }
        CommandError::Edit(error) => error.in_words(Lang::Zh),
        CommandError::Check(error) => error.in_words(Lang::Zh),
        CommandError::Protect(error) => error.in_words(Lang::Zh),
        CommandError::NoAgent => "在本机没有找到任何代理".to_owned(),
        CommandError::NotAgreed { found } => format!("没有人同意为以下代理安装：{}", found.join("、")),
        CommandError::NoClient { .. } => "没有指明是哪个代理".to_owned(),
        CommandError::NoSuchServer { name, agent, .. } => format!("{agent} 没有名为 {name} 的服务器"),
        CommandError::NoProgram(source) => format!("找不到我们自己的程序：{source}"),
        CommandError::OddPath { path } => format!("我们自己的程序路径不是 UTF-8 文本：{}", path.display()),
        CommandError::Vault(error) => vault_error(error),
        CommandError::SnapshotGone { removal } => removal.in_words(Lang::Zh),
        CommandError::NoSnapshot => "没有快照".to_owned(),
        CommandError::OurOwn { path } => format!("这会毁掉 unstuck 自己保存的内容：{}", path.display()),
        CommandError::MadeUp { path, kind } => {
            format!(
                "{} 位于 {kind}，其内容由系统虚构：没有可保存的文件",
                quote::bare(&path.to_string_lossy())
            )
        }
        CommandError::NoSuchPath { path } => format!("{} 不存在", quote::bare(&path.to_string_lossy())),
        CommandError::NotInSnapshot { id, path } => {
            format!("{id} 不包含 {}", quote::bare(&path.to_string_lossy()))
        }
        CommandError::NotProtected { asked } => format!("没有快照属于名为 {} 的调用", quote::bare(asked)),
        CommandError::NothingToUndo { .. } => "这里没有可撤销的内容".to_owned(),
        CommandError::UndoneAsFarAsKept { .. } => {
            "这里保留有快照的调用都已撤销，或没有改动任何内容".to_owned()
        }
        CommandError::NoFileHeld { id, path } => {
            format!("{id} 中 {} 处没有文件", quote::bare(&path.to_string_lossy()))
        }
        CommandError::NoCallBehind { id } => format!("{id} 是手动创建的：没有可撤销的调用"),
        CommandError::NeitherThenNorNow { id, path } => {
            format!("{id} 中没有 {}，现在也不存在", quote::bare(&path.to_string_lossy()))
        }
        CommandError::AlreadyUndone { id, by } => format!("{id} 已经撤销过：之前的状态在 {by} 中"),
        CommandError::NothingToRedo => "没有可重做的内容".to_owned(),
        CommandError::ReaderGone => "读取输出的一方已经离开".to_owned(),
    }
}

fn line_error(error: &LineError) -> String {
    match error {
        LineError::Shape(why) => why.clone(),
        LineError::TooNew { found } => format!("其版本 {found} 比此版本能读取的更新"),
        LineError::NoLesson => "其 type 不是 `lesson`".to_owned(),
        LineError::NoCause => "其 cause 不是失败的指纹（e1: 加 20 个字母）".to_owned(),
        LineError::NoKind => "其 kind 不是失败的类别".to_owned(),
        LineError::NoFix => "其 fix 无法读取".to_owned(),
        LineError::EmptyFix => "其 fix 没有内容".to_owned(),
        LineError::ManySteps { steps } => format!("其 fix 有 {steps} 个步骤，最多 {DEEDS_MAX} 个"),
        LineError::EmptyStep => "其 fix 有空的步骤".to_owned(),
        LineError::LongStep => format!("其 fix 有超过 {WORDS_MAX} 个字符的步骤"),
        LineError::OddStep => "其 fix 有含控制字符、不可见字符或多行的步骤".to_owned(),
    }
}

fn store_error(error: &StoreError) -> String {
    match error {
        StoreError::NotOurs { path, why } => format!("不使用 {}：{}", path.display(), foreign(why)),
        StoreError::TooNew { path, found, known } => {
            format!("{} 的格式是 {found}，此版本最高只写到 {known}", path.display())
        }
        StoreError::Busy { path } => format!("另一个进程正占用 {}", path.display()),
        StoreError::Full { path } => format!("没有空间可存放 {}", path.display()),
        StoreError::Damaged { path, why } => format!("{} 已损坏：{why}", path.display()),
        StoreError::Network { path, filesystem } => {
            format!("{} 位于网络文件系统（{filesystem}）：那里只使用暂存文件", path.display())
        }
        StoreError::Missing { path } => format!("{} 中尚无记录", path.display()),
        StoreError::Io { deed, path, source } => io_error(*deed, &path.display().to_string(), source),
        StoreError::Sql { path, source } => format!("{}：{source}", path.display()),
    }
}

fn vault_error(error: &VaultError) -> String {
    match error {
        VaultError::NoSuchSnapshot { id } => format!("没有快照 {id}"),
        VaultError::Missing { path } => format!("尚未创建过快照：{} 不存在", path.display()),
        VaultError::TooNew { path, found, known } => {
            format!("{} 的格式是 {found}，此版本最高只认识 {known}", path.display())
        }
        VaultError::NotOurs { path, why } => format!("不能使用 {}：{why}", path.display()),
        VaultError::Busy { path } => format!("另一个进程正在使用 {}", path.display()),
        VaultError::OverBudget { needed, allowed } => {
            format!("需要 {needed} 字节，而保险库只能再存放 {allowed} 字节")
        }
        VaultError::DiskFull { path, needed, free } => {
            format!("需要 {needed} 字节，而 {} 所在磁盘只有 {free} 字节可用", path.display())
        }
        VaultError::Stopped => "在完成之前被中止".to_owned(),
        VaultError::TooWide { path } => {
            format!("{} 太大，不能整体保存", quote::bare(&path.to_string_lossy()))
        }
        VaultError::NotConcluded { id } => format!("{id} 所属的调用结束时的状态没有记录下来"),
        VaultError::Away { path, .. } => format!("有一次恢复被中断，正在等待 {}", path.display()),
        VaultError::Damaged { path } => format!("{} 已损坏", path.display()),
        VaultError::Io { deed, path, source } => {
            format!("操作 {} 时失败（{deed}）：{source}", quote::bare(&path.to_string_lossy()))
        }
    }
}

fn foreign(why: &Foreign) -> String {
    match why {
        Foreign::SymbolicLink => "它是符号链接".to_owned(),
        Foreign::NoFolder => "它不是文件夹".to_owned(),
        Foreign::NoFile => "它不是普通文件".to_owned(),
        Foreign::OfAnother { owner, us } => format!("它属于用户 {owner}，而本进程以用户 {us} 运行"),
        Foreign::Found(why) => why.clone(),
    }
}

fn io_error(deed: Deed, path: &str, source: &io::Error) -> String {
    let tried = match deed {
        Deed::CloseToOthers => return format!("无法禁止他人访问 {path}：{source}"),
        Deed::PutInPlace => return format!("无法将 {path} 放到位：{source}"),
        Deed::Lock => "锁定",
        Deed::LookAt => "查看",
        Deed::LookInto => "列出",
        Deed::Make => "创建",
        Deed::Open => "打开",
        Deed::Remove => "删除",
        Deed::SetAside => "移开",
        Deed::Write => "写入",
    };
    format!("无法{tried} {path}：{source}")
}
