//! Where a session stands on the ladder, kept as one row per thing remembered.
//!
//! A step touches a handful of things however long the session is, so only these are fetched: the step is run on what is
//! there, what it looked for in vain is fetched, and it is run again from the start. It is pure, so nothing has happened yet.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension};
use unstuck_judge::ladder::{self, Agent, Decision, Event, Memory, Print, Settings, Standing};

use crate::pack::{Head, Pack, packed, unpacked};

/// How many things of one sort a session remembers. What was used longest ago goes first.
const KEPT: u32 = 2048;
/// After how many calls a session is looked through for more than that.
const TRIM_EVERY: u32 = 256;

/// The sorts of row. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Head = 0,
    Agents = 1,
    Known = 2,
    Looks = 3,
    Laps = 4,
    Touched = 5,
    LookedAt = 6,
}

/// Those of which a session can have any number.
const MEMORIES: [Part; 5] = [Part::Known, Part::Looks, Part::Laps, Part::Touched, Part::LookedAt];

/// What a step brought.
pub(crate) struct Step {
    pub(crate) decision: Decision,
    /// How often the session's world had moved before it.
    pub(crate) world: u32,
}

/// Moves a session by one event, inside the transaction that records it.
pub(crate) fn step(
    connection: &Connection,
    session: i64,
    settings: &Settings,
    event: Event<'_>,
) -> Result<Step, rusqlite::Error> {
    let rows = Rows { connection, session };
    let mut kept = rows.load()?;
    let mut sought = HashSet::new();
    loop {
        let mut next = kept.clone();
        let decision = ladder::step(settings, &mut next, event);
        if !rows.fetch_wanted(&mut kept, &next, &mut sought)? {
            rows.save(&kept, &next)?;
            return Ok(Step { decision, world: kept.world.count });
        }
    }
}

/// How often a session's world has moved.
pub(crate) fn world(connection: &Connection, session: i64) -> Result<u32, rusqlite::Error> {
    Ok(Rows { connection, session }.load()?.world.count)
}

/// Forgets which answers were given: whoever got them may have them no more, or they may be true no more.
pub(crate) fn forget_answers(connection: &Connection, session: i64) -> Result<(), rusqlite::Error> {
    connection
        .prepare_cached("DELETE FROM standing WHERE session = ?1 AND part = ?2")?
        .execute((session, Part::Looks as i64))
        .map(|_| ())
}

/// All that is known to fail in a session, for the table that a person gets to see.
pub(crate) fn all_known(connection: &Connection, session: i64) -> Result<Standing, rusqlite::Error> {
    let mut standing = Standing::new();
    Rows { connection, session }
        .each(Part::Known, |print, tick, known| standing.known.put(print, tick, known))?;
    Ok(standing)
}

/// Is anything known to fail in a session?
pub(crate) fn knows_failures(connection: &Connection, session: &str) -> Result<bool, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT 1 FROM standing WHERE session = (SELECT id FROM session WHERE name = ?1) AND part = ?2",
        )?
        .exists((session, Part::Known as i64))
}

struct Rows<'c> {
    connection: &'c Connection,
    session: i64,
}

impl Rows<'_> {
    /// What every step needs: the one head, and all agents.
    fn load(&self) -> Result<Standing, rusqlite::Error> {
        let mut standing = Standing::excerpt();
        self.each(Part::Head, |_, _, head: Head| {
            standing.tick = head.tick;
            standing.turn = head.turn;
            head.restore(&mut standing.world);
        })?;
        self.each(Part::Agents, |print, _, agent: Agent| {
            standing.agents.insert(print, agent);
        })?;
        Ok(standing)
    }

    /// Hands over every row of one sort. A row that cannot be read is one thing forgotten, no more.
    fn each<T: Pack>(&self, part: Part, mut take: impl FnMut(Print, u32, T)) -> Result<(), rusqlite::Error> {
        let mut statement = self.connection.prepare_cached(
            "SELECT print, tick, body FROM standing WHERE session = ?1 AND part = ?2 ORDER BY print",
        )?;
        let mut rows = statement.query((self.session, part as i64))?;
        while let Some(row) = rows.next()? {
            if let Some(item) = unpacked(row.get_ref(2)?.as_blob().unwrap_or_default()) {
                take(Print(row.get::<_, i64>(0)?.cast_unsigned()), row.get(1)?, item);
            }
        }
        Ok(())
    }

    /// Fetches what `next` looked for in vain; says whether any of it was there.
    fn fetch_wanted(
        &self,
        kept: &mut Standing,
        next: &Standing,
        sought: &mut HashSet<(Part, Print)>,
    ) -> Result<bool, rusqlite::Error> {
        let mut found = self.fetch(Part::Known, &mut kept.known, &next.known, sought)?;
        found |= self.fetch(Part::Looks, &mut kept.looks, &next.looks, sought)?;
        found |= self.fetch(Part::Laps, &mut kept.laps, &next.laps, sought)?;
        found |= self.fetch(Part::Touched, &mut kept.world.touched, &next.world.touched, sought)?;
        found |= self.fetch(Part::LookedAt, &mut kept.world.looked_at, &next.world.looked_at, sought)?;
        Ok(found)
    }

    fn fetch<T: Pack>(
        &self,
        part: Part,
        kept: &mut Memory<T>,
        next: &Memory<T>,
        sought: &mut HashSet<(Part, Print)>,
    ) -> Result<bool, rusqlite::Error> {
        let mut found = false;
        for print in next.wanted() {
            if !sought.insert((part, print)) {
                continue;
            }
            let row = self
                .connection
                .prepare_cached(
                    "SELECT tick, body FROM standing WHERE session = ?1 AND part = ?2 AND print = ?3",
                )?
                .query_row((self.session, part as i64, print.0.cast_signed()), |row| {
                    Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?))
                })
                .optional()?;
            if let Some((tick, item)) = row.and_then(|(tick, body)| Some((tick, unpacked(&body)?))) {
                kept.put(print, tick, item);
                found = true;
            }
        }
        Ok(found)
    }

    /// Writes what changed.
    fn save(&self, kept: &Standing, next: &Standing) -> Result<(), rusqlite::Error> {
        let head = |standing: &Standing| Head::of(standing.tick, standing.turn, &standing.world);
        if head(kept) != head(next) {
            self.put(Part::Head, Print(0), next.tick, &head(next))?;
        }
        for print in kept.agents.keys().filter(|print| !next.agents.contains_key(print)) {
            self.delete(Part::Agents, *print)?;
        }
        for (print, agent) in &next.agents {
            if kept.agents.get(print) != Some(agent) {
                self.put(Part::Agents, *print, next.tick, agent)?;
            }
        }
        self.update(Part::Known, &kept.known, &next.known)?;
        self.update(Part::Looks, &kept.looks, &next.looks)?;
        self.update(Part::Laps, &kept.laps, &next.laps)?;
        self.update(Part::Touched, &kept.world.touched, &next.world.touched)?;
        self.update(Part::LookedAt, &kept.world.looked_at, &next.world.looked_at)?;
        if next.tick != kept.tick && next.tick.is_multiple_of(TRIM_EVERY) {
            self.trim()?;
        }
        Ok(())
    }

    fn update<T: Pack + PartialEq>(
        &self,
        part: Part,
        kept: &Memory<T>,
        next: &Memory<T>,
    ) -> Result<(), rusqlite::Error> {
        for print in kept.items.keys().filter(|print| !next.items.contains_key(print)) {
            self.delete(part, *print)?;
        }
        for (print, item) in &next.items {
            if kept.items.get(print) != Some(item) {
                self.put(part, *print, item.0, &item.1)?;
            }
        }
        Ok(())
    }

    fn put(&self, part: Part, print: Print, tick: u32, item: &impl Pack) -> Result<(), rusqlite::Error> {
        self.connection
            .prepare_cached(
                "INSERT INTO standing (session, part, print, tick, body) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET tick = excluded.tick, body = excluded.body",
            )?
            .execute((self.session, part as i64, print.0.cast_signed(), tick, packed(item)))?;
        Ok(())
    }

    fn delete(&self, part: Part, print: Print) -> Result<(), rusqlite::Error> {
        self.connection
            .prepare_cached("DELETE FROM standing WHERE session = ?1 AND part = ?2 AND print = ?3")?
            .execute((self.session, part as i64, print.0.cast_signed()))?;
        Ok(())
    }

    /// Forgets what was used longest ago, where there is too much of a sort.
    fn trim(&self) -> Result<(), rusqlite::Error> {
        for part in MEMORIES {
            self.connection
                .prepare_cached(
                    "DELETE FROM standing WHERE session = ?1 AND part = ?2 AND tick <
                     (SELECT tick FROM standing WHERE session = ?1 AND part = ?2 ORDER BY tick DESC LIMIT 1 OFFSET ?3)",
                )?
                .execute((self.session, part as i64, KEPT))?;
        }
        Ok(())
    }
}
