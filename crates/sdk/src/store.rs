//! Which store a toolbox remembers in. A description only: nothing is opened here.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use unstuck_wire::clean::Cleaner;

use crate::call::CallInfo;

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
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) door: &'static str,
    pub(crate) waits: bool,
    pub(crate) is_watched: bool,
    pub(crate) unseen: Option<Unseen>,
}

/// Tells whether something that a call depends on has changed since a moment.
pub(crate) type Unseen = Arc<dyn Fn(&CallInfo, SystemTime) -> bool + Send + Sync>;

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
        Store {
            path: path.into(),
            patience: PATIENCE,
            folder: None,
            home: None,
            secrets: Vec::new(),
            variables: Vec::new(),
            door: "sdk",
            waits: true,
            is_watched: true,
            unseen: None,
        }
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

    /// The environment of the process: values of variables whose names say that they are secret are never written.
    ///
    /// ```
    /// use unstuck::Store;
    ///
    /// let store = Store::at("/var/lib/agent").variables(std::env::vars());
    /// ```
    pub fn variables(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Store {
        self.variables.extend(variables);
        self
    }

    /// By which way calls come, as the record names it; `sdk` where nobody says.
    pub fn door(self, door: &'static str) -> Store {
        Store { door, ..self }
    }

    /// Calls do not wait for the disk while there is nothing they could be told: what happens in a session is written behind them,
    /// in order, as long as nothing is known to fail in it and nothing was to be said. The first call of each session waits, to learn
    /// that. A failure waits for its answer, and after it all calls of its session wait, until what failed has worked. What is said
    /// to a call that did not wait is told with the next one.
    ///
    /// What is given up: what only earlier sessions know is told with a failure instead of before it, what another process
    /// records in the same session is not seen before something fails here, and a process that is killed takes along what it had not
    /// written yet. [`Toolbox::shutdown`](crate::Toolbox::shutdown) writes all of it. Where more waits to be written than there is room
    /// for, calls wait for a place; nothing is dropped as long as the store moves on.
    pub fn without_waiting(self) -> Store {
        Store { waits: false, ..self }
    }

    /// Anybody may have made up what these calls say of themselves: lessons made of them are told to nobody before they helped
    /// where somebody watched, or a person approved them.
    pub fn unwatched(self) -> Store {
        Store { is_watched: false, ..self }
    }

    /// Asked before a call is refused: has something that it depends on changed since a moment, behind the back of the toolbox? Then it
    /// runs. It may look at files and takes no longer than that.
    pub fn unseen(
        self,
        has_changed: impl Fn(&CallInfo, SystemTime) -> bool + Send + Sync + 'static,
    ) -> Store {
        Store { unseen: Some(Arc::new(has_changed)), ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What cuts secrets out of everything that is kept.
    pub(crate) fn cleaner(&self) -> Cleaner {
        let secrets = self.secrets.iter().map(|secret| ("SECRET".to_owned(), secret.clone()));
        let all = secrets.chain(self.variables.iter().cloned());
        Cleaner::new(self.home.as_deref().and_then(Path::to_str), all)
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
            .field("door", &self.door)
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}
