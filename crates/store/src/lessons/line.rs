//! A lesson as it goes to another machine and comes from one: one line of JSON. What comes in is somebody else's word, so
//! every field is checked and cleaned, and nothing in it says how far it is to be trusted.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unstuck_judge::Kind;
use unstuck_judge::lesson::{Change, Deed, Fix};
use unstuck_wire::clean::{Clean, Cleaner};

use super::Lesson;
use crate::entry::NAME_MAX;
use crate::lesson::{fix_from_json, fix_to_json};

/// The shape of the line.
const VERSION: u32 = 1;
/// The most that a fix may consist of.
pub const DEEDS_MAX: usize = 6;
/// The longest step, call or line that a lesson may hold, in characters.
pub const WORDS_MAX: usize = 300;

/// A lesson from elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct LessonLine {
    /// The fingerprint of the failure.
    pub(crate) cause: String,
    pub(crate) kind: Kind,
    pub(crate) rule: Clean,
    pub(crate) tool: Clean,
    pub(crate) program: Clean,
    pub(crate) title: Clean,
    pub(crate) fix: Fix,
}

/// Why a line is no lesson.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is not JSON, or not in our shape.
    #[error("{0}")]
    Shape(String),
    /// It was written by a newer version.
    #[error("it has version {found}, this version reads up to {VERSION}")]
    TooNew {
        /// Its version.
        found: u32,
    },
    /// It is of another type.
    #[error("its type is not `lesson`")]
    NoLesson,
    /// Its cause is no fingerprint.
    #[error("its cause is no fingerprint of a failure (e1: and 20 letters)")]
    NoCause,
    /// Its kind is none.
    #[error("its kind is no kind of failure")]
    NoKind,
    /// Its fix cannot be read.
    #[error("its fix cannot be read")]
    NoFix,
    /// Its fix says nothing.
    #[error("its fix says nothing")]
    EmptyFix,
    /// Its fix is a piece of work, not a fix.
    #[error("its fix has {steps} steps, {DEEDS_MAX} are the most")]
    ManySteps {
        /// How many steps it has.
        steps: usize,
    },
    /// A step is empty.
    #[error("its fix has an empty step")]
    EmptyStep,
    /// A step is too long. What is cut off could be what it is all about.
    #[error("its fix has a step of more than {WORDS_MAX} characters")]
    LongStep,
    /// A step is read otherwise by a terminal or a shell than by a person.
    #[error("its fix has a step with control or invisible characters, or of several lines")]
    OddStep,
}

/// The line exactly as it is written.
#[derive(Serialize, Deserialize)]
struct WireLesson {
    v: u32,
    #[serde(rename = "type")]
    record: String,
    cause: String,
    kind: String,
    #[serde(default)]
    rule: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    program: String,
    #[serde(default)]
    title: String,
    fix: Value,
}

impl LessonLine {
    /// Writes a lesson. Where it was learnt, and how often it won there, is of no account elsewhere.
    pub fn write(lesson: &Lesson) -> String {
        let line = WireLesson {
            v: VERSION,
            record: "lesson".to_owned(),
            cause: lesson.cause.clone(),
            kind: lesson.kind.clone(),
            rule: lesson.rule.clone(),
            tool: lesson.tool.clone(),
            program: lesson.program.clone(),
            title: lesson.title.clone(),
            fix: serde_json::from_str(&fix_to_json(&lesson.fix)).unwrap_or_default(),
        };
        serde_json::to_string(&line).unwrap_or_default()
    }

    /// Reads one.
    pub fn read(line: &str, cleaner: &Cleaner) -> Result<LessonLine, LineError> {
        let wire: WireLesson =
            serde_json::from_str(line).map_err(|error| LineError::Shape(error.to_string()))?;
        if wire.v > VERSION {
            return Err(LineError::TooNew { found: wire.v });
        }
        if wire.record != "lesson" {
            return Err(LineError::NoLesson);
        }
        let digits = wire.cause.strip_prefix("e1:").unwrap_or_default();
        if digits.len() != 20 || !digits.bytes().all(|digit| matches!(digit, b'a'..=b'z' | b'2'..=b'7')) {
            return Err(LineError::NoCause);
        }
        let kind =
            wire.kind.parse().ok().filter(|kind| *kind != Kind::NotAnError).ok_or(LineError::NoKind)?;
        let fix = fix_from_json(&wire.fix.to_string()).ok_or(LineError::NoFix)?;
        Ok(LessonLine {
            kind,
            rule: cleaner.name(&wire.rule, NAME_MAX),
            tool: cleaner.name(&wire.tool, NAME_MAX),
            program: cleaner.line(&wire.program, WORDS_MAX),
            title: cleaner.line(&wire.title, WORDS_MAX),
            fix: LessonLine::fix(&fix, cleaner)?,
            cause: wire.cause,
        })
    }

    /// A fix in somebody's words, as it may be kept: not empty, not too long, and without a secret.
    pub fn fix(fix: &Fix, cleaner: &Cleaner) -> Result<Fix, LineError> {
        if fix.is_empty() {
            return Err(LineError::EmptyFix);
        }
        if fix.deeds.len() > DEEDS_MAX {
            return Err(LineError::ManySteps { steps: fix.deeds.len() });
        }
        let clean = |words: &str| match words.trim() {
            "" => Err(LineError::EmptyStep),
            words if words.chars().count() > WORDS_MAX => Err(LineError::LongStep),
            words => {
                let kept = cleaner.line(words, 8 * WORDS_MAX).into_string();
                // What the cleaner writes out was not to be seen.
                match kept.contains("\\u{") && !words.contains("\\u{") || words.chars().any(char::is_control)
                {
                    true => Err(LineError::OddStep),
                    false => Ok(kept),
                }
            }
        };
        let deed = |deed: &Deed| {
            Ok(match deed {
                Deed::Ran { line } => Deed::Ran { line: clean(line)? },
                Deed::Edited { file, lines } => Deed::Edited { file: clean(file)?, lines: *lines },
                Deed::Called { tool, target } if target.is_empty() => {
                    Deed::Called { tool: clean(tool)?, target: String::new() }
                }
                Deed::Called { tool, target } => Deed::Called { tool: clean(tool)?, target: clean(target)? },
            })
        };
        let deeds = fix.deeds.iter().map(deed).collect::<Result<Vec<_>, LineError>>()?;
        let change = match &fix.change {
            Some(Change { from, to }) => Some(Change { from: clean(from)?, to: clean(to)? }),
            None => None,
        };
        Ok(Fix { deeds, change })
    }
}
