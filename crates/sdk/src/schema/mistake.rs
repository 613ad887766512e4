//! What is wrong with arguments, for the model and for programs. Whatever arguments hold, the texts stay short.

use serde_json::Value;
use unstuck_judge::Lang;

use super::expected::{Expected, pick};
use super::quote::{self, Step};

/// So many mistakes are told; who corrects these sees the others next time.
pub(super) const MISTAKES_MAX: usize = 20;
/// So many fields of a tool are listed.
const FIELDS_MAX: usize = 24;

/// Arguments that do not fit the schema of their tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Invalid {
    /// What is wrong, in the order of the schema. At most twenty are listed.
    pub mistakes: Vec<Mistake>,
    /// How many more there are.
    pub more: usize,
    /// The fields the tool has, if one that has to be there is missing. Those that have to be there stand first.
    fields: Vec<Field>,
    /// How many more fields the tool has.
    more_fields: usize,
}

/// A field of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) is_required: bool,
}

/// One mistake in the arguments of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mistake {
    /// Where it is, as a JSON pointer: `/lines/0`. Empty where it is about the arguments as a whole.
    pub path: String,
    /// The same as people write it: `lines[0]`.
    pub place: String,
    /// What the schema wants there: `a whole number`.
    pub expected: String,
    /// What was there: its type and the beginning of it. A value whose name says that it is secret is not shown.
    pub got: String,
    /// What was probably meant.
    pub hint: Option<String>,
    /// All of it as one sentence, in each language.
    said: [String; 2],
    /// What is expected and what was there and meant, in Chinese.
    chinese: (String, String, Option<String>),
}

impl Mistake {
    /// The same with its parts in a language.
    pub(crate) fn in_language(self, lang: Lang) -> Mistake {
        match lang {
            Lang::En => self,
            Lang::Zh => {
                let (expected, got, hint) = self.chinese.clone();
                Mistake { expected, got, hint, ..self }
            }
        }
    }

    /// The mistake in one sentence.
    pub fn text(&self, lang: Lang) -> &str {
        &self.said[lang as usize]
    }
}

/// What is wrong at a place.
#[derive(Debug, Clone)]
pub(super) enum Wrong {
    /// Something else was expected there; perhaps this was meant.
    Unfit(Expected, Option<String>),
    /// A field has to be there; perhaps it stands under this name.
    Missing { field: String, expected: Expected, under: Option<String> },
    /// A field is there that nobody knows; perhaps this one was meant.
    Unknown { field: String, meant: Option<String> },
}

impl Mistake {
    /// The mistake `wrong` of the `value` to which `way` leads.
    pub(super) fn at(way: &[Step<'_>], value: &Value, wrong: &Wrong) -> Mistake {
        let mut way = way.to_vec();
        let value = match wrong {
            Wrong::Unfit(..) => Some(value),
            Wrong::Missing { field, .. } | Wrong::Unknown { field, .. } => {
                way.push(Step::Field(field));
                value.get(field)
            }
        };
        let place = quote::readable(&way);
        let [en, zh] = [Lang::En, Lang::Zh].map(|lang| Told::new(&way, &place, value, wrong, lang));
        Mistake {
            path: quote::pointer(&way),
            place,
            expected: en.expected,
            got: en.got,
            hint: en.hint,
            said: [en.sentence, zh.sentence],
            chinese: (zh.expected, zh.got, zh.hint),
        }
    }
}

/// A mistake in one language.
struct Told {
    expected: String,
    got: String,
    hint: Option<String>,
    sentence: String,
}

impl Told {
    fn new(way: &[Step<'_>], place: &str, value: Option<&Value>, wrong: &Wrong, lang: Lang) -> Told {
        let zh = lang == Lang::Zh;
        let nothing = || pick(lang, "nothing", "无").to_owned();
        let got = value.map_or_else(nothing, |value| quote::got(value, way, lang));
        let place = match place {
            "" => pick(lang, "the arguments", "参数整体").to_owned(),
            place => format!("`{place}`"),
        };
        let meant = |name: &str| {
            let name = quote::name(name);
            pick(lang, format!("did you mean `{name}`?"), format!("是否想写 `{name}`？"))
        };
        let (expected, hint, sentence) = match wrong {
            Wrong::Unfit(expected, near) => {
                let expected = expected.say(lang);
                let sentence = match zh {
                    true => format!("{place} 应为{}{expected}，实际为{}{got}", gap(&expected), gap(&got)),
                    false => format!("{place} expected {expected}, got {got}"),
                };
                (expected, near.as_deref().map(meant), sentence)
            }
            Wrong::Missing { expected, under, .. } => {
                let expected = expected.say(lang);
                let hint = under.as_deref().map(|under| {
                    let under = quote::name(under);
                    pick(lang, format!("did you mean it by `{under}`?"), format!("是否误写成了 `{under}`？"))
                });
                let sentence = match zh {
                    true => format!("缺少 {place}（应为{}{expected}）", gap(&expected)),
                    false => format!("{place} is missing (expected {expected})"),
                };
                (expected, hint, sentence)
            }
            Wrong::Unknown { meant: name, .. } => {
                let sentence = pick(lang, format!("unknown field {place}"), format!("未知字段 {place}"));
                (Expected::Nothing.say(lang), name.as_deref().map(meant), sentence)
            }
        };
        let sentence = match &hint {
            Some(hint) => format!("{sentence}{}{hint}", pick(lang, ", ", "，")),
            None => sentence,
        };
        Told { expected, got, hint, sentence }
    }
}

/// Between Chinese and other signs stands a gap.
fn gap(text: &str) -> &'static str {
    if text.starts_with(|sign: char| sign.is_ascii()) { " " } else { "" }
}

impl Invalid {
    pub(super) fn new(mistakes: Vec<Mistake>, more: usize, mut fields: Vec<Field>) -> Invalid {
        // The sort is stable: among themselves they keep the order of the schema.
        fields.sort_by_key(|field| !field.is_required);
        let more_fields = fields.len().saturating_sub(FIELDS_MAX);
        fields.truncate(FIELDS_MAX);
        Invalid { mistakes, more, fields, more_fields }
    }

    /// All mistakes in one paragraph, for the model that called `tool`.
    pub fn text(&self, tool: &str, lang: Lang) -> String {
        let tool = quote::name(tool);
        let [between, end] = pick(lang, ["; ", ". "], ["；", "。"]);
        let mut parts: Vec<String> =
            self.mistakes.iter().map(|mistake| mistake.text(lang).to_owned()).collect();
        if self.more > 0 {
            parts.push(pick(lang, format!("and {} more", self.more), format!("另有 {} 处", self.more)));
        }
        let mut text =
            pick(lang, format!("invalid arguments for `{tool}`: "), format!("`{tool}` 的参数无效："));
        text.push_str(&parts.join(between));
        if !self.fields.is_empty() {
            let fields: Vec<String> = self
                .fields
                .iter()
                .map(|field| {
                    let required = pick(lang, " (required)", "（必填）");
                    format!("`{}`{}", quote::name(&field.name), if field.is_required { required } else { "" })
                })
                .collect();
            let list = fields.join(pick(lang, ", ", "、"));
            // A question has its sign already.
            text.push_str(if text.ends_with(['?', '？']) {
                end.trim_start_matches(['.', '。'])
            } else {
                end
            });
            text.push_str(&match self.more_fields {
                0 => pick(lang, format!("Its fields: {list}"), format!("它的字段：{list}")),
                more => pick(
                    lang,
                    format!("Its fields: {list} and {more} more"),
                    format!("它的字段：{list}，以及另外 {more} 个"),
                ),
            });
        }
        text
    }
}
