//! Keeps entries, come what may: one transaction each, or a line in the spool. It never fails and never waits for long,
//! because an agent waits for it.

use std::borrow::Cow;
use std::iter;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use unstuck_wire::clean::{Clean, Cleaner};

use crate::advocate::{Advocate, Inquiry, ROUNDS};
use crate::brake::{self, Retry};
use crate::database::{self, Durability};
use crate::desk::{self, Desk};
use crate::entry::{Ended, Entry, Hears, OwnFault, RetryAsk, Who};
use crate::error::{Foreign, StoreError};
use crate::filesystem::Filesystem;
use crate::hook_times::{self, Phase};
use crate::record::{Bench, Clerk, Said};
use crate::root::Root;
use crate::safe::SafeDeed;
use crate::scanned::{self, Scanned};
use crate::seal::{self, Sealed};
use crate::spool::{self, Spool, Take, Taken};
use crate::standing;
use crate::store::Store;
use crate::tool_errors;

/// How many waiting lines one short process takes in.
const AT_ONCE: usize = 200;

/// So many entries at once are many: more come at once.
const MANY: usize = 32;

/// How long to wait for other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Before a call.
    pub before: Duration,
    /// After it.
    pub after: Duration,
}

impl Patience {
    /// The same, and no longer than this.
    #[must_use]
    pub fn at_most(self, most: Duration) -> Patience {
        Patience { before: self.before.min(most), after: self.after.min(most) }
    }
}

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// It stands in the database, and the disk has confirmed it: it survives a power cut.
    Stored,
    /// It stands in the database. It survives the end of every process, but a power cut may take the last seconds of such entries.
    Recorded,
    /// It waits in the spool.
    Spooled {
        /// Why.
        why: String,
    },
    /// It is lost: not even the spool could be written.
    Lost {
        /// Why.
        why: String,
    },
}

impl Kept {
    /// Does it stand in the database?
    pub fn is_in_database(&self) -> bool {
        match self {
            Kept::Stored | Kept::Recorded => true,
            Kept::Spooled { .. } | Kept::Lost { .. } => false,
        }
    }

    fn after(durability: Durability) -> Kept {
        match durability {
            Durability::Process => Kept::Recorded,
            Durability::Power => Kept::Stored,
        }
    }
}

/// What is said about an entry, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What is said.
    pub said: Said,
    /// What became of it.
    pub kept: Kept,
}

/// What a keeper needs from outside.
pub struct Surroundings<'a> {
    /// The folder.
    pub root: &'a Path,
    /// What it lies on, where somebody knows better than we do.
    pub believed: Option<Filesystem>,
    /// By what entries are judged.
    pub bench: Bench,
    /// How long to wait.
    pub patience: Patience,
    /// Does the process that an owner names still run?
    pub is_alive: &'a dyn Fn(&str) -> bool,
    /// Cleans what we say about our own faults.
    pub cleaner: &'a Cleaner,
    /// A number that no other process has.
    pub dice: u64,
}

/// Keeps the entries of one process.
pub struct Keeper<'a> {
    around: Surroundings<'a>,
    root: Result<Root, String>,
    store: Option<Store>,
    entries: u64,
    rests: bool,
    /// Whether the database took the last entry; nothing where none was handed to it.
    worked: Option<bool>,
}

/// What tending the store did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tended {
    /// Entries taken in from the spool.
    pub taken: u64,
    /// Calls that were found dead.
    pub sealed: Vec<Sealed>,
}

impl<'a> Keeper<'a> {
    /// Looks at the folder. Nothing is opened before it is needed.
    pub fn new(around: Surroundings<'a>) -> Keeper<'a> {
        let root = match around.root.as_os_str().is_empty() {
            true => Err("there is no folder to keep anything in".to_owned()),
            false => Root::open(around.root, around.believed.clone()).map_err(|error| error.to_string()),
        };
        Keeper { around, root, store: None, entries: 0, rests: false, worked: None }
    }

    /// Keeps one entry.
    pub fn keep(&mut self, entry: &Entry, now: u64) -> Answer {
        self.keep_or(entry, now, None)
    }

    /// Keeps one entry. A call that is about to be refused runs with other words where `advocate` finds some.
    pub fn keep_or(&mut self, entry: &Entry, now: u64, advocate: Option<&dyn Advocate>) -> Answer {
        let root = match &self.root {
            Ok(root) => root.clone(),
            Err(why) => return Answer { said: Said::default(), kept: Kept::Lost { why: why.clone() } },
        };
        if self.rests {
            let kept = self.put_by(&root, entry, "the store rests after faults in a row", now);
            return Answer { said: Said::default(), kept };
        }
        let result = match self.record(&root, entry, now, advocate) {
            Err(StoreError::Damaged { .. }) => {
                self.look_again(&root, now).and_then(|()| self.record(&root, entry, now, advocate))
            }
            result => result,
        };
        match result {
            Ok(said) => {
                self.worked = Some(true);
                Answer { said, kept: Kept::after(durability(entry)) }
            }
            Err(error) => {
                self.worked = match error {
                    // Asking costs nothing, and room is made by a person, who expects it to be used at once.
                    StoreError::Network { .. } | StoreError::Full { .. } => self.worked,
                    StoreError::NotOurs { .. }
                    | StoreError::TooNew { .. }
                    | StoreError::Busy { .. }
                    | StoreError::Damaged { .. }
                    | StoreError::Missing { .. }
                    | StoreError::Io { .. }
                    | StoreError::Sql { .. } => Some(false),
                };
                let kept = self.put_by(&root, entry, &error.to_string(), now);
                Answer { said: Said::default(), kept }
            }
        }
    }

    /// From now on entries go straight to the spool, or no longer do.
    pub fn rest(&mut self, rests: bool) {
        self.rests = rests;
    }

    /// Tells whether the database took the last entry that was handed to it since this was asked before.
    pub fn take_worked(&mut self) -> Option<bool> {
        self.worked.take()
    }

    /// Puts an entry into the spool, because of `error`.
    fn put_by(&mut self, root: &Root, entry: &Entry, error: &str, now: u64) -> Kept {
        self.store = None;
        self.entries += 1;
        let id = self.around.dice.wrapping_add(self.entries);
        let entry = self.as_it_waits(entry);
        match Spool::of(root).append(&entry, id, now) {
            Ok(()) => Kept::Spooled { why: error.to_owned() },
            Err(spool) => Kept::Lost { why: format!("{error}; {spool}") },
        }
    }

    /// Keeps several entries, in their order, as if one after the other; where all goes well it takes one transaction. Where one
    /// of them is refused, each is kept by itself. For each call that is about to be refused its own of `advocates` is asked.
    pub fn keep_together(
        &mut self,
        entries: &[Entry],
        advocates: &[Option<&dyn Advocate>],
        now: u64,
    ) -> Vec<Answer> {
        let pairs = || entries.iter().zip(advocates.iter().copied().chain(iter::repeat(None)));
        let root = match &self.root {
            Ok(root) if entries.len() > 1 && !self.rests => root.clone(),
            Ok(_) | Err(_) => {
                return pairs().map(|(entry, advocate)| self.keep_or(entry, now, advocate)).collect();
            }
        };
        let inquiries: Vec<Inquiry<'_>> = pairs().map(|(_, advocate)| Inquiry::with(advocate)).collect();
        match self.record_together(&root, entries, &inquiries, now) {
            Ok(all) => {
                let kept = Kept::after(durability_of_all(entries));
                all.into_iter().map(|said| Answer { said, kept: kept.clone() }).collect()
            }
            // Everybody has waited already, and nobody waits for the same once more.
            Err(error @ StoreError::Busy { .. }) => {
                let spooled = entries.iter().map(|entry| Answer {
                    said: Said::default(),
                    kept: self.put_by(&root, entry, &error.to_string(), now),
                });
                spooled.collect()
            }
            Err(_) => pairs().map(|(entry, advocate)| self.keep_or(entry, now, advocate)).collect(),
        }
    }

    /// Writes several entries in one transaction: all of them or none.
    fn record_together(
        &mut self,
        root: &Root,
        entries: &[Entry],
        inquiries: &[Inquiry<'_>],
        now: u64,
    ) -> Result<Vec<Said>, StoreError> {
        let spool = Spool::of(root);
        let (said, taken) = {
            let around = &self.around;
            let patience = around.patience.before.min(around.patience.after);
            let store = opened(&mut self.store, root, patience, now)?;
            let longest_log = match entries.len() {
                0..MANY => database::LONGEST_LOG,
                _ => database::LONGEST_LOG_OF_MANY,
            };
            answered(inquiries, |is_done| {
                store.write_with(longest_log, durability_of_all(entries), |connection| {
                    let taken = take_in(around, connection, &spool, now)?;
                    let mut inquiry = inquiries.iter();
                    let mut said = Vec::with_capacity(entries.len());
                    for alike in entries.chunk_by(|one, next| desk::is_routine(one) && desk::is_routine(next))
                    {
                        let desk = match alike {
                            [_] => Desk::default(),
                            routine => Desk::for_routine(routine),
                        };
                        for (entry, inquiry) in alike.iter().zip(&mut inquiry) {
                            said.push(write(around, connection, &desk, entry, Now::Yes(inquiry))?);
                        }
                        desk.clear(connection)?;
                    }
                    is_done()?;
                    Ok((said, taken))
                })
            })?
        };
        spool.settle(taken);
        Ok(said)
    }

    /// Is something known to fail in a session? Yes where nobody can tell.
    pub fn knows_failures(&self, session: &str) -> bool {
        self.store
            .as_ref()
            .is_none_or(|store| standing::knows_failures(&store.connection, session).unwrap_or(true))
    }

    /// An entry as it goes to the spool. By the time it is read nobody can tell any more whether an attempt was the last one, so
    /// that is said now.
    fn as_it_waits<'e>(&self, entry: &'e Entry) -> Cow<'e, Entry> {
        let Entry::Ended(ended) = entry else { return Cow::Borrowed(entry) };
        let is_one_of_many =
            |ask: &&RetryAsk| ask.series.is_some() && ended.asked.who.hears == Hears::Everything;
        let ask = ended.retry.as_ref().filter(is_one_of_many);
        match ask.and_then(|ask| self.retry_without_memory(ended, ask)) {
            Some(Retry::Again { .. }) => {
                Cow::Owned(Entry::Ended(Box::new(Ended { was_sent_again: true, ..(**ended).clone() })))
            }
            Some(Retry::Stop { .. }) | None => Cow::Borrowed(entry),
        }
    }

    /// Keeps many entries at once, and how far the files were read that they come from: all of it or nothing. Nobody waits for
    /// an answer, so nothing goes to the spool; whoever calls says what went wrong. An entry that the tables refuse is left
    /// out, and nothing is said of it.
    pub fn keep_all(
        &mut self,
        entries: &[Entry],
        read: &[(String, Scanned)],
        now: u64,
    ) -> Result<Vec<Said>, StoreError> {
        let root = self.root()?;
        let around = &self.around;
        let store = opened(&mut self.store, &root, around.patience.after, now)?;
        store.write(|connection| {
            for (file, scanned) in read {
                scanned::note(connection, file, scanned)?;
            }
            let nobody = Inquiry::default();
            let keep =
                |entry| set_apart(connection, || write_alone(around, connection, entry, Now::Yes(&nobody)));
            entries.iter().map(|entry| Ok(keep(entry)?.unwrap_or_default())).collect()
        })
    }

    /// A database that calls itself damaged is looked at once more before anything is believed.
    fn look_again(&mut self, root: &Root, now: u64) -> Result<(), StoreError> {
        self.store = None;
        let aside = database::set_aside_if_damaged(root, self.around.patience.after, now)?;
        if let Some(folder) = aside {
            let what = format!("a damaged database was set aside as {}", folder.display());
            let fault =
                OwnFault { at: now, part: Clean::from("store"), what: self.around.cleaner.line(&what, 400) };
            self.record(root, &Entry::OwnFault(fault), now, None)?;
        }
        Ok(())
    }

    fn record(
        &mut self,
        root: &Root,
        entry: &Entry,
        now: u64,
        advocate: Option<&dyn Advocate>,
    ) -> Result<Said, StoreError> {
        let patience = match entry {
            Entry::Asked(_) => self.around.patience.before,
            Entry::Ended(_)
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
            | Entry::Server(_) => self.around.patience.after,
        };
        let spool = Spool::of(root);
        let (said, taken) = {
            let around = &self.around;
            let store = opened(&mut self.store, root, patience, now)?;
            let inquiry = Inquiry::with(advocate);
            answered(std::slice::from_ref(&inquiry), |is_done| {
                store.write_with(database::LONGEST_LOG, durability(entry), |connection| {
                    let taken = take_in(around, connection, &spool, now)?;
                    let said = write_alone(around, connection, entry, Now::Yes(&inquiry))?;
                    is_done()?;
                    Ok((said, taken))
                })
            })?
        };
        spool.settle(taken);
        Ok(said)
    }

    /// The folder, if it can be used.
    fn root(&self) -> Result<Root, StoreError> {
        let not_ours =
            |why| StoreError::NotOurs { path: self.around.root.to_owned(), why: Foreign::Found(why) };
        self.root.clone().map_err(not_ours)
    }

    /// Whether a call is sent again, where its end could not be recorded.
    pub fn retry_without_memory(&self, ended: &Ended, ask: &RetryAsk) -> Option<Retry> {
        brake::retry_without_memory(&self.around.bench.retry, ended, ask)
    }

    /// Writes down how long this process took.
    pub fn note_time(&self, phase: Phase, took: Duration, now: u64) {
        if let Ok(root) = &self.root {
            hook_times::note(root, phase, took, now);
        }
    }

    /// Takes in the whole spool and seals dead calls of every session, in small transactions.
    pub fn tend(&mut self, now: u64) -> Result<Tended, StoreError> {
        let root = self.root()?;
        match self.tend_once(&root, now) {
            Err(StoreError::Damaged { .. }) => {
                self.look_again(&root, now)?;
                self.tend_once(&root, now)
            }
            result => result,
        }
    }

    fn tend_once(&mut self, root: &Root, now: u64) -> Result<Tended, StoreError> {
        let around = &self.around;
        let spool = Spool::of(root);
        let store = opened(&mut self.store, root, around.patience.after, now)?;
        let mut tended = Tended::default();
        loop {
            let taken = store.write(|connection| take_in(around, connection, &spool, now))?;
            let entries: u64 = taken.iter().map(|taken| taken.entries).sum();
            tended.taken += entries;
            spool.settle(taken);
            if entries == 0 {
                break;
            }
        }
        store.write(|connection| spool::forget_old(connection, now))?;
        let death =
            seal::Death { before: now.saturating_sub(around.bench.seal_after), is_alive: around.is_alive };
        tended.sealed =
            store.write(|connection| seal::dead_everywhere(connection, &death, now, around.bench.lang))?;
        Ok(tended)
    }

    /// A session goes on in this process. Returns the calls that nobody told it of before, and whose processes are gone.
    /// What cannot be read now cannot be told, so nothing goes to the spool.
    pub fn resume(
        &mut self,
        who: &Who,
        now: u64,
        is_alive: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Sealed>, StoreError> {
        let root = self.root()?;
        let around = &self.around;
        let spool = Spool::of(&root);
        let store = opened(&mut self.store, &root, around.patience.after, now)?;
        let (sealed, taken) = store.write(|connection| {
            let taken = take_in(around, connection, &spool, now)?;
            let (desk, bench) = (Desk::default(), &around.bench);
            let inquiry = Inquiry::default();
            let clerk = Clerk { connection, desk: &desk, bench, is_alive, late: false, inquiry: &inquiry };
            let sealed = clerk.resumed(who)?;
            desk.clear(connection)?;
            Ok((sealed, taken))
        })?;
        spool.settle(taken);
        Ok(sealed)
    }

    /// From now on other processes are waited for as long as this.
    pub fn wait_at_most(&mut self, patience: Patience) {
        self.around.patience = patience;
    }

    /// The database itself, opened where it was not needed yet.
    pub fn store(&mut self, now: u64) -> Result<&Store, StoreError> {
        let root = self.root()?;
        opened(&mut self.store, &root, self.around.patience.after, now).map(|store| &*store)
    }

    /// Does a person let this call run, whatever speaks against it? Where the entry before it went to the spool, nobody knows.
    pub fn is_allowed(&self, key: &str, now: u64) -> bool {
        self.store.as_ref().is_some_and(|store| store.is_allowed(key, now).unwrap_or(false))
    }

    /// Writes the failures of a session where other tools look for them. Nothing is done where the entries before it went
    /// to the spool: the next process that reaches the database does it.
    pub fn write_tool_errors(&self, session: &str) -> Result<(), StoreError> {
        match &self.store {
            Some(store) => store.write_tool_errors(session).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Is there a file with the failures of a session, which a success may change?
    pub fn has_tool_errors(&self, session: &str) -> bool {
        self.store.as_ref().is_some_and(|store| tool_errors::exists(store.root(), session))
    }

    /// What the spool alone tells, where no database may be used: a store that is gone when it is dropped.
    pub fn from_spool(&self, now: u64) -> Result<Store, StoreError> {
        let root = self.root()?;
        let mut store = Store::in_memory(&root)?;
        let spool = Spool::of(&root);
        while store
            .write(|connection| take_in(&self.around, connection, &spool, now))?
            .iter()
            .any(|t| t.entries > 0)
        {}
        Ok(store)
    }
}

/// A power cut must not take the word of a snapshot that a call relies on. All other entries can wait for the next fold.
fn durability(entry: &Entry) -> Durability {
    match entry {
        Entry::Safe(note) if matches!(note.deed, SafeDeed::Taken { .. }) => Durability::Power,
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
        | Entry::Server(_) => Durability::Process,
    }
}

fn durability_of_all(entries: &[Entry]) -> Durability {
    match entries.iter().any(|entry| durability(entry) == Durability::Power) {
        true => Durability::Power,
        false => Durability::Process,
    }
}

fn opened<'s>(
    place: &'s mut Option<Store>,
    root: &Root,
    patience: Duration,
    now: u64,
) -> Result<&'s mut Store, StoreError> {
    // A database that was set aside meanwhile takes what is written to it along.
    let store = match place.take().filter(Store::is_in_place) {
        Some(mut store) => {
            store.wait_at_most(patience)?;
            store
        }
        None => Store::to_write(root, patience, now)?,
    };
    Ok(place.insert(store))
}

/// Does some work until none of the inquiries has an open question. Work that asked something is given up before its end, so
/// that nobody waits for the database while the answer is looked for.
fn answered<T>(
    inquiries: &[Inquiry<'_>],
    mut work: impl FnMut(&dyn Fn() -> Result<(), rusqlite::Error>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let asks = || inquiries.iter().any(Inquiry::is_open);
    let give_up = || match asks() {
        true => Err(rusqlite::Error::ToSqlConversionFailure("a question is open".into())),
        false => Ok(()),
    };
    for _ in 1..ROUNDS {
        match work(&give_up) {
            Err(_) if asks() => inquiries.iter().for_each(Inquiry::look),
            result => return result,
        }
    }
    work(&|| Ok(()))
}

fn take_in(
    around: &Surroundings<'_>,
    connection: &Connection,
    spool: &Spool,
    now: u64,
) -> Result<Vec<Taken>, rusqlite::Error> {
    match spool.is_waiting() {
        true => spool.take_in(connection, AT_ONCE, now, &Late { around, connection, now }),
        false => Ok(Vec::new()),
    }
}

/// Does one piece of work among others. What the tables refuse of it is undone and handed back, and the others stay.
fn set_apart<T>(
    connection: &Connection,
    work: impl FnOnce() -> Result<T, rusqlite::Error>,
) -> Result<Result<T, rusqlite::Error>, rusqlite::Error> {
    connection.prepare_cached("SAVEPOINT apart")?.execute([])?;
    let release = || connection.prepare_cached("RELEASE apart")?.execute([]);
    match work() {
        Ok(done) => {
            release()?;
            Ok(Ok(done))
        }
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            connection.execute_batch("ROLLBACK TO apart")?;
            release()?;
            Ok(Err(error))
        }
        Err(error) => Err(error),
    }
}

/// Does somebody wait for the answer?
enum Now<'a> {
    /// Yes, and may speak for a call that is refused.
    Yes(&'a Inquiry<'a>),
    /// No: it comes from the spool.
    Late,
}

/// Writes one entry at a desk of its own.
fn write_alone(
    around: &Surroundings<'_>,
    connection: &Connection,
    entry: &Entry,
    now: Now<'_>,
) -> Result<Said, rusqlite::Error> {
    let desk = Desk::default();
    let said = write(around, connection, &desk, entry, now)?;
    desk.clear(connection)?;
    Ok(said)
}

fn write(
    around: &Surroundings<'_>,
    connection: &Connection,
    desk: &Desk<'_>,
    entry: &Entry,
    now: Now<'_>,
) -> Result<Said, rusqlite::Error> {
    let nobody = Inquiry::default();
    let (late, inquiry) = match now {
        Now::Yes(inquiry) => (false, inquiry),
        Now::Late => (true, &nobody),
    };
    let clerk = Clerk { connection, desk, bench: &around.bench, is_alive: around.is_alive, late, inquiry };
    match entry {
        Entry::Asked(asked) => clerk.asked(asked),
        Entry::Ended(ended) => clerk.ended(ended),
        Entry::Retrying(retrying) => clerk.retrying(retrying),
        Entry::Ruled { who, which, ruling, by, note } => clerk.ruled(who, which, *ruling, (by, note)),
        Entry::UserSpoke(who) => clerk.user_spoke(who),
        Entry::Later { who, key, outcome, line } => clerk.ended_later(who, key, *outcome, line),
        Entry::Began(who) => clerk.began(who),
        Entry::Shortened(who) => clerk.shortened(who),
        Entry::AgentDone(who) => clerk.agent_done(who),
        Entry::Over(who) => clerk.over(who),
        Entry::OwnFault(fault) => clerk.own_fault(fault),
        Entry::HookFault(fault) => clerk.hook_fault(fault),
        Entry::Safe(note) => clerk.safe(note),
        Entry::Server(note) => clerk.server(note),
    }
}

/// Records what waited in the spool.
struct Late<'a> {
    around: &'a Surroundings<'a>,
    connection: &'a Connection,
    now: u64,
}

impl Take for Late<'_> {
    /// One entry that the tables refuse must not keep all others from being taken in.
    fn entry(&self, entry: &Entry) -> Result<(), rusqlite::Error> {
        match set_apart(self.connection, || write_alone(self.around, self.connection, entry, Now::Late))? {
            Ok(_) => Ok(()),
            Err(refused) => self.unreadable(&refused.to_string()),
        }
    }

    fn unreadable(&self, line: &str) -> Result<(), rusqlite::Error> {
        let what = self.around.cleaner.line(&format!("a line of the spool cannot be read: {line}"), 200);
        let fault = OwnFault { at: self.now, part: Clean::from("spool"), what };
        write_alone(self.around, self.connection, &Entry::OwnFault(fault), Now::Late).map(|_| ())
    }
}
