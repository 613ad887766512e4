//! Which store a toolbox remembers in. A description only: nothing is opened here.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use unstuck_wire::clean::Cleaner;

/// How long a call waits for the store, where nobody says.
const PATIENCE: Duration = Duration::from_secs(1);

/// A folder in which a toolbox remembers: the record of all calls, what is known to fail, lessons. The command `unstuck` reads
/// and writes the same folder.
///
/// Building a toolbox only looks where its timeline ends; it is opened to write with the first call. A store that cannot be used fails no call: the call is answered without memory, and
/// the monitor channel tells of it.
///
/// ```
/// use std::time::Duration;
/// use unstuck::Store;
///
/// let store = Store::at("/var/lib/agent").patience(Duration::from_millis(300)).secrets(["hunter2hunter2"]);
/// ```
#[derive(Clone)]
#[must_use]
pub struct Store {
    pub(crate) path: PathBuf,
    pub(crate) patience: Duration,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) secrets: Vec<String>,
}

/// The store cannot be read. Calls go on without it all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store in {} cannot be read: {why}", path.display())]
pub struct StoreError {
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

impl Store {
    /// The store in this folder. It is made when it is first needed, and readable by its owner alone.
    pub fn at(path: impl Into<PathBuf>) -> Store {
        Store { path: path.into(), patience: PATIENCE, folder: None, home: None, secrets: Vec::new() }
    }

    /// How long a call may wait for the store, before it runs and after it.
    pub fn patience(self, patience: Duration) -> Store {
        Store { patience, ..self }
    }

    /// The folder the agent works in: lessons learnt there are told there first.
    pub fn folder(self, folder: impl Into<PathBuf>) -> Store {
        Store { folder: Some(folder.into()), ..self }
    }

    /// The home of the user, which is written as `~`.
    pub fn home(self, home: impl Into<PathBuf>) -> Store {
        Store { home: Some(home.into()), ..self }
    }

    /// Values that are never written, beside those that look like secrets anyway. Short ones are not looked for.
    pub fn secrets<S: Into<String>>(mut self, secrets: impl IntoIterator<Item = S>) -> Store {
        self.secrets.extend(secrets.into_iter().map(Into::into));
        self
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What cuts secrets out of everything that is kept.
    pub(crate) fn cleaner(&self) -> Cleaner {
        let secrets = self.secrets.iter().map(|secret| ("SECRET".to_owned(), secret.clone()));
        Cleaner::new(self.home.as_deref().and_then(Path::to_str), secrets)
    }
}

impl fmt::Debug for Store {
    /// Says nothing of the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.path)
            .field("patience", &self.patience)
            .field("folder", &self.folder)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}
