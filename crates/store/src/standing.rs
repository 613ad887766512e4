//! Where a session stands on the ladder, kept as one row per thing remembered.
//!
//! A step touches a handful of things however long the session is, so only these are fetched: the step is run on what is
//! there, what it looked for in vain is fetched, and it is run again from the start. It is pure, so nothing has happened yet.
//! What was fetched and what changed lies in a drawer until that is cleared: of many steps each row is read and written once.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension};
use unstuck_judge::ladder::{self, Agent, Decision, Event, Memory, Print, Settings, Standing, World};

use crate::pack::{Head, Pack, packed, unpacked};
use crate::rows::Lenient;

/// How many things of one sort a session remembers. What was used longest ago goes first.
const KEPT: u32 = 2048;
/// After how many calls a session is looked through for more than that.
const TRIM_EVERY: u32 = 512;

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

/// The standings that are being worked on, for as long as nobody else can write.
#[derive(Default)]
pub(crate) struct Drawer(RefCell<HashMap<i64, Pages>>);

/// What is at hand of one session's rows.
struct Pages {
    /// What every step needs: the one head, and all agents.
    standing: Standing,
    is_head_new: bool,
    /// Agents that changed, and when.
    new_agents: BTreeMap<Print, u32>,
    /// Other rows that were looked for or changed.
    rows: HashMap<(Part, Print), Page>,
    /// Is anything known to fail? Hardly ever, and every step asks for several such things.
    knows_failures: bool,
    is_to_trim: bool,
}

/// One row.
struct Page {
    /// Its tick and its body; nothing where there is no such row.
    row: Option<(u32, Vec<u8>)>,
    is_new: bool,
}

impl Drawer {
    /// Moves a session by one event, inside the transaction that records it.
    pub(crate) fn step(
        &self,
        connection: &Connection,
        session: i64,
        settings: &Settings,
        event: Event<'_>,
    ) -> Result<Step, rusqlite::Error> {
        self.with(connection, session, |rows, pages| {
            let mut kept = pages.standing.clone();
            let mut sought = HashSet::new();
            loop {
                let mut next = kept.clone();
                let decision = ladder::step(settings, &mut next, event);
                if !pages.fetch_wanted(rows, &mut kept, &next, &mut sought)? {
                    let world = kept.world.count;
                    pages.save(&kept, next);
                    return Ok(Step { decision, world });
                }
            }
        })
    }

    /// How often a session's world has moved.
    pub(crate) fn world(&self, connection: &Connection, session: i64) -> Result<u32, rusqlite::Error> {
        self.with(connection, session, |_, pages| Ok(pages.standing.world.count))
    }

    /// Forgets which answers were given: whoever got them may have them no more, or they may be true no more.
    pub(crate) fn forget_answers(
        &self,
        connection: &Connection,
        session: i64,
    ) -> Result<(), rusqlite::Error> {
        self.clear(connection)?;
        connection
            .prepare_cached("DELETE FROM standing WHERE session = ?1 AND part = ?2")?
            .execute((session, Part::Looks as i64))
            .map(|_| ())
    }

    /// All that is known to fail in a session, for the table that a person gets to see.
    pub(crate) fn all_known(
        &self,
        connection: &Connection,
        session: i64,
    ) -> Result<Standing, rusqlite::Error> {
        self.clear(connection)?;
        let mut standing = Standing::new();
        Rows { connection, session }
            .each(Part::Known, |print, tick, known| standing.known.put(print, tick, known))?;
        Ok(standing)
    }

    /// Writes what changed. Nothing is at hand any more.
    pub(crate) fn clear(&self, connection: &Connection) -> Result<(), rusqlite::Error> {
        let all = self.0.take();
        all.into_iter().try_for_each(|(session, pages)| pages.write(&Rows { connection, session }))
    }

    /// Does some work with what is at hand of a session.
    fn with<T>(
        &self,
        connection: &Connection,
        session: i64,
        work: impl FnOnce(&Rows<'_>, &mut Pages) -> Result<T, rusqlite::Error>,
    ) -> Result<T, rusqlite::Error> {
        let rows = Rows { connection, session };
        match self.0.borrow_mut().entry(session) {
            Entry::Occupied(pages) => work(&rows, pages.into_mut()),
            Entry::Vacant(place) => work(&rows, place.insert(Pages::load(&rows)?)),
        }
    }
}

/// Is anything known to fail in a session?
pub(crate) fn knows_failures(connection: &Connection, session: &str) -> Result<bool, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT 1 FROM standing WHERE session = (SELECT id FROM session WHERE name = ?1) AND part = ?2",
        )?
        .exists((session, Part::Known as i64))
}

impl Pages {
    fn load(rows: &Rows<'_>) -> Result<Pages, rusqlite::Error> {
        let mut standing = Standing::excerpt();
        rows.each(Part::Head, |_, _, head: Head| {
            standing.tick = head.tick;
            standing.turn = head.turn;
            head.restore(&mut standing.world);
        })?;
        rows.each(Part::Agents, |print, _, agent: Agent| {
            standing.agents.insert(print, agent);
        })?;
        Ok(Pages {
            standing,
            is_head_new: false,
            new_agents: BTreeMap::new(),
            rows: HashMap::new(),
            knows_failures: rows.has(Part::Known)?,
            is_to_trim: false,
        })
    }

    /// Fetches what `next` looked for in vain; says whether any of it was there.
    fn fetch_wanted(
        &mut self,
        rows: &Rows<'_>,
        kept: &mut Standing,
        next: &Standing,
        sought: &mut HashSet<(Part, Print)>,
    ) -> Result<bool, rusqlite::Error> {
        let mut found = self.fetch(rows, Part::Known, &mut kept.known, &next.known, sought)?;
        found |= self.fetch(rows, Part::Looks, &mut kept.looks, &next.looks, sought)?;
        found |= self.fetch(rows, Part::Laps, &mut kept.laps, &next.laps, sought)?;
        found |= self.fetch(rows, Part::Touched, &mut kept.world.touched, &next.world.touched, sought)?;
        found |=
            self.fetch(rows, Part::LookedAt, &mut kept.world.looked_at, &next.world.looked_at, sought)?;
        Ok(found)
    }

    fn fetch<T: Pack>(
        &mut self,
        rows: &Rows<'_>,
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
            let page = match self.rows.entry((part, print)) {
                Entry::Occupied(page) => page.into_mut(),
                Entry::Vacant(_) if part == Part::Known && !self.knows_failures => continue,
                Entry::Vacant(place) => place.insert(Page { row: rows.get(part, print)?, is_new: false }),
            };
            let row = page.row.as_ref();
            if let Some((tick, item)) = row.and_then(|(tick, body)| Some((*tick, unpacked(body)?))) {
                kept.put(print, tick, item);
                found = true;
            }
        }
        Ok(found)
    }

    /// Notes what changed.
    fn save(&mut self, kept: &Standing, next: Standing) {
        self.is_head_new |= !has_same_head(kept, &next);
        let is_other = |print: &&Print| kept.agents.get(print) != next.agents.get(print);
        let changed = kept.agents.keys().chain(next.agents.keys()).filter(is_other);
        self.new_agents.extend(changed.map(|print| (*print, next.tick)));
        self.update(Part::Known, &kept.known, &next.known);
        self.update(Part::Looks, &kept.looks, &next.looks);
        self.update(Part::Laps, &kept.laps, &next.laps);
        self.update(Part::Touched, &kept.world.touched, &next.world.touched);
        self.update(Part::LookedAt, &kept.world.looked_at, &next.world.looked_at);
        self.is_to_trim |= next.tick != kept.tick && next.tick.is_multiple_of(TRIM_EVERY);
        let Standing { known, looks, laps, world: World { touched, looked_at, .. }, .. } =
            Standing::excerpt();
        let world = World { touched, looked_at, ..next.world };
        self.standing = Standing { known, looks, laps, world, ..next };
    }

    fn update<T: Pack + PartialEq>(&mut self, part: Part, kept: &Memory<T>, next: &Memory<T>) {
        for print in kept.items.keys().filter(|print| !next.items.contains_key(print)) {
            self.rows.insert((part, *print), Page { row: None, is_new: true });
        }
        for (print, item) in &next.items {
            if kept.items.get(print) != Some(item) {
                let row = Some((item.0, packed(&item.1)));
                self.rows.insert((part, *print), Page { row, is_new: true });
            }
        }
    }

    /// Writes what changed.
    fn write(self, rows: &Rows<'_>) -> Result<(), rusqlite::Error> {
        let Standing { tick, turn, agents, world, .. } = &self.standing;
        if self.is_head_new {
            rows.put(Part::Head, Print(0), *tick, &packed(&Head::of(*tick, *turn, world)))?;
        }
        for (print, tick) in &self.new_agents {
            match agents.get(print) {
                Some(agent) => rows.put(Part::Agents, *print, *tick, &packed(agent))?,
                None => rows.delete(Part::Agents, *print)?,
            }
        }
        for ((part, print), page) in self.rows.iter().filter(|(_, page)| page.is_new) {
            match &page.row {
                Some((tick, body)) => rows.put(*part, *print, *tick, body)?,
                None => rows.delete(*part, *print)?,
            }
        }
        if self.is_to_trim { rows.trim() } else { Ok(()) }
    }
}

/// Is what a session has only one of the same in both?
fn has_same_head(one: &Standing, other: &Standing) -> bool {
    let small = |standing: &Standing| {
        let World { count, changes, last, stirred, waited, .. } = &standing.world;
        (standing.tick, standing.turn, *count, *changes, *last, *stirred, *waited)
    };
    small(one) == small(other) && one.world.recent == other.world.recent
}

/// The rows of one session in their table.
struct Rows<'c> {
    connection: &'c Connection,
    session: i64,
}

impl Rows<'_> {
    /// Hands over every row of one sort. A row that cannot be read is one thing forgotten, no more.
    fn each<T: Pack>(&self, part: Part, mut take: impl FnMut(Print, u32, T)) -> Result<(), rusqlite::Error> {
        let mut statement = self.connection.prepare_cached(
            "SELECT print, tick, body FROM standing WHERE session = ?1 AND part = ?2 ORDER BY print",
        )?;
        let mut rows = statement.query((self.session, part as i64))?;
        while let Some(row) = rows.next()? {
            if let Some(item) = unpacked(row.get_ref(2)?.as_blob().unwrap_or_default()) {
                take(Print(row.lenient::<i64>(0)?.cast_unsigned()), row.lenient(1)?, item);
            }
        }
        Ok(())
    }

    /// Is there a row of this sort?
    fn has(&self, part: Part) -> Result<bool, rusqlite::Error> {
        self.connection
            .prepare_cached("SELECT 1 FROM standing WHERE session = ?1 AND part = ?2")?
            .exists((self.session, part as i64))
    }

    fn get(&self, part: Part, print: Print) -> Result<Option<(u32, Vec<u8>)>, rusqlite::Error> {
        self.connection
            .prepare_cached(
                "SELECT tick, body FROM standing WHERE session = ?1 AND part = ?2 AND print = ?3",
            )?
            .query_row((self.session, part as i64, print.0.cast_signed()), |row| {
                Ok((row.lenient(0)?, row.lenient(1)?))
            })
            .optional()
    }

    fn put(&self, part: Part, print: Print, tick: u32, body: &[u8]) -> Result<(), rusqlite::Error> {
        self.connection
            .prepare_cached(
                "INSERT INTO standing (session, part, print, tick, body) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET tick = excluded.tick, body = excluded.body",
            )?
            .execute((self.session, part as i64, print.0.cast_signed(), tick, body))?;
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
