//! What to try after an error, in the language of the person who reads it. It never says again what went wrong.

use unstuck_judge::{Kind, Lang, quote};
use unstuck_store::StoreError;
use unstuck_vault::VaultError;

use super::{Among, CommandError};

impl CommandError {
    /// What to try, if anything helps.
    pub(crate) fn hint(&self, lang: Lang) -> Option<String> {
        let say = |en: &str, zh: &str| {
            Some(match lang {
                Lang::En => en.to_owned(),
                Lang::Zh => zh.to_owned(),
            })
        };
        match self {
            CommandError::NothingToRead => say(
                "name a file, pipe something in, or run a command: `unstuck diagnose -- cargo build`",
                "指定一个文件，用管道传入内容，或直接运行命令：`unstuck diagnose -- cargo build`",
            ),
            CommandError::NoSuchRule { nearest, .. } => {
                Some(or_all(lang, nearest, "`unstuck rules list` shows all", "`unstuck rules list` 列出全部"))
            }
            CommandError::NoSuchKind { nearest: Some(kind), .. } => Some(meant(lang, kind)),
            CommandError::NoSuchKind { nearest: None, .. } => {
                let all: Vec<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
                say(&format!("there are {}", all.join(", ")), &format!("有以下类别：{}", all.join("、")))
            }
            CommandError::NoSuchSetting { nearest, .. } => Some(or_all(
                lang,
                nearest,
                "`unstuck config show` lists all",
                "`unstuck config show` 列出全部",
            )),
            CommandError::Settings(error) => error.hint(lang),
            CommandError::NoSuchEditor { .. } | CommandError::NoEditor { .. } => say(
                "set VISUAL or EDITOR to an editor you have",
                "请将 VISUAL 或 EDITOR 设为您已安装的编辑器",
            ),
            CommandError::NoSuchProgram { nearest, .. } => Some(or_all(
                lang,
                nearest,
                "claude, codex and gemini are known; others are set under [agent.NAME] by `unstuck config edit`",
                "已知 claude、codex 和 gemini；其他程序用 `unstuck config edit` 写在 [agent.NAME] 之下",
            )),
            CommandError::NotReadOnly { .. } => say(
                "leave one of the two out; an agent that may write is never started over",
                "请去掉其中之一；可写入的智能体绝不会从头重来",
            ),
            CommandError::NoHeaderVariable { .. } => say(
                "set it in the environment of the agent, or under `env` of the server in its configuration",
                "请在智能体的环境中设置它，或在其配置里该服务器的 `env` 之下设置",
            ),
            CommandError::LongPrompt { .. } => say(
                "put the long part into a file, and ask the agent to read it",
                "请把长的部分放进文件，让智能体去读取",
            ),
            CommandError::NoSessionName { .. } => say(
                "use the `session_id` that an earlier `unstuck agent` printed",
                "请使用先前 `unstuck agent` 输出的 `session_id`",
            ),
            CommandError::NoWayToResume { agent } => say(
                &format!("set `resume` and `session` under [agent.{agent}] by `unstuck config edit`"),
                &format!("请用 `unstuck config edit` 在 [agent.{agent}] 之下设置 `resume` 和 `session`"),
            ),
            CommandError::NoSuchAlert { nearest, .. } => Some(or_all(
                lang,
                nearest,
                "`unstuck alerts list` shows all",
                "`unstuck alerts list` 列出全部",
            )),
            CommandError::NoSuchSession { nearest, .. } => Some(or_all(
                lang,
                nearest,
                "`unstuck stats --by session` lists all",
                "`unstuck stats --by session` 列出全部",
            )),
            CommandError::NothingCalled { .. } => say(
                "`unstuck log` shows calls as #N, `unstuck problems --all` shows problems as e1:…",
                "`unstuck log` 以 #N 显示调用，`unstuck problems --all` 以 e1:… 显示问题",
            ),
            CommandError::NoSuchProblem { .. } => say(
                "`unstuck problems --all` shows all, as e1:…",
                "`unstuck problems --all` 以 e1:… 显示全部",
            ),
            CommandError::NoSuchLesson { .. } => say(
                "`unstuck lessons --all` shows all, as L12; `unstuck lessons search TEXT` looks for one",
                "`unstuck lessons --all` 以 L12 显示全部；`unstuck lessons search TEXT` 可搜索",
            ),
            CommandError::UnreadableLesson { id } => say(
                &format!(
                    "`unstuck lessons edit L{id} --step COMMAND` writes it anew, `unstuck lessons forget L{id}` ends it"
                ),
                &format!(
                    "`unstuck lessons edit L{id} --step COMMAND` 可重写，`unstuck lessons forget L{id}` 可将其遗忘"
                ),
            ),
            CommandError::NoLessonLine { .. } | CommandError::ManyLessons { .. } => say(
                "`unstuck lessons export --json` writes such files",
                "此类文件由 `unstuck lessons export --json` 写出",
            ),
            CommandError::NoFix(_) | CommandError::NoDraft(_) => say(
                "a lesson has 1 to 6 steps of one line each, or a change of the call",
                "一条经验有 1 到 6 个单行步骤，或对调用的一处改动",
            ),
            CommandError::TooShort { least, .. } => say(
                &format!("write {least} characters after e1:, or more"),
                &format!("请在 e1: 之后至少写 {least} 个字符"),
            ),
            CommandError::Ambiguous { among: Among::Sessions | Among::Problems, .. } => {
                say("write more of it", "请写得更完整")
            }
            CommandError::Ambiguous { among: Among::CallsAndProblems, .. } => {
                say("write more of it, or a call as #N", "请写得更完整，或以 #N 指明调用")
            }
            CommandError::Ambiguous { among: Among::Snapshots, .. } => {
                say("write more of it, or a snapshot as sN", "请写得更完整，或以 sN 指明快照")
            }
            CommandError::Unreadable { .. } => {
                say("check the path and whether it may be read", "请检查路径以及是否有读取权限")
            }
            CommandError::Store(error) => match error {
                StoreError::NotOurs { .. } => say(
                    "point `store.state-dir` at a folder of your own, or remove what stands there",
                    "请将 `store.state-dir` 指向您自己的文件夹，或移走那里的内容",
                ),
                StoreError::TooNew { .. } => say(
                    "update unstuck, or point `store.state-dir` elsewhere",
                    "请更新 unstuck，或将 `store.state-dir` 指向别处",
                ),
                StoreError::Busy { .. } => {
                    say("another process is writing; run it again", "另一个进程正在写入；请再运行一次")
                }
                StoreError::Full { .. } => say(
                    "free some space on that disk; afterwards `unstuck gc` makes the store smaller",
                    "请在该磁盘上腾出空间；之后 `unstuck gc` 可缩小存储",
                ),
                StoreError::Damaged { .. } => say(
                    "`unstuck recover` sets it aside and brings back what can be read of it",
                    "`unstuck recover` 会将其移到一旁，并恢复其中可读取的内容",
                ),
                StoreError::Network { .. } => say(
                    "point `store.state-dir` at a folder on a local disk",
                    "请将 `store.state-dir` 指向本地磁盘上的文件夹",
                ),
                StoreError::Missing { .. } => say(
                    "`unstuck install` connects an agent, whose calls are then recorded; `unstuck scan` reads the transcripts that are there already",
                    "`unstuck install` 连接智能体，之后会记录它的调用；`unstuck scan` 可读入已有的会话记录",
                ),
                StoreError::Io { .. } | StoreError::Sql { .. } => None,
            },
            CommandError::NotKept { .. } => say(
                "check the folder that `unstuck config explain store.state-dir` names",
                "请检查 `unstuck config explain store.state-dir` 所指的文件夹",
            ),
            CommandError::NoHome => say("set HOME, or `store.state-dir`", "请设置 HOME 或 `store.state-dir`"),
            CommandError::NoSuchRefusal { .. } => say(
                "every refusal ends with its key; `unstuck log` shows them",
                "每个拒绝的末尾都有它的键；`unstuck log` 可查看",
            ),
            CommandError::NoPerson => say(
                "a person runs it in a terminal; a script that a person wrote may give --yes",
                "请由人在终端中运行；由人编写的脚本可以加上 --yes",
            ),
            CommandError::InsideAgent { .. } => say(
                "a person runs it in a terminal of their own, outside of the agent; --yes does not help here",
                "请由人在智能体之外、自己的终端中运行；此处 --yes 不起作用",
            ),
            CommandError::Edit(error) => error.hint(lang),
            CommandError::Check(error) => error.hint(lang),
            CommandError::Protect(error) => error.hint(lang),
            CommandError::NoAgent => say(
                "name the one to install for: `unstuck install claude`",
                "请指明要为哪个代理安装：`unstuck install claude`",
            ),
            CommandError::NotAgreed { found } => say(
                &format!("name them (`unstuck install {}`), or add --yes", found.join(" ")),
                &format!("请指明（`unstuck install {}`），或加上 --yes", found.join(" ")),
            ),
            CommandError::NoClient { found } => {
                let one = found.first().copied().unwrap_or("claude");
                say(
                    &format!("name it (`unstuck install mcp {one}`), or add --yes for all that are found"),
                    &format!("请指明（`unstuck install mcp {one}`），或加上 --yes 选择找到的全部"),
                )
            }
            CommandError::NoSuchServer { elsewhere: Some((scope, file)), .. } => {
                let (flag, file) = (scope.word(), file.display());
                say(
                    &format!("it stands in {file}; add --{flag}"),
                    &format!("它在 {file} 中；请加上 --{flag}"),
                )
            }
            CommandError::NoSuchServer { nearest, elsewhere: None, .. } => Some(or_all(
                lang,
                nearest,
                "`unstuck install mcp --list` shows all",
                "`unstuck install mcp --list` 列出全部",
            )),
            CommandError::OddPath { .. } => {
                say("put the program into a folder with a plain name", "请将程序放到名称普通的文件夹中")
            }
            CommandError::Vault(error) => match error {
                VaultError::Missing { .. } => say(
                    "`unstuck snapshot` takes one; before risky calls of an agent it is done by itself",
                    "`unstuck snapshot` 可创建快照；在智能体有风险的调用之前会自动创建",
                ),
                VaultError::NoSuchSnapshot { .. } => {
                    say("`unstuck snapshots` shows all", "`unstuck snapshots` 列出全部")
                }
                VaultError::TooNew { .. } => say(
                    "update unstuck, or point `store.state-dir` elsewhere",
                    "请更新 unstuck，或将 `store.state-dir` 指向别处",
                ),
                VaultError::NotOurs { .. } => say(
                    "point `store.state-dir` at a folder of your own, or remove what stands there",
                    "请将 `store.state-dir` 指向您自己的文件夹，或移走那里的内容",
                ),
                VaultError::Busy { .. } => {
                    say("run it again when the other one is done", "请等另一个进程完成后再运行一次")
                }
                VaultError::OverBudget { .. } => say(
                    "`unstuck gc` makes room, `unstuck snapshots drop ID` removes single ones; or raise `vault.max-size`",
                    "`unstuck gc` 可腾出空间，`unstuck snapshots drop ID` 可删除单个快照；也可调高 `vault.max-size`",
                ),
                VaultError::DiskFull { .. } => say(
                    "free some space on that disk (`unstuck gc` gives back what has expired), or lower `vault.min-free`",
                    "请在该磁盘上腾出空间（`unstuck gc` 可归还已过期的部分），或调低 `vault.min-free`",
                ),
                VaultError::TooWide { .. } => say(
                    "name the folders in it that matter: `unstuck snapshot PATH…`",
                    "请指明其中重要的文件夹：`unstuck snapshot PATH…`",
                ),
                VaultError::NotConcluded { id } => say(
                    &format!(
                        "it may still be running; `unstuck diff {id}` shows what differs, `unstuck restore {id}` brings all of it back"
                    ),
                    &format!(
                        "它可能仍在运行；`unstuck diff {id}` 显示差异，`unstuck restore {id}` 可全部恢复"
                    ),
                ),
                VaultError::Away { journal, .. } => say(
                    &format!(
                        "connect that disk, or put the folder back: the restore is finished then; if it is gone for good, remove {}",
                        journal.display()
                    ),
                    &format!(
                        "请连接该磁盘或把文件夹放回原处，恢复随即完成；若已永久丢失，请删除 {}",
                        journal.display()
                    ),
                ),
                VaultError::Damaged { .. } => say(
                    "`unstuck snapshots check` tells what is still whole",
                    "`unstuck snapshots check` 可查明哪些仍然完好",
                ),
                VaultError::Stopped => say("nothing was changed", "没有任何改动"),
                VaultError::Io { .. } => None,
            },
            CommandError::SnapshotGone { .. } => {
                say("`unstuck snapshots` shows all that are kept", "`unstuck snapshots` 列出保留的全部快照")
            }
            CommandError::NoSnapshot => say(
                "`unstuck snapshot` takes one; before risky calls of an agent it is done by itself",
                "`unstuck snapshot` 可创建快照；在智能体有风险的调用之前会自动创建",
            ),
            CommandError::OurOwn { .. } => say(
                "a person removes what unstuck keeps with `unstuck purge`",
                "由用户用 `unstuck purge` 删除 unstuck 保存的内容",
            ),
            CommandError::MadeUp { .. } => say("name a folder on a disk", "请指定磁盘上的文件夹"),
            CommandError::NoSuchPath { .. } | CommandError::NeitherThenNorNow { .. } => {
                say("check the path", "请检查路径")
            }
            CommandError::NotInSnapshot { .. } | CommandError::NotProtected { .. } => say(
                "`unstuck snapshots` shows what each covers, and which call it belongs to",
                "`unstuck snapshots` 显示每个快照包含什么、属于哪个调用",
            ),
            CommandError::NothingToUndo { elsewhere: Some(elsewhere) } => {
                say(&format!("elsewhere there is {elsewhere}"), &format!("别处有 {elsewhere}"))
            }
            CommandError::NothingToUndo { elsewhere: None } | CommandError::NothingToRedo => say(
                "`unstuck snapshots` shows what can be restored",
                "`unstuck snapshots` 显示可以恢复的内容",
            ),
            CommandError::UndoneAsFarAsKept { per_target } => say(
                &format!(
                    "of the same paths the newest {per_target} are kept, older ones expire: `unstuck config explain vault.per-target`"
                ),
                &format!(
                    "同一路径只保留最新的 {per_target} 个快照，更早的会过期：`unstuck config explain vault.per-target`"
                ),
            ),
            CommandError::NoFileHeld { id, .. } => say(
                &format!("`unstuck snapshots files {id}` lists what it holds"),
                &format!("`unstuck snapshots files {id}` 列出它包含的内容"),
            ),
            CommandError::NoCallBehind { id } => say(
                &format!("`unstuck restore {id}` brings all of it back"),
                &format!("`unstuck restore {id}` 可全部恢复"),
            ),
            CommandError::AlreadyUndone { by, .. } => say(
                &format!("`unstuck undo {by}` takes the undo back"),
                &format!("`unstuck undo {by}` 可撤回那次撤销"),
            ),
            CommandError::NoProgram(_)
            | CommandError::NoPlace(_)
            | CommandError::NotMade { .. }
            | CommandError::Input(_)
            | CommandError::Output(_)
            | CommandError::ReaderGone => None,
        }
    }
}

fn meant(lang: Lang, name: &str) -> String {
    match lang {
        Lang::En => format!("did you mean {}?", quote::bare(name)),
        Lang::Zh => format!("您指的是 {} 吗？", quote::bare(name)),
    }
}

/// The name that may have been meant, and where to find every one.
fn or_all(lang: Lang, nearest: &Option<String>, en: &str, zh: &str) -> String {
    let meant = nearest.as_ref().map(|name| meant(lang, name));
    match (lang, meant) {
        (Lang::En, Some(meant)) => format!("{meant} {en}"),
        (Lang::En, None) => en.to_owned(),
        (Lang::Zh, Some(meant)) => format!("{meant}{zh}"),
        (Lang::Zh, None) => zh.to_owned(),
    }
}
