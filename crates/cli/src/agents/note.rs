//! What a person should know after an installation, in both languages.

use std::path::PathBuf;

use unstuck_judge::Lang;
use unstuck_wire::hook::Host;

use super::place::Scope;
use super::switch::Switch;
use super::version::Why;

/// Something worth saying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Note {
    /// The agent waits for its user's word before it calls us.
    Trust { host: Host, scope: Scope },
    /// The version is not known, so some events were left out.
    VersionUnknown { program: &'static str, why: Why, left_out: Vec<&'static str> },
    /// The version is too old for some events.
    VersionOld { version: String, left_out: Vec<&'static str> },
    /// A setting keeps the agent from calling us.
    SwitchedOff(Switch),
    /// The plugin is switched on by this file, and does nothing: it finds no program.
    PluginIdle { file: PathBuf },
    /// This was built by the agent's documentation and never seen to work.
    Unverified,
    /// The program was built here and may be gone tomorrow.
    BuildFolder { program: PathBuf },
    /// The program lies where things are cleared away.
    Temporary { program: PathBuf },
    /// The file is one that others may get with the project.
    Shared { file: PathBuf },
    /// An entry that calls us, but not with our line, was left alone.
    LooksLikeOurs { file: PathBuf, line: String },
    /// Something wrote its old copy over ours, and we wrote again.
    WroteAgain { file: PathBuf },
}

impl Note {
    /// Its name in JSON.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Note::Trust { .. } => "trust",
            Note::VersionUnknown { .. } => "version_unknown",
            Note::VersionOld { .. } => "version_old",
            Note::SwitchedOff(_) => "switched_off",
            Note::PluginIdle { .. } => "plugin_idle",
            Note::Unverified => "unverified",
            Note::BuildFolder { .. } => "build_folder",
            Note::Temporary { .. } => "temporary",
            Note::Shared { .. } => "shared",
            Note::LooksLikeOurs { .. } => "looks_like_ours",
            Note::WroteAgain { .. } => "wrote_again",
        }
    }

    /// What is left to do for a person before an agent calls us.
    pub(crate) fn trust(host: Host, scope: Scope) -> Option<Note> {
        let is_asked = match (host, scope) {
            (Host::Codex, _) => true,
            (Host::Claude | Host::Gemini | Host::Qwen | Host::Copilot | Host::Cursor, Scope::Project) => true,
            (Host::Claude | Host::Gemini | Host::Qwen | Host::Copilot | Host::Cursor, Scope::User) => false,
            (Host::Opencode | Host::Generic, _) => false,
        };
        is_asked.then_some(Note::Trust { host, scope })
    }

    /// The words.
    pub(crate) fn text(&self, lang: Lang) -> String {
        match (self, lang) {
            (Note::Trust { host: Host::Codex, .. }, Lang::En) => {
                "one step is left to you: start codex, type /hooks and trust the entries of unstuck; until then codex skips \
                 them without a word"
                    .to_owned()
            }
            (Note::Trust { host: Host::Codex, .. }, Lang::Zh) => {
                "还差您一步：启动 codex，输入 /hooks 并信任 unstuck 的条目；在此之前 codex 会不作声地跳过它们".to_owned()
            }
            (Note::Trust { host, .. }, Lang::En) => format!(
                "one step is left to you: start {host} in this project and say that you trust the folder; until then its \
                 hooks do not run"
            ),
            (Note::Trust { host, .. }, Lang::Zh) => {
                format!("还差您一步：在此项目中启动 {host} 并确认信任该文件夹；在此之前其钩子不会运行")
            }
            (Note::VersionUnknown { program, why, left_out }, Lang::En) => format!(
                "the version of {program} is not known ({}), so these events were left out: {}. An older version \
                 might not take the file with them; run this again where `{program} --version` works",
                why.in_words(lang),
                left_out.join(", ")
            ),
            (Note::VersionUnknown { program, why, left_out }, Lang::Zh) => format!(
                "不知道 {program} 的版本（{}），因此未写入以下事件：{}。较旧的版本可能会因它们拒绝整个文件；请在 \
                 `{program} --version` 可用时再运行一次",
                why.in_words(lang),
                left_out.join("、")
            ),
            (Note::VersionOld { version, left_out }, Lang::En) => format!(
                "version {version} does not know these events, so they were left out: {}. Run this again after an update",
                left_out.join(", ")
            ),
            (Note::VersionOld { version, left_out }, Lang::Zh) => {
                format!("版本 {version} 不认识以下事件，因此未写入：{}。更新后请再运行一次", left_out.join("、"))
            }
            (Note::SwitchedOff(switch), Lang::En) => {
                format!("hooks are switched off by `{}` in {}", switch.key, switch.file.display())
            }
            (Note::SwitchedOff(switch), Lang::Zh) => {
                format!("钩子已被 {} 中的 `{}` 关闭", switch.file.display(), switch.key)
            }
            (Note::PluginIdle { file }, Lang::En) => format!(
                "the plugin (enabled in {}) finds no `unstuck` on PATH and does nothing, so these entries name the program \
                 themselves; disable the plugin, or put `unstuck` on PATH and take the entries out with `unstuck uninstall claude`",
                file.display()
            ),
            (Note::PluginIdle { file }, Lang::Zh) => format!(
                "插件（在 {} 中启用）在 PATH 中找不到 `unstuck`，因此不起作用，这些条目直接指明程序位置；请停用插件，或将 `unstuck` \
                 放入 PATH 并用 `unstuck uninstall claude` 移除条目",
                file.display()
            ),
            (Note::Unverified, Lang::En) => {
                "built by its documentation; nobody has seen it work with this agent yet".to_owned()
            }
            (Note::Unverified, Lang::Zh) => "依据其文档实现；尚未在该代理上实际验证".to_owned(),
            (Note::BuildFolder { program }, Lang::En) => format!(
                "{} lies in a build folder and will be gone after the next clean-up; `cargo install` gives it a lasting \
                 place, then run this again",
                program.display()
            ),
            (Note::BuildFolder { program }, Lang::Zh) => format!(
                "{} 位于构建文件夹，清理后就会消失；请用 `cargo install` 放到固定位置，然后再运行一次",
                program.display()
            ),
            (Note::Temporary { program }, Lang::En) => format!(
                "{} lies in a temporary folder; put it into a lasting place, then run this again",
                program.display()
            ),
            (Note::Temporary { program }, Lang::Zh) => {
                format!("{} 位于临时文件夹；请放到固定位置，然后再运行一次", program.display())
            }
            (Note::Shared { file }, Lang::En) => format!(
                "{} names a path on this machine; keep it out of version control, or install with --user",
                file.display()
            ),
            (Note::Shared { file }, Lang::Zh) => {
                format!("{} 含有本机路径；请勿纳入版本控制，或用 --user 安装", file.display())
            }
            (Note::LooksLikeOurs { file, line }, Lang::En) => format!(
                "{} has an entry that calls unstuck, but not with our line, so it was left alone: {line}",
                file.display()
            ),
            (Note::LooksLikeOurs { file, line }, Lang::Zh) => {
                format!("{} 中有一个条目调用 unstuck，但不是我们的命令行，因此未动它：{line}", file.display())
            }
            (Note::WroteAgain { file }, Lang::En) => format!(
                "another program wrote its old copy over {}, so it was written a second time; restart the agent",
                file.display()
            ),
            (Note::WroteAgain { file }, Lang::Zh) => {
                format!("另一个程序用旧副本覆盖了 {}，因此又写了一次；请重启该代理", file.display())
            }
        }
    }
}
