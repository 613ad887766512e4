//! A folder for things that are tried out: nobody else can look into it, and it is gone when it is dropped.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cellar;
use crate::exit::CommandError;

/// The folder.
pub(crate) struct Scratch {
    path: PathBuf,
    stays: bool,
}

impl Scratch {
    /// Makes one. The word says what it is for, to whoever finds it.
    pub(crate) fn make(purpose: &str) -> Result<Scratch, CommandError> {
        let name = format!("unstuck-{purpose}-{}-{}", std::process::id(), cellar::random());
        let path = env::temp_dir().join(name);
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(&path) {
            Ok(()) => Ok(Scratch { path, stays: false }),
            Err(source) => Err(CommandError::NotMade { path, source }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it where it is, for somebody to look at.
    pub(crate) fn keep(&mut self) {
        self.stays = true;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.stays {
            let _it_is_only_a_temporary_one = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_behind_unless_it_is_to_be_kept() {
        let path_of = |keep: bool| {
            let mut scratch = Scratch::make("test").unwrap();
            fs::write(scratch.path().join("file"), "x").unwrap();
            if keep {
                scratch.keep();
            }
            scratch.path().to_owned()
        };
        assert!(!path_of(false).exists());
        let kept = path_of(true);
        assert!(kept.join("file").exists());
        fs::remove_dir_all(kept).unwrap();
    }
}
