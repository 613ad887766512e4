//! Many processes at once in one safe: each of them saves, restores, drops and collects, and some are killed. What was
//! acknowledged to one is never hurt by another.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::listing::Listing;
use super::stage::{Stage, snapshot_id};
use crate::Fault;
use crate::dice::Dice;
use crate::world::speak;

const WORKERS: u64 = 5;

pub fn run(unstuck: &Path, is_short: bool) -> Result<String, Fault> {
    let stage = Stage::new(unstuck)?;
    let life = Duration::from_secs(if is_short { 4 } else { 60 });
    let done = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                scope.spawn({
                    let stage = &stage;
                    move || work(stage, number, life)
                })
            })
            .collect();
        let mut done = 0;
        for worker in workers {
            done += worker.join().map_err(|_| "a worker panicked")??;
        }
        Ok::<u64, Fault>(done)
    })?;
    stage.is_sound(&[])?;
    Ok(format!("{done} commands of {WORKERS} at once"))
}

/// One of them, with a tree of its own beside those of the others.
fn work(stage: &Stage, number: u64, life: Duration) -> Result<u64, Fault> {
    let tree = stage.tree.join(format!("worker-{number}"));
    fs::create_dir(&tree)?;
    let path = tree.to_str().ok_or("a strange name")?;
    let mut dice = Dice(number);
    let mut held: BTreeMap<String, Listing> = BTreeMap::new();
    let end = Instant::now() + life;
    let mut done = 0;
    while Instant::now() < end {
        done += 1;
        scribble(&tree, &mut dice)?;
        let before = Listing::of(&[&tree])?;
        let some = held.keys().nth(dice.below(held.len().max(1) as u64) as usize).cloned();
        match (dice.below(10), some) {
            (0 | 1, Some(id)) => {
                stage.must(&["restore", &id])?;
                if let Some(difference) = Listing::of(&[&tree])?.differs_from(&held[&id]) {
                    return Err(format!("{id} does not bring back what it held:\n{difference}").into());
                }
            }
            (2, Some(id)) => {
                let args = stage.words(&["restore", &id]);
                let command = stage.world.command::<&str>(&[], &args);
                speak(command, b"", Some(Duration::from_micros(dice.below(30_000))))?;
                // Whoever works there next ends it, this one or another; this one at the latest.
                stage.must(&["snapshot", path, "--all", "--json"])?;
                let now = Listing::of(&[&tree])?;
                if let [Some(old), Some(new)] = [now.differs_from(&before), now.differs_from(&held[&id])] {
                    return Err(format!(
                        "after a killed restore of {id} the tree is neither:\n{old}\nand\n{new}"
                    )
                    .into());
                }
            }
            (3, Some(id)) => {
                stage.must(&["snapshots", "drop", &id])?;
                held.remove(&id);
            }
            (4, _) => {
                stage.must(&["gc"])?;
            }
            (5, _) => {
                let args = stage.words(&["snapshot", path, "--all", "--json"]);
                let command = stage.world.command::<&str>(&[], &args);
                let reply = speak(command, b"", Some(Duration::from_micros(dice.below(30_000))))?;
                if let Some(id) = snapshot_id(&reply.stdout) {
                    held.insert(id, before);
                }
            }
            _ => {
                let said = stage.must(&["snapshot", path, "--all", "--json"])?;
                held.insert(snapshot_id(&said).ok_or("no id")?, before);
            }
        }
    }
    let ids: Vec<&str> = held.keys().map(String::as_str).collect();
    stage.is_sound(&ids)?;
    for (id, held) in &held {
        stage.must(&["restore", id])?;
        if let Some(difference) = Listing::of(&[&tree])?.differs_from(held) {
            return Err(format!("in the end {id} does not bring back what it held:\n{difference}").into());
        }
    }
    Ok(done)
}

fn scribble(tree: &Path, dice: &mut Dice) -> Result<(), Fault> {
    for _ in 0..dice.below(6) {
        let folder = tree.join(format!("d{}", dice.below(4)));
        fs::create_dir_all(&folder)?;
        let file = folder.join(format!("f{}", dice.below(5)));
        match dice.below(4) {
            0 if file.exists() => fs::remove_file(&file)?,
            1 if dice.below(3) == 0 => fs::remove_dir_all(&folder)?,
            // Many contents are the same in all trees, so that they share packs.
            _ => fs::write(&file, format!("{}", dice.below(9)).repeat(1 + dice.below(2000) as usize))?,
        }
    }
    Ok(())
}
