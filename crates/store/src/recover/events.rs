//! The timeline comes back: under its own numbers and links where the present one is empty, or else behind what is there.

use std::collections::HashMap;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};
use serde_json::json;

use super::BATCH;
use super::merge::Merge;
use super::salvage::Salvaged;
use crate::chain::{self, CutBecause, FROM, Link, Linked, Record};
use crate::error::StoreError;
use crate::event::{self, EventType, NewEvent};
use crate::fact;

/// How often each event is there already, by a hash over what it tells.
type Known = HashMap<u128, u32>;

/// How far a timeline was put back.
struct Place {
    last: i64,
    link: Option<Link>,
    /// The first event of the chain; nothing where the source has none.
    from: Option<i64>,
    cuts: Vec<(i64, i64, Option<Link>)>,
}

impl Merge<'_> {
    pub(super) fn events(&mut self) -> Result<(), StoreError> {
        let is_empty = "SELECT NOT EXISTS (SELECT 1 FROM event)";
        let is_empty: bool =
            self.store.connection.query_row(is_empty, [], |row| row.get(0)).map_err(self.store.wrong())?;
        let later = match is_empty && !self.how.dry_run {
            true => self.put_back()?,
            false => {
                let mut all: Vec<i64> = self.salvage.numbers("event").into_iter().collect();
                all.sort_unstable();
                all
            }
        };
        let mut known = if is_empty { Known::new() } else { self.known_events()? };
        for batch in later.chunks(BATCH) {
            self.write(|merge, connection| {
                batch.iter().try_for_each(|seq| match merge.salvage.numbered("event", *seq) {
                    Some(row) => merge.append(connection, &row, &mut known),
                    None => Ok(()),
                })
            })?;
        }
        Ok(())
    }

    /// Puts events back under their numbers, as far as the chain proves them. Returns the others.
    fn put_back(&mut self) -> Result<Vec<i64>, StoreError> {
        let salvage = self.salvage;
        let from = salvage.rows("fact").find(|row| row.text("name") == FROM);
        let has_links = salvage.rows("event").any(|row| row.blob("link").is_some());
        let link = |row: &Salvaged| row.blob("link").and_then(Link::stored);
        let mut place = Place {
            last: 0,
            link: None,
            from: has_links.then(|| from.and_then(|row| row.text("value").parse().ok()).unwrap_or(1)),
            cuts: salvage
                .rows("event_cut")
                .map(|row| (row.integer("first").unwrap_or(row.number), row.number, link(&row)))
                .collect(),
        };
        self.write(|_, connection| {
            fact::write(connection, FROM, &place.from.unwrap_or(1).to_string())?;
            salvage
                .rows("event_cut")
                .try_for_each(|row| super::merge::write_row(connection, "event_cut", &row, "").map(drop))
        })?;
        let mut later = Vec::new();
        let mut rows = salvage.rows("event").peekable();
        while rows.peek().is_some() {
            let batch: Vec<Salvaged> = rows.by_ref().take(BATCH).collect();
            self.write(|merge, connection| {
                for row in &batch {
                    merge.counts.mended += u64::from(row.is_mended);
                    if merge.put_back_one(connection, row, &mut place)? {
                        merge.counts.events += 1;
                    } else {
                        merge.counts.unproven += 1;
                        later.push(row.number);
                    }
                }
                Ok(())
            })?;
        }
        Ok(later)
    }

    fn put_back_one(
        &mut self,
        connection: &Connection,
        row: &Salvaged,
        place: &mut Place,
    ) -> Result<bool, rusqlite::Error> {
        let (seq, link) = (row.number, row.blob("link").and_then(Link::stored));
        let mut bases = vec![place.link];
        if seq > place.last + 1 {
            let (first, last) = (place.last + 1, seq - 1);
            let within: Vec<_> =
                place.cuts.iter().filter(|(_, end, _)| (first..=last).contains(end)).collect();
            let covered: i64 = within.iter().map(|(begin, end, _)| end - (*begin).max(first) + 1).sum();
            if covered < last - first + 1 {
                lost(connection, first, last, None)?;
                bases.push(Some(Link::UNKNOWN));
            }
            bases.extend(within.iter().map(|(_, _, link)| Some(link.unwrap_or(Link::UNKNOWN))));
        }
        let [session, call] = ["session", "call"].map(|name| row.integer(name));
        let linked = linked(row, session, call);
        let is_before = place.from.is_some_and(|from| seq < from);
        let is_same = |map: &HashMap<i64, i64>, id: Option<i64>| {
            id.is_none_or(|id| map.get(&id).is_none_or(|new| *new == id))
        };
        let fits = match (place.from, link) {
            (None, _) => true,
            (Some(_), None) => is_before,
            (Some(_), Some(link)) => link.fits(&bases, &linked),
        };
        let keeps =
            fits && !row.is_mended && is_same(&self.ids.sessions, session) && is_same(&self.ids.calls, call);
        if keeps {
            let link = match place.from {
                // A source from before there was a chain gets one here.
                None => Some(Link::after(place.link, &linked)),
                Some(_) => link,
            };
            event::insert(connection, Some(seq), &linked, link)?;
            (place.last, place.link) = (seq, link);
        } else {
            lost(connection, seq, seq, link)?;
            (place.last, place.link) = (seq, Some(link.unwrap_or(Link::UNKNOWN)));
        }
        Ok(keeps)
    }

    /// Adds an event at the end, if it is not there.
    fn append(
        &mut self,
        connection: &Connection,
        row: &Salvaged,
        known: &mut Known,
    ) -> Result<(), rusqlite::Error> {
        let session = match row.integer("session") {
            Some(old) => Some(self.session_of(connection, old)?),
            None => None,
        };
        let old = row.integer("call");
        let call = old.and_then(|old| self.ids.calls.get(&old).copied());
        let body = match (old, call) {
            (Some(old), Some(new)) if old != new => {
                row.text("body").replace(&format!("{CALL}{old}"), &format!("{CALL}{new}"))
            }
            _ => row.text("body").to_owned(),
        };
        let linked = Linked { body: &body, ..linked(row, session, call) };
        if let Some(times) = known.get_mut(&told(&linked)).filter(|times| **times > 0) {
            *times -= 1;
            self.counts.known += 1;
            return Ok(());
        }
        self.counts.events += 1;
        if self.how.dry_run {
            return Ok(());
        }
        let link = Link::after(chain::head(connection)?, &linked);
        event::insert(connection, None, &linked, Some(link)).map(drop)
    }

    fn known_events(&mut self) -> Result<Known, StoreError> {
        let wrong = self.store.wrong();
        let read = || -> Result<Known, rusqlite::Error> {
            let mut known = Known::new();
            let mut statement =
                self.store.connection.prepare("SELECT at, channel, type, session, call, body FROM event")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let text = |at: usize| -> Result<String, rusqlite::Error> {
                    Ok(String::from_utf8_lossy(row.get_ref(at)?.as_bytes().unwrap_or_default()).into_owned())
                };
                let (channel, kind, body) = (text(1)?, text(2)?, text(5)?);
                let linked = Linked {
                    at: row.get(0)?,
                    channel: &channel,
                    kind: &kind,
                    session: row.get(3)?,
                    call: row.get(4)?,
                    body: &body,
                    record: None,
                };
                *known.entry(told(&linked)).or_default() += 1;
            }
            Ok(known)
        };
        read().map_err(wrong)
    }

    /// How many events the source once held and does not any more, although unstuck did not remove them. A source from before
    /// there was a chain does not tell.
    pub(super) fn lost_events(&self) -> u64 {
        let salvage = self.salvage;
        let Some(from) = salvage.rows("fact").find(|row| row.text("name") == FROM) else { return 0 };
        let from: i64 = from.text("value").parse().unwrap_or(1);
        let numbers = salvage.numbers("event");
        let there = numbers.iter().filter(|seq| **seq >= from).count() as u64;
        let last = numbers.into_iter().max().unwrap_or(0);
        let removed: u64 = salvage
            .rows("event_cut")
            .map(|cut| (cut.integer("first").unwrap_or(cut.number).max(from), cut.number.min(last)))
            .map(|(first, last)| (last - first + 1).max(0).unsigned_abs())
            .sum();
        (last - from + 1).max(0).unsigned_abs().saturating_sub(there + removed)
    }

    /// Calls whose rows do not fit what the timeline says of them get an event that says what they look like now.
    pub(super) fn prove_anew(&mut self) -> Result<(), StoreError> {
        if self.how.dry_run {
            return Ok(());
        }
        let calls = self.store.unproven_calls()?;
        self.counts.unproven += calls.len() as u64;
        let now = self.how.now;
        for batch in calls.chunks(BATCH) {
            self.write(|_, connection| {
                for call in batch {
                    let sql = "SELECT session FROM call WHERE id = ?1";
                    let session: Option<i64> =
                        connection.prepare_cached(sql)?.query_row([call], |row| row.get(0)).optional()?;
                    let what = format!("call {call} is not as it was written: it was recovered as it is");
                    let body = json!({ "part": "recover", "what": what });
                    let kind = EventType::OwnFault;
                    let new = NewEvent { at: now, kind, session, call: Some(*call), body };
                    event::append_with(connection, &new, Record::of_row(connection, *call)?.as_ref())?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// What stands before the number of a call in a body.
const CALL: &str = r#""call":{"id":"#;

fn linked<'r>(row: &'r Salvaged, session: Option<i64>, call: Option<i64>) -> Linked<'r> {
    Linked {
        at: row.integer("at").unwrap_or_default(),
        channel: row.text("channel"),
        kind: row.text("type"),
        session,
        call,
        body: row.text("body"),
        record: row.blob("record"),
    }
}

/// What an event tells, whatever the number of its call.
fn told(event: &Linked<'_>) -> u128 {
    let body = match event.body.split_once(CALL) {
        Some((before, after)) => {
            format!("{before}{CALL}{}", after.trim_start_matches(|letter: char| letter.is_ascii_digit()))
        }
        None => event.body.to_owned(),
    };
    let link = Link::after(None, &Linked { body: &body, call: None, record: None, ..*event });
    link.bytes().iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Notes that events could not be read any more.
fn lost(connection: &Connection, first: i64, last: i64, link: Option<Link>) -> Result<(), rusqlite::Error> {
    let sql = "INSERT OR REPLACE INTO event_cut (last, first, link, why) VALUES (?1, ?2, ?3, ?4)";
    let link = link.map_or(Value::Null, |link| Value::Blob(link.bytes().to_vec()));
    connection.prepare_cached(sql)?.execute((last, first, link, CutBecause::Lost.word())).map(drop)
}
