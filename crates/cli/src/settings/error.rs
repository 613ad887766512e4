//! What can be wrong with settings, in words for the person who wrote them.
//!
//! A project's file is written by strangers, so nothing of it is quoted raw: what steers a terminal is shown as its code.

use std::io;
use std::path::{Path, PathBuf};

use super::layer::Place;

/// How much of what somebody wrote is quoted.
const QUOTE_MAX: usize = 80;

/// A mistake in one layer, by what its writer can do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("could not read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is no ordinary file", path.display())]
    NoFile { path: PathBuf },
    #[error("{} is larger than 1 MB", path.display())]
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

/// Text from a file that somebody else may have written: short, on one line, unable to steer a terminal.
pub(crate) fn quoted(text: &str) -> String {
    let mut safe = String::with_capacity(text.len().min(QUOTE_MAX));
    for sign in text.chars().take(QUOTE_MAX) {
        match sign.is_control() || is_unseen(sign) {
            true => safe.extend(sign.escape_unicode()),
            false => safe.push(sign),
        }
    }
    if text.chars().nth(QUOTE_MAX).is_some() {
        safe.push('…');
    }
    if safe.is_empty() { "\"\"".to_owned() } else { safe }
}

/// Signs that turn the reading direction or cannot be seen.
fn is_unseen(sign: char) -> bool {
    matches!(sign, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_cannot_steer_a_terminal_and_stays_short() {
        assert_eq!(quoted("keep-events"), "keep-events");
        assert_eq!(quoted("a\u{1b}[31m\nb"), "a\\u{1b}[31m\\u{a}b");
        assert_eq!(quoted("a\u{202e}b\u{200b}"), "a\\u{202e}b\\u{200b}");
        assert_eq!(quoted("中文"), "中文");
        assert_eq!(quoted(&"x".repeat(1000)).chars().count(), 81);
        assert_eq!(quoted(""), "\"\"");
    }
}
