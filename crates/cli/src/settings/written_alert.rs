//! An `[[alert]]` as a person writes it, laid over the one of the same name in a weaker layer, and the checks it must
//! pass to become an [`AlertRule`].

use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use unstuck_judge::Kind;
use unstuck_store::{AlertFilter, AlertRule, AlertWhen, EventType};

use super::entry_mistake::{EntryMistake, FieldFound, FieldWanted};
use super::error::SettingsError;
use super::layer::{Layer, Place};
use super::quoted::quoted;
use super::value;
use super::written::Text;
use crate::nearest::nearest;

const FIELDS: [&str; 15] = [
    "name",
    "when",
    "kind",
    "error-type",
    "tool",
    "agent",
    "event",
    "more-than",
    "within",
    "factor",
    "least-calls",
    "say",
    "command",
    "webhook",
    "enabled",
];
const ERROR_TYPES: [&str; 5] = ["validation", "runtime", "logical", "aborted", "exception"];
/// Below so many calls a share of failures says little.
const LEAST_CALLS: u64 = 20;

/// What kind of thing an alert counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WrittenWhen {
    Failures,
    Rate,
    Event,
}

impl WrittenWhen {
    fn word(self) -> &'static str {
        match self {
            WrittenWhen::Failures => "failures",
            WrittenWhen::Rate => "rate",
            WrittenWhen::Event => "event",
        }
    }
}

/// One `[[alert]]`; nothing but its name has to be there.
#[derive(Debug, Clone)]
pub(crate) struct WrittenAlert {
    pub(crate) name: String,
    pub(crate) layer: Layer,
    pub(crate) place: Place,
    when: Option<WrittenWhen>,
    kind: Option<Kind>,
    error_type: Option<&'static str>,
    tool: Option<String>,
    agent: Option<String>,
    event: Option<String>,
    more_than: Option<u64>,
    within: Option<Duration>,
    factor: Option<f64>,
    least_calls: Option<u64>,
    say: Option<[String; 2]>,
    command: Option<Vec<String>>,
    webhook: Option<String>,
    enabled: Option<bool>,
}

impl WrittenAlert {
    /// Reads one table of the list; every field that is wrong is named.
    pub(crate) fn read(
        text: &Text<'_>,
        layer: Layer,
        at: usize,
        table: &DeTable<'_>,
    ) -> Result<WrittenAlert, Vec<SettingsError>> {
        let place = text.place(at);
        let name = table.get("name").and_then(|name| name.get_ref().as_str()).unwrap_or_default();
        let wrong = |at: usize, what: EntryMistake| SettingsError::Alert {
            place: text.place(at),
            name: name.to_owned(),
            what: Box::new(what),
        };
        let fits = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            return Err(vec![wrong(at, EntryMistake::NoName)]);
        }
        let mut alert = WrittenAlert {
            name: name.to_owned(),
            layer,
            place,
            when: None,
            kind: None,
            error_type: None,
            tool: None,
            agent: None,
            event: None,
            more_than: None,
            within: None,
            factor: None,
            least_calls: None,
            say: None,
            command: None,
            webhook: None,
            enabled: None,
        };
        let mut errors = Vec::new();
        let mut fields: Vec<_> = table.iter().collect();
        fields.sort_unstable_by_key(|(field, _)| field.span().start);
        for (field, value) in fields {
            if let Err(what) = alert.set(field.get_ref(), value) {
                errors.push(wrong(field.span().start, what));
            }
        }
        if errors.is_empty() { Ok(alert) } else { Err(errors) }
    }

    fn set(&mut self, field: &str, value: &Spanned<DeValue<'_>>) -> Result<(), EntryMistake> {
        let value = value.get_ref();
        match field {
            "name" => {}
            "when" => self.when = Some(one_of(field, value, &["failures", "rate", "event"], when)?),
            "kind" => {
                let words: Vec<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
                self.kind = Some(one_of(field, value, &words, |word| word.parse().ok())?);
            }
            "error-type" => {
                let word = |word: &str| ERROR_TYPES.iter().copied().find(|each| *each == word);
                self.error_type = Some(one_of(field, value, &ERROR_TYPES, word)?);
            }
            "tool" => self.tool = Some(text(field, value)?),
            "agent" => self.agent = Some(text(field, value)?),
            "event" => {
                let words: Vec<&str> = EventType::ALL.iter().map(|kind| kind.word()).collect();
                let known = |word: &str| word.parse::<EventType>().ok();
                self.event = Some(one_of(field, value, &words, known)?.word().to_owned());
            }
            "more-than" => self.more_than = Some(number(field, value)?),
            "least-calls" => self.least_calls = Some(number(field, value)?),
            "within" => {
                let within = value.as_str().and_then(value::time);
                let is_sound = |time: &Duration| *time >= Duration::from_secs(1);
                let what = || wrong(field, FieldWanted::ASecondOrMore, value);
                self.within = Some(within.filter(is_sound).ok_or_else(what)?);
            }
            "factor" => {
                let what = || wrong(field, FieldWanted::AboveOne, value);
                self.factor = Some(real(value).filter(|factor| *factor > 1.0).ok_or_else(what)?);
            }
            "say" => self.say = Some(say(value)?),
            "command" => self.command = Some(command(value)?),
            "webhook" => self.webhook = Some(webhook(value)?),
            "enabled" => {
                let what = || wrong(field, FieldWanted::Flag, value);
                self.enabled = Some(value.as_bool().ok_or_else(what)?);
            }
            unknown => {
                let nearest = nearest(unknown, FIELDS.into_iter());
                return Err(EntryMistake::UnknownField { field: unknown.to_owned(), nearest });
            }
        }
        Ok(())
    }

    /// Lays it over the one of the same name in a weaker layer.
    pub(crate) fn over(self, weaker: WrittenAlert) -> WrittenAlert {
        // Another `when` counts something else, so the numbers of the old one mean nothing to it.
        let counts_alike = self.when.is_none() || self.when == weaker.when;
        WrittenAlert {
            name: self.name,
            layer: self.layer,
            place: self.place,
            when: self.when.or(weaker.when),
            kind: self.kind.or(weaker.kind),
            error_type: self.error_type.or(weaker.error_type),
            tool: self.tool.or(weaker.tool),
            agent: self.agent.or(weaker.agent),
            event: self.event.or(weaker.event.filter(|_| counts_alike)),
            more_than: self.more_than.or(weaker.more_than.filter(|_| counts_alike)),
            within: self.within.or(weaker.within),
            factor: self.factor.or(weaker.factor.filter(|_| counts_alike)),
            least_calls: self.least_calls.or(weaker.least_calls.filter(|_| counts_alike)),
            say: self.say.or(weaker.say),
            command: self.command.or(weaker.command),
            webhook: self.webhook.or(weaker.webhook),
            enabled: self.enabled.or(weaker.enabled),
        }
    }

    /// The rule it makes, if nothing is missing and nothing contradicts.
    pub(crate) fn rule(self) -> Result<AlertRule, SettingsError> {
        match self.when_and_how_much() {
            Ok((when, within)) => {
                let say = self.say.unwrap_or_else(|| [self.name.clone(), self.name.clone()]);
                let mut rule = AlertRule::new(self.name, when, within, say);
                rule.enabled = self.enabled.unwrap_or(true);
                rule.only = AlertFilter {
                    kind: self.kind,
                    error_type: self.error_type,
                    tool: self.tool,
                    agent: self.agent,
                };
                rule.command = self.command.unwrap_or_default();
                rule.webhook = self.webhook;
                Ok(rule)
            }
            Err(what) => {
                Err(SettingsError::Alert { place: self.place, name: self.name, what: Box::new(what) })
            }
        }
    }

    fn when_and_how_much(&self) -> Result<(AlertWhen, Duration), EntryMistake> {
        let when = self.when.ok_or(EntryMistake::NoWhen)?;
        let needs = |field: &'static str| EntryMistake::Needs { when: when.word(), field };
        let refuse = |field: &'static str, is_set: bool| match is_set {
            true => Err(EntryMistake::MeansNothing { when: when.word(), field }),
            false => Ok(()),
        };
        if when != WrittenWhen::Rate {
            refuse("factor", self.factor.is_some())?;
            refuse("least-calls", self.least_calls.is_some())?;
        }
        if when != WrittenWhen::Event {
            refuse("event", self.event.is_some())?;
        }
        let how = match when {
            WrittenWhen::Failures => {
                AlertWhen::Failures { more_than: self.more_than.ok_or_else(|| needs("more-than"))? }
            }
            WrittenWhen::Rate => {
                refuse("more-than", self.more_than.is_some())?;
                let factor = self.factor.ok_or_else(|| needs("factor"))?;
                AlertWhen::Rate { factor, least_calls: self.least_calls.unwrap_or(LEAST_CALLS) }
            }
            WrittenWhen::Event => AlertWhen::Event {
                event: self.event.clone().ok_or_else(|| needs("event"))?,
                more_than: self.more_than.unwrap_or(0),
            },
        };
        Ok((how, self.within.ok_or_else(|| needs("within"))?))
    }
}

fn when(word: &str) -> Option<WrittenWhen> {
    [WrittenWhen::Failures, WrittenWhen::Rate, WrittenWhen::Event]
        .into_iter()
        .find(|each| each.word() == word)
}

fn one_of<T>(
    field: &str,
    value: &DeValue<'_>,
    words: &[&str],
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, EntryMistake> {
    let written = value.as_str().unwrap_or_default();
    read(written).ok_or_else(|| {
        let nearest = nearest(written, words.iter().copied()).map(str::to_owned);
        // A vocabulary too long to be read in one breath is not recited to somebody who almost knew it.
        let wanted = match (words.len() > 8, &nearest) {
            (true, Some(_)) => FieldWanted::KnownWord,
            (true, None) | (false, _) => FieldWanted::OneOf(words.join(", ")),
        };
        EntryMistake::WrongField { field: field.to_owned(), wanted, found: found(value), nearest }
    })
}

pub(super) fn text(field: &str, value: &DeValue<'_>) -> Result<String, EntryMistake> {
    let text = value.as_str().filter(|text| !text.is_empty() && !text.contains(char::is_control));
    text.map(str::to_owned).ok_or_else(|| wrong(field, FieldWanted::Line, value))
}

pub(super) fn number(field: &str, value: &DeValue<'_>) -> Result<u64, EntryMistake> {
    let number =
        value.as_integer().and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
    number.ok_or_else(|| wrong(field, FieldWanted::WholeNumber, value))
}

fn real(value: &DeValue<'_>) -> Option<f64> {
    let number = match value {
        DeValue::Integer(number) => number.as_str().parse().ok(),
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::String(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => None,
    };
    number.filter(|number: &f64| number.is_finite())
}

/// A text for everybody, or one for each language.
fn say(value: &DeValue<'_>) -> Result<[String; 2], EntryMistake> {
    if let Some(both) = value.as_str() {
        return Ok([both.to_owned(), both.to_owned()]);
    }
    let what = || wrong("say", FieldWanted::Say, value);
    let table = value.as_table().ok_or_else(what)?;
    let of = |lang: &str| table.get(lang).and_then(|text| text.get_ref().as_str()).map(str::to_owned);
    match (of("en"), of("zh"), table.len()) {
        (Some(en), Some(zh), 2) => Ok([en, zh]),
        (Some(only), None, 1) | (None, Some(only), 1) => Ok([only.clone(), only]),
        _ => Err(what()),
    }
}

fn command(value: &DeValue<'_>) -> Result<Vec<String>, EntryMistake> {
    let what = || wrong("command", FieldWanted::Command, value);
    let words = value.as_array().ok_or_else(what)?.iter();
    let words: Option<Vec<String>> = words.map(|word| word.get_ref().as_str().map(str::to_owned)).collect();
    let is_sound = |words: &Vec<String>| {
        words.first().is_some_and(|program| !program.trim().is_empty())
            && words.iter().all(|word| !word.contains('\0'))
    };
    words.filter(is_sound).ok_or_else(what)
}

fn webhook(value: &DeValue<'_>) -> Result<String, EntryMistake> {
    let url = value.as_str().unwrap_or_default();
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let is_sound = !host.is_empty()
        && !host.starts_with(':')
        && url.chars().all(|sign| sign.is_ascii_graphic())
        // Who writes credentials here would find them in logs of others.
        && !host.contains('@');
    match is_sound {
        true => Ok(url.to_owned()),
        false => Err(EntryMistake::NoAddress),
    }
}

pub(super) fn wrong(field: &str, wanted: FieldWanted, value: &DeValue<'_>) -> EntryMistake {
    EntryMistake::WrongField { field: field.to_owned(), wanted, found: found(value), nearest: None }
}

/// What was written, for an error.
fn found(value: &DeValue<'_>) -> FieldFound {
    match value {
        DeValue::String(text) => FieldFound::Written(format!("\"{}\"", quoted(text).trim_matches('"'))),
        DeValue::Integer(number) => FieldFound::Written(quoted(number.as_str())),
        DeValue::Float(number) => FieldFound::Written(quoted(number.as_str())),
        DeValue::Boolean(on) => FieldFound::Written(on.to_string()),
        DeValue::Datetime(_) => FieldFound::Date,
        DeValue::Array(list) if list.is_empty() => FieldFound::EmptyList,
        DeValue::Array(_) => FieldFound::List,
        DeValue::Table(_) => FieldFound::Table,
    }
}
