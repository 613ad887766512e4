//! The deeds of a restore in the order in which they are written down and done.

use std::collections::HashMap;
use std::io;

use crate::deed::{Deed, Op};
use crate::git_paths::{GitPart, git_part};
use crate::journal::{Old, Step};
use crate::marks::Marks;
use crate::stage::parent;
use crate::tree;

/// Folders above what is made again that are gone themselves, the uppermost first.
pub(crate) fn above(ops: &[Op]) -> Vec<Vec<u8>> {
    let mut gone = Vec::new();
    for op in ops.iter().filter(|op| op.deed == Deed::Place) {
        let mut missing = Vec::new();
        let mut at = parent(&op.path);
        let is_gone =
            |path: &[u8]| tree::open_folder(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        while at != b"/" && is_gone(at) && !gone.iter().any(|known| known == at) {
            missing.push(at.to_vec());
            at = parent(at);
        }
        gone.extend(missing.into_iter().rev());
    }
    gone
}

/// The deeds as they are written down. A repository gets its objects before anything that names them, and loses them after.
pub(crate) fn steps(ops: &[Op], places: &[usize], inodes: &HashMap<usize, u64>) -> Vec<Step> {
    let mut steps = Vec::with_capacity(ops.len());
    for (number, op) in ops.iter().enumerate() {
        let new = inodes.get(&number).copied();
        let needs_new = matches!(op.deed, Deed::Place | Deed::Exchange);
        if needs_new && new.is_none() {
            continue;
        }
        let marks = op.want.as_ref().filter(|_| op.deed == Deed::Touch);
        steps.push(Step {
            number,
            deed: op.deed,
            stage: places[number],
            path: op.path.clone(),
            new,
            old: op.have.as_ref().map(Old::of),
            marks: marks.map(|(entry, attributes)| Marks::new(entry, attributes)),
        });
    }
    steps.sort_by_key(|step| rank(&step.path, step.deed));
    steps
}

fn rank(path: &[u8], deed: Deed) -> u8 {
    match (git_part(path), deed) {
        (GitPart::Outside | GitPart::Whole, _) => 0,
        (GitPart::Objects, Deed::Place | Deed::Exchange | Deed::Touch) => 0,
        (GitPart::Notes, _) => 1,
        (GitPart::Objects, Deed::Remove) => 2,
    }
}
