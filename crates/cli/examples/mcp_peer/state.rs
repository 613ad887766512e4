//! What survives a restart: counters in one file, and a log of all that reached the server in another.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use crate::lock;

/// Counters and log; without files they last as long as the process.
pub struct State {
    file: Option<PathBuf>,
    counters: Mutex<Map<String, Value>>,
    log: Option<Mutex<File>>,
    start: u64,
}

impl State {
    /// Reads what former starts left, and counts this one.
    pub fn open(file: Option<PathBuf>, log: Option<PathBuf>) -> io::Result<State> {
        let text = file.as_ref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        let counters = serde_json::from_str(&text).unwrap_or_default();
        let open = |path: PathBuf| OpenOptions::new().create(true).append(true).open(path).map(Mutex::new);
        let log = log.map(open).transpose()?;
        let mut state = State { file, counters: Mutex::new(counters), log, start: 0 };
        state.start = state.count("starts")?;
        Ok(state)
    }

    /// Which start this is, from 1 on.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Counts one more of this, and returns how many there are now.
    pub fn count(&self, what: &str) -> io::Result<u64> {
        let mut counters = lock(&self.counters);
        let now = counters.get(what).and_then(Value::as_u64).unwrap_or(0) + 1;
        counters.insert(what.to_owned(), json!(now));
        if let Some(file) = &self.file {
            // Whole or not at all: the next thing we do may be to die.
            let beside = file.with_extension("new");
            fs::write(&beside, Value::Object(counters.clone()).to_string())?;
            fs::rename(beside, file)?;
        }
        Ok(now)
    }

    /// One line for the log.
    pub fn note(&self, line: &Value) -> io::Result<()> {
        match &self.log {
            Some(log) => lock(log).write_all(format!("{line}\n").as_bytes()),
            None => Ok(()),
        }
    }
}
