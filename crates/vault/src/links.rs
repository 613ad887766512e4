//! Files with several names: which of them belong together, and how they come together again. Names that are one file as they
//! should be are left alone.

use std::collections::{HashMap, HashSet};

use crate::compare::{change, there};
use crate::deed::{Deed, FolderMark, Op, Plan};
use crate::entry::{Entry, Hash, Kind, Moment};
use crate::layer::Seen;
use crate::manifest::Manifest;
use crate::marks::Marks;
use crate::plan::{Lists, to_path};
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
        ops: plan.ops.iter().enumerate().map(|(number, op)| (op.path.clone(), number)).collect(),
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
    each_linked(list, |path, entry| found.entry(file(entry)).or_default().push(path.to_vec()));
    found
}

fn by_path(list: &Manifest) -> HashMap<Vec<u8>, Entry> {
    let mut found = HashMap::new();
    each_linked(list, |path, entry| {
        found.insert(path.to_vec(), *entry);
    });
    found
}

fn each_linked(list: &Manifest, mut see: impl FnMut(&[u8], &Entry)) {
    let _nothing_stops_it = list.visit(|path, seen| {
        let entry = &seen.entry;
        if entry.links > 1 && entry.is_held() && entry.kind() != Kind::Folder {
            see(path, entry);
        }
        Ok::<(), ()>(())
    });
}

struct Names<'a> {
    was: HashMap<File, Vec<Vec<u8>>>,
    is: HashMap<Vec<u8>, Entry>,
    /// The names of each file of the present.
    together: HashMap<File, Vec<Vec<u8>>>,
    /// Names that may be changed.
    free: HashSet<&'a [u8]>,
    /// The deed at each path.
    ops: HashMap<Vec<u8>, usize>,
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

    /// What is at a path now, if that is what shall be there, whatever its marks.
    fn present(&self, path: &[u8], was: &Seen<'_>) -> Option<Entry> {
        let is = match self.is.get(path) {
            Some(entry) => Seen { name: was.name, entry: *entry, attributes: &[] },
            None => there(self.lists.have.find(path))?,
        };
        match change(was, &is) {
            None | Some(Change::Touched) => Some(is.entry).filter(Entry::is_held),
            Some(Change::Modified | Change::Retyped | Change::Added | Change::Removed) => None,
        }
    }

    /// Can a file of the present be what these names are names of? Not if it is that for others, and not if it has a name that
    /// was none of these and stays.
    fn may_stay(&self, file: &File, group: &[Vec<u8>]) -> bool {
        let stays = |path: &Vec<u8>| {
            let is_other = !group.contains(path) && !self.free.contains(path.as_slice());
            is_other && there(self.lists.want.find(path)).is_some()
        };
        !self.taken.contains(file) && !self.together.get(file).into_iter().flatten().any(stays)
    }

    fn settle(&mut self, plan: &mut Plan, group: &[Vec<u8>]) {
        let lists = self.lists;
        let wanted: Vec<(&Vec<u8>, Seen<'a>)> =
            group.iter().filter_map(|path| Some((path, there(lists.want.find(path))?))).collect();
        let mut present: HashMap<File, (u32, &Vec<u8>)> = HashMap::new();
        for (path, was) in &wanted {
            if let Some(is) = self.present(path, was).filter(|is| self.may_stay(&file(is), group)) {
                // What may not be changed decides.
                let weight = if self.free.contains(path.as_slice()) { 1 } else { 1000 };
                present.entry(file(&is)).or_insert((0, path)).0 += weight;
            }
        }
        let keeper =
            present.into_iter().max_by_key(|(_, (weight, path))| (*weight, std::cmp::Reverse(*path)));
        if let (Some((file, (_, path))), Some((_, was))) = (&keeper, wanted.first()) {
            self.taken.insert(*file);
            plan.keepers.push((was.entry.inode, (*path).clone()));
        }
        let kept = keeper.map(|(file, _)| file);
        for (path, was) in wanted.iter().filter(|(path, _)| self.free.contains(path.as_slice())) {
            let is_right = self.present(path, was).is_some_and(|is| Some(file(&is)) == kept);
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
            Some(number) => {
                let op = &mut plan.ops[*number];
                match op.deed {
                    Deed::Touch => *op = Op { deed: Deed::Exchange, bytes: was.entry.size, ..op.clone() },
                    Deed::Place | Deed::Exchange | Deed::Remove => return,
                }
            }
            None => {
                let told = plan.told.len();
                plan.told.push(Difference { path: to_path(path), change: Change::Touched });
                let (deed, have, bytes) = (Deed::Exchange, Some(is.entry), was.entry.size);
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
