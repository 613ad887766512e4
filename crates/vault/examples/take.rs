//! `take SAFE PATH` takes one snapshot and ends: what the safe costs by itself, without settings, timeline and answers.
#![allow(clippy::print_stdout, reason = "the name of the snapshot is its only answer")]
#![allow(clippy::disallowed_methods, reason = "whoever asks the safe brings the time along")]

use std::error::Error;
use std::path::PathBuf;
use std::time::SystemTime;

use unstuck_vault::{Origin, Rebuildable, Reserve, Unwatched, Vault, Wish};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [safe, path] = words.as_slice() else { return Err("take SAFE PATH".into()) };
    let wish = Wish {
        scopes: vec![path.canonicalize()?],
        rebuildable: Rebuildable::Taken,
        never: Vec::new(),
        origin: Origin::Person,
        note: String::new(),
        reserve: Reserve { max_size: u64::MAX, min_free: 0 },
        now: SystemTime::now(),
    };
    println!("{}", Vault::open(safe)?.take(&wish, &Unwatched)?.id);
    Ok(())
}
