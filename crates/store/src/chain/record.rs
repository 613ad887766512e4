//! What an event says of the row of its call, as hashes: of what was asked for, of how it ended, or of both.

use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, Row};

use super::{Hash, LENGTH};

/// What stands in front of the hash.
const ASKED: u8 = 1;
const ENDED: u8 = 2;
const WHOLE: u8 = 3;

/// The hash of each part of a call's row that is told of: a later event may tell of one part anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record(Vec<u8>);

/// A call as it was asked for.
pub(crate) struct AskedPart<'a> {
    pub(crate) key: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) asked_at: i64,
    pub(crate) label: &'a str,
    pub(crate) input: &'a str,
}

/// How a call ended.
pub(crate) struct EndedPart<'a> {
    pub(crate) state: &'a str,
    pub(crate) ended_at: Option<i64>,
    pub(crate) ok: Option<bool>,
    pub(crate) outcome: Option<&'a str>,
    pub(crate) code: Option<i64>,
    pub(crate) kind: Option<&'a str>,
    pub(crate) rule: Option<&'a str>,
    pub(crate) cause: Option<&'a str>,
    pub(crate) evidence: &'a str,
    pub(crate) head: &'a str,
    pub(crate) tail: &'a str,
    pub(crate) omitted: i64,
    pub(crate) verdict: &'a str,
}

impl AskedPart<'_> {
    fn hash(&self) -> [u8; LENGTH] {
        let mut hash = Hash::new(b"asked");
        for text in [self.key, self.agent, self.tool, self.label, self.input] {
            hash.bytes(text.as_bytes());
        }
        hash.number(Some(self.asked_at));
        hash.done()
    }
}

impl EndedPart<'_> {
    fn hash(&self) -> [u8; LENGTH] {
        let mut hash = Hash::new(b"ended");
        for text in [self.state, self.evidence, self.head, self.tail, self.verdict] {
            hash.bytes(text.as_bytes());
        }
        for text in [self.outcome, self.kind, self.rule, self.cause] {
            hash.text(text);
        }
        for number in [self.ended_at, self.ok.map(i64::from), self.code, Some(self.omitted)] {
            hash.number(number);
        }
        hash.done()
    }
}

impl Record {
    pub(crate) fn asked(asked: &AskedPart<'_>) -> Record {
        Record::of(ASKED, Some(asked), None)
    }

    pub(crate) fn ended(ended: &EndedPart<'_>) -> Record {
        Record::of(ENDED, None, Some(ended))
    }

    pub(crate) fn whole(asked: &AskedPart<'_>, ended: &EndedPart<'_>) -> Record {
        Record::of(WHOLE, Some(asked), Some(ended))
    }

    /// Both parts of a row that stands in the tables.
    pub(crate) fn of_row(connection: &Connection, call: i64) -> Result<Option<Record>, rusqlite::Error> {
        Ok(CallRow::find(connection, call)?.map(|row| row.record(WHOLE)))
    }

    fn of(tag: u8, asked: Option<&AskedPart<'_>>, ended: Option<&EndedPart<'_>>) -> Record {
        let mut bytes = Vec::with_capacity(1 + 2 * LENGTH);
        bytes.push(tag);
        bytes.extend(asked.iter().flat_map(|asked| asked.hash()));
        bytes.extend(ended.iter().flat_map(|ended| ended.hash()));
        Record(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Which parts of a call's row a stored record covers: what was asked for, and how it ended.
pub(super) fn covers(record: &[u8]) -> (bool, bool) {
    match record.first() {
        Some(&ASKED) => (true, false),
        Some(&ENDED) => (false, true),
        Some(&WHOLE) => (true, true),
        Some(_) | None => (false, false),
    }
}

/// The row of a call, as far as records cover it.
pub(super) struct CallRow {
    texts: [String; 10],
    options: [Option<String>; 4],
    numbers: [Option<i64>; 5],
}

impl CallRow {
    pub(super) fn find(connection: &Connection, call: i64) -> Result<Option<CallRow>, rusqlite::Error> {
        let sql = "SELECT key, agent, tool, state, label, input, evidence, head, tail, verdict,
                          outcome, kind, rule, cause_print, asked_at, ended_at, ok, code, omitted
                   FROM call JOIN call_text ON call_text.call = call.id WHERE call.id = ?1";
        connection.prepare_cached(sql)?.query_row([call], CallRow::read).optional()
    }

    fn read(row: &Row<'_>) -> Result<CallRow, rusqlite::Error> {
        let mut texts: [String; 10] = Default::default();
        for (column, text) in texts.iter_mut().enumerate() {
            *text = row.get(column)?;
        }
        let mut options: [Option<String>; 4] = Default::default();
        for (column, text) in options.iter_mut().enumerate() {
            *text = row.get(texts.len() + column)?;
        }
        let mut numbers = [None; 5];
        for (column, number) in numbers.iter_mut().enumerate() {
            *number = row.get(texts.len() + options.len() + column)?;
        }
        Ok(CallRow { texts, options, numbers })
    }

    pub(super) fn state(&self) -> &str {
        &self.texts[3]
    }

    /// Do the parts of a stored record fit this row: what was asked for, and how it ended? One that is not covered does not.
    pub(super) fn fits(&self, record: &[u8]) -> (bool, bool) {
        let Some((tag, hashes)) = record.split_first() else { return (false, false) };
        let own = self.record(*tag);
        let same = |part: Range<usize>| match (own.0[1..].get(part.clone()), hashes.get(part)) {
            (Some(own), Some(stored)) => own == stored,
            (_, _) => false,
        };
        match (covers(record), own.0.len() == record.len()) {
            (_, false) | ((false, false), _) => (false, false),
            ((true, false), true) => (same(0..LENGTH), false),
            ((false, true), true) => (false, same(0..LENGTH)),
            ((true, true), true) => (same(0..LENGTH), same(LENGTH..2 * LENGTH)),
        }
    }

    fn record(&self, tag: u8) -> Record {
        let [key, agent, tool, state, label, input, evidence, head, tail, verdict] = &self.texts;
        let [outcome, kind, rule, cause] = &self.options;
        let [asked_at, ended_at, ok, code, omitted] = self.numbers;
        let asked_at = asked_at.unwrap_or_default();
        let asked = AskedPart { key, agent, tool, asked_at, label, input };
        let ended = EndedPart {
            state,
            ended_at,
            ok: ok.map(|ok| ok != 0),
            outcome: outcome.as_deref(),
            code,
            kind: kind.as_deref(),
            rule: rule.as_deref(),
            cause: cause.as_deref(),
            evidence,
            head,
            tail,
            omitted: omitted.unwrap_or_default(),
            verdict,
        };
        let (is_asked, is_ended) = covers(&[tag]);
        Record::of(tag, is_asked.then_some(&asked), is_ended.then_some(&ended))
    }
}
