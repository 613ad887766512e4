//! Bringing things back: the present is saved, what differs is made ready beside the tree, written down, and only then put
//! into its place. Up to the moment at which it is written down nothing was touched; from then on it is always finished.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::compare::{Chosen, there};
use crate::content;
use crate::deed::{Deed, Keeper, Op, Plan};
use crate::depth;
use crate::entry::Kind;
use crate::error::VaultError;
use crate::folder::{Folder, Hold, Room};
use crate::git_index;
use crate::git_paths::is_git_index;
use crate::journal::Journal;
use crate::layer::Seen;
use crate::manifest::{Manifest, is_at_or_below};
use crate::pack::{Look, Packs};
use crate::plan::{self, Lists, to_path};
use crate::prepare::{self, Prepared, Preparing};
use crate::recover;
use crate::restored::{Difference, Held, Kept, KeptBecause, Restored};
use crate::snapshot::{Origin, SnapshotId};
use crate::stage::{self, Stages, name, parent};
use crate::steps::{above, steps};
use crate::stored_snapshot::StoredSnapshot;
use crate::take::{self, Taken};
use crate::tree;
use crate::undone::undone;
use crate::verify::verify;
use crate::watch::{Progress, Stage as Doing, Watch};
use crate::wish::{Choice, Rebuildable, Wish};

/// What is brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// All that the snapshot holds.
    All,
    /// What the protected call changed.
    Call,
}

/// Makes the present what a snapshot holds.
pub(crate) fn restore(
    folder: &Folder,
    id: SnapshotId,
    choice: &Choice,
    watch: &dyn Watch,
) -> Result<Restored, VaultError> {
    bring_back(folder, id, Aim::All, choice, watch)
}

/// Takes back what the protected call changed, and nothing that anybody changed since.
pub(crate) fn undo(
    folder: &Folder,
    id: SnapshotId,
    choice: &Choice,
    watch: &dyn Watch,
) -> Result<Restored, VaultError> {
    bring_back(folder, id, Aim::Call, choice, watch)
}

/// How the present differs from a snapshot.
pub(crate) fn differences(
    folder: &Folder,
    id: SnapshotId,
    paths: &[PathBuf],
    watch: &dyn Watch,
) -> Result<Vec<Difference>, VaultError> {
    let _shared = folder.hold(Hold::Shared, || is_watched(watch))?;
    let stored = StoredSnapshot::read(folder, id)?;
    let want = Manifest::read(folder, stored.before)?;
    // Nothing is kept of this look, so it does not matter when it was.
    let have = take::look(folder, &stored, std::time::SystemTime::UNIX_EPOCH, watch)?;
    let chosen = Chosen::of(paths);
    let lists = Lists { want: &want, have: &have, left: None, force: false, excused: &[], chosen: &chosen };
    let mut told = plan::plan(lists).told;
    told.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(told)
}

/// What a snapshot holds of a file or a link, at most its first bytes.
pub(crate) fn content(
    folder: &Folder,
    id: SnapshotId,
    path: &Path,
    most: usize,
) -> Result<Option<Vec<u8>>, VaultError> {
    let _shared = folder.hold(Hold::Shared, || true)?;
    let want = Manifest::read(folder, StoredSnapshot::read(folder, id)?.before)?;
    let Some(seen) = there(want.find(path.as_os_str().as_bytes())) else { return Ok(None) };
    let entry = seen.entry;
    if !entry.is_held() || !matches!(entry.kind(), Kind::File | Kind::Link) {
        return Ok(None);
    }
    Ok(Some(content::beginning(&Packs::list(folder)?, &entry, most)?))
}

/// What a snapshot holds at a path and below it, or of everything, sorted by path.
pub(crate) fn held(
    folder: &Folder,
    id: SnapshotId,
    below: Option<&Path>,
) -> Result<Vec<(PathBuf, Held)>, VaultError> {
    let _shared = folder.hold(Hold::Shared, || true)?;
    let want = Manifest::read(folder, StoredSnapshot::read(folder, id)?.before)?;
    let below = below.map(|below| below.as_os_str().as_bytes());
    let mut all = Vec::new();
    want.visit(|path, seen| -> Result<(), VaultError> {
        if below.is_none_or(|below| is_at_or_below(path, below)) {
            let size = seen.entry.size;
            let held = match seen.entry.kind() {
                Kind::Absent => return Ok(()),
                Kind::File | Kind::Folder | Kind::Link | Kind::Fifo if !seen.entry.is_held() => Held::Not,
                Kind::File => Held::File { size },
                Kind::Folder => Held::Folder,
                Kind::Link => Held::Link,
                Kind::Fifo | Kind::Special => Held::Special,
            };
            all.push((to_path(path), held));
        }
        Ok(())
    })?;
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}

fn is_watched(watch: &dyn Watch) -> bool {
    watch.goes_on(Progress { stage: Doing::Looking, done: 0, of: 0, bytes: 0 })
}

fn bring_back(
    folder: &Folder,
    id: SnapshotId,
    aim: Aim,
    choice: &Choice,
    watch: &dyn Watch,
) -> Result<Restored, VaultError> {
    let hold = if choice.dry_run { Hold::Shared } else { Hold::Alone };
    let held = folder.hold(hold, || is_watched(watch))?;
    if !choice.dry_run {
        recover::recover_alone(folder, &held)?;
    }
    let stored = StoredSnapshot::read(folder, id)?;
    let want = Manifest::read(folder, stored.before)?;
    let left = match (aim, stored.after) {
        (Aim::All, _) => None,
        (Aim::Call, Some(after)) => Some(Manifest::read_beside(folder, after, Some(&want))?),
        (Aim::Call, None) if choice.force => None,
        (Aim::Call, None) => return Err(VaultError::NotConcluded { id }),
    };
    let chosen = Chosen::of(&choice.paths);
    let packs = Packs::list(folder)?;
    let restore = Restore {
        folder,
        packs,
        stored: &stored,
        want: &want,
        left: left.as_ref(),
        chosen: &chosen,
        choice,
        watch,
    };
    if choice.dry_run {
        return restore.tried();
    }
    let saved = restore.save()?;
    let saved_id = saved.stored.id();
    let done = restore.carry_out(aim, saved);
    // Only what was never begun leaves nothing to take back.
    let is_begun = folder.journal().exists() || matches!(&done, Ok(done) if done.saved.is_some());
    if !is_begun {
        let path = folder.numbered(Room::Snapshots, saved_id.0);
        fs::remove_file(&path).map_err(VaultError::io("remove", &path))?;
    }
    if !folder.journal().exists() {
        // What cannot be removed now is rubbish that the next command finds.
        let _it_is_done_all_the_same = stage::remove_all(folder, &held);
    }
    done
}

struct Restore<'a> {
    folder: &'a Folder,
    packs: Packs,
    stored: &'a StoredSnapshot,
    want: &'a Manifest,
    left: Option<&'a Manifest>,
    chosen: &'a Chosen,
    choice: &'a Choice,
    watch: &'a dyn Watch,
}

impl Restore<'_> {
    fn plan(&self, have: &Manifest) -> Plan {
        let (want, left, chosen) = (self.want, self.left, self.chosen);
        let lists = Lists { want, have, left, force: self.choice.force, excused: &[], chosen };
        let plan = plan::plan(lists);
        let excused = self.excused(&plan);
        let mut plan = match excused.is_empty() {
            true => plan,
            false => plan::plan(Lists { excused: &excused, ..lists }),
        };
        let refused = self.behind_links();
        plan.refuse(|op| refused.iter().any(|scope| is_at_or_below(&op.path, scope)));
        if plan.ops.iter().any(moves_folder) {
            let scopes: Vec<Vec<u8>> = self.want.scopes().iter().map(|scope| scope.name.to_vec()).collect();
            let mounts = tree::mounts_below(&scopes);
            plan.refuse(|op| moves_folder(op) && mounts.iter().any(|mount| is_at_or_below(mount, &op.path)));
        }
        plan
    }

    /// Scopes to whose places a link leads by now: what is there is not what was taken.
    fn behind_links(&self) -> Vec<Vec<u8>> {
        let is_behind_link = |scope: &Seen<'_>| {
            let error = tree::open_folder(parent(scope.name)).err();
            let error = error.as_ref().and_then(Errno::from_io_error);
            matches!(error, Some(Errno::LOOP | Errno::NOTDIR))
        };
        self.want.scopes().iter().filter(is_behind_link).map(|scope| scope.name.to_vec()).collect()
    }

    /// What somebody wrote again since without saying anything else: git does so with its index whenever it is asked how things
    /// stand, which is what people do first after a mishap.
    fn excused(&self, plan: &Plan) -> Vec<Vec<u8>> {
        let since = plan.kept.iter().filter(|kept| kept.because == KeptBecause::ChangedSince);
        let indexes = since.map(|kept| kept.path.as_os_str().as_bytes()).filter(|path| is_git_index(path));
        let says_the_same = |path: &&[u8]| -> Option<bool> {
            let left = there(self.left?.find(path))?;
            let content = content::beginning(&self.packs, &left.entry, INDEX_MAX).ok()?;
            let mut present = Vec::new();
            let file =
                tree::open_folder(parent(path)).and_then(|folder| tree::open_file(&folder, name(path)));
            fs::File::from(file.ok()?).take(INDEX_MAX as u64).read_to_end(&mut present).ok()?;
            Some(git_index::says_the_same(&content, &present))
        };
        indexes.filter(|path| says_the_same(path) == Some(true)).map(<[u8]>::to_vec).collect()
    }

    /// Says what would be done.
    fn tried(&self) -> Result<Restored, VaultError> {
        let have = take::look(self.folder, self.stored, self.choice.now, self.watch)?;
        let Plan { ops, told, kept, .. } = self.plan(&have);
        let is_missed = |op: &Op| {
            let is_written = matches!(op.deed, Deed::Place | Deed::Exchange);
            let content = op.want.as_ref().filter(|(entry, _)| entry.kind() == Kind::File && entry.size > 0);
            is_written && content.is_some_and(|(entry, _)| !self.packs.has(&entry.hash, Look::Everywhere))
        };
        let missed =
            ops.iter().filter(|op| is_missed(op)).map(|op| (to_path(&op.path), KeptBecause::Damaged));
        let missed: Vec<Kept> = missed.map(|(path, because)| Kept { path, because }).collect();
        Ok(self.told(None, told, kept.into_iter().chain(missed).collect(), 0, 0))
    }

    fn told(
        &self,
        saved: Option<SnapshotId>,
        mut done: Vec<Difference>,
        mut kept: Vec<Kept>,
        verified: u64,
        written: u64,
    ) -> Restored {
        let is_kept: HashSet<PathBuf> = kept.iter().map(|kept| kept.path.clone()).collect();
        done.retain(|done| !is_kept.contains(&done.path));
        done.sort_by(|a, b| a.path.cmp(&b.path));
        kept.sort_by(|a, b| a.path.cmp(&b.path));
        kept.dedup();
        Restored { id: self.stored.id(), saved, done, kept, verified, written }
    }

    /// Saves the present.
    fn save(&self) -> Result<Taken, VaultError> {
        let scopes = self.stored.to_snapshot().scopes;
        let wish = Wish {
            scopes: scopes.into_iter().map(|scope| scope.path).collect(),
            rebuildable: match self.stored.takes_rebuildable {
                true => Rebuildable::Taken,
                false => Rebuildable::LeftOut,
            },
            never: self.stored.never.clone(),
            origin: Origin::Restore { of: self.stored.id() },
            note: String::new(),
            reserve: self.choice.reserve,
            now: self.choice.now,
        };
        take::take(self.folder, &self.packs, &wish, Some(self.want), self.watch)
    }

    fn carry_out(&self, aim: Aim, saved: Taken) -> Result<Restored, VaultError> {
        let mut plan = self.plan(&saved.manifest);
        if plan.is_empty() {
            return Ok(self.told(None, plan.told, plan.kept, 0, 0));
        }
        let id = saved.stored.id();
        let mut stages = Stages::make(self.folder, id.0)?;
        let places = self.places(&mut plan, &mut stages)?;
        check_room(&plan, &places, &stages)?;
        let Prepared { inodes, kept: damaged, folders, written } = {
            let keepers = self.keepers(&plan, &mut stages)?;
            prepare::prepare(&Preparing {
                packs: &self.packs,
                want: self.want,
                chosen: self.chosen,
                stages: &stages,
                places: &places,
                ops: &plan.ops,
                keepers,
                of: plan.told.len() as u64,
                watch: self.watch,
            })?
        };
        let journal = Journal {
            saved: id,
            now: self.choice.now,
            undone: if self.takes_back(aim) { undone(self.folder, self.stored, id)? } else { Vec::new() },
            stages: stages.paths(),
            above: above(&plan.ops),
            steps: steps(&plan.ops, &places, &inodes),
            folders: folders.into_iter().chain(std::mem::take(&mut plan.folders)).collect(),
            made: std::mem::take(&mut plan.made),
        };
        drop(stages);
        journal.write(self.folder)?;
        let finished = recover::finish(self.folder, &self.packs, &journal, saved, self.watch)?;
        let mut kept = std::mem::take(&mut plan.kept);
        kept.extend(damaged);
        let mut is_out = HashSet::new();
        for (number, because) in finished.kept {
            let op = &plan.ops[number];
            kept.push(Kept { path: to_path(&op.path), because });
            is_out.insert(number);
            kept_below(&plan, op, &mut kept, because);
        }
        let is_done = |number: &usize| !is_out.contains(number);
        let done = plan.ops.iter().enumerate().filter(|(number, _)| is_done(number)).map(|(_, op)| op);
        let done: Vec<&Op> = done.collect();
        let (verified, strange) = match &finished.after {
            Some(after) => depth::with_room(|| verify(self.want, after, self.chosen, done.iter().copied())),
            None => (0, Vec::new()),
        };
        let is_known: HashSet<PathBuf> = kept.iter().map(|kept| kept.path.clone()).collect();
        // What was done in a folder is told by itself; of the folder only what was to be done to it.
        let unmarked = finished.unmarked.into_iter().filter(|kept| !is_known.contains(&kept.path));
        let mut unmarked: HashMap<PathBuf, Kept> = unmarked.map(|kept| (kept.path.clone(), kept)).collect();
        kept.extend(plan.told.iter().filter_map(|told| unmarked.remove(&told.path)));
        let strange = strange.into_iter().filter(|path| !is_known.contains(path));
        kept.extend(strange.map(|path| Kept { path, because: KeptBecause::ChangedMeanwhile }));
        Ok(self.told(Some(id), plan.told, kept, verified, written))
    }

    /// Is what led to the snapshot undone by this? To restore what a person took undoes nothing.
    fn takes_back(&self, aim: Aim) -> bool {
        let is_of_call = matches!(self.stored.to_snapshot().origin, Origin::Call { .. });
        self.chosen.is_everything() && (aim == Aim::Call || is_of_call)
    }

    /// The stage that each deed uses. What no stage can be made for is kept.
    fn places(&self, plan: &mut Plan, stages: &mut Stages) -> Result<Vec<usize>, VaultError> {
        let mut known: HashMap<Vec<u8>, Option<usize>> = HashMap::new();
        let mut places = Vec::new();
        let mut ops = Vec::new();
        for op in std::mem::take(&mut plan.ops) {
            let scope = self.scope_of(&op.path);
            let place = match known.get(&scope) {
                Some(place) => *place,
                None => {
                    let place = match stages.near(&scope) {
                        Ok(place) => Some(place),
                        Err(VaultError::Io { source, .. }) if is_refusal(&source) => None,
                        Err(error) => return Err(error),
                    };
                    known.insert(scope, place);
                    place
                }
            };
            match place {
                Some(place) => {
                    places.push(place);
                    ops.push(op);
                }
                None => {
                    let mut kept = vec![Kept { path: to_path(&op.path), because: KeptBecause::Refused }];
                    kept_below(plan, &op, &mut kept, KeptBecause::Refused);
                    plan.kept.extend(kept);
                }
            }
        }
        plan.ops = ops;
        Ok(places)
    }

    fn keepers(&self, plan: &Plan, stages: &mut Stages) -> Result<HashMap<(usize, u64), Keeper>, VaultError> {
        let mut keepers = HashMap::new();
        for keeper in &plan.keepers {
            keepers.insert((stages.near(&self.scope_of(&keeper.path))?, keeper.inode), keeper.clone());
        }
        Ok(keepers)
    }

    fn scope_of(&self, path: &[u8]) -> Vec<u8> {
        let scopes = self.want.scopes();
        let scope = scopes.iter().find(|scope| is_at_or_below(path, scope.name));
        scope.map_or_else(|| path.to_vec(), |scope| scope.name.to_vec())
    }
}

/// An index longer than this is not read.
const INDEX_MAX: usize = 256 << 20;

/// What a deed that is not done would have done besides its own path.
fn kept_below(plan: &Plan, op: &Op, kept: &mut Vec<Kept>, because: KeptBecause) {
    let told = plan.told.get(op.told.clone()).unwrap_or_default();
    kept.extend(told.iter().map(|told| Kept { path: told.path.clone(), because }));
}

/// Does a folder go, with all that is in it?
fn moves_folder(op: &Op) -> bool {
    let is_folder = op.have.is_some_and(|have| have.kind() == Kind::Folder);
    is_folder && matches!(op.deed, Deed::Remove | Deed::Exchange)
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::CrossesDevices
            | io::ErrorKind::AlreadyExists
    )
}

/// Is there room for what has to be written?
fn check_room(plan: &Plan, places: &[usize], stages: &Stages) -> Result<(), VaultError> {
    for (number, stage) in stages.all.iter().enumerate() {
        let here = plan.ops.iter().zip(places).filter(|(_, place)| **place == number);
        let needed: u64 = here.map(|(op, _)| op.bytes).sum();
        let Ok(found) = rustix::fs::fstatvfs(&stage.folder) else { continue };
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        if needed > free {
            return Err(VaultError::DiskFull { path: stage.path.clone(), needed, free });
        }
    }
    Ok(())
}
