//! What surrounds the process: its folders and variables, asked once. The only place that knows where files lie.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The file a project may have.
const PROJECT_FILE: &str = ".unstuck.toml";

/// Folders and variables that settings are made from.
#[derive(Debug, Clone)]
pub(crate) struct Around {
    pub(crate) home: Option<PathBuf>,
    /// Where the user's configuration lies.
    pub(crate) config_folder: Option<PathBuf>,
    /// Where the store lies unless a setting says otherwise.
    pub(crate) state_folder: Option<PathBuf>,
    pub(crate) system_file: PathBuf,
    /// Where a search for the project's file begins.
    pub(crate) working_folder: Option<PathBuf>,
    /// What the user edits text with.
    pub(crate) editor: String,
    /// All variables whose names begin with `UNSTUCK_`.
    pub(crate) variables: Vec<(String, OsString)>,
}

impl Around {
    /// Around this process.
    pub(crate) fn here() -> Around {
        let ours = |(name, value): (OsString, OsString)| match name.into_string() {
            Ok(name) if name.starts_with("UNSTUCK_") => Some((name, value)),
            Ok(_) | Err(_) => None,
        };
        let mut variables: Vec<(String, OsString)> = env::vars_os().filter_map(ours).collect();
        variables.sort_unstable();
        Around {
            home: home(),
            config_folder: config_folder(),
            state_folder: base("XDG_STATE_HOME", ".local/state"),
            system_file: PathBuf::from("/etc/unstuck/config.toml"),
            working_folder: env::current_dir().ok(),
            editor: editor(),
            variables,
        }
    }

    pub(crate) fn user_file(&self) -> Option<PathBuf> {
        Some(self.config_folder.as_ref()?.join("config.toml"))
    }

    /// The project's file, if there is one: in the working folder, or the nearest above it within the repository or the
    /// home. Above a folder that is in neither, anybody may have put a file (`/tmp`), so only the folder itself counts.
    pub(crate) fn project_file(&self) -> Option<PathBuf> {
        let folders = self.project_folders();
        folders.iter().map(|folder| folder.join(PROJECT_FILE)).find(|path| fs::symlink_metadata(path).is_ok())
    }

    /// Where the project's file is, or would be: at the root of the repository, or in the working folder where there is none.
    pub(crate) fn new_project_file(&self) -> Option<PathBuf> {
        let folders = self.project_folders();
        let root = folders.iter().find(|folder| folder.join(".git").exists()).or(folders.first())?;
        Some(self.project_file().unwrap_or_else(|| root.join(PROJECT_FILE)))
    }

    /// The folders a project's file is looked for in, nearest first.
    fn project_folders(&self) -> Vec<&Path> {
        let Some(working) = &self.working_folder else { return Vec::new() };
        // The working folder is given without links, the home perhaps with some.
        let home = match &self.home {
            Some(home) if !working.starts_with(home) => fs::canonicalize(home).ok(),
            home => home.clone(),
        };
        let mut folders = Vec::new();
        for folder in working.ancestors() {
            folders.push(folder);
            if Some(folder) == home.as_deref() || folder.join(".git").exists() {
                return folders;
            }
        }
        folders.truncate(1);
        folders
    }
}

/// The folder of the user's configuration.
pub(crate) fn config_folder() -> Option<PathBuf> {
    base("XDG_CONFIG_HOME", ".config")
}

fn base(variable: &str, in_home: &str) -> Option<PathBuf> {
    absolute(variable).or_else(|| home().map(|home| home.join(in_home))).map(|base| base.join("unstuck"))
}

fn home() -> Option<PathBuf> {
    absolute("HOME")
}

fn editor() -> String {
    let set = |name| env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned())
}

/// A folder that is not absolute is no folder: it would be another one in every working folder.
fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
