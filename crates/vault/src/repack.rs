//! Gives back the space of contents that nobody needs: packs without any others go, and what is left in packs that are mostly
//! empty, many and small, or worth compressing is written anew. A new pack is on the disk under its name before an old one
//! goes; a content goes only after it was read from where it stays.

use std::fs;

use crate::collect::remove_file;
use crate::error::VaultError;
use crate::folder::{Folder, Number, Room};
use crate::needs::Contents;
use crate::pack::{Batch, Pack, PackWriter, Packs, Place};
use crate::watch::{Progress, Stage, Watch};

/// So many packs may be small before they become one.
const MANY: usize = 32;
/// And so many even for those who have no time.
const VERY_MANY: usize = 128;
/// These are then written anew in no time.
const TINY: u64 = 128 << 10;
/// A pack with fewer bytes is small.
const SMALL: u64 = 4 << 20;
/// So much is written before the packs it comes from go: the disk needs no more room than that.
const GROUP: u64 = 256 << 20;
/// So much gathers before it is written.
const GATHERED: usize = 4 << 20;
/// What must stay free on the disk beside what is written.
const MARGIN: u64 = 16 << 20;
/// So many contents show whether compressing pays.
const SAMPLE: usize = 32;
/// Less than this is not worth writing a pack anew for.
const WORTH_SAVING: u64 = 1 << 20;

/// How far to go for the sake of space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Only packs go of which nothing is needed; tiny ones become one where they are very many.
    WholeFiles,
    /// Packs that are mostly empty, many and small, or worth compressing are written anew.
    HalfEmptyFiles,
    /// Packs are written anew that hold anything that nobody needs.
    Everything,
}

/// A pack, and what of it is needed.
struct Rated<'a> {
    pack: &'a Pack,
    size: u64,
    /// Bytes of what is needed and stands in no newer pack.
    needed: u64,
    /// Bytes of what is needed, here or there.
    shared: u64,
}

/// Gives space back.
pub(crate) fn repack(
    folder: &Folder,
    packs: &Packs,
    contents: &Contents,
    effort: Effort,
    watch: &dyn Watch,
) -> Result<(), VaultError> {
    let (mut rated, is_any_missing) = rate(packs, contents);
    // Where a content is missed, a pack that cannot tell all that it holds may be where it is.
    let is_dead = |rated: &Rated<'_>| rated.shared == 0 && (rated.pack.is_whole || !is_any_missing);
    for dead in rated.extract_if(.., |rated| is_dead(rated)) {
        remove_file(folder, Room::Packs, dead.pack.number)?;
    }
    let mut chosen = choose(&rated, contents, effort);
    chosen.sort_by_key(|rated| rated.pack.number);
    let numbers: Vec<Number> = chosen.iter().map(|rated| rated.pack.number).collect();
    let mut moved = Moved { of: chosen.len() as u64, done: 0, bytes: 0, watch };
    let mut group: Vec<&Rated<'_>> = Vec::new();
    for rated in &chosen {
        group.push(rated);
        if group.iter().map(|rated| rated.needed).sum::<u64>() >= GROUP {
            rewrite(folder, packs, contents, &group, &numbers, &mut moved)?;
            group.clear();
        }
    }
    rewrite(folder, packs, contents, &group, &numbers, &mut moved)
}

/// How far it is.
struct Moved<'a> {
    of: u64,
    done: u64,
    bytes: u64,
    watch: &'a dyn Watch,
}

impl Moved<'_> {
    fn goes_on(&self) -> Result<(), VaultError> {
        let progress = Progress { stage: Stage::Removing, done: self.done, of: self.of, bytes: self.bytes };
        match self.watch.goes_on(progress) {
            true => Ok(()),
            false => Err(VaultError::Stopped),
        }
    }
}

/// What is needed of each pack, and whether something is needed that stands in none.
fn rate<'a>(packs: &'a Packs, contents: &Contents) -> (Vec<Rated<'a>>, bool) {
    let mut seen = vec![false; contents.len()];
    let mut rated = Vec::new();
    for pack in packs.iter() {
        let size = fs::metadata(&pack.path).map_or(0, |found| found.len());
        let mut rating = Rated { pack, size, needed: 0, shared: 0 };
        for place in pack.places() {
            if let Some(at) = contents.position(&place.hash) {
                rating.shared += place.stored();
                rating.needed += if seen[at] { 0 } else { place.stored() };
                seen[at] = true;
            }
        }
        rated.push(rating);
    }
    (rated, seen.contains(&false))
}

fn choose<'a, 'b>(rated: &'b [Rated<'a>], contents: &Contents, effort: Effort) -> Vec<&'b Rated<'a>> {
    let small = rated.iter().filter(|rated| rated.size < SMALL).count();
    let is_chosen = |rated: &&Rated<'_>| match effort {
        Effort::WholeFiles => small > VERY_MANY && rated.size < TINY,
        Effort::HalfEmptyFiles => {
            !rated.pack.is_whole
                || rated.needed < rated.size / 2
                || (small > MANY && rated.size < SMALL)
                || pays(rated, contents)
        }
        Effort::Everything => {
            let dead = rated.pack.places().any(|place| contents.position(&place.hash).is_none());
            dead || !rated.pack.is_whole
        }
    };
    rated.iter().filter(is_chosen).collect()
}

/// Would compressing give back a good part of it? Some contents are tried.
fn pays(rated: &Rated<'_>, contents: &Contents) -> bool {
    let is_worth = |place: &Place| place.is_plain() && contents.position(&place.hash).is_some();
    let plain: Vec<Place> = rated.pack.places().filter(is_worth).collect();
    let bytes: u64 = plain.iter().map(Place::stored).sum();
    if bytes < WORTH_SAVING {
        return false;
    }
    let (mut content, mut tried, mut left) = (Vec::new(), 0, 0);
    for place in plain.iter().step_by(plain.len().div_ceil(SAMPLE)) {
        if rated.pack.read(place, &mut content).is_ok() {
            let mut batch = Batch::default();
            batch.add(place.hash, &content, true);
            tried += place.stored();
            left += batch.len() as u64;
        }
    }
    let saved = u128::from(bytes) * u128::from(tried.saturating_sub(left)) / u128::from(tried.max(1));
    saved >= u128::from(WORTH_SAVING.max(rated.size / 5))
}

/// Writes what is needed of some packs into a new one; then they go. `leaving` are all that will.
fn rewrite(
    folder: &Folder,
    packs: &Packs,
    contents: &Contents,
    group: &[&Rated<'_>],
    leaving: &[Number],
    moved: &mut Moved<'_>,
) -> Result<(), VaultError> {
    let needed: u64 = group.iter().map(|rated| rated.shared).sum();
    let is_room = folder.free().is_none_or(|free| free >= needed.saturating_add(MARGIN));
    if group.is_empty() || !is_room {
        return Ok(());
    }
    let damaged = match write(folder, packs, contents, group, leaving, moved) {
        // Somebody else took the room: everything is as it was.
        Err(VaultError::DiskFull { .. }) => return Ok(()),
        damaged => damaged?,
    };
    for rated in group.iter().filter(|rated| !damaged.contains(&rated.pack.number)) {
        remove_file(folder, Room::Packs, rated.pack.number)?;
    }
    folder.settle(Room::Packs)
}

/// Writes the new pack and gives it its name. The packs come back that hold something needed that can be read nowhere: they
/// stay as they are.
fn write(
    folder: &Folder,
    packs: &Packs,
    contents: &Contents,
    group: &[&Rated<'_>],
    leaving: &[Number],
    moved: &mut Moved<'_>,
) -> Result<Vec<Number>, VaultError> {
    let writer = PackWriter::begin(folder)?;
    let mut written = Contents::default();
    let mut damaged = Vec::new();
    let (mut batch, mut content) = (Batch::default(), Vec::new());
    for rated in group {
        let mut places: Vec<Place> =
            rated.pack.places().filter(|place| contents.position(&place.hash).is_some()).collect();
        places.sort_unstable_by_key(Place::offset);
        for place in places {
            let stays = |pack: &&Pack| !leaving.contains(&pack.number);
            let stands_elsewhere = written.position(&place.hash).is_some()
                || packs.iter().filter(stays).any(|pack| {
                    pack.find(&place.hash).is_some_and(|there| pack.read(&there, &mut content).is_ok())
                });
            if stands_elsewhere {
                continue;
            }
            if packs.read(&place.hash, &mut content).is_err() {
                damaged.push(rated.pack.number);
                continue;
            }
            batch.add(place.hash, &content, true);
            written.add(place.hash);
            moved.bytes += content.len() as u64;
            if batch.len() >= GATHERED {
                writer.write(&mut batch)?;
                moved.goes_on()?;
            }
        }
        written.sort();
        moved.done += 1;
        moved.goes_on()?;
    }
    writer.write(&mut batch)?;
    if let Some(hidden) = writer.finish()? {
        let number = folder.desk()?.next()?;
        folder.publish(&hidden, Room::Packs, number)?;
        folder.settle(Room::Packs)?;
    }
    Ok(damaged)
}
