//! What can be wrong with settings, in words for the person who wrote them. Nothing that was written is quoted raw.

use std::io;
use std::path::{Path, PathBuf};

use unstuck_judge::Lang;
use unstuck_wire::redact::redact;

use super::entry_mistake::EntryMistake;
use super::key::Project;
use super::layer::Place;
use super::quoted::{harmless_path, quoted};
use super::value::Shape;

/// A mistake in one layer, by what its writer can do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("could not read {}: {source}", harmless_path(path))]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is no ordinary file", harmless_path(path))]
    NoFile { path: PathBuf },
    #[error("{} is larger than 1 MB", harmless_path(path))]
    TooLarge { path: PathBuf },
    #[error("{place}: is not UTF-8 text")]
    NoText { place: Place },
    #[error("{place}: {what}")]
    Syntax { place: Place, what: String },
    #[error("{place}: no setting is called {}", quoted(name))]
    UnknownKey { place: Place, name: String, nearest: Option<String> },
    #[error("{place}: {name} must be {}, not {}", wanted.words(Lang::En), found.words(Lang::En))]
    WrongValue { place: Place, name: String, wanted: Box<Wanted>, found: Misfit },
    #[error("{place}: {} may not be set by a project: it is the user's alone", quoted(name))]
    NotForProjects { place: Place, name: String },
    #[error("{place}: {name} = {found} would loosen {current}: {}", may.words(Lang::En))]
    Loosens { place: Place, name: &'static str, found: String, current: String, may: Project },
    #[error("{place}: alert {}: {what}", quoted(name))]
    Alert { place: Place, name: String, what: Box<EntryMistake> },
    #[error("{place}: alerts are set in the user's or the system's file only")]
    AlertOutsideFile { place: Place },
    #[error("{place}: agent {}: {what}", quoted(name))]
    Agent { place: Place, name: String, what: Box<EntryMistake> },
    #[error("{place}: {}: {what}", quoted(name))]
    Retry { place: Place, name: String, what: String },
    #[error("{place}: agents are set in the user's or the system's file only")]
    AgentOutsideFile { place: Place },
    #[error("--set wants KEY=VALUE, not {}", quoted(written))]
    NoAssignment { written: String },
}

/// What should have stood in the place of a value that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Shape(Shape),
    Alerts,
    Agents,
}

impl Wanted {
    fn words(self, lang: Lang) -> String {
        match (self, lang) {
            (Wanted::Shape(shape), lang) => shape.wanted(lang),
            (Wanted::Alerts, Lang::En) => "a list of tables, each under [[alert]]".to_owned(),
            (Wanted::Alerts, Lang::Zh) => "一列表格，每个写在 [[alert]] 之下".to_owned(),
            (Wanted::Agents, Lang::En) => "tables, each under [agent.NAME]".to_owned(),
            (Wanted::Agents, Lang::Zh) => "若干表格，每个写在 [agent.NAME] 之下".to_owned(),
        }
    }
}

/// What stands in the place of a value and does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misfit {
    Written(String),
    /// TOML's own word for something that is never quoted.
    OfType(&'static str),
}

impl Misfit {
    fn words(&self, lang: Lang) -> String {
        match (self, lang) {
            (Misfit::Written(text), _) => quoted(text),
            (Misfit::OfType(word), Lang::En) => format!("of type {word}"),
            (Misfit::OfType(word), Lang::Zh) => format!("{word} 类型的值"),
        }
    }
}

impl SettingsError {
    /// What is wrong, in words for a person. Logs and JSON keep to the English of `Display`.
    pub(crate) fn in_words(&self, lang: Lang) -> String {
        match lang {
            Lang::En => redact(&self.to_string()).into_owned(),
            Lang::Zh => redact(&self.in_chinese()).into_owned(),
        }
    }

    fn in_chinese(&self) -> String {
        match self {
            SettingsError::Unreadable { path, source } => {
                format!("无法读取 {}：{source}", harmless_path(path))
            }
            SettingsError::NoFile { path } => format!("{} 不是普通文件", harmless_path(path)),
            SettingsError::TooLarge { path } => format!("{} 大于 1 MB", harmless_path(path)),
            SettingsError::NoText { place } => format!("{place}：不是 UTF-8 文本"),
            SettingsError::Syntax { place, what } => format!("{place}：{what}"),
            SettingsError::UnknownKey { place, name, .. } => {
                format!("{place}：没有名为 {} 的设置", quoted(name))
            }
            SettingsError::WrongValue { place, name, wanted, found } => {
                format!("{place}：{name} 应为：{}；写的是 {}", wanted.words(Lang::Zh), found.words(Lang::Zh))
            }
            SettingsError::NotForProjects { place, name } => {
                format!("{place}：项目不能设置 {}：它只属于用户", quoted(name))
            }
            SettingsError::Loosens { place, name, found, current, may } => {
                format!("{place}：{name} = {found} 会放宽 {current}：{}", may.words(Lang::Zh))
            }
            SettingsError::Alert { place, name, what } => {
                format!("{place}：告警 {}：{}", quoted(name), what.words(Lang::Zh))
            }
            SettingsError::AlertOutsideFile { place } => {
                format!("{place}：告警只能写在用户或系统的文件中")
            }
            SettingsError::Agent { place, name, what } => {
                format!("{place}：智能体 {}：{}", quoted(name), what.words(Lang::Zh))
            }
            SettingsError::Retry { place, name, what } => format!("{place}：{}：{what}", quoted(name)),
            SettingsError::AgentOutsideFile { place } => {
                format!("{place}：智能体只能写在用户或系统的文件中")
            }
            SettingsError::NoAssignment { written } => {
                format!("--set 需要 KEY=VALUE，而不是 {}", quoted(written))
            }
        }
    }

    /// What to try, if anything helps.
    pub(crate) fn hint(&self, lang: Lang) -> Option<String> {
        let say = |en: &str, zh: &str| match lang {
            Lang::En => en.to_owned(),
            Lang::Zh => zh.to_owned(),
        };
        match self {
            SettingsError::UnknownKey { nearest: Some(nearest), .. } => {
                Some(say(&format!("did you mean {nearest}?"), &format!("您指的是 {nearest} 吗？")))
            }
            SettingsError::UnknownKey { nearest: None, .. } => {
                Some(say("`unstuck config show` lists all settings", "`unstuck config show` 列出全部设置"))
            }
            SettingsError::NotForProjects { .. } | SettingsError::Loosens { .. } => Some(say(
                "`unstuck config edit` opens your own file, which may set it",
                "`unstuck config edit` 打开您自己的文件，可以在那里设置",
            )),
            SettingsError::WrongValue { name, .. } => Some(say(
                &format!("`unstuck config explain {name}` tells more"),
                &format!("`unstuck config explain {name}` 有更多说明"),
            )),
            SettingsError::Unreadable { .. }
            | SettingsError::NoFile { .. }
            | SettingsError::TooLarge { .. }
            | SettingsError::NoText { .. }
            | SettingsError::Syntax { .. }
            | SettingsError::Alert { .. }
            | SettingsError::AlertOutsideFile { .. }
            | SettingsError::Agent { .. }
            | SettingsError::Retry { .. }
            | SettingsError::AgentOutsideFile { .. }
            | SettingsError::NoAssignment { .. } => None,
        }
    }

    /// Whether it lies in this file.
    pub(crate) fn is_in(&self, file: &Path) -> bool {
        match self {
            SettingsError::Unreadable { path, .. }
            | SettingsError::NoFile { path }
            | SettingsError::TooLarge { path } => path == file,
            SettingsError::NoText { place }
            | SettingsError::Syntax { place, .. }
            | SettingsError::UnknownKey { place, .. }
            | SettingsError::WrongValue { place, .. }
            | SettingsError::NotForProjects { place, .. }
            | SettingsError::Loosens { place, .. }
            | SettingsError::Alert { place, .. }
            | SettingsError::AlertOutsideFile { place }
            | SettingsError::Agent { place, .. }
            | SettingsError::Retry { place, .. }
            | SettingsError::AgentOutsideFile { place } => match place {
                Place::InFile { path, .. } => path == file,
                Place::BuiltIn | Place::Variable(_) | Place::Flag => false,
            },
            SettingsError::NoAssignment { .. } => false,
        }
    }
}
