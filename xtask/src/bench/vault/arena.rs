//! One tree and all who take turns on it. Between two runs the disk comes to rest, and nothing with many files is ever deleted:
//! ext4 without a journal is many times slower for a minute after that, and would punish whoever comes next.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::listing::{Differs, Listing};
use super::peer::{Peers, Run, Who};
use super::tree::Tree;
use super::{Case, Row};
use crate::Fault;
use crate::dice::Dice;

/// Longer than anybody's idea of "changed just now".
const REST: Duration = Duration::from_millis(60);
/// A disk that somebody kept busy for long is given as long again before the next one is measured, but no longer than this:
/// disks of virtual machines are slow for a while after much was written.
const LONGEST_REST: Duration = Duration::from_secs(10);

/// A tree, and where everybody keeps their snapshots of it.
pub struct Arena<'a> {
    peers: &'a Peers,
    tree: Tree,
    scratch: PathBuf,
    /// Where each keeps its snapshots, once it has taken the first.
    places: Vec<(Who, PathBuf)>,
    /// Goes up with everything that needs a name.
    number: u32,
}

/// What was measured on one tree.
pub struct Measurements {
    /// The tree's title and what is in it.
    pub title: &'static str,
    /// Files, folders and links.
    pub entries: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Everybody's results.
    pub cells: Vec<Cell>,
    /// How long all of it lasted.
    pub lasted: Duration,
}

/// What was measured of somebody in one row.
pub struct Cell {
    /// Who.
    pub who: Who,
    /// At what.
    pub row: Row,
    /// Times of the rounds that count.
    pub times: Vec<Duration>,
    /// The most memory of any round, in kilobytes.
    pub peak: u64,
    /// What was wrong with the worst restore.
    pub differs: Differs,
    /// Why there are no more rounds.
    pub fault: Option<String>,
}

impl Measurements {
    /// What somebody did in a row, if it did.
    pub fn cell(&self, who: Who, row: Row) -> Option<&Cell> {
        self.cells.iter().find(|cell| (cell.who, cell.row) == (who, row))
    }

    /// The times of somebody in a row, if there are any.
    pub fn times(&self, who: Who, row: Row) -> Option<&[Duration]> {
        self.cell(who, row).map(|cell| &*cell.times).filter(|times| !times.is_empty())
    }
}

impl<'a> Arena<'a> {
    /// Makes the tree.
    pub fn enter(peers: &'a Peers, case: &Case, scratch: &Path) -> Result<Arena<'a>, Fault> {
        fs::create_dir_all(scratch)?;
        let tree = Tree::make(case.kind, scratch.join("tree"))?;
        // All who come find the tree in memory.
        peers.snapshot(Who::ReadAll, scratch, &tree.root, "")?;
        Ok(Arena { peers, tree, scratch: scratch.to_owned(), places: Vec::new(), number: 0 })
    }

    /// Everything that is done to this tree, and by whom. Who fails is named and takes no further part in that row.
    pub fn measure(&mut self, case: &Case) -> Measurements {
        let start = Instant::now();
        let (entries, bytes) = (self.tree.entries, self.tree.bytes);
        let mut cells = Vec::new();
        for row in Row::ALL {
            let began = Instant::now();
            cells.extend(self.row(case, row));
            println!("  {row:?}: {:.0} s", began.elapsed().as_secs_f64());
        }
        Measurements { title: case.title, entries, bytes, cells, lasted: start.elapsed() }
    }

    fn row(&mut self, case: &Case, row: Row) -> Vec<Cell> {
        let is_there = |who: Who| !matches!(who.version(), Some(Err(_)));
        let mut cells: Vec<Cell> = Who::ALL
            .into_iter()
            .filter(|who| case.rounds(*who, row) > 0 && is_there(*who))
            .map(|who| Cell {
                who,
                row,
                times: Vec::new(),
                peak: 0,
                differs: Differs::default(),
                fault: None,
            })
            .collect();
        let most = cells.iter().map(|cell| case.rounds(cell.who, row)).max().unwrap_or(0);
        let mut dice = Dice(11);
        // One round more, which warms caches and is not counted; those who are slow anyway are spared it. The first who writes to
        // a new disk pays for all who come after, if it waits until its bytes are there.
        let warms_up = row != Row::Rebuilt;
        for round in usize::from(!warms_up)..=most {
            if let Row::Changed(amount) = row
                && let Err(fault) = self.tree.change(amount)
            {
                cells.iter_mut().for_each(|cell| cell.fault = Some(format!("the tree: {fault}")));
            }
            for place in (1..cells.len()).rev() {
                cells.swap(place, dice.below(place as u64 + 1) as usize);
            }
            for cell in &mut cells {
                let rounds = case.rounds(cell.who, row);
                if cell.fault.is_some() || rounds < round.max(1) || (round == 0 && rounds == 1) {
                    continue;
                }
                let began = Instant::now();
                let measured = self.run(cell.who, row);
                let busy = began.elapsed().min(LONGEST_REST);
                if busy > Duration::from_secs(1) {
                    thread::sleep(busy);
                }
                match measured {
                    Ok((run, differs)) => {
                        cell.peak = cell.peak.max(run.peak);
                        cell.differs = cell.differs.max(differs);
                        if round > 0 {
                            cell.times.push(run.took);
                        }
                    }
                    Err(fault) => {
                        println!("  {:?} failed at {row:?}: {fault}", cell.who);
                        cell.fault = Some(fault.to_string());
                    }
                }
            }
        }
        cells
    }

    fn run(&mut self, who: Who, row: Row) -> Result<(Run, Differs), Fault> {
        match row {
            Row::First => {
                let place = self.fresh_place(who)?;
                rest()?;
                let name = self.name();
                Ok((self.peers.snapshot(who, &place, &self.tree.root, &name)?, Differs::default()))
            }
            Row::NoChange | Row::Changed(_) => {
                let (place, name) = (self.place(who)?, self.name());
                rest()?;
                Ok((self.peers.snapshot(who, &place, &self.tree.root, &name)?, Differs::default()))
            }
            Row::Restored(amount) => {
                let (place, kept, before) = self.keep(who)?;
                self.tree.change(amount)?;
                rest()?;
                let run = self.peers.restore(who, &place, &self.tree.root, &kept)?;
                Ok((run, before.differs(&Listing::of(&self.tree.root)?)))
            }
            Row::Rebuilt => {
                let (place, kept, before) = self.keep(who)?;
                // Moved away instead of deleted, and put back afterwards.
                let gone = self.scratch.join("gone");
                fs::rename(&self.tree.root, &gone)?;
                let rebuilt = rest()
                    .and_then(|()| self.peers.restore(who, &place, &self.tree.root, &kept))
                    .and_then(|run| Ok((run, before.differs(&Listing::of(&self.tree.root)?))));
                let name = self.name();
                let away = self.scratch.join(name);
                if self.tree.root.exists() {
                    fs::rename(&self.tree.root, &away)?;
                    self.forget(&away, self.tree.is_many())?;
                }
                fs::rename(&gone, &self.tree.root)?;
                rebuilt
            }
        }
    }

    /// Lets somebody keep the tree as it is; not timed.
    fn keep(&mut self, who: Who) -> Result<(PathBuf, String, Listing), Fault> {
        let place = match who {
            // A copy is never brought up to date, but made anew.
            Who::Copy => self.fresh_place(who)?,
            Who::Unstuck
            | Who::Safe
            | Who::StatWalk
            | Who::ReadAll
            | Who::Tar
            | Who::Git
            | Who::Restic
            | Who::Borg => self.place(who)?,
        };
        rest()?;
        let name = self.name();
        let kept = self.peers.keep(who, &place, &self.tree.root, &name)?.id;
        Ok((place, kept, Listing::of(&self.tree.root)?))
    }

    fn place(&self, who: Who) -> Result<PathBuf, Fault> {
        let found = self.places.iter().find(|(owner, _)| *owner == who);
        found.map(|(_, place)| place.clone()).ok_or_else(|| "it has no first snapshot".into())
    }

    /// A new place in exchange for the old one.
    fn fresh_place(&mut self, who: Who) -> Result<PathBuf, Fault> {
        if let Some(old) = self.places.iter().position(|(owner, _)| *owner == who) {
            let (_, old) = self.places.swap_remove(old);
            self.forget(&old, who.keeps_many_files() && self.tree.is_many())?;
        }
        let name = self.name();
        let place = self.scratch.join(name);
        self.peers.settle_in(who, &place)?;
        self.places.push((who, place.clone()));
        Ok(place)
    }

    /// Deletes it, if that is soon done; otherwise it stays until the end.
    fn forget(&self, path: &Path, is_many: bool) -> Result<(), Fault> {
        match is_many {
            true => Ok(()),
            false => Ok(fs::remove_dir_all(path)?),
        }
    }

    fn name(&mut self) -> String {
        self.number += 1;
        format!("n{}", self.number)
    }
}

/// Lets the disk come to rest, and the clock move on.
fn rest() -> Result<(), Fault> {
    Command::new("sync").status()?;
    thread::sleep(REST);
    Ok(())
}
