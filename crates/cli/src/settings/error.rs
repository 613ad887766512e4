//! What can be wrong with settings, in words for the person who wrote them. Nothing that was written is quoted raw.

use std::io;
use std::path::{Path, PathBuf};

use super::layer::Place;
use super::quoted::{harmless_path, quoted};

/// A mistake in one layer, by what its writer can do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("could not read {}: {source}", harmless_path(path))]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is no ordinary file", harmless_path(path))]
    NoFile { path: PathBuf },
    #[error("{} is larger than 1 MB", harmless_path(path))]
    TooLarge { path: PathBuf },
    #[error("{place}: is not UTF-8 text")]
    NoText { place: Place },
    #[error("{place}: {what}")]
    Syntax { place: Place, what: String },
    #[error("{place}: no setting is called {}", quoted(name))]
    UnknownKey { place: Place, name: String, nearest: Option<String> },
    #[error("{place}: {name} must be {wanted}, not {}", quoted(found))]
    WrongValue { place: Place, name: String, wanted: String, found: String },
    #[error("{place}: {} may not be set by a project: it is the user's alone", quoted(name))]
    NotForProjects { place: Place, name: String },
    #[error("{place}: {name} = {found} would loosen {current}: {may}")]
    Loosens { place: Place, name: &'static str, found: String, current: String, may: &'static str },
    #[error("{place}: alert {}: {what}", quoted(name))]
    Alert { place: Place, name: String, what: String },
    #[error("{place}: alerts are set in the user's or the system's file only")]
    AlertOutsideFile { place: Place },
    #[error("--set wants KEY=VALUE, not {}", quoted(written))]
    NoAssignment { written: String },
}

impl SettingsError {
    /// What to try, if anything helps.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            SettingsError::UnknownKey { nearest: Some(nearest), .. } => {
                Some(format!("did you mean {nearest}?"))
            }
            SettingsError::UnknownKey { nearest: None, .. } => {
                Some("`unstuck config show` lists all settings".to_owned())
            }
            SettingsError::NotForProjects { .. } | SettingsError::Loosens { .. } => {
                Some("`unstuck config edit` opens your own file, which may set it".to_owned())
            }
            SettingsError::WrongValue { name, .. } => {
                Some(format!("`unstuck config explain {name}` tells more"))
            }
            SettingsError::Unreadable { .. }
            | SettingsError::NoFile { .. }
            | SettingsError::TooLarge { .. }
            | SettingsError::NoText { .. }
            | SettingsError::Syntax { .. }
            | SettingsError::Alert { .. }
            | SettingsError::AlertOutsideFile { .. }
            | SettingsError::NoAssignment { .. } => None,
        }
    }

    /// Whether it lies in this file.
    pub(crate) fn is_in(&self, file: &Path) -> bool {
        match self {
            SettingsError::Unreadable { path, .. }
            | SettingsError::NoFile { path }
            | SettingsError::TooLarge { path } => path == file,
            SettingsError::NoText { place }
            | SettingsError::Syntax { place, .. }
            | SettingsError::UnknownKey { place, .. }
            | SettingsError::WrongValue { place, .. }
            | SettingsError::NotForProjects { place, .. }
            | SettingsError::Loosens { place, .. }
            | SettingsError::Alert { place, .. }
            | SettingsError::AlertOutsideFile { place } => match place {
                Place::InFile { path, .. } => path == file,
                Place::BuiltIn | Place::Variable(_) | Place::Flag => false,
            },
            SettingsError::NoAssignment { .. } => false,
        }
    }
}
