//! A small part of the language of jq, to say what an answer must be: `.items|length > 0`, `.a.b[0] == "x"`, `.ok`.
//!
//! It is pure: a text becomes a test, and a test is asked about a value. Whatever means something else to jq is no part of it,
//! and is refused by name instead of being read otherwise.

mod eval;
mod parse;
#[cfg(test)]
mod tests;

use serde_json::Value;
use unstuck_judge::Lang;

/// What an answer must be, as somebody wrote it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonTest {
    written: String,
    expr: Expr,
}

/// What can be said about a value.
#[derive(Debug, Clone, PartialEq)]
enum Expr {
    /// `.`
    Itself,
    /// A value that is written down.
    Literal(Value),
    /// `.name`, `["name"]`
    Field(Box<Expr>, String),
    /// `[3]`, `[-1]`
    Index(Box<Expr>, i64),
    /// `[]`: everything that is in it.
    Each(Box<Expr>),
    /// `a | b`
    Pipe(Box<Expr>, Box<Expr>),
    Compare(Box<Expr>, Compare, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Length,
    Keys,
    Type,
    Not,
    /// `any`, `all`: of the values in a list.
    Any,
    All,
    /// `has("name")`, `has(0)`
    Has(Value),
    /// `contains("part")`: of a text.
    Contains(String),
    /// `startswith("part")`: of a text.
    StartsWith(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Why a text is no test.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.in_words(Lang::En))]
pub(crate) struct NoTest {
    /// The text.
    pub(crate) written: String,
    /// At which character it went wrong, counted from 0.
    pub(crate) at: usize,
    pub(crate) why: Mistake,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Something like this should stand there.
    Expected(&'static str),
    /// A word that is not known.
    Unknown(String),
    /// jq knows it, and we do not.
    NotHere(&'static str),
    /// A text without an end.
    OpenText,
    TooDeep,
}

impl NoTest {
    pub(crate) fn in_words(&self, lang: Lang) -> String {
        let why = match (&self.why, lang) {
            (Mistake::Expected(what), Lang::En) => format!("expected {what}"),
            (Mistake::Expected(what), Lang::Zh) => format!("此处应为 {what}"),
            (Mistake::Unknown(word), Lang::En) => format!("`{word}` is not known"),
            (Mistake::Unknown(word), Lang::Zh) => format!("不认识 `{word}`"),
            (Mistake::NotHere(what), Lang::En) => format!("{what} is not supported"),
            (Mistake::NotHere(what), Lang::Zh) => format!("不支持 {what}"),
            (Mistake::OpenText, Lang::En) => "the text has no closing quote".to_owned(),
            (Mistake::OpenText, Lang::Zh) => "字符串缺少右引号".to_owned(),
            (Mistake::TooDeep, Lang::En) => "too many brackets".to_owned(),
            (Mistake::TooDeep, Lang::Zh) => "括号嵌套过深".to_owned(),
        };
        let (written, at) = (&self.written, self.at + 1);
        match lang {
            Lang::En => format!("`{written}` is no test of JSON: {why} at character {at}"),
            Lang::Zh => format!("`{written}` 不是有效的 JSON 测试：第 {at} 个字符处{why}"),
        }
    }
}

impl JsonTest {
    /// Reads a test.
    pub(crate) fn parse(written: &str) -> Result<JsonTest, NoTest> {
        let expr =
            parse::read(written).map_err(|(at, why)| NoTest { written: written.to_owned(), at, why })?;
        Ok(JsonTest { written: written.to_owned(), expr })
    }

    /// As somebody wrote it.
    pub(crate) fn written(&self) -> &str {
        &self.written
    }

    /// Asks it about a value. It holds where everything that comes out of it is true, and something does; what came out
    /// instead is the error.
    pub(crate) fn holds(&self, value: &Value, lang: Lang) -> Result<(), String> {
        eval::holds(&self.expr, value, lang)
    }
}
