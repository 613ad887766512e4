//! Files with several names: which of them belong together, and how they come together again. Names that are one file as they
//! should be are left alone. What is done to a file is done under all of its names, so nothing is ever done to one that has a
//! name that has to stay as it is, in the lists or outside of them: a new file takes its place under the others.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};

use crate::compare::{change, there};
use crate::deed::{Deed, FolderMark, Keeper, Op, Plan};
use crate::entry::{Entry, Hash, Kind, Moment};
use crate::layer::Seen;
use crate::manifest::Manifest;
use crate::marks::Marks;
use crate::plan::{Lists, to_path, weight};
use crate::restored::{Change, Difference};
use crate::stage::parent;

/// What all names of one file share. The inode alone would do on one filesystem.
type File = (u64, Hash, u64, Moment);

fn file(entry: &Entry) -> File {
    (entry.inode, entry.hash, entry.size, entry.mtime)
}

/// Adds what is needed so that names that were one file are one file again, and names that were not are not. `linked` are the
/// names that may be changed and have others beside them, now or then.
pub(crate) fn settle(plan: &mut Plan, linked: &[Vec<u8>], lists: &Lists<'_>) {
    if linked.is_empty() {
        return;
    }
    let mut names = Names {
        was: by_file(lists.want),
        is: by_path(lists.have),
        together: by_file(lists.have),
        free: linked.iter().map(Vec::as_slice).collect(),
        ops: plan.ops.iter().enumerate().map(|(number, op)| (op.path.clone(), (number, op.deed))).collect(),
        taken: HashSet::new(),
        lists,
    };
    let mut groups = names.groups(linked);
    // The more names a file has, the more of them can stay as they are.
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    for group in groups {
        names.settle(plan, &group);
    }
}

/// Files with several names, by what their names share.
fn by_file(list: &Manifest) -> HashMap<File, Vec<Vec<u8>>> {
    let mut found: HashMap<File, Vec<Vec<u8>>> = HashMap::new();
    each_linked(list, |path, seen| found.entry(file(&seen.entry)).or_default().push(path.to_vec()));
    found
}

/// The same by their names, each with its attributes.
fn by_path(list: &Manifest) -> HashMap<Vec<u8>, (Entry, Vec<u8>)> {
    let mut found = HashMap::new();
    each_linked(list, |path, seen| {
        found.insert(path.to_vec(), (seen.entry, seen.attributes.to_vec()));
    });
    found
}

fn each_linked(list: &Manifest, mut see: impl FnMut(&[u8], &Seen<'_>)) {
    let _nothing_stops_it = list.visit(|path, seen| {
        let entry = &seen.entry;
        if entry.links > 1 && entry.is_held() && entry.kind() != Kind::Folder {
            see(path, seen);
        }
        Ok::<(), ()>(())
    });
}

/// A file of the present that has the right content for some names.
struct Present {
    file: File,
    entry: Entry,
    /// How many names the system knows of it.
    links: usize,
    /// It needs other marks.
    is_touched: bool,
    /// How much speaks for it.
    weight: u32,
    /// One of those names.
    path: Vec<u8>,
}

struct Names<'a> {
    was: HashMap<File, Vec<Vec<u8>>>,
    is: HashMap<Vec<u8>, (Entry, Vec<u8>)>,
    /// The names of each file of the present.
    together: HashMap<File, Vec<Vec<u8>>>,
    /// Names that may be changed.
    free: HashSet<&'a [u8]>,
    /// The deed at each path, with its number.
    ops: HashMap<Vec<u8>, (usize, Deed)>,
    /// Files of the present that stay, each for one file of then.
    taken: HashSet<File>,
    lists: &'a Lists<'a>,
}

impl<'a> Names<'a> {
    /// The names that were one file, for each that is concerned.
    fn groups(&self, linked: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
        let mut seen = HashSet::new();
        let mut groups = Vec::new();
        for path in linked {
            let Some(was) = there(self.lists.want.find(path)) else { continue };
            match self.was.get(&file(&was.entry)) {
                Some(group) if was.entry.links > 1 => {
                    if seen.insert(file(&was.entry)) {
                        groups.push(group.clone());
                    }
                }
                // Something else is wanted here, and made without any of this.
                Some(_) | None if was.entry.kind() == Kind::Folder => {}
                Some(_) | None => groups.push(vec![path.clone()]),
            }
        }
        groups
    }

    /// The file that has a name now, if that is what shall be there, whatever its marks.
    fn present(&self, path: &[u8], was: &Seen<'_>) -> Option<Present> {
        let is = match self.is.get(path) {
            Some((entry, attributes)) => Seen { name: was.name, entry: *entry, attributes },
            None => there(self.lists.have.find(path))?,
        };
        let is_touched = match change(was, &is) {
            None => false,
            Some(Change::Touched) => true,
            Some(Change::Modified | Change::Retyped | Change::Added | Change::Removed) => return None,
        };
        // What may not be changed decides.
        let weight = if self.free.contains(path) { 1 } else { 1000 };
        let links = is.entry.links as usize;
        is.entry.is_held().then(|| Present {
            file: file(&is.entry),
            entry: is.entry,
            links,
            is_touched,
            weight,
            path: path.to_vec(),
        })
    }

    /// The files of the present that some names could be names of.
    fn candidates(&self, wanted: &[(&Vec<u8>, Seen<'_>)]) -> Vec<Present> {
        let mut found: HashMap<File, Present> = HashMap::new();
        for present in wanted.iter().filter_map(|(path, was)| self.present(path, was)) {
            match found.entry(present.file) {
                Slot::Vacant(vacant) => {
                    vacant.insert(present);
                }
                Slot::Occupied(mut known) => {
                    known.get_mut().weight += present.weight;
                    known.get_mut().is_touched |= present.is_touched;
                }
            }
        }
        found.into_values().collect()
    }

    /// Does a name become a name of another file, or of none, with no regard to links?
    fn goes(&self, path: &[u8]) -> bool {
        let goes = |at: &[u8]| match self.ops.get(at) {
            Some((_, Deed::Remove | Deed::Exchange)) => true,
            Some((_, Deed::Place | Deed::Touch)) | None => false,
        };
        let mut at = path;
        loop {
            match goes(at) {
                true => return true,
                false if at.len() <= 1 => return false,
                false => at = parent(at),
            }
        }
    }

    /// Can a file of the present be what these names are names of? Not if it is that for others, and not if it has a name that
    /// was none of these and stays.
    fn may_stay(&self, present: &Present, group: &HashSet<&[u8]>) -> bool {
        let own = [present.path.clone()];
        let names = self.together.get(&present.file).map_or(&own[..], Vec::as_slice);
        let is_wrong = |path: &[u8]| {
            let stays = !group.contains(path) && !self.free.contains(path) && !self.goes(path);
            stays && there(self.lists.want.find(path)).is_some()
        };
        // It gets other marks only if these are all of its names, and each of them may be changed. Whatever then hinders one of
        // them, none shows what it should not.
        let is_ours = |path: &[u8]| group.contains(path) && self.free.contains(path);
        let is_all = names.len() == present.links && names.len() == group.len();
        let may_be_touched = || is_all && names.iter().all(|path| is_ours(path));
        !self.taken.contains(&present.file)
            && !names.iter().any(|path| is_wrong(path))
            && (!present.is_touched || may_be_touched())
    }

    fn settle(&mut self, plan: &mut Plan, group: &[Vec<u8>]) {
        let lists = self.lists;
        let wanted: Vec<(&Vec<u8>, Seen<'a>)> =
            group.iter().filter_map(|path| Some((path, there(lists.want.find(path))?))).collect();
        let group = group.iter().map(Vec::as_slice).collect();
        let candidates =
            self.candidates(&wanted).into_iter().filter(|present| self.may_stay(present, &group));
        let keeper = candidates.max_by(|a, b| (a.weight, &b.path).cmp(&(b.weight, &a.path)));
        if let (Some(keeper), Some((_, was))) = (&keeper, wanted.first()) {
            self.taken.insert(keeper.file);
            let (path, is) = (keeper.path.clone(), keeper.entry);
            plan.keepers.push(Keeper { inode: was.entry.inode, path, is });
        }
        let kept = keeper.map(|keeper| keeper.file);
        for (path, was) in wanted.iter().filter(|(path, _)| self.free.contains(path.as_slice())) {
            let is_right = self.present(path, was).is_some_and(|is| Some(is.file) == kept);
            if !is_right {
                self.replace(plan, path, was);
            }
        }
    }

    /// A name of another file gives way to one of the right file.
    fn replace(&self, plan: &mut Plan, path: &[u8], was: &Seen<'_>) {
        let Some(is) = there(self.lists.have.find(path)) else { return };
        let want = Some((was.entry, was.attributes.to_vec()));
        match self.ops.get(path) {
            Some((number, _)) => {
                let op = &mut plan.ops[*number];
                match op.deed {
                    Deed::Touch => *op = Op { deed: Deed::Exchange, bytes: weight(&was.entry), ..op.clone() },
                    Deed::Place | Deed::Exchange | Deed::Remove => return,
                }
            }
            None => {
                let told = plan.told.len();
                plan.told.push(Difference { path: to_path(path), change: Change::Touched });
                let (deed, have, bytes) = (Deed::Exchange, Some(is.entry), weight(&was.entry));
                plan.ops.push(Op { deed, path: path.to_vec(), want, have, told: told..told + 1, bytes });
            }
        }
        self.mark_above(plan, path);
    }

    /// The folder of a changed name keeps its marks.
    fn mark_above(&self, plan: &mut Plan, path: &[u8]) {
        let above = parent(path);
        let is_scope = self.lists.have.scopes().iter().any(|scope| scope.name == path);
        if is_scope || plan.folders.iter().any(|mark| mark.path == above) {
            return;
        }
        if let Some(folder) = self.lists.have.find(above) {
            let mark =
                FolderMark { path: above.to_vec(), inode: folder.entry.inode, marks: Marks::of(&folder) };
            plan.folders.insert(0, mark);
        }
    }
}
