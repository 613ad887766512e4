//! Looking whether a restore brought back what it should: what was read again afterwards is compared with what the snapshot
//! holds, content by content.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::compare::{Chosen, Pair, Reach, has_same_content, pairs, there};
use crate::deed::Op;
use crate::entry::Kind;
use crate::layer::Seen;
use crate::manifest::{Manifest, join};
use crate::plan::to_path;
use crate::stage::{name, parent};

/// Compares what was read after the restore with what the snapshot holds. How many files are the same, and which are not.
pub(crate) fn verify<'a>(
    want: &Manifest,
    after: &Manifest,
    chosen: &Chosen,
    done: impl Iterator<Item = &'a Op>,
) -> (u64, Vec<PathBuf>) {
    let mut verified = Verified { want, after, chosen, same: 0, others: Vec::new() };
    let mut folder: (Vec<u8>, HashMap<&[u8], Seen<'_>>) = Default::default();
    for op in done {
        let Some((entry, attributes)) = &op.want else { continue };
        let above = parent(&op.path);
        let is_scope = after.scopes().iter().any(|scope| scope.name == op.path);
        if !is_scope && folder.0 != above {
            let seen = after.folder(above).into_iter().flat_map(|view| view.iter());
            folder = (above.to_vec(), seen.map(|seen| (seen.name, seen)).collect());
        }
        let is = match is_scope {
            true => there(after.find(&op.path)),
            false => folder.1.get(name(&op.path)).copied(),
        };
        let was = Some(Seen { name: &op.path, entry: *entry, attributes });
        verified.thing(op.path.clone(), Pair { name: &op.path, was, is });
    }
    (verified.same, verified.others)
}

struct Verified<'a> {
    want: &'a Manifest,
    after: &'a Manifest,
    chosen: &'a Chosen,
    same: u64,
    others: Vec<PathBuf>,
}

impl Verified<'_> {
    fn thing(&mut self, path: Vec<u8>, pair: Pair<'_>) {
        let Some(was) = pair.was else { return };
        if !was.entry.is_held() || self.chosen.reach(&path) == Reach::Outside {
            return;
        }
        match pair.is {
            Some(is) if is.entry.kind() != was.entry.kind() => self.others.push(to_path(&path)),
            None => self.others.push(to_path(&path)),
            Some(is) => match was.entry.kind() {
                Kind::File | Kind::Link => {
                    match has_same_content(&was.entry, &is.entry) && is.entry.is_held() {
                        true => self.same += 1,
                        false => self.others.push(to_path(&path)),
                    }
                }
                Kind::Folder => {
                    for pair in pairs(self.want.folder(&path), self.after.folder(&path)) {
                        self.thing(join(&path, pair.name), pair);
                    }
                }
                Kind::Fifo | Kind::Special | Kind::Absent => {}
            },
        }
    }
}
