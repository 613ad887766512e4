//! The path by which agents will call us.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::note::Note;

/// Our own program, as it is written into settings.
#[derive(Debug, Clone)]
pub(crate) struct OwnProgram {
    pub(crate) path: PathBuf,
}

impl OwnProgram {
    /// This program. Where a link on the PATH leads to it, the link is taken: package managers keep it when they replace what it
    /// leads to.
    pub(crate) fn here() -> io::Result<OwnProgram> {
        let real = fs::canonicalize(env::current_exe()?)?;
        let search = env::var_os("PATH").unwrap_or_default();
        let is_it =
            |path: &PathBuf| path.is_absolute() && fs::canonicalize(path).is_ok_and(|found| found == real);
        let lasting = env::split_paths(&search).map(|folder| folder.join("unstuck")).find(is_it);
        Ok(OwnProgram { path: lasting.unwrap_or(real) })
    }

    /// Why it may not be there for long.
    pub(crate) fn doubt(&self) -> Option<Note> {
        let program = self.path.clone();
        let folders: Vec<&str> = program.iter().filter_map(|part| part.to_str()).collect();
        let is_build = folders.windows(2).any(|pair| pair[0].starts_with("target") && is_profile(pair[1]));
        if is_build {
            return Some(Note::BuildFolder { program });
        }
        let is_temporary = [Path::new("/tmp"), Path::new("/var/tmp"), &env::temp_dir()]
            .iter()
            .any(|folder| program.starts_with(folder));
        is_temporary.then_some(Note::Temporary { program })
    }
}

fn is_profile(folder: &str) -> bool {
    matches!(folder, "debug" | "release") || folder.contains("-unknown-") || folder.contains("-apple-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<&str>) {
        let note = OwnProgram { path: PathBuf::from(path) }.doubt();
        assert_eq!(note.as_ref().map(Note::word), expected, "{path}");
    }

    #[test]
    fn a_program_that_will_not_last_is_told() {
        check("/home/me/unstuck/target/release/unstuck", Some("build_folder"));
        check("/home/me/target/x86_64-unknown-linux-musl/release/unstuck", Some("build_folder"));
        check("/tmp/unstuck", Some("temporary"));
        check("/usr/local/bin/unstuck", None);
        check("/home/me/.cargo/bin/unstuck", None);
        check("/home/target/bin/unstuck", None);
    }
}
