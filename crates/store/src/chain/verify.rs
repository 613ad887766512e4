//! Reads the whole timeline and says whether every event, and every call that one tells of, is as it was written.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};

use super::record::{self, CallRow};
use super::{FROM, Link, Linked, head, hex};
use crate::error::StoreError;
use crate::fact;
use crate::state::CallState;
use crate::store::Store;

/// So many events are read at once.
const PAGE: u32 = 1000;

/// What a look at the whole chain found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChainFound {
    /// Events that were checked.
    pub events: u64,
    /// Events from before the chain began, which nothing proves.
    pub before: u64,
    /// Events that are gone because unstuck itself removed them.
    pub removed: u64,
    /// How many records do not fit.
    pub faults: u64,
    /// The first of them.
    pub first: Option<ChainFault>,
    /// The newest link, as text.
    pub head: Option<String>,
}

/// A record that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChainFault {
    /// An event is not as it was written, or was written by something else.
    Event {
        /// Its number.
        seq: u64,
    },
    /// Events are gone, and unstuck did not remove them.
    Missing {
        /// The first of them.
        first: u64,
        /// And the last.
        last: u64,
    },
    /// The row of a call is not as the timeline says it was written.
    Call {
        /// Its number.
        call: i64,
        /// The event that says otherwise.
        seq: u64,
    },
}

/// Where the chain stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainState {
    /// The number of the newest event.
    pub seq: u64,
    /// Its link, as text.
    pub head: String,
}

/// An event as it is stored.
struct Row {
    seq: i64,
    at: i64,
    channel: String,
    kind: String,
    session: Option<i64>,
    call: Option<i64>,
    body: String,
    link: Option<Vec<u8>>,
    record: Option<Vec<u8>>,
}

impl Row {
    fn read(row: &rusqlite::Row<'_>) -> Result<Row, rusqlite::Error> {
        // What is no text fits no link, and is told of as any other row that does not fit.
        let text = |column: usize| -> Result<String, rusqlite::Error> {
            Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes().unwrap_or_default()).into_owned())
        };
        let number = |column: usize| row.get_ref(column).map(|value| value.as_i64().ok());
        let blob = |column: usize| row.get_ref(column).map(|value| value.as_blob().ok().map(<[u8]>::to_vec));
        Ok(Row {
            seq: row.get(0)?,
            at: number(1)?.unwrap_or_default(),
            channel: text(2)?,
            kind: text(3)?,
            session: number(4)?,
            call: number(5)?,
            body: text(6)?,
            link: blob(7)?,
            record: blob(8)?,
        })
    }

    fn linked(&self) -> Linked<'_> {
        Linked {
            at: self.at,
            channel: &self.channel,
            kind: &self.kind,
            session: self.session,
            call: self.call,
            body: &self.body,
            record: self.record.as_deref(),
        }
    }
}

impl Store {
    /// Where the chain stands now; nothing where it has no event yet.
    pub fn chain_state(&self) -> Result<Option<ChainState>, StoreError> {
        let read = || -> Result<Option<ChainState>, rusqlite::Error> {
            let Some(link) = head(&self.connection)? else { return Ok(None) };
            let seq: i64 =
                self.connection.query_row("SELECT ifnull(max(seq), 0) FROM event", [], |row| row.get(0))?;
            Ok(Some(ChainState { seq: seq.unsigned_abs(), head: hex(link.bytes()) }))
        };
        read().map_err(self.wrong())
    }

    /// The calls whose rows do not fit what the timeline says of them.
    pub(crate) fn unproven_calls(&self) -> Result<Vec<i64>, StoreError> {
        let walked = Walk::new(&self.connection).and_then(Walk::walked);
        let pending = walked.map_err(self.wrong())?.pending;
        let mut calls: Vec<i64> = pending.into_keys().map(|(call, _)| call).collect();
        calls.dedup();
        Ok(calls)
    }

    /// Checks the chain from its beginning to its end.
    pub fn verify_chain(&self) -> Result<ChainFound, StoreError> {
        // Rows that are written meanwhile must not look like forged ones: one transaction sees one state.
        let begun = self.connection.execute_batch("BEGIN");
        let found = begun.and_then(|()| Walk::new(&self.connection)?.whole());
        let _it_only_read = self.connection.execute_batch("COMMIT");
        found.map_err(self.wrong())
    }
}

/// One way through the chain.
struct Walk<'c> {
    connection: &'c Connection,
    from: i64,
    found: ChainFound,
    /// The number of the last event, and its link.
    last: (i64, Option<Link>),
    /// Calls whose rows do not fit what was last said of them, by part: unless a later event fits.
    pending: BTreeMap<(i64, Part), i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Asked,
    Ended,
}

impl<'c> Walk<'c> {
    fn new(connection: &'c Connection) -> Result<Walk<'c>, rusqlite::Error> {
        let from = fact::read(connection, FROM)?.and_then(|from| from.parse().ok()).unwrap_or(1);
        let found = ChainFound::default();
        Ok(Walk { connection, from, found, last: (0, None), pending: BTreeMap::new() })
    }

    fn whole(self) -> Result<ChainFound, rusqlite::Error> {
        let mut walk = self.walked()?;
        for ((call, _), seq) in std::mem::take(&mut walk.pending) {
            walk.fault(ChainFault::Call { call, seq: seq.unsigned_abs() });
        }
        walk.found.head = walk.last.1.map(|link| hex(link.bytes()));
        Ok(walk.found)
    }

    fn walked(mut self) -> Result<Walk<'c>, rusqlite::Error> {
        let sql = "SELECT seq, at, channel, type, session, call, body, link, record FROM event
                   WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        loop {
            let page: Vec<Row> = self
                .connection
                .prepare_cached(sql)?
                .query_map((self.last.0, PAGE), Row::read)?
                .collect::<Result<_, _>>()?;
            if page.is_empty() {
                break;
            }
            for row in page {
                self.event(&row)?;
            }
        }
        let counter: Option<i64> = self
            .connection
            .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'event'", [], |row| row.get(0))
            .optional()?;
        if let Some(counter) = counter.filter(|counter| *counter > self.last.0) {
            self.gap(self.last.0 + 1, counter)?;
        }
        Ok(self)
    }

    fn fault(&mut self, fault: ChainFault) {
        self.found.faults += 1;
        self.found.first.get_or_insert(fault);
    }

    fn event(&mut self, row: &Row) -> Result<(), rusqlite::Error> {
        let (last, before) = self.last;
        let link = row.link.as_deref().and_then(Link::stored);
        let mut bases = vec![before];
        if row.seq > last + 1 {
            bases.extend(self.gap(last + 1, row.seq - 1)?);
        }
        self.last = (row.seq, link);
        if row.seq < self.from {
            self.found.before += 1;
            return Ok(());
        }
        self.found.events += 1;
        if !link.is_some_and(|link| link.fits(&bases, &row.linked())) {
            self.fault(ChainFault::Event { seq: row.seq.unsigned_abs() });
        }
        match (&row.record, row.call) {
            (Some(record), Some(call)) => self.record(call, row.seq, record),
            _ => Ok(()),
        }
    }

    /// A gap in the numbers. Returns the links that an event behind it may build on.
    fn gap(&mut self, first: i64, last: i64) -> Result<Vec<Option<Link>>, rusqlite::Error> {
        let sql = "SELECT first, last, link FROM event_cut WHERE last >= ?1 AND first <= ?2 ORDER BY last";
        let cuts: Vec<(i64, i64, Option<Vec<u8>>)> = self
            .connection
            .prepare_cached(sql)?
            .query_map((first, last), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        let mut links = Vec::new();
        let mut next = first;
        for (begin, end, link) in cuts {
            if begin > next {
                self.missing(next, begin - 1);
            }
            self.found.removed += (end.min(last) - begin.max(next) + 1).max(0).unsigned_abs();
            next = next.max(end + 1);
            links.push(Some(link.and_then(|link| Link::stored(&link)).unwrap_or(Link::UNKNOWN)));
        }
        if next <= last {
            self.missing(next, last);
        }
        Ok(links)
    }

    fn missing(&mut self, first: i64, last: i64) {
        // Before the chain began, nothing was noted of what was removed.
        if last >= self.from {
            let first = first.max(self.from).unsigned_abs();
            self.fault(ChainFault::Missing { first, last: last.unsigned_abs() });
        }
    }

    /// An event says what a call's row looks like since then.
    fn record(&mut self, call: i64, seq: i64, record: &[u8]) -> Result<(), rusqlite::Error> {
        let row = match CallRow::find(self.connection, call) {
            Ok(Some(row)) => Some(row),
            // It was removed with all that hangs on it.
            Ok(None) => return Ok(()),
            // A row that cannot be read is not as it was written.
            Err(error) if error.sqlite_error_code().is_none() => None,
            Err(error) => return Err(error),
        };
        let (asked_fits, ended_fits) = row.as_ref().map_or((false, false), |row| row.fits(record));
        let (asked, ended) = record::covers(record);
        for (part, is_covered, fits) in [(Part::Asked, asked, asked_fits), (Part::Ended, ended, ended_fits)] {
            match (is_covered, fits) {
                (false, _) => {}
                (true, true) => drop(self.pending.remove(&(call, part))),
                (true, false) => drop(self.pending.insert((call, part), seq)),
            }
        }
        // What was only asked for has no end yet: a row that says otherwise waits for the event that tells of it.
        let is_final = |row: &CallRow| row.state().parse().is_ok_and(CallState::is_final);
        if asked && !ended && row.as_ref().is_some_and(is_final) {
            self.pending.insert((call, Part::Ended), seq);
        }
        Ok(())
    }
}
