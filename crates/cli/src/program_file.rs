//! Programs as files: which file can be run, and where one of a name lies. Nothing is run here.

use std::env;
use std::path::{Path, PathBuf};

/// The folders of `PATH`, but for those that depend on where one stands.
pub(crate) fn search_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
}

/// Returns the file that a name from the settings means, never one that depends on where one stands: hooks work in repositories of
/// others. A name with a folder is taken as it is.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    if cfg!(not(unix)) || name.contains('/') || env::var_os("PATH").is_none() {
        return Some(PathBuf::from(name));
    }
    first_in(&search_path(), name)
}

/// The program of this name in the first folder that has one.
pub(crate) fn first_in(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(name)).find(|file| is_program(file))
}

/// Is it a file that can be run?
#[cfg(unix)]
pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Is it a file that can be run, with an ending or without?
#[cfg(not(unix))]
pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file() || ["exe", "cmd"].iter().any(|ending| path.with_extension(ending).is_file())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_is_a_file_that_can_be_run_and_the_first_one_counts() {
        let world = tempfile::tempdir().unwrap();
        let folders: Vec<PathBuf> = ["none", "text", "folder", "one", "two"]
            .into_iter()
            .map(|name| world.path().join(name))
            .collect();
        for (folder, mode) in [("text", 0o644), ("one", 0o755), ("two", 0o755)] {
            let file = world.path().join(folder).join("tool");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir_all(world.path().join("folder/tool")).unwrap();
        assert_eq!(first_in(&folders, "tool"), Some(world.path().join("one/tool")));
        assert_eq!(first_in(&folders[..3], "tool"), None);
    }
}
