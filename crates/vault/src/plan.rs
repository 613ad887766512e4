//! What a restore has to do: the difference between what is wanted and what is there, as a list of deeds. Nothing is read or
//! written here. What the present could not be saved of is never changed, and neither is what the snapshot does not hold.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::compare::{Chosen, Reach, change, has_same_owner, is_same, pairs, there};
use crate::deed::{Deed, FolderMark, Op, Plan};
use crate::depth;
use crate::entry::{Entry, Flags, Kind};
use crate::layer::{FolderView, Seen};
use crate::manifest::{Apart, Manifest, join};
use crate::marks::Marks;
use crate::repository;
use crate::restored::{Change, Difference, Kept, KeptBecause};

/// What is compared.
#[derive(Clone, Copy)]
pub(crate) struct Lists<'a> {
    /// What shall be there.
    pub(crate) want: &'a Manifest,
    /// What is there.
    pub(crate) have: &'a Manifest,
    /// What the call left, where only its own changes are taken back.
    pub(crate) left: Option<&'a Manifest>,
    /// Its changes are taken back even where somebody else wrote over them.
    pub(crate) force: bool,
    /// What differs from what the call left, and says the same.
    pub(crate) excused: &'a [Vec<u8>],
    pub(crate) chosen: &'a Chosen,
}

/// What the call left of something.
#[derive(Clone, Copy)]
enum Left<T> {
    /// Nobody asks.
    Unasked,
    As(Option<T>),
}

/// May a path be changed?
enum Verdict {
    Change,
    /// The call did not touch it.
    NotTheirs,
    /// Somebody changed it since.
    Since,
}

/// Works out what to do.
pub(crate) fn plan(lists: Lists<'_>) -> Plan {
    depth::with_room(|| plan_all(lists))
}

fn plan_all(lists: Lists<'_>) -> Plan {
    let all = [Some(lists.want), Some(lists.have), lists.left].into_iter().flatten();
    let apart = Apart::of(&all.collect::<Vec<_>>());
    let mut planner = Planner {
        lists,
        apart,
        plan: Plan::default(),
        linked: Vec::new(),
        repositories: HashMap::new(),
        bytes: 0,
    };
    let left = match lists.left {
        Some(left) => Left::As(left.folder(b"")),
        None => Left::Unasked,
    };
    planner.level(b"", lists.want.folder(b""), lists.have.folder(b""), left, false);
    let Planner { mut plan, linked, .. } = planner;
    crate::links::settle(&mut plan, &linked, &lists);
    plan
}

struct Planner<'a> {
    lists: Lists<'a>,
    /// Where they could differ.
    apart: Apart,
    plan: Plan,
    /// Files with several names, now or then, that may be changed.
    linked: Vec<Vec<u8>>,
    /// Whether all that names objects in a repository is what the call left.
    repositories: HashMap<Vec<u8>, bool>,
    /// What the deed that is being planned writes.
    bytes: u64,
}

impl<'a> Planner<'a> {
    /// Everything in one folder. Tells whether names in it come, go or change places. In a doomed folder, whatever stays is
    /// told of. Scopes are the names in the folder without a path: one that the snapshot does not name is none of its own.
    fn level(
        &mut self,
        path: &[u8],
        want: Option<FolderView<'a>>,
        have: Option<FolderView<'a>>,
        left: Left<FolderView<'a>>,
        is_doomed: bool,
    ) -> bool {
        if self.apart.is_same_below(path) {
            return false;
        }
        let is_untouched = match (want, have, left) {
            (Some(want), Some(have), Left::Unasked) => want.is_same(&have),
            (Some(want), Some(have), Left::As(Some(left))) => want.is_same(&have) && want.is_same(&left),
            (_, _, Left::Unasked | Left::As(_)) => false,
        };
        if let (true, Some(want)) = (is_untouched, want) {
            for seen in want.folders() {
                let left = match left {
                    Left::Unasked => Left::Unasked,
                    Left::As(_) => Left::As(Some(seen)),
                };
                self.thing(join(path, seen.name), Some(seen), Some(seen), left, false);
            }
            return false;
        }
        let known: HashMap<&[u8], Seen<'a>> = match left {
            Left::As(Some(left)) => left.iter().map(|seen| (seen.name, seen)).collect(),
            Left::As(None) | Left::Unasked => Default::default(),
        };
        let mut changes = false;
        for pair in pairs(want, have).into_iter().filter(|pair| !path.is_empty() || pair.was.is_some()) {
            let left = match left {
                Left::Unasked => Left::Unasked,
                Left::As(_) => Left::As(there(known.get(pair.name).copied())),
            };
            changes |= self.thing(join(path, pair.name), there(pair.was), there(pair.is), left, is_doomed);
        }
        changes
    }

    /// One path. Tells whether the folder that it is in has to be written.
    fn thing(
        &mut self,
        path: Vec<u8>,
        want: Option<Seen<'a>>,
        have: Option<Seen<'a>>,
        left: Left<Seen<'a>>,
        is_doomed: bool,
    ) -> bool {
        let reach = self.lists.chosen.reach(&path);
        if reach == Reach::Outside {
            return false;
        }
        if let (Some(want), Some(have)) = (want, have)
            && is_folder(&want)
            && is_folder(&have)
        {
            return self.folder(path, want, have, left, reach);
        }
        match (self.verdict(&path, want, have, left, is_doomed), want, have) {
            (_, None, None) => false,
            (Verdict::NotTheirs, want, _) => {
                if is_doomed || self.has_lost_its_folder(&path, want, left) {
                    self.keep(path, KeptBecause::ChangedSince);
                }
                false
            }
            (Verdict::Since, _, _) => self.keep(path, KeptBecause::ChangedSince),
            (Verdict::Change, None, Some(have)) => self.remove(path, have, left, reach),
            (Verdict::Change, Some(want), None) => self.place(path, want, reach),
            (Verdict::Change, Some(want), Some(have)) => self.swap(path, want, have, left, reach),
        }
    }

    fn verdict(
        &self,
        path: &[u8],
        want: Option<Seen<'a>>,
        have: Option<Seen<'a>>,
        left: Left<Seen<'a>>,
        is_doomed: bool,
    ) -> Verdict {
        let Left::As(left) = left else { return Verdict::Change };
        match is_same(want, left) && !is_relinked(want, left) {
            true if is_doomed && self.lists.force => Verdict::Change,
            true => Verdict::NotTheirs,
            false if self.lists.force || is_same(have, left) || is_same(have, want) => Verdict::Change,
            false if self.lists.excused.iter().any(|excused| excused == path) => Verdict::Change,
            false => Verdict::Since,
        }
    }

    /// Did somebody else take away a folder in which the call had changed something?
    fn has_lost_its_folder(&self, path: &[u8], want: Option<Seen<'a>>, left: Left<Seen<'a>>) -> bool {
        let (Some(want), Left::As(Some(left)), Some(lists_left)) = (want, left, self.lists.left) else {
            return false;
        };
        let both = is_open(&want) && is_open(&left);
        both && !is_same_tree(path, self.lists.want, lists_left)
    }

    /// A folder that is there and shall be.
    fn folder(
        &mut self,
        path: Vec<u8>,
        want: Seen<'a>,
        have: Seen<'a>,
        left: Left<Seen<'a>>,
        reach: Reach,
    ) -> bool {
        if !want.entry.is_held() || !have.entry.is_held() {
            if want.entry.is_held() {
                self.keep(path, KeptBecause::NotHeld);
            }
            return false;
        }
        let told = self.plan.told.len();
        let (want_view, have_view) = (self.lists.want.folder(&path), self.lists.have.folder(&path));
        let inner = self.left_view(&path, left);
        let is_written = self.level(&path, want_view, have_view, inner, false);
        let aim = self.aim(&path, &want, &have, left, reach);
        let is_touched = aim != Marks::of(&have);
        if is_touched || is_written {
            let by_time_only = Marks { mtime: have.entry.mtime, ..aim.clone() } == Marks::of(&have);
            if is_touched && !(by_time_only && self.plan.told.len() > told) {
                self.tell(&path, Change::Touched);
            }
            self.plan.folders.push(FolderMark { path, inode: have.entry.inode, marks: aim });
        }
        false
    }

    /// The marks that a folder shall have.
    fn aim(
        &mut self,
        path: &[u8],
        want: &Seen<'a>,
        have: &Seen<'a>,
        left: Left<Seen<'a>>,
        reach: Reach,
    ) -> Marks {
        let present = Marks::of(have);
        match (reach, left) {
            (Reach::Above | Reach::Outside, _) => present,
            (Reach::Inside, Left::Unasked) => Marks::of(want),
            // What made it go made it come: it is there by somebody else's hand.
            (Reach::Inside, Left::As(None)) => present,
            (Reach::Inside, Left::As(Some(left))) => {
                let is_theirs = !has_same_owner(want, &left);
                let may = self.lists.force || has_same_owner(have, &left) || has_same_owner(have, want);
                if is_theirs && !may {
                    self.keep(path.to_vec(), KeptBecause::ChangedSince);
                }
                let owner = if is_theirs && may { Marks::of(want) } else { present };
                let is_timed = self.lists.force || have.entry.mtime == left.entry.mtime;
                let mtime = if is_timed { want.entry.mtime } else { have.entry.mtime };
                Marks { mtime, ..owner }
            }
        }
    }

    fn left_view(&self, path: &[u8], left: Left<Seen<'a>>) -> Left<FolderView<'a>> {
        match left {
            Left::Unasked => Left::Unasked,
            Left::As(left) => {
                let view = left.filter(is_open).and(self.lists.left).and_then(|list| list.folder(path));
                Left::As(view)
            }
        }
    }

    fn remove(&mut self, path: Vec<u8>, have: Seen<'a>, left: Left<Seen<'a>>, reach: Reach) -> bool {
        if !have.entry.is_held() {
            return self.keep(path, KeptBecause::NotHeld);
        }
        if self.may_be_named(&path) {
            return false;
        }
        let told = self.plan.told.len();
        if is_folder(&have) {
            let view = self.lists.have.folder(&path);
            let inner = self.left_view(&path, left);
            if reach == Reach::Above || !self.is_clear(&path, view, inner) {
                if self.level(&path, None, view, inner, reach == Reach::Inside) {
                    let marks = Marks::of(&have);
                    self.plan.folders.push(FolderMark { path, inode: have.entry.inode, marks });
                }
                return false;
            }
        }
        self.tell(&path, Change::Added);
        if is_folder(&have) {
            self.tell_all(&path, self.lists.have, Change::Added);
        }
        self.add(Deed::Remove, path, None, Some(have), told)
    }

    /// May something name an object that the call added to a repository? Whoever worked on there since may need it; nobody
    /// misses it when it goes, and git itself removes what nothing names.
    fn may_be_named(&mut self, path: &[u8]) -> bool {
        let (Some(left), Some(git)) = (self.lists.left, repository::of_object(path)) else { return false };
        let Lists { have, excused, .. } = self.lists;
        let is_as_left = || repository::is_as_left(git, left, have, excused);
        !*self.repositories.entry(git.to_vec()).or_insert_with(is_as_left)
    }

    /// May all of a folder go? Only if all of it is saved, and in an undo, if all of it is what the call left.
    fn is_clear(&self, path: &[u8], have: Option<FolderView<'a>>, left: Left<FolderView<'a>>) -> bool {
        let is_theirs = match left {
            Left::Unasked => true,
            Left::As(_) => self.lists.force,
        };
        let left = match left {
            Left::Unasked | Left::As(None) => None,
            Left::As(Some(left)) => Some(left),
        };
        pairs(left, have).into_iter().filter(|pair| pair.is.is_some()).all(|pair| {
            let Some(is) = pair.is else { return true };
            if !is.entry.is_held() || !(is_theirs || is_same(pair.was, pair.is)) {
                return false;
            }
            let below = join(path, pair.name);
            let inner = match (is_theirs, pair.was.filter(is_open), self.lists.left) {
                (true, _, _) => Left::Unasked,
                (false, Some(_), Some(list)) => Left::As(list.folder(&below)),
                (false, _, _) => Left::As(None),
            };
            !is_folder(&is) || self.is_clear(&below, self.lists.have.folder(&below), inner)
        })
    }

    fn place(&mut self, path: Vec<u8>, want: Seen<'a>, reach: Reach) -> bool {
        if !want.entry.is_held() {
            return self.keep(path, KeptBecause::NotHeld);
        }
        let lists = self.lists;
        let is_wanted = |chosen: &[u8]| there(lists.want.find(chosen)).is_some();
        if reach == Reach::Above && !lists.chosen.below(&path).any(is_wanted) {
            return false;
        }
        let told = self.plan.told.len();
        self.note_links(&path, &want);
        self.tell(&path, Change::Removed);
        if is_folder(&want) {
            self.tell_all(&path, lists.want, Change::Removed);
        }
        self.add(Deed::Place, path, Some(want), None, told)
    }

    fn swap(
        &mut self,
        path: Vec<u8>,
        want: Seen<'a>,
        have: Seen<'a>,
        left: Left<Seen<'a>>,
        reach: Reach,
    ) -> bool {
        if !want.entry.is_held() || !have.entry.is_held() {
            // A socket that was bound again is none that anybody misses.
            let are_special = want.entry.kind() == Kind::Special && have.entry.kind() == Kind::Special;
            if !are_special && !want.entry.has_same_stat(&have.entry) {
                self.keep(path, KeptBecause::NotHeld);
            }
            return false;
        }
        if reach == Reach::Above && !is_folder(&want) {
            let view = is_folder(&have).then(|| self.lists.have.folder(&path)).flatten();
            let inner = self.left_view(&path, left);
            if self.level(&path, None, view, inner, false) {
                let marks = Marks::of(&have);
                self.plan.folders.push(FolderMark { path, inode: have.entry.inode, marks });
            }
            return false;
        }
        if is_folder(&have) {
            let view = self.lists.have.folder(&path);
            if !self.is_clear(&path, view, self.left_view(&path, left)) {
                let is_undo = self.lists.left.is_some();
                let because = if is_undo { KeptBecause::ChangedSince } else { KeptBecause::NotHeld };
                return self.keep(path, because);
            }
        }
        let told = self.plan.told.len();
        if !self.note_links(&path, &want) {
            self.note_links(&path, &have);
        }
        match change(&want, &have) {
            None => false,
            Some(Change::Touched) => {
                self.tell(&path, Change::Touched);
                self.add(Deed::Touch, path, Some(want), Some(have), told);
                false
            }
            Some(change @ (Change::Modified | Change::Retyped | Change::Added | Change::Removed)) => {
                self.tell(&path, change);
                if is_folder(&have) {
                    self.tell_all(&path, self.lists.have, Change::Added);
                }
                if is_folder(&want) {
                    self.tell_all(&path, self.lists.want, Change::Removed);
                }
                self.add(Deed::Exchange, path, Some(want), Some(have), told)
            }
        }
    }

    fn add(
        &mut self,
        deed: Deed,
        path: Vec<u8>,
        want: Option<Seen<'a>>,
        have: Option<Seen<'a>>,
        told: usize,
    ) -> bool {
        let want = want.map(|want| (want.entry, want.attributes.to_vec()));
        let told = told..self.plan.told.len();
        let own = want.as_ref().map_or(0, |(entry, _)| weight(entry));
        let bytes = std::mem::take(&mut self.bytes) + own;
        self.plan.ops.push(Op { deed, path, want, have: have.map(|have| have.entry), told, bytes });
        true
    }

    /// Notes what has several names.
    fn note_links(&mut self, path: &[u8], seen: &Seen<'a>) -> bool {
        let has_others = seen.entry.links > 1 && !is_folder(seen);
        if has_others {
            self.linked.push(path.to_vec());
        }
        has_others
    }

    fn tell(&mut self, path: &[u8], change: Change) {
        self.plan.told.push(Difference { path: to_path(path), change });
    }

    /// Tells of everything in a folder that comes or goes as a whole.
    fn tell_all(&mut self, path: &[u8], list: &'a Manifest, change: Change) {
        if change == Change::Removed {
            self.plan.made.push(path.to_vec());
        }
        for seen in list.folder(path).iter().flat_map(FolderView::iter) {
            let below = join(path, seen.name);
            if self.lists.chosen.reach(&below) == Reach::Outside {
                continue;
            }
            if !seen.entry.is_held() {
                self.keep(below, KeptBecause::NotHeld);
                continue;
            }
            self.tell(&below, change);
            if change == Change::Removed {
                self.bytes += weight(&seen.entry);
                self.note_links(&below, &seen);
            }
            if is_folder(&seen) {
                self.tell_all(&below, list, change);
            }
        }
    }

    fn keep(&mut self, path: Vec<u8>, because: KeptBecause) -> bool {
        self.plan.kept.push(Kept { path: to_path(&path), because });
        false
    }
}

pub(crate) fn to_path(path: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(path))
}

/// What it takes of a disk, as far as anybody knows beforehand.
pub(crate) fn weight(entry: &Entry) -> u64 {
    let has_weight = entry.kind() == Kind::File && !entry.flags.has(Flags::SPARSE);
    if has_weight { entry.size } else { 0 }
}

fn is_folder(seen: &Seen<'_>) -> bool {
    seen.entry.kind() == Kind::Folder
}

/// Did a name of a file become a name of another one?
fn is_relinked(was: Option<Seen<'_>>, is: Option<Seen<'_>>) -> bool {
    let (Some(was), Some(is)) = (was, is) else { return false };
    let has_others = was.entry.links > 1 || is.entry.links > 1;
    has_others && !is_folder(&was) && !is_folder(&is) && was.entry.inode != is.entry.inode
}

/// Is it a folder whose content is in the list?
pub(crate) fn is_open(seen: &Seen<'_>) -> bool {
    is_folder(seen) && seen.entry.is_held()
}

/// Is everything in a folder the same in both lists?
fn is_same_tree(path: &[u8], a: &Manifest, b: &Manifest) -> bool {
    pairs(a.folder(path), b.folder(path)).into_iter().all(|pair| {
        let is_deep = pair.was.is_some_and(|was| is_open(&was)) && pair.is.is_some_and(|is| is_open(&is));
        is_same(pair.was, pair.is) && (!is_deep || is_same_tree(&join(path, pair.name), a, b))
    })
}
