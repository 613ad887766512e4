//! A hook write, struck at every place where it meets its files: from every state in which it may find its folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tempfile::TempDir;

use super::strace::{BLOWS, Blow, Place, places, strike};
use crate::Fault;
use crate::dice::Dice;
use crate::ledger::{Found, Ledger};
use crate::world::{Call, Told, World, copy_folder, lines};

/// Nothing that happens to its files may keep an agent waiting for longer: the hook's own patience, twice, and some room for
/// a busy machine.
const PATIENCE: Duration = Duration::from_secs(8);
/// A lock that the system fails to give or to take back, which no local file system does, is tried again by SQLite itself,
/// for ten seconds.
const LOCK_PATIENCE: Duration = Duration::from_secs(13);

/// In which state a hook finds its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    /// There is nothing.
    Empty,
    /// A store with some calls in it.
    InUse,
    /// The same, with lines that wait in the spool.
    SpoolWaits,
    /// The same, with a log so long that this write folds it into the database.
    FoldDue,
}

/// All of them.
pub const SCENES: [Scene; 4] = [Scene::Empty, Scene::InUse, Scene::SpoolWaits, Scene::FoldDue];

impl Scene {
    /// What the table calls it.
    pub fn name(self) -> &'static str {
        match self {
            Scene::Empty => "an empty folder",
            Scene::InUse => "a store in use",
            Scene::SpoolWaits => "a spool that waits",
            Scene::FoldDue => "a log due to be folded in",
        }
    }
}

/// A folder to copy from, and what was promised about it.
pub(super) struct Template {
    pub(super) folder: TempDir,
    pub(super) ledger: Ledger,
}

/// How many blows were struck, and how often the hook gave its answer all the same.
#[derive(Debug, Default)]
pub struct Tally {
    /// Places on the way of an undisturbed hook.
    pub places: usize,
    /// Blows.
    pub struck: u64,
    /// Entries that a struck hook acknowledged.
    pub acknowledged: u64,
    /// Entries of which a struck hook said that they are lost, or said nothing.
    pub unacknowledged: u64,
    /// The longest that an agent had to wait for a struck hook, and where.
    pub slowest: (Duration, String),
    /// What did not hold.
    pub broken: Vec<String>,
}

/// Strikes at every place, or at a sample of about `sample` of them.
pub fn sweep(unstuck: &Path, scene: Scene, sample: Option<usize>, seed: u64) -> Result<Tally, Fault> {
    let template = Template::make(unstuck, scene)?;
    let call = Call::named("struck", "struck-1".to_owned());
    let input = lines(&[call.before(), call.after(2)]);
    let all = places(&World::like(unstuck, template.folder.path())?, &input)?;
    let mut tally = Tally { places: all.len(), ..Tally::default() };
    let mut blows: Vec<(&Place, Blow)> = all
        .iter()
        .flat_map(|place| BLOWS.map(|blow| (place, blow)))
        .filter(|(place, blow)| makes_sense(place, *blow))
        .collect();
    if let Some(sample) = sample {
        // SQLite may try such a lock again for ten seconds; that is left to the full form.
        blows.retain(|(place, blow)| place.call != "fcntl" || *blow == Blow::Kill);
        let mut dice = Dice(seed);
        while blows.len() > sample {
            blows.swap_remove(dice.below(blows.len() as u64) as usize);
        }
    }
    for (place, blow) in blows {
        let world = World::like(unstuck, template.folder.path())?;
        let mut ledger = template.ledger.clone();
        if let Err(wrong) = one(&world, &mut ledger, &call, &input, place, blow, &mut tally) {
            tally.broken.push(format!("{}, {blow} at {place}: {wrong}", scene.name()));
        }
    }
    Ok(tally)
}

/// That a call fails for good is what a full disk does to calls that write, and to no others.
pub fn makes_sense(place: &Place, blow: Blow) -> bool {
    let writes =
        ["write", "pwrite64", "writev", "ftruncate", "fallocate", "mkdir", "mkdirat", "fsync", "fdatasync"];
    match blow {
        Blow::FailsFromNowOn(_) => writes.contains(&&*place.call),
        Blow::Kill | Blow::Fails(_) => true,
    }
}

/// One blow, and everything that must hold after it.
pub fn one(
    world: &World,
    ledger: &mut Ledger,
    call: &Call,
    input: &[u8],
    place: &Place,
    blow: Blow,
    tally: &mut Tally,
) -> Result<(), Fault> {
    let start = Instant::now();
    let struck = strike(world, input, place, blow)?;
    let took = start.elapsed();
    if took > tally.slowest.0 {
        tally.slowest = (took, format!("{blow} at {place}"));
    }
    let reply = struck.reply;
    let Some(line) = struck.line else {
        ledger.note(&call.mark, &reply.told()?);
        return Ok(());
    };
    tally.struck += 1;
    let patience = if place.call == "fcntl" { LOCK_PATIENCE } else { PATIENCE };
    if took > patience {
        return Err(format!("the agent had to wait {took:?} for {line}").into());
    }
    let in_words = |wrong: &str| format!("{wrong} at {line}: {reply:?}");
    match blow {
        Blow::Kill => {}
        Blow::Fails(_) | Blow::FailsFromNowOn(_) if !reply.status.success() => {
            return Err(in_words("it did not exit with 0").into());
        }
        Blow::Fails(_) | Blow::FailsFromNowOn(_) if !reply.stderr.is_empty() => {
            return Err(in_words("it was not silent").into());
        }
        Blow::Fails(_) | Blow::FailsFromNowOn(_) => {}
    }
    // A killed process may have answered before; whoever read that answer believes it.
    let told: Vec<Told> = match blow {
        Blow::Kill => reply.answers()?.iter().map(Told::of).collect(),
        Blow::Fails(_) | Blow::FailsFromNowOn(_) => reply.told()?,
    };
    let kept = told.iter().filter(|told| told.is_acknowledged()).count() as u64;
    tally.acknowledged += kept;
    tally.unacknowledged += 2 - kept.min(2);
    ledger.note(&call.mark, &told);
    Found::in_copy_of(&world.store()).map_err(|wrong| in_words(&wrong.to_string()))?;
    let next = Call::named("next", format!("next-{}", ledger.calls()));
    let reply = world.send(&[next.before(), next.after(0)])?;
    let told = reply.told()?;
    if told != [Told::Recorded; 2] || !reply.stderr.is_empty() {
        return Err(format!("the next run does not work after {line}: {reply:?}").into());
    }
    ledger.note(&next.mark, &told);
    let found = Found::in_copy_of(&world.store())?;
    ledger.compare(&found).map_err(|wrong| format!("{wrong} after {line}").into())
}

impl Template {
    pub(super) fn make(unstuck: &Path, scene: Scene) -> Result<Template, Fault> {
        let world = World::in_memory(unstuck)?;
        let mut template = Template { folder: tempfile::tempdir()?, ledger: Ledger::default() };
        match scene {
            Scene::Empty => {}
            Scene::InUse => template.send(&world, 4, Told::Recorded)?,
            Scene::SpoolWaits => {
                template.send(&world, 2, Told::Recorded)?;
                let held = hold(&world.store())?;
                template.send(&world, 3, Told::Spooled)?;
                drop(held);
                // After so many faults the store would be left alone for a while.
                fs::remove_file(world.store().join("store-rests"))?;
            }
            Scene::FoldDue => template.fill_log(unstuck, &world)?,
        }
        copy_folder(&world.state(), template.folder.path())?;
        Ok(template)
    }

    fn send(&mut self, world: &World, calls: u64, expected: Told) -> Result<(), Fault> {
        for _ in 0..calls {
            let call = Call::named("earlier", format!("early-{}", self.ledger.calls()));
            let reply = world.send(&[call.before(), call.after(2)])?;
            let told = reply.told()?;
            if told != [expected; 2] {
                return Err(format!("{expected:?} was expected: {reply:?}").into());
            }
            self.ledger.note(&call.mark, &told);
        }
        // A host that gives no ids tells of each call once, when it has ended.
        let call = Call {
            session: "earlier".to_owned(),
            mark: format!("early-{}", self.ledger.calls()),
            named: false,
        };
        let told = world.send(&[call.after(2)])?.told()?;
        if told != [expected] {
            return Err(format!("{expected:?} was expected: {told:?}").into());
        }
        self.ledger.note_after(&call.mark, &told);
        Ok(())
    }

    /// Writes until the next write would fold the log, which is seen by its flush of the database.
    fn fill_log(&mut self, unstuck: &Path, world: &World) -> Result<(), Fault> {
        for _ in 0..400 {
            self.send(world, 1, Told::Recorded)?;
            let probe = Call::named("struck", "struck-1".to_owned());
            let copy = World::like(unstuck, &world.state())?;
            let passed = places(&copy, &lines(&[probe.before(), probe.after(2)]))?;
            if passed.iter().any(|place| ["fsync", "fdatasync"].contains(&&*place.call)) {
                return Ok(());
            }
        }
        Err("the log was never folded in".into())
    }
}

/// Holds the write lock of a store until it is dropped, as another process would.
pub fn hold(store: &Path) -> Result<Connection, Fault> {
    let path: PathBuf = store.join("timeline.db");
    let connection = Connection::open(&path)?;
    // Whoever holds it for a while must not tidy up when he leaves: the hook's own processes do not.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    Ok(connection)
}

/// The files below a folder.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => all.extend(files(&entry.path())?),
            false => all.push(entry.path()),
        }
    }
    Ok(all)
}
