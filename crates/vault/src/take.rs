//! Taking a snapshot: the tree is compared with what is known of it, what is new is put away, and only when all of that is on
//! the disk does the snapshot have a name.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::compare;
use crate::distrust::Distrust;
use crate::entry::{Entry, Flags, Kind, Moment};
use crate::error::VaultError;
use crate::folder::{Folder, Number, Room};
use crate::keep::{Destination, Reading};
use crate::layer::{Layer, Listing, Writer};
use crate::manifest::{LONGEST_CHAIN, Manifest, is_at_or_below, join};
use crate::pack::{Look, PackWriter, Packs};
use crate::policy::Policy;
use crate::scopes;
use crate::snapshot::{Gap, GapReason, Origin, Scope, Snapshot, SnapshotId};
use crate::stored_snapshot::{Lists, StoredSnapshot};
use crate::walk::{self, Extent, Fresh};
use crate::watch::Watch;
use crate::wish::{Rebuildable, Reserve, Wish};

/// How often a tree that changes is looked at.
const ROUNDS: usize = 3;
/// So much is compressed at once; more would be felt, and is left to the next collection.
const COMPRESSED_AT_ONCE: u64 = 8 << 20;
/// So much is put away without a look at what is held already.
const HELD_TWICE: u64 = 64 << 10;
/// The number of a list that is kept nowhere.
const UNNUMBERED: Number = 0;
/// So many gaps are named one by one.
const NAMED_GAPS: usize = 200;

/// A snapshot that was taken, with its list.
pub(crate) struct Taken {
    pub(crate) stored: StoredSnapshot,
    pub(crate) manifest: Manifest,
}

/// Takes a snapshot. Whoever calls holds the safe, shared or alone. What `like` leaves out as rebuildable is left out again,
/// and nothing else is: so what a restore of `like` would remove is saved whatever it is.
pub(crate) fn take(
    folder: &Folder,
    packs: &Packs,
    wish: &Wish,
    like: Option<&Manifest>,
    watch: &dyn Watch,
) -> Result<Taken, VaultError> {
    let scopes = match wish.origin {
        Origin::Person | Origin::Agent | Origin::Call { .. } => scopes::real(&wish.scopes)?,
        // What a snapshot names is meant as it is named: a link that stands in the way by now leads elsewhere.
        Origin::Restore { .. } => {
            wish.scopes.iter().map(|path| path.clone().into_os_string().into_vec()).collect()
        }
    };
    let known = Known::find(folder, &scopes, &wish.never, like)?;
    let policy = Policy::new(wish.rebuildable, like, &wish.never, folder.path());
    let seen =
        See { folder, scopes: &scopes, extent: Extent::Everything, policy: &policy, now: wish.now, watch }
            .keep(known, packs, wish.reserve)?;
    let number = folder.desk()?.next()?;
    let (manifest, before, stored) = seen.commit(folder, number)?;
    let snapshot = Snapshot {
        id: SnapshotId(number),
        at: wish.now,
        origin: wish.origin.clone(),
        note: wish.note.clone(),
        scopes: scopes.into_iter().map(|scope| Scope { path: path_of(scope) }).collect(),
        gap_count: manifest.gaps.len() as u64,
        gaps: manifest.gaps.into_iter().take(NAMED_GAPS).collect(),
        entries: manifest.entries,
        bytes: manifest.bytes,
        stored,
        pinned: false,
        concluded: false,
        changed: None,
        undone_by: None,
    };
    let takes_rebuildable = wish.rebuildable == Rebuildable::Taken;
    let lists = Lists { before, takes_rebuildable, never: wish.never.clone() };
    let stored = StoredSnapshot::new(&snapshot, lists);
    stored.write(folder)?;
    Ok(Taken { stored, manifest: manifest.list })
}

/// Takes the same scopes again and records them as what the protected call left.
pub(crate) fn conclude(
    folder: &Folder,
    id: SnapshotId,
    now: SystemTime,
    reserve: Reserve,
    watch: &dyn Watch,
) -> Result<Taken, VaultError> {
    let stored = StoredSnapshot::read(folder, id)?;
    let before = Manifest::read(folder, stored.before)?;
    let (packs, taken) = (Packs::list(folder)?, Taken { stored, manifest: before });
    conclude_where(folder, &packs, taken, Extent::Everything, now, reserve, watch)
}

/// The same where it is known which folders could have changed since.
pub(crate) fn conclude_where(
    folder: &Folder,
    packs: &Packs,
    taken: Taken,
    extent: Extent<'_>,
    now: SystemTime,
    reserve: Reserve,
    watch: &dyn Watch,
) -> Result<Taken, VaultError> {
    let Taken { stored, manifest } = taken;
    let scopes: Vec<Vec<u8>> = stored.scopes().collect();
    // What was saved before a restore left out what the restored one did.
    let before = manifest.clone();
    let like = matches!(stored.to_snapshot().origin, Origin::Restore { .. }).then_some(&before);
    let policy = policy(folder, &stored, like);
    let known = Known::new(Some(stored.before), manifest, true);
    let seen =
        See { folder, scopes: &scopes, extent, policy: &policy, now, watch }.keep(known, packs, reserve)?;
    let number = match seen.is_news() {
        true => folder.desk()?.next()?,
        false => stored.before,
    };
    let (manifest, after, _) = seen.commit(folder, number)?;
    // Somebody may have pinned it in the meantime.
    let _at_the_desk = folder.desk()?;
    let mut stored = StoredSnapshot::read(folder, stored.id())?;
    let is_another = after != stored.before;
    let changed = match stored.to_snapshot().origin {
        Origin::Restore { .. } => is_another,
        // A list may be another one because something could not be read, which is no change.
        Origin::Person | Origin::Agent | Origin::Call { .. } => {
            is_another && compare::differs(&before, &manifest.list)
        }
    };
    stored.conclude(after, changed);
    stored.write(folder)?;
    Ok(Taken { stored, manifest: manifest.list })
}

/// The present at the scopes of a snapshot, with hashes, kept nowhere: for those who only want to know what differs.
pub(crate) fn look(
    folder: &Folder,
    stored: &StoredSnapshot,
    now: SystemTime,
    watch: &dyn Watch,
) -> Result<Manifest, VaultError> {
    let scopes: Vec<Vec<u8>> = stored.scopes().collect();
    let like = Manifest::read(folder, stored.before)?;
    let policy = policy(folder, stored, Some(&like));
    let known = Known::find(folder, &scopes, &stored.never, Some(&like))?;
    let seen = See { folder, scopes: &scopes, extent: Extent::Everything, policy: &policy, now, watch }
        .only_look(known)?;
    Ok(seen.in_memory()?.list)
}

fn policy<'a>(folder: &Folder, stored: &StoredSnapshot, like: Option<&'a Manifest>) -> Policy<'a> {
    let rebuildable = match stored.takes_rebuildable {
        true => Rebuildable::Taken,
        false => Rebuildable::LeftOut,
    };
    Policy::new(rebuildable, like, &stored.never, folder.path())
}

/// What is known of a tree from an earlier snapshot.
struct Known {
    number: Option<Number>,
    list: Manifest,
    /// How many manifests that list is read from.
    depth: u32,
    /// Does it have the very same scopes?
    is_same: bool,
}

impl Known {
    /// The newest list that tells most of the scopes. One that cannot be read tells nothing. What `read` was read from is not
    /// read again.
    fn find(
        folder: &Folder,
        scopes: &[Vec<u8>],
        never: &[String],
        read: Option<&Manifest>,
    ) -> Result<Known, VaultError> {
        let mut best: Option<(u8, Number)> = None;
        let distrust = Distrust::read(folder);
        let mut numbers = folder.numbers(Room::Snapshots)?;
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        // The newest is usually the one; the others are not even read then.
        let newest_first =
            numbers.into_iter().filter_map(|id| StoredSnapshot::read(folder, SnapshotId(id)).ok());
        for stored in newest_first.filter(|stored| stored.never == never) {
            let number = stored.after.unwrap_or(stored.before);
            if !distrust.spares_list(number) {
                continue;
            }
            let theirs: Vec<Vec<u8>> = stored.scopes().collect();
            let covers = |path: &Vec<u8>| theirs.iter().any(|scope| is_at_or_below(path, scope));
            let touches = |path: &Vec<u8>| theirs.iter().any(|scope| is_at_or_below(scope, path));
            let rank = match () {
                () if theirs == scopes => 3,
                () if scopes.iter().all(covers) => 2,
                () if scopes.iter().any(|path| covers(path) || touches(path)) => 1,
                () => 0,
            };
            if rank > best.map_or(0, |(rank, _)| rank) {
                best = Some((rank, number));
            }
            if rank == 3 {
                break;
            }
        }
        let list = |number| Manifest::read_beside(folder, number, read).ok();
        Ok(match best.and_then(|(rank, number)| Some((rank, number, list(number)?))) {
            Some((rank, number, list)) => Known::new(Some(number), list, rank == 3),
            None => Known::new(None, Manifest::default(), false),
        })
    }

    fn new(number: Option<Number>, list: Manifest, is_same: bool) -> Known {
        Known { number, depth: list.depth(), list, is_same }
    }
}

/// A look at a tree.
struct See<'a> {
    folder: &'a Folder,
    scopes: &'a [Vec<u8>],
    extent: Extent<'a>,
    policy: &'a Policy<'a>,
    now: SystemTime,
    watch: &'a dyn Watch,
}

/// What was seen, not yet written down.
struct Seen {
    known: Known,
    fresh: HashMap<Vec<u8>, Listing>,
    entries: u64,
    bytes: u64,
    gaps: Vec<Gap>,
    pack: Option<PathBuf>,
    packed: u64,
}

/// A list that is complete.
struct Complete {
    list: Manifest,
    entries: u64,
    bytes: u64,
    gaps: Vec<Gap>,
}

impl See<'_> {
    /// Looks, and keeps what is new.
    fn keep(&self, known: Known, packs: &Packs, reserve: Reserve) -> Result<Seen, VaultError> {
        scopes::wait_for_git(self.scopes);
        let begun = moment(self.now);
        let first = self.walk(&known.list)?;
        if first.fresh.iter().all(|fresh| fresh.unread.is_empty()) && first.vanished.is_empty() {
            let reading = Reading::new(Destination::Nowhere, begun, self.watch);
            return self.rounds(known, first, &reading);
        }
        self.must_fit(first.unread, reserve)?;
        let writer = PackWriter::begin(self.folder)?;
        let unread = first.unread;
        let compress = unread <= COMPRESSED_AT_ONCE;
        // To find a few bytes among all that is held costs more than to hold them twice.
        let look = if unread <= HELD_TWICE { Look::AtHand } else { Look::Everywhere };
        let destination = Destination::Pack { writer: &writer, held: packs, look, compress };
        let reading = Reading::new(destination, begun, self.watch);
        let mut seen = writer.beside(unread, || self.rounds(known, first, &reading))?;
        drop(reading);
        seen.packed = writer.size();
        seen.pack = writer.finish()?;
        Ok(seen)
    }

    /// Looks, and keeps nothing.
    fn only_look(&self, known: Known) -> Result<Seen, VaultError> {
        let begun = moment(self.now);
        let first = self.walk(&known.list)?;
        self.rounds(known, first, &Reading::new(Destination::Nowhere, begun, self.watch))
    }

    fn walk(&self, known: &Manifest) -> Result<walk::Walked, VaultError> {
        walk::walk(self.scopes, self.extent, known, self.policy, moment(self.now), self.watch)
    }

    /// Reads what the first look found, and looks again as long as things go on meanwhile.
    fn rounds(
        &self,
        mut known: Known,
        first: walk::Walked,
        reading: &Reading<'_>,
    ) -> Result<Seen, VaultError> {
        let mut fresh: HashMap<Vec<u8>, Listing> = HashMap::new();
        let mut walked = first;
        for round in 1.. {
            let read = reading.read(std::mem::take(&mut walked.fresh))?;
            let mut lost: Vec<Gap> = read.iter().flat_map(lost_in).collect();
            fresh.extend(read.into_iter().map(|Fresh { path, listing, .. }| (path, listing)));
            for (path, flag) in walked
                .closed
                .iter()
                .map(|path| (path, Flags::UNREADABLE))
                .chain(walked.vanished.iter().map(|path| (path, Flags::UNSTABLE)))
            {
                mark(&mut fresh, &known.list, path, flag);
                lost.push(Gap { path: path_of(path.clone()), reason: reason(flag, Kind::Folder) });
            }
            let is_settled = walked.vanished.is_empty() && !reading.is_unsettled();
            if is_settled || round == ROUNDS {
                let gaps = walked
                    .gaps
                    .into_iter()
                    .map(|(path, flags, kind)| Gap { path: path_of(path), reason: reason(flags, kind) });
                // Git was at work each time: what is held of it may not fit together.
                lost.extend(
                    reading
                        .disturbed()
                        .into_iter()
                        .map(|git| Gap { path: path_of(git), reason: GapReason::Unstable }),
                );
                let gaps = in_order(gaps.chain(lost).collect());
                let (entries, bytes) = (walked.entries, walked.bytes);
                return Ok(Seen { known, fresh, entries, bytes, gaps, pack: None, packed: 0 });
            }
            // What was read is known now; only what changed since is read again.
            known.list = std::mem::take(&mut known.list).on_top(layer(&fresh)?);
            walked = self.walk(&known.list)?;
        }
        Err(VaultError::Stopped)
    }

    /// Room is looked for before anything is written.
    fn must_fit(&self, needed: u64, reserve: Reserve) -> Result<(), VaultError> {
        let allowed = reserve.max_size.saturating_sub(self.folder.size());
        if needed > allowed {
            return Err(VaultError::OverBudget { needed, allowed });
        }
        let free = self.folder.free().map(|free| free.saturating_sub(reserve.min_free));
        match free.filter(|free| needed > *free) {
            Some(free) => Err(VaultError::DiskFull { path: self.folder.path().to_owned(), needed, free }),
            None => Ok(()),
        }
    }
}

impl Seen {
    /// Is there anything that the known list does not say?
    fn is_news(&self) -> bool {
        !(self.fresh.is_empty() && self.known.is_same)
    }

    /// Writes it down under a number. The list's own number comes back with how much was written: it is the known one where
    /// there is no news.
    fn commit(mut self, folder: &Folder, number: Number) -> Result<(Complete, Number, u64), VaultError> {
        let mut stored = 0;
        if let Some(pack) = self.pack.take() {
            folder.publish(&pack, Room::Packs, number)?;
            folder.settle(Room::Packs)?;
            stored += self.packed;
        }
        if let Some(known) = self.known.number.filter(|_| !self.is_news()) {
            return Ok((self.in_memory()?, known, stored));
        }
        let (bytes, complete) = self.written(number)?;
        let (mut file, hidden) = folder.unfinished(Room::Manifests)?;
        file.write_all(&bytes).and_then(|()| file.sync_data()).map_err(VaultError::io("write", &hidden))?;
        folder.publish(&hidden, Room::Manifests, number)?;
        folder.settle(Room::Manifests)?;
        stored += bytes.len() as u64;
        Ok((complete, number, stored))
    }

    /// The list without writing anything.
    fn in_memory(self) -> Result<Complete, VaultError> {
        Ok(self.written(UNNUMBERED)?.1)
    }

    /// The bytes of the list, and the list as they say it. Where little changed, it says only that.
    fn written(self, number: Number) -> Result<(Vec<u8>, Complete), VaultError> {
        let is_news = self.is_news();
        let Seen { known, fresh, entries, bytes, gaps, .. } = self;
        if !is_news {
            return Ok((Vec::new(), Complete { list: known.list, entries, bytes, gaps }));
        }
        let few = fresh.len() * 4 <= known.list.folder_count().max(8);
        let base = known.number.filter(|_| known.is_same && few && known.depth < LONGEST_CHAIN);
        let written = match base {
            Some(base) => written(&fresh, Some((base, known.depth))),
            None => whole(&fresh, &known.list),
        };
        let layer = Layer::parse(written.clone(), number, Path::new("manifest"))?;
        let list = match base {
            Some(_) => known.list.on_top(layer),
            None => Manifest::default().on_top(layer),
        };
        Ok((written, Complete { list, entries, bytes, gaps }))
    }
}

fn layer(fresh: &HashMap<Vec<u8>, Listing>) -> Result<Layer, VaultError> {
    Layer::parse(written(fresh, None), UNNUMBERED, Path::new("manifest"))
}

fn written(fresh: &HashMap<Vec<u8>, Listing>, base: Option<(Number, u32)>) -> Vec<u8> {
    let mut writer = Writer::new(base);
    for (path, listing) in fresh {
        writer.folder(path, listing);
    }
    writer.finish()
}

/// Everything that the scopes reach, from what is fresh and from what is known.
fn whole(fresh: &HashMap<Vec<u8>, Listing>, known: &Manifest) -> Vec<u8> {
    let mut writer = Writer::new(None);
    let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let mut reach = |name: &[u8], entry: &Entry| {
            if entry.kind() == Kind::Folder && entry.is_held() {
                waiting.push(join(&path, name));
            }
        };
        match (fresh.get(&path), known.folder(&path)) {
            (Some(listing), _) => {
                writer.folder(&path, listing);
                for listed in &listing.entries {
                    reach(&listed.name, &listed.entry);
                }
            }
            (None, Some(folder)) => {
                writer.same_folder(&path, folder);
                for seen in folder.folders() {
                    reach(seen.name, &seen.entry);
                }
            }
            (None, None) => {}
        }
    }
    writer.finish()
}

/// Marks a folder in the list of the folder that holds it.
fn mark(fresh: &mut HashMap<Vec<u8>, Listing>, known: &Manifest, path: &[u8], flag: Flags) {
    let in_listing = |listing: &mut Listing, name: &[u8]| {
        if let Some(listed) = listing.entries.iter_mut().find(|listed| listed.name == name) {
            listed.entry.flags = listed.entry.flags.with(flag);
            return true;
        }
        false
    };
    let at = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    // A scope stands in the list of scopes, whatever an earlier list says of the folder around it.
    let parents: [(&[u8], &[u8]); 2] =
        [(b"", path), (if at == 0 { b"/" } else { &path[..at] }, &path[at + 1..])];
    for (parent, name) in parents {
        if let Some(listing) = fresh.get_mut(parent) {
            if in_listing(listing, name) {
                return;
            }
        } else if let Some(folder) = known.folder(parent) {
            let mut listing = folder.to_listing();
            if in_listing(&mut listing, name) {
                fresh.insert(parent.to_vec(), listing);
                return;
            }
        }
    }
}

/// Gaps as they are told, each once. Not all of them may be named: what could not be taken has to be among those that are.
fn in_order(mut gaps: Vec<Gap>) -> Vec<Gap> {
    gaps.sort_by(|a, b| (a.reason.is_on_purpose(), &a.path).cmp(&(b.reason.is_on_purpose(), &b.path)));
    gaps.dedup();
    gaps
}

/// What could not be read of a folder.
fn lost_in(fresh: &Fresh) -> Vec<Gap> {
    let lost = |flags: Flags| flags.has(Flags::UNREADABLE) || flags.has(Flags::UNSTABLE);
    let listed = fresh.listing.entries.iter().filter(|listed| lost(listed.entry.flags));
    let gap = listed.map(|listed| Gap {
        path: path_of(join(&fresh.path, &listed.name)),
        reason: reason(listed.entry.flags, listed.entry.kind()),
    });
    gap.collect()
}

fn reason(flags: Flags, kind: Kind) -> GapReason {
    let by_flag = [
        (Flags::REBUILDABLE, GapReason::Rebuildable),
        (Flags::NEVER, GapReason::Never),
        (Flags::MOUNTED, GapReason::Mounted),
        (Flags::UNREADABLE, GapReason::Unreadable),
        (Flags::UNSTABLE, GapReason::Unstable),
    ];
    let found = by_flag.into_iter().find(|(flag, _)| flags.has(*flag));
    debug_assert!(found.is_some() || kind == Kind::Special);
    found.map_or(GapReason::Special, |(_, reason)| reason)
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

fn moment(time: SystemTime) -> Moment {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Moment { seconds: since.as_secs() as i64, nanos: since.subsec_nanos() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_taken_is_named_before_what_is_left_out() {
        let gap = |path: &str, reason| Gap { path: PathBuf::from(path), reason };
        let gaps = vec![
            gap("/a", GapReason::Rebuildable),
            gap("/z", GapReason::Unreadable),
            gap("/b", GapReason::Never),
            gap("/z", GapReason::Unreadable),
        ];
        let paths: Vec<PathBuf> = in_order(gaps).into_iter().map(|gap| gap.path).collect();
        assert_eq!(paths, ["/z", "/a", "/b"].map(PathBuf::from));
    }
}
