//! Counts what the alert rules ask for, and remembers what fired and who still has to be told.
//!
//! Time is cut into windows of a rule's own length, counted from 1970. A rule fires once in each, whichever process sees it
//! first: the database decides. Windows that went by while nobody looked are looked at later, so that what happened just
//! before the hour is not lost. Nothing is sent from here, and neither commands nor addresses are written down.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row};
use serde::{Deserialize, Serialize};
use serde_json::json;
use unstuck_judge::{Lang, vocabulary};
use unstuck_wire::clean::{Clean, Cleaner};
use unstuck_wire::time;

use crate::alert_rule::{AlertFilter, AlertRule, AlertWhen};
use crate::error::StoreError;
use crate::event::{self, Channel, EventType, NewEvent};
use crate::fact;
use crate::rows::Lenient;
use crate::store::Store;

/// A delivery that failed so often is given up.
pub const TRIES_MAX: u32 = 8;
/// How long after a failed delivery the next is tried; doubled each time.
const FIRST_WAIT: u64 = 60_000;
/// Windows further back than this are not looked at any more: nobody is helped by an alert of last week.
const LOOK_BACK: u64 = 7 * 24 * 3_600_000;
/// And never more than so many of them.
const WINDOWS_MAX: u64 = 32;
/// So many alerts are read at once.
const PAGE: u32 = 200;
/// The most that is kept of what a rule says, or of why a delivery failed.
const TEXT_MAX: usize = 400;
/// The fact that tells up to when the rules have been looked at.
const LOOKED_AT: &str = "alerts_looked_at";
/// It is written down anew only when it is older than this.
const LOOKED_AT_STEP: u64 = 60_000;

vocabulary! {
    /// Who is told of an alert, beside the timeline.
    Recipient {
        /// A program of the user's.
        Command = "command",
        /// An address on the network.
        Webhook = "webhook",
    }
}

/// Where a rule stands in one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlertLook {
    /// Where the window begins.
    pub window: u64,
    /// What was counted; of a rate, by what factor it grew.
    pub value: f64,
    /// Where it becomes too much.
    pub limit: f64,
    /// Is it too much?
    pub is_over: bool,
}

/// An alert that fired.
#[derive(Debug, Clone, PartialEq)]
pub struct FiredAlert {
    /// Its number here.
    pub id: i64,
    /// A name that no other alert has, also none of another store: whoever receives it twice can tell.
    pub key: String,
    /// The rule's name.
    pub name: String,
    /// Where the window begins.
    pub window: u64,
    /// When it was noticed.
    pub at: u64,
    /// What was counted.
    pub value: f64,
    /// What the rule says.
    pub text: String,
    /// Who was told, or is to be told.
    pub deliveries: Vec<Delivery>,
}

/// One recipient of an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The recipient's word; a newer version may know others.
    pub to: String,
    /// How often it was tried.
    pub tries: u32,
    /// How it stands.
    pub state: DeliveryState,
    /// Why the last try failed; empty where none did.
    pub error: String,
}

/// How a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// It arrived.
    Done {
        /// When.
        at: u64,
    },
    /// It is tried again.
    Waiting {
        /// Not before this.
        until: u64,
    },
    /// It failed too often, or there is nobody to tell any more.
    GivenUp,
}

/// A delivery that this process alone may make, for a while.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryClaim {
    /// The alert.
    pub alert: FiredAlert,
    /// Who is to be told.
    pub to: Recipient,
    place: usize,
}

/// What came of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// It arrived.
    Arrived,
    /// It did not; another try may help.
    Failed(Clean),
    /// It cannot: there is nobody to tell.
    Hopeless(Clean),
}

/// A delivery as it stands in the table.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredDelivery {
    to: String,
    #[serde(default)]
    tries: u32,
    #[serde(default)]
    done_at: Option<u64>,
    #[serde(default)]
    error: Option<String>,
    /// Not before this; also how long whoever is at it may take.
    #[serde(default)]
    not_before: u64,
    #[serde(default)]
    given_up: bool,
}

impl StoredDelivery {
    fn new(to: Recipient) -> StoredDelivery {
        let to = to.word().to_owned();
        StoredDelivery { to, tries: 0, done_at: None, error: None, not_before: 0, given_up: false }
    }

    fn is_open(&self) -> bool {
        self.done_at.is_none() && !self.given_up
    }
}

impl From<StoredDelivery> for Delivery {
    fn from(stored: StoredDelivery) -> Delivery {
        let state = match stored.done_at {
            Some(at) => DeliveryState::Done { at },
            None if stored.given_up => DeliveryState::GivenUp,
            None => DeliveryState::Waiting { until: stored.not_before },
        };
        Delivery { to: stored.to, tries: stored.tries, state, error: stored.error.unwrap_or_default() }
    }
}

impl Store {
    /// Where a rule stands in the window of this moment.
    pub fn look(&self, rule: &AlertRule, now: u64) -> Result<AlertLook, StoreError> {
        look(&self.connection, rule, rule.window_at(now)).map_err(self.wrong())
    }

    /// Fires every rule that is over its limit and has not fired in that window yet.
    pub fn fire(
        &mut self,
        rules: &[AlertRule],
        now: u64,
        lang: Lang,
        cleaner: &Cleaner,
    ) -> Result<Vec<FiredAlert>, StoreError> {
        let wrong = self.wrong();
        let looked_at = looked_at(&self.connection).map_err(&wrong)?;
        let mut fired = Vec::new();
        for rule in rules.iter().filter(|rule| rule.enabled) {
            for window in windows(rule, looked_at, now) {
                if self.has_fired(&rule.name, window).map_err(&wrong)? {
                    continue;
                }
                let found = look(&self.connection, rule, window).map_err(&wrong)?;
                if found.is_over {
                    let text = cleaner.line(rule.say(lang), TEXT_MAX);
                    let id = self.write(|connection| fire_one(connection, rule, &found, &text, now))?;
                    fired.extend(id);
                }
            }
        }
        if looked_at.is_none_or(|at| at + LOOKED_AT_STEP <= now) {
            self.write(|connection| fact::write(connection, LOOKED_AT, &now.to_string()))?;
        }
        fired.into_iter().map(|id| read(&self.connection, id).map_err(&wrong)).collect()
    }

    /// The alerts that fired, newest first, `page` of them before the alert `before`.
    pub fn fired_alerts(&self, before: Option<i64>, page: u32) -> Result<Vec<FiredAlert>, StoreError> {
        let sql = "SELECT id FROM alert WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
        let ids = || -> Result<Vec<i64>, rusqlite::Error> {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_map((before.unwrap_or(i64::MAX), page), |row| row.lenient(0))?.collect()
        };
        ids()
            .and_then(|ids| ids.into_iter().map(|id| read(&self.connection, id)).collect())
            .map_err(self.wrong())
    }

    /// Hands over all alerts that fired, newest first, and stops at the first that is refused.
    pub fn each_fired_alert<E: From<StoreError>>(
        &self,
        mut each: impl FnMut(FiredAlert) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut before = None;
        loop {
            let page = self.fired_alerts(before, PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            before = Some(last.id);
            page.into_iter().try_for_each(&mut each)?;
        }
    }

    /// Takes the next delivery that is due, so that no other process makes it before `lease` has passed.
    pub fn claim_delivery(&mut self, now: u64, lease: Duration) -> Result<Option<DeliveryClaim>, StoreError> {
        // Hooks are not kept from writing where nothing is to be delivered, which is nearly always.
        if due(&self.connection, now).map_err(self.wrong())?.is_none() {
            return Ok(None);
        }
        self.write(|connection| {
            let Some((id, mut stored, place, to)) = due(connection, now)? else { return Ok(None) };
            stored[place].not_before = now + time::span_ms(lease);
            save(connection, id, &stored)?;
            Ok(Some(DeliveryClaim { alert: read(connection, id)?, to, place }))
        })
    }

    /// Remembers what came of a delivery.
    pub fn settle_delivery(
        &mut self,
        claim: &DeliveryClaim,
        outcome: &DeliveryOutcome,
        now: u64,
    ) -> Result<(), StoreError> {
        self.write(|connection| {
            let Some(mut stored) = deliveries(connection, claim.alert.id)? else { return Ok(()) };
            let Some(delivery) = stored.get_mut(claim.place) else { return Ok(()) };
            delivery.tries += 1;
            match outcome {
                DeliveryOutcome::Arrived => {
                    delivery.done_at = Some(now);
                    delivery.error = None;
                }
                DeliveryOutcome::Failed(why) => {
                    delivery.error = Some(why.to_string());
                    delivery.given_up = delivery.tries >= TRIES_MAX;
                    delivery.not_before = now + (FIRST_WAIT << (delivery.tries - 1).min(TRIES_MAX));
                }
                DeliveryOutcome::Hopeless(why) => {
                    delivery.error = Some(why.to_string());
                    delivery.given_up = true;
                }
            }
            save(connection, claim.alert.id, &stored)
        })
    }

    fn has_fired(&self, name: &str, window: u64) -> Result<bool, rusqlite::Error> {
        self.connection
            .prepare_cached("SELECT 1 FROM alert WHERE name = ?1 AND window = ?2")?
            .exists((name, window.cast_signed()))
    }
}

/// The windows to look at: the one of this moment, the one before it (what is taken in late still counts), and those that
/// went by since somebody looked.
fn windows(rule: &AlertRule, looked_at: Option<u64>, now: u64) -> impl Iterator<Item = u64> + use<> {
    let step = rule.window_ms();
    let last = rule.window_at(now);
    let since = looked_at.unwrap_or(now).clamp(now.saturating_sub(LOOK_BACK), now);
    let first = rule.window_at(since).min(last).saturating_sub(step);
    let first = first.max(last.saturating_sub(step.saturating_mul(WINDOWS_MAX)));
    (0..)
        .map_while(move |n: u64| Some(first + step.checked_mul(n)?))
        .take_while(move |window| *window <= last)
}

fn looked_at(connection: &Connection) -> Result<Option<u64>, rusqlite::Error> {
    Ok(fact::read(connection, LOOKED_AT)?.and_then(|value| value.parse().ok()))
}

fn look(connection: &Connection, rule: &AlertRule, window: u64) -> Result<AlertLook, rusqlite::Error> {
    let step = rule.window_ms();
    let span = |from: u64| (from.cast_signed(), from.saturating_add(step).cast_signed());
    let (value, limit, is_over) = match &rule.when {
        AlertWhen::Failures { more_than } => {
            let count = calls(connection, &rule.only, span(window))?.failed;
            (count as f64, *more_than as f64, count > *more_than)
        }
        AlertWhen::Rate { factor, least_calls } => {
            let seen = calls(connection, &rule.only, span(window))?;
            let before = match window.checked_sub(step) {
                Some(before) => calls(connection, &rule.only, span(before))?,
                None => Counted::default(),
            };
            let is_proof = seen.all >= *least_calls && before.all >= *least_calls && before.all > 0;
            let growth = if is_proof { seen.share() / before.share() } else { 0.0 };
            (growth, *factor, is_proof && seen.failed > 0 && growth >= *factor)
        }
        AlertWhen::Event { event, more_than } => {
            let count = events(connection, event, span(window))?;
            (count as f64, *more_than as f64, count > *more_than)
        }
    };
    Ok(AlertLook { window, value, limit, is_over })
}

#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    all: u64,
    failed: u64,
}

impl Counted {
    /// The share that failed. Where none did it counts as one: from nothing, everything would be infinitely more.
    fn share(self) -> f64 {
        self.failed.max(1) as f64 / self.all.max(1) as f64
    }
}

/// Calls that ended in a span of time, and how many of them failed in the way that is asked for.
fn calls(
    connection: &Connection,
    only: &AlertFilter,
    (from, to): (i64, i64),
) -> Result<Counted, rusqlite::Error> {
    let sql = "SELECT count(*), count(CASE WHEN state = 'failed' AND (?3 IS NULL OR kind = ?3)
                                                AND (?4 IS NULL OR error_type = ?4) THEN 1 END)
               FROM call WHERE ended_at >= ?1 AND ended_at < ?2
                 AND (?5 IS NULL OR tool = ?5) AND (?6 IS NULL OR agent = ?6)";
    let kind = only.kind.map(|kind| kind.word());
    connection.prepare_cached(sql)?.query_row(
        (from, to, kind, only.error_type, &only.tool, &only.agent),
        |row| {
            let count = |column| row.lenient::<i64>(column).map(i64::unsigned_abs);
            Ok(Counted { all: count(0)?, failed: count(1)? })
        },
    )
}

/// Events of one type in a span of time. The index holds only what is rare, and the query has to say that it asks for such.
fn events(connection: &Connection, kind: &str, (from, to): (i64, i64)) -> Result<u64, rusqlite::Error> {
    let is_rare = match kind.parse::<EventType>() {
        Ok(EventType::Error) => false,
        Ok(known) => known.channel() != Channel::Progress,
        Err(_) => true,
    };
    let rare = if is_rare { "AND channel <> 'progress' AND type <> 'error'" } else { "" };
    connection
        .prepare_cached(&format!(
            "SELECT count(*) FROM event WHERE type = ?1 AND at >= ?2 AND at < ?3 {rare}"
        ))?
        .query_row((kind, from, to), |row| row.lenient::<i64>(0))
        .map(i64::unsigned_abs)
}

/// Writes an alert down, and its event with it. `None` where another process was first.
fn fire_one(
    connection: &Connection,
    rule: &AlertRule,
    found: &AlertLook,
    text: &Clean,
    now: u64,
) -> Result<Option<i64>, rusqlite::Error> {
    let command = (!rule.command.is_empty()).then_some(Recipient::Command);
    let webhook = rule.webhook.is_some().then_some(Recipient::Webhook);
    let stored: Vec<_> = command.into_iter().chain(webhook).map(StoredDelivery::new).collect();
    let sql = "INSERT INTO alert (name, window, at, value, text, delivery, open) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
               ON CONFLICT (name, window) DO NOTHING";
    let (window, at) = (found.window.cast_signed(), now.cast_signed());
    let is_open = !stored.is_empty();
    let row = (&rule.name, window, at, found.value, &**text, written(&stored), is_open);
    if connection.execute(sql, row)? == 0 {
        return Ok(None);
    }
    let id = connection.last_insert_rowid();
    let body = json!({"name": rule.name, "value": found.value, "text": &**text});
    event::append(
        connection,
        &NewEvent { at: now, kind: EventType::Alert, session: None, call: None, body },
    )?;
    Ok(Some(id))
}

/// The oldest delivery that is due: the alert, all its deliveries, and which of them it is.
type Due = (i64, Vec<StoredDelivery>, usize, Recipient);

fn due(connection: &Connection, now: u64) -> Result<Option<Due>, rusqlite::Error> {
    let mut statement =
        connection.prepare_cached("SELECT id, delivery FROM alert WHERE open = 1 ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let stored = parsed(&row.lenient::<String>(1)?);
        let is_due = |delivery: &StoredDelivery| delivery.is_open() && delivery.not_before <= now;
        let known = |(place, delivery): (usize, &StoredDelivery)| {
            delivery.to.parse::<Recipient>().ok().filter(|_| is_due(delivery)).map(|to| (place, to))
        };
        if let Some((place, to)) = stored.iter().enumerate().find_map(known) {
            return Ok(Some((row.lenient(0)?, stored, place, to)));
        }
    }
    Ok(None)
}

fn deliveries(connection: &Connection, id: i64) -> Result<Option<Vec<StoredDelivery>>, rusqlite::Error> {
    let text: Option<String> = connection
        .prepare_cached("SELECT delivery FROM alert WHERE id = ?1")?
        .query_row([id], |row| row.lenient(0))
        .optional()?;
    Ok(text.map(|text| parsed(&text)))
}

fn save(connection: &Connection, id: i64, stored: &[StoredDelivery]) -> Result<(), rusqlite::Error> {
    let is_open = stored.iter().any(StoredDelivery::is_open);
    connection
        .prepare_cached("UPDATE alert SET delivery = ?2, open = ?3 WHERE id = ?1")?
        .execute((id, written(stored), is_open))
        .map(|_| ())
}

fn parsed(text: &str) -> Vec<StoredDelivery> {
    serde_json::from_str(text).unwrap_or_default()
}

fn written(stored: &[StoredDelivery]) -> String {
    serde_json::to_string(stored).unwrap_or_default()
}

fn read(connection: &Connection, id: i64) -> Result<FiredAlert, rusqlite::Error> {
    let made_at = fact::read(connection, fact::MADE_AT)?.unwrap_or_default();
    let sql = "SELECT id, name, window, at, value, text, delivery FROM alert WHERE id = ?1";
    connection.prepare_cached(sql)?.query_row([id], |row: &Row<'_>| {
        let (name, window): (String, i64) = (row.lenient(1)?, row.lenient(2)?);
        Ok(FiredAlert {
            id: row.lenient(0)?,
            key: format!("{name}@{window}.{made_at}"),
            name,
            window: window.unsigned_abs(),
            at: row.lenient::<i64>(3)?.unsigned_abs(),
            value: row.lenient(4)?,
            text: row.lenient(5)?,
            deliveries: parsed(&row.lenient::<String>(6)?).into_iter().map(Delivery::from).collect(),
        })
    })
}

#[cfg(test)]
mod tests;
