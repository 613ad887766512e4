//! A folder with nothing in it, and entries that reach it through the one door, each from a process of its own.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;
use unstuck_judge::ladder::{self, Preset, Reason, Round};
use unstuck_judge::retry::Policy;
use unstuck_judge::{Call, Lang, Observation, Outcome, Rules};
use unstuck_store::{
    Advocate, Answer, Asked, Bench, Bounds, Checked, Ended, Entry, Failed, Filesystem, Hears, Keeper, Kept,
    Mode, Modes, Patience, ProblemAges, Root, Ruling, Source, Store, Surroundings, Which, Who,
};
use unstuck_wire::clean::{Clean, Cleaner};
use unstuck_wire::report::Report;

pub(crate) const HOUR: u64 = 60 * 60 * 1000;
pub(crate) const DAY: u64 = 24 * HOUR;
/// Some day in 2026.
pub(crate) const NOW: u64 = 1_790_000_000_000;

/// A world in which every look shows the same.
pub(crate) struct World(pub(crate) Checked);

impl Advocate for World {
    fn check(&self, _: &Reason, _: Failed) -> Checked {
        self.0
    }
}

pub(crate) struct Cellar {
    pub(crate) folder: TempDir,
    pub(crate) cleaner: Cleaner,
    pub(crate) rules: Rules,
    pub(crate) filesystem: Option<Filesystem>,
    pub(crate) policy: Cow<'static, Policy>,
    pub(crate) now: u64,
    pub(crate) dice: u64,
    pub(crate) session: &'static str,
    pub(crate) cwd: &'static str,
    /// How its calls come to be known.
    pub(crate) source: Source,
    /// What a look at the cause of a failure shows.
    pub(crate) looks: Checked,
}

pub(crate) fn observation(command: &str, outcome: Outcome, printed: &str) -> Observation {
    Observation {
        call: Call::shell(command),
        outcome,
        http_status: None,
        stdout: Vec::new(),
        stderr: printed.as_bytes().to_vec(),
        merged: Vec::new(),
    }
}

impl Cellar {
    pub(crate) fn empty() -> Cellar {
        Cellar {
            folder: tempfile::tempdir().unwrap(),
            cleaner: Cleaner::new(None, []),
            rules: Rules::built_in(),
            filesystem: None,
            policy: Cow::Borrowed(Policy::built_in()),
            now: NOW,
            dice: 0,
            session: "s",
            cwd: "",
            source: Source::Hook,
            looks: Checked::Holds,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn database(&self) -> Connection {
        Connection::open(self.root().join("timeline.db")).unwrap()
    }

    /// A process of its own, for one entry.
    pub(crate) fn keep(&mut self, entry: &Entry) -> Answer {
        self.now += 1000;
        self.dice += 1_000_000;
        let now = self.now;
        let world = World(self.looks);
        self.keeper(|keeper| keeper.keep_or(entry, now, Some(&world)))
    }

    /// An entry for a folder that belongs to others as well.
    pub(crate) fn keep_in(&self, root: &Path, entry: &Entry) -> Answer {
        self.keeper_in(root, |keeper| keeper.keep(entry, self.now))
    }

    pub(crate) fn keeper<T>(&self, work: impl FnOnce(&mut Keeper<'_>) -> T) -> T {
        self.keeper_in(&self.root(), work)
    }

    fn keeper_in<T>(&self, root: &Path, work: impl FnOnce(&mut Keeper<'_>) -> T) -> T {
        let is_alive = |owner: &str| owner != "dead:1";
        let bench = Bench {
            ladder: ladder::Settings::of(Preset::Adaptive),
            modes: Modes::all(Mode::Enforce),
            retry: self.policy.clone(),
            hold_max: Duration::from_secs(2),
            lang: Lang::En,
            seal_after: 6 * HOUR,
            problems: ProblemAges::default(),
        };
        work(&mut Keeper::new(Surroundings {
            root,
            believed: self.filesystem.clone(),
            bench,
            patience: Patience { before: Duration::from_millis(30), after: Duration::from_millis(30) },
            is_alive: &is_alive,
            cleaner: &self.cleaner,
            dice: self.dice,
        }))
    }

    pub(crate) fn who(&self) -> Who {
        Who {
            host: Clean::from("generic"),
            hook: Clean::default(),
            session: Clean::from(self.session),
            agent: Clean::from("main"),
            cwd: Clean::from(self.cwd),
            place: Clean::from(self.cwd),
            owner: Clean::default(),
            source: self.source,
            hears: Hears::Everything,
            round: Round::Unsaid,
            at: self.now + 1000,
        }
    }

    pub(crate) fn asked(&self, key: &str, command: &str) -> Asked {
        Asked::new(&self.cleaner, &Bounds::default(), self.who(), key, &Call::shell(command))
    }

    pub(crate) fn before(&mut self, key: &str, command: &str) -> Answer {
        let asked = self.asked(key, command);
        self.keep(&Entry::Asked(Box::new(asked)))
    }

    pub(crate) fn after(&mut self, key: &str, command: &str, code: i32, printed: &str) -> Answer {
        self.end(key, command, Outcome::Exited { code }, printed)
    }

    pub(crate) fn end(&mut self, key: &str, command: &str, outcome: Outcome, printed: &str) -> Answer {
        let ended = self.ended(key, &observation(command, outcome, printed));
        self.keep(&Entry::Ended(Box::new(ended)))
    }

    pub(crate) fn ended(&self, key: &str, observation: &Observation) -> Ended {
        let report = Report::new(self.rules.diagnose(observation), &observation.call, Lang::En);
        let asked = Asked::new(&self.cleaner, &Bounds::default(), self.who(), key, &observation.call);
        let said_ok = observation.outcome.said_ok();
        Ended::new(&self.cleaner, &Bounds::default(), asked, observation, said_ok, &report)
    }

    pub(crate) fn store(&self) -> Store {
        let root = Root::open(&self.root(), None).unwrap();
        Store::to_write(&root, Duration::from_secs(1), self.now).unwrap()
    }

    /// Every call, one line each.
    pub(crate) fn calls(&self) -> Vec<String> {
        let database = self.database();
        let mut statement = database
            .prepare(
                "SELECT key, state, attempt, ifnull(kind, '-'), repeat, recovered_at IS NOT NULL FROM call ORDER BY id",
            )
            .unwrap();
        let rows = statement.query_map([], |row| {
            let (key, state, attempt): (String, String, u32) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (kind, repeat, recovered): (String, bool, bool) = (row.get(3)?, row.get(4)?, row.get(5)?);
            let mut line = format!("{key} {state} {attempt} {kind}");
            line += if repeat { " repeat" } else { "" };
            line += if recovered { " recovered" } else { "" };
            Ok(line)
        });
        rows.unwrap().map(Result::unwrap).collect()
    }

    /// The types of all events.
    pub(crate) fn events(&self) -> Vec<String> {
        let database = self.database();
        let mut statement = database.prepare("SELECT type FROM event ORDER BY seq").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// The events, each with the number of its call.
    pub(crate) fn events_of_calls(&self) -> Vec<String> {
        let database = self.database();
        let sql = "SELECT type || ' ' || ifnull(call, '-') FROM event ORDER BY seq";
        let mut statement = database.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.root().join("spool/spool.jsonl")
    }

    /// Holds the write lock while something is done.
    pub(crate) fn locked<T>(&mut self, work: impl FnOnce(&mut Cellar) -> T) -> T {
        let holder = self.database();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        let done = work(self);
        holder.execute_batch("COMMIT").unwrap();
        done
    }
}

/// What agent programs tell of a person's decision.
pub(crate) fn by_person(who: Who, which: Which, ruling: Ruling) -> Entry {
    Entry::Ruled { who, which, ruling, by: Clean::from("person"), note: Clean::default() }
}

pub(crate) fn kept(answer: &Answer) -> &'static str {
    match answer.kept {
        Kept::Stored => "stored",
        Kept::Recorded => "recorded",
        Kept::Spooled { .. } => "spooled",
        Kept::Lost { .. } => "lost",
    }
}

pub(crate) const MISSING: &str = "bash: frob: command not found";
