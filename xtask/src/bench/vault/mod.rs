//! What snapshots and restores cost, beside copies, archives, git and backup programs, and beside the least that looking at a
//! tree can cost. Everything runs as a process of its own, as people run it; what a restore brought back is compared entry by
//! entry before its time counts for anything.

mod arena;
mod listing;
mod peer;
mod scratch;
mod table;
mod tree;

use arena::{Arena, Measurements};
use peer::{Peers, Who};
pub use scratch::Disk;
use scratch::Scratch;
use tree::{Amount, Kind};

use super::{Options, Section, load, machine, write_page};
use crate::Fault;

const GIGABYTE: u64 = 1 << 30;

/// One tree, and how often everything is done to it.
pub struct Case {
    title: &'static str,
    kind: Kind,
    pace: Pace,
}

/// How many rounds count; of two numbers the second is for those that take long, and none leaves them out.
#[derive(Debug, Clone, Copy)]
struct Pace {
    first: [usize; 2],
    again: [usize; 2],
    restored: usize,
    rebuilt: [usize; 2],
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// The first snapshot.
    First,
    /// Another one, nothing having changed.
    NoChange,
    /// Another one after a change.
    Changed(Amount),
    /// Bringing the tree back after a change.
    Restored(Amount),
    /// Bringing it back after all of it, itself included, is gone.
    Rebuilt,
}

impl Row {
    const ALL: [Row; 7] = [
        Row::First,
        Row::NoChange,
        Row::Changed(Amount::OneFile),
        Row::Changed(Amount::OnePercent),
        Row::Restored(Amount::OneFile),
        Row::Restored(Amount::OnePercent),
        Row::Rebuilt,
    ];
}

const QUICK: Pace = Pace { first: [2, 1], again: [5, 1], restored: 3, rebuilt: [1, 1] };
const SMALL: Pace = Pace { first: [5, 2], again: [11, 2], restored: 7, rebuilt: [3, 1] };
const LARGE: Pace = Pace { first: [3, 1], again: [7, 1], restored: 5, rebuilt: [2, 1] };
const HUGE: Pace = Pace { first: [2, 0], again: [5, 0], restored: 3, rebuilt: [1, 0] };

const FEW_FILES: Case = Case {
    title: "10,000 small files",
    kind: Kind::Small { files: 10_000, folders: 690, mean: 9_200 },
    pace: SMALL,
};
const MANY_FILES: Case = Case {
    title: "100,000 small files",
    kind: Kind::Small { files: 100_000, folders: 4_100, mean: 6_300 },
    pace: LARGE,
};
const REPOSITORY: Case = Case { title: "A git repository", kind: Kind::Repository, pace: SMALL };
const LARGE_FILE: Case =
    Case { title: "One file of 2 GB", kind: Kind::Random { bytes: 2 * GIGABYTE }, pace: LARGE };
const MILLION: Case = Case {
    title: "1,000,000 small files",
    kind: Kind::Small { files: 1_000_000, folders: 40_000, mean: 1_000 },
    pace: HUGE,
};
const SPARSE: Case =
    Case { title: "One sparse file of 20 GB", kind: Kind::Sparse { bytes: 20 * GIGABYTE }, pace: HUGE };

impl Case {
    /// How often somebody's turn comes.
    fn rounds(&self, who: Who, row: Row) -> usize {
        let Pace { first, again, restored, rebuilt } = self.pace;
        let (is_one_file, is_sparse) = match self.kind {
            Kind::Random { .. } => (true, false),
            Kind::Sparse { .. } => (true, true),
            Kind::Small { .. } | Kind::Repository => (false, false),
        };
        let takes_part = match who {
            Who::Unstuck | Who::Safe | Who::StatWalk | Who::ReadAll => true,
            // It would write out all holes.
            Who::Tar => !is_sparse,
            Who::Copy => first[1] > 0 || is_one_file,
            Who::Git | Who::Restic | Who::Borg => first[1] > 0,
        };
        match (row, who) {
            _ if !takes_part => 0,
            (Row::First, Who::Unstuck | Who::Safe | Who::StatWalk | Who::ReadAll | Who::Tar) => first[0],
            (Row::First, Who::Copy | Who::Git | Who::Restic | Who::Borg) => first[1].max(1),
            // They do the same again as the first time.
            (Row::NoChange | Row::Changed(_), Who::ReadAll | Who::Copy | Who::Tar) => 0,
            // git takes such a file as a whole, which lasts a minute each time.
            (Row::Changed(_), Who::Git) | (Row::Restored(Amount::OnePercent) | Row::Rebuilt, Who::Git)
                if is_one_file =>
            {
                0
            }
            (Row::Restored(Amount::OneFile), Who::Git) if is_one_file => 1,
            (Row::NoChange | Row::Changed(_), Who::Unstuck | Who::Safe | Who::StatWalk | Who::Git) => {
                again[0]
            }
            (Row::NoChange | Row::Changed(_), Who::Restic | Who::Borg) => again[1],
            (Row::Restored(_), Who::Unstuck | Who::Git) => restored,
            // They write all of it again whatever has changed, some by deleting every file first: that is the last column.
            (Row::Restored(_), Who::Copy | Who::Tar | Who::Restic | Who::Borg) => 0,
            (Row::Rebuilt, Who::Unstuck) => rebuilt[0],
            (Row::Rebuilt, Who::Git) => rebuilt[1],
            // What they need is known from a small tree, and a large one would need much room for each.
            (Row::Rebuilt, Who::Copy | Who::Tar | Who::Restic | Who::Borg) if first[1] > 1 => rebuilt[1],
            (Row::Rebuilt, Who::Copy) if is_one_file => rebuilt[1],
            (Row::Rebuilt, Who::Copy | Who::Tar | Who::Restic | Who::Borg) => 0,
            (Row::Restored(_) | Row::Rebuilt, Who::Safe | Who::StatWalk | Who::ReadAll) => 0,
        }
    }
}

/// `cargo xtask bench vault`.
pub fn bench(options: &Options) -> Result<(), Fault> {
    let (mark, groups) = match (options.big, options.quick) {
        // After a group all is deleted; one large file does not mind, many small ones would.
        (false, true) => ("vault", vec![vec![Case { pace: QUICK, ..FEW_FILES }]]),
        (false, false) => ("vault", vec![vec![FEW_FILES, REPOSITORY, MANY_FILES], vec![LARGE_FILE]]),
        (true, _) => ("vault, big", vec![vec![MILLION], vec![SPARSE]]),
    };
    let mut report = machine() + &format!("Everything lies {}.\n", options.disk.name());
    println!("{report}");
    let mut measured: Vec<Measurements> = Vec::new();
    for cases in groups {
        let scratch = Scratch::make(options.disk)?;
        let peers = Peers::build(options.binary.as_deref(), scratch.path().join("home"))?;
        for (number, case) in cases.into_iter().enumerate() {
            println!("{} …", case.title);
            let made = Arena::enter(&peers, &case, &scratch.path().join(number.to_string()));
            let of_case = made.map(|mut arena| arena.measure(&case));
            let table = match &of_case {
                Ok(of_case) => table::tables(of_case)?,
                Err(fault) => format!("\n### {}\n\nNot measured: {fault}.\n", case.title),
            };
            println!("{table}");
            report += &table;
            measured.extend(of_case);
        }
    }
    let end = table::aims(&measured) + &table::versions() + &format!("At the end: {}.\n", load());
    println!("{end}");
    report += &end;
    match options.write {
        true => write_page(&[Section { mark, report }]),
        false => Ok(()),
    }
}
