//! An `[agent.NAME]` as a person writes it: a program to run without a person, or other numbers for one that is known.

use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::entry_mistake::{EntryMistake, FieldWanted};
use super::error::SettingsError;
use super::layer::{Layer, Place};
use super::value;
use super::written::Text;
use super::written_alert::{number, text, wrong};
use crate::nearest::nearest;

const FIELDS: [&str; 8] =
    ["program", "args", "resume", "session", "retries", "may-write", "idle-timeout", "timeout"];

/// No policy gives more.
const MOST_RETRIES: u8 = 5;

/// One `[agent.NAME]`; nothing has to be there.
#[derive(Debug, Clone)]
pub(crate) struct WrittenAgent {
    pub(crate) name: String,
    /// Where it stands; of several, the strongest.
    pub(crate) layer: Layer,
    pub(crate) place: Place,
    /// What is started.
    pub(crate) program: Option<String>,
    /// What it is given; `{prompt}` stands for the prompt, which is else what it reads.
    pub(crate) args: Option<Vec<String>>,
    /// What it is given to take up a session, which is `{session}`.
    pub(crate) resume: Option<Vec<String>>,
    /// How its session stands in its output.
    pub(crate) session: Option<String>,
    pub(crate) retries: Option<u8>,
    pub(crate) may_write: Option<bool>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
}

impl WrittenAgent {
    /// Reads one table; every field that is wrong is named.
    pub(crate) fn read(
        file: &Text<'_>,
        layer: Layer,
        name: &str,
        at: usize,
        table: &DeTable<'_>,
    ) -> Result<WrittenAgent, Vec<SettingsError>> {
        let mistake = |at: usize, what: EntryMistake| SettingsError::Agent {
            place: file.place(at),
            name: name.to_owned(),
            what: Box::new(what),
        };
        let fits = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            return Err(vec![mistake(at, EntryMistake::NoName)]);
        }
        let mut agent = WrittenAgent {
            name: name.to_owned(),
            layer,
            place: file.place(at),
            program: None,
            args: None,
            resume: None,
            session: None,
            retries: None,
            may_write: None,
            idle_timeout: None,
            timeout: None,
        };
        let mut mistakes = Vec::new();
        for (field, value) in table {
            if let Err(what) = agent.set(field.get_ref(), value.get_ref()) {
                mistakes.push(mistake(field.span().start, what));
            }
        }
        if mistakes.is_empty() { Ok(agent) } else { Err(mistakes) }
    }

    fn set(&mut self, field: &str, value: &DeValue<'_>) -> Result<(), EntryMistake> {
        match field {
            "program" => self.program = Some(text(field, value)?),
            "args" => self.args = Some(words(field, value)?),
            "resume" => {
                // Without its name it could be any session that is taken up.
                let resume = words(field, value)?;
                let names = resume.iter().any(|word| word.contains("{session}"));
                self.resume = Some(
                    Some(resume).filter(|_| names).ok_or_else(|| wrong(field, FieldWanted::Resume, value))?,
                );
            }
            "session" => {
                let pattern = text(field, value).ok().filter(|text| text.matches("{session}").count() == 1);
                self.session = Some(pattern.ok_or_else(|| wrong(field, FieldWanted::Pattern, value))?);
            }
            "retries" => {
                let few = u8::try_from(number(field, value)?).ok().filter(|retries| *retries <= MOST_RETRIES);
                self.retries = Some(few.ok_or_else(|| wrong(field, FieldWanted::UpTo(MOST_RETRIES), value))?);
            }
            "may-write" => {
                let what = || wrong(field, FieldWanted::Flag, value);
                self.may_write = Some(value.as_bool().ok_or_else(what)?);
            }
            "idle-timeout" => self.idle_timeout = Some(time(field, value)?),
            "timeout" => self.timeout = Some(time(field, value)?),
            unknown => {
                let nearest = nearest(unknown, FIELDS.into_iter());
                return Err(EntryMistake::UnknownField { field: unknown.to_owned(), nearest });
            }
        }
        Ok(())
    }

    /// Lays it over the one of the same name in a weaker layer.
    pub(crate) fn over(self, weaker: WrittenAgent) -> WrittenAgent {
        WrittenAgent {
            name: self.name,
            layer: self.layer,
            place: self.place,
            program: self.program.or(weaker.program),
            args: self.args.or(weaker.args),
            resume: self.resume.or(weaker.resume),
            session: self.session.or(weaker.session),
            retries: self.retries.or(weaker.retries),
            may_write: self.may_write.or(weaker.may_write),
            idle_timeout: self.idle_timeout.or(weaker.idle_timeout),
            timeout: self.timeout.or(weaker.timeout),
        }
    }

    /// The mistake that this field is missing.
    pub(crate) fn lacks(&self, field: &'static str) -> SettingsError {
        self.mistake(EntryMistake::NeedsField { field })
    }

    /// The mistake that this field is there.
    pub(crate) fn must_not_set(&self, field: &'static str) -> SettingsError {
        self.mistake(EntryMistake::NotForKnown { field })
    }

    fn mistake(&self, what: EntryMistake) -> SettingsError {
        SettingsError::Agent { place: self.place.clone(), name: self.name.clone(), what: Box::new(what) }
    }
}

fn words(field: &str, value: &DeValue<'_>) -> Result<Vec<String>, EntryMistake> {
    let what = || wrong(field, FieldWanted::Words, value);
    let words = value.as_array().ok_or_else(what)?.iter();
    let words: Option<Vec<String>> = words.map(|word| word.get_ref().as_str().map(str::to_owned)).collect();
    words.filter(|words| words.iter().all(|word| !word.contains('\0'))).ok_or_else(what)
}

fn time(field: &str, value: &DeValue<'_>) -> Result<Duration, EntryMistake> {
    let time = value.as_str().and_then(value::time).filter(|time| *time >= Duration::from_secs(1));
    time.ok_or_else(|| wrong(field, FieldWanted::ASecondOrMore, value))
}
