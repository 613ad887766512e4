//! Writes the seeds of each target into a folder of its own: `seeds PROJECT FOLDER`.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::PathBuf;

use unstuck_fuzz::seeds;

fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(project), Some(folder)) = (args.next(), args.next()) else {
        return Err(Error::new(ErrorKind::InvalidInput, "seeds PROJECT FOLDER"));
    };
    for (index, seed) in seeds::of_project(&project)?.into_iter().enumerate() {
        let folder = folder.join(seed.target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("seed-{index}")), seed.bytes)?;
    }
    Ok(())
}
