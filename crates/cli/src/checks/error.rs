//! What is wrong with a check that somebody asked for, before anything runs.

use unstuck_judge::Lang;

use super::json_test::NoTest;

/// Why a check cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CheckError {
    #[error(transparent)]
    NoJsonTest(#[from] NoTest),
    #[error("`{written}` is no pattern: {why}")]
    NoPattern { written: String, why: String },
    #[error("--verify needs a command")]
    EmptyVerify,
}

impl CheckError {
    pub(crate) fn in_words(&self, lang: Lang) -> String {
        match (self, lang) {
            (CheckError::NoJsonTest(error), lang) => error.in_words(lang),
            (error, Lang::En) => error.to_string(),
            (CheckError::NoPattern { written, why }, Lang::Zh) => {
                format!("`{written}` 不是有效的模式：{why}")
            }
            (CheckError::EmptyVerify, Lang::Zh) => "--verify 需要一条命令".to_owned(),
        }
    }

    /// What to try.
    pub(crate) fn hint(&self, lang: Lang) -> Option<String> {
        let (en, zh) = match self {
            CheckError::NoJsonTest(_) => (
                "such as `.items|length > 0`, `.a.b[0] == \"x\"` or `.ok`",
                "例如 `.items|length > 0`、`.a.b[0] == \"x\"` 或 `.ok`",
            ),
            CheckError::NoPattern { .. } => {
                ("a regular expression, such as 'built in \\d+ ms'", "正则表达式，例如 'built in \\d+ ms'")
            }
            CheckError::EmptyVerify => {
                ("such as --verify 'test -s dist/app.js'", "例如 --verify 'test -s dist/app.js'")
            }
        };
        Some(match lang {
            Lang::En => en.to_owned(),
            Lang::Zh => zh.to_owned(),
        })
    }
}
