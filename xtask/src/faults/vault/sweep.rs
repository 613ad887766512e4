//! Snapshot, restore, redo, collection and removal, struck at every place where they meet the safe or the tree.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::listing::Listing;
use super::stage::{self, Stage, snapshot_id};
use crate::Fault;
use crate::dice::Dice;
use crate::faults::strace::{self, BLOWS, Blow, Place, Struck};
use crate::faults::sweep::makes_sense;

/// The calls by which it meets files beyond those of the hook.
const CALLS: [&str; 50] = [
    "openat",
    "openat2",
    "read",
    "pread64",
    "write",
    "pwrite64",
    "writev",
    "ftruncate",
    "fallocate",
    "unlink",
    "unlinkat",
    "rmdir",
    "rename",
    "renameat",
    "renameat2",
    "fsync",
    "fdatasync",
    "syncfs",
    "sync_file_range",
    "flock",
    "mkdir",
    "mkdirat",
    "newfstatat",
    "fstat",
    "statx",
    "readlink",
    "readlinkat",
    "symlink",
    "symlinkat",
    "link",
    "linkat",
    "mknodat",
    "fchown",
    "fchownat",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "utimensat",
    "statfs",
    "fstatfs",
    "lseek",
    "getdents64",
    "flistxattr",
    "fgetxattr",
    "fsetxattr",
    "fremovexattr",
    "lsetxattr",
    "lremovexattr",
    "ioctl",
    "copy_file_range",
];

/// Nothing that happens to files may keep anybody waiting for longer.
const PATIENCE: Duration = Duration::from_secs(15);

/// What is struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    /// The first snapshot there is.
    First,
    /// Another one, after much has changed.
    Another,
    /// A restore of everything.
    Restore,
    /// The restore is taken back.
    Redo,
    /// All but the newest snapshot has expired.
    Collect,
    /// One is removed by hand.
    Drop,
}

/// All of them.
pub const SCENES: [Scene; 6] =
    [Scene::First, Scene::Another, Scene::Restore, Scene::Redo, Scene::Collect, Scene::Drop];

impl Scene {
    /// What the table calls it.
    pub fn name(self) -> &'static str {
        match self {
            Scene::First => "the first snapshot",
            Scene::Another => "another snapshot",
            Scene::Restore => "a restore",
            Scene::Redo => "a restore taken back",
            Scene::Collect => "a collection",
            Scene::Drop => "a removal by hand",
        }
    }
}

/// What came of it.
#[derive(Default)]
pub struct Tally {
    pub places: usize,
    pub struck: u64,
    /// Struck commands that said that they had done their work.
    pub acknowledged: u64,
    pub broken: Vec<String>,
}

/// A scene, ready to be played again and again.
struct Play {
    stage: Stage,
    args: Vec<String>,
    /// Snapshots that must be there afterwards, with what they hold.
    promised: BTreeMap<String, Listing>,
    /// What the tree may be afterwards: as it was, and as it was to become.
    old: Listing,
    new: Listing,
}

impl Play {
    fn new(unstuck: &Path, scene: Scene) -> Result<Play, Fault> {
        let stage = Stage::new(unstuck)?;
        stage::furnish(&stage.tree)?;
        let mut promised = BTreeMap::new();
        let mut args: Vec<String> = Vec::new();
        let mut note = |stage: &Stage| -> Result<String, Fault> {
            let id = stage.snapshot()?;
            promised.insert(id.clone(), stage.listing()?);
            Ok(id)
        };
        let tree = stage.tree()?.to_owned();
        let snapshot = ["snapshot", &tree, "--all", "--json"].map(str::to_owned);
        match scene {
            Scene::First => args.extend(snapshot),
            Scene::Another => {
                note(&stage)?;
                stage::ravage(&stage.tree)?;
                args.extend(snapshot);
            }
            Scene::Restore => {
                let first = note(&stage)?;
                stage::ravage(&stage.tree)?;
                args.extend(["restore".to_owned(), first, "--json".to_owned()]);
            }
            Scene::Redo => {
                let first = note(&stage)?;
                stage::ravage(&stage.tree)?;
                note(&stage)?;
                stage.must(&["restore", &first])?;
                let saved = stage.newest_saved()?.ok_or("a restore saved nothing")?;
                args.extend(["undo".to_owned(), saved, "--json".to_owned()]);
            }
            Scene::Collect | Scene::Drop => {
                let first = note(&stage)?;
                stage::ravage(&stage.tree)?;
                note(&stage)?;
                stage::go_on(&stage.tree)?;
                let last = note(&stage)?;
                match scene {
                    Scene::Collect => args.extend(["gc", "--set", "vault.per-target=1"].map(str::to_owned)),
                    Scene::First | Scene::Another | Scene::Restore | Scene::Redo | Scene::Drop => {
                        args.extend(["snapshots", "drop", &first].map(str::to_owned));
                    }
                }
                promised.retain(|id, _| match scene {
                    Scene::Collect => *id == last,
                    Scene::First | Scene::Another | Scene::Restore | Scene::Redo | Scene::Drop => {
                        *id != first
                    }
                });
            }
        }
        let old = stage.listing()?;
        stage.save()?;
        let mut play = Play { stage, args, promised, new: old.clone(), old };
        play.stage.reset()?;
        play.must()?;
        play.new = play.stage.listing()?;
        match scene {
            Scene::Restore => {
                let held = play.promised.values().next().ok_or("nothing was promised")?;
                is_one_of(&play.new, &[held])?;
            }
            Scene::First | Scene::Another | Scene::Redo | Scene::Collect | Scene::Drop => {}
        }
        Ok(play)
    }

    fn args(&self) -> Vec<&str> {
        self.args.iter().map(String::as_str).collect()
    }

    fn must(&self) -> Result<String, Fault> {
        self.stage.must(&self.args())
    }

    /// The places on the way of an undisturbed run at which it meets the safe or the tree. Each thread counts for itself.
    fn places(&self) -> Result<Vec<Place>, Fault> {
        self.stage.reset()?;
        let trace = self.stage.world.aside("trace");
        let calls: Vec<String> = CALLS.iter().map(|call| format!("?{call}")).collect();
        let before = strace::strace(&trace, &format!("trace={}", calls.join(",")));
        let command = self.stage.world.command(&before, &self.stage.words(&self.args()));
        let reply = crate::world::speak(command, b"", None)?;
        if !reply.status.success() {
            return Err(format!("it fails under strace: {reply:?}").into());
        }
        let (safe, tree) = (self.stage.safe(), self.stage.tree()?);
        let safe = safe.to_str().ok_or("the safe has a strange name")?;
        let mut counts: HashMap<(&str, &str), u32> = HashMap::new();
        let mut places: BTreeMap<(String, u32), ()> = BTreeMap::new();
        let trace = fs::read_to_string(&trace)?;
        for line in trace.lines() {
            let Some((name, rest)) = strace::call_in(line) else { continue };
            let thread = line.split_ascii_whitespace().next().unwrap_or_default();
            let nth = counts.entry((thread, name)).or_default();
            *nth += 1;
            if rest.contains(safe) || rest.contains(tree) {
                places.insert((name.to_owned(), *nth), ());
            }
        }
        Ok(places.into_keys().map(|(call, nth)| Place { call, nth }).collect())
    }

    fn strike(&self, place: &Place, blow: Blow) -> Result<Struck, Fault> {
        self.stage.reset()?;
        let words = self.stage.words(&self.args());
        strace::strike_any(
            &self.stage.world,
            |before| self.stage.world.command(before, &words),
            b"",
            place,
            blow,
        )
    }

    /// One blow, and everything that must hold after it. Tells whether the command said that it had done its work; nothing
    /// where the blow never fell.
    fn one(&self, scene: Scene, place: &Place, blow: Blow) -> Result<Option<bool>, Fault> {
        let start = Instant::now();
        let Struck { reply, line } = self.strike(place, blow)?;
        let took = start.elapsed();
        let Some(line) = line else { return Ok(None) };
        let in_words = |wrong: Fault| -> Fault { format!("{wrong}\nafter {line}\n{reply:?}").into() };
        if took > PATIENCE {
            return Err(in_words(format!("it took {took:?}").into()));
        }
        if reply.stderr.contains("panicked") {
            return Err(in_words("it panicked".into()));
        }
        let is_done = reply.status.success();
        // Where nothing can be written any more, neither can words.
        let can_speak = match blow {
            Blow::Kill => false,
            Blow::Fails(_) => true,
            Blow::FailsFromNowOn(_) => !place.call.starts_with("write"),
        };
        if !is_done && can_speak && reply.stderr.is_empty() && reply.stdout.is_empty() {
            return Err(in_words("it failed without a word".into()));
        }
        self.holds(scene, is_done, &reply.stdout).map_err(in_words)?;
        Ok(Some(is_done))
    }

    fn holds(&self, scene: Scene, is_done: bool, said: &str) -> Result<(), Fault> {
        let mut promised = self.promised.clone();
        match scene {
            Scene::First | Scene::Another if is_done => {
                let id = snapshot_id(said).ok_or("it said that it was done, and gave no id")?;
                promised.insert(id, self.old.clone());
            }
            _ => {}
        }
        // Whoever looks first may find a restore half way; the next who works there finishes it or takes it back.
        let next = self.stage.snapshot()?;
        let now = self.stage.listing()?;
        let said: Value = serde_json::from_str(said).unwrap_or_default();
        // One that was stopped cannot say what it kept; what it saved says what it could not read.
        let gaps = self.stage.newest_saved()?.map_or_else(|| Ok(Vec::new()), |id| self.stage.gaps(&id))?;
        let keeps_some = !gaps.is_empty() || said["kept"].as_array().is_some_and(|kept| !kept.is_empty());
        match scene {
            // What could not be read could not be saved, so it was not touched; all else was brought back.
            Scene::Restore | Scene::Redo if keeps_some => {
                if let Some(strange) = now.neither(&self.old, &self.new) {
                    return Err(format!("{strange}, neither old nor new").into());
                }
            }
            Scene::Restore | Scene::Redo if is_done => is_one_of(&now, &[&self.new])?,
            _ => is_one_of(&now, &[&self.old, &self.new])?,
        }
        promised.insert(next, now.clone());
        let ids: Vec<&str> = promised.keys().map(String::as_str).collect();
        self.stage.is_sound(&ids)?;
        if now != self.old {
            // What was there before must not be lost.
            let saved = self.stage.newest_saved()?.ok_or("the tree was changed and nothing saved")?;
            promised.insert(saved, self.old.clone());
        }
        for (id, held) in &promised {
            self.stage.brings_back(id, held)?;
        }
        // And the same once more, undisturbed.
        match scene {
            Scene::First | Scene::Another | Scene::Collect => {
                self.must()?;
            }
            Scene::Restore | Scene::Redo | Scene::Drop => {}
        }
        let leftovers = fs::read_dir(&self.stage.tree)?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .find(|name| name.contains("unstuck"));
        match leftovers {
            Some(name) => Err(format!("{name} was left in the tree").into()),
            None => self.stage.is_sound(&[]),
        }
    }
}

fn is_one_of(now: &Listing, allowed: &[&Listing]) -> Result<(), Fault> {
    let differences: Vec<String> = allowed.iter().filter_map(|allowed| now.differs_from(allowed)).collect();
    match differences.len() < allowed.len() {
        true => Ok(()),
        false => Err(format!("the tree is neither old nor new:\n{}", differences.join("\nand\n")).into()),
    }
}

/// Strikes at every place, or at a sample.
pub fn sweep(
    unstuck: &Path,
    scene: Scene,
    sample: Option<usize>,
    every: usize,
    seed: u64,
) -> Result<Tally, Fault> {
    let play = Play::new(unstuck, scene)?;
    let places = play.places()?;
    let mut blows: Vec<(&Place, Blow)> = places
        .iter()
        .flat_map(|place| BLOWS.map(|blow| (place, blow)))
        .filter(|(place, blow)| makes_sense(place, *blow))
        .collect();
    let mut dice = Dice(seed);
    while sample.is_some_and(|sample| blows.len() > sample) {
        blows.swap_remove(dice.below(blows.len() as u64) as usize);
    }
    let mut tally = Tally { places: places.len(), ..Tally::default() };
    for (place, blow) in blows.into_iter().skip(seed as usize % every).step_by(every) {
        match play.one(scene, place, blow) {
            Ok(None) => {}
            Ok(Some(is_done)) => {
                tally.struck += 1;
                tally.acknowledged += u64::from(is_done);
            }
            Err(wrong) => {
                tally.struck += 1;
                tally.broken.push(format!("{}, {blow} at {place}: {wrong}", scene.name()));
            }
        }
    }
    Ok(tally)
}
