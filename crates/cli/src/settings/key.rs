//! The one table of settings: name, shape, default, what a project may do, and what it means. What is shown, checked and
//! documented is read from here.

use std::time::Duration;

use unstuck_judge::Lang;

use super::value::{Shape, Value};
use crate::nearest::nearest;

/// What a project's file may do to a setting. It comes with a repository that somebody else wrote, so it may make us
/// stricter or more modest, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Project {
    /// Not touch it: it is a path or a matter of the person's taste, or it concerns other projects as well.
    Never,
    /// Make it shorter or smaller.
    Lower,
    /// Switch it off.
    Off,
    /// Choose a word that stands later in the list of words; for tools, for every one of them.
    Later,
    /// Choose a word that stands earlier in the list of words.
    Earlier,
}

impl Project {
    /// Whether `new` in a project's file is within what it may do to `old`.
    pub(crate) fn allows(self, old: &Value, new: &Value, words: Shape) -> bool {
        let rank = |word: &&str| match words {
            Shape::Word(words) => words.iter().position(|each| each == word),
            Shape::Flag
            | Shape::Time(..)
            | Shape::Size(..)
            | Shape::Folder
            | Shape::Tools
            | Shape::Rewrites
            | Shape::Count(..)
            | Shape::Patterns => None,
        };
        match (self, old, new) {
            (Project::Never, _, _) => false,
            (Project::Lower, Value::Time(old), Value::Time(new)) => new <= old,
            (Project::Lower, Value::Size(old), Value::Size(new)) => new <= old,
            (Project::Off, Value::Flag(old), Value::Flag(new)) => !new || old == new,
            (Project::Later, Value::Word(old), Value::Word(new)) => rank(old) <= rank(new),
            (Project::Earlier, Value::Word(old), Value::Word(new)) => rank(new) <= rank(old),
            (Project::Lower | Project::Off | Project::Later | Project::Earlier, _, _) => false,
        }
    }

    /// It, in words.
    pub(crate) fn words(self, lang: Lang) -> &'static str {
        match (self, lang) {
            (Project::Never, Lang::En) => "a project may not set it",
            (Project::Never, Lang::Zh) => "项目不能设置",
            (Project::Lower, Lang::En) => "a project may only lower it",
            (Project::Lower, Lang::Zh) => "项目只能调低",
            (Project::Off, Lang::En) => "a project may only switch it off",
            (Project::Off, Lang::Zh) => "项目只能关闭",
            (Project::Later, Lang::En) => "a project may only choose a later word of the list",
            (Project::Later, Lang::Zh) => "项目只能选择列表中更靠后的词",
            (Project::Earlier, Lang::En) => "a project may only choose an earlier word of the list",
            (Project::Earlier, Lang::Zh) => "项目只能选择列表中更靠前的词",
        }
    }
}

/// All that is known of one setting.
#[derive(Debug)]
pub(crate) struct Row {
    /// `section.key`, as in a file.
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) default: &'static str,
    pub(crate) project: Project,
    /// What it means, in English and Chinese.
    doc: [&'static str; 2],
}

impl Row {
    /// The section of a file it stands in.
    pub(crate) fn section(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(section, _)| section)
    }

    /// What it is called within its section.
    pub(crate) fn bare(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, bare)| bare)
    }

    pub(crate) fn doc(&self, lang: Lang) -> &'static str {
        self.doc[lang as usize]
    }
}

macro_rules! keys {
    ($($key:ident $name:literal, $shape:expr, $default:literal, $project:ident, $en:literal, $zh:literal;)+) => {
        /// Every setting but the list of alerts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Key { $($key,)+ }

        impl Key {
            pub(crate) const ALL: &'static [Key] = &[$(Key::$key,)+];
        }

        static ROWS: [Row; Key::ALL.len()] = [$(Row {
            name: $name, shape: $shape, default: $default, project: Project::$project, doc: [$en, $zh],
        },)+];
    };
}

const MOMENT: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const YEARS: Duration = Duration::from_secs(3_650 * 86_400);

keys! {
    StateDir "store.state-dir", Shape::Folder, "auto", Never,
        "The folder that holds the store. `auto` is $XDG_STATE_HOME/unstuck or ~/.local/state/unstuck.",
        "存放数据的文件夹。`auto` 表示 $XDG_STATE_HOME/unstuck 或 ~/.local/state/unstuck。";
    Filesystem "store.filesystem", Shape::Word(&["auto", "local", "network"]), "auto", Never,
        "What the state folder lies on. On a network filesystem only the spool is written; `auto` asks the system.",
        "状态文件夹所在的文件系统。在网络文件系统上只写入暂存文件；`auto` 表示询问系统。";
    WaitBefore "store.wait-before", Shape::Time(Duration::ZERO, SECOND.saturating_mul(10)), "150ms", Never,
        "How long a hook waits for the store before a call; afterwards the call goes on without it.",
        "调用之前，钩子等待数据库的最长时间；超过之后调用照常进行。";
    WaitAfter "store.wait-after", Shape::Time(Duration::ZERO, SECOND.saturating_mul(60)), "1s", Never,
        "How long a hook waits for the store after a call; afterwards the event goes to the spool.",
        "调用之后，钩子等待数据库的最长时间；超过之后事件写入暂存文件。";
    KeepEvents "store.keep-events", Shape::Time(HOUR, YEARS), "30d", Lower,
        "How long events of the timeline are kept.",
        "时间线上的事件保留多久。";
    KeepCalls "store.keep-calls", Shape::Time(HOUR, YEARS), "180d", Lower,
        "How long the records of calls are kept.",
        "调用记录保留多久。";
    MaxSize "store.max-size", Shape::Size(16 << 20, 1 << 40), "1GB", Lower,
        "How large the store may grow; beyond it the oldest events go first.",
        "数据库的最大大小；超过之后先删除最旧的事件。";
    ToolErrors "store.tool-errors", Shape::Flag, "false", Off,
        "Keeps sessions/<id>/tool-errors.json in the state folder current, for other tools.",
        "在状态文件夹中为其他工具保持 sessions/<id>/tool-errors.json 最新。";
    SealAfter "store.seal-after", Shape::Time(SECOND.saturating_mul(60), DAY.saturating_mul(365)), "6h", Never,
        "When a call that nobody has heard of any more is taken for dead and sealed.",
        "调用多久没有消息就视为已中断并封存。";
    OutputHead "output.head", Shape::Size(0, 16 << 20), "4KB", Lower,
        "How much of the beginning of an output is kept.",
        "输出的开头保留多少。";
    OutputTail "output.tail", Shape::Size(0, 16 << 20), "8KB", Lower,
        "How much of the end of an output is kept.",
        "输出的结尾保留多少。";
    OutputInput "output.input", Shape::Size(0, 16 << 20), "4KB", Lower,
        "How much of a call's input is kept.",
        "调用的输入保留多少。";
    LadderPreset "ladder.preset", Shape::Word(&["adaptive", "classic"]), "adaptive", Never,
        "How much room an agent gets: `adaptive` goes by the cause, `classic` counts three and five.",
        "给智能体多少余地：`adaptive` 按原因决定，`classic` 数到三和五。";
    LadderMode "ladder.mode", Shape::Word(&["shadow", "advise", "enforce"]), "enforce", Later,
        "`shadow` only records, `advise` also speaks, `enforce` also refuses and halts.",
        "`shadow` 只记录，`advise` 还会提示，`enforce` 还会拒绝和停止。";
    LadderTools "ladder.tools", Shape::Tools, "none", Later,
        "Other modes for single tools. A mode that a variable or a flag sets counts for all tools.",
        "单个工具的其他模式。由环境变量或参数设置的模式对所有工具生效。";
    RewriteMode "rewrite.mode", Shape::Word(&["off", "suggest", "auto"]), "suggest", Earlier,
        "Calls that can be put right without a guess: `suggest` proposes them, `auto` also puts them in place of a repeat.",
        "无需猜测即可改正的调用：`suggest` 提出建议，`auto` 还会用它替换重复的调用。";
    RewriteAuto "rewrite.auto", Shape::Rewrites, "all", Never,
        "Which rewrites the mode `auto` means; the others are only proposed.",
        "模式 `auto` 适用于哪些改写；其余的只作建议。";
    LanguagePeople "language.people", Shape::Word(&["auto", "en", "zh"]), "auto", Never,
        "The language of texts for people. `auto` goes by LC_ALL, LC_MESSAGES and LANG; `--lang` is stronger.",
        "面向人的文字所用的语言。`auto` 依据 LC_ALL、LC_MESSAGES 和 LANG；`--lang` 优先。";
    LanguageModel "language.model", Shape::Word(&["en", "zh"]), "en", Never,
        "The language of texts for models.",
        "面向模型的文字所用的语言。";
    ProblemsNewFor "problems.new-for", Shape::Time(SECOND, YEARS), "24h", Never,
        "How long a problem counts as new after it was first seen.",
        "问题首次出现后多久仍算新问题。";
    ProblemsResolvedAfter "problems.resolved-after", Shape::Time(SECOND, YEARS), "14d", Never,
        "After how long without a trace a problem counts as resolved.",
        "问题多久没有再出现就算已解决。";
    HookEnabled "hook.enabled", Shape::Flag, "true", Never,
        "Whether hooks do anything at all.",
        "钩子是否起作用。";
    HookAttended "hook.attended", Shape::Word(&["auto", "yes", "no"]), "auto", Never,
        "Whether a person is there to answer a question. Where nobody is, no run is halted: the call stays refused. `auto` goes by what the agent says.",
        "是否有人能回答问题。无人时不停止运行，只继续拒绝该调用；`auto` 依据智能体所说的判断。";
    HookHoldMax "hook.hold-max", Shape::Time(Duration::ZERO, SECOND.saturating_mul(10)), "5s", Lower,
        "How long a call that comes too early may be held until its time has come; a longer wait is told, and the call runs.",
        "来得太早的调用最多可等待多久再放行；需等更久的则说明等待时间，照常放行。";
    HookDeadlineBefore "hook.deadline-before", Shape::Time(MOMENT, SECOND.saturating_mul(10)), "150ms", Never,
        "When a hook that has no answer before a call falls silent, and the call goes on. What is held counts beside it.",
        "调用之前，钩子在此时限内没有答案就保持沉默，调用照常进行。等待放行的时间另计。";
    HookDeadlineAfter "hook.deadline-after", Shape::Time(MOMENT, SECOND.saturating_mul(60)), "1s", Never,
        "When a hook that has no answer after a call falls silent.",
        "调用之后，钩子在此时限内没有答案就保持沉默。";
    VaultProtect "vault.protect", Shape::Word(&["off", "risky", "edits"]), "risky", Later,
        "Before which calls files are saved: `risky` before those that can destroy something, `edits` also before every single edit.",
        "在哪些调用之前保存文件：`risky` 在可能造成破坏的调用之前，`edits` 还包括每一次单独的编辑。";
    VaultDeadline "vault.deadline", Shape::Time(MOMENT, SECOND.saturating_mul(600)), "20s", Never,
        "How long saving may hold up a risky call, though never longer than agents wait for their hooks (26 s); if it is not done by then, the call is not let through in silence.",
        "保存文件最多可让有风险的调用等待多久，但不会超过代理等待钩子的时间（26 秒）；到时仍未完成，调用不会被悄悄放行。";
    VaultPerTarget "vault.per-target", Shape::Count(1, 1_000), "3", Never,
        "How many snapshots of the same paths that were taken before calls are kept, the newest first; pinned ones, and those taken by hand, stay.",
        "同一组路径保留多少个在调用之前创建的快照，先保留最新的；已固定的和手动创建的不受此限。";
    VaultMaxAge "vault.max-age", Shape::Time(SECOND.saturating_mul(60), YEARS), "24h", Never,
        "How long a snapshot is kept; pinned ones stay.",
        "快照保留多久；已固定的始终保留。";
    VaultMaxSize "vault.max-size", Shape::Size(16 << 20, 1 << 44), "10GB", Never,
        "How large the safe may grow; beyond it the oldest snapshots go first, and what does not fit is not taken.",
        "保险库的最大大小；超过之后先删除最旧的快照，放不下的不保存。";
    VaultMinFree "vault.min-free", Shape::Size(0, 1 << 40), "1GB", Never,
        "What snapshots must leave free on the disk of the safe.",
        "快照必须在保险库所在磁盘上留出的空间。";
    VaultNever "vault.never", Shape::Patterns, "none", Never,
        "Paths that no snapshot takes, and that therefore cannot be brought back.",
        "任何快照都不保存、因而也无法恢复的路径。";
    McpCheck "mcp.check", Shape::Flag, "true", Off,
        "Whether arguments that clearly do not fit the schema of their tool are answered before the server sees them.",
        "参数明显不符合工具模式时，是否在服务器看到之前就作答。";
    McpTrustHints "mcp.trust-hints", Shape::Flag, "true", Off,
        "Whether a server is believed that says a tool only looks or may be called twice; without that, only what a server surely never took is sent again.",
        "服务器声称某工具只读或可重复调用时是否相信；否则只重发确定什么都没做的调用。";
    McpRestart "mcp.restart", Shape::Flag, "true", Off,
        "Whether a server that is gone is started again.",
        "服务器退出后是否重新启动。";
    McpHangsAfter "mcp.hangs-after", Shape::Time(SECOND, HOUR), "30s", Never,
        "A server that gives no sign of life for so long, after somebody waited for it in vain, is ended and started again.",
        "在有人白等之后，服务器这么久仍毫无动静，就将其结束并重新启动。";
    McpMaxMessage "mcp.max-message", Shape::Size(1 << 20, 1 << 31), "256MB", Lower,
        "The longest message that is passed on.",
        "可转发的最长消息。";
}

impl Key {
    pub(crate) fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    pub(crate) fn named(name: &str) -> Option<Key> {
        Key::ALL.iter().copied().find(|key| key.row().name == name)
    }

    /// The names that stand in a section.
    pub(crate) fn is_section(name: &str) -> bool {
        ROWS.iter().any(|row| row.section() == name)
    }

    /// The name that looks most like what was written, in its own section first. The section itself is not compared: all
    /// names in it would look alike.
    pub(crate) fn nearest(written: &str) -> Option<&'static str> {
        let (section, bare) = written.split_once('.').unwrap_or(("", written));
        let among = |is_meant: &dyn Fn(&Row) -> bool| {
            let found = nearest(bare, ROWS.iter().filter(|row| is_meant(row)).map(Row::bare))?;
            ROWS.iter().find(|row| is_meant(row) && row.bare() == found).map(|row| row.name)
        };
        among(&|row| row.section() == section).or_else(|| among(&|_| true))
    }

    /// The environment variable that sets it.
    pub(crate) fn variable(self) -> String {
        format!("UNSTUCK_{}", self.row().name.to_uppercase().replace(['.', '-'], "_"))
    }

    /// The value nobody has to set.
    pub(crate) fn default(self) -> Value {
        let row = self.row();
        row.shape
            .read(row.default, None)
            .unwrap_or_else(|| panic!("the default of {} has no shape", row.name))
    }
}
