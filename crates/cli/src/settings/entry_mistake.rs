//! What can be wrong with one entry that has a name of its own, an `[[alert]]` or an `[agent.NAME]`, and the words for it. What
//! somebody wrote is quoted before it comes here.

use std::fmt;

use unstuck_judge::Lang;

use super::quoted::quoted;

/// A mistake in one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EntryMistake {
    NoName,
    Twice,
    UnknownField {
        field: String,
        nearest: Option<&'static str>,
    },
    WrongField {
        field: String,
        wanted: FieldWanted,
        found: FieldFound,
        nearest: Option<String>,
    },
    /// An address may hold a secret, so what was written is not repeated.
    NoAddress,
    NoWhen,
    NeedsField {
        field: &'static str,
    },
    /// It is laid down for the programs that we know.
    NotForKnown {
        field: &'static str,
    },
    Needs {
        when: &'static str,
        field: &'static str,
    },
    MeansNothing {
        when: &'static str,
        field: &'static str,
    },
}

/// What a field must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldWanted {
    OneOf(String),
    KnownWord,
    Line,
    WholeNumber,
    UpTo(u8),
    ASecondOrMore,
    AboveOne,
    Flag,
    Say,
    Command,
    Words,
    Resume,
    Pattern,
}

/// What stands in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldFound {
    Written(String),
    Date,
    EmptyList,
    List,
    Table,
}

impl EntryMistake {
    /// It, in words.
    pub(crate) fn words(&self, lang: Lang) -> String {
        match (self, lang) {
            (EntryMistake::NoName, Lang::En) => "needs a name of a-z, 0-9 and - (at most 64)".to_owned(),
            (EntryMistake::NoName, Lang::Zh) => {
                "需要由 a-z、0-9 和 - 组成的名称（最多 64 个字符）".to_owned()
            }
            (EntryMistake::Twice, Lang::En) => "stands twice in this file".to_owned(),
            (EntryMistake::Twice, Lang::Zh) => "在此文件中出现了两次".to_owned(),
            (EntryMistake::UnknownField { field, nearest }, Lang::En) => {
                format!("has no field {}{}", quoted(field), meant(*nearest, lang))
            }
            (EntryMistake::UnknownField { field, nearest }, Lang::Zh) => {
                format!("没有 {} 这个字段{}", quoted(field), meant(*nearest, lang))
            }
            (EntryMistake::WrongField { field, wanted, found, nearest }, Lang::En) => {
                let meant = meant(nearest.as_deref(), lang);
                format!("{field} must be {}, not {}{meant}", wanted.words(lang), found.words(lang))
            }
            (EntryMistake::WrongField { field, wanted, found, nearest }, Lang::Zh) => {
                let meant = meant(nearest.as_deref(), lang);
                format!("{field} 应为：{}；写的是 {}{meant}", wanted.words(lang), found.words(lang))
            }
            (EntryMistake::NoAddress, Lang::En) => {
                "webhook must be an http:// or https:// address without a user name".to_owned()
            }
            (EntryMistake::NoAddress, Lang::Zh) => {
                "webhook 应为不含用户名的 http:// 或 https:// 地址".to_owned()
            }
            (EntryMistake::NoWhen, Lang::En) => "needs `when`: failures, rate or event".to_owned(),
            (EntryMistake::NoWhen, Lang::Zh) => "需要 `when`：failures、rate 或 event".to_owned(),
            (EntryMistake::NeedsField { field }, Lang::En) => format!("needs `{field}`"),
            (EntryMistake::NeedsField { field }, Lang::Zh) => format!("需要 `{field}`"),
            (EntryMistake::NotForKnown { field }, Lang::En) => {
                format!("`{field}` is known of this program already and cannot be set")
            }
            (EntryMistake::NotForKnown { field }, Lang::Zh) => {
                format!("此程序的 `{field}` 是已知的，不能设置")
            }
            (EntryMistake::Needs { when, field }, Lang::En) => {
                format!("`when = \"{when}\"` needs `{field}`")
            }
            (EntryMistake::Needs { when, field }, Lang::Zh) => {
                format!("`when = \"{when}\"` 需要 `{field}`")
            }
            (EntryMistake::MeansNothing { when, field }, Lang::En) => {
                format!("`{field}` means nothing with `when = \"{when}\"`")
            }
            (EntryMistake::MeansNothing { when, field }, Lang::Zh) => {
                format!("`{field}` 与 `when = \"{when}\"` 一起没有意义")
            }
        }
    }
}

impl fmt::Display for EntryMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words(Lang::En))
    }
}

impl FieldWanted {
    fn words(&self, lang: Lang) -> String {
        let (en, zh) = match self {
            FieldWanted::OneOf(words) => (format!("one of {words}"), format!("以下之一：{words}")),
            FieldWanted::KnownWord => ("a known word".to_owned(), "已知的词".to_owned()),
            FieldWanted::Line => ("a text on one line".to_owned(), "单行文本".to_owned()),
            FieldWanted::WholeNumber => {
                ("a whole number, 0 or more".to_owned(), "不小于 0 的整数".to_owned())
            }
            FieldWanted::UpTo(most) => {
                (format!("a whole number from 0 to {most}"), format!("0 到 {most} 的整数"))
            }
            FieldWanted::ASecondOrMore => (
                "a duration of 1s or more, such as \"1h\"".to_owned(),
                "不短于 1s 的时长，例如 \"1h\"".to_owned(),
            ),
            FieldWanted::AboveOne => ("a number above 1".to_owned(), "大于 1 的数".to_owned()),
            FieldWanted::Flag => ("true or false".to_owned(), "true 或 false".to_owned()),
            FieldWanted::Say => (
                "a text or { en = \"…\", zh = \"…\" }".to_owned(),
                "文本或 { en = \"…\", zh = \"…\" }".to_owned(),
            ),
            FieldWanted::Command => (
                "a list such as [\"notify-send\", \"unstuck\"]".to_owned(),
                "列表，例如 [\"notify-send\", \"unstuck\"]".to_owned(),
            ),
            FieldWanted::Words => (
                "a list of texts such as [\"run\", \"{prompt}\"]".to_owned(),
                "文本列表，例如 [\"run\", \"{prompt}\"]".to_owned(),
            ),
            FieldWanted::Resume => (
                "a list with {session} in it, such as [\"resume\", \"{session}\"]".to_owned(),
                "含有 {session} 的列表，例如 [\"resume\", \"{session}\"]".to_owned(),
            ),
            FieldWanted::Pattern => (
                "a text on one line with {session} in it, such as \"session: {session}\"".to_owned(),
                "含有 {session} 的单行文本，例如 \"session: {session}\"".to_owned(),
            ),
        };
        match lang {
            Lang::En => en,
            Lang::Zh => zh,
        }
    }
}

impl FieldFound {
    fn words(&self, lang: Lang) -> &str {
        match (self, lang) {
            (FieldFound::Written(text), _) => text,
            (FieldFound::Date, Lang::En) => "a date",
            (FieldFound::Date, Lang::Zh) => "日期",
            (FieldFound::EmptyList, Lang::En) => "an empty list",
            (FieldFound::EmptyList, Lang::Zh) => "空列表",
            (FieldFound::List, Lang::En) => "a list",
            (FieldFound::List, Lang::Zh) => "列表",
            (FieldFound::Table, Lang::En) => "a table",
            (FieldFound::Table, Lang::Zh) => "表格",
        }
    }
}

fn meant(nearest: Option<&str>, lang: Lang) -> String {
    match (nearest, lang) {
        (None, _) => String::new(),
        (Some(name), Lang::En) => format!("; did you mean {name}?"),
        (Some(name), Lang::Zh) => format!("；您指的是 {name} 吗？"),
    }
}
