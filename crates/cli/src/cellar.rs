//! The way down to the store: which folder, opened how, judged by what, at what time.

use std::cell::Cell;
use std::env;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use unstuck_exec::alive;
use unstuck_judge::Lang;
use unstuck_judge::ladder;
use unstuck_judge::retry::{Dice, Draw};
use unstuck_store::{
    Bench, Bounds, Entry, Filesystem, Keeper, Kept, Mode, Modes, Patience, ProblemAges, Retention, Root,
    Store, StoreError, Surroundings, Tended,
};
use unstuck_wire::clean::Cleaner;
use unstuck_wire::time;

use crate::breaker::Breaker;
use crate::desk::Desk;
use crate::exit::CommandError;
use crate::person;
use crate::rewriter::Rewriter;
use crate::settings::{self, Around, Settings, SettingsError, StateDir};

/// How long a command that a person waits for may wait for another process.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may wait to take in what waits in the spool, where it only wants to read.
const READING_PATIENCE: Duration = Duration::from_millis(500);

/// Why what waits in the spool could not be taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Another process held the store.
    Held,
    /// There is no room.
    Full,
    /// A newer version wrote the store.
    TooNew {
        /// Its format.
        found: u32,
        /// The newest that is known here.
        known: u32,
    },
}

impl Waits {
    pub(crate) fn in_words(self, lang: Lang) -> String {
        match (self, lang) {
            (Waits::Held, Lang::En) => "another process holds the store".to_owned(),
            (Waits::Held, Lang::Zh) => "另一个进程占用着存储".to_owned(),
            (Waits::Full, Lang::En) => "no space is left for the store".to_owned(),
            (Waits::Full, Lang::Zh) => "存储所在磁盘没有空间".to_owned(),
            (Waits::TooNew { found, known }, Lang::En) => {
                format!("the store has format {found}, this version writes up to {known}")
            }
            (Waits::TooNew { found, known }, Lang::Zh) => {
                format!("存储的格式是 {found}，此版本最高只写到 {known}")
            }
        }
    }
}

/// The store as the settings describe it. Nothing is opened before it is needed.
pub(crate) struct Cellar {
    pub(crate) settings: Settings,
    folder: Option<PathBuf>,
    home: Option<PathBuf>,
    mistakes: Vec<SettingsError>,
    lines_wait: Cell<Option<Waits>>,
}

impl Cellar {
    pub(crate) fn new(around: &Around, settings: Settings) -> Cellar {
        let folder = match settings.store().state_dir {
            StateDir::At(path) => Some(path),
            StateDir::Nowhere => None,
        };
        Cellar {
            settings,
            folder,
            home: around.home.clone(),
            mistakes: Vec::new(),
            lines_wait: Cell::new(None),
        }
    }

    /// For hooks, which may not fail: what is wrong with the settings is left out, and told later.
    pub(crate) fn for_hooks(set: &[String]) -> Cellar {
        let around = Around::here();
        let (settings, mistakes) = Settings::load_leniently(&around, set);
        Cellar { mistakes, ..Cellar::new(&around, settings) }
    }

    /// For whoever looks after us: what is wrong with the settings is left out, and told with the rest.
    pub(crate) fn leniently(around: &Around, settings: Settings, mistakes: Vec<SettingsError>) -> Cellar {
        Cellar { mistakes, ..Cellar::new(around, settings) }
    }

    /// What is wrong with the settings.
    pub(crate) fn mistakes(&self) -> &[SettingsError] {
        &self.mistakes
    }

    /// The folder as it is, where it is there and nobody else's.
    pub(crate) fn root(&self) -> Result<Root, CommandError> {
        Ok(Root::existing(self.folder()?, self.believed())?)
    }

    /// What is wrong with the settings: which part of us noticed, and what.
    pub(crate) fn faults(&self) -> Vec<(&'static str, String)> {
        self.mistakes.iter().map(|mistake| ("settings", mistake.to_string())).collect()
    }

    /// Opens the store to look things up, with all that waited in the spool.
    pub(crate) fn to_read(&self) -> Result<Store, CommandError> {
        let folder = self.folder()?;
        let root = Root::existing(folder, self.believed())?;
        let cleaner = self.cleaner();
        let mut keeper = self.keeper(&cleaner, READING_PATIENCE, READING_PATIENCE);
        if let Filesystem::Network { .. } = root.filesystem() {
            return Ok(keeper.from_spool(now())?);
        }
        if root.spool().exists() {
            match keeper.tend(now()) {
                Ok(_) => {}
                // What cannot be taken in now may still be read without it.
                Err(StoreError::Busy { .. }) => self.lines_wait.set(Some(Waits::Held)),
                Err(StoreError::Full { .. }) => self.lines_wait.set(Some(Waits::Full)),
                Err(StoreError::TooNew { found, known, .. }) => {
                    self.lines_wait.set(Some(Waits::TooNew { found, known }));
                }
                Err(error) => return Err(error.into()),
            }
        }
        match Store::to_read(&root, PATIENCE, now()) {
            Err(StoreError::Damaged { .. }) => {
                keeper.tend(now())?;
                Ok(Store::to_read(&root, PATIENCE, now())?)
            }
            store => Ok(store?),
        }
    }

    /// Why lines wait in the spool that whoever reads should know of.
    pub(crate) fn lines_wait(&self) -> Option<Waits> {
        self.lines_wait.get()
    }

    /// Opens the store to change something in it.
    pub(crate) fn to_write(&self) -> Result<Store, CommandError> {
        let root = Root::open(self.folder()?, self.believed())?;
        Ok(Store::to_write(&root, PATIENCE, now())?)
    }

    /// The same, for whoever cannot wait long.
    pub(crate) fn to_write_soon(&self) -> Result<Store, CommandError> {
        let root = Root::open(self.folder()?, self.believed())?;
        Ok(Store::to_write(&root, READING_PATIENCE, now())?)
    }

    /// Takes in what waits and seals dead calls. Nothing is made where nothing is recorded yet.
    pub(crate) fn tend(&self, cleaner: &Cleaner) -> Result<Tended, CommandError> {
        Root::existing(self.folder()?, self.believed())?;
        let tended = self.keeper(cleaner, PATIENCE, PATIENCE).tend(now())?;
        // Hooks need not find out by themselves that it works again.
        Breaker::at(self.folder.as_deref()).success();
        Ok(tended)
    }

    /// The same, for whoever cannot wait long: what is not done now is done by the next one.
    pub(crate) fn tend_soon(&self, cleaner: &Cleaner) -> Result<Tended, CommandError> {
        Root::existing(self.folder()?, self.believed())?;
        Ok(self.keeper(cleaner, READING_PATIENCE, READING_PATIENCE).tend(now())?)
    }

    /// Writes down what was done beside the calls of an agent. Nobody waits long for it: what cannot be written now waits in the
    /// spool. Tells why something is lost, where not even that could be done.
    pub(crate) fn note(&self, cleaner: &Cleaner, entries: &[Entry]) -> Option<String> {
        let mut keeper = self.keeper(cleaner, READING_PATIENCE, READING_PATIENCE);
        let kept: Vec<Kept> = entries.iter().map(|entry| keeper.keep(entry, now()).kept).collect();
        kept.into_iter().find_map(|kept| match kept {
            Kept::Lost { why } => Some(why),
            Kept::Stored | Kept::Recorded | Kept::Spooled { .. } => None,
        })
    }

    /// The home of whoever runs us, where there is one.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// How long things are kept: for an agent no shorter than is built in, whatever the settings say that it started us with.
    pub(crate) fn retention(&self) -> Retention {
        let store = self.settings.store();
        let mut retention = Retention {
            events: store.keep_events,
            calls: store.keep_calls,
            max_size: store.max_size,
            ..Retention::default()
        };
        if person::is_an_agent() {
            let least = Settings::built_in().store();
            retention.events = retention.events.max(least.keep_events);
            retention.calls = retention.calls.max(least.keep_calls);
            retention.max_size = retention.max_size.max(least.max_size);
        }
        retention
    }

    /// The folder of the store.
    pub(crate) fn folder(&self) -> Result<&Path, CommandError> {
        self.folder.as_deref().ok_or(CommandError::NoHome)
    }

    /// The same folder, made where it is not there, and nobody else's.
    pub(crate) fn make_folder(&self) -> Result<PathBuf, CommandError> {
        Ok(self.make_root()?.path().to_owned())
    }

    /// The same.
    pub(crate) fn make_root(&self) -> Result<Root, CommandError> {
        Ok(Root::open(self.folder()?, self.believed())?)
    }

    /// What the spool alone tells: a store that is gone when it is dropped.
    pub(crate) fn spooled_only(&self) -> Result<Store, CommandError> {
        Ok(self.keeper(&self.cleaner(), PATIENCE, PATIENCE).from_spool(now())?)
    }

    /// The desk that doors hand their entries to, with the patience of a hook.
    pub(crate) fn desk<'a>(&'a self, cleaner: &'a Cleaner) -> Desk<'a> {
        let store = self.settings.store();
        let output = self.settings.output();
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        Desk {
            keeper: self.keeper(cleaner, store.wait_before, store.wait_after),
            cleaner,
            deadline: None,
            rewriter: Some(Rc::new(Rewriter { settings: self.settings.rewrite(), home: self.home.clone() })),
            bounds: Bounds { input: bytes(output.input), head: bytes(output.head), tail: bytes(output.tail) },
            lang: self.lang(),
        }
    }

    /// A desk with the patience of a person, for what happened long ago: nothing can be refused any more.
    pub(crate) fn desk_for_the_past<'a>(&'a self, cleaner: &'a Cleaner) -> Desk<'a> {
        let bench = Bench { modes: Modes::all(Mode::Shadow), ..self.bench() };
        Desk {
            keeper: self.keeper_with(bench, cleaner, PATIENCE, PATIENCE),
            rewriter: None,
            ..self.desk(cleaner)
        }
    }

    /// A desk for what we run ourselves: whoever started us asked for it by name, and nothing is refused.
    pub(crate) fn desk_for_own_work<'a>(&'a self, cleaner: &'a Cleaner) -> Desk<'a> {
        let bench = Bench { modes: Modes::all(Mode::Shadow), ..self.bench() };
        let store = self.settings.store();
        Desk {
            keeper: self.keeper_with(bench, cleaner, store.wait_before, store.wait_after),
            rewriter: None,
            ..self.desk(cleaner)
        }
    }

    /// What keeps entries, with some patience before and after a call.
    fn keeper<'a>(&'a self, cleaner: &'a Cleaner, before: Duration, after: Duration) -> Keeper<'a> {
        self.keeper_with(self.bench(), cleaner, before, after)
    }

    fn keeper_with<'a>(
        &'a self,
        bench: Bench,
        cleaner: &'a Cleaner,
        before: Duration,
        after: Duration,
    ) -> Keeper<'a> {
        Keeper::new(Surroundings {
            root: self.folder.as_deref().unwrap_or(Path::new("")),
            believed: self.believed(),
            bench,
            patience: Patience { before, after },
            is_alive: &alive::is_alive,
            cleaner,
            dice: random(),
        })
    }

    /// What cuts secrets out of everything that is kept.
    pub(crate) fn cleaner(&self) -> Cleaner {
        let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
        let environment = env::vars_os().map(|(name, value)| (text(name), text(value)));
        Cleaner::new(self.home.as_deref().and_then(Path::to_str), environment)
    }

    /// How far the ladder may go, for all tools and for single ones.
    pub(crate) fn modes(&self) -> Modes {
        let ladder = self.settings.ladder();
        let named = ladder.tools.0.into_iter().map(|(name, each)| (name, mode(each)));
        Modes { others: mode(ladder.mode), named: named.collect() }
    }

    fn bench(&self) -> Bench {
        Bench {
            ladder: ladder::Settings::of(self.settings.ladder().preset),
            modes: self.modes(),
            retry: self.settings.retry_policy(),
            lang: self.lang(),
            hold_max: self.settings.hook().hold_max,
            seal_after: time::span_ms(self.settings.store().seal_after),
            problems: self.problem_ages(),
        }
    }

    /// What makes a problem new, and what makes it resolved.
    pub(crate) fn problem_ages(&self) -> ProblemAges {
        let problems = self.settings.problems();
        ProblemAges { new_for: problems.new_for, resolved_after: problems.resolved_after }
    }

    /// The language of what is said to models.
    fn lang(&self) -> Lang {
        self.settings.language().model
    }

    fn believed(&self) -> Option<Filesystem> {
        match self.settings.store().filesystem {
            settings::Filesystem::Auto => None,
            settings::Filesystem::Local => Some(Filesystem::Local),
            settings::Filesystem::Network => Some(Filesystem::Network { name: "as configured".to_owned() }),
        }
    }
}

/// The store's own word for a mode of the settings.
fn mode(mode: settings::Mode) -> Mode {
    match mode {
        settings::Mode::Shadow => Mode::Shadow,
        settings::Mode::Advise => Mode::Advise,
        settings::Mode::Enforce => Mode::Enforce,
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    time::span_ms(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// A moment that somebody else names, if it can be one: a clock that is ahead of ours would make everything else old, and what
/// is from before this is a count of something else.
pub(crate) fn sensible(named: Option<u64>, now: u64) -> u64 {
    const FIRST: u64 = 100_000_000_000;
    const AHEAD: u64 = 24 * 60 * 60 * 1000;
    named.filter(|at| (FIRST..=now.saturating_add(AHEAD)).contains(at)).unwrap_or(now)
}

/// A number that no other process has.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// A throw of the dice.
pub(crate) fn roll() -> Draw {
    Dice::seeded(random()).roll()
}
