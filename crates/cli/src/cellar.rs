//! The way down to the store: which folder, opened how, at what time.

use std::env;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use unstuck_store::{Root, Store};

use crate::exit::CommandError;

/// How long a command that a person waits for may wait for another process.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens the store to look things up.
pub(crate) fn to_read() -> Result<Store, CommandError> {
    let root = Root::existing(&folder()?, None)?;
    Ok(Store::to_read(&root, PATIENCE, now())?)
}

/// Opens the store to change something in it.
pub(crate) fn to_write() -> Result<Store, CommandError> {
    let root = Root::open(&folder()?, None)?;
    Ok(Store::to_write(&root, PATIENCE, now())?)
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let passed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
}

fn folder() -> Result<PathBuf, CommandError> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    Ok(base.ok_or(CommandError::NoHome)?.join("unstuck"))
}
