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

/// Returns whether a path leads to the very file that runs now, whatever its name.
pub(crate) fn is_this_program(path: &Path) -> bool {
    path.is_absolute() && env::current_exe().is_ok_and(|own| is_same_file(path, &own))
}

#[cfg(unix)]
fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let name = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    name(one).is_some_and(|one| name(other) == Some(one))
}

#[cfg(not(unix))]
fn is_same_file(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).is_ok_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}

/// Returns the name of the file that runs now.
pub(super) fn own_name() -> Option<String> {
    env::current_exe().ok()?.file_name()?.to_str().map(str::to_owned)
}

/// Returns whether a program bears our name, with a version or a platform behind it (`unstuck-0.1.0`) or without.
pub(crate) fn is_named_like_us(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let rest = name.strip_prefix("unstuck");
    rest.is_some_and(|rest| !rest.starts_with(|sign: char| sign.is_alphanumeric()))
}

fn is_profile(folder: &str) -> bool {
    matches!(folder, "debug" | "release") || folder.contains("-unknown-") || folder.contains("-apple-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_ours_may_have_a_version_behind_it() {
        for (name, expected) in [
            ("unstuck", true),
            ("unstuck-0.1.0", true),
            ("unstuck_linux", true),
            ("unstuck.exe", true),
            ("unstuckable", false),
            ("unstuck2", false),
            ("my-unstuck", false),
            ("u", false),
        ] {
            assert_eq!(is_named_like_us(&Path::new("/opt").join(name)), expected, "{name}");
        }
    }

    #[test]
    fn this_program_is_known_under_every_name() {
        let own = env::current_exe().unwrap();
        let folder = tempfile::tempdir().unwrap();
        assert!(is_this_program(&own));
        fs::write(folder.path().join("unstuck"), "#!/bin/sh\n").unwrap();
        assert!(!is_this_program(&folder.path().join("unstuck")));
        assert!(!is_this_program(Path::new("unstuck")));
        #[cfg(unix)]
        {
            let link = folder.path().join("u");
            std::os::unix::fs::symlink(&own, &link).unwrap();
            assert!(is_this_program(&link));
        }
    }

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
