//! Why the files of a risky call could not be saved, and what is said about it: to a person who is asked, to a model whose call
//! is refused, or to one whose call runs all the same.

use std::time::Duration;

use unstuck_judge::ladder::see::OUR_MARK;
use unstuck_judge::ladder::words;
use unstuck_judge::{Lang, quote};
use unstuck_store::StoreError;
use unstuck_vault::{Snapshot, VaultError};

use crate::exit::CommandError;
use crate::moment;
use crate::removed;

/// So many paths are named where some could not be saved.
const NAMED: usize = 3;
/// Maximum length of an error of ours, which may name files, in characters.
const FAULT: usize = 300;

/// Why the files of a call could not be saved.
pub(super) struct Trouble {
    pub(super) weight: Weight,
    /// What happened, as half a sentence.
    pub(super) text: String,
    /// What can be done about it, in whole sentences.
    todo: String,
}

/// How much it weighs where nobody can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// Somebody can change it: the call does not run.
    Stops,
    /// It is our own fault, and that never stops an agent: the model is told.
    OwnFault,
    /// Most was saved: the model is told what was not.
    Partial,
}

impl Trouble {
    pub(super) fn of(error: &CommandError, time: Duration, lang: Lang) -> Trouble {
        let stops = |text: String, todo: [&str; 2]| Trouble {
            weight: Weight::Stops,
            text,
            todo: todo[lang as usize].to_owned(),
        };
        if let CommandError::OurOwn { .. } = error {
            return stops(
                error.in_words(lang),
                [
                    "Only a person removes it: `unstuck purge`, `unstuck gc`.",
                    "只有用户可以删除它：`unstuck purge`、`unstuck gc`。",
                ],
            );
        }
        let CommandError::Vault(error) = error else {
            let weight = match error {
                CommandError::Store(StoreError::NotOurs { .. }) => Weight::Stops,
                _ => Weight::OwnFault,
            };
            return Trouble { weight, ..Trouble::own_fault(&error.in_words(lang), lang) };
        };
        let size = removed::size;
        match error {
            VaultError::Stopped => stops(
                match (lang, span(time)) {
                    (Lang::En, span) => format!("it was not done within {span}"),
                    (Lang::Zh, span) => format!("在 {span} 内没有完成"),
                },
                [
                    "A call that touches less needs less time. A person can save them beforehand with `unstuck snapshot PATH`, which makes the next time short. `vault.deadline` can be set longer only as far as the agent waits for its hooks.",
                    "涉及文件更少的调用所需时间更短。用户可以事先用 `unstuck snapshot PATH` 保存，下一次就会很快。`vault.deadline` 最多只能延长到代理等待钩子的时间。",
                ],
            ),
            VaultError::OverBudget { needed, allowed } => stops(
                match lang {
                    Lang::En => format!(
                        "they need {}, and the safe may hold only {} more",
                        size(*needed),
                        size(*allowed)
                    ),
                    Lang::Zh => format!("需要 {}，而保险库只能再容纳 {}", size(*needed), size(*allowed)),
                },
                [
                    "A call that touches less needs less room. A person can make room with `unstuck gc`, or set `vault.max-size`.",
                    "涉及文件更少的调用所需空间更少。用户可以用 `unstuck gc` 腾出空间，或设置 `vault.max-size`。",
                ],
            ),
            VaultError::DiskFull { needed, free, .. } => stops(
                match (lang, needed) {
                    (Lang::En, 0) => "the disk of the safe is full".to_owned(),
                    (Lang::Zh, 0) => "保险库所在的磁盘已满".to_owned(),
                    (Lang::En, needed) => format!(
                        "they need {}, and the disk of the safe has {} to spare",
                        size(*needed),
                        size(*free)
                    ),
                    (Lang::Zh, needed) => {
                        format!("需要 {}，而保险库所在的磁盘只剩 {}", size(*needed), size(*free))
                    }
                },
                [
                    "A person can free some of the disk, make room with `unstuck gc`, or set `vault.min-free`.",
                    "用户可以清理磁盘、用 `unstuck gc` 腾出空间，或设置 `vault.min-free`。",
                ],
            ),
            VaultError::Busy { .. } => stops(
                match lang {
                    Lang::En => "another process is at work in the safe".to_owned(),
                    Lang::Zh => "另一个进程正在使用保险库".to_owned(),
                },
                ["The same call can be sent again in a moment.", "同一调用可以稍后再发送。"],
            ),
            VaultError::TooWide { path } => stops(
                match (lang, quote::name(&path.to_string_lossy())) {
                    (Lang::En, path) => format!("{path} is too much to be saved as a whole"),
                    (Lang::Zh, path) => format!("{path} 过大，无法整体保存"),
                },
                [
                    "A call that names the files or folders it means more narrowly can be protected.",
                    "更具体地指明文件或文件夹的调用可以得到保护。",
                ],
            ),
            VaultError::NotOurs { .. } | VaultError::TooNew { .. } => stops(
                error.to_string(),
                ["`unstuck doctor` tells a person more.", "`unstuck doctor` 会告诉用户更多。"],
            ),
            VaultError::Damaged { .. }
            | VaultError::Io { .. }
            | VaultError::Away { .. }
            | VaultError::Missing { .. }
            | VaultError::NoSuchSnapshot { .. }
            | VaultError::NotConcluded { .. } => Trouble::own_fault(&error.to_string(), lang),
        }
    }

    fn own_fault(text: &str, lang: Lang) -> Trouble {
        let todo = match lang {
            Lang::En => "`unstuck doctor` tells a person more.",
            Lang::Zh => "`unstuck doctor` 会告诉用户更多。",
        };
        Trouble { weight: Weight::OwnFault, text: quote::fenced(text, FAULT), todo: todo.to_owned() }
    }

    /// Saving came to no end at all.
    pub(super) fn no_end(lang: Lang) -> Trouble {
        let text = match lang {
            Lang::En => "it came to no end",
            Lang::Zh => "没有结束",
        };
        Trouble { weight: Weight::Stops, ..Trouble::own_fault(text, lang) }
    }

    /// Something of what is at risk could not be saved.
    pub(super) fn partial(snapshot: &Snapshot, lang: Lang) -> Trouble {
        let gaps: Vec<String> = snapshot
            .gaps
            .iter()
            .filter(|gap| !gap.reason.is_on_purpose())
            .map(|gap| quote::name(&gap.path.to_string_lossy()))
            .collect();
        let more = gaps.len().saturating_sub(NAMED);
        let named = gaps[..gaps.len().min(NAMED)].join(", ");
        let text = match (lang, more) {
            (Lang::En, 0) => format!("these could not be read: {named}"),
            (Lang::En, more) => format!("these and {more} more could not be read: {named}"),
            (Lang::Zh, 0) => format!("无法读取：{named}"),
            (Lang::Zh, more) => format!("无法读取：{named} 以及另外 {more} 个"),
        };
        Trouble { weight: Weight::Partial, text, todo: String::new() }
    }

    /// What the model of a refused call is told: what may be lost, why it does not run, what can be done.
    pub(super) fn denied(&self, why: &str, key: Option<&str>, lang: Lang) -> String {
        let head = match lang {
            Lang::En => format!(
                "{OUR_MARK}: Not run: {why}, and what it would touch could not be saved first: {}.",
                self.text
            ),
            Lang::Zh => format!("{OUR_MARK}: 未运行：{why}，而相关文件未能事先保存：{}。", self.text),
        };
        let way_out = match key {
            Some(key) => words::way_out(key, lang),
            None => Trouble::without_record(lang).to_owned(),
        };
        words::joined([Some(&*head), self.todo(), Some(&way_out)])
    }

    /// How a person can lift a refusal where nothing can be recorded.
    fn without_record(lang: Lang) -> &'static str {
        match lang {
            Lang::En => {
                "Nothing can be recorded now, so no single call can be allowed; a person can mend that, or set `vault.protect = \"off\"`."
            }
            Lang::Zh => {
                "目前无法记录任何内容，因此无法放行单个调用；用户可以修复此问题，或设置 `vault.protect = \"off\"`。"
            }
        }
    }

    /// What a person is asked.
    pub(super) fn asked(&self, why: &str, lang: Lang) -> String {
        let head = match (self.weight, lang) {
            (Weight::Partial, Lang::En) => format!(
                "{OUR_MARK}: {why}, and not all of it could be saved first: {}. What was not saved cannot be brought back.",
                self.text
            ),
            (Weight::Partial, Lang::Zh) => {
                format!("{OUR_MARK}: {why}，而相关文件未能全部事先保存：{}。未保存的无法恢复。", self.text)
            }
            (Weight::Stops | Weight::OwnFault, Lang::En) => format!(
                "{OUR_MARK}: {why}, and what it would touch could not be saved first: {}. If it runs now, it cannot be undone.",
                self.text
            ),
            (Weight::Stops | Weight::OwnFault, Lang::Zh) => {
                format!(
                    "{OUR_MARK}: {why}，而相关文件未能事先保存：{}。如果现在运行，将无法撤销。",
                    self.text
                )
            }
        };
        words::joined([Some(&*head), self.todo()])
    }

    /// What the model of a call that runs all the same is told.
    pub(super) fn told(&self, lang: Lang) -> String {
        let head = match (self.weight, lang) {
            (Weight::Partial, Lang::En) => {
                format!(
                    "Not all files that this call puts at risk could be saved before it: {}. The others can be brought back with `unstuck undo`.",
                    self.text
                )
            }
            (Weight::Partial, Lang::Zh) => {
                format!("该调用涉及的文件未能全部事先保存：{}。其余的可以用 `unstuck undo` 恢复。", self.text)
            }
            (Weight::Stops | Weight::OwnFault, Lang::En) => {
                format!(
                    "The files that this call puts at risk could not be saved before it, so it cannot be undone: {}.",
                    self.text
                )
            }
            (Weight::Stops | Weight::OwnFault, Lang::Zh) => {
                format!("该调用涉及的文件未能事先保存，因此无法撤销：{}。", self.text)
            }
        };
        words::joined([Some(&*head), self.todo()])
    }

    fn todo(&self) -> Option<&str> {
        Some(&*self.todo).filter(|todo| !todo.is_empty())
    }
}

fn span(time: Duration) -> String {
    moment::span(unstuck_wire::time::span_ms(time))
}
