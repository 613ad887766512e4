//! What a schema wants at a place, in words.

use serde_json::{Number, Value};
use unstuck_judge::Lang;

use super::quote;

/// Of a longer list of allowed values the first are told.
const CHOICES_MAX: usize = 12;

/// The types of JSON, whole numbers by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    Null,
    Truth,
    Whole,
    Number,
    Text,
    List,
    Object,
}

impl Sort {
    pub(super) fn named(name: &str) -> Option<Sort> {
        Some(match name {
            "null" => Sort::Null,
            "boolean" => Sort::Truth,
            "integer" => Sort::Whole,
            "number" => Sort::Number,
            "string" => Sort::Text,
            "array" => Sort::List,
            "object" => Sort::Object,
            _ => return None,
        })
    }

    /// Whether `value` is one.
    pub(super) fn holds(self, value: &Value) -> bool {
        match (self, value) {
            (Sort::Null, Value::Null)
            | (Sort::Truth, Value::Bool(_))
            | (Sort::Number, Value::Number(_))
            | (Sort::Text, Value::String(_))
            | (Sort::List, Value::Array(_))
            | (Sort::Object, Value::Object(_)) => true,
            (Sort::Whole, Value::Number(number)) => is_whole(number),
            (
                Sort::Null
                | Sort::Truth
                | Sort::Whole
                | Sort::Number
                | Sort::Text
                | Sort::List
                | Sort::Object,
                _,
            ) => false,
        }
    }

    fn say(self, lang: Lang) -> &'static str {
        let [en, zh] = match self {
            Sort::Null => ["null", "null"],
            Sort::Truth => ["true or false", "true 或 false"],
            Sort::Whole => ["a whole number", "整数"],
            Sort::Number => ["a number", "数字"],
            Sort::Text => ["a text", "文本"],
            Sort::List => ["a list", "列表"],
            Sort::Object => ["an object", "对象"],
        };
        pick(lang, en, zh)
    }
}

/// For JSON schema `3.0` is a whole number.
pub(super) fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|fraction| fraction.fract() == 0.0)
}

pub(super) fn pick<T>(lang: Lang, en: T, zh: T) -> T {
    match lang {
        Lang::En => en,
        Lang::Zh => zh,
    }
}

/// What a schema wants at a place.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expected {
    /// Something of these types.
    Sorts(Vec<Sort>),
    /// One of these values, which are quoted already; so many more are allowed.
    Choice(Vec<String>, usize),
    /// A number within a limit, as `≥ 1`.
    Limit(&'static str, Number),
    /// A multiple of a number.
    Multiple(Number),
    /// So many of something.
    Count(Bound, u64, Unit),
    /// A text that fits a pattern.
    Pattern(String),
    /// A text of a format.
    Format(String),
    /// A list in which nothing stands twice.
    Distinct,
    /// A list with an entry of a kind.
    Containing,
    /// Something else than what is there.
    Otherwise,
    /// Nothing at all.
    Nothing,
    /// What fits exactly one of several forms.
    OneForm,
    /// One of several.
    Either(Vec<Expected>),
    /// Whatever a keyword of the schema asks for.
    Keyword(String),
    /// Anything.
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    AtLeast,
    AtMost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Characters,
    Entries,
    Fields,
}

impl Expected {
    /// One of `values`.
    pub(super) fn choice<'v>(values: impl ExactSizeIterator<Item = &'v Value>) -> Expected {
        let more = values.len().saturating_sub(CHOICES_MAX);
        Expected::Choice(values.take(CHOICES_MAX).map(quote::literal).collect(), more)
    }

    /// The same with no more choices than are told.
    pub(super) fn shortened(self) -> Expected {
        match self {
            Expected::Choice(mut values, more) if values.len() > CHOICES_MAX => {
                let cut = values.split_off(CHOICES_MAX);
                Expected::Choice(values, more + cut.len())
            }
            other => other,
        }
    }

    pub(super) fn say(&self, lang: Lang) -> String {
        let zh = lang == Lang::Zh;
        match self {
            Expected::Sorts(sorts) => {
                let or = pick(lang, " or ", "或");
                sorts.iter().map(|sort| sort.say(lang)).collect::<Vec<_>>().join(or)
            }
            Expected::Choice(values, 0) if values.len() == 1 => values.concat(),
            Expected::Choice(values, more) => {
                let list = values.join(pick(lang, ", ", "、"));
                match (more, zh) {
                    (0, true) => format!("以下之一：{list}"),
                    (0, false) => format!("one of {list}"),
                    (more, true) => format!("以下之一：{list}，以及另外 {more} 个"),
                    (more, false) => format!("one of {list} and {more} more"),
                }
            }
            Expected::Limit(sign, number) => {
                format!("{} {sign} {number}", pick(lang, "a number", "数字"))
            }
            Expected::Multiple(number) if zh => format!("{number} 的倍数"),
            Expected::Multiple(number) => format!("a multiple of {number}"),
            Expected::Count(bound, count, unit) => {
                let bound = match bound {
                    Bound::AtLeast => pick(lang, "at least", "至少"),
                    Bound::AtMost => pick(lang, "at most", "最多"),
                };
                let [one, many, zh] = match unit {
                    Unit::Characters => ["character", "characters", "个字符"],
                    Unit::Entries => ["entry", "entries", "项"],
                    Unit::Fields => ["field", "fields", "个字段"],
                };
                format!("{bound} {count} {}", pick(lang, if *count == 1 { one } else { many }, zh))
            }
            Expected::Pattern(pattern) => {
                format!(
                    "{} {}",
                    pick(lang, "a text that matches", "符合以下模式的文本："),
                    quote::quoted(pattern)
                )
            }
            Expected::Format(format) => {
                format!(
                    "{} {}",
                    pick(lang, "a text of the format", "以下格式的文本："),
                    quote::quoted(format)
                )
            }
            Expected::Distinct => pick(lang, "a list without repetitions", "不含重复项的列表").to_owned(),
            Expected::Containing => {
                pick(lang, "a list with the entries its schema asks for", "含有其模式所要求的项的列表")
                    .to_owned()
            }
            Expected::Otherwise => pick(lang, "something else", "其他值").to_owned(),
            Expected::Nothing => pick(lang, "nothing", "无").to_owned(),
            Expected::OneForm => pick(lang, "what fits exactly one form", "恰好符合一种形式的值").to_owned(),
            Expected::Either(several) => {
                let several = &several[..several.len().min(CHOICES_MAX)];
                several.iter().map(|one| one.say(lang)).collect::<Vec<_>>().join(pick(lang, " or ", "或"))
            }
            Expected::Keyword(keyword) => {
                let keyword = quote::name(keyword);
                pick(
                    lang,
                    format!("what `{keyword}` of the schema allows"),
                    format!("模式中 `{keyword}` 所允许的值"),
                )
            }
            Expected::Any => pick(lang, "any value", "任意值").to_owned(),
        }
    }
}
