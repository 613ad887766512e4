//! What lies on the clerk's desk while entries are written one after the other under one write lock. What each of them would read
//! and write again is read once, and written once when the desk is cleared: nobody else can change it meanwhile.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use rusqlite::Connection;
use unstuck_judge::Outcome;
use unstuck_judge::fingerprint::Fingerprint;
use unstuck_judge::ladder::Upshot;

use crate::call_row::Found;
use crate::entry::{Asked, Entry, Sender, Who};
use crate::rows::Lenient;
use crate::standing::Drawer;

/// What is at hand. Whoever puts something on it clears it in the end.
#[derive(Default)]
pub(crate) struct Desk<'e> {
    /// Sessions that were heard of, by their names.
    sessions: RefCell<HashMap<String, Met>>,
    pub(crate) standing: Drawer,
    /// Brakes that were looked at, as they are stored.
    pub(crate) brakes: RefCell<HashMap<String, Option<Vec<u8>>>>,
    /// Sessions of which it was asked whether a success is news to them.
    untroubled: RefCell<HashMap<i64, bool>>,
    /// Is anything missed by any call? Nothing while nobody has asked.
    misses: Cell<Option<bool>>,
    /// Calls that begin and end here, by their sessions and names, and the places of their drafts.
    brief: HashMap<(&'e str, &'e str), usize>,
    drafts: RefCell<Vec<Option<Draft>>>,
    /// The number of the next call, where somebody has asked.
    next_call: Cell<Option<i64>>,
}

/// A session that was heard of.
struct Met {
    id: i64,
    cwd: String,
    /// When it was heard of last, as it is stored.
    stored_at: u64,
    /// And by now.
    last_at: u64,
    is_paired: bool,
}

/// A call that has begun and is written when it ends.
struct Draft {
    session: i64,
    found: Found,
}

/// How far a call has come among the entries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    Begun,
    Ended,
    /// It is told of in another way than once at its beginning and once at its end.
    Odd,
}

impl<'e> Desk<'e> {
    /// A desk for entries that are all mere routine, and all that will be written.
    pub(crate) fn for_routine(entries: &'e [Entry]) -> Desk<'e> {
        let mut courses: HashMap<(&str, &str), Course> = HashMap::new();
        for (asked, then) in entries.iter().filter_map(routine) {
            courses
                .entry((&asked.who.session, &asked.key))
                .and_modify(|course| {
                    let is_whole = (*course, then) == (Course::Begun, Course::Ended);
                    *course = if is_whole { Course::Ended } else { Course::Odd };
                })
                .or_insert(if then == Course::Begun { Course::Begun } else { Course::Odd });
        }
        let brief = courses.into_iter().filter(|(_, course)| *course == Course::Ended);
        let brief: HashMap<_, _> = brief.map(|(name, _)| name).zip(0..).collect();
        let drafts = RefCell::new(brief.iter().map(|_| None).collect());
        Desk { brief, drafts, ..Desk::default() }
    }

    /// Writes what changed and was not written yet.
    pub(crate) fn clear(self, connection: &Connection) -> Result<(), rusqlite::Error> {
        for met in self.sessions.take().into_values().filter(|met| met.last_at > met.stored_at) {
            connection
                .prepare_cached("UPDATE session SET last_at = ?2 WHERE id = ?1")?
                .execute((met.id, met.last_at.cast_signed()))?;
        }
        self.standing.clear(connection)
    }

    /// The number of a session that is heard of again, in the place where it was.
    pub(crate) fn meet(&self, who: &Who) -> Option<i64> {
        let mut sessions = self.sessions.borrow_mut();
        let met = sessions.get_mut(&*who.session)?;
        if !who.cwd.is_empty() && met.cwd != *who.cwd {
            return None;
        }
        met.last_at = met.last_at.max(who.at);
        Some(met.id)
    }

    /// A session was written, and is there for others to meet.
    pub(crate) fn note_session(&self, who: &Who, id: i64, stored_at: u64) {
        let mut sessions = self.sessions.borrow_mut();
        let is_paired = sessions.get(&*who.session).is_some_and(|met| met.is_paired);
        let last_at = sessions.get(&*who.session).map_or(stored_at, |met| met.last_at.max(stored_at));
        let met = Met { id, cwd: who.cwd.to_string(), stored_at, last_at, is_paired };
        sessions.insert(who.session.to_string(), met);
    }

    /// When a session was heard of last, where it was heard of here.
    pub(crate) fn last_heard(&self, who: &Who) -> Option<u64> {
        self.sessions.borrow().get(&*who.session).map(|met| met.last_at)
    }

    /// Is this the first pair of a session that is seen here?
    pub(crate) fn is_first_pair(&self, who: &Who) -> bool {
        let mut sessions = self.sessions.borrow_mut();
        !sessions.get_mut(&*who.session).is_some_and(|met| std::mem::replace(&mut met.is_paired, true))
    }

    /// Whether a success is no news to a session, as it was `found` the first time somebody asked.
    pub(crate) fn is_untroubled(
        &self,
        session: i64,
        found: impl FnOnce() -> Result<bool, rusqlite::Error>,
    ) -> Result<bool, rusqlite::Error> {
        if let Some(known) = self.untroubled.borrow().get(&session) {
            return Ok(*known);
        }
        let is_untroubled = found()?;
        self.untroubled.borrow_mut().insert(session, is_untroubled);
        Ok(is_untroubled)
    }

    /// Whether anything is missed by any call, as it was `found` the first time somebody asked.
    pub(crate) fn is_something_missed(
        &self,
        found: impl FnOnce() -> Result<bool, rusqlite::Error>,
    ) -> Result<bool, rusqlite::Error> {
        let misses = self.misses.get().map_or_else(found, Ok)?;
        self.misses.set(Some(misses));
        Ok(misses)
    }

    /// Does this call end here as well?
    pub(crate) fn is_brief(&self, asked: &Asked) -> bool {
        self.place(asked).is_some()
    }

    /// Is a call that is the same under way here?
    pub(crate) fn has_draft_of(&self, session: i64, print: &Fingerprint) -> bool {
        let is_same = |draft: &Draft| draft.session == session && draft.found.call_print == print.as_str();
        self.drafts.borrow().iter().flatten().any(is_same)
    }

    /// Puts a call by that is written when it ends.
    pub(crate) fn put_draft(&self, session: i64, asked: &Asked, found: Found) {
        if let Some(place) = self.place(asked) {
            self.drafts.borrow_mut()[place] = Some(Draft { session, found });
        }
    }

    /// A call that ends and was put by.
    pub(crate) fn take_draft(&self, asked: &Asked) -> Option<Found> {
        let place = self.place(asked)?;
        self.drafts.borrow_mut()[place].take().map(|draft| draft.found)
    }

    fn place(&self, asked: &Asked) -> Option<usize> {
        self.brief.get(&(&*asked.who.session, &*asked.key)).copied()
    }

    /// The number of a new call; nothing where the table may choose it, because nothing is put by.
    pub(crate) fn number(&self, connection: &Connection) -> Result<Option<i64>, rusqlite::Error> {
        if self.brief.is_empty() {
            return Ok(None);
        }
        let next = match self.next_call.get() {
            Some(next) => next,
            None => connection
                .prepare_cached("SELECT ifnull(max(id), 0) + 1 FROM call")?
                .query_row([], |row| row.lenient(0))?,
        };
        self.next_call.set(Some(next + 1));
        Ok(Some(next))
    }
}

/// Is an entry mere routine?
pub(crate) fn is_routine(entry: &Entry) -> bool {
    routine(entry).is_some()
}

/// The call of an entry that only says that it runs already, or that it went well. Nearly all do, and none of them asks for what
/// others at the same desk have not written yet.
fn routine(entry: &Entry) -> Option<(&Asked, Course)> {
    let (asked, course) = match entry {
        Entry::Asked(asked) if asked.sender == Sender::Runner => (&**asked, Course::Begun),
        Entry::Ended(ended) if ended.ending.upshot == Upshot::Fine && ended.outcome != Outcome::Denied => {
            (&ended.asked, Course::Ended)
        }
        Entry::Asked(_)
        | Entry::Ended(_)
        | Entry::Retrying(_)
        | Entry::Ruled { .. }
        | Entry::UserSpoke(_)
        | Entry::Later { .. }
        | Entry::Began(_)
        | Entry::Shortened(_)
        | Entry::AgentDone(_)
        | Entry::Over(_)
        | Entry::OwnFault(_)
        | Entry::HookFault(_)
        | Entry::Safe(_)
        | Entry::Server(_) => return None,
    };
    (!asked.key.is_empty() && !asked.user_spoke).then_some((asked, course))
}
